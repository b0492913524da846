"""What policies cost: on top of the bare bounds, and on a large fixed set of actions.

A whole KernelUCB run against the same loop on the bare sequence, which asks for upper bounds
only and keeps no records; and ``ask`` and ``tell`` on 10,000 fixed points against recomputing
their upper bounds from scratch. Both sides decide the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import kernelbounds as kb
from benchmarks.problem import DIM, MATERN, NOISE_SCALE, Array, Problem, play
from benchmarks.report import Row, agreement, faster, share
from benchmarks.timing import fastest, timed

POINTS, BEFORE, STEPS = 10_000, 490, 20


def run() -> list[Row]:
    bounds = (kb.CMM(), kb.DMM(), kb.AMM())
    return [row for bound in bounds for row in (*_loop(bound), *_fixed_set(bound))]


def _rounds(
    policy: kb.KernelUCB, actions: list[Array] | list[None], outcome: Callable[[int, Array], float]
) -> Array:
    """The seconds in ``ask`` and ``tell`` of each round."""
    times = np.empty(len(actions))
    for t, given in enumerate(actions):
        suggestion, asked = timed(policy.ask, given)
        y = outcome(t, suggestion.x)
        times[t] = asked + timed(policy.tell, suggestion.x, y)[1]
    return times


def _loop(bound: kb.CMM | kb.DMM | kb.AMM) -> list[Row]:
    problem, name = Problem.of(MATERN), type(bound).__name__
    policies = []

    def ours() -> Array:
        policies.append(kb.KernelUCB(problem.sequence(bound)))
        return _rounds(
            policies[-1],
            list(problem.candidates),
            lambda t, x: float(problem.truth(x[None])[0] + problem.noise[t]),
        )

    plain = play(problem, bound, greedy=True)
    times, bare = fastest(
        f"bandits, loop, {name}", ours, lambda: play(problem, bound, greedy=True).times
    )
    decisions = np.any(policies[-1].sequence.points != plain.points, axis=1).mean()
    return [
        share(f"KernelUCB, {name} / its bare loop", times.sum(), bare.sum(), 1.2),
        agreement(f"KernelUCB, {name}, other decisions", decisions, 0.0),
    ]


def _fixed_set(bound: kb.CMM | kb.DMM | kb.AMM) -> list[Row]:
    name, problem, rng = type(bound).__name__, Problem.of(MATERN), np.random.default_rng(0)
    points, noise = rng.random((POINTS, DIM)), NOISE_SCALE * rng.standard_normal(BEFORE + STEPS)
    policies: list[kb.KernelUCB] = []
    uppers: list[Array] = []

    def ours() -> Array:
        policies.append(kb.KernelUCB(problem.sequence(bound), kb.Finite(points)))
        return _rounds(
            policies[-1],
            [None] * (BEFORE + STEPS),
            lambda t, x: float(problem.truth(x[None])[0] + noise[t]),
        )[BEFORE:]

    def scratch() -> Array:
        told, again = policies[-1].sequence, problem.sequence(bound)
        updating = timed(again.update, told.points, told.outcomes)[1]
        upper, asking = timed(again.upper, points)
        uppers.append(upper)
        return np.array([updating + asking])

    steps, all_at_once = fastest(f"bandits, {POINTS} fixed points, {name}", ours, scratch)
    lost = uppers[-1].max() - uppers[-1][policies[-1].ask().index]
    title = f"{POINTS} points, t = {BEFORE + STEPS // 2}, {name}: ask + tell / all from scratch"
    return [
        faster(title, steps.sum() / STEPS, all_at_once.sum(), 20.0),
        agreement(f"{POINTS} points, {name}: bound lost by the choice", lost, 1e-5),
    ]
