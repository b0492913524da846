"""The Matern kernels as functions of the distance, for any smoothness nu.

With z = sqrt(2 nu) r for a distance r in length scales, and the Bessel function K_nu,

    kappa(r) = f_nu(z) = 2^(1 - nu) / Gamma(nu) z^nu K_nu(z),   f_nu(0) = 1.

The recurrence of Bessel functions becomes one of positive terms without large or small factors,

    f_(nu + 1)(z) = f_nu(z) + z^2 / (4 nu (nu - 1)) f_(nu - 1)(z)   for nu > 1,

and their derivatives give kappa'(r) / r = -nu / (nu - 1) f_(nu - 1)(z). The names of the methods
are those of :class:`~kernelbounds.kernels.stationary.Profile`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gamma, kv

from kernelbounds.arrays import Array

# The largest error of _by_quadrature in units of u. Measured: at most 13 for nu from 0.001 to 50
# and z from 1e-150 to 700 (test_kernel_errors.py); this is twice as much. From SMALLEST_Z on it is
# also relative to the value, beyond what the error of z does: at most 11 was measured, for nu from
# 1e-15 to 49 (test_derivatives.py).
BESSEL_ERROR = 26.0
# Beyond this z, exp(-z) times any polynomial met here is zero; up to it, powers do not overflow.
LARGEST_Z = 1e3
# Below this z, f_nu(z) = 1 - Gamma(1 - nu) / Gamma(1 + nu) (z / 2)^(2 nu), as further terms are of
# order z^2, and it is 1 for nu >= 0.9, both to within 3e-17.
SMALLEST_Z = 1e-10
# SciPy's Bessel functions of orders up to 1 lose two digits just below this z, and none above.
LARGEST_Z_OF_QUADRATURE = 2.0
# The trapezoidal rule has a relative error of order exp(-pi^2 / step) = 3e-20 at small z, and
# exp(2) times that at the largest z for which it is used.
QUADRATURE_STEP = 0.22


@dataclass(frozen=True)
class MaternProfile:
    """f_nu(sqrt(2 nu) r) for a finite nu."""

    nu: float
    monotone: float = np.inf

    @property
    def bend(self) -> float:
        """nu / (nu - 1)."""
        return self.nu / (self.nu - 1) if self.nu > 1 else math.inf

    def value(self, squares: Array, factor: float = 1.0) -> Array:
        """f_nu(sqrt(2 nu s))."""
        squares *= 2 * self.nu * factor
        return matern(self.nu, squares)

    def slope(self, s: Array) -> Array:
        """-nu / (nu - 1) f_(nu - 1), or -2 nu 2^(1 - nu) / Gamma(nu) z^(nu - 1) K_(1 - nu)(z).

        The latter is not bounded. At z = 0, where it meets a difference that is zero, a large
        finite number stands for it.
        """
        if self.nu > 1:
            return np.asarray(-self.bend * matern(self.nu - 1, 2 * self.nu * s))
        z = np.maximum(np.sqrt(2 * self.nu * s), 1e-150)
        factor = 2 * self.nu * 2 ** (1 - self.nu) / gamma(self.nu)
        return np.asarray(-factor * z ** (self.nu - 1) * kv(1 - self.nu, z))

    def rounding(self, s: Array) -> Array:
        """Errors of the formula, and 1.5 r |kappa'| of z: u / 2 for 2 nu s, and u for its root.

        In Horner's scheme a term of degree k meets 2 k + 1 errors, and one more if its coefficient
        is rounded and not the leading one, as happens for nu > 5/2. The sum of k times the terms
        is z (kappa + dkappa/dz). Two more errors are of exp, and one of the product with it.
        """
        sensitivity = s * np.abs(self.slope(s))
        if not _is_half_integer(self.nu):
            return np.asarray(BESSEL_ERROR + 1.5 * sensitivity)
        z, kappa = np.sqrt(2 * self.nu * s), self.value(s.copy())
        counted = 4 if self.nu <= 2.5 else 5
        return np.asarray((counted + 2 * z) * kappa - 0.5 * sensitivity)

    def slope_change(self, s: Array) -> Array:
        """nu / (nu - 1) z |f'_(nu - 1)(z)| / 2."""
        below, square = MaternProfile(self.nu - 1), self.bend * s
        return np.asarray(0.5 * self.bend * square * np.abs(below.slope(square)))

    def slope_rounding(self, s: Array) -> Array:
        """nu / (nu - 1) times the error of f_(nu - 1), and 2 |slope| for the factor and its use.

        nu - 1 is exact.
        """
        below, slope = MaternProfile(self.nu - 1), np.abs(self.slope(s))
        if _is_half_integer(below.nu):
            return np.asarray(self.bend * below.rounding(self.bend * s) + 2 * slope)
        formula = np.where(2 * self.nu * s < SMALLEST_Z**2, self.bend, slope)
        return np.asarray(BESSEL_ERROR * formula + 3 * self.slope_change(s) + 2 * slope)


