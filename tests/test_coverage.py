"""Coverage over all rounds and points at once, with adaptively chosen points.

A run fails when, after any number of observations, the truth leaves the band at any grid point.
The probability of that is at most delta. Each test rejects when so many runs fail that a
binomial with success probability delta would do it with probability below 1e-4; it is seeded, so
it cannot fail by chance, and that is the error rate with which it would have been wrong.
"""

from __future__ import annotations

import numpy as np
import pytest
from problems import BOUNDS, band_fails, too_many, truth
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

GRID = np.linspace(0, 1, 40)[:, None]
DELTA, NORM, NOISE = 0.2, 2.0, 0.3


def _failures(bound, runs, rounds, believed_noise=NOISE, believed_norm=NORM):
    kernel, failures = Matern(0.3, nu=1.5), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        values = truth(kernel, rng, NORM, dim=1, centres=10)(GRID)
        seq = kb.ConfidenceSequence(kernel, believed_norm, believed_noise, DELTA, bound=bound)
        failures += band_fails(seq, GRID, values, NOISE * rng.standard_normal(rounds))
    return failures


def test_coverage():  # of all bounds, and longer, below
    runs = 60
    assert not too_many(_failures(kb.CMM(), runs, 25), runs, DELTA)


def test_the_test_can_fail():
    """With the noise believed five times smaller than it is, the same test rejects."""
    runs = 60
    failures = _failures(kb.CMM(), runs, 25, believed_noise=NOISE / 5)
    assert too_many(failures, runs, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_coverage_long(name):
    runs = 300
    assert not too_many(_failures(BOUNDS[name], runs, 100), runs, DELTA)


def _certificate_failures(bound, runs, rounds, *, box=False, believed_noise=NOISE):
    """Runs in which, after any round, a certificate or a regret bound is wrong."""
    kernel = Matern(0.3, nu=1.5)
    failures = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        function = truth(kernel, rng, NORM, dim=1, centres=10)
        best = function(np.linspace(0, 1, 2001)[:, None] if box else GRID).max()
        seq = kb.ConfidenceSequence(kernel, NORM, believed_noise, DELTA, bound=bound)
        ucb = kb.KernelUCB(seq, kb.Box([0], [1]) if box else kb.Finite(GRID))
        try:
            wrong = False
            for _ in range(rounds):
                s = ucb.ask()
                value = function(s.x[None])[0]
                ucb.tell(s.x, value + NOISE * rng.standard_normal())
                found = ucb.certificate(tolerance=0.05)
                wrong |= best > found.max_upper
                wrong |= best - function(found.x[None])[0] > found.regret
                wrong |= best - value > ucb.history.regret_bound[-1]
        except kb.EmptyConfidenceSetError:
            wrong = True
        failures += wrong
    return failures


def test_the_test_of_certificates_can_fail():
    runs = 16
    failures = _certificate_failures(kb.CMM(), runs, 20, believed_noise=NOISE / 10)
    assert too_many(failures, runs, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize("name", BOUNDS)
def test_certificates_are_true_at_all_times(name, box):
    runs, rounds = (60, 15) if box else (300, 60)
    failures = _certificate_failures(BOUNDS[name], runs, rounds, box=box)
    assert not too_many(failures, runs, DELTA)
