"""The radii of the confidence sets.

==================  ==============  =======================================================
code                paper           meaning
==================  ==============  =======================================================
``energy``          E_alpha         y' (I + K/alpha)^-1 y
``log_det``         l_alpha         ln det(I + K/alpha)
``squared``         R_t^2           squared radius of the data constraint, Eq. (radius_def)
``around``          R~_alpha,t^2    squared radius of the ridge-centred ellipsoid
==================  ==============  =======================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.assumptions import Assumptions


@dataclass(frozen=True)
class Radius:
    """R_t^2 = E_{sigma^2/c} + sigma^2 l_{sigma^2/c} + 2 sigma^2 ln(1/delta), Eq. (radius_def).

    Kept as its two parts, because at alpha = sigma^2/c the energies in R~^2 cancel exactly.
    Without noise R_t = 0 (Sec. 6.3).
    """

    energy: float
    penalty: float
    norm_bound: float

    @classmethod
    def of(cls, energy: float, log_det: float, assumptions: Assumptions) -> Radius:
        """The radius from E and l at the reference ridge sigma^2/c."""
        a = assumptions
        if a.noise_scale == 0:
            return cls(0.0, 0.0, a.norm_bound)
        penalty = a.noise_scale**2 * (log_det - 2 * math.log(a.delta))
        return cls(energy, penalty, a.norm_bound)

    @property
    def squared(self) -> float:
        """R_t^2."""
        return self.energy + self.penalty

    def around(self, ridge: Array | float, energy: Array | float) -> Array:
        """R~_alpha^2 = R_t^2 + alpha B^2 - E_alpha, Cor. (rkhs_ridge_conf_set)."""
        return np.asarray((self.energy - energy) + self.penalty + ridge * self.norm_bound**2)

    def reach(self, ridge: Array) -> Array:
        """(R~_alpha^2 + E_alpha) / alpha, which is R_t^2 / alpha + B^2."""
        return self.squared / ridge + self.norm_bound**2
