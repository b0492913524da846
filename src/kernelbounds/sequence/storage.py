"""Save and load a sequence as one npz file of arrays and JSON, without pickle.

The kernel matrix is part of the file, so that a loaded sequence computes with the same numbers
even where a kernel evaluates differently, bit for bit, one point at a time or many at once.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Sequence
from os import PathLike
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import bounds, kernels, mixtures, noise
from kernelbounds.arrays import LARGEST, Array, brief, shortened
from kernelbounds.bounds import Assumptions, Bound, ConfidenceSet
from kernelbounds.confidence.evidence import Evidence
from kernelbounds.engine import ExactEngine, Forecasts, NoiseBlock, SparseEngine, Whitening
from kernelbounds.engine.sparse import state as sparse_state
from kernelbounds.errors import InputError, StoredFileError
from kernelbounds.facts import Region, fact_from_data, fact_to_data
from kernelbounds.io import archive
from kernelbounds.io.archive import Packed, damage_reported
from kernelbounds.mixtures import Mixture
from kernelbounds.mixtures.ledger import RunningLosses
from kernelbounds.noise import Noise
from kernelbounds.sequence.asking import checked_bound
from kernelbounds.structure.classes import AllOf, AnyOf, Classes, sum_of
from kernelbounds.structure.offset import Offset, checked_offset
from kernelbounds.structure.parts import Parts, as_parts

FORMAT, VERSION = "kernelbounds.ConfidenceSequence", 4
# All arrays that a saved sequence may have; others in its file are not looked at.
NAMES = frozenset(
    ("points", "outcomes", "weights", "blocks", "factors", "merged_at", "gram", "forecasts")
) | {f"sparse.{name}" for name in sparse_state.ARRAY_SHAPES}
BOUNDS = (
    "AMM", "AY", "CMM", "DMM", "FixedDesign", "IGP",
    "Emmenegger", "Fiedler", "Neiswanger", "OnlineToSet", "Srinivas", "Vakili",
)  # fmt: skip
MIXTURES = ("Hybrid", "Single")
STORED_CONSTANTS = ("norm_bound", "delta", "misspecification")
LAWS = ("Bounded", "Energy", "Gaussian", "SubGaussian")

# Kernel values are computed again on loading, perhaps by another release or on another machine:
# each may be off by the engine's accuracy, which is itself an estimate for kernels it cannot know.
MISFIT_ERRORS = 64.0
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
ENTRIES_AT_ONCE = 2**20  # entries of the kernel matrix that are computed at a time, 8 MB


class UserObjects(NamedTuple):
    """Objects of a user's own classes, which a file cannot hold and the user passes to ``load``."""

    kernel: Kernel | Parts | Classes | None = None
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
    archive.write(path, {"format": FORMAT, "version": VERSION, **header}, arrays)


def load(path: str | PathLike[str], own: UserObjects) -> tuple[ConfidenceSet, Bound]:
    """Read what :func:`save` wrote."""
    header, arrays = archive.read(path, FORMAT, VERSION, "a saved confidence sequence", NAMES)
    return unpack(path, header, arrays, own)


