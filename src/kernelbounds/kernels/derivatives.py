"""Derivatives of kernels in x, and of the functions in their spaces.

scikit-learn's kernels know their derivatives in the hyperparameters; these are the ones in x. They
cover all kernels whose formulas are known here, on all inputs or on some, and their sums, products
and whole powers.

With the features phi(x) = k(., x), the derivative of a function f in coordinate a is the inner
product

    df/dx_a (x) = <f, d_a phi(x)>,

so that bounds on it need only

=======================  ======================  =============================================
code                     symbol                  value
=======================  ======================  =============================================
``derivative_cross``     <d_a phi(x), phi(z)>    dk(x, z) / dx_a
``derivative_diagonal``  |d_a phi(x)|^2          d^2 k(x, x') / dx_a dx'_a at x' = x
=======================  ======================  =============================================

For a stationary kernel these are kappa'(r) / r (x_a - z_a) / l_a^2 and -kappa''(0) / l_a^2. By
Cauchy and Schwarz |dk(x, z) / dx_a| <= |d_a phi(x)| sqrt(k(z, z)). Errors are relative to the
right-hand side, because on the left the terms of the product rule may cancel. On the right they do
not: k(x, x) is constant or grows with |x_a| for all kernels here, so that

    |d_a (phi_1 (x) phi_2)|^2 = |d_a phi_1|^2 k_2 + k_1 |d_a phi_2|^2 + (dk_1/dx_a) (dk_2/dx_a) / 2,

in which k_1 and k_2 are taken at (x, x), has no negative term.

How large the features get in a box of x, and how far they move there, bounds how far any function
of the space moves in it: by at most its norm times as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
from kernelbounds.kernels.levels import Levels
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.stationary import (
    Profile,
    differences,
    is_stationary,
    length_scales,
    profile,
    squares,
)
from kernelbounds.kernels.values import (
    SQUARED_DISTANCES,
    cross,
    diagonal,
    evaluation_error,
    nested_kernels,
)

# Kernels that have gradients, besides stationary ones and whole powers.
DIFFERENTIABLE = (DotProduct, ConstantKernel, Levels, OnInputs, Sum, Product)


def differentiable(kernel: Kernel) -> bool:
    """Whether gradients of the kernel are known, and how far its features move."""
    return all(
        float(part.exponent).is_integer() and part.exponent >= 1
        if type(part) is Exponentiation
        else is_stationary(part) or type(part) in DIFFERENTIABLE
        for part in nested_kernels(kernel)
    )


def has_derivatives(kernel: Kernel) -> bool:
    """Whether all functions in the space are known to have derivatives: Matern needs nu > 1."""
    parts = nested_kernels(kernel)
    rough = any(is_stationary(part) and math.isinf(profile(part).bend) for part in parts)
    return differentiable(kernel) and not rough


def pull_back(kernel: Kernel, points: Array, centres: Array, weights: Array) -> Array:
    """sum_j w_ij grad_x k(x_i, z_j) for points x_i (m, d), centres z_j (n, d), weights (m, n)."""
    if not is_stationary(kernel):
        parts = [np.vecdot(weights, part) for part in _partials(kernel, points, centres)]
        return np.column_stack(parts)
    # The slopes are the same for all coordinates, and so are their products with the weights.
    slopes, dim = _slopes(kernel, points, centres), points.shape[1]
    slopes *= weights
    moved = (differences(kernel, points, centres, axis) for axis in range(dim))
    pulled = np.column_stack([np.vecdot(slopes, one) for one in moved])
    return np.asarray(pulled / length_scales(kernel, dim) ** 2)


def derivative_cross(
    kernel: Kernel, points: Array, axes: NDArray[np.intp], centres: Array
) -> Array:
    """dk(x_i, z_j) / dx_a with a = axes_i, (m, n), at points (m, d), axes (m,), centres (n, d)."""
    _require_derivatives(kernel, points.shape[1], axes)
    values = np.empty((len(points), len(centres)))
    for axis, part in enumerate(_partials(kernel, points, centres)):
        values[axes == axis] = part[axes == axis]
    return values


def _partials(kernel: Kernel, points: Array, centres: Array) -> Iterator[Array]:
    """dk(x_i, z_j) / dx_a, (m, n), for one coordinate a after the other.

    A matrix product around a common origin would be faster, and lose digits where the points are
    thousands of length scales apart.
    """
    if type(kernel) in (Sum, Product):
        both = zip(*(_partials(k, points, centres) for k in (kernel.k1, kernel.k2)), strict=True)
        if type(kernel) is Sum:
            yield from (one + two for one, two in both)
        else:
            k1, k2 = (cross(k, points, centres) for k in (kernel.k1, kernel.k2))
            yield from (one * k2 + k1 * two for one, two in both)
    elif type(kernel) is Exponentiation:
        p, base = float(kernel.exponent), cross(kernel.kernel, points, centres)
        outer = p * base ** (p - 1)
        yield from (outer * inner for inner in _partials(kernel.kernel, points, centres))
    elif type(kernel) is OnInputs:
        inner = _partials(kernel.kernel, kernel.select(points), kernel.select(centres))
        seen = dict(zip(kernel.inputs, inner, strict=True))
        zero = np.zeros((len(points), len(centres)))
        yield from (seen.get(axis, zero) for axis in range(points.shape[1]))
    elif type(kernel) in (DotProduct, ConstantKernel, Levels):
        slopes = centres.T if type(kernel) is DotProduct else np.zeros_like(centres.T)
        yield from (np.broadcast_to(one, (len(points), len(centres))) for one in slopes)
    else:
        slopes, dim = _slopes(kernel, points, centres), points.shape[1]
        scales = np.broadcast_to(length_scales(kernel, dim), dim)
        for axis, scale in enumerate(scales):
            yield slopes * differences(kernel, points, centres, axis) / scale**2


def _slopes(kernel: Kernel, points: Array, centres: Array) -> Array:
    """kappa'(r) / r of a stationary kernel, (m, n)."""
    squared, factor = squares(kernel, points, centres)
    squared *= factor
    return profile(kernel).slope(squared)


