"""Runs: ask, try and tell, round after round."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelbounds.arrays import as_flag, as_outcome, as_scalar, as_whole, brief
from kernelbounds.bandits import saving
from kernelbounds.bandits.domains import Box
from kernelbounds.errors import InputError
from kernelbounds.progress import late_progress

if TYPE_CHECKING:
    from kernelbounds.bandits.policy import Policy


def run(
    policy: Policy,
    experiment: Callable[[Any], float],
    rounds: int,
    *,
    batch: int,
    named: bool,
    stop_when_regret_below: float | None,
    save_to: str | PathLike[str] | None,
) -> None:
    """See :meth:`~kernelbounds.bandits.Policy.run`."""
    total, size = as_whole(rounds, "rounds", least=1), as_whole(batch, "batch", least=1)
    if not callable(experiment):
        raise InputError(f"experiment must be a function of an action, got {brief(experiment)}.")
    if as_flag(named, "named") and not (isinstance(policy.domain, Box) and policy.domain.names):
        raise InputError("named=True needs a Box with names as domain.")
    if save_to is not None:
        saving.check(policy, save_to)
    enough = stop_when_regret_below
    if enough is not None:
        enough = as_scalar(enough, "stop_when_regret_below", above=0.0)
    if enough is not None and len(policy.sequence) and policy.is_good_enough(enough):
        if save_to is not None:  # a run that has nothing left to do leaves its file, too
            policy.save(save_to)
        return
    done = 0
    with late_progress("running", total) as report:
        while done < total:
            found = policy.ask(n=min(size, total - done))
            tried = [dict(one.named) if named else one.x.copy() for one in found]
            outcomes = [
                as_outcome(experiment(action), "the outcome of an experiment") for action in tried
            ]
            policy.tell(np.array([one.x for one in found]), outcomes)
            done += len(found)
            if save_to is not None:
                policy.save(save_to)
            report(f"round {done} of {total}", done)
            if enough is not None and policy.is_good_enough(enough):
                break
