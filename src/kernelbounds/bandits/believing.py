"""Outcomes that are not known yet, believed to be in the middle of their bounds."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from kernelbounds.arrays import Array
from kernelbounds.bounds import CMM
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.sequence import ConfidenceSequence


def believing(sequence: ConfidenceSequence, points: Iterable[Array]) -> ConfidenceSequence:
    """A copy of the sequence, as if each point had had an outcome in the middle of its bounds.

    Shares of the parts of f* stay as the real outcomes have them.
    """
    believed = copy.deepcopy(sequence)
    believed.known.keep_shares()
    for point in points:
        believe(believed, point)
    return believed


def believe(sequence: ConfidenceSequence, point: Array) -> None:
    """Add an outcome in the middle of the exact bounds, to a copy made by :func:`believing`.

    Some function in the confidence set has that value there, and stays in the set as the radius
    grows: what is believed refutes nothing. (With a sparse engine, whose kernel changes with each
    observation, this is not proved.)
    """
    try:
        lower, upper = sequence.bounds(point[None], bound=CMM())
    except EmptyConfidenceSetError:  # which the sequence's own bound has not noticed
        lower, upper = sequence.bounds(point[None])
    sequence.update(point[None], (lower + upper) / 2)
