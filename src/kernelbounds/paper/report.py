"""The report of a reproduction: one HTML file that needs no network.

Its page is ``report.html``; what is filled in here is its text and, as JSON, the curves that its
script draws.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from html import escape
from importlib import resources
from pathlib import Path

from kernelbounds.paper import specs, table1
from kernelbounds.paper.cells import MethodRuns, settings_of
from kernelbounds.paper.experiments import EXPERIMENTS
from kernelbounds.paper.figures import colours
from kernelbounds.paper.recursion import RECURSIONS

Runs = Mapping[str, list[MethodRuns]]  # by experiment


def as_html(runs: Runs, facts: dict[str, str], folder: Path) -> str:
    """Return the whole page; the folder has the pictures, if any were made."""
    table = runs.get("table1") or runs.get("figure2") or []
    found = {**runs, "figure2": table}
    drawn = {
        name: found[name] for name, one in EXPERIMENTS.items() if one.curves and found.get(name)
    }
    pictures = {name: _pictures(name, folder) for name, one in EXPERIMENTS.items() if one.pictures}
    parts = {
        "summary": _summary([one for members in runs.values() for one in members]),
        "table": _table(table) if table else "",
        "figure1": pictures.pop("figure1"),
        "sections": "".join([*(_curves(name, drawn[name]) for name in drawn), *pictures.values()]),
        "facts": "".join(
            f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items()
        ),
        "data": as_json(drawn),
    }
    template = (
        resources.files("kernelbounds.paper").joinpath("report.html").read_text(encoding="utf-8")
    )
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]], template)


def _summary(runs: list[MethodRuns]) -> str:
    """Return two sentences on what was run."""
    if not runs:
        return "The paper's bandit problems were not run. The pictures show what was."
    settings = settings_of(runs)
    methods = table1.bounds_and_baselines(runs) or {one.method for one in runs}
    repetitions = max(len(one.regret) for one in runs)
    text = (
        f"This is a run of {_several(len(methods), 'method', 'methods')} on "
        f"{_several(len(settings), 'family', 'families')} of random problems, with "
        f"{_several(repetitions, 'repetition', 'repetitions')} "
        f"of {max(setting.rounds for setting in settings)} rounds each. "
        "All methods met the same problems with the same noise, so that their differences are "
        "their own."
    )
    return escape(text)


def _several(count: int, noun: str, plural: str) -> str:
    return f"{count} {noun if count == 1 else plural}"


def _table(runs: list[MethodRuns]) -> str:
    scores = [z for one in runs if not math.isnan(z := table1.z_score(one))]
    rounds = max(one.setting.rounds for one in runs)
    note = f"Cumulative regret after {rounds} rounds: mean ± standard deviation over repetitions."
    if any(table1.published(one.setting, one.method) for one in runs):
        note += " The paper's numbers are below ours."
    else:
        note += " The paper prints no numbers for these settings."
    if scores:
        far = sum(abs(z) > 2 for z in scores)
        note += (
            " z is the difference of the two means in units of its standard error; by chance "
            f"alone about one in twenty would be beyond ±2, and here it is {far} of {len(scores)}."
        )
    return (
        f'<section id="table1"><h2>Table 1</h2><p class="note">{escape(note)}</p>'
        f"{_scrolled('Table 1', table1.as_html(runs))}</section>"
    )


def _curves(name: str, runs: list[MethodRuns]) -> str:
    """Return the section of an experiment with curves, whose panels the script fills in."""
    panels = EXPERIMENTS[name].curves
    columns = panels.columns(runs) if panels else 1
    grid = f'<div class="grid" style="--columns: {columns}" data-section="{name}"></div>'
    return _section(name, grid)


def _pictures(name: str, folder: Path) -> str:
    """Return the section of an experiment that has pictures; an empty text if none were made.

    A picture is an image in the page, so that nothing in its file is markup of ours.
    """
    shown = []
    for picture in EXPERIMENTS[name].pictures:
        path = folder / f"{picture.file}.svg"
        if not path.exists():
            return ""
        data = base64.b64encode(path.read_bytes()).decode()
        image = f'<img alt="{picture.alternative}." src="data:image/svg+xml;base64,{data}">'
        shown.append(_scrolled(picture.label, image))
    return _section(name, "".join(shown))


def _section(name: str, content: str) -> str:
    title, note = specs.TITLES[name], escape(EXPERIMENTS[name].note)
    heading = escape(title[0].upper() + title[1:])
    return f'<section id="{name}"><h2>{heading}</h2><p class="note">{note}</p>{content}</section>'


def _scrolled(label: str, content: str) -> str:
    opening = f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
    return f"{opening}{content}</div>"


def as_json(drawn: Runs) -> str:
    """Return the curves as JSON for a script element, without any ``<`` that could end it."""
    runs = [one for members in drawn.values() for one in members]
    methods = {one.method for one in runs}
    data = {
        "methods": [
            {
                "id": method,
                "name": table1.name_of(method),
                "colour": colour,
                "dashed": method in RECURSIONS,
                "shown": method != "Random" or methods == {"Random"},  # it dwarfs the others
            }
            for method, colour in colours(runs).items()
            if method in methods
        ],
        "sections": {
            name: panels.as_data(members)
            for name, members in drawn.items()
            if (panels := EXPERIMENTS[name].curves)
        },
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
