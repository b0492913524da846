"""A block of rows as the dictionary sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.sparse.dictionary import ENLARGED, Dictionary


@dataclass(frozen=True)
class Block:
    """n observations; features, residuals and outcomes are multiplied by the weights of each.

    It depends on these rows and the dictionary alone, and so may be made anywhere.
    """

    points: Array  # (n, d)
    phi: Array  # w phi(x), (m, n)
    residuals: Array  # w^2 r(x), rounded up, (n,)
    prior: Array  # w^2 k(x,x), (n,)
    outcomes: Array  # w y, (n,)
    weights: Array  # w, (n,)

    @classmethod
    def of(cls, dictionary: Dictionary, points: Array, outcomes: Outcomes) -> Block:
        """Of points (n, d) and their outcomes."""
        w = outcomes.weights
        phi, rest, prior = dictionary.features(points)
        return cls(points, phi * w, rest * w**2, prior * w**2, outcomes.centred * w, w)

    @classmethod
    def empty(cls, size: int, dim: int) -> Block:
        """No rows."""
        none = np.empty(0)
        return cls(np.empty((0, dim)), np.empty((size, 0)), none, none, none, none)

    def __len__(self) -> int:
        return len(self.weights)

    def with_features(self, more: Array, least: float) -> Block:
        """The same rows with more features, (k, n), of a dictionary that has grown.

        ``least`` is added to residuals, relative to k(x,x). A larger dictionary has larger errors
        than those in the residuals of a smaller one, so that residuals that must not be too small
        need its :attr:`Dictionary.least_residual`.
        """
        if not len(more):
            return self
        seen = (1 + ENLARGED) * (more**2).sum(axis=0)
        rest = np.maximum(self.residuals - seen, 0.0) + least * self.prior
        return replace(self, phi=np.concatenate([self.phi, more]), residuals=rest)

    def joined(self, other: Block) -> Block:
        """These rows and some more, which have the same features."""
        return Block(
            np.concatenate([self.points, other.points]),
            np.concatenate([self.phi, other.phi], axis=1),
            np.append(self.residuals, other.residuals),
            np.append(self.prior, other.prior),
            np.append(self.outcomes, other.outcomes),
            np.append(self.weights, other.weights),
        )
