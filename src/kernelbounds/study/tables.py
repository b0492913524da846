"""Tables of old runs, of which a study may know the first rows.

A repeat may well have the outcome of the run before it, at the same settings. So rows are known by
their numbers in a table and never by what is in them: to leave a row out because of its outcome
would be a selection by outcomes, which voids the guarantee. What is in the rows is compared all the
same, and where the comparison leaves a doubt nothing is added and the user is asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from kernelbounds.arrays import as_vector, as_whole, brief
from kernelbounds.errors import InputError
from kernelbounds.io import files
from kernelbounds.io.csv_table import read_csv
from kernelbounds.problem import Problem
from kernelbounds.study.database import shown
from kernelbounds.study.records import check_names, checked_rows, written
from kernelbounds.study.store import StoredOutcome, Telling, Told


@dataclass(frozen=True)
class Table:
    """Old runs in their order.

    A CSV file has a ``name``, by which it is known when it is imported again: its path from the
    folder of the study, so that the two may be moved together. Columns in memory have none.
    """

    problem: Problem
    rows: list[Telling]
    name: str | None
    lines: Sequence[int] | None  # of the file, for messages

    @classmethod
    def of(cls, problem: Problem, runs: Any, study: Path | str) -> Table:
        """From a CSV file, a dict of columns or a data frame."""
        names, name, lines = [*problem.names, problem.output.name], None, None
        if isinstance(runs, str | PathLike):
            table = read_csv(runs, names)
            columns: Any = table.columns
            name, lines = _name(files.as_path(runs), study), table.lines.tolist()
        elif isinstance(runs, Mapping) or hasattr(runs, "columns"):
            columns = {name: runs[name] for name in names if name in runs}
            check_names(problem, columns, [problem.output.name])
        else:
            raise InputError(f"runs must be a CSV file or columns by name, got {brief(runs)}.")
        points = checked_rows(problem, {name: columns[name] for name in problem.names}, lines)
        outcomes = as_vector(columns[problem.output.name], problem.output.name, len(points))
        rows = [
            Telling(tuple(point), value, source=name, row=at)
            for at, (point, value) in enumerate(
                zip(points.tolist(), outcomes.tolist(), strict=True), start=1
            )
        ]
        return cls(problem, rows, name, lines)

    def to_tell(self, there: list[StoredOutcome], skip: int | None) -> list[Told | Telling]:
        """The rows that are new, after those that were imported from this table before.

        ``skip`` is the number of rows at the beginning that are not new, where the user has said
        so; then nothing is compared.
        """
        if skip is not None:
            if as_whole(skip, "skip", least=0) > len(self.rows):
                raise InputError(f"skip is {skip}, and the table has {len(self.rows)} rows.")
            return list(self.rows[skip:])
        known = self._imported(there)
        self._check_unchanged(known)
        again = [Told(one.trial, True) for one in known]
        new = self.rows[(known[-1].row or 0) if known else 0 :]
        ours = {one.id for one in known}
        self._check_new(new, [one for one in there if one.id not in ours])
        return [*again, *new]

    def _imported(self, there: list[StoredOutcome]) -> list[StoredOutcome]:
        """What was imported from a table of this name, since its rows were last counted from 1."""
        found: list[StoredOutcome] = []
        for one in there:
            if self.name is not None and one.source == self.name:
                if found and (one.row or 0) <= (found[-1].row or 0):
                    found = []
                found.append(one)
        return found

    def _check_unchanged(self, known: list[StoredOutcome]) -> None:
        """Refuse a table that does not begin with the rows that were imported from it."""
        for one in known:
            at = (one.row or 0) - 1
            now = self.rows[at] if at < len(self.rows) else None
            if now is None or (now.point, now.value) != (one.point, one.value):
                where = f"row {at + 1} of" if now is None else f"{self._place(at)} of"
                says = "is not there any more" if now is None else f"is now {self._said(now)}"
                raise InputError(
                    f"{where} {shown(self.name or '')} was {self._said(one)} when it was imported, "
                    f"as trial {one.trial}, and {says}; nothing was changed. A table may grow at "
                    "its end only: put the row back. If it was wrong, take it back with undo, and "
                    "import the corrected table. If this is another table of new runs, or its "
                    "first rows need no comparison, say with skip (--skip) how many of its first "
                    "rows are in the study already."
                )

    def _check_new(self, new: list[Telling], others: list[StoredOutcome]) -> None:
        """Refuse rows that may be in the study already, told or from another table."""
        trials = {(one.point, one.value): one.trial for one in reversed(others)}
        equal = [(one.point, one.value) in trials for one in new]
        if not any(equal):
            return
        start, first = len(self.rows) - len(new), equal.index(True)
        leading = equal.index(False) if False in equal else len(equal)
        seems = f"{start + leading}, as it seems, or " if leading else ""
        raise InputError(
            f"{self._place(start + first)} of the table, {self._said(new[first])}, is equal to "
            f"trial {trials[new[first].point, new[first].value]}; nothing was changed. It may be "
            "the same run, or another one with the same outcome. Say with skip (--skip) how many "
            "rows at the beginning of the table are in the study already: "
            f"{seems}{start} if all {'others' if start else 'of them'} are new runs."
        )

    def _place(self, at: int) -> str:
        return f"row {at + 1}" if self.lines is None else f"line {self.lines[at]}"

    def _said(self, one: Telling | StoredOutcome) -> str:
        return f"{written(self.problem, one.point)} {self.problem.output.name}={one.value:g}"


def _name(table: Path, study: Path | str) -> str:
    path = os.path.realpath(table)
    if isinstance(study, Path):
        with suppress(ValueError):  # on another drive of Windows
            path = os.path.relpath(path, os.path.dirname(os.path.realpath(study)))
    return Path(path).as_posix()
