"""Save and load a sequence as one npz file of arrays and JSON, without pickle.

The kernel matrix is part of the file, so that a loaded sequence computes with the same numbers
even where a kernel evaluates differently, bit for bit, one point at a time or many at once.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from types import ModuleType
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import bounds, kernels, mixtures
from kernelbounds.arrays import LARGEST, Array, brief, shortened
from kernelbounds.assume.offset import Offset, checked_offset
from kernelbounds.assume.parts import Parts
from kernelbounds.bounds import Assumptions, Bound, ConfidenceSet
from kernelbounds.engine import Engine, Forecasts, SparseEngine
from kernelbounds.engine.sparse import state as sparse_state
from kernelbounds.errors import InputError, StoredFileError, said
from kernelbounds.io import files
from kernelbounds.mixtures import Mixture
from kernelbounds.mixtures.mixture import RunningLosses
from kernelbounds.sequence.asking import checked_bound

FORMAT, VERSION = "kernelbounds.ConfidenceSequence", 4
# All arrays that a saved sequence may have; others in its file are not looked at.
NAMES = frozenset(("points", "outcomes", "weights", "merged_at", "gram", "forecasts")) | {
    f"sparse.{name}" for name in sparse_state.SHAPES
}
BOUNDS = ("AMM", "AY", "CMM", "DMM", "FixedDesign", "IGP")
MIXTURES = ("Hybrid", "Single")
CONSTANTS = ("norm_bound", "noise_scale", "delta", "misspecification")

# Kernel values are computed again on loading, perhaps by another release or on another machine:
# each may be off by the engine's accuracy, which is itself an estimate for kernels it cannot know.
MISFIT = 64.0
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
BLOCK = 2**20  # entries of the kernel matrix that are computed at a time, 8 MB

Packed = tuple[dict[str, Any], dict[str, Array]]  # JSON-ready data, and arrays by name


class UserObjects(NamedTuple):
    """Objects of a user's own classes, which a file cannot hold and the user passes to ``load``."""

    kernel: Kernel | Parts | None = None
    bound: Bound | None = None
    mixture: Mixture | None = None
    offset: Offset | None = None

    @classmethod
    def checked(cls, kernel: Any, bound: Any, mixture: Any, offset: Any) -> UserObjects:
        """Make it from what a user passed; raise where that is of another kind."""
        if mixture is not None and not isinstance(mixture, Mixture):
            raise InputError(f"mixture must be one of kernelbounds.mixtures, got {brief(mixture)}.")
        known_bound = None if bound is None else checked_bound(bound)
        return cls(kernel, known_bound, mixture, None if offset is None else checked_offset(offset))


def save(path: str | PathLike[str], known: ConfidenceSet, bound: Bound) -> None:
    """Write a sequence to a file."""
    header, arrays = pack(known, bound)
    write(path, {"format": FORMAT, "version": VERSION, **header}, arrays)


def load(path: str | PathLike[str], own: UserObjects) -> tuple[ConfidenceSet, Bound]:
    """Read what :func:`save` wrote."""
    header, arrays = read(path, FORMAT, VERSION, "a saved confidence sequence", NAMES)
    return unpack(path, header, arrays, own)


def pack(known: ConfidenceSet, bound: Bound) -> Packed:
    """Convert a sequence to data for a file."""
    data, a = known.base.data, known.assumptions
    header = {
        "kernel": _kernel_to_data(known.parts or data.kernel),
        "offset": _offset_to_data(known.offset),
        "assumptions": {name: getattr(a, name) for name in CONSTANTS},
        "bound": _to_data(bound, bounds, BOUNDS),
        "mixture": _to_data(a.mixture, mixtures, MIXTURES),
    }
    if not known.base.keeps_observations:
        header["sparse"], own = sparse_state.pack(cast(SparseEngine, known.base))
        return header, {f"sparse.{name}": part for name, part in own.items()}
    rows = known.base.rows
    arrays = {
        "points": data.points,
        "outcomes": data.observed,
        "weights": data.weights,
        "merged_at": np.array(data.merged_at, dtype=np.float64),
        "gram": rows.lower[np.tril_indices(rows.count)],
        "forecasts": np.array(_complete_or_made(known)),
    }
    return header, arrays


