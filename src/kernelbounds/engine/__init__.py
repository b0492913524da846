"""The engine: mean, variance, energy and log-determinant of kernel ridge regression at any ridge.

Only this package factorises matrices. A bound asks it for a path (energies and the
log-determinant, which depend on the data alone) or for a query (means and variances at points
too), and says which ridges it is going to use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine import forecasting
from kernelbounds.engine.even_grid import vertex
from kernelbounds.engine.growing_path import GrowingPath
from kernelbounds.engine.highest import Largest, highest
from kernelbounds.engine.observations import Observations, Outcomes, Window
from kernelbounds.engine.path_query import WITHOUT_ROUNDING, Estimators, PathQuery, Predictions
from kernelbounds.engine.ridge_fit import LEAST, Forecasts, RidgeFit
from kernelbounds.engine.ridge_path import RidgePath, rounding
from kernelbounds.engine.ridge_search import largest_minimum, minimise_over_ridge
from kernelbounds.engine.rows import Representers, Rows
from kernelbounds.engine.sparse import Approximation, Attaining, Growth, SparseEngine
from kernelbounds.functionals.targets import Functionals, Targets

K = TypeVar("K")
V = TypeVar("V")

__all__ = [
    "WITHOUT_ROUNDING",
    "Approximation",
    "Attaining",
    "Engine",
    "Estimators",
    "Forecasts",
    "Growth",
    "Largest",
    "Outcomes",
    "PathQuery",
    "Predictions",
    "Representers",
    "RidgePath",
    "SparseEngine",
    "highest",
    "largest_minimum",
    "minimise_over_ridge",
    "rounding",
    "vertex",
]

# Paths and fits that are kept for the next call: DMM and CMM need a path each, and R_t and each
# ridge of an AMM a fit; more would only cost memory, t^2 numbers each.
KEPT = 8
# Computed eigenvectors are orthonormal up to 16 rounding errors and so many for each observation:
# V'V differs from I by less, in the spectral norm (by up to 31 of them at t = 700, with LAPACK).
ORTHONORMAL = 1.0
# Sums over all forecasts may be rounded by more than bounds: by 1e-4, relatively.
LEAST_FOR_SUMS = 1e-4 * LEAST / 1e-7


class Engine:
    """Kernel ridge regression on a growing sequence of observations.

    Every answer is a function of the kernel matrix and the outcomes alone: appending one by one,
    in blocks or all at once gives the same numbers, to the bit where the kernel does. Observations
    at equal points are merged, so that its costs are those of the number of different points.
    """

    keeps_observations = True  # one by one; see :class:`SparseEngine`

    def __init__(self, kernel: Kernel) -> None:
        self.data = Observations(kernel)
        self._paths: OrderedDict[tuple[float, float], GrowingPath] = OrderedDict()
        self._fits: OrderedDict[float, RidgeFit] = OrderedDict()
        self._starts: OrderedDict[tuple[int, float], forecasting.BlockStart] = OrderedDict()

    @property
    def rows(self) -> Rows:
        """What linear algebra is done with: a row for each point, and for the newest ones."""
        return self.data.rows

    @property
    def dim(self) -> int | None:
        """Of the points; None where it is not known yet."""
        return self.data.dim

    @property
    def landmarks(self) -> Array:
        """Points near which something is known: all that were observed, (t, d)."""
        return self.data.points

    def approximation(self) -> Approximation | None:
        """None: there is none."""
        return None

    @property
    def stage(self) -> tuple[int, Array]:
        """Always the same, as the kernel is; see :class:`SparseEngine`."""
        return 0, np.empty(0)

    def snapshot(self) -> Engine:
        """Another engine on the observations so far, to be read only; it forgets on its own."""
        other = Engine(self.data.kernel)
        other.data = self.data.snapshot()
        return other

    def append(self, points: Array, outcomes: Outcomes | Array) -> None:
        """Add observations; on an error nothing is added."""
        rows, accuracy = self.rows, self.data.accuracy
        known = outcomes if isinstance(outcomes, Outcomes) else Outcomes.plain(outcomes)
        self.data.append(points, known)
        # After a merge, or where what was computed before was too trusting.
        if self.rows is not rows or self.data.accuracy != accuracy:
            self._paths.clear()
            self._fits.clear()

    def energy_and_log_det(self, ridge: float) -> tuple[float, float]:
        """E_alpha and ln det(I + K/alpha) at one ridge, both rounded up."""
        fit = self._fit(ridge)
        return fit.energy_and_log_det() if fit.trusted() else self.path().energy_and_log_det(ridge)

    def forecasts_since(self, start: int, ridge: float, least: float) -> tuple[Forecasts, float]:
        """Forecasts of outcomes from number ``start`` on, one at least, and their ridge.

        It is ``ridge``, or ``least`` times the largest k(x,x) so far where that is more; up to
        where a larger one is needed: a forecast must not know later points. Each is made from all
        outcomes before it or, where observations are many and points few, from those before its
        block (:attr:`blocks_from`).
        """
        data = self.data
        window, after = forecasting.window_of(data, start)
        enough = forecasting.forecast_ridges(data.largest[start:after], ridge, least)
        alpha = float(enough[0])
        stop = start + int(np.searchsorted(enough, alpha, side="right"))
        if window.in_block:
            known = self._block_start(window, alpha)
            made = forecasting.in_block(data, known, start, stop)
        else:
            made = forecasting.one_by_one(data, window, start, stop, self._fit(alpha))
        return forecasting.rounded(made, data.outcomes[start:stop]), alpha

    @property
    def blocks_from(self) -> int | None:
        """The observation from which on they are forecast a block at a time, if there is one."""
        return self.data.blocks_from

    def gained_in_blocks(self, ridge: float, least: float) -> tuple[float, float]:
        """E_alpha and ln det(I + K/alpha), less what they were before the first block; rounded up.

        Alpha is the ridge of the forecast that follows. These are the sums of what forecasts one by
        one would have cost.
        """
        data, start = self.data, self.data.blocks_from
        assert start is not None
        alpha = float(forecasting.forecast_ridges(data.largest[start], ridge, least))
        before = self._block_start(forecasting.window_of(data, start)[0], alpha)
        fit = self._fit(alpha)
        if fit.trusted(LEAST_FOR_SUMS):
            now = fit.energy_and_log_det()
        else:
            now = self.path().energy_and_log_det(alpha)
        gains = now[0] - before.energy, now[1] - before.log_det
        return max(gains[0], 0.0) + 4 * EPS * now[0], max(gains[1], 0.0) + 4 * EPS * now[1]

    def largest_forecast_ridge(self, ridge: float, least: float) -> float:
        """The largest at which a forecast is made."""
        return float(
            forecasting.forecast_ridges(self.data.largest[-1:], ridge, least).max(initial=0.0)
        )

    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """Mean, variance and energy at points and ridges, rounded so that bounds get looser."""
        if (
            len(ridges) == 1
            and not isinstance(points, Functionals)
            and (fit := self._fit(float(ridges[0]))).trusted()
        ):
            mean, variance = fit.predict(points)
            return Predictions(mean[None], variance[None], np.array([fit.least_energy()]))
        return self.query(points, finest=float(ridges.min())).predict(ridges)

    def path(self, finest: float = 0.0, finest_per_point: float = 0.0) -> RidgePath:
        """Energies at all ridges; see :class:`GrowingPath` for the arguments."""
        key = (finest, finest_per_point)
        return _kept(self._paths, key, lambda: GrowingPath(self.rows, *key)).current()

    def query(
        self, points: Targets, finest: float = 0.0, finest_per_point: float = 0.0
    ) -> PathQuery:
        """Means, variances and energies at ``points`` along such a path."""
        asked = self.rows.representers(points)
        return PathQuery.of(self.path(finest, finest_per_point), asked)

    def eigenpath(self) -> RidgePath:
        """A path whose leading directions, eigenvectors, depend on the points alone."""
        return self.path()

    def enlarged(self, counts: NDArray[np.intp]) -> Array:
        """At least |V'V|, where V are so many leading eigenvectors as they were computed."""
        return np.full(len(counts), 1 + (16 + ORTHONORMAL * self.rows.count) * EPS)

    def query_along(self, path: RidgePath, points: Targets) -> PathQuery:
        """What :meth:`query` tells, along leading directions of :meth:`eigenpath` alone.

        There the components of a vector do not tell how long it is, by which rounding errors are
        measured; |k_t(x)|^2 is at most k(x,x) tr K.
        """
        prior, vectors, magnitudes = self.rows.representers(points)
        asked = Representers(prior, vectors, prior if magnitudes is None else magnitudes)
        return PathQuery.of(path, asked)

    def solve(self, vectors: Array, ridges: Array) -> Array:
        """(K + alpha_i I)^-1 v_i for the columns v_i of ``vectors`` (t, m), for a few ridges."""
        result = np.empty_like(vectors)
        for ridge in np.unique(ridges):
            columns = np.flatnonzero(ridges == ridge)
            if (fit := self._fit(float(ridge))).trusted():
                result[:, columns] = fit.solve(vectors[:, columns])
            else:
                result[:, columns] = self.path().solve(vectors[:, columns], ridges[columns])
        return result

    def _fit(self, ridge: float) -> RidgeFit:
        return _kept(self._fits, ridge, lambda: RidgeFit(self.rows, ridge))

    def _block_start(self, window: Window, ridge: float) -> forecasting.BlockStart:
        return _kept(
            self._starts,
            (window.start, ridge),
            lambda: forecasting.block_start(self.data, window, ridge),
        )


def _kept(cache: OrderedDict[K, V], key: K, make: Callable[[], V]) -> V:
    """The value at ``key``, made when absent; the least recently used one makes room."""
    value = cache.pop(key) if key in cache else make()
    cache[key] = value
    if len(cache) > KEPT:
        cache.popitem(last=False)
    return value
