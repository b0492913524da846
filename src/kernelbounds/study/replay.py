"""The past of a study: what was known after the first observations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence


class Best(NamedTuple):
    """Bounds on the settings that were the best known, after so many observations; (n,) each.

    Nan where the data had refuted the assumptions.
    """

    counts: Array
    lower: Array
    upper: Array


def evenly(count: int, most: int) -> list[int]:
    """Numbers of observations from 1 to ``count``, at most so many, and the last among them."""
    return sorted({round(float(one)) for one in np.linspace(1, count, min(count, most))})


def replayed(
    problem: Problem, points: Array, outcomes: Array, counts: list[int]
) -> Iterator[ConfidenceSequence]:
    """The sequence as it was after each of these numbers of observations, which increase.

    It is one object, which is updated from one to the next.
    """
    sequence, done = problem.sequence(), 0
    unit = problem.scaled(points)
    for count in counts:
        sequence.update(unit[done:count], outcomes[done:count])
        done = count
        yield sequence


def running_best(
    problem: Problem, points: Array, outcomes: Array, minimise: bool, counts: list[int]
) -> Best:
    """Bounds at the observed settings that had the best one for sure."""
    known = []
    for sequence in replayed(problem, points, outcomes, counts):
        try:
            lower, upper = sequence.bounds(sequence.points)
            at = int(upper.argmin() if minimise else lower.argmax())
            known.append((lower[at], upper[at]))
        except EmptyConfidenceSetError:
            known.append((np.nan, np.nan))
    sides = np.array(known, dtype=float).reshape(-1, 2)
    return Best(np.array(counts, dtype=float), sides[:, 0], sides[:, 1])
