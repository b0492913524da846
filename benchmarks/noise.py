"""What an unknown noise scale costs in time: updates and bounds, one by one, and all at once."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from benchmarks.problem import Array
from benchmarks.report import Row, share
from benchmarks.timing import fastest, once

ROUNDS, NOISE = 1000, 0.3
PLACES = np.random.default_rng(1).random((100, 2))


def run() -> list[Row]:
    X, y = _observations()
    rows = []
    for title, at_once, target in (
        (f"unknown noise, {ROUNDS} rounds with bounds at a point / known noise", 1, 2.0),
        (f"unknown noise, {ROUNDS} observations, bounds at 100 points / known noise", ROUNDS, 2.0),
    ):
        ours, plain = fastest(
            title,
            once(lambda at_once=at_once: _bounds(kb.noise.Gaussian(), X, y, at_once)),
            once(lambda at_once=at_once: _bounds(NOISE, X, y, at_once)),
        )
        rows.append(share(title, ours.sum(), plain.sum(), target))
    return rows


def _observations() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((ROUNDS, 2))
    return X, np.sin(5 * X[:, 0]) * np.cos(3 * X[:, 1]) + NOISE * rng.standard_normal(ROUNDS)


def _bounds(law: float | kb.noise.Noise, X: Array, y: Array, at_once: int) -> None:
    sequence = kb.ConfidenceSequence(RBF(0.3), 5.0, law)
    for start in range(0, ROUNDS, at_once):
        some = slice(start, start + at_once)
        sequence.update(X[some], y[some])
        sequence.bounds(PLACES if at_once == ROUNDS else PLACES[:1])
