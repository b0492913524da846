"""Kernel ridge regression at one ridge, by a Cholesky factor that grows with the data.

============  =======================  ==================================================
code          paper                    meaning
============  =======================  ==================================================
``ridge``     alpha                    the ridge value
``settled``                            the first n observations, a multiple of BLOCK
``inverse``   L^-1, L L' = K + alpha I the inverse factor of those, lower triangular
``left``                               the factor's rows of the others, left of ...
``corner``                             ... their own triangle
``whitened``  L^-1 y_t                 outcomes in the factor's coordinates, (t,)
============  =======================  ==================================================

Applying an inverse triangle is one matrix product at half price. It is safe where the method is
used at all, for ridges that keep the condition number moderate. A block is settled as a whole
when it is full and its rows are added one by one until then, so what is stored is a function of
the data alone and not of how they were split into appends.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.engine.eigenbasis import EPS
from kernelbounds.engine.observations import Observations

BLOCK = 64
# A factor is trusted for ridges of at least this times the trace of the kernel matrix; there,
# what is added for rounding errors stays below 1e-7, relatively.
LEAST = 1e-7


class RidgeFit:
    """Energy, log-determinant, mean and variance at one ridge."""

    def __init__(self, data: Observations, ridge: float) -> None:
        self.ridge = ridge
        self._data = data
        self._inverse = np.empty((0, 0), order="F")
        self._left, self._corner = np.empty((BLOCK, 0)), np.eye(BLOCK)
        self._loose = 0  # rows in left and corner
        self._whitened = np.empty(0)
        self._log_det = 0.0  # of the settled block

    def trusted(self) -> bool:
        """Whether the ridge is large enough, relative to the kernel matrix, for this method."""
        return self.ridge >= LEAST * self._data.trace

    def energy_and_log_det(self) -> tuple[float, float]:
        """E_alpha = y' (I + K/alpha)^-1 y and ln det(I + K/alpha), both rounded up."""
        self._catch_up()
        energy = self.ridge * float(self._whitened @ self._whitened)
        pivots = np.diagonal(self._corner)[: self._loose] / np.sqrt(self.ridge)
        log_det = self._log_det + 2 * float(np.log(pivots).sum())
        return energy * (1 + self._rounding), log_det + self._rounding

    def energy_rounded_down(self) -> float:
        """E_alpha, where it is subtracted."""
        return self.energy_and_log_det()[0] / (1 + self._rounding) ** 2

    def predict(self, points: Array) -> tuple[Array, Array]:
        """mu_alpha = k' (K + alpha I)^-1 y and rho_alpha^2 = k(x,x) - k' (K + alpha I)^-1 k."""
        self._catch_up()
        prior = kernels.diagonal(self._data.kernel, points)
        # Transposed, so that the matrix product finds the memory order it wants.
        vectors = kernels.cross(self._data.kernel, points, self._data.points).T
        top, bottom = self._solve(vectors)
        settled = len(top)
        mean = self._whitened[:settled] @ top + self._whitened[settled:] @ bottom
        variance = prior - np.einsum("ij,ij->j", top, top) - np.einsum("ij,ij->j", bottom, bottom)
        variance += self._rounding * variance + (16 + len(vectors) / 2) * EPS * prior
        return mean, np.maximum(variance, 0.0)

    def solve(self, vectors: Array) -> Array:
        """(K + alpha I)^-1 v = L^-T L^-1 v for the columns v of ``vectors`` (t, m)."""
        self._catch_up()
        top, bottom = self._solve(vectors)
        loose = self._loose
        if loose:
            bottom = lapack.dtrtrs(self._corner[:loose, :loose], bottom, lower=1, trans=1)[0]
        if len(top):
            top = top - self._left[:loose].T @ bottom
            top = blas.dtrmm(1.0, self._inverse, top, lower=1, trans_a=1)
        return np.concatenate([top, bottom])

    @property
    def _rounding(self) -> float:
        return 32 * EPS * (1 + self._data.trace / self.ridge)

    def _catch_up(self) -> None:
        stop = self._data.count
        while len(self._whitened) < stop:
            settled = len(self._inverse)
            if settled + BLOCK <= stop:
                # Also where the rows had come one by one: recomputed, to be the same either way.
                self._loose, self._whitened = 0, self._whitened[:settled]
                self._add_rows(BLOCK)
                self._settle()
            else:
                self._add_rows(1)

    def _add_rows(self, more: int) -> None:
        settled, loose = len(self._inverse), self._loose
        start, stop = settled + loose, settled + loose + more
        top, bottom = self._solve(self._data.gram[:start, start:stop])
        own = self._data.gram[start:stop, start:stop] + self.ridge * np.eye(more)
        pivot = np.linalg.cholesky(own - top.T @ top - bottom.T @ bottom)
        explained = self._whitened[:settled] @ top + self._whitened[settled:] @ bottom
        rest = self._data.outcomes[start:stop] - explained
        self._whitened = np.append(self._whitened, lapack.dtrtrs(pivot, rest, lower=1)[0])
        rows = slice(loose, loose + more)
        self._left[rows], self._corner[rows, :loose] = top.T, bottom.T
        self._corner[rows, rows] = pivot
        self._loose += more

    def _settle(self) -> None:
        """[[L, 0], [left, corner]]^-1 = [[L^-1, 0], [-corner^-1 left L^-1, corner^-1]]."""
        old, new = len(self._inverse), len(self._inverse) + BLOCK
        corner = lapack.dtrtri(self._corner, 1)[0]
        inverse = np.zeros((new, new), order="F")
        inverse[:old, :old] = self._inverse
        inverse[old:, :old] = -corner @ (self._left @ self._inverse)
        inverse[old:, old:] = corner
        self._log_det += 2 * float(np.log(np.diagonal(self._corner) / np.sqrt(self.ridge)).sum())
        self._inverse, self._loose = inverse, 0
        self._left, self._corner = np.empty((BLOCK, new)), np.eye(BLOCK)

    def _solve(self, right: Array) -> tuple[Array, Array]:
        """L^-1 right, for the rows there are so far: the settled ones and the others."""
        settled, loose = len(self._inverse), self._loose
        if right.shape[1] == 1 and settled:
            top = blas.dtrmv(self._inverse, right[:settled, 0], lower=1)[:, None]
        else:
            top = blas.dtrmm(1.0, self._inverse, right[:settled], lower=1) if settled else right[:0]
        bottom = right[settled:]
        if loose:
            bottom = bottom - self._left[:loose] @ top
            bottom = lapack.dtrtrs(self._corner[:loose, :loose], bottom, lower=1)[0]
        return top, bottom
