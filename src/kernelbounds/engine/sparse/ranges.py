"""Ranges of a long sequence of observations, each worked on by itself and put together in order.

Where a chunk of residuals ends, the sums over the observations are all that those after it depend
on. A range that begins there needs no more, and gives what a single machine would give.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.sparse.dictionary import Block
from kernelbounds.engine.sparse.engine import SparseEngine
from kernelbounds.engine.sparse.sparse_observations import size_of_block
from kernelbounds.engine.sparse.statistics import CHUNK_ROWS, Chunk, Forecaster, Statistics


class Part(NamedTuple):
    """The contribution of one range."""

    size: int  # the number of its observations
    losses: Array | None  # the sums of its forecasts' losses
    excess: float  # what complete chunks of the range add to rho
    before: Array  # b at its start
    after: Array  # b at its end
    engine: SparseEngine | None  # the engine at its end; that of the last range is the result

    @classmethod
    def between(cls, before: Statistics, grown: SparseEngine) -> Part:
        """The part of an engine that had these statistics before."""
        after = grown.data.statistics
        size, excess = after.count - before.count, after.excess - before.excess
        return cls(size, grown.data.lost, excess, before.products, after.products, grown)


def chunk_ends(engine: SparseEngine, count: int) -> list[int]:
    """The numbers of new observations, below ``count``, at which a chunk is complete."""
    before, newest = engine.data.count, len(engine.data.newest.rows)
    ends, start, stop = list[int](), 0, engine.data.ends_at - before
    while stop < count:
        newest += stop - start
        if newest >= CHUNK_ROWS:
            ends.append(stop)
            newest = 0
        start, stop = stop, stop + size_of_block(before + stop)
    return ends


def travelling(engine: SparseEngine) -> SparseEngine:
    """The engine without what can be computed again, to be sent to other machines.

    Its losses are counted from here on.
    """
    data = copy.copy(engine.data)
    data.lost = None
    return SparseEngine(data)


def sums(engine: SparseEngine, first: int, batches: Iterable[tuple[Array, Outcomes]]) -> Statistics:
    """The statistics of observations from number ``first`` on, but for what they add to rho.

    Blocks are no larger than on one machine, so that rounding errors are no larger either.
    """
    total = Statistics.none(len(engine.data.dictionary))
    length = size_of_block(engine.data.count + first)
    for points, outcomes in batches:
        for start in range(0, len(points), length):
            stop = start + length
            some = outcomes.rows(start, stop)
            block = Block.of(engine.data.dictionary, points[start:stop], some)
            total = total.carrying(Statistics.of(block))
    return total


def resumed(engine: SparseEngine, known: Statistics) -> SparseEngine:
    """An engine with the same dictionary, after observations with these statistics.

    The last of these observations completed a chunk. Losses are counted from here on.
    """
    other = travelling(engine)
    data = other.data
    data.statistics = data.closed = known
    data.newest = Chunk.empty(*data.dictionary.inducing.shape)
    data.forecaster = Forecaster.of(data.ridge, known)
    data.ends_at = known.count + size_of_block(known.count)
    return other


def joined(before: SparseEngine, parts: Sequence[Part]) -> SparseEngine:
    """The engine after all ranges, which are in order."""
    last = parts[-1].engine
    assert last is not None
    data = copy.copy(last.data)
    excess = before.data.statistics.excess + sum(part.excess for part in parts)
    data.statistics = replace(data.statistics, excess=excess)
    data.closed = replace(data.closed, excess=excess)
    each = (before.data.lost, *(part.losses for part in parts))
    lost = [one for one in each if one is not None]
    data.lost = np.sum(lost, axis=0) if lost else None
    data.dictionary = before.data.dictionary  # Both are equal; one of them is enough in memory.
    return SparseEngine(data)
