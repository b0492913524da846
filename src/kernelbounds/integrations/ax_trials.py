"""The trials of an Ax experiment as those of a problem, and what is refused.

Everything is read from the experiment, so that it may be saved, loaded and gone on with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.parameter import (
    ChoiceParameter,
    DerivedParameter,
    FixedParameter,
    Parameter,
    ParameterType,
    RangeParameter,
)
from ax.core.search_space import SearchSpace
from ax.core.trial import Trial as AxTrial
from ax.core.trial_status import TrialStatus

from kernelbounds.errors import InputError
from kernelbounds.integrations.outside_trials import (
    COMPLETE,
    FAILED,
    RUNNING,
    STOPPED,
    OutsideTrial,
)
from kernelbounds.problem import Input, Problem
from kernelbounds.study.trial import Outcome


def trials_of(experiment: Experiment, data: Data) -> tuple[list[OutsideTrial], bool]:
    """Return the trials of an experiment, by their numbers, and whether it is minimised."""
    found = []
    outcomes = _outcomes(experiment, data)
    derived = {
        name
        for name, one in experiment.search_space.parameters.items()
        if isinstance(one, DerivedParameter)
    }
    for number, one in sorted(experiment.trials.items()):
        if not isinstance(one, AxTrial):
            raise InputError(
                f"trial {number} is a batch of several arms, and kernelbounds takes trials of one; "
                "use client.get_next_trials, or Trial and not BatchTrial."
            )
        if one.arm is None or one.status == TrialStatus.STALE:
            continue  # These were never run.
        params = {k: v for k, v in one.arm.parameters.items() if k not in derived}
        value = float(outcomes[number].mean) if number in outcomes else math.nan
        state = _state(one.status, number in outcomes)
        found.append(OutsideTrial(number, state, params, value, one.time_completed))
    return found, bool(experiment.optimization_config.objective.minimize)


def _state(status: TrialStatus, has_data: bool) -> str:
    if status == TrialStatus.COMPLETED:
        return COMPLETE if has_data else FAILED
    if status == TrialStatus.EARLY_STOPPED or (status == TrialStatus.ABANDONED and has_data):
        return STOPPED
    return FAILED if status in (TrialStatus.ABANDONED, TrialStatus.FAILED) else RUNNING


def _outcomes(experiment: Experiment, data: Data) -> dict[int, Any]:
    """Return the last row of the objective's data for each trial, by its number."""
    config = experiment.optimization_config
    if config is None:
        raise InputError("the experiment has no objective; call client.configure_optimization.")
    if not config.objective.is_single_objective:
        raise InputError(
            f"the objective {config.objective.expression!r} has several metrics, and kernelbounds "
            "bounds one function; report what you want as one metric."
        )
    if config.outcome_constraints:
        raise InputError(
            f"there are outcome constraints, {config.outcome_constraints}, and kernelbounds has no "
            "policy or certificate for constrained experiments; leave out outcome_constraints."
        )
    (metric,) = config.objective.metric_names
    rows = data.df.itertuples() if len(data.df) else ()
    return {int(one.trial_index): one for one in rows if one.metric_name == metric}


def refuse_misfit(problem: Problem, space: SearchSpace) -> None:
    """Raise where a problem is not one of this search space."""
    if space.is_hierarchical:
        raise InputError(
            "the search space is conditional, and kernelbounds bounds functions of all inputs; use "
            "one experiment for each branch."
        )
    if space.parameter_constraints:
        raise InputError(
            f"there are parameter constraints, {space.parameter_constraints}, and kernelbounds "
            "searches whole ranges; leave out parameter_constraints, or use parameters that need "
            "none, such as shares."
        )
    for name in space.tunable_parameters:
        if name not in problem.inputs.names:
            raise InputError(
                f"the parameter {name!r} is no input of the problem; state it as an input, as "
                "problem_of does, or give it one value only."
            )
    for one in problem.inputs:
        parameter = space.parameters.get(one.name)
        if not _is_within(one, parameter):
            raise InputError(
                f"the problem has {one.text}, and the search space has {parameter or 'nothing'} of "
                "that name; state the input as it is there, as problem_of does."
            )


def _is_within(one: Input, parameter: Parameter | None) -> bool:
    """Tell whether a parameter has all values of an input, or choices to which they are moved."""
    if isinstance(parameter, ChoiceParameter):
        if one.levels:
            return set(one.levels) <= set(map(str, parameter.values))
        numbers = parameter.values if parameter.is_numeric else [math.nan]
        return bool(min(numbers) <= one.low and one.high <= max(numbers))
    if isinstance(parameter, RangeParameter) and not one.levels:
        return bool(parameter.lower <= one.low and one.high <= parameter.upper)
    return False


def as_params(
    named: Mapping[str, float | str], space: SearchSpace, *, move: bool = True
) -> dict[str, Any]:
    """Return settings of a problem as all parameters of a search space that it fits.

    ``move`` says whether numbers are moved to the nearest choice. In a certificate they are not,
    because bounds are for the settings as they are.
    """
    found = {
        name: one.value for name, one in space.parameters.items() if isinstance(one, FixedParameter)
    }
    for name, value in named.items():
        one = space.parameters[name]
        if isinstance(value, str):
            found[name] = next(choice for choice in one.values if str(choice) == value)
        elif move and isinstance(one, ChoiceParameter):
            found[name] = min(one.values, key=lambda choice: abs(choice - value))
        elif isinstance(one, RangeParameter) and one.parameter_type is ParameterType.INT:
            found[name] = round(value)
        else:
            found[name] = float(value)
    for name, one in space.parameters.items():
        if isinstance(one, DerivedParameter):
            found[name] = one.compute(found)
    return {name: found[name] for name in space.parameters}


def notes_of(
    rows: Sequence[Outcome], experiment: Experiment, data: Data, problem: Problem
) -> dict[str, str]:
    """Say what the guarantee depends on that only Ax knows, in a sentence each, by its kind."""
    outcomes, noise, notes = _outcomes(experiment, data), problem.stated_noise, {}
    used = {one.trial: outcomes[one.trial] for one in rows}
    for number, one in used.items():
        relative = one.sem / one.mean if problem.output.log else one.sem
        if noise.scale is not None and relative > noise.scale:
            notes["standard errors"] = (
                f"trial {number} has a standard error of {one.sem:g}, above the noise of the "
                f"problem, {noise.text()}; standard errors are not used, so state a noise that "
                "covers them."
            )
            break
    # Data without a progression have the step nan, which is not equal to itself.
    if len({str(getattr(one, "step", None)) for one in used.values()}) > 1:
        notes["steps"] = (
            "trials were completed at different progressions, which is right only if how far a "
            "trial went does not depend on its outcomes."
        )
    return notes
