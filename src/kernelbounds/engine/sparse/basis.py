"""Points that were fixed before the outcomes, from sums over the observations.

==============  =============================  ==================================================
code            symbol                         meaning
==============  =============================  ==================================================
``basis``       A = S Phi' Phi S = U D U'      with the factors S of features that joined late
                V = Phi S U D^-1/2             orthonormal columns, which depend on points alone
``floor``       c1 = (1 + s) rho               that of K', another one than for CMM
``error``       e >= |E|                       what A is wrong by for rounding errors
==============  =============================  ==================================================

For every vector c, |k(., x) - sum_i (V c)_i k(., x_i)|^2 <= k'(x,x) - 2 c'V'k'(x) + c'V'K'V c, with
K' as in :mod:`kernelbounds.engine.sparse`, V'k'(x) = D^1/2 U' S phi(x) and V'K'V = D + c1 I. So the
bounds for a fixed design are those of K' along V. Here V is known only up to what A is; with that,

    V'V <= I + e D^-1,    V'K'V <= D + c1 (I + e D^-1) + e (I + h D + D^-1/h)    for all h > 0,

see "Points fixed in advance" in ``docs/mathematics/bounds.md``.

The span of the features of the observations, from sums over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.path_query import PathQuery
from kernelbounds.engine.ridge_path import RidgePath, dot_error
from kernelbounds.engine.sparse.dictionary import SHARE_OF_ERROR, Dictionary
from kernelbounds.engine.sparse.statistics import Statistics
from kernelbounds.functionals.targets import Functionals, Targets

# Directions of Phi' Phi that are smaller than this times the rounding errors of its trace are left
# out: outcomes along them would be rounding errors.
LEAST_KEPT = 1e4
# The largest of those, as it is counted, is no less than so many times these errors. The share of
# those that are so many times smaller, and of the errors, is then at most 1 / 50 of the largest.
FAINT = 100.0
OF_FAINT = 1 / 50
# Room for directions that are left out, relative to the largest of them: their squared features are
# multiplied by 1 / (1 - 1 / ROOM) at most, and this is added to the floor of K'.
ROOM = 2.0


class Coordinates(NamedTuple):
    """Features of n points, times the scales, in the coordinates of a :class:`Basis`."""

    scaled: Array  # all of them, (m, n)
    along: Array  # k'(x) along the basis, which is D^1/2 times its directions, (r, n)
    left_out: Array  # along the directions that are left out and not faint, (q, n)


@dataclass(frozen=True)
class Basis:
    """The span of Phi and of the outcomes, of the first n observations.

    Features are multiplied by ``scales`` first. Directions d with D_d <= ``dropped`` are left out:
    observations of the basis do not see them. For that, ``room`` is added to the floor, and the
    squares of features along d, of all others, are multiplied by 1 / (1 - D_d / room); see "sums in
    place of observations" in ``docs/mathematics/bounds.md``.
    """

    values: Array  # D, (r,)
    of_features: Array  # D^1/2 U' times the scales, (r, m)
    outcomes: Array  # D^-1/2 U' b, and the length of what is left of them, (r + 1,)
    count: int
    scales: Array  # (m,)
    floor: float  # (1 + s) rho, from which the scales were made
    dropped: float
    squares: Array  # D of directions that are left out and not faint, rounded up, (q,)
    of_dropped: Array  # U' times the scales, of those, (q, m)

    @classmethod
    def of(cls, stats: Statistics, accuracy: float, scales: Array, floor: float) -> Basis:
        """From their statistics."""
        values, vectors = np.linalg.eigh(stats.moments * np.multiply.outer(scales, scales))
        error = dot_error(stats.terms, accuracy) * stats.positive_trace
        first = int(np.searchsorted(values, LEAST_KEPT * error))
        dropped = max(float(values[first - 1]), FAINT * error) + error if first else 0.0
        faint = int(np.searchsorted(values[:first], dropped / FAINT, side="right"))
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
        """What is added to the floor of K' for the directions that are left out."""
        return ROOM * self.dropped

    def coordinates(self, phi: Array) -> Coordinates:
        """Features (m, n) in the coordinates of this basis."""
        return Coordinates(
            self.scales[:, None] * phi, self.of_features @ phi, self.of_dropped @ phi
        )

    def products(
        self, left: Coordinates, right: Coordinates, inner: Callable[[Array, Array], Array]
    ) -> Array:
        """Inner products, where directions that are left out count for more.

        Of the faint ones the sum is known, as what is left of all.
        """
        more = self.squares / (self.room - self.squares)
        total, others = inner(left.scaled, right.scaled), inner(left.left_out, right.left_out)
        faint = total - inner(left.along / self.values[:, None], right.along) - others
        faint *= OF_FAINT / (ROOM - OF_FAINT)
        return np.asarray(total + inner(more[:, None] * left.left_out, right.left_out) + faint)


