"""The sums over observations that a sparse engine keeps in place of them.

:class:`Statistics` are the sums. :class:`Chunk` are the newest observations, kept until their
residuals R = K - Phi Phi' are bounded together; the bounds of all chunks add up to rho. A
:class:`Forecaster` forecasts outcomes by ridge regression on the features, from the sums alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack, solve_triangular

from kernelbounds import kernels
from kernelbounds.arrays import EPS, LARGEST, Array, carried_sum
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.ridge_path import dot_error
from kernelbounds.engine.sparse.dictionary import RESIDUAL_MARGIN, Block, Dictionary

# Stands for a trace of zero; its square is still a positive number.
LEAST_TRACE = 1e-120
CARRIED_SUMS = ("moments", "products", "squares")  # the sums that are carried with twice the digits


@dataclass(frozen=True)
class Statistics:
    """Sums over observations; those of two sets of observations add up."""

    moments: Array  # A, (m, m)
    products: Array  # b, (m,)
    squares: float  # |y|^2
    count: int  # the number of observations
    trace: float  # the trace of K
    residual: float  # the trace of R
    excess: float  # rho, without the newest observations
    squared_weights: float
    terms: int = 0  # the sums have the errors of sums of this many terms, see ``dot_error``
    # The rests that rounding left of moments, products and squares, see :meth:`carrying`.
    moments_rest: Array | float = 0.0
    products_rest: Array | float = 0.0
    squares_rest: float = 0.0

    def __add__(self, other: Statistics) -> Statistics:
        """The sums over the observations of both.

        The largest eigenvalue of a matrix, which ``excess`` bounds, is at most the sum of those of
        its diagonal blocks. One more addition has the error of four terms.
        """
        added = {
            name: part + vars(other)[name]
            for name, part in vars(self).items()
            if not name.endswith("_rest")
        }
        return Statistics(**added | {"terms": max(self.terms, other.terms) + 4})

    def carrying(self, other: Statistics) -> Statistics:
        """Add the sums over both with the rests of rounding, so that errors do not grow.

        Ten million observations are ten thousand blocks of a thousand: added one after another,
        they would count as sums of 41,000 terms in place of a thousand. Where the other has more
        features, they are zeros in these observations.
        """
        more, known, carried = len(other.products) - len(self.products), dict(vars(self)), {}
        for name, part in known.items():
            if more and isinstance(part, np.ndarray):
                known[name] = np.pad(part, (0, more))
        for name in CARRIED_SUMS:
            rest = f"{name}_rest"
            carried[name], carried[rest] = carried_sum(
                known[name], known[rest], vars(other)[name], vars(other)[rest]
            )
        terms = max(self.terms, other.terms)
        return replace(Statistics(**known) + other, terms=terms, **carried)

    @classmethod
    def of(cls, block: Block) -> Statistics:
        """The sums over the rows of a block, except for rho, which is known of chunks only."""
        phi, y, w = block.phi, block.outcomes, block.weights
        return cls(
            phi @ phi.T, phi @ y, float(y @ y), len(y), float(block.prior.sum()),
            float(block.residuals.sum()), 0.0, float(w @ w), len(y),
        )  # fmt: skip

    @classmethod
    def none(cls, size: int) -> Statistics:
        """The sums over no observations, with ``size`` features."""
        return cls(np.zeros((size, size)), np.zeros(size), 0.0, 0, 0.0, 0.0, 0.0, 0.0)

    @property
    def positive_trace(self) -> float:
        """The trace of K, or a tiny number where that is zero, since errors are relative to it."""
        return max(self.trace, LEAST_TRACE)

    def with_features(self, rows: Block) -> Statistics:
        """The sums with the new features of some rows; all other observations have zeros there."""
        old, size = len(self.products), len(rows.phi)
        new = rows.phi[old:]
        moments = np.zeros((size, size))
        moments[:old, :old] = self.moments
        moments[old:] = new @ rows.phi.T
        moments[:old, old:] = moments[old:, :old].T
        seen = float((new**2).sum())
        return replace(
            self,
            moments=moments,
            products=np.append(self.products, new @ rows.outcomes),
            residual=max(self.residual - seen, 0.0),
            moments_rest=0.0,
            products_rest=0.0,
        )


# How many observations have their residuals bounded together. The bounds of chunks add up, and so
# are the tighter the larger the chunks, which cost the cube of their size.
CHUNK_ROWS = 1000
# Residuals are bounded anew when at least one in NEW_OF_CHUNK observations of the chunk is new.
NEW_OF_CHUNK = 8


@dataclass(frozen=True)
class Chunk:
    """The newest observations, whose residuals are bounded together.

    The residuals of the first ``settled`` observations are bounded by their largest eigenvalue,
    ``excess``, and those of the others by their trace.
    """

    rows: Block
    settled: int = 0
    excess: float = 0.0

    @classmethod
    def empty(cls, size: int, dim: int) -> Chunk:
        """A chunk without observations."""
        return cls(Block.empty(size, dim))

    @property
    def full(self) -> bool:
        """Whether it is time for the next chunk."""
        return len(self.rows) >= CHUNK_ROWS

    def with_more(self, block: Block) -> Chunk:
        """The chunk with the rows of a block added."""
        return replace(self, rows=self.rows.joined(block))

    def with_features_of(self, dictionary: Dictionary) -> Chunk:
        """The chunk with the features of more inducing points, by which R only falls."""
        rows = self.rows
        more = dictionary.more_features(rows.phi, rows.points, rows.weights)
        return replace(self, rows=rows.with_features(more, dictionary.least_residual))

    @property
    def largest(self) -> float:
        """A bound on the largest eigenvalue of the residuals."""
        return self.excess + float(self.rows.residuals[self.settled :].sum())

    def settle(self, dictionary: Dictionary, negligible: float) -> Chunk:
        """Bound the residuals of all rows together, if that is worth its time.

        The largest eigenvalue is bounded by norms that need no iteration: the largest sum of a row,
        |R|_infinity, and |R^2|_F^1/2. The errors eta of features change R by at most
        2 sqrt(tr R tr K u) + u tr K.
        """
        rows, count, kernel = self.rows, len(self.rows), dictionary.kernel
        few_new = count - self.settled < max(count // NEW_OF_CHUNK, 1)
        if self.largest <= negligible or few_new:
            return self
        gram = kernels.cross(kernel, rows.points, rows.points)
        gram *= np.multiply.outer(rows.weights, rows.weights)
        size, lost = float(gram.trace()), dictionary.error
        error = 2 * math.sqrt(float(rows.residuals.sum()) * size * lost) + lost * size
        error += dot_error(len(rows.phi), dictionary.accuracy) * size
        rest = gram - rows.phi.T @ rows.phi
        rest = 0.5 * (rest + rest.T)
        largest = float(np.abs(rest).sum(axis=1).max())
        square = float(np.sqrt(np.linalg.norm(rest @ rest.T)))  # half the work of rest @ rest
        excess = min(self.largest, (1 + RESIDUAL_MARGIN) * (min(largest, square) + error))
        return replace(self, settled=count, excess=excess)


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
        size, count = block.phi.shape
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                if self.updated + count > max(size, MOST_UPDATES):
                    other = Forecaster.of(self.ridge, total)
                else:  # Woodbury's formula
                    solved = self.inverse @ block.phi
                    inner = np.eye(count) + block.phi.T @ solved
                    inverse = self.inverse - solved @ np.linalg.solve(inner, solved.T)
                    products = self.products + block.phi @ block.outcomes
                    other = Forecaster(self.ridge, inverse, products, self.updated + count)
        except np.linalg.LinAlgError:
            return self
        return other if np.isfinite(other.inverse).all() else self


def _leading_factor(matrix: Array) -> Array:
    """The Cholesky factor of as many leading rows as have one.

    Where rounding errors are larger than the ridge, not all rows have one. How many do depends on
    these rows alone, and not on those after them.
    """
    factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        return _leading_factor(matrix[: failed - 1, : failed - 1])
    sound = np.isfinite(factor).all(axis=1) & (factor.diagonal() > 0)
    count = len(matrix) if sound.all() else int(sound.argmin())
    return np.asarray(factor[:count, :count])
