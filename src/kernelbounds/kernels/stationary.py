"""Stationary kernels: functions kappa(r) of the distance r in length scales, with kappa(0) = 1.

==================  =============  ==========================================================
code                symbol         meaning
==================  =============  ==========================================================
``s``               r^2            the squared distance in length scales
``value``           kappa(r)       from squared distances and a factor that makes them ``s``
``slope``           kappa'(r) / r  so that the gradient of kappa(|x - z|) is slope (x - z)
``bend``            -kappa''(0)    infinite where the kernel is not differentiable enough
``rounding``        |error| / u    the error of ``value`` at an exact s; u = eps / 2
``slope_change``    s |dslope/ds|  how a relative error of s changes the slope
``slope_rounding``  |error| / u    the error of ``slope`` at an exact s
==================  =============  ==========================================================

All that is computed for a stationary kernel is computed from these: matrices, their precision,
gradients and their precision, and how far features move. ``slope_change`` and ``slope_rounding``
are for kernels of a finite bend only. ``exp`` and ``log1p`` are assumed to be right to one unit in
the last place, which is a relative 2 u. The Matern kernels have a file of their own, ``matern.py``.

To get distances, coordinates are subtracted as they stand: x - z is then right to half a unit in
its last digit, wherever the origin is. Divided by a length scale l first, x/l - z/l would be wrong
by eps |x| / l.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Kernel, Matern, RationalQuadratic

from kernelbounds.arrays import EPS, Array, two_sum
from kernelbounds.errors import InputError
from kernelbounds.kernels.matern import MaternProfile

STATIONARY = (RBF, Matern, RationalQuadratic, ExpSineSquared)
# With a smaller alpha, RationalQuadratic differs from 1 by less than 1e-22 at any distance between
# floats, and with this one nothing overflows.
SMALLEST_ALPHA = 1e-25


def length_scales(kernel: Kernel, dim: int) -> Array:
    """The units in which differences are measured, (1,) or (d,): length scales, or the period."""
    if type(kernel) is ExpSineSquared:
        if dim > 1:
            raise InputError(
                f"{kernel} is a kernel in one dimension only, and the points have {dim}: in more, "
                "a positive definite function of the distance has a limit, and a periodic one has "
                "none unless it is constant."
            )
        return np.array([float(kernel.periodicity)])
    scales = np.array(kernel.length_scale, dtype=np.float64, ndmin=1)
    if len(scales) not in (1, dim):
        raise InputError(
            f"{kernel} has {scales.size} length scales, but the points have {dim} dimensions."
        )
    return scales


def squares(kernel: Kernel, left: Array, right: Array) -> tuple[Array, float]:
    """Compute squared distances in length scales, (m, n), up to a factor, which comes second.

    The factor can be folded into a pass over the matrix that the caller needs anyway. The points
    are measured in powers of two near the length scales. That is exact, and keeps squares from
    underflowing unless a distance is below 1e-150 length scales.

    The relative error is (d + 5) u, the factor and its application included: u for a difference,
    which is squared, u for the square, (d - 1) u for the sum, 2 u for 1/l^2 and u for applying it.
    """
    scales = length_scales(kernel, left.shape[1])
    if len(scales) > 1:
        mantissas, exponents = np.frexp(scales)
        units = np.ldexp(1.0, -exponents)
        return cdist(left * units, right * units, "sqeuclidean", w=1 / mantissas**2), 1.0
    mantissa, exponent = math.frexp(scales[0])
    unit = math.ldexp(1.0, -exponent)
    if type(kernel) is ExpSineSquared:
        moved = unit * differences(kernel, left, right, 0)
        return moved * moved, 1 / mantissa**2
    return cdist(left * unit, right * unit, "sqeuclidean"), 1 / mantissa**2


def differences(kernel: Kernel, left: Array, right: Array, axis: int) -> Array:
    """x - z along one coordinate, (m, n), less the nearest multiple of a period."""
    x, z = left[:, axis, None], right[:, axis]
    if type(kernel) is ExpSineSquared:
        return _wrapped(x, z, float(kernel.periodicity))
    return np.asarray(x - z)


def _wrapped(x: Array, z: Array, period: float) -> Array:
    """x - z less the nearest multiple of the period, rounded once however large x and z are.

    x - z = high + low exactly, and each part is reduced exactly. Their sum is again split exactly
    into two parts and reduced, because low exceeds a period where floats near x are further apart
    than that.
    """
    high, low = two_sum(x, -z)
    high, low = two_sum(_nearest(high, period), _nearest(low, period))
    return np.asarray(_nearest(high, period) + low)


def _nearest(value: Array, period: float) -> Array:
    """The remainder in [-p/2, p/2], which is exact: both fmod and, by Sterbenz, x - p are."""
    value = np.fmod(value, period)
    return np.asarray(value - period * (value > period / 2) + period * (value < -period / 2))


class Profile(Protocol):
    """A stationary kernel as a function of the squared distance in length scales."""

    def __hash__(self) -> int:
        """Return equal numbers for equal profiles, whose errors are equal too."""

    @property
    def bend(self) -> float:
        """-kappa''(0)."""

    @property
    def monotone(self) -> float:
        """The distance up to which kappa falls; beyond it, kappa is nowhere smaller."""

    def value(self, squares: Array, factor: float = 1.0) -> Array:
        """kappa at s = factor * squares; the squares are overwritten."""

    def slope(self, s: Array) -> Array:
        """kappa'(r) / r."""

    def rounding(self, s: Array) -> Array:
        """The largest error of ``value`` at an exact s, in units of u."""

    def slope_change(self, s: Array) -> Array:
        """s |dslope/ds|."""

    def slope_rounding(self, s: Array) -> Array:
        """The largest error of ``slope`` at an exact s, in units of u."""


