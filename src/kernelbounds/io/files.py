"""Write files whole or not at all.

The new content goes to a temporary file in the same folder, which then takes the place of the old
file. Readers never see half a file, and an interrupt leaves the old one as it was.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from kernelbounds.errors import InputError, said

# How SQLite's files begin: a database, and the journal that restores one after a crash.
DATABASE_MARKS = (b"SQLite format 3\0", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
# A process that is alive writes to its temporary file more often than this.
ABANDONED_AFTER_SECONDS = 600.0


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` when the block ends without an exception.

    Symbolic links are followed. A new file gets the mode that the umask gives, an old one keeps
    its mode. An OSError says what could not be done, also where ``path`` is not a regular file, and
    where it is a study: results never replace the observations that they were made from.
    """
    check_writable(path)
    mode, target = _mode(path), Path(os.path.realpath(path))
    # The name is short, however long the target's is, and says which target it belongs to.
    belonging = f".kernelbounds-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}-"
    temporary = target.with_name(f"{belonging}{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            _remove_abandoned(target.parent, belonging, os.fstat(file.fileno()).st_mtime)
            yield file
            file.flush()
            os.fsync(file.fileno())
        _refuse_database(target)  # It may have been made in the meantime.
        if mode is not None and stat.S_IMODE(temporary.stat().st_mode) != mode:
            temporary.chmod(mode)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode())


def check_writable(path: Path) -> None:
    """Raise the OSError that :func:`replacing` would raise, as far as one can tell beforehand."""
    _refuse_database(path)
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise FileNotFoundError(0, "its folder does not exist")


def check_regular(mode: int) -> None:
    """Raise an OSError where the mode is that of a folder, a FIFO, a device or a socket."""
    if stat.S_ISDIR(mode):
        raise OSError(0, "it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(0, "it is a FIFO, a device or a socket, and not a file")


def as_path(path: Any) -> Path:
    """Convert what a user passed to a path."""
    name = os.fspath(path) if isinstance(path, str | PathLike) else None
    if not isinstance(name, str) or "\0" in name:
        from kernelbounds.arrays import brief  # with NumPy, for which a line of help need not wait

        raise InputError(f"a path must be a string or a pathlib.Path, got {brief(path)}.")
    return Path(name)


def named(path: Path) -> str:
    """The name of a path in messages, where its end says more than its beginning."""
    text = repr(str(path))
    return text if len(text) <= 80 else f"'...{text[-76:]}"


@contextmanager
def failure_reported(doing: str) -> Iterator[None]:
    """Turn an OSError into an InputError that says "cannot {doing}: {reason}."."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot {doing}: {error.strerror or said(error)}.") from error


def content_begins(path: Path, count: int) -> bytes:
    """The first bytes of a file; none where there is no such file."""
    if _mode(path) is None:
        return b""
    with open(path, "rb") as file:
        return file.read(count)


def _refuse_database(path: Path) -> None:
    """Raise where the path leads to a study, by whatever name: its content is looked at."""
    if content_begins(path, len(DATABASE_MARKS[0])).startswith(DATABASE_MARKS):
        raise OSError(
            0,
            "it is a study, or another SQLite database, which is never replaced; name another file",
        )


def _mode(path: Path) -> int | None:
    """The permissions of a file, or None where there is no such file."""
    try:
        found = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    check_regular(found)
    return stat.S_IMODE(found)


def _remove_abandoned(folder: Path, belonging: str, now: float) -> None:
    """Remove temporary files of the same target that killed processes have left behind.

    ``now`` is by the clock of the file system, which on a network is not that of this machine.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(belonging):
                with suppress(OSError):
                    if now - entry.stat(follow_symlinks=False).st_mtime > ABANDONED_AFTER_SECONDS:
                        os.unlink(entry.path)
