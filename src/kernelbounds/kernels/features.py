"""How large features phi(x) = k(., x) get in boxes of x, and how far they move there.

They bound how far any function of a kernel's space moves in a box: by at most its norm times as
much. All are upper bounds, for the kernels whose derivatives are known (``derivatives.py``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Product,
    Sum,
)

from kernelbounds.arrays import EPS, Array
from kernelbounds.kernels.levels import Levels
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.stationary import length_scales, profile
from kernelbounds.kernels.values import evaluation_error


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
