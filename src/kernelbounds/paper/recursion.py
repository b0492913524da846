"""The appendix's recursion in plain NumPy, one explicit inverse a ridge: the rival in time.

The printed recursion has a slip; the upper left block of the new inverse is
(K + alpha I)^-1 + K_22 v v', where v = (K + alpha I)^-1 k and K_22 = 1 / (k(x,x) + alpha - k'v).
The inverses live in buffers of full size and are updated in place, which is a little faster than
joining the printed blocks. Nothing is done about rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array
from kernelbounds.bounds import Assumptions


class Recursion:
    """AMM upper bounds for one ridge; with several, the best of them, which is DMM.

    The first ridge is the reference sigma^2/c, which the radius of the data needs.
    """

    def __init__(
        self,
        kernel: Kernel,
        assumptions: Assumptions,
        ridges: Sequence[float],
        shape: tuple[int, int],
    ) -> None:
        self._kernel, self._assumptions = kernel, assumptions
        self._count = 0
        self._points, self._outcomes = np.empty(shape), np.empty(shape[0])
        self._fits = [_Inverse(ridge, shape[0]) for ridge in ridges]

    def upper(self, points: Array) -> Array:
        """Upper bounds at points (m, d)."""
        a, t = self._assumptions, self._count
        prior: Array = self._kernel.diag(points)
        trivial: Array = a.norm_bound * np.sqrt(prior)
        if not t:
            return trivial
        vectors, outcomes = self._kernel(self._points[:t], points), self._outcomes[:t]
        best, radius = trivial, 0.0
        for i, fit in enumerate(self._fits):
            inverse = fit.inverse[:t, :t]
            weights = inverse @ outcomes
            energy = fit.ridge * float(outcomes @ weights)
            if i == 0:
                radius = energy + a.noise_scale**2 * (fit.log_det - 2 * math.log(a.delta))
            mean = weights @ vectors
            variance = prior - np.einsum("ij,ij->j", vectors, inverse @ vectors)
            squared = radius + fit.ridge * a.norm_bound**2 - energy
            width = np.sqrt(squared / fit.ridge) * np.sqrt(np.maximum(variance, 0.0))
            best = np.minimum(best, mean + width)
        return np.asarray(np.maximum(best, -trivial))

    def update(self, point: Array, outcome: float) -> None:
        """Add an observation at a point (1, d)."""
        t = self._count
        own = self._kernel.diag(point)[0]
        column = self._kernel(self._points[:t], point)[:, 0] if t else np.empty(0)
        for fit in self._fits:
            fit.grow(own, column)
        self._points[t], self._outcomes[t] = point[0], outcome
        self._count += 1


class _Inverse:
    """(K + alpha I)^-1, in the upper left corner of a buffer, and ln det(I + K/alpha)."""

    def __init__(self, ridge: float, size: int) -> None:
        self.ridge, self.inverse, self.log_det = ridge, np.empty((size, size)), 0.0

    def grow(self, own: float, column: Array) -> None:
        t = len(column)
        v = self.inverse[:t, :t] @ column
        variance = own - column @ v
        k22 = 1 / (variance + self.ridge)
        self.log_det += math.log1p(variance / self.ridge)
        self.inverse[:t, :t] += np.outer(k22 * v, v)
        self.inverse[t, :t] = self.inverse[:t, t] = -k22 * v
        self.inverse[t, t] = k22
