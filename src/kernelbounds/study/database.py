"""An SQLite file for studies: its transactions, checksums, format and errors.

Once a transaction has ended, what it wrote is on the disk and is there once. Others may write to
the same file at the same time, and any of them may be killed at any instant.

* Each write is one transaction, begun with the lock for writing (``BEGIN IMMEDIATE``), so that what
  it checked is still true when it is committed.
* ``synchronous = EXTRA``: a commit returns when the data, and the folder from which the journal was
  deleted, are on the disk.
* ``journal_mode = DELETE``: at rest there is one file, which may be copied, mailed and kept on a
  network drive. The faster write-ahead log would add two files without which the first is not
  complete, and needs memory that is shared by all who use it.
* Each row has a checksum of its own, in the column ``digest``. Whoever opens the file has SQLite
  check its structure, and then checks every row: a byte that a disk or a copy got wrong is noticed
  before anything is computed from it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from kernelbounds.errors import InputError, StoredFileError, said
from kernelbounds.io import files

MEMORY = ":memory:"
# Seconds to wait while others write, which takes milliseconds: in all; for each try, which is short
# so that an interrupt is noticed; and between two tries.
PATIENCE, TRY_SECONDS, PAUSE_SECONDS = 30.0, 0.2, 0.005


class Format(NamedTuple):
    """The format of a file: two numbers in its header, and the statements that make its tables.

    Each table has a column ``digest``. A statement that changes a row sets it to NULL, and the
    checksum is written when the transaction ends.
    """

    application: int
    version: int
    schema: tuple[str, ...]


# The rows of tables, by the names of the tables and of their columns.
Tables = Mapping[str, Sequence[dict[str, Any]]]


class Database:
    """An open file of some format, which threads may share.

    With ``content``, a new file is made: complete, or not there at all.
    """

    def __init__(self, path: Path | str, form: Format, content: Tables | None = None) -> None:
        self.path, self.name, self._format = path, shown(path), form
        self._lock = threading.RLock()
        if isinstance(path, Path):
            (_check_there if content is None else _claim)(path, self.name)
        self._connect()
        try:
            if content is None:
                self._check_format()
                self._check_content()
            else:
                self._create(content)
        except BaseException:
            self.close()
            if content is not None and isinstance(path, Path):
                with suppress(OSError):
                    if path.stat().st_size == 0:
                        path.unlink()
            raise

    def _create(self, content: Tables) -> None:
        """Make the tables and fill them, in one transaction."""
        with self.writing() as db:
            if self.number("PRAGMA application_id") or self.number("PRAGMA schema_version"):
                raise _exists(self.name)  # Another process has made it at the same time.
            for statement in self._format.schema:
                db.execute(statement)
            for table, rows in content.items():
                for row in rows:
                    self.insert(table, **row)
            db.execute(f"PRAGMA application_id = {self._format.application}")
            db.execute(f"PRAGMA user_version = {self._format.version}")

    def close(self) -> None:
        """Close the file; nothing is left to be written."""
        with self._lock:
            self._db.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that is committed at the end of the block, or leaves no trace.

        A block inside another one belongs to the outer transaction.
        """
        with self._lock, self._reported():
            if self._db.in_transaction:
                yield self._db
                return
            self._patiently("BEGIN IMMEDIATE")
            try:
                yield self._db
                for table, columns in self._tables.items():
                    self._db.execute(
                        f"UPDATE {table} SET digest = checksum({columns}) WHERE digest IS NULL"
                    )
                self._patiently("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Begin a block in which all queries see the file as it is at one moment."""
        with self._lock, self._reported():
            self._patiently("BEGIN")
            try:
                yield
            finally:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows that a query finds."""
        with self._lock, self._reported():
            return self._patiently(sql, values).fetchall()

    def table(self, name: str) -> list[dict[str, Any]]:
        """Return all rows of a table, by the names of their columns."""
        with self._lock, self._reported():
            found = self._patiently(f"SELECT * FROM {name}")
            names = [one for one, *_ in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]

    def number(self, sql: str, *values: Any) -> int:
        """Return the whole number that a query finds."""
        return int(self.rows(sql, *values)[0][0])

    def insert(self, table: str, **values: Any) -> int:
        """Add a row by the names of its columns, within a transaction; returns its number."""
        marks = ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})"
        return int(self._db.execute(sql, tuple(values.values())).lastrowid or 0)

    def _patiently(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a statement, again and again while others hold the lock."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._db.execute(sql, values)
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                # SQLite has waited for TRY_SECONDS, except where waiting could not have helped:
                # while another process rolls back a journal that a killed one has left.
                time.sleep(PAUSE_SECONDS)

    def _connect(self) -> None:
        # The file is there already: SQLite must not make an empty one out of a mistyped name.
        target = (
            f"{self.path.resolve().as_uri()}?mode=rw" if isinstance(self.path, Path) else MEMORY
        )
        with self._reported():
            self._db = sqlite3.connect(
                target, uri=True, timeout=TRY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._db.create_function("checksum", -1, _checksum, deterministic=True)
                for pragma in ("synchronous = EXTRA", "foreign_keys = ON", "trusted_schema = OFF"):
                    self._patiently(f"PRAGMA {pragma}")
            except BaseException:
                self._db.close()
                raise

    def _check_format(self) -> None:
        if self.number("PRAGMA application_id") != self._format.application:
            raise _not_a_study(self.name)
        version, readable = self.number("PRAGMA user_version"), self._format.version
        if version != readable:
            raise StoredFileError(
                f"{self.name} is a study in format {version}, and this kernelbounds reads format "
                f"{readable} only: pip install -U kernelbounds, or export its runs with the "
                "release that wrote it (study export), and import them into a new study."
            )

    def _check_content(self) -> None:
        """Raise where the structure, the tables or the rows are not as they were written."""
        structure = self.rows("PRAGMA integrity_check(1)")[0][0]
        if structure != "ok":
            raise _damaged(self.name, " ".join(structure.split()))
        found = {sql for (sql,) in self.rows("SELECT sql FROM sqlite_master")}
        if not found.issuperset(self._format.schema):
            raise _damaged(self.name, "its tables are not those of a study")
        for table, columns in self._tables.items():
            wrong = f"SELECT rowid FROM {table} WHERE digest IS NOT checksum({columns}) LIMIT 1"
            for (number,) in self.rows(wrong):
                raise _damaged(self.name, f"row {number} of its {table} is not as it was written")

    @cached_property
    def _tables(self) -> dict[str, str]:
        """The columns of each table from which the checksums of its rows are made."""
        found: dict[str, str] = {}
        for table, column in self.rows(
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
            "WHERE m.type = 'table' AND c.name != 'digest' ORDER BY m.name, c.cid"
        ):
            found[table] = f"{found[table]}, {column}" if table in found else column
        return found

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn errors of SQLite into one sentence each."""
        try:
            yield
        # Python cannot decode a message of SQLite that quotes broken text.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise _explained(error, self.name) from error


def shown(path: Path | str) -> str:
    """Write a path for messages, shortened at its beginning, which says less than the end."""
    text = repr(str(path))
    return text if len(text) <= 80 else f"'...{text[-76:]}"


def _check_there(path: Path, name: str) -> None:
    if not path.exists():
        raise InputError(
            f"there is no study {name}; make one with kernelbounds study create, or Study.create."
        )
    with files.failure_reported(f"open the study {name}"):
        files.check_regular(path.stat().st_mode)


def refuse_existing(path: Path) -> None:
    """Raise where there is a file at the path, other than an empty one.

    An empty file was left by a process that was killed when it had just begun, and is replaced.
    """
    with suppress(FileNotFoundError):
        found = path.stat()
        if found.st_size or not stat.S_ISREG(found.st_mode):
            raise _exists(shown(path))


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
    return InputError(f"{name} already exists; choose another name for the new study.")


def _not_a_study(name: str) -> StoredFileError:
    return StoredFileError(
        f"{name} is not a study of kernelbounds; make one with kernelbounds study create, or "
        "Study.create, and add the runs of a table with study import, or import_runs."
    )


def _damaged(name: str, how: str) -> StoredFileError:
    return StoredFileError(f"{name} is damaged ({how}); use an earlier copy.")


def _checksum(*values: Any) -> str:
    """Return the checksum of the values of a row, which are numbers, text and None."""
    return hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()


def _code(error: Exception) -> int:
    """Return SQLite's primary code of an error, or 0 where the error is Python's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _explained(error: Exception, name: str) -> Exception:
    """Explain in one sentence what an error of SQLite means for the user of a study."""
    cannot_write = f"cannot write to {name}: the"
    read_only = f"{cannot_write} file or its folder is read-only."
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED:
        read_only = f"{cannot_write} file was moved or deleted while it was open."
    messages = {
        sqlite3.SQLITE_READONLY: read_only,
        sqlite3.SQLITE_FULL: f"{cannot_write} disk is full; nothing was changed.",
        sqlite3.SQLITE_BUSY: f"{name} has been locked by another process for more than "
        f"{PATIENCE:g} seconds; nothing was changed, try again.",
        sqlite3.SQLITE_CANTOPEN: f"cannot open {name}, or write to its folder; check that both "
        "exist and that you may write to them.",
    }
    code, text = _code(error), str(error)
    if code in messages:
        return InputError(messages[code])
    if code == sqlite3.SQLITE_NOTADB:
        return _not_a_study(name)
    if code == sqlite3.SQLITE_CORRUPT:
        return _damaged(name, said(error))
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in text:
        return InputError(f"the study {name} was closed; open it again with Study({name}).")
    # The only function is the checksum, which fails only where there is broken text in a row.
    broken = "user-defined function" in text or "UTF-8" in text
    if broken or isinstance(error, UnicodeDecodeError):
        return _damaged(name, "there is text in it that cannot be read")
    return StoredFileError(f"{name} cannot be used: {said(error)}.")


def checked_path(path: Any) -> Path | str:
    """Return a path, or the name of a study that lives in memory only."""
    return MEMORY if path == MEMORY else files.as_path(path)


def checked_new_path(path: Any) -> Path | str:
    """Return a path at which there is nothing yet, or the name of a study in memory."""
    found = checked_path(path)
    if isinstance(found, Path):
        refuse_existing(found)
    return found
