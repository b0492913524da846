"""Validating the numbers that formulas take, which may be arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError


def as_numbers(values: ArrayLike, name: str, *, least: float = 0.0, positive: bool = True) -> Array:
    """A float array of any shape, finite, at least ``least`` and, if asked for, above zero."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, got {values!r}.") from None
    if not (np.all(np.isfinite(array)) and np.all(array >= least)):
        raise InputError(f"{name} must be finite and at least {least:g}, got {values!r}.")
    if positive and not np.all(array > 0):
        raise InputError(f"{name} must be above 0, got {values!r}.")
    return array


def as_rounds(rounds: ArrayLike) -> Array:
    """Numbers of rounds T >= 1."""
    return as_numbers(rounds, "rounds", least=1.0)


def as_ridge(ridge: ArrayLike) -> Array:
    """Ridges alpha > 0."""
    return as_numbers(ridge, "ridge")
