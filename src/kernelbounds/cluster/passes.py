"""Ranges of rows, and two passes over each; see the package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelbounds.cluster.tables import Table, pieces
from kernelbounds.cluster.tasks import Tasks
from kernelbounds.cluster.workers import add_up, grow, statistics, sum_up, without_engine
from kernelbounds.engine import SparseEngine
from kernelbounds.engine.sparse.ranges import Part, chunk_ends, joined
from kernelbounds.errors import InputError
from kernelbounds.streaming import Intake

# Rows of a range, at most: a worker that dies loses the work on one, and the bar moves with each.
# With many inducing points it is longer, so that its m^2 numbers are few beside its rows.
LONGEST_RANGE, ROWS_PER_INDUCING = 250_000, 200
# The first pass takes about this part of the time of the second (``kernelbounds reproduce scale``).
FIRST_PASS = 0.25
# Sums of two passes over the same rows differ by rounding errors only, far less than this.
SAME = 1e-6


def both_passes(
    tasks: Tasks, engine: SparseEngine, shared: Any, rows: Intake, tables: Sequence[Table]
) -> list[Any]:
    """Futures of what each range adds."""
    count = sum(table.count for table in tables)
    places = ranges(engine, count, tasks.threads)
    work = [pieces(tables, *one) for one in places]
    first = tasks.submit(grow, shared, rows, None, work[0])
    if len(work) == 1:
        return [first]
    # When it has grown, the first range has its sums, and those of all before it.
    inner = zip(places[1:-1], work[1:-1], strict=True)
    sums = [tasks.submit(sum_up, shared, rows, start, one) for (start, _), one in inner]
    starts = running_sums(tasks, [tasks.submit(statistics, first), *sums])
    grown = [tasks.submit(grow, shared, rows, *one) for one in zip(starts, work[1:], strict=True)]
    *others, last = [first, *grown]
    return [*(tasks.submit(without_engine, one) for one in others), last]


def ranges(engine: SparseEngine, count: int, threads: int) -> list[tuple[int, int]]:
    """Where each begins and ends, among so many new rows.

    There is one for each thread, or more where they would be too long, and a short one before
    them, which grows while the others are summed. A single thread needs no sums.
    """
    ends = np.array(chunk_ends(engine, count), dtype=int)
    number = max(threads, math.ceil(count / longest_range(len(engine.dictionary))))
    if threads == 1 or not len(ends):
        number = 0
    length = count / (number + FIRST_PASS)
    wanted = length * (FIRST_PASS + np.arange(number))
    cuts = np.unique(ends[np.searchsorted(ends[:-1], wanted)])
    return list(itertools.pairwise([0, *cuts.tolist(), count]))


def longest_range(inducing: int) -> int:
    """How many rows a range has at most, with so many inducing points."""
    return max(LONGEST_RANGE, ROWS_PER_INDUCING * inducing)


def running_sums(tasks: Tasks, parts: list[Any]) -> list[Any]:
    """Futures of the first, the first two, .. and all parts added up, by a tree of depth log n."""
    if len(parts) == 1:
        return parts
    pairs = [tasks.submit(add_up, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
    of_pairs = running_sums(tasks, pairs)
    found = [parts[0]]
    for at in range(1, len(parts)):
        whole = of_pairs[(at - 1) // 2]  # of the first at + 1 where that is even, or of at
        found.append(whole if at % 2 else tasks.submit(add_up, whole, parts[at]))
    return found


def join(engine: SparseEngine, parts: Sequence[Part]) -> SparseEngine:
    """The engine after all ranges; rows that were others in the second pass are refused."""
    for before, after in itertools.pairwise(parts):
        off = np.abs(before.after - after.before).max(initial=0.0)
        if off > SAME * np.abs(before.after).max(initial=0.0):
            raise InputError(
                "the source gave other rows when it was read for the second time, and nothing was "
                "added. Do not write to it meanwhile; a Dask dataframe whose rows are random is "
                "to be persisted, or written to files, first."
            )
    return joined(engine, parts)
