"""IGP: the rival bound of IGP-UCB (Chowdhury and Gopalan 2017, Thm. 2; App. C.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array, as_scalar
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.bound import EllipsoidBound, Ellipsoids
from kernelbounds.engine import Engine


@dataclass(frozen=True)
class IGP(EllipsoidBound):
    """mu(x) +- (sigma sqrt(l + t eta + 2 ln(1/delta)) + B) rho(x), all at the ridge 1 + eta.

    Parameters
    ----------
    eta : float
        Positive; the recommended value is 2/T for a run of T rounds.
    """

    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", as_scalar(self.eta, "eta", above=0.0))

    def ellipsoids(self, engine: Engine, assumptions: Assumptions, points: Array) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.bound.EllipsoidBound`."""
        ridge = 1 + self.eta
        mean, variance, _, known = engine.predict(points, np.array([ridge]))
        _, log_det = known or engine.energy_and_log_det(ridge)
        factor = self._factor(engine.data.count, log_det, assumptions)
        return Ellipsoids(np.array([[ridge]]), np.array([[factor]]), mean, variance)

    def reach(self, engine: Engine, assumptions: Assumptions, ridges: Array) -> Array:
        """See :class:`~kernelbounds.bounds.DualBound`."""
        ridge = 1 + self.eta
        energy, log_det = engine.energy_and_log_det(ridge)
        factor = self._factor(engine.data.count, log_det, assumptions)
        return np.full_like(ridges, factor**2 + energy / ridge)

    def _factor(self, count: int, log_det: float, assumptions: Assumptions) -> float:
        """sigma sqrt(l_(1 + eta) + t eta + 2 ln(1/delta)) + B."""
        a = assumptions
        noise = math.sqrt(log_det + count * self.eta - 2 * math.log(a.delta))
        return a.noise_scale * noise + a.norm_bound
