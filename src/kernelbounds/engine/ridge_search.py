"""Minimising a dual function over the ridge, for many points at once.

For each point the function is quasiconvex in the ridge (``docs/mathematics.md``), so a bracket
of a local minimum is a bracket of the global one. A coarse scan that leaves out the newest
observations brackets it and interpolation in log ridge finds it. The value returned is that of
the dual function itself at the place found, so that what a search may lose is tightness, never
validity.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine.chebyshev import Chebyshev
from kernelbounds.engine.ridge_path import PathQuery

DECADES_BELOW, DECADES_ABOVE = 14, 6  # of the largest eigenvalue, for the coarse scan
STEP = 0.5 * np.log(10)  # of the coarse scan, in log ridge
MARGIN = 0.4  # around what the scan found
FINER = 6  # points of the last grid for each point of interpolation


class Dual(Protocol):
    """A family of upper bounds on s f(x), for signs s, indexed by the ridge and a scale."""

    signs: Array

    def best_scale(self, ridge: Array, variance: Array, energy: Array) -> Array:
        """The scale that makes the bound smallest, in place of which any other is valid."""
        ...

    def at_best_scale(self, ridge: Array, mean: Array, variance: Array, energy: Array) -> Array:
        """The bound at that scale; the signs are a new first axis."""
        ...

    def at_scale(self, ridge: Array, scale: Array, unexplained: Array) -> Array:
        """The bound from k(x,x) - p'(K + alpha I)^-1 p, where p = k_t(x) - s scale y."""
        ...


def minimise_over_ridge(query: PathQuery, dual: Dual) -> tuple[Array, Array]:
    """The smallest bounds over alpha > 0 and the ridges where they are attained; (signs, m)."""
    # Below the finest ridge of a truncated path, looking further would not be to the point.
    bottom = np.log(query.path.eigen.finest / 8) if query.path.eigen.flat else -np.inf
    best, margin = _scan(query, dual, bottom), MARGIN
    while True:
        low, high = max(float(best.min()) - margin, bottom), float(best.max()) + margin
        nodes = Chebyshev(low, high, int(np.ceil(4 + 2 * (high - low))))
        found = query.at(np.exp(nodes.points))
        grid, blend = nodes.grid(FINER * nodes.size)
        mean, variance = blend @ found.mean, np.maximum(blend @ found.variance, 0.0)
        ridges, energy = np.exp(grid)[:, None], blend @ found.energy
        best = _vertex(grid, dual.at_best_scale(ridges, mean, variance, energy))
        if margin > 10 or ((best.min() > grid[1] or low == bottom) and best.max() < grid[-2]):
            break
        margin *= 2
    ridges = np.exp(best)
    values = np.empty_like(best)
    for i, sign in enumerate(dual.signs):
        blend = nodes.basis(best[i])
        variance = np.maximum(np.einsum("gm,gm->m", blend, found.variance), 0.0)
        scale = dual.best_scale(ridges[i], variance, found.energy[:, 0] @ blend)
        unexplained = query.unexplained(ridges[i], sign * scale, found, blend)
        values[i] = dual.at_scale(ridges[i], scale, unexplained)
    return values, ridges


def _scan(query: PathQuery, dual: Dual, bottom: float) -> Array:
    """Log ridge of the smallest value on a coarse grid above ``bottom``, (signs, m)."""
    top = np.log(query.path.eigen.spectrum.max(initial=query.path.eigen.slack))
    low = max(top - DECADES_BELOW * np.log(10), bottom)
    grid = np.arange(low, top + DECADES_ABOVE * np.log(10), STEP)
    ridges = np.exp(grid)
    values = dual.at_best_scale(ridges[:, None], *query.without_border(ridges))
    best = _vertex(grid, values)
    # Where the function is flat any ridge will do: take one near the others, to search less.
    flat = values[:, -1] - values.min(axis=1) <= 1e-12 * np.abs(values[:, -1])
    return np.where(flat, best.mean(), best)


def _vertex(grid: Array, values: Array) -> Array:
    """The minimiser on an even grid, refined by a parabola through its neighbours; (signs, m)."""
    at = np.minimum(np.maximum(values.argmin(axis=1), 1), len(grid) - 2)
    sign, point = np.arange(at.shape[0])[:, None], np.arange(at.shape[1])
    left, middle, right = (values[sign, at + shift, point] for shift in (-1, 0, 1))
    bend = left - 2 * middle + right
    shift = np.divide(left - right, 2 * bend, out=np.zeros_like(bend), where=bend > 0)
    return np.asarray(grid[at] + (grid[1] - grid[0]) * np.minimum(np.maximum(shift, -1.0), 1.0))
