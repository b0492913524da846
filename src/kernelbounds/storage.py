"""Saving and loading: one npz file of arrays and JSON, without pickle.

The kernel matrix is part of the file, so that a loaded sequence computes with the same numbers
even where a kernel evaluates differently, bit for bit, one point at a time or many at once.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import bounds, kernels
from kernelbounds.arrays import LARGEST, Array
from kernelbounds.bounds import Assumptions, Bound
from kernelbounds.engine import Engine
from kernelbounds.errors import InputError, StoredFileError

FORMAT, VERSION = "kernelbounds.ConfidenceSequence", 1


def save(path: str | PathLike[str], engine: Engine, assumptions: Assumptions, bound: Bound) -> None:
    """Write to a temporary file beside ``path`` and rename it: readers never see half a file."""
    data = engine.data
    if getattr(bounds, type(bound).__name__, None) is not type(bound):
        raise InputError(f"a sequence with a bound of your own cannot be saved: {bound!r}.")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kernel": kernels.to_data(data.kernel),
        "assumptions": dataclasses.asdict(assumptions),
        "bound": {"name": type(bound).__name__, **vars(bound)},
    }
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        reason = "it is a folder" if target.is_dir() else "its folder does not exist"
        raise InputError(f"cannot save to {os.fspath(path)!r}: {reason}.")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(
                file,
                header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
                points=data.points,
                outcomes=data.outcomes,
                gram=data.gram[np.tril_indices(data.count)],
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: str | PathLike[str], kernel: Kernel | None) -> tuple[Engine, Assumptions, Bound]:
    """What :func:`save` wrote."""
    name = repr(os.fspath(path))
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(bytes(file["header"]))
            points, outcomes, packed = file["points"], file["outcomes"], file["gram"]
    except FileNotFoundError:
        raise StoredFileError(f"there is no file {name}.") from None
    except Exception as error:
        raise StoredFileError(
            f"{name} is not a saved confidence sequence, or it is damaged ({error})."
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StoredFileError(f"{name} is not a saved confidence sequence.")
    if header.get("version") != VERSION:
        raise StoredFileError(
            f"{name} has format version {header.get('version')!r}; this release of kernelbounds "
            f"reads version {VERSION}."
        )
    chosen = kernels.from_data(header["kernel"]) if kernel is None else kernel
    engine = Engine(kernels.checked_kernel(chosen))
    try:
        settings = dict(header["bound"])
        bound: Bound = _bound_class(settings.pop("name"))(**settings)
        _restore(engine, points, outcomes, packed)
        return engine, Assumptions(**header["assumptions"]), bound
    except Exception as error:
        raise StoredFileError(
            f"{name} is damaged: its parts do not fit together ({error})."
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
