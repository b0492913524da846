"""The observations of an exact engine as plain arrays, for a file, and back.

The kernel matrix is part of the file, so that a loaded sequence computes with the same numbers
even where a kernel evaluates differently, bit for bit, one point at a time or many at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import LARGEST, Array, shortened
from kernelbounds.confidence.evidence import Evidence
from kernelbounds.engine import ExactEngine, Forecasts, NoiseBlock, Whitening

NAMES = frozenset(
    ("points", "outcomes", "weights", "blocks", "factors", "merged_at", "gram", "forecasts")
)
# Kernel values are computed again on loading, perhaps by another release or on another machine:
# each may be off by the engine's accuracy, which is itself an estimate for kernels it cannot know.
MISFIT_ERRORS = 64.0
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
ENTRIES_AT_ONCE = 2**20  # entries of the kernel matrix that are computed at a time, 8 MB


def pack(engine: ExactEngine, made: Forecasts) -> dict[str, Array]:
    """Return the observations of an engine, and the forecasts of their outcomes, by name."""
    data, rows = engine.data, engine.rows
    arrays = {
        "points": data.points,
        "outcomes": data.observed,
        "weights": data.weights,
        "merged_at": np.array(data.merged_at, dtype=np.float64),
        "gram": rows.lower[np.tril_indices(rows.count)],
        "forecasts": np.array(made),
    }
    if data.blocks:
        # Where each block of correlated noise starts and how long it is, (n, 2), and the lower
        # triangles of all factors, row by row.
        arrays["blocks"] = np.array([(one.start, len(one.factor)) for one in data.blocks], float)
        triangles = (one.factor[np.tril_indices(len(one.factor))] for one in data.blocks)
        arrays["factors"] = np.concatenate(list(triangles))
    return arrays


def forecasts(arrays: dict[str, Array]) -> Forecasts:
    """Read the forecasts; raise a ValueError if they cannot be those of the outcomes."""
    stored, count = arrays["forecasts"], len(arrays["outcomes"])
    if stored.ndim != 2 or len(stored) != 2 or stored.shape[1] > count:
        raise ValueError(f"forecasts of shape {stored.shape}")
    if not (np.all(np.isfinite(stored)) and np.all(stored[1] >= 0)):
        raise ValueError("forecasts that are not finite")
    return Forecasts(*stored)


def restore(evidence: Evidence, engine: ExactEngine, arrays: dict[str, Array]) -> None:
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
    """Read the blocks of correlated noise; files without them have no such arrays."""
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


def misfit(engine: ExactEngine) -> str | None:
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
        off = np.abs(np.tril(found - data.lower[start:stop, :stop], start))
        # Below the smallest normal number nothing is precise.
        allowed = tolerance * np.multiply.outer(scales[start:stop], scales[:stop]) + SMALLEST_NORMAL
        if not np.all(off <= allowed):
            i, j = np.unravel_index(np.argmax(off - allowed), off.shape)
            return (
                f"its kernel matrix has {data.lower[start + i, j]:.9g} for points {start + i} and "
                f"{j}, where {shortened(str(data.kernel))} gives {found[i, j]:.9g}"
            )
    return None