def diagonal_gradient(kernel: Kernel, points: Array) -> Array:
    """grad_x k(x, x) at points (m, d)."""
    with np.errstate(invalid="ignore"):  # infinite norms of derivatives, which are not asked for
        return _on_diagonal(kernel, points)[0]


def derivative_diagonal(kernel: Kernel, points: Array, axes: NDArray[np.intp]) -> Array:
    """d^2 k(x, x') / dx_a dx'_a at x' = x = x_i with a = axes_i, (m,)."""
    _require_derivatives(kernel, points.shape[1], axes)
    return _on_diagonal(kernel, points)[1][np.arange(len(points)), axes]


def _on_diagonal(kernel: Kernel, points: Array) -> tuple[Array, Array]:
    """dk(x, x) / dx_a and |d_a phi(x)|^2 for all coordinates a, (m, d) each."""
    if type(kernel) in (Sum, Product):
        (steep1, one), (steep2, two) = (_on_diagonal(k, points) for k in (kernel.k1, kernel.k2))
        if type(kernel) is Sum:
            return steep1 + steep2, one + two
        k1, k2 = (diagonal(k, points)[:, None] for k in (kernel.k1, kernel.k2))
        return steep1 * k2 + k1 * steep2, one * k2 + k1 * two + 0.5 * steep1 * steep2
    if type(kernel) is Exponentiation:
        p, base = float(kernel.exponent), diagonal(kernel.kernel, points)[:, None]
        steep, inner = _on_diagonal(kernel.kernel, points)
        outer, half = p * base ** (p - 1), 0.5 * steep
        more = p * (p - 1) * base ** max(p - 2, 0.0) * (half * half)  # zero for p = 1
        return outer * steep, outer * inner + more
    if type(kernel) is OnInputs:
        spread = np.zeros((2, *points.shape))
        spread[:, :, kernel.inputs] = _on_diagonal(kernel.kernel, kernel.select(points))
        return spread[0], spread[1]
    if type(kernel) is DotProduct:
        return 2 * points, np.ones_like(points)
    zero = np.zeros_like(points)
    if type(kernel) in (ConstantKernel, Levels):
        return zero, zero
    return zero, zero + profile(kernel).bend / length_scales(kernel, points.shape[1]) ** 2


