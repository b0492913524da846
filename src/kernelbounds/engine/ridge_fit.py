"""Kernel ridge regression at one ridge, by a Cholesky factor that grows with the data.

============  =======================  ==================================================
code          paper                    meaning
============  =======================  ==================================================
``ridge``     alpha                    the ridge value
``settled``                            the first n observations, a multiple of GROUP
``inverse``   L^-1, L L' = K + alpha I the inverse factor of those, lower triangular
``whitened``  L^-1 y_n                 their outcomes in the factor's coordinates, (n,)
``newest``                             the other p = t - n observations, fewer than GROUP
============  =======================  ==================================================

Applying an inverse triangle is one matrix product at half price. It is safe where the method is
used at all, for ridges that keep the condition number moderate. The newest observations are not in
the triangle; their rows of the factor are computed once each. What is stored is a function of the
data alone and not of how they were split into appends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.rows import KernelRows
from kernelbounds.errors import InputError

# Sizes by ``python -m benchmarks loop``; they change the time by a few percent, and no result.
GROUP = 8  # observations that join the triangle together
PANEL = 128  # rows of the triangle that are applied at once to a few columns
FEW_COLUMNS = 8  # up to which that is faster than BLAS's triangular product
CAPACITY = 240  # rows there is room for at first; caches dislike powers of two
# A factor is trusted for ridges of at least this times the trace of the kernel matrix and the
# rounding error; there, what is added for rounding errors stays below 1e-7, relatively.
LEAST_RIDGE_OF_TRACE = 1e-7 / EPS


class NextRows(NamedTuple):
    """p rows below the triangle: those of L, L_pn = ``left``' and L_pp = ``corner``^-1."""

    left: Array  # L^-1 K_np, (n, p)
    corner: Array  # (p, p)
    pivots: Array  # the diagonal of L_pp, (p,)
    whitened: Array  # the outcomes, (p,)


class Forecasts(NamedTuple):
    """What was predicted of each outcome from those before it; (t,) each."""

    errors: Array  # y_s - mu_alpha,s-1(x_s), or what is at least its absolute value
    variances: Array  # rho^2_alpha,s-1(x_s)


