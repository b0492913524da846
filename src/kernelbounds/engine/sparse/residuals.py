"""What the inducing points do not see of the observations, from above."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.engine.sparse.block import Block
from kernelbounds.engine.sparse.dictionary import FEATURE_ERROR

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

    points: Array
    phi: Array
    weights: Array
    residuals: Array
    settled: int = 0
    excess: float = 0.0

    @classmethod
    def empty(cls, size: int, dim: int) -> Chunk:
        """Nothing."""
        return cls(np.empty((0, dim)), np.empty((size, 0)), np.empty(0), np.empty(0))

    @property
    def full(self) -> bool:
        """Whether it is time for the next chunk."""
        return len(self.weights) >= CHUNK

    def with_more(self, block: Block) -> Chunk:
        """And some more."""
        return replace(
            self,
            points=np.concatenate([self.points, block.points]),
            phi=np.concatenate([self.phi, block.phi], axis=1),
            weights=np.append(self.weights, block.weights),
            residuals=np.append(self.residuals, block.residuals),
        )

    @property
    def largest(self) -> float:
        """At least the largest eigenvalue of the residuals."""
        return self.excess + float(self.residuals[self.settled :].sum())

    def settle(self, kernel: Kernel, typical: float) -> Chunk:
        """The same with all settled, if that is worth its time: the trace is not small enough.

        ``typical`` is (sigma/B)^2. By norms that need no iteration: the largest sum of a row,
        |R|_infinity, and |R^2|_F^1/2.
        """
        count = len(self.weights)
        left = float(self.residuals[self.settled :].sum())
        if left <= NEGLIGIBLE * typical * count or count - self.settled < count // SETTLED_AGAIN:
            return self
        gram = kernels.cross(kernel, self.points, self.points)
        gram *= np.multiply.outer(self.weights, self.weights)
        error = FEATURE_ERROR * float(gram.trace())
        rest = gram - self.phi.T @ self.phi
        rest = 0.5 * (rest + rest.T)
        rows = float(np.abs(rest).sum(axis=1).max())
        square = float(np.sqrt(np.linalg.norm(rest @ rest)))
        return replace(self, settled=count, excess=min(self.largest, min(rows, square) + error))
