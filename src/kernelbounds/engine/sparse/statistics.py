"""Sums over observations: all that a sparse engine keeps of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.sparse.block import Block


@dataclass(frozen=True)
class Statistics:
    """Sums over observations; those of two sets of observations add up."""

    moments: Array
    products: Array
    squares: float  # |y|^2
    count: int
    trace: float  # of K
    residual: float  # the trace of R
    excess: float  # rho, without the newest observations
    squared_weights: float

    def __add__(self, other: Statistics) -> Statistics:
        """Of both; lambda_max of a matrix is at most the sum of those of its diagonal blocks."""
        return Statistics(
            self.moments + other.moments,
            self.products + other.products,
            self.squares + other.squares,
            self.count + other.count,
            self.trace + other.trace,
            self.residual + other.residual,
            self.excess + other.excess,
            self.squared_weights + other.squared_weights,
        )

    @classmethod
    def of(cls, block: Block) -> Statistics:
        """Of the rows of a block; what they add to rho is known of chunks only."""
        phi, y, w = block.phi, block.outcomes, block.weights
        return cls(
            phi @ phi.T, phi @ y, float(y @ y), len(y), float(block.prior.sum()),
            float(block.residuals.sum()), 0.0, float(w @ w),
        )  # fmt: skip

    @classmethod
    def none(cls, size: int) -> Statistics:
        """Of no observations."""
        return cls(np.zeros((size, size)), np.zeros(size), 0.0, 0, 0.0, 0.0, 0.0, 0.0)
