"""KernelUCB: play the action with the largest upper confidence bound (Alg. 1 of the paper)."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from typing import Any

import numpy as np

from kernelbounds.arrays import Array, brief
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.batches import Turn, choose_in_turn
from kernelbounds.bandits.branch_and_bound import BranchAndBound, Grid, most_over
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.maximisers import Ascent, Maximiser
from kernelbounds.bandits.policy import Policy
from kernelbounds.bandits.tracker import Tracker
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence

MAXIMISERS: dict[str, Any] = {"Ascent": Ascent, "Grid": Grid, "BranchAndBound": BranchAndBound}
LARGEST_NUMBER_OF_STARTS = 32  # points observed at which the search of a box may begin


class KernelUCB(Policy):
    """Optimism in the face of uncertainty: x_t maximises the upper bound on f*.

    The bound is that of the sequence: with :class:`CMM` this is Kernel CMM-UCB, with DMM and AMM
    likewise, with AY it is AY-GP-UCB and with IGP it is IGP-UCB. The bound that is maximised is
    the method's own, also where it exceeds the trivial one, B sqrt(k(x,x)), to which the bounds
    reported are limited; ties go to the wider interval. As long as the bounds hold, the regret of
    each round is at most limit - lower(x_t), see :class:`Suggestion`.

    Parameters
    ----------
    sequence : ConfidenceSequence
        The sequence is not copied, and :meth:`tell` updates it. It may hold observations already.
    domain : Box or Finite, optional
        The actions to choose from; None if each :meth:`ask` brings its own.
    minimise : bool
        Whether small values of f* are wanted: x_t then minimises the lower bound.
    maximiser : Ascent, BranchAndBound or Grid, optional
        The search of a box; None is ``Ascent()``.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> ucb = KernelUCB(seq, domain=Box([0.0], [1.0]))
    >>> for _ in range(5):
    ...     suggestion = ucb.ask()
    ...     ucb.tell(suggestion.x, float(np.sin(3 * suggestion.x[0])))
    >>> best = ucb.certificate()
    >>> bool(best.lower <= best.upper <= best.max_upper)
    True
    """

    def __init__(
        self,
        sequence: ConfidenceSequence,
        domain: Domain | None = None,
        *,
        minimise: bool = False,
        maximiser: Maximiser | None = None,
    ) -> None:
        super().__init__(sequence, domain, minimise=minimise)
        self.maximiser: Maximiser = Ascent() if maximiser is None else maximiser
        if isinstance(maximiser, type) or not callable(getattr(self.maximiser, "maximise", None)):
            raise InputError(
                "maximiser must be one of Ascent(), BranchAndBound(), Grid(), "
                f"got {brief(maximiser)}."
            )
        if isinstance(domain, Box) and not self.surface(self.sign).smooth:
            warnings.warn(
                f"the gradient in x of {sequence.bound} with the kernel {sequence.kernel} is not "
                "known; the box is searched without derivatives, slower and less precisely.",
                stacklevel=2,
            )

    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """See :class:`Policy`."""
        if isinstance(space, Box):
            return self._choose_from_box(space, count)
        # Both bounds at once are cheaper, unless the set is followed from round to round.
        followed = space is self.domain and self.surface(self.sign).stage is not None
        if count == 1 and not (followed or space.once or self._ledger.pending):
            return [self._largest(space)]
        limit, tracker = self.limit(space), Tracker(space.points)
        if space is self.domain and self._tracker is not None:
            tracker = copy.deepcopy(self._tracker)

        def choose_one(turn: Turn) -> int:
            free = self.available(space, turn.taken)
            return tracker.largest(turn.sequence.surface(self.sign), free)[1]

        return choose_in_turn(self, space, count, choose_one, limit)

    def _largest(self, space: Finite) -> Suggestion:
        """Choose among all actions of a set by both bounds at once."""
        surface = self.surface(self.sign)
        value, index, opposite = surface.largest(space.points)
        place = space.points[index : index + 1]
        optimistic, other = (
            float(self.surface(sign).a_priori.clip(place, np.array([end]))[0])
            for sign, end in ((self.sign, value), (-self.sign, opposite))
        )
        lower, upper = (-optimistic, other) if self.minimise else (-other, optimistic)
        limit = min(value, float(surface.a_priori.most(space.points).max()))
        return Suggestion(place[0].copy(), lower, upper, self.sign * limit, index)

    def _choose_from_box(self, space: Box, count: int) -> list[Suggestion]:
        # A search may begin at the points observed with the best outcomes, where these are kept.
        starts = space.clipped(self.sequence.landmarks)
        if self.sequence.approximation is None:
            outcomes = self.sign * self.sequence.outcomes
            starts = starts[np.argsort(-outcomes, kind="stable")[:LARGEST_NUMBER_OF_STARTS]]
        surface = self.surface(self.sign)
        first = self.maximiser.maximise(surface, space, starts)
        limit = first.ceiling
        if np.isfinite(limit):
            limit = min(limit, most_over(surface, space)[0])

        def choose_one(turn: Turn) -> Array:
            if not turn.waiting:
                return first.x
            return self.maximiser.maximise(turn.sequence.surface(self.sign), space, starts).x

        return choose_in_turn(self, space, count, choose_one, limit)

    def settings(self) -> dict[str, Any]:
        """See :class:`Policy`."""
        name = type(self.maximiser).__name__
        if MAXIMISERS.get(name) is not type(self.maximiser):
            raise InputError(f"a maximiser of your own cannot be saved: {self.maximiser!r}.")
        return {"maximiser": {"name": name, **dataclasses.asdict(self.maximiser)}}  # type: ignore[call-overload]

    def restore(self, settings: dict[str, Any]) -> None:
        """See :class:`Policy`."""
        chosen = dict(settings["maximiser"])
        self.maximiser = MAXIMISERS[chosen.pop("name")](**chosen)
