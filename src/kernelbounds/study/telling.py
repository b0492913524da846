"""What users tell a study: outcomes, corrections, tables of old runs, and notes."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import as_floats, as_scalar, as_vector, as_whole, brief
from kernelbounds.errors import InputError, did_you_mean
from kernelbounds.io import files
from kernelbounds.problem import Problem
from kernelbounds.problem.runs import Runs
from kernelbounds.study.database import shown
from kernelbounds.study.study_file import StudyFile
from kernelbounds.study.trial import Outcome, Point, Told, Trial


def checked_point(problem: Problem, given: Any) -> Point:
    """Return one point in the user's units, from a dict or a sequence, within the ranges."""
    if isinstance(given, Mapping):
        check_names(problem, given)
        for one in problem.inputs:
            if not one.levels:
                as_scalar(given[one.name], one.name)
    elif np.shape(np.asarray(given, dtype=object)) != (len(problem.inputs),):
        raise InputError(
            f"a point has one value for each of {', '.join(problem.inputs.names)}, got "
            f"{brief(given)}."
        )
    return tuple(problem.inputs.checked_points(given, lambda _: "")[0].tolist())


def check_names(problem: Problem, given: Mapping[str, Any], also: Sequence[str] = ()) -> None:
    """Raise where there is a name that the problem does not have, or where one is missing."""
    known = (*problem.inputs.names, *also)
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


def checked_outcome(
    problem: Problem, point: Any, value: Any, trial: Any = None, key: Any = None
) -> Outcome:
    """Make one outcome ready for the file: of a trial, or at a point, which may settle a trial."""
    number = 0 if trial is None else number_of(trial)
    if isinstance(point, Trial):
        if number not in (0, point.number):
            raise InputError(f"the outcome of trial {point.number} is not that of {number}.")
        number, point = point.number, point.values
    if key is not None and (not isinstance(key, str) or not key.strip()):
        raise InputError(f"key must be text, got {brief(key)}.")
    where = checked_point(problem, point)
    if problem.counts is None:
        as_scalar(value, problem.output.name)
    (scaled,), _ = problem.scaled_outcomes([value], lambda _: "")
    if problem.counts is None:
        return Outcome(where, float(value), number, key)
    return Outcome(where, float(scaled), number, key, tries=int(value[1]))


def checked_outcomes(problem: Problem, points: Any, values: Any, keys: Any) -> list[Outcome]:
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
        checked_outcome(problem, point, value, key=key)
        for point, value, key in zip(listed, outcomes, names, strict=True)
    ]


def checked_note(study: Path | str, text: Any, attach: Any) -> tuple[str, str | None]:
    """Return the text of a note, and the path of a file attached to it from that of the study."""
    if not isinstance(text, str):
        raise InputError(f"text must be text, got {brief(text)}.")
    words, path = " ".join(text.split()), None
    if attach is not None:
        file = files.as_path(attach)
        if not file.exists():
            raise InputError(f"there is no file {brief(str(attach))} to attach.")
        path = name_from(study, file)
    if not words and path is None:
        raise InputError("a note needs some text, or a file to attach.")
    return words, path


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
    rows: list[Outcome]

    @classmethod
    def read(cls, problem: Problem, table: Any, study: Path | str, name: str | None) -> OldRuns:
        """Read a table from a CSV file, a dict of columns or a data frame."""
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise InputError(f"name must be text, got {brief(name)}.")
        runs = Runs.read(problem, table, name)
        if name is None and isinstance(table, str | PathLike):
            name = name_from(study, files.as_path(table))
        rows = [
            Outcome(tuple(point), value, source=name, row=number)
            for number, (point, value) in enumerate(
                zip(runs.points.tolist(), runs.outcomes.tolist(), strict=True), start=1
            )
        ]
        if problem.counts is not None:
            tries = runs.measured[:, 1].tolist()
            rows = [one._replace(tries=int(n)) for one, n in zip(rows, tries, strict=True)]
        return cls(problem, runs, name, rows)

    def sorted_out(
        self, there: list[Outcome], skip: int | None
    ) -> tuple[list[Told], list[Outcome]]:
        """Return what was imported from this table before, and the rows that are new.

        ``there`` are the outcomes of the study. ``skip`` is the number of rows at the beginning
        that are not new, where the user has said so; then nothing is compared.
        """
        if skip is not None:
            if as_whole(skip, "skip", least=0) > len(self.rows):
                raise InputError(f"skip is {skip}, but the table has {len(self.rows)} rows.")
            return [], self.rows[skip:]
        known = self._imported(there)
        self._check_unchanged(known)
        new = self.rows[(known[-1].row or 0) if known else 0 :]
        ours = {one.id for one in known}
        self._check_new(new, [one for one in there if one.id not in ours])
        return [Told(one.trial, True) for one in known], new

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
            where, says = f"row {at + 1} of", "is not there any more"
            if at < len(self.rows):
                now = self.rows[at]
                if (now.point, now.told) == (one.point, one.told):
                    continue
                where, says = f"{self.runs.place(at)} of", f"is now {self._said(now)}"
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
        leading = [*equal, False].index(False)
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


def import_runs(
    store: StudyFile, problem: Problem, table: Any, skip: int | None, name: str | None
) -> list[Told]:
    """Add the rows of a table of old runs, see :meth:`Study.import_runs`."""
    old = OldRuns.read(problem, table, store.path, name)
    with store.transaction():
        again, new = old.sorted_out(store.outcomes, skip)
        return again + store.tell(new)


def may_be_export(path: Path, columns: Iterable[str]) -> bool:
    """Tell whether a file may be replaced by an export: none, an empty one, or an earlier export.

    An export is known by the names of its columns, with or without notes.
    """
    # As text, so that the header is read as it was written; it is no longer than this.
    begins = files.content_begins(path, 100_000).decode(errors="replace")
    header = next(csv.reader(begins.splitlines()[:1]), [])
    named, expected = (
        [one.strip() for one in names if one != "note"] for names in (header, columns)
    )
    return not begins or named == expected


def correct(store: StudyFile, problem: Problem, number: int, value: Any, point: Any) -> Told:
    """Correct the outcome of a trial, see :meth:`Study.correct`."""
    with store.transaction():
        old = store.outcome(number)
        new = checked_outcome(
            problem, old.point if point is None else point, old.told if value is None else value
        )
        if (new.point, new.told) == (old.point, old.told):
            return Told(number, again=True)
        store.undo(number)
        right = old._replace(point=new.point, value=new.value, tries=new.tries)
        return store.tell([right])[0]


def told_text(problem: Problem, told: float | tuple[int, int]) -> str:
    """Write an outcome by the names of what was measured: ``yield=63.1``, ``hits=7 tries=10``."""
    values = told if isinstance(told, tuple) else (told,)
    names = (f'"{name}"' if " " in name else name for name in problem.outcomes.names)
    return " ".join(f"{name}={value:g}" for name, value in zip(names, values, strict=True))


def name_from(study: Path | str, file: Path | str) -> str:
    """Return the path of a file from the folder of a study, so that both may be moved together.

    Studies that are in memory only have no folder, and keep their names.
    """
    if not isinstance(file, Path):
        return file
    path = os.path.realpath(file)
    if isinstance(study, Path):
        with suppress(ValueError):  # There is no such path between two drives of Windows.
            path = os.path.relpath(path, os.path.dirname(os.path.realpath(study)))
    return Path(path).as_posix()