def derivative_error(kernel: Kernel, dim: int) -> float:
    """Bound how far computed derivatives are from the exact ones, in units of eps.

    This is a bound, for all points of a dimension, on the error of dk(x, z) / dx_a relative to
    |d_a phi(x)| sqrt(k(z, z)), and on that of |d_a phi(x)|^2 relative to itself. With C for this
    bound and E for that of the values (``values.py``),

    * for a stationary kernel a relative error (d + 5) u of s changes the slope by as much times
      ``slope_change``; to this come ``slope_rounding``, and 4 u: for the difference, for l^2, for
      applying both. |x_a - z_a| is at most r length scales;
    * for an inner product and for a constant nothing is rounded;
    * a sum has the larger C of its terms and a rounding error, by Cauchy and Schwarz;
    * a product has C_1 + E_2 from one term and E_1 + C_2 from the other, and rounding errors. The
      third term of its squared norm has C_1 + C_2, as gradients of k(x, x) are no less precise;
    * a power p has (p - 1) E + C and rounding errors from p k^(p - 1) dk/dx_a, relative to
      p |d_a phi| k(x, x)^((p - 1) / 2), which is at most sqrt(p) times the norm of its derivative.
      One term of that norm squared has (p - 2) E + 2 C.
    """
    _require_derivatives(kernel)
    return _error(kernel, dim)


def _require_derivatives(
    kernel: Kernel, dim: int = 0, axes: NDArray[np.intp] | Sequence[int] = ()
) -> None:
    if jumps := category_inputs(kernel, dim) & set(map(int, axes)):
        raise InputError(
            f"there is no derivative along coordinate {min(jumps)}, which is a category for "
            f"{kernel}; ask for the difference of two levels."
        )
    if not has_derivatives(kernel):
        raise InputError(
            f"functions in the space of {kernel} are not known to have derivatives; use a kernel "
            "of scikit-learn, with nu above 1 for Matern, or sums, products and whole powers of "
            "such kernels."
        )


def category_inputs(kernel: Kernel, dim: int) -> set[int]:
    """The coordinates that are categories for the kernel, along which functions may jump."""
    if type(kernel) in (Sum, Product):
        return category_inputs(kernel.k1, dim) | category_inputs(kernel.k2, dim)
    if type(kernel) is Exponentiation:
        return category_inputs(kernel.kernel, dim)
    if type(kernel) is OnInputs:
        return {kernel.inputs[at] for at in category_inputs(kernel.kernel, len(kernel.inputs))}
    return set(range(dim)) if type(kernel) is Levels else set()


def _error(kernel: Kernel, dim: int) -> float:
    # The error of the values is known for all kernels that have derivatives.
    if type(kernel) is Sum:
        return max(_error(kernel.k1, dim), _error(kernel.k2, dim)) + 0.5
    if type(kernel) is Product:
        both = (kernel.k1, kernel.k2)
        return sum(_error(k, dim) + (evaluation_error(k, dim) or 0.0) for k in both) + 1.5
    if type(kernel) is Exponentiation:
        p, base = float(kernel.exponent), _error(kernel.kernel, dim)
        of_power = (p - 1) * (evaluation_error(kernel.kernel, dim) or 0.0)
        return max(math.sqrt(p) * (of_power + base + 2), of_power + 2 * base + 3)
    if type(kernel) is OnInputs:
        return _error(kernel.kernel, len(kernel.inputs))
    return _stationary_error(profile(kernel), dim) if is_stationary(kernel) else 0.0


