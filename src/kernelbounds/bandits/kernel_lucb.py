"""KernelLUCB: ask for the action that decides which one is best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.batches import Turn, choose_in_turn
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.maximisers import Ascent, LowerBound
from kernelbounds.bandits.policy import Policy
from kernelbounds.bounds import DualBound
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence


class KernelLUCB(Policy):
    """Pure exploration: play the best action or its strongest challenger, the more uncertain one.

    The best action z has the largest lower bound, and the challenger x the largest upper bound on
    f*(x) - f*(z), which is what a certificate says of z. The one with the wider interval is asked
    for. Certificates close in sooner than with :class:`KernelUCB`, and what is earned on the way
    does not count. (For arms without a kernel the rule is known as LUCB.)

    Parameters
    ----------
    sequence : ConfidenceSequence
        A sequence whose bound is a :class:`~kernelbounds.bounds.DualBound`, as the package's are.
    domain, minimise
        See :class:`KernelUCB`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> policy = KernelLUCB(seq, domain=Finite(np.linspace(0, 1, 20)[:, None]))
    >>> history = policy.run(lambda x: float(np.sin(3 * x[0])), rounds=30)
    >>> policy.certificate().regret < 0.5
    True
    """

    def __init__(
        self, sequence: ConfidenceSequence, domain: Domain | None = None, *, minimise: bool = False
    ) -> None:
        super().__init__(sequence, domain, minimise=minimise)
        if not isinstance(sequence.bound, DualBound):
            raise InputError(
                f"KernelLUCB compares actions by bounds on differences, and {sequence.bound!r} "
                "bounds values only; use KernelUCB."
            )

    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """See :class:`Policy`."""

        def choose_one(turn: Turn) -> int | Array:
            if isinstance(space, Box):
                return self._of_box(turn.sequence, space)
            return self._of_finite(turn.sequence, space, self.available(space, turn.taken))

        return choose_in_turn(self, space, count, choose_one)

    def _of_finite(
        self, imagined: ConfidenceSequence, space: Finite, free: NDArray[np.bool_]
    ) -> int:
        """Choose the index of one of the actions of a finite set that are free."""
        points = space.points
        lower, upper = imagined.bounds(points)
        best = int(np.argmax(lower if self.sign == 1 else -upper))
        difference = replace(imagined.surface(self.sign), reference=points[best])
        if not free[best]:  # the best action may be tried only once, and was
            values = np.where(free, difference.values(points), -np.inf)
            return int(values.argmax())
        challengers = np.flatnonzero(free)
        challenger = challengers[difference.largest(points[challengers]).at]
        width = upper - lower
        return int(best if width[best] >= width[challenger] else challenger)

    def _of_box(self, imagined: ConfidenceSequence, box: Box) -> Array:
        """Choose an action of a box."""
        tried = box.clipped(imagined.landmarks)
        best = Ascent().maximise(LowerBound(imagined.surface(-self.sign)), box, tried).x
        difference = replace(imagined.surface(self.sign), reference=best)
        challenger = Ascent().maximise(difference, box, tried).x
        lower, upper = imagined.bounds(np.array([best, challenger]))
        return best if upper[0] - lower[0] >= upper[1] - lower[1] else challenger
