"""Inducing points, their features, and the rule by which observations become inducing points.

A row joins when its residual, given the inducing points so far, is too large,

    r(x) > tolerance v(x) / (1 - m / most)^2,   v = alpha rho_alpha^2 / (alpha + rho_alpha^2),

where rho_alpha^2 = alpha phi' (A + alpha I)^-1 phi + r is the variance at x, at a ridge alpha like
those of CMM, and v the variance once x is observed. The half-widths of CMM are about sqrt(2 v) B
then, so that the ratio r / v is what the residual adds to the square of a width, relatively. Where
many rows are close to each other the limit is smaller (``EXCESS_LIMIT``). All of this is known
before the outcome.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, column_dots
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.ridge_path import dot_error
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Functionals, Targets, squared_norms

if TYPE_CHECKING:
    from kernelbounds.engine.sparse.statistics import Statistics

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
    accuracy: float = EPS  # the relative error of the kernel's values

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
        """phi (m, n), residuals rounded up (n,) and magnitudes (n,) of functionals.

        The magnitude of a value at x is k(x,x); see :class:`Functionals` for others.
        """
        prior = squared_norms(self.kernel, targets, self.accuracy)
        magnitudes, vectors = prior, np.empty((len(prior), 0))
        if isinstance(targets, Functionals):
            vectors = targets.vectors(self.kernel, self.inducing)
            magnitudes = targets.magnitudes(self.kernel)
        elif len(self):
            vectors = kernels.vectors(self.kernel, targets, self.inducing)
        phi = _solved(self.factor, vectors.T)
        rest = np.maximum(prior - column_dots(phi, phi), 0.0)
        return phi, (1 + RESIDUAL_MARGIN) * rest + self.least_residual * magnitudes, magnitudes

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
    """Features, residuals and outcomes of n observations, all times their weights.

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


# Residuals below this many times the errors of features are not worth a point: they would not fall.
LEAST_RESIDUAL_OF_ERROR = 8.0
# R_t^2 - t sigma^2 is between one and eight times sqrt(t) sigma^2 (RBF and Matérn in three
# dimensions, 1000 to 64,000 observations, Hybrid and Single), and the best ridge of CMM is about
# that over B^2.
RIDGE_OF_ROOT = 4.0
# Where observations are close together, their residuals add up to rho. So a row joins with a
# smaller residual, by a factor of LARGEST_REDUCTION at most, if t rows like it would make rho more
# than EXCESS_LIMIT (sigma/B)^2. That holds while half of the room is free, since the residuals of
# rough kernels never become small.
EXCESS_LIMIT, LARGEST_REDUCTION = 0.03, 25.0
# rho_alpha^2 is computed anew when at least one in BLOCK_OF_COUNT observations is new.
BLOCK_OF_COUNT = 16


def typical_ridge(typical: float, count: int) -> float:
    """The ridges that matter after ``count`` observations; ``typical`` is (sigma/B)^2."""
    return typical * min(count, RIDGE_OF_ROOT * math.sqrt(count))


@dataclass(frozen=True)
class Joined:
    """The rows of a block that became inducing points, and the features they give the block."""

    rows: list[int]
    features: Array  # of all rows of the block, (k, n)

    @property
    def before(self) -> Array:
        """The features with zeros where a point joined after a row."""
        order = np.arange(self.features.shape[1])
        return np.where(order >= np.array(self.rows, dtype=int)[:, None], self.features, 0.0)


@dataclass(frozen=True)
class Growth:
    """The rule by which observations join, with rho_alpha^2 as it was some time ago."""

    tolerance: float
    most: int  # the largest number of inducing points
    ridge: float = 0.0  # alpha, in the inverse
    inverse: Array = field(default_factory=lambda: np.empty((0, 0)))  # (A + alpha I)^-1
    count: int = 0  # the number of observations in the inverse
    mean_unknown: float = math.inf  # the mean of rho_alpha^2 over them

    def after(self, known: Statistics, typical: float) -> Growth:
        """Bring rho_alpha^2 up to date, if enough observations are new."""
        if known.count < self.count + self.count // BLOCK_OF_COUNT:
            return self
        ridge = typical_ridge(typical, known.count)
        matrix = known.moments + ridge * np.eye(len(known.moments))
        factor, failed = lapack.dpotrf(matrix, lower=1)
        if failed:  # the ridge drowns in rounding errors
            return self
        inverse = np.tril(lapack.dpotri(factor, lower=1)[0])
        # sum_s phi_s' (A + alpha I)^-1 phi_s = tr A (A + alpha I)^-1
        seen = ridge * (len(inverse) - ridge * float(inverse.trace()))
        return replace(
            self,
            ridge=ridge,
            inverse=inverse + np.tril(inverse, -1).T,
            count=known.count,
            mean_unknown=(seen + known.residual) / known.count,
        )

    def unknown(self, block: Block) -> Array:
        """w^2 rho_alpha^2 of the rows, if nothing is known of features newer than the inverse."""
        size = len(self.inverse)
        old, new = block.phi[:size], block.phi[size:]
        shrunk = self.ridge * column_dots(old, self.inverse @ old)
        return np.asarray(shrunk + column_dots(new, new) + block.residuals)

    def _limit(self, block: Block, size: int) -> Array:
        """The residual above which a row joins while all the room is free; (n,)."""
        unknown = self.unknown(block)
        most = self.tolerance * self.ridge * unknown / np.maximum(self.ridge + unknown, 1e-300)
        if not self.count or size > self.most / 2:
            return most
        typical = self.ridge / typical_ridge(1.0, self.count)
        enough = EXCESS_LIMIT * typical / self.count
        return np.asarray(np.clip(enough, most / LARGEST_REDUCTION, most))

    def joining(self, dictionary: Dictionary, block: Block) -> tuple[Dictionary, Joined]:
        """Extend the dictionary by the rows that join, none of which depends on rows after it."""
        size, (points, w) = len(dictionary), (block.points, block.weights)
        rows: list[int] = []
        room = min(self.most - size, len(block))
        made = np.empty((max(room, 0), len(block)))
        if room <= 0:
            return dictionary, Joined(rows, made)
        least = LEAST_RESIDUAL_OF_ERROR * (JITTER + dictionary.least_residual) * block.prior
        # The limit rises as the dictionary fills, so that some room is left for later rows.
        limit = self._limit(block, size)
        rest, pivots = block.residuals, list[float]()
        while len(rows) < room:
            start = rows[-1] + 1 if rows else 0
            free = (self.most - size - len(rows)) / self.most
            most = np.maximum(limit / free**2, least)[start:]
            wanting = np.flatnonzero(rest[start:] > most)
            if not len(wanting):
                break
            row, done = start + int(wanting[0]), made[: len(rows)]
            values = kernels.cross(dictionary.kernel, points[row : row + 1], points)[0] * w
            values -= (block.phi[:, row] @ block.phi + done[:, row] @ done) / w[row]
            own = values[row] / w[row]
            pivots.append(np.sqrt(own + jitter(block.prior[row : row + 1] / w[row] ** 2)[0]))
            made[len(rows)] = values / pivots[-1]
            rest = rest - (1 + RESIDUAL_MARGIN) * made[len(rows)] ** 2
            rows.append(row)
        joined = Joined(rows, made[: len(rows)])
        if not rows:
            return dictionary, joined
        corner = np.tril((joined.features[:, rows] / w[rows]).T, -1) + np.diag(pivots)
        left = (block.phi[:, rows] / w[rows]).T
        return dictionary.extended(points[rows], left, corner), joined
