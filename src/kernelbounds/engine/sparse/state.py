"""A sparse engine as plain numbers and arrays, for a file, and back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import LARGEST, Array
from kernelbounds.engine.ridge_path import rounding
from kernelbounds.engine.sparse.basis import Basis
from kernelbounds.engine.sparse.block import Block
from kernelbounds.engine.sparse.dictionary import Dictionary, jitter
from kernelbounds.engine.sparse.engine import Losses, SparseEngine
from kernelbounds.engine.sparse.forecaster import Forecaster
from kernelbounds.engine.sparse.growth import Growth
from kernelbounds.engine.sparse.residuals import Chunk
from kernelbounds.engine.sparse.statistics import Statistics

T = TypeVar("T", Statistics, Forecaster, Growth, Basis, Block)

# Kernel values are computed again on loading, perhaps by another release: how many times their
# precision they may differ by.
MISFIT = 64.0
OWN = ("_late", "_lost", "_border", "_outcomes")  # arrays of the engine's own
PARTS = {
    "statistics": Statistics,
    "_closed": Statistics,
    "_forecaster": Forecaster,
    "_growth": Growth,
    "_basis": Basis,
}


def pack(engine: SparseEngine) -> tuple[dict[str, Any], dict[str, Array]]:
    """All that the engine knows, as data for JSON and arrays by name."""
    header: dict[str, Any] = {
        "dim": engine.dim,
        "ridge": engine._ridge,
        "typical": engine._typical,
        "ends_at": engine._ends_at,
    }
    arrays: dict[str, Array] = {}
    _take(header, arrays, "_growth", engine._growth)
    if engine.dim is None:
        return header, arrays
    chunk = engine._newest
    header |= {"settled": chunk.settled, "excess": chunk.excess}
    for name in PARTS:
        _take(header, arrays, name, getattr(engine, name))
    _take(header, arrays, "rows", chunk.rows)
    arrays |= {"inducing": engine.dictionary.inducing, "factor": engine.dictionary.factor}
    arrays |= {name: np.asarray(part) for name in OWN if (part := vars(engine)[name]) is not None}
    return header, arrays


def unpack(
    kernel: Kernel, header: dict[str, Any], arrays: dict[str, Array], losses: Losses
) -> SparseEngine:
    """What :func:`pack` was given; a ValueError where it does not fit together."""
    for name, part in arrays.items():
        if not np.all(np.abs(part) <= LARGEST):
            raise ValueError(f"values of {name} that are not finite")
    growth = _given(header, arrays, "_growth", Growth)
    ridge, typical = float(header["ridge"]), float(header["typical"])
    engine = SparseEngine(kernel, None, ridge, typical, losses, growth)
    engine._ends_at = int(header["ends_at"])
    if header["dim"] is None:
        return engine
    dim = int(header["dim"])
    accuracy = engine.data.accuracy_in(dim)
    dictionary = Dictionary(kernel, arrays["inducing"], arrays["factor"], accuracy)
    _check_shape("inducing", dictionary.inducing, (len(dictionary), dim))
    _check_shape("factor", dictionary.factor, (len(dictionary),) * 2)
    engine._begin(dictionary)
    for name, kind in PARTS.items():
        if name in header:
            setattr(engine, name, _given(header, arrays, name, kind))
    rows = _given(header, arrays, "rows", Block)
    engine._newest = Chunk(rows, int(header["settled"]), float(header["excess"]))
    if "_closed" not in header:  # from before sums were carried along: a chunk ends with the file
        excess = engine.statistics.excess + engine._newest.largest
        engine.statistics = engine._closed = replace(engine.statistics, excess=excess)
        rows = Block.empty(len(dictionary), dim)
        engine._newest = Chunk(rows)
    for name in OWN:
        if name in arrays:
            setattr(engine, name, arrays[name])
    _check_shape("moments", engine.statistics.moments, (len(dictionary),) * 2)
    closed = engine._closed
    _check_shape("closed", closed.moments, (len(closed.products),) * 2)
    if not closed.count + len(engine._newest.rows) == engine.statistics.count:
        raise ValueError(f"{closed.count} observations in chunks that are complete")
    _check_shape("late", engine._late, (len(dictionary),))
    _check_shape("features", rows.phi, (len(dictionary), len(rows)))
    if engine.statistics.count:
        engine.data = engine.data.of(engine.statistics, dim)
    return engine


def misfit(engine: SparseEngine) -> str | None:
    """Where the kernel does not give the matrix of the factor, in words; None if it does."""
    kept = engine.dictionary
    if not len(kept):
        return None
    stored = kept.factor @ kept.factor.T
    found = kernels.cross(kept.kernel, kept.inducing, kept.inducing)
    found = 0.5 * (found + found.T)
    scales = np.sqrt(np.maximum(found.diagonal(), 0.0))
    found.flat[:: len(found) + 1] += jitter(found.diagonal())
    allowed = MISFIT * rounding(len(kept), kept.accuracy) * np.multiply.outer(scales, scales)
    wrong = np.abs(stored - found) - allowed
    if wrong.max() <= 0:
        return None
    i, j = np.unravel_index(np.argmax(wrong), wrong.shape)
    return (
        f"its inducing points {i} and {j} have {stored[i, j]:.9g} in place of the kernel's "
        f"{found[i, j]:.9g}"
    )


def _take(header: dict[str, Any], arrays: dict[str, Array], name: str, part: Any) -> None:
    """The fields of a dataclass, arrays among the arrays and numbers in the header."""
    if part is None:
        return
    header[name] = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if isinstance(value, np.ndarray):
            arrays[f"{name}.{one.name}"] = value
        else:
            header[name][one.name] = value if np.isfinite(value) else None


def _given(header: dict[str, Any], arrays: dict[str, Array], name: str, kind: type[T]) -> T:
    prefix = f"{name}."
    given: dict[str, Any] = {
        key.removeprefix(prefix): one for key, one in arrays.items() if key.startswith(prefix)
    }
    given |= {key: np.inf if one is None else one for key, one in header[name].items()}
    return kind(**given)


def _check_shape(name: str, found: Array, wanted: tuple[int, ...]) -> None:
    if found.shape != wanted:
        raise ValueError(f"{name} of shape {found.shape} in place of {wanted}")
