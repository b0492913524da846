"""What a study tells its users.

Settings of the inputs: as users give them, and as they can be set at a bench.

Outcomes as users give them, one or many, made ready for the file.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_floats, as_scalar, as_vector, as_whole, brief
from kernelbounds.bandits import Box, Finite
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import at_most, interval
from kernelbounds.errors import InputError, did_you_mean
from kernelbounds.problem import Input, Problem
from kernelbounds.problem.quantities import after_number
from kernelbounds.study.store import Telling

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


@dataclass(frozen=True)
class Trial:
    """Settings to be tried at the bench, from :meth:`Study.ask`.

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

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> trial = study.ask()
    >>> trial.number, list(trial.values), trial.lower < trial.upper
    (1, ['speed'], True)
    >>> told = study.tell(trial, 63.1)
    """

    number: int
    values: dict[str, float]
    lower: float
    upper: float
    gain: float

    def __repr__(self) -> str:
        return (
            f"Trial({self.number}: {self._settings}, output in {interval(self.lower, self.upper)}, "
            f"gain <= {at_most(self.gain)})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        return notebook.card(
            f"Trial {self.number}",
            [
                ("try", self._settings),
                ("output there", f"in {interval(self.lower, self.upper)}"),
                ("better than what is sure", f"by at most {at_most(self.gain)}"),
            ],
        )

    @property
    def _settings(self) -> str:
        return ", ".join(f"{name}={value:.10g}" for name, value in self.values.items())

    def as_data(self) -> dict[str, Any]:
        """The attributes as plain data for JSON."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Promising:
    """The settings with the best estimate, which need not be proved to be good.

    They are the ``most_promising`` of a :class:`Status`: what one would use today.

    Attributes
    ----------
    values : dict
        The settings by the names of the inputs, in their units.
    estimate : float
        Of the true output there: the middle of the interval. It carries no guarantee of its own.
    lower, upper : float
        The interval, which does: bounds on the true output there.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["batches=1:9:integer"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> told = study.tell({"batches": 4}, 63.1)
    >>> found = study.status(seconds=0.1).most_promising
    >>> list(found.values), found.lower < found.estimate < found.upper
    (['batches'], True)
    """

    values: dict[str, float]
    estimate: float
    lower: float
    upper: float

    def as_data(self) -> dict[str, Any]:
        """The attributes as plain data for JSON, with the settings as ``named``."""
        return {
            "named": self.values, "estimate": self.estimate,
            "lower": self.lower, "upper": self.upper,
        }  # fmt: skip
