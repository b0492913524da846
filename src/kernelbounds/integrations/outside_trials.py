"""The trials of another tool as observations of a problem, and what voids a guarantee.

The modules for Optuna and for Ax make a list of :class:`OutsideTrial`; all else is the same for
both.

A confidence sequence takes outcomes in one order. Each must be f*(x) plus noise that is
sub-Gaussian given all outcomes before it, and given that this trial is the next one. There are two
such orders:

``completion``
    Trials as they end. A trial's parameters were chosen from trials that had ended before it began,
    and these come before it. Which trial ends next must not depend on outcomes: run times may
    depend on the parameters, the queue and the machine. The clocks of all machines must agree.
``start``
    Trials by their numbers, as far as all before them have ended. Run times may depend on anything,
    and a trial that never ends holds up all that began after it.

With one worker both are the same.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from kernelbounds.arrays import LARGEST, brief
from kernelbounds.bandits import Certificate, SafeUCB
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.findings import Replay
from kernelbounds.study.revision import checked_problem
from kernelbounds.study.search import Search
from kernelbounds.study.trial import Outcome, Point

ORDERS = COMPLETION, START = ("completion", "start")
# A trial that was stopped had an outcome that somebody could see, and one that failed had none.
STATES = WAITING, RUNNING, COMPLETE, FAILED, STOPPED = (
    "waiting", "running", "complete", "failed", "stopped",
)  # fmt: skip


class OutsideTrial(NamedTuple):
    """A trial of another tool, as far as a guarantee depends on it."""

    number: int
    state: str
    params: Mapping[str, Any]
    value: float = math.nan
    datetime_complete: datetime | None = None
    constraints: Mapping[str, float] = MappingProxyType({})


class Ended(NamedTuple):
    """A trial that completed, and what of it can be used.

    Each of its point, outcome and constraints is None where no function of the inputs has it.
    """

    trial: OutsideTrial
    point: Point | None
    value: float | None
    constraints: tuple[float, ...] | None

    @property
    def counts(self) -> bool:
        """Whether the trial is in the sequence."""
        return None not in self[1:]


@dataclass(frozen=True)
class Reading:
    """What trials say at one moment.

    Attributes
    ----------
    search : Search
        The problem, and whether it is minimised.
    sequence : ConfidenceSequence
        The sequence of the rows.
    rows : list of Outcome
        The outcomes in their order, with the numbers of their trials.
    taken : dict
        Points by trial numbers that have no outcome, or none that counts: those of trials that run,
        failed or were stopped.
    void : dict
        What voids the guarantee, in a sentence each, by its kind.
    notes : dict
        What the guarantee depends on besides the problem, in the same form.
    others : list of ConfidenceSequence
        The sequences of constraints.
    """

    search: Search
    sequence: ConfidenceSequence
    rows: list[Outcome]
    taken: dict[int, Point]
    void: dict[str, str]
    notes: dict[str, str]
    others: list[ConfidenceSequence]


class Record:
    """The observations in trials, which are read anew each time and added to one sequence.

    Everything is in the trials, so that a worker that is killed loses nothing. Only what is new is
    added to the sequence, and where the trials do not go on from what was read before, as when they
    are those of another study, the sequence begins anew.

    ``constraints`` are settled problems by name, one for each value that trials have beside their
    outcome. Threads that share a record hold its ``lock`` while they use it.
    """

    def __init__(
        self,
        problem: Problem,
        order: str = COMPLETION,
        constraints: Mapping[str, Problem] = MappingProxyType({}),
    ) -> None:
        problem = checked_problem(problem)
        if problem.counts is not None:
            raise InputError(
                "there is one number for a trial, and this problem wants successes and tries; "
                "state the rate as a plain output, with its noise."
            )
        if order not in ORDERS:
            raise InputError(f"order must be one of {', '.join(ORDERS)}, got {brief(order)}.")
        self.problem, self.order, self.constraints = problem.settled(), order, dict(constraints)
        self._warned: set[str] = set()
        self._begin()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, and what can be read from the trials."""
        kept = ("problem", "order", "constraints", "_warned")
        return {name: vars(self)[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def _begin(self) -> None:
        """Set what is not in a pickle of the record, as before any trial was read."""
        self.lock = threading.Lock()
        self._search, self._replay = Search(self.problem, minimise=False), Replay(self.problem)
        self._others = [Replay(one) for one in self.constraints.values()]
        self._best: Certificate | None = None

    def read(self, trials: Sequence[OutsideTrial], minimise: bool) -> Reading:
        """Read all trials, by their numbers, and bring the sequence up to date."""
        for trial in trials:
            if trial.constraints and not self.constraints:
                raise InputError(
                    f"trial {trial.number} has constraints, of which nothing is known; pass a "
                    "problem for each, as constraints={name: problem}, or leave out set_constraint."
                )
        points = {one.number: point_of(self.problem, one.params) for one in trials}
        ended = [
            Ended(one, points[one.number], _outcome(one, self.problem), self._constraints_of(one))
            for one in in_order(trials, self.order)
        ]
        rows, limits = [], []
        for at in ended:
            if at.point is not None and at.value is not None and at.constraints is not None:
                rows.append(Outcome(at.point, at.value, at.trial.number))
                limits.append(at.constraints)
        before = self._replay.sequence
        sequence = self._replay.after(rows)
        others = [
            own.after([row._replace(value=one[i]) for row, one in zip(rows, limits, strict=True)])
            for i, own in enumerate(self._others)
        ]
        if sequence is not before or minimise != self._search.minimise:
            self._search, self._best = Search(self.problem, minimise), None
        taken = {
            one.number: point
            for one in trials
            if one.state in (RUNNING, FAILED, STOPPED) and (point := points[one.number]) is not None
        }
        void = _what_voids(trials, ended, self.problem)
        notes = _what_it_depends_on(trials, ended, self.order, self.problem)
        return Reading(self._search, sequence, rows, taken, void, notes, others)

    def _constraints_of(self, trial: OutsideTrial) -> tuple[float, ...] | None:
        """Return the values of all constraints in a trial; None where no function has them."""
        if self.constraints.keys() != trial.constraints.keys():
            raise InputError(
                f"trial {trial.number} must have the constraints {', '.join(self.constraints)}, "
                f"and has {', '.join(trial.constraints) or 'none'}; the objective must call "
                "trial.set_constraint for each before it returns."
            )
        found = tuple(float(trial.constraints[name]) for name in self.constraints)
        return found if all(abs(one) <= LARGEST for one in found) else None

    @property
    def assumed(self) -> str:
        """All that is assumed, as a text."""
        more = [f", {name} <= 0 with {one!r}" for name, one in self.constraints.items()]
        return repr(self.problem) + "".join(more)

    @property
    def delta(self) -> float:
        """The sum of the deltas of the problem and of all constraints."""
        return self.problem.delta + sum(one.delta for one in self.constraints.values())

    def certificate(
        self,
        known: Reading,
        seconds: float,
        aim: float | None = None,
        *,
        at_once: bool = True,
        policy: SafeUCB | None = None,
    ) -> dict[str, Any]:
        """Certify the best settings, as plain data, and warn once of all that should be known.

        With ``at_once=False`` little work is done where the regret is not as small as the aim. With
        constraints, ``policy`` is the safe one, whose certificate is among what satisfies them.
        """
        self.warn_once(known.void | known.notes)
        void, plain = list(known.void.values()), dict[str, Any]()
        if known.rows:
            try:
                found = self._certified(known, seconds, None if at_once else aim, policy)
                plain = {} if found is None else found.as_data()
            except EmptyConfidenceSetError as error:
                void.append(str(error))
                self.warn_once({"refuted": str(error)})
        regret = plain.get("regret")
        enough = regret is not None and aim is not None and regret <= aim
        return {
            "reached": enough and not void,
            "params": plain.get("named", {}),
            "regret": regret,
            "lower": plain.get("lower"),
            "upper": plain.get("upper"),
            "trials": len(known.rows),
            "confidence": 1 - self.delta,
            "void": void,
            "notes": list(known.notes.values()),
            "aim": aim,
            "problem": self.assumed,
        }

    def _certified(
        self, known: Reading, seconds: float, enough: float | None, policy: SafeUCB | None
    ) -> Certificate | None:
        """Certify the best settings, with little work where they are not good enough.

        With constraints there is nothing to certify while no settings are known to be safe.
        """
        search, sequence = known.search, known.sequence
        if policy is not None:
            if not policy.is_safe(policy.candidates()).any():
                return None
            found = search.in_users_units(policy.certificate(seconds=seconds))
        elif enough is None:
            found = search.certified(sequence, seconds)
        else:
            found = search.certified(sequence, seconds, enough=enough)
            if found.regret <= enough:
                found = search.certified(sequence, seconds)
        # Certificates of one sequence are all true at once, so that none is worse than before.
        self._best = search.with_the_past(found, [self._best] if self._best else [])
        return self._best

    def warn_once(self, said: Mapping[str, str]) -> None:
        """Warn of what was not warned of before, by its kind."""
        for kind, sentence in said.items():
            if kind not in self._warned:
                self._warned.add(kind)
                warnings.warn(sentence, UserWarning, stacklevel=3)


def point_of(problem: Problem, params: Mapping[str, Any]) -> Point | None:
    """Return parameters as a point of the problem; None where one is missing or out of range."""
    found = []
    for one in problem.inputs:
        given = params.get(one.name)
        if one.levels:
            level = str(given)
            if level not in one.levels:
                return None
            found.append(float(one.levels.index(level)))
        elif isinstance(given, int | float) and not isinstance(given, bool):
            found.append(float(given))
        else:
            return None
    columns = zip(problem.inputs, found, strict=True)
    outside = any(one.outside(np.array([value]))[0] for one, value in columns)
    return None if outside else tuple(found)


def in_order(trials: Sequence[OutsideTrial], order: str) -> list[OutsideTrial]:
    """Return the trials that completed, in one of the two orders."""
    if order == START:
        trials = list(takewhile(lambda one: one.state not in (WAITING, RUNNING), trials))
    ended = [one for one in trials if one.state == COMPLETE]
    if order == COMPLETION:
        ended.sort(key=lambda one: (one.datetime_complete, one.number))
    return ended


def _outcome(trial: OutsideTrial, problem: Problem) -> float | None:
    """Return the outcome of a trial that completed; None where no function has it."""
    possible = abs(trial.value) <= LARGEST and (trial.value > 0 or not problem.output.log)
    return trial.value if possible else None


def _what_voids(
    trials: Sequence[OutsideTrial], ended: Sequence[Ended], problem: Problem
) -> dict[str, str]:
    """Say what voids the guarantee, in a sentence each, by its kind."""
    void = {}
    if count := sum(one.state == STOPPED for one in trials):
        void["stopped"] = (
            f"{_counted(count)} pruned, stopped early or abandoned with data, and outcomes that "
            "are selected by what they look like have no guarantee; run all trials to their ends."
        )
    if impossible := [one.trial for one in ended if one.value is None]:
        void["impossible"] = (
            f"trial {impossible[0].number} has the outcome {impossible[0].value}, which "
            f"{problem.output.text} cannot have; decide in advance what such a run counts as, and "
            "report that."
        )
    if unlimited := [one.trial for one in ended if one.constraints is None]:
        void["impossible constraint"] = (
            f"trial {unlimited[0].number} has a constraint of an infinite value; decide in advance "
            "what such a run counts as, and set that."
        )
    used = [one.trial.params for one in ended if one.counts]
    for name in sorted({name for params in used for name in params} - set(problem.inputs.names)):
        # A parameter that some trials lack varies, too.
        if len({str(params[name]) if name in params else None for params in used}) > 1:
            void["varying"] = (
                f"the parameter {name!r} varies and is no input of the problem, so that outcomes "
                "are not a function of the inputs alone; state it as an input, or keep it constant."
            )
            break
    return void


def _what_it_depends_on(
    trials: Sequence[OutsideTrial], ended: Sequence[Ended], order: str, problem: Problem
) -> dict[str, str]:
    """Say what the guarantee depends on besides the problem, in a sentence each, by its kind."""
    notes = {}
    if count := sum(one.state == FAILED for one in trials):
        notes["failed"] = (
            f"{_counted(count)} left out for having failed, which is right only if no trial fails "
            "because of its outcome; otherwise decide in advance what a failure counts as, and "
            "report that."
        )
    if out := [one.trial for one in ended if one.point is None]:
        first, names = out[0], problem.inputs.names
        lacking = ", ".join(name for name in names if name not in first.params)
        has = ", ".join(first.params) or "no parameters"
        why = f"lacks {lacking} and has {has}" if lacking else f"has {brief(dict(first.params))}"
        notes["left out"] = (
            f"{_counted(len(out))} left out for lacking an input of the problem, or being out of "
            f"its ranges: trial {first.number} {why}; the guarantee is for the problem as stated."
        )
    # Trials that still run are overtaken, too, by those that began after them.
    used = [one.trial.number for one in ended if one.counts]
    overtaken = any(one.state == RUNNING and one.number < max(used, default=-1) for one in trials)
    overtaken |= used != sorted(used)
    if overtaken and order == COMPLETION:
        notes["overtaken"] = (
            "trials ended in another order than they began, which is right only if run times do "
            "not depend on outcomes; if they may, use order='start'."
        )
    return notes


def _counted(count: int) -> str:
    return "1 trial was" if count == 1 else f"{count} trials were"
