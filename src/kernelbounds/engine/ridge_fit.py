"""Kernel ridge regression at one ridge, by Cholesky factors.

The factor of a :class:`RidgeFit` grows with the data. For points that are known in advance,
:func:`along_run` takes all steps of a finished run from one factor, and :class:`LazyVariances` are
variances at many candidates given those chosen so far. In a :class:`RidgeFit`,

============  =======================  ==================================================
code          paper                    meaning
============  =======================  ==================================================
``ridge``     alpha                    the ridge value
``settled``                            the first n observations, some whole groups
``inverse``   L^-1, L L' = K + alpha I the inverse factor of those, lower triangular
``whitened``  L^-1 y_n                 their outcomes in the factor's coordinates, (n,)
``newest``                             the other p = t - n observations, less than a group
============  =======================  ==================================================

To apply an inverse triangle is one matrix product at half price, which takes three quarters of the
time of a triangular solve (an append-and-predict loop of 1000 rounds with 100 points each). It is
safe where this method is used at all, for ridges that keep the condition number moderate. The
newest observations are not in the triangle; their rows of the factor are computed when asked for.
So what is stored is a function of the data alone and not of how they were split into appends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, column_dots, with_room
from kernelbounds.engine.rows import KernelRows
from kernelbounds.errors import InputError

# Sizes by ``python -m benchmarks loop``; they change the time by a few percent, and no result.
# Observations join the triangle in groups, and from this many rows on in larger ones, because most
# of the time goes into reading a triangle that is larger than a cache.
GROUP_SIZE, MANY_ROWS, LARGE_GROUP_SIZE = 8, 1024, 64
PANEL_ROWS = 128  # rows of the triangle that are applied at once to a few columns
FEW_COLUMNS = 8  # up to these, panels beat BLAS's triangular product: twice as fast for one column
FIRST_CAPACITY = 240  # rows there is room for at first; caches dislike powers of two
# A factor is trusted for ridges of at least this times the trace of the kernel matrix and the
# rounding error; there, what is added for rounding errors stays below 1e-7, relatively.
LEAST_RIDGE_OF_TRACE = 1e-7 / EPS


class FactorRows(NamedTuple):
    """p rows below the triangle: those of L, L_pn = ``left``' and L_pp = ``corner``^-1."""

    left: Array  # L^-1 K_np, (n, p)
    corner: Array  # (p, p)
    pivots: Array  # the diagonal of L_pp, (p,)
    whitened: Array  # the outcomes, (p,)

    @classmethod
    def none(cls, settled: int) -> FactorRows:
        """No rows below a triangle of ``settled`` rows."""
        return cls(np.empty((settled, 0)), np.empty((0, 0)), np.empty(0), np.empty(0))


class Forecasts(NamedTuple):
    """The forecast of each outcome from those before it; (t,) each."""

    errors: Array  # y_s - mu_alpha,s-1(x_s), or what is at least its absolute value
    variances: Array  # rho^2_alpha,s-1(x_s)


