"""AMM: the analytic martingale-mixture bound (Cor. analytic_ucb, Sec. 5.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.bound import EllipsoidBound, Ellipsoids, checked_ridge
from kernelbounds.bounds.radius import data_radius, reference_ridge, refute_if_empty
from kernelbounds.engine import Engine


@dataclass(frozen=True)
class AMM(EllipsoidBound):
    """The largest and smallest values of f(x) in the ellipsoid around one ridge estimate,

        mu_alpha(x) +- R~_alpha rho_alpha(x) / sqrt(alpha).

    Parameters
    ----------
    ridge : float, optional
        alpha; None is the paper's sigma^2/c.
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", checked_ridge(self.ridge, "ridge"))

    def ellipsoids(self, engine: Engine, assumptions: Assumptions, points: Array) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.bound.EllipsoidBound`."""
        reference = reference_ridge(engine, assumptions)
        ridge = reference if self.ridge is None else self.ridge
        mean, variance, energy, known = engine.predict(points, np.array([ridge]))
        radius = data_radius(engine, assumptions, known if ridge == reference else None)
        squared = radius.around(ridge, energy)
        if squared < 0:
            refute_if_empty(engine, assumptions)
        factor = np.sqrt(np.maximum(squared, 0.0) / ridge)
        return Ellipsoids(np.array([[ridge]]), factor, mean, variance)

    def reach(self, engine: Engine, assumptions: Assumptions, ridges: Array) -> Array:
        """R~^2/alpha + E/alpha = R_t^2/alpha + B^2."""
        return data_radius(engine, assumptions).reach(ridges)
