"""What users hand to a study, outcomes and tables of old runs, and what it hands back to them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import as_floats, as_scalar, as_vector, as_whole, brief
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import about, at_most, interval
from kernelbounds.errors import InputError, did_you_mean
from kernelbounds.io import files
from kernelbounds.problem import Problem
from kernelbounds.problem.runs import Runs
from kernelbounds.study.database import shown
from kernelbounds.study.study_file import Note, Outcome, StoredTrial, Told


@dataclass(frozen=True)
class Trial:
    """Settings to be tried at the bench, from :meth:`Study.ask`.

    Attributes
    ----------
    number : int
        The number by which its outcome is told.
    values : dict
        The settings by the names of the inputs, in their units; the names of levels of categories.
    estimate : float
        An estimate of the true output there, from what was known when it was asked for.
    lower, upper : float
        Bounds on it, from the same.
    gain : float
        By how much the output there may at most be better than what was sure then: than the best
        lower bound at a setting observed (the best upper bound when minimising). Of a logarithmic
        output by which share, 0.1 for 1.1 times as good.
    purpose, why : str
        What it was asked for, see :meth:`Study.ask`, and in a sentence why these settings; empty
        for settings that the user chose.
    state : str
        "pending", "told" or "dropped".
    outcome : float, (successes, tries) or None
        What was told of it.
    ran : dict or None
        The settings at which that was measured, which need not be those asked for.
    asked, told : str or None
        When it was asked for, and when its outcome was told, in UTC.
    notes : tuple of :class:`Note`
        What was written down on it.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> trial = study.ask()
    >>> trial.number, list(trial.values), trial.lower < trial.estimate < trial.upper
    (1, ['speed'], True)
    >>> told = study.tell(trial, 63.1)
    """

    number: int
    values: dict[str, Any]
    estimate: float
    lower: float
    upper: float
    gain: float
    purpose: str = ""
    why: str = ""
    # A trial is the same trial when it was told.
    state: str = field(default="pending", compare=False)
    outcome: float | tuple[int, int] | None = field(default=None, compare=False)
    ran: dict[str, Any] | None = field(default=None, compare=False)
    asked: str | None = field(default=None, compare=False)
    told: str | None = field(default=None, compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return (
            f"Trial({self.number}: {self._settings}, output about {about(self.estimate)}, in "
            f"{interval(self.lower, self.upper)}, gain <= {at_most(self.gain)})"
        )

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        return notebook.card(
            f"Trial {self.number}",
            [
                ("try", self._settings),
                *[("why", self.why)][: bool(self.why)],
                (
                    "output there",
                    f"about {about(self.estimate)}, in {interval(self.lower, self.upper)}",
                ),
                ("better than what is sure", f"by at most {at_most(self.gain)}"),
            ],
        )

    @property
    def _settings(self) -> str:
        return ", ".join(
            f"{name}={value if isinstance(value, str) else f'{value:.10g}'}"
            for name, value in self.values.items()
        )

    def as_data(self) -> dict[str, Any]:
        """Return the attributes as plain data for JSON; what is not known becomes None."""
        data = dataclasses.asdict(self) | {"notes": [one._asdict() for one in self.notes]}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in data.items()
        }


@dataclass(frozen=True)
class Promising:
    """The settings with the best estimate, which need not be proved to be good.

    They are the ``most_promising`` of a :class:`Status`: what one would use today.

    Attributes
    ----------
    values : dict
        The settings by the names of the inputs, in their units.
    estimate : float
        An estimate of the true output there, :meth:`ConfidenceSequence.estimate`. It carries no
        guarantee.
    lower, upper : float
        Bounds on the true output there, which do carry one.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["batches=1:9:integer"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> told = study.tell({"batches": 4}, 63.1)
    >>> found = study.status(seconds=0.1).most_promising
    >>> list(found.values), found.lower < found.estimate < found.upper
    (['batches'], True)
    """

    values: dict[str, Any]
    estimate: float
    lower: float
    upper: float

    def as_data(self) -> dict[str, Any]:
        """Return the attributes as plain data for JSON, with the settings as ``named``."""
        data = dataclasses.asdict(self)
        return {"named": data.pop("values")} | data


def trials_of(
    problem: Problem,
    stored: Sequence[StoredTrial],
    outcomes: Sequence[Outcome],
    notes: Sequence[Note],
) -> list[Trial]:
    """Make trials from what is in the file."""
    told = {one.trial: one for one in outcomes}
    written: dict[int, tuple[Note, ...]] = {}
    for note in notes:
        written[note.trial] = (*written.get(note.trial, ()), note)
    found = []
    for one in stored:
        estimate, lower, upper, gain = (
            math.nan if value is None else value
            for value in (one.estimate, one.lower, one.upper, one.gain)
        )
        trial = Trial(
            one.number, problem.inputs.named(one.point), estimate, lower, upper, gain,
            one.purpose or "", one.why or "", state=one.state, asked=one.asked,
            notes=written.get(one.number, ()),
        )  # fmt: skip
        if (got := told.get(one.number)) is not None:
            trial = dataclasses.replace(
                trial, outcome=got.told, ran=problem.inputs.named(got.point), told=got.time
            )
        found.append(trial)
    return found


def checked_point(problem: Problem, given: Any) -> tuple[float, ...]:
    """Return one point in the user's units, from a dict or a sequence, within the ranges."""
    if isinstance(given, Mapping):
        check_names(problem, given)
        for one in problem.inputs:
            if not one.levels:
                as_scalar(given[one.name], one.name)
    elif np.shape(np.asarray(given, dtype=object)) != (problem.dim,):
        raise InputError(
            f"a point has one value for each of {', '.join(problem.names)}, got {brief(given)}."
        )
    return tuple(problem.inputs.checked_points(given, place=lambda _: "")[0].tolist())


def check_names(problem: Problem, given: Mapping[str, Any], also: Sequence[str] = ()) -> None:
    """Raise where there is a name that the problem does not have, or where one is missing."""
    known = (*problem.names, *also)
    for name in given:
        if name not in known:
            raise InputError(
                f"there is no {brief(name)} in this study{did_you_mean(str(name), known)}; it has "
                f"{', '.join(known)}."
            )
    missing = [name for name in known if name not in given]
    if missing:
        raise InputError(f"a value of {' and of '.join(missing)} is missing.")


def number_of(trial: Any) -> int:
    """Return the number of a trial, from the trial or its number."""
    return trial.number if isinstance(trial, Trial) else as_whole(trial, "trial", least=1)


def telling(problem: Problem, point: Any, value: Any, trial: Any, key: Any) -> Outcome:
    """Make one outcome ready for the file: of a trial, or at a point, which may settle a trial."""
    number = 0 if trial is None else number_of(trial)
    if isinstance(point, Trial):
        if number not in (0, point.number):
            raise InputError(f"the outcome of trial {point.number} is not that of {number}.")
        number, point = point.number, point.values
    if key is not None and (not isinstance(key, str) or not key.strip()):
        raise InputError(f"key must be text, got {brief(key)}.")
    where, tries = checked_point(problem, point), None
    if problem.counts is None:
        as_scalar(value, problem.output.name)
    rates, _ = problem.scaled_outcomes([value], lambda _: "")
    measured = float(value) if problem.counts is None else float(rates[0])
    if problem.counts is not None:
        tries = int(value[1])
    return Outcome(where, measured, number, key, tries=tries)


def tellings(problem: Problem, points: Any, values: Any, keys: Any) -> list[Outcome]:
    """Make outcomes ready for the file: points in a list, an array, a dict or a data frame."""
    listed = list(points) if isinstance(points, list | tuple) else None
    if listed is None or not all(isinstance(one, Mapping | Trial) for one in listed):
        listed = problem.inputs.checked_points(points).tolist()
    if problem.counts is None:
        outcomes = as_vector(values, problem.output.name, len(listed)).tolist()
    else:
        outcomes = [tuple(one) for one in as_floats(values, "values").tolist()]
        if len(outcomes) != len(listed):
            raise InputError(f"{len(outcomes)} outcomes were given for {len(listed)} points.")
    names = [None] * len(listed) if keys is None else list(keys)
    if len(names) != len(listed):
        raise InputError(f"keys must be {len(listed)}, one for each outcome, got {len(names)}.")
    return [
        telling(problem, point, value, None, key)
        for point, value, key in zip(listed, outcomes, names, strict=True)
    ]


@dataclass(frozen=True)
class OldRuns:
    """A table of old runs in their order, of which a study may know the first rows.

    A repeat may well have the outcome of the run before it, at the same settings. So rows are known
    by their numbers in a table and never by what is in them: to leave a row out because of its
    outcome would be a selection by outcomes, which voids the guarantee. What is in the rows is
    compared all the same, and where the comparison leaves a doubt nothing is added and the user is
    asked.

    A table is known by its ``name`` when it is imported again. Where none is given, that of a CSV
    file is its path from the folder of the study, so that the two may be moved together, and
    columns in memory have none.
    """

    problem: Problem
    runs: Runs
    name: str | None

    @classmethod
    def of(cls, problem: Problem, table: Any, study: Path | str, name: str | None) -> OldRuns:
        """Read a table from a CSV file, a dict of columns or a data frame."""
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise InputError(f"name must be text, got {brief(name)}.")
        runs = Runs.read(problem, table, name)
        if name is None and isinstance(table, str | PathLike):
            name = name_from(study, files.as_path(table))
        return cls(problem, runs, name)

    @cached_property
    def rows(self) -> list[Outcome]:
        """The runs as outcomes that may be told."""
        tries: list[int | None] = [None] * len(self.runs.outcomes)
        if self.problem.counts is not None:
            tries = self.runs.measured[:, 1].astype(int).tolist()
        both = zip(self.runs.points.tolist(), self.runs.outcomes.tolist(), tries, strict=True)
        return [
            Outcome(tuple(point), value, source=self.name, row=number, tries=n)
            for number, (point, value, n) in enumerate(both, start=1)
        ]

    def to_tell(self, there: list[Outcome], skip: int | None) -> list[Told | Outcome]:
        """Return the rows that are new, after those that were imported from this table before.

        ``skip`` is the number of rows at the beginning that are not new, where the user has said
        so; then nothing is compared.
        """
        if skip is not None:
            if as_whole(skip, "skip", least=0) > len(self.rows):
                raise InputError(f"skip is {skip}, but the table has {len(self.rows)} rows.")
            return list(self.rows[skip:])
        known = self._imported(there)
        self._check_unchanged(known)
        again = [Told(one.trial, True) for one in known]
        new = self.rows[(known[-1].row or 0) if known else 0 :]
        ours = {one.id for one in known}
        self._check_new(new, [one for one in there if one.id not in ours])
        return [*again, *new]

    def _imported(self, there: list[Outcome]) -> list[Outcome]:
        """Return what was imported from this table, since its rows were last counted from 1."""
        found: list[Outcome] = []
        for one in there:
            if self.name is not None and one.source == self.name:
                if found and (one.row or 0) <= (found[-1].row or 0):
                    found = []
                found.append(one)
        return found

    def _check_unchanged(self, known: list[Outcome]) -> None:
        """Raise where the table does not begin with the rows that were imported from it."""
        for one in known:
            at = (one.row or 0) - 1
            now = self.rows[at] if at < len(self.rows) else None
            if now is None or (now.point, now.told) != (one.point, one.told):
                where = f"row {at + 1} of" if now is None else f"{self.runs.place(at)} of"
                says = "is not there any more" if now is None else f"is now {self._said(now)}"
                raise InputError(
                    f"{where} {shown(self.name or '')} is in the study as trial {one.trial}, "
                    f"{self._said(one)}, and {says}; nothing was changed. A table may grow at its "
                    "end only: put the row back. If it was wrong, correct trial "
                    f"{one.trial} (study correct), too, and import the table again. If this is "
                    "another table of new runs, or its first rows need no comparison, say with "
                    "skip (--skip) how many of its first rows are in the study already."
                )

    def _check_new(self, new: list[Outcome], others: list[Outcome]) -> None:
        """Raise where a row may be in the study already, told or from another table."""
        trials = {(one.point, one.told): one.trial for one in reversed(others)}
        equal = [(one.point, one.told) in trials for one in new]
        if not any(equal):
            return
        start, first = len(self.rows) - len(new), equal.index(True)
        leading = equal.index(False) if False in equal else len(equal)
        seems = f"{start + leading}, as it seems, or " if leading else ""
        raise InputError(
            f"{self.runs.place(start + first)} of the table, {self._said(new[first])}, is equal to "
            f"trial {trials[new[first].point, new[first].told]}; nothing was changed. It may be "
            "the same run, or another one with the same outcome. Say with skip (--skip) how many "
            "rows at the beginning of the table are in the study already: "
            f"{seems}{start} if all {'others' if start else 'of them'} are new runs."
        )

    def _said(self, one: Outcome) -> str:
        return f"{self.problem.inputs.settings_text(one.point)} {told_text(self.problem, one.told)}"


def told_text(problem: Problem, told: float | tuple[int, int]) -> str:
    """Write an outcome by the names of what was measured: ``yield=63.1``, ``hits=7 tries=10``."""
    values = told if isinstance(told, tuple) else (told,)
    names = (f'"{name}"' if " " in name else name for name in problem.measured)
    both = zip(names, values, strict=True)
    return " ".join(f"{name}={value:g}" for name, value in both)


def name_from(study: Path | str, file: Path) -> str:
    """Return the path of a file from the folder of a study, so that both may be moved together."""
    path = os.path.realpath(file)
    if isinstance(study, Path):
        with suppress(ValueError):  # There is no such path between two drives of Windows.
            path = os.path.relpath(path, os.path.dirname(os.path.realpath(study)))
    return Path(path).as_posix()
