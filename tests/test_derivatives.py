"""Derivatives of functions in the space, against difference quotients in 140 and 600 digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from exact_kernels import exact, exact_derivative, exact_squared_norm, profile
from problems import Own
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
)

import kernelbounds as kb
from kernelbounds import kernels
from kernelbounds.kernels.matern import BESSEL_ERROR, SMALLEST_Z, matern

EPS = np.finfo(float).eps
# Of a length scale, in three dimensions.
KERNELS = {
    "rbf": lambda length: RBF(length),
    "matern inf": lambda length: Matern(length, nu=np.inf),
    **{
        f"matern {nu}": lambda length, nu=nu: Matern(length, nu=nu)
        for nu in (1.1, 1.5, 1.9, 2.2, 2.5, 3.5, 4.5, 20.5, 49.3)
    },
    **{
        f"rational quadratic {alpha:g}": lambda length, alpha=alpha: RationalQuadratic(
            length, alpha
        )
        for alpha in (1e-300, 1e-20, 1e-3, 0.5, 50.0, 1e6, 1e90)
    },
    "anisotropic": lambda length: Matern((length, 30 * length, 0.2 * length), nu=2.5),
    "linear": lambda length: DotProduct(0.7 * length),
    "sum": lambda length: 0.1 * RBF(length) + Matern(2 * length, nu=2.5) + ConstantKernel(3.0),
    "product": lambda length: RBF(length) * Matern(2 * length, nu=1.5),
    "product with linear": lambda length: Matern(length, nu=1.5) * DotProduct(0.3 * length),
    "product of linear": lambda length: DotProduct(0.0) * DotProduct(length) * ConstantKernel(0.2),
    "power 1": lambda length: (RBF(length) + DotProduct(0.0)) ** 1,
    "power 2": lambda length: RationalQuadratic(length, 2.0) ** 2,
    "power 3": lambda length: (DotProduct(length) + RBF(length)) ** 3,
    "power 7": lambda length: Matern(length, nu=2.5) ** 7.0,
    "inputs": lambda length: (
        kb.OnInputs(Matern((length, 3 * length), nu=2.5), [2, 0])
        + kb.OnInputs(ExpSineSquared(1.1, length), [1])
    ),
    "inputs of inputs": lambda length: (
        kb.OnInputs(kb.OnInputs(RBF(length), [1]) * RBF(length), [0, 2]) ** 2
    ),
}


def _points(rng, dim, origin, length):
    """Two points, and others at 1e-13 to 1e4 length scales from the first, with repeats."""
    start = origin + length * rng.standard_normal((2, dim))
    steps = 10 ** np.concatenate([rng.uniform(-13, -8, 3), rng.uniform(-8, 1, 12), [4.0]])
    directions = rng.standard_normal((len(steps), dim))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return start, np.vstack([start, start[0] + length * steps[:, None] * directions])


def _errors(kernel, points, centres, unit):
    """The largest errors of both along all axes, in units of eps, as derivative_error has them."""
    dim, size = points.shape[1], [mp.sqrt(exact(kernel, z, z)) for z in centres]
    of_cross = of_diagonal = 0.0
    for axis in range(dim):
        axes = np.full(len(points), axis)
        values = kernels.derivative_cross(kernel, points, axes, centres)
        squares = kernels.derivative_diagonal(kernel, points, axes)
        for x, row, square in zip(points, values, squares):
            known = exact_squared_norm(kernel, x, axis, unit)
            # What is left of 600 digits where the kernel does not depend on this coordinate.
            if known < mp.mpf(10) ** -120:
                assert square == 0 and not row.any()
                continue
            of_diagonal = max(of_diagonal, float(abs(square - known) / known) / EPS)
            for z, value, scale in zip(centres, row, size):
                wrong = abs(value - exact_derivative(kernel, x, axis, z, unit))
                if scale:
                    of_cross = max(of_cross, float(wrong / mp.sqrt(known) / scale) / EPS)
    return of_cross, of_diagonal


@pytest.mark.parametrize("name", KERNELS)
def test_errors_are_within_those_derived(name):
    largest = 0.0
    for seed, (origin, length) in enumerate([(0.0, 1.0), (1e9, 0.7), (-3.0, 1e-20)]):
        kernel = KERNELS[name](length)
        points = _points(np.random.default_rng(seed), 3, origin, length)
        found = _errors(kernel, *points, unit=length)
        bound = kernels.derivative_error(kernel, 3)
        assert max(found) <= bound + 1e-30, (origin, length)
        largest = max(largest, max(found) / max(bound, 1e-30))
    assert largest > 1 / 100 or name == "linear"  # of which nothing is rounded


@pytest.mark.parametrize("length", [1e-20, 0.05, 1.1, 30.0])
@pytest.mark.parametrize("period", [0.7, 86400.0, 1e-9])
@pytest.mark.parametrize("turns", [0, 1, 1e4, 1e9, 1e30])
def test_errors_over_many_periods(length, period, turns):
    rng = np.random.default_rng(0)
    kernel, points = ExpSineSquared(length, period), period * turns * rng.uniform(-1, 1, (2, 1))
    near = period * length * 10 ** rng.uniform(-8, 0, (10, 1)) * rng.choice([-1, 1], (10, 1))
    halves = points + period * (0.5 + np.array([[0.0], [1e-6]]))
    centres = np.vstack([points[0] + near, period * turns * rng.uniform(-1, 1, (5, 1)), halves])
    unit = period * min(length, 1.0)
    found = _errors(kernel, points, centres, unit)
    assert max(found) <= kernels.derivative_error(kernel, 1)


@pytest.mark.parametrize("nu", [1e-15, 1e-6, 0.01, 0.2, 0.49, 0.8, 1.0, 1.2, 3.3, 19.9, 34.4, 49.0])
def test_bessel_functions_have_small_relative_errors(nu):
    """This measures BESSEL_ERROR where it is relative, which slopes times long distances need."""
    rng = np.random.default_rng(0)
    z = np.concatenate([10 ** rng.uniform(np.log10(SMALLEST_Z), 2.8, 80), rng.uniform(0.1, 3, 40)])
    square = z * z
    with mp.workdps(40):
        roots = [mp.sqrt(mp.mpf(float(one))) for one in square]
        expected = [profile(nu, root / mp.sqrt(2 * mp.mpf(nu))) for root in roots]
    errors = [float(abs(mp.mpf(float(v)) / e - 1)) for v, e in zip(matern(nu, square), expected)]
    # The root has an error of u, which z |f'| / f < z + 1 enlarges.
    assert np.max(np.array(errors) / (EPS / 2) - z) < BESSEL_ERROR / 2


@pytest.mark.parametrize("name", KERNELS)
def test_they_are_the_entries_of_gradients(name):
    rng = np.random.default_rng(0)
    kernel, x, z = KERNELS[name](0.7), rng.random((6, 3)), rng.random((5, 3))
    axes = np.array([2, 0, 1, 0, 2, 2])
    found = kernels.derivative_cross(kernel, x, axes, z)
    for j, one in enumerate(z):
        gradients = kernels.pull_back(kernel, x, one[None], np.ones((6, 1)))
        assert found[:, j] == pytest.approx(gradients[np.arange(6), axes], rel=1e-12, abs=1e-14)
    squares = kernels.derivative_diagonal(kernel, x, axes)
    for i in range(6):
        alone = x[i : i + 1], axes[i : i + 1]
        assert squares[i] == kernels.derivative_diagonal(kernel, *alone)[0]
    # No function f = k(., z) is steeper than its norm and that of the functional allow.
    limits = np.sqrt(np.multiply.outer(squares, kernels.diagonal(kernel, z)))
    assert np.all(np.abs(found) <= limits * (1 + 1e-12))


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(nu=1.0),
        Matern(nu=0.5),
        RBF() + 2.0 * Matern(nu=0.8),
        RBF() * Matern(nu=1.0),
        Matern(nu=0.9) ** 2,
        RBF() ** 2.5,
        kb.OnInputs(Matern(nu=0.5), [0]),
        Own(),
        RBF() + Own(),
    ],
    ids=str,
)
def test_rough_and_unknown_kernels_have_none(kernel):
    x, axes = np.ones((1, 1)), np.zeros(1, dtype=int)
    assert not kernels.has_derivatives(kernel)
    for ask in (
        lambda: kernels.derivative_cross(kernel, x, axes, x),
        lambda: kernels.derivative_diagonal(kernel, x, axes),
        lambda: kernels.derivative_error(kernel, 1),
    ):
        with pytest.raises(kb.InputError, match="not known to have derivatives") as caught:
            ask()
        assert str(kernel) in str(caught.value)


@pytest.mark.parametrize("nu", [1.5, np.nextafter(1.0, 2.0)])
def test_a_kernel_just_smooth_enough(nu):
    """The squared norm of the functional is nu / (nu - 1) / l^2."""
    kernel, x, axes = Matern(2.0, nu=nu), np.array([[0.0]]), np.zeros(1, dtype=int)
    assert kernels.has_derivatives(kernel)
    assert kernels.derivative_diagonal(kernel, x, axes)[0] == nu / (nu - 1) / 4
    assert 3 <= kernels.derivative_error(kernel, 1) < 10


def test_points_that_the_kernel_does_not_take():
    kernel, axes = kb.OnInputs(RBF(), [2]), np.zeros(1, dtype=int)
    with pytest.raises(kb.InputError, match=r"OnInputs\(.* needs points of 3 dimensions"):
        kernels.derivative_diagonal(kernel, np.ones((1, 2)), axes)
    with pytest.raises(kb.InputError, match="length scales"):
        kernels.derivative_cross(RBF((1.0, 2.0)), np.ones((1, 3)), axes, np.ones((1, 3)))
