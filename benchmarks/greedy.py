"""Lazy greedy information gain against greedy rules that look at every candidate in every step.

"Naive" recomputes the variances of all candidates from scratch in every step, with a Cholesky
factor and a triangular solve; its whole run at full size would take minutes, so it is run
at a smaller size and, at full size, in a few steps from which the whole is extrapolated. "Eager"
adds one row a step to the factor for all candidates, which is the best that can be done without
leaving any out.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from benchmarks.problem import MATERN, SMOOTH, Array
from benchmarks.report import Row, agreement, faster
from benchmarks.timing import fastest, once, timed
from kernelbounds import theory

RIDGE, DIM = 0.05, 3
FULL_SIZE, SMALL_SIZE = (10_000, 1000), (4_000, 400)  # candidates, rounds
TIMED_STEPS = (100, 300, 500, 700, 900)  # steps at full size that are timed


def run() -> list[Row]:
    rows = []
    for name, kernel in (("Matern-5/2", MATERN), ("RBF", SMOOTH)):
        rows += _small(name, kernel)
        rows += _full(name, kernel)
    return rows


def _small(name: str, kernel: Kernel) -> list[Row]:
    candidates, rounds = SMALL_SIZE
    X = np.random.default_rng(0).random((candidates, DIM))
    gains = np.empty(rounds)

    def naive() -> None:
        chosen: list[int] = []
        for t in range(rounds):
            variance = _variances(kernel, X, chosen)
            chosen.append(int(variance.argmax()))
            gains[t] = np.log1p(variance[chosen[-1]] / RIDGE) / 2

    found = theory.maximum_information_gain(kernel, X, RIDGE, rounds)
    title = f"greedy, {name}, {rounds} of {candidates:,}"
    ours, rival = fastest(
        title,
        once(theory.maximum_information_gain, kernel, X, RIDGE, rounds),
        once(naive),
    )
    return [
        faster(f"{title} / naive", ours.sum(), rival.sum(), 20.0),
        agreement(f"{title}: |difference|", np.abs(np.cumsum(gains) - found.lower).max(), 1e-6),
    ]


def _full(name: str, kernel: Kernel) -> list[Row]:
    candidates, rounds = FULL_SIZE
    X = np.random.default_rng(0).random((candidates, DIM))
    found = theory.maximum_information_gain(kernel, X, RIDGE, rounds)
    eager_gains = _eager(kernel, X, rounds)

    def naive() -> Array:
        chosen = [list(found.chosen[:t]) for t in TIMED_STEPS]
        return np.array([timed(_variances, kernel, X, at)[1] for at in chosen])

    title = f"greedy, {name}, {rounds} of {candidates:,}"
    ours, steps, eager = fastest(
        title,
        once(theory.maximum_information_gain, kernel, X, RIDGE, rounds),
        naive,
        once(_eager, kernel, X, rounds),
    )
    # The sampled steps stand for equal parts of the run.
    extrapolated = rounds * steps.mean()
    return [
        faster(f"{title} / naive, extrapolated", ours.sum(), extrapolated, 20.0),
        faster(f"{title} / eager", ours.sum(), eager.sum(), None),
        agreement(f"{title}: |difference|", np.abs(eager_gains - found.lower).max(), 1e-6),
    ]


def _variances(kernel: Kernel, X: Array, chosen: list[int]) -> Array:
    prior = kernel.diag(X)
    if not chosen:
        return prior
    points = X[chosen]
    factor = np.linalg.cholesky(kernel(points) + RIDGE * np.eye(len(chosen)))
    whitened = solve_triangular(factor, kernel(points, X), lower=True, check_finite=False)
    return prior - np.einsum("ij,ij->j", whitened, whitened)


def _eager(kernel: Kernel, X: Array, rounds: int) -> Array:
    variance, rows, gains = kernel.diag(X), np.empty((rounds, len(X))), np.empty(rounds)
    for t in range(rounds):
        best = int(variance.argmax())
        gains[t] = np.log1p(variance[best] / RIDGE) / 2
        own = kernel(X[[best]], X)[0] - rows[:t, best] @ rows[:t]
        rows[t] = own / np.sqrt(variance[best] + RIDGE)
        variance -= rows[t] ** 2
    return np.cumsum(gains)