class RidgeFit:
    """Energy, log-determinant, mean and variance at one ridge."""

    def __init__(self, data: KernelRows, ridge: float) -> None:
        self.ridge = ridge
        self._data = data
        self._settled = 0
        self._inverse = np.empty((FIRST_CAPACITY, FIRST_CAPACITY), order="F")
        self._whitened, self._pivots = np.empty(0), np.empty(0)
        self._newest = FactorRows.none(0)

    def trusted(self, least: float = LEAST_RIDGE_OF_TRACE) -> bool:
        """Whether the ridge is large enough, relative to the kernel matrix, for this method."""
        return self.ridge >= least * self._data.accuracy * self._data.trace

    def energy_and_log_det(self) -> tuple[float, float]:
        """E_alpha = y' (I + K/alpha)^-1 y and ln det(I + K/alpha), both rounded up."""
        whitened, pivots = self._all_rows()
        energy = self.ridge * float(whitened @ whitened) + self._data.scatter.most
        log_det = float(np.log(pivots**2 / self.ridge).sum())
        return energy * (1 + self._rounding), log_det + self._rounding

    def least_energy(self) -> float:
        """E_alpha, rounded down."""
        whitened, _ = self._all_rows()
        energy = self.ridge * float(whitened @ whitened) + self._data.scatter.least
        return energy / (1 + self._rounding)

    def forecasts(self) -> Forecasts:
        """Row s of the factor is the forecast of y_s: L_ss^2 = rho^2_alpha,s-1(x_s) + alpha."""
        whitened, pivots = self._all_rows()
        return Forecasts(whitened * pivots, np.maximum(pivots**2 - self.ridge, 0.0))

    def predict(self, points: Array) -> tuple[Array, Array]:
        """mu_alpha = k' (K + alpha I)^-1 y and rho_alpha^2 = k(x,x) - k' (K + alpha I)^-1 k.

        The variances (m,) are rounded up.
        """
        rows = self._rows_of_newest()
        data, n = self._data, self._settled
        prior, vectors, _ = data.representers(points)
        top = self._times(vectors[:n])
        bottom = rows.corner @ (vectors[n:] - rows.left.T @ top)
        mean = self._whitened @ top + rows.whitened @ bottom
        variance = prior - column_dots(top, top) - column_dots(bottom, bottom)
        variance *= 1 + self._rounding
        variance += (16 + data.count / 2) * data.accuracy * prior
        return mean, np.maximum(variance, 0.0)

    def solve(self, vectors: Array) -> Array:
        """(K + alpha I)^-1 v = L^-T L^-1 v for the columns v of ``vectors`` (t, m)."""
        rows, n = self._rows_of_newest(), self._settled
        top = self._times(vectors[:n])
        bottom = rows.corner.T @ (rows.corner @ (vectors[n:] - rows.left.T @ top))
        return np.concatenate([self._times_transposed(top - rows.left @ bottom), bottom])

    @property
    def _rounding(self) -> float:
        return 32 * self._data.accuracy * (1 + self._data.trace / self.ridge)

    def _all_rows(self) -> tuple[Array, Array]:
        """L^-1 y and the diagonal of L, (t,) each."""
        rows = self._rows_of_newest()
        return np.append(self._whitened, rows.whitened), np.append(self._pivots, rows.pivots)

    def _rows_of_newest(self) -> FactorRows:
        """The rows of the newest observations, once all others have joined the triangle."""
        count = self._data.count
        while self._settled + _group_after(self._settled) <= count:
            self._settle()
        n, known = self._settled, self._newest.left
        if n + known.shape[1] < count:
            # One by one, so that the result does not depend on how many are new.
            new = [self._times(row[:, None]) for row in self._data.lower[n + known.shape[1] :, :n]]
            self._newest = self._rows(np.hstack([known, *new]))
        return self._newest

    def _rows(self, left: Array) -> FactorRows:
        """The next rows of the factor, with L_pp L_pp' = K_pp + alpha I - L_pn L_pn'."""
        start, stop = self._settled, self._settled + left.shape[1]
        # What is above the diagonal was never written, and may be anything.
        own = np.tril(self._data.lower[start:stop, start:stop]) - left.T @ left
        own.flat[:: len(own) + 1] += self.ridge
        pivot, failed = lapack.dpotrf(own, lower=1)
        if failed:
            raise InputError(
                f"{self._data.kernel} is not a kernel: its matrix on the data is not positive "
                "semi-definite."
            )
        corner = lapack.dtrtri(pivot, lower=1)[0]
        rest = self._data.outcomes[start:stop] - self._whitened @ left
        return FactorRows(left, corner, pivot.diagonal().copy(), corner @ rest)

    def _settle(self) -> None:
        """[[L, 0], [L_pn, L_pp]]^-1 = [[L^-1, 0], [-corner L_pn L^-1, corner]]."""
        old, new = self._settled, self._settled + _group_after(self._settled)
        rows = self._rows(self._times(self._data.lower[old:new, :old].T))
        self._inverse = with_room(self._inverse, new, old, axes=2)
        self._inverse[old:new, :old] = -rows.corner @ self._times_transposed(rows.left).T
        self._inverse[old:new, old:new] = rows.corner
        self._inverse[:old, old:new] = 0.0
        self._whitened = np.append(self._whitened, rows.whitened)
        self._pivots = np.append(self._pivots, rows.pivots)
        self._settled, self._newest = new, FactorRows.none(new)

    def _times(self, right: Array) -> Array:
        """L^-1 right."""
        n, columns = right.shape
        if columns > FEW_COLUMNS and n:
            # All rows of some columns are contiguous, and no copy is made of the triangle.
            triangle, right = self._inverse[:, :n], right.copy("F")
            product: Array = blas.dtrmm(1.0, triangle, right, lower=1, overwrite_b=1)
            return product
        result = np.empty(right.shape)
        for start in range(0, n, PANEL_ROWS):
            stop = min(start + PANEL_ROWS, n)
            np.matmul(self._inverse[start:stop, :stop], right[:stop], out=result[start:stop])
        return result

    def _times_transposed(self, right: Array) -> Array:
        """L^-T right."""
        n = len(right)
        result = np.empty(right.shape)
        for start in range(0, n, PANEL_ROWS):
            stop = min(start + PANEL_ROWS, n)
            panel = self._inverse[start:n, start:stop].T
            np.matmul(panel, right[start:], out=result[start:stop])
        return result


def _group_after(settled: int) -> int:
    """The size of the next group, a function of the number of rows and not of their appends."""
    return GROUP_SIZE if settled < MANY_ROWS else LARGE_GROUP_SIZE


