"""Read and write tables of numbers as CSV files, and read them from Excel workbooks.

Files come from spreadsheets and instruments in many forms. Those that are clear are read: commas,
semicolons or tabs, decimal commas, several encodings and any line ends (``csv_file.py``).
Everything else is refused with its line and column, and no row is left out in silence.

A number is an optional sign, digits with a decimal point or comma, and an exponent. What other
programs would guess at (thousands, percentages, dates, blanks) is refused, because a wrong guess
gives wrong bounds and nobody sees it. There are three kinds of bad cell: one without a value, one
that is not a number, and one with a comma that may mean several things.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelbounds.arrays import LARGEST, as_floats, brief
from kernelbounds.categories import Categories
from kernelbounds.errors import InputError
from kernelbounds.io import excel, files
from kernelbounds.io.csv_file import BLANK, SEPARATORS, CsvFile, check_names, positions

MISSING_MARKS = frozenset(["", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-", "--", "?"])

# What is wrong with a value, and what to do about it.
FILL_IN = (
    "; fill in what was measured, or remove its row, but not if the run failed because of its "
    "outcome: without such runs there is no guarantee"
)
HAS_NO_VALUE = f"is a missing value{FILL_IN}"
IS_NO_NUMBER = f"is not a finite number of size up to {LARGEST:g}"
HOW_TO_WRITE = (
    "; write numbers like 1234.5, without units, percent signs and separators of thousands, and "
    "dates as hours or days since the start"
)
HAS_UNCLEAR_COMMA = (
    "has a comma that may stand for a decimal point, or separate thousands or cells; write all "
    "numbers with a decimal point"
)

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")


@dataclass(frozen=True, eq=False)
class CsvTable:
    """A table of columns that were read from a CSV file.

    Attributes
    ----------
    columns : dict of str to array
        The columns asked for, (n,) each, by the names they were asked for; those of categories are
        lists of the names of levels.
    lines : array of int
        The line of the file on which each row begins, for messages.
    headers : dict of str to str
        The headers of the columns asked for, where a unit may follow the name.
    others : tuple of str
        The names of the columns that were not asked for.
    """

    columns: dict[str, Any]
    lines: NDArray[np.int64]
    headers: dict[str, str]
    others: tuple[str, ...]


def read_csv(
    path: str | PathLike[str],
    columns: Sequence[str],
    categories: Mapping[str, Categories] | None = None,
    name: str | None = None,
) -> CsvTable:
    """Read the columns with these names; the other columns may hold anything.

    The file may be an Excel workbook, .xlsx, of which the sheet is read that has the columns; this
    takes the extra ``excel``. Columns that are ``categories`` hold the names of levels; others are
    refused. Messages call the file by its ``name``, or by its path.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("temperature;operator;yield\\n180,5;Ada;3\\n190;Bob;4,25\\n")
    >>> table = read_csv(path, ["temperature", "yield"])
    >>> table.columns
    {'temperature': array([180.5, 190. ]), 'yield': array([3.  , 4.25])}
    >>> table.lines
    array([2, 3])
    """
    (table,) = csv_batches(path, columns, rows=sys.maxsize, categories=categories, name=name)
    return table


def csv_batches(
    path: str | PathLike[str],
    columns: Sequence[str],
    *,
    rows: int,
    categories: Mapping[str, Categories] | None = None,
    name: str | None = None,
) -> Iterator[CsvTable]:
    """Read columns as tables of at most ``rows`` rows, for files that do not fit in memory.

    What is wrong with the file is raised where it is found, after the rows before it were given.
    """
    source = files.as_path(path)
    check_names(columns)
    called = files.named(source if name is None else Path(name))
    with files.failure_reported(f"read {called}"):
        files.check_regular(source.stat().st_mode)  # reading a FIFO would wait for ever
        # It is opened once, so that a file that takes its place meanwhile is not mixed up with it.
        with open(source, "rb") as binary:
            asked = [column.strip() for column in columns]
            start = binary.read(4)
            binary.seek(0)
            if start == excel.OLD_MAGIC:
                raise InputError(f"{called} is an old Excel workbook; save it as .xlsx or as CSV.")
            kind = excel.Sheet if start == excel.MAGIC else CsvFile
            yield from _batches(kind(binary, called, asked), columns, rows, categories or {})


def _batches(
    file: CsvFile | excel.Sheet,
    columns: Sequence[str],
    rows: int,
    categories: Mapping[str, Categories],
) -> Iterator[CsvTable]:
    name = file.name
    places = positions([column.strip() for column in columns], file.header, name)
    headers = {one: file.header[at] for one, at in zip(columns, places, strict=True)}
    others = tuple(one for at, one in enumerate(file.header) if at not in places and one)
    cells = _CellReader(name, commas_separate=file.commas_separate)
    lines: list[int] = []
    values: dict[str, list[Any]] = {column: [] for column in columns}

    def table() -> CsvTable:
        found = {
            column: given if column in categories else np.array(given, dtype=np.float64)
            for column, given in values.items()
        }
        return CsvTable(found, np.array(lines, dtype=np.int64), headers, others)

    for line, record in file.rows():
        if len(lines) == rows:
            yield table()
            lines, values = [], {column: [] for column in columns}
        lines.append(line)
        for column, at in zip(columns, places, strict=True):
            levels, place = categories.get(column), (record[at], line, file.header[at])
            value = cells.number(*place) if levels is None else cells.level(*place, levels)
            values[column].append(value)
    if not lines:
        raise InputError(f"{name} has a header and no rows; add at least one.")
    cells.refuse_unclear_commas()
    yield table()


class _CellReader:
    """A reader of cells, which settles what commas mean in the whole file."""

    def __init__(self, file: str, *, commas_separate: bool) -> None:
        self._file, self._commas_separate = file, commas_separate
        self._first_comma: tuple[str, int, str] | None = None  # a cell, its line and column
        self._points = False  # whether some cell has a decimal point
        self._surely_decimal = False  # whether some comma cannot be of thousands

    def number(self, cell: str, line: int, column: str) -> float:
        """The number in a cell."""
        text = cell.strip().replace("−", "-")
        if not _NUMBER.fullmatch(text):
            missing = text.casefold() in MISSING_MARKS
            what = HAS_NO_VALUE if missing else IS_NO_NUMBER + HOW_TO_WRITE
            raise self._refused(cell, line, column, what)
        if "," in text:
            self._first_comma = self._first_comma or (cell, line, column)
            self._surely_decimal |= not _MAYBE_THOUSANDS.fullmatch(text)
            text = text.replace(",", ".")
        elif "." in text:
            self._points = True
        if self._first_comma and (self._points or self._commas_separate):
            raise self._refused(*self._first_comma, HAS_UNCLEAR_COMMA)
        number = float(text)
        if abs(number) > LARGEST:
            raise self._refused(cell, line, column, IS_NO_NUMBER + HOW_TO_WRITE)
        return number

    def level(self, cell: str, line: int, column: str, levels: Categories) -> str:
        """The level that a cell names."""
        text = cell.strip()
        if text in levels.names:
            return text
        missing = text.casefold() in MISSING_MARKS
        raise self._refused(cell, line, column, HAS_NO_VALUE if missing else levels.why_not(text))

    def refuse_unclear_commas(self) -> None:
        """Raise where every comma of the file may separate thousands."""
        if self._first_comma and not self._surely_decimal:
            raise self._refused(*self._first_comma, HAS_UNCLEAR_COMMA)

    def _refused(self, cell: str, line: int, column: str, what: str) -> InputError:
        place = f"{self._file}, line {line}, column {brief(column)}"
        text = cell.strip()
        wrong = f"{brief(text)} {what}" if text else f"the cell is empty{FILL_IN}"
        return InputError(f"{place}: {wrong}.")


def write_csv(path: str | PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Write columns of numbers with all digits, or of names, whole or not at all.

    Columns of whole numbers, arrays of an integer type or lists of int, are written without a
    decimal point. A column of names is a list of str.

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
    for name in columns:
        if not isinstance(name, str) or not name.isprintable() or BLANK.fullmatch(name):
            raise InputError(f"a column name must be a line of text, got {brief(name)}.")
    names = [name.strip() for name in columns]
    cells = [_written(name, values) for name, values in columns.items()]
    shapes = [np.shape(column) for column in cells]
    if len(set(names)) < len(names) or len(set(shapes)) != 1 or len(shapes[0]) != 1:
        raise InputError(
            "a table needs one or more 1-D columns that are equally long and have distinct names, "
            f"got {brief(names)} of shapes {brief(shapes)}."
        )
    text = io.StringIO()
    # Other separators in names must not be taken for those of the file.
    texts = {*names, *(one for column in cells for one in column if isinstance(one, str))}
    quoted = any(separator in one for separator in SEPARATORS for one in texts)
    writer = csv.writer(
        text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL
    )
    writer.writerow(names)
    writer.writerows(zip(*cells, strict=True))
    with files.failure_reported(f"write {files.named(target)}"):
        files.write_text(target, text.getvalue())


def _written(name: str, values: ArrayLike) -> Any:
    """A column to be written: names, whole numbers or floats."""
    if isinstance(values, list) and values and all(isinstance(one, str) for one in values):
        return values
    floats = as_floats(values, f"column {brief(name)}")
    whole = np.asarray(values).dtype.kind in "iu"
    return (floats.astype(int) if whole else floats).tolist()
