"""Reproduce experiments: run what is missing, then write tables, figures and the report.

Every experiment has its file, and ``specs.TITLES`` says what each is.

=======================  ==========================================================================
``table1.py``            Table 1, with the numbers that the paper prints
``figures.py``           the paper's figures
``proved_regret.py``     ``theory``: the regret of AMM under its proved bounds
``regret_by_radius.py``  ``tightness``: regret with several radii
``certified_rounds.py``  ``certificates``: one policy on one known function
``design_rates.py``      ``designs``: some data sets of one way of collecting (``designs.py``)
``scale.py``             ``scale``: one engine with a number of observations
``bounds_compared.py``   ``rivals``: one bound of the literature, or of ours, on one problem
``optimisers.py``        ``optimisers``: one optimiser (``contenders.py``) on one function
=======================  ==========================================================================

Those of tables, regret and radii consist of cells (``cells.py``): one method on one random problem
of a setting. Experiments that share cells share their results.
"""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from kernelbounds.paper import (
    bounds_compared,
    certified_rounds,
    contenders,
    design_rates,
    figures,
    optimisers,
    proved_regret,
    regret_by_radius,
    scale,
    specs,
    table1,
)
from kernelbounds.paper.cells import RECURSIONS, Cell, MethodRuns, collect, settings_of
from kernelbounds.paper.figures import colours
from kernelbounds.paper.results import ResultStore, run_missing, software, written_together
from kernelbounds.paper.specs import Choices, Experiment

EXPERIMENTS: dict[str, Experiment[Any, Any]] = {
    "table1": table1.EXPERIMENT,
    **figures.EXPERIMENTS,
    "theory": proved_regret.EXPERIMENT,
    "tightness": regret_by_radius.EXPERIMENT,
    "certificates": certified_rounds.EXPERIMENT,
    "designs": design_rates.EXPERIMENT,
    "scale": scale.EXPERIMENT,
    "rivals": bounds_compared.EXPERIMENT,
    "optimisers": optimisers.EXPERIMENT,
}


@dataclass(frozen=True)
class Reproduced:
    """The outcome of a reproduction."""

    computed: int  # jobs
    files: list[Path]
    table: str  # the tables of all experiments that have some, as text


def reproduce(
    names: Iterable[str],
    choices: Choices,
    out: Path,
    workers: int = 1,
    dask: str | None = None,
    say: Callable[[str], None] = print,
) -> Reproduced:
    """Reproduce experiments of the paper into the folder ``out``.

    Jobs that are done already are not computed again. Tables, figures and the report are made
    from their results; each file is replaced as a whole, and none before all are made.
    """
    wanted = list(names)
    specs.refuse_unknown("experiment", wanted, tuple(specs.TITLES), ["all"])
    if "all" in wanted:
        wanted = list(EXPERIMENTS)
    if "optimisers" in wanted and (absent := contenders.missing()):
        say(absent)
    store = ResultStore(out)
    store.open(choices)
    start = time.monotonic()
    jobs = {name: list(one.jobs(choices)) for name, one in EXPERIMENTS.items()}
    for name in wanted:
        if not jobs[name]:
            say(f"{name} has nothing to run with these kernels")
    asked = list(dict.fromkeys(job for name in wanted for job in jobs[name]))
    computed = run_missing(asked, store, workers, dask, say)
    where = f"the Dask cluster at {dask}" if dask else f"{workers} worker(s) on this machine"
    used = [store.software(job) for job in asked] or [software()]
    facts = {
        "rounds": str(choices.rounds),
        "repetitions": str(choices.repetitions),
        "seed": str(choices.seed),
        "methods": ", ".join(choices.methods),
        "cells": f"{len(asked)}, of which {computed} computed in this run",
        "this run": f"{time.monotonic() - start:.0f} s on {where}",
        "computed with": "; ".join(
            sorted({f"{key} {value}" for one in used for key, value in one.items()})
        ),
    }
    # The report is about everything that is there, not only what was asked for this time.
    shown = {
        name: members
        for name, members in jobs.items()
        if members and (name in wanted or all(store.state(job) == "done" for job in members))
    }
    runs = {
        name: collect([job for job in members if isinstance(job, Cell)], store)
        for name, members in shown.items()
    }

    def write(folder: Path) -> str:
        texts = [
            EXPERIMENTS[name].write(name, members, store, folder) for name, members in shown.items()
        ]
        compared = table1.recursion_comparison(runs.get("table1", []), runs.get("figure-time", []))
        if compared:
            facts["speed"] = compared
            say(compared)
        page = as_html(runs, facts, folder)
        (folder / "report.html").write_text(page, encoding="utf-8")
        return "\n".join(text for text in texts if text)

    text, made = written_together(out, write)
    return Reproduced(computed, made, text)


# --- the report: one HTML file that needs no network

# Its page is ``report.html``; what is filled in here is its text and, as JSON, the curves that its
# script draws.
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
