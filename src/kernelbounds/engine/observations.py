"""The data so far, and the rows of the kernel matrix that stand for them.

Observations at equal points, as one for each point.

==================  ==========================  ====================================================
code                symbol                      meaning, of the observations s at one point x_i
==================  ==========================  ====================================================
``weights``         W_i = sqrt(sum w_s^2)       the weight of the one that stands for them
``outcomes``        z_i = sum w_s^2 y_s / W_i   its outcome, W_i times their weighted mean
``scatter``         sum w_s^2 (y_s - mean)^2    what they tell beside it
==================  ==========================  ====================================================

With P the matrix of w_s / W_i, whose columns are orthonormal, the kernel matrix of all of them is
P K P' with that of the merged ones, K, and their outcomes are P z + r with P' r = 0 and |r|^2 the
scatter. So means, variances and log-determinants are those of the merged ones, and so are the
energies, each with the scatter added (``docs/mathematics/exact-bound.md``).

Sums are carried with twice the digits, so that millions of terms lose nothing.
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
from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.rows import KernelRows, Scatter

# The error of r, relative to the norm of all outcomes. Deviations from a mean have 1.5 rounding
# errors of the outcomes each. To merge two groups of outcomes adds 2 of each of their means; over
# all merges the means so far have at most twice the norm of the outcomes (Hardy's inequality), so
# that those add up to 6.3. Sums of squares have up to 16, relatively, and half of that is the root.
OF_SCATTER = 32 * EPS


class Sums(NamedTuple):
    """Sums that are known to twice the digits of a number: high + low."""

    high: Array
    low: Array

    def plus(self, terms: Array) -> Sums:
        """By Knuth's exact addition of two numbers."""
        high = self.high + terms
        of_terms = high - self.high
        error = (self.high - (high - of_terms)) + (terms - of_terms)
        low = self.low + error
        total = high + low
        return Sums(total, low - (total - high))

    @classmethod
    def of(cls, terms: Array) -> Sums:
        """Of one term each."""
        return cls(terms, np.zeros(len(terms)))


