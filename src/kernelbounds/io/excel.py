"""Read the sheet of an Excel workbook that has the columns asked for, by way of openpyxl.

Cells become text as it would be in a CSV file, so that the same values are refused: dates,
percentages, errors and formulas without a value. Nothing is written.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO
from xml.etree.ElementTree import ParseError

from kernelbounds.arrays import brief
from kernelbounds.errors import InputError, MissingExtraError, said

MAGIC = b"PK\x03\x04"  # the first bytes of a zip archive, which a workbook is
OLD_MAGIC = b"\xd0\xcf\x11\xe0"  # the first bytes of workbooks before 2007


class Sheet:
    """A sheet of a workbook: its name in messages, its header and its rows."""

    commas_separate = True  # A comma in a text is never clear, because numbers have none.

    def __init__(self, binary: BinaryIO, name: str, asked: Sequence[str]) -> None:
        try:
            import openpyxl
        except ImportError as error:
            raise MissingExtraError(f"Reading {name}, an Excel workbook,", "excel") from error
        try:
            self._book = openpyxl.load_workbook(binary, read_only=True, data_only=True)
            found = {one.title: one for one in self._book.worksheets}
            headers = {title: next(_filled(one), (0, []))[1] for title, one in found.items()}
        except (KeyError, ValueError, TypeError, ParseError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{name} cannot be read as an Excel workbook: {said(error)}; save it as .xlsx or "
                "as CSV in UTF-8."
            ) from error
        having = [title for title in found if set(asked) <= set(headers[title])]
        if len(having) > 1:
            names = ", ".join(map(brief, having))
            raise InputError(
                f"{name} has {len(having)} sheets with these columns, {names}; save the one that "
                "is meant as CSV, and pass that file."
            )
        if not any(headers.values()):
            raise InputError(f"{name} is empty; it needs a header and one row or more.")
        # Where no sheet has all columns, the first one that has any says which are missing.
        (title,) = having or [max(found, key=lambda one: len(set(asked) & set(headers[one])))]
        self.name = name if len(found) == 1 else f"{name}, sheet {brief(title)}"
        self.header, self._sheet = headers[title], found[title]

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows below the header that are not blank, each with as many cells as the header."""
        width, rows = len(self.header), _filled(self._sheet)
        with closing(self._book):
            next(rows)  # the header
            for line, cells in rows:
                if len(cells) > width:
                    raise InputError(
                        f"{self.name}, line {line}: it has {len(cells)} cells, and the header has "
                        f"{width}."
                    )
                yield line, cells + [""] * (width - len(cells))


def _filled(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, by their numbers in the sheet, without blanks at the end."""
    for line, row in enumerate(sheet.iter_rows(), start=1):
        cells = [_text(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield line, cells


def _text(cell: Any) -> str:
    """A cell as it would be in a CSV file: numbers with all digits, and percentages as shown."""
    value = cell.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{100 * value:g}%" if "%" in (cell.number_format or "") else repr(value)
    return "" if value is None else str(value).strip()
