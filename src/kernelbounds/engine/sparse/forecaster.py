"""Forecasts of outcomes by ridge regression on the features, each from the outcomes before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from kernelbounds.arrays import EPS, LARGEST, Array
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.sparse.dictionary import Block
from kernelbounds.engine.sparse.statistics import Statistics

# The inverse is computed anew after this many observations, or m if that is more, and updated in
# between.
MOST_UPDATES = 256


@dataclass(frozen=True)
class Forecaster:
    """Ridge regression on all rows so far, ready for forecasts of a block of rows."""

    ridge: float
    inverse: Array  # (A + ridge I)^-1
    products: Array  # b
    updated: int = 0  # observations since the inverse was computed anew

    @classmethod
    def of(cls, ridge: float, known: Statistics) -> Forecaster:
        """The forecaster after observations with these statistics."""
        inverse = np.linalg.inv(known.moments + ridge * np.eye(len(known.products)))
        return cls(ridge, np.asarray(0.5 * (inverse + inverse.T), dtype=float), known.products)

    def forecasts(self, block: Block) -> Forecasts:
        """Forecasts of a block of outcomes, each from those before it, in and before the block.

        With S = I + Phi (A + ridge I)^-1 Phi' = L L' and whitened errors u = L^-1 (y - m), rows
        before s add sum_j<s L_sj u_j to the mean, and ridge (L_ss^2 - 1) remains of the variance. A
        feature that a row does not have yet is zero. Means and variances may be anything that is
        known before the outcome, so that their rounding errors do no harm; only the difference
        y - m must be right. Where the ridge is so small that they overflow, nothing is forecast.
        """
        phi, y = block.phi, block.outcomes
        with np.errstate(over="ignore", invalid="ignore"):
            solved = self.inverse @ phi
            errors, seen = y - self.products @ solved, phi.T @ solved
            pivots = 1 + np.maximum(seen.diagonal(), 0.0)
            factor = _leading_factor(seen + np.eye(len(y)))
            some = slice(len(factor))
            pivots[some] = np.maximum(factor.diagonal() ** 2, 1.0)
            # Rows before s are summed first and then subtracted once, so that y is rounded once.
            whitened = solve_triangular(factor, errors[some], lower=True, check_finite=False)
            # A row that overflows adds nothing to the means of other rows.
            whitened = np.where(np.isfinite(whitened), whitened, 0.0)
            errors[some] -= np.tril(factor, -1) @ whitened
            variances = self.ridge * (pivots - 1) + block.residuals
        known = (np.abs(errors) < LARGEST) & (variances < LARGEST)  # false for nan
        rounded = np.abs(np.where(known, errors, y)) + 8 * EPS * np.abs(y)
        return Forecasts(rounded, np.where(known, variances, block.prior))

    def with_features(self, size: int) -> Forecaster:
        """The forecaster with more features, of which nothing is known yet."""
        old = len(self.products)
        inverse = np.eye(size) / self.ridge
        inverse[:old, :old] = self.inverse
        return Forecaster(
            self.ridge, inverse, np.append(self.products, np.zeros(size - old)), self.updated
        )

    def after(self, block: Block, total: Statistics) -> Forecaster:
        """The forecaster after one more block, which is in the total.

        Where the ridge is so small that matrices are singular or overflow, the block is not used:
        forecasts may be made from less than all that is known.
        """
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                other = self._after(block, total)
        except np.linalg.LinAlgError:
            return self
        return other if np.isfinite(other.inverse).all() else self

    def _after(self, block: Block, total: Statistics) -> Forecaster:
        """The forecaster after one more block, by Woodbury's formula if its rows are few."""
        size, count = block.phi.shape
        if self.updated + count > max(size, MOST_UPDATES):
            return Forecaster.of(self.ridge, total)
        solved = self.inverse @ block.phi
        inner = np.eye(count) + block.phi.T @ solved
        inverse = self.inverse - solved @ np.linalg.solve(inner, solved.T)
        products = self.products + block.phi @ block.outcomes
        return Forecaster(self.ridge, inverse, products, self.updated + count)


def _leading_factor(matrix: Array) -> Array:
    """The Cholesky factor of as many leading rows as have one.

    Where rounding errors are larger than the ridge, not all rows do. How many do depends on these
    rows alone, and not on those after them.
    """
    factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        return _leading_factor(matrix[: failed - 1, : failed - 1])
    sound = np.isfinite(factor).all(axis=1) & (factor.diagonal() > 0)
    count = len(matrix) if sound.all() else int(sound.argmin())
    return np.asarray(factor[:count, :count])
