"""Kernels that are evaluated with fewer digits than one would think."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
)

import kernelbounds as kb
from kernelbounds import kernels
from kernelbounds.engine.rows import COVERED_ERROR


class Single(RBF):
    """A kernel of a user's own that computes in single precision."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return super().__call__(X, Y).astype(np.float32).astype(float)


class Pairwise(PairwiseKernel):
    """With a diagonal that is not computed point by point, each of which takes milliseconds."""

    def diag(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize(
    ("kernel", "origin"),
    [
        (RationalQuadratic(0.5, 1e3), 0.0),
        (RationalQuadratic(0.5, 1e5), 0.0),
        (ConstantKernel(2.0) * RationalQuadratic(0.5, 1e5) + RBF(0.5), 0.0),
        (Pairwise(gamma=2.0, metric="rbf"), 0.0),
        (Pairwise(gamma=2.0, metric="rbf"), 100.0),
        (Pairwise(gamma=2.0, metric="rbf"), 1e4),
        (Single(0.5), 0.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("noise_scale", [0.1, 1e-4])
def test_bounds_hold_or_an_error_says_why(kernel, origin, noise_scale):
    answered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        centres = origin + rng.random((6, 1))
        # The function of the exact kernel, which all of these are, up to rounding.
        exact = RBF(0.5) if isinstance(kernel, Single) else kernel
        function = kb.RKHSFunction(exact, centres, rng.standard_normal(6)).rescaled(4.9)
        X = origin + rng.random((8, 1))
        seq = kb.ConfidenceSequence(kernel, 5.0, noise_scale)
        grid = origin + np.linspace(0, 1, 200)[:, None]
        try:
            seq.update(X, function(X) + noise_scale * rng.uniform(-1, 1, 8))
            lower, upper = seq.bounds(grid)
        except kb.KernelBoundsError:
            continue
        answered += 1
        truth = function(grid)
        assert np.all(lower <= truth + 1e-6) and np.all(truth <= upper + 1e-6)
        assert np.all(lower <= upper)
    if origin == 0:
        assert answered == 20


def test_single_precision_is_recognised():
    seq = kb.ConfidenceSequence(Single(0.5), 5.0, 0.1)
    seq.update(np.random.default_rng(0).random((5, 1)), np.zeros(5))
    assert seq.known.engine.data.accuracy >= 1e-7
    exact = kb.ConfidenceSequence(RBF(0.5), 5.0, 0.1)
    exact.update(np.random.default_rng(0).random((5, 1)), np.zeros(5))
    assert exact.known.engine.data.accuracy == np.finfo(float).eps


def test_the_linear_algebra_allows_for_the_error_of_the_kernel():
    """Nothing is added in few dimensions, and the derived error in many."""
    for kernel, dim in ((RBF(), 14), (Matern(nu=2.5), 7), (RBF(), 100), (Matern(nu=0.8), 1)):
        seq = kb.ConfidenceSequence(kernel, 1.0, 0.1)
        seq.update(np.random.default_rng(0).random((3, dim)), np.zeros(3))
        error = kernels.evaluation_error(kernel, dim) / COVERED_ERROR
        assert seq.known.engine.data.accuracy == np.finfo(float).eps * max(1.0, error)
        assert (error > 1) == (dim == 100 or dim == 1)


def test_rational_quadratic_has_all_its_digits():
    with mpmath.workdps(40):
        for alpha in (0.5, 50.0, 1e3, 1e6):
            for distance in (1e-3, 0.1, 1.0, 3.0):
                square = mpmath.mpf(distance) ** 2 / (2 * mpmath.mpf(alpha))
                exact = (1 + square) ** (-mpmath.mpf(alpha))
                value = kernels.cross(
                    RationalQuadratic(1.0, alpha), np.zeros((1, 1)), np.array([[distance]])
                )
                assert value[0, 0] == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("origin", [0.0, 1e6, 1.7e9])
@pytest.mark.parametrize("length_scale", [0.1, 0.5, 3.0, (0.4, 0.9, 2.0)])
def test_kernel_vectors_by_a_matrix_product_are_as_precise(length_scale, origin):
    """In extended precision; many points are close to observed ones."""
    rng = np.random.default_rng(3)
    observed = origin + rng.random((150, 3))
    points = np.vstack([origin + rng.random((60, 3)), observed[:40], observed[40:80] + 1e-9])
    kernel, scale = RBF(length_scale), np.asarray(length_scale, dtype=np.longdouble)
    moved = (points[:, None].astype(np.longdouble) - observed) / scale
    exact = np.exp(-(moved**2).sum(axis=-1) / 2)
    pairs, product = (f(kernel, points, observed) for f in (kernels.cross, kernels.vectors))
    size = np.linalg.norm(exact.astype(float), axis=1)
    by_pairs, by_product = (
        np.linalg.norm((found - exact).astype(float), axis=1) / size for found in (pairs, product)
    )
    assert by_pairs.max() < 2 * np.finfo(float).eps
    assert by_product.max() < 2 * np.finfo(float).eps
    if origin < 1e9:  # where points have so few digits that both ways are exact
        # A cloud of more than ten length scales is too wide for a product.
        assert np.array_equal(pairs, product) == (length_scale == 0.1)


def _exact_features(kernel, r):
    """|phi(x) - phi(c)| and the remainder at scaled distance r, to 60 digits."""
    r = mpmath.mpf(r)
    if isinstance(kernel, RationalQuadratic):
        a = mpmath.mpf(float(kernel.alpha))

        def value(s):
            return (1 + s * s / (2 * a)) ** -a

        bend = mpmath.mpf(1)
    elif isinstance(kernel, Matern) and np.isfinite(kernel.nu):
        nu = mpmath.mpf(float(kernel.nu))

        def value(s):
            z = mpmath.sqrt(2 * nu) * s
            return 2 ** (1 - nu) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z)

        bend = nu / (nu - 1) if nu > 1 else mpmath.inf
    else:

        def value(s):
            return mpmath.exp(-s * s / 2)

        bend = mpmath.mpf(1)
    drop = 1 - value(r)
    moved = mpmath.sqrt(2 * drop)
    if bend == mpmath.inf:
        return moved, mpmath.inf
    bent = 2 * drop + 2 * r * mpmath.diff(value, r) + bend * r * r
    return moved, mpmath.sqrt(bent)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.0),
        *(RationalQuadratic(1.0, alpha) for alpha in (0.5, 50.0, 1e3, 1e6)),
        *(Matern(1.0, nu=nu) for nu in (0.5, 0.8, 1.2, 1.5, 2.0, 2.5, 3.3, 10.0, 20.0)),
    ],
    ids=str,
)
def test_features_are_rounded_up(kernel):
    with mpmath.workdps(60):
        for r in (1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 3.0):
            found = kernels.features_in_boxes(kernel, np.zeros((1, 1)), np.array([[r]]))
            moved, bent = _exact_features(kernel, r)
            assert found.moved[0] >= float(moved) * (1 - 1e-15)
            assert found.moved[0] <= float(moved) * (1 + 1e-6) + 3e-6
            assert found.bent[0] >= float(bent) * (1 - 1e-15)
            if np.isfinite(found.bent[0]):
                assert found.bent[0] <= float(bent) * (1 + 1e-6) + 4e-6
