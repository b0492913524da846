"""What the inducing points do not see of the observations, from above."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from kernelbounds import kernels
from kernelbounds.engine.ridge_path import rounding
from kernelbounds.engine.sparse.block import Block
from kernelbounds.engine.sparse.dictionary import ENLARGED, Dictionary

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

    def seen_by(self, dictionary: Dictionary) -> Chunk:
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
        error += rounding(len(rows.phi), dictionary.accuracy) * size
        rest = gram - rows.phi.T @ rows.phi
        rest = 0.5 * (rest + rest.T)
        largest = float(np.abs(rest).sum(axis=1).max())
        square = float(np.sqrt(np.linalg.norm(rest @ rest.T)))  # half the work of rest @ rest
        excess = min(self.largest, (1 + ENLARGED) * (min(largest, square) + error))
        return replace(self, settled=count, excess=excess)
