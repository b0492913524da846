"""Inducing points, and the features that they make of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.errors import InputError
from kernelbounds.functionals import Functionals, Targets, squared_norms

# Added to the diagonal of K_mm, relative to each of its entries. The factor then has a condition
# number of at most a few times 1e5, and features errors of 1e-8 at most, relatively; the residuals
# that it adds are of its own size.
JITTER = 1e-8
# What is added to residuals, relative to k(x,x), for those errors.
FEATURE_ERROR = 2e-8


@dataclass(frozen=True)
class Dictionary:
    """Inducing points z_1 .. z_m, and L with L L' = K_mm + jitter, lower triangular.

    Another point adds a row to L and leaves the others as they are: with a dictionary that has
    grown, the first features of a point are what they were.
    """

    kernel: Kernel
    inducing: Array  # (m, d)
    factor: Array  # (m, m)

    @classmethod
    def of(cls, kernel: Kernel, inducing: Array) -> Dictionary:
        """Of given points."""
        gram = kernels.cross(kernel, inducing, inducing)
        gram = 0.5 * (gram + gram.T)
        gram.flat[:: len(gram) + 1] += jitter(gram.diagonal())
        try:
            factor = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            raise InputError(
                f"{kernel} is not a kernel: its matrix on the inducing points is not positive "
                "semi-definite."
            ) from None
        return cls(kernel, inducing, factor)

    @classmethod
    def empty(cls, kernel: Kernel, dim: int) -> Dictionary:
        """Without points yet."""
        return cls(kernel, np.empty((0, dim)), np.empty((0, 0)))

    def __len__(self) -> int:
        return len(self.inducing)

    def features(self, targets: Targets, accuracy: float) -> tuple[Array, Array, Array]:
        """phi (m, n), residuals rounded up (n,) and k(x,x) (n,), of points or other functionals."""
        size = None
        if isinstance(targets, Functionals):
            vectors = targets.vectors(self.kernel, self.inducing)
            size = targets.magnitudes(self.kernel)
        else:
            vectors = self._values(targets)
        prior = squared_norms(self.kernel, targets, accuracy)
        phi = _solved(self.factor, vectors.T)
        rest = np.maximum(prior - np.einsum("mn,mn->n", phi, phi), 0.0)
        return phi, rest + FEATURE_ERROR * (prior if size is None else size), prior

    def more_features(self, known: Array, points: Array, weights: Array) -> Array:
        """The features w phi(x) beyond the first k, which are known, (k, n); (m - k, n)."""
        first = len(known)
        vectors = kernels.vectors(self.kernel, points, self.inducing[first:]).T * weights
        rows = self.factor[first:]
        return _solved(rows[:, first:], vectors - rows[:, :first] @ known)

    def extended(self, points: Array, left: Array, corner: Array) -> Dictionary:
        """With k points more, whose rows of L are ``left`` (k, m) and ``corner`` (k, k)."""
        old, size = len(self), len(self) + len(points)
        factor = np.zeros((size, size))
        factor[:old, :old], factor[old:, :old], factor[old:, old:] = self.factor, left, corner
        return Dictionary(self.kernel, np.concatenate([self.inducing, points]), factor)

    def _values(self, points: Array) -> Array:
        if not len(self):
            return np.empty((len(points), 0))
        return kernels.vectors(self.kernel, points, self.inducing)


def jitter(prior: Array) -> Array:
    """What is added to k(z,z): any positive number is right, also where that is 0."""
    return np.where(prior > 0, JITTER * prior, 1.0)


def _solved(triangle: Array, right: Array) -> Array:
    if not len(triangle):
        return np.empty((0, right.shape[1]))
    return np.asarray(solve_triangular(triangle, right, lower=True, check_finite=False))
