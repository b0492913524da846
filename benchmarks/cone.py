"""Exact bounds at t = 200 against the paper's cone program, solved with CVXPY."""

from __future__ import annotations

import numpy as np

import kernelbounds as kb
from benchmarks.problem import CANDIDATES, MATERN, Array, Problem, play
from benchmarks.report import Row, agreement, faster
from benchmarks.timing import fastest, once, timed

COUNT, SOLVED_POINTS = 200, 10


def run() -> list[Row]:
    """Ours is the first query of a new sequence, so it pays for the decomposition."""
    problem = Problem.of(MATERN)
    points, cone = problem.candidates[COUNT], kb.CMM(solver="cone")
    data = play(problem, kb.CMM(), greedy=True, rounds=COUNT)

    def fresh() -> kb.ConfidenceSequence:
        sequence = problem.sequence(kb.CMM())
        sequence.update(data.points, data.outcomes)
        return sequence

    def ours() -> Array:
        sequence = fresh()
        return np.array([timed(sequence.upper, points)[1]])

    upper, solved = (
        fresh().upper(points),
        fresh().upper(points[:SOLVED_POINTS], cone),
    )  # imports CVXPY
    sequence = fresh()
    rival = once(sequence.upper, points[:SOLVED_POINTS], cone)
    times, rivals = fastest(f"cone: {SOLVED_POINTS} cone programs at t = {COUNT}", ours, rival)

    title = f"cone: {CANDIDATES} points, rival extrapolated from {SOLVED_POINTS}"
    difference = float(np.max(np.abs(upper[:SOLVED_POINTS] - solved) / np.abs(solved)))
    return [
        faster(title, times.sum(), rivals.sum() * CANDIDATES / SOLVED_POINTS, 2000),
        agreement("cone: relative difference", difference, 1e-5),
    ]
