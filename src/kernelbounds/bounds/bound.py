"""What every confidence bound is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from kernelbounds.arrays import Array, as_scalar
from kernelbounds.bounds.assumptions import Assumptions
from kernelbounds.engine import Engine


class Bound(Protocol):
    """A way to bound the values of the unknown function, given data and assumptions."""

    def extremes(
        self, engine: Engine, assumptions: Assumptions, points: Array, signs: Sequence[int]
    ) -> Array:
        """For each sign s, an upper bound on s f*(x) at each of m points; (signs, m).

        ``engine`` holds at least one observation. Sign +1 gives the upper confidence bound, and
        -1 the negative of the lower one.
        """
        ...


def signed(signs: Sequence[int] | Array, mean: Array) -> Array:
    """s mean for each sign s, with the signs as a new first axis."""
    return np.asarray(np.multiply.outer(np.asarray(signs, dtype=np.float64), mean))


def checked_ridge(ridge: float | None, name: str) -> float | None:
    """A positive ridge, or None."""
    return None if ridge is None else as_scalar(ridge, name, above=0.0)
