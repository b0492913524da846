"""Whole loops of 1000 rounds against the paper's recursion.

Both sides run alternately, several times each, and of each round the fastest time of each side
counts: every run does the same work, and noise of the machine only ever adds time. Targets hold for
KernelUCB.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

import kernelbounds as kb
from benchmarks.baseline import replay
from benchmarks.problem import MATERN, SMOOTH, Problem, play
from benchmarks.report import Row, agreement, faster, progress, share

# Runs of each side: until the fastest times no longer fall, where targets are close; without one.
REPEATS, FEWER = {"AMM": 12, "DMM": 3, "CMM": 8, "RBF, CMM": 12}, 2
ONE = (1.0,)
GRID = (1.0, 0.1, 0.3, 3.0, 10.0)  # DMM's, times sigma^2/c, the reference first


def run() -> list[Row]:
    rows = []
    for greedy in (True, False):
        rule = "KernelUCB" if greedy else "random points"
        rows += [
            *_race(rule, "AMM", MATERN, kb.AMM(), ONE, greedy, faster, 2.5),
            *_race(rule, "DMM", MATERN, kb.DMM(), GRID, greedy, faster, 4.0),
            *_race(rule, "CMM", MATERN, kb.CMM(), ONE, greedy, share, 1.0),
            *_race(rule, "RBF, CMM", SMOOTH, kb.CMM(), ONE, greedy, share, 0.5),
        ]
    return rows


def _race(
    rule: str,
    label: str,
    kernel: Kernel,
    bound: kb.AMM | kb.DMM | kb.CMM,
    grid: tuple[float, ...],
    greedy: bool,
    row: Callable[[str, float, float, float | None], Row],
    target: float,
) -> list[Row]:
    problem = Problem.of(kernel)
    ridges = [factor * problem.ridge for factor in grid]
    ours, theirs = [], []
    name, repeats = f"{rule}, {label}", REPEATS[label] if greedy else FEWER
    for repeat in range(repeats):
        progress(f"loop, {name}, run {repeat + 1} of {repeats}")
        data = play(problem, bound, greedy=greedy)
        rival = replay(problem, data, ridges)
        ours.append(data.times)
        theirs.append(rival.times)

    bounds = "DMM" if len(grid) > 1 else "AMM"
    title = f"loop, {name} / recursion's {bounds}"
    excess = data.upper - rival.upper  # at all rounds; the exact bound may only be smaller
    if isinstance(bound, kb.CMM):
        check = agreement(f"loop, {name} above {bounds} by", excess.max(), 1e-5)
    else:
        check = agreement(f"loop, {name}, |difference|", np.abs(excess).max(), 1e-5)
    fastest, rivals = (float(np.min(times, axis=0).sum()) for times in (ours, theirs))
    return [row(title, fastest, rivals, target if greedy else None), check]
