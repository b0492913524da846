"""The rows of a source, as the workers find them, after a look at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelbounds.cluster.tasks import Tasks, watch
from kernelbounds.cluster.workers import check, count_rows, partition, size
from kernelbounds.sources import Source, partitions
from kernelbounds.streaming import Intake

# Rows of a file that are checked by one task: a second or two.
CHECKED_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Table:
    """Some rows of the source: a Parquet file, or a future of the observations of a partition."""

    rows: Any
    count: int


def checked_tables(
    tasks: Tasks, source: Source, rows: Intake, progress: bool | None
) -> list[Table]:
    """The files or partitions of a source, in order; what is wrong with a row is raised."""
    if source.frame is None:
        return _files(tasks, source.paths, rows, progress)
    return _partitions(tasks, source.frame, rows, progress)


def _files(tasks: Tasks, paths: Sequence[Path], rows: Intake, progress: bool | None) -> list[Table]:
    """They are read again when they are needed."""
    sizes = [tasks.submit(count_rows, path) for path in paths]
    counts = watch(tasks, sizes, "counting", None, progress, int)
    checks = [
        tasks.submit(check, rows, path, start, min(start + CHECKED_AT_ONCE, count))
        for path, count in zip(paths, counts, strict=True)
        for start in range(0, max(count, 1), CHECKED_AT_ONCE)
    ]
    watch(tasks, checks, "checking", sum(counts), progress, int)
    return [Table(path, count) for path, count in zip(paths, counts, strict=True)]


def _partitions(tasks: Tasks, frame: Any, rows: Intake, progress: bool | None) -> list[Table]:
    """They may be costly to make again, and so stay in the memory of the workers meanwhile."""
    from dask.delayed import delayed

    found = tasks.compute(
        [
            delayed(partition)(rows, number, part)
            for number, part in enumerate(partitions(frame, rows.columns))
        ]
    )
    sizes = [tasks.submit(size, one) for one in found]
    counts = watch(tasks, sizes, "checking", None, progress, int)
    return [Table(one, count) for one, count in zip(found, counts, strict=True)]


def pieces(tables: Sequence[Table], start: int, stop: int) -> list[tuple[Any, int, int]]:
    """The rows from ``start`` to ``stop`` of all tables together; see ``workers.Piece``."""
    found, first = [], 0
    for table in tables:
        a, b = max(start - first, 0), min(stop - first, table.count)
        if a < b:
            found.append((table.rows, a, b))
        first += table.count
    return found
