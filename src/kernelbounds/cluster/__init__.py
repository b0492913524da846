"""Adding the rows of a source with the workers of a Dask cluster: all of them or none.

Rows are cut into ranges, in order, where a single machine would begin a new chunk. Workers pass
twice over each range:

1. sums     the statistics of the range, Phi'Phi, Phi'y and so on: m^2 numbers
2. growth   what was known before the range, a sum of the statistics of all ranges before it, goes
            on with its rows as on a single machine: each outcome is forecast from those before its
            block

The first range can grow at once, and of the last no sums are needed. Sums of ranges are added up on
the workers, by a tree. What comes back is a few sums of each range, and m^2 numbers once.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, cast

from kernelbounds.arrays import brief
from kernelbounds.bounds import Knowledge
from kernelbounds.cluster.passes import both_passes, join
from kernelbounds.cluster.tables import checked_tables
from kernelbounds.cluster.tasks import tasks_on, watch
from kernelbounds.cluster.workers import same
from kernelbounds.engine import Engine, SparseEngine
from kernelbounds.engine.sparse.ranges import travelling
from kernelbounds.errors import InputError, MissingExtraError
from kernelbounds.sources import Source
from kernelbounds.streaming import Intake, refuse_nothing, take_over

__all__ = ["add", "client_for"]


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
        before = cast(SparseEngine, known.base)
        _refuse_growth(before)
        start = before.data.count
        engine = cast(Engine, travelling(before))
        sent = Knowledge(engine, known.assumptions, None, known.parts, known.offset)
    with tasks_on(client) as tasks:
        shared, rows = tasks.submit(same, sent), replace(given, source=Source())
        tables = checked_tables(tasks, given.source, rows, progress)
        count = sum(table.count for table in tables)
        refuse_nothing(count)
        parts = both_passes(tasks, before, shared, rows, tables)
        found = watch(tasks, parts, "adding", count, progress, lambda part: part.size)
        return take_over(known, cast(Engine, before), start, cast(Engine, join(before, found)))


def _refuse_growth(engine: SparseEngine) -> None:
    if engine.can_grow:
        raise InputError(
            "the inducing points of this sequence may still grow, row by row, which one machine "
            "has to do. Give all of them beforehand, with engine=kernelbounds.Sparse(points) or "
            "Sparse.filling(lower, upper, count), or leave client out."
        )
