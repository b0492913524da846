"""Read rows of numbers from files, folders of files, and tables of other libraries.

A source gives the columns asked for in batches, and holds no more than one of them in memory: CSV
and Parquet files, whatever has ``__arrow_c_stream__`` (by way of pyarrow), and Dask dataframes,
whose partitions are pandas tables in a fixed order. What is not a number is refused with its place,
and no row is left out in silence.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import LARGEST, Array, brief, shortened
from kernelbounds.errors import InputError, MissingExtraError, said
from kernelbounds.io import files
from kernelbounds.io.csv_file import positions
from kernelbounds.io.csv_table import HAS_NO_VALUE, IS_NO_NUMBER, csv_batches
from kernelbounds.io.files import named

ENDINGS = (".csv", ".tsv", ".xlsx", ".parquet", ".pq")  # which files of a folder are read
# Bytes of a column of a Parquet file that are read at a time; otherwise it would be as many as a
# row group has, and some files are one row group.
READ_AHEAD = 1 << 20


@dataclass(frozen=True, eq=False)
class RowBatch:
    """A batch of rows of a source.

    Attributes
    ----------
    values : array of shape (n, k)
        The columns asked for, in that order; all finite.
    file : str
        What the file is called in messages; empty where there is none.
    first : int
        The number of the first of these rows in the file or the stream, counted from 0.
    lines : array of int, optional
        The lines on which the rows begin, in a file of text.
    """

    values: Array
    file: str = ""
    first: int = 0
    lines: NDArray[np.int64] | None = None

    def place(self, row: int) -> str:
        """The place of a row of the batch in its source, for messages."""
        if self.lines is not None:
            return f"{self.file}, line {self.lines[row]}"
        return _place(self.file, self.first + row)


def _place(file: str, row: int) -> str:
    return f"{file}, row {row} (the first is row 0)".removeprefix(", ")


@dataclass(frozen=True, eq=False)
class Source:
    """A source of rows: files in their order, a stream, or a Dask dataframe."""

    paths: tuple[Path, ...] = ()
    stream: Any = None
    frame: Any = None

    @property
    def again(self) -> bool:
        """Whether the rows can be read twice without making them anew."""
        return bool(self.paths)

    def rows(self, columns: Sequence[str], most: int) -> Iterator[RowBatch]:
        """Read all rows, in batches of at most ``most``."""
        if self.stream is not None:
            yield from stream_rows(self.stream, columns, most)
        if self.frame is not None:
            for number, part in enumerate(partitions(self.frame, columns)):
                yield from stream_rows(part.compute(), columns, most, f"partition {number}")
        for path in self.paths:
            if is_parquet(path):
                yield from parquet_rows(path, columns, most)
                continue
            first = 0
            for table in csv_batches(path, columns, rows=most):
                values = np.stack([table.columns[name] for name in columns], axis=-1)
                yield RowBatch(values, named(path), first, table.lines)
                first += len(values)


def as_source(given: Any) -> Source:
    """Make a source of a path, a list of paths or a table that a user passed."""
    package = type(given).__module__.partition(".")[0]  # so that Dask need not be imported
    if package in ("dask", "dask_expr") and hasattr(given, "columns"):
        return Source(frame=given)
    if hasattr(given, "__arrow_c_stream__"):
        return Source(stream=given)
    several = given if isinstance(given, list | tuple) else [given]
    paths = [path for one in several for path in _files(one)]
    if not paths:
        raise InputError("the list of files is empty; pass at least one.")
    for path, count in Counter(map(os.path.realpath, paths)).items():
        if count > 1:
            raise InputError(f"{named(Path(path))} is among the files twice; name it once.")
    return Source(tuple(paths))


def _files(given: Any) -> list[Path]:
    """List a file, or all files of a folder in the order of their names."""
    if not isinstance(given, str | os.PathLike):
        raise InputError(
            "a source must be a CSV or Parquet file, a folder of them, a list of paths, a table "
            f"with __arrow_c_stream__, or a Dask dataframe, got {brief(given)}."
        )
    path = files.as_path(given)
    if not path.is_dir():
        return [path]
    with files.failure_reported(f"read {named(path)}"):
        found = sorted(one for one in path.iterdir() if one.name[0] not in "._")
    for one in found:
        if one.is_dir() or one.suffix.lower() not in ENDINGS:
            raise InputError(
                f"{named(path)} has {brief(one.name)} in it, which is not one of "
                f"{', '.join(ENDINGS)}; pass a list of the files that are meant."
            )
    for before, after in pairwise(found):
        if _with_numbers(before.name) > _with_numbers(after.name):
            raise InputError(
                f"{named(path)} has {brief(before.name)} and {brief(after.name)}, whose order is "
                "not clear; pass a list of the files in their order."
            )
    if not found:
        raise InputError(f"{named(path)} has no files ending in {', '.join(ENDINGS)}.")
    return found


def _with_numbers(name: str) -> list[tuple[int, str]]:
    """A key that sorts file names by the numbers in them: part-2 comes before part-10."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if at % 2 else (0, part) for at, part in enumerate(parts)]


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file, by its first bytes, whatever its name is."""
    with files.failure_reported(f"read {named(path)}"):
        files.check_regular(path.stat().st_mode)
        with open(path, "rb") as file:
            return file.read(4) == b"PAR1"


def parquet_rows(
    path: Path, columns: Sequence[str], most: int, start: int = 0, stop: int | None = None
) -> Iterator[RowBatch]:
    """Read the rows of a Parquet file from ``start`` to ``stop``, at most ``most`` at a time.

    Row groups without any of these rows are not read.
    """
    file = named(path)
    with _parquet_file(path) as (pyarrow, opened):
        _check_columns(pyarrow, opened.schema_arrow, columns, file)
        ends = np.cumsum(
            [opened.metadata.row_group(i).num_rows for i in range(opened.num_row_groups)]
        )
        stop = opened.metadata.num_rows if stop is None else stop
        if start >= stop:
            return
        first, last = np.searchsorted(ends, [start, stop - 1], side="right").tolist()
        before = int(ends[first - 1]) if first else 0
        batches = opened.iter_batches(
            batch_size=most, columns=list(columns), row_groups=range(first, last + 1)
        )
        wanted = _between(batches, start - before, stop - before)
        yield from _rows(pyarrow, wanted, columns, file, most, start)


def parquet_count(path: Path) -> int:
    """The number of rows that a Parquet file says it has."""
    with _parquet_file(path) as (_, opened):
        return int(opened.metadata.num_rows)


@contextmanager
def _parquet_file(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open a Parquet file, and give pyarrow and the open file."""
    file = named(path)
    pyarrow = _imported_pyarrow(f"Reading {file}, a Parquet file,")
    from pyarrow import parquet

    with (
        files.failure_reported(f"read {file}"),
        _failures(pyarrow, f"{file} cannot be read"),
        parquet.ParquetFile(path, buffer_size=READ_AHEAD) as opened,
    ):
        yield pyarrow, opened


