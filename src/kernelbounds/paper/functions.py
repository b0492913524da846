"""Known functions of inputs in the unit cube, to be maximised, and their norms.

Each is shifted and scaled, so that on its points the mean is 0 and the range is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import Kernel, Matern

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.theory.spectrum import sobol

# Kernel matrices of a few thousand points have rounding errors of 1e-12, and this is above them.
# Norms of the four functions change by less than 1 % when it is ten times as large.
RIDGE = 1e-11


@dataclass(frozen=True)
class Target:
    """A function with the points at which it may be tried.

    ``finer`` are points that fill the cube, ``points`` among them, for computing the norm.
    """

    title: str
    formula: Callable[[Array], Array]
    points: Array
    finer: Array

    @property
    def dim(self) -> int:
        """The number of inputs."""
        return int(self.points.shape[1])

    def values(self, points: Array) -> Array:
        """At points (m, d) of the unit cube."""
        known = self.formula(self.points)
        return np.asarray((self.formula(points) - known.mean()) / np.ptp(known))

    def norm(self, kernel: Kernel) -> float:
        """Of the function of least norm that has these values at all of ``finer``.

        As a set gets finer this tends to the norm of the function from below. On ``points``, which
        is all that a policy on them can see, the function is that interpolant, whose norm this is.
        Its square y' K^-1 y is computed with a ridge, as the matrix is nearly singular.
        """
        y, gram = self.values(self.finer), kernels.cross(kernel, self.finer, self.finer)
        gram[np.diag_indices_from(gram)] += RIDGE
        return float(np.sqrt(y @ cho_solve(cho_factor(gram, overwrite_a=True), y)))


@cache
def target(name: str) -> Target:
    """One of the four, by the names of ``trials.KERNELS``."""
    makers = {"wiggly": _wiggly, "branin": _branin, "reactor": _reactor, "hartmann": _hartmann}
    return makers[name]()


@cache
def norm_of(name: str, nu: float, length_scale: float) -> float:
    """In the space of a Matern kernel; kept, as many trials ask for it."""
    return target(name).norm(Matern(length_scale=length_scale, nu=nu))


def _wiggly() -> Target:
    def formula(x: Array) -> Array:
        return np.asarray(np.sin(3 * np.pi * x[:, 0]) + 0.5 * np.sin(7 * x[:, 0]))

    return Target("wiggly, one input", formula, _grid(201, 1), _grid(401, 1))


def _branin() -> Target:
    def formula(x: Array) -> Array:
        u, v = 15 * x[:, 0] - 5, 15 * x[:, 1]
        valley = v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6
        return np.asarray(-(valley**2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) - 10)

    return Target("Branin, two inputs", formula, _grid(25, 2), _grid(49, 2))


def _reactor() -> Target:
    """Yield: conversion grows with temperature and time, selectivity falls with temperature."""

    def formula(x: Array) -> Array:
        temperature, feed, time = x.T
        conversion = 1 - np.exp(-(0.5 + 2 * time) * np.exp(2 * temperature - 1))
        selectivity = 1 / (1 + 0.5 * np.exp(4 * (temperature - 0.7)))
        return np.asarray(conversion * selectivity * np.exp(-2 * (feed - 0.6) ** 2))

    return Target("reactor, three inputs", formula, *_filling(3))


def _hartmann() -> Target:
    heights = np.array([1.0, 1.2, 3.0, 3.2])
    widths = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
    centres = 1e-4 * np.array(
        [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
    )

    def formula(x: Array) -> Array:
        squares = (widths * (x[:, None] - centres) ** 2).sum(axis=2)
        return np.asarray(np.exp(-squares) @ heights)

    return Target("Hartmann, three inputs", formula, *_filling(3))


def _grid(count: int, dim: int) -> Array:
    """So many points a side, (count^dim, dim)."""
    sides = np.meshgrid(*[np.linspace(0, 1, count)] * dim, indexing="ij")
    return np.stack(sides, axis=-1).reshape(-1, dim)


def _filling(dim: int) -> tuple[Array, Array]:
    """1,024 points of a Sobol sequence, and twice as many."""
    finer = sobol(2048, dim)
    return finer[:1024], finer
