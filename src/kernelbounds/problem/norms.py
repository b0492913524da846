"""Norms of functions less their best level, from their values on two grids.

The norm of a function less a constant c, in the space of a kernel, is at least that of its
interpolant on n points,

    N_n^2(c) = (f - c)^T K^{-1} (f - c) = N_n^2(c*) + (c - c*)^2 1^T K^{-1} 1,

and rises to it as the points fill the cube. The model of a problem admits levels c with |c| up to
``MAX_LEVEL``. The best of them is c* or the end next to it; without any turns c* is often further
out. For a smooth function most of what is missing is in its slopes at the faces of the cube, so the
points are those of a grid that is closer there (Chebyshev). With m points a side the rest then
falls like m^{-2}, and two grids, of m and of m' < m points a side, tell how much it still is
(Richardson's extrapolation):

    ||f||^2 ~ N^2(m) + (N^2(m) - N^2(m')) / ((m / m')^2 - 1).

With up to four inputs this is within four per cent of what grids with 4096 points tell. On points
that are spread evenly, or at random, the rest falls much more slowly, and with many inputs there
are never enough points: then norms look as if they had settled long before they have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.problem.random_functions import RandomFunction, at_all_levels
from kernelbounds.problem.waves import NO_CATEGORIES, Category

# The level of a function with values in [-1, 1] is at most the whole range away from the middle.
MAX_LEVEL = 2.0
# Points per side of the two grids, by the number of inputs that act together.
GRID_SIDES = {1: (181, 256), 2: (17, 24), 3: (8, 11), 4: (5, 7)}
# With more inputs, norms are computed at this many scattered points, and at twice as many; then one
# cannot tell how much of a norm is missing.
SCATTERED_POINTS = 1024
# A norm counts as known where the extrapolation adds at most this share of it.
MAX_EXTRAPOLATED_SHARE = 0.25
# Rounding errors allowed in K, relative to k(x, x): the norms are then those of functions that pass
# within its root of the values, and so a little lower. A larger one on the coarse grid shows which
# functions are not in the space at all, so that only rounding limits their norm (RBF); it changes
# other norms by one per cent at most.
JITTER, COARSE_JITTER = 1e-10, 1e-8


def grid(dim: int, side: int) -> Array:
    """Return points of the unit cube, ``side`` along each input, closer together near its faces."""
    axis = (1 - np.cos(np.pi * np.arange(side) / (side - 1))) / 2
    return np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


class Sampled:
    """Values of functions, or of one of their parts, on two sets of points of some of the inputs.

    Where some of the inputs are categories, each point of the others is at all combinations of
    levels. These have an axis of their own, unless ``flat`` is asked for.

    Attributes
    ----------
    coarse, fine : pairs of arrays
        Points (n, number of inputs) and values (n, number of functions), or both with an axis of
        combinations of levels after the first.
    rest_per_rise : float
        How much of a squared norm is missing on the fine points, for each unit by which it rises
        from the coarse to the fine ones; infinite where this is not known.
    """

    def __init__(
        self,
        functions: Sequence[RandomFunction],
        inputs: tuple[int, ...],
        part: int | None = None,
        *,
        flat: bool = False,
    ) -> None:
        categories: Mapping[int, Category] = getattr(functions[0], "categories", NO_CATEGORIES)
        own = {at: one for at, one in categories.items() if at in inputs}
        numbers = [at for at in inputs if at not in own]
        dim, combinations = len(numbers), math.prod(one.levels for one in own.values())
        if dim == 0:
            coarse = fine = np.empty((1, 0))
            self.rest_per_rise = 0.0
        elif dim in GRID_SIDES:
            fewer, more = GRID_SIDES[dim]
            coarse, fine = grid(dim, fewer), grid(dim, more)
            self.rest_per_rise = 1 / ((more / fewer) ** 2 - 1)
        else:
            fine = qmc.Sobol(dim, rng=np.random.default_rng(2)).random(2 * SCATTERED_POINTS)
            coarse = fine[:SCATTERED_POINTS]
            self.rest_per_rise = np.inf

        def values(points: Array) -> tuple[Array, Array]:
            x = at_all_levels(points, numbers, own, functions[0].dim)
            every = [f(x) if part is None else f.of_part(part, x) for f in functions]
            found, seen = np.stack(every, 1), x[:, inputs]
            if flat or not own:
                return seen, found
            shape = combinations, len(points), -1
            return seen.reshape(shape).swapaxes(0, 1), found.reshape(shape).swapaxes(0, 1)

        self.coarse, self.fine = values(coarse), values(fine)


def norms_of(
    pieces: Sequence[Sampled], kernels_of_pieces: Sequence[Kernel], quantile: float
) -> tuple[Array, bool]:
    """Return norms of the functions less their best levels, and whether they are known.

    The norm in the space of a sum of kernels is at most the root of the sum of the squares for the
    parts. Norms that are not known are lower bounds. The shape is (number of functions,).
    """
    both = list(zip(pieces, kernels_of_pieces, strict=True))
    fine = _sum_of_squares([squared_norms(kernel, *piece.fine) for piece, kernel in both])
    coarse = _sum_of_squares([squared_norms(k, *piece.coarse, COARSE_JITTER) for piece, k in both])
    least, rest_per_rise = np.sqrt(fine), max(piece.rest_per_rise for piece in pieces)
    if rest_per_rise == np.inf:
        return least, False
    estimated = np.sqrt(fine + np.maximum(fine - coarse, 0.0) * rest_per_rise)
    most = (1 + MAX_EXTRAPOLATED_SHARE) * np.quantile(least, quantile)
    return (estimated, True) if np.quantile(estimated, quantile) <= most else (least, False)


class SquaredNorms(NamedTuple):
    """Squared norms of functions less a constant c, as least + curvature (c - best)^2."""

    least: Array
    best: Array
    curvature: float


def _sum_of_squares(parts: list[SquaredNorms]) -> Array:
    """Minimise the sum of squared norms over constants of the parts whose sum is at most MAX_LEVEL.

    Where the best constants exceed it by e in all, each is moved in proportion to 1 / curvature:
    that adds e^2 / sum(1 / curvature).
    """
    beyond = np.maximum(np.abs(sum(part.best for part in parts)) - MAX_LEVEL, 0.0)
    stiffness = 1 / sum(1 / part.curvature for part in parts)
    return np.asarray(sum(part.least for part in parts) + stiffness * beyond**2)


def squared_norms(
    kernel: Kernel, points: Array, values: Array, jitter: float = JITTER
) -> SquaredNorms:
    """Return (f - c)^T K^{-1} (f - c) as a function of c, for each column f of the values.

    Points (n, c, d) and values (n, c, number of functions) are at c combinations of levels. The
    kernel is then a product of one of the numbers and one of the levels, and so is its inverse.
    """
    if points.ndim == 2:
        points, values = points[:, None], values[:, None]
    matrix = kernels.cross(kernel, points[:, 0], points[:, 0])
    of_levels = np.linalg.inv(kernels.cross(kernel, points[0], points[0]) / matrix[0, 0])
    matrix.flat[:: len(points) + 1] *= 1 + jitter
    columns = np.concatenate([np.ones((len(points), 1)), values.reshape(len(points), -1)], axis=1)
    solved = cho_solve(cho_factor(matrix), columns)
    weights = np.einsum("cb,nbj->ncj", of_levels, solved[:, 1:].reshape(values.shape))
    energy = np.einsum("ncj,ncj->j", values, weights)
    curvature = float(solved[:, 0].sum() * of_levels.sum())
    best = weights.sum(axis=(0, 1)) / curvature
    return SquaredNorms(np.maximum(energy - curvature * best**2, 0.0), best, curvature)
