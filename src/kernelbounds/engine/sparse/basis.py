"""The span of the features of the observations, from sums over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.ridge_path import rounding
from kernelbounds.engine.sparse.statistics import Statistics

# Directions of Phi' Phi that are smaller than this times the rounding errors of its trace are left
# out: outcomes along them would be rounding errors.
DROPPED = 1e4
# The largest of those, as it is counted, is no less than so many times these errors. The share of
# those that are so many times smaller, and of the errors, is then at most 1 / 50 of the largest.
FAINT = 100.0
OF_FAINT = 1 / 50
# Room for directions that are left out, relative to the largest of them: their squared features are
# multiplied by 1 / (1 - 1 / ROOM) at most, and this is added to the floor of K'.
ROOM = 2.0


class Seen(NamedTuple):
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
        error = rounding(stats.terms, accuracy) * stats.size
        first = int(np.searchsorted(values, DROPPED * error))
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

    def see(self, phi: Array) -> Seen:
        """Features (m, n) in the coordinates of this basis."""
        return Seen(self.scales[:, None] * phi, self.of_features @ phi, self.of_dropped @ phi)

    def products(self, left: Seen, right: Seen, inner: Callable[[Array, Array], Array]) -> Array:
        """Inner products, where directions that are left out count for more.

        Of the faint ones the sum is known, as what is left of all.
        """
        more = self.squares / (self.room - self.squares)
        total, others = inner(left.scaled, right.scaled), inner(left.left_out, right.left_out)
        faint = total - inner(left.along / self.values[:, None], right.along) - others
        faint *= OF_FAINT / (ROOM - OF_FAINT)
        return np.asarray(total + inner(more[:, None] * left.left_out, right.left_out) + faint)
