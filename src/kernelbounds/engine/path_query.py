"""Predictions at points along a path of ridge values.

===================  =======================  ================================================
code                 paper                    meaning
===================  =======================  ================================================
``prior``            k(x,x)                   at m points, (m,); or |r|^2 of functionals <f, r>
``u``                columns' k_n(x)          their kernel vectors along the path's columns, (c, m)
``newest``           k_b(x)                   their kernel vectors at the border's points, (b, m)
``outside``          |(I - Q Q') k_n(x)|^2    their squared components outside the basis, (m,)
===================  =======================  ================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import EPS, Array, column_dots
from kernelbounds.engine.ridge_path import PathAtRidges, RidgePath, dot_error
from kernelbounds.engine.rows import Representers

# Where |k|^2 - |Q'k|^2 is lost in rounding errors, it is computed from the vector instead. A loss
# is accepted that enlarges a variance by at most this, relative to k(x,x), at the finest ridge.
NEGLIGIBLE_VARIANCE = 1e-8
# A term that is multiplied by this is rounded down: the room is more than the roundings of the few
# operations that make the term and add it.
ROUNDED_DOWN = 1 - 16 * EPS


@dataclass(frozen=True)
class Predictions:
    """Mean (g, m), variance (g, m) and energy (g,), rounded down, at g ridges.

    A search also needs ``border_energy`` (g,), which the border's points add to the energy, and
    their weights ``solved`` (g, b, m) = S^-1 (k_b(x) - ..) and ``solved_outcomes`` (g, b) =
    S^-1 (y_b - ..).
    """

    mean: Array
    variance: Array
    energy: Array
    border_energy: Array = field(default_factory=lambda: np.empty(0))
    solved: Array = field(default_factory=lambda: np.empty((0, 0, 0)))
    solved_outcomes: Array = field(default_factory=lambda: np.empty((0, 0)))

    def take(self, points: NDArray[np.intp]) -> Predictions:
        """The predictions at some of the points, in the order given."""
        return replace(
            self,
            mean=self.mean[:, points],
            variance=self.variance[:, points],
            solved=self.solved[:, :, points],
        )


@dataclass(frozen=True)
class Estimators:
    """Linear estimators w'y of f(x), whose weights do not depend on the outcomes."""

    length: Array  # |w| where the basis is orthonormal
    bias: Array  # |phi(x) - sum_s w_s phi(x_s)|, rounded up
    weights: Array = field(default_factory=lambda: np.empty((0, 0)))  # c with w = Q c, (m, r)
    values: Array = field(default_factory=lambda: np.empty(0))  # w'y, not rounded