@lru_cache(maxsize=64)
def _stationary_error(kappa: Profile, dim: int) -> float:
    s = np.minimum(SQUARED_DISTANCES, kappa.monotone**2)
    of_slope = (dim + 5) * kappa.slope_change(s) + kappa.slope_rounding(s)
    errors = np.sqrt(s / kappa.bend) * (of_slope + 4 * np.abs(kappa.slope(s)))
    # The bend has an error of at most 4 u, for periodic kernels, and its quotient with l^2 of 2 u.
    return max(1.01 * float(np.max(errors)) / 2, 3.0)


class Features(NamedTuple):
    """Upper bounds on features phi(x) of points x = c + h in boxes with centres c; (m,) each."""

    size: Array  # max |phi(x)|
    moved: Array  # max |phi(x) - phi(c)|
    bent: Array  # max |phi(x) - phi(c) - D phi(c) h|


def features_in_boxes(kernel: Kernel, centres: Array, half_widths: Array) -> Features:
    """Bound how large features get in boxes, and how far they move; centres, half widths (m, d)."""
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
    if type(kernel) is Levels:
        # |phi(x) - phi(c)|^2 = 2 (1 - rho) at all other levels, and the slopes D phi are zero.
        jump = math.sqrt(2 * (1 - kernel.correlation)) * (1 + 4 * EPS)
        moved = np.where(half_widths.any(axis=1), jump, 0.0)
        return Features(zero + 1, moved, moved)
    if type(kernel) is DotProduct:
        largest = np.linalg.norm(np.abs(centres) + half_widths, axis=1)
        return Features(
            np.hypot(largest, kernel.sigma_0), np.linalg.norm(half_widths, axis=1), zero
        )
    return _stationary_features(kernel, half_widths)


def _stationary_features(kernel: Kernel, half_widths: Array) -> Features:
    """Bound the features of a stationary kernel in boxes.

    At distance r from the centre,

        |phi(x) - phi(c)|^2               =  2 (1 - kappa(r))
        |phi(x) - phi(c) - D phi(c) h|^2  =  2 (1 - kappa(r)) + 2 r kappa'(r) - kappa''(0) r^2,

    and both grow with r: the latter's derivative is 2 r (kappa''(r) - kappa''(0)), where
    -kappa'' is itself positive definite along a line and so largest at zero.
    """
    scaled = half_widths / length_scales(kernel, half_widths.shape[1])
    kappa, square = profile(kernel), np.vecdot(scaled, scaled)
    # The differences cancel at small r. Each of their terms has the error of kappa, or that times
    # the bend, and those of four operations.
    error = 2 * EPS * (4 + (evaluation_error(kernel, half_widths.shape[1]) or 0.0))
    one = np.ones(len(half_widths))
    moved = 2 * (1 - kappa.value(np.minimum(square, kappa.monotone**2))) + error
    if np.isinf(kappa.bend):
        return Features(one, np.sqrt(moved), one * np.inf)
    bent = 2 * (1 - kappa.value(square.copy())) + square * (2 * kappa.slope(square) + kappa.bend)
    bent += 2 * error * (1 + kappa.bend * square)
    return Features(one, np.sqrt(moved), np.sqrt(np.maximum(bent, 0.0)))


def _power(base: Features, exponent: int) -> Features:
    """Bound the features of a power, by squaring: the product is associative, and powers large."""
    if exponent == 1:
        return base
    root = _power(base, exponent // 2)
    square = _product(root, root)
    return _product(square, base) if exponent % 2 else square


def _product(one: Features, two: Features) -> Features:
    """Bound the features phi = phi_1 (x) phi_2 of a product, by the product rule."""
    return Features(
        one.size * two.size,
        one.moved * two.size + one.size * two.moved,
        one.bent * two.size + one.size * two.bent + one.moved * two.moved,
    )
