"""Lazy greedy information gain against greedy rules that look at every candidate in every step.

"Naive" recomputes the variances of all candidates from scratch in every step, with a Cholesky
factor and a triangular solve; its whole run at full size would take minutes, so it is run
at a smaller size and, at full size, in a few steps from which the whole is extrapolated. "Eager"
adds one row a step to the factor for all candidates, which is the best that can be done without
leaving any out.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from benchmarks.problem import MATERN, SMOOTH, Array
from benchmarks.report import Row, agreement, faster, progress
from kernelbounds import theory

RIDGE, DIM = 0.05, 3
FULL, SMALL = (10_000, 1000), (4_000, 400)  # candidates, rounds
SAMPLED = (100, 300, 500, 700, 900)  # steps at full size that are timed


def run() -> list[Row]:
    rows = []
    for name, kernel in (("Matern-5/2", MATERN), ("RBF", SMOOTH)):
        rows += _small(name, kernel)
        rows += _full(name, kernel)
    return rows


def _small(name: str, kernel: Kernel) -> list[Row]:
    candidates, rounds = SMALL
    progress(f"greedy, {name}, {rounds} of {candidates}")
    X = np.random.default_rng(0).random((candidates, DIM))
    start = time.perf_counter()
    found = theory.maximum_information_gain(kernel, X, RIDGE, rounds)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    chosen: list[int] = []
    gains = np.empty(rounds)
    for t in range(rounds):
        variance = _variances(kernel, X, chosen)
        chosen.append(int(variance.argmax()))
        gains[t] = np.log1p(variance[chosen[-1]] / RIDGE) / 2
    naive = time.perf_counter() - start
    title = f"greedy, {name}, {rounds} of {candidates:,}"
    return [
        faster(f"{title} / naive", ours, naive, 20.0),
        agreement(f"{title}: |difference|", np.abs(np.cumsum(gains) - found.lower).max(), 1e-6),
    ]


def _full(name: str, kernel: Kernel) -> list[Row]:
    candidates, rounds = FULL
    progress(f"greedy, {name}, {rounds} of {candidates}")
    X = np.random.default_rng(0).random((candidates, DIM))
    start = time.perf_counter()
    found = theory.maximum_information_gain(kernel, X, RIDGE, rounds)
    ours = time.perf_counter() - start
    times = []
    for t in SAMPLED:
        start = time.perf_counter()
        _variances(kernel, X, list(found.chosen[:t]))
        times.append(time.perf_counter() - start)
    # The sampled steps stand for equal parts of the run.
    naive = rounds * float(np.mean(times))
    progress(f"greedy, {name}, eager")
    eager_gains, eager = _eager(kernel, X, rounds)
    title = f"greedy, {name}, {rounds} of {candidates:,}"
    return [
        faster(f"{title} / naive, extrapolated", ours, naive, 20.0),
        faster(f"{title} / eager", ours, eager, None),
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


def _eager(kernel: Kernel, X: Array, rounds: int) -> tuple[Array, float]:
    start = time.perf_counter()
    variance, rows, gains = kernel.diag(X), np.empty((rounds, len(X))), np.empty(rounds)
    for t in range(rounds):
        best = int(variance.argmax())
        gains[t] = np.log1p(variance[best] / RIDGE) / 2
        own = kernel(X[[best]], X)[0] - rows[:t, best] @ rows[:t]
        rows[t] = own / np.sqrt(variance[best] + RIDGE)
        variance -= rows[t] ** 2
    return np.cumsum(gains), time.perf_counter() - start
