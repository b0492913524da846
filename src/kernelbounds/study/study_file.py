"""The tables of a study: trials, outcomes, notes and certificates, without kernels and bounds.

Nothing is ever deleted: outcomes that are taken back stay in the file as withdrawn.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelbounds.arrays import brief
from kernelbounds.errors import InputError
from kernelbounds.study.database import Database, Format, Tables
from kernelbounds.study.trial import Note, Outcome, Point, StoredTrial, Told

SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT)",
    # A point is a JSON list of numbers in the units of the inputs, in their order. ``asked`` is
    # NULL for a trial that was told without being asked for; estimate, lower, upper and gain are
    # what was known when it was asked for, and purpose and why say why it was. ``place`` is the
    # place of an outcome that was taken back, which the right outcome of the run will have.
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
    # Outcomes are in the order of their places. A new outcome is the last, and one that corrects
    # another has the place of the other, which is withdrawn. Those of one batch were told together.
    # The point is where the outcome was measured, which need not be the point of its trial. For an
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
    # A note on a trial is a text, the path of a file, or both.
    """CREATE TABLE notes (
        id INTEGER PRIMARY KEY,
        trial INTEGER NOT NULL REFERENCES trials (number),
        text TEXT NOT NULL,
        path TEXT,
        time TEXT NOT NULL,
        digest TEXT
    )""",
    # A certificate is made from the first ``count`` outcomes; ``basis`` is a checksum of their ids.
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
STUDY = Format(application=0x6B625354, version=4, schema=SCHEMA)  # "kbST"
# A trial that is told or dropped no longer holds the place of an outcome that was taken back.
END_TRIAL = "UPDATE trials SET state = ?, place = NULL, digest = NULL WHERE number = ?"


# A message names no more trials than this.
MOST_NAMED = 10


class StudyFile:
    """The rows of a study in its open file, which threads may share.

    With ``meta``, a new file is made; ``copied`` has rows of other tables for it, as
    :meth:`everything` returns them.
    """

    def __init__(
        self,
        path: Path | str,
        meta: Mapping[str, str] | None = None,
        copied: Tables | None = None,
    ) -> None:
        content = None
        if meta is not None:
            texts = [{"name": name, "value": value} for name, value in meta.items()]
            content = {"meta": texts, **(copied or {})}
        self._file = Database(path, STUDY, content)
        self.path, self.name, self.close = self._file.path, self._file.name, self._file.close
        self.transaction, self.one_moment = self._file.writing, self._file.reading

    @property
    def meta(self) -> dict[str, str]:
        """The problem, the aim and the revisions, as texts, from when the study was made."""
        return dict(self._file.rows("SELECT name, value FROM meta"))

    def everything(self) -> tuple[list[Outcome], Tables]:
        """Return the outcomes, and all rows for a copy of the study, as they are at one moment.

        The rows are those of trials, outcomes and notes, with their checksums.
        """
        with self.one_moment():
            rows = {name: self._file.table(name) for name in ("trials", "outcomes", "notes")}
            return self.outcomes, rows

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
        """The trials that were asked for and not told yet, in their order."""
        return self._trials("state = 'pending'")

    def trial(self, number: int) -> StoredTrial:
        """Return a trial by its number."""
        found = self._trials("number = ?", number)
        if not found:
            waiting = ", ".join(str(one.number) for one in self.pending[:MOST_NAMED]) or "none"
            raise InputError(
                f"there is no trial {number} in {self.name}; pending: {waiting}. A run of your own "
                "is told by its settings, without a number."
            )
        return found[0]

    def add_pending(
        self, new: Sequence[StoredTrial], beside: Sequence[int]
    ) -> list[StoredTrial] | None:
        """Add pending trials, unless another process has asked or told in the meantime.

        ``beside`` are the numbers of the trials that were pending when the new ones were chosen.
        Where others are pending now, nothing is added and None is returned.
        """
        with self.transaction():
            if [one.number for one in self.pending] != list(beside):
                return None
            for one in new:
                own = {"number": None, "point": json.dumps(one.point), "asked": utc_now()}
                self._file.insert("trials", **(one._asdict() | own))
            return self.pending[len(beside) :]

    def drop(self, number: int) -> StoredTrial:
        """Give up a pending trial, and the place of its outcome if that was taken back."""
        with self.transaction() as db:
            found = self.trial(number)
            if found.state != "pending":
                raise InputError(f"trial {number} is not pending: it was already {found.state}.")
            db.execute(END_TRIAL, ("dropped", number))
            return self.trial(number)

    # --- outcomes

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that were not withdrawn, in their order."""
        return self._outcomes("TRUE")

    def __len__(self) -> int:
        """Count the outcomes that were not withdrawn."""
        return self._file.number("SELECT count(*) FROM outcomes WHERE withdrawn IS NULL")

    @property
    def withdrawn(self) -> int:
        """The number of outcomes that were taken back."""
        return self._file.number("SELECT count(*) FROM outcomes WHERE withdrawn IS NOT NULL")

    def tell(self, outcomes: Sequence[Outcome]) -> list[Told]:
        """Add outcomes in their order, all of them or none."""
        with self.transaction() as db:
            batch = self._file.number("SELECT coalesce(max(batch), 0) + 1 FROM outcomes")
            return [self._tell(db, one, batch) for one in outcomes]

    def _tell(self, db: sqlite3.Connection, one: Outcome, batch: int) -> Told:
        """Add an outcome at the place of the one that was taken back, or else as the last."""
        for old in self._outcomes("key = ?", one.key):
            if (old.point, old.told) != (one.point, one.told) or one.trial not in (0, old.trial):
                raise InputError(
                    f"the key {brief(one.key)} was told before, with other content: trial "
                    f"{old.trial}, outcome {_stored(old)}; use another key, or take it back with "
                    "undo."
                )
            return Told(old.trial, True)
        number = self._trial_of(one)
        place = self._file.number(
            "SELECT coalesce((SELECT place FROM trials WHERE number = ?), "
            "(SELECT coalesce(max(place), 0) + 1 FROM outcomes))",
            number,
        )
        self._file.insert(
            "outcomes", place=place, batch=batch, trial=number, point=json.dumps(one.point),
            value=_stored(one), key=one.key, source=one.source, row=one.row, time=utc_now(),
        )  # fmt: skip
        db.execute(END_TRIAL, ("told", number))
        return Told(number, False)

    def _trial_of(self, one: Outcome) -> int:
        """Return the number of the trial that an outcome belongs to; a new one if there is none."""
        if one.trial:
            if self.trial(one.trial).state == "told":
                raise InputError(
                    f"trial {one.trial} already has its outcome, "
                    f"{_stored(self.outcome(one.trial))}; tell a repetition by its values, without "
                    "the number, and put right a slip of the pen with correct."
                )
            return one.trial
        for waiting in self.pending:
            if waiting.point == one.point:
                return waiting.number
        return self._file.insert("trials", point=json.dumps(one.point), state="told")

    def undo(self, trial: int | None = None) -> list[Outcome]:
        """Withdraw the outcome of a trial, or the last batch.

        That trial, and those of the batch that were asked for, are pending again. The right
        outcome of the run, when it is told, has the place of the one that is withdrawn now.
        """
        with self.transaction() as db:
            if trial is not None:
                return self._withdraw(db, [self.outcome(trial)], "'pending'")
            last = "SELECT max(batch) FROM outcomes WHERE withdrawn IS NULL"
            gone = self._outcomes(f"batch = ({last})")
            if not gone:
                raise InputError(f"there is nothing to take back: {self.name} has no outcomes.")
            state = "CASE WHEN asked IS NULL THEN 'dropped' ELSE 'pending' END"
            return self._withdraw(db, gone, state)

    def outcome(self, trial: int) -> Outcome:
        """Return the outcome of a trial."""
        found = self._outcomes("trial = ?", self.trial(trial).number)
        if not found:
            raise InputError(f"trial {trial} has no outcome; it is {self.trial(trial).state}.")
        return found[0]

    def _withdraw(self, db: sqlite3.Connection, gone: list[Outcome], state: str) -> list[Outcome]:
        """Withdraw outcomes; ``state``, an SQL expression, is the new state of their trials."""
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
        """Add a note to a trial."""
        with self.transaction():
            added = Note(self.trial(trial).number, text, path, utc_now())
            self._file.insert("notes", **added._asdict())
            return added

    @property
    def notes(self) -> list[Note]:
        """All notes, in the order written."""
        rows = self._file.rows("SELECT trial, text, path, time FROM notes ORDER BY id")
        return [Note(*row) for row in rows]

    # --- certificates

    def add_certificate(
        self, outcomes: Sequence[Outcome], seconds: float, data: dict[str, Any]
    ) -> None:
        """Keep a certificate that was made from these outcomes, the first ones of the study."""
        basis = _bases(one.id for one in outcomes)[-1]
        with self.transaction():
            self._file.insert(
                "certificates", count=len(outcomes), basis=basis, seconds=seconds,
                computed=utc_now(), data=json.dumps(data),
            )  # fmt: skip

    @property
    def certificates(self) -> list[tuple[int, float, dict[str, Any]]]:
        """The last certificate for each number of outcomes, if these are still the first ones.

        Each comes with that number and the seconds that were spent on it. A certificate of outcomes
        of which one was withdrawn or corrected does not count any more.
        """
        rows = self._file.rows("SELECT count, basis, seconds, data FROM certificates ORDER BY id")
        ids = self._file.rows("SELECT id FROM outcomes WHERE withdrawn IS NULL ORDER BY place")
        bases = _bases(one for (one,) in ids) if rows else []
        found = {
            count: (count, seconds, json.loads(data))
            for count, basis, seconds, data in rows
            if count <= len(bases) and bases[count - 1] == basis
        }
        return [found[count] for count in sorted(found)]

    @property
    def taken_back(self) -> list[Outcome]:
        """The outcomes that were withdrawn, in the order in which they were told."""
        return self._outcomes("TRUE", which="IS NOT NULL", order="id")

    def _outcomes(
        self, where: str, *values: Any, which: str = "IS NULL", order: str = "place"
    ) -> list[Outcome]:
        columns = ", ".join(Outcome._fields[:-1])
        found = []
        for point, value, *others in self._file.rows(
            f"SELECT {columns} FROM outcomes WHERE withdrawn {which} AND {where} ORDER BY {order}",
            *values,
        ):
            rate, tries = value, None
            if isinstance(value, str):
                successes, tries = json.loads(value)
                rate = successes / tries
            found.append(Outcome(_point(point), rate, *others)._replace(tries=tries))
        return found

    def _trials(self, where: str, *values: Any) -> list[StoredTrial]:
        columns = ", ".join(StoredTrial._fields)
        query = f"SELECT {columns} FROM trials WHERE {where} ORDER BY number"
        rows = self._file.rows(query, *values)
        return [StoredTrial(_point(point), *others) for point, *others in rows]


def _bases(ids: Iterable[int]) -> list[str]:
    """Return the checksums of the first id, the first two, and so on up to all."""
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
    """Return the present time as text, as it is written in the file."""
    return datetime.now(UTC).isoformat(timespec="seconds")
