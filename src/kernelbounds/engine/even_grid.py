"""Minima of functions that are known on an even grid."""

from __future__ import annotations

import math

import numpy as np

from kernelbounds.arrays import Array

# Central differences of orders 1 to 4, scaled for Stirling's formula,
# f(s) = f_0 + d1 s + d2 s^2 + d3 (s^3 - s) + d4 (s^4 - s^2), at s = -2 .. 2.
_AROUND = np.arange(-2, 3)[:, None]
_DIFFERENCES = np.array(
    [
        [0, -1 / 2, 0, 1 / 2, 0],
        [0, 1 / 2, -1, 1 / 2, 0],
        [-1 / 12, 1 / 6, 0, -1 / 6, 1 / 12],
        [1 / 24, -1 / 6, 1 / 4, -1 / 6, 1 / 24],
    ]
)


def vertex(grid: Array, values: Array) -> Array:
    """The minimiser on an even grid (m,), refined by the parabola through its neighbours and, by
    a step of Newton's method, the quartic through two on either side.
    """
    lowest = values.argmin(axis=0)
    at = np.minimum(np.maximum(lowest, 2), len(grid) - 3)
    d1, d2, d3, d4 = _DIFFERENCES @ values[at + _AROUND, np.arange(len(at))]
    bend = 2 * np.maximum(np.maximum(d2, np.abs(d1)), 1e-200)  # of a minimum, it is d2
    s = -d1 / bend
    squared = s * s
    shift = (d3 * (3 * squared - 1) + d4 * s * (4 * squared - 2)) / bend
    s -= np.where(np.abs(shift) < 0.5, shift, 0.0)
    # Near an end of the grid it is a point of the grid.
    s = np.where(lowest == at, s, lowest - at)
    return np.asarray(grid[at] + (grid[1] - grid[0]) * s)


def finer(grid: Array, best: Array, largest: int) -> Array:
    """An even grid around minimisers on another, with a quarter of its step where ``largest``
    points are enough for that.
    """
    step = float(grid[1] - grid[0])
    low, high = max(best.min() - step, grid[0]), min(best.max() + step, grid[-1])
    size = min(1 + math.ceil(4 * (high - low) / step), largest)
    return np.linspace(low, high, max(size, len(grid)))
