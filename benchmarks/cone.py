"""Exact bounds at t = 200 against the paper's cone program, solved with CVXPY."""

from __future__ import annotations

import time

import numpy as np

import kernelbounds as kb
from benchmarks.problem import CANDIDATES, MATERN, Problem, play
from benchmarks.report import Row, agreement, faster, progress

COUNT, SOLVED, REPEATS = 200, 10, 5


def run() -> list[Row]:
    """Ours is the first query of a new sequence, so it pays for the decomposition."""
    problem = Problem.of(MATERN)
    points = problem.candidates[COUNT]
    data = play(problem, kb.CMM(), greedy=True, rounds=COUNT)

    ours = []
    for _ in range(REPEATS):
        sequence = problem.sequence(kb.CMM())
        sequence.update(data.points, data.outcomes)
        start = time.perf_counter()
        upper = sequence.upper(points)
        ours.append(time.perf_counter() - start)

    progress(f"cone: {SOLVED} cone programs at t = {COUNT}")
    cone = kb.CMM(solver="cone")
    sequence.upper(points[:1], cone)  # imports CVXPY
    start = time.perf_counter()
    solved = sequence.upper(points[:SOLVED], cone)
    rival = (time.perf_counter() - start) * CANDIDATES / SOLVED

    title = f"cone: {CANDIDATES} points, rival extrapolated from {SOLVED}"
    difference = float(np.max(np.abs(upper[:SOLVED] - solved) / np.abs(solved)))
    return [
        faster(title, float(np.median(ours)), rival, 2000),
        agreement("cone: relative difference", difference, 1e-5),
    ]
