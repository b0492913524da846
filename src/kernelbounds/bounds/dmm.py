"""DMM: the dual martingale-mixture bound on a grid of ridges (Sec. 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_scalar, brief
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.bound import EllipsoidBound, Ellipsoids
from kernelbounds.bounds.radius import data_radius, reference_ridge, refute_if_empty
from kernelbounds.engine import Engine, highest
from kernelbounds.errors import InputError

PAPERS_GRID = (0.1, 0.3, 1.0, 3.0, 10.0)  # times sigma^2/c, Sec. 7


@dataclass(frozen=True)
class DMM(EllipsoidBound):
    """The best of the AMM bounds over a finite grid A of ridges, for each point and side,

        min over alpha in A of mu_alpha(x) + R~_alpha rho_alpha(x) / sqrt(alpha).

    Parameters
    ----------
    ridges : sequence of float, optional
        The grid A; None is the paper's sigma^2/c times {0.1, 0.3, 1, 3, 10}.
    """

    ridges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.ridges is None:
            return
        given: object = self.ridges
        if not isinstance(given, Iterable) or isinstance(given, str | bytes):
            raise InputError(f"ridges must be a sequence of positive numbers, got {brief(given)}.")
        ridges = tuple(as_scalar(ridge, "each of ridges", above=0.0) for ridge in given)
        if not ridges:
            raise InputError("ridges is empty; pass at least one positive number.")
        object.__setattr__(self, "ridges", ridges)

    def ellipsoids(self, engine: Engine, assumptions: Assumptions, points: Array) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.bound.EllipsoidBound`."""
        ridges = self._grid(engine, assumptions)
        mean, variance, energy = engine.predict(points, ridges)
        factors = _factors(engine, assumptions, ridges, energy)
        return Ellipsoids(ridges[:, None], factors, mean, variance)

    def largest(
        self, engine: Engine, assumptions: Assumptions, points: Array, sign: int, most: Array
    ) -> tuple[float, int, float] | None:
        """The largest bound on s f* at the points, where it is, and the bound on -s f* there.

        Without the newest observations, and with the radius of now, bounds are cheap and larger:
        only where those are high are the others computed. Bounds above ``most`` count as that.
        """
        ridges = self._grid(engine, assumptions)
        if len(ridges) == 1:
            return None
        query = engine.query(points, finest=float(ridges.min()))
        opposite = np.empty(len(points))

        def ends(mean: Array, variance: Array, energy: Array) -> tuple[Array, Array]:
            width = _factors(engine, assumptions, ridges, energy) * np.sqrt(variance)
            return (sign * mean + width).min(axis=0), (width - sign * mean).min(axis=0)

        def evaluate(chosen: NDArray[np.intp]) -> Array:
            found = query.take(chosen).at(ridges)
            upper, opposite[chosen] = ends(found.mean, found.variance, found.energy)
            return np.fmin(upper, most[chosen])

        ceilings = np.fmin(ends(*query.without_border(ridges))[0], most)
        found = highest(ceilings, most, evaluate)
        return None if found is None else (*found, float(opposite[found[1]]))

    def reach(self, engine: Engine, assumptions: Assumptions, ridges: Array) -> Array:
        """R~^2/alpha + E/alpha = R_t^2/alpha + B^2."""
        return data_radius(engine, assumptions).reach(ridges)

    def _grid(self, engine: Engine, assumptions: Assumptions) -> Array:
        reference = reference_ridge(engine, assumptions)
        return np.array(self.ridges or [factor * reference for factor in PAPERS_GRID])


def _factors(engine: Engine, assumptions: Assumptions, ridges: Array, energy: Array) -> Array:
    """R~_alpha / sqrt(alpha), (g, 1)."""
    squared = data_radius(engine, assumptions).around(ridges[:, None], energy)
    if squared.min() < 0:
        refute_if_empty(engine, assumptions)
    return np.sqrt(np.maximum(squared, 0.0) / ridges[:, None])
