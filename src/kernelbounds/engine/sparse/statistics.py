"""Sums over observations: all that a sparse engine keeps of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.sparse.block import Block

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
    terms: int = 0  # the errors of all sums are those of sums of so many terms, see ``rounding``
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
    def size(self) -> float:
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
