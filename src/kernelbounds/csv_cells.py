"""Cells of a table as numbers: what is one, and what to do about a cell that is none.

A number is an optional sign, digits with a decimal point, and an exponent. What other programs
would guess at (thousands, percentages, dates, blanks) is refused, because a wrong guess gives wrong
bounds and nobody sees it.
"""

from __future__ import annotations

import math
import re

from kernelbounds.arrays import LARGEST, brief
from kernelbounds.errors import InputError

MISSING = frozenset(["", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-", "--", "?"])

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"

# What a cell that is no number looks like, and what to do. The first that fits is said.
_KINDS = [
    (
        re.compile(r"[+-]?(?:inf(?:inity)?|∞)", re.IGNORECASE),
        "is not finite, and every number must be",
    ),
    (
        re.compile(
            r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}.*|.*[0-9]:[0-9]{2}.*"
            rf"|.*[0-9][-/. ]?(?:{_MONTH})[a-z]*[-/., ]+[0-9].*"
            rf"|.*\b(?:{_MONTH})[a-z]*[-/. ]+[0-9]{{1,2}}\b.*",
            re.IGNORECASE,
        ),
        "is a date or a time, which is not a number; make a column of hours or days since the "
        "start",
    ),
    (
        re.compile(r"[+-]?[0-9.,]+\s*%"),
        "is a percentage; write the number alone, and in the description of the input that it is "
        "in percent",
    ),
    (re.compile(r"[+-]?0[xX][0-9a-fA-F]+"), "is hexadecimal; write it as a decimal number"),
    (re.compile(r"[+-]?[0-9._,eE+-]*_[0-9._,eE+-]*"), "has underscores; write digits only"),
    (
        re.compile(r"[+-]?[0-9][0-9.,'\u2019\s]*[0-9]"),
        "may have separators of thousands; write numbers like 1234.5",
    ),
    (re.compile(r"#[A-Z].*"), "is an error of a spreadsheet; mend the formula"),
    (
        re.compile(r"[+-]?[0-9.,]*[0-9][.,]?\s*[^\s0-9.,:;/<>=()'\"+-].*"),
        "is not a number alone; leave the unit out, it goes into the description of the input",
    ),
]


class Numbers:
    """Reads cells one by one, and knows what they have in common.

    Parameters
    ----------
    file : str
        What the file is called in messages.
    commas : bool
        Whether a comma may be a decimal comma: not in a file where it separates cells.
    """

    def __init__(self, file: str, *, commas: bool) -> None:
        self._file, self._commas = file, commas
        self.missing = 0  # cells
        self._first_missing = (0, "", "")  # line, column and cell, as those below
        self._first: dict[str, tuple[int, str, str]] = {}  # with a decimal point, or comma
        self._clear = False  # whether some comma can only be a decimal comma

    def read(self, cell: str, line: int, column: str) -> float:
        """The number in a cell; NaN where it is missing, of which :meth:`finish` tells."""
        text = cell.strip().replace("−", "-")
        if not _NUMBER.fullmatch(text):
            if text.casefold() not in MISSING:
                raise self._refused(line, column, cell, _what_else(text))
            if not self.missing:
                self._first_missing = line, column, cell
            self.missing += 1
            return math.nan
        if "," in text:
            self._see(",", text, line, column, cell)
            text = text.replace(",", ".")
        elif "." not in self._first and "." in text:
            self._see(".", text, line, column, cell)
        number = float(text)
        if abs(number) > LARGEST:
            raise self._refused(
                line, column, cell, f"has a size above {LARGEST:g}; measure in a larger unit"
            )
        return number

    def finish(self) -> None:
        """Raise where cells are missing, or where commas may be of thousands."""
        if count := self.missing:
            line, column, cell = self._first_missing
            counted = (
                "1 cell is missing," if count == 1 else f"{count} cells are missing, the first"
            )
            found = f" ({brief(cell.strip())})" if cell.strip() else ""
            raise InputError(
                f"{self._file}: {counted} on line {line}, column {brief(column)}{found}; fill in "
                f"what was measured, or remove {'its row' if count == 1 else 'their rows'}."
            )
        if "," in self._first and not self._clear:
            line, column, cell = self._first[","]
            as_decimal, as_thousands = (cell.strip().replace(",", mark) for mark in (".", ""))
            raise self._refused(
                line, column, cell, f"may be {as_decimal} or {as_thousands}; write one of them"
            )

    def _see(self, mark: str, text: str, line: int, column: str, cell: str) -> None:
        """Note a decimal point or comma, and refuse commas that may be something else."""
        if mark == "," and not self._commas:
            raise self._refused(
                line,
                column,
                cell,
                "has a comma, and commas separate the cells of this file; write a decimal point",
            )
        self._first.setdefault(mark, (line, column, cell))
        self._clear |= mark == "," and not _MAYBE_THOUSANDS.fullmatch(text)
        other = self._first.get("." if mark == "," else ",")
        if other:
            raise self._refused(
                line,
                column,
                cell,
                f"and {brief(other[2])} on line {other[0]} have different decimal marks; write all "
                "numbers with a decimal point",
            )

    def _refused(self, line: int, column: str, cell: str, what: str) -> InputError:
        return InputError(
            f"{self._file}, line {line}, column {brief(column)}: {brief(cell.strip())} {what}."
        )


def _what_else(text: str) -> str:
    if len(text) <= 60:  # on long texts some patterns would take long
        for pattern, what in _KINDS:
            if pattern.fullmatch(text):
                return what
    return "is text and not a number; every cell of this column must be a number"
