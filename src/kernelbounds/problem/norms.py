"""Norms of functions on the unit cube, from their values on two grids.

The norm of a function in the space of a kernel is at least that of its interpolant on n points,

    N_n^2 = min over c of (f - c)^T K^{-1} (f - c),

and rises to it as the points fill the cube. For a smooth function most of what is missing is in its
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

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.problem.random_functions import RandomFunction

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
    """Norms of the functions, (number of functions,), and whether they are known.

    The norm in the space of a sum of kernels is at most the root of the sum of the squares for the
    parts. Where norms are not known they are lower bounds.
    """
    known = rest = np.zeros(pieces[0].fine[1].shape[1])
    for piece, kernel in zip(pieces, kernels_of_pieces, strict=True):
        squared = squared_norms(kernel, *piece.fine)
        coarse = squared_norms(kernel, *piece.coarse, COARSE_JITTER)
        rise = np.maximum(squared - coarse, 0.0)
        known = known + squared
        rest = rest + (rise * piece.rest_per_rise if piece.rest_per_rise < np.inf else np.inf)
    least, estimated = np.sqrt(known), np.sqrt(known + rest)
    settled = np.all(np.isfinite(rest)) and bool(
        np.quantile(estimated, quantile) <= (1 + SETTLED) * np.quantile(least, quantile)
    )
    return (estimated, True) if settled else (least, False)


def squared_norms(kernel: Kernel, points: Array, values: Array, jitter: float = JITTER) -> Array:
    """min over c of (f - c)^T K^{-1} (f - c), for each column of values (n, functions)."""
    matrix = kernels.cross(kernel, points, points)
    matrix.flat[:: len(points) + 1] *= 1 + jitter
    ones = np.ones((len(points), 1))
    solved = cho_solve(cho_factor(matrix), np.concatenate([ones, values], axis=1))
    energy = np.einsum("nj,nj->j", values, solved[:, 1:])
    constant = solved[:, :1].sum()
    return np.asarray(np.maximum(energy - (ones.T @ solved[:, 1:])[0] ** 2 / constant, 0.0))