@dataclass(frozen=True)
class RBFProfile:
    """exp(-r^2 / 2)."""

    bend: float = 1.0
    monotone: float = np.inf

    def value(self, squares: Array, factor: float = 1.0) -> Array:
        """exp(-s / 2)."""
        squares *= -0.5 * factor
        return np.asarray(np.exp(squares, out=squares))

    def slope(self, s: Array) -> Array:
        """-exp(-s / 2)."""
        return np.asarray(-np.exp(-0.5 * s))

    def rounding(self, s: Array) -> Array:
        """2 kappa, the error of exp."""
        return np.asarray(2 * np.exp(-0.5 * s))

    def slope_change(self, s: Array) -> Array:
        """s exp(-s / 2) / 2."""
        return np.asarray(0.5 * s * np.exp(-0.5 * s))

    def slope_rounding(self, s: Array) -> Array:
        """2 kappa, the error of exp."""
        return self.rounding(s)


@dataclass(frozen=True)
class RationalQuadraticProfile:
    """(1 + r^2 / (2 alpha))^-alpha = exp(-h), h = alpha log1p(r^2 / (2 alpha)).

    As a power of a number near 1 it would lose digits for a large alpha.
    """

    alpha: float
    bend: float = 1.0
    monotone: float = np.inf

    def value(self, squares: Array, factor: float = 1.0) -> Array:
        """exp(-h)."""
        squares *= 0.5 * factor
        squares /= self.alpha
        np.log1p(squares, out=squares)
        squares *= -self.alpha
        return np.asarray(np.exp(squares, out=squares))

    def slope(self, s: Array) -> Array:
        """-(1 + s / (2 alpha))^(-alpha - 1)."""
        return np.asarray(-np.exp(-self._exponent(s) * (1 + 1 / self.alpha)))

    def rounding(self, s: Array) -> Array:
        """2 kappa from exp, and 4 h kappa from h: u for s / alpha, 2 u for log1p, u for alpha."""
        h = self._exponent(s)
        return np.asarray((2 + 4 * h) * np.exp(-h))

    def slope_change(self, s: Array) -> Array:
        """(1 + 1 / alpha) s / (2 + s / alpha) |slope|."""
        return np.asarray((1 + 1 / self.alpha) * s / (2 + s / self.alpha) * np.abs(self.slope(s)))

    def slope_rounding(self, s: Array) -> Array:
        """(2 + 7 h') |slope| with h' = (1 + 1 / alpha) h: as for kappa, and 3 u for h' from h.

        The whole slope is uncertain where SMALLEST_ALPHA stands in for the kernel's own alpha.
        """
        counted = 2 + 7 * self._exponent(s) * (1 + 1 / self.alpha)
        if self.alpha <= SMALLEST_ALPHA:
            counted = counted + 2 / EPS
        return np.asarray(counted * np.abs(self.slope(s)))

    def _exponent(self, s: Array) -> Array:
        return np.asarray(self.alpha * np.log1p(0.5 * s / self.alpha))


