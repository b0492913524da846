"""Simulated runs of policies on problems with a known truth, such as the paper's (Sec. 7).

Their baseline is :class:`RandomPolicy`, which draws actions uniformly at random.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, as_generator, as_scalar, as_vector, as_whole, brief
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.batches import Turn, choose_in_turn
from kernelbounds.bandits.domains import Domain, Finite
from kernelbounds.bandits.policy import Policy
from kernelbounds.bounds import Bound
from kernelbounds.display import late_progress
from kernelbounds.errors import InputError, KernelBoundsError
from kernelbounds.kernels import checked_kernel, mixture_scale
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence


@dataclass(frozen=True)
class SyntheticProblem:
    """The problem to maximise f* over a fresh set of random actions in [0, 1]^d each round.

    Attributes
    ----------
    function : RKHSFunction
        The truth, f*.
    noise_scale : float
        Standard deviation of the Gaussian noise.
    actions_per_round : int
        How many actions there are to choose from.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> problem = kb.SyntheticProblem.draw(RBF(0.5), dim=2, rng=np.random.default_rng(0), norm=5.0)
    >>> round(problem.function.norm, 6)
    5.0
    """

    function: RKHSFunction
    noise_scale: float = 0.1
    actions_per_round: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.function, RKHSFunction):
            raise InputError(
                f"function must be a kernelbounds.RKHSFunction, got {brief(self.function)}."
            )
        noise_scale = as_scalar(self.noise_scale, "noise_scale", least=0.0)
        count = as_whole(self.actions_per_round, "actions_per_round", least=1)
        object.__setattr__(self, "noise_scale", noise_scale)
        object.__setattr__(self, "actions_per_round", count)

    @classmethod
    def draw(
        cls,
        kernel: Kernel,
        dim: int,
        rng: np.random.Generator,
        *,
        norm: float = 10.0,
        noise_scale: float = 0.1,
        centres: int = 20,
        actions_per_round: int = 100,
    ) -> SyntheticProblem:
        """Draw a problem: f* has random centres in [0, 1]^d, normal weights, and this norm."""
        as_generator(rng, "rng")
        d, n = as_whole(dim, "dim", least=1), as_whole(centres, "centres", least=1)
        function = RKHSFunction(checked_kernel(kernel), rng.random((n, d)), rng.standard_normal(n))
        return cls(function.rescaled(norm), noise_scale, actions_per_round)

    def actions(self, rng: np.random.Generator) -> Array:
        """The actions of one round, (n, d)."""
        return as_generator(rng, "rng").random(
            (self.actions_per_round, self.function.centres.shape[1])
        )

    def noise(self, rng: np.random.Generator) -> float:
        """The noise of one outcome."""
        return float(self.noise_scale * as_generator(rng, "rng").standard_normal())

    def values(self, points: Array) -> Array:
        """The values of f* at points (m, d)."""
        return self.function(points)

    def sequence(
        self,
        bound: Bound | None = None,
        *,
        rounds: int = 1000,
        delta: float = 0.01,
        norm_bound: float | None = None,
        noise_scale: float | None = None,
    ) -> ConfidenceSequence:
        """Make a confidence sequence with the paper's settings: the true B and sigma, and its c."""
        kernel, dim = self.function.kernel, self.function.centres.shape[1]
        return ConfidenceSequence(
            kernel,
            self.function.norm * (1 + 1e-12) if norm_bound is None else norm_bound,
            self.noise_scale if noise_scale is None else noise_scale,
            delta,
            mixture_scale(kernel, dim, rounds),
            bound,
        )


@runtime_checkable
class BanditProblem(Protocol):
    """A bandit problem with a known truth."""

    def actions(self, rng: np.random.Generator) -> Array:
        """The actions of one round, (n, d)."""

    def noise(self, rng: np.random.Generator) -> float:
        """The noise of one outcome."""

    def values(self, points: Array) -> Array:
        """The values of f* at points (m, d)."""


