"""Add the rows of a source with the workers of a Dask cluster, all of them or none.

Rows are cut into ranges, in order, where a single machine would begin a new chunk. Workers pass
twice over each range:

1. sums     the statistics of the range, Phi'Phi, Phi'y and so on: m^2 numbers
2. growth   what was known before the range, a sum of the statistics of all ranges before it, goes
            on with its rows as on a single machine: each outcome is forecast from those before its
            block

The first range can grow at once, and of the last no sums are needed. Sums of ranges are added up on
the workers. What comes back is a few sums of each range, and m^2 numbers once.

The file has four sections: running tasks on the cluster, what the workers are asked to do, finding
and checking the rows of the source, and the two passes.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelbounds.arrays import brief
from kernelbounds.bounds import ConfidenceSet
from kernelbounds.confidence.evidence import Evidence
from kernelbounds.display import late_progress
from kernelbounds.engine import Engine, SparseEngine
from kernelbounds.engine.sparse import Statistics
from kernelbounds.engine.sparse.ranges import Part, chunk_ends, joined, resumed, sums, travelling
from kernelbounds.errors import InputError, MissingExtraError, said
from kernelbounds.io.files import named
from kernelbounds.io.sources import (
    Source,
    is_parquet,
    parquet_count,
    parquet_rows,
    partitions,
    stream_rows,
)
from kernelbounds.sequence.sparse import Observed, append_in_blocks, sparse_engine
from kernelbounds.sequence.streaming import Intake, refuse_nothing, take_over

# Rows of a file that are checked by one task: a second or two.
CHECKED_AT_ONCE = 2_000_000
# Rows of a range, at most: a worker that dies loses the work on one, and the bar moves with each.
# With many inducing points it is longer, so that its m^2 numbers are few beside its rows.
LONGEST_RANGE, ROWS_PER_INDUCING = 250_000, 200
# The first pass takes about this part of the time of the second (``kernelbounds reproduce scale``).
FIRST_PASS = 0.25
# Sums of two passes over the same rows differ by rounding errors only, far less than this.
SUMS_AGREE = 1e-6

# (table, start, stop): rows ``start`` to ``stop`` of a Parquet file, or of observations.
Piece = tuple[Path | Observed, int, int]


class Tasks:
    """The tasks that are submitted to the workers of a cluster.

    Futures that nobody holds are forgotten when those that depend on them are done.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.threads = max(1, sum(client.nthreads().values()))
        self.wanted: list[Any] = []  # the futures that are waited for

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a future of the result, which Dask computes anew if its worker dies."""
        return self.client.submit(function, *arguments, pure=False)


@contextmanager
def tasks_on(client: Any) -> Iterator[Tasks]:
    """Run tasks on the cluster, and turn its own failures into sentences of ours."""
    import dask
    from distributed import KilledWorker

    tasks = Tasks(client)
    try:
        # What is known already, m^2 numbers, is a part of the graph on purpose: so the scheduler
        # has it, whichever workers die.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            yield tasks
    except KilledWorker as error:
        raise InputError(
            "several workers died, one after the other, at the same rows, and nothing was added. "
            "Most often their memory was too small: try a smaller batch, or fewer threads a worker."
        ) from error
    except MissingExtraError:
        raise
    except ImportError as error:
        raise InputError(
            f"the workers lack a package that this machine has: {said(error)}. Install the same "
            "version of kernelbounds[dask] on all of them."
        ) from error
    finally:
        # This stops what is waited for and all that only it needs, after the tasks under way.
        client.cancel(tasks.wanted)


def watch(
    tasks: Tasks,
    futures: Sequence[Any],
    doing: str,
    total: int | None,
    progress: bool | None,
    rows: Callable[[Any], int],
) -> list[Any]:
    """Wait for the results, with progress on the terminal; ``rows`` counts those of a result.

    They are taken in order, so that of several errors the first in the source is raised.
    """
    found: list[Any] = []
    tasks.wanted += futures
    with late_progress(doing, total, progress) as report:
        done = 0
        for future in futures:
            found.append(future.result())
            done += rows(found[-1])
            report(f"{done:,} rows on {tasks.threads} threads", done)
    return found


def same(value: Any) -> Any:
    """Return the value: a worker gets the result of a task once, which others then share."""
    return value


def count_rows(path: Path) -> int:
    """Count the rows of a Parquet file."""
    if not is_parquet(path):
        raise InputError(
            f"{named(path)} is not a Parquet file, and a cluster reads no others; convert it, or "
            "leave client out."
        )
    return parquet_count(path)


def check(rows: Intake, path: Path, start: int, stop: int) -> int:
    """Check some rows of a file, and count them."""
    return sum(len(some.outcomes) for some in _observed(rows, [(path, start, stop)]))


def partition(rows: Intake, number: int, table: Any) -> Observed:
    """Check a partition, and return its observations."""
    batches = stream_rows(table, rows.columns, rows.most, f"partition {number}")
    found = [rows.observed(some, rows.dim) for some in batches]
    if not found:
        return Observed(np.empty((0, rows.dim or 0)), np.empty(0), None)
    return Observed.joined(found)


def size(some: Observed) -> int:
    """Count observations."""
    return len(some.outcomes)


def sum_up(known: ConfidenceSet, rows: Intake, first: int, pieces: list[Piece]) -> Statistics:
    """Make the first pass over a range, which begins after ``first`` rows."""
    batches = ((some.points, known.evidence.for_engine(*some)) for some in _observed(rows, pieces))
    return sums(sparse_engine(known), first, batches)


def grow(known: ConfidenceSet, rows: Intake, start: Statistics | None, pieces: list[Piece]) -> Part:
    """Make the second pass over a range, from ``start``, or from what is known where it is None."""
    engine = sparse_engine(known)
    grown = engine.snapshot() if start is None else resumed(engine, start)
    before = grown.data.statistics
    append_in_blocks(known, grown, _observed(rows, pieces))
    return Part.between(before, grown)


def statistics(part: Part) -> Statistics:
    """The statistics of all rows up to the end of a range."""
    assert part.engine is not None
    return part.engine.data.statistics


def without_engine(part: Part) -> Part:
    """Leave out the engine, which only the last range sends back."""
    return part._replace(engine=None)


def _observed(rows: Intake, pieces: list[Piece]) -> Iterator[Observed]:
    """The observations of pieces, in batches."""
    for table, start, stop in pieces:
        if isinstance(table, Path):
            for some in parquet_rows(table, rows.columns, rows.most, start, stop):
                yield rows.observed(some, rows.dim)
        else:
            for first in range(start, stop, rows.most):
                yield table.rows(first, min(first + rows.most, stop))


class Table(NamedTuple):
    """A Parquet file, or a future of the observations of a partition, and its number of rows."""

    rows: Any
    size: int


def _files(tasks: Tasks, paths: Sequence[Path], rows: Intake, progress: bool | None) -> list[Table]:
    """Check the files of a source; they are read again when their rows are needed."""
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
    """Check the partitions of a dataframe, which stay in the memory of the workers meanwhile.

    Partitions may be costly to make again.
    """
    from dask.delayed import delayed

    found = tasks.client.compute(
        [
            delayed(partition)(rows, number, part)
            for number, part in enumerate(partitions(frame, rows.columns))
        ]
    )
    sizes = [tasks.submit(size, one) for one in found]
    counts = watch(tasks, sizes, "checking", None, progress, int)
    return [Table(one, count) for one, count in zip(found, counts, strict=True)]


def pieces(tables: Sequence[Table], start: int, stop: int) -> list[tuple[Any, int, int]]:
    """Cut the rows from ``start`` to ``stop`` out of tables, counted over all of them."""
    found, first = [], 0
    for table in tables:
        a, b = max(start - first, 0), min(stop - first, table.size)
        if a < b:
            found.append((table.rows, a, b))
        first += table.size
    return found


def both_passes(
    tasks: Tasks, engine: SparseEngine, shared: Any, rows: Intake, tables: Sequence[Table]
) -> list[Any]:
    """Start both passes over all ranges, and return a future for each range."""
    count = sum(table.size for table in tables)
    places = ranges(engine, count, tasks.threads)
    work = [pieces(tables, *one) for one in places]
    first = tasks.submit(grow, shared, rows, None, work[0])
    if len(work) == 1:
        return [first]
    # When it has grown, the first range has its sums, and those of all before it.
    inner = zip(places[1:-1], work[1:-1], strict=True)
    summed = [tasks.submit(sum_up, shared, rows, start, one) for (start, _), one in inner]
    # A chain of additions takes milliseconds a range, beside seconds of work on its rows.
    starts = itertools.accumulate(
        [tasks.submit(statistics, first), *summed], partial(tasks.submit, Statistics.carrying)
    )
    grown = [tasks.submit(grow, shared, rows, *one) for one in zip(starts, work[1:], strict=True)]
    *others, last = [first, *grown]
    return [*(tasks.submit(without_engine, one) for one in others), last]


def ranges(engine: SparseEngine, count: int, threads: int) -> list[tuple[int, int]]:
    """The first row and the end of each range, among ``count`` new rows.

    There is one range for each thread, or more where they would be too long, and a short one before
    them, which grows while the others are summed. A single thread needs no sums.
    """
    ends = np.array(chunk_ends(engine, count), dtype=int)
    number = max(threads, math.ceil(count / longest_range(len(engine.data.dictionary))))
    if threads == 1 or not len(ends):
        number = 0
    length = count / (number + FIRST_PASS)
    wanted = length * (FIRST_PASS + np.arange(number))
    cuts = np.unique(ends[np.searchsorted(ends[:-1], wanted)])
    return list(itertools.pairwise([0, *cuts.tolist(), count]))


def longest_range(inducing: int) -> int:
    """The largest number of rows of a range, with this number of inducing points."""
    return max(LONGEST_RANGE, ROWS_PER_INDUCING * inducing)


def join(engine: SparseEngine, parts: Sequence[Part]) -> SparseEngine:
    """Join all ranges into one engine; refuse a source that gave other rows the second time."""
    for before, after in itertools.pairwise(parts):
        off = np.abs(before.after - after.before).max(initial=0.0)
        if off > SUMS_AGREE * np.abs(before.after).max(initial=0.0):
            raise InputError(
                "the source gave other rows when it was read for the second time, and nothing was "
                "added. Do not write to it meanwhile; a Dask dataframe whose rows are random is "
                "to be persisted, or written to files, first."
            )
    return joined(engine, parts)


def client_for(given: Any, source: Source, engine: Engine) -> Any:
    """Choose the client to use, or None for this machine."""
    if given is None:
        exact = engine.approximation() is None
        if source.frame is None or exact or "distributed" not in sys.modules:
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
    if engine.approximation() is None or source.stream is not None:
        raise InputError(
            "client is for sequences with engine=kernelbounds.Sparse(...), since an exact engine "
            "needs all rows on one machine, and for Parquet files and Dask dataframes, which "
            "workers can read by themselves; leave client out."
        )
    return given


def add(known: ConfidenceSet, given: Intake, client: Any, progress: bool | None) -> int:
    """Add all observations, and return how many; on an error or an interrupt none are added."""
    with known.evidence.lock:
        before = sparse_engine(known)
        if before.approximation().can_grow:
            raise InputError(
                "the inducing points of this sequence may still grow, row by row, which one "
                "machine has to do. Give all of them beforehand, with "
                "engine=kernelbounds.Sparse(points) or Sparse.filling(lower, upper, count), or "
                "leave client out."
            )
        start = before.data.count
        own = known.evidence
        evidence = Evidence(travelling(before), own.noise_unit, own.parts, own.offset)
        sent = ConfidenceSet(evidence, known.assumptions)
    with tasks_on(client) as tasks:
        shared, rows = tasks.submit(same, sent), replace(given, source=Source())
        source = given.source
        tables = (
            _files(tasks, source.paths, rows, progress)
            if source.frame is None
            else _partitions(tasks, source.frame, rows, progress)
        )
        count = sum(table.size for table in tables)
        refuse_nothing(count)
        parts = both_passes(tasks, before, shared, rows, tables)
        found = watch(tasks, parts, "adding", count, progress, lambda part: part.size)
        return take_over(known, before, start, join(before, found))