class RidgeFit:
    """Energy, log-determinant, mean and variance at one ridge."""

    def __init__(self, data: KernelRows, ridge: float) -> None:
        self.ridge = ridge
        self._data = data
        self._settled = 0
        self._inverse = np.zeros((CAPACITY, CAPACITY), order="F")  # zeros above the triangle
        self._whitened, self._pivots = np.empty(0), np.empty(0)
        self._newest = _no_rows(0)  # of the others, as far as they were asked for
        self._totals: tuple[int, tuple[float, float]] | None = None  # with the count they are of
        # Room for what these are made from: L_pn, and what the settled ones leave of K_pp and y_p.
        self._left = np.empty((GROUP, CAPACITY))
        self._own, self._rest = np.empty((GROUP, GROUP)), np.empty(GROUP)

    def trusted(self, least: float = LEAST_RIDGE_OF_TRACE) -> bool:
        """Whether the ridge is large enough, relative to the kernel matrix, for this method."""
        return self.ridge >= least * self._data.accuracy * self._data.trace

    def energy_and_log_det(self) -> tuple[float, float]:
        """E_alpha = y' (I + K/alpha)^-1 y and ln det(I + K/alpha), both rounded up."""
        energy, log_det = self._energy_and_log_det()
        energy += self._data.scatter.most
        return energy * (1 + self._rounding), log_det + self._rounding

    def least_energy(self) -> float:
        """E_alpha, rounded down."""
        return (self._energy_and_log_det()[0] + self._data.scatter.least) / (1 + self._rounding)

    def _energy_and_log_det(self) -> tuple[float, float]:
        if self._totals is None or self._totals[0] != self._data.count:
            whitened, pivots = self._all_rows()
            energy = self.ridge * float(whitened @ whitened)
            log_det = float(np.log(pivots**2 / self.ridge).sum())
            self._totals = self._data.count, (energy, log_det)
        return self._totals[1]

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
        top = self._times(vectors[:n].copy("F"))
        bottom = rows.corner @ (vectors[n:] - rows.left.T @ top)
        mean = self._whitened @ top + rows.whitened @ bottom
        variance = prior - np.vecdot(top.T, top.T) - np.vecdot(bottom.T, bottom.T)
        variance *= 1 + self._rounding
        variance += (16 + data.count / 2) * data.accuracy * prior
        return mean, np.maximum(variance, 0.0)

    def solve(self, vectors: Array) -> Array:
        """(K + alpha I)^-1 v = L^-T L^-1 v for the columns v of ``vectors`` (t, m)."""
        rows, n = self._rows_of_newest(), self._settled
        top = self._times(vectors[:n].copy("F"))
        bottom = rows.corner.T @ (rows.corner @ (vectors[n:] - rows.left.T @ top))
        return np.concatenate([self._times_transposed(top - rows.left @ bottom), bottom])

    @property
    def _rounding(self) -> float:
        return 32 * self._data.accuracy * (1 + self._data.trace / self.ridge)

    def _all_rows(self) -> tuple[Array, Array]:
        """L^-1 y and the diagonal of L, (t,) each."""
        rows = self._rows_of_newest()
        return (
            np.concatenate([self._whitened, rows.whitened]),
            np.concatenate([self._pivots, rows.pivots]),
        )

    def _rows_of_newest(self) -> NextRows:
        """The rows of the newest observations, one by one, so that few are new each time."""
        self._catch_up()
        data, n, known = self._data, self._settled, self._newest.left.shape[1]
        count = data.count - n
        if known < count:
            for i in range(known, count):
                left = self._times(data.lower[n + i : n + i + 1, :n].T)[:, 0]
                self._left[i, :n] = left
                self._own[i, : i + 1] = data.lower[n + i, n : n + i + 1]
                self._own[i, : i + 1] -= self._left[: i + 1, :n] @ left
                self._rest[i] = data.outcomes[n + i] - self._whitened @ left
            own = self._own[:count, :count].copy()
            self._newest = self._factored(self._left[:count, :n].T, own, self._rest[:count])
        return self._newest

    def _rows(self, left: Array, start: int, stop: int) -> NextRows:
        """The next rows of the factor, from L^-1 K_np."""
        own = self._data.lower[start:stop, start:stop] - left.T @ left
        rest = self._data.outcomes[start:stop] - self._whitened @ left
        return self._factored(left, own, rest)

    def _factored(self, left: Array, own: Array, rest: Array) -> NextRows:
        """Those rows, from what the settled ones leave of K_pp, in its lower triangle, and y_p."""
        size = len(own)
        if not size:
            return _no_rows(len(left))
        own.flat[:: size + 1] += self.ridge
        pivot, failed = lapack.dpotrf(own, lower=1)
        if failed:
            raise InputError(
                f"{self._data.kernel} is not a kernel: its matrix on the data is not positive "
                "semi-definite."
            )
        corner = lapack.dtrtri(pivot, lower=1)[0]
        return NextRows(left, corner, pivot.diagonal().copy(), corner @ rest)

    def _catch_up(self) -> None:
        while self._settled + GROUP <= self._data.count:
            self._settle()

    def _settle(self) -> None:
        """[[L, 0], [L_pn, L_pp]]^-1 = [[L^-1, 0], [-corner L_pn L^-1, corner]]."""
        old, new = self._settled, self._settled + GROUP
        rows = self._rows(self._times(self._data.lower[old:new, :old].T), old, new)
        self._reserve(new)
        self._inverse[old:new, :old] = -rows.corner @ self._times_transposed(rows.left).T
        self._inverse[old:new, old:new] = rows.corner
        self._whitened = np.append(self._whitened, rows.whitened)
        self._pivots = np.append(self._pivots, rows.pivots)
        self._settled, self._newest = new, _no_rows(new)

    def _reserve(self, count: int) -> None:
        capacity = len(self._inverse)
        while capacity < count:  # by steps, so that the layout too depends on the count alone
            capacity = capacity * 3 // 2
        if capacity > len(self._inverse):
            inverse, old = np.zeros((capacity, capacity), order="F"), self._settled
            inverse[:old, :old] = self._inverse[:old, :old]
            self._inverse, self._left = inverse, np.empty((GROUP, capacity))

    def _times(self, right: Array) -> Array:
        """L^-1 right; when there are more than FEW_COLUMNS the right side is lost."""
        n, columns = right.shape
        if columns > FEW_COLUMNS and n:
            # All rows of some columns are contiguous, and no copy is made of the triangle.
            triangle = self._inverse[:, :n]
            product: Array = blas.dtrmm(1.0, triangle, right, lower=1, overwrite_b=1)
            return product
        result = np.empty(right.shape)
        for start in range(0, n, PANEL):
            stop = min(start + PANEL, n)
            np.matmul(self._inverse[start:stop, :stop], right[:stop], out=result[start:stop])
        return result

    def _times_transposed(self, right: Array) -> Array:
        """L^-T right."""
        n = len(right)
        result = np.empty(right.shape)
        for start in range(0, n, PANEL):
            stop = min(start + PANEL, n)
            panel = self._inverse[start:n, start:stop].T
            np.matmul(panel, right[start:], out=result[start:stop])
        return result


def _no_rows(settled: int) -> NextRows:
    return NextRows(np.empty((settled, 0)), np.empty((0, 0)), np.empty(0), np.empty(0))
