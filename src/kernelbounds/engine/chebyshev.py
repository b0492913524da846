"""Polynomial interpolation at Chebyshev points."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from kernelbounds.arrays import Array


class Chebyshev:
    """The interpolating polynomial through values at Chebyshev points of [low, high].

    The quantities of a ridge path are analytic in the logarithm of the ridge, with no
    singularity closer than i pi to the real line (they are sums of 1/(lambda + alpha)), so the
    error falls geometrically with the number of points.
    """

    def __init__(self, low: float, high: float, size: int) -> None:
        self.low, self.high, self.size = low, high, size
        self.points = low + (high - low) * (_nodes(size) + 1) / 2

    @classmethod
    def for_accuracy(cls, low: float, high: float, accuracy: float) -> Chebyshev:
        """As many points as a singularity at the distance i pi asks for, by Bernstein's theorem."""
        rate = math.asinh(2 * math.pi / (high - low))
        return cls(low, high, max(3, math.ceil(-math.log(accuracy) / rate)))

    def grid(self, size: int) -> tuple[Array, Array]:
        """An even grid of [low, high] and the matrix, (size, nodes), that interpolates on it."""
        return self.low + (self.high - self.low) * _even(size), _on_even_grid(self.size, size)

    def basis(self, at: Array) -> Array:
        """Lagrange basis, (nodes, m): values at the nodes times this interpolate at m places."""
        return _basis(self.size, 2 * (at - self.low) / (self.high - self.low) - 1)


@lru_cache(maxsize=128)
def _nodes(size: int) -> Array:
    return np.asarray(np.cos(_angles(size)))


@lru_cache(maxsize=128)
def _weights(size: int) -> Array:
    return np.asarray(np.sin(_angles(size)) * (-1.0) ** np.arange(size))


def _angles(size: int) -> Array:
    return np.asarray((2 * np.arange(size) + 1) * np.pi / (2 * size))


@lru_cache(maxsize=128)
def _even(size: int) -> Array:
    return np.arange(size) / (size - 1)


def _basis(nodes: int, at: Array) -> Array:
    """The barycentric formula on [-1, 1]."""
    gap = at - _nodes(nodes)[:, None]
    gap[np.abs(gap) < 1e-15] = 1e-15
    terms = _weights(nodes)[:, None] / gap
    terms /= terms.sum(axis=0)
    return np.asarray(terms)


@lru_cache(maxsize=128)
def _on_even_grid(nodes: int, size: int) -> Array:
    return _basis(nodes, 2 * _even(size) - 1).T.copy()
