"""A measurement of coverage as tables, as CSV files and as a figure."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.laboratory.measuring import Coverage, Run
from kernelbounds.laboratory.programme import (
    NOISE_SCALE,
    NORM,
    Case,
    promises_design,
    promises_noise,
)
from kernelbounds.paper import summaries
from kernelbounds.paper.drawing import COLOURS, USERS_COLOURS, draw_rate, figure_files, legend_above
from kernelbounds.paper.results import written_together
from kernelbounds.paper.summaries import ErrorRate


def write(found: Coverage, folder: Path) -> tuple[str, list[Path]]:
    """Write tables as text and CSV, and a figure; return the text and the files.

    Each file is replaced as a whole, and none before all are made.
    """

    def make(place: Path) -> str:
        draw(found, place / "coverage")
        text = as_text(found)
        texts = {
            "coverage.txt": text,
            "coverage.csv": as_csv(found),
            "violations.csv": violations_csv(found),
        }
        for name, content in texts.items():
            (place / name).write_text(content, encoding="utf-8")
        return text

    return written_together(folder, make)


def as_text(found: Coverage) -> str:
    """Return the tables: by design, by kind of problem, and the first violations."""
    p = found.programme
    designs = [["bound", "verdict", *p.designs]]
    noises, others = [["bound", *p.noises]], [["bound", *p.kinds]]
    for name, bound in found.bounds.items():
        shown = []
        for design in p.designs:
            rate = found.rate(name, [design])
            flagged = rate is not None and found.is_too_often(rate)
            shown.append(_shown(rate, flagged, promises_design(bound, design)))
        designs.append([name, "refuted" if name in found.refuted else "holds", *shown])
        laws = {noise: promises_noise(bound, noise) for noise in p.noises}
        noises.append([name, *(_pooled(found, name, laws[law], noise=law) for law in laws)])
        others.append([name, *(_pooled(found, name, True, **kind) for kind in p.kinds.values())])
    tables = {
        "Share of runs in which f* was outside of the bounds at some time and place, in per cent "
        f"[95 %]; {p.runs} runs under each design, δ = {p.delta:g}, T = {p.rounds}": designs,
        "By law of noise, under the designs that a bound promises to hold under": noises,
        "By truth, kernel and dimension, where a bound promises to hold": others,
    }
    first = [["bound", "design", "seed", "t", "problem", "what was wrong"]]
    for run in found.first_violations():
        problem = ", ".join(map(str, run.case[1:])) + f", d = {run.case.dim}"
        place = [run.method, run.design, f"{run.seed}", f"{run.time}", problem]
        first.append([*place, described(run)])
    if len(first) > 1:
        tables["The earliest violation, with noise for which a bound is made"] = first
    text = summaries.under_headings(tables)
    if len(first) > 1:
        text += f"\nRun the first again: {found.first_violations()[0].command(p)}\n"
    return text + (
        "\n*: more often than δ allows, under one design at least. In brackets: not promised. "
        "Noise for which a bound is not made counts in its own column alone. Runs under different "
        "designs share functions and noise, so that intervals over several are too narrow.\n"
        f"‖f*‖ = B = {NORM:g} and σ = {NOISE_SCALE:g}, and the bounds are told so.\n"
    )


def described(run: Run) -> str:
    """Describe in words where a run was wrong."""
    if math.isnan(run.truth):
        return "no function is left"
    if math.isnan(run.x[0]):
        return f"a contrast is {run.truth:.4g}, and not in [{run.lower:.4g}, {run.upper:.4g}]"
    x = ", ".join(f"{value:.3g}" for value in run.x)
    return f"f*({x}) = {run.truth:.4g} is not in [{run.lower:.4g}, {run.upper:.4g}]"


def as_csv(found: Coverage) -> str:
    """Return a row for each bound, design and kind of problem."""
    rows = []
    groups = summaries.grouped(found.runs, lambda one: (one.method, one.design, one.case))
    for (method, design, case), runs in groups.items():
        bound = found.bounds[method]
        promised = promises_design(bound, design) and promises_noise(bound, case.noise)
        rate = ErrorRate(sum(one.time > 0 for one in runs), len(runs))
        low, high = rate.interval
        about = {"bound": method, "design": design, **case._asdict(), "promised": int(promised)}
        counts = {"wrong": rate.wrong, "runs": rate.runs, **summaries.numbers(low=low, high=high)}
        rows.append(about | counts)
    return summaries.csv_text(rows)


def violations_csv(found: Coverage) -> str:
    """Return a row for each run in which a bound was wrong, with its seed and the command."""
    head = ["bound", "design", "seed", *Case._fields, "time", "x", "f", "lower", "upper", "command"]
    rows = [
        {
            "bound": one.method,
            "design": one.design,
            "seed": one.seed,
            **one.case._asdict(),
            "time": one.time,
            "x": " ".join(f"{value:.17g}" for value in one.x),
            **summaries.numbers(f=one.truth, lower=one.lower, upper=one.upper),
            "command": one.command(found.programme),
        }
        for one in found.runs
        if one.time
    ]
    return summaries.csv_text(rows, head)


def draw(found: Coverage, path: Path) -> None:
    """Draw how often bounds are wrong by design, and by time where one looks more than once."""
    p = found.programme
    others = itertools.cycle(USERS_COLOURS)
    colours = {name: COLOURS.get(name) or next(others) for name in found.bounds}
    with figure_files(path, 1, 2, panel=(4.6, 3.4)) as axes:
        left, right = axes[0]
        step = 0.8 / len(found.bounds)
        for i, (name, bound) in enumerate(found.bounds.items()):
            for row, design in enumerate(p.designs):
                rate = found.rate(name, [design])
                if rate is None:
                    continue
                height, hollow = 0.4 - row - step * (i + 0.5), not promises_design(bound, design)
                draw_rate(left, rate, height, colours[name], hollow)
            # These are the times of first violations; 0 is for runs without.
            looked = [one for one in found.runs if one.method == name and one.design != "once"]
            times = np.array([r.time for r in looked if promises_noise(bound, r.case.noise)])
            if len(times):
                grid = np.unique(np.append(1, times[times > 0]))
                shares = [(times[times > 0] <= t).sum() / len(times) for t in grid]
                ends = np.append(grid, p.rounds), np.append(shares, shares[-1])
                right.step(*ends, where="post", color=colours[name], label=name, linewidth=1.3)
        left.set_yticks([-row for row in range(len(p.designs))], list(p.designs))
        left.set_ylim(0.5 - len(p.designs), 0.5)
        left.axvline(p.delta, color="black", linewidth=0.6)
        left.set_xlim(-0.03, 1.03)
        left.set_xlabel("share of runs that were wrong; hollow: not promised")
        right.axhline(p.delta, color="black", linewidth=0.6)
        right.set_xscale("log")
        right.set_xlim(1, p.rounds)
        right.set_ylim(-0.03, 1.03)
        right.set_xlabel("observations")
        right.set_ylabel("share of runs wrong by then")
        legend_above(right, 4)


def _pooled(found: Coverage, method: str, promised: bool, **case: Any) -> str:
    """Show the error rate of a bound under all designs that it promises to hold under."""
    return _shown(found.rate(method, **case), found.is_flagged(method, **case), promised)


def _shown(rate: ErrorRate | None, flagged: bool, promised: bool) -> str:
    if rate is None:
        return ""
    low, high = (100 * end for end in rate.interval)
    text = f"{100 * rate.share:.1f} [{low:.1f}, {high:.1f}]{'*' * flagged}"
    return text if promised else f"({text})"