def unpack(
    path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, Array], own: UserObjects
) -> tuple[ConfidenceSet, Bound]:
    """Make a sequence from what :func:`pack` returned; ``path`` is where it was found."""
    kernel = _kernel(path, header, own.kernel)
    with damage_reported(path):
        stored = {noun: dict(header[noun]) for noun in ("offset", "bound", "mixture")}
    offset = _offset(path, stored["offset"], own.offset)
    bound: Bound = _chosen(path, "bound", stored["bound"], own.bound, bounds, BOUNDS)
    mixture = _chosen(path, "mixture", stored["mixture"], own.mixture, mixtures, MIXTURES)
    parts = kernel if isinstance(kernel, Parts) else None
    whole = kernel.kernel(kernel.equal_shares) if isinstance(kernel, Parts) else kernel
    with damage_reported(path):
        a = Assumptions(**header["assumptions"], mixture=mixture)
        if "sparse" in header:
            sparse = _sparse_engine(whole, header["sparse"], arrays, a)
            known = ConfidenceSet(cast(Engine, sparse), a, parts=parts, offset=offset)
        else:
            engine = Engine(whole)
            forecasts = _forecasts(arrays["forecasts"], len(arrays["outcomes"]))
            known = ConfidenceSet(engine, a, forecasts, parts, offset)
            _restore(known, arrays)
    # Only the caller of a kernel of their own is to blame for one that fails.
    with damage_reported(path, but=InputError if own.kernel is not None else ()):
        misfit = sparse_state.misfit(sparse) if "sparse" in header else _misfit(engine)
    if misfit and own.kernel is None:
        raise StoredFileError(f"{str(path)!r} is damaged: {misfit}.")
    if misfit:
        raise InputError(f"{str(path)!r} was saved with another kernel: {misfit}.")
    return known, bound


def _sparse_engine(
    kernel: Kernel, header: dict[str, Any], arrays: dict[str, Array], a: Assumptions
) -> SparseEngine:
    # A policy's file has arrays of its own, some of which may be infinite.
    own_arrays = (name for name in arrays if name.startswith("sparse."))
    state = {name.removeprefix("sparse."): arrays[name] for name in own_arrays}
    losses = RunningLosses(a.mixture, float(header["ridge"]), a.noise_scale)
    return sparse_state.unpack(kernel, header, state, losses)


