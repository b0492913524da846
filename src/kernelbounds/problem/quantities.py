"""Inputs and outputs in the user's words: ``temperature[°C]=180:220``, ``quench=oil|water|air``.

Values of the inputs come in three forms: in the user's units; scaled to [0, 1], for kernels; and as
settings, which are values in the user's units with no more digits than one can set at a bench. In
all three, a level of a category is a whole number from 0 on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelbounds.arrays import (
    EPS,
    LARGEST,
    Array,
    as_flag,
    as_floats,
    as_scalar,
    as_whole,
    brief,
    shortened,
)
from kernelbounds.categories import Categories
from kernelbounds.display.numbers import about, at_most, factor, interval
from kernelbounds.errors import InputError

# The part before the first = of "name[unit]=low:high".
NAME_AND_UNIT = re.compile(r"([^\[\]]+)(?:\[([^\[\]]*)\])?")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# A value that exceeds a range by less than this, relative to the range, is taken for its end: the
# excess is due to rounding.
ROUNDING = 1e-9
MAX_TURNS = 50
# Longer names would not fit into messages and pictures.
MAX_NAME_LENGTH = 80
# From this share on, ten times as much, the noise of a logarithmic output is written as a factor.
LARGEST_SHARE = 10.0
# Settings divide a range, or each factor of ten on a logarithmic scale, into 1000 to 10000 steps:
# finer than what a function with a few turns notices.
SETTING_DIGITS = 4


@dataclass(frozen=True)
class Quantity:
    """A named number with a range and a unit."""

    name: str
    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        for field in ("name", "unit"):
            text = getattr(self, field)
            is_line = isinstance(text, str) and text.isprintable() and len(text) <= MAX_NAME_LENGTH
            if not is_line or re.search(r"[=\[\]]", text):
                raise InputError(
                    f"a {field} must be a line of text, of at most {MAX_NAME_LENGTH} letters and "
                    f"without '=' and brackets, got {brief(text)}."
                )
            object.__setattr__(self, field, text.strip())
        if not self.name:
            raise InputError("a name is missing.")
        low, high = (
            as_scalar(getattr(self, end), f"{end} of {self.name}", least=-LARGEST, most=LARGEST)
            for end in ("low", "high")
        )
        if not low < high:
            raise InputError(
                f"{self.name} needs a range with low < high, got "
                f"{in_digits(low)}:{in_digits(high)}."
            )
        if high - low < 1 / LARGEST:
            raise InputError(
                f"{self.name} needs a range of at least {1 / LARGEST:g}, got {high - low:g}; use "
                "another unit."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def written(self) -> str:
        """The range as text, ``180:220``."""
        return f"{in_digits(self.low)}:{in_digits(self.high)}"

    @property
    def text(self) -> str:
        """The text from which :meth:`parse` makes the same, ``temperature[°C]=180:220``."""
        return f"{self.name}{f'[{self.unit}]' if self.unit else ''}={self.written}"

    @property
    def label(self) -> str:
        """The name and the unit, for the axes of pictures."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def description(self) -> str:
        """The range in words, ``180 to 220 °C``."""
        return f"{in_digits(self.low)} to {in_digits(self.high)}{self.after_number}"

    @property
    def after_number(self) -> str:
        """The unit as it follows a number: a space and the unit, or nothing."""
        return f" {self.unit}" if self.unit else ""

    def between(self, lower: float, upper: float) -> str:
        """Write an interval in words, rounded outward: ``between 61.2 and 72.5 %``."""
        ends = interval(lower, upper).strip("[]").replace(", ", " and ")
        return f"between {ends}{self.after_number}"

    def about(self, estimate: float, lower: float, upper: float, where: str = "") -> str:
        """Write an estimate with its bounds, and where that is.

        >>> Quantity("yield", 0, 100, "%").about(66.8123, 61.23, 72.41, "speed=3")
        'about 66.81 % at speed=3, guaranteed between 61.2 and 72.5 %'
        """
        there = f" at {where}" if where else ""
        sure = self.between(lower, upper)
        return f"about {about(estimate)}{self.after_number}{there}, guaranteed {sure}"

    @property
    def range(self) -> float:
        """The length of the range, high - low."""
        return self.high - self.low


