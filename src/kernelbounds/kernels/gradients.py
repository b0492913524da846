"""Derivatives of kernels in x.

scikit-learn's kernels know their derivatives in the hyperparameters; these are the ones in x. They
cover all kernels whose formulas are known here, on all inputs or on some, and their sums, products
and whole powers.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Product,
    Sum,
)

from kernelbounds.arrays import Array
from kernelbounds.kernels.distances import differences, length_scales, squares
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.stationary import is_stationary, profile
from kernelbounds.kernels.values import cross, diagonal


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
