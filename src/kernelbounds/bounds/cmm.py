"""CMM: the exact martingale-mixture bound (Thm. ucb_representer and Eq. dual_ucb_alpha)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernelbounds.arrays import Array, brief
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.bound import Attained
from kernelbounds.bounds.cone import cone_extremes
from kernelbounds.bounds.radius import Radius, data_radius, refute_if_empty
from kernelbounds.engine import Engine, RidgePath, largest_minimum, minimise_over_ridge
from kernelbounds.errors import InputError

# Log ridges, relative to (R_t / B)^2, between which most minimisers are.
LIKELY = -2.2, 4.2


@dataclass(frozen=True)
class CMM:
    """The largest and smallest values of f(x) over the confidence set itself,

        max f(x)  subject to  ||f_t - y_t|| <= R_t  and  ||f|| <= B
            =  min over alpha > 0 of mu_alpha(x) + R~_alpha rho_alpha(x) / sqrt(alpha),

    by strong duality. The function of alpha is quasiconvex.

    Parameters
    ----------
    solver : "dual" or "cone"
        "dual" (default) minimises over alpha. "cone" solves the paper's second-order cone
        program for each point with CVXPY: an independent check, thousands of times slower.
    """

    solver: Literal["dual", "cone"] = "dual"

    def __post_init__(self) -> None:
        if not isinstance(self.solver, str) or self.solver not in ("dual", "cone"):
            raise InputError(f'solver must be "dual" or "cone", got {brief(self.solver)}.')

    def extremes(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        if self.solver == "cone":
            return cone_extremes(engine, assumptions, points, signs)
        return self.attained(engine, assumptions, points, signs).values

    def attained(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Attained:
        """See :class:`~kernelbounds.bounds.DualBound`; by the dual, whatever the solver."""
        finest = _finest(assumptions)
        return _minimum(engine, assumptions, points, np.array(signs, dtype=float), finest)

    def largest(
        self, engine: Engine, assumptions: Assumptions, points: Array, sign: int, most: Array
    ) -> tuple[float, int, float] | None:
        """The largest bound on s f* at the points, where it is, and the bound on -s f* there.

        See :func:`~kernelbounds.engine.largest_minimum`: cheaper than all bounds, and not always
        to be had.
        """
        if self.solver == "cone":
            return None
        query = engine.query(points, finest_per_point=_finest(assumptions))
        dual = DualFunction(engine, assumptions, data_radius(engine, assumptions))
        return largest_minimum(query, dual, sign, most)

    def reach(self, engine: Engine, assumptions: Assumptions, ridges: Array) -> Array:
        """R~^2/alpha + E/alpha = R_t^2/alpha + B^2."""
        return data_radius(engine, assumptions).reach(ridges)


def _finest(assumptions: Assumptions) -> float:
    """A minimiser is rarely below a fifth of (R_t / B)^2, and R_t^2 is about t sigma^2."""
    return 0.2 * (assumptions.noise_scale / max(assumptions.norm_bound, 1e-100)) ** 2


def _minimum(
    engine: Engine, assumptions: Assumptions, points: Array, signs: Array, finest: float
) -> Attained:
    """The smallest dual value, sought among ridges from t times ``finest`` at first."""
    query = engine.query(points, finest_per_point=finest)
    dual = DualFunction(engine, assumptions, data_radius(engine, assumptions))
    values, ridges, scales = minimise_over_ridge(query, dual, signs)
    path: RidgePath | None = query.path
    if ridges.min() < query.path.eigen.finest:
        finer = (ridges < query.path.eigen.finest).any(axis=0)
        found = _minimum(engine, assumptions, points[finer], signs, finest / 16)
        values[:, finer], ridges[:, finer] = found.values, found.ridges
        scales[:, finer], path = found.scales, found.path
    return Attained(values, ridges, scales, path)


@dataclass(frozen=True)
class DualFunction:
    """The dual of max f(x) over the confidence set, Thm. (dual_ucb), in alpha and scale,

        mu_alpha(x) + rho_alpha^2(x) / (2 scale) + scale R~_alpha^2 / (2 alpha),

    where eta_2 = scale / 2 and eta_1 = eta_2 / alpha.
    """

    engine: Engine
    assumptions: Assumptions
    radius: Radius

    @property
    def likely(self) -> tuple[float, float]:
        """Around (R_t / B)^2, mostly above."""
        centre = self.radius.squared / max(self.radius.norm_bound**2, 1e-280)
        log_centre = math.log(max(centre, 1e-280))
        return log_centre + LIKELY[0], log_centre + LIKELY[1]

    def best_scale(self, ridge: Array, deviation: Array, energy: Array) -> Array:
        """scale = sqrt(alpha) rho / R~."""
        # Where R~ nearly vanishes the best scale is nearly infinite; a large one will do.
        least = 1e-14 * (self.radius.squared + ridge * self.radius.norm_bound**2)
        squared = np.maximum(np.maximum(self._around(ridge, energy), least), 1e-280)
        return np.maximum(np.sqrt(ridge / squared) * deviation, 1e-150)

    def factor(self, ridge: Array, energy: Array) -> Array:
        """R~_alpha / sqrt(alpha), Eq. (dual_ucb_alpha)."""
        return np.asarray(np.sqrt(self._around(ridge, energy) / ridge))

    def at_scale(self, ridge: Array, scale: Array, unexplained: Array) -> Array:
        """The dual from k(x,x) - p'(K + alpha I)^-1 p = rho^2 + 2 scale mu - scale^2 E/alpha."""
        squared = self.radius.squared / ridge + self.radius.norm_bound**2
        return unexplained / (2 * scale) + scale * squared / 2

    def _around(self, ridge: Array, energy: Array) -> Array:
        squared = self.radius.around(ridge, energy)
        if squared.min() >= 0:
            return squared
        refute_if_empty(self.engine, self.assumptions)
        return np.maximum(squared, 0.0)
