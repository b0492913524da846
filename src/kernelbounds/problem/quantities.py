"""Inputs and outputs in the user's words: ``temperature[°C]=180:220``, ``pressure=1e5:3e5:log``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import LARGEST, Array, as_flag, as_scalar, as_whole, brief
from kernelbounds.errors import InputError

# name[unit], of name[unit]=low:high and what follows, each after a colon.
NAME_AND_UNIT = re.compile(r"([^\[\]]+)(?:\[([^\[\]]*)\])?")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Values beyond a range by rounding alone, relative to it, are taken for its ends.
ROUNDING = 1e-9
MOST_TURNS = 50
MOST_LETTERS = 80  # of a name, for messages and pictures have a size


def after_number(unit: str) -> str:
    """A unit as it follows a number: with a space before it, or nothing."""
    return f" {unit}" if unit else ""


@dataclass(frozen=True)
class Quantity:
    """A named number with a range and a unit.

    Parameters
    ----------
    name : str
        That of its column in tables.
    low, high : float
        The ends of its range.
    unit : str
        For labels only.
    """

    name: str
    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        for field in ("name", "unit"):
            text = getattr(self, field)
            usual = isinstance(text, str) and text.isprintable() and len(text) <= MOST_LETTERS
            if not usual or re.search(r"[=\[\]]", text):
                raise InputError(
                    f"a {field} must be a line of text, of at most {MOST_LETTERS} letters and "
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
                f"{self.name} needs a range of at least {1 / LARGEST:g}, got {high - low:g}; take "
                "another unit."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def written(self) -> str:
        """The range, ``180:220``."""
        return f"{in_digits(self.low)}:{in_digits(self.high)}"

    @property
    def text(self) -> str:
        """As it is parsed, ``temperature[°C]=180:220``."""
        return f"{self.name}{f'[{self.unit}]' if self.unit else ''}={self.written}"

    @property
    def label(self) -> str:
        """For the axes of pictures."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def description(self) -> str:
        """The range in words, ``180 to 220 °C``."""
        ends = f"{in_digits(self.low)} to {in_digits(self.high)}"
        return f"{ends} {self.unit}" if self.unit else ends

    @property
    def range(self) -> float:
        """high - low."""
        return self.high - self.low


@dataclass(frozen=True)
class Output(Quantity):
    """What is measured, with the range that its true values can plausibly have.

    Examples
    --------
    >>> Output.parse("yield[%]=0:100")
    Output(name='yield', low=0.0, high=100.0, unit='%')
    """

    @classmethod
    def parse(cls, text: str) -> Self:
        """From ``name[unit]=low:high``."""
        name, unit, low, high, more = _parsed(text, "output")
        if more:
            raise InputError(
                f"output {brief(name)} has a range and nothing more, got {brief(more[0])} after it."
            )
        return cls(name, low, high, unit)


