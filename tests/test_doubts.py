"""What data say against their use: rare alarms where all is well, alarms where it is not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from problems import too_many
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import kernelbounds as kb
from kernelbounds.kernels import OnInputs
from kernelbounds.problem.runs import FALSE_ALARM_PROBABILITY, look_chosen, share_alone

OUTCOMES = {
    "noise": lambda X, rng: rng.standard_normal(len(X)),
    "a slope": lambda X, rng: X.sum(1),
    "a peak in the middle": lambda X, rng: -((X - 0.5) ** 2).sum(1),
    "a peak in a corner": lambda X, rng: -(X**2).sum(1) + 0.1 * rng.standard_normal(len(X)),
}
DESIGNS = {
    "random": lambda n, dim, rng: rng.random((n, dim)),
    "half of the range": lambda n, dim, rng: 0.25 + 0.5 * rng.random((n, dim)),
    "Latin hypercube": lambda n, dim, rng: qmc.LatinHypercube(dim, rng=rng).random(n),
    "filling": lambda n, dim, rng: qmc.Sobol(dim, rng=rng).random(n),
}


@pytest.mark.filterwarnings("ignore:The balance properties")
def test_a_design_fixed_in_advance_rarely_looks_chosen():
    """Of 2000: an exact binomial test, wrong once in 10^4 if the stated rate holds."""
    rng = np.random.default_rng(0)
    alarms = 0
    kinds = list(product(DESIGNS.values(), OUTCOMES.values(), (1, 2, 3)))
    for run in range(2000):
        design, outcomes, dim = kinds[run % len(kinds)]
        X = design(int(rng.integers(6, 30)), dim, rng)
        alarms += look_chosen(X, outcomes(X, rng))
    assert not too_many(alarms, 2000, 2 * FALSE_ALARM_PROBABILITY)


def _seeking(rng, dim, n, sign):
    """Three of four settings are near the best one so far."""
    peak = rng.random(dim)
    X, y = [], []
    for t in range(n):
        at_best = t >= 5 and rng.random() < 0.75
        x = X[int(np.argmax(y))] + 0.1 * rng.standard_normal(dim) if at_best else rng.random(dim)
        X.append(np.clip(x, 0, 1))
        y.append(-np.sum((X[-1] - peak) ** 2) + 0.05 * rng.standard_normal())
    return np.array(X), sign * np.array(y)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("dim", "n"), [(1, 60), (2, 40), (3, 30)])
def test_settings_that_seek_the_best_look_chosen(dim, n, sign):
    rng = np.random.default_rng(1)
    assert sum(look_chosen(*_seeking(rng, dim, n, sign)) for _ in range(20)) >= 18


def test_kernel_ucb_looks_chosen():
    rng = np.random.default_rng(2)
    sequence = kb.ConfidenceSequence(Matern(0.75, nu=2.5), 3.0, 0.05)
    ucb = kb.KernelUCB(sequence, kb.Finite(np.linspace(0, 1, 201)[:, None]))
    for _ in range(50):
        x = ucb.ask().x
        ucb.tell(x, 1 - 2 * float((x[0] - 0.3) ** 2) + 0.05 * rng.standard_normal())
    assert look_chosen(sequence.points, sequence.outcomes)


def test_repeats_and_few_points_do_not_look_chosen():
    rng = np.random.default_rng(3)
    X = rng.random((5, 2))
    assert not look_chosen(X, X.sum(1))
    centre = np.tile([0.5, 0.5], (30, 1))
    assert not look_chosen(centre, rng.standard_normal(30))
    # A factorial design with its centre, the best point, many times.
    X = np.concatenate([[[0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0], [0, 0.5]], centre])
    assert not look_chosen(X, -np.sum((X - 0.5) ** 2, axis=1))


def test_the_share_of_settings_alone():
    X = np.linspace(0, 1, 11)[:, None]
    assert share_alone(Matern(1e-3, nu=2.5), X) == 1.0
    assert share_alone(Matern(1.0, nu=2.5), X) == 0.0
    assert share_alone(RBF(1e-3), X[:1]) == 0.0
    # Repeats are one setting; of two close ones neither is alone.
    assert share_alone(RBF(1e-3), np.repeat(X, 2, axis=0)) == 1.0
    assert share_alone(RBF(1e-2), np.array([[0.0], [0.005], [1.0], [0.5]])) == 0.5
    # Correlations count, and not the size of the kernel; parts relate settings that share an input.
    assert share_alone(ConstantKernel(1e6) * Matern(1e-3, nu=2.5), X) == 1.0
    pair = np.array([[0.5, 0.0], [0.5, 1.0]])
    assert share_alone(RBF(0.01), pair) == 1.0
    assert share_alone(OnInputs(RBF(0.01), [0]) + OnInputs(RBF(0.01), [1]), pair) == 0.0
