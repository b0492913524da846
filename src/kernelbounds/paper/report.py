"""The report: one HTML file that needs no network.

The page is ``report.html``; what is filled in here is its text and, as JSON, the curves that its
script draws.
"""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.paper import tables
from kernelbounds.paper.figures import colours, smoothed
from kernelbounds.paper.specs import (
    EXPERIMENTS,
    KERNELS,
    LENGTH_SCALES,
    NOISE,
    NORM,
    RECURSIONS,
    Setting,
)
from kernelbounds.paper.tables import Runs, find

POINTS = 250  # at most, in a curve
DIGITS = 5  # significant, in a curve

NOTES = {
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
}
# Figures that are shown as pictures: file, label, and what is seen.
PICTURES = {
    "theory": (
        ("theory-regret", "Regret under its bounds", "Measured regret and three bounds above it"),
        ("theory-growth", "Growth", "Fitted exponents of the regret beside the proved ones"),
    ),
    "tightness": (("tightness", "Tightness", "Regret relative to the limit, by method"),),
    "certificates": (("certificates", "Certificates", "Certified regret against rounds"),),
    "designs": (("designs", "Designs", "Half-widths against observations, and rates of errors"),),
    "scale": (("scale", "Scale", "Width, time and memory against the number of observations"),),
}


@dataclass(frozen=True)
class Section:
    """The panels of one experiment."""

    name: str
    runs: list[Runs]

    @property
    def timed(self) -> bool:
        """Whether this is about time, and not about regret."""
        return self.name == "figure-time"

    @property
    def settings(self) -> list[Setting]:
        """One a panel, row by row."""
        return sorted(tables.columns(self.runs), key=_place)

    @property
    def width(self) -> int:
        """Panels in a row."""
        rows = [_place(setting)[:2] for setting in self.settings]
        return max(map(rows.count, rows))

    def heading(self, setting: Setting) -> str:
        """Of a panel."""
        if self.name == "figure-loose":
            return f"believed σ = {setting.noise_scale:g}, B = {setting.norm_bound:g}"
        return tables.title(setting)

    def as_data(self) -> dict[str, Any]:
        """For the script."""
        return {
            "unit": "milliseconds" if self.timed else "cumulative regret",
            "log": self.timed,
            "panels": [self._panel(setting) for setting in self.settings],
        }

    def _panel(self, setting: Setting) -> dict[str, Any]:
        found = {method: find(self.runs, setting, method) for method in colours(self.runs)}
        members = {method: one for method, one in found.items() if one}
        count = min(one.regret.shape[1] for one in members.values())
        kept = np.unique(np.linspace(0, count - 1, min(count, POINTS)).round().astype(int))
        curves = {}
        for method, one in members.items():
            mean, spread = _time(one) if self.timed else _regret(one)
            curves[method] = {"mean": _numbers(mean[kept]), "std": _numbers(spread[kept])}
        return {
            "title": self.heading(setting),
            "rounds": (1 + kept).tolist(),
            "curves": curves,
        }


