"""Outcomes as users give them, one or many, made ready for the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_scalar, as_vector, as_whole, brief
from kernelbounds.errors import InputError
from kernelbounds.problem import Problem
from kernelbounds.study.points import checked_point
from kernelbounds.study.records import Trial
from kernelbounds.study.store import Telling


def number_of(trial: Any) -> int:
    """The number of a trial, from the trial or its number."""
    return trial.number if isinstance(trial, Trial) else as_whole(trial, "trial", least=1)


def telling(problem: Problem, point: Any, value: Any, trial: Any, key: Any) -> Telling:
    """One outcome, of a trial or at a point, which may settle a trial."""
    number = None if trial is None else number_of(trial)
    if isinstance(point, Trial):
        if number not in (None, point.number):
            raise InputError(f"the outcome of trial {point.number} is not that of {number}.")
        number, point = point.number, point.values
    outcome = as_scalar(value, problem.output.name)
    return Telling(checked_point(problem, point), outcome, number, _checked_key(key))


def tellings(problem: Problem, points: Any, values: Any, keys: Any) -> list[Telling]:
    """Many of them: points in a list, an array, a dict of columns or a data frame."""
    listed = list(points) if isinstance(points, list | tuple) else None
    if listed is None or not all(isinstance(one, Mapping | Trial) for one in listed):
        listed = checked_rows(problem, points).tolist()
    outcomes = as_vector(values, problem.output.name, len(listed)).tolist()
    names = [None] * len(listed) if keys is None else list(keys)
    if len(names) != len(listed):
        raise InputError(f"keys must be {len(listed)}, one for each outcome, got {len(names)}.")
    return [
        telling(problem, point, value, None, key)
        for point, value, key in zip(listed, outcomes, names, strict=True)
    ]


def checked_rows(
    problem: Problem, points: Any, lines: NDArray[np.int64] | Sequence[int] | None = None
) -> Array:
    """Points (n, d) within the ranges; ``lines`` are where they come from, for messages."""
    rows = problem.points(points)
    for row, name, value, expected in problem.outside(rows):
        where = f"row {row + 1}" if lines is None else f"line {lines[row]}"
        raise InputError(f"{where}: {name} = {value:g} is not {expected}; nothing was changed.")
    return rows


def _checked_key(key: Any) -> str | None:
    if key is not None and (not isinstance(key, str) or not key.strip()):
        raise InputError(f"key must be text, got {brief(key)}.")
    return key
