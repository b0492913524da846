"""The file of a study: SQLite, and nothing of kernels and bounds.

What the file promises: once a method that writes has returned, what it wrote is on the disk and is
there once. Others may write to the same file at the same time, and any of them may be killed at any
instant.

* Each write is one transaction, begun with the lock for writing (``BEGIN IMMEDIATE``), so that what
  it checked is still true when it is committed.
* ``synchronous = EXTRA``: a commit returns when the data, and the folder from which the journal was
  deleted, are on the disk.
* ``journal_mode = DELETE``: at rest a study is one file, which may be copied, mailed and kept on a
  network drive. The faster write-ahead log would add two files without which the first is not
  complete, and needs memory that is shared by all who use it.

Nothing is ever deleted: outcomes that are taken back stay in the file as withdrawn.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from kernelbounds import files
from kernelbounds.arrays import brief
from kernelbounds.errors import InputError, StoredFileError, said

MEMORY = ":memory:"
APPLICATION = 0x6B625354  # "kbST", by which SQLite's file header says whose it is
VERSION = 1

SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # A point is a JSON list of numbers in the units of the inputs, in their order. Of a trial that
    # was told without being asked for, asked is NULL; lower, upper and gain are what was known of
    # it when it was asked for.
    """CREATE TABLE trials (
        number INTEGER PRIMARY KEY,
        point TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'told', 'dropped')),
        asked TEXT,
        lower REAL,
        upper REAL,
        gain REAL
    )""",
    # In the order in which they were told; those of one batch together. The point is where it was
    # measured, which need not be the point of its trial.
    """CREATE TABLE outcomes (
        id INTEGER PRIMARY KEY,
        batch INTEGER NOT NULL,
        trial INTEGER NOT NULL REFERENCES trials (number),
        point TEXT NOT NULL,
        value REAL NOT NULL,
        key TEXT,
        told TEXT NOT NULL,
        withdrawn TEXT
    )""",
    "CREATE UNIQUE INDEX one_outcome_of_a_trial ON outcomes (trial) WHERE withdrawn IS NULL",
    "CREATE UNIQUE INDEX one_outcome_of_a_key ON outcomes (key) WHERE withdrawn IS NULL",
    # What was certified from the first so many outcomes, of which the last is named.
    """CREATE TABLE certificates (
        id INTEGER PRIMARY KEY,
        count INTEGER NOT NULL,
        outcome INTEGER NOT NULL REFERENCES outcomes (id),
        seconds REAL NOT NULL,
        computed TEXT NOT NULL,
        data TEXT NOT NULL
    )""",
)
# From each version to the next.
MIGRATIONS: dict[int, Sequence[str]] = {}

# Seconds to wait while others write, which takes milliseconds; and between two tries, so that an
# interrupt is noticed.
PATIENCE, TRY = 30.0, 0.2

Point = tuple[float, ...]


@dataclass(frozen=True)
class StoredTrial:
    """A row of ``trials``."""

    number: int
    point: Point
    state: str
    asked: str | None
    lower: float | None
    upper: float | None
    gain: float | None


class StoredOutcome(NamedTuple):
    """A row of ``outcomes`` that was not withdrawn."""

    id: int
    trial: int
    point: Point
    value: float
    key: str | None
    told: str


class Telling(NamedTuple):
    """An outcome to be told: of a trial, or of the pending one with this point, or a new one."""

    point: Point
    value: float
    trial: int | None = None
    key: str | None = None


class Told(NamedTuple):
    """The number of the trial, and whether the same outcome was there already by its key."""

    trial: int
    again: bool


@dataclass(frozen=True)
class StoredCertificate:
    """A row of ``certificates``."""

    count: int
    seconds: float
    data: dict[str, Any]


class Store:
    """An open file; use :meth:`create` for a new one. Threads may share it."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self.name = brief(str(path))
        self._lock = threading.RLock()
        if isinstance(path, Path):
            _check_there(path, self.name)
        with self._reported():
            self._db = self._connected()
        try:
            self._check_format()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path | str, meta: dict[str, str]) -> Store:
        """A new file, complete or not there at all."""
        new = cls.__new__(cls)
        new.path, new.name, new._lock = path, brief(str(path)), threading.RLock()
        if isinstance(path, Path):
            _claim(path, new.name)
        with new._reported():
            new._db = new._connected()
        try:
            with new.writing() as db:
                if new._number("PRAGMA application_id") or new._number("PRAGMA schema_version"):
                    raise _exists(new.name)
                for statement in SCHEMA:
                    db.execute(statement)
                db.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            new.close()
            if isinstance(path, Path):
                with suppress(OSError):
                    if path.stat().st_size == 0:
                        path.unlink()
            raise
        return new

    def close(self) -> None:
        """Give the file back; nothing is left to be written."""
        with self._lock:
            self._db.close()

    @property
    def meta(self) -> dict[str, str]:
        """What was said at creation."""
        return dict(self._rows("SELECT name, value FROM meta"))

    # --- trials

    @property
    def pending(self) -> list[StoredTrial]:
        """Trials that were asked for and not told, in their order."""
        return self._trials("state = 'pending'")

    def trial(self, number: int) -> StoredTrial:
        """One of them, by its number."""
        found = self._trials("number = ?", number)
        if not found:
            raise InputError(f"there is no trial {number} in {self.name}.")
        return found[0]

    def add_pending(
        self, new: Sequence[tuple[Point, float, float, float]], beside: Sequence[int]
    ) -> list[StoredTrial] | None:
        """Add pending trials: point, lower, upper and gain of each.

        None, and nothing is added, where the pending ones are not those ``beside`` which they were
        chosen: somebody else has asked or told in the meantime.
        """
        with self.writing() as db:
            if [one.number for one in self.pending] != list(beside):
                return None
            now = _now()
            numbers = []
            for point, lower, upper, gain in new:
                added = db.execute(
                    "INSERT INTO trials (point, state, asked, lower, upper, gain) "
                    "VALUES (?, 'pending', ?, ?, ?, ?)",
                    (json.dumps(point), now, lower, upper, gain),
                )
                numbers.append(added.lastrowid)
            return [self.trial(int(number or 0)) for number in numbers]

    def drop(self, number: int) -> StoredTrial:
        """Give up a pending trial."""
        with self.writing() as db:
            found = self.trial(number)
            if found.state != "pending":
                how = "told" if found.state == "told" else "dropped"
                raise InputError(f"trial {number} is not pending: it was {how} already.")
            db.execute("UPDATE trials SET state = 'dropped' WHERE number = ?", (number,))
            return found

    # --- outcomes

    @property
    def outcomes(self) -> list[StoredOutcome]:
        """Those that were not withdrawn, in the order told."""
        return self.outcomes_after(0)

    def outcomes_after(self, last: int) -> list[StoredOutcome]:
        """The same with ids above one."""
        rows = self._rows(
            "SELECT id, trial, point, value, key, told FROM outcomes "
            "WHERE withdrawn IS NULL AND id > ? ORDER BY id",
            last,
        )
        return [_outcome(row) for row in rows]

    @property
    def outcome_ids(self) -> list[int]:
        """Ids of the same."""
        return [
            row[0]
            for row in self._rows("SELECT id FROM outcomes WHERE withdrawn IS NULL ORDER BY id")
        ]

    @property
    def withdrawn(self) -> int:
        """How many outcomes were taken back."""
        return self._number("SELECT count(*) FROM outcomes WHERE withdrawn IS NOT NULL")

    def tell(self, tellings: Sequence[Telling]) -> list[Told]:
        """Add outcomes, all of them or none."""
        with self.writing() as db:
            batch = self._number("SELECT coalesce(max(batch), 0) + 1 FROM outcomes")
            now = _now()
            return [self._tell(db, one, batch, now) for one in tellings]

    def _tell(self, db: sqlite3.Connection, one: Telling, batch: int, now: str) -> Told:
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
            "INSERT INTO outcomes (batch, trial, point, value, key, told) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (batch, number, point, one.value, one.key, now),
        )
        db.execute("UPDATE trials SET state = 'told' WHERE number = ?", (number,))
        return Told(number, False)

    def _told_again(self, one: Telling, trial: int, point: str, value: float) -> Told:
        same = _point(point) == one.point and value == one.value
        if not same or one.trial not in (None, trial):
            raise InputError(
                f"the key {brief(one.key)} was told before, with other content: trial {trial}, "
                f"outcome {value!r}; use another key, or take it back with undo."
            )
        return Told(trial, True)

    def _trial_of(self, db: sqlite3.Connection, one: Telling, point: str) -> int:
        if one.trial is not None:
            found = self.trial(one.trial)
            if found.state == "told":
                old = self._rows(
                    "SELECT value FROM outcomes WHERE trial = ? AND withdrawn IS NULL", one.trial
                )
                raise InputError(
                    f"trial {one.trial} has its outcome already, {old[0][0]!r}; a repetition is "
                    "told by its values, without the number, and a mistake is taken back with undo."
                )
            return one.trial
        for waiting in self.pending:
            if waiting.point == one.point:
                return waiting.number
        added = db.execute("INSERT INTO trials (point, state) VALUES (?, 'told')", (point,))
        return int(added.lastrowid or 0)

    def undo(self) -> list[StoredOutcome]:
        """Withdraw the last batch. Trials that were asked for are pending again."""
        with self.writing() as db:
            batch = self._number(
                "SELECT coalesce(max(batch), 0) FROM outcomes WHERE withdrawn IS NULL"
            )
            if not batch:
                raise InputError(f"there is nothing to take back: {self.name} has no outcomes.")
            gone = self._rows(
                "SELECT id, trial, point, value, key, told FROM outcomes "
                "WHERE withdrawn IS NULL AND batch = ? ORDER BY id",
                batch,
            )
            db.execute(
                "UPDATE outcomes SET withdrawn = ? WHERE withdrawn IS NULL AND batch = ?",
                (_now(), batch),
            )
            db.executemany(
                "UPDATE trials SET state = CASE WHEN asked IS NULL THEN 'dropped' "
                "ELSE 'pending' END WHERE number = ?",
                [(row[1],) for row in gone],
            )
            return [_outcome(row) for row in gone]

    # --- certificates

    def add_certificate(
        self, count: int, outcome: int, seconds: float, data: dict[str, Any]
    ) -> None:
        """Keep what was certified from the first ``count`` outcomes, up to this id."""
        with self.writing() as db:
            db.execute(
                "INSERT INTO certificates (count, outcome, seconds, computed, data) "
                "VALUES (?, ?, ?, ?, ?)",
                (count, outcome, seconds, _now(), json.dumps(data)),
            )

    @property
    def certificates(self) -> list[StoredCertificate]:
        """Those of outcomes that are still there, by their number; of equal ones the last.

        Only the last outcomes can be withdrawn. So where the last of a certificate is there, all
        before it are.
        """
        ids = self.outcome_ids
        rows = self._rows("SELECT count, outcome, seconds, data FROM certificates ORDER BY id")
        found = {
            count: StoredCertificate(count, seconds, json.loads(data))
            for count, outcome, seconds, data in rows
            if count <= len(ids) and ids[count - 1] == outcome
        }
        return [found[count] for count in sorted(found)]

    # --- SQLite

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is committed at the end of the block, or leaves no trace."""
        with self._lock, self._reported():
            self._patiently("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._patiently("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with self._lock, self._reported():
            return self._patiently(sql, values).fetchall()

    def _number(self, sql: str) -> int:
        return int(self._rows(sql)[0][0])

    def _trials(self, where: str, *values: Any) -> list[StoredTrial]:
        rows = self._rows(
            "SELECT number, point, state, asked, lower, upper, gain FROM trials "
            f"WHERE {where} ORDER BY number",
            *values,
        )
        return [StoredTrial(row[0], _point(row[1]), *row[2:]) for row in rows]

    def _patiently(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a statement, again and again while others hold the lock."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._db.execute(sql, values)
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise

    def _connected(self) -> sqlite3.Connection:
        # The file is there already: SQLite must not make an empty one out of a mistyped name.
        target = (
            f"{self.path.resolve().as_uri()}?mode=rw" if isinstance(self.path, Path) else MEMORY
        )
        db = sqlite3.connect(
            target, uri=True, timeout=TRY, isolation_level=None, check_same_thread=False
        )
        for pragma in ("synchronous = EXTRA", "foreign_keys = ON", "trusted_schema = OFF"):
            db.execute(f"PRAGMA {pragma}")
        return db

    def _check_format(self) -> None:
        if self._number("PRAGMA application_id") != APPLICATION:
            raise StoredFileError(f"{self.name} is not a study of kernelbounds.")
        version = self._number("PRAGMA user_version")
        if version > VERSION:
            raise StoredFileError(
                f"{self.name} was written by a newer kernelbounds, in format {version}, and this "
                f"one reads up to {VERSION}: pip install -U kernelbounds."
            )
        if version < VERSION:
            self._migrate()

    def _migrate(self) -> None:
        """From an older version to this one, in one transaction."""
        with self.writing() as db:
            # Somebody else may have done it while this process waited.
            for version in range(self._number("PRAGMA user_version"), VERSION):
                for statement in MIGRATIONS[version]:
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Errors of SQLite become one sentence each."""
        try:
            yield
        except sqlite3.Error as error:
            raise _explained(error, self.name) from error


