"""Kernel ridge regression at one ridge, by a Cholesky factor that grows with the data.

============  =======================  ==================================================
code          paper                    meaning
============  =======================  ==================================================
``ridge``     alpha                    the ridge value
``settled``                            the first n observations, a multiple of BLOCK
``inverse``   L^-1, L L' = K + alpha I the inverse factor of those, lower triangular
``left``                               the factor's rows of the others, left of their ...
``corner``                             ... own triangle, and the inverse of that
``whitened``  L^-1 y_t                 outcomes in the factor's coordinates, (t,)
============  =======================  ==================================================

Applying an inverse triangle is one matrix product at half price. It is safe where the method is
used at all, for ridges that keep the condition number moderate. A block is settled as a whole
when it is full and its rows are added one by one until then, so what is stored is a function of
the data alone and not of how they were split into appends.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import blas, lapack

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.engine.eigenbasis import EPS
from kernelbounds.engine.observations import Observations

BLOCK = 32
PANEL = 128  # rows of the triangle that are applied to a vector at once
CAPACITY = 240  # rows there is room for at first; no power of two, which caches dislike
# A factor is trusted for ridges of at least this times the trace of the kernel matrix and the
# rounding error; there, what is added for rounding errors stays below 1e-7, relatively.
LEAST = 1e-7 / EPS


class RidgeFit:
    """Energy, log-determinant, mean and variance at one ridge."""

    def __init__(self, data: Observations, ridge: float) -> None:
        self.ridge = ridge
        self._data = data
        self._settled = 0
        self._inverse = np.zeros((CAPACITY, CAPACITY), order="F")  # zeros above the triangle
        self._left, self._corner = np.empty((BLOCK, 0)), np.zeros((BLOCK, BLOCK))
        self._loose = 0  # rows in left and corner
        self._whitened = np.empty(0)
        self._log_dets = [0.0]  # of the settled block, and with each of the other rows

    def trusted(self) -> bool:
        """Whether the ridge is large enough, relative to the kernel matrix, for this method."""
        return self.ridge >= LEAST * self._data.accuracy * self._data.trace

    def energy_and_log_det(self) -> tuple[float, float]:
        """E_alpha = y' (I + K/alpha)^-1 y and ln det(I + K/alpha), both rounded up."""
        self._catch_up()
        energy = self.ridge * float(self._whitened @ self._whitened)
        return energy * (1 + self._rounding), self._log_dets[-1] + self._rounding

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
        variance = prior - np.vecdot(top.T, top.T) - np.vecdot(bottom.T, bottom.T)
        variance *= 1 + self._rounding
        variance += (16 + len(vectors) / 2) * self._data.accuracy * prior
        return mean, np.maximum(variance, 0.0)

    def solve(self, vectors: Array) -> Array:
        """(K + alpha I)^-1 v = L^-T L^-1 v for the columns v of ``vectors`` (t, m)."""
        self._catch_up()
        top, bottom = self._solve(vectors)
        settled, loose = self._settled, self._loose
        bottom = self._corner[:loose, :loose].T @ bottom
        if settled:
            top = top - self._left[:loose].T @ bottom
            top = blas.dtrmm(1.0, self._inverse[:, :settled], top, lower=1, trans_a=1)
        return np.concatenate([top, bottom])

    @property
    def _rounding(self) -> float:
        return 32 * self._data.accuracy * (1 + self._data.trace / self.ridge)

    def _catch_up(self) -> None:
        stop = self._data.count
        while len(self._whitened) < stop:
            if self._settled + BLOCK <= stop:
                self._settle()
            else:
                self._add_row()

    def _add_row(self) -> None:
        settled, loose = self._settled, self._loose
        at = settled + loose
        row = self._data.lower[at]
        top, bottom = self._solve(row[:at])
        whitened = self._whitened
        own = float(row[at]) + self.ridge - float(top @ top) - float(bottom @ bottom)
        explained = float(whitened[:settled] @ top) + float(whitened[settled:] @ bottom)
        pivot = math.sqrt(own)
        self._whitened = np.append(whitened, (self._data.outcomes[at] - explained) / pivot)
        self._left[loose] = top
        self._corner[loose, :loose] = bottom @ self._corner[:loose, :loose] / -pivot
        self._corner[loose, loose] = 1 / pivot
        self._log_dets.append(self._log_dets[-1] + math.log(own / self.ridge))
        self._loose += 1

    def _settle(self) -> None:
        """[[L, 0], [left, corner]]^-1 = [[L^-1, 0], [-corner^-1 left L^-1, corner^-1]].

        Rows that had come one by one are computed again, to be the same either way.
        """
        old, new = self._settled, self._settled + BLOCK
        self._loose, self._whitened = 0, self._whitened[:old]
        top, _ = self._solve(self._data.lower[old:new, :old].T)
        own = self._data.lower[old:new, old:new] + self.ridge * np.eye(BLOCK)
        pivot = np.linalg.cholesky(own - top.T @ top)
        corner = lapack.dtrtri(pivot, 1)[0]
        rest = self._data.outcomes[old:new] - self._whitened @ top
        self._whitened = np.append(self._whitened, corner @ rest)
        log_det = 2 * float(np.log(np.diagonal(pivot) / math.sqrt(self.ridge)).sum())
        self._log_dets = [self._log_dets[0] + log_det]
        self._reserve(new)
        if old:
            left = blas.dtrmm(-1.0, self._inverse[:, :old], top, lower=1, trans_a=1)
            self._inverse[old:new, :old] = corner @ left.T
        self._inverse[old:new, old:new] = corner
        self._settled, self._left = new, np.empty((BLOCK, new))

    def _reserve(self, count: int) -> None:
        capacity = len(self._inverse)
        while capacity < count:  # by steps, so that the layout too depends on the count alone
            capacity = capacity * 3 // 2
        if capacity > len(self._inverse):
            inverse, old = np.zeros((capacity, capacity), order="F"), self._settled
            inverse[:old, :old] = self._inverse[:old, :old]
            self._inverse = inverse

    def _solve(self, right: Array) -> tuple[Array, Array]:
        """L^-1 right, for the rows there are so far: the settled ones and the others."""
        settled, loose = self._settled, self._loose
        top, bottom = right[:settled], right[settled:]
        if settled:
            top = self._times(top) if right.ndim == 1 else self._times_columns(top)
        if loose:
            bottom = self._corner[:loose, :loose] @ (bottom - self._left[:loose] @ top)
        return top, bottom

    def _times_columns(self, right: Array) -> Array:
        # All rows of some columns are contiguous, and no copy is made of the triangle.
        product: Array = blas.dtrmm(1.0, self._inverse[:, : len(right)], right, lower=1)
        return product

    def _times(self, right: Array) -> Array:
        result = np.empty(len(right))
        for start in range(0, len(right), PANEL):
            stop = min(start + PANEL, len(right))
            panel = self._inverse[start:stop, :stop]
            np.matmul(panel, right[:stop], out=result[start:stop])
        return result
