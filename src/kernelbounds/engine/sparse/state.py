"""The state of a sparse engine as plain numbers and arrays, for a file, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import LARGEST, Array
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.ridge_path import dot_error
from kernelbounds.engine.sparse.basis import Basis
from kernelbounds.engine.sparse.dictionary import Block, Dictionary, Growth, gram_with_jitter
from kernelbounds.engine.sparse.engine import SparseEngine, features_scaled
from kernelbounds.engine.sparse.sparse_observations import LARGEST_BLOCK, Losses, SparseObservations
from kernelbounds.engine.sparse.statistics import Chunk, Forecaster, Statistics

T = TypeVar("T", Statistics, Forecaster, Growth, Basis, Block)

# How many times their precision kernel values may differ by from those in a file. They are computed
# again on loading, perhaps by another release.
LARGEST_MISFIT = 64.0
# The shapes of all arrays in a file, with a letter for each length: m inducing points in k
# dimensions, n newest observations, c features in the sums of complete chunks, g features in the
# growth rule, j sums of losses, r directions of the basis with s = r + 1 outcomes, and q directions
# that it leaves out.
ARRAY_SHAPES = {
    "inducing": "mk", "factor": "mm", "_excess_at_joining": "m", "_lost": "j",
    "statistics.moments": "mm", "statistics.products": "m",
    "statistics.moments_rest": "mm", "statistics.products_rest": "m",
    "_closed.moments": "cc", "_closed.products": "c",
    "_closed.moments_rest": "cc", "_closed.products_rest": "c",
    "_forecaster.inverse": "mm", "_forecaster.products": "m", "_growth.inverse": "gg",
    "rows.points": "nk", "rows.phi": "mn", "rows.residuals": "n", "rows.prior": "n",
    "rows.outcomes": "n", "rows.weights": "n",
    "_basis.values": "r", "_basis.of_features": "rm", "_basis.outcomes": "s", "_basis.scales": "m",
    "_basis.squares": "q", "_basis.of_dropped": "qm",
}  # fmt: skip
NUMBERS = ("dim", "ridge", "typical", "ends_at")  # numbers of the observations' state
LARGEST_DIFFERENCE = 1e-6  # the relative difference up to which numbers computed again are the same
LARGEST_SUM = 1e250  # the largest sum of squares of the largest numbers there may be
LARGEST_WHOLE = 2**53  # larger whole numbers are not exact as floats
# Parts of the observations' state, by their names in a file: those of attributes in old releases.
STATE_CLASSES = {
    "statistics": Statistics,
    "_closed": Statistics,
    "_forecaster": Forecaster,
    "_growth": Growth,
}


def pack(engine: SparseEngine) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the state of an engine as data for JSON, and arrays by name."""
    data, arrays = engine.data, dict[str, Array]()
    header: dict[str, Any] = {name: vars(data)[name] for name in NUMBERS}
    _take(header, arrays, "_growth", data.growth)
    if data.dim is None:
        return header, arrays
    header |= {"settled": data.newest.settled, "excess": data.newest.excess}
    for name in STATE_CLASSES:
        _take(header, arrays, name, vars(data)[name.lstrip("_")])
    if engine._basis is not None:
        _take(header, arrays, "_basis", engine._basis)
    _take(header, arrays, "rows", data.newest.rows)
    arrays |= {"inducing": data.dictionary.inducing, "factor": data.dictionary.factor}
    arrays["_excess_at_joining"] = data.excess_at_joining
    if data.lost is not None:
        arrays["_lost"] = data.lost
    return header, arrays


def unpack(
    kernel: Kernel, header: dict[str, Any], arrays: dict[str, Array], losses: Losses
) -> SparseEngine:
    """Return the engine that :func:`pack` was given, or raise a ValueError if parts do not fit."""
    sizes = _checked_sizes(arrays)
    growth = _given(header, arrays, "_growth", Growth)
    ridge, typical = _number(header, "ridge"), _number(header, "typical")
    if not ridge:
        raise ValueError("a ridge of 0")
    data = SparseObservations(kernel, None, ridge, typical, losses, growth)
    engine = SparseEngine(data)
    data.ends_at = _whole(header, "ends_at")
    if header["dim"] is None:
        _check(sizes.get("g", 0) == 0 < data.ends_at <= LARGEST_BLOCK, "blocks")
        return engine
    dim = _whole(header, "dim")
    accuracy = data.accuracy_in(dim)
    _check(sizes["k"] == dim, "dimensions")
    data.begin(Dictionary(kernel, arrays["inducing"], arrays["factor"], accuracy))
    for name, kind in STATE_CLASSES.items():
        setattr(data, name.lstrip("_"), _given(header, arrays, name, kind))
    rows = _given(header, arrays, "rows", Block)
    data.newest = Chunk(rows, _whole(header, "settled"), _number(header, "excess"))
    data.excess_at_joining, data.lost = arrays["_excess_at_joining"], arrays.get("_lost")
    _check_observations(data, sizes)
    if "_basis" in header:
        engine._basis = _given(header, arrays, "_basis", Basis)
        _check_basis(engine._basis, data, sizes)
        border = len(rows) - (data.count - engine._basis.count)
        _check(border >= 0, "border")
        engine._border = np.ascontiguousarray(rows.phi[:, border:])
        engine._outcomes = rows.outcomes[border:]
    return engine


