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