def _between(batches: Any, start: int, stop: int) -> Iterator[Any]:
    """Cut batches down to the rows from ``start`` to ``stop``, counted over all batches."""
    first = 0
    for batch in batches:
        if first >= stop:
            return
        skipped = max(start - first, 0)
        if skipped < batch.num_rows:
            yield batch.slice(skipped, stop - first - skipped)
        first += batch.num_rows


def partitions(frame: Any, columns: Sequence[str]) -> list[Any]:
    """The partitions of a Dask dataframe, as Delayed objects that read these columns only."""
    positions(columns, list(frame.columns), "the Dask dataframe")
    return list(frame[list(columns)].to_delayed())


def stream_rows(
    stream: Any, columns: Sequence[str], most: int, file: str = ""
) -> Iterator[RowBatch]:
    """Read the rows of a table with ``__arrow_c_stream__``, which messages call ``file``."""
    pyarrow, whole = _imported_pyarrow("Reading tables of other libraries"), file or "the source"
    with _failures(pyarrow, f"{whole} cannot be read as a table of columns"):
        # A reader of pyarrow's own is taken as it is: its exceptions come through unchanged.
        own = isinstance(stream, pyarrow.RecordBatchReader)
        with stream if own else pyarrow.RecordBatchReader.from_stream(stream) as batches:
            _check_columns(pyarrow, batches.schema, columns, whole)
            yield from _rows(pyarrow, batches, columns, file, most)


def _imported_pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(what, "arrow") from error
    return pyarrow


@contextmanager
def _failures(pyarrow: Any, what: str) -> Iterator[None]:
    """Turn errors of Arrow, and of whoever makes a stream, into an InputError."""
    try:
        yield
    except InputError:
        raise
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"{what}: {shortened(said(error), 200)}.") from error


def _check_columns(pyarrow: Any, schema: Any, columns: Sequence[str], source: str) -> None:
    """Raise where a column is missing, or does not hold numbers."""
    types = pyarrow.types
    # Nulls are found row by row.
    allowed = (
        types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null
    )  # fmt: skip
    for name, at in zip(columns, positions(columns, schema.names, source), strict=True):
        kind = schema.field(at).type
        if not any(is_of_kind(kind) for is_of_kind in allowed):
            raise InputError(
                f"{source}, column {brief(name)}: it is of type {shortened(str(kind))}, and not of "
                "numbers; make a column of numbers, of dates for instance hours or days since the "
                "start."
            )


def _rows(
    pyarrow: Any, batches: Any, columns: Sequence[str], file: str, most: int, first: int = 0
) -> Iterator[RowBatch]:
    for whole in batches:
        places = [whole.schema.names.index(name) for name in columns]
        for start in range(0, whole.num_rows, most):
            some = whole.slice(start, most)
            arrays = [
                _floats(pyarrow, some.column(at), name, file, first)
                for at, name in zip(places, columns, strict=True)
            ]
            yield RowBatch(np.stack(arrays, axis=-1), file, first)
            first += some.num_rows


def _floats(pyarrow: Any, column: Any, name: str, file: str, first: int) -> Array:
    """Convert a column of a batch, whose first row has this number in the file, to floats."""

    def refuse(wrong: Any, what: str) -> None:
        for row in np.flatnonzero(wrong)[:1].tolist():
            place = f"{_place(file, first + row)}, column {brief(name)}"
            raise InputError(f"{place}: {brief(column[row].as_py())} {what}.")

    if column.null_count:
        refuse(column.is_null().to_numpy(zero_copy_only=False), HAS_NO_VALUE)
    if pyarrow.types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    raw = column.to_numpy(zero_copy_only=False)
    floats = np.array(raw, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        if raw.dtype.kind in "iu" and np.abs(floats).max(initial=0.0) >= 2.0**53:
            refuse(
                floats.astype(raw.dtype) != raw,
                "is above 2^53 and would lose digits as a float; subtract a common origin first",
            )
        refuse(~(np.abs(floats) <= LARGEST), IS_NO_NUMBER)
    return floats