@dataclass(frozen=True)
class MergedRepeats:
    """One observation for each of n points."""

    points: Array  # (n, d)
    squared_weights: Sums  # W^2
    products: Sums  # sum of w_s^2 y_s
    squares: Sums  # the scatter of each
    count: int = 0  # of the observations that they stand for

    @classmethod
    def none(cls) -> MergedRepeats:
        """Of no observations."""
        nothing = Sums.of(np.empty(0))
        return cls(np.empty((0, 0)), nothing, nothing, nothing)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def weights(self) -> Array:
        """W, (n,)."""
        return np.sqrt(self.squared_weights.high)

    @property
    def outcomes(self) -> Array:
        """z, (n,)."""
        return np.asarray(self.products.high / self.weights)

    @property
    def scatter(self) -> Scatter:
        """|r|^2 of all points together, from below and above."""
        length = math.sqrt(math.fsum(self.squares.high))
        error = OF_SCATTER * math.hypot(float(np.linalg.norm(self.outcomes)), length)
        return Scatter(max(length - error, 0.0) ** 2, (length + error) ** 2)

    def with_more(
        self, points: Array, numbers: NDArray[np.intp], weights: Array, outcomes: Array
    ) -> MergedRepeats:
        """And those of more observations, each at the point of its number, (m,) each.

        New points have the next numbers, in the order in which they first occur; outcomes are
        those times the weights.
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
        apart = self.products.high[known] / before - mean[~new]
        squares[~new] += apart**2 * (before / (before + squared[~new])) * squared[~new]

        first = points[order[starts[new]]]
        return MergedRepeats(
            np.concatenate([self.points, first]) if len(self) else first,
            _added(self.squared_weights, known, squared, new),
            _added(self.products, known, products, new),
            _added(self.squares, known, squares, new),
            self.count + len(numbers),
        )


def _sums(terms: Array, starts: NDArray[np.intp]) -> Array:
    """Of the terms from each start to the next, rounded once."""
    if len(starts) == len(terms):
        return terms
    values, stops = terms.tolist(), [*starts[1:].tolist(), len(terms)]
    pairs = zip(starts.tolist(), stops, strict=True)
    return np.array([math.fsum(values[start:stop]) for start, stop in pairs])


def _added(sums: Sums, known: NDArray[np.intp], terms: Array, new: NDArray[np.bool_]) -> Sums:
    """More terms in some of the sums, and new sums."""
    high, low = (np.concatenate([part, np.zeros(int(new.sum()))]) for part in sums)
    high[len(sums.high) :] = terms[new]
    more = Sums(high[known], low[known]).plus(terms[~new])
    high[known], low[known] = more
    return Sums(high, low)


# Observations at equal points are merged when there are so many rows, and twice as many as points:
# then linear algebra costs at most eight times what it would with one row a point, and what was
# computed from the rows before lasts for as many more observations as there are points.
FEWEST_ROWS, ROWS_OF_POINT = 64, 2
# From so many observations on, and so many for each point, outcomes are forecast a block at a time,
# from those before the block, whose length is this part of their number. One by one a million
# forecasts would take nearly all of the time.
FIRST_BLOCK, BLOCK_OF_COUNT = 4096, 16


class Outcomes(NamedTuple):
    """n outcomes: as they were told, less what is known of them, and their weights; (n,) each."""

    observed: Array
    centred: Array
    weights: Array

    @classmethod
    def plain(cls, observed: Array) -> Outcomes:
        """Nothing is known of them, and all weigh the same."""
        return cls(observed, observed, np.ones(len(observed)))


class ForecastWindow(NamedTuple):
    """Observations that are forecast from the same merged ones: from number ``start`` on."""

    start: int
    merged: MergedRepeats

    @property
    def in_block(self) -> bool:
        """Whether from these alone, and not also from those before each in the window."""
        return self.start >= max(FIRST_BLOCK, BLOCK_OF_COUNT * len(self.merged))

    def ends_at(self, count: int) -> bool:
        """Whether the next window starts here, where all so far are merged."""
        return not self.in_block or count >= self.start + self.start // BLOCK_OF_COUNT


class Observations:
    """Observations in the order they were made, and their rows of the kernel matrix.

    Rows are merged now and then, and single ones follow for the observations since. When that
    happens depends on the points alone, and not on how they were split into appends; the newest
    observation always has a row of its own. Points are equal if they are to the bit.

    An append either happens completely or, when the kernel cannot be evaluated, not at all.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.rows = KernelRows(kernel)
        self.count = 0
        self.merged = MergedRepeats.none()
        self.merged_at: tuple[int, ...] = ()  # the counts at which rows were merged
        self.windows: tuple[ForecastWindow, ...] = (ForecastWindow(0, self.merged),)
        self._numbers: dict[bytes, int] = {}  # of the points
        self._points, self._of_point = np.empty((0, 0)), np.empty(0, dtype=np.intp)
        self._outcomes, self._observed, self._weights, self._largest = np.empty((4, 0))

    def snapshot(self) -> Observations:
        """The same at this time, to be read only, in the same memory."""
        other = copy.copy(self)  # of which appends change no entry
        other.rows = copy.copy(self.rows)
        return other

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.rows.kernel

    @property
    def accuracy(self) -> float:
        """See :class:`KernelRows`."""
        return self.rows.accuracy

    @property
    def first_accuracy(self) -> float:
        """See :class:`KernelRows`."""
        return self.rows.first_accuracy

    def accuracy_in(self, dim: int) -> float:
        """See :class:`KernelRows`."""
        return self.rows.accuracy_in(dim)

    @property
    def trace(self) -> float:
        """Of the kernel matrix."""
        return self.rows.trace

    @property
    def dim(self) -> int | None:
        """Dimension of the points; None before the first one."""
        return self._points.shape[1] if self.count else None

    @property
    def points(self) -> Array:
        """x_1 .. x_t, (t, d)."""
        return self._points[: self.count]

    @property
    def outcomes(self) -> Array:
        """y_1 .. y_t, (t,), less what is known of them, and times their weights."""
        return self._outcomes[: self.count]

    @property
    def observed(self) -> Array:
        """The outcomes as they were told, (t,)."""
        return self._observed[: self.count]

    @property
    def weights(self) -> Array:
        """w_1 .. w_t, (t,)."""
        return self._weights[: self.count]

    @property
    def squared_weights(self) -> float:
        """|w|^2."""
        return float(self.weights @ self.weights)

    @property
    def largest(self) -> Array:
        """The largest w_s^2 k(x_s, x_s) so far, (t,)."""
        return self._largest[: self.count]

    @property
    def of_point(self) -> NDArray[np.intp]:
        """The number of each observation's point, in the order in which they first occur, (t,)."""
        return self._of_point[: self.count]

    @property
    def scatter(self) -> float:
        """How far outcomes at equal points are from their means, |y - mean|^2, rounded down."""
        return self._replayed([self.count])[0].scatter.least

    @property
    def blocks_from(self) -> int | None:
        """The observation from which on they are forecast a block at a time, if there is one."""
        return next((one.start for one in self.windows if one.in_block), None)

    def append(self, points: Array, outcomes: Outcomes) -> None:
        """Add observations."""
        new = self._written(points, outcomes)
        cuts = self._cuts(points, new)
        if cuts:
            rows, merged, windows = self._merged(cuts, self.count + len(points))
        else:
            rows, merged, windows = self.rows, self.merged, self.windows
            start = self.count
            stop = start + len(points)
            rows.append(points, outcomes.weights, self._outcomes[start:stop])
        self._commit(len(points), new, rows, merged, cuts, windows)

    def restore(
        self, points: Array, outcomes: Outcomes, packed: Array, merged_at: Sequence[int]
    ) -> None:
        """Take over a saved file's data, of whose rows the kernel matrix is known.

        ``packed`` is its lower triangle, row by row.
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
        rows.restore(
            np.concatenate([merged.points, points[tail]]) if last else points,
            np.append(merged.weights, outcomes.weights[tail]),
            np.append(merged.outcomes, self._outcomes[tail]),
            gram,
        )
        self._commit(len(points), new, rows, merged, tuple(merged_at), windows)

    def rows_of(self, window: ForecastWindow, stop: int) -> KernelRows:
        """Those from which a window's observations are forecast, and of these up to a number."""
        merged, start = window.merged, window.start
        rows = self.rows.merged(merged.points, merged.weights, merged.outcomes, merged.count)
        rows.scatter = merged.scatter
        if stop > start:
            tail = slice(start, stop)
            rows.append(self._points[tail], self._weights[tail], self._outcomes[tail])
        return rows

    def _written(self, points: Array, outcomes: Outcomes) -> dict[bytes, int]:
        """Write to the buffers, beyond what counts as yet; the points that are new."""
        start, stop = self.count, self.count + len(points)
        self._reserve(stop, points.shape[1])
        self._points[start:stop] = points
        self._outcomes[start:stop] = outcomes.centred * outcomes.weights
        self._observed[start:stop] = outcomes.observed
        self._weights[start:stop] = outcomes.weights
        known, numbers = self._numbers, []
        new: dict[bytes, int] = {}
        keys = np.ascontiguousarray(points).view(f"V{points.shape[1] * points.itemsize}")
        for key in keys[:, 0].tolist():
            number = new.get(key)
            if number is None:
                number = known.get(key)
            if number is None:
                number = new[key] = len(known) + len(new)
            numbers.append(number)
        self._of_point[start:stop] = numbers
        return new

    def _cuts(self, points: Array, new: dict[bytes, int]) -> tuple[int, ...]:
        """The counts, from that before these points on, at which rows are merged.

        After ``last`` observations were merged into n rows, there are n + s - last of them at the
        count s: enough if s - max(FEWEST_ROWS, ROWS_OF_POINT * points so far) >= last - n.
        """
        start, stop = self.count, self.count + len(points)
        if not start and len(points) == 1:
            return ()
        if len(points) == 1:  # the same, in a loop
            due = self.rows.count >= max(FEWEST_ROWS, ROWS_OF_POINT * len(self._numbers))
            return (start,) if due else ()
        # Points so far, at the counts start .. stop - 1, each before an observation is added.
        numbers = np.append(len(self._numbers) - 1, self._of_point[start : stop - 1])
        so_far = 1 + np.maximum.accumulate(numbers)
        enough = np.arange(start, stop) - np.maximum(FEWEST_ROWS, ROWS_OF_POINT * so_far)
        # It grows by 1 at most, so that where it is first enough it is so exactly.
        enough = np.maximum.accumulate(enough)
        cuts: list[int] = []
        single = self.merged.count - len(self.merged)
        while (at := int(np.searchsorted(enough, single))) < len(enough):
            cuts.append(start + at)
            single = start + at - int(so_far[at])
        return tuple(cuts)

    def _replayed(self, cuts: Sequence[int]) -> tuple[MergedRepeats, tuple[ForecastWindow, ...]]:
        """What is merged after so many observations each, and the windows of forecasts."""
        merged, windows = self.merged, list(self.windows)
        for cut in cuts:
            new = slice(merged.count, cut)
            merged = merged.with_more(
                self._points[new], self._of_point[new], self._weights[new], self._outcomes[new]
            )
            if windows[-1].ends_at(cut):
                windows.append(ForecastWindow(cut, merged))
        return merged, tuple(windows)

    def _merged(
        self, cuts: Sequence[int], stop: int
    ) -> tuple[KernelRows, MergedRepeats, tuple[ForecastWindow, ...]]:
        merged, windows = self._replayed(cuts)
        return self.rows_of(ForecastWindow(merged.count, merged), stop), merged, windows

    def _commit(
        self,
        count: int,
        new: dict[bytes, int],
        rows: KernelRows,
        merged: MergedRepeats,
        cuts: tuple[int, ...],
        windows: tuple[ForecastWindow, ...],
    ) -> None:
        start, stop = self.count, self.count + count
        prior = rows.lower.diagonal()[len(merged) + start - merged.count :]
        if merged.count > start:  # some of them are merged
            prior = kernels.diagonal(self.kernel, self._points[start:stop])
            prior = prior * self._weights[start:stop] ** 2
        before = self._largest[start - 1] if start else 0.0
        self._largest[start:stop] = np.maximum.accumulate(np.maximum(prior, before))
        self._numbers.update(new)
        self.count, self.rows, self.merged, self.windows = stop, rows, merged, windows
        self.merged_at += cuts

    def _reserve(self, count: int, dim: int) -> None:
        if count <= len(self._outcomes):
            return
        capacity = max(64, count, len(self._outcomes) * 3 // 2)
        points, of_point = np.empty((capacity, dim)), np.empty(capacity, dtype=np.intp)
        numbers = np.empty((4, capacity))
        if self.count:
            points[: self.count], of_point[: self.count] = self.points, self.of_point
            old = self.outcomes, self.observed, self.weights, self.largest
            for part, kept in zip(numbers, old, strict=True):
                part[: self.count] = kept
        self._points, self._of_point = points, of_point
        self._outcomes, self._observed, self._weights, self._largest = numbers
