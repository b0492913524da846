"""The smoothness nu of a kernel, and the mixture scale that goes with it.

Differences of points, in length scales or modulo a period.

Coordinates are subtracted as they stand: x - z is then right to half a unit in its last digit,
wherever the origin is. Divided by a length scale l first, x/l - z/l would be wrong by eps |x| / l.

The Matern kernels as functions of the distance; notation as in ``stationary.py``.

With z = sqrt(2 nu) r and the Bessel function K_nu,

    kappa(r) = f_nu(z) = 2^(1 - nu) / Gamma(nu) z^nu K_nu(z),   f_nu(0) = 1.

The recurrence of Bessel functions becomes one of positive terms without large or small factors,

    f_(nu + 1)(z) = f_nu(z) + z^2 / (4 nu (nu - 1)) f_(nu - 1)(z)   for nu > 1,

and their derivatives give kappa'(r) / r = -nu / (nu - 1) f_(nu - 1)(z).

ExpSineSquared as a function of the distance in periods; notation as in ``stationary.py``.

Stationary kernels: functions kappa(r) of the distance r in length scales, kappa(0) = 1.

==================  =============  ==========================================================
code                symbol         meaning
==================  =============  ==========================================================
``s``               r^2            the squared distance in length scales
``value``           kappa(r)       of squared distances and a factor that makes them ``s``
``drop``            1 - kappa(r)
``slope``           kappa'(r) / r  so that the gradient of kappa(|x - z|) is slope (x - z)
``bend``            -kappa''(0)    infinite where the kernel is not differentiable enough
``rounding``        |error| / u    of ``value`` beyond that of the distance; u = eps / 2
``slope_change``    s |dslope/ds|  how a relative error of s changes the slope
``slope_rounding``  |error| / u    of ``slope`` beyond that of the distance
==================  =============  ==========================================================

All that is computed of a stationary kernel is computed from these: matrices, their precision,
gradients and their precision, and how far features move. ``slope_change`` and ``slope_rounding``
are for kernels of a finite bend only. ``exp`` and ``log1p`` are taken to be right to one unit in
the last place, which is a relative 2 u.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
)

from kernelbounds.arrays import EPS, Array, as_whole, two_sum
from kernelbounds.errors import InputError
from kernelbounds.kernels.checks import checked_kernel


def length_scales(kernel: Kernel, dim: int) -> Array:
    """What differences are measured in, (1,) or (d,): length scales, or the period."""
    if type(kernel) is ExpSineSquared:
        if dim > 1:
            raise InputError(
                f"{kernel} is a kernel in one dimension only, and the points have {dim}: in more, "
                "a positive definite function of the distance has a limit, and a periodic one has "
                "none unless it is constant."
            )
        return np.array([float(kernel.periodicity)])
    scales = np.array(kernel.length_scale, dtype=np.float64, ndmin=1)
    if scales.ndim > 1 or len(scales) not in (1, dim):
        raise InputError(
            f"{kernel} has {scales.size} length scales, but the points have {dim} dimensions."
        )
    if type(kernel) is RationalQuadratic and len(scales) > 1:
        raise InputError(f"{kernel} must have one length scale; scikit-learn defines no other.")
    return scales


def squares(kernel: Kernel, left: Array, right: Array) -> tuple[Array, float]:
    """Squared distances in length scales, (m, n), up to the factor that comes second.

    The caller has a pass over the matrix into which the factor can be folded. The points are
    measured in powers of two near the length scales. That is exact, and keeps squares from
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
    """x - z along one coordinate, (m, n); for a periodic kernel the nearest such difference."""
    x, z = left[:, axis, None], right[:, axis]
    if type(kernel) is ExpSineSquared:
        return _wrapped(x, z, float(kernel.periodicity))
    return np.asarray(x - z)


def centred(kernel: Kernel, left: Array, right: Array) -> tuple[Array, Array]:
    """The points in length scales, around the mean of those on the left."""
    scales, origin = length_scales(kernel, left.shape[1]), left.mean(axis=0)
    return (left - origin) / scales, (right - origin) / scales


