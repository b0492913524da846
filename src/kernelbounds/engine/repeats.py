"""Observations at equal points, as one for each point.

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
energies, each with the scatter added (``docs/mathematics/bounds.md``).

Sums are carried with twice the digits, so that millions of terms lose nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.rows import Scatter

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
class Merged:
    """One observation for each of n points."""

    points: Array  # (n, d)
    squared_weights: Sums  # W^2
    products: Sums  # sum of w_s^2 y_s
    squares: Sums  # the scatter of each
    count: int = 0  # of the observations that they stand for

    @classmethod
    def none(cls) -> Merged:
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
    ) -> Merged:
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
        return Merged(
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