# An estimate with weights w is wrong by up to B^2 (c1 |w|^2 + (1 + 1/s) r(x)) for what inducing
# points do not see, squared. With the mean residual and |w|^2 = m/t the best s rho is
# sqrt(rho t r / m); many points x have larger residuals, for which it is this many times that, and
# no less than this times rho, and times (sigma/B)^2. Measured with RBF and Matérn kernels, where
# widths are within 2 percent of the least.
SHARE, LEAST_SHARE, COSTS_NOTHING = 3.0, 0.3, 0.01


def design_floor(stats: Statistics, excess: float, typical: float) -> float:
    """c1 for these observations, with rho and (sigma/B)^2."""
    share = SHARE * math.sqrt(excess * stats.residual / max(len(stats.products), 1))
    return excess + max(share, LEAST_SHARE * excess, COSTS_NOTHING * typical)


@dataclass(frozen=True)
class Design:
    """The directions V, ready for any number of the leading ones."""

    basis: Basis
    path: RidgePath
    enlarging: float  # 1 + 1/s
    error: float

    @classmethod
    def of(
        cls, dictionary: Dictionary, stats: Statistics, scales: Array, floor: float, excess: float
    ) -> Design:
        """Of observations with these statistics; ``excess`` is rho."""
        accuracy, enlarging = dictionary.accuracy, floor / (floor - excess)
        basis = Basis.of(stats, accuracy, scales, floor)
        values, largest = basis.values, float(np.max(scales, initial=1.0)) ** 2
        error = dot_error(stats.terms, accuracy) * largest * stats.positive_trace
        lost = SHARE_OF_ERROR * dictionary.error * stats.trace  # of features
        # h with the least sum of what is added.
        h = math.sqrt(float((1 / values).sum() / values.sum())) if len(values) else 1.0
        spectrum = values + (floor + lost) * (1 + error / values)
        spectrum += error * (1 + h * values + 1 / (h * values))
        # What Phi' y and Phi' k'(x) are wrong by, over the root of an eigenvalue.
        accuracy *= 4 + largest * math.sqrt(1 / (LEAST_KEPT * dot_error(stats.terms, accuracy)))
        columns = np.broadcast_to(0.0, (stats.terms, len(values)))
        eigen = Eigenbasis(
            columns, spectrum, floor, basis.outcomes[:-1], floor, False, values, accuracy,
            len(values),
        )  # fmt: skip
        none = np.empty((0, len(values)))
        trace = float(stats.moments.diagonal() @ scales**2) + enlarging * stats.residual
        path = RidgePath(
            eigen, columns, spectrum, none, none.T, np.empty((0, 0)), np.empty(0),
            math.sqrt(stats.squares), trace,
        )  # fmt: skip
        return cls(basis, path, enlarging, error)

    def enlarged(self, counts: NDArray[np.intp]) -> Array:
        """At least |V'V|, where V are so many leading directions."""
        return np.asarray(1 + self.error / self.basis.values[-counts])

    def query(self, dictionary: Dictionary, path: RidgePath, points: Targets) -> PathQuery:
        """What is known of points along the leading directions that the path has."""
        phi, rest, _ = dictionary.features(points)
        scaled = self.basis.scales[:, None] * phi
        prior = np.einsum("mn,mn->n", scaled, scaled) + self.enlarging * rest
        sizes = prior
        if isinstance(points, Functionals):
            sizes = np.maximum(prior, points.magnitudes(dictionary.kernel))
        u = self.basis.of_features[len(self.basis.values) - path.rank :] @ phi
        return PathQuery(path, prior, u, np.empty((0, len(rest))), np.zeros(len(rest)), sizes)
