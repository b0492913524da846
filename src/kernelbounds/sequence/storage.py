"""Save and load a sequence as one npz file of arrays and JSON, without pickle.

The arrays are those of its engine, see ``exact_state.py`` and ``engine/sparse/state.py``.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import bounds, kernels, mixtures, noise
from kernelbounds.arrays import Array, brief, shortened
from kernelbounds.bounds import Assumptions, Bound, ConfidenceSet
from kernelbounds.confidence.evidence import Evidence
from kernelbounds.engine import ExactEngine, Forecasts, SparseEngine
from kernelbounds.engine.sparse import state as sparse_state
from kernelbounds.errors import InputError, StoredFileError
from kernelbounds.facts import Region, fact_from_data, fact_to_data
from kernelbounds.io import archive
from kernelbounds.io.archive import Packed, damage_reported
from kernelbounds.mixtures import Mixture
from kernelbounds.mixtures.ledger import RunningLosses
from kernelbounds.noise import Noise
from kernelbounds.sequence import exact_state
from kernelbounds.sequence.allowed_bounds import checked_bound
from kernelbounds.structure.classes import AllOf, AnyOf, Classes, sum_of
from kernelbounds.structure.offset import Offset, checked_offset
from kernelbounds.structure.parts import Parts, as_parts

FORMAT, VERSION = "kernelbounds.ConfidenceSequence", 4
# All arrays that a saved sequence may have; others in its file are not looked at.
NAMES = exact_state.NAMES | {f"sparse.{name}" for name in sparse_state.ARRAY_SHAPES}
STORED_CONSTANTS = ("norm_bound", "delta", "misspecification")


def _by_name(*classes: type[Any]) -> dict[str, type[Any]]:
    return {cls.__name__: cls for cls in classes}


# The classes whose objects a file can hold.
BOUNDS = _by_name(
    bounds.AMM, bounds.AY, bounds.CMM, bounds.DMM, bounds.FixedDesign, bounds.IGP,
    bounds.Emmenegger, bounds.Fiedler, bounds.Neiswanger, bounds.OnlineToSet, bounds.Srinivas,
    bounds.Vakili,
)  # fmt: skip
MIXTURES = _by_name(mixtures.Hybrid, mixtures.Single)
LAWS = _by_name(noise.Bounded, noise.Energy, noise.Gaussian, noise.SubGaussian)
CLASSES = _by_name(AnyOf, AllOf)


class UserObjects(NamedTuple):
    """Objects of a user's own classes, which a file cannot hold and the user passes to ``load``."""

    kernel: Kernel | Parts | Classes | None = None
    bound: Bound | None = None
    mixture: Mixture | None = None
    offset: Offset | None = None

    @classmethod
    def checked(cls, kernel: Any, bound: Any, mixture: Any, offset: Any) -> UserObjects:
        """Check the objects that a user passed; raise where one is of another kind."""
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
        "bound": _to_data(bound, BOUNDS),
        "mixture": _to_data(a.mixture, MIXTURES),
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
    return header, exact_state.pack(engine, _complete_or_made(known))


def unpack(
    path: str | PathLike[str], header: dict[str, Any], arrays: dict[str, Array], own: UserObjects
) -> tuple[ConfidenceSet, Bound]:
    """Make a sequence from what :func:`pack` returned; ``path`` is where it was found."""
    kernel = _kernel(path, header, own.kernel)
    with damage_reported(path):
        stored = {noun: dict(header[noun]) for noun in ("offset", "bound", "mixture")}
    offset = _offset(path, stored["offset"], own.offset)
    bound: Bound = _chosen(path, "bound", stored["bound"], own.bound, BOUNDS)
    mixture = _chosen(path, "mixture", stored["mixture"], own.mixture, MIXTURES)
    classes = kernel if isinstance(kernel, Classes) else None
    if isinstance(kernel, Classes):
        parts = as_parts(sum_of(kernel), None, offset.within)[0]
    else:
        parts = kernel if isinstance(kernel, Parts) else None
    whole = kernel if parts is None else parts.kernel(parts.equal_shares)
    with damage_reported(path):
        law = _made(header["noise"], LAWS, "noise law")
        a = Assumptions(**header["assumptions"], noise_scale=law, mixture=mixture)
        engine: ExactEngine | SparseEngine
        if "sparse" in header:
            engine = _sparse_engine(whole, header["sparse"], arrays, a)
            known = ConfidenceSet(Evidence(engine, law.unit, parts, offset), a)
        else:
            engine = ExactEngine(whole)
            forecasts = exact_state.forecasts(arrays)
            known = ConfidenceSet(Evidence(engine, law.unit, parts, offset, forecasts, classes), a)
            exact_state.restore(known.evidence, engine, arrays)
    # Only the caller of a kernel of their own is to blame for one that fails.
    with damage_reported(path, but=InputError if own.kernel is not None else ()):
        misfit = (
            exact_state.misfit(engine)
            if isinstance(engine, ExactEngine)
            else sparse_state.misfit(engine)
        )
    if misfit and own.kernel is None:
        raise StoredFileError(f"{str(path)!r} is damaged: {misfit}.")
    if misfit:
        raise InputError(f"{str(path)!r} was saved with another kernel: {misfit}.")
    with damage_reported(path):
        facts = tuple(fact_from_data(data) for data in header.get("facts", ()))
        region = Region.checked(header.get("region"))
    return dataclasses.replace(known, stated_facts=facts, region=region), bound


