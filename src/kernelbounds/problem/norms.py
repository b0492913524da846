"""Norms of functions on the unit cube, from their values on two grids.

The norm of a function less a constant c, in the space of a kernel, is at least that of its
interpolant on n points,

    N_n^2(c) = (f - c)^T K^{-1} (f - c) = N_n^2(c*) + (c - c*)^2 1^T K^{-1} 1,

and rises to it as the points fill the cube. The best constant of which |c| is at most ``LEVEL`` is
c* or the end next to it: that is the level which :meth:`Problem.sequence` admits, and without any
turns c* is often further out. For a smooth function most of what is missing is in its
slopes at the faces of the cube, so the points are those of a grid that is closer there (Chebyshev).
With m points a side the rest then falls like m^{-2}, and two grids, of m and of m' < m points a
side, tell how much it still is (Richardson's extrapolation):

    ||f||^2 ~ N^2(m) + (N^2(m) - N^2(m')) / ((m / m')^2 - 1).

With up to four inputs this is within four per cent of what grids with 4096 points tell. On points
that are spread evenly, or at random, the rest falls much more slowly, and with many inputs there
are never enough points: then norms look as if they had settled long before they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.problem.random_functions import RandomFunction

# The level of a function with values in [-1, 1] is at most the whole range away from the middle.
LEVEL = 2.0
# Points a side of the two grids, by the number of inputs that act together.
SIDES = {1: (181, 256), 2: (17, 24), 3: (8, 11), 4: (5, 7)}
# Of more inputs there are norms at scattered points only, and how much is missing cannot be told.
SCATTERED = 1024
# The norm is known where so much of it, at most, is from the extrapolation.
SETTLED = 0.25
# Rounding in K, relative to k(x, x): norms are those of functions that pass within its root, and
# so lower ones. More of it on the coarse grid shows functions that are not in the space at all, of
# which only rounding limits the norm (RBF); it changes other norms by one per cent at most.
JITTER, COARSE_JITTER = 1e-10, 1e-8


def grid(dim: int, side: int) -> Array:
    """Points of the unit cube, ``side`` along each input, closer to each other near its faces."""
    axis = (1 - np.cos(np.pi * np.arange(side) / (side - 1))) / 2
    return np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


class Sampled:
    """Values of functions, or of one of their parts, on two sets of points of some of the inputs.

    Attributes
    ----------
    coarse, fine : pairs of arrays
        Points (n, number of inputs) and values (n, number of functions).
    rest_per_rise : float
        How much of a squared norm is missing on the fine points, for each unit by which it has
        risen from the coarse ones; infinite where nobody can tell.
    """

    def __init__(
        self, functions: Sequence[RandomFunction], inputs: tuple[int, ...], part: int | None = None
    ) -> None:
        dim = len(inputs)
        if dim in SIDES:
            fewer, more = SIDES[dim]
            coarse, fine = grid(dim, fewer), grid(dim, more)
            self.rest_per_rise = 1 / ((more / fewer) ** 2 - 1)
        else:
            fine = qmc.Sobol(dim, rng=np.random.default_rng(2)).random(2 * SCATTERED)
            coarse = fine[:SCATTERED]
            self.rest_per_rise = np.inf
        self.coarse, self.fine = (
            (points, _values(functions, inputs, part, points)) for points in (coarse, fine)
        )


def _values(
    functions: Sequence[RandomFunction], inputs: tuple[int, ...], part: int | None, points: Array
) -> Array:
    everywhere = np.full((len(points), functions[0].dim), 0.5)
    everywhere[:, inputs] = points
    found = [f(everywhere) if part is None else f.of_part(part, everywhere) for f in functions]
    return np.stack(found, axis=1)


def norms_of(
    pieces: Sequence[Sampled], kernels_of_pieces: Sequence[Kernel], quantile: float
) -> tuple[Array, bool]:
    """Norms of the functions, less their best levels, (functions,), and whether they are known.

    The norm in the space of a sum of kernels is at most the root of the sum of the squares for the
    parts. Where norms are not known they are lower bounds.
    """
    both = list(zip(pieces, kernels_of_pieces, strict=True))
    known = _together([squared_norms(kernel, *piece.fine) for piece, kernel in both])
    coarse = _together([squared_norms(k, *piece.coarse, COARSE_JITTER) for piece, k in both])
    rest_per_rise = max(piece.rest_per_rise for piece in pieces)
    if rest_per_rise == np.inf:
        return np.sqrt(known), False
    least = np.sqrt(known)
    estimated = np.sqrt(known + np.maximum(known - coarse, 0.0) * rest_per_rise)
    settled = np.quantile(estimated, quantile) <= (1 + SETTLED) * np.quantile(least, quantile)
    return (estimated, True) if settled else (least, False)


class SquaredNorms(NamedTuple):
    """least + curvature (c - best)^2, for functions less a constant c; (number of functions,)."""

    least: Array
    best: Array
    curvature: float


def _together(parts: list[SquaredNorms]) -> Array:
    """The least sum of squares over constants of the parts whose sum is at most LEVEL.

    The best ones are moved by e in all, and each in proportion to 1 / curvature: that adds
    e^2 / sum(1 / curvature).
    """
    beyond = np.maximum(np.abs(sum(part.best for part in parts)) - LEVEL, 0.0)
    stiffness = 1 / sum(1 / part.curvature for part in parts)
    return np.asarray(sum(part.least for part in parts) + stiffness * beyond**2)


def squared_norms(
    kernel: Kernel, points: Array, values: Array, jitter: float = JITTER
) -> SquaredNorms:
    """(f - c)^T K^{-1} (f - c) as a function of c, for each column f of values (n, functions)."""
    matrix = kernels.cross(kernel, points, points)
    matrix.flat[:: len(points) + 1] *= 1 + jitter
    ones = np.ones((len(points), 1))
    solved = cho_solve(cho_factor(matrix), np.concatenate([ones, values], axis=1))
    energy = np.einsum("nj,nj->j", values, solved[:, 1:])
    curvature = float(solved[:, 0].sum())
    best = solved[:, 1:].sum(axis=0) / curvature
    return SquaredNorms(np.maximum(energy - curvature * best**2, 0.0), best, curvature)
