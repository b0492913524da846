"""The file of a study: its tables, and what is done to them, without kernels and bounds.

Nothing is ever deleted: outcomes that are taken back stay in the file as withdrawn.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    # NULL for a trial that was told without being asked for; estimate, lower, upper and gain are
    # what was known when it was asked for, purpose and why say what for. ``place`` is that of an
    # outcome that was taken back: the right outcome of the run will have it.
    """CREATE TABLE trials (
        number INTEGER PRIMARY KEY,
        point TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'told', 'dropped')),
        asked TEXT,
        estimate REAL,
        lower REAL,
        upper REAL,
        gain REAL,
        purpose TEXT,
        why TEXT,
        place INTEGER,
        digest TEXT
    )""",
    # Outcomes are in the order of their places. A new one is the last, and one that corrects
    # another has the place of that, which is withdrawn. Those of one batch were told together. The
    # point is where the outcome was measured, which need not be the point of its trial. For an
    # outcome that was imported, source is the name of its table, if that has one, and row its
    # number in the table, from 1 on. The value of a rate is a JSON list of successes and tries.
    """CREATE TABLE outcomes (
        id INTEGER PRIMARY KEY,
        place INTEGER NOT NULL,
        batch INTEGER NOT NULL,
        trial INTEGER NOT NULL REFERENCES trials (number),
        point TEXT NOT NULL,
        value REAL NOT NULL,
        key TEXT,
        source TEXT,
        row INTEGER,
        time TEXT NOT NULL,
        withdrawn TEXT,
        digest TEXT
    )""",
    "CREATE UNIQUE INDEX one_outcome_of_a_trial ON outcomes (trial) WHERE withdrawn IS NULL",
    "CREATE UNIQUE INDEX one_outcome_of_a_key ON outcomes (key) WHERE withdrawn IS NULL",
    "CREATE UNIQUE INDEX one_outcome_of_a_place ON outcomes (place) WHERE withdrawn IS NULL",
    # Text on a trial, the path of a file, or both.
    """CREATE TABLE notes (
        id INTEGER PRIMARY KEY,
        trial INTEGER NOT NULL REFERENCES trials (number),
        text TEXT NOT NULL,
        path TEXT,
        time TEXT NOT NULL,
        digest TEXT
    )""",
    # What was certified from the first ``count`` outcomes; ``basis`` is a checksum of their ids.
    """CREATE TABLE certificates (
        id INTEGER PRIMARY KEY,
        count INTEGER NOT NULL,
        basis TEXT NOT NULL,
        seconds REAL NOT NULL,
        computed TEXT NOT NULL,
        data TEXT NOT NULL,
        digest TEXT
    )""",
)
FORMAT = Format(
    application=0x6B625354,  # "kbST"
    version=4,
    schema=SCHEMA,
)

Point = tuple[float, ...]


class NewTrial(NamedTuple):
    """A trial that is to be asked for; the fields are columns of ``trials``."""

    point: Point
    estimate: float
    lower: float
    upper: float
    gain: float
    purpose: str
    why: str


class StoredTrial(NamedTuple):
    """A row of ``trials``; the fields are its columns."""

    number: int
    point: Point
    state: str
    estimate: float | None
    lower: float | None
    upper: float | None
    gain: float | None
    purpose: str | None
    why: str | None
    asked: str | None


class Note(NamedTuple):
    """Something that was written down on a trial, from :meth:`Study.note`.

    Attributes
    ----------
    trial : int
        The number of the trial.
    text : str
        What was written; empty where there is a path alone.
    path : str or None
        A file that belongs to the trial, from the folder of the study. Its content is not kept.
    time : str
        When it was written, in UTC.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> told = study.tell({"speed": 300}, 63.1)
    >>> study.note(1, "new batch of resin").text
    'new batch of resin'
    """

    trial: int
    text: str
    path: str | None
    time: str

    def __str__(self) -> str:
        return " ".join(filter(None, [self.text, self.path and f"[{self.path}]"]))


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
    time: str = ""
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
    """The open file of a study, which threads may share; with ``meta``, a new one is made.

    ``copied`` has rows of other tables for a new file, as :meth:`everything` returns them.
    """

    def __init__(
        self,
        path: Path | str,
        meta: Mapping[str, str] | None = None,
        copied: Mapping[str, Sequence[tuple[Any, ...]]] | None = None,
    ) -> None:
        if meta is None:
            self._file = Database(path, FORMAT)
        else:

            def fill(db: sqlite3.Connection) -> None:
                db.executemany("INSERT INTO meta VALUES (?, ?, NULL)", list(meta.items()))
                for table, rows in (copied or {}).items():
                    for row in rows:
                        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

            self._file = Database(path, FORMAT, fill)
        self.path, self.name, self.close = self._file.path, self._file.name, self._file.close

    @property
    def meta(self) -> dict[str, str]:
        """The problem and the aim, as they were stated when the study was made."""
        return dict(self._file.rows("SELECT name, value FROM meta"))

    @property
    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of trials, outcomes and notes, with their checksums: what a copy begins with."""
        with self._file.reading():
            return {
                name: self._file.rows(f"SELECT * FROM {name}")
                for name in ("trials", "outcomes", "notes")
            }

    @property
    def stamp(self) -> str:
        """A text that changes whenever trials, outcomes or notes are added or changed."""
        # None of these but the fourth ever falls, and that one changes alone only when a trial is
        # dropped, which is for ever unless an outcome is added.
        (counts,) = self._file.rows(
            "SELECT (SELECT count(*) FROM outcomes), (SELECT count(withdrawn) FROM outcomes), "
            "(SELECT count(*) FROM trials), "
            "(SELECT count(*) FROM trials WHERE state = 'pending'), (SELECT count(*) FROM notes)"
        )
        return "-".join(map(str, counts))

    # --- trials

    @property
    def trials(self) -> list[StoredTrial]:
        """All trials, in the order of their numbers."""
        return self._trials("TRUE")

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
        self, new: Sequence[NewTrial], beside: Sequence[int]
    ) -> list[StoredTrial] | None:
        """Add pending trials.

        Returns None, and adds nothing, where the pending trials are not those ``beside`` which the
        new ones were chosen: another process has asked or told in the meantime.
        """
        with self._file.writing() as db:
            if [one.number for one in self.pending] != list(beside):
                return None
            db.executemany(
                "INSERT INTO trials (point, state, asked, estimate, lower, upper, gain, purpose, "
                "why) VALUES (?, 'pending', ?, ?, ?, ?, ?, ?, ?)",
                [(json.dumps(one.point), utc_now(), *one[1:]) for one in new],
            )
            return self.pending[len(beside) :]

    def drop(self, number: int) -> StoredTrial:
        """Give up a pending trial, and the place of an outcome of it that was taken back."""
        with self._file.writing() as db:
            found = self.trial(number)
            if found.state != "pending":
                raise InputError(f"trial {number} is not pending: it was already {found.state}.")
            db.execute(
                "UPDATE trials SET state = 'dropped', place = NULL, digest = NULL WHERE number = ?",
                (number,),
            )
            return found

    # --- outcomes

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that were not withdrawn, in their order."""
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
            "INSERT INTO outcomes (place, batch, trial, point, value, key, source, row, time) "
            "VALUES (coalesce((SELECT place FROM trials WHERE number = ?), "
            "(SELECT coalesce(max(place), 0) + 1 FROM outcomes)), ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, batch, number, point, _stored(one), one.key, one.source, one.row, utc_now()),
        )
        db.execute(
            "UPDATE trials SET state = 'told', place = NULL, digest = NULL WHERE number = ?",
            (number,),
        )
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
                    f"trial {one.trial} already has its outcome, {old[0][0]}; tell a repetition "
                    "by its values, without the number, and put right a slip of the pen with "
                    "correct."
                )
            return one.trial
        for waiting in self.pending:
            if waiting.point == one.point:
                return waiting.number
        added = db.execute("INSERT INTO trials (point, state) VALUES (?, 'told')", (point,))
        return int(added.lastrowid or 0)

    def undo(self, trial: int | None = None) -> list[Outcome]:
        """Withdraw the outcome of a trial, or the last batch.

        That trial, and those of the batch that were asked for, are pending again. The right
        outcome of the run, when it is told, has the place of the one that is withdrawn now.
        """
        with self._file.writing() as db:
            if trial is not None:
                return self._withdraw(db, [self._outcome_of(trial)], "'pending'")
            batch = self._file.number(
                "SELECT coalesce(max(batch), 0) FROM outcomes WHERE withdrawn IS NULL"
            )
            if not batch:
                raise InputError(f"there is nothing to take back: {self.name} has no outcomes.")
            gone = self._outcomes("withdrawn IS NULL AND batch = ?", batch)
            state = "CASE WHEN asked IS NULL THEN 'dropped' ELSE 'pending' END"
            return self._withdraw(db, gone, state)

    def correct(self, trial: int, changed: Callable[[Outcome], Outcome]) -> bool:
        """Put the right outcome in the place of the one that was told, which is withdrawn.

        ``changed`` makes it from that one. Returns whether there was anything to change.
        """
        with self._file.writing() as db:
            old = self._outcome_of(trial)
            new = changed(old)
            if (new.point, new.told) == (old.point, old.told):
                return False
            self._withdraw(db, [old], "'pending'")
            batch = self._file.number("SELECT max(batch) + 1 FROM outcomes")
            self._tell(db, new._replace(trial=trial), batch)
            return True

    def _outcome_of(self, trial: int) -> Outcome:
        found = self._outcomes("withdrawn IS NULL AND trial = ?", self.trial(trial).number)
        if not found:
            raise InputError(f"trial {trial} has no outcome; it is {self.trial(trial).state}.")
        return found[0]

    def _withdraw(self, db: sqlite3.Connection, gone: list[Outcome], state: str) -> list[Outcome]:
        for one in gone:
            db.execute(
                "UPDATE outcomes SET withdrawn = ?, digest = NULL WHERE id = ?", (utc_now(), one.id)
            )
            db.execute(
                f"UPDATE trials SET state = {state}, digest = NULL, "
                "point = CASE WHEN asked IS NULL THEN ? ELSE point END, "
                "place = (SELECT place FROM outcomes WHERE id = ?) WHERE number = ?",
                (json.dumps(one.point), one.id, one.trial),
            )
        return gone

    # --- notes

    def note(self, trial: int, text: str, path: str | None) -> Note:
        """Keep a note on a trial."""
        with self._file.writing() as db:
            added = Note(self.trial(trial).number, text, path, utc_now())
            db.execute("INSERT INTO notes (trial, text, path, time) VALUES (?, ?, ?, ?)", added)
            return added

    @property
    def notes(self) -> list[Note]:
        """All notes, in the order written."""
        return [Note(*row) for row in self._file.rows(
            "SELECT trial, text, path, time FROM notes ORDER BY id"
        )]  # fmt: skip

    # --- certificates

    def add_certificate(
        self, outcomes: Sequence[Outcome], seconds: float, data: dict[str, Any]
    ) -> None:
        """Keep what was certified from these outcomes, all that there are up to some place."""
        basis = _bases(one.id for one in outcomes)[-1]
        with self._file.writing() as db:
            db.execute(
                "INSERT INTO certificates (count, basis, seconds, computed, data) "
                "VALUES (?, ?, ?, ?, ?)",
                (len(outcomes), basis, seconds, utc_now(), json.dumps(data)),
            )

    @property
    def certificates(self) -> list[StoredCertificate]:
        """The last certificate for each number of outcomes, if these are still the first ones.

        A certificate of outcomes of which one was withdrawn or corrected does not count any more.
        """
        with self._file.reading():
            rows = self._file.rows(
                "SELECT count, basis, seconds, data FROM certificates ORDER BY id"
            )
            ids = self._file.rows("SELECT id FROM outcomes WHERE withdrawn IS NULL ORDER BY place")
        bases = _bases(one for (one,) in ids) if rows else []
        found = {
            count: StoredCertificate(count, seconds, json.loads(data))
            for count, basis, seconds, data in rows
            if count <= len(bases) and bases[count - 1] == basis
        }
        return [found[count] for count in sorted(found)]

    def _outcomes(self, where: str, *values: Any) -> list[Outcome]:
        columns = ", ".join(Outcome._fields[:-1])
        rows = self._file.rows(
            f"SELECT {columns} FROM outcomes WHERE {where} ORDER BY place", *values
        )
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


def _bases(ids: Iterable[int]) -> list[str]:
    """Return a checksum of the first ids, for each number of them."""
    so_far, found = hashlib.blake2b(digest_size=12), []
    for one in ids:
        so_far.update(b"%d " % one)
        found.append(so_far.hexdigest())
    return found


def _point(text: str) -> Point:
    return tuple(json.loads(text))


def _stored(one: Outcome) -> float | str:
    return one.value if one.tries is None else json.dumps(one.told)


def utc_now() -> str:
    """Return the time as it is written in the file."""
    return datetime.now(UTC).isoformat(timespec="seconds")
