"""An open CSV file, whatever its encoding, its separator and its line ends are.

The encoding is UTF-8, UTF-16 with its mark, or Windows-1252, in which many spreadsheets write "°C",
with a warning. The separator is the one under which the header has the columns asked for.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

from kernelbounds.arrays import brief, shortened
from kernelbounds.errors import InputError, did_you_mean, said

# Where two would split the header into equally many names: commas occur in names more often than
# semicolons, and tabs hardly ever.
SEPARATORS = ("\t", ";", ",")

BLANK = re.compile(r"[\s,;]*")
# Bytes that are read at a time to find the encoding.
READ_AHEAD = 1 << 20
# Control characters, which no text has.
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Record = tuple[int, list[str]]  # the line on which it begins, and its cells


class CsvFile:
    """A CSV file: its name in messages, its header, its rows, and what commas mean in it."""

    def __init__(self, binary: BinaryIO, name: str, asked: Sequence[str]) -> None:
        self.name = name
        self._text = io.TextIOWrapper(binary, encoding=_encoding(binary, name), newline="")
        self._separator, self.header = self._found_header(asked)

    @property
    def commas_separate(self) -> bool:
        """Whether commas separate cells, so that one inside a cell may mean several things."""
        return self._separator == ","

    def rows(self) -> Iterator[Record]:
        """The rows below the header, each with as many cells as the header.

        Blank lines are passed over, except between rows of a single column, where they are missing
        cells. So are rows that have separators only, which spreadsheets leave at the end.
        """
        width = len(self.header)
        records = self._records(self._separator)
        next(record for record in records if _is_filled(record))  # the header
        blank: list[Record] = []
        for line, cells in records:
            if not _is_filled((line, cells)):
                if width == 1 or len(cells) > 1:
                    blank.append((line, cells or [""]))
                continue
            for at, record in (*blank, (line, cells)):
                if len(record) != width:
                    commas = self._separator == "," and len(record) > width
                    hint = "; decimal commas need semicolons between the cells" if commas else ""
                    raise InputError(
                        f"{self.name}, line {at}: it has {len(record)} cells, and the header has "
                        f"{width}{hint}."
                    )
                yield at, record
            blank = []

    def _records(self, separator: str) -> Iterator[Record]:
        # Strict: otherwise "1"2 would be 12, and a quote that is not closed would hide rows.
        reader = csv.reader(self._lines(), delimiter=separator, skipinitialspace=True, strict=True)
        line = 1
        try:
            for cells in reader:
                yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise InputError(
                f"{self.name}, line {line}: cells cannot be told apart ({said(error)}); put quotes "
                "around whole cells and close them, or remove them."
            ) from error

    def _lines(self) -> Iterator[str]:
        """The lines of the file from its beginning, where it is text."""
        self._text.seek(0)
        try:
            for line in self._text:
                if "\0" in line:
                    raise UnicodeError
                yield line
        except UnicodeError as error:
            raise InputError(
                f"{self.name} is not text in UTF-8, UTF-16 or Windows-1252; save it as CSV in "
                "UTF-8, and pass that file."
            ) from error

    def _found_header(self, asked: Sequence[str]) -> tuple[str, list[str]]:
        """Find the separator that gives most of the names asked for, and the header it gives."""
        headers: dict[str, list[str]] = {}
        for separator in SEPARATORS:
            with suppress(InputError):  # quotes that are closed before another separator
                headers[separator] = self._first_filled(separator)
        if not headers:
            self._first_filled(",")  # says what is wrong
        best = max(
            headers, key=lambda one: (len(set(asked) & set(headers[one])), len(headers[one]))
        )
        if not headers[best]:
            raise InputError(f"{self.name} is empty; it needs a header and one row or more.")
        # In a single column a comma is as likely to separate as to be a decimal comma.
        return ("," if headers.get(",") == headers[best] else best), headers[best]

    def _first_filled(self, separator: str) -> list[str]:
        filled = (record for record in self._records(separator) if _is_filled(record))
        return [cell.strip() for cell in next(filled, (0, []))[1]]


def _is_filled(record: Record) -> bool:
    """Whether a record has anything but blanks and separators, of whichever kind."""
    return not all(BLANK.fullmatch(cell) for cell in record[1])


def _encoding(binary: BinaryIO, name: str) -> str:
    """Find the encoding of a file, which is read from its beginning and rewound.

    Text that is not UTF-8, and that Windows-1252 explains, was most likely written on Windows. If
    that is wrong, letters beyond ASCII are others. Numbers are the same, and the names of columns
    and levels must be those asked for.
    """
    encoding = "utf-16" if binary.read(2) in _UTF_16_MARKS else "utf-8-sig"
    if encoding == "utf-8-sig" and not _decodes(binary, "utf-8") and _decodes(binary, "cp1252"):
        encoding = "cp1252"
        warnings.warn(
            f"{name} is not in UTF-8; it was read as Windows-1252, as spreadsheets on Windows "
            "write it.",
            UserWarning,
            stacklevel=2,
        )
    binary.seek(0)
    return encoding


def _decodes(binary: BinaryIO, encoding: str) -> bool:
    """Whether all of a file is text in an encoding."""
    binary.seek(0)
    pieces = iter(lambda: binary.read(READ_AHEAD), b"")
    try:
        return not any(_NO_TEXT.search(text) for text in codecs.iterdecode(pieces, encoding))
    except UnicodeDecodeError:
        return False


def positions(asked: Sequence[str], names: Sequence[str], source: str) -> list[int]:
    """Find the places of the columns asked for among all columns of a source.

    A unit may follow a name there, ``temperature [K]`` or ``temperature (K)``.
    """
    places = [_position(name, names, source) for name in asked]
    missing = [name for name, at in zip(asked, places, strict=True) if at is None]
    if not missing:
        return [at for at in places if at is not None]
    wanted = ", ".join(f"{brief(name)}{did_you_mean(name, names)}" for name in missing)
    found = shortened(", ".join(map(brief, names)), 120) or "none"
    title = ""
    if names and len(missing) == len(asked) and "did you mean" not in wanted:
        title = " The names must be in the first line that is not blank: remove a title above them."
    raise InputError(
        f"{source} has no column{'s' * (len(missing) > 1)} {shortened(wanted, 160)}; "
        f"its columns are {found}.{title}"
    )


def unit_in_header(name: str, header: str) -> str:
    """Return the unit that follows the name in the header of a column, or an empty text.

    >>> unit_in_header("temperature", "temperature [K]"), unit_in_header("yield", "yield")
    ('K', '')
    """
    return header.strip()[len(name.strip()) :].strip()[1:-1].strip()


def _position(name: str, names: Sequence[str], source: str) -> int | None:
    count = names.count(name)
    if count == 1:
        return names.index(name)
    if count:
        raise InputError(
            f"{source} has {count} columns named {brief(name)}; give each a name of its own."
        )
    with_unit = re.compile(re.escape(name.strip()) + r"\s*(\[[^][]*\]|\([^()]*\))")
    places = [at for at, one in enumerate(names) if with_unit.fullmatch(one)]
    return places[0] if len(places) == 1 else None


def check_names(columns: Sequence[str]) -> None:
    """Raise where columns are not a list of different names."""
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise InputError(f"columns must be a list of names, got {brief(columns)}.")
    asked = [name.strip() for name in columns]
    for name in asked:
        if asked.count(name) > 1:
            raise InputError(f"the column {brief(name)} is asked for twice; name it once.")
