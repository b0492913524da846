"""The baseline: actions drawn uniformly at random."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from kernelbounds.arrays import brief
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.domains import Domain, Finite
from kernelbounds.bandits.policy import Policy
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence


class RandomPolicy(Policy):
    """A policy that plays random actions, and certifies as well as the bounds allow.

    Parameters
    ----------
    sequence : ConfidenceSequence
        The sequence is not copied, and :meth:`tell` updates it.
    domain : Box or Finite, optional
        The actions to choose from, uniformly; None if each :meth:`ask` brings its own.
    minimise : bool
        Whether small values of f* are wanted, which matters for certificates only.
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed; None is the seed 0.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> policy = kb.RandomPolicy(seq, kb.Finite([[0.0], [0.5], [1.0]]), rng=1)
    >>> policy.tell(policy.ask(), 0.4)
    >>> len(seq)
    1
    """

    def __init__(
        self,
        sequence: ConfidenceSequence,
        domain: Domain | None = None,
        *,
        minimise: bool = False,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        super().__init__(sequence, domain, minimise=minimise)
        try:
            self._rng = np.random.default_rng(0 if rng is None else rng)
        except (TypeError, ValueError):
            raise InputError(
                f"rng must be a numpy.random.Generator or a seed, got {brief(rng)}."
            ) from None
        self.told()

    def told(self) -> None:
        """See :class:`Policy`."""
        # The next draws depend on this key alone, so that asking changes nothing.
        self._key = int(self._rng.integers(2**63))

    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """See :class:`Policy`."""
        rng = np.random.default_rng([self._key, len(self.ledger.pending)])
        limit = math.inf
        if isinstance(space, Finite) and space is self.domain:
            limit = self.limit(space)
        found: list[Suggestion] = []
        for _ in range(count):
            if isinstance(space, Finite):
                free = self.available(space, [one.x for one in found])
                index = int(rng.choice(np.flatnonzero(free)))
                found.append(self.suggestion(space, space.points[index], limit, index))
            else:
                found.append(self.suggestion(space, space.scaled(rng.random(space.dim)), limit))
        return found

    def settings(self) -> dict[str, Any]:
        """See :class:`Policy`."""
        state = json.dumps(self._rng.bit_generator.state, default=np.ndarray.tolist)
        return {"rng": json.loads(state), "key": self._key}

    def restore(self, settings: dict[str, Any]) -> None:
        """See :class:`Policy`."""
        state = settings["rng"]
        generator = getattr(np.random, state["bit_generator"])()
        generator.state = state
        self._rng, self._key = np.random.Generator(generator), settings["key"]
