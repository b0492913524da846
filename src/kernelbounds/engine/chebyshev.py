"""Interpolation between ridges, on a logarithmic scale."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from kernelbounds.arrays import Array


class Chebyshev:
    """The interpolating polynomial through values at Chebyshev points of [low, high].

    The quantities of a ridge path are analytic in the logarithm of the ridge, with no singularity
    within pi of the real line (they are sums of 1/(lambda + alpha)), so the error falls
    geometrically with the number of points.
    """

    def __init__(self, low: float, high: float, size: int) -> None:
        self.low, self.high, self.size = low, high, size
        self.points = low + (high - low) * (_nodes_and_weights(size)[0] + 1) / 2

    @classmethod
    def for_accuracy(cls, low: float, high: float, accuracy: float) -> Chebyshev:
        """The interpolation with enough points, by Bernstein's theorem, for poles at +-i pi."""
        rate = math.asinh(2 * math.pi / (high - low))
        return cls(low, high, max(3, math.ceil(-math.log(accuracy) / rate)))

    def grid(self, size: int) -> tuple[Array, Array]:
        """An even grid of [low, high] and the matrix, (size, nodes), that interpolates on it."""
        return np.linspace(self.low, self.high, size), _on_even_grid(self.size, size)

    def basis(self, at: Array) -> Array:
        """The Lagrange basis (nodes, m): values at the nodes times it interpolate at m places."""
        return _basis(self.size, 2 * (at - self.low) / (self.high - self.low) - 1)


@lru_cache(maxsize=128)
def _nodes_and_weights(size: int) -> tuple[Array, Array]:
    """Chebyshev points of [-1, 1] and their barycentric weights."""
    angles = (2 * np.arange(size) + 1) * np.pi / (2 * size)
    return np.cos(angles), np.sin(angles) * (-1.0) ** np.arange(size)


def _basis(size: int, at: Array) -> Array:
    """The Lagrange basis on [-1, 1], by the barycentric formula."""
    nodes, weights = _nodes_and_weights(size)
    gap = at - nodes[:, None]
    gap[np.abs(gap) < 1e-15] = 1e-15
    terms = weights[:, None] / gap
    terms /= terms.sum(axis=0)
    return np.asarray(terms)


@lru_cache(maxsize=128)
def _on_even_grid(nodes: int, size: int) -> Array:
    return _basis(nodes, np.linspace(-1.0, 1.0, size)).T.copy()
