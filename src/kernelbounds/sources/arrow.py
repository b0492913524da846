"""Rows from Parquet files and Arrow streams, by way of pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import LARGEST, Array, brief, shortened
from kernelbounds.csv_table import named
from kernelbounds.errors import InputError, MissingExtraError, said
from kernelbounds.files import failure_reported
from kernelbounds.sources.rows import Rows, place, position

# Bytes of a column of a Parquet file that are read at a time; without this it would be as many as a
# row group has, and some files are one row group.
READ_AHEAD = 1 << 20


def parquet_rows(
    path: Path, columns: Sequence[str], most: int, start: int = 0, stop: int | None = None
) -> Iterator[Rows]:
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


def stream_rows(stream: Any, columns: Sequence[str], most: int, file: str = "") -> Iterator[Rows]:
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
) -> Iterator[Rows]:
    for whole in batches:
        places = [whole.schema.names.index(name) for name in columns]
        for start in range(0, whole.num_rows, most):
            some = whole.slice(start, most)
            arrays = [
                _floats(pyarrow, some.column(at), name, file, first)
                for at, name in zip(places, columns, strict=True)
            ]
            yield Rows(np.stack(arrays, axis=-1), columns, file, first)
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
