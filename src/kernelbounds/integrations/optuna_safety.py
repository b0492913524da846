"""Constraints of an Optuna study, and the safe policy that chooses its parameters.

Optuna has a constraint hold where its value is at most 0 (``trial.set_constraint``). Here the value
is an outcome of an unknown function g of the inputs, which has a problem of its own, and
:class:`~kernelbounds.SafeUCB` asks only for parameters at which g <= 0 is known, or which the user
declares to be safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution

from kernelbounds.arrays import LARGEST, Array, brief
from kernelbounds.bandits import Finite, SafeUCB
from kernelbounds.bandits.policy import key_of
from kernelbounds.errors import InputError
from kernelbounds.integrations.optuna_trials import NUMBERS, fitted
from kernelbounds.integrations.outside_trials import OutsideTrial, Reading, point_of
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.study import checked_problem
from kernelbounds.study.trials import Point


@dataclass(frozen=True)
class Safety:
    """The constraints of a study, by name, and points that are known to be safe."""

    problems: Mapping[str, Problem]
    seed: Sequence[Point]

    @classmethod
    def checked(cls, problem: Problem, constraints: Any, safe: Any) -> Safety | None:
        """Make it from what a user passed beside a problem; None without constraints."""
        if constraints is None:
            if safe is not None:
                raise InputError("safe parameters need constraints, by which others are unsafe.")
            return None
        if not isinstance(constraints, Mapping) or not constraints:
            raise InputError(
                f"constraints must be a dict of names and problems, got {brief(constraints)}."
            )
        checked_problem(problem)
        for name, one in constraints.items():
            _check_constraint(name, one, problem)
        points = [] if safe is None else [_seed(problem, one) for one in _listed(safe)]
        return cls({name: one.settled() for name, one in constraints.items()}, points)

    def sequences(self) -> list[ConfidenceSequence]:
        """Make an empty sequence for each constraint."""
        return [one.sequence() for one in self.problems.values()]

    def values(self, trial: OutsideTrial) -> tuple[float, ...] | None:
        """Return the values of all constraints in a trial; None where no function has them."""
        missing = self.problems.keys() ^ trial.constraints.keys()
        if missing:
            raise InputError(
                f"trial {trial.number} must have the constraints {', '.join(self.problems)}, and "
                f"has {', '.join(trial.constraints) or 'none'}; the objective must call "
                "trial.set_constraint for each before it returns."
            )
        found = tuple(float(trial.constraints[name]) for name in self.problems)
        return found if all(abs(one) <= LARGEST for one in found) else None

    def policy(self, known: Reading, distributions: Mapping[str, BaseDistribution]) -> SafeUCB:
        """Make the policy of a study from the sequences of its trials."""
        search, problem = known.search, known.search.problem
        constraints = {
            name: (own, None, 0.0) for name, own in zip(self.problems, known.others, strict=True)
        }
        return SafeUCB(
            known.sequence, search.domain, constraints=constraints, minimise=search.minimise,
            seed=problem.scaled(self.seed) if self.seed else None,
            feasible=lambda unit: problem.scaled(_settings(problem, unit, distributions)),
        )  # fmt: skip

    def chosen(
        self,
        known: Reading,
        pending: Sequence[Point],
        distributions: Mapping[str, BaseDistribution],
    ) -> Point:
        """Choose settings beside pending ones, of which the bounds say that they are safe."""
        problem, policy = known.search.problem, self.policy(known, distributions)
        if pending:
            policy.begin(problem.scaled(pending))
        if isinstance(policy.domain, Finite):
            settings = _settings(problem, policy.domain.points, distributions)
            every = np.concatenate([np.array(self.seed).reshape(-1, problem.dim), settings])
            x = policy.ask(np.unique(problem.scaled(every), axis=0)).x
        else:
            x = policy.ask().x
        seeds = {key_of(unit): point for unit, point in self._scaled_seeds(problem)}
        if (seed := seeds.get(key_of(x))) is not None:
            return seed
        settings = _settings(problem, x[None], distributions)
        # The last digit may be another one than that of what was checked.
        unit = problem.scaled(settings)
        if not np.array_equal(unit[0], x) and not policy.is_safe(unit)[0]:
            raise InputError(
                f"{problem.named(settings[0])} cannot be set exactly enough to be known as safe."
            )
        return tuple(settings[0].tolist())

    def _scaled_seeds(self, problem: Problem) -> list[tuple[Array, Point]]:
        return list(zip(problem.scaled(self.seed), self.seed, strict=True)) if self.seed else []


def _settings(
    problem: Problem, unit: Array, distributions: Mapping[str, BaseDistribution]
) -> Array:
    """Turn points of the unit cube into settings, at the steps of Optuna's distributions."""
    settings = problem.settable(unit)
    for at, one in enumerate(problem.inputs):
        known = distributions.get(one.name)
        if isinstance(known, NUMBERS) and not one.levels:
            settings[:, at] = [fitted(one.name, float(x), known) for x in settings[:, at]]
    return settings


def _check_constraint(name: Any, own: Any, problem: Problem) -> None:
    if not isinstance(name, str):
        raise InputError(f"a constraint needs a name that is a text, got {brief(name)}.")
    if not isinstance(own, Problem):
        raise InputError(
            f"the constraint {name!r} must be a kernelbounds.Problem of the values that the "
            f"objective sets, got {brief(own)}."
        )
    checked_problem(own)
    if own.inputs != problem.inputs:
        raise InputError(
            f"the problem of the constraint {name!r} must have the inputs of the objective's "
            f"({', '.join(one.text for one in problem.inputs)}), as problem.replace(output=...) "
            "has them."
        )
    if own.counts is not None or own.output.log:
        raise InputError(
            f"the constraint {name!r} is at most 0 where it holds, so that its output must be a "
            f"plain number, got {own.output.text}; state what exceeds the limit."
        )


def _listed(safe: Any) -> Sequence[Any]:
    if isinstance(safe, Mapping):
        return [safe]
    if not isinstance(safe, list | tuple):
        raise InputError(f"safe must be a list of parameters by name, got {brief(safe)}.")
    return safe


def _seed(problem: Problem, params: Any) -> Point:
    found = point_of(problem, params) if isinstance(params, Mapping) else None
    if found is None:
        raise InputError(
            f"safe parameters must be a dict with {', '.join(problem.names)} in their ranges, got "
            f"{brief(params)}."
        )
    return found
