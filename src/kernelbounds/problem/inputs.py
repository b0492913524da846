"""Inputs in the user's words: ``temperature[°C]=180:220``, ``quench=oil|water|air``.

Values of the inputs come in three forms: in the user's units; scaled to [0, 1], for kernels; and as
settings, which are values in the user's units with no more digits than one can set at a bench. In
all three, a level of a category is a whole number from 0 on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelbounds.arrays import (
    Array,
    as_flag,
    as_floats,
    as_points,
    as_scalar,
    as_whole,
    brief,
    shortened,
)
from kernelbounds.bandits import Box
from kernelbounds.categories import Categories
from kernelbounds.errors import InputError, did_you_mean
from kernelbounds.problem.quantities import NUMBER, Quantity, in_digits, name_and_unit, parsed_range

# A value that exceeds a range by less than this, relative to the range, is taken for its end: the
# excess is due to rounding.
ROUNDING = 1e-9
MAX_TURNS = 50
# Settings divide a range, or each factor of ten on a logarithmic scale, into 1000 to 10000 steps:
# finer than what a function with a few turns notices.
SETTING_DIGITS = 4
MAX_GRID_POINTS = 1_000_000


@dataclass(frozen=True)
class Input(Quantity):
    """Something to be set, with the range of interest.

    Parameters
    ----------
    name : str
        The name of its column in tables.
    low, high : float
        The ends of its range.
    unit : str
        The unit, for labels only.
    log : bool
        Whether ratios matter and not differences; the range must then be positive.
    integer : bool
        Whether only whole numbers make sense.
    turns : int, optional
        How many times the output may turn, from rising to falling or back, as this input goes
        through its range; None: as often as the problem says.
    levels : tuple of str
        The names of the levels, if the input is a category; its range is then that of their
        numbers.
    matters : float
        How much a category matters: by which share of the output's range, at most, another level
        alone may change the output. 1 assumes nothing.

    Examples
    --------
    >>> Input.parse("pressure[Pa]=1e5:3e5:log:turns=1").text
    'pressure[Pa]=100000:300000:log:turns=1'
    >>> Input.parse("quench=oil|water|air:matters=0.3").description
    'oil, water or air, changes the output by at most 0.3 of its range'
    """

    integer: bool = False
    turns: int | None = None
    levels: tuple[str, ...] = ()
    matters: float = 1.0

    def __post_init__(self) -> None:
        if self.levels:
            names = Categories(*self.levels).names
            vars(self).update(levels=names, low=0, high=len(names) - 1, integer=True)
            if self.unit or self.log or self.turns is not None:
                raise InputError(f"{self.name} is a category, which has no unit, log or turns.")
        super().__post_init__()
        as_scalar(self.matters, f"matters of {self.name}", least=0.01, most=1.0)
        if self.matters != 1 and not self.levels:
            raise InputError(f"matters is for categories, but {self.name} is a number.")
        as_flag(self.integer, f"integer of {self.name}")
        if self.turns is not None:
            vars(self).update(turns=checked_turns(self.turns, f"turns of {self.name}"))
        if self.integer and not (self.low.is_integer() and self.high.is_integer()):
            raise InputError(
                f"{self.name} takes whole numbers, so its range must begin and end with one, got "
                f"{self.written}."
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make an input from ``name[unit]=low:high``, ``:log``, ``:integer`` and ``:turns=2``.

        A category is made from ``name=oil|water|air``, and ``:matters=0.3``.
        """
        if isinstance(text, str) and "|" in text.partition("=")[2]:
            return cls._parsed_category(text)
        name, unit, low, high, more = parsed_range(text, "input")
        log = integer = False
        turns = None
        for option in more:
            key, _, value = (part.strip() for part in option.partition("="))
            if key in ("log", "linear") and not value:
                log = key == "log"
            elif key in ("integer", "int") and not value:
                integer = True
            elif key == "turns" and re.fullmatch(r"\d{1,9}", value, re.ASCII):
                turns = int(value)
            else:
                raise InputError(
                    f"input {brief(name)} has {brief(option)} after its range; only log, integer "
                    "and turns=2 may stand there."
                )
        return cls(name, low, high, unit, log, integer, turns)

    @classmethod
    def _parsed_category(cls, text: str) -> Self:
        name, unit = name_and_unit(text, "input", "quench=oil|water|air")
        listed, *more = text.partition("=")[2].split(":")
        matters = 1.0
        for option in more:
            key, _, value = (part.strip() for part in option.partition("="))
            if key != "matters" or not NUMBER.fullmatch(value):
                raise InputError(
                    f"input {brief(name)} has {brief(option)} after its levels; only matters=0.3 "
                    "may stand there."
                )
            matters = float(value)
        return cls(name, 0, 1, unit, levels=tuple(listed.split("|")), matters=matters)

    @property
    def categories(self) -> Categories | None:
        """The levels, if the input is a category."""
        return Categories(*self.levels) if self.levels else None

    @property
    def written(self) -> str:
        """The range or the levels as text, ``180:220`` or ``oil|water|air``."""
        return "|".join(self.levels) or super().written

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.levels:
            return f"one of its levels {self.written}"
        return f"{'a whole number ' * self.integer}in its range {self.written}{self.after_number}"

    @property
    def text(self) -> str:
        """The text from which :meth:`parse` makes the same, ``pressure[Pa]=1e5:3e5:log``."""
        more = ":integer" if self.integer and not self.levels else ""
        more += "" if self.turns is None else f":turns={self.turns}"
        more += "" if self.matters == 1 else f":matters={self.matters!r}"
        return super().text + more

    @property
    def description(self) -> str:
        """The range in words, and what is special about it."""
        if self.levels:
            much = f", changes the output by at most {self.matters:g} of its range"
            most = f"{', '.join(self.levels[:-1])} or {self.levels[-1]}"
            return most + (much if self.matters != 1 else "")
        most = "" if self.turns is None else f", turns at most {self.turns}"
        return f"{super().description}{', whole numbers' * self.integer}{most}"

    def scaled(self, values: Array) -> Array:
        """Scale values in the user's units to [0, 1], from the nearest ones that are in the range.

        If the input takes whole numbers, these are whole.
        """
        values = np.rint(values) if self.integer else values
        if self.levels:
            return np.asarray(np.clip(values, self.low, self.high))
        return np.asarray(np.clip(self._along(values) / self._along(self.high), 0.0, 1.0))

    def unscaled(self, unit: Array) -> Array:
        """Turn scaled values into the user's units, and into whole numbers for a whole input."""
        if self.levels:
            return self.scaled(unit)
        along = unit * self._along(self.high)
        values = self.low + (self.low * np.expm1(along) if self.log else along)
        values = np.where(unit >= 1, self.high, values)  # rounding may miss the end
        return np.asarray(np.clip(np.rint(values) if self.integer else values, self.low, self.high))

    def settable(self, unit: Array) -> Array:
        """Turn scaled values (m,) into settings, with few digits."""
        values = self.unscaled(unit)
        if self.integer:
            return values
        if self.log:
            shorter = [float(f"{value:.{SETTING_DIGITS}g}") for value in values.tolist()]
        else:
            decimals = SETTING_DIGITS - 1 - math.floor(math.log10(self.range))
            shorter = [round(value, decimals) for value in values.tolist()]
        return np.clip(shorter, self.low, self.high)

    def setting_text(self, value: float | str) -> str:
        """Write a setting with its unit, ``temperature=200 °C``, or the name of a level."""
        name = f'"{self.name}"' if " " in self.name else self.name
        level = self.value(value) if self.levels and not isinstance(value, str) else value
        if isinstance(level, str):
            return f'{name}="{level}"' if " " in level else f"{name}={level}"
        digits = str(int(value)) if self.integer else f"{value:.10g}"
        return f"{name}={digits}{self.after_number}"

    def number(self, text: str) -> float | None:
        """Read a value from text: a number, or the name of a level; None where it is neither."""
        if self.categories:
            return self.categories.number(text, self.name)
        return float(text) if NUMBER.fullmatch(text) else None

    def value(self, number: float) -> float | str:
        """Return a value as people are told it: the name of a level, or the number."""
        return self.levels[int(number)] if self.levels else float(number)

    def numbers(self, column: Any) -> Array:
        """Read a column of a table, (n,): numbers, or the names of levels."""
        if self.categories:
            return self.categories.numbers(column, self.name)
        return np.atleast_1d(as_floats(column, self.name))

    def outside(self, values: Array) -> NDArray[np.bool_]:
        """Tell which values are not in the range, or not whole although the input is."""
        if self.integer:
            inside = (values >= self.low) & (values <= self.high) & (values == np.rint(values))
        else:
            below = ROUNDING * (self.low if self.log else self.range)
            inside = (values >= self.low - below) & (values <= self.high + ROUNDING * self.range)
        return np.asarray(~inside)

    def _along(self, values: Array | float) -> Array:
        """Compute value - low, or log(value / low), with all digits where the two are close."""
        above = np.maximum(np.subtract(values, self.low), 0.0)
        return np.asarray(np.log1p(above / self.low) if self.log else above)


