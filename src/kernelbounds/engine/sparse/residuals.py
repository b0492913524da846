"""What the inducing points do not see of the observations, from above."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.engine.sparse.block import Block
from kernelbounds.engine.sparse.dictionary import FEATURE_ERROR, Dictionary

# Observations whose residuals are bounded together. The bounds of chunks add up, and so are the
# tighter the larger the chunks, which cost the cube of this.
CHUNK = 1000
# They are bounded anew when this part of the chunk, or more, is new.
SETTLED_AGAIN = 8
# Residuals whose trace is below this, relative to the number of observations times (sigma/B)^2, are
# bounded by it: to bound their largest eigenvalue would take most of the time.
NEGLIGIBLE = 1e-3


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
        return replace(self, rows=rows.with_features(more))

    @property
    def largest(self) -> float:
        """At least the largest eigenvalue of the residuals."""
        return self.excess + float(self.rows.residuals[self.settled :].sum())

    def settle(self, kernel: Kernel, typical: float) -> Chunk:
        """The same with all settled, if that is worth its time: the trace is not small enough.

        ``typical`` is (sigma/B)^2. By norms that need no iteration: the largest sum of a row,
        |R|_infinity, and |R^2|_F^1/2.
        """
        rows, count = self.rows, len(self.rows)
        if self.largest <= NEGLIGIBLE * typical * count:
            return self
        if count - self.settled < max(count // SETTLED_AGAIN, 1):
            return self
        gram = kernels.cross(kernel, rows.points, rows.points)
        gram *= np.multiply.outer(rows.weights, rows.weights)
        error = FEATURE_ERROR * float(gram.trace())
        rest = gram - rows.phi.T @ rows.phi
        rest = 0.5 * (rest + rest.T)
        largest = float(np.abs(rest).sum(axis=1).max())
        square = float(np.sqrt(np.linalg.norm(rest @ rest)))
        excess = min(self.largest, min(largest, square) + error)
        return replace(self, settled=count, excess=excess)
