"""Whole loops of 1000 rounds against the paper's recursion. Targets hold for KernelUCB."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

import kernelbounds as kb
from benchmarks.baseline import replay
from benchmarks.problem import MATERN, SMOOTH, Problem, play
from benchmarks.report import Row, agreement, faster, share
from benchmarks.timing import fastest

SINGLE_RIDGE = (1.0,)
DMM_RIDGES = (1.0, 0.1, 0.3, 3.0, 10.0)  # DMM's, times sigma^2/c, the reference first


def run() -> list[Row]:
    rows = []
    for greedy in (True, False):
        rule = "KernelUCB" if greedy else "random points"
        rows += [
            *_race(rule, "AMM", MATERN, kb.AMM(), SINGLE_RIDGE, greedy, faster, 2.5),
            *_race(rule, "DMM", MATERN, kb.DMM(), DMM_RIDGES, greedy, faster, 4.0),
            *_race(rule, "CMM", MATERN, kb.CMM(), SINGLE_RIDGE, greedy, share, 1.0),
            *_race(rule, "RBF, CMM", SMOOTH, kb.CMM(), SINGLE_RIDGE, greedy, share, 0.5),
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
    problem, name = Problem.of(kernel), f"{rule}, {label}"
    ridges = [factor * problem.ridge for factor in grid]
    data = play(problem, bound, greedy=greedy)
    rival = replay(problem, data, ridges)
    ours, theirs = fastest(
        f"loop, {name}",
        lambda: play(problem, bound, greedy=greedy).times,
        lambda: replay(problem, data, ridges).times,
    )
    bounds = "DMM" if len(grid) > 1 else "AMM"
    title = f"loop, {name} / recursion's {bounds}"
    excess = data.upper - rival.upper  # at all rounds; the exact bound may only be smaller
    if isinstance(bound, kb.CMM):
        check = agreement(f"loop, {name} above {bounds} by", excess.max(), 1e-5)
    else:
        check = agreement(f"loop, {name}, |difference|", np.abs(excess).max(), 1e-5)
    return [row(title, ours.sum(), theirs.sum(), target if greedy else None), check]
