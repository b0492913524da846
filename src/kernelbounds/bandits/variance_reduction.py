"""VarianceReduction: look where the variance is largest, whatever the outcomes say."""

from __future__ import annotations

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.batches import Turn, choose_in_turn
from kernelbounds.bandits.domains import Box, Domain
from kernelbounds.bandits.maximisers import Ascent
from kernelbounds.bandits.policy import Policy
from kernelbounds.sequence import ConfidenceSequence


class Variance:
    """The variance of ridge regression as a function of x, which no outcome changes.

    The ridge is sigma^2/c, with the scale that settings are chosen for where sigma is unknown, and
    parts of f* have equal shares: neither depends on outcomes. Without data it is k(x, x). A scan,
    and a few steps without gradients, place its maximum well enough for a choice.
    """

    def __init__(self, sequence: ConfidenceSequence) -> None:
        self._known = known = sequence.known.with_fixed_shares()
        scale = known.chosen_for.noise_scale or known.chosen_for.misspecification
        ridge = scale**2 / known.chosen_for.mixture_scale if scale else known.reference_ridge
        self._ridges = np.array([ridge])

    def values(self, points: Array) -> Array:
        """The variances at points, (m,)."""
        if not self._known.count:
            return self._known.prior(points)
        return np.asarray(self._known.predict(points, self._ridges).variance[0])


class VarianceReduction(Policy):
    """Maximum variance reduction: x_t has the largest variance, and outcomes do not matter.

    This is the MVR of Vakili et al. (2021), whose simple regret is of the best possible order. Its
    points depend on the kernel, on sigma and on the points before them alone. So they are a fixed
    design: if the number of rounds is fixed as well, and nobody stops by looking,
    :class:`~kernelbounds.FixedDesign` holds for the data beside the bounds that hold always.

    The paper recommends the point with the largest mean; :meth:`certificate` recommends the one
    with the largest lower bound, and says how far from optimal it can be.

    Parameters
    ----------
    sequence, domain, minimise
        See :class:`KernelUCB`; ``minimise`` matters for certificates only.

    Examples
    --------
    >>> from kernelbounds import Finite
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> policy = VarianceReduction(seq, Finite([[0.0], [0.1], [1.0]]))
    >>> policy.tell([0.0], 0.3)
    >>> policy.ask().index
    2
    """

    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """See :class:`Policy`."""

        def choose_one(turn: Turn) -> int | Array:
            variance = Variance(turn.sequence)
            if isinstance(space, Box):
                return Ascent().maximise(variance, space, np.empty((0, space.dim))).x
            free = self.available(space, turn.taken)
            return int(np.argmax(np.where(free, variance.values(space.points), -np.inf)))

        return choose_in_turn(self, space, count, choose_one)
