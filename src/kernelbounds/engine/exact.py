"""The exact engine: all observations are kept, and so is the kernel matrix.

The second half of this file forecasts each outcome from those before it, which the radius needs.
One by one, forecasts are rows of a Cholesky factor: of the merged rows that a window starts with,
and of the observations of that window. In a block they all come from the merged rows alone. A
forecast may be anything that is known before its outcome, so both are valid, and rounding errors do
no harm; only the difference from the outcome must be right.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.base import Engine, Fits
from kernelbounds.engine.observations import ForecastWindow, Observations, Outcomes
from kernelbounds.engine.path_query import PathQuery, Predictions
from kernelbounds.engine.ridge_fit import LEAST_RIDGE_OF_TRACE, Forecasts, RidgeFit
from kernelbounds.engine.ridge_path import GrowingPath, RidgePath
from kernelbounds.engine.rows import KernelRows, Representers
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Functionals, Targets

K = TypeVar("K")
V = TypeVar("V")


# Paths and fits that are kept for the next call: DMM and CMM need a path each, R_t and each ridge
# of an AMM a fit, and an unknown noise scale eight; more would only cost memory, t^2 numbers each.
CACHED_RESULTS = 12
# For computed eigenvectors V, V'V differs from I by less than 16 + this times t rounding errors, in
# the spectral norm (measured with LAPACK: by up to 31 of them at t = 700).
ORTHONORMALITY_PER_ROW = 1.0
# Differences of sums over all forecasts cancel, so a factor is trusted with these only at ridges
# a thousand times as large as for bounds.
LEAST_RIDGE_FOR_SUMS = 1e3 * LEAST_RIDGE_OF_TRACE

# A ridge is chosen by this many rows at most: more of them hardly move it, and their decomposition
# takes a tenth of a second.
FITTED_ROWS = 512


class ExactEngine(Engine):
    """Kernel ridge regression on all observations, one by one.

    Every answer is a function of the kernel matrix and the outcomes alone: appending one by one,
    in blocks or all at once gives the same numbers, to the bit where the kernel does. Observations
    at equal points are merged, so that only the number of different points counts for the cost.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.data: Observations = Observations(kernel)
        self._paths: OrderedDict[tuple[float, float], GrowingPath] = OrderedDict()
        self._fits: OrderedDict[float, RidgeFit] = OrderedDict()
        self._starts: OrderedDict[tuple[int, float], BlockStart] = OrderedDict()

    @property
    def rows(self) -> KernelRows:
        """The rows of the kernel matrix: one for each merged point and each observation since."""
        return self.data.rows

    @property
    def dim(self) -> int | None:
        """The dimension of the points; None before the first one."""
        return self.data.dim

    @property
    def landmarks(self) -> Array:
        """All points that were observed, (t, d)."""
        return self.data.points

    def approximation(self) -> None:
        """There is no approximation beyond rounding errors."""

    @property
    def stage(self) -> tuple[int, Array]:
        """One stage for all time, since the kernel never changes."""
        return 0, np.empty(0)

    def snapshot(self) -> ExactEngine:
        """An engine on the observations so far, to be read only, with fits and paths of its own."""
        other = ExactEngine(self.data.kernel)
        other.data = self.data.snapshot()
        return other

    def whole_blocks(self, count: int) -> int:
        """``count``: the numbers do not depend on how observations are grouped."""
        return count

    def append(self, points: Array, outcomes: Outcomes | Array) -> None:
        """Add observations; on an error nothing is added."""
        rows, accuracy = self.rows, self.data.accuracy
        known = outcomes if isinstance(outcomes, Outcomes) else Outcomes.plain(outcomes)
        self.data.append(points, known)
        # Results from before a merge, or from before the kernel proved less precise, are void.
        if self.rows is not rows or self.data.accuracy != accuracy:
            self._paths.clear()
            self._fits.clear()

    def energy_below(self, ridge: float) -> float:
        """E_alpha, rounded down."""
        fit = self._fit(ridge)
        return float(fit.least_energy()) if fit.trusted() else super().energy_below(ridge)

    def energy_above(self, ridge: float) -> float:
        """E_alpha, rounded up."""
        return self._above(ridge)[0]

    def log_det_above(self, ridge: float) -> float:
        """ln det(I + K/alpha), rounded up."""
        return self._above(ridge)[1]

    def _above(self, ridge: float, least: float = LEAST_RIDGE_OF_TRACE) -> tuple[float, float]:
        """Energy and log-determinant, rounded up, by the fit at the ridge or by a path.

        They are those of rows that are white under C itself. The computed rows are white under a
        matrix between C and (1 + 4 e) C, with the error e of the factor, so both are enlarged.
        """
        fit, e = self._fit(ridge), self.data.whitening.error
        if fit.trusted(least):
            energy, log_det = fit.energy_and_log_det()
        else:
            energy, log_det = self.path().energy_and_log_det(ridge)
        return energy * (1 + 4 * e), log_det + 4 * e * self.rows.count

    def forecasts_since(self, start: int, ridge: float, least: float) -> tuple[Forecasts, float]:
        """Forecasts of outcomes from number ``start`` on, one at least, and their ridge.

        The ridge is ``ridge``, or ``least`` times the largest k(x,x) so far where that is more.
        Forecasts end where a larger ridge is needed, since none may know later points. Each is
        made from all outcomes before it or, where observations are many and points few, from
        those before its block (:attr:`blocks_from`).
        """
        data = self.data
        window, after = window_of(data, start)
        enough = forecast_ridges(data.largest[start:after], ridge, least)
        alpha = float(enough[0])
        stop = start + int(np.searchsorted(enough, alpha, side="right"))
        if window.in_block:
            known = self._block_start(window, alpha)
            made = in_block(data, known, start, stop)
        else:
            made = one_by_one(data, window, start, stop, self._fit(alpha))
        lost = OUTCOME_ROUNDINGS * EPS * np.abs(data.outcomes[start:stop])
        lost += data.whitening.part(start, stop).errors(data.outcomes[start:stop])
        return Forecasts(np.abs(made.errors) + lost, made.variances), alpha

    @property
    def blocks_from(self) -> int | None:
        """The first observation that is forecast as part of a block, if there is one."""
        return self.data.blocks_from

    def gained_in_blocks(self, ridge: float, least: float) -> tuple[float, float]:
        """The growth of E_alpha and of ln det(I + K/alpha) since the first block, rounded up.

        Alpha is the ridge of the next forecast. These are the sums of what forecasts one by one
        would have cost.
        """
        data, start = self.data, self.data.blocks_from
        assert start is not None
        alpha = float(forecast_ridges(data.largest[start], ridge, least))
        before = self._block_start(window_of(data, start)[0], alpha)
        now = self._above(alpha, LEAST_RIDGE_FOR_SUMS)
        gains = now[0] - before.energy, now[1] - before.log_det
        return max(gains[0], 0.0) + 4 * EPS * now[0], max(gains[1], 0.0) + 4 * EPS * now[1]

    def largest_forecast_ridge(self, ridge: float, least: float) -> float:
        """The largest ridge at which a forecast is made."""
        return float(forecast_ridges(self.data.largest[-1:], ridge, least).max(initial=0.0))

    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """See :class:`Engine`."""
        if len(ridges) == 1 and not isinstance(points, Functionals):
            fit = self._fit(float(ridges[0]))
            if fit.trusted():
                mean, variance = fit.predict(points)
                return Predictions(mean[None], variance[None], np.array([fit.least_energy()]))
        return self.query(points, finest=float(ridges.min())).predict(ridges)

    def path(self, finest: float = 0.0, finest_per_point: float = 0.0) -> RidgePath:
        """See :class:`Engine`."""
        key = (finest, finest_per_point)
        return _cached(self._paths, key, lambda: GrowingPath(self.rows, *key)).current()

    def query(
        self, points: Targets, finest: float = 0.0, finest_per_point: float = 0.0
    ) -> PathQuery:
        """See :class:`Engine`."""
        asked = self.rows.representers(points)
        return PathQuery.of(self.path(finest, finest_per_point), asked)

    def eigenpath(self) -> RidgePath:
        """See :class:`Engine`."""
        return self.path()

    def squared_norms_of_directions(self, counts: NDArray[np.intp]) -> Array:
        """See :class:`Engine`; computed eigenvectors are nearly orthonormal."""
        return np.full(len(counts), 1 + (16 + ORTHONORMALITY_PER_ROW * self.rows.count) * EPS)

    def query_along(self, path: RidgePath, points: Targets) -> PathQuery:
        """See :class:`Engine`.

        The components of k_t(x) along these directions do not tell its length, by which rounding
        errors are measured; |k_t(x)|^2 is at most k(x,x) tr K.
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

    def fits(self, ridges: Array) -> Fits:
        """See :class:`Engine`; of rows that are spread evenly where there are very many."""
        rows, size = self.rows, self.rows.count
        chosen = np.arange(size)
        if size > FITTED_ROWS:
            chosen = np.linspace(0, size - 1, FITTED_ROWS).round().astype(int)
        values, vectors = np.linalg.eigh(rows.lower[np.ix_(chosen, chosen)])
        values, share = np.maximum(values, 0.0), len(chosen) / size
        squares = (rows.outcomes[chosen] @ vectors) ** 2
        shrunk = ridges[:, None] / (values + ridges[:, None])
        energies = shrunk @ squares + share * rows.scatter.least
        return Fits(energies, -np.log(shrunk).sum(axis=1), share * self.data.count)

    def ridge_weights(self, ridge: float) -> tuple[Array, Array]:
        """See :class:`Engine`; the centres are the points of the rows."""
        rows = self.rows
        right = rows.outcomes[:, None]
        try:
            matrix = rows.lower + ridge * np.eye(rows.count)
            factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            solved = cho_solve(factor, right, check_finite=False)
        except np.linalg.LinAlgError:  # The matrix is numerically singular, as it is without noise.
            solved = self.path().solve(right, np.array([ridge]))
        return rows.points, rows.whitening.transposed_times(solved[:, 0])

    def _fit(self, ridge: float) -> RidgeFit:
        return _cached(self._fits, ridge, lambda: RidgeFit(self.rows, ridge))

    def _block_start(self, window: ForecastWindow, ridge: float) -> BlockStart:
        return _cached(
            self._starts,
            (window.start, ridge),
            lambda: block_start(self.data, window, ridge),
        )


def with_single_observations(engine: Engine, purpose: str, instead: str) -> ExactEngine:
    """Return an engine that keeps single observations, or refuse the engine for a purpose."""
    if isinstance(engine, ExactEngine):
        return engine
    raise InputError(
        f"{purpose} needs the single observations, which a sparse engine does not keep; {instead}."
    )


def _cached(cache: OrderedDict[K, V], key: K, make: Callable[[], V]) -> V:
    """Return the value at ``key``, made if missing; the least recently used one makes room."""
    value = cache.pop(key) if key in cache else make()
    cache[key] = value
    if len(cache) > CACHED_RESULTS:
        cache.popitem(last=False)
    return value


# The outcome enters the sum of at most eight terms in which y - m is computed: its rounding errors,
# as multiples of the outcome's.
OUTCOME_ROUNDINGS = 8


class BlockStart(NamedTuple):
    """The predictions and sums before a block, at one ridge."""

    mean: Array  # mu_alpha at the points so far, (n,)
    variance: Array  # rho_alpha^2, (n,)
    energy: float  # E_alpha and ln det(I + K/alpha), rounded down
    log_det: float


def forecast_ridges(largest: Array, ridge: float, least: float) -> Array:
    """The ridges at which forecasts are made, given the largest k(x,x) up to each; they never fall.

    A ridge is ``ridge``, or ``least`` times the power of two above the largest k(x,x), which
    seldom changes.
    """
    scales = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1]), 0.0)
    return np.maximum(ridge, least * scales)


def window_of(data: Observations, number: int) -> tuple[ForecastWindow, int]:
    """The window of an observation, and the number of the first one after it."""
    at = bisect_right(data.windows, number, key=lambda one: one.start)
    after = data.windows[at].start if at < len(data.windows) else data.count
    return data.windows[at - 1], after


def one_by_one(
    data: Observations, window: ForecastWindow, start: int, stop: int, current: RidgeFit
) -> Forecasts:
    """Forecast some of a window's outcomes; ``current`` is the fit of all present rows."""
    first = len(window.merged) - window.start
    fit = current
    if window.start != data.merged.count or stop != data.count:
        fit = RidgeFit(data.rows_of(window, stop), current.ridge)
    made = fit.forecasts()
    return Forecasts(*(part[first + start : first + stop] for part in made))


