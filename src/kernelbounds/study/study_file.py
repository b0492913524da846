"""The file of a study: its tables, and what is done to them, without kernels and bounds.

Nothing is ever deleted: outcomes that are taken back stay in the file as withdrawn.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from kernelbounds.arrays import brief
from kernelbounds.errors import InputError
from kernelbounds.study.database import Database, Format

SCHEMA = (
    # Each table has a checksum of each of its rows, see ``database.py``.
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT)",
    # A point is a JSON list of numbers in the units of the inputs, in their order. ``asked`` is
    # NULL for a trial that was told without being asked for; lower, upper and gain are what was
    # known when it was asked for.
    """CREATE TABLE trials (
        number INTEGER PRIMARY KEY,
        point TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'told', 'dropped')),
        asked TEXT,
        lower REAL,
        upper REAL,
        gain REAL,
        digest TEXT
    )""",
    # Outcomes are in the order in which they were told, those of one batch together. The point is
    # where the outcome was measured, which need not be the point of its trial. For an outcome that
    # was imported, source is the name of its table, if that has one, and row its number in the
    # table, from 1 on. The value of a rate is a JSON list of successes and tries.
    """CREATE TABLE outcomes (
        id INTEGER PRIMARY KEY,
        batch INTEGER NOT NULL,
        trial INTEGER NOT NULL REFERENCES trials (number),
        point TEXT NOT NULL,
        value REAL NOT NULL,
        key TEXT,
        source TEXT,
        row INTEGER,
        told TEXT NOT NULL,
        withdrawn TEXT,
        digest TEXT
    )""",
    "CREATE UNIQUE INDEX one_outcome_of_a_trial ON outcomes (trial) WHERE withdrawn IS NULL",
    "CREATE UNIQUE INDEX one_outcome_of_a_key ON outcomes (key) WHERE withdrawn IS NULL",
    # What was certified from the first ``count`` outcomes, of which the last is named.
    """CREATE TABLE certificates (
        id INTEGER PRIMARY KEY,
        count INTEGER NOT NULL,
        outcome INTEGER NOT NULL REFERENCES outcomes (id),
        seconds REAL NOT NULL,
        computed TEXT NOT NULL,
        data TEXT NOT NULL,
        digest TEXT
    )""",
)
FORMAT = Format(
    application=0x6B625354,  # "kbST"
    version=2,
    schema=SCHEMA,
)

Point = tuple[float, ...]


class StoredTrial(NamedTuple):
    """A row of ``trials``; the fields are its columns."""

    number: int
    point: Point
    state: str
    lower: float | None
    upper: float | None
    gain: float | None


class Outcome(NamedTuple):
    """A row of ``outcomes`` that was not withdrawn, or that is to be added; fields are columns.

    An outcome that is to be told may have no trial yet, 0: then it is that of the pending trial at
    its point, or of a new one. Where the output is a rate, ``value`` is that of ``tries``.
    """

    point: Point
    value: float
    trial: int = 0
    key: str | None = None
    source: str | None = None
    row: int | None = None
    id: int = 0
    tries: int | None = None

    @property
    def told(self) -> float | tuple[int, int]:
        """What was told: the value, or successes and tries."""
        return self.value if self.tries is None else (round(self.value * self.tries), self.tries)


class Told(NamedTuple):
    """What :meth:`Study.tell` returns once an outcome is on the disk.

    Attributes
    ----------
    trial : int
        The number of the trial that the outcome is of.
    again : bool
        Whether the same outcome was there already, by its key or by its row in a table that was
        imported before, and nothing was added.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> study.tell({"speed": 300}, 63.1, key="run 7")
    Told(trial=1, again=False)
    >>> study.tell({"speed": 300}, 63.1, key="run 7").again  # a script that is run twice
    True
    """

    trial: int
    again: bool


@dataclass(frozen=True)
class StoredCertificate:
    """A row of ``certificates``."""

    count: int
    seconds: float
    data: dict[str, Any]


class StudyFile:
    """The open file of a study, which threads may share; with ``meta``, a new one is made."""

    def __init__(self, path: Path | str, meta: Mapping[str, str] | None = None) -> None:
        if meta is None:
            self._file = Database(path, FORMAT)
        else:
            rows = list(meta.items())
            self._file = Database(
                path,
                FORMAT,
                lambda db: db.executemany("INSERT INTO meta VALUES (?, ?, NULL)", rows),
            )
        self.path, self.name, self.close = self._file.path, self._file.name, self._file.close

    @property
    def meta(self) -> dict[str, str]:
        """The problem and the aim, as they were stated when the study was made."""
        return dict(self._file.rows("SELECT name, value FROM meta"))

    # --- trials

    @property
    def pending(self) -> list[StoredTrial]:
        """Trials that were asked for and not told, in their order."""
        return self._trials("state = 'pending'")

    def trial(self, number: int) -> StoredTrial:
        """Return a trial by its number."""
        found = self._trials("number = ?", number)
        if not found:
            raise InputError(f"there is no trial {number} in {self.name}.")
        return found[0]

    def add_pending(
        self, new: Sequence[tuple[Point, float, float, float]], beside: Sequence[int]
    ) -> list[StoredTrial] | None:
        """Add pending trials: point, lower, upper and gain of each.

        Returns None, and adds nothing, where the pending trials are not those ``beside`` which the
        new ones were chosen: another process has asked or told in the meantime.
        """
        with self._file.writing() as db:
            if [one.number for one in self.pending] != list(beside):
                return None
            db.executemany(
                "INSERT INTO trials (point, state, asked, lower, upper, gain) "
                "VALUES (?, 'pending', ?, ?, ?, ?)",
                [(json.dumps(point), _now(), *known) for point, *known in new],
            )
            return self.pending[len(beside) :]

    def drop(self, number: int) -> StoredTrial:
        """Give up a pending trial."""
        with self._file.writing() as db:
            found = self.trial(number)
            if found.state != "pending":
                raise InputError(f"trial {number} is not pending: it was {found.state} already.")
            db.execute(
                "UPDATE trials SET state = 'dropped', digest = NULL WHERE number = ?", (number,)
            )
            return found

    # --- outcomes

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that were not withdrawn, in the order told."""
        return self._outcomes("withdrawn IS NULL")

    def __len__(self) -> int:
        """Count the outcomes that were not withdrawn."""
        return self._file.number("SELECT count(*) FROM outcomes WHERE withdrawn IS NULL")

    @property
    def withdrawn(self) -> int:
        """The number of outcomes that were taken back."""
        return self._file.number("SELECT count(*) FROM outcomes WHERE withdrawn IS NOT NULL")

    def tell(self, choose: Callable[[StudyFile], Sequence[Outcome | Told]]) -> list[Told]:
        """Add outcomes, all of them or none.

        ``choose`` is called within the transaction, and may look at what is there. It also names
        the outcomes that are there already.
        """
        with self._file.writing() as db:
            batch = self._file.number("SELECT coalesce(max(batch), 0) + 1 FROM outcomes")
            return [
                one if isinstance(one, Told) else self._tell(db, one, batch) for one in choose(self)
            ]

    def _tell(self, db: sqlite3.Connection, one: Outcome, batch: int) -> Told:
        point = json.dumps(one.point)
        if one.key is not None:
            old = db.execute(
                "SELECT trial, point, value FROM outcomes WHERE key = ? AND withdrawn IS NULL",
                (one.key,),
            ).fetchone()
            if old is not None:
                return self._told_again(one, *old)
        number = self._trial_of(db, one, point)
        db.execute(
            "INSERT INTO outcomes (batch, trial, point, value, key, source, row, told) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (batch, number, point, _stored(one), one.key, one.source, one.row, _now()),
        )
        db.execute("UPDATE trials SET state = 'told', digest = NULL WHERE number = ?", (number,))
        return Told(number, False)

    def _told_again(self, one: Outcome, trial: int, point: str, value: float | str) -> Told:
        same = _point(point) == one.point and value == _stored(one)
        if not same or one.trial not in (0, trial):
            raise InputError(
                f"the key {brief(one.key)} was told before, with other content: trial {trial}, "
                f"outcome {value}; use another key, or take it back with undo."
            )
        return Told(trial, True)

    def _trial_of(self, db: sqlite3.Connection, one: Outcome, point: str) -> int:
        if one.trial:
            if self.trial(one.trial).state == "told":
                old = self._file.rows(
                    "SELECT value FROM outcomes WHERE trial = ? AND withdrawn IS NULL", one.trial
                )
                raise InputError(
                    f"trial {one.trial} has its outcome already, {old[0][0]}; a repetition is "
                    "told by its values, without the number, and a mistake is taken back with undo."
                )
            return one.trial
        for waiting in self.pending:
            if waiting.point == one.point:
                return waiting.number
        added = db.execute("INSERT INTO trials (point, state) VALUES (?, 'told')", (point,))
        return int(added.lastrowid or 0)

    def undo(self) -> list[Outcome]:
        """Withdraw the last batch; those of its trials that were asked for are pending again."""
        with self._file.writing() as db:
            batch = self._file.number(
                "SELECT coalesce(max(batch), 0) FROM outcomes WHERE withdrawn IS NULL"
            )
            if not batch:
                raise InputError(f"there is nothing to take back: {self.name} has no outcomes.")
            gone = self._outcomes("withdrawn IS NULL AND batch = ?", batch)
            db.execute(
                "UPDATE outcomes SET withdrawn = ?, digest = NULL "
                "WHERE withdrawn IS NULL AND batch = ?",
                (_now(), batch),
            )
            db.executemany(
                "UPDATE trials SET state = CASE WHEN asked IS NULL THEN 'dropped' "
                "ELSE 'pending' END, digest = NULL WHERE number = ?",
                [(one.trial,) for one in gone],
            )
            return gone

    # --- certificates

    def add_certificate(
        self, count: int, outcome: int, seconds: float, data: dict[str, Any]
    ) -> None:
        """Keep what was certified from the first ``count`` outcomes, up to that of an id."""
        with self._file.writing() as db:
            db.execute(
                "INSERT INTO certificates (count, outcome, seconds, computed, data) "
                "VALUES (?, ?, ?, ?, ?)",
                (count, outcome, seconds, _now(), json.dumps(data)),
            )

    @property
    def certificates(self) -> list[StoredCertificate]:
        """The last certificate for each number of outcomes, if all of these are still there.

        Only the last outcomes can be withdrawn. So where the last outcome of a certificate is
        there, all before it are.
        """
        rows = self._file.rows(
            "SELECT count, seconds, data FROM certificates AS one JOIN (SELECT id, row_number() "
            "OVER (ORDER BY id) AS place FROM outcomes WHERE withdrawn IS NULL) AS there "
            "ON there.id = one.outcome AND there.place = one.count ORDER BY one.id"
        )
        found = {row[0]: StoredCertificate(row[0], row[1], json.loads(row[2])) for row in rows}
        return [found[count] for count in sorted(found)]

    def _outcomes(self, where: str, *values: Any) -> list[Outcome]:
        columns = ", ".join(Outcome._fields[:-1])
        rows = self._file.rows(f"SELECT {columns} FROM outcomes WHERE {where} ORDER BY id", *values)
        found = []
        for point, value, *others in rows:
            rate, tries = value, None
            if isinstance(value, str):
                successes, tries = json.loads(value)
                rate = successes / tries
            found.append(Outcome(_point(point), rate, *others)._replace(tries=tries))
        return found

    def _trials(self, where: str, *values: Any) -> list[StoredTrial]:
        columns = ", ".join(StoredTrial._fields)
        rows = self._file.rows(
            f"SELECT {columns} FROM trials WHERE {where} ORDER BY number", *values
        )
        return [StoredTrial(row[0], _point(row[1]), *row[2:]) for row in rows]


def _point(text: str) -> Point:
    return tuple(json.loads(text))


def _stored(one: Outcome) -> float | str:
    return one.value if one.tries is None else json.dumps(one.told)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
