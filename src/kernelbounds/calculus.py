"""Derivatives of kernels in x, and how far features move within a box.

=============  ==================  ==========================================================
code           symbol              meaning
=============  ==================  ==========================================================
``drop``       1 - kappa(r)        of a stationary kernel at scaled distance r; kappa(0) = 1
``slope``      kappa'(r) / r       so that the gradient of kappa(|x - z|) is slope (x - z)
``bend``       -kappa''(0)         infinite where the kernel is not differentiable enough
phi(x)         k(., x)             the feature of x, a vector of norm sqrt(k(x,x))
=============  ==================  ==========================================================

scikit-learn's kernels know their derivatives in the hyperparameters; these are the ones in x.
They cover all of its kernels and their sums, products and integer powers. Others are not
differentiable here, which :func:`differentiable` tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from kernelbounds import kernels
from kernelbounds.arrays import Array

EPS = float(np.finfo(np.float64).eps)


def differentiable(kernel: Kernel) -> bool:
    """Whether the functions of this module know the kernel."""
    if type(kernel) in (Sum, Product):
        return differentiable(kernel.k1) and differentiable(kernel.k2)
    if type(kernel) is Exponentiation:
        return differentiable(kernel.kernel) and _is_whole(kernel.exponent)
    return type(kernel) in (*_RADIAL, DotProduct, ConstantKernel)


def pull_back(kernel: Kernel, points: Array, centres: Array, weights: Array) -> Array:
    """sum_j w_ij grad_x k(x_i, z_j) for points x_i (m, d), centres z_j (n, d), weights (m, n)."""
    if type(kernel) is Sum:
        return pull_back(kernel.k1, points, centres, weights) + pull_back(
            kernel.k2, points, centres, weights
        )
    if type(kernel) is Product:
        first = kernels.cross(kernel.k1, points, centres)
        second = kernels.cross(kernel.k2, points, centres)
        return pull_back(kernel.k1, points, centres, weights * second) + pull_back(
            kernel.k2, points, centres, weights * first
        )
    if type(kernel) is Exponentiation:
        p, inner = kernel.exponent, kernels.cross(kernel.kernel, points, centres)
        return pull_back(kernel.kernel, points, centres, weights * (p * inner ** (p - 1)))
    if type(kernel) is ConstantKernel:
        return np.zeros_like(points)
    if type(kernel) is DotProduct:
        return np.asarray(weights @ centres)
    radial, scale = _radial(kernel)
    # Differences of coordinates are taken as a matrix product, around a common origin.
    origin = points.mean(axis=0)
    x, z = (points - origin) / scale, (centres - origin) / scale
    slopes = weights * radial.slope(cdist(x, z))
    return np.asarray((slopes.sum(axis=1)[:, None] * x - slopes @ z) / scale)


def diagonal_gradient(kernel: Kernel, points: Array) -> Array:
    """grad_x k(x, x) at points (m, d)."""
    if type(kernel) is Sum:
        return diagonal_gradient(kernel.k1, points) + diagonal_gradient(kernel.k2, points)
    if type(kernel) is Product:
        first, second = (kernels.diagonal(k, points)[:, None] for k in (kernel.k1, kernel.k2))
        return second * diagonal_gradient(kernel.k1, points) + first * diagonal_gradient(
            kernel.k2, points
        )
    if type(kernel) is Exponentiation:
        p, inner = kernel.exponent, kernels.diagonal(kernel.kernel, points)[:, None]
        return np.asarray(p * inner ** (p - 1) * diagonal_gradient(kernel.kernel, points))
    if type(kernel) is DotProduct:
        return 2 * points
    return np.zeros_like(points)


class Features(NamedTuple):
    """Features phi(x) of the points x = c + h in boxes with centres c, from above; (m,) each."""

    size: Array  # max |phi(x)|
    moved: Array  # max |phi(x) - phi(c)|
    bent: Array  # max |phi(x) - phi(c) - D phi(c) h|


def features_in_boxes(kernel: Kernel, centres: Array, half_widths: Array) -> Features:
    """How large features get in boxes, and how far they move; centres and half widths (m, d).

    For a stationary kernel, at scaled distance r,

        |phi(x) - phi(c)|^2               =  2 (1 - kappa(r))
        |phi(x) - phi(c) - D phi(c) h|^2  =  2 (1 - kappa(r)) + 2 r kappa'(r) - kappa''(0) r^2,

    and both grow with r: the latter's derivative is 2 r (kappa''(r) - kappa''(0)), where
    -kappa'' is itself positive definite along a line and so largest at zero.
    """
    if type(kernel) in (Sum, Product):
        one = features_in_boxes(kernel.k1, centres, half_widths)
        two = features_in_boxes(kernel.k2, centres, half_widths)
        if type(kernel) is Product:
            return _product(one, two)
        return Features(*(np.hypot(a, b) for a, b in zip(one, two, strict=True)))
    if type(kernel) is Exponentiation:
        base = features_in_boxes(kernel.kernel, centres, half_widths)
        result = base
        for _ in range(int(kernel.exponent) - 1):
            result = _product(result, base)
        return result
    zero = np.zeros(len(centres))
    if type(kernel) is ConstantKernel:
        return Features(zero + np.sqrt(kernel.constant_value), zero, zero)
    if type(kernel) is DotProduct:
        largest = np.linalg.norm(np.abs(centres) + half_widths, axis=1)
        return Features(
            np.hypot(largest, kernel.sigma_0), np.linalg.norm(half_widths, axis=1), zero
        )
    radial, scale = _radial(kernel)
    r = np.linalg.norm(half_widths / scale, axis=1)
    # The last terms are for rounding, where the differences cancel.
    moved = 2 * radial.drop(np.minimum(r, radial.monotone)) + radial.error
    if np.isinf(radial.bend):
        return Features(zero + 1, np.sqrt(moved), zero + np.inf)
    square = r * r
    bent = 2 * radial.drop(r) + 2 * square * radial.slope(r) + radial.bend * square
    bent += 2 * radial.error * (1 + radial.bend * square)
    return Features(zero + 1, np.sqrt(moved), np.sqrt(np.maximum(bent, 0.0)))


def _product(one: Features, two: Features) -> Features:
    """phi = phi_1 (x) phi_2, by the product rule."""
    return Features(
        one.size * two.size,
        one.moved * two.size + one.size * two.moved,
        one.bent * two.size + one.size * two.bent + one.moved * two.moved,
    )


class Radial(NamedTuple):
    """A stationary kernel as a function of the scaled distance."""

    drop: Callable[[Array], Array]  # 1 - kappa(r), to full relative precision or ``error``
    slope: Callable[[Array], Array]
    bend: float
    error: float = 8 * EPS
    monotone: float = np.inf  # the drop grows up to this distance, and never beyond later


def _radial(kernel: Kernel) -> tuple[Radial, Array]:
    """The profile of a stationary kernel and its length scales."""
    if type(kernel) is ExpSineSquared:
        return _RADIAL[ExpSineSquared](kernel), np.ones(1)
    return _RADIAL[type(kernel)](kernel), np.atleast_1d(kernel.length_scale)


def _rbf(kernel: Kernel) -> Radial:
    return Radial(lambda r: -np.expm1(-r * r / 2), lambda r: -np.exp(-r * r / 2), 1.0)


def _matern(kernel: Kernel) -> Radial:
    """C z^nu K_nu(z) with z = sqrt(2 nu) r, whose slope is -2 nu C z^(nu - 1) K_(nu - 1)(z)."""
    nu = float(kernel.nu)
    if np.isinf(nu):
        return _rbf(kernel)
    if nu == 1.5:
        a = np.sqrt(3)
        return Radial(
            lambda r: 1 - (1 + a * r) * np.exp(-a * r), lambda r: -3 * np.exp(-a * r), 3.0
        )
    if nu == 2.5:
        a = np.sqrt(5)
        return Radial(
            lambda r: 1 - (1 + a * r * (1 + a * r / 3)) * np.exp(-a * r),
            lambda r: -5 / 3 * (1 + a * r) * np.exp(-a * r),
            5 / 3,
        )
    factor = 2 ** (1 - nu) / gamma(nu)

    def power_times_bessel(order: float, r: Array) -> Array:
        # At r = 0 a tiny z gives the limit, or a finite stand-in where there is none.
        z = np.maximum(np.sqrt(2 * nu) * r, 1e-12)
        return np.asarray(z**order * kv(order, z))

    return Radial(
        lambda r: np.maximum(1 - factor * power_times_bessel(nu, r), 0.0),
        lambda r: -2 * nu * factor * power_times_bessel(nu - 1, r),
        nu / (nu - 1) if nu > 1 else np.inf,
        error=1e4 * EPS,  # of Bessel functions
    )


def _rational_quadratic(kernel: Kernel) -> Radial:
    a = float(kernel.alpha)
    return Radial(
        lambda r: -np.expm1(-a * np.log1p(r * r / (2 * a))),
        lambda r: -np.exp(-(a + 1) * np.log1p(r * r / (2 * a))),
        1.0,
    )


def _periodic(kernel: Kernel) -> Radial:
    """exp(-2 sin^2(pi r / p) / l^2), with the distance not scaled."""
    period, square = float(kernel.periodicity), float(kernel.length_scale) ** 2

    def exponent(r: Array) -> Array:
        return np.asarray(-2 * np.sin(np.pi * r / period) ** 2 / square)

    bend = 4 * np.pi**2 / (period**2 * square)
    return Radial(
        lambda r: -np.expm1(exponent(r)),
        lambda r: -bend * np.sinc(2 * r / period) * np.exp(exponent(r)),
        bend,
        monotone=period / 2,
    )


_RADIAL: dict[type, Callable[[Kernel], Radial]] = {
    RBF: _rbf,
    Matern: _matern,
    RationalQuadratic: _rational_quadratic,
    ExpSineSquared: _periodic,
}


def _is_whole(exponent: float) -> bool:
    return float(exponent).is_integer() and exponent >= 1
