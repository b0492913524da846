"""The observations of a sparse engine: sums over them, made a block at a time as they come."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NoReturn, Protocol

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.sparse.dictionary import (
    BLOCK_OF_COUNT,
    Block,
    Dictionary,
    Growth,
    typical_ridge,
)
from kernelbounds.engine.sparse.statistics import Chunk, Forecaster, Statistics
from kernelbounds.errors import InputError

# A block has one row for every BLOCK_OF_COUNT rows before it, within these limits. Where it ends,
# :class:`Growth` learns what is unknown by then, and a chunk that is full is closed.
SMALLEST_BLOCK, LARGEST_BLOCK = 8, 1000
# s rho is FLOOR_SHARE sqrt(v alpha rho), v being the mean residual over the mean variance, and at
# least LEAST_FLOOR_SHARE rho. Measured with RBF and Matérn kernels and 100 to 1000 inducing points:
# an s within a factor of two of the best one makes widths at most 2 percent larger than the least.
FLOOR_SHARE, LEAST_FLOOR_SHARE = 0.6, 0.1
# That is for queries among the observations. Far from those what is unknown is the residual, which
# K' multiplies by 1 + 1/s, while s rho adds to all squared widths this over 16 (sigma/B)^2,
# relatively (see ``settle``). The best s rho there is four times the geometric mean of rho and
# (sigma/B)^2; it is half of that at least, and 0.3 (sigma/B)^2, which costs a percent.
FAR_FROM_DATA_SHARE, HARMLESS_FLOOR = 2.0, 0.3
# Up to this part of 0.3 (sigma/B)^2, rho is as good as nothing, and 1 + 1/s as good as 1.
NEGLIGIBLE_PART = 0.1


class Losses(Protocol):
    """The losses of forecasts, and their sums at a noise scale."""

    def __call__(self, made: Forecasts) -> Array:
        """The losses of each forecast, (n, j)."""
        ...

    def at(self, sums: Array, noise_scale: float) -> tuple[float, Array]:
        """The noise scale at which sums are known, at least the one given, and the sums."""
        ...


def _not_kept(what: str) -> Any:
    """Make a property that refuses to give single observations."""

    def refuse(_: object) -> NoReturn:
        raise InputError(f"a sparse engine does not keep the {what} of its observations.")

    return property(refuse)


class SparseObservations:
    """Sums over observations, of which none is kept but the newest; see :class:`DataView`.

    Whatever changes is replaced, so that a shallow copy is a snapshot.

    Parameters
    ----------
    kernel : kernel
    inducing : array (m, d), or None
        The inducing points; None if there are none yet, and the dimension is not known.
    ridge : float
        The ridge of the forecasts.
    typical : float
        (sigma/B)^2; the ridges that matter are about t times this.
    losses : function
        The losses of forecasts, (n, j), of which the sums are kept.
    growth : Growth
        Which observations become inducing points.
    """

    first_accuracy = EPS
    scatter = 0.0  # This is below what outcomes at equal points may differ by.
    points = _not_kept("points")
    observed = outcomes = _not_kept("outcomes")
    weights = whitening = _not_kept("noise scales")

    def __init__(
        self,
        kernel: Kernel,
        inducing: Array | None,
        ridge: float,
        typical: float,
        losses: Losses | None = None,
        growth: Growth | None = None,
    ) -> None:
        self.kernel, self.ridge, self.typical, self.losses_of = kernel, ridge, typical, losses
        self.growth = growth or Growth(0.0, 0)
        self.ends_at = SMALLEST_BLOCK  # the count at which the present block ends
        self.lost: Array | None = None  # sums of what the forecasts cost
        self.begin(Dictionary.empty(kernel, 0, EPS))
        self.dim: int | None = None  # known from the first point on, be it an inducing one
        if inducing is not None:
            self.begin(Dictionary.of(kernel, inducing, self.accuracy_in(inducing.shape[1])))

    def begin(self, dictionary: Dictionary) -> None:
        """Take the first dictionary, with which the dimension is known."""
        size, dim = len(dictionary), dictionary.inducing.shape[1]
        self.dictionary, self.dim, self.accuracy = dictionary, dim, dictionary.accuracy
        self.statistics, self.newest = Statistics.none(size), Chunk.empty(size, dim)
        self.closed = self.statistics  # the sums over all but the newest observations
        # rho when each of the directions joined: of that much, observations do not see it.
        self.excess_at_joining = np.zeros(size)
        self.forecaster = Forecaster.of(self.ridge, self.statistics)

    @property
    def count(self) -> int:
        """The number of observations, t."""
        return self.statistics.count

    @property
    def trace(self) -> float:
        """The trace of the kernel matrix."""
        return self.statistics.trace

    @property
    def squared_weights(self) -> float:
        """|w_t|^2 for the weights w_s = sigma / sigma_s."""
        return self.statistics.squared_weights

    def accuracy_in(self, dim: int) -> float:
        """The relative precision of the kernel's values."""
        error = kernels.evaluation_error(self.kernel, dim)
        if error is None:
            raise InputError(
                f"a sparse engine needs a kernel of scikit-learn's, whose precision is known, got "
                f"{self.kernel}."
            )
        return EPS * max(1.0, error)

    def append(self, points: Array, outcomes: Outcomes) -> tuple[Block, bool]:
        """Append the rows of one block, or some of them.

        Return the rows with their features, and whether a basis made from earlier sums can still be
        used: not where inducing points joined, or where more precise sums took their place.
        """
        block = Block.of(self.dictionary, points, outcomes)
        self.dictionary, joined = self.growth.joining(self.dictionary, block)
        forecaster, size = self.forecaster, len(self.dictionary)
        # A forecast may know less than all, and must not know how many points join after its row:
        # so nothing is added for the errors of the dictionary at the end of the block.
        then = block.with_features(joined.before, least=0.0)
        if joined.rows:
            forecaster = forecaster.with_features(size)
            self.newest = self.newest.with_features_of(self.dictionary)
            self.statistics = self.statistics.with_features(self.newest.rows)
            late = np.full(len(joined.rows), self.statistics.excess)
            self.excess_at_joining = np.append(self.excess_at_joining, late)
            block = block.with_features(joined.features, self.dictionary.least_residual)
        if self.losses_of is not None:  # Losses are added in the order of the rounds.
            lost = self.losses_of(forecaster.forecasts(then))
            before = np.zeros(lost.shape[1]) if self.lost is None else self.lost
            self.lost = np.cumsum(np.concatenate([before[None], lost]), axis=0)[-1]
        added = Statistics.of(block)
        self.statistics = self.statistics + added
        self.forecaster = forecaster.after(block, self.statistics)
        self.newest = self.newest.with_more(block)
        full = self.count == self.ends_at and self.newest.full
        if full:
            self._close_chunk(added)
        if self.count == self.ends_at:
            self.ends_at = self.count + size_of_block(self.count)
            self.growth = self.growth.after(self.statistics, self.typical)
        return block, not (joined.rows or full)

    def _close_chunk(self, last: Statistics) -> None:
        """Begin another chunk of newest observations; ``last`` has the sums of the last rows."""
        self.settle()
        rows, excess = self.newest.rows, self.statistics.excess + self.newest.largest
        chunk = last if last.count == len(rows) else Statistics.of(rows)
        self.closed = replace(self.closed.carrying(chunk), excess=excess)
        self.statistics = self.closed
        self.newest = Chunk.empty(len(self.dictionary), rows.points.shape[1])

    def settle(self) -> None:
        """Bound the residuals of the newest observations together, if that is worth its time.

        With rho, energies fall by t sigma^2 rho / alpha, which is little beside alpha B^2 at
        ridges alpha about 4 sqrt(t) (sigma/B)^2 if it is little beside 16 (sigma/B)^2. It must be
        little beside s rho, too. So the newest observations may add a small part of that to rho
        without being noticed.
        """
        part = len(self.newest.rows) / max(self.count, 1)
        negligible = NEGLIGIBLE_PART * HARMLESS_FLOOR * self.typical * part
        self.newest = self.newest.settle(self.dictionary, negligible)

    @property
    def excess(self) -> float:
        """The bound rho on the largest eigenvalue of all residuals."""
        return self.statistics.excess + self.newest.largest

    @property
    def floor(self) -> float:
        """The floor of K', (1 + s) rho."""
        if not self.count:
            return 0.0
        ridge = typical_ridge(self.typical, self.count)
        rest = self.statistics.residual / self.count / max(self.growth.mean_unknown, 1e-300)
        share = FLOOR_SHARE * math.sqrt(rest * ridge * self.excess)
        more = max(share, LEAST_FLOOR_SHARE * self.excess)
        far = FAR_FROM_DATA_SHARE * math.sqrt(self.excess * self.typical)
        return self.excess + max(more, far, HARMLESS_FLOOR * self.typical)


def size_of_block(count: int) -> int:
    """The number of observations, after ``count`` of them, that make the next block."""
    return min(max(count // BLOCK_OF_COUNT, SMALLEST_BLOCK), LARGEST_BLOCK)
