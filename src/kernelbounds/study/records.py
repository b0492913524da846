"""What a study tells its users."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Trial:
    """Settings to be tried at the bench.

    Attributes
    ----------
    number : int
        By which its outcome is told.
    values : dict
        The settings by the names of the inputs, in their units.
    lower, upper : float
        Bounds on the true output there, from what was known when it was asked for.
    gain : float
        By how much the output there may at most be better than what was sure then: than the best
        lower bound at a setting observed (the best upper bound when minimising).
    """

    number: int
    values: dict[str, float]
    lower: float
    upper: float
    gain: float

    def as_data(self) -> dict[str, Any]:
        """The attributes as plain data for JSON."""
        return dataclasses.asdict(self)
