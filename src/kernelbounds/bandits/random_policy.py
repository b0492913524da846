"""The baseline: actions drawn uniformly at random."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelbounds.arrays import Array, brief
from kernelbounds.bandits.certificates import Suggestion
from kernelbounds.bandits.domains import Domain, Finite
from kernelbounds.bandits.policy import Policy
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence


class RandomPolicy(Policy):
    """Plays actions uniformly at random, and certifies as well as the bounds allow.

    Parameters
    ----------
    sequence : ConfidenceSequence
        It gets the outcomes, and certifies.
    domain : Box or Finite, optional
        None: each :meth:`ask` brings its own actions.
    minimise : bool
        Matters for certificates only.
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
        # What is drawn next depends on this key alone, so that asking changes nothing.
        self._key = int(self._rng.integers(2**63))

    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """See :class:`Policy`."""
        rng = np.random.default_rng([self._key, len(self.ledger.pending)])
        limit = math.inf
        if isinstance(space, Finite) and space is self.domain:
            limit = self.limit(space)
        found: list[Suggestion] = []
        for _ in range(count):
            x, index = self._draw(space, [one.x for one in found], rng)
            found.append(self.suggestion(space, x, limit, index))
        return found

    def _draw(
        self, space: Domain, taken: list[Array], rng: np.random.Generator
    ) -> tuple[Array, int | None]:
        if isinstance(space, Finite):
            index = int(rng.choice(np.flatnonzero(self.available(space, taken))))
            return space.points[index], index
        return space.scaled(rng.random(space.dim)), None

    def settings(self) -> dict[str, Any]:
        """See :class:`Policy`."""
        return {"rng": _plain(self._rng.bit_generator.state), "key": self._key}

    def restore(self, settings: dict[str, Any]) -> None:
        """See :class:`Policy`."""
        state = settings["rng"]
        generator = getattr(np.random, state["bit_generator"])()
        generator.state = _unplain(state, like=generator.state)
        self._rng, self._key = np.random.Generator(generator), settings["key"]


def _plain(state: Any) -> Any:
    """The state of a generator with lists for arrays, ready for JSON."""
    if isinstance(state, Mapping):
        return {key: _plain(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.generic) else state


def _unplain(state: Any, like: Any) -> Any:
    if isinstance(state, dict):
        return {key: _unplain(value, like[key]) for key, value in state.items()}
    return np.array(state, dtype=like.dtype) if isinstance(like, np.ndarray) else state
