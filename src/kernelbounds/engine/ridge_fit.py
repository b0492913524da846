"""Kernel ridge regression at one ridge, by a Cholesky factor that grows with the data.

============  =======================  ==========================================
code          paper                    meaning
============  =======================  ==========================================
``ridge``     alpha                    the ridge value
``factor``    L, L L' = K_t + alpha I  lower triangular, (t, t)
``whitened``  L^-1 y_t                 outcomes in the factor's coordinates, (t,)
============  =======================  ==========================================

Rows are added in blocks where the observations fill them, and one by one in the last, unfinished
block, so what the factor contains is a function of the data alone and not of how they were split
into appends. Solving with it is a sequence of matrix products.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.engine.eigenbasis import EPS
from kernelbounds.engine.observations import Observations

BLOCK = 96
# A factor is trusted for ridges of at least this times the trace of the kernel matrix; there,
# relative rounding errors stay below 1e-9.
LEAST = 1e-5


class RidgeFit:
    """Energy, log-determinant, mean and variance at one ridge."""

    def __init__(self, data: Observations, ridge: float) -> None:
        self.ridge = ridge
        self._data = data
        self._count = 0
        self._factor = np.empty((0, 0))
        self._inverses: list[Array] = []  # of the diagonal blocks that are complete
        self._whitened = np.empty(0)

    def trusted(self) -> bool:
        """Whether the ridge is large enough, relative to the kernel matrix, for this method."""
        return self.ridge >= LEAST * self._data.trace

    def energy_and_log_det(self) -> tuple[float, float]:
        """E_alpha = y' (I + K/alpha)^-1 y and ln det(I + K/alpha), both rounded up."""
        self._catch_up()
        whitened = self._whitened[: self._count]
        pivots = np.diagonal(self._factor)[: self._count]
        energy = self.ridge * float(whitened @ whitened)
        log_det = 2 * float(np.log(pivots).sum()) - self._count * float(np.log(self.ridge))
        return energy * (1 + self._rounding), log_det + self._rounding

    def predict(self, points: Array) -> tuple[Array, Array]:
        """mu_alpha = k' (K + alpha I)^-1 y and rho_alpha^2 = k(x,x) - k' (K + alpha I)^-1 k."""
        self._catch_up()
        prior = kernels.diagonal(self._data.kernel, points)
        solved = self._solve(kernels.cross(self._data.kernel, self._data.points, points))
        mean = self._whitened[: self._count] @ solved
        variance = prior - np.einsum("ij,ij->j", solved, solved)
        variance += self._rounding * variance + 16 * EPS * prior
        return mean, np.maximum(variance, 0.0)

    @property
    def _rounding(self) -> float:
        return 32 * EPS * (1 + self._data.trace / self.ridge)

    def _catch_up(self) -> None:
        stop = self._data.count
        self._reserve(stop)
        while self._count < stop:
            start = self._count // BLOCK * BLOCK
            if start + BLOCK <= stop:
                # A block that is complete is computed as a whole, also when its rows came singly.
                self._count = start
                self._add_rows(start + BLOCK)
                block = self._factor[start : start + BLOCK, start : start + BLOCK]
                self._inverses.append(lapack.dtrtri(block, 1)[0])
            else:
                self._add_rows(self._count + 1)

    def _add_rows(self, stop: int) -> None:
        start, gram = self._count, self._data.gram
        left = self._solve(gram[:start, start:stop]).T
        corner = gram[start:stop, start:stop] + self.ridge * np.eye(stop - start)
        pivot = np.linalg.cholesky(corner - left @ left.T)
        rest = self._data.outcomes[start:stop] - left @ self._whitened[:start]
        self._factor[start:stop, :start] = left
        self._factor[start:stop, start:stop] = pivot
        self._whitened[start:stop] = lapack.dtrtrs(pivot, rest, lower=1)[0]
        self._count = stop

    def _solve(self, right: Array) -> Array:
        """L^-1 right, for the rows factorised so far."""
        solved = np.empty((self._count, right.shape[1]))
        for start in range(0, self._count, BLOCK):
            rows = slice(start, min(start + BLOCK, self._count))
            rest = right[rows] - self._factor[rows, :start] @ solved[:start]
            if start // BLOCK < len(self._inverses):
                solved[rows] = self._inverses[start // BLOCK] @ rest
            else:
                solved[rows] = lapack.dtrtrs(self._factor[rows, rows], rest, lower=1)[0]
        return solved

    def _reserve(self, count: int) -> None:
        if count <= len(self._whitened):
            return
        capacity = max(BLOCK, count, len(self._whitened) * 3 // 2)
        factor, whitened = np.zeros((capacity, capacity)), np.zeros(capacity)
        factor[: self._count, : self._count] = self._factor[: self._count, : self._count]
        whitened[: self._count] = self._whitened[: self._count]
        self._factor, self._whitened = factor, whitened
