"""Validating the numbers that formulas take, which may be arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import LARGEST, Array, as_floats, as_scalar, brief
from kernelbounds.bounds import Assumptions
from kernelbounds.errors import InputError


def as_numbers(values: ArrayLike, name: str, *, least: float = 0.0, positive: bool = True) -> Array:
    """A float array of any shape, finite, at least ``least`` and, if asked for, above zero."""
    # Formulas are also looked at far beyond any number of rounds.
    array = as_floats(values, name, largest=float(np.finfo(np.float64).max))
    if not np.all(array >= least):
        raise InputError(f"{name} must be at least {least:g}, got {brief(values)}.")
    if positive and not np.all(array > 0):
        raise InputError(f"{name} must be above 0, got {brief(values)}.")
    return array


def check_shapes(**numbers: Array) -> None:
    """Refuse arrays that cannot be broadcast against each other."""
    try:
        np.broadcast_shapes(*(array.shape for array in numbers.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in numbers.items())
        raise InputError(f"these shapes do not fit together: {shapes}.") from None


def check_in_space(assumptions: Assumptions) -> None:
    """Refuse what the theorems are not about."""
    if assumptions.misspecification:
        raise InputError(
            "the theory is about functions of the kernel's space: misspecification must be 0, got "
            f"{assumptions.misspecification:g}."
        )


def as_rounds(rounds: ArrayLike) -> Array:
    """Numbers of rounds T >= 1."""
    return as_numbers(rounds, "rounds", least=1.0)


def as_threshold(threshold: float) -> float:
    """A threshold b > 0 whose square neither vanishes nor overflows."""
    return as_scalar(threshold, "threshold", least=1 / LARGEST, most=LARGEST)


def as_ridge(ridge: ArrayLike) -> Array:
    """Ridges alpha > 0."""
    return as_numbers(ridge, "ridge")
