"""KernelUCB: play the action with the largest upper confidence bound (Alg. 1 of the paper)."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from typing import Any

import numpy as np

from kernelbounds.arrays import Array, brief
from kernelbounds.bandits.branch_and_bound import BranchAndBound
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.maximisers import Ascent, Grid, Maximiser
from kernelbounds.bandits.policy import Policy, believe
from kernelbounds.bandits.records import Suggestion
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence

MAXIMISERS: dict[str, Any] = {"Ascent": Ascent, "Grid": Grid, "BranchAndBound": BranchAndBound}


class KernelUCB(Policy):
    """Optimism in the face of uncertainty: x_t maximises the upper bound on f*.

    Whatever bound the sequence has; with :class:`CMM` this is Kernel CMM-UCB, with DMM and AMM
    likewise, with AY it is AY-GP-UCB and with IGP it is IGP-UCB. As long as the bounds hold, the
    regret of each round is at most upper(x_t) - lower(x_t).

    Parameters
    ----------
    sequence : ConfidenceSequence
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
        if isinstance(domain, Box) and not self._surface(self._sign).smooth:
            warnings.warn(
                f"the gradient in x of {sequence.bound} with the kernel {sequence.kernel} is not "
                "known; the box is searched without derivatives, slower and less precisely.",
                stacklevel=2,
            )

    def _choose(self, space: Domain, count: int) -> list[Suggestion]:
        return (
            self._choose_finite(space, count)
            if isinstance(space, Finite)
            else self._choose_box(space, count)
        )

    def _choose_finite(self, space: Finite, count: int) -> list[Suggestion]:
        own = space is self.domain and self._tracker is not None
        if own:
            limit, first = self._highest(space)
        else:
            limit, first, opposite = self._surface(self._sign).largest(space.points)
            if count == 1 and not self._pending:
                best = (-limit, opposite) if self.minimise else (-opposite, limit)
                return [Suggestion(space.points[first].copy(), *best, self._sign * limit, first)]
        tracker = copy.deepcopy(self._tracker)
        believed = self._believing(self._pending) if self._pending else self.sequence
        found: list[Suggestion] = []
        while True:
            free = self._available(space, [one.x for one in found])
            if own and tracker is not None:
                index = first
                if believed is not self.sequence or not free[first]:
                    index = tracker.maximum(believed.surface(self._sign), free)[1]
                found.append(self._suggestion(space, space.points[index], limit, index))
            else:
                optimistic = believed.surface(self._sign).values(space.points)
                index = int(np.where(free, optimistic, -np.inf).argmax())
                found.append(self._suggestion(space, space.points[index], limit, index))
            if len(found) == count:
                return found
            if believed is self.sequence:
                believed = copy.deepcopy(believed)
            believe(believed, found[-1].x)

    def _choose_box(self, space: Box, count: int) -> list[Suggestion]:
        first = self.maximiser.maximise(self._surface(self._sign), space, self._starts(space))
        chosen: list[Array] = []
        if not self._pending:
            chosen.append(first.x)
        if len(chosen) < count:
            believed = self._believing([*self._pending, *chosen])
            while len(chosen) < count:
                surface = believed.surface(self._sign)
                x = self.maximiser.maximise(surface, space, self._starts(space)).x
                chosen.append(x)
                if len(chosen) < count:
                    believe(believed, x)
        return [self._suggestion(space, x, first.ceiling, None) for x in chosen]

    def _starts(self, space: Box) -> Array:
        """The points observed with the best outcomes, a few of them."""
        order = np.argsort(-self._sign * self.sequence.outcomes, kind="stable")[:32]
        points = self.sequence.points.reshape(-1, space.dim)[order]
        return np.clip(points, space.lower, space.upper)

    def _settings(self) -> dict[str, Any]:
        name = type(self.maximiser).__name__
        if MAXIMISERS.get(name) is not type(self.maximiser):
            raise InputError(f"a maximiser of your own cannot be saved: {self.maximiser!r}.")
        return {"maximiser": {"name": name, **dataclasses.asdict(self.maximiser)}}  # type: ignore[call-overload]

    def _restore(self, settings: dict[str, Any]) -> None:
        chosen = dict(settings["maximiser"])
        self.maximiser = MAXIMISERS[chosen.pop("name")](**chosen)