def pack(known: ConfidenceSet, bound: Bound) -> Packed:
    """Convert a sequence to data for a file."""
    engine, a = known.radius_engine, known.stated
    header: dict[str, Any] = {
        "kernel": _kernel_to_data(
            known.evidence.classes or known.evidence.parts or engine.data.kernel
        ),
        "offset": _offset_to_data(known.evidence.offset),
        "assumptions": {name: getattr(a, name) for name in STORED_CONSTANTS},
        "bound": _to_data(bound, bounds, BOUNDS),
        "mixture": _to_data(a.mixture, mixtures, MIXTURES),
        "noise": _noise_to_data(a.noise),
    }
    if known.stated_facts:
        header["facts"] = [fact_to_data(fact) for fact in known.stated_facts]
        if known.region is not None:
            header["region"] = list(map(list, dataclasses.astuple(known.region)))
    if isinstance(engine, SparseEngine):
        header["sparse"], own = sparse_state.pack(engine)
        return header, {f"sparse.{name}": part for name, part in own.items()}
    assert isinstance(engine, ExactEngine)
    data, rows = engine.data, engine.rows
    arrays = {
        "points": data.points,
        "outcomes": data.observed,
        "weights": data.weights,
        "merged_at": np.array(data.merged_at, dtype=np.float64),
        "gram": rows.lower[np.tril_indices(rows.count)],
        "forecasts": np.array(_complete_or_made(known)),
    }
    if data.blocks:
        # Where each block of correlated noise starts and how long it is, (n, 2), and the lower
        # triangles of all factors, row by row.
        arrays["blocks"] = np.array([(one.start, len(one.factor)) for one in data.blocks], float)
        triangles = (one.factor[np.tril_indices(len(one.factor))] for one in data.blocks)
        arrays["factors"] = np.concatenate(list(triangles))
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
    classes = kernel if isinstance(kernel, Classes) else None
    if isinstance(kernel, Classes):
        parts = as_parts(sum_of(kernel), None, offset.within)[0]
    else:
        parts = kernel if isinstance(kernel, Parts) else None
    whole = kernel if parts is None else parts.kernel(parts.equal_shares)
    with damage_reported(path):
        law = _noise_from_data(header)
        a = Assumptions(**header["assumptions"], noise_scale=law, mixture=mixture)
        if "sparse" in header:
            sparse = _sparse_engine(whole, header["sparse"], arrays, a)
            known = ConfidenceSet(Evidence(sparse, law.unit, parts, offset), a)
        else:
            engine = ExactEngine(whole)
            forecasts = _forecasts(arrays["forecasts"], len(arrays["outcomes"]))
            known = ConfidenceSet(Evidence(engine, law.unit, parts, offset, forecasts, classes), a)
            _restore(known.evidence, engine, arrays)
    # Only the caller of a kernel of their own is to blame for one that fails.
    with damage_reported(path, but=InputError if own.kernel is not None else ()):
        misfit = sparse_state.misfit(sparse) if "sparse" in header else _misfit(engine)
    if misfit and own.kernel is None:
        raise StoredFileError(f"{str(path)!r} is damaged: {misfit}.")
    if misfit:
        raise InputError(f"{str(path)!r} was saved with another kernel: {misfit}.")
    with damage_reported(path):
        facts = tuple(fact_from_data(data) for data in header.get("facts", ()))
        region = Region.checked(header.get("region"))
    return dataclasses.replace(known, stated_facts=facts, region=region), bound


def _noise_to_data(law: Noise) -> dict[str, Any]:
    if type(law).__name__ not in LAWS or getattr(noise, type(law).__name__) is not type(law):
        raise InputError(f"a noise law of your own cannot be saved: {law!r}.")
    settings: Any = law  # a dataclass
    stated = {
        one.name: value
        for one in dataclasses.fields(settings)
        if one.init and (value := getattr(law, one.name)) not in (None, math.inf)
    }
    return {"name": type(law).__name__, **stated}


def _noise_from_data(header: dict[str, Any]) -> Any:
    """The law of the noise that a header states."""
    settings = dict(header["noise"])
    name = settings.pop("name")
    if name not in LAWS:
        raise ValueError(f"no noise law is called {name!r}")
    return getattr(noise, name)(**settings)


def _sparse_engine(
    kernel: Kernel, header: dict[str, Any], arrays: dict[str, Array], a: Assumptions
) -> SparseEngine:
    # A policy's file has arrays of its own, some of which may be infinite.
    own_arrays = (name for name in arrays if name.startswith("sparse."))
    state = {name.removeprefix("sparse."): arrays[name] for name in own_arrays}
    losses = RunningLosses(a.mixture, float(header["ridge"]), a.noise_scale)
    return sparse_state.unpack(kernel, header, state, losses)


def _kernel_to_data(kernel: Kernel | Parts | Classes) -> dict[str, Any]:
    if isinstance(kernel, Classes):
        members = [one if isinstance(one, Parts) else Parts([one]) for one in kernel.members]
        return {"class": type(kernel).__name__, "members": list(map(_kernel_to_data, members))}
    if not isinstance(kernel, Parts):
        return kernels.to_data(kernel)
    parts = [{"kernel": kernels.to_data(one), "bound": bound} for one, bound in kernel.pairs]
    return {"class": "Parts", "parts": parts}