@dataclass(frozen=True)
class PeriodicProfile:
    """exp(-2 sin^2(pi r) / l^2), with r in periods and reduced to at most a half."""

    length_scale: float
    monotone: float = 0.5

    @property
    def bend(self) -> float:
        """(2 pi / l)^2."""
        return float((2 * np.pi / self.length_scale) ** 2)

    def value(self, squares: Array, factor: float = 1.0) -> Array:
        """exp(-h), h = 2 sin^2(pi r) / l^2."""
        squares *= factor
        return np.asarray(np.exp(-self._exponent(squares)))

    def slope(self, s: Array) -> Array:
        """-(2 pi / l)^2 sin(2 pi r) / (2 pi r) exp(-h)."""
        return np.asarray(-self.bend * np.sinc(2 * np.sqrt(s)) * np.exp(-self._exponent(s)))

    def rounding(self, s: Array) -> Array:
        """2 kappa from exp, and 14 h kappa from h.

        The square root, pi, the product of both and the sine have errors of u, u, u and 2 u, none
        of which the sine enlarges on [0, pi/2]; squared, that is 10 u. The square, that of l, the
        quotient and the product add u each.
        """
        h = self._exponent(s)
        return np.asarray((2 + 14 * h) * np.exp(-h))

    def slope_change(self, s: Array) -> Array:
        """r |d/dr sinc(2 r) exp(-h)| (2 pi / l)^2 / 2."""
        turns = 2 * np.sqrt(s)
        of_h = np.pi * turns / self.length_scale**2 * np.sin(np.pi * turns)
        changes = self._sinc_change(s) - np.sinc(turns) * of_h
        return np.asarray(0.5 * self.bend * np.abs(changes) * np.exp(-self._exponent(s)))

    def slope_rounding(self, s: Array) -> Array:
        """(11 + 14 h) |slope|, and 3 (2 pi / l)^2 |x sinc'(x)| exp(-h) from the errors of x = 2 r.

        Of the 11 + 14 h, 4 come from (2 pi / l)^2, as 2 pi has an error of 0.4 u; 2 from the sine
        and 1 from its quotient; 2 + 14 h from exp(-h) as for kappa; 2 from products. Of the 3, 1
        comes from the square root and 1.4 from pi and the product with it.
        """
        h = self._exponent(s)
        of_sinc = 3 * self.bend * np.abs(self._sinc_change(s)) * np.exp(-h)
        return np.asarray((11 + 14 * h) * np.abs(self.slope(s)) + of_sinc)

    def _sinc_change(self, s: Array) -> Array:
        """x sinc'(x) at x = 2 r."""
        turns = 2 * np.sqrt(s)
        return np.asarray(np.cos(np.pi * turns) - np.sinc(turns))

    def _exponent(self, s: Array) -> Array:
        sine = np.sin(np.pi * np.sqrt(s))
        return np.asarray(2 / self.length_scale**2 * (sine * sine))


def is_stationary(kernel: Kernel) -> bool:
    """Whether a kernel is one of the formulas here; a user's subclass of one is not."""
    return type(kernel) in STATIONARY


def profile(kernel: Kernel) -> Profile:
    """The profile of a stationary kernel."""
    if type(kernel) is ExpSineSquared:
        return PeriodicProfile(float(kernel.length_scale))
    if type(kernel) is RationalQuadratic:
        return RationalQuadraticProfile(max(float(kernel.alpha), SMALLEST_ALPHA))
    nu = float(kernel.nu) if type(kernel) is Matern else math.inf
    return RBFProfile() if math.isinf(nu) else MaternProfile(nu)