@dataclass(frozen=True)
class Input(Quantity):
    """Something to be set, with the range of interest.

    Parameters
    ----------
    name : str
        That of its column in tables.
    low, high : float
        The ends of its range.
    unit : str
        For labels only.
    log : bool
        Whether ratios matter and not differences; the range must then be positive.
    integer : bool
        Whether whole numbers alone make sense.
    turns : int, optional
        How many times the output may turn, from rising to falling or back, as this input goes
        through its range; None is that of the problem.

    Examples
    --------
    >>> Input.parse("pressure[Pa]=1e5:3e5:log:turns=1")
    Input(name='pressure', low=100000.0, high=300000.0, unit='Pa', log=True, integer=False, turns=1)
    """

    log: bool = False
    integer: bool = False
    turns: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag(self.log, f"log of {self.name}")
        as_flag(self.integer, f"integer of {self.name}")
        if self.turns is not None:
            object.__setattr__(self, "turns", checked_turns(self.turns, f"turns of {self.name}"))
        if self.log and not self.low >= 1 / LARGEST:
            raise InputError(
                f"{self.name} is logarithmic, so its range must be above 0, got {self.written}."
            )
        if self.integer and not (self.low.is_integer() and self.high.is_integer()):
            raise InputError(
                f"{self.name} takes whole numbers, so its range must begin and end with one, got "
                f"{self.written}."
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """From ``name[unit]=low:high``, then ``:log``, ``:integer`` and ``:turns=2`` as need be."""
        name, unit, low, high, more = _parsed(text, "input")
        log = integer = False
        turns = None
        for option in more:
            key, _, value = (part.strip() for part in option.partition("="))
            if key == "log" and not value:
                log = True
            elif key in ("integer", "int") and not value:
                integer = True
            elif key == "linear" and not value:
                log = False
            elif key == "turns" and re.fullmatch(r"\d{1,9}", value, re.ASCII):
                turns = int(value)
            else:
                raise InputError(
                    f"input {brief(name)} has {brief(option)} after its range; log, integer and "
                    "turns=2 are what can be said there."
                )
        return cls(name, low, high, unit, log, integer, turns)

    @property
    def text(self) -> str:
        """As it is parsed, ``pressure[Pa]=1e5:3e5:log:turns=1``."""
        more = [":log"] * self.log + [":integer"] * self.integer
        more += [] if self.turns is None else [f":turns={self.turns}"]
        return super().text + "".join(more)

    @property
    def description(self) -> str:
        """The range in words, and what is special about it."""
        more = [", logarithmic"] * self.log + [", whole numbers"] * self.integer
        more += [] if self.turns is None else [f", turns at most {self.turns}"]
        return super().description + "".join(more)

    def scaled(self, values: Array) -> Array:
        """From the user's units to [0, 1]; values out of the range are refused by the problem."""
        return np.asarray(np.clip(self._along(values) / self._along(self.high), 0.0, 1.0))

    def unscaled(self, unit: Array) -> Array:
        """From [0, 1] to the user's units, rounded to whole numbers where it takes those alone."""
        along = unit * self._along(self.high)
        values = self.low + (self.low * np.expm1(along) if self.log else along)
        values = np.where(unit >= 1, self.high, values)  # which rounding may miss
        return np.asarray(np.clip(np.rint(values) if self.integer else values, self.low, self.high))

    def outside(self, values: Array) -> NDArray[np.bool_]:
        """Which values are not in the range, or not whole where they have to be."""
        if self.integer:
            inside = (values >= self.low) & (values <= self.high) & (values == np.rint(values))
        else:
            below = ROUNDING * (self.low if self.log else self.range)
            inside = (values >= self.low - below) & (values <= self.high + ROUNDING * self.range)
        return np.asarray(~inside)

    def _along(self, values: Array | float) -> Array:
        """value - low, or log(value / low), without loss of digits where they are close."""
        above = np.maximum(np.subtract(values, self.low), 0.0)
        return np.asarray(np.log1p(above / self.low) if self.log else above)


def in_digits(value: float) -> str:
    """A number for a message, with all its digits but for rounding: 1700000001, 0.3."""
    return f"{value:.15g}"


def checked_turns(turns: Any, name: str) -> int:
    """A number of turns."""
    return as_whole(turns, name, least=0, most=MOST_TURNS)


def _parsed(text: Any, what: str) -> tuple[str, str, float, float, list[str]]:
    """Name, unit, low, high and the rest."""
    example = "yield[%]=0:100" if what == "output" else "temperature[°C]=180:220"
    head, equals, rest = text.partition("=") if isinstance(text, str) else ("", "", "")
    found = NAME_AND_UNIT.fullmatch(head.strip())
    if found is None or not equals:
        raise InputError(f"{what} must be written as {example}, got {brief(text)}.")
    name, unit = found[1].strip(), found[2] or ""
    parts = [part.strip() for part in rest.split(":")]
    if len(parts) < 2 or not all(NUMBER.fullmatch(part) for part in parts[:2]):
        if what == "input" and "," in rest:
            raise InputError(
                f"input {brief(name)} seems to have categories ({brief(rest)}), which have no "
                "distances that a kernel could use: make a table or a study of each, or, for two "
                "of them, an input that is 0 or 1, written as =0:1:integer."
            )
        raise InputError(
            f"{what} {brief(name)} needs a range of two numbers, low:high as in {example}, got "
            f"{brief(rest.strip())}."
        )
    return name, unit, float(parts[0]), float(parts[1]), parts[2:]