def checked_turns(turns: Any, name: str) -> int:
    """Return a number of turns, or raise where it cannot be one."""
    return as_whole(turns, name, least=0, most=MAX_TURNS)


class Inputs(tuple[Input, ...]):
    """The inputs of a problem: the box of their ranges, and points in it.

    Points are arrays (m, d) with a column for each input.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(["temperature=180:220", "quench=oil|water"], "yield=0:100", 0.5)
    >>> problem.inputs.points({"temperature": [200.0], "quench": ["water"]}).tolist()
    [[200.0, 1.0]]
    >>> problem.inputs.named([200.0, 1.0])
    {'temperature': 200.0, 'quench': 'water'}
    """

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(one.name for one in self)

    @property
    def categories(self) -> dict[int, Categories]:
        """The inputs that are categories, by their positions."""
        return {at: one.categories for at, one in enumerate(self) if one.categories}

    @property
    def categories_by_name(self) -> dict[str, Categories]:
        """The inputs that are categories, by their names."""
        return {self[at].name: levels for at, levels in self.categories.items()}

    @property
    def numbers(self) -> list[int]:
        """The positions of the inputs that are numbers, and no categories."""
        return [at for at, one in enumerate(self) if not one.levels]

    @property
    def box(self) -> Box:
        """The ranges of the inputs, in the user's units."""
        ends = [one.low for one in self], [one.high for one in self]
        return Box(*ends, self.names, self.categories)

    @property
    def unit_box(self) -> Box:
        """The ranges of the scaled inputs: the unit cube, and the levels of categories."""
        upper = [one.high if one.levels else 1.0 for one in self]
        return Box(np.zeros(len(self)), upper, self.names, self.categories)

    def points(self, X: Any) -> Array:
        """Read points (m, d), in the user's units, from an array, a dict or a data frame."""
        if isinstance(X, Mapping) or hasattr(X, "columns"):
            missing = [name for name in self.names if name not in X]
            if missing:
                given = [str(name) for name in X]
                wanted = ", ".join(f"{name!r}{did_you_mean(name, given)}" for name in missing)
                raise InputError(
                    f"there is no value for {shortened(wanted, 200)}; the inputs are "
                    f"{shortened(', '.join(self.names), 200)}."
                )
            columns = [one.numbers(X[one.name]) for one in self]
            if len({column.shape for column in columns}) > 1:
                raise InputError("all inputs must have the same number of values.")
            X = np.stack(columns, axis=-1)
        elif self.categories and not isinstance(X, np.ndarray):
            rows = np.atleast_2d(np.asarray(X, dtype=object))
            if rows.shape[1] == len(self):  # Levels may be given by name.
                for at, levels in self.categories.items():
                    rows[:, at] = [levels.number(one, self.names[at]) for one in rows[:, at]]
                X = rows.tolist()
        return as_points(X, "X", len(self), one=True)

    def checked_points(self, X: Any, place: Callable[[int], str] = "row {}: ".format) -> Array:
        """Read points as :meth:`points` does, and raise where a value is out of its range.

        ``place`` says where a row is, at the beginning of the message.
        """
        points = self.points(X)
        for one, values in zip(self, points.T, strict=True):
            for row in np.flatnonzero(one.outside(values)):
                raise InputError(
                    f"{place(int(row))}{one.name} = {in_digits(values[row])} is not "
                    f"{one.expected}; correct it, or state a wider range (for a "
                    "study: in a new one, with study revise)."
                )
        return points

    def scaled(self, X: Any) -> Array:
        """Scale points (m, d) in the user's units to the unit cube."""
        return self.nearest(self.checked_points(X))

    def nearest(self, points: Array) -> Array:
        """Scale points (m, d), each from the nearest one that can be set.

        The nearest point is in the ranges, and whole where an input takes whole numbers only.
        """
        return np.stack(list(map(Input.scaled, self, points.T)), axis=-1)

    def unscaled(self, unit: ArrayLike) -> Array:
        """Turn points (m, d) of the unit cube into the user's units."""
        points = as_points(unit, "unit", len(self), one=True)
        return np.stack(list(map(Input.unscaled, self, points.T)), axis=-1)

    def settable(self, unit: Array) -> Array:
        """Turn points (m, d) of the unit cube into settings, with few digits."""
        return np.stack(list(map(Input.settable, self, unit.T)), axis=-1)

    def grid(self, side: int) -> Array:
        """Return the settings (m, d) of a grid over the ranges, at all levels of categories.

        Each number has ``side`` values, or fewer where these coincide as whole numbers.

        >>> inputs = map(Input.parse, ["stages=1:2:integer", "quench=oil|water"])
        >>> Inputs(inputs).grid(5).tolist()
        [[1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [2.0, 1.0]]
        """
        sides = [np.arange(one.high + 1) if one.levels else np.linspace(0, 1, side) for one in self]
        size = math.prod(map(len, sides))
        if size > MAX_GRID_POINTS:
            levels = ", at all levels," if self.categories else ""
            raise InputError(
                f"a grid of {side} points along each of {len(self.numbers)} inputs{levels} has "
                f"{float(size):.3g} points; a million are the most."
            )
        unit = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)
        return np.unique(self.settable(unit.reshape(size, len(self))), axis=0)

    def named(self, point: Iterable[float]) -> dict[str, Any]:
        """Return the values of a point (d,) by the names of the inputs; levels are names."""
        return {one.name: one.value(x) for one, x in zip(self, point, strict=True)}

    def columns(self, points: Array) -> dict[str, Any]:
        """Return points (m, d) as columns of a table, (m,) each; levels are names."""
        return {
            one.name: [one.value(x) for x in values] if one.levels else values
            for one, values in zip(self, points.T, strict=True)
        }

    def settings_text(self, point: Iterable[float | str]) -> str:
        """Write a point (d,) for people, with the units that were stated.

        >>> inputs = map(Input.parse, ["temperature[°C]=180:220", "pH value=1:9"])
        >>> Inputs(inputs).settings_text([200, 7.5])
        'temperature=200 °C "pH value"=7.5'
        """
        return " ".join(one.setting_text(x) for one, x in zip(self, point, strict=True))
