"""Repeated points: a million observations on few of them, and a bandit on a finite set."""

from __future__ import annotations

from unittest import mock

import numpy as np
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb
from benchmarks.problem import Array
from benchmarks.report import Row, faster, share
from benchmarks.timing import fastest, once
from kernelbounds.engine import observations

FEW_ROWS, MANY_ROWS, POINTS = 10_000, 1_000_000, 200
ACTIONS, ROUNDS = 40, 1500
NOISE = 0.1


def run() -> list[Row]:
    """What it costs to have many observations, and what merging saves in a loop."""
    few, many = (once(bounds_after, count) for count in (FEW_ROWS, MANY_ROWS))
    times = fastest("repeats: many observations", many, few)
    never = mock.patch.object(observations, "FEWEST_ROWS", 10**9)
    sides = once(play), once(never(play))
    loops = fastest("repeats: KernelUCB on a finite set", *sides)
    return [
        share(
            f"repeats: {MANY_ROWS:,} observations at {POINTS} points / {FEW_ROWS:,}",
            *_sums(times),
            30,
        ),
        faster(f"repeats: KernelUCB, {ACTIONS} actions / single rows", *_sums(loops), 1),
    ]


def bounds_after(count: int) -> tuple[Array, Array]:
    """Observations, their radius, and bounds at all of the points."""
    rng = np.random.default_rng(0)
    points = rng.random((POINTS, 2))
    X = points[rng.integers(0, POINTS, count)]
    seq = kb.ConfidenceSequence(Matern(0.5, nu=2.5), norm_bound=5.0, noise_scale=NOISE)
    seq.update(X, np.sin(3 * X[:, 0]) + NOISE * rng.standard_normal(count))
    return seq.bounds(points)


def play() -> None:
    """A run on a fixed set of actions."""
    rng = np.random.default_rng(0)
    actions = rng.random((ACTIONS, 2))
    seq = kb.ConfidenceSequence(Matern(0.3, nu=2.5), norm_bound=10.0, noise_scale=5 * NOISE)
    ucb = kb.KernelUCB(seq, domain=kb.Finite(actions))
    for _ in range(ROUNDS):
        x = ucb.ask().x
        ucb.tell(x, np.sin(6 * x[0]) + np.cos(5 * x[1]) + 5 * NOISE * rng.standard_normal())


def _sums(times: list[Array]) -> tuple[float, float]:
    ours, rival = (float(one.sum()) for one in times)
    return ours, rival
