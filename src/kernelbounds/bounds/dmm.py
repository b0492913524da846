"""DMM: the dual martingale-mixture bound on a grid of ridges (Sec. 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array, as_scalar, brief
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.bounds.bound import EllipsoidBound, Ellipsoids
from kernelbounds.bounds.radius import data_radius, reference_ridge, refute_if_empty
from kernelbounds.engine import Engine
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
        reference = reference_ridge(engine, assumptions)
        ridges = np.array(self.ridges or [factor * reference for factor in PAPERS_GRID])
        mean, variance, energy = engine.predict(points, ridges)
        grid = ridges[:, None]
        squared = data_radius(engine, assumptions).around(grid, energy)
        if np.any(squared < 0):
            refute_if_empty(engine, assumptions)
        factors = np.sqrt(np.maximum(squared, 0.0) / grid)
        return Ellipsoids(grid, factors, mean, variance)

    def reach(self, engine: Engine, assumptions: Assumptions, ridges: Array) -> Array:
        """R~^2/alpha + E/alpha = R_t^2/alpha + B^2."""
        return data_radius(engine, assumptions).reach(ridges)
