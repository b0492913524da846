"""Settings of the inputs: as users give them, and as they can be set at a bench."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from kernelbounds.arrays import Array, as_floats, as_scalar, brief
from kernelbounds.bandits import Box, Finite
from kernelbounds.errors import InputError, did_you_mean
from kernelbounds.problem import Input, Problem
from kernelbounds.problem.quantities import after_number

# Ranges are divided into 1000 to 10000 steps, and so are factors of ten on a logarithmic scale:
# finer than what a function with a few turns notices.
DIGITS = 4
# Where all inputs are whole numbers and there are no more combinations, each is a candidate.
MOST_COMBINATIONS = 5000


def settable(problem: Problem, unit: Array) -> Array:
    """Points (m, d) of the unit cube as settings in the user's units, with few digits."""
    points = problem.unscaled(unit)
    columns = [_rounded(one, points[:, at]) for at, one in enumerate(problem.inputs)]
    return np.stack(columns, axis=-1)


def _rounded(one: Input, values: Array) -> Array:
    if one.integer:
        return values
    if one.log:
        shorter = [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
    else:
        decimals = DIGITS - 1 - math.floor(math.log10(one.range))
        shorter = [round(value, decimals) for value in values.tolist()]
    return np.clip(shorter, one.low, one.high)


def in_digits(one: Input, value: float) -> str:
    """A setting as text, with no more digits than it has."""
    return str(int(value)) if one.integer else f"{value:.10g}"


def named(problem: Problem, point: Sequence[float]) -> dict[str, float]:
    """The values of a point by the names of the inputs."""
    return dict(zip(problem.names, (float(value) for value in point), strict=True))


def written(problem: Problem, point: Iterable[float]) -> str:
    """``temperature=200 °C pressure=2e5``, for people; units where they were stated."""
    pairs = zip(problem.inputs, point, strict=True)
    return " ".join(
        f"{_quoted(one.name)}={in_digits(one, value)}{after_number(one.unit)}"
        for one, value in pairs
    )


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def checked_point(problem: Problem, given: Any) -> tuple[float, ...]:
    """One point in the user's units, from a dict or a sequence, within the ranges."""
    if isinstance(given, Mapping):
        check_names(problem, given)
        values = [as_scalar(given[name], name) for name in problem.names]
    else:
        array = as_floats(given, "a point")
        if array.shape != (problem.dim,):
            raise InputError(
                f"a point has one value for each of {', '.join(problem.names)}, got {brief(given)}."
            )
        values = array.tolist()
    for _, name, value, expected in problem.outside(np.array([values])):
        raise InputError(f"{name} = {value:.15g} is not {expected}.")
    return tuple(values)


def check_names(problem: Problem, given: Mapping[str, Any], also: Sequence[str] = ()) -> None:
    """Refuse names that the problem does not have, and values that are missing."""
    known = (*problem.names, *also)
    for name in given:
        if name not in known:
            raise InputError(
                f"there is no {brief(name)} in this study{did_you_mean(str(name), known)}; it has "
                f"{', '.join(known)}."
            )
    missing = [name for name in known if name not in given]
    if missing:
        raise InputError(f"a value of {' and of '.join(missing)} is missing.")


def whole_inputs(problem: Problem) -> list[int]:
    """Positions of the inputs that take whole numbers only."""
    return [at for at, one in enumerate(problem.inputs) if one.integer]


def domain_of(problem: Problem) -> Box | Finite:
    """Where to look for suggestions, scaled: the box, or all combinations of whole numbers."""
    if len(whole_inputs(problem)) == problem.dim:
        counts = [int(one.range) + 1 for one in problem.inputs]
        if math.prod(counts) <= MOST_COMBINATIONS:
            sides = [
                np.linspace(i.low, i.high, n) for i, n in zip(problem.inputs, counts, strict=True)
            ]
            return Finite(problem.scaled(np.array(list(product(*sides)))))
    return problem.unit_box
