"""AY: the rival bound of AY-GP-UCB (Abbasi-Yadkori 2012, Thm. 3.11; App. C.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.bound import EllipsoidBound, Ellipsoids, checked_ridge
from kernelbounds.bounds.radius import reference_ridge
from kernelbounds.engine import Engine


@dataclass(frozen=True)
class AY(EllipsoidBound):
    """mu_lambda(x) +- (sigma sqrt(l_lambda + 2 ln(1/delta)) / sqrt(lambda) + B) rho_lambda(x).

    Parameters
    ----------
    ridge : float, optional
        lambda; None is the paper's sigma^2/c.
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", checked_ridge(self.ridge, "ridge"))

    def ellipsoids(self, engine: Engine, assumptions: Assumptions, points: Array) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.bound.EllipsoidBound`."""
        ridge = reference_ridge(engine, assumptions) if self.ridge is None else self.ridge
        mean, variance, _, known = engine.predict(points, np.array([ridge]))
        _, log_det = known or engine.energy_and_log_det(ridge)
        factor = _factor(ridge, log_det, assumptions)
        return Ellipsoids(np.array([[ridge]]), np.array([[factor]]), mean, variance)

    def reach(self, engine: Engine, assumptions: Assumptions, ridges: Array) -> Array:
        """See :class:`~kernelbounds.bounds.DualBound`."""
        ridge = float(ridges.flat[0])
        energy, log_det = engine.energy_and_log_det(ridge)
        return np.full_like(ridges, _factor(ridge, log_det, assumptions) ** 2 + energy / ridge)


def _factor(ridge: float, log_det: float, assumptions: Assumptions) -> float:
    """sigma sqrt(l_lambda + 2 ln(1/delta)) / sqrt(lambda) + B."""
    a = assumptions
    return a.noise_scale * math.sqrt((log_det - 2 * math.log(a.delta)) / ridge) + a.norm_bound
