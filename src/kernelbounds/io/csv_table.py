"""Tables of numbers in CSV files.

Files come from spreadsheets and instruments in many forms. Those that are clear are read: commas,
semicolons or tabs, decimal commas, UTF-8 or UTF-16, any line ends. All else is refused with the
line and the column, and no row is left out in silence.

Cells of a table as numbers: what is one, and what to do about a cell that is none.

A number is an optional sign, digits with a decimal point, and an exponent. What other programs
would guess at (thousands, percentages, dates, blanks) is refused, because a wrong guess gives wrong
bounds and nobody sees it.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelbounds.arrays import LARGEST, Array, as_floats, brief, shortened
from kernelbounds.errors import InputError, did_you_mean, said
from kernelbounds.io import files

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


# Where two would split the header into equally many names: commas occur in names more often than
# semicolons, and tabs hardly ever.
SEPARATORS = ("\t", ";", ",")

_BINARY = {
    b"PK\x03\x04": "is a spreadsheet or another zip archive",
    b"\xd0\xcf\x11\xe0": "is an Excel file",
    b"\x1f\x8b": "is compressed",
}
_NOTHING = re.compile(r"[\s,;]*")
BLOCK = 1 << 20  # bytes that are read at a time, where the text is not split into cells

Record = tuple[int, list[str]]  # the line on which it begins, and its cells


@dataclass(frozen=True, eq=False)
class CsvTable:
    """Columns of a CSV file.

    Attributes
    ----------
    columns : dict of str to array
        Those asked for, (n,) each, by the names they were asked for.
    lines : array of int
        The line of the file on which each row begins, for messages.
    path : Path
        The file.
    """

    columns: dict[str, Array]
    lines: NDArray[np.int64]
    path: Path


def read_csv(
    path: str | PathLike[str], columns: Sequence[str], *, optional: Sequence[str] = ()
) -> CsvTable:
    """The columns with these names; of the ``optional`` ones those that are there.

    The other columns may hold anything.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("temperature;operator;yield\\n180,5;Ada;3\\n190;Bob;4,25\\n")
    >>> table = read_csv(path, ["temperature", "yield"], optional=["noise"])
    >>> table.columns
    {'temperature': array([180.5, 190. ]), 'yield': array([3.  , 4.25])}
    >>> table.lines
    array([2, 3])
    """
    source = files.as_path(path)
    check_names(columns, optional)
    # At once, so that it is one state of the file, whoever writes to it meanwhile.
    with files.failure_reported(f"read {named(source)}"):
        files.check_regular(source.stat().st_mode)
        content = source.read_bytes()
    (table,) = _tables(source, columns, optional, lambda: io.BytesIO(content), sys.maxsize)
    return table


def csv_batches(
    path: str | PathLike[str], columns: Sequence[str], *, optional: Sequence[str] = (), rows: int
) -> Iterator[CsvTable]:
    """:func:`read_csv` in tables of so many rows at most, for files that do not fit in memory.

    What is wrong with the file is raised where it is found: rows before it have been given. Those
    behind a missing cell are not, and all of them are given only when nothing is wrong.
    """
    source = files.as_path(path)
    check_names(columns, optional)
    with files.failure_reported(f"read {named(source)}"):
        files.check_regular(source.stat().st_mode)  # reading a FIFO would wait for ever
        yield from _tables(source, columns, optional, lambda: source.open("rb"), rows)


def _tables(
    path: Path,
    columns: Sequence[str],
    optional: Sequence[str],
    opened: Callable[[], BinaryIO],
    rows: int,
) -> Iterator[CsvTable]:
    """One or more tables of so many rows at most."""
    file = _File(path, [name.strip() for name in (*columns, *optional)], opened)
    there = [name for name in optional if name.strip() in file.header]
    places = {name: file.place(name.strip()) for name in (*columns, *there)}
    numbers = Numbers(file.name, commas=file.separator != ",")
    values: list[list[float]] = [[] for _ in places]
    lines: list[int] = []
    any_rows = False

    def table() -> CsvTable:
        arrays = (np.array(column, dtype=np.float64) for column in values)
        return CsvTable(
            dict(zip(places, arrays, strict=True)), np.array(lines, dtype=np.int64), path
        )

    for line, cells in file.rows():
        if len(lines) == rows:
            if not numbers.missing:
                yield table()
            lines.clear()
            for column in values:
                column.clear()
        any_rows = True
        lines.append(line)
        for column, place in zip(values, places.values(), strict=True):
            column.append(numbers.read(cells[place], line, file.header[place]))
    if not any_rows:
        raise InputError(f"{file.name} has a header and no rows; add at least one.")
    numbers.finish()
    yield table()


def header_of(path: str | PathLike[str]) -> list[str]:
    """The names of all columns, in order."""
    source = files.as_path(path)
    with files.failure_reported(f"read {named(source)}"):
        files.check_regular(source.stat().st_mode)
        content = source.read_bytes()
    return _File(source, [], lambda: io.BytesIO(content)).header


def write_csv(path: str | PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Write columns of numbers with all digits, whole or not at all.

    Whole numbers that come as such, as arrays of an integer type or lists of int, have no point.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bounds.csv"
    >>> write_csv(path, {"run": [1, 2], "lower": [0.1, 0.2], "upper": [1 / 3, 1]})
    >>> print(path.read_text())
    run,lower,upper
    1,0.1,0.3333333333333333
    2,0.2,1.0
    <BLANKLINE>
    """
    target = files.as_path(path)
    names = [_written_name(name) for name in columns]
    if not names or len(set(names)) < len(names):
        raise InputError(
            f"a table needs one or more columns of distinct names, got {brief(names)}."
        )
    arrays = [as_floats(values, f"column {brief(name)}") for name, values in columns.items()]
    if any(array.ndim != 1 or array.shape != arrays[0].shape for array in arrays):
        shapes = [array.shape for array in arrays]
        raise InputError(
            f"columns of a table must be 1-D and equally long, got shapes {brief(shapes)}."
        )
    text = io.StringIO()
    # Other separators in names must not be taken for those of the file.
    quoted = any(separator in name for separator in SEPARATORS for name in names)
    writer = csv.writer(
        text, lineterminator="\n", quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    )
    writer.writerow(names)
    cells = [
        array.astype(int).tolist() if _are_whole(values) else array.tolist()
        for array, values in zip(arrays, columns.values(), strict=True)
    ]
    for row in zip(*cells, strict=True):
        text.write(",".join(map(repr, row)) + "\n")
    with files.failure_reported(f"write {named(target)}"):
        files.write_text(target, text.getvalue())