def _noise_to_data(law: Noise) -> dict[str, Any]:
    if LAWS.get(type(law).__name__) is not type(law):
        raise InputError(f"a noise law of your own cannot be saved: {law!r}.")
    settings: Any = law  # a dataclass
    stated = {
        one.name: value
        for one in dataclasses.fields(settings)
        if one.init and (value := getattr(law, one.name)) not in (None, math.inf)
    }
    return {"name": type(law).__name__, **stated}


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
        found = _in_words(_through_json(_kernel_to_data(kernel)))
        stored = _in_words(header["kernel"])
    if found != stored:
        raise _another(path, "kernel", stored, found)
    return kernel


def _from_data(data: dict[str, Any]) -> Kernel | Parts | Classes:
    """Make what :func:`_kernel_to_data` described."""
    if "members" in data:
        members = map(_parts_from_data, data["members"])
        made: Classes = CLASSES[data["class"]](
            [one.pairs[0] if len(one.pairs) == 1 else one for one in members]
        )
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
    """Describe all that defines a kernel, which limits of hyperparameter searches do not."""
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


def _to_data(one: Any, known: Mapping[str, type[Any]]) -> dict[str, Any]:
    """Describe an object of a known class by its settings, and others by their repr."""
    cls = type(one)
    if known.get(cls.__name__) is cls:
        return {"name": cls.__name__, **vars(one)}
    return {"name": cls.__qualname__, "own": True, "repr": _without_address(repr(one))}


def _made(stored: dict[str, Any], known: Mapping[str, type[Any]], noun: str) -> Any:
    """Make an object of a known class from its settings."""
    settings = dict(stored)
    name = settings.pop("name")
    if name not in known:
        raise ValueError(f"no {noun} is called {name!r}")
    return known[name](**settings)


def _chosen(
    path: str | PathLike[str],
    noun: str,
    stored: dict[str, Any],
    given: Any,
    known: Mapping[str, type[Any]],
) -> Any:
    """The stored bound or mixture, or the one given, which must be the same.

    Only a bound of the package's may be replaced: it is computed from the data when asked for.
    """
    with damage_reported(path):
        own, name = stored.get("own", False), stored["name"]
        text = stored["repr"] if own else name
        if not own:
            made = _made(stored, known, noun)
            if given is None:
                return made
            stored = _to_data(made, known)  # A setting that a file does not have is at its default.
    if given is None:
        raise _not_stored(path, noun, text)
    found = _to_data(given, known)
    if (own or noun == "mixture") and _through_json(found) != _through_json(stored):
        raise _another(path, noun, f"{name}: {text}", f"{found['name']}: {given!r}")
    return given


def _through_json(data: dict[str, Any]) -> Any:
    """Return data as they would come out of a file."""
    return json.loads(json.dumps(data))


def _without_address(text: str) -> str:
    """The repr of an object without its place in memory."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _complete_or_made(known: ConfidenceSet) -> Forecasts:
    """All forecasts, or those before a user's forecaster failed, so that the data can be saved."""
    try:
        return known.forecasts()
    except InputError:
        return known.evidence.ledger.made
