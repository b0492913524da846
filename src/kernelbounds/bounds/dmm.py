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
RARELY_BELOW = 0.25  # times (R_t / B)^2, where a best ridge hardly ever is
A_LITTLE_LESS = 0.9


@dataclass(frozen=True)
class DMM(EllipsoidBound):
    """The best of the AMM bounds over a finite grid A of ridges, for each point and side,

        min over alpha in A of mu_alpha(x) + R~_alpha rho_alpha(x) / sqrt(alpha).

    The function of alpha is quasiconvex. Where it rises between a ridge and one a little less, no
    smaller ridge is better, and small ridges are the expensive ones.

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
        grid = self._grid(engine, assumptions)
        some, tried = _in_question(engine, assumptions, grid)
        found = _around(engine, assumptions, tried, *engine.predict(points, tried)[:3])
        if len(tried) == len(some):
            return found
        if not _falls(found):
            return Ellipsoids(*(part[:-1] for part in found))
        return _around(engine, assumptions, grid, *engine.predict(points, grid)[:3])

    def largest(
        self, engine: Engine, assumptions: Assumptions, points: Array, sign: int, most: Array
    ) -> tuple[float, int, float] | None:
        """The largest bound on s f* at the points, where it is, and the bound on -s f* there.

        Without the newest observations, and with the radius of now, bounds are cheap and larger:
        only where those are high are the others computed. Bounds above ``most`` count as that.
        None where it takes all bounds to tell.
        """
        some, tried = _in_question(engine, assumptions, self._grid(engine, assumptions))
        if len(tried) == 1:
            return None
        query = engine.query(points, finest=float(tried.min()))
        opposite = np.empty(len(points))

        def evaluate(chosen: NDArray[np.intp]) -> Array | None:
            found = query.take(chosen).at(tried)
            around = _around(engine, assumptions, tried, found.mean, found.variance, found.energy)
            if len(some) < len(tried) and _falls(around):
                return None
            upper, lower = (end[: len(some)].min(axis=0) for end in _ends(around, sign))
            opposite[chosen] = lower
            return np.asarray(np.fmin(upper, most[chosen]))

        before = _around(engine, assumptions, some, *query.without_border(some))
        ceilings = np.fmin(_ends(before, sign)[0].min(axis=0), most)
        found = highest(ceilings, most, evaluate)
        return None if found is None else (*found, float(opposite[found[1]]))

    def reach(self, engine: Engine, assumptions: Assumptions, ridges: Array) -> Array:
        """R~^2/alpha + E/alpha = R_t^2/alpha + B^2."""
        return data_radius(engine, assumptions).reach(ridges)

    def _grid(self, engine: Engine, assumptions: Assumptions) -> Array:
        reference = reference_ridge(engine, assumptions)
        return np.array(self.ridges or [factor * reference for factor in PAPERS_GRID])


def _in_question(engine: Engine, assumptions: Assumptions, grid: Array) -> tuple[Array, Array]:
    """The ridges of the grid that are probably enough; and, to find out, one a little less."""
    squared = data_radius(engine, assumptions).squared
    small = grid * assumptions.norm_bound**2 <= RARELY_BELOW * squared
    some = grid[grid >= grid[small].max(initial=grid.min())]
    return some, some if len(some) == len(grid) else np.append(some, A_LITTLE_LESS * some.min())


def _around(
    engine: Engine,
    assumptions: Assumptions,
    ridges: Array,
    mean: Array,
    variance: Array,
    energy: Array,
) -> Ellipsoids:
    """The intervals of Eq. (dual_ucb_alpha), with factors R~_alpha / sqrt(alpha)."""
    squared = data_radius(engine, assumptions).around(ridges[:, None], energy)
    if squared.min() < 0:
        refute_if_empty(engine, assumptions)
    factors = np.sqrt(np.maximum(squared, 0.0) / ridges[:, None])
    return Ellipsoids(ridges[:, None], factors, mean, variance)


def _ends(found: Ellipsoids, sign: int) -> tuple[Array, Array]:
    """Bounds on s f and on -s f, (g, m) each."""
    width = found.factors * np.sqrt(found.variance)
    return sign * found.mean + width, width - sign * found.mean


def _falls(found: Ellipsoids) -> bool:
    """Whether the last ridge, less than the others, is as good as they for some point."""
    return any(bool(np.any(end[-1] <= end[:-1].min(axis=0))) for end in _ends(found, 1))