def as_html(runs: dict[str, list[Runs]], facts: dict[str, str], figures: Path) -> str:
    """The whole page; ``figures`` is the folder that holds the pictures, if any were made."""
    table = runs.get("table1") or runs.get("figure2") or []
    shown = {**runs, "figure2": table}
    sections = [Section(name, shown[name]) for name in EXPERIMENTS if _curves(name, shown)]
    picture = figures / "figure1.svg"
    parts = {
        "summary": _summary([one for members in runs.values() for one in members]),
        "table": _table(table) if table else "",
        "figure1": _picture(picture) if "figure1" in runs and picture.exists() else "",
        "sections": "".join(map(_section, sections))
        + "".join(_pictures(name, figures) for name in PICTURES),
        "facts": "".join(
            f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items()
        ),
        "data": _json(sections),
    }
    template = files("kernelbounds.paper").joinpath("report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]], template)


def _curves(name: str, runs: dict[str, list[Runs]]) -> bool:
    return name not in ("figure1", "table1", *PICTURES) and bool(runs.get(name))


def _summary(runs: list[Runs]) -> str:
    """Two sentences on what was run."""
    if not runs:
        return "The paper's bandit problems were not run. The pictures show what was."
    settings = {one.setting for one in runs}
    methods = tables.methods(runs) or {one.method for one in runs}
    text = (
        f"This is a run of {_several(methods, 'method')} on "
        f"{_several(settings, 'family', 'families')} of random problems, with "
        f"{_several(range(max(len(one.regret) for one in runs)), 'repetition')} "
        f"of {max(setting.rounds for setting in settings)} rounds each. "
        "All methods met the same problems with the same noise, so that their differences are "
        "their own."
    )
    return escape(text)


def _several(things: Any, noun: str, plural: str = "") -> str:
    count = len(things)
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def _table(runs: list[Runs]) -> str:
    scores = [one.z for one in runs if not math.isnan(one.z)]
    rounds = max(one.setting.rounds for one in runs)
    note = f"Cumulative regret after {rounds} rounds: mean ± standard deviation over repetitions."
    if any(one.published for one in runs):
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
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table 1">'
        f"{tables.as_html(runs)}</div></section>"
    )


def _picture(file: Path) -> str:
    words = "Confidence bands of the five bounds on one test function, with the truth and the data"
    return (
        '<section id="figure1"><h2>The bands of all bounds on one function (Figure 1)</h2>'
        '<p class="note">Narrower is better, as long as the dashed truth is inside.</p>'
        f"{_image(file, 'Figure 1', words)}</section>"
    )


def _pictures(name: str, folder: Path) -> str:
    """The section of an experiment whose figures are pictures here, if they were made."""
    pictures = {folder / f"{file}.svg": words for file, *words in PICTURES[name]}
    if not all(file.exists() for file in pictures):
        return ""
    heading = EXPERIMENTS[name]
    return (
        f'<section id="{name}"><h2>{escape(heading[0].upper() + heading[1:])}</h2>'
        f'<p class="note">{escape(NOTES[name])}</p>'
        f"{''.join(_image(file, *words) for file, words in pictures.items())}</section>"
    )


def _image(file: Path, label: str, words: str) -> str:
    """As an image in the page, so that nothing in the file is markup of ours."""
    data = base64.b64encode(file.read_bytes()).decode()
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f'<img alt="{words}." src="data:image/svg+xml;base64,{data}"></div>'
    )


def _section(section: Section) -> str:
    name, title = escape(section.name), EXPERIMENTS[section.name]
    return (
        f'<section id="{name}"><h2>{escape(title[0].upper() + title[1:])}</h2>'
        f'<p class="note">{escape(NOTES.get(section.name, ""))}</p>'
        f'<div class="grid" style="--columns: {section.width}" data-section="{name}"></div>'
        "</section>"
    )


def _json(sections: list[Section]) -> str:
    """Fit for a script element: no ``<`` can end it."""
    runs = [one for section in sections for one in section.runs]
    methods = {one.method for one in runs}
    data = {
        "methods": [
            {
                "id": method,
                "name": tables.name_of(method),
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
    """Row first, then column: as in the static figures."""
    return (
        setting.noise_scale,
        LENGTH_SCALES.index(setting.length_scale),
        KERNELS.index(setting.kernel),
        setting.norm_bound,
    )


def _regret(one: Runs) -> tuple[Array, Array]:
    return one.regret.mean(axis=0), _spread(one.regret)


def _time(one: Runs) -> tuple[Array, Array]:
    """In milliseconds."""
    each = np.array([smoothed(seconds) for seconds in one.seconds])
    return 1e3 * smoothed(one.seconds.mean(axis=0)), 1e3 * _spread(each)


def _spread(values: Array) -> Array:
    if len(values) < 2:
        return np.full(values.shape[1], math.nan)
    return np.asarray(values.std(axis=0, ddof=1))


def _numbers(values: Array) -> list[float | None]:
    return [float(f"{v:.{DIGITS}g}") if math.isfinite(v) else None for v in values.tolist()]
