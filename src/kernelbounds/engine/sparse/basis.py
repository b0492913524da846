"""The span of the features of the observations, from sums over them.

:class:`Basis` is that of K' in :mod:`kernelbounds.engine.sparse`, along which a ridge costs O(m) a
point. :class:`Design` is one for points that were fixed before the outcomes:

==============  =============================  ==================================================
code            symbol                         meaning
==============  =============================  ==================================================
``basis``       A = S Phi' Phi S = U D U'      with the factors S of features that joined late
                V = Phi S U D^-1/2             orthonormal columns, which depend on points alone
``floor``       c1 = (1 + s) rho               that of K', another one than for CMM
``error``       e >= |E|                       the rounding error E of A
==============  =============================  ==================================================

For every vector c, |k(., x) - sum_i (V c)_i k(., x_i)|^2 <= k'(x,x) - 2 c'V'k'(x) + c'V'K'V c, with
V'k'(x) = D^1/2 U' S phi(x) and V'K'V = D + c1 I. So the bounds for a fixed design are those of K'
along V. Here V is known only as far as A is; with that,

    V'V <= I + e D^-1,    V'K'V <= D + c1 (I + e D^-1) + e (I + h D + D^-1/h)    for all h > 0,

see "With a sparse engine" in ``docs/mathematics/fixed-designs.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, column_dots
from kernelbounds.engine.base import Directions
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.path_query import PathQuery
from kernelbounds.engine.ridge_path import RidgePath, dot_error
from kernelbounds.engine.sparse.dictionary import SHARE_OF_ERROR, Dictionary
from kernelbounds.engine.sparse.statistics import Statistics
from kernelbounds.functionals.targets import Targets

# Directions of Phi' Phi that are smaller than this times the rounding errors of its trace are left
# out, because outcomes along them would be rounding errors.
LEAST_KEPT = 1e4
# The largest direction that is left out counts as at least FAINT_RATIO times these errors. Faint
# directions are those that are FAINT_RATIO times smaller; they and the errors are together at most
# FAINT_SHARE of the largest.
FAINT_RATIO, FAINT_SHARE = 100.0, 1 / 50
# ROOM_RATIO times the largest direction that is left out is added to the floor of K'. Then squared
# features along these directions are multiplied by 1 / (1 - 1 / ROOM_RATIO) at most.
ROOM_RATIO = 2.0


class Coordinates(NamedTuple):
    """Features of n points, times the scales, in the coordinates of a :class:`Basis`."""

    scaled: Array  # S phi, (m, n)
    along: Array  # k'(x) along the basis, D^1/2 times the features along its directions, (r, n)
    left_out: Array  # features along directions that are left out and not faint, (q, n)


@dataclass(frozen=True)
class Basis:
    """The span of Phi and of the outcomes, of the first n observations.

    Features are multiplied by ``scales`` first. Directions d with D_d <= ``dropped`` are left out
    of the features of these observations. To make up for that, ``room`` is added to the floor, and
    squared features of all other points along d are multiplied by 1 / (1 - D_d / room); see "sums
    in place of observations" in ``docs/mathematics/sparse-engine.md``.
    """

    values: Array  # D, (r,)
    of_features: Array  # D^1/2 U' times the scales, (r, m)
    outcomes: Array  # D^-1/2 U' b, and the length of the outcomes outside the span, (r + 1,)
    count: int  # n
    scales: Array  # (m,)
    floor: float  # (1 + s) rho, from which the scales were made
    dropped: float
    squares: Array  # D of the directions that are left out and not faint, rounded up, (q,)
    of_dropped: Array  # U' times the scales, for these directions, (q, m)

    @classmethod
    def of(cls, stats: Statistics, accuracy: float, scales: Array, floor: float) -> Basis:
        """The basis of observations with these statistics."""
        values, vectors = np.linalg.eigh(stats.moments * np.multiply.outer(scales, scales))
        error = dot_error(stats.terms, accuracy) * stats.positive_trace
        first = int(np.searchsorted(values, LEAST_KEPT * error))
        dropped = max(float(values[first - 1]), FAINT_RATIO * error) + error if first else 0.0
        faint = int(np.searchsorted(values[:first], dropped / FAINT_RATIO, side="right"))
        squares, of_dropped = values[faint:first] + error, vectors[:, faint:first].T * scales
        values, vectors = values[first:], vectors[:, first:]
        z = (vectors.T @ (scales * stats.products)) / np.sqrt(values)
        rest = math.sqrt(max(stats.squares - float(z @ z), 0.0))
        of_features = np.sqrt(values)[:, None] * (vectors.T * scales)
        return cls(
            values, of_features, np.append(z, rest), stats.count, scales, floor,
            dropped, squares, of_dropped,
        )  # fmt: skip

    @property
    def room(self) -> float:
        """The addition to the floor of K' for the directions that are left out."""
        return ROOM_RATIO * self.dropped

    def coordinates(self, phi: Array) -> Coordinates:
        """Features (m, n) in the coordinates of this basis."""
        return Coordinates(
            self.scales[:, None] * phi, self.of_features @ phi, self.of_dropped @ phi
        )

    def products(
        self, left: Coordinates, right: Coordinates, inner: Callable[[Array, Array], Array]
    ) -> Array:
        """Inner products in which directions that are left out count for more.

        The faint ones are known by their sum alone, which is the total less all others.
        """
        more = self.squares / (self.room - self.squares)
        total, others = inner(left.scaled, right.scaled), inner(left.left_out, right.left_out)
        faint = total - inner(left.along / self.values[:, None], right.along) - others
        faint *= FAINT_SHARE / (ROOM_RATIO - FAINT_SHARE)
        return np.asarray(total + inner(more[:, None] * left.left_out, right.left_out) + faint)


