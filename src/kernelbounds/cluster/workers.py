"""What workers are asked to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from kernelbounds.bounds import Knowledge
from kernelbounds.csv_table import named
from kernelbounds.engine import SparseEngine
from kernelbounds.engine.sparse import Statistics
from kernelbounds.engine.sparse.ranges import Part, resumed, sums
from kernelbounds.errors import InputError
from kernelbounds.sources import is_parquet, parquet_count, parquet_rows, partition_rows
from kernelbounds.streaming import Intake, Observed, append_all

# Some rows of a table, from here to there: of a Parquet file, or of observations.
Piece = tuple[Path | Observed, int, int]


def same(value: Any) -> Any:
    """For what all tasks share, so that a worker gets it once."""
    return value


def count_rows(path: Path) -> int:
    """Of a Parquet file."""
    if not is_parquet(path):
        raise InputError(
            f"{named(path)} is not a Parquet file, and a cluster reads no others; convert it, or "
            "leave client out."
        )
    return parquet_count(path)


def check(rows: Intake, path: Path, start: int, stop: int) -> int:
    """Look at rows of a file, and count them."""
    return sum(len(some.outcomes) for some in _observed(rows, [(path, start, stop)]))


def partition(rows: Intake, number: int, table: Any) -> Observed:
    """The observations of a partition, checked."""
    batches = partition_rows(table, number, rows.columns, rows.most)
    found = [rows.observed(some, rows.dim) for some in batches]
    if not found:
        return Observed(np.empty((0, rows.dim or 0)), np.empty(0), None)
    return Observed.joined(found)


def size(some: Observed) -> int:
    """How many."""
    return len(some.outcomes)


def sum_up(known: Knowledge, rows: Intake, first: int, pieces: list[Piece]) -> Statistics:
    """The first pass over a range, which begins after so many rows."""
    batches = ((some.points, known.told(*some)) for some in _observed(rows, pieces))
    return sums(cast(SparseEngine, known.base), first, batches)


def add_up(first: Statistics, second: Statistics) -> Statistics:
    """The statistics of both."""
    return first.carrying(second)


def grow(known: Knowledge, rows: Intake, start: Statistics | None, pieces: list[Piece]) -> Part:
    """The second pass over a range; with None it begins with what is known."""
    engine = cast(SparseEngine, known.base)
    grown = engine.snapshot() if start is None else resumed(engine, start)
    before = grown.statistics
    append_all(known, grown, _observed(rows, pieces))
    return Part.between(before, grown)


def statistics(part: Part) -> Statistics:
    """Those at the end of a range, of all rows so far."""
    assert part.engine is not None
    return part.engine.statistics


def without_engine(part: Part) -> Part:
    """What is sent back of all ranges but the last."""
    return part._replace(engine=None)


def _observed(rows: Intake, pieces: list[Piece]) -> Iterator[Observed]:
    """The observations of pieces, in batches."""
    for table, start, stop in pieces:
        if isinstance(table, Path):
            for some in parquet_rows(table, rows.columns, rows.most, start, stop):
                yield rows.observed(some, rows.dim)
        else:
            for first in range(start, stop, rows.most):
                yield table.split(min(first + rows.most, stop))[0].split(first)[1]
