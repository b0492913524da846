"""Known functions on the unit cube, to be maximised: their values, maxima and norms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel, Matern

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.theory.spectrum import sobol

# Kernel matrices of a few thousand points have rounding errors of 1e-12, and this is above them.
# Norms of the functions of ``certificates`` change by less than 1 % when it is ten times as large.
NORM_RIDGE = 1e-11
# Where the largest value of a function is looked for: the best of these points are improved.
SCANNED, STARTS = 2**13, 12


@dataclass(frozen=True)
class KnownFunction:
    """A function, shifted and scaled to mean 0 and range 1 on the points at which it may be tried.

    ``finer`` are points that fill the cube, ``points`` among them, for computing the norm.
    """

    title: str
    formula: Callable[[Array], Array]
    points: Array
    finer: Array

    def values(self, points: Array) -> Array:
        """Evaluate the function at points (m, d) of the unit cube."""
        known = self.formula(self.points)
        return np.asarray((self.formula(points) - known.mean()) / np.ptp(known))

    def norm(self, kernel: Kernel) -> float:
        """Compute the least norm of a function that has these values at all of ``finer``.

        As a set gets finer this tends to the norm of the function from below. On ``points``, which
        is all that a policy on them can see, the function is that interpolant, whose norm this is.
        """
        return least_norm(kernel, self.finer, self.values(self.finer))


def least_norm(kernel: Kernel, points: Array, values: Array) -> float:
    """Compute the least norm of a function with these values (m,) at points (m, d).

    Its square y' K^-1 y is computed with a ridge, as the matrix is nearly singular.
    """
    gram = kernels.cross(kernel, points, points)
    gram[np.diag_indices_from(gram)] += NORM_RIDGE
    return float(np.sqrt(values @ cho_solve(cho_factor(gram, overwrite_a=True), values)))


def largest(values: Callable[[Array], Array], dim: int) -> float:
    """Find the largest value of a function on the unit cube, from many starts."""
    points = qmc.Sobol(dim, scramble=False).random(SCANNED)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * dim), axis=-1).reshape(-1, dim)
    points = np.concatenate([points, corners])
    found = values(points)
    starts = points[np.argsort(-found)[:STARTS]]
    tops: list[float] = [
        -minimize(
            lambda x: -float(values(x[None])[0]), start, method="L-BFGS-B", bounds=[(0, 1)] * dim,
            options={"ftol": 1e-15, "gtol": 1e-9},
        ).fun
        for start in starts
    ]  # fmt: skip
    return max(float(found.max()), *tops)


@cache
def known_function(name: str) -> KnownFunction:
    """Return a function by its name."""
    cube = sobol(2048, 3)
    found = {
        "wiggly": ("wiggly, one input", _wiggly, _grid(201, 1), _grid(401, 1)),
        "branin": ("Branin, two inputs", _branin, _grid(25, 2), _grid(49, 2)),
        "camel": ("six-hump camel, two inputs", _camel, _grid(25, 2), _grid(49, 2)),
        "reactor": ("reactor, three inputs", _reactor, cube[:1024], cube),
        "hartmann": ("Hartmann, three inputs", _hartmann, cube[:1024], cube),
    }
    return KnownFunction(*found[name])


@cache
def norm_of(name: str, nu: float, length_scale: float) -> float:
    """Compute the norm in the space of a Matern kernel, and keep it, as many runs ask for it."""
    return known_function(name).norm(Matern(length_scale=length_scale, nu=nu))


def _wiggly(x: Array) -> Array:
    return np.asarray(np.sin(3 * np.pi * x[:, 0]) + 0.5 * np.sin(7 * x[:, 0]))


def _branin(x: Array) -> Array:
    u, v = 15 * x[:, 0] - 5, 15 * x[:, 1]
    valley = v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6
    return np.asarray(-(valley**2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) - 10)


def _camel(x: Array) -> Array:
    u, v = 4 * x[:, 0] - 2, 2 * x[:, 1] - 1
    return np.asarray(-(4 - 2.1 * u**2 + u**4 / 3) * u**2 - u * v - 4 * (v**2 - 1) * v**2)


def _reactor(x: Array) -> Array:
    """Compute the yield: conversion grows with heat and time, and selectivity falls with heat."""
    temperature, feed, time = x.T
    conversion = 1 - np.exp(-(0.5 + 2 * time) * np.exp(2 * temperature - 1))
    selectivity = 1 / (1 + 0.5 * np.exp(4 * (temperature - 0.7)))
    return np.asarray(conversion * selectivity * np.exp(-2 * (feed - 0.6) ** 2))


def _hartmann(x: Array) -> Array:
    heights = np.array([1.0, 1.2, 3.0, 3.2])
    widths = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
    centres = 1e-4 * np.array(
        [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
    )
    squares = (widths * (x[:, None] - centres) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares) @ heights)


def _grid(count: int, dim: int) -> Array:
    """Return a grid with ``count`` points a side, (count^dim, dim)."""
    sides = np.meshgrid(*[np.linspace(0, 1, count)] * dim, indexing="ij")
    return np.stack(sides, axis=-1).reshape(-1, dim)
