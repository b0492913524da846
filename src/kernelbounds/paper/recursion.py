"""The appendix's recursion for the inverse of K + alpha I (App. E.2), as a rival in time.

It is in plain NumPy, with one explicit inverse for each ridge. The printed recursion has a slip;
the upper left block of the new inverse is (K + alpha I)^-1 + K_22 v v', where
v = (K + alpha I)^-1 k and K_22 = 1 / (k(x,x) + alpha - k'v). The inverses live in buffers of full
size and are updated in place, which is a little faster than joining the printed blocks. Nothing is
done about rounding errors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array
from kernelbounds.bandits import SyntheticProblem
from kernelbounds.bounds import Assumptions
from kernelbounds.bounds.dmm import PAPERS_GRID
from kernelbounds.sequence import ConfidenceSequence

RECURSIONS = ("AMM recursion", "DMM recursion")


class Recursion:
    """The upper bounds of AMM for one ridge, or the best for several ridges, which is DMM.

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
        """Compute upper bounds at points (m, d)."""
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
        prior = self._kernel.diag(point)[0]
        column = self._kernel(self._points[:t], point)[:, 0] if t else np.empty(0)
        for fit in self._fits:
            fit.grow(prior, column)
        self._points[t], self._outcomes[t] = point[0], outcome
        self._count += 1


class _Inverse:
    """The inverse (K + alpha I)^-1, in a corner of a buffer, and ln det(I + K/alpha)."""

    def __init__(self, ridge: float, size: int) -> None:
        self.ridge, self.inverse, self.log_det = ridge, np.empty((size, size)), 0.0

    def grow(self, prior: float, column: Array) -> None:
        """Add a row and a column to K: the new point's k(x,x), and k with the others, (t,)."""
        t = len(column)
        v = self.inverse[:t, :t] @ column
        variance = prior - column @ v
        k22 = 1 / (variance + self.ridge)
        self.log_det += math.log1p(variance / self.ridge)
        self.inverse[:t, :t] += np.outer(k22 * v, v)
        self.inverse[t, :t] = self.inverse[:t, t] = -k22 * v
        self.inverse[t, t] = k22


def timed_run(
    method: str,
    sequence: ConfidenceSequence,
    problem: SyntheticProblem,
    rounds: int,
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Run KernelUCB on a recursion, and return the regret and the seconds of each round.

    The kernel and the assumptions are those of the sequence. Actions and noise are those that
    :func:`~kernelbounds.simulate` draws, which is not used: its checks would be in the times.
    """
    a = sequence.assumptions
    reference = a.noise_scale**2 / a.mixture_scale
    factors = sorted(PAPERS_GRID, key=lambda f: f != 1.0) if method[0] == "D" else [1.0]
    ridges = [factor * reference for factor in factors]
    rival = Recursion(sequence.kernel, a, ridges, (rounds, problem.function.centres.shape[1]))
    of_actions, of_noise = rng.spawn(2)
    regret, seconds = np.empty(rounds), np.empty(rounds)
    for t in range(rounds):
        actions = problem.actions(of_actions)
        values = problem.values(actions)
        start = time.perf_counter()
        chosen = int(rival.upper(actions).argmax())
        asked = time.perf_counter() - start
        outcome = float(values[chosen]) + problem.noise(of_noise)
        start = time.perf_counter()
        rival.update(actions[[chosen]], outcome)
        seconds[t] = asked + time.perf_counter() - start
        regret[t] = values.max() - values[chosen]
    return {"regret": regret, "seconds": seconds}