def write(path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write data and arrays to one file, see :func:`~kernelbounds.io.files.replacing`."""
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
            _check_sizes(archive, known, os.fstat(file.fileno()).st_size)
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


def _check_sizes(archive: zipfile.ZipFile, names: Sequence[str], most: int) -> None:
    """Refuse arrays that together are larger than the file: they overlap, or lie."""
    if len(set(names)) < len(names):
        raise ValueError("two arrays of one name")
    if sum(archive.getinfo(f"{name}.npy").file_size for name in names) > most:
        raise ValueError("arrays that are larger than the file")


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    """An array of the archive, as :func:`numpy.savez` writes it."""
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


def _kernel_to_data(kernel: Kernel | Parts) -> dict[str, Any]:
    if not isinstance(kernel, Parts):
        return kernels.to_data(kernel)
    parts = [{"kernel": kernels.to_data(one), "bound": bound} for one, bound in kernel.pairs]
    return {"class": "Parts", "parts": parts}


def _kernel_from_data(data: dict[str, Any]) -> Kernel | Parts:
    if "parts" not in data:
        return kernels.checked_kernel(kernels.from_data(data))
    pairs = [(kernels.from_data(part["kernel"]), part["bound"]) for part in data["parts"]]
    try:
        return Parts(pairs)
    except InputError as error:  # the file is to blame, and not the caller
        raise ValueError(said(error)) from error


def _offset_to_data(offset: Offset) -> dict[str, Any]:
    level = offset.constant
    if level is None:
        return {"own": True, "repr": _without_address(repr(offset.level)), "within": offset.within}
    return {"level": level, "within": offset.within}


def _offset(path: str | PathLike[str], stored: dict[str, Any], given: Offset | None) -> Offset:
    """The stored offset, or the one given if it is the same."""
    if given is None:
        if stored.get("own"):
            raise InputError(
                f"{str(path)!r} was saved with a mean function of your own "
                f"({shortened(str(stored.get('repr')))}); pass it as load(path, "
                "offset=Offset(...))."
            )
        with damage_reported(path):
            return Offset(**stored)
    if _offset_to_data(given) != stored:
        raise InputError(
            f"{str(path)!r} was saved with another offset than {shortened(repr(given))}; pass the "
            "same one."
        )
    return given


def _kernel(
    path: str | PathLike[str], header: dict[str, Any], given: Kernel | Parts | None
) -> Kernel | Parts:
    """The stored kernel, or the one given if it is the same."""
    if given is None:
        with damage_reported(path, but=InputError):  # which says what to do
            return _kernel_from_data(header["kernel"])
    kernel = given if isinstance(given, Parts) else kernels.checked_kernel(given)
    with damage_reported(path):
        # Through JSON, as the stored one came.
        found = _in_words(json.loads(json.dumps(_kernel_to_data(kernel))))
        stored = _in_words(header["kernel"])
    if found != stored:
        raise InputError(
            f"{str(path)!r} was saved with the kernel {shortened(stored)}, and not with "
            f"{shortened(found)}; pass the same one."
        )
    return kernel


def _in_words(stored: Any) -> str:
    """All that defines a kernel, with all digits; the limits of hyperparameter searches do not."""
    if isinstance(stored, list):
        return f"[{', '.join(map(_in_words, stored))}]"
    if not (isinstance(stored, dict) and "class" in stored):
        return repr(float(stored)) if isinstance(stored, int | float) else repr(stored)
    if stored.get("own"):
        return f"{stored['class']} {_without_address(stored['repr'])}"
    if "parts" in stored:
        words = [f"{_in_words(one['kernel'])} {one['bound']!r}" for one in stored["parts"]]
    else:
        params = stored["params"].items()
        words = [f"{key}={_in_words(one)}" for key, one in params if not key.endswith("_bounds")]
    return f"{stored['class']}({', '.join(words)})"


def _misfit(engine: Engine) -> str | None:
    """Describe where the kernel does not give the stored matrix; None where it does everywhere."""
    data = engine.rows
    if not data.count:
        return None
    prior = kernels.diagonal(data.kernel, data.points) * data.weights**2
    scales, tolerance = np.sqrt(prior), MISFIT * data.accuracy
    rows = max(1, BLOCK // data.count)
    for start in range(0, data.count, rows):
        stop = min(start + rows, data.count)
        found = kernels.cross(data.kernel, data.points[start:stop], data.points[:stop])
        found *= np.multiply.outer(data.weights[start:stop], data.weights[:stop])
        # On the diagonal the engine has what the kernel itself says of k(x, x).
        diagonal = np.arange(start, stop)[:, None] == np.arange(stop)
        found = np.where(diagonal, prior[:stop], found)
        misfit = np.abs(np.tril(found - data.lower[start:stop, :stop], start))
        # Below the smallest normal number nothing is precise.
        allowed = tolerance * np.multiply.outer(scales[start:stop], scales[:stop]) + SMALLEST_NORMAL
        if not np.all(misfit <= allowed):
            i, j = np.unravel_index(np.argmax(misfit - allowed), misfit.shape)
            return (
                f"its kernel matrix has {data.lower[start + i, j]:.9g} for points {start + i} and "
                f"{j}, where {shortened(str(data.kernel))} gives {found[i, j]:.9g}"
            )
    return None


def _to_data(one: Any, package: ModuleType, names: Sequence[str]) -> dict[str, Any]:
    """Describe the package's bounds and mixtures by their settings, others by their repr."""
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
        text = stored["repr"] if own else name
        if given is None and not own:
            if name not in names:
                raise ValueError(f"no {noun} is called {name!r}")
            settings = {key: value for key, value in stored.items() if key != "name"}
            return getattr(package, name)(**settings)
    if given is None:
        raise InputError(
            f"{str(path)!r} was saved with a {noun} of your own ({shortened(text)}); pass it as "
            f"load(path, {noun}=...)."
        )
    found = _to_data(given, package, names)
    if (own or noun == "mixture") and json.loads(json.dumps(found)) != stored:
        raise InputError(
            f"{str(path)!r} was saved with the {noun} {shortened(text)} of the class {name}, and "
            f"not with {shortened(_without_address(repr(given)))} of the class {found['name']}; "
            "pass the same one."
        )
    return given


def _without_address(text: str) -> str:
    """The repr of an object without its place in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _complete_or_made(known: ConfidenceSet) -> Forecasts:
    """All forecasts, or those before a user's forecaster failed, so that the data can be saved."""
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


def _restore(known: ConfidenceSet, arrays: dict[str, Array]) -> None:
    """Give stored observations and their kernel matrix to a confidence set without any."""
    names = ("points", "outcomes", "weights", "merged_at", "gram")
    points, outcomes, weights, merged_at, packed = (arrays[name] for name in names)
    count = len(outcomes)
    shapes = points.shape[:1], weights.shape, merged_at.shape
    if shapes != ((count,), (count,), (merged_at.size,)):
        raise ValueError(f"shapes {points.shape}, {outcomes.shape}, {merged_at.shape}")
    if not all(np.all(np.abs(part) <= LARGEST) for part in (points, outcomes, weights, packed)):
        raise ValueError("values that are not finite")
    if not np.all(weights > 0):
        raise ValueError("weights that are not positive")
    if merged_at.size and not np.all(np.diff(merged_at, prepend=0, append=count) > 0):
        raise ValueError("merges out of order")
    if count:
        told, cuts = known.weighed(points, outcomes, weights), merged_at.astype(np.intp).tolist()
        known.base.data.restore(points, told, packed, cuts)
