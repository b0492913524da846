"""The observations so far, and the rows of the kernel matrix that stand for them.

Observations at equal points are merged into one for each point:

==================  ==========================  ====================================================
code                symbol                      meaning, of the observations s at one point x_i
==================  ==========================  ====================================================
``weights``         W_i = sqrt(sum w_s^2)       the weight of the merged observation
``outcomes``        z_i = sum w_s^2 y_s / W_i   its outcome, W_i times their weighted mean
``scatter``         sum w_s^2 (y_s - mean)^2    how far they are from that mean
==================  ==========================  ====================================================

With P the matrix of w_s / W_i, whose columns are orthonormal, the kernel matrix of all observations
is P K P', where K is that of the merged ones, and their outcomes are P z + r with P' r = 0 and
|r|^2 the scatter. So means, variances and log-determinants are those of the merged observations,
and so are the energies, each with the scatter added (``docs/mathematics/exact-bound.md``).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, carried_sum, with_room
from kernelbounds.engine.rows import KernelRows, Scatter
from kernelbounds.engine.whitening import NoiseBlock, Whitening

# The error of r, relative to the norm of all outcomes. Deviations from a mean have 1.5 rounding
# errors of the outcomes each. To merge two groups of outcomes adds 2 of each of their means; over
# all merges the means so far have at most twice the norm of the outcomes (Hardy's inequality), so
# that those add up to 6.3. Sums of squares have up to 16, relatively, and half of that is the root.
SCATTER_ERROR = 32 * EPS


class Sums(NamedTuple):
    """Running sums with twice the digits of a number, high + low (``carried_sum``)."""

    high: Array
    low: Array

    @classmethod
    def of(cls, terms: Array) -> Sums:
        """Sums of one term each."""
        return cls(terms, np.zeros(len(terms)))

    def plus(self, known: NDArray[np.intp], terms: Array, new: NDArray[np.bool_]) -> Sums:
        """The sums with one more term in each of those in ``known``, and ``new`` sums."""
        high, low = np.append(self.high, terms[new]), np.append(self.low, np.zeros(new.sum()))
        high[known], low[known] = carried_sum(high[known], low[known], terms[~new])
        return Sums(high, low)


@dataclass(frozen=True)
class MergedRepeats:
    """One observation for each of n points, in place of all that were made there."""

    points: Array  # (n, d)
    squared_weights: Sums  # W^2
    products: Sums  # sum of w_s^2 y_s
    squares: Sums  # the scatter at each point
    count: int = 0  # how many observations they stand for

    @classmethod
    def none(cls) -> MergedRepeats:
        """The merged form of no observations."""
        nothing = Sums.of(np.empty(0))
        return cls(np.empty((0, 0)), nothing, nothing, nothing)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def weights(self) -> Array:
        """The merged weights W, (n,)."""
        return np.sqrt(self.squared_weights.high)

    @property
    def outcomes(self) -> Array:
        """The merged outcomes z, (n,)."""
        return np.asarray(self.products.high / self.weights)

    @property
    def scatter(self) -> Scatter:
        """The sum of |r|^2 over all points, rounded down and up."""
        length = math.sqrt(math.fsum(self.squares.high))
        error = SCATTER_ERROR * math.hypot(float(np.linalg.norm(self.outcomes)), length)
        return Scatter(max(length - error, 0.0) ** 2, (length + error) ** 2)

    def with_more(
        self, points: Array, numbers: NDArray[np.intp], weights: Array, outcomes: Array
    ) -> MergedRepeats:
        """Merge m more observations, each at the point of its number.

        New points have the next numbers, in the order in which they first occur; outcomes are
        multiplied by the weights already.
        """
        order = np.argsort(numbers, kind="stable")
        which, starts = np.unique(numbers[order], return_index=True)
        w, y = weights[order], outcomes[order]
        squared, products = _sums(w * w, starts), _sums(w * y, starts)
        mean = products / squared
        rest = y - w * np.repeat(mean, np.diff(np.append(starts, len(y))))
        squares = np.add.reduceat(rest * rest, starts)

        new = which >= len(self)
        known = which[~new]
        before = self.squared_weights.high[known]
        shift = self.products.high[known] / before - mean[~new]
        squares[~new] += shift**2 * (before / (before + squared[~new])) * squared[~new]

        first = points[order[starts[new]]]
        return MergedRepeats(
            np.concatenate([self.points, first]) if len(self) else first,
            self.squared_weights.plus(known, squared, new),
            self.products.plus(known, products, new),
            self.squares.plus(known, squares, new),
            self.count + len(numbers),
        )


def _sums(terms: Array, starts: NDArray[np.intp]) -> Array:
    """The sum of the terms from each start to the next, rounded once."""
    if len(starts) == len(terms):
        return terms
    values, stops = terms.tolist(), [*starts[1:].tolist(), len(terms)]
    pairs = zip(starts.tolist(), stops, strict=True)
    return np.array([math.fsum(values[start:stop]) for start, stop in pairs])


# Observations at equal points are merged when there are at least FEWEST_ROWS rows, and
# ROWS_OF_POINT times as many rows as points. Then linear algebra costs at most eight times what it
# would with one row a point, and what was computed from the rows before lasts for as many more
# observations as there are points.
FEWEST_ROWS, ROWS_OF_POINT = 64, 2
# From observation FIRST_BLOCK on, if there are BLOCK_OF_COUNT of them for each point, outcomes are
# forecast a block at a time, from those before the block. The block is a BLOCK_OF_COUNT-th part of
# their number. One by one, a million forecasts would take nearly all of the time.
FIRST_BLOCK, BLOCK_OF_COUNT = 4096, 16
# Forecasts need a ridge of at least 1e-8, and of 1e4 errors of the kernel's values, times the
# largest k(x,x) (``mixtures/hybrid.py``, which does not know how correlated noise enlarges errors).
# For the first to imply the second, the largest k(x,x) is multiplied by this times the error, if
# that is more than 1.
LARGEST_PER_ERROR = 1e12
# A point is known by its bytes, or by the number of its observation where noise is correlated.
Key = bytes | int
# The arrays of observations, which grow by appends and have room for more behind the last one.
GROWING = ("_points", "_of_point", "_outcomes", "_observed", "_weights", "_prior", "_largest")


class Outcomes(NamedTuple):
    """n outcomes with their weights; (n,) each."""

    observed: Array  # the outcomes as users passed them
    centred: Array  # less the level of the offset
    weights: Array
    blocks: tuple[NoiseBlock, ...] = ()  # rows whose noise is correlated

    @property
    def whitening(self) -> Whitening:
        """The whitening M."""
        return Whitening(self.weights, self.blocks)

    def rows(self, start: int, stop: int) -> Outcomes:
        """The outcomes of some of the rows; no noise may be correlated."""
        some = slice(start, stop)
        return Outcomes(self.observed[some], self.centred[some], self.weights[some])

    @classmethod
    def plain(cls, observed: Array) -> Outcomes:
        """Outcomes without an offset, all of weight 1."""
        return cls(observed, observed, np.ones(len(observed)))


class ForecastWindow(NamedTuple):
    """Observations from number ``start`` on, which are forecast from the same merged ones."""

    start: int
    merged: MergedRepeats

    @property
    def in_block(self) -> bool:
        """Whether outcomes are forecast from the merged ones alone, not also from each other."""
        return self.start >= max(FIRST_BLOCK, BLOCK_OF_COUNT * len(self.merged))

    def ends_at(self, count: int) -> bool:
        """Whether the next window starts at ``count``, with all observations so far merged."""
        return not self.in_block or count >= self.start + self.start // BLOCK_OF_COUNT


class Observations:
    """Observations in the order they were made, one by one, and the rows that stand for them.

    All linear algebra is done on ``rows``, a :class:`~.rows.KernelRows`. Those at equal points are
    merged now and then, and the observations since have a row each. When rows are merged depends
    on the points alone, and not on how they were split into appends; the newest observation
    always has a row of its own. Points are equal if they are equal to the bit; a point at which the
    noise is correlated with that at others counts as a point of its own, which is never merged.

    An append either happens completely or, when the kernel cannot be evaluated, not at all.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.rows = KernelRows(kernel)
        self.count = 0
        self.merged = MergedRepeats.none()
        self.merged_at: tuple[int, ...] = ()  # the counts at which rows were merged
        self.windows: tuple[ForecastWindow, ...] = (ForecastWindow(0, self.merged),)
        self.blocks: tuple[NoiseBlock, ...] = ()  # rows whose noise is correlated
        self._numbers: dict[Key, int] = {}  # the number of each point
        self._points, self._of_point = np.empty((0, 0)), np.empty(0, dtype=np.intp)
        self._outcomes, self._observed, self._weights = np.empty((3, 0))
        self._prior, self._largest = np.empty((2, 0))

    def snapshot(self) -> Observations:
        """The observations so far, in the same memory and only for reading."""
        other = copy.copy(self)  # appends write behind its entries
        other.rows = copy.copy(self.rows)
        return other

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.rows.kernel

    @property
    def accuracy(self) -> float:
        """The precision of the kernel's values, see :class:`KernelRows`."""
        return self.rows.accuracy

    @property
    def first_accuracy(self) -> float:
        """The precision assumed before any value was seen, see :class:`KernelRows`."""
        return self.rows.first_accuracy

    def accuracy_in(self, dim: int) -> float:
        """The accuracy in a dimension, see :class:`KernelRows`."""
        return self.rows.accuracy_in(dim)

    @property
    def trace(self) -> float:
        """The trace of the kernel matrix."""
        return self.rows.trace

    @property
    def dim(self) -> int | None:
        """Dimension of the points; None before the first one."""
        return self._points.shape[1] if self.count else None

    @property
    def points(self) -> Array:
        """The points x_1 .. x_t, (t, d)."""
        return self._points[: self.count]

    @property
    def outcomes(self) -> Array:
        """The whitened outcomes M y, (t,), with y less the level of the offset."""
        return self._outcomes[: self.count]

    @property
    def observed(self) -> Array:
        """The outcomes as users passed them, (t,)."""
        return self._observed[: self.count]

    @property
    def weights(self) -> Array:
        """The weights w_1 .. w_t, (t,)."""
        return self._weights[: self.count]

    @property
    def whitening(self) -> Whitening:
        """The whitening M."""
        return Whitening(self.weights, self.blocks)

    @property
    def squared_weights(self) -> float:
        """At least |M v|^2 for every v with no |v_s| above 1; |w|^2 where M is diagonal."""
        return self.whitening.squared_weights

    @property
    def prior(self) -> Array:
        """The diagonal of M K M', w_s^2 k(x_s, x_s) where M is diagonal; (t,)."""
        return self._prior[: self.count]

    @property
    def largest(self) -> Array:
        """The largest of ``prior`` so far, (t,), or more where noise is correlated.

        All observations of a block have the same: its points are known before its outcomes.
        """
        return self._largest[: self.count]

    @property
    def of_point(self) -> NDArray[np.intp]:
        """The number of each observation's point, (t,); points are numbered as they first occur."""
        return self._of_point[: self.count]

    @property
    def scatter(self) -> float:
        """The squared distance of outcomes at equal points from their means, rounded down."""
        return self._replayed([self.count])[0].scatter.least

    @property
    def blocks_from(self) -> int | None:
        """The number of the first observation that is forecast in a block, if there is one."""
        return next((one.start for one in self.windows if one.in_block), None)

    def append(self, points: Array, outcomes: Outcomes) -> None:
        """Add observations: one block of correlated noise, or any number of uncorrelated ones."""
        assert not outcomes.blocks or outcomes.blocks[0].rows == slice(0, len(points))
        new, stop = self._written(points, outcomes), self.count + len(points)
        blocks = self.blocks + tuple(one.at(self.count + one.start) for one in outcomes.blocks)
        # Rows are merged before a block, and not within.
        cuts, rows = self._cuts(self.count + 1 if outcomes.blocks else stop), self.rows
        merged, windows = self._replayed(cuts)
        if cuts:
            whitening = Whitening(self._weights[:stop], blocks)
            rows = self._rows_since(ForecastWindow(merged.count, merged), whitening)
        else:
            rows.append(points, outcomes.whitening, self._outcomes[self.count : stop])
        # What was written counts now that nothing can fail.
        self._numbers.update(new)
        self.count, self.rows, self.merged, self.windows = stop, rows, merged, windows
        self.blocks, self.merged_at = blocks, self.merged_at + cuts

    def restore(
        self, points: Array, outcomes: Outcomes, packed: Array, merged_at: Sequence[int]
    ) -> None:
        """Take over the data of a saved file.

        ``packed`` is the lower triangle of the rows' kernel matrix, row by row.
        """
        new = self._written(points, outcomes)
        merged, windows = self._replayed(merged_at)
        rows, last = KernelRows(self.kernel), merged.count
        rows.merged_away, rows.scatter = last - len(merged), merged.scatter
        tail, size = slice(last, len(points)), len(merged) + len(points) - last
        if packed.shape != (size * (size + 1) // 2,):
            raise ValueError(f"a kernel matrix of {packed.shape} numbers for {size} rows")
        gram, (i, j) = np.empty((size, size)), np.tril_indices(size)
        gram[i, j] = gram[j, i] = packed
        rows.add(
            np.concatenate([merged.points, points[tail]]) if last else points,
            self._merged_whitening(merged, outcomes.whitening).then(
                outcomes.whitening.part(last, len(points))
            ),
            np.append(merged.outcomes, self._outcomes[tail]),
            gram,
        )
        self._numbers.update(new)
        self.count, self.rows, self.merged, self.windows = len(points), rows, merged, windows
        self.blocks, self.merged_at = outcomes.blocks, tuple(merged_at)

    def rows_of(self, window: ForecastWindow, stop: int) -> KernelRows:
        """The rows that a window's forecasts are made from, and its observations up to ``stop``."""
        return self._rows_since(window, self.whitening.part(0, stop))

    def _rows_since(self, window: ForecastWindow, whitening: Whitening) -> KernelRows:
        """The merged rows of a window, then as many of its observations as ``whitening`` covers."""
        merged, start, stop = window.merged, window.start, len(whitening.weights)
        own = self._merged_whitening(merged, whitening)
        rows = self.rows.merged(merged.points, own, merged.outcomes, merged.count)
        rows.scatter = merged.scatter
        if stop > start:
            tail = slice(start, stop)
            rows.append(self._points[tail], whitening.part(start, stop), self._outcomes[tail])
        return rows

    def _merged_whitening(self, merged: MergedRepeats, whitening: Whitening) -> Whitening:
        """The whitening of merged rows; the rows of a block are never merged."""
        blocks = (one for one in whitening.blocks if one.start < merged.count)
        return Whitening(
            merged.weights, tuple(one.at(int(self._of_point[one.start])) for one in blocks)
        )

    def _written(self, points: Array, outcomes: Outcomes) -> dict[Key, int]:
        """Write observations after the last one in use, and return the numbers of new points."""
        start, stop = self.count, self.count + len(points)
        if not start:
            self._points = np.empty((0, points.shape[1]))
        for name in GROWING:
            setattr(self, name, with_room(getattr(self, name), stop, start))
        self._points[start:stop] = points
        self._outcomes[start:stop] = outcomes.whitening.times(outcomes.centred)
        self._observed[start:stop] = outcomes.observed
        self._weights[start:stop] = outcomes.weights
        prior = kernels.diagonal(self.kernel, points) * outcomes.weights**2
        keys: list[Key] = (
            np.ascontiguousarray(points)
            .view(f"V{points.shape[1] * points.itemsize}")[:, 0]
            .tolist()
        )
        sizes = prior.copy()
        for one in outcomes.blocks:
            alone = KernelRows(self.kernel)
            own = outcomes.whitening.part(one.start, one.rows.stop)
            alone.append(points[one.rows], own, np.zeros(len(one.factor)))
            prior[one.rows] = alone.lower.diagonal()
            enlarged = max(1.0, LARGEST_PER_ERROR * alone.accuracy)
            sizes[one.rows] = enlarged * prior[one.rows].max()
            keys[one.rows] = range(start + one.start, start + one.rows.stop)
        self._prior[start:stop] = prior
        before = self._largest[start - 1] if start else 0.0
        self._largest[start:stop] = np.maximum.accumulate(np.maximum(sizes, before))
        known, new = self._numbers, dict[Key, int]()
        self._of_point[start:stop] = [
            known[key] if key in known else new.setdefault(key, len(known) + len(new))
            for key in keys
        ]
        return new

    def _cuts(self, stop: int) -> tuple[int, ...]:
        """The numbers of observations, from now to ``stop`` - 1, at which rows are merged.

        After ``last`` observations were merged into n rows, there are n + s - last rows at the
        count s: enough if s - max(FEWEST_ROWS, ROWS_OF_POINT * points so far) >= last - n.
        """
        start = self.count
        if stop == start + 1:  # the same without arrays, for loops of single observations
            rows, points = self.rows.count, len(self._numbers)
            return (start,) if rows >= max(FEWEST_ROWS, ROWS_OF_POINT * points) else ()
        # Points so far, at the counts start .. stop - 1, each before an observation is added.
        numbers = np.append(len(self._numbers) - 1, self._of_point[start : stop - 1])
        so_far = 1 + np.maximum.accumulate(numbers)
        enough = np.arange(start, stop) - np.maximum(FEWEST_ROWS, ROWS_OF_POINT * so_far)
        # It grows by 1 at most, so that where it is first enough it is so exactly.
        enough = np.maximum.accumulate(enough)
        cuts: list[int] = []
        surplus = self.merged.count - len(self.merged)
        while (at := int(np.searchsorted(enough, surplus))) < len(enough):
            cuts.append(start + at)
            surplus = start + at - int(so_far[at])
        return tuple(cuts)

    def _replayed(self, cuts: Sequence[int]) -> tuple[MergedRepeats, tuple[ForecastWindow, ...]]:
        """The merged observations if rows are merged at these counts, and the forecast windows."""
        merged, windows = self.merged, list(self.windows)
        for cut in cuts:
            new = slice(merged.count, cut)
            merged = merged.with_more(
                self._points[new], self._of_point[new], self._weights[new], self._outcomes[new]
            )
            if windows[-1].ends_at(cut):
                windows.append(ForecastWindow(cut, merged))
        return merged, tuple(windows)
