"""Adding the rows of a source with the workers of a Dask cluster: all of them or none.

Rows are cut into ranges, in order, where a single machine would begin a new chunk. Each worker
passes twice over its ranges:

1. sums     the statistics of a range, Phi'Phi, Phi'y and so on: m^2 numbers
2. growth   what was known before a range, a sum of the statistics of all ranges before it, goes on
            with its rows as on a single machine: each outcome is forecast from those before its
            block

The first range can grow at once, and of the last no sums are needed. Sums of ranges are added up on
the workers, by a tree. What comes back is two numbers a row, the forecasts, and m^2 numbers once.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import brief
from kernelbounds.bounds import Knowledge
from kernelbounds.csv_table import named
from kernelbounds.engine import Engine
from kernelbounds.engine.sparse import SparseEngine, Statistics
from kernelbounds.engine.sparse.ranges import Part, chunk_ends, joined, resumed, sums, travelling
from kernelbounds.errors import InputError, MissingExtraError, said
from kernelbounds.progress import late_progress
from kernelbounds.sources import (
    Source,
    is_parquet,
    parquet_count,
    parquet_rows,
    partition_rows,
    partitions,
)
from kernelbounds.streaming import Intake, Observed, append_all, refuse_nothing, take_over

# Rows of a file that are checked by one task.
CHECKED_AT_ONCE = 2_000_000
# Rows of a range, at most: a worker that dies loses the work on one, and the bar moves with each.
# With many inducing points it is longer, so that its m^2 numbers are few beside its rows.
LONGEST_RANGE, ROWS_PER_INDUCING = 250_000, 200
# The first pass takes this part of the time of the second, about; so the first range, which needs
# no first pass, is shorter than the others by this.
FIRST_PASS = 0.4
# Sums of two passes over the same rows differ by rounding errors only, far less than this.
SAME = 1e-6


def client_for(given: Any, source: Source, engine: Engine) -> Any:
    """The client to use, or None for this machine."""
    if given is None:
        if source.frame is None or engine.keeps_observations or "distributed" not in sys.modules:
            return None
        try:
            return sys.modules["distributed"].default_client()
        except ValueError:  # there is none
            return None
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("Working with a Dask cluster", "dask") from error
    if not isinstance(given, Client) or given.asynchronous:
        raise InputError(
            f"client must be a distributed.Client that is not asynchronous, got {brief(given)}."
        )
    if engine.keeps_observations:
        raise InputError(
            "client is for sequences with a sparse engine: an exact one needs all rows on one "
            "machine. Make the sequence with engine=kernelbounds.Sparse(...), or leave client out."
        )
    if source.stream is not None:
        raise InputError(
            "client is for Parquet files and Dask dataframes, which workers can read by "
            "themselves; write the table to Parquet files first, or leave client out."
        )
    return given


def add(known: Knowledge, given: Intake, client: Any, progress: bool | None) -> int:
    """Add all observations, and return how many; on an error or an interrupt none are added."""
    with known.lock:
        before: Any = known.base  # a SparseEngine
        start = before.data.count
        sent = Knowledge(travelling(before), known.assumptions, None, known.parts, known.offset)
    with _tasks(client) as tasks:
        shared = tasks.submit(_same, sent)
        rows = replace(given, source=Source())
        tables = (
            _checked_files(tasks, given.source.paths, rows, progress)
            if given.source.frame is None
            else _checked_partitions(tasks, given.source.frame, rows, progress)
        )
        count = sum(table.count for table in tables)
        refuse_nothing(count)
        work = [_pieces(tables, *one) for one in _ranges(before, count, tasks.threads)]
        found = _passes(tasks, shared, rows, work, count, progress)
        _refuse_changes(found)
        return take_over(known, before, start, joined(before, found))


@dataclass(frozen=True, eq=False)
class Table:
    """Some rows of the source: a Parquet file, or the observations of a partition, on a worker."""

    rows: Any
    count: int


class Tasks:
    """What is under way on the cluster; it is cancelled at the end."""

    def __init__(self, client: Any) -> None:
        self._client, self.futures = client, []
        self.threads = max(1, sum(client.nthreads().values()))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future of the result, which Dask computes anew if the worker that has it dies."""
        made = self._client.submit(function, *arguments, pure=False)
        self.futures.append(made)
        return made

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Futures of delayed values."""
        made = self._client.compute(delayed)
        self.futures += made
        return list(made)

    def results(self, futures: Sequence[Any]) -> Iterator[Any]:
        """In order, so that of several errors the first in the source is raised."""
        for future in futures:
            yield future.result()

    def cancel(self) -> None:
        """All that is not done."""
        self._client.cancel(self.futures)


@contextmanager
def _tasks(client: Any) -> Iterator[Tasks]:
    """Tasks of the cluster, whose own failures become sentences of ours."""
    import dask
    from distributed import KilledWorker

    tasks = Tasks(client)
    try:
        # The sequence, of m^2 numbers, is a part of the graph on purpose: the scheduler keeps it,
        # whatever workers die.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            yield tasks
    except KilledWorker as error:
        raise InputError(
            "several workers died, one after the other, at the same rows, and nothing was added. "
            "Most often their memory was too small: try a smaller batch, or fewer threads a worker."
        ) from error
    except ImportError as error:
        if isinstance(error, MissingExtraError):
            raise
        raise InputError(
            f"the workers lack a package that this machine has: {said(error)}. Install the same "
            "version of kernelbounds[arrow,dask] on all of them."
        ) from error
    finally:
        tasks.cancel()


def _checked_files(
    tasks: Tasks, paths: Sequence[Path], rows: Intake, progress: bool | None
) -> list[Table]:
    """The files, after a look at each of their rows."""
    counts = list(tasks.results([tasks.submit(_count, path) for path in paths]))
    checks = [
        tasks.submit(_check, rows, path, start, min(start + CHECKED_AT_ONCE, count))
        for path, count in zip(paths, counts, strict=True)
        for start in range(0, max(count, 1), CHECKED_AT_ONCE)
    ]
    _watch(tasks, checks, "checking", sum(counts), progress, int)
    return [Table(path, count) for path, count in zip(paths, counts, strict=True)]


def _checked_partitions(
    tasks: Tasks, frame: Any, rows: Intake, progress: bool | None
) -> list[Table]:
    """The observations of each partition, which stay in the memory of the workers meanwhile."""
    from dask import delayed

    parts = [
        delayed(_partition)(rows, number, part)
        for number, part in enumerate(partitions(frame, rows.columns))
    ]
    found = tasks.compute(parts)
    sizes = [tasks.submit(_size, one) for one in found]
    counts = _watch(tasks, sizes, "checking", None, progress, int)
    return [Table(one, count) for one, count in zip(found, counts, strict=True)]


def _ranges(engine: SparseEngine, count: int, threads: int) -> list[tuple[int, int]]:
    """Where each begins and ends, among so many new rows.

    There is one for each thread, or more where they would be too long, and a short one before
    them, which grows while the others are summed. A single thread needs no sums.
    """
    ends = np.array(chunk_ends(engine, count))
    most = max(LONGEST_RANGE, ROWS_PER_INDUCING * len(engine.dictionary))
    number = max(threads, math.ceil(count / most)) if threads > 1 else 0
    length = count / (number + FIRST_PASS)
    wanted = length * (FIRST_PASS + np.arange(number))
    cuts = np.unique(ends[np.searchsorted(ends[:-1], wanted)]) if len(ends) else ends
    inner = cuts[cuts < count].tolist()
    return list(itertools.pairwise([0, *inner, count]))


def _pieces(tables: Sequence[Table], start: int, stop: int) -> list[tuple[Any, int, int]]:
    """The rows from ``start`` to ``stop`` of all tables together: of which table, and its rows."""
    found, first = [], 0
    for table in tables:
        a, b = max(start - first, 0), min(stop - first, table.count)
        if a < b:
            found.append((table.rows, a, b))
        first += table.count
    return found


def _passes(
    tasks: Tasks,
    shared: Any,
    rows: Intake,
    work: list[list[tuple[Any, int, int]]],
    total: int,
    progress: bool | None,
) -> list[Part]:
    """Both passes over all ranges."""
    first = tasks.submit(_grow, shared, rows, None, work[0])
    # The first range has its sums, and those of all before it, when it has grown.
    known = [tasks.submit(_statistics, first)] if len(work) > 1 else []
    known += [tasks.submit(_sums, shared, rows, one) for one in work[1:-1]]
    starts = _running_sums(tasks, known) if known else []
    grown = [tasks.submit(_grow, shared, rows, *one) for one in zip(starts, work[1:], strict=True)]
    *others, last = [first, *grown]
    parts = [*(tasks.submit(_without_engine, one) for one in others), last]
    return _watch(tasks, parts, "adding", total, progress, lambda part: len(part.forecasts.errors))


def _running_sums(tasks: Tasks, parts: list[Any]) -> list[Any]:
    """The sums of the first, of the first two, .. and of all parts, by a tree of depth 2 log2 n."""
    if len(parts) == 1:
        return parts
    pairs = [tasks.submit(_sum, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
    of_pairs = _running_sums(tasks, pairs)
    found = [parts[0]]
    for at in range(1, len(parts)):
        whole = of_pairs[(at - 1) // 2]
        found.append(whole if at % 2 else tasks.submit(_sum, whole, parts[at]))
    return found


def _watch(
    tasks: Tasks,
    futures: list[Any],
    doing: str,
    total: int | None,
    progress: bool | None,
    rows: Callable[[Any], int],
) -> list[Any]:
    """The results in order, with progress on the terminal."""
    found: list[Any] = []
    with late_progress(doing, total, progress) as report:
        done = 0
        for result in tasks.results(futures):
            found.append(result)
            done += rows(result)
            report(f"{done:,} rows on {tasks.threads} threads", done)
    return found


def _refuse_changes(parts: Sequence[Part]) -> None:
    """Raise where the second pass met other rows than the first."""
    for before, after in zip(parts, parts[1:], strict=False):
        scale = float(np.abs(before.after).max(initial=0.0)) + 1e-300
        if np.abs(before.after - after.before).max(initial=0.0) > SAME * scale:
            raise InputError(
                "the source gave other rows when it was read for the second time, and nothing was "
                "added. Do not write to it meanwhile; a Dask dataframe whose rows are random is "
                "to be persisted, or written to files, first."
            )


# What the workers do.


def _same(value: Any) -> Any:
    return value


def _count(path: Path) -> int:
    if not is_parquet(path):
        raise InputError(
            f"{named(path)} is not a Parquet file, and a cluster reads no others; convert it, or "
            "leave client out."
        )
    return parquet_count(path)


def _check(rows: Intake, path: Path, start: int, stop: int) -> int:
    return sum(len(some.outcomes) for some in _observed(rows, [(path, start, stop)]))


def _partition(rows: Intake, number: int, table: Any) -> Observed:
    found = [
        rows.observed(some, rows.dim)
        for some in partition_rows(table, number, rows.columns, rows.most)
    ]
    if not found:  # a partition may be empty
        return Observed(np.empty((0, rows.dim or 0)), np.empty(0), None)
    return Observed.joined(found)


def _size(some: Observed) -> int:
    return len(some.outcomes)


def _observed(rows: Intake, pieces: list[tuple[Any, int, int]]) -> Iterator[Observed]:
    """The observations of pieces of tables, in batches."""
    for table, start, stop in pieces:
        if isinstance(table, Path):
            for some in parquet_rows(table, rows.columns, rows.most, start, stop):
                yield rows.observed(some, rows.dim)
        else:
            for first in range(start, stop, rows.most):
                yield Observed.split(table, min(first + rows.most, stop))[0].split(first)[1]


def _sum(first: Statistics, second: Statistics) -> Statistics:
    return first + second


def _sums(known: Knowledge, rows: Intake, pieces: list[tuple[Any, int, int]]) -> Statistics:
    engine: Any = known.base
    return sums(
        engine,
        ((some.points, known.told(*some)) for some in _observed(rows, pieces)),
    )


def _grow(
    known: Knowledge, rows: Intake, start: Statistics | None, pieces: list[tuple[Any, int, int]]
) -> Part:
    engine: Any = known.base
    grown = engine.snapshot() if start is None else resumed(engine, start)
    before = grown.statistics
    append_all(known, grown, _observed(rows, pieces))
    return Part.between(before, grown)


def _statistics(part: Part) -> Statistics:
    assert part.engine is not None
    return part.engine.statistics


def _without_engine(part: Part) -> Part:
    return part._replace(engine=None)
