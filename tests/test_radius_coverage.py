"""The radii hold at all times at once: the noise energy, and the bounds that are made from it.

A run fails when, after any number of observations, the energy of the noise exceeds R_t^2 or the
truth leaves the band at any grid point. The probability of that is at most delta. Each test
rejects when so many runs fail that a binomial with success probability delta would do it with
probability below 1e-4; it is seeded, so it cannot fail by chance, and that is the error rate with
which it would have been wrong. Points are KernelUCB's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb
from kernelbounds.mixtures import Hybrid, Mixture, Prequential, Single

GRID = np.linspace(0, 1, 20)[:, None]
KERNEL = Matern(0.3, nu=2.5)
DELTA, NORM, SCALE = 0.1, 2.0, 0.3
LEVEL = 1e-4

# Each is SCALE-sub-Gaussian; the last is so where it is largest.
NOISES = {
    "gaussian": lambda rng, x: rng.standard_normal(),
    "rademacher": lambda rng, x: rng.choice([-1.0, 1.0]),
    "uniform": lambda rng, x: rng.uniform(-1, 1) * np.sqrt(3),
    "heteroscedastic": lambda rng, x: rng.standard_normal() * (0.2 + 0.8 * x[0]),
}


def nearby(X, y, x):
    """The mean of outcomes near x, with a variance that is about right when there are many."""
    near = y[np.abs(X[:, 0] - x[0]) < 0.1] if len(y) else y
    return (near.mean(), 0.01 + SCALE**2 / len(near)) if len(near) else (0.0, 1.0)


MIXTURES = {"hybrid": Hybrid(), "single": Single(0.5), "prequential": Prequential(nearby)}


@dataclass(frozen=True)
class Shrunk(Mixture):
    """A radius that is too small."""

    factor: float = 1.0
    delta: float | None = None

    def scale(self, norm_bound):
        return Hybrid().scale(norm_bound)

    def forecasts(self, *arguments):
        return Hybrid().forecasts(*arguments)

    def losses(self, *arguments):
        return Hybrid().losses(*arguments)

    def squared_radius(self, engine, ridge, noise_scale, delta, losses):
        delta = delta if self.delta is None else self.delta
        parts = Hybrid().squared_radius(engine, ridge, noise_scale, delta, losses)
        return 0.0, self.factor * sum(parts)


def _run(mixture, noise, seed, rounds):
    """What went wrong in a run, in words."""
    rng = np.random.default_rng(seed)
    function = kb.RKHSFunction(KERNEL, rng.random((10, 1)), rng.standard_normal(10))
    truth = function.rescaled(NORM)(GRID)
    seq = kb.ConfidenceSequence(KERNEL, NORM, SCALE, DELTA, mixture=mixture)
    energy, wrong = 0.0, set()
    for _ in range(rounds):
        try:
            lower, upper = seq.bounds(GRID)
        except kb.EmptyConfidenceSetError:
            return wrong | {"bounds"}
        if np.any(truth < lower) or np.any(truth > upper):
            wrong.add("bounds")
        x = np.argmax(upper)
        eps = SCALE * NOISES[noise](rng, GRID[x])
        seq.update(GRID[x], truth[x] + eps)
        energy += eps**2
        if energy > seq.radius**2:
            wrong.add("energy")
    return wrong


def _failures(mixture, noise, runs, rounds):
    found = [_run(mixture, noise, seed, rounds) for seed in range(runs)]
    counts = Counter(word for wrong in found for word in wrong)
    print(f"{mixture}, {noise}: {runs} runs of {rounds} rounds, {dict(counts)}")
    return sum(map(bool, found))


def _rejected(failures, runs):
    return binom.sf(failures - 1, runs, DELTA) < LEVEL


def test_coverage():  # of all mixtures and laws of noise, and longer, below
    runs = 40
    assert not _rejected(_failures(MIXTURES["hybrid"], "gaussian", runs, 20), runs)


def test_a_radius_that_is_too_small_is_noticed():
    runs = 24
    assert _rejected(_failures(Shrunk(factor=0.5), "gaussian", runs, 25), runs)


@pytest.mark.slow
@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("noise", NOISES)
def test_coverage_long(mixture, noise):
    runs = 1000
    assert not _rejected(_failures(MIXTURES[mixture], noise, runs, 20), runs)


@pytest.mark.slow
@pytest.mark.parametrize("shrunk", [Shrunk(factor=0.6), Shrunk(delta=1.0)], ids=repr)
def test_a_radius_that_is_a_little_too_small_is_noticed(shrunk):
    runs = 300
    assert _rejected(_failures(shrunk, "gaussian", runs, 25), runs)