def in_length_scales(kernel: Kernel, vectors: Array) -> Array:
    """The squared lengths of vectors (m, d) in length scales, (m,)."""
    scaled = vectors / length_scales(kernel, vectors.shape[1])
    return np.asarray(np.vecdot(scaled, scaled))


def _wrapped(x: Array, z: Array, period: float) -> Array:
    """x - z less the nearest multiple of the period, rounded once, however many periods.

    x - z = high + low exactly, and each is reduced exactly. So is their sum, once more as a sum of
    two parts, because low exceeds a period where floats at x are further apart than that.
    """
    high, low = two_sum(x, -z)
    high, low = two_sum(_nearest(high, period), _nearest(low, period))
    return np.asarray(_nearest(high, period) + low)


def _nearest(value: Array, period: float) -> Array:
    """The remainder in [-p/2, p/2]. It is exact: both fmod and, by Sterbenz, x - p are."""
    value = np.fmod(value, period)
    return np.asarray(value - period * (value > period / 2) + period * (value < -period / 2))


# The largest error of _by_quadrature in units of u. Measured: at most 13 for nu from 0.001 to 50
# and z from 1e-150 to 700 (test_kernel_errors.py); this is twice as much. From NEAREST on it is
# also relative to the value, beyond what the error of z does: at most 11 was measured, for nu from
# 1e-15 to 49 (test_derivatives.py).
BESSEL_ERROR = 26.0
# exp(-z) times any polynomial met here is zero beyond, and powers of z do not overflow before.
FARTHEST = 1e3
# Below, f_nu(z) = 1 - Gamma(1 - nu) / Gamma(1 + nu) (z / 2)^(2 nu), as further terms are of order
# z^2, and it is 1 for nu >= 0.9, both to within 3e-17.
NEAREST = 1e-10
# scipy's Bessel functions of orders up to 1 lose two digits just below 2, and none above.
SWITCH = 2.0
# The trapezoidal rule has a relative error of order exp(-pi^2 / STEP) = 3e-20 at small z, and
# exp(2) times that at SWITCH.
STEP = 0.22


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

    def drop(self, s: Array) -> Array:
        """1 - f_nu; it is not more precise than the value."""
        return np.maximum(1 - matern(self.nu, 2 * self.nu * s), 0.0)

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
        """Of the formula, and 1.5 r |kappa'|, of z: u / 2 for 2 nu times the factor, u for sqrt.

        In Horner's scheme a term of degree k meets 2 k + 1 errors, and one more if its coefficient
        is rounded and not the leading one. The sum of k times the terms is z (kappa + dkappa/dz).
        Two more are of exp, and one of the product with it. For nu = 5/2 the square is taken from
        before the root: the root's error then counts 2 z^2 / 3 exp(-z) more, and the polynomial's
        errors (z + z^2 / 3) exp(-z) less, which is no less up to z = 3, where all have passed
        their maximum.
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
        """nu / (nu - 1) times that of f_(nu - 1), and 2 |slope|: u for the factor, u for applying.

        nu - 1 is exact. Of the closed forms one is counted that ``rounding`` leaves out for
        nu - 1 = 5/2 and z > 3, where it is at most f_(nu - 1).
        """
        below, slope = MaternProfile(self.nu - 1), np.abs(self.slope(s))
        if _is_half_integer(below.nu):
            return np.asarray(self.bend * below.rounding(self.bend * s) + 3 * slope)
        formula = np.where(2 * self.nu * s < NEAREST**2, self.bend, slope)
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
    values = square  # memory that is there already
    if p == 0:
        values.fill(1.0)
    elif p == 1:
        np.add(z, 1, out=values)
    elif p == 2:
        values *= 1 / 3
        values += z
        values += 1
    else:
        np.minimum(z, FARTHEST, out=z)
        leading, second, *others = reversed(_coefficients(p))
        np.multiply(z, leading, out=values)
        values += second
        for coefficient in others:
            values *= z
            values += coefficient
    np.negative(z, out=z)
    values *= np.exp(z, out=z)
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
    tiny, half = z < NEAREST, 0.5 * z
    np.clip(z, NEAREST, FARTHEST, out=z)
    if steps:
        of_mu, of_rest = _bessel((mu, 1 - mu), z)
    else:
        (of_mu,) = _bessel((mu,), z)
    values = 2 ** (1 - mu) / gamma(mu) * z**mu * of_mu
    if steps:
        # K_(mu + 1) = (2 mu / z) K_mu + K_(1 - mu)
        previous = values
        values = previous + 2**-mu / gamma(mu + 1) * z ** (mu + 1) * of_rest
        square = z * z
        for order in mu + np.arange(1.0, steps):
            previous, values = values, values + square * (previous / (4 * order * (order - 1)))
    lost = gamma(1 - nu) / gamma(1 + nu) * half[tiny] ** (2 * nu) if nu < 0.9 else 0.0
    values[tiny] = 1 - lost
    return np.asarray(values)


def _bessel(orders: tuple[float, ...], z: Array) -> tuple[Array, ...]:
    """K of orders in [0, 1], with about 14 digits or more relative to the value."""
    values = tuple(np.empty_like(z) for _ in orders)
    near = z <= SWITCH
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
    for t in STEP * np.arange(1, math.ceil(last / STEP) + 1):
        factor = np.exp(-math.cosh(t) * z)
        for i, order in enumerate(orders):
            sums[i] += math.cosh(order * t) * factor
    return [STEP * total for total in sums]


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

    def drop(self, s: Array) -> Array:
        """1 - exp(-h)."""
        return np.asarray(-np.expm1(-self._exponent(s)))

    def slope(self, s: Array) -> Array:
        """-(2 pi / l)^2 sin(2 pi r) / (2 pi r) exp(-h)."""
        return np.asarray(-self.bend * np.sinc(2 * np.sqrt(s)) * np.exp(-self._exponent(s)))

    def rounding(self, s: Array) -> Array:
        """2 kappa, of exp, and 14 h kappa, of h.

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
        """(11 + 14 h) |slope|, and 3 (2 pi / l)^2 |x sinc'(x)| exp(-h) of x = 2 r.

        Of the former 4 are of (2 pi / l)^2, as 2 pi has an error of 0.4 u; 2 of the sine and 1 of
        its quotient; 2 + 14 h of exp(-h) as for kappa; 2 of products. Of the latter 1 is of the
        square root and 1.4 of pi and the product with it.
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


# For a smaller alpha, RationalQuadratic differs from 1 by less than 1e-22 at any distance between
# floats, and with this one nothing overflows.
LEAST_ALPHA = 1e-25


class Profile(Protocol):
    """A stationary kernel as a function of the squared distance in length scales."""

    def __hash__(self) -> int:
        """Profiles are values: equal ones have equal errors."""

    @property
    def bend(self) -> float:
        """-kappa''(0)."""

    @property
    def monotone(self) -> float:
        """The drop grows up to this distance, and is nowhere larger beyond."""

    def value(self, squares: Array, factor: float = 1.0) -> Array:
        """kappa at s = factor * squares; the squares are overwritten."""

    def drop(self, s: Array) -> Array:
        """1 - kappa."""

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

    def drop(self, s: Array) -> Array:
        """1 - exp(-s / 2)."""
        return np.asarray(-np.expm1(-0.5 * s))

    def slope(self, s: Array) -> Array:
        """-exp(-s / 2)."""
        return np.asarray(-np.exp(-0.5 * s))

    def rounding(self, s: Array) -> Array:
        """2 kappa, of exp."""
        return np.asarray(2 * np.exp(-0.5 * s))

    def slope_change(self, s: Array) -> Array:
        """s exp(-s / 2) / 2."""
        return np.asarray(0.5 * s * np.exp(-0.5 * s))

    def slope_rounding(self, s: Array) -> Array:
        """2 kappa, of exp."""
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

    def drop(self, s: Array) -> Array:
        """1 - exp(-h)."""
        return np.asarray(-np.expm1(-self._exponent(s)))

    def slope(self, s: Array) -> Array:
        """-(1 + s / (2 alpha))^(-alpha - 1)."""
        return np.asarray(-np.exp(-self._exponent(s) * (1 + 1 / self.alpha)))

    def rounding(self, s: Array) -> Array:
        """2 kappa, of exp, and 4 h kappa, of h: u for s / alpha, 2 u for log1p, u for alpha."""
        h = self._exponent(s)
        return np.asarray((2 + 4 * h) * np.exp(-h))

    def slope_change(self, s: Array) -> Array:
        """(1 + 1 / alpha) s / (2 + s / alpha) |slope|."""
        return np.asarray((1 + 1 / self.alpha) * s / (2 + s / self.alpha) * np.abs(self.slope(s)))

    def slope_rounding(self, s: Array) -> Array:
        """(2 + 7 h') |slope|, h' = (1 + 1 / alpha) h: as for kappa, and 3 u for h' from h.

        All of the slope is uncertain where alpha is not what the kernel has, but LEAST_ALPHA.
        """
        counted = 2 + 7 * self._exponent(s) * (1 + 1 / self.alpha)
        if self.alpha <= LEAST_ALPHA:
            counted = counted + 2 / EPS
        return np.asarray(counted * np.abs(self.slope(s)))

    def _exponent(self, s: Array) -> Array:
        return np.asarray(self.alpha * np.log1p(0.5 * s / self.alpha))


def profile(kernel: Kernel) -> Profile:
    """The profile of a stationary kernel."""
    return _PROFILES[type(kernel)](kernel)


def is_stationary(kernel: Kernel) -> bool:
    """Whether a kernel is one of the formulas here; a user's subclass of one is not."""
    return type(kernel) in _PROFILES


def _matern(kernel: Kernel) -> Profile:
    nu = float(kernel.nu)
    return RBFProfile() if math.isinf(nu) else MaternProfile(nu)


_PROFILES: dict[type, Callable[[Kernel], Profile]] = {
    RBF: lambda kernel: RBFProfile(),
    Matern: _matern,
    RationalQuadratic: lambda kernel: RationalQuadraticProfile(
        max(float(kernel.alpha), LEAST_ALPHA)
    ),
    ExpSineSquared: lambda kernel: PeriodicProfile(float(kernel.length_scale)),
}


def smoothness(kernel: Kernel) -> float:
    """The nu of a Matern kernel, infinity for RBF; a constant factor does not change it."""
    if isinstance(kernel, Product) and isinstance(kernel.k1, ConstantKernel):
        return smoothness(kernel.k2)
    if isinstance(kernel, Product) and isinstance(kernel.k2, ConstantKernel):
        return smoothness(kernel.k1)
    if type(kernel) is Matern:
        return float(kernel.nu)
    if type(kernel) is RBF:
        return math.inf
    raise InputError(
        f"the smoothness of {kernel} is not known; it is defined here for RBF and Matern kernels "
        "and their constant multiples."
    )


def mixture_scale(kernel: Kernel, dim: int, horizon: int) -> float:
    """The mixture scale c that gives the paper's regret rates (Sec. 7).

    c = 1 for the RBF kernel and c = T^(-d / (2 d + 2 nu)) for the Matern kernel, with T the
    number of rounds planned and d the dimension.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> kb.mixture_scale(RBF(0.5), dim=3, horizon=1000)
    1.0
    >>> round(kb.mixture_scale(Matern(0.5, nu=2.5), dim=3, horizon=1000), 3)
    0.152
    """
    nu = smoothness(checked_kernel(kernel))
    d, rounds = as_whole(dim, "dim", least=1), as_whole(horizon, "horizon", least=1)
    return 1.0 if math.isinf(nu) else float(rounds ** (-d / (2 * d + 2 * nu)))
