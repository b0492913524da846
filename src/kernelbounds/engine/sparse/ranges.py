"""Ranges of a long sequence of observations, each worked on by itself and put together in order.

Where a chunk of residuals ends, the sums over the observations are all that those after it depend
on. A range that begins there needs no more, and gives what a single machine would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.sparse.block import Block
from kernelbounds.engine.sparse.engine import LARGEST_BLOCK, SparseEngine, size_of_block
from kernelbounds.engine.sparse.forecaster import Forecaster
from kernelbounds.engine.sparse.residuals import CHUNK, Chunk
from kernelbounds.engine.sparse.statistics import Statistics

NO_FORECASTS = Forecasts(np.empty(0), np.empty(0))


class Part(NamedTuple):
    """What a range adds."""

    forecasts: Forecasts
    excess: float  # to rho, by chunks that were completed
    before: Array  # b at its start, and
    after: Array  # at its end
    engine: SparseEngine | None  # at its end; of the last range it is the result

    @classmethod
    def between(cls, before: Statistics, grown: SparseEngine) -> Part:
        """Of an engine that had these statistics before."""
        after = grown.statistics
        added = after.excess - before.excess
        return cls(grown._forecasts, added, before.products, after.products, travelling(grown))


def chunk_ends(engine: SparseEngine, count: int) -> list[int]:
    """After which of so many new observations a chunk of residuals is complete."""
    before, newest = engine.statistics.count, len(engine._newest.weights)
    ends, taken = [], 0
    while (size := size_of_block(before + taken)) <= count - taken:
        taken, newest = taken + size, newest + size
        if newest >= CHUNK:
            ends.append(taken)
            newest = 0
    return ends


def travelling(engine: SparseEngine) -> SparseEngine:
    """The same engine without what can be computed again, to be sent to other machines."""
    other = engine.snapshot()
    other._forecasts, other._basis, other._path = NO_FORECASTS, None, None
    other._border, other._outcomes = other._border[:, :0], other._outcomes[:0]
    return other


def sums(engine: SparseEngine, batches: Iterable[tuple[Array, Outcomes]]) -> Statistics:
    """The statistics of observations, but for what they add to rho."""
    total = Statistics.none(len(engine.dictionary))
    for points, outcomes in batches:
        for start in range(0, len(points), LARGEST_BLOCK):
            rows = slice(start, start + LARGEST_BLOCK)
            some = Outcomes(*(part[rows] for part in outcomes))
            block = Block.of(engine.dictionary, points[rows], some, engine.data.accuracy)
            total = total + Statistics.of(block)
    return total


def resumed(engine: SparseEngine, known: Statistics) -> SparseEngine:
    """An engine with the same dictionary, after observations with these statistics.

    The last of them completed a chunk. Forecasts are those made from here on.
    """
    dim = engine.dictionary.inducing.shape[1]
    other = travelling(engine)
    other.statistics, other.data = known, engine.data.of(known, dim)
    other._newest = Chunk.empty(len(engine.dictionary), dim)
    other._forecaster = Forecaster.of(engine._forecaster.ridge, known)
    return other


def joined(before: SparseEngine, parts: Sequence[Part]) -> SparseEngine:
    """The engine after all ranges, in order."""
    whole = parts[-1].engine
    assert whole is not None
    whole = whole.snapshot()
    excess = before.statistics.excess + sum(part.excess for part in parts)
    whole.statistics = replace(whole.statistics, excess=excess)
    made = [before._forecasts, *(part.forecasts for part in parts)]
    whole._forecasts = Forecasts(*map(np.concatenate, zip(*made, strict=True)))
    whole.dictionary = before.dictionary  # the same, once in memory
    return whole
