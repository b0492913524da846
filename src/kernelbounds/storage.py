"""Saving and loading: one npz file of arrays and JSON, without pickle.

The kernel matrix is part of the file, so that a loaded sequence computes with the same numbers
even where a kernel evaluates differently, bit for bit, one point at a time or many at once.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import bounds, files, kernels
from kernelbounds.arrays import LARGEST, Array, shortened
from kernelbounds.bounds import Assumptions, Bound
from kernelbounds.engine import Engine
from kernelbounds.errors import InputError, StoredFileError, said

FORMAT, VERSION = "kernelbounds.ConfidenceSequence", 1
ARRAYS = ("points", "outcomes", "gram")
BOUNDS = ("AMM", "AY", "CMM", "DMM", "IGP")

# Kernel values are computed again on loading, perhaps by another release or on another machine:
# each may be off by the engine's accuracy, which is itself an estimate for kernels it cannot know.
MISFIT = 64.0
TINY = float(np.finfo(np.float64).tiny)
BLOCK = 2**20  # entries of the kernel matrix that are computed at a time, 8 MB

Parts = tuple[dict[str, Any], dict[str, Array]]  # JSON-ready data, and arrays by name


def save(path: str | PathLike[str], engine: Engine, assumptions: Assumptions, bound: Bound) -> None:
    """Write a sequence to a file."""
    header, arrays = pack(engine, assumptions, bound)
    write(path, {"format": FORMAT, "version": VERSION, **header}, arrays)


def load(
    path: str | PathLike[str], kernel: Kernel | None, bound: Bound | None
) -> tuple[Engine, Assumptions, Bound]:
    """What :func:`save` wrote."""
    header, arrays = read(path, FORMAT, VERSION, "a saved confidence sequence")
    return unpack(path, header, arrays, kernel, bound)


def pack(engine: Engine, assumptions: Assumptions, bound: Bound) -> Parts:
    """A sequence as data for a file."""
    data = engine.data
    header = {
        "kernel": kernels.to_data(data.kernel),
        "assumptions": dataclasses.asdict(assumptions),
        "bound": _bound_to_data(bound),
    }
    gram = data.lower[np.tril_indices(data.count)]
    return header, {"points": data.points, "outcomes": data.outcomes, "gram": gram}


def unpack(
    path: str | PathLike[str],
    header: dict[str, Any],
    arrays: dict[str, Array],
    kernel: Kernel | None,
    bound: Bound | None,
) -> tuple[Engine, Assumptions, Bound]:
    """What :func:`pack` was given; kernel and bound as for ``ConfidenceSequence.load``."""
    engine = Engine(_kernel(path, header, kernel))
    with damage_reported(path):
        assumptions = Assumptions(**header["assumptions"])
        _restore(engine, *(arrays[name] for name in ARRAYS))
    chosen = _bound(path, header, bound)
    with damage_reported(path, but=InputError if kernel is not None else ()):
        misfit = _misfit(engine)
    if misfit and kernel is None:
        raise StoredFileError(f"{str(path)!r} is damaged: {misfit}.")
    if misfit:
        raise InputError(f"{str(path)!r} was saved with another kernel: {misfit}.")
    return engine, assumptions, chosen


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


def _kernel(path: str | PathLike[str], header: dict[str, Any], given: Kernel | None) -> Kernel:
    """The stored kernel, or the one given if it is the same."""
    if given is None:
        with damage_reported(path, but=InputError):  # which says what to do
            return kernels.checked_kernel(kernels.from_data(header["kernel"]))
    kernel = kernels.checked_kernel(given)
    with damage_reported(path):
        # Through JSON, as the stored one came.
        found = _kernel_in_words(json.loads(json.dumps(kernels.to_data(kernel))))
        stored = _kernel_in_words(header["kernel"])
    if found != stored:
        raise InputError(
            f"{str(path)!r} was saved with the kernel {shortened(stored)}, and not with "
            f"{shortened(found)}; pass the same one."
        )
    return kernel


def _kernel_in_words(data: dict[str, Any]) -> str:
    """All that defines the function, to all digits; the limits of a search for it do not."""
    if data.get("own"):
        return f"{data['class']} {_without_address(data['repr'])}"
    params = [
        f"{name}={_kernel_in_words(value) if _is_kernel(value) else _number_in_words(value)}"
        for name, value in data["params"].items()
        if not name.endswith("_bounds")
    ]
    return f"{data['class']}({', '.join(params)})"


def _is_kernel(value: Any) -> bool:
    return isinstance(value, dict) and "class" in value


def _number_in_words(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_number_in_words(one) for one in value)}]"
    return repr(float(value)) if isinstance(value, int | float) else repr(value)


def _misfit(engine: Engine) -> str | None:
    """Where the kernel does not give the matrix that is stored, in words; None if it does."""
    data = engine.data
    if not data.count:
        return None
    prior = kernels.diagonal(data.kernel, data.points)
    scales, tolerance = np.sqrt(prior), MISFIT * data.accuracy
    rows = max(1, BLOCK // data.count)
    for start in range(0, data.count, rows):
        stop = min(start + rows, data.count)
        found = kernels.cross(data.kernel, data.points[start:stop], data.points[:stop])
        # On the diagonal the engine has what the kernel itself says of k(x, x).
        diagonal = np.arange(start, stop)[:, None] == np.arange(stop)
        found = np.where(diagonal, prior[:stop], found)
        misfit = np.abs(np.tril(found - data.lower[start:stop, :stop], start))
        # Below the smallest normal number nothing is precise.
        allowed = tolerance * np.multiply.outer(scales[start:stop], scales[:stop]) + TINY
        if not np.all(misfit <= allowed):
            i, j = np.unravel_index(np.argmax(misfit - allowed), misfit.shape)
            return (
                f"its kernel matrix has {data.lower[start + i, j]:.9g} for points {start + i} and "
                f"{j}, where {shortened(str(data.kernel))} gives {found[i, j]:.9g}"
            )
    return None


def _bound(path: str | PathLike[str], header: dict[str, Any], given: Bound | None) -> Bound:
    """The stored bound, or the one given if it may take its place."""
    with damage_reported(path):
        settings = dict(header["bound"])
        own, name = settings.pop("own", False), settings.pop("name")
        if not own:
            return _bound_class(name)(**settings) if given is None else given
        stored = settings["repr"]
    if given is None:
        raise InputError(
            f"{str(path)!r} was saved with a bound of your own ({shortened(stored)}); pass it as "
            "load(path, bound=...)."
        )
    found = _bound_to_data(given)
    if found != header["bound"]:
        raise InputError(
            f"{str(path)!r} was saved with the bound {shortened(stored)} of the class {name}, and "
            f"not with {shortened(_without_address(repr(given)))} of the class "
            f"{found['name']}; pass the same one."
        )
    return given


def _bound_to_data(bound: Bound) -> dict[str, Any]:
    """One of the package's by its settings, another by what it says of itself."""
    cls = type(bound)
    if cls.__name__ in BOUNDS and getattr(bounds, cls.__name__) is cls:
        return {"name": cls.__name__, **vars(bound)}
    return {"name": cls.__qualname__, "own": True, "repr": _without_address(repr(bound))}


def _bound_class(name: str) -> Any:
    if name not in BOUNDS:
        raise ValueError(f"no bound is called {name!r}")
    return getattr(bounds, name)


def _without_address(text: str) -> str:
    """What an object says of itself, less where in memory it is."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


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
