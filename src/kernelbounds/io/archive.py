"""Keep arrays and a JSON header in one npz file, without pickle.

The header says what the file holds and in which version of its format; others are refused. Loading
takes no more memory than the file takes on the disk.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.errors import StoredFileError, said
from kernelbounds.io import files

Packed = tuple[dict[str, Any], dict[str, Array]]  # JSON-ready data, and arrays by name


def write(path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write data and arrays to one file, see :func:`~kernelbounds.io.files.replacing`."""
    target = files.as_path(path)
    packed = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with files.failure_reported(f"save to {str(target)!r}"), files.replacing(target) as file:
        np.savez(file, allow_pickle=False, header=packed, **arrays)


def check_writable(path: str | PathLike[str]) -> None:
    """Refuse a path to which no file can be written, as far as one can tell beforehand."""
    target = files.as_path(path)
    with files.failure_reported(f"save to {str(target)!r}"):
        files.check_writable(target)


def read(
    path: str | PathLike[str],
    kind: str,
    version: int,
    noun: str,
    names: Collection[str] | None = None,
) -> Packed:
    """Read what :func:`write` wrote, if it is of this kind and version.

    Only arrays with these names are read, and they must be of floats; None stands for all arrays in
    the file. What is read takes no more memory than the file takes on the disk: it is not
    compressed, and an array must be as large as its header says before there is an array.
    """
    source = files.as_path(path)
    name = repr(str(source))
    try:
        files.check_regular(source.stat().st_mode)  # reading a FIFO would wait for ever
        with open(source, "rb") as file, zipfile.ZipFile(file) as archive:
            there = [one.removesuffix(".npy") for one in archive.namelist()]
            known = [one for one in there if names is None or one in names or one == "header"]
            if len(set(known)) < len(known):
                raise ValueError("two arrays of one name")
            size = sum(archive.getinfo(f"{one}.npy").file_size for one in known)
            if size > os.fstat(file.fileno()).st_size:  # they overlap, or are compressed
                raise ValueError("arrays that are larger than the file")
            header = json.loads(_member(archive, "header").tobytes())
            arrays = {key: _member(archive, key) for key in known if key != "header"}
            if names is not None and any(one.dtype.str[1:] != "f8" for one in arrays.values()):
                raise ValueError("arrays that are not of floats")
    except FileNotFoundError:
        raise StoredFileError(f"there is no file {name}.") from None
    except OSError as error:
        raise StoredFileError(f"cannot read {name}: {error.strerror or said(error)}.") from error
    except Exception as error:
        raise StoredFileError(f"{name} is not {noun}, or it is damaged ({said(error)}).") from error
    if not isinstance(header, dict) or header.get("format") != kind:
        raise StoredFileError(f"{name} is not {noun}.")
    if header.get("version") != version:
        raise StoredFileError(
            f"{name} has format version {header.get('version')!r}; this release of kernelbounds "
            f"reads version {version} only."
        )
    return header, arrays


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    """Read an array of the archive, as :func:`numpy.savez` writes it."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed")
    with archive.open(info) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"{name} is in another version of NumPy's format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if math.prod(shape) * dtype.itemsize != info.file_size - file.tell():
            raise ValueError(f"{name} of shape {shape} in {info.file_size} bytes")
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


@contextmanager
def damage_reported(
    path: str | PathLike[str], but: type[Exception] | tuple[()] = ()
) -> Iterator[None]:
    """Report whatever goes wrong while a file's parts are put together as damage of the file."""
    try:
        yield
    except but:
        raise
    except Exception as error:
        raise StoredFileError(
            f"{str(path)!r} is damaged: its parts do not fit together ({said(error)})."
        ) from error
