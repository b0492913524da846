"""The exact engine: all observations are kept, and so is the kernel matrix."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.base import Directions, Engine, Fits
from kernelbounds.engine.observations import Observations, Outcomes
from kernelbounds.engine.path_query import PathQuery, Predictions
from kernelbounds.engine.ridge_fit import LEAST_RIDGE_OF_TRACE, RidgeFit
from kernelbounds.engine.ridge_path import GrowingPath, RidgePath
from kernelbounds.engine.rows import KernelRows, Representers
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Functionals, Targets

if TYPE_CHECKING:
    from kernelbounds.engine.forecasts import BlockStart

K = TypeVar("K")
V = TypeVar("V")


# Paths and fits that are kept for the next call: DMM and CMM need a path each, R_t and each ridge
# of an AMM a fit, and an unknown noise scale eight; more would only cost memory, t^2 numbers each.
CACHED_RESULTS = 12
# For computed eigenvectors V, V'V differs from I by less than 16 + this times t rounding errors, in
# the spectral norm (measured with LAPACK: by up to 31 of them at t = 700).
ORTHONORMALITY_PER_ROW = 1.0
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
        self.block_starts: OrderedDict[tuple[int, float], BlockStart] = OrderedDict()

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
        fit = self.fit(ridge)
        return float(fit.least_energy()) if fit.trusted() else super().energy_below(ridge)

    def energy_above(self, ridge: float) -> float:
        """E_alpha, rounded up."""
        return self.sums_above(ridge)[0]

    def log_det_above(self, ridge: float) -> float:
        """ln det(I + K/alpha), rounded up."""
        return self.sums_above(ridge)[1]

    def sums_above(self, ridge: float, least: float = LEAST_RIDGE_OF_TRACE) -> tuple[float, float]:
        """Energy and log-determinant, rounded up, by the fit at the ridge or by a path.

        They are those of rows that are white under C itself. The computed rows are white under a
        matrix between C and (1 + 4 e) C, with the error e of the factor, so both are enlarged.
        """
        fit, e = self.fit(ridge), self.data.whitening.error
        if fit.trusted(least):
            energy, log_det = fit.energy_and_log_det()
        else:
            energy, log_det = self.path().energy_and_log_det(ridge)
        return energy * (1 + 4 * e), log_det + 4 * e * self.rows.count

    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """See :class:`Engine`."""
        if len(ridges) == 1 and not isinstance(points, Functionals):
            fit = self.fit(float(ridges[0]))
            if fit.trusted():
                mean, variance = fit.predict(points)
                return Predictions(mean[None], variance[None], np.array([fit.least_energy()]))
        return self.query(points, finest=float(ridges.min())).predict(ridges)

    def path(self, finest: float = 0.0, finest_per_point: float = 0.0) -> RidgePath:
        """See :class:`Engine`."""
        key = (finest, finest_per_point)
        return cached(self._paths, key, lambda: GrowingPath(self.rows, *key)).current()

    def query(
        self, points: Targets, finest: float = 0.0, finest_per_point: float = 0.0
    ) -> PathQuery:
        """See :class:`Engine`."""
        asked = self.rows.representers(points)
        return PathQuery.of(self.path(finest, finest_per_point), asked)

    def directions(self) -> Eigenvectors:
        """See :class:`Engine`."""
        return Eigenvectors(self.path(), self.rows)

    def solve(self, vectors: Array, ridges: Array) -> Array:
        """(K + alpha_i I)^-1 v_i for the columns v_i of ``vectors`` (t, m), for a few ridges."""
        result = np.empty_like(vectors)
        for ridge in np.unique(ridges):
            columns = np.flatnonzero(ridges == ridge)
            if (fit := self.fit(float(ridge))).trusted():
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

    def fit(self, ridge: float) -> RidgeFit:
        """Kernel ridge regression at one ridge, by a factor that grows with the data."""
        return cached(self._fits, ridge, lambda: RidgeFit(self.rows, ridge))


@dataclass(frozen=True)
class Eigenvectors(Directions):
    """The computed eigenvectors of the kernel matrix of the rows, which are nearly orthonormal."""

    path: RidgePath
    rows: KernelRows

    def query(self, path: RidgePath, points: Targets) -> PathQuery:
        """See :class:`Directions`.

        The components of k_t(x) along these directions do not tell its length, by which rounding
        errors are measured; |k_t(x)|^2 is at most k(x,x) tr K.
        """
        prior, vectors, magnitudes = self.rows.representers(points)
        asked = Representers(prior, vectors, prior if magnitudes is None else magnitudes)
        return PathQuery.of(path, asked)

    def squared_norms(self, counts: NDArray[np.intp]) -> Array:
        """See :class:`Directions`."""
        return np.full(len(counts), 1 + (16 + ORTHONORMALITY_PER_ROW * self.rows.count) * EPS)


def with_single_observations(engine: Engine, purpose: str, instead: str) -> ExactEngine:
    """Return an engine that keeps single observations, or refuse the engine for a purpose."""
    if isinstance(engine, ExactEngine):
        return engine
    raise InputError(
        f"{purpose} needs the single observations, which a sparse engine does not keep; {instead}."
    )


def cached(cache: OrderedDict[K, V], key: K, make: Callable[[], V]) -> V:
    """Return the value at ``key``, made if missing; the least recently used one makes room."""
    value = cache.pop(key) if key in cache else make()
    cache[key] = value
    if len(cache) > CACHED_RESULTS:
        cache.popitem(last=False)
    return value
