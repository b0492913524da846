"""Values of kernels against 40 digits: no error exceeds the one that is derived for it."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from exact_kernels import exact, profile
from problems import Own
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
)

from kernelbounds import kernels
from kernelbounds.engine.rows import COVERED_ERROR
from kernelbounds.kernels.matern import BESSEL_ERROR, matern

EPS = np.finfo(float).eps
NUS = (0.001, 0.05, 0.1, 0.2, 0.35, 0.49, 0.8, 0.99, 1.0, 1.2, 2.0, 2.2, 3.3, 7.0, 19.9, 34.4, 50.0)


def _near_and_far(rng, dim, origin, length):
    """Points at all distances from each other: repeated, tiny, of a length scale, huge."""
    start = origin + length * rng.standard_normal((3, dim))
    steps = 10 ** np.concatenate(
        [rng.uniform(-150, -3, 3), rng.uniform(-3, 0, 3), rng.uniform(-0.5, 0.7, 10), [3.0]]
    )
    directions = rng.standard_normal((len(steps), dim))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return start, np.vstack([start, start[0] + length * steps[:, None] * directions])


def _errors(kernel, left, right, evaluate=kernels.cross):
    """|computed - exact| / sqrt(k(x,x) k(z,z)) in units of eps, (m, n)."""
    values = evaluate(kernel, left, right)
    assert np.all(np.isfinite(values))
    size = [[float(mp.sqrt(exact(kernel, x, x))) for x in points] for points in (left, right)]
    wrong = [
        [float(mp.mpf(float(v)) - exact(kernel, x, z)) for v, z in zip(row, right)]
        for row, x in zip(values, left)
    ]
    return np.abs(wrong) / np.multiply.outer(*size) / EPS


STATIONARY = {
    "rbf": lambda length: RBF(length),
    "matern inf": lambda length: Matern(length, nu=np.inf),
    **{
        f"matern {nu}": lambda length, nu=nu: Matern(length, nu=nu)
        for nu in (0.5, 1.5, 2.5, 3.5, 6.5, 10.5, 30.5, 49.5)
    },
    **{f"matern {nu}": lambda length, nu=nu: Matern(length, nu=nu) for nu in (0.05, 0.8, 2.2)},
    **{
        f"rational quadratic {alpha:g}": lambda length, alpha=alpha: RationalQuadratic(
            length, alpha
        )
        for alpha in (1e-300, 1e-3, 0.5, 50.0, 1e3, 1e6, 1e90)
    },
    "power": lambda length: RationalQuadratic(length, 1e5) ** 2,
    "power 3.5": lambda length: RBF(length) ** 3.5,
    "product": lambda length: RBF(length) * Matern(2 * length, nu=1.5) * ConstantKernel(3.0),
    "sum": lambda length: ConstantKernel(0.1) * RBF(length) + Matern(length, nu=2.5),
}


@pytest.mark.parametrize("name", STATIONARY)
@pytest.mark.parametrize("dim", [1, 3, 10, 100])
def test_errors_are_within_those_derived(name, dim):
    largest = 0.0
    cases = [(0.0, 1.0), (1e6, 0.7), (1.7e9, 3.0), (1.7e9, 60.0), (-3e3, 1e-30), (0.0, 1e90)]
    for seed, (origin, length) in enumerate(cases if dim <= 10 else cases[:3]):
        kernel = STATIONARY[name](length)
        points = _near_and_far(np.random.default_rng(seed), dim, origin, length)
        bound = kernels.evaluation_error(kernel, dim)
        largest = max(largest, _errors(kernel, *points).max() / bound)
    # In 100 dimensions not all of the rounding errors have one sign.
    assert largest <= 1
    assert largest > (1 / 30 if dim <= 10 else 1 / 100) or name.endswith("1e-300")


@pytest.mark.parametrize("make", [RBF, Matern, lambda scales: Matern(scales, nu=2.5)])
def test_errors_with_a_length_scale_for_each_coordinate(make):
    scales = np.array([0.3, 7.0, 1e3])
    kernel, bound = make(scales), kernels.evaluation_error(make(scales), 3)
    left, right = _near_and_far(np.random.default_rng(0), 3, 1e4, 1.0)
    middle = left[0]
    points = [middle + (x - middle) * scales for x in (left, right)]
    assert bound / 30 < _errors(kernel, *points).max() <= bound


@pytest.mark.parametrize("nu", NUS)
def test_errors_of_matern_kernels_of_any_order(nu):
    """This measures BESSEL_ERROR, with z as close to zero and as far from it as it gets."""
    rng = np.random.default_rng(0)
    z = np.concatenate([10 ** rng.uniform(-150, -3, 20), 10 ** rng.uniform(-12, 2.84, 80)])
    z = np.concatenate([z, rng.uniform(0, 3, 40), [2.0, np.nextafter(2.0, 3.0)]])
    # f_nu(z) of this z is the kernel at this distance, in 40 digits.
    with mp.workdps(40):
        expected = [profile(nu, mp.mpf(float(x)) / mp.sqrt(2 * mp.mpf(nu))) for x in z]
    square = z * z
    errors = np.array([float(mp.mpf(float(v)) - e) for v, e in zip(matern(nu, square), expected)])
    # The square root of the square is not quite z, which costs u z |f'(z)| < u.
    assert np.abs(errors).max() / EPS < BESSEL_ERROR / 4 + 0.5
    assert np.array_equal(matern(nu, np.zeros(2)), np.ones(2))
    assert np.array_equal(matern(nu, np.array([1e280, 1e10])), np.zeros(2))


@pytest.mark.parametrize("length", [1e-20, 1e-6, 0.05, 1.1, 30.0])
@pytest.mark.parametrize("period", [0.7, 86400.0, 1e-9])
@pytest.mark.parametrize("turns", [0, 1, 1e4, 1e9, 1e13, 1e30])
def test_errors_over_many_periods(length, period, turns):
    rng = np.random.default_rng(0)
    kernel = ExpSineSquared(length, period)
    close = 10 ** rng.uniform(-9, 0, (12, 1))
    left, right = (
        period * (turns * rng.uniform(-1, 1, (12, 1)) + close * length * rng.random((12, 1)))
        for _ in range(2)
    )
    right[:4] = left[:4] + period * np.round(turns * rng.random((4, 1)))
    assert _errors(kernel, left, right).max() <= kernels.evaluation_error(kernel, 1)


@pytest.mark.parametrize("dim", [1, 3, 10, 100])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e9])
def test_errors_of_inner_products(dim, size):
    rng = np.random.default_rng(dim)
    left, right = size * rng.standard_normal((2, 10, dim))
    for kernel in (DotProduct(0.7), DotProduct(0.7) ** 3, DotProduct(0.0) + ConstantKernel(0.3)):
        bound = kernels.evaluation_error(kernel, dim)
        errors = _errors(kernel, left, np.vstack([right, left]))
        assert bound / (30 if dim <= 10 else 300) < errors.max() <= bound


def test_repeated_points_have_the_exact_value():
    x = 1.7e9 + np.random.default_rng(0).random((5, 1))
    for kernel in (RBF(0.1), *(Matern(0.1, nu=nu) for nu in (*NUS, 0.5, 1.5, 2.5, 3.5))):
        assert np.array_equal(np.diagonal(kernels.cross(kernel, x, x.copy())), np.ones(5))
    for kernel in (RationalQuadratic(0.1, 3.0), ExpSineSquared(1.0, 0.1)):
        assert np.array_equal(np.diagonal(kernels.cross(kernel, x, x.copy())), np.ones(5))


@pytest.mark.parametrize("dim", [1, 3, 10])
@pytest.mark.parametrize("origin", [0.0, 1e6, 1.7e9])
def test_vectors_by_a_matrix_product_are_as_precise(origin, dim):
    """This measures what COMPACT allows: clouds as wide as it permits, with repeated points."""
    rng = np.random.default_rng(dim)
    observed = origin + 3.0 * 0.55 * rng.uniform(-1, 1, (400, dim)) * np.sqrt(3 / dim)
    points = np.vstack([observed[:6], origin + rng.random((6, dim)) / dim])
    crowd = np.vstack([points, np.repeat(points[-1:], 10, axis=0)])
    kernel = RBF(3.0 * 0.5)
    product = kernels.vectors(kernel, crowd, observed)
    assert not np.array_equal(product, kernels.cross(kernel, crowd, observed))
    errors = _errors(kernel, points, observed, lambda *_: product[: len(points)])
    assert errors.max() <= max(COVERED_ERROR, kernels.evaluation_error(kernel, dim))


def test_what_is_not_known_is_not_claimed():
    for kernel in (Own(), RBF() + Own(), RBF() * Own(), RBF() ** 0.5, Own() ** 2):
        assert kernels.evaluation_error(kernel, 1) is None


def test_gradients_are_precise_over_thousands_of_length_scales():
    rng = np.random.default_rng(0)
    centres = rng.random((50, 2))
    points = centres[:10] + 1e-4 * rng.standard_normal((10, 2))
    weights = rng.standard_normal((10, 50))
    scales = np.array([1e-4, 2e-4], dtype=np.longdouble)
    moved = points[:, None].astype(np.longdouble) - centres
    values = np.exp(-((moved / scales) ** 2).sum(axis=2) / 2)
    expected = -((weights * values)[:, :, None] * moved / scales**2).sum(axis=1)
    found = kernels.pull_back(RBF((1e-4, 2e-4)), points, centres, weights)
    assert found == pytest.approx(expected.astype(float), rel=1e-14, abs=1e-12)
