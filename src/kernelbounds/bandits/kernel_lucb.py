"""KernelLUCB: ask for what decides which action is best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.certificates import Negated, Suggestion
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.kernel_ucb import believe, believing
from kernelbounds.bandits.maximisers import Ascent
from kernelbounds.bandits.policy import Policy
from kernelbounds.bounds import DualBound
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.surface import Clipped


class KernelLUCB(Policy):
    """Pure exploration: the more uncertain of the best action and of its strongest challenger.

    The best action z has the largest lower bound, and the challenger x the largest upper bound on
    f*(x) - f*(z), which is what a certificate says of z. The one with the wider interval is asked
    for. Certificates close in sooner than with :class:`KernelUCB`, and what is earned on the way
    does not count. (For arms without a kernel the rule is known as LUCB.)

    Parameters
    ----------
    sequence : ConfidenceSequence
        Its bound is one of the package's, or another :class:`~kernelbounds.bounds.DualBound`.
    domain : Box or Finite, optional
        None: each :meth:`ask` brings its own actions.
    minimise : bool
        Whether small values of f* are wanted.

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
        limit = self.limit(space) if isinstance(space, Finite) else np.inf
        believed, found = self.sequence, list[Suggestion]()
        if self.ledger.pending:
            believed = believing(believed, self.ledger.pending)
        while True:
            taken = [one.x for one in found]
            if isinstance(space, Finite):
                index = self._of_finite(believed, space, taken)
                found.append(self.suggestion(space, space.points[index], limit, index))
            else:
                found.append(self.suggestion(space, self._of_box(believed, space), limit))
            if len(found) == count:
                return found
            if believed is self.sequence:
                believed = believing(believed, [])
            believe(believed, found[-1].x)

    def _of_finite(self, believed: ConfidenceSequence, space: Finite, taken: list[Array]) -> int:
        points = space.points
        lower, upper = believed.bounds(points)
        best = int(np.argmax(lower if self.sign == 1 else -upper))
        difference = replace(believed.surface(self.sign), reference=points[best])
        free = self.available(space, taken)
        if not free[best]:  # it was tried already, and may be tried once only
            values = np.where(free, difference.values(points), -np.inf)
            return int(values.argmax())
        challengers = np.flatnonzero(free)
        others = points[challengers]
        challenger = challengers[difference.largest(others, difference.trivial(others)).at]
        width = upper - lower
        return int(best if width[best] >= width[challenger] else challenger)

    def _of_box(self, believed: ConfidenceSequence, box: Box) -> Array:
        tried = box.clipped(believed.landmarks)
        best = Ascent().climb(Negated(Clipped(believed.surface(-self.sign))), box, tried).x
        difference = replace(believed.surface(self.sign), reference=best)
        challenger = Ascent().climb(difference, box, tried).x
        lower, upper = believed.bounds(np.array([best, challenger]))
        return best if upper[0] - lower[0] >= upper[1] - lower[1] else challenger
