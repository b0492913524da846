"""What the inducing points do not see of the observations, from above.

Sums over observations: all that a sparse engine keeps of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.engine.ridge_path import dot_error
from kernelbounds.engine.sparse.dictionary import RESIDUAL_MARGIN, Block, Dictionary

# What is smaller than this is nothing; its square is still a number.
LEAST_TRACE = 1e-120


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
    terms: int = 0  # the errors of all sums are those of sums of so many terms, see ``dot_error``
    # What rounding left of moments, products and squares, see :meth:`carrying`.
    moments_rest: Array | float = 0.0
    products_rest: Array | float = 0.0
    squares_rest: float = 0.0

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
            # One more addition costs what four terms do.
            max(self.terms, other.terms) + 4,
        )

    def carrying(self, other: Statistics) -> Statistics:
        """Of both, with what rounding leaves carried along: errors do not grow with such sums.

        Ten million observations are ten thousand blocks of a thousand: added one after another,
        they count as sums of 41,000 terms in place of a thousand.
        """
        known, carried = self.padded(len(other.products)), {}
        for name in ("moments", "products", "squares"):
            rest = f"{name}_rest"
            carried[name], carried[rest] = _carried(
                *(getattr(one, part) for one in (known, other) for part in (name, rest))
            )
        return replace(known + other, terms=max(self.terms, other.terms), **carried)

    def padded(self, size: int) -> Statistics:
        """With so many features, of which the observations have zeros in place of the last."""
        more = size - len(self.products)
        if not more:
            return self
        return replace(
            self,
            moments=np.pad(self.moments, (0, more)),
            products=np.pad(self.products, (0, more)),
            moments_rest=_padded(self.moments_rest, more),
            products_rest=_padded(self.products_rest, more),
        )

    @classmethod
    def of(cls, block: Block) -> Statistics:
        """Of the rows of a block; what they add to rho is known of chunks only."""
        phi, y, w = block.phi, block.outcomes, block.weights
        return cls(
            phi @ phi.T, phi @ y, float(y @ y), len(y), float(block.prior.sum()),
            float(block.residuals.sum()), 0.0, float(w @ w), len(y),
        )  # fmt: skip

    @classmethod
    def none(cls, size: int) -> Statistics:
        """Of no observations."""
        return cls(np.zeros((size, size)), np.zeros(size), 0.0, 0, 0.0, 0.0, 0.0, 0.0)

    @property
    def positive_trace(self) -> float:
        """The trace of K, to which errors relate; positive also where all functions vanish."""
        return max(self.trace, LEAST_TRACE)

    def with_features(self, rows: Block) -> Statistics:
        """With as many features as some of the rows have by now; the others have zeros there."""
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


def _carried(first: Any, first_rest: Any, second: Any, second_rest: Any) -> tuple[Any, Any]:
    """The sum of two numbers or arrays with their rests, and what rounding leaves (Knuth)."""
    total = first + second
    part = total - first
    rest = (first - (total - part)) + (second - part) + first_rest + second_rest
    rounded = total + rest
    return rounded, rest - (rounded - total)


def _padded(rest: Array | float, more: int) -> Array | float:
    return np.pad(rest, (0, more)) if isinstance(rest, np.ndarray) else rest


# Observations whose residuals are bounded together. The bounds of chunks add up, and so are the
# tighter the larger the chunks, which cost the cube of this.
CHUNK = 1000
# They are bounded anew when this part of the chunk, or more, is new.
SETTLED_AGAIN = 8


@dataclass(frozen=True)
class Chunk:
    """The newest observations, whose residuals are bounded together.

    Of the first ``settled`` they are bounded by their largest eigenvalue, ``excess``, and of the
    others by the trace.
    """

    rows: Block
    settled: int = 0
    excess: float = 0.0

    @classmethod
    def empty(cls, size: int, dim: int) -> Chunk:
        """Nothing."""
        return cls(Block.empty(size, dim))

    @property
    def full(self) -> bool:
        """Whether it is time for the next chunk."""
        return len(self.rows) >= CHUNK

    def with_more(self, block: Block) -> Chunk:
        """And some more."""
        return replace(self, rows=self.rows.joined(block))

    def with_features_of(self, dictionary: Dictionary) -> Chunk:
        """The same with the features of more inducing points: R only falls."""
        rows = self.rows
        more = dictionary.more_features(rows.phi, rows.points, rows.weights)
        return replace(self, rows=rows.with_features(more, dictionary.least_residual))

    @property
    def largest(self) -> float:
        """At least the largest eigenvalue of the residuals."""
        return self.excess + float(self.rows.residuals[self.settled :].sum())

    def settle(self, dictionary: Dictionary, negligible: float) -> Chunk:
        """The same with all settled, if that is worth its time: the trace is not negligible.

        By norms that need no iteration: the largest sum of a row, |R|_infinity, and |R^2|_F^1/2.
        The errors eta of features change R by at most 2 sqrt(tr R tr K u), and u tr K.
        """
        rows, count, kernel = self.rows, len(self.rows), dictionary.kernel
        if self.largest <= negligible:
            return self
        if count - self.settled < max(count // SETTLED_AGAIN, 1):
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
