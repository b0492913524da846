"""Tables, a figure and CSV files of what a laboratory has measured."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np

from kernelbounds.io import files
from kernelbounds.laboratory.measuring import Coverage, described
from kernelbounds.laboratory.programme import NOISE_SCALE, NORM, promises_design, promises_noise
from kernelbounds.paper.designs import ErrorRate
from kernelbounds.paper.figures import COLOURS, USERS_COLOURS, figure_files, legend_above
from kernelbounds.paper.results import csv_text, numbers, under_headings


def write(found: Coverage, folder: Path) -> tuple[str, list[Path]]:
    """Write tables as text and CSV, and a figure; return the text and the files.

    Each file is replaced as a whole, and none before all are made.
    """
    text = as_text(found)
    with tempfile.TemporaryDirectory() as place:
        new = Path(place)
        (new / "coverage.txt").write_text(text, encoding="utf-8")
        (new / "coverage.csv").write_text(as_csv(found), encoding="utf-8")
        (new / "violations.csv").write_text(violations_csv(found), encoding="utf-8")
        draw(found, new)
        made = sorted(new.iterdir())
        for one in made:
            target = folder / one.name
            with files.failure_reported(f"write {str(target)!r}"), files.replacing(target) as file:
                file.write(one.read_bytes())
    return text, [folder / one.name for one in made]


def as_text(found: Coverage) -> str:
    """Return the tables: by design, by kind of problem, and the first violations."""
    p = found.programme
    designs = [["bound", "verdict", *p.designs]]
    noises, others = [["bound", *p.noises]], [["bound", *p.truths, *p.kernels]]
    others[0] += [f"d = {dim}" for dim in p.dims]
    for name, bound in found.bounds.items():
        shown = [
            _cell(found, found.rate(name, [design]), promises_design(bound, design))
            for design in p.designs
        ]
        designs.append([name, _verdict(found, name), *shown])
        shown = [
            _cell(found, found.rate(name, noise=noise), promises_noise(bound, noise))
            for noise in p.noises
        ]
        noises.append([name, *shown])
        rates = [found.rate(name, truth=truth) for truth in p.truths]
        rates += [found.rate(name, kernel=kernel) for kernel in p.kernels]
        rates += [found.rate(name, dim=dim) for dim in p.dims]
        others.append([name, *(_cell(found, rate, promised=True) for rate in rates)])
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
    text = under_headings(tables)
    if len(first) > 1:
        text += f"\nRun the first again: {found.first_violations()[0].command(p)}\n"
    return text + (
        "\n*: more often than δ allows. In brackets: not promised. Noise for which a bound is not "
        "made counts in its own column alone.\n"
        f"‖f*‖ = B = {NORM:g} and σ = {NOISE_SCALE:g}, and the bounds are told so.\n"
    )


def as_csv(found: Coverage) -> str:
    """Return a row for each bound, design and kind of problem."""
    head = ["bound", "design", "dim", "kernel", "truth", "noise", "promised", "wrong", "runs"]
    rows: list[list[object]] = []
    groups: dict[tuple[object, ...], list[bool]] = {}
    for one in found.runs:
        groups.setdefault((one.method, one.design, *one.case), []).append(one.time > 0)
    for key, wrong in groups.items():
        bound, design, noise = found.bounds[str(key[0])], str(key[1]), str(key[-1])
        promised = promises_design(bound, design) and promises_noise(bound, noise)
        rate = ErrorRate(sum(wrong), len(wrong))
        rows.append([*key, int(promised), rate.wrong, rate.runs, *numbers(*rate.interval)])
    return csv_text([*head, "low", "high"], rows)


def violations_csv(found: Coverage) -> str:
    """Return a row for each run in which a bound was wrong, with its seed and the command."""
    head = ["bound", "design", "seed", "dim", "kernel", "truth", "noise", "time"]
    head += ["x", "f", "lower", "upper", "command"]
    return csv_text(
        head,
        (
            [
                one.method, one.design, one.seed, *one.case, one.time,
                " ".join(f"{value:.17g}" for value in one.x),
                *numbers(one.truth, one.lower, one.upper), one.command(found.programme),
            ]
            for one in found.runs
            if one.time
        ),
    )  # fmt: skip


def draw(found: Coverage, folder: Path) -> None:
    """Draw how often bounds are wrong by design, and by time where they promise to hold."""
    p = found.programme
    others = itertools.cycle(USERS_COLOURS)
    colours = {name: COLOURS.get(name) or next(others) for name in found.bounds}
    with figure_files(folder, "coverage", 1, 2, (4.6, 3.4)) as axes:
        left, right = axes[0]
        step = 0.8 / len(found.bounds)
        for i, (name, bound) in enumerate(found.bounds.items()):
            for row, design in enumerate(p.designs):
                rate = found.rate(name, [design])
                if rate is None:
                    continue
                height, colour = 0.4 - row - step * (i + 0.5), colours[name]
                face = colour if promises_design(bound, design) else "white"
                left.plot(rate.interval, [height, height], color=colour, linewidth=1)
                left.plot(
                    rate.share, height, "o", color=colour, markerfacecolor=face, markersize=3.5
                )
            times = _times(found, name)
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
        legend_above(axes, right, 4)


def _times(found: Coverage, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The times of the first violations, where the design looks again and noise is as assumed."""
    bound = found.bounds[name]
    return np.array(
        [
            one.time
            for one in found.runs
            if one.method == name and one.design != "once" and promises_noise(bound, one.case.noise)
        ]
    )


def _cell(found: Coverage, rate: ErrorRate | None, promised: bool) -> str:
    if rate is None:
        return ""
    low, high = (100 * end for end in rate.interval)
    text = f"{100 * rate.share:.1f} [{low:.1f}, {high:.1f}]{'*' * found.is_too_often(rate)}"
    return text if promised else f"({text})"


def _verdict(found: Coverage, name: str) -> str:
    return "refuted" if name in found.refuted else "holds"
