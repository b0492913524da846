"""Quantities in the user's words: a name, a range and a unit, ``temperature[°C]=180:220``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kernelbounds.arrays import LARGEST, as_flag, as_scalar, brief, shortened
from kernelbounds.display.numbers import about, interval
from kernelbounds.errors import InputError

# The part before the first = of "name[unit]=low:high".
NAME_AND_UNIT = re.compile(r"([^\[\]]+)(?:\[([^\[\]]*)\])?")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Longer names would not fit into messages and pictures.
MAX_NAME_LENGTH = 80


@dataclass(frozen=True)
class Quantity:
    """A named number with a range and a unit, on a linear or a logarithmic scale."""

    name: str
    low: float
    high: float
    unit: str = ""
    log: bool = False

    def __post_init__(self) -> None:
        for field in ("name", "unit"):
            text = getattr(self, field)
            is_line = isinstance(text, str) and text.isprintable() and len(text) <= MAX_NAME_LENGTH
            if not is_line or re.search(r"[=\[\]]", text):
                raise InputError(
                    f"a {field} must be a line of text, of at most {MAX_NAME_LENGTH} letters and "
                    f"without '=' and brackets, got {brief(text)}."
                )
            vars(self)[field] = text.strip()
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
        vars(self).update(low=low, high=high)
        if as_flag(self.log, f"log of {self.name}") and not low >= 1 / LARGEST:
            raise InputError(
                f"{self.name} is logarithmic, so its range must be above 0, got {self.written}."
            )

    @property
    def written(self) -> str:
        """The range as text, ``180:220``."""
        return f"{in_digits(self.low)}:{in_digits(self.high)}"

    @property
    def text(self) -> str:
        """The text from which ``parse`` makes the same quantity, ``temperature[°C]=180:220``."""
        unit = f"[{self.unit}]" if self.unit else ""
        return f"{self.name}{unit}={self.written}{':log' * self.log}"

    @property
    def label(self) -> str:
        """The name and the unit, for the axes of pictures."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def description(self) -> str:
        """The range in words, ``180 to 220 °C``, and whether it is logarithmic."""
        ends = f"{in_digits(self.low)} to {in_digits(self.high)}"
        return f"{ends}{self.after_number}{', logarithmic' * self.log}"

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


def in_digits(value: float) -> str:
    """Write a number for a message with all its digits except rounding errors: 1700000001, 0.3."""
    return f"{value:.15g}"


def parsed_range(text: Any, what: str) -> tuple[str, str, float, float, list[str]]:
    """Split ``name[unit]=low:high:...`` into name, unit, low, high and the parts after those."""
    example = "yield[%]=0:100" if what == "output" else "temperature[°C]=180:220"
    name, unit = name_and_unit(text, what, example)
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


def name_and_unit(text: Any, what: str, example: str) -> tuple[str, str]:
    """Read the part before the first = of a text."""
    head, equals, _ = text.partition("=") if isinstance(text, str) else ("", "", "")
    found = NAME_AND_UNIT.fullmatch(head.strip())
    if found is None or not equals:
        raise InputError(f"{what} must be written as {example}, got {brief(text)}.")
    return found[1].strip(), found[2] or ""