@dataclass(frozen=True)
class Output(Quantity):
    """What is measured, with the range that its true values can plausibly have.

    It is modelled on a scale on which effects and noise add up: as it is, or by its natural
    logarithm. ``scaled`` goes to that scale, and ``least``, ``most`` and ``difference`` come back
    from it, rounded so that bounds stay true.

    Parameters
    ----------
    name : str
        The name of its column in tables.
    low, high : float
        The ends of its range.
    unit : str
        The unit, for labels only.
    log : bool
        Whether effects and noise multiply and do not add up; the range must then be positive.

    Examples
    --------
    >>> Output.parse("yield[%]=0:100")
    Output(name='yield', low=0.0, high=100.0, unit='%', log=False)
    >>> output = Output.parse("productivity=1.5:5:log")
    >>> f"{output.scaled(2.0):.4f}, {output.most(0.7):.4f}, {output.difference(0.1):.4f}"
    '0.6931, 2.0138, 0.1052'
    """

    log: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag(self.log, f"log of {self.name}")
        _refuse_log_below_0(self)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make an output from ``name[unit]=low:high``, and ``:log``."""
        name, unit, low, high, more = _parsed(text, "output")
        for option in more:
            if option not in ("log", "linear"):
                raise InputError(
                    f"output {brief(name)} has {brief(option)} after its range; only log may "
                    "stand there."
                )
        return cls(name, low, high, unit, "log" in more)

    @property
    def text(self) -> str:
        """The text from which :meth:`parse` makes the same, ``productivity=1.5:5:log``."""
        return super().text + ":log" * self.log

    @property
    def description(self) -> str:
        """The range in words, and whether it is logarithmic."""
        return super().description + ", logarithmic" * self.log

    # --- the scale of the model

    @property
    def span(self) -> float:
        """The length of the range on the scale of the model: high - low, or ln(high / low)."""
        return math.log(self.high / self.low) if self.log else self.range

    @property
    def middle(self) -> float:
        """The middle of the range on the scale of the model."""
        return float(self.scaled(self.low)) + self.span / 2

    @property
    def norm_unit(self) -> str:
        """The unit of B, and "" where it has none, or where it would be misread.

        A logarithm has no unit, and B = 1718 % would be read as a share of something.
        """
        return "" if self.log or self.unit == "%" else self.unit

    def norm_text(self, norm: float, rounded: Callable[[float], str] = about) -> str:
        """Write B or another norm.

        >>> Output.parse("yield[%]=0:100").norm_text(1718.2)
        '1718'
        >>> Output.parse("strength[MPa]=0:900").norm_text(175912.0)
        '175900 MPa'
        """
        return f"{rounded(norm)}{f' {self.norm_unit}' if self.norm_unit else ''}"

    def scaled(self, values: ArrayLike) -> Array:
        """Return values on the scale of the model: as they are, or their natural logarithms.

        A logarithm is rounded in its last digits, as if an outcome had been read with a relative
        error of 1e-15 |ln y|. The bounds that come back are widened by more than that.
        """
        given = np.asarray(values, dtype=float)
        return np.log(given) if self.log else given

    def least(self, scaled: ArrayLike) -> Array:
        """Return lower bounds in the user's units, rounded down, from those of the model."""
        return self._back(scaled, -1)

    def most(self, scaled: ArrayLike) -> Array:
        """Return upper bounds in the user's units, rounded up, from those of the model."""
        return self._back(scaled, 1)

    def _back(self, scaled: ArrayLike, side: int) -> Array:
        given = np.asarray(scaled, dtype=float)
        if not self.log:
            return given
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(given + side * self._rounding(given)))

    def _rounding(self, scaled: Array) -> Array:
        """Bound the rounding errors of logarithms near the range, near these, and of exp."""
        ends = abs(math.log(self.low)), abs(math.log(self.high))
        return 8 * EPS * (1 + max(ends) + np.abs(scaled))

    def difference(self, scaled: ArrayLike) -> Array:
        """Return a difference in the user's units, rounded up, from that on the model's scale.

        Differences of a logarithmic output are relative: 0.1 where one value is at most 1.1 times
        another.
        """
        given = np.asarray(scaled, dtype=float)
        if not self.log:
            return given
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(given + self._rounding(given)))

    def between_values(self, low: float, high: float) -> float:
        """Return how far two values in the user's units are apart, as :meth:`difference` does."""
        if not self.log:
            return high - low
        return (high - low) / low * (1 + 8 * EPS) if low > 0 else math.inf

    # --- words

    def amount(self, difference: float, rounded: Callable[[float], str] | None = None) -> str:
        """Write a difference in the user's units: ``0.5 %``, or ``a factor of 1.124``.

        It is rounded up, or as ``rounded`` does it.
        """
        if self.log:
            return f"a factor of {rounded(1 + difference) if rounded else factor(difference)}"
        return f"{(rounded or at_most)(difference)}{self.after_number}"

    @property
    def stated_range(self) -> str:
        """Write the length of the range, ``100 %``, or the factor between its ends."""
        if self.log:
            return f"a factor of {self.high / self.low:.3g}"
        return f"{self.range:g}{self.after_number}"

    def plus_minus(self, half: float) -> str:
        """Write half of a width of the model: ``±0.5 %``, or ``a factor of 1.124 either way``."""
        if self.log:
            return f"a factor of {factor(float(self.difference(half)))} either way"
        return f"±{self.amount(half)}"

    def short_plus_minus(self, half: float) -> str:
        """Write half of a width of the model for a table, ``±0.5 %`` or ``factor 1.124``."""
        return (
            f"factor {factor(float(self.difference(half)))}" if self.log else self.plus_minus(half)
        )

    def noise_text(self, noise: float, rounded: Callable[[float], str] = "{:g}".format) -> str:
        """Write noise that is in the user's units, which for a logarithmic output is a share.

        >>> output = Output.parse("gain=1:9:log")
        >>> output.noise_text(0.05), output.noise_text(31100.0)
        ('5 %', 'a factor of 31101')
        """
        if self.log:
            large = noise >= LARGEST_SHARE
            return self.amount(noise, rounded) if large else f"{rounded(100 * noise)} %"
        return f"{rounded(noise)}{self.after_number}"


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

    log: bool = False
    integer: bool = False
    turns: int | None = None
    levels: tuple[str, ...] = ()
    matters: float = 1.0

    def __post_init__(self) -> None:
        if self.levels:
            names = Categories(*self.levels).names
            for field, value in {
                "levels": names, "low": 0, "high": len(names) - 1, "integer": True,
            }.items():  # fmt: skip
                object.__setattr__(self, field, value)
            if self.unit or self.log or self.turns is not None:
                raise InputError(f"{self.name} is a category, which has no unit, log or turns.")
        super().__post_init__()
        as_scalar(self.matters, f"matters of {self.name}", least=0.01, most=1.0)
        if self.matters != 1 and not self.levels:
            raise InputError(f"matters is for categories, but {self.name} is a number.")
        as_flag(self.log, f"log of {self.name}")
        as_flag(self.integer, f"integer of {self.name}")
        if self.turns is not None:
            object.__setattr__(self, "turns", checked_turns(self.turns, f"turns of {self.name}"))
        _refuse_log_below_0(self)
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
        name, unit, low, high, more = _parsed(text, "input")
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
        name, unit = _name_and_unit(text, "input", "quench=oil|water|air")
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
        return f"{'a whole number ' * self.integer}in its range {self.written}"

    @property
    def text(self) -> str:
        """The text from which :meth:`parse` makes the same, ``pressure[Pa]=1e5:3e5:log``."""
        if self.levels:
            return super().text + (f":matters={self.matters!r}" if self.matters != 1 else "")
        more = [":log"] * self.log + [":integer"] * self.integer
        more += [] if self.turns is None else [f":turns={self.turns}"]
        return super().text + "".join(more)

    @property
    def description(self) -> str:
        """The range in words, and what is special about it."""
        if self.levels:
            much = f", changes the output by at most {self.matters:g} of its range"
            most = f"{', '.join(self.levels[:-1])} or {self.levels[-1]}"
            return most + (much if self.matters != 1 else "")
        more = [", logarithmic"] * self.log + [", whole numbers"] * self.integer
        more += [] if self.turns is None else [f", turns at most {self.turns}"]
        return super().description + "".join(more)

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
        if self.levels or isinstance(value, str):
            level = value if isinstance(value, str) else self.levels[int(value)]
            return f'{name}="{level}"' if " " in level else f"{name}={level}"
        digits = str(int(value)) if self.integer else f"{value:.10g}"
        return f"{name}={digits}{self.after_number}"

    def number(self, text: str) -> float | None:
        """Read a value from text: a number, or the name of a level; None where it is neither."""
        if self.levels:
            return Categories(*self.levels).number(text, self.name)
        return float(text) if NUMBER.fullmatch(text) else None

    def value(self, number: float) -> float | str:
        """Return a value as people are told it: the name of a level, or the number."""
        return self.levels[int(number)] if self.levels else float(number)

    def numbers(self, column: Any) -> Array:
        """Read a column of a table, (n,): numbers, or the names of levels."""
        if self.levels:
            return Categories(*self.levels).numbers(column, self.name)
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