def block_start(data: Observations, window: ForecastWindow, ridge: float) -> BlockStart:
    """The predictions and sums before a block, from an eigenbasis, which takes any ridge."""
    rows = data.rows_of(window, window.start)
    path = GrowingPath(rows, 0.0, 0.0).current()
    found = PathQuery.of(path, rows.representers(window.merged.points)).predict(np.array([ridge]))
    return BlockStart(
        found.mean[0], found.variance[0], float(found.energy[0]), _log_det(path, ridge)
    )


def in_block(data: Observations, known: BlockStart, start: int, stop: int) -> Forecasts:
    """Forecast outcomes of a block, by the prior at points without observations.

    A point whose noise is correlated with that of others counts as one without observations.
    """
    numbers, weights = data.of_point[start:stop], data.weights[start:stop]
    seen = numbers < len(known.mean)
    mean, variance = np.zeros(len(numbers)), data.prior[start:stop].copy()
    mean[seen] = weights[seen] * known.mean[numbers[seen]]
    variance[seen] = weights[seen] ** 2 * known.variance[numbers[seen]]
    return Forecasts(data.outcomes[start:stop] - mean, variance)


def _log_det(path: RidgePath, ridge: float) -> float:
    """ln det(I + K/alpha), rounded down."""
    values = np.maximum(path.eigen.eigenvalues - path.eigen.slack, 0.0)
    return float(np.log1p(values / ridge).sum()) * (1 - len(values) * EPS)
