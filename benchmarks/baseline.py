"""The rival: the paper's appendix recursion in plain NumPy, one explicit inverse per ridge.

The printed recursion has a misprint; the upper left block of the new inverse is
(K + alpha I)^-1 + K_22 v v', where v = (K + alpha I)^-1 k and K_22 = 1 / (k(x,x) + alpha - k'v).
The inverses live in buffers of full size and are updated in place, which makes a whole loop up to
8 % faster than joining the blocks as printed with np.block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from benchmarks.problem import DELTA, NOISE_SCALE, NORM_BOUND, Array, Problem, Run


class Recursion:
    """AMM upper bounds for one ridge; with several, the best of them, which is DMM.

    The first ridge is the reference sigma^2/c, which the radius of the data needs.
    """

    def __init__(self, kernel: Kernel, ridges: Sequence[float], shape: tuple[int, int]) -> None:
        self._kernel = kernel
        self._count = 0
        self._points, self._outcomes = np.empty(shape), np.empty(shape[0])
        self._fits = [_Fit(ridge, np.empty((shape[0], shape[0]))) for ridge in ridges]

    def upper(self, points: Array) -> Array:
        prior: Array = self._kernel.diag(points)
        trivial: Array = NORM_BOUND * np.sqrt(prior)
        t = self._count
        if not t:
            return trivial
        vectors, outcomes = self._kernel(self._points[:t], points), self._outcomes[:t]
        best, radius = trivial, 0.0
        for i, fit in enumerate(self._fits):
            inverse = fit.inverse[:t, :t]
            weights = inverse @ outcomes
            energy = fit.ridge * float(outcomes @ weights)
            if i == 0:
                radius = energy + NOISE_SCALE**2 * (fit.log_det - 2 * math.log(DELTA))
            mean = weights @ vectors
            variance = prior - np.einsum("ij,ij->j", vectors, inverse @ vectors)
            squared = radius + fit.ridge * NORM_BOUND**2 - energy
            width = np.sqrt(squared / fit.ridge) * np.sqrt(np.maximum(variance, 0.0))
            best = np.minimum(best, mean + width)
        return np.asarray(np.maximum(best, -trivial))

    def update(self, point: Array, outcome: Array) -> None:
        t = self._count
        own = self._kernel.diag(point)[0]
        column = self._kernel(self._points[:t], point)[:, 0] if t else np.empty(0)
        for fit in self._fits:
            v = fit.inverse[:t, :t] @ column
            variance = own - column @ v
            fit.log_det += math.log1p(variance / fit.ridge)
            fit.grow(v, 1 / (variance + fit.ridge))
        self._points[t], self._outcomes[t] = point[0], outcome[0]
        self._count += 1


@dataclass
class _Fit:
    ridge: float
    inverse: Array  # (K + alpha I)^-1 in its upper left corner
    log_det: float = 0.0  # ln det(I + K/alpha)

    def grow(self, v: Array, k22: float) -> None:
        t = len(v)
        self.inverse[:t, :t] += np.outer(k22 * v, v)
        self.inverse[t, :t] = self.inverse[:t, t] = -k22 * v
        self.inverse[t, t] = k22


def replay(problem: Problem, run: Run, ridges: Sequence[float]) -> Run:
    """The recursion on the data of our own ``run``: equal candidates, points and outcomes."""
    rival = Recursion(problem.kernel, ridges, run.points.shape)
    result = Run(run.points, run.outcomes, np.empty_like(run.upper), np.empty_like(run.times))
    for t in range(len(run.points)):
        start = time.perf_counter()
        upper = rival.upper(problem.candidates[t])
        rival.update(run.points[[t]], run.outcomes[[t]])
        result.times[t] = time.perf_counter() - start
        result.upper[t] = upper
    return result
