"""BatchedElimination: explore what may still be best, and rule actions out a few times only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_whole, brief
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.batches import Turn, choose_in_turn
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.policy import Policy
from kernelbounds.bandits.variance_reduction import Variance
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.sequence import ConfidenceSequence


class BatchedElimination(Policy):
    """Batched pure exploration: in each batch, the largest variances of what may still be best.

    This is the BPE of Li and Scarlett (2022). The lengths of its batches are theirs,
    N_i = ceil(sqrt(T N_{i-1})) with N_0 = 1, for T rounds in all; at the end of a batch, actions
    whose upper bound is below the largest lower bound are ruled out for good. Only then do
    outcomes matter, so a batch can be tried in parallel: ``ask(n=policy.left_in_batch)``.

    Theirs forgets earlier batches, since its bounds are for fixed designs. The bounds here hold for
    any design, at all times at once, so both variances and bounds are from all the data.

    Where each :meth:`ask` brings its own actions, those are ruled out by the present bounds.

    Parameters
    ----------
    sequence, domain, minimise
        See :class:`KernelUCB`; a domain must be a ``Finite``.
    rounds : int
        The number of rounds that are planned, T. Further rounds are in batches of the same rule.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> line = Finite(np.linspace(0, 1, 20)[:, None])
    >>> policy = BatchedElimination(seq, line, rounds=60)
    >>> policy.left_in_batch
    8
    >>> history = policy.run(lambda x: float(np.sin(3 * x[0])), rounds=60, batch=4)
    >>> bool(policy.remaining[10]), int(policy.remaining.sum()) < 20
    (True, True)
    """

    def __init__(
        self,
        sequence: ConfidenceSequence,
        domain: Domain | None = None,
        *,
        minimise: bool = False,
        rounds: int = 1000,
    ) -> None:
        super().__init__(sequence, domain, minimise=minimise)
        if isinstance(domain, Box):
            raise InputError(
                "BatchedElimination rules out actions one by one and needs a Finite domain, got "
                f"{brief(domain)}; use Finite(box.filling(1000)), or KernelLUCB."
            )
        self._rounds = as_whole(rounds, "rounds", least=1)
        self._length = _next_length(self._rounds, 1)
        self._end = self._length  # of the present batch, as a number of outcomes told
        count = 0 if domain is None else len(domain.points)
        self._remaining = np.ones(count, dtype=bool)

    @property
    def remaining(self) -> NDArray[np.bool_]:
        """Whether each action of the domain may still be best, (m,)."""
        return self._remaining.copy()

    @property
    def left_in_batch(self) -> int:
        """The number of outcomes to be told before actions are ruled out again."""
        return self._end - self._ledger.rounds

    def told(self) -> None:
        """Rule actions out if a batch is complete."""
        if self._ledger.rounds < self._end:
            return
        while self._end <= self._ledger.rounds:
            self._length = _next_length(self._rounds, self._length)
            self._end += self._length
        if isinstance(self.domain, Finite):
            at = np.flatnonzero(self._remaining)
            try:
                self._remaining[at] = self._may_be_best(self.domain.points[at])
            except EmptyConfidenceSetError:
                return  # The next ask will say so; outcomes are taken all the same.

    def _may_be_best(self, points: Array) -> NDArray[np.bool_]:
        """Tell which points have upper bounds that reach the largest lower bound.

        The point with that lower bound is one of them, so something always remains.
        """
        lower, upper = self.sequence.bounds(points)
        if self.minimise:
            return np.asarray(lower <= upper.min())
        return np.asarray(upper >= lower.max())

    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """See :class:`Policy`."""
        assert isinstance(space, Finite)  # the constructor refuses boxes
        remaining = self._remaining
        if space is not self.domain:
            remaining = self._may_be_best(space.points)

        def choose_one(turn: Turn) -> int:
            free = self.available(space, turn.taken)
            # With once=True all that may be best can be used up; then the others are looked at.
            allowed = free & remaining if (free & remaining).any() else free
            variances = Variance(turn.sequence).values(space.points)
            return int(np.argmax(np.where(allowed, variances, -np.inf)))

        return choose_in_turn(self, space, count, choose_one)

    def settings(self) -> dict[str, Any]:
        """See :class:`Policy`."""
        return {
            "rounds": self._rounds,
            "length": self._length,
            "end": self._end,
            "remaining": np.flatnonzero(self._remaining).tolist(),
        }

    def restore(self, settings: dict[str, Any]) -> None:
        """See :class:`Policy`."""
        self._rounds, self._length = settings["rounds"], settings["length"]
        self._end = settings["end"]
        self._remaining[:] = False
        self._remaining[settings["remaining"]] = True


def _next_length(rounds: int, length: int) -> int:
    """The length of the batch after one of this length, ceil(sqrt(T N)), in whole numbers."""
    return math.isqrt(rounds * length - 1) + 1