class PathQuery:
    """A path asked at m points: mean, variance and energy there, at any ridges."""

    def __init__(
        self,
        path: RidgePath,
        prior: Array,
        u: Array,
        newest: Array,
        outside: Array,
        magnitudes: Array | None = None,
    ) -> None:
        self.path, self.prior, self._outside, self._magnitudes = path, prior, outside, magnitudes
        self._u, self._newest = u, newest
        self._inside = u[: path.rank]
        self._inside_squared = self._inside * self._inside
        if magnitudes is None:
            self._size = np.sqrt(self._inside_squared.sum(axis=0) + column_dots(newest, newest))
        else:
            self._size = path.vector_norms(magnitudes)
        self._rounding = dot_error(path.eigen.count + len(newest), path.eigen.accuracy)

    @classmethod
    def of(cls, path: RidgePath, asked: Representers) -> PathQuery:
        """The query at m points with k(x,x) and k_t(x), or of functionals with such vectors."""
        eigen, (prior, vectors, magnitudes) = path.eigen, asked
        old, new = vectors[: eigen.count], np.ascontiguousarray(vectors[eigen.count :])
        u = (old.T @ path.columns).T
        if not eigen.open:
            return cls(path, prior, u, new, np.zeros(len(prior)), magnitudes)
        squared, inside = column_dots(old, old), u[: path.rank]
        size = np.sqrt(squared) if magnitudes is None else path.vector_norms(magnitudes)
        error = dot_error(len(old), eigen.accuracy) * size**2
        outside = np.maximum(squared - column_dots(inside, inside) - error, 0.0)
        coarse = np.flatnonzero(error > NEGLIGIBLE_VARIANCE * eigen.finest * prior)
        if len(coarse):
            rest = eigen.basis @ inside[:, coarse] - old[:, coarse]
            length = (
                np.sqrt(column_dots(rest, rest))
                - dot_error(len(old), eigen.accuracy) * size[coarse]
            )
            outside[coarse] = np.maximum(length, 0.0) ** 2
        return cls(path, prior, u, new, outside, magnitudes)

    def take(self, points: NDArray[np.intp]) -> PathQuery:
        """The query of some of the points, in the order given."""
        return PathQuery(
            self.path,
            self.prior[points],
            self._u[:, points],
            self._newest[:, points],
            self._outside[points],
            None if self._magnitudes is None else self._magnitudes[points],
        )

    def predict(self, ridges: Array) -> Predictions:
        """Predictions at g ridges that all points share, variances rounded up."""
        return self.predict_at(PathAtRidges(self.path, ridges), round_up=True)

    def predict_at(self, shared: PathAtRidges, *, round_up: bool) -> Predictions:
        """Predictions from the quantities that do not depend on the points.

        Without ``round_up`` variances are as they come out, for a search that interpolates them.
        """
        path, g, b = self.path, len(shared.ridges), len(self._newest)
        mean = shared.scaled @ self._inside
        variance = self._variance_of_basis(shared.ridges, shared.inverse[:, : path.rank])
        solved = np.empty((g, 0, len(self.prior)))
        if b:
            # k_b(x) - border (levels + alpha I)^-1 u, all ridges at once
            rest = (shared.reduced @ self._u).reshape(g, b, -1)
            np.subtract(self._newest, rest, out=rest)
            solved = shared.inverse_schur @ rest
            mean += (shared.solved_outcomes[:, None, :] @ rest)[:, 0]
            variance -= np.einsum("gbm,gbm->gm", rest, solved)
        if round_up:
            inverse = shared.inverse[:, : path.rank]
            weight = np.sqrt((inverse * inverse) @ self._inside_squared)
            weight += np.sqrt(np.einsum("gbm,gbm->gm", solved, solved))
            variance = np.maximum(variance + self._error(self._size * weight), 0.0)
        return Predictions(
            mean, variance, shared.energy, shared.border_energy, solved, shared.solved_outcomes
        )

    def predict_without_border(self, ridges: Array) -> Predictions:
        """Predictions without the newest observations: cheap, and close to those with them.

        Variances are rounded up and energies down.
        """
        path, eigen = self.path, self.path.eigen
        inverse = path.inverse(ridges)[:, : path.rank]
        scaled = inverse * eigen.z
        weight = np.sqrt(self.prior / ridges[:, None])  # at least |(K + alpha I)^-1 k|
        variance = self._variance_of_basis(ridges, inverse) + self._error(self._size * weight)
        lost = dot_error(eigen.count, eigen.accuracy) * path.outcome_norm
        energy = ridges * (scaled @ eigen.z - lost * np.sqrt(np.vecdot(scaled, scaled)))
        energy += path.scatter.least
        return Predictions(scaled @ self._inside, np.maximum(variance, 0.0), energy)

    def whitened(
        self, ridge: float, which: NDArray[np.intp] | slice = slice(None)
    ) -> tuple[Array, Array]:
        """V (n, m) and w (n,), with V'V what the data explain of covariances and V'w the means.

        Both are for all targets, or for ``which`` of them.

        It is not rounded in any direction: it serves searches, whose results are valid whatever
        they are.
        """
        at, rank = PathAtRidges(self.path, np.array([ridge])), self.path.rank
        root, u = np.sqrt(at.inverse[0, :rank]), self._u[:, which]
        along, outcomes = root[:, None] * u[:rank], root * self.path.eigen.z
        if not len(self._newest):
            return along, outcomes
        factor = np.linalg.cholesky(at.inverse_schur[0])
        rest = factor.T @ (self._newest[:, which] - at.reduced @ u)
        newest = np.linalg.solve(factor, at.solved_outcomes[0])
        return np.concatenate([along, rest]), np.concatenate([outcomes, newest])

    def estimators(self, ridges: Array) -> Estimators:
        """Ridge estimators of the values, without a border, at g ridges that all points share."""
        inverse = self.path.inverse(ridges)
        length = np.sqrt((inverse * inverse) @ self._inside_squared)
        explained = (inverse * (1 + ridges[:, None] * inverse)) @ self._inside_squared
        return Estimators(length, self._bias(explained, length))

    def estimates(self, ridges: Array) -> Estimators:
        """Ridge estimators with a ridge for each point, and their estimates; (m,) each.

        With c_i = u_i / (lambda_i + alpha) the estimate is w'y = c'z, where w = Q c. Whatever the
        c_i are, |phi(x) - sum_s w_s phi(x_s)|^2 = k(x,x) - 2 c'u + c'Q'KQ c, rounded up.
        """
        u, eigen = self._inside.T, self.path.eigen
        weights = u * self.path.inverse(ridges)
        length = np.sqrt(np.vecdot(weights, weights))
        explained = np.vecdot(weights, 2 * u - eigen.spectrum * weights)
        return Estimators(length, self._bias(explained, length), weights, weights @ eigen.z)

    def _bias(self, explained: Array, length: Array) -> Array:
        # The errors of u, of z and of the two sums, each relative to the norms of its factors.
        squared = self.prior - explained + self._error(5 * self._size * length)
        return np.sqrt(np.maximum(squared, 0.0))

    def unexplained(
        self, ridges: Array, inverse: Array, scale: Array, found: Predictions, blend: Array
    ) -> Array:
        """k(x,x) - p' (K + alpha I)^-1 p with p = k_t(x) - scale y, rounded up; (m,).

        Each point has a ridge and a scale of its own; ``inverse`` is :meth:`RidgePath.inverse` of
        the ridges. The border's weights v = S^-1 r are interpolated from those in ``found`` by
        ``blend`` (g, m), and the border's part evaluated as 2 v'r - v'Sv. Whatever v is, that is at
        most r' S^-1 r, so the result errs upwards, and the error is of second order in that of v.
        """
        eigen, path, rank = self.path.eigen, self.path, self.path.rank
        p = self._u.T.copy()  # along the columns, to which y_n contributes in the basis alone
        p[:, :rank] -= np.multiply.outer(scale, eigen.z)
        solved = p * inverse
        inside = solved[:, :rank]
        explained = np.vecdot(inside, p[:, :rank])
        if eigen.open:
            explained += self._outside / (eigen.floor + ridges)
        weight = np.sqrt(np.vecdot(inside, inside))
        if len(self._newest):
            v = np.einsum("gm,gbm->bm", blend, found.solved)
            v -= scale * (found.solved_outcomes.T @ blend)
            r = self._newest - np.multiply.outer(path.newest, scale) - path.border @ solved.T
            schur_v = path.corner @ v + (ridges + eigen.slack) * v
            schur_v -= path.own.T @ ((v.T @ path.border) * inverse).T
            explained += column_dots(v, 2 * r - schur_v)
            weight += np.sqrt(column_dots(v, v))
        # The scatter of y is one more direction of p, in which K is 0.
        explained += ROUNDED_DOWN * path.scatter.least * scale**2 / ridges
        size = self._size + np.abs(scale) * path.outcome_norm
        return np.asarray(self.prior - explained + self._error(size * weight))

    def _variance_of_basis(self, ridges: Array, inverse: Array) -> Array:
        """rho_alpha^2 given the first n observations; (g, m)."""
        variance = self.prior - inverse @ self._inside_squared
        if self.path.eigen.open:
            variance -= np.multiply.outer(1.0 / (self.path.eigen.floor + ridges), self._outside)
        return np.asarray(variance)

    def _error(self, product: Array) -> Array:
        """The error of k(x,x) minus an inner product of vectors with this product of norms."""
        own = self.prior if self._magnitudes is None else self._magnitudes
        return np.asarray(self._rounding * (product + 2 * own))
