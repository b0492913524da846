"""What policies cost: on top of the bare bounds, and on a large fixed set of actions.

A whole KernelUCB run against the same loop on the bare sequence, which asks for upper bounds
only and keeps no records; and ``ask`` and ``tell`` on 10,000 fixed points against recomputing
their upper bounds from scratch. Both sides decide the same.
"""

from __future__ import annotations

import time

import numpy as np

import kernelbounds as kb
from benchmarks.problem import DIM, MATERN, NOISE_SCALE, Problem, play
from benchmarks.report import Row, agreement, faster, progress, share

REPEATS = 3
POINTS, BEFORE, STEPS = 10_000, 490, 20


def run() -> list[Row]:
    bounds = (kb.CMM(), kb.DMM(), kb.AMM())
    return [row for bound in bounds for row in (*_loop(bound), *_fixed_set(bound))]


def _loop(bound: kb.CMM | kb.DMM | kb.AMM) -> list[Row]:
    problem, name = Problem.of(MATERN), type(bound).__name__
    ours, bare = [], []
    for repeat in range(REPEATS):
        progress(f"bandits, loop, {name}, run {repeat + 1} of {REPEATS}")
        plain = play(problem, bound, greedy=True)
        policy, total = kb.KernelUCB(problem.sequence(bound)), 0.0
        for candidates, noise in zip(problem.candidates, problem.noise, strict=True):
            start = time.perf_counter()
            suggestion = policy.ask(candidates)
            total += time.perf_counter() - start
            outcome = float(problem.truth(suggestion.x[None])[0] + noise)
            start = time.perf_counter()
            policy.tell(suggestion.x, outcome)
            total += time.perf_counter() - start
        ours.append(total)
        bare.append(plain.times.sum())
    decisions = np.any(policy.sequence.points != plain.points, axis=1).mean()
    return [
        share(f"KernelUCB, {name} / its bare loop", min(ours), min(bare), 1.2),
        agreement(f"KernelUCB, {name}, other decisions", decisions, 0.0),
    ]


def _fixed_set(bound: kb.CMM | kb.DMM | kb.AMM) -> list[Row]:
    name = type(bound).__name__
    progress(f"bandits, {POINTS} fixed points, {name}")
    rng, problem = np.random.default_rng(0), Problem.of(MATERN)
    points = rng.random((POINTS, DIM))
    values = problem.truth(points)
    policy, times = kb.KernelUCB(problem.sequence(bound), kb.Finite(points)), []
    for _ in range(BEFORE + STEPS):
        start = time.perf_counter()
        suggestion = policy.ask()
        asked = time.perf_counter() - start
        outcome = values[suggestion.index] + NOISE_SCALE * rng.standard_normal()
        start = time.perf_counter()
        policy.tell(suggestion.x, outcome)
        times.append(asked + time.perf_counter() - start)
    scratch = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        again = problem.sequence(bound)
        again.update(policy.sequence.points, policy.sequence.outcomes)
        upper = again.upper(points)
        scratch.append(time.perf_counter() - start)
    lost = upper.max() - upper[policy.ask().index]
    step = float(np.mean(times[BEFORE:]))
    title = f"{POINTS} points, t = {BEFORE + STEPS // 2}, {name}: ask + tell / all from scratch"
    return [
        faster(title, step, min(scratch), 20.0),
        agreement(f"{POINTS} points, {name}: bound lost by the choice", lost, 1e-5),
    ]
