"""Saving and loading: one npz file of arrays and JSON, without pickle.

The kernel matrix is part of the file, so that a loaded sequence computes with the same numbers
even where a kernel evaluates differently, bit for bit, one point at a time or many at once.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import bounds, files, kernels
from kernelbounds.arrays import LARGEST, Array
from kernelbounds.bounds import Assumptions, Bound
from kernelbounds.engine import Engine
from kernelbounds.errors import InputError, StoredFileError, said

FORMAT, VERSION = "kernelbounds.ConfidenceSequence", 1
ARRAYS = ("points", "outcomes", "gram")

Parts = tuple[dict[str, Any], dict[str, Array]]  # JSON-ready data, and arrays by name


def save(path: str | PathLike[str], engine: Engine, assumptions: Assumptions, bound: Bound) -> None:
    """Write a sequence to a file."""
    header, arrays = pack(engine, assumptions, bound)
    write(path, {"format": FORMAT, "version": VERSION, **header}, arrays)


def load(path: str | PathLike[str], kernel: Kernel | None) -> tuple[Engine, Assumptions, Bound]:
    """What :func:`save` wrote."""
    header, arrays = read(path, FORMAT, VERSION, "a saved confidence sequence")
    chosen = kernel_of(path, header, kernel)
    with damage_reported(path):
        return unpack(header, arrays, chosen)


def kernel_of(path: str | PathLike[str], header: dict[str, Any], given: Kernel | None) -> Kernel:
    """The kernel that was given, or else the one that was stored."""
    if given is not None:
        return kernels.checked_kernel(given)
    with damage_reported(path, but=InputError):  # which says what to do
        return kernels.from_data(header["kernel"])


def pack(engine: Engine, assumptions: Assumptions, bound: Bound) -> Parts:
    """A sequence as data for a file."""
    data = engine.data
    if getattr(bounds, type(bound).__name__, None) is not type(bound):
        raise InputError(f"a sequence with a bound of your own cannot be saved: {bound!r}.")
    header = {
        "kernel": kernels.to_data(data.kernel),
        "assumptions": dataclasses.asdict(assumptions),
        "bound": {"name": type(bound).__name__, **vars(bound)},
    }
    gram = data.lower[np.tril_indices(data.count)]
    return header, {"points": data.points, "outcomes": data.outcomes, "gram": gram}


def unpack(
    header: dict[str, Any], arrays: dict[str, Array], kernel: Kernel
) -> tuple[Engine, Assumptions, Bound]:
    """What :func:`pack` was given."""
    engine = Engine(kernels.checked_kernel(kernel))
    settings = dict(header["bound"])
    bound: Bound = _bound_class(settings.pop("name"))(**settings)
    _restore(engine, *(arrays[name] for name in ARRAYS))
    return engine, Assumptions(**header["assumptions"]), bound


def write(path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write data and arrays to one file, see :func:`~kernelbounds.files.replacing`."""
    check_writable(path)
    target = files.as_path(path)
    packed = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with files.failure_reported(f"save to {str(target)!r}"), files.replacing(target) as file:
        np.savez(file, allow_pickle=False, header=packed, **arrays)


def check_writable(path: str | PathLike[str]) -> None:
    """Refuse a path to which no file can be written, as far as one can tell beforehand."""
    target = files.as_path(path)
    with files.failure_reported(f"save to {str(target)!r}"):
        files.check_writable(target)


def read(path: str | PathLike[str], kind: str, version: int, noun: str) -> Parts:
    """What :func:`write` wrote, if it is of this kind and version."""
    source = files.as_path(path)
    name = repr(str(source))
    try:
        files.check_regular(source.stat().st_mode)  # reading a FIFO would wait for ever
        with open(source, "rb") as file, np.load(file, allow_pickle=False) as archive:
            header = json.loads(bytes(archive["header"]))
            arrays = {key: archive[key] for key in archive.files if key != "header"}
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
            f"reads version {version}."
        )
    return header, arrays


@contextmanager
def damage_reported(
    path: str | PathLike[str], but: type[Exception] | tuple[()] = ()
) -> Iterator[None]:
    """Whatever goes wrong while a file's parts are put together means that it is damaged."""
    try:
        yield
    except but:
        raise
    except Exception as error:
        raise StoredFileError(
            f"{str(path)!r} is damaged: its parts do not fit together ({said(error)})."
        ) from error


def _bound_class(name: str) -> Any:
    if name not in ("AMM", "AY", "CMM", "DMM", "IGP"):
        raise ValueError(f"no bound is called {name!r}")
    return getattr(bounds, name)


def _restore(engine: Engine, points: Array, outcomes: Array, packed: Array) -> None:
    count = len(outcomes)
    if points.shape[:1] != (count,) or packed.shape != (count * (count + 1) // 2,):
        raise ValueError(f"shapes {points.shape}, {outcomes.shape}, {packed.shape}")
    if not all(np.all(np.abs(part) <= LARGEST) for part in (points, outcomes, packed)):
        raise ValueError("values that are not finite")
    if count:
        gram = np.empty((count, count))
        rows, columns = np.tril_indices(count)
        gram[rows, columns] = gram[columns, rows] = packed
        engine.data.restore(points, outcomes, gram)
