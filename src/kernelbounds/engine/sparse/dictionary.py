"""Inducing points, and the features that they give to observations and other points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, column_dots
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.ridge_path import dot_error
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Functionals, Targets, squared_norms

# The jitter, relative to each entry of the diagonal of K_mm, is above the errors of its factor,
# which are a few times m EPS. It adds about as much to residuals.
JITTER = 1e-9
# The errors of features are shared out, see ``docs/mathematics/sparse-engine.md``. They are vectors
# eta(x) with |eta(x)|^2 <= u k(x,x), where u is :attr:`Dictionary.error`. Residuals are enlarged by
# a factor 1 + RESIDUAL_MARGIN, and by SHARE_OF_ERROR u k(x,x); squared features by a factor
# 1 + FEATURE_MARGIN.
RESIDUAL_MARGIN, SHARE_OF_ERROR = 0.05, 2e5
FEATURE_MARGIN = 2 * (1 + 1 / RESIDUAL_MARGIN) / SHARE_OF_ERROR


@dataclass(frozen=True)
class Dictionary:
    """Inducing points z_1 .. z_m, and L with L L' = K_mm + jitter, lower triangular.

    Another point adds a row to L and leaves the others as they are: with a dictionary that has
    grown, the first features of a point are what they were.
    """

    kernel: Kernel
    inducing: Array  # (m, d)
    factor: Array  # (m, m)
    accuracy: float = EPS  # of the kernel's values

    @property
    def error(self) -> float:
        """The squared error u of features, relative to k(x,x).

        L phi is k_m(x) up to an error delta, each entry of which is at most that of an inner
        product of m terms; and eta = L^-1 delta, where L L' is at least the jitter.
        """
        return len(self) * dot_error(len(self), self.accuracy) ** 2 / JITTER

    @property
    def least_residual(self) -> float:
        """The least residual, relative to k(x,x), that rounding errors allow to know."""
        return (1 + RESIDUAL_MARGIN) * SHARE_OF_ERROR * self.error + self.accuracy

    @classmethod
    def of(cls, kernel: Kernel, inducing: Array, accuracy: float) -> Dictionary:
        """The dictionary of given points."""
        try:
            factor = np.linalg.cholesky(gram_with_jitter(kernel, inducing))
        except np.linalg.LinAlgError:
            raise InputError(
                f"{kernel} is not a kernel: its matrix on the inducing points is not positive "
                "semi-definite."
            ) from None
        return cls(kernel, inducing, np.asarray(factor, dtype=float), accuracy)

    @classmethod
    def empty(cls, kernel: Kernel, dim: int, accuracy: float) -> Dictionary:
        """A dictionary without points yet."""
        return cls(kernel, np.empty((0, dim)), np.empty((0, 0)), accuracy)

    def __len__(self) -> int:
        return len(self.inducing)

    def features(self, targets: Targets) -> tuple[Array, Array, Array]:
        """phi (m, n), residuals rounded up (n,) and k(x,x) (n,), of points or other functionals."""
        prior = squared_norms(self.kernel, targets, self.accuracy)
        magnitudes, vectors = prior, np.empty((len(prior), 0))
        if isinstance(targets, Functionals):
            vectors = targets.vectors(self.kernel, self.inducing)
            magnitudes = targets.magnitudes(self.kernel)
        elif len(self):
            vectors = kernels.vectors(self.kernel, targets, self.inducing)
        phi = _solved(self.factor, vectors.T)
        rest = np.maximum(prior - column_dots(phi, phi), 0.0)
        return phi, (1 + RESIDUAL_MARGIN) * rest + self.least_residual * magnitudes, prior

    def more_features(self, known: Array, points: Array, weights: Array) -> Array:
        """The features w phi(x) of points beyond the first k, which are ``known``; (m - k, n)."""
        first = len(known)
        vectors = kernels.vectors(self.kernel, points, self.inducing[first:]).T * weights
        rows = self.factor[first:]
        return _solved(rows[:, first:], vectors - rows[:, :first] @ known)

    def extended(self, points: Array, left: Array, corner: Array) -> Dictionary:
        """The dictionary with k more points, whose rows of L are ``left`` and ``corner``."""
        old, size = len(self), len(self) + len(points)
        factor = np.zeros((size, size))
        factor[:old, :old], factor[old:, :old], factor[old:, old:] = self.factor, left, corner
        inducing = np.concatenate([self.inducing, points])
        return Dictionary(self.kernel, inducing, factor, self.accuracy)


def gram_with_jitter(kernel: Kernel, inducing: Array) -> Array:
    """The matrix K_mm + jitter I of inducing points."""
    gram = kernels.cross(kernel, inducing, inducing)
    gram = 0.5 * (gram + gram.T)
    gram.flat[:: len(gram) + 1] += jitter(gram.diagonal())
    return gram


def jitter(prior: Array) -> Array:
    """The jitter that is added to k(z,z); where that is 0, any positive number will do."""
    return np.where(prior > 0, JITTER * prior, 1.0)


def _solved(triangle: Array, right: Array) -> Array:
    if not len(triangle):
        return np.empty((0, right.shape[1]))
    return np.asarray(solve_triangular(triangle, right, lower=True, check_finite=False))


@dataclass(frozen=True)
class Block:
    """n observations; features, residuals and outcomes are multiplied by the weights of each.

    A block depends on these rows and the dictionary alone, and so may be made on any machine.
    """

    points: Array  # (n, d)
    phi: Array  # w phi(x), (m, n)
    residuals: Array  # w^2 r(x), rounded up, (n,)
    prior: Array  # w^2 k(x,x), (n,)
    outcomes: Array  # w y, (n,)
    weights: Array  # w, (n,)

    @classmethod
    def of(cls, dictionary: Dictionary, points: Array, outcomes: Outcomes) -> Block:
        """The block of points (n, d) and their outcomes."""
        w = outcomes.weights
        phi, rest, prior = dictionary.features(points)
        return cls(points, phi * w, rest * w**2, prior * w**2, outcomes.centred * w, w)

    @classmethod
    def empty(cls, size: int, dim: int) -> Block:
        """A block without rows."""
        none = np.empty(0)
        return cls(np.empty((0, dim)), np.empty((size, 0)), none, none, none, none)

    def __len__(self) -> int:
        return len(self.weights)

    def with_features(self, more: Array, least: float) -> Block:
        """The rows with more features, (k, n), of a dictionary that has grown.

        ``least`` is added to residuals, relative to k(x,x). A larger dictionary has larger errors
        than those in the residuals of a smaller one, so that residuals that must not be too small
        need its :attr:`Dictionary.least_residual`.
        """
        if not len(more):
            return self
        seen = (1 + RESIDUAL_MARGIN) * (more**2).sum(axis=0)
        rest = np.maximum(self.residuals - seen, 0.0) + least * self.prior
        return replace(self, phi=np.concatenate([self.phi, more]), residuals=rest)

    def joined(self, other: Block) -> Block:
        """The rows of both blocks, which have the same features."""
        joined = {
            name: np.concatenate([part, vars(other)[name]], axis=1 if name == "phi" else 0)
            for name, part in vars(self).items()
        }
        return Block(**joined)
