"""Studies of Optuna as plain trials, and settings of a problem as Optuna's parameters.

:class:`Safety` chooses parameters that are known to satisfy the constraints of a study.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

from kernelbounds.arrays import Array, brief
from kernelbounds.bandits import Finite, SafeUCB
from kernelbounds.errors import InputError
from kernelbounds.integrations import outside_trials as states
from kernelbounds.integrations.outside_trials import OutsideTrial, Reading, point_of
from kernelbounds.problem import Problem
from kernelbounds.study.revision import checked_problem
from kernelbounds.study.trial import Point

# Where a trial keeps the parameters that were chosen for it, until the objective asks for them.
PLAN = "kernelbounds:plan"
NUMBERS = FloatDistribution, IntDistribution
STATES = {
    TrialState.WAITING: states.WAITING,
    TrialState.RUNNING: states.RUNNING,
    TrialState.COMPLETE: states.COMPLETE,
    TrialState.FAIL: states.FAILED,
    TrialState.PRUNED: states.STOPPED,
}


def trials_of(study: optuna.Study) -> tuple[list[OutsideTrial], bool]:
    """Return the trials of a study, by their numbers, and whether it is minimised."""
    if len(study.directions) != 1:
        raise InputError(
            f"the study has {len(study.directions)} objectives, and kernelbounds bounds one "
            "function; use a study with one direction."
        )
    trials = sorted(study.get_trials(deepcopy=False), key=lambda one: one.number)
    found = []
    for one in trials:
        value = float(one.value or 0.0) if one.state == TrialState.COMPLETE else math.nan
        # A trial that runs has parameters that were chosen and not asked for yet.
        plan = {} if one.state.is_finished() else one.system_attrs.get(PLAN, {})
        found.append(
            OutsideTrial(
                one.number,
                STATES[one.state],
                {**plan, **one.params},
                value,
                one.datetime_complete,
                one.constraints,
            )
        )
    return found, study.direction == optuna.study.StudyDirection.MINIMIZE


def last_distributions(study: optuna.Study, known: Reading) -> dict[str, BaseDistribution]:
    """Return the distributions of the last trial that is in the sequence; none without one."""
    if not known.rows:
        return {}
    return dict(study.get_trials(deepcopy=False)[known.rows[-1].trial].distributions)


def as_params(
    named: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]
) -> dict[str, Any]:
    """Return settings of the problem as Optuna's parameters: whole numbers and choices.

    They are not moved to steps, because bounds are for the settings as they are.
    """
    found = dict(named)
    for name, distribution in distributions.items():
        if name in found and isinstance(distribution, CategoricalDistribution):
            found[name] = fitted(name, found[name], distribution)
        elif name in found and isinstance(distribution, IntDistribution):
            found[name] = round(found[name])
    return found


def fitted(name: str, value: float | str, distribution: BaseDistribution) -> Any:
    """Return the value of a distribution that is nearest to one of the problem."""
    if isinstance(distribution, CategoricalDistribution):
        for choice in distribution.choices:
            if str(choice) == str(value):
                return choice
    elif isinstance(distribution, NUMBERS) and not isinstance(value, str):
        low, high, step = distribution.low, distribution.high, distribution.step
        near = min(max(value, low), high)
        if step is not None:
            near = min(low + round((near - low) / step) * step, high)
        return int(near) if isinstance(distribution, IntDistribution) else float(near)
    raise InputError(
        f"the problem has {name} = {value}, which {distribution} has not; state the input as the "
        "objective suggests it, as problem_of does."
    )


@dataclass(frozen=True)
class Safety:
    """The constraints of a study, by name, and points that are known to be safe.

    Optuna has a constraint hold where its value is at most 0 (``trial.set_constraint``). Here the
    value is an outcome of an unknown function g of the inputs, which has a problem of its own, and
    :class:`~kernelbounds.SafeUCB` asks only for parameters at which g <= 0 is known, or which the
    user declares to be safe.
    """

    constraints: Mapping[str, Problem]
    seed: Sequence[Point]

    @classmethod
    def checked(cls, problem: Problem, constraints: Any, safe: Any) -> Safety:
        """Check the constraints and the safe parameters that a user passed beside a problem."""
        if constraints is None:
            if safe is not None:
                raise InputError("safe parameters need constraints, by which others are unsafe.")
            return cls({}, [])
        if not isinstance(constraints, Mapping) or not constraints:
            raise InputError(
                f"constraints must be a dict of names and problems, got {brief(constraints)}."
            )
        checked_problem(problem)
        for name, one in constraints.items():
            _check_constraint(name, one, problem)
        listed = [] if safe is None else [safe] if isinstance(safe, Mapping) else safe
        if not isinstance(listed, list | tuple):
            raise InputError(f"safe must be a list of parameters by name, got {brief(safe)}.")
        points = [_safe_point(problem, one) for one in listed]
        return cls({name: one.settled() for name, one in constraints.items()}, points)

    def policy(self, known: Reading, distributions: Mapping[str, BaseDistribution]) -> SafeUCB:
        """Make the policy of a study from the sequences of its trials."""
        search, problem = known.search, known.search.problem
        pairs = zip(self.constraints, known.others, strict=True)
        constraints = {name: (own, None, 0.0) for name, own in pairs}
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
            every = np.concatenate([np.array(self.seed).reshape(-1, len(problem.inputs)), settings])
            x = policy.ask(np.unique(problem.scaled(every), axis=0)).x
        else:
            x = policy.ask().x
        for seed in self.seed:
            if np.array_equal(problem.scaled([seed])[0], x):
                return seed
        settings = _settings(problem, x[None], distributions)
        # The last digit may be another one than that of what was checked.
        unit = problem.scaled(settings)
        if not np.array_equal(unit[0], x) and not policy.is_safe(unit)[0]:
            raise InputError(
                f"{problem.inputs.named(settings[0])} cannot be set exactly enough to be known as "
                "safe."
            )
        return tuple(settings[0].tolist())


def _settings(
    problem: Problem, unit: Array, distributions: Mapping[str, BaseDistribution]
) -> Array:
    """Turn points of the unit cube into settings, at the steps of Optuna's distributions."""
    settings = problem.inputs.settable(unit)
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


def _safe_point(problem: Problem, params: Any) -> Point:
    found = point_of(problem, params) if isinstance(params, Mapping) else None
    if found is None:
        raise InputError(
            f"safe parameters must be a dict with {', '.join(problem.inputs.names)} in their "
            f"ranges, got {brief(params)}."
        )
    return found
