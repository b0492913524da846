"""A block of rows as the dictionary sees it."""

from __future__ import annotations

from dataclasses import dataclass

from kernelbounds.arrays import Array
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.sparse.dictionary import Dictionary


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
    def of(
        cls, dictionary: Dictionary, points: Array, outcomes: Outcomes, accuracy: float
    ) -> Block:
        """Of points (n, d) and their outcomes."""
        w = outcomes.weights
        phi, rest, prior = dictionary.features(points, accuracy)
        return cls(points, phi * w, rest * w**2, prior * w**2, outcomes.centred * w, w)
