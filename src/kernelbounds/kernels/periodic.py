"""ExpSineSquared as a function of the distance in periods; notation as in ``stationary.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array


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

    def _exponent(self, s: Array) -> Array:
        sine = np.sin(np.pi * np.sqrt(s))
        return np.asarray(2 / self.length_scale**2 * (sine * sine))
