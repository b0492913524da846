"""Where forecasts are hard to make in double precision, the truth stays inside all the same.

Whenever the noise energy is at most R_t^2, the truth is in the confidence set and so within all
bounds; that is checked on noise that is nothing beside the outcomes, or all there is of them.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern

import kernelbounds as kb
from kernelbounds.mixtures.hybrid import Hybrid


class InSinglePrecision(Kernel):
    """A kernel of one's own, with few digits."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        return np.float64(np.float32(RBF(0.5)(X, Y)))

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return True


def _spread(rng, t):
    return rng.random((t, 2))


def _repeated(rng, t):
    return np.repeat(rng.random((t // 5 + 1, 2)), 5, axis=0)[:t]


def _first_times(size):
    def draw(rng, t):
        X = rng.random((t, 2))
        X[0] *= size
        return X

    return draw


def _growing(rng, t):
    return rng.random((t, 2)) * np.geomspace(1e-4, 1e4, t)[:, None]


CASES = {
    **{f"k(x,x) = {v:g}": (ConstantKernel(v) * RBF(0.5), _spread) for v in (1e-12, 1.0, 1e12)},
    "matern, repeated": (Matern(0.5, nu=2.5), _repeated),
    "single precision": (InSinglePrecision(), _spread),
    "single precision, repeated": (InSinglePrecision(), _repeated),
    **{
        f"{kernel}, first {size:g}": (kernel, _first_times(size))
        for kernel in (DotProduct(0.0), DotProduct(0.0) ** 3, DotProduct(0.0) * RBF(0.5))
        for size in (0.0, 1e-9, 1e-6, 1e6)
    },
    "linear, growing": (DotProduct(0.0), _growing),
    "cubic, growing": (DotProduct(0.0) ** 3, _growing),
}
RELATIVE_NOISE = (1e-14, 1e-11, 1e-8, 1e-4, 1.0, 1e6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("t", [3, pytest.param(30, marks=pytest.mark.slow), 120])
def test_the_truth_stays_inside(case, t):
    kernel, draw = CASES[case]
    for seed, noise_scale in enumerate(RELATIVE_NOISE):
        rng = np.random.default_rng(seed)
        X = draw(rng, t)
        function = kb.RKHSFunction(kernel, draw(rng, 6), rng.standard_normal(6))
        norm = 1 / np.sqrt(np.median(kernel.diag(X)))
        function = function.rescaled(norm)
        y = function(X) + noise_scale * rng.standard_normal(t)
        Q = np.vstack([X[:3], draw(rng, 8)])
        truth, trivial = function(Q), norm * np.sqrt(kernel.diag(Q)).max()
        together, one_by_one = (
            kb.ConfidenceSequence(kernel, norm * (1 + 1e-9), noise_scale, 0.1) for _ in range(2)
        )
        together.update(X, y)
        for x, outcome in zip(X, y) if t <= 30 else ():
            one_by_one.update(x, outcome)
            assert one_by_one.radius > 0
        for seq in (together, one_by_one) if t <= 30 else (together,):
            assert np.linalg.norm(y - function(X)) <= seq.radius
            for bound in (kb.CMM(), kb.DMM(), kb.AMM()):
                lower, upper = seq.bounds(Q, bound)
                outside = np.maximum(lower - truth, truth - upper).max() / trivial
                assert outside < 1e-9, (noise_scale, bound, outside)
            assert seq.noise_lower_bound <= noise_scale


@pytest.mark.slow
def test_a_long_run():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 2))
    function = kb.RKHSFunction(RBF(0.3), X[:9], rng.standard_normal(9)).rescaled(1.0)
    for noise_scale in (1e-8, 0.1):
        eps = noise_scale * rng.standard_normal(2000)
        seq = kb.ConfidenceSequence(RBF(0.3), 1.0, noise_scale, 0.1)
        seq.update(X, function(X) + eps)
        assert 1 <= seq.radius / np.linalg.norm(eps) < 1.2
        lower, upper = seq.bounds(X[:20])
        assert np.all(lower <= function(X[:20]) + 1e-9)
        assert np.all(function(X[:20]) <= upper + 1e-9)


@pytest.mark.parametrize("size", [1e-100, 1e-30, 1e30, 1e99])
@pytest.mark.parametrize("noise_scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("rates", [Hybrid.rates, (1.0,)])
def test_beyond_the_range_of_squares(size, noise_scale, rates):
    """Outcomes over the noise scale may be so large that their squares are infinite."""
    X = np.random.default_rng(0).random((20, 2))
    y = size * np.cos(X[:, 0])
    seq = kb.ConfidenceSequence(
        RBF(0.5), max(2.0 * size, 1e-50), noise_scale, mixture=Hybrid(rates=rates)
    )
    seq.update(X, y)
    assert 0 < seq.radius < np.inf
    assert np.all(np.isfinite(seq.bounds(X[:2])))
    assert seq.noise_lower_bound >= 0
