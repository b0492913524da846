"""The report: one HTML file that needs no network.

The page is ``report.html``; what is filled in here is its text and, as JSON, the curves that its
script draws.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.paper import table1
from kernelbounds.paper.figures import colours, smoothed, spread
from kernelbounds.paper.results import MethodRuns, find, settings_of
from kernelbounds.paper.specs import (
    EXPERIMENTS,
    KERNELS,
    LENGTH_SCALES,
    NOISE,
    NORM,
    RECURSIONS,
    Setting,
)

CURVE_POINTS = 250  # at most
CURVE_DIGITS = 5  # significant

NOTES = {
    "figure1": "Narrower is better, as long as the dashed truth is inside.",
    "figure-time": "To choose an action and to learn from its reward: running medians, with "
    "nothing run beside it. Dashed: the appendix's recursions, in plain NumPy.",
    "figure-loose": f"The learner believes what is above each panel; in truth σ = {NOISE:g} and "
    f"B = {NORM:g}.",
    "theory": "Bounds from the tightest: the widths of the bands where the policy played; the "
    "theorem with the information gain of the run; the theorem with the largest information gain "
    "over points that fill the cube. Bands reach from the smallest to the largest repetition.",
    "tightness": "Mean regret over that of the limit, where R² is the noise energy itself, which "
    "nobody knows; with 95 % intervals of the ratio on the same problems.",
    "certificates": "What the regret of the best action known is certified to be at most, over "
    "the range of the function: medians over repetitions.",
    "designs": "Above: mean half-widths where points were fixed before the outcomes. Below: how "
    "often a claim was wrong, with exact 95 % intervals, by how the points came about; the line is "
    "δ. Open symbols: the same points measured again, with fresh noise.",
    "scale": "Mean half-widths, seconds of one processor core for the observations and a thousand "
    "bounds, and the peak memory of the process. Dashed: what a cluster would take by a model that "
    "is fitted to these times, not measured.",
    "rivals": "Above: mean widths after random observations. Below: regret of KernelUCB with each "
    "bound. Dashed: the limit, where R² is the noise energy itself, which nobody knows. Dotted: "
    "bounds that promise less, or that coincide with others.",
    "optimisers": "Above: true regret of the point that each method recommends, means over "
    "repetitions. Dashed: what ours certify it to be at most; the others certify nothing. Dotted: "
    "ours inside BoTorch and Optuna. Below: cumulative regret.",
}
# Figures that are shown as pictures: file, label, and what is seen.
PICTURES = {
    "figure1": (
        (
            "figure1",
            "Figure 1",
            "Confidence bands of the five bounds on one test function, with the truth and the data",
        ),
    ),
    "theory": (
        ("theory-regret", "Regret under its bounds", "Measured regret and three bounds above it"),
        ("theory-growth", "Growth", "Fitted exponents of the regret beside the proved ones"),
    ),
    "tightness": (("tightness", "Tightness", "Regret relative to the limit, by method"),),
    "certificates": (("certificates", "Certificates", "Certified regret against rounds"),),
    "designs": (("designs", "Designs", "Half-widths against observations, and rates of errors"),),
    "rivals": (
        ("rivals", "Widths", "Mean width against observations, by bound"),
        ("rivals-regret", "Regret", "Cumulative regret against rounds, by bound"),
    ),
    "optimisers": (
        ("optimisers", "Recommended points", "Regret of the recommended point against trials"),
        ("optimisers-cumulative", "Regret", "Cumulative regret against trials, by method"),
    ),
    "scale": (("scale", "Scale", "Width, time and memory against the number of observations"),),
}


@dataclass(frozen=True)
class Section:
    """The panels of one experiment."""

    name: str
    runs: list[MethodRuns]

    @property
    def settings(self) -> list[Setting]:
        """The settings, one a panel, row by row."""
        return sorted(settings_of(self.runs), key=_place)

    def as_html(self) -> str:
        """Return the section, whose panels the script fills in."""
        rows = [_place(setting)[:2] for setting in self.settings]
        width = max(map(rows.count, rows))
        grid = f'<div class="grid" style="--columns: {width}" data-section="{self.name}"></div>'
        return _section(self.name, grid)

    def as_data(self) -> dict[str, Any]:
        """Return the curves, for the script."""
        timed = self.name == "figure-time"
        return {
            "unit": "milliseconds" if timed else "cumulative regret",
            "log": timed,
            "panels": [
                self._panel(setting, _time if timed else _regret) for setting in self.settings
            ],
        }

    def _panel(
        self, setting: Setting, curve: Callable[[MethodRuns], tuple[Array, Array]]
    ) -> dict[str, Any]:
        found = {method: find(self.runs, setting, method) for method in colours(self.runs)}
        members = {method: one for method, one in found.items() if one}
        count = min(one.regret.shape[1] for one in members.values())
        kept = np.unique(np.linspace(0, count - 1, min(count, CURVE_POINTS)).round().astype(int))
        curves = {}
        for method, one in members.items():
            mean, std = (_numbers(values[kept]) for values in curve(one))
            curves[method] = {"mean": mean, "std": std}
        title = setting.believed if self.name == "figure-loose" else setting.title
        return {"title": title, "rounds": (1 + kept).tolist(), "curves": curves}


def as_html(runs: dict[str, list[MethodRuns]], facts: dict[str, str], figures: Path) -> str:
    """Return the whole page; ``figures`` is the folder of the pictures, if any were made."""
    table = runs.get("table1") or runs.get("figure2") or []
    shown = {**runs, "figure2": table}
    names = [name for name in EXPERIMENTS if name != "table1" and name not in PICTURES]
    sections = [Section(name, shown[name]) for name in names if shown.get(name)]
    pictures = {name: _pictures(name, figures) for name in PICTURES}
    figure1 = pictures.pop("figure1")
    parts = {
        "summary": _summary([one for members in runs.values() for one in members]),
        "table": _table(table) if table else "",
        "figure1": figure1 if "figure1" in runs else "",
        "sections": "".join([*(one.as_html() for one in sections), *pictures.values()]),
        "facts": "".join(
            f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items()
        ),
        "data": _json(sections),
    }
    template = files("kernelbounds.paper").joinpath("report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]], template)


def _summary(runs: list[MethodRuns]) -> str:
    """Two sentences on what was run."""
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


def _pictures(name: str, folder: Path) -> str:
    """The section of an experiment whose figures are pictures here, if they were made.

    A picture is an image in the page, so that nothing in its file is markup of ours.
    """
    shown = []
    for file, label, words in PICTURES[name]:
        path = folder / f"{file}.svg"
        if not path.exists():
            return ""
        data = base64.b64encode(path.read_bytes()).decode()
        image = f'<img alt="{words}." src="data:image/svg+xml;base64,{data}">'
        shown.append(_scrolled(label, image))
    return _section(name, "".join(shown))


def _section(name: str, content: str) -> str:
    title, note = EXPERIMENTS[name], escape(NOTES.get(name, ""))
    heading = escape(title[0].upper() + title[1:])
    return f'<section id="{name}"><h2>{heading}</h2><p class="note">{note}</p>{content}</section>'


def _scrolled(label: str, content: str) -> str:
    opening = f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
    return f"{opening}{content}</div>"


def _json(sections: list[Section]) -> str:
    """The curves as JSON that is fit for a script element: no ``<`` can end it."""
    runs = [one for section in sections for one in section.runs]
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
        "sections": {section.name: section.as_data() for section in sections},
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _place(setting: Setting) -> tuple[float, int, int, float]:
    """The row first, then the column: as in the static figures."""
    return (
        setting.noise_scale,
        LENGTH_SCALES.index(setting.length_scale),
        KERNELS.index(setting.kernel),
        setting.norm_bound,
    )


def _regret(one: MethodRuns) -> tuple[Array, Array]:
    return one.regret.mean(axis=0), spread(one.regret)


def _time(one: MethodRuns) -> tuple[Array, Array]:
    """Milliseconds of each step, smoothed."""
    each = np.array([smoothed(seconds) for seconds in one.seconds])
    return 1e3 * smoothed(one.seconds.mean(axis=0)), 1e3 * spread(each)


def _numbers(values: Array) -> list[float | None]:
    return [float(f"{v:.{CURVE_DIGITS}g}") if math.isfinite(v) else None for v in values.tolist()]
