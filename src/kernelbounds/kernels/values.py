"""Kernel matrices, kernel vectors and diagonals, and how far they are from the exact ones.

Any kernel inside any combination is evaluated by the same code: sums, products, powers and
``OnInputs`` are taken apart until formulas of ``stationary.py``, a constant, an inner product,
``Levels`` or a class of the user's own are left.

Errors are bounds on |computed k(x, z) - k(x, z)| / sqrt(k(x, x) k(z, z)), for all points of a
dimension, in units of eps = 2 u. They are derived, formula by formula:

* A stationary kernel: a relative error (d / 2 + 5 / 2) u of the distance (``squares`` in
  ``stationary.py``) changes kappa by as much times r |kappa'(r)|; to this comes the formula's own
  ``rounding``.
* An inner product of d terms and a constant: (d + 1) u, by Cauchy and Schwarz.
* A constant and ``Levels`` have no error: nothing is computed.
* A sum has the larger error of its terms and a rounding error, again by Cauchy and Schwarz.
* A product has the sum of its factors' errors and a rounding error.
* A power p >= 1 has p times the error of its base, and that of the power itself. A power below 1
  enlarges errors of small values without bound.
* A kernel on some of the inputs has the error that it has in that number of dimensions.

The errors of all other kernels are unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Product,
    Sum,
)

from kernelbounds.arrays import EPS, LARGEST, Array
from kernelbounds.errors import InputError, said
from kernelbounds.kernels.levels import Levels
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.stationary import (
    Profile,
    is_stationary,
    length_scales,
    profile,
    squares,
)

# The error, in units of eps, that is assumed at least for a kernel whose error is unknown. It is a
# guess, made for formulas that expand |x - z|^2 around an origin a few length scales away. Those of
# scikit-learn's PairwiseKernel are 6 at two length scales from zero, and 200 at twenty.
UNKNOWN_KERNEL_ERROR = 64.0
# Squared distances over which the error of a stationary kernel is maximised. Outside of their range
# it is constant, and between two of them it changes by less than a hundredth. Those below 1e-8 are
# for periodic kernels, whose length scales may be as short as 1e-40 periods.
SQUARED_DISTANCES = np.concatenate(
    [np.geomspace(1e-90, 1e-8, 10_000, endpoint=False), np.geomspace(1e-8, 1e8, 2000)]
)
# From this number of pairs on a matrix product is faster: by 20 % at 100 x 1000 points in 3
# dimensions, and by more in higher ones. It saves 5 % of the whole loop with RBF and CMM
# (``python -m benchmarks loop``).
FEWEST_PAIRS_OF_PRODUCT = 5000
# A bound on |x|^2 + |z|^2 in length scales, around a common origin, up to which |x - z|^2 / 2 is as
# precise from squares and products as from differences. The former have an error of at most
# (d + 2) u times this number, if all rounding errors have one sign. Measured, it stays below 2.1
# eps in one dimension and below what is derived for differences in more (test_kernel_errors.py).
LARGEST_SQUARES_OF_PRODUCT = 8.0


def nested_kernels(kernel: Kernel) -> list[Kernel]:
    """The kernel itself, and all kernels of which it is a sum, a product and so on."""
    if type(kernel) in (Sum, Product):
        return [kernel, *nested_kernels(kernel.k1), *nested_kernels(kernel.k2)]
    if type(kernel) in (Exponentiation, OnInputs):
        return [kernel, *nested_kernels(kernel.kernel)]
    return [kernel]


def evaluation_error(kernel: Kernel, dim: int) -> float | None:
    """The error of :func:`cross` in units of eps; None where it is not known."""
    if type(kernel) in (Sum, Product):
        one, other = evaluation_error(kernel.k1, dim), evaluation_error(kernel.k2, dim)
        if one is None or other is None:
            return None
        return (max(one, other) if type(kernel) is Sum else one + other) + 0.5
    if type(kernel) is Exponentiation:
        base, power = evaluation_error(kernel.kernel, dim), float(kernel.exponent)
        return None if base is None or power < 1 else power * base + 1
    if type(kernel) is OnInputs:
        return evaluation_error(kernel.kernel, len(kernel.inputs))
    if type(kernel) in (ConstantKernel, Levels):
        return 0.0
    if type(kernel) is DotProduct:
        return (dim + 1) / 2
    return _stationary_error(profile(kernel), dim) if is_stationary(kernel) else None


@lru_cache(maxsize=64)
def _stationary_error(kappa: Profile, dim: int) -> float:
    s = np.minimum(SQUARED_DISTANCES, kappa.monotone**2)
    of_distance = (dim / 2 + 2.5) * s * np.abs(kappa.slope(s))
    return 1.01 * float(np.max(of_distance + kappa.rounding(s))) / 2


def measured_error(kernel: Kernel, points: Array) -> float:
    """Estimate the error, in units of eps, from k(x, x) in matrices at these points.

    Four times the largest error found is returned.
    """
    found = np.array([cross(kernel, x, x.copy())[0, 0] for x in points[:, None]])
    prior = diagonal(kernel, points)
    return float(4 * np.max(np.abs(found - prior) / np.maximum(prior, 1e-300)) / EPS)


def cross(kernel: Kernel, left: Array, right: Array) -> Array:
    """The matrix k(left_i, right_j)."""
    if is_stationary(kernel):
        squared, factor = squares(kernel, left, right)
        return profile(kernel).value(squared, factor)
    if type(kernel) is OnInputs:
        return cross(kernel.kernel, kernel.select(left), kernel.select(right))
    if type(kernel) is Levels:
        return kernel.cross(left, right)
    shape = len(left), len(right)
    if type(kernel) is ConstantKernel:
        return np.full(shape, float(kernel.constant_value))
    if type(kernel) in (Sum, Product):
        # A constant stays a number, because passes over the matrix take time.
        one, other = (
            float(k.constant_value) if type(k) is ConstantKernel else cross(k, left, right)
            for k in (kernel.k1, kernel.k2)
        )
        values = one + other if type(kernel) is Sum else one * other
        return values if isinstance(values, np.ndarray) else np.full(shape, values)

    def evaluate() -> Any:
        if type(kernel) is Exponentiation:
            return cross(kernel.kernel, left, right) ** float(kernel.exponent)
        if type(kernel) is DotProduct:
            return left @ right.T + float(kernel.sigma_0) ** 2
        return kernel(left, right)

    return _checked(kernel, evaluate, shape)


def vectors(kernel: Kernel, points: Array, observed: Array) -> Array:
    """Compute :func:`cross`, up to rounding, by a matrix product where that is as precise."""
    if type(kernel) is OnInputs:
        return vectors(kernel.kernel, kernel.select(points), kernel.select(observed))
    if type(kernel) is RBF and len(points) * len(observed) >= FEWEST_PAIRS_OF_PRODUCT:
        exponents = _minus_half_squares(kernel, points, observed)
        if exponents is not None:
            return np.asarray(np.exp(exponents, out=exponents))
    return cross(kernel, points, observed)


def diagonal(kernel: Kernel, points: Array) -> Array:
    """The vector k(x_i, x_i), which is 1 without computation for stationary kernels only."""
    if is_stationary(kernel):
        length_scales(kernel, points.shape[1])  # Refuses points that the kernel does not take.
        return np.ones(len(points))
    if type(kernel) is Levels:
        return np.ones(len(points))
    if type(kernel) is OnInputs:
        return diagonal(kernel.kernel, kernel.select(points))
    if type(kernel) is Sum:
        return diagonal(kernel.k1, points) + diagonal(kernel.k2, points)
    if type(kernel) is Product:
        return diagonal(kernel.k1, points) * diagonal(kernel.k2, points)

    def evaluate() -> Any:
        if type(kernel) is Exponentiation:
            return diagonal(kernel.kernel, points) ** float(kernel.exponent)
        if type(kernel) is ConstantKernel:
            return np.full(len(points), float(kernel.constant_value))
        if type(kernel) is DotProduct:
            return np.vecdot(points, points) + float(kernel.sigma_0) ** 2
        return kernel.diag(points)

    values = _checked(kernel, evaluate, (len(points),))
    if np.any(values < 0):
        raise InputError(f"{kernel} is not a kernel: k(x, x) is negative at some x.")
    return values


def _minus_half_squares(kernel: Kernel, left: Array, right: Array) -> Array | None:
    """-|x - y|^2 / 2 = x'y - |x|^2 / 2 - |y|^2 / 2, or None where that would lose digits.

    x and y are the points in length scales, around the mean of those on the left.
    """
    scales, origin = length_scales(kernel, left.shape[1]), left.mean(axis=0)
    x, y = (left - origin) / scales, (right - origin) / scales
    x_squared, y_squared = np.vecdot(x, x), np.vecdot(y, y)
    if not x_squared.max() + y_squared.max() <= LARGEST_SQUARES_OF_PRODUCT:
        return None
    one, other = np.empty((len(x), x.shape[1] + 2)), np.empty((len(y), x.shape[1] + 2))
    one[:, :-2], one[:, -2], one[:, -1] = x, -0.5 * x_squared, 1.0
    other[:, :-2], other[:, -2], other[:, -1] = y, 1.0, -0.5 * y_squared
    return np.asarray(one @ other.T)


def _checked(kernel: Kernel, evaluate: Callable[[], Any], shape: tuple[int, ...]) -> Array:
    """Evaluate a formula that may overflow, or a user's kernel, which may do anything."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            values = np.asarray(evaluate(), dtype=np.float64)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{kernel} could not be evaluated on these points: {said(error)}."
        ) from error
    if values.shape != shape:
        raise InputError(f"{kernel} is not a kernel: it gave shape {values.shape}, not {shape}.")
    if not np.all(np.abs(values) <= LARGEST):
        raise InputError(f"{kernel} is not finite, or above {LARGEST:g}, on these points.")
    return values
