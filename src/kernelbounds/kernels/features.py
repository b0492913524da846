"""How far the features phi(x) = k(., x) of a kernel, of norm sqrt(k(x,x)), move within a box."""

from __future__ import annotations

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
from kernelbounds.kernels.distances import in_length_scales
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.precision import evaluation_error
from kernelbounds.kernels.stationary import profile


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