def _check_there(path: Path, name: str) -> None:
    if not path.exists():
        raise InputError(
            f"there is no study {name}; a new one is made by kernelbounds study create, or "
            "Study.create."
        )
    with files.failure_reported(f"open the study {name}"):
        files.check_regular(path.stat().st_mode)


def refuse_existing(path: Path) -> None:
    """Raise where there is something at the path that :meth:`Store.create` would not replace.

    A file that is empty was left by a process that was killed when it had just begun.
    """
    with suppress(FileNotFoundError):
        found = path.stat()
        if found.st_size or not stat.S_ISREG(found.st_mode):
            raise _exists(brief(str(path)))


def _claim(path: Path, name: str) -> None:
    """Make an empty file where there is none."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        refuse_existing(path)
    except OSError as error:
        why = error.strerror or said(error)
        if not path.parent.is_dir():
            why = "its folder does not exist"
        raise InputError(f"cannot create the study {name}: {why}.") from error


def _exists(name: str) -> InputError:
    return InputError(f"{name} is there already; choose another name for the new study.")


def _code(error: sqlite3.Error) -> int:
    """The primary code; 0 where the error is Python's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _explained(error: sqlite3.Error, name: str) -> Exception:
    messages: dict[int, Callable[[], Exception]] = {
        sqlite3.SQLITE_NOTADB: lambda: StoredFileError(f"{name} is not a study of kernelbounds."),
        sqlite3.SQLITE_CORRUPT: lambda: StoredFileError(
            f"{name} is damaged ({said(error)}); take a copy from before."
        ),
        sqlite3.SQLITE_READONLY: lambda: InputError(
            f"cannot write to {name}: the file was moved or deleted while it was open."
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED
            else f"cannot write to {name}: the file or its folder is read-only."
        ),
        sqlite3.SQLITE_FULL: lambda: InputError(
            f"cannot write to {name}: the disk is full; nothing was changed."
        ),
        sqlite3.SQLITE_BUSY: lambda: InputError(
            f"{name} has been locked by another process for more than {PATIENCE:g} seconds; "
            "nothing was changed, try again."
        ),
        sqlite3.SQLITE_CANTOPEN: lambda: InputError(
            f"cannot open {name}, or write to its folder; see whether both are there and who may "
            "write to them."
        ),
    }
    made = messages.get(_code(error))
    if made is not None:
        return made()
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return InputError(f"the study {name} was closed; open it again with Study({name}).")
    return StoredFileError(f"{name} cannot be used: {said(error)}.")


def _outcome(row: Sequence[Any]) -> StoredOutcome:
    number, trial, point, value, key, told = row
    return StoredOutcome(number, trial, _point(point), value, key, told)


def _point(text: str) -> Point:
    return tuple(json.loads(text))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def checked_path(path: Any) -> Path | str:
    """A path, or the name of a study that lives in memory only."""
    return MEMORY if path == MEMORY else files.as_path(path)