def _refuse_log_below_0(one: Input | Output) -> None:
    if one.log and not one.low >= 1 / LARGEST:
        raise InputError(
            f"{one.name} is logarithmic, so its range must be above 0, got {one.written}."
        )


def in_digits(value: float) -> str:
    """Write a number for a message with all its digits except rounding errors: 1700000001, 0.3."""
    return f"{value:.15g}"


def checked_turns(turns: Any, name: str) -> int:
    """Return a number of turns, or raise where it cannot be one."""
    return as_whole(turns, name, least=0, most=MAX_TURNS)


def _parsed(text: Any, what: str) -> tuple[str, str, float, float, list[str]]:
    """Split ``name[unit]=low:high:...`` into name, unit, low, high and the parts after those."""
    example = "yield[%]=0:100" if what == "output" else "temperature[°C]=180:220"
    name, unit = _name_and_unit(text, what, example)
    rest = text.partition("=")[2]
    parts = [part.strip() for part in rest.split(":")]
    if len(parts) < 2 or not all(NUMBER.fullmatch(part) for part in parts[:2]):
        with_points = rest.strip().replace(",", ".")
        if "," in rest and all(NUMBER.fullmatch(one) for one in with_points.split(":")[:2]):
            raise InputError(
                f"the range of {what} {brief(name)} is written with a decimal point here, got "
                f"{brief(rest.strip())}: write {name}={shortened(with_points)} if that is what you "
                "mean. Tables may have decimal commas."
            )
        if what == "input" and not NUMBER.fullmatch(parts[0]):
            names = [one.strip() for one in rest.split(",")]
            likely = "|".join(names) if len(names) > 1 and all(names) else "oil|water|air"
            raise InputError(
                f"input {brief(name)} needs a range of two numbers, low:high as in {example}, or, "
                f"if it is a category, its levels with | between them, as in {shortened(likely)}, "
                f"got {brief(rest.strip())}."
            )
        raise InputError(
            f"{what} {brief(name)} needs a range of two numbers, low:high as in {example}, got "
            f"{brief(rest.strip())}."
        )
    return name, unit, float(parts[0]), float(parts[1]), parts[2:]


def _name_and_unit(text: Any, what: str, example: str) -> tuple[str, str]:
    """Read the part before the first = of a text."""
    head, equals, _ = text.partition("=") if isinstance(text, str) else ("", "", "")
    found = NAME_AND_UNIT.fullmatch(head.strip())
    if found is None or not equals:
        raise InputError(f"{what} must be written as {example}, got {brief(text)}.")
    return found[1].strip(), found[2] or ""