# The squared error of an estimate with weights w is larger by B^2 (c1 |w|^2 + (1 + 1/s) r(x)) for
# the residuals. With the mean residual and |w|^2 = m/t the best s rho is sqrt(rho t r / m). Many
# points x have larger residuals, so s rho is RESIDUAL_SHARE times that, and no less than
# EXCESS_SHARE rho and RIDGE_SHARE (sigma/B)^2. Measured with RBF and Matérn kernels, where widths
# are within 2 percent of the least.
RESIDUAL_SHARE, EXCESS_SHARE, RIDGE_SHARE = 3.0, 0.3, 0.01


def design_floor(stats: Statistics, excess: float, typical: float) -> float:
    """The floor c1 of a design; ``excess`` is rho and ``typical`` is (sigma/B)^2."""
    share = RESIDUAL_SHARE * math.sqrt(excess * stats.residual / max(len(stats.products), 1))
    return excess + max(share, EXCESS_SHARE * excess, RIDGE_SHARE * typical)


@dataclass(frozen=True)
class Design(Directions):
    """The directions V, ready for any number of the leading ones."""

    dictionary: Dictionary
    basis: Basis
    path: RidgePath
    enlarging: float  # 1 + 1/s
    error: float

    @classmethod
    def of(
        cls, dictionary: Dictionary, stats: Statistics, scales: Array, floor: float, excess: float
    ) -> Design:
        """The design of observations with these statistics; ``excess`` is rho."""
        accuracy, enlarging = dictionary.accuracy, floor / (floor - excess)
        basis = Basis.of(stats, accuracy, scales, floor)
        values, largest = basis.values, float(np.max(scales, initial=1.0)) ** 2
        error = dot_error(stats.terms, accuracy) * largest * stats.positive_trace
        lost = SHARE_OF_ERROR * dictionary.error * stats.trace  # the errors of the features
        # This h makes the sum of all additions to the spectrum smallest.
        h = math.sqrt(float((1 / values).sum() / values.sum())) if len(values) else 1.0
        spectrum = values + (floor + lost) * (1 + error / values)
        spectrum += error * (1 + h * values + 1 / (h * values))
        # The errors of Phi' y and Phi' k'(x) are divided by the root of an eigenvalue.
        accuracy *= 4 + largest * math.sqrt(1 / (LEAST_KEPT * dot_error(stats.terms, accuracy)))
        columns = np.broadcast_to(0.0, (stats.terms, len(values)))
        eigen = Eigenbasis(
            columns, spectrum, floor, basis.outcomes[:-1], floor, False, values, accuracy,
            len(values),
        )  # fmt: skip
        trace = float(stats.moments.diagonal() @ scales**2) + enlarging * stats.residual
        path = RidgePath.without_border(eigen, math.sqrt(stats.squares), trace)
        return cls(dictionary, basis, path, enlarging, error)

    def squared_norms(self, counts: NDArray[np.intp]) -> Array:
        """See :class:`Directions`."""
        return np.asarray(1 + self.error / self.basis.values[-counts])

    def query(self, path: RidgePath, points: Targets) -> PathQuery:
        """See :class:`Directions`."""
        phi, rest, magnitudes = self.dictionary.features(points)
        scaled = self.basis.scales[:, None] * phi
        prior = column_dots(scaled, scaled) + self.enlarging * rest
        sizes = np.maximum(prior, magnitudes)
        u = self.basis.of_features[len(self.basis.values) - path.rank :] @ phi
        return PathQuery(path, prior, u, np.empty((0, len(rest))), np.zeros(len(rest)), sizes)
