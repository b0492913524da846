"""Studies of Optuna as plain trials, and settings of a problem as Optuna's parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

from kernelbounds.errors import InputError
from kernelbounds.integrations import outside_trials as states
from kernelbounds.integrations.outside_trials import OutsideTrial, Reading

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
    return dict(study.get_trials(deepcopy=False)[known.rows[-1].number].distributions)


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