def matern(nu: float, square: Array) -> Array:
    """f_nu(z) from z^2, which is overwritten."""
    if _is_half_integer(nu):
        return _closed_form(round(nu - 0.5), square)
    return _by_quadrature(nu, np.sqrt(square, out=square))


def _is_half_integer(nu: float) -> bool:
    return (nu - 0.5).is_integer()


def _closed_form(p: int, square: Array) -> Array:
    """exp(-z) times the polynomial of :func:`_coefficients`, for nu = p + 1/2."""
    z = np.sqrt(square)
    if p > 2:  # Up to z^2, powers of distances do not overflow.
        np.minimum(z, LARGEST_Z, out=z)
    if p == 0:
        return np.asarray(np.exp(np.negative(z, out=z), out=z))
    leading, second, *others = reversed(_coefficients(p))
    values = np.multiply(z, leading, out=square)
    values += second
    for coefficient in others:
        values *= z
        values += coefficient
    values *= np.exp(np.negative(z, out=z), out=z)
    return values


@lru_cache
def _coefficients(p: int) -> tuple[float, ...]:
    """p! / (2p)! (2p - k)! 2^k / (k! (p - k)!) for the powers z^k, each rounded once."""
    f = math.factorial
    return tuple((f(p) * f(2 * p - k) * 2**k) / (f(2 * p) * f(k) * f(p - k)) for k in range(p + 1))


def _by_quadrature(nu: float, z: Array) -> Array:
    """f_nu(z) from orders mu in (0, 1] and mu + 1, by the recurrence."""
    steps = math.ceil(nu) - 1
    mu = nu - steps
    tiny, half = z < SMALLEST_Z, 0.5 * z
    np.clip(z, SMALLEST_Z, LARGEST_Z, out=z)
    of_mu, *of_rest = _bessel((mu, 1 - mu) if steps else (mu,), z)
    values = 2 ** (1 - mu) / gamma(mu) * z**mu * of_mu
    if steps:
        # K_(mu + 1) = (2 mu / z) K_mu + K_(1 - mu)
        previous = values
        values = previous + 2**-mu / gamma(mu + 1) * z ** (mu + 1) * of_rest[0]
        square = z * z
        for order in mu + np.arange(1.0, steps):
            previous, values = values, values + square * (previous / (4 * order * (order - 1)))
    lost = gamma(1 - nu) / gamma(1 + nu) * half[tiny] ** (2 * nu) if nu < 0.9 else 0.0
    values[tiny] = 1 - lost
    return np.asarray(values)


def _bessel(orders: tuple[float, ...], z: Array) -> tuple[Array, ...]:
    """K of orders in [0, 1], with about 14 digits or more relative to the value."""
    values = tuple(np.empty_like(z) for _ in orders)
    near = z <= LARGEST_Z_OF_QUADRATURE
    if near.any():
        for whole, part in zip(values, _trapezoidal(orders, z[near]), strict=True):
            whole[near] = part
    for whole, order in zip(values, orders, strict=True):
        whole[~near] = kv(order, z[~near])
    return values


def _trapezoidal(orders: tuple[float, ...], z: Array) -> list[Array]:
    """K_mu(z) = int_0^inf exp(-z cosh t) cosh(mu t) dt."""
    sums = [0.5 * np.exp(-z) for _ in orders]
    last = math.acosh(40 / float(z.min()))  # exp(-40) is less than a rounding error
    for t in QUADRATURE_STEP * np.arange(1, math.ceil(last / QUADRATURE_STEP) + 1):
        factor = np.exp(-math.cosh(t) * z)
        for i, order in enumerate(orders):
            sums[i] += math.cosh(order * t) * factor
    return [QUADRATURE_STEP * total for total in sums]
