"""The span of the features of the observations, from sums over them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.ridge_path import rounding
from kernelbounds.engine.sparse.statistics import Statistics

# Directions of Phi' Phi that are smaller than this times the rounding errors of its trace are left
# out, as if they were known not to tell anything.
DROPPED = 1e4


@dataclass(frozen=True)
class Basis:
    """The span of Phi and of the outcomes, of the first n observations."""

    values: Array  # D, (r,)
    of_features: Array  # D^1/2 U', (r, m)
    outcomes: Array  # D^-1/2 U' b, and the length of what is left of them, (r + 1,)
    count: int

    @classmethod
    def of(cls, stats: Statistics, accuracy: float) -> Basis:
        """From their statistics."""
        values, vectors = np.linalg.eigh(stats.moments)
        kept = values > DROPPED * rounding(stats.count, accuracy) * stats.trace
        values, vectors = values[kept], vectors[:, kept]
        z = (vectors.T @ stats.products) / np.sqrt(values)
        rest = math.sqrt(max(stats.squares - float(z @ z), 0.0))
        return cls(values, np.sqrt(values)[:, None] * vectors.T, np.append(z, rest), stats.count)
