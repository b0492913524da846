"""Where rows of numbers come from: files, folders of files, and tables of other libraries.

A source gives the columns asked for in batches, and holds no more than one of them in memory. What
is not a number is refused with its place, and no row is left out in silence.

Rows of numbers from a source, a batch at a time.

Rows from Parquet files and Arrow streams, by way of pyarrow.

Rows from Dask dataframes, whose partitions are pandas tables in a fixed order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import LARGEST, Array, brief, shortened
from kernelbounds.errors import InputError, MissingExtraError, did_you_mean, said
from kernelbounds.io import files
from kernelbounds.io.csv_table import csv_batches, named
from kernelbounds.io.files import failure_reported


@dataclass(frozen=True, eq=False)
class RowBatch:
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


# Bytes of a column of a Parquet file that are read at a time; without this it would be as many as a
# row group has, and some files are one row group.
READ_AHEAD = 1 << 20


def parquet_rows(
    path: Path, columns: Sequence[str], most: int, start: int = 0, stop: int | None = None
) -> Iterator[RowBatch]:
    """Those of a file, or of its rows from ``start`` to ``stop``, in batches of so many at most.

    Row groups without any of these rows are not read.
    """
    file = named(path)
    with _parquet_file(path) as (pyarrow, opened):
        _check(pyarrow, opened.schema_arrow, columns, file)
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
    """The number of rows of a file, which it says itself."""
    with _parquet_file(path) as (_, opened):
        return int(opened.metadata.num_rows)


@contextmanager
def _parquet_file(path: Path) -> Iterator[tuple[Any, Any]]:
    """pyarrow, and the file opened by it."""
    file = named(path)
    pyarrow = _pyarrow(f"Reading {file}, a Parquet file,")
    from pyarrow import parquet

    with (
        failure_reported(f"read {file}"),
        _failures(pyarrow, f"{file} cannot be read"),
        parquet.ParquetFile(path, buffer_size=READ_AHEAD) as opened,
    ):
        yield pyarrow, opened


def _between(batches: Any, start: int, stop: int) -> Iterator[Any]:
    """The rows of batches from number ``start`` to ``stop``, counted over all of them."""
    first = 0
    for batch in batches:
        if first >= stop:
            return
        skipped = max(start - first, 0)
        if skipped < batch.num_rows:
            yield batch.slice(skipped, stop - first - skipped)
        first += batch.num_rows


def stream_rows(
    stream: Any, columns: Sequence[str], most: int, file: str = ""
) -> Iterator[RowBatch]:
    """Those of anything with ``__arrow_c_stream__``, in batches of so many at most.

    ``file`` is what it is called in messages.
    """
    pyarrow, whole = _pyarrow("Reading tables of other libraries"), file or "the source"
    with (
        _failures(pyarrow, f"{whole} cannot be read as a table of columns"),
        _reader(pyarrow, stream) as batches,
    ):
        _check(pyarrow, batches.schema, columns, whole)
        yield from _rows(pyarrow, batches, columns, file, most)


def _reader(pyarrow: Any, stream: Any) -> Any:
    """Batches one after the other; those of pyarrow itself as they are, with their exceptions."""
    if isinstance(stream, pyarrow.RecordBatchReader):
        return stream
    return pyarrow.RecordBatchReader.from_stream(stream)


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(what, "arrow") from error
    return pyarrow


@contextmanager
def _failures(pyarrow: Any, what: str) -> Iterator[None]:
    """Errors of Arrow, and of who makes a stream, become an InputError."""
    try:
        yield
    except InputError:
        raise
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"{what}: {shortened(said(error), 200)}.") from error


def _check(pyarrow: Any, schema: Any, columns: Sequence[str], source: str) -> None:
    """Raise where a column is not there, or is not of numbers."""
    for name in columns:
        kind = schema.field(position(name, schema.names, source)).type
        if what := _refused(pyarrow.types, kind):
            raise InputError(
                f"{source}, column {brief(name)}: it is of type {shortened(str(kind))}, {what}."
            )


def _refused(types: Any, kind: Any) -> str:
    """What a type is that is none of numbers, and what to do."""
    if types.is_dictionary(kind):
        return "categories and not numbers; make a column of numbers"
    if types.is_temporal(kind):
        return (
            "dates or times, which are not numbers; make a column of hours or days since the start"
        )
    if any(word in str(kind) for word in ("string", "binary")):
        return "text and not numbers; every value of this column must be a number"
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    if types.is_null(kind) or any(of_kind(kind) for of_kind in numbers):
        return ""  # nulls are found row by row
    return "which are not numbers"


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
            yield RowBatch(np.stack(arrays, axis=-1), columns, file, first)
            first += some.num_rows


def _floats(pyarrow: Any, column: Any, name: str, file: str, first: int) -> Array:
    """A column of a batch, of which the first row has this number in the file."""

    def refuse(wrong: Any, what: str) -> None:
        for row in np.flatnonzero(wrong)[:1]:
            value = brief(column[int(row)].as_py())
            raise InputError(f"{place(file, first + int(row), name)}: {value} {what}.")

    if column.null_count:
        refuse(
            column.is_null().to_numpy(zero_copy_only=False),
            "is a missing value; fill in what was measured, or remove its row",
        )
    if pyarrow.types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    raw = column.to_numpy(zero_copy_only=False)
    floats = np.array(raw, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        size = np.abs(floats)
        if raw.dtype.kind in "iu" and size.max(initial=0.0) >= 2.0**53:
            refuse(
                floats.astype(raw.dtype) != raw,
                "is above 2^53 and would lose digits as a float; subtract a common origin first",
            )
        refuse(~np.isfinite(floats), "is not finite, and every number must be")
        refuse(size > LARGEST, f"has a size above {LARGEST:g}; measure in a larger unit")
    return floats


def is_dask_frame(given: Any) -> bool:
    """Whether it is one, without importing Dask."""
    package = type(given).__module__.partition(".")[0]
    return package in ("dask", "dask_expr") and hasattr(given, "columns")


def partitions(frame: Any, columns: Sequence[str]) -> list[Any]:
    """Each of them with these columns only, as a Delayed, so that no others need be read."""
    for name in columns:
        position(name, list(frame.columns), "the Dask dataframe")
    return list(frame[list(columns)].to_delayed())


def partition_rows(
    table: Any, number: int, columns: Sequence[str], most: int
) -> Iterator[RowBatch]:
    """Those of a partition that was computed, in batches of so many at most."""
    return stream_rows(table, columns, most, f"partition {number}")


def frame_rows(frame: Any, columns: Sequence[str], most: int) -> Iterator[RowBatch]:
    """Those of all partitions, of which one is in memory at a time."""
    for number, part in enumerate(partitions(frame, columns)):
        yield from partition_rows(part.compute(), number, columns, most)


__all__ = [
    "RowBatch",
    "Source",
    "as_source",
    "is_parquet",
    "parquet_count",
    "parquet_rows",
    "partition_rows",
    "partitions",
]

ENDINGS = (".csv", ".tsv", ".parquet", ".pq")  # of the files in a folder


@dataclass(frozen=True, eq=False)
class Source:
    """Files, in their order, or a stream, or a Dask dataframe."""

    paths: tuple[Path, ...] = ()
    stream: Any = None
    frame: Any = None

    @property
    def again(self) -> bool:
        """Whether its rows can be read more than once, without what made them being done again."""
        return bool(self.paths)

    def rows(self, columns: Sequence[str], most: int) -> Iterator[RowBatch]:
        """All of them, in batches of so many at most."""
        if self.stream is not None:
            yield from stream_rows(self.stream, columns, most)
        if self.frame is not None:
            yield from frame_rows(self.frame, columns, most)
        for path in self.paths:
            if is_parquet(path):
                yield from parquet_rows(path, columns, most)
                continue
            first = 0
            for table in csv_batches(path, columns, rows=most):
                values = np.stack([table.columns[name] for name in columns], axis=-1)
                yield RowBatch(values, columns, named(path), first, table.lines)
                first += len(values)


def as_source(given: Any) -> Source:
    """A source, from what users pass."""
    if is_dask_frame(given):
        return Source(frame=given)
    if hasattr(given, "__arrow_c_stream__"):
        return Source(stream=given)
    if isinstance(given, list | tuple):
        paths = [path for one in given for path in _files(one)]
    else:
        paths = _files(given)
    if not paths:
        raise InputError("the list of files is empty; pass at least one.")
    seen: set[str] = set()
    for path in paths:
        if (whole := os.path.realpath(path)) in seen:
            raise InputError(f"{named(path)} is among the files twice; name it once.")
        seen.add(whole)
    return Source(tuple(paths))


def _files(given: Any) -> list[Path]:
    """A file, or all files of a folder by name."""
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
        if _by_numbers(before.name) > _by_numbers(after.name):
            raise InputError(
                f"{named(path)} has {brief(before.name)} and {brief(after.name)}, whose order is "
                "not clear; pass a list of the files in their order."
            )
    if not found:
        raise InputError(f"{named(path)} has no files ending in {', '.join(ENDINGS)}.")
    return found


def _by_numbers(name: str) -> list[tuple[int, str]]:
    """By which 2 is before 10."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if at % 2 else (0, part) for at, part in enumerate(parts)]


def is_parquet(path: Path) -> bool:
    """By its first bytes, whatever its name is."""
    with files.failure_reported(f"read {named(path)}"):
        files.check_regular(path.stat().st_mode)
        with open(path, "rb") as file:
            return file.read(4) == b"PAR1"
