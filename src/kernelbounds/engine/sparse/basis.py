"""The span of the features of the observations, from sums over them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.ridge_path import rounding
from kernelbounds.engine.sparse.statistics import Statistics

# Directions of Phi' Phi that are smaller than this times the rounding errors of its trace are left
# out: outcomes along them would be rounding errors.
DROPPED = 1e4
# Of those that are smaller still, relative to the largest one left out, nothing is counted: it is
# well below what is added to residuals for the errors of features.
FAINT = 1e-9


@dataclass(frozen=True)
class Basis:
    """The span of Phi and of the outcomes, of the first n observations.

    Features are multiplied by ``scales`` first. Directions d where D_d is at most ``dropped`` are
    left out, as if observations did not see them; they are treated like those that joined late, by
    a factor 1 / (1 - D_d / floor) on phi_d(x)^2 in k'(x,x).
    """

    values: Array  # D, (r,)
    of_features: Array  # D^1/2 U' times the scales, (r, m)
    outcomes: Array  # D^-1/2 U' b, and the length of what is left of them, (r + 1,)
    count: int
    scales: Array  # (m,)
    floor: float  # (1 + s) rho, from which the scales were made
    dropped: float
    squares: Array  # D of directions that are left out, (q,)
    of_dropped: Array  # U' times the scales, of those, (q, m)

    @classmethod
    def of(cls, stats: Statistics, accuracy: float, scales: Array, floor: float) -> Basis:
        """From their statistics."""
        values, vectors = np.linalg.eigh(stats.moments * np.multiply.outer(scales, scales))
        first = int(
            np.searchsorted(values, DROPPED * rounding(stats.terms, accuracy) * stats.trace)
        )
        dropped = max(float(values[first - 1]), 0.0) if first else 0.0
        faint = int(np.searchsorted(values[:first], FAINT * dropped, side="right"))
        squares, of_dropped = values[faint:first], vectors[:, faint:first].T * scales
        values, vectors = values[first:], vectors[:, first:]
        z = (vectors.T @ (scales * stats.products)) / np.sqrt(values)
        rest = math.sqrt(max(stats.squares - float(z @ z), 0.0))
        of_features = np.sqrt(values)[:, None] * (vectors.T * scales)
        return cls(
            values, of_features, np.append(z, rest), stats.count, scales, floor,
            dropped, squares, of_dropped,
        )  # fmt: skip

    def left_out(self, phi: Array, floor: float) -> Array:
        """What is added to k'(x,x) for features (m, n) along directions that are left out; (n,)."""
        return np.asarray((self.squares / (floor - self.squares)) @ (self.of_dropped @ phi) ** 2)