@dataclass(frozen=True)
class RunPass:
    """The knowledge of a learner at one ridge, before each of T rounds and after the last."""

    ridge: float
    variances: Array  # (T,)
    log_dets: Array  # (T + 1,)
    energies: Array  # (T + 1,); zeros without outcomes
    errors: Array  # y_t - mu_alpha,t-1(x_t), (T,); zeros without outcomes


def along_run(gram: Array, ridge: float, outcomes: Array | None = None) -> RunPass:
    """Compute all steps of a run from one factor L L' = K_T + alpha I.

    Its leading blocks are the factors of all t. Left of the diagonal, row t is L^-1 k_t-1(x_t) with
    the factor of the round before. With z = L^-1 y, E_alpha,t = alpha sum_{s<=t} z_s^2, and the
    forecast of y_t is wrong by L_tt z_t. Nothing is rounded up here, unlike in the bounds.
    """
    count = len(gram)
    factor, failed = lapack.dpotrf(gram + ridge * np.eye(count), lower=1)
    if failed:
        raise InputError(
            f"ridge = {ridge:g} is too small for {count} points of this kernel in double "
            "precision; use a larger one."
        )
    energies, errors = np.zeros(count + 1), np.zeros(count)
    if outcomes is not None:
        whitened = lapack.dtrtrs(factor, outcomes[:, None], lower=1)[0][:, 0]
        energies[1:] = ridge * np.cumsum(whitened**2)
        errors = whitened * factor.diagonal()
    # k(x_t, x_t) - sum_{s<t} L_ts^2, which unlike L_tt^2 - alpha is exact where nothing is known.
    left = np.tril(factor, -1)
    variances = np.maximum(np.diagonal(gram) - np.einsum("ij,ij->i", left, left), 0.0)
    log_dets = np.append(0.0, np.cumsum(np.log1p(variances / ridge)))
    return RunPass(ridge, variances, log_dets, energies, errors)


class LazyVariances:
    """rho^2_alpha at n candidates, of which at most ``capacity``, with repeats, are chosen.

    Variances are brought up to date on demand; candidates that are never looked at cost nothing.

    ==============  ======================  ====================================================
    code            paper                   meaning
    ==============  ======================  ====================================================
    ``ceilings``    >= rho^2_alpha,t(x)     the variance when last looked at; it only falls, (n,)
    ``levels``                              how many points were chosen by then, (n,)
    ``rows``        (L^-1 k_t(x))'          the candidates' rows of the factor, (n, capacity)
    ``factor``      L L' = K_t + alpha I    that of the chosen points
    ==============  ======================  ====================================================
    """

    def __init__(self, kernel: Kernel, points: Array, ridge: float, capacity: int) -> None:
        self.ridge = ridge
        self.ceilings = kernels.diagonal(kernel, points)
        self.levels = np.zeros(len(points), dtype=np.int64)
        self.count = 0
        self._kernel, self._points = kernel, points
        self._prior = self.ceilings.copy()
        # The operating system provides memory only where it is written.
        self._rows = np.empty((len(points), capacity))
        self._factor = np.zeros((capacity, capacity))
        self._chosen = np.empty((capacity, points.shape[1]))

    def refresh(self, which: NDArray[np.int64]) -> None:
        """Lower the ceilings of these candidates to their variances.

        A row is extended from its level to the present by one product and one small triangular
        solve, for many candidates at a time.
        """
        stale = which[self.levels[which] < self.count]
        # Rows that lack 1 to 7 entries are extended together, those that lack 8 to 63, and so on.
        missing = np.frexp((self.count - self.levels[stale]).astype(np.float64))[1] // 4
        for size in np.unique(missing):
            self._extend(stale[missing == size])

    def choose(self, index: int) -> None:
        """Condition on a candidate whose variance is up to date."""
        t = self.count
        self._factor[t, :t] = self._rows[index, :t]
        self._factor[t, t] = np.sqrt(self.ceilings[index] + self.ridge)
        self._chosen[t] = self._points[index]
        self.count += 1

    def _extend(self, which: NDArray[np.int64]) -> None:
        """[row_old, row_new] [[L11, 0], [L21, L22]]' = [k_old', k_new'], solved for row_new."""
        old, now = int(self.levels[which].min()), self.count
        right = kernels.cross(self._kernel, self._points[which], self._chosen[old:now])
        rows = self._rows[which, :old]
        right -= rows @ self._factor[old:now, :old].T
        corner = self._factor[old:now, old:now]
        new = blas.dtrsm(1.0, corner, right, side=1, lower=1, trans_a=1)
        explained = np.einsum("ij,ij->i", rows, rows) + np.einsum("ij,ij->i", new, new)
        self._rows[which, old:now] = new
        self.ceilings[which] = np.maximum(self._prior[which] - explained, 0.0)
        self.levels[which] = now