def _are_whole(values: ArrayLike) -> bool:
    return bool(np.asarray(values).dtype.kind in "iu")


class _File:
    """A CSV file that is read: what it is called in messages, its separator and its header."""

    def __init__(self, path: Path, asked: list[str], opened: Callable[[], BinaryIO]) -> None:
        self.name = named(path)
        self._opened = opened
        self._encoding = self._checked_encoding()
        self.separator, self.header = self._found_header(asked)

    def place(self, name: str) -> int:
        """Where in a row the column of this name is."""
        count = self.header.count(name)
        if count == 1:
            return self.header.index(name)
        if count > 1:
            raise InputError(
                f"{self.name} has {count} columns named {brief(name)}; give each a name of its own."
            )
        found = shortened(", ".join(map(brief, self.header)), 120)
        if len(self.header) == 1:
            raise InputError(
                f"{self.name} has one column only, {found}, and none named {brief(name)}; columns "
                "must be separated by commas, semicolons or tabs."
            )
        if all(re.fullmatch(r"[0-9.,eE+-]*", cell) for cell in self.header):
            raise InputError(
                f"{self.name} has no column {brief(name)}, because it begins with numbers, "
                f"{found}; write the names of the columns on the first line."
            )
        raise InputError(
            f"{self.name} has no column {brief(name)}{did_you_mean(name, self.header)}; its "
            f"columns are {found}."
        )

    def rows(self) -> Iterator[Record]:
        """The rows below the header, each with as many cells as the header.

        Blank lines are passed over, but between rows of a single column they are missing cells.
        So are rows that have separators only, which spreadsheets leave at the end.
        """
        width = len(self.header)
        records = self._records(self.separator)
        next(record for record in records if _filled(record))  # the header
        blank: list[Record] = []
        for line, cells in records:
            if not _filled((line, cells)):
                if width == 1 or len(cells) > 1:
                    blank.append((line, cells or [""]))
                continue
            for record in (*blank, (line, cells)):
                self._check_width(record)
                yield record
            blank = []

    def _check_width(self, record: Record) -> None:
        line, cells = record
        width = len(self.header)
        if len(cells) < width:
            raise InputError(
                f"{self.name}, line {line}, column {brief(self.header[len(cells)])}: there is no "
                f"cell, as the line has {len(cells)} and the header {width}; fill in what is "
                "missing."
            )
        if len(cells) > width:
            why = ""
            if not _filled((line, cells[width:])):
                why = "; remove the separators at its end"
            elif self.separator == ",":
                why = "; numbers with decimal commas need semicolons between them"
            raise InputError(
                f"{self.name}, line {line}: there are {len(cells)} cells and {width} columns, the "
                f"last of them column {brief(self.header[-1])}{why}."
            )

    def _records(self, separator: str) -> Iterator[Record]:
        with io.TextIOWrapper(self._opened(), encoding=self._encoding, newline="") as text:
            # Strict: otherwise "1"2 would be 12, and a quote that is not closed would hide rows.
            reader = csv.reader(text, delimiter=separator, skipinitialspace=True, strict=True)
            line = 1
            try:
                for cells in reader:
                    yield line, cells
                    line = reader.line_num + 1
            except csv.Error as error:
                raise InputError(f"{self.name}, line {line}: {_explained(error)}.") from error
            except UnicodeDecodeError as error:  # it was checked before
                raise InputError(f"{self.name} was changed while it was read.") from error

    def _found_header(self, asked: list[str]) -> tuple[str, list[str]]:
        """The separator with which most of the names asked for are there, and most names."""
        headers: dict[str, list[str]] = {}
        for separator in SEPARATORS:
            with suppress(InputError):  # quotes that are closed before another separator
                headers[separator] = self._first_filled(separator)
        if not headers:
            self._first_filled(",")  # tells what is wrong
        best = max(
            headers, key=lambda one: (len(set(asked) & set(headers[one])), len(headers[one]))
        )
        if not headers[best]:
            raise InputError(f"{self.name} is empty; it needs a header and one row or more.")
        # In a single column a comma is as likely to separate as to be a decimal comma.
        return ("," if headers.get(",") == headers[best] else best), headers[best]

    def _first_filled(self, separator: str) -> list[str]:
        filled = (record for record in self._records(separator) if _filled(record))
        return [cell.strip() for cell in next(filled, (0, []))[1]]

    def _checked_encoding(self) -> str:
        """UTF-8, or UTF-16 if it says so; a file that is neither, or not text, is refused."""
        with self._opened() as file:
            start = file.read(4)
            for magic, what in _BINARY.items():
                if start.startswith(magic):
                    raise InputError(f"{self.name} {what}; save it as CSV, and pass that file.")
            marked = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
            plain = marked.get(start[:2], "utf-8")
            encoding, called = ("utf-8-sig", "UTF-8") if plain == "utf-8" else ("utf-16", "UTF-16")
            decoder = codecs.getincrementaldecoder(plain)()
            block, lines, ended = start, 1, False  # ended: with a carriage return
            try:
                while True:
                    text = decoder.decode(block, final=not block)
                    if "\0" in text:
                        raise InputError(
                            f"{self.name} has NUL bytes and is not a text file; save it as CSV in "
                            "UTF-8."
                        )
                    lines += _line_ends(text, ended)
                    ended = text.endswith("\r") if text else ended
                    if not block:
                        return encoding
                    block = file.read(BLOCK)
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(plain, errors="replace")
                raise InputError(
                    f"{self.name}, line {lines + _line_ends(before, ended)}: there is a character "
                    f"that is not in {called}; save the file as CSV in UTF-8."
                ) from error


