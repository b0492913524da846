"""Inputs and outputs in the user's words: ``temperature[°C]=180:220``, ``pressure=1e5:3e5:log``.

Values of the inputs come in three forms: in the user's units; scaled to [0, 1], for kernels; and as
settings, which are values in the user's units with no more digits than one can set at a bench.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import LARGEST, Array, as_flag, as_scalar, as_whole, brief
from kernelbounds.display.numbers import interval
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
                f"{self.name} needs a range of at least {1 / LARGEST:g}, got {high - low:g}; take "
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

    @property
    def range(self) -> float:
        """The length of the range, high - low."""
        return self.high - self.low


@dataclass(frozen=True)
class Output(Quantity):
    """What is measured, with the range that its true values can plausibly have.

    Parameters
    ----------
    name : str
        The name of its column in tables.
    low, high : float
        The ends of its range.
    unit : str
        The unit, for labels only.

    Examples
    --------
    >>> Output.parse("yield[%]=0:100")
    Output(name='yield', low=0.0, high=100.0, unit='%')
    """

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make an output from ``name[unit]=low:high``."""
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
        """Make an input from ``name[unit]=low:high``, ``:log``, ``:integer`` and ``:turns=2``."""
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
                    f"input {brief(name)} has {brief(option)} after its range; log, integer and "
                    "turns=2 are what can be said there."
                )
        return cls(name, low, high, unit, log, integer, turns)

    @property
    def text(self) -> str:
        """The text from which :meth:`parse` makes the same, ``pressure[Pa]=1e5:3e5:log``."""
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
        """Scale values in the user's units to [0, 1], from the nearest ones that are in the range.

        If the input takes whole numbers, these are whole.
        """
        values = np.rint(values) if self.integer else values
        return np.asarray(np.clip(self._along(values) / self._along(self.high), 0.0, 1.0))

    def unscaled(self, unit: Array) -> Array:
        """Turn scaled values into the user's units, and into whole numbers for a whole input."""
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

    def setting_text(self, value: float) -> str:
        """Write a setting with its unit, ``temperature=200 °C``."""
        name = f'"{self.name}"' if " " in self.name else self.name
        digits = str(int(value)) if self.integer else f"{value:.10g}"
        return f"{name}={digits}{self.after_number}"

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


def in_digits(value: float) -> str:
    """Write a number for a message with all its digits except rounding errors: 1700000001, 0.3."""
    return f"{value:.15g}"


def checked_turns(turns: Any, name: str) -> int:
    """Return a number of turns, or raise where it cannot be one."""
    return as_whole(turns, name, least=0, most=MAX_TURNS)


def _parsed(text: Any, what: str) -> tuple[str, str, float, float, list[str]]:
    """Split ``name[unit]=low:high:...`` into name, unit, low, high and the parts after those."""
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
