"""Forecasts of outcomes by ridge regression on the features, each from what was known before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.sparse.block import Block
from kernelbounds.engine.sparse.statistics import Statistics

# The inverse for the forecasts is computed anew after so many observations, or m, and updated in
# between.
UPDATES = 256


@dataclass(frozen=True)
class Forecaster:
    """What is known before a block of rows, ready for forecasts of them."""

    ridge: float
    inverse: Array  # (A + ridge I)^-1
    products: Array  # b
    updated: int = 0  # observations since the inverse was computed anew

    @classmethod
    def of(cls, ridge: float, known: Statistics) -> Forecaster:
        """After observations with these statistics."""
        size = len(known.products)
        if not known.count:
            return cls(ridge, np.eye(size) / ridge, known.products)
        inverse = np.linalg.inv(known.moments + ridge * np.eye(size))
        return cls(ridge, np.asarray(inverse, dtype=float), known.products)

    def forecasts(self, block: Block) -> Forecasts:
        """Of a block of outcomes from those before it.

        Means and variances may be anything that is known before the outcome, so that rounding
        errors do no harm; but y - m is to be its difference from y.
        """
        phi, y = block.phi, block.outcomes
        solved = self.inverse @ phi
        mean = self.products @ solved
        seen = np.maximum(np.einsum("mn,mn->n", phi, solved), 0.0)
        return Forecasts(
            np.abs(y - mean) + 8 * EPS * np.abs(y), self.ridge * seen + block.residuals
        )

    def after(self, block: Block, total: Statistics) -> Forecaster:
        """With a block more, which is in the total: of few rows by Woodbury's formula."""
        size, count = block.phi.shape
        if self.updated + count > max(size, UPDATES):
            return Forecaster.of(self.ridge, total)
        solved = self.inverse @ block.phi
        inner = np.eye(count) + block.phi.T @ solved
        inverse = self.inverse - solved @ np.linalg.solve(inner, solved.T)
        return Forecaster(self.ridge, inverse, total.products, self.updated + count)