def _offset_to_data(offset: Offset) -> dict[str, Any]:
    level = offset.constant
    if level is None:
        return {"own": True, "repr": _without_address(repr(offset.level)), "within": offset.within}
    return {"level": level, "within": offset.within}


def _offset(path: str | PathLike[str], stored: dict[str, Any], given: Offset | None) -> Offset:
    """The stored offset, or the one given if it is the same."""
    if given is None and stored.get("own"):
        raise _not_stored(path, "offset", stored.get("repr"))
    if given is None:
        with damage_reported(path):
            return Offset(**stored)
    if _offset_to_data(given) != stored:
        raise _another(path, "offset", stored.get("repr", stored.get("level")), given)
    return given


def _kernel(
    path: str | PathLike[str], header: dict[str, Any], given: Kernel | Parts | Classes | None
) -> Kernel | Parts | Classes:
    """The stored kernel, or the one given if it is the same."""
    if given is None:
        with damage_reported(path, but=InputError):  # It says how to pass one's own kernel.
            return _from_data(header["kernel"])
    kernel = given if isinstance(given, Parts | Classes) else kernels.checked_kernel(given)
    with damage_reported(path):
        # Through JSON, as the stored one came.
        found = _in_words(json.loads(json.dumps(_kernel_to_data(kernel))))
        stored = _in_words(header["kernel"])
    if found != stored:
        raise _another(path, "kernel", stored, found)
    return kernel


def _from_data(data: dict[str, Any]) -> Kernel | Parts | Classes:
    """Make what :func:`_kernel_to_data` described."""
    if "members" in data:
        members = [_parts_from_data(one) for one in data["members"]]
        kind: Any = {"AnyOf": AnyOf, "AllOf": AllOf}[data["class"]]
        made: Classes = kind([one.pairs[0] if len(one.pairs) == 1 else one for one in members])
        return made
    if "parts" in data:
        return _parts_from_data(data)
    return kernels.checked_kernel(kernels.from_data(data))


def _parts_from_data(data: dict[str, Any]) -> Parts:
    pairs = [(kernels.from_data(part["kernel"]), part["bound"]) for part in data["parts"]]
    try:
        return Parts(pairs)
    except InputError as error:  # The file is to blame, and not the user.
        raise ValueError(str(error)) from error


def _not_stored(path: str | PathLike[str], noun: str, text: object) -> InputError:
    return InputError(
        f"{str(path)!r} was saved with a class or function of your own, the {noun} "
        f"{shortened(str(text))}; pass it as load(path, {noun}=...)."
    )


def _another(path: str | PathLike[str], noun: str, stored: object, given: object) -> InputError:
    return InputError(
        f"{str(path)!r} was saved with the {noun} {shortened(str(stored))}, and not with "
        f"{shortened(_without_address(str(given)))}; pass the same one."
    )


def _in_words(stored: Any) -> str:
    """All that defines a kernel, with all digits; the limits of hyperparameter searches do not."""
    if isinstance(stored, list):
        return f"[{', '.join(map(_in_words, stored))}]"
    if not (isinstance(stored, dict) and "class" in stored):
        return repr(float(stored)) if isinstance(stored, int | float) else repr(stored)
    if stored.get("own"):
        return f"{stored['class']} {_without_address(stored['repr'])}"
    if "members" in stored:
        words = [_in_words(one) for one in stored["members"]]
    elif "parts" in stored:
        words = [f"{_in_words(one['kernel'])} {one['bound']!r}" for one in stored["parts"]]
    else:
        params = stored["params"].items()
        words = [f"{key}={_in_words(one)}" for key, one in params if not key.endswith("_bounds")]
    return f"{stored['class']}({', '.join(words)})"


