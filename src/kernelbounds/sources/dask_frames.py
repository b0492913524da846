"""Rows from Dask dataframes, whose partitions are pandas tables in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kernelbounds.sources.arrow import stream_rows
from kernelbounds.sources.rows import Rows, position


def is_dask_frame(given: Any) -> bool:
    """Whether it is one, without importing Dask."""
    package = type(given).__module__.partition(".")[0]
    return package in ("dask", "dask_expr") and hasattr(given, "columns")


def partitions(frame: Any, columns: Sequence[str]) -> list[Any]:
    """Each of them with these columns only, as a Delayed, so that no others need be read."""
    for name in columns:
        position(name, list(frame.columns), "the Dask dataframe")
    return list(frame[list(columns)].to_delayed())


def partition_rows(table: Any, number: int, columns: Sequence[str], most: int) -> Iterator[Rows]:
    """Those of a partition that was computed, in batches of so many at most."""
    return stream_rows(table, columns, most, f"partition {number}")


def frame_rows(frame: Any, columns: Sequence[str], most: int) -> Iterator[Rows]:
    """Those of all partitions, of which one is in memory at a time."""
    for number, part in enumerate(partitions(frame, columns)):
        yield from partition_rows(part.compute(), number, columns, most)