@dataclass(frozen=True)
class Trace:
    """The record of a run of :func:`simulate`, round by round; arrays of shape (rounds,).

    Attributes
    ----------
    x : array of shape (rounds, d)
        The actions.
    index : array
        The place of each among the actions of its round.
    outcome : array
        The noisy rewards.
    value : array
        f* at the actions, which the policy does not see.
    regret : array
        f* at the best action of the round minus ``value``; ``value`` minus f* at the best action
        when minimising.
    lower, upper : arrays
        Bounds on ``value``, from before the outcome.
    seconds : array
        The time spent in ``ask`` and ``tell``.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> problem = kb.SyntheticProblem.draw(RBF(0.5), dim=1, rng=np.random.default_rng(0), norm=5.0)
    >>> policy = kb.KernelUCB(problem.sequence(kb.AMM(), rounds=5))
    >>> trace = kb.simulate(policy, problem, rounds=5, rng=np.random.default_rng(1))
    >>> bool((trace.lower <= trace.value).all()), bool((trace.regret >= 0).all())
    (True, True)
    """

    x: Array
    index: Array
    outcome: Array
    value: Array
    regret: Array
    lower: Array
    upper: Array
    seconds: Array

    def table(self) -> dict[str, Array]:
        """Return the columns by name, as ``pandas.DataFrame`` takes them."""
        columns: dict[str, Array] = {"round": np.arange(1.0, len(self.outcome) + 1)}
        columns |= {f"x{i}": column for i, column in enumerate(self.x.T)}
        names = ("index", "outcome", "value", "regret", "lower", "upper", "seconds")
        columns |= {name: getattr(self, name) for name in names}
        columns["cumulative_regret"] = np.cumsum(self.regret)
        return columns


def simulate(
    policy: Policy, problem: BanditProblem, rounds: int, rng: np.random.Generator
) -> Trace:
    """Play a problem for some rounds.

    Actions and noise come from two generators spawned from ``rng``, so that policies that are
    given equal generators meet the same actions and the same noise, whatever they choose.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> problem = kb.SyntheticProblem.draw(RBF(0.5), dim=1, rng=np.random.default_rng(0), norm=5.0)
    >>> policy = kb.KernelUCB(problem.sequence(kb.AMM(), rounds=5))
    >>> trace = kb.simulate(policy, problem, rounds=5, rng=np.random.default_rng(1))
    >>> len(trace.table()["cumulative_regret"])
    5
    """
    if not isinstance(policy, Policy):
        raise InputError(
            "policy must be a KernelUCB, a RandomPolicy, or an object of a subclass of "
            f"kernelbounds.bandits.Policy, got {brief(policy)}."
        )
    if isinstance(problem, type) or not isinstance(problem, BanditProblem):
        raise InputError(
            "problem must be a SyntheticProblem, or have its methods actions, noise and values, "
            f"got {brief(problem)}."
        )
    as_generator(rng, "rng")
    total = as_whole(rounds, "rounds", least=1)
    of_actions, of_noise = rng.spawn(2)
    rows, points = [], []
    sign = -1 if policy.minimise else 1
    with late_progress("simulating", total) as report:
        for done in range(total):
            actions = problem.actions(of_actions)
            values = as_vector(problem.values(actions), "values", len(actions))
            start = time.perf_counter()
            found = policy.ask(actions)
            asked = time.perf_counter() - start
            if found.index is None:
                raise KernelBoundsError(
                    f"{type(policy).__name__} does not say which of the actions it chose; pass "
                    "the index to suggestion()."
                )
            noise = as_scalar(problem.noise(of_noise), "noise")
            outcome = float(values[found.index]) + noise
            start = time.perf_counter()
            policy.tell(found.x, outcome)
            seconds = asked + time.perf_counter() - start
            value = values[found.index]
            regret = (sign * values).max() - sign * value
            points.append(found.x)
            rows.append((found.index, outcome, value, regret, found.lower, found.upper, seconds))
            report(f"round {done + 1} of {total}", done + 1)
    return Trace(np.array(points), *np.array(rows).T)


class RandomPolicy(Policy):
    """A policy that plays random actions, and certifies as well as the bounds allow.

    Parameters
    ----------
    sequence, domain, minimise
        See :class:`KernelUCB`; ``minimise`` matters for certificates only.
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
        rng = np.random.default_rng([self._key, len(self._ledger.pending)])

        def choose_one(turn: Turn) -> int | Array:
            if isinstance(space, Finite):
                return int(rng.choice(np.flatnonzero(self.available(space, turn.taken))))
            return np.asarray(space.scaled(rng.random((1, space.dim)))[0])

        # A limit over fresh actions would need bounds at all of them, and is not computed.
        limit = None if space is self.domain else math.inf
        return choose_in_turn(self, space, count, choose_one, limit)

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
