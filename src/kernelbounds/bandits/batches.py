"""Batches: actions that are chosen before the outcomes of earlier ones are known.

Each action of a batch is chosen as if the actions under way, and those before it in the batch,
already had outcomes: imagined ones, in the middle of their bounds. The bounds that are reported
come from real outcomes only.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.domains import Domain, Finite
from kernelbounds.bandits.policy import Policy
from kernelbounds.bounds import CMM
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.sequence import ConfidenceSequence


class Turn:
    """The choice of the next action of a batch, given the actions chosen before it."""

    def __init__(self, policy: Policy) -> None:
        self.taken: list[Array] = []  # the actions chosen before, in this batch
        self._pending = list(policy._ledger.pending)
        self._imagined, self._count = policy.sequence, 0  # outcomes that have been imagined

    @property
    def waiting(self) -> list[Array]:
        """All actions without an outcome: those under way, and those of this batch."""
        return self._pending + self.taken

    @property
    def sequence(self) -> ConfidenceSequence:
        """The policy's own sequence, or a copy with imagined outcomes of all that are waiting."""
        new = self.waiting[self._count :]
        if new and not self._count:
            self._imagined = with_imagined_outcomes(self._imagined, new)
        else:
            for point in new:
                _imagine(self._imagined, point)
        self._count += len(new)
        return self._imagined


def choose_in_turn(
    policy: Policy,
    space: Domain,
    count: int,
    choose_one: Callable[[Turn], int | Array],
    limit: float | None = None,
) -> list[Suggestion]:
    """Choose the actions of a batch one after the other.

    ``choose_one`` returns the index of an action of a finite set, or the point of a box. ``limit``
    is an upper bound on s f* over the space; None is the policy's own for a finite set, and
    infinity for a box.
    """
    if limit is None:
        limit = policy.limit(space) if isinstance(space, Finite) else math.inf
    turn, chosen = Turn(policy), list[Suggestion]()
    while len(chosen) < count:
        found = choose_one(turn)
        if isinstance(space, Finite):
            one = policy.suggestion(space, space.points[found], limit, int(found))
        else:
            one = policy.suggestion(space, np.asarray(found), limit)
        chosen.append(one)
        turn.taken.append(one.x)
    return chosen


def with_imagined_outcomes(
    sequence: ConfidenceSequence, points: Iterable[Array]
) -> ConfidenceSequence:
    """Copy a sequence, and give each point an outcome in the middle of its bounds.

    Shares of the parts of f* stay as the real outcomes have them.
    """
    imagined = copy.deepcopy(sequence)
    imagined.known.evidence.keep_shares(imagined.known.chosen_for.misfit)
    imagined.keep_noise_scale()
    for point in points:
        _imagine(imagined, point)
    return imagined


def _imagine(sequence: ConfidenceSequence, point: Array) -> None:
    """Add an outcome in the middle of the exact bounds to a copy of a sequence.

    Some function in the confidence set has that value there, and stays in the set as the radius
    grows, so imagined outcomes refute nothing. (With a sparse engine, whose kernel changes with
    each observation, this is not proved. With AnyOf it need not be so: the middle may lie between
    the classes.)
    """
    try:
        lower, upper = sequence.bounds(point[None], bound=CMM())
    except EmptyConfidenceSetError:  # which the sequence's own bound has not noticed
        lower, upper = sequence.bounds(point[None])
    sequence.update(point[None], (lower + upper) / 2)
