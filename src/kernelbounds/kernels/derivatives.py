"""How far the features phi(x) = k(., x) of a kernel, of norm sqrt(k(x,x)), move within a box.

Derivatives of kernels in x.

scikit-learn's kernels know their derivatives in the hyperparameters; these are the ones in x. They
cover all kernels whose formulas are known here, on all inputs or on some, and their sums, products
and whole powers.

Derivatives of the functions in a kernel's space.

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
from typing import NamedTuple

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

from kernelbounds.arrays import EPS, Array
from kernelbounds.errors import InputError
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.stationary import (
    Profile,
    differences,
    in_length_scales,
    is_stationary,
    length_scales,
    profile,
    squares,
)
from kernelbounds.kernels.values import SQUARES, cross, diagonal, evaluation_error


def differentiable(kernel: Kernel) -> bool:
    """Whether gradients, and how far features move, are known."""
    if type(kernel) in (Sum, Product):
        return differentiable(kernel.k1) and differentiable(kernel.k2)
    if type(kernel) is Exponentiation:
        whole = float(kernel.exponent).is_integer() and kernel.exponent >= 1
        return differentiable(kernel.kernel) and whole
    if type(kernel) is OnInputs:
        return differentiable(kernel.kernel)
    return is_stationary(kernel) or type(kernel) in (DotProduct, ConstantKernel)


def pull_back(kernel: Kernel, points: Array, centres: Array, weights: Array) -> Array:
    """sum_j w_ij grad_x k(x_i, z_j) for points x_i (m, d), centres z_j (n, d), weights (m, n)."""
    if type(kernel) is Sum:
        return pull_back(kernel.k1, points, centres, weights) + pull_back(
            kernel.k2, points, centres, weights
        )
    if type(kernel) is Product:
        first, second = cross(kernel.k1, points, centres), cross(kernel.k2, points, centres)
        return pull_back(kernel.k1, points, centres, weights * second) + pull_back(
            kernel.k2, points, centres, weights * first
        )
    if type(kernel) is Exponentiation:
        p, inner = kernel.exponent, cross(kernel.kernel, points, centres)
        return pull_back(kernel.kernel, points, centres, weights * (p * inner ** (p - 1)))
    if type(kernel) is OnInputs:
        seen = kernel.select(points), kernel.select(centres)
        return _spread(kernel, points, pull_back(kernel.kernel, *seen, weights))
    if type(kernel) is ConstantKernel:
        return np.zeros_like(points)
    if type(kernel) is DotProduct:
        return np.asarray(weights @ centres)
    squared, factor = squares(kernel, points, centres)
    slopes = weights * profile(kernel).slope(factor * squared)
    # One coordinate after the other: a matrix product around a common origin would be faster, and
    # lose digits where the points are thousands of length scales apart.
    columns = [
        np.vecdot(slopes, differences(kernel, points, centres, axis))
        for axis in range(points.shape[1])
    ]
    return np.asarray(np.column_stack(columns) / length_scales(kernel, points.shape[1]) ** 2)


def diagonal_gradient(kernel: Kernel, points: Array) -> Array:
    """grad_x k(x, x) at points (m, d)."""
    if type(kernel) is Sum:
        return diagonal_gradient(kernel.k1, points) + diagonal_gradient(kernel.k2, points)
    if type(kernel) is Product:
        first, second = (diagonal(k, points)[:, None] for k in (kernel.k1, kernel.k2))
        return second * diagonal_gradient(kernel.k1, points) + first * diagonal_gradient(
            kernel.k2, points
        )
    if type(kernel) is Exponentiation:
        p, inner = kernel.exponent, diagonal(kernel.kernel, points)[:, None]
        return np.asarray(p * inner ** (p - 1) * diagonal_gradient(kernel.kernel, points))
    if type(kernel) is OnInputs:
        return _spread(kernel, points, diagonal_gradient(kernel.kernel, kernel.select(points)))
    if type(kernel) is DotProduct:
        return 2 * points
    return np.zeros_like(points)


def _spread(kernel: OnInputs, points: Array, gradients: Array) -> Array:
    """Gradients in the selected inputs as gradients in all of them."""
    spread = np.zeros_like(points)
    spread[:, kernel.inputs] = gradients
    return spread


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


class Features(NamedTuple):
    """Features phi(x) of the points x = c + h in boxes with centres c, from above; (m,) each."""

    size: Array  # max |phi(x)|
    moved: Array  # max |phi(x) - phi(c)|
    bent: Array  # max |phi(x) - phi(c) - D phi(c) h|


def features_in_boxes(kernel: Kernel, centres: Array, half_widths: Array) -> Features:
    """How large features get in boxes, and how far they move; centres and half widths (m, d)."""
    if type(kernel) in (Sum, Product):
        one = features_in_boxes(kernel.k1, centres, half_widths)
        two = features_in_boxes(kernel.k2, centres, half_widths)
        if type(kernel) is Product:
            return _product(one, two)
        return Features(*(np.hypot(a, b) for a, b in zip(one, two, strict=True)))
    if type(kernel) is Exponentiation:
        return _power(features_in_boxes(kernel.kernel, centres, half_widths), int(kernel.exponent))
    if type(kernel) is OnInputs:
        seen = kernel.select(centres), kernel.select(half_widths)
        return features_in_boxes(kernel.kernel, *seen)
    zero = np.zeros(len(centres))
    if type(kernel) is ConstantKernel:
        return Features(zero + np.sqrt(kernel.constant_value), zero, zero)
    if type(kernel) is DotProduct:
        largest = np.linalg.norm(np.abs(centres) + half_widths, axis=1)
        return Features(
            np.hypot(largest, kernel.sigma_0), np.linalg.norm(half_widths, axis=1), zero
        )
    return _stationary(kernel, half_widths)


def _stationary(kernel: Kernel, half_widths: Array) -> Features:
    """Of a stationary kernel, at distance r,

        |phi(x) - phi(c)|^2               =  2 (1 - kappa(r))
        |phi(x) - phi(c) - D phi(c) h|^2  =  2 (1 - kappa(r)) + 2 r kappa'(r) - kappa''(0) r^2,

    and both grow with r: the latter's derivative is 2 r (kappa''(r) - kappa''(0)), where
    -kappa'' is itself positive definite along a line and so largest at zero.
    """
    kappa, square = profile(kernel), in_length_scales(kernel, half_widths)
    # The differences cancel at small r. Each of their terms has an error of kappa's, or of kappa's
    # times the bend, and those of four operations.
    error = 2 * EPS * (4 + (evaluation_error(kernel, half_widths.shape[1]) or 0.0))
    one = np.ones(len(half_widths))
    moved = 2 * kappa.drop(np.minimum(square, kappa.monotone**2)) + error
    if np.isinf(kappa.bend):
        return Features(one, np.sqrt(moved), one * np.inf)
    bent = 2 * kappa.drop(square) + 2 * square * kappa.slope(square) + kappa.bend * square
    bent += 2 * error * (1 + kappa.bend * square)
    return Features(one, np.sqrt(moved), np.sqrt(np.maximum(bent, 0.0)))


def _power(base: Features, exponent: int) -> Features:
    """By squaring, since the product is associative: a power of a million is twenty squares."""
    if exponent == 1:
        return base
    root = _power(base, exponent // 2)
    square = _product(root, root)
    return _product(square, base) if exponent % 2 else square


def _product(one: Features, two: Features) -> Features:
    """phi = phi_1 (x) phi_2, by the product rule."""
    return Features(
        one.size * two.size,
        one.moved * two.size + one.size * two.moved,
        one.bent * two.size + one.size * two.bent + one.moved * two.moved,
    )