def _misfit(engine: ExactEngine) -> str | None:
    """Describe where the kernel does not give the stored matrix; None where it does everywhere."""
    data = engine.rows
    if not data.count:
        return None
    M, prior = data.whitening, kernels.diagonal(data.kernel, data.points)
    # Each entry is off by the errors of its terms, and so is not in proportion to itself.
    scales, tolerance = M.sizes(np.sqrt(prior)), MISFIT_ERRORS * data.accuracy
    rows = max(1, ENTRIES_AT_ONCE // data.count)
    stop = 0
    while stop < data.count:
        start, stop = stop, min(stop + rows, data.count)
        for one in M.blocks:  # no part ends within a block
            stop = max(stop, one.rows.stop) if one.start < stop else stop
        found = kernels.cross(data.kernel, data.points[start:stop], data.points[:stop])
        # On the diagonal the engine has what the kernel itself says of k(x, x).
        diagonal = np.arange(start, stop)[:, None] == np.arange(stop)
        found = np.where(diagonal, prior[:stop], found)
        found = M.part(start, stop).between(found, M.part(0, stop))
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
        if not own:
            if name not in names:
                raise ValueError(f"no {noun} is called {name!r}")
            settings = {key: value for key, value in stored.items() if key != "name"}
            made = getattr(package, name)(**settings)
            if given is None:
                return made
            # A setting that a file does not have yet is at its default.
            stored = json.loads(json.dumps(_to_data(made, package, names)))
    if given is None:
        raise _not_stored(path, noun, text)
    found = _to_data(given, package, names)
    if (own or noun == "mixture") and json.loads(json.dumps(found)) != stored:
        raise _another(path, noun, f"{name}: {text}", f"{found['name']}: {given!r}")
    return given


def _without_address(text: str) -> str:
    """The repr of an object without its place in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _complete_or_made(known: ConfidenceSet) -> Forecasts:
    """All forecasts, or those before a user's forecaster failed, so that the data can be saved."""
    try:
        return known.forecasts()
    except InputError:
        return known.evidence.ledger.made


def _forecasts(stored: Array, count: int) -> Forecasts:
    if stored.ndim != 2 or len(stored) != 2 or stored.shape[1] > count:
        raise ValueError(f"forecasts of shape {stored.shape}")
    if not (np.all(np.isfinite(stored)) and np.all(stored[1] >= 0)):
        raise ValueError("forecasts that are not finite")
    return Forecasts(*stored)


def _restore(evidence: Evidence, engine: ExactEngine, arrays: dict[str, Array]) -> None:
    """Give stored observations and their kernel matrix to an engine without any."""
    names = ("points", "outcomes", "weights", "merged_at", "gram")
    points, outcomes, weights, merged_at, packed = (arrays[name] for name in names)
    count = len(outcomes)
    shapes = points.shape[:1], weights.shape, merged_at.shape
    fit = shapes == ((count,), (count,), (merged_at.size,)) and np.all(weights > 0)
    for part in (points, outcomes, weights, packed):
        fit = fit and np.all(np.abs(part) <= LARGEST)
    if merged_at.size:
        fit = fit and np.all(np.diff(merged_at, prepend=0, append=count) > 0)
    if not fit:
        raise ValueError("observations of other shapes, not finite or out of order")
    if count:
        cuts = merged_at.astype(np.intp).tolist()
        whitening = Whitening(weights, _blocks(arrays, count, cuts))
        told = evidence.with_whitening(points, outcomes, whitening)
        engine.data.restore(points, told, packed, cuts)


def _blocks(arrays: dict[str, Array], count: int, cuts: Sequence[int]) -> tuple[NoiseBlock, ...]:
    """The blocks of correlated noise; files without them have no such arrays."""
    if "blocks" not in arrays:
        return ()
    found: list[NoiseBlock] = []
    packed, taken, end = arrays["factors"], 0, 0
    for start, size in arrays["blocks"].astype(np.intp).tolist():
        stop, length = start + size, size * (size + 1) // 2
        within = any(start < cut < stop for cut in cuts)
        if not (size > 0 and end <= start and stop <= count) or within:
            raise ValueError(f"a block of {size} observations from number {start} on")
        factor = np.zeros((size, size))
        factor[np.tril_indices(size)] = packed[taken : taken + length]
        if not (np.all(np.abs(factor) <= LARGEST) and np.all(factor.diagonal() > 0)):
            raise ValueError("a block whose factor is not one")
        found.append(NoiseBlock.restored(start, factor))
        taken, end = taken + length, stop
    if packed.shape != (taken,):
        raise ValueError(f"blocks of {packed.shape} numbers")
    return tuple(found)