def _checked_sizes(arrays: dict[str, Array]) -> dict[str, int]:
    """Return the length that each letter of ``ARRAY_SHAPES`` stands for, if all arrays agree."""
    sizes: dict[str, int] = {}
    for name, part in arrays.items():
        wanted = ARRAY_SHAPES[name]
        if part.ndim != len(wanted) or any(
            sizes.setdefault(letter, length) != length
            for letter, length in zip(wanted, part.shape, strict=True)
        ):
            raise ValueError(f"{name} of shape {part.shape}")
        if not np.all(np.abs(part) <= LARGEST):
            raise ValueError(f"values of {name} that are not finite")
    return sizes


def _check_observations(data: SparseObservations, sizes: dict[str, int]) -> None:
    """Raise a ValueError for parts that cannot be those of one sequence of observations."""
    rows, late, count = data.newest.rows, data.excess_at_joining, data.count
    # |phi(x)|^2 is at most k(x,x), up to rounding errors that are far from this.
    seen = np.einsum("mn,mn->n", rows.phi, rows.phi)
    most = 2 * rows.prior + LARGEST_DIFFERENCE * rows.prior.max(initial=0.0)
    _check(sizes["c"] <= sizes["m"], "complete chunks")
    _check(sizes["g"] <= sizes["m"], "growth")
    _check(data.closed.count + len(rows) == count, "numbers of observations")
    _check(count < data.ends_at <= count + LARGEST_BLOCK, "blocks")
    _check(data.forecaster.ridge == data.ridge, "forecasts")
    _check(data.newest.settled <= len(rows), "settled observations")
    _check(np.all(rows.weights > 0), "weights")
    _check(np.all(rows.residuals >= 0), "residuals")
    _check(np.all(seen <= most), "features")
    _check(np.all(np.diff(late, prepend=0.0, append=data.statistics.excess) >= 0), "directions")
    if data.lost is None or data.losses_of is None:
        _check(not count, "losses")
    else:
        one = data.losses_of(Forecasts(np.zeros(1), np.zeros(1)))
        _check(data.lost.shape == one.shape[1:], "losses")


def _check_basis(basis: Basis, data: SparseObservations, sizes: dict[str, int]) -> None:
    """Raise a ValueError for a basis that cannot be of these observations."""
    late = data.excess_at_joining
    scales = features_scaled(late, basis.floor if late.any() else 1.0)
    _check(sizes["s"] == sizes["r"] + 1, "outcomes of the basis")
    _check(basis.count <= data.count and np.all(basis.values > 0), "values of the basis")
    _check(np.all((basis.squares >= 0) & (basis.squares < basis.room)), "directions left out")
    _check(_equal(basis.scales, scales), "scales of the basis")
    # Directions are orthonormal, so that rows of ``of_features`` have the length D^1/2, and those
    # of ``of_dropped`` the length 1.
    lengths = np.linalg.norm(basis.of_features / scales, axis=1) / np.sqrt(basis.values)
    others = np.linalg.norm(basis.of_dropped / scales, axis=1)
    _check(_equal(np.append(lengths, others), 1.0), "directions")


def _equal(found: Array, expected: Array | float) -> bool:
    """Whether numbers that are computed again are the same, up to rounding errors."""
    return np.allclose(found, expected, rtol=LARGEST_DIFFERENCE, atol=0)


def _check(fits: Any, noun: str) -> None:
    if not fits:
        raise ValueError(f"{noun} that do not fit")


def misfit(engine: SparseEngine) -> str | None:
    """Say where the kernel does not give the matrix of the factor; None if it does."""
    kept = engine.data.dictionary
    if not len(kept):
        return None
    stored = kept.factor @ kept.factor.T
    found = gram_with_jitter(kept.kernel, kept.inducing)
    scales = np.sqrt(np.maximum(found.diagonal(), 0.0))
    allowed = (
        LARGEST_MISFIT * dot_error(len(kept), kept.accuracy) * np.multiply.outer(scales, scales)
    )
    wrong = np.abs(stored - found) - allowed
    if wrong.max() <= 0:
        return None
    i, j = np.unravel_index(np.argmax(wrong), wrong.shape)
    return (
        f"its inducing points {i} and {j} have {stored[i, j]:.9g} in place of the kernel's "
        f"{found[i, j]:.9g}"
    )


def _take(header: dict[str, Any], arrays: dict[str, Array], name: str, part: Any) -> None:
    """Put the arrays of a dataclass among the arrays, and its numbers into the header."""
    header[name] = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if isinstance(value, np.ndarray):
            arrays[f"{name}.{one.name}"] = value
        else:
            header[name][one.name] = value if np.isfinite(value) else None


def _given(header: dict[str, Any], arrays: dict[str, Array], name: str, kind: type[T]) -> T:
    """Make a part from its numbers and arrays, each of the type that its field has."""
    given: dict[str, Any] = {}
    for one in fields(kind):
        if f"{name}.{one.name}" in arrays:
            given[one.name] = arrays[f"{name}.{one.name}"]
        elif one.name in header[name]:
            if one.type == "Array":
                raise ValueError(f"a number in place of {name}.{one.name}")
            convert = _whole if one.type == "int" else _number
            given[one.name] = convert(header[name], one.name)
    return kind(**given)


def _number(data: dict[str, Any], name: str) -> float:
    """Return a number that is not negative, unless rounding errors may make it so."""
    value = data[name]
    if value is None and name == "mean_unknown":
        return np.inf  # JSON has no infinity.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number")
    least = -LARGEST_SUM if name.endswith(("_rest", "_unknown")) else 0.0
    if not least <= value <= LARGEST_SUM:
        raise ValueError(f"{name} = {value:g}")
    return float(value)


def _whole(data: dict[str, Any], name: str) -> int:
    """Return a whole number that is not negative."""
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_WHOLE:
        raise ValueError(f"{name} is not a whole number")
    return value
