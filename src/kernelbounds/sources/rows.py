"""Rows of numbers from a source, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, brief, shortened
from kernelbounds.errors import InputError, did_you_mean


@dataclass(frozen=True, eq=False)
class Rows:
    """A batch.

    Attributes
    ----------
    values : array of shape (n, k)
        The columns asked for, in that order; all finite.
    columns : sequence of str
        Their names.
    file : str
        What the file is called in messages; nothing where there is none.
    first : int
        The number of the first of these rows, in the file or the stream; that of all is 0.
    lines : array of int, optional
        The lines on which they begin, in a file of text.
    """

    values: Array
    columns: Sequence[str]
    file: str = ""
    first: int = 0
    lines: NDArray[np.int64] | None = None

    def place(self, row: int) -> str:
        """Where the row with this number in the batch is, for messages."""
        if self.lines is not None:
            return f"{self.file}, line {self.lines[row]}"
        return place(self.file, self.first + row)


def place(file: str, row: int, column: str | None = None) -> str:
    """Where in a source a row is that has no lines, for messages."""
    parts = [file] if file else []
    parts.append(f"row {row} (the first is row 0)")
    parts += [] if column is None else [f"column {brief(column)}"]
    return ", ".join(parts)


def position(name: str, names: Sequence[str], source: str) -> int:
    """Which of the columns of a source has this name."""
    count = names.count(name)
    if count == 1:
        return names.index(name)
    if count > 1:
        raise InputError(
            f"{source} has {count} columns named {brief(name)}; give each a name of its own."
        )
    found = shortened(", ".join(map(brief, names)), 120) or "none"
    raise InputError(
        f"{source} has no column {brief(name)}{did_you_mean(name, names)}; its columns are {found}."
    )
