"""Stationary kernels: functions kappa(r) of the distance r in length scales, kappa(0) = 1.

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
from typing import Protocol

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
)

from kernelbounds.arrays import EPS, Array
from kernelbounds.kernels.matern import MaternProfile
from kernelbounds.kernels.periodic import PeriodicProfile

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
