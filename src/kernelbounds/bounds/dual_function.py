"""The dual of the exact bound, in the ridge and a scale (Thm. 4.5 and Eq. 12)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.bound import dual_value
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.diagnosis import refute_if_empty
from kernelbounds.confidence.radius import Radius

# Log ridges, relative to (R_t / B)^2, between which nearly all minimisers are: measured in loops of
# 1000 rounds on the paper's problems. Elsewhere the search takes another window, and more time.
LIKELY_LOG_RIDGES = -2.2, 4.2
# With more rounds than these R_t^2 is ever closer to the energy of the noise, and minimisers fall
# by this for each unit of the logarithm of t (RBF and Matérn, up to 20,000 observations).
FALL_PER_LOG_COUNT, COUNT_WITHOUT_FALL = 0.35, 100


@dataclass(frozen=True)
class DualFunction:
    """The dual of max f(x) over the confidence set (Thm. 4.5), in alpha and scale,

        mu_alpha(x) + rho_alpha^2(x) / (2 scale) + scale R~_alpha^2 / (2 alpha),

    where eta_2 = scale / 2 and eta_1 = eta_2 / alpha.
    """

    radius: Radius
    refute: Callable[[], None]  # raises where no function is left, when R~^2 is negative
    count: int = field(default=0, kw_only=True)  # t, or p directions

    @classmethod
    def of(cls, known: ConfidenceSet) -> Self:
        """The dual function of CMM."""
        return cls(known.radius, lambda: refute_if_empty(known), count=known.count)

    @property
    def likely(self) -> tuple[float, float]:
        """The log ridges between which the minimiser probably is.

        Minimisers are around (R_t / B)^2, mostly above, and lower with many observations.
        """
        radius = self.radius
        centre = radius.squared / max(radius.norm_bound**2, 1e-280)
        log_centre = math.log(min(max(centre, 1e-280), 1e280))
        log_centre -= FALL_PER_LOG_COUNT * math.log(max(self.count / COUNT_WITHOUT_FALL, 1.0))
        return log_centre + LIKELY_LOG_RIDGES[0], log_centre + LIKELY_LOG_RIDGES[1]

    def best_scale(self, ridge: Array, deviation: Array, energy: Array) -> Array:
        """scale = sqrt(alpha) rho / R~."""
        # Where R~ nearly vanishes the best scale is nearly infinite; a large one will do.
        radius = self.radius
        least = 1e-14 * (radius.squared + ridge * radius.norm_bound**2)
        squared = np.maximum(np.maximum(self._around(ridge, energy), least), 1e-280)
        return np.maximum(np.sqrt(ridge / squared) * deviation, 1e-150)

    def factor(self, ridge: Array, energy: Array) -> Array:
        """R~_alpha / sqrt(alpha), as in Eq. (12), at ridges in increasing order."""
        squared = self._around(ridge, energy)
        if _may_be_negative_between(ridge, squared):
            self.refute()
        return np.asarray(np.sqrt(squared / ridge))

    def at_scale(self, ridge: Array, scale: Array, unexplained: Array) -> Array:
        """The dual from k(x,x) - p'(K + alpha I)^-1 p = rho^2 + 2 scale mu - scale^2 E/alpha.

        It is rounded up.
        """
        return dual_value(unexplained, scale, self.radius.joint_bound(ridge))

    def _around(self, ridge: Array, energy: Array) -> Array:
        squared = self.radius.around(ridge, energy)
        if squared.min() >= 0:
            return squared
        self.refute()
        return np.maximum(squared, 0.0)


def _may_be_negative_between(ridges: Array, squared: Array) -> bool:
    """Whether R~_alpha^2 may be negative near its least value, if that is not at an end.

    E_alpha is concave, hence R~_alpha^2 convex in alpha, and above the lines through two
    neighbouring values outside of these two. Where the least value is at an end, another window of
    the search has it inside.
    """
    at = int(squared.argmin())
    if not 2 <= at < len(ridges) - 2:
        return False
    (a, b, c, d, e), (u, v, w, x, y) = ridges[at - 2 : at + 3], squared[at - 2 : at + 3]
    falling, rising = (w - v) / (c - b), (x - w) / (d - c)
    left = _crossing(b, v, (v - u) / (b - a), c, w, rising)
    return min(left, _crossing(c, w, falling, d, x, (y - x) / (e - d))) < 0


def _crossing(a: float, u: float, falling: float, b: float, v: float, rising: float) -> float:
    """The least value, between a and b, of the larger of two lines through (a, u) and (b, v)."""
    if falling >= 0 or rising <= 0:
        return min(u, v)
    return u + falling * (v - u - rising * (b - a)) / (falling - rising)