def _line_ends(text: str, after_return: bool) -> int:
    """How many there are; a line feed after a carriage return is part of it."""
    found = text.count("\n") + text.count("\r") - text.count("\r\n")
    return found - (after_return and text.startswith("\n"))


def _filled(record: Record) -> bool:
    """Whether there is anything but blanks and separators, of whichever kind."""
    return not all(_NOTHING.fullmatch(cell) for cell in record[1])


def named(path: Path) -> str:
    """A path for messages, of which the end says more than the beginning."""
    text = repr(str(path))
    return text if len(text) <= 80 else f"'...{text[-76:]}"


def _explained(error: csv.Error) -> str:
    text = said(error)
    if "field limit" in text:
        limit = csv.field_size_limit()
        return f"a cell has more than {limit} characters; see whether a quote was not closed"
    if "unexpected end" in text:
        return "a quote is opened and not closed; close it, or remove it"
    return f"quotes are not around a whole cell ({text}); put them around all of it, or remove them"


def check_names(columns: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Raise where they are not names, each once."""
    for names in (columns, optional):
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise InputError(f"columns must be a list of names, got {brief(names)}.")
    asked = [name.strip() for name in (*columns, *optional)]
    for name in asked:
        if asked.count(name) > 1:
            raise InputError(f"the column {brief(name)} is asked for twice; name it once.")


def _written_name(name: str) -> str:
    if not isinstance(name, str) or not name.isprintable() or _NOTHING.fullmatch(name):
        raise InputError(f"a column name must be a line of text, got {brief(name)}.")
    return name.strip()
