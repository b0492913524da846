"""Polynomial interpolation at Chebyshev points."""

from __future__ import annotations

import numpy as np

from kernelbounds.arrays import Array


class Chebyshev:
    """The interpolating polynomial through values at Chebyshev points of [low, high].

    The quantities of a ridge path are analytic in the logarithm of the ridge, with no
    singularity closer than i pi to the real line (they are sums of 1/(lambda + alpha)), so the
    error falls geometrically with the number of points.
    """

    def __init__(self, low: float, high: float, size: int) -> None:
        angles = (2 * np.arange(size) + 1) * np.pi / (2 * size)
        self.low, self.high = low, high
        self.points = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(angles)
        self._weights = np.sin(angles) * (-1.0) ** np.arange(size)

    def basis(self, at: Array) -> Array:
        """Lagrange basis, shape (size, *at.shape): values at the nodes times this interpolate."""
        gap = at - self.points.reshape(-1, *[1] * at.ndim)
        gap[np.abs(gap) < 1e-14 * (1 + abs(self.low) + abs(self.high))] = 1e-300
        terms = self._weights.reshape(-1, *[1] * at.ndim) / gap
        return np.asarray(terms / terms.sum(axis=0))
