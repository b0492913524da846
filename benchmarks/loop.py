"""Whole loops of 1000 rounds against the paper's recursion.

Both sides run alternately, three times each, and the fastest run of each side counts: noise of
the machine only ever adds time.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

import kernelbounds as kb
from benchmarks.baseline import replay
from benchmarks.problem import MATERN, SMOOTH, Problem, play
from benchmarks.report import Row, agreement, faster, progress, share

REPEATS = 3
GRID = (1.0, 0.1, 0.3, 3.0, 10.0)  # DMM's, the reference first


def run() -> list[Row]:
    rows = []
    for greedy in (True, False):
        rows += [
            *_like_for_like("AMM", kb.AMM(), GRID[:1], 2.5, greedy),
            *_like_for_like("DMM", kb.DMM(), GRID, 4.0, greedy),
            *_exact("Matérn", MATERN, 1.0, greedy),
            *_exact("RBF", SMOOTH, 0.5, greedy),
        ]
    return rows


def _like_for_like(
    name: str, bound: kb.AMM | kb.DMM, grid: tuple[float, ...], target: float, greedy: bool
) -> list[Row]:
    """The same bound on both sides."""
    title = f"loop, {_rule(greedy)}: {name} / recursion's {name}"
    ours, rival, upper, theirs = _race(title, MATERN, bound, grid, greedy)
    return [
        faster(title, ours, rival, target if greedy else None),
        agreement(
            f"loop, {_rule(greedy)}: {name}, |difference|", np.abs(upper - theirs).max(), 1e-5
        ),
    ]


def _exact(name: str, kernel: Kernel, target: float, greedy: bool) -> list[Row]:
    """Exact CMM against the recursion's AMM, which is looser."""
    title = f"loop, {_rule(greedy)}: {name} CMM / recursion's AMM"
    ours, rival, upper, theirs = _race(title, kernel, kb.CMM(), GRID[:1], greedy)
    return [
        share(title, ours, rival, target if greedy else None),
        agreement(f"loop, {_rule(greedy)}: {name} CMM above AMM by", (upper - theirs).max(), 1e-5),
    ]


def _race(
    title: str,
    kernel: Kernel,
    bound: kb.AMM | kb.DMM | kb.CMM,
    grid: tuple[float, ...],
    greedy: bool,
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """The least total time of each side, and the bounds of each side."""
    problem = Problem.of(kernel)
    ridges = [factor * problem.ridge for factor in grid]
    ours, rivals = [], []
    for repeat in range(REPEATS):
        progress(f"{title}, run {repeat + 1} of {REPEATS}")
        ours.append(play(problem, bound, greedy=greedy))
        rivals.append(replay(problem, ours[-1], ridges))
    least = [min(float(run.times.sum()) for run in runs) for runs in (ours, rivals)]
    return least[0], least[1], ours[-1].upper, rivals[-1].upper


def _rule(greedy: bool) -> str:
    return "KernelUCB" if greedy else "random"
