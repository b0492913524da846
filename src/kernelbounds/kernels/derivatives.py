"""Derivatives of the functions in a kernel's space.

With phi(x) = k(., x), the derivative of f in coordinate a is the inner product

    df/dx_a (x) = <f, d_a phi(x)>,

so that all there is to know of it is

=======================  ======================  =============================================
code                     symbol                  value
=======================  ======================  =============================================
``derivative_cross``     <d_a phi(x), phi(z)>    dk(x, z) / dx_a
``derivative_diagonal``  |d_a phi(x)|^2          d^2 k(x, x') / dx_a dx'_a at x' = x
=======================  ======================  =============================================

Of a stationary kernel they are kappa'(r) / r (x_a - z_a) / l_a^2 and -kappa''(0) / l_a^2. By
Cauchy and Schwarz |dk(x, z) / dx_a| <= |d_a phi(x)| sqrt(k(z, z)), and to the right hand side all
errors are relative, because on the left the terms of the product rule may cancel. On the right they
do not: k(x, x) is constant or grows with |x_a| for all kernels here, so that

    |d_a (phi_1 (x) phi_2)|^2 = |d_a phi_1|^2 k_2 + k_1 |d_a phi_2|^2 + (dk_1/dx_a) (dk_2/dx_a) / 2,

in which k_1 and k_2 are those of (x, x), has no negative term.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Product,
    Sum,
)

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError
from kernelbounds.kernels.distances import differences, length_scales, squares
from kernelbounds.kernels.gradients import diagonal_gradient, differentiable
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.precision import SQUARES, evaluation_error
from kernelbounds.kernels.stationary import Profile, is_stationary, profile
from kernelbounds.kernels.values import cross, diagonal


def has_derivatives(kernel: Kernel) -> bool:
    """Whether all functions in the space are known to have derivatives: Matern needs nu > 1."""
    return differentiable(kernel) and _is_smooth(kernel)


def derivative_cross(
    kernel: Kernel, points: Array, axes: NDArray[np.intp], centres: Array
) -> Array:
    """dk(x_i, z_j) / dx_a with a = axes_i, (m, n), at points (m, d), axes (m,), centres (n, d)."""
    _require(kernel)
    values = np.empty((len(points), len(centres)))
    for axis in np.unique(axes):
        rows = axes == axis
        values[rows] = _cross(kernel, points[rows], int(axis), centres)
    return values


def derivative_diagonal(kernel: Kernel, points: Array, axes: NDArray[np.intp]) -> Array:
    """d^2 k(x, x') / dx_a dx'_a at x' = x = x_i with a = axes_i, (m,)."""
    _require(kernel)
    values = np.empty(len(points))
    for axis in np.unique(axes):
        rows = axes == axis
        values[rows] = _diagonal(kernel, points[rows], int(axis))
    return values


def derivative_error(kernel: Kernel, dim: int) -> float:
    """How far both are from the exact values, at all points of a dimension, in units of eps.

    A bound on the error of dk(x, z) / dx_a relative to |d_a phi(x)| sqrt(k(z, z)), and on that of
    |d_a phi(x)|^2 relative to itself. With C for this bound and E for that of the values
    (``precision.py``),

    * of a stationary kernel a relative error (d + 5) u of s changes the slope by as much times
      ``slope_change``; to this come ``slope_rounding``, and 4 u: for the difference, for l^2, for
      applying both. |x_a - z_a| is at most r length scales;
    * of an inner product and of a constant nothing is rounded;
    * a sum has the larger C of its terms and a rounding error, by Cauchy and Schwarz;
    * a product has C_1 + E_2 from one term and E_1 + C_2 from the other, and rounding errors. The
      third term of its squared norm has C_1 + C_2, as gradients of k(x, x) are no less precise;
    * a power p has (p - 1) E + C and rounding errors from p k^(p - 1) dk/dx_a, relative to
      p |d_a phi| k(x, x)^((p - 1) / 2), which is at most sqrt(p) times the norm of its derivative.
      One term of that norm squared has (p - 2) E + 2 C.
    """
    _require(kernel)
    return _error(kernel, dim)


def _require(kernel: Kernel) -> None:
    if not has_derivatives(kernel):
        raise InputError(
            f"functions in the space of {kernel} are not known to have derivatives; those of "
            "scikit-learn's kernels have, Matern with nu above 1 only, and of their sums, products "
            "and whole powers."
        )


def _is_smooth(kernel: Kernel) -> bool:
    if type(kernel) in (Sum, Product):
        return _is_smooth(kernel.k1) and _is_smooth(kernel.k2)
    if type(kernel) in (Exponentiation, OnInputs):
        return _is_smooth(kernel.kernel)
    return not is_stationary(kernel) or math.isfinite(profile(kernel).bend)


def _cross(kernel: Kernel, points: Array, axis: int, centres: Array) -> Array:
    if type(kernel) in (Sum, Product):
        one, other = (_cross(k, points, axis, centres) for k in (kernel.k1, kernel.k2))
        if type(kernel) is Sum:
            return one + other
        return one * cross(kernel.k2, points, centres) + cross(kernel.k1, points, centres) * other
    if type(kernel) is Exponentiation:
        p, inner = float(kernel.exponent), cross(kernel.kernel, points, centres)
        return np.asarray(p * inner ** (p - 1) * _cross(kernel.kernel, points, axis, centres))
    if type(kernel) is OnInputs:
        seen, others = kernel.select(points), kernel.select(centres)
        if axis in kernel.inputs:
            return _cross(kernel.kernel, seen, kernel.inputs.index(axis), others)
    if type(kernel) in (OnInputs, ConstantKernel):
        return np.zeros((len(points), len(centres)))
    if type(kernel) is DotProduct:
        return np.tile(centres[:, axis], (len(points), 1))
    squared, factor = squares(kernel, points, centres)
    slopes = profile(kernel).slope(factor * squared)
    moved = differences(kernel, points, centres, axis)
    return np.asarray(slopes * moved / _length_scale(kernel, points, axis) ** 2)


def _diagonal(kernel: Kernel, points: Array, axis: int) -> Array:
    if type(kernel) in (Sum, Product):
        one, other = (_diagonal(k, points, axis) for k in (kernel.k1, kernel.k2))
        if type(kernel) is Sum:
            return one + other
        steep = [diagonal_gradient(k, points)[:, axis] for k in (kernel.k1, kernel.k2)]
        return np.asarray(
            one * diagonal(kernel.k2, points)
            + diagonal(kernel.k1, points) * other
            + 0.5 * steep[0] * steep[1]
        )
    if type(kernel) is Exponentiation:
        p, base = float(kernel.exponent), _diagonal(kernel.kernel, points, axis)
        if p == 1:
            return base
        inner = diagonal(kernel.kernel, points)
        half = 0.5 * diagonal_gradient(kernel.kernel, points)[:, axis]
        return np.asarray(
            p * inner ** (p - 1) * base + p * (p - 1) * inner ** (p - 2) * (half * half)
        )
    if type(kernel) is OnInputs:
        seen = kernel.select(points)
        if axis in kernel.inputs:
            return _diagonal(kernel.kernel, seen, kernel.inputs.index(axis))
    if type(kernel) in (OnInputs, ConstantKernel):
        return np.zeros(len(points))
    if type(kernel) is DotProduct:
        return np.ones(len(points))
    bend = profile(kernel).bend / _length_scale(kernel, points, axis) ** 2
    return np.full(len(points), bend)


def _length_scale(kernel: Kernel, points: Array, axis: int) -> float:
    dim = points.shape[1]
    return float(np.broadcast_to(length_scales(kernel, dim), dim)[axis])


def _error(kernel: Kernel, dim: int) -> float:
    if type(kernel) in (Sum, Product):
        one, other = _error(kernel.k1, dim), _error(kernel.k2, dim)
        if type(kernel) is Sum:
            return max(one, other) + 0.5
        return one + _of_values(kernel.k2, dim) + _of_values(kernel.k1, dim) + other + 1.5
    if type(kernel) is Exponentiation:
        p, base = float(kernel.exponent), _error(kernel.kernel, dim)
        of_power = (p - 1) * _of_values(kernel.kernel, dim)
        return max(math.sqrt(p) * (of_power + base + 2), of_power + 2 * base + 3)
    if type(kernel) is OnInputs:
        return _error(kernel.kernel, len(kernel.inputs))
    return _stationary_error(profile(kernel), dim) if is_stationary(kernel) else 0.0


def _of_values(kernel: Kernel, dim: int) -> float:
    """It is known of all kernels that have derivatives."""
    return evaluation_error(kernel, dim) or 0.0


@lru_cache(maxsize=64)
def _stationary_error(kappa: Profile, dim: int) -> float:
    s = np.minimum(SQUARES, kappa.monotone**2)
    of_slope = (dim + 5) * kappa.slope_change(s) + kappa.slope_rounding(s)
    errors = np.sqrt(s / kappa.bend) * (of_slope + 4 * np.abs(kappa.slope(s)))
    # The bend has an error of 4 u at most, in periodic.py, and its quotient with l^2 one of 2 u.
    return max(1.01 * float(np.max(errors)) / 2, 3.0)
