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


def parquet_rows(path: Path, columns: Sequence[str], most: int) -> Iterator[Rows]:
    """Those of a file, in batches of so many at most."""
    file = named(path)
    pyarrow = _pyarrow(f"Reading {file}, a Parquet file,")
    from pyarrow import parquet

    with (
        failure_reported(f"read {file}"),
        _failures(pyarrow, f"{file} cannot be read"),
        parquet.ParquetFile(path, buffer_size=READ_AHEAD) as opened,
    ):
        _check(pyarrow, opened.schema_arrow, columns, file)
        batches = opened.iter_batches(batch_size=most, columns=list(columns))
        yield from _rows(pyarrow, batches, columns, file, most)


def stream_rows(stream: Any, columns: Sequence[str], most: int) -> Iterator[Rows]:
    """Those of anything with ``__arrow_c_stream__``, in batches of so many at most."""
    pyarrow = _pyarrow("Reading tables of other libraries")
    with (
        _failures(pyarrow, "the source cannot be read as a table of columns"),
        _reader(pyarrow, stream) as batches,
    ):
        _check(pyarrow, batches.schema, columns, "the source")
        yield from _rows(pyarrow, batches, columns, "", most)


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
    pyarrow: Any, batches: Any, columns: Sequence[str], file: str, most: int
) -> Iterator[Rows]:
    first = 0
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
