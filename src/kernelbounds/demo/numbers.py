"""Numbers as they are written into the page."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

DIGITS = 5  # significant: far more than a picture shows


def numbers(values: Any) -> list[float | None]:
    """A list for JSON, which has no nan and no infinity: those become None."""
    return [number(value) for value in np.ravel(values).tolist()]


def number(value: float) -> float | None:
    """One of them."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
