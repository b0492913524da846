"""KernelUCB: play the action with the largest upper confidence bound (Alg. 1 of the paper).

Outcomes that are not known yet, believed to be in the middle of their bounds.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelbounds.arrays import Array, brief
from kernelbounds.bandits.certificates import Suggestion
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.maximisers import Ascent, BranchAndBound, Grid, Maximiser, most_over
from kernelbounds.bandits.policy import Policy
from kernelbounds.bandits.tracker import Tracker
from kernelbounds.bounds import CMM
from kernelbounds.errors import EmptyConfidenceSetError, InputError
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


MAXIMISERS: dict[str, Any] = {"Ascent": Ascent, "Grid": Grid, "BranchAndBound": BranchAndBound}


class KernelUCB(Policy):
    """Optimism in the face of uncertainty: x_t maximises the upper bound on f*.

    Whatever bound the sequence has; with :class:`CMM` this is Kernel CMM-UCB, with DMM and AMM
    likewise, with AY it is AY-GP-UCB and with IGP it is IGP-UCB. The bound that is maximised is
    the method's own, also where it exceeds the trivial one, B sqrt(k(x,x)), to which the bounds
    reported are limited; ties go to the wider interval. As long as the bounds hold, the regret of
    each round is at most limit - lower(x_t), see :class:`Suggestion`.

    Parameters
    ----------
    sequence : ConfidenceSequence
        It is used as it is and updated by :meth:`tell`. It may hold observations already.
    domain : Box or Finite, optional
        None: each :meth:`ask` brings its own actions.
    minimise : bool
        Whether small values of f* are wanted: x_t then minimises the lower bound.
    maximiser : Ascent, BranchAndBound or Grid, optional
        How to search a box; None is ``Ascent()``.

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
        return (
            self._choose_finite(space, count)
            if isinstance(space, Finite)
            else self._choose_box(space, count)
        )

    def _choose_finite(self, space: Finite, count: int) -> list[Suggestion]:
        # Of a set that is not followed from round to round both bounds are had at one go.
        followed = space is self.domain and self.surface(self.sign).stage is not None
        if count == 1 and not (followed or space.once or self.ledger.pending):
            return [self._largest(space)]
        limit, tracker = self.limit(space), Tracker(space.points)
        if space is self.domain and self.tracker is not None:
            tracker = copy.deepcopy(self.tracker)
        believed = self.sequence
        if self.ledger.pending:
            believed = believing(believed, self.ledger.pending)
        found: list[Suggestion] = []
        while True:
            free = self.available(space, [one.x for one in found])
            index = tracker.largest(believed.surface(self.sign), free)[1]
            found.append(self.suggestion(space, space.points[index], limit, index))
            if len(found) == count:
                return found
            if believed is self.sequence:
                believed = believing(believed, [])
            believe(believed, found[-1].x)

    def _largest(self, space: Finite) -> Suggestion:
        """The first choice among all actions of a set, at one go."""
        surface = self.surface(self.sign)
        trivial = surface.trivial(space.points)
        value, index, opposite = surface.largest(space.points, trivial)
        place, width = space.points[index : index + 1], trivial[index : index + 1]
        optimistic, other = (
            float(self.surface(sign).limited(place, np.array([end]), width)[0])
            for sign, end in ((self.sign, value), (-self.sign, opposite))
        )
        lower, upper = (-optimistic, other) if self.minimise else (-other, optimistic)
        limit = min(value, float(surface.most(space.points, trivial).max()))
        return Suggestion(place[0].copy(), lower, upper, self.sign * limit, index)

    def _choose_box(self, space: Box, count: int) -> list[Suggestion]:
        surface = self.surface(self.sign)
        first = self.maximiser.maximise(surface, space, self._starts(space))
        limit = first.ceiling
        if np.isfinite(limit):
            limit = min(limit, most_over(surface, space)[0])
        chosen: list[Array] = [] if self.ledger.pending else [first.x]
        if len(chosen) < count:
            believed = believing(self.sequence, [*self.ledger.pending, *chosen])
            while len(chosen) < count:
                surface = believed.surface(self.sign)
                chosen.append(self.maximiser.maximise(surface, space, self._starts(space)).x)
                if len(chosen) < count:
                    believe(believed, chosen[-1])
        return [self.suggestion(space, x, limit) for x in chosen]

    def _starts(self, space: Box) -> Array:
        """The points observed with the best outcomes, a few of them, where outcomes are kept."""
        points = space.clipped(self.sequence.landmarks)
        if not self.sequence.known.base.keeps_observations:
            return points
        return points[np.argsort(-self.sign * self.sequence.outcomes, kind="stable")[:32]]

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
