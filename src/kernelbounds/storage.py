"""Saving and loading: one npz file of arrays and JSON, without pickle.

The kernel matrix is part of the file, so that a loaded sequence computes with the same numbers
even where a kernel evaluates differently, bit for bit, one point at a time or many at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import bounds, files, kernels, mixtures
from kernelbounds.arrays import LARGEST, Array, shortened
from kernelbounds.bounds import Assumptions, Bound, Knowledge
from kernelbounds.engine import Engine, Forecasts
from kernelbounds.errors import InputError, StoredFileError, said
from kernelbounds.mixtures import Mixture

FORMAT, VERSION = "kernelbounds.ConfidenceSequence", 2
ARRAYS = ("points", "outcomes", "gram")
BOUNDS = ("AMM", "AY", "CMM", "DMM", "IGP")
MIXTURES = ("Hybrid", "Single")
CONSTANTS = ("norm_bound", "noise_scale", "delta")

# Kernel values are computed again on loading, perhaps by another release or on another machine:
# each may be off by the engine's accuracy, which is itself an estimate for kernels it cannot know.
MISFIT = 64.0
TINY = float(np.finfo(np.float64).tiny)
BLOCK = 2**20  # entries of the kernel matrix that are computed at a time, 8 MB

Parts = tuple[dict[str, Any], dict[str, Array]]  # JSON-ready data, and arrays by name


def save(path: str | PathLike[str], known: Knowledge, bound: Bound) -> None:
    """Write a sequence to a file."""
    header, arrays = pack(known, bound)
    write(path, {"format": FORMAT, "version": VERSION, **header}, arrays)


def load(path: str | PathLike[str], own: Own) -> tuple[Knowledge, Bound]:
    """What :func:`save` wrote."""
    header, arrays = read(path, FORMAT, VERSION, "a saved confidence sequence")
    return unpack(path, header, arrays, own)


class Own(NamedTuple):
    """What a user passes because it is of their own and a file cannot hold it."""

    kernel: Kernel | None = None
    bound: Bound | None = None
    mixture: Mixture | None = None


def pack(known: Knowledge, bound: Bound) -> Parts:
    """A sequence as data for a file."""
    data, a = known.engine.data, known.assumptions
    header = {
        "kernel": kernels.to_data(data.kernel),
        "assumptions": {name: getattr(a, name) for name in CONSTANTS},
        "bound": _to_data(bound, bounds, BOUNDS),
        "mixture": _to_data(a.mixture, mixtures, MIXTURES),
    }
    arrays = {
        "points": data.points,
        "outcomes": data.outcomes,
        "gram": data.lower[np.tril_indices(data.count)],
        "forecasts": np.array(_complete_or_made(known)),
    }
    return header, arrays


def unpack(
    path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, Array], own: Own
) -> tuple[Knowledge, Bound]:
    """What :func:`pack` was given; what is of the user's own as for ``ConfidenceSequence.load``."""
    engine = Engine(_kernel(path, header, own.kernel))
    with damage_reported(path):
        _restore(engine, *(arrays[name] for name in ARRAYS))
        forecasts = _forecasts(arrays["forecasts"], engine.data.count)
        stored = {noun: dict(header[noun]) for noun in ("bound", "mixture")}
    bound: Bound = _chosen(path, "bound", stored["bound"], own.bound, bounds, BOUNDS)
    mixture = _chosen(path, "mixture", stored["mixture"], own.mixture, mixtures, MIXTURES)
    with damage_reported(path):
        assumptions = Assumptions(**header["assumptions"], mixture=mixture)
    with damage_reported(path, but=InputError if own.kernel is not None else ()):
        misfit = _misfit(engine)
    if misfit and own.kernel is None:
        raise StoredFileError(f"{str(path)!r} is damaged: {misfit}.")
    if misfit:
        raise InputError(f"{str(path)!r} was saved with another kernel: {misfit}.")
    return Knowledge(engine, assumptions, forecasts), bound


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


def _to_data(one: Any, package: ModuleType, names: Sequence[str]) -> dict[str, Any]:
    """A bound or mixture of the package's by its settings, another by what it says of itself."""
    cls = type(one)
    if cls.__name__ in names and getattr(package, cls.__name__) is cls:
        return {"name": cls.__name__, **vars(one)}
    return {"name": cls.__qualname__, "own": True, "repr": _without_address(repr(one))}


def _chosen(
    path: str | PathLike[str],
    noun: str,
    stored: dict[str, Any],
    given: Any,
    package: ModuleType,
    names: Sequence[str],
) -> Any:
    """The stored bound or mixture, or the one given, which must be the same.

    Only a bound of the package's may be replaced: it is computed from the data when asked for.
    """
    with damage_reported(path):
        own, name = stored.get("own", False), stored["name"]
        said_of_it = stored["repr"] if own else name
    if not own and given is None:
        with damage_reported(path):
            if name not in names:
                raise ValueError(f"no {noun} is called {name!r}")
            settings = {key: value for key, value in stored.items() if key != "name"}
            return getattr(package, name)(**settings)
    if given is None:
        raise InputError(
            f"{str(path)!r} was saved with a {noun} of your own ({shortened(said_of_it)}); pass it "
            f"as load(path, {noun}=...)."
        )
    found = _to_data(given, package, names)
    if (own or noun == "mixture") and json.loads(json.dumps(found)) != stored:
        raise InputError(
            f"{str(path)!r} was saved with the {noun} {shortened(said_of_it)} of the class {name}, "
            f"and not with {shortened(_without_address(repr(given)))} of the class "
            f"{found['name']}; pass the same one."
        )
    return given


def _without_address(text: str) -> str:
    """What an object says of itself, less where in memory it is."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _complete_or_made(known: Knowledge) -> Forecasts:
    """All forecasts; where a forecaster of one's own fails, those before, to save the data."""
    try:
        return known.forecasts()
    except InputError:
        return known.forecasts_made


def _forecasts(stored: Array, count: int) -> Forecasts:
    if stored.shape[:1] != (2,) or stored.ndim != 2 or stored.shape[1] > count:
        raise ValueError(f"forecasts of shape {stored.shape}")
    if not (np.all(np.isfinite(stored)) and np.all(stored[1] >= 0)):
        raise ValueError("forecasts that are not finite")
    return Forecasts(*stored)


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
