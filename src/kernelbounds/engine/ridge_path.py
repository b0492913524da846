"""Kernel ridge regression along the whole path of ridge values.

=============  =================================  ==============================================
code           paper                              meaning
=============  =================================  ==============================================
``ridges``     alpha                              ridge values
``columns``    Q and, if open, O'                 with O = K_bn (I - Q Q'), (n, c)
``levels``     Lambda and, if open, the floor     the values along the columns, (c,)
``u``          columns' k_n(x)                    kernel vectors of m points along them, (c, m)
``border``     w and, if open, I                  the newest points: K_bn = border columns', (b, c)
``own``        columns' K_nb                      their kernel vectors along the columns, (c, b)
``corner``     K_bb                               kernel matrix of the newest points, (b, b)
=============  =================================  ==============================================

The first n observations are in an :class:`Eigenbasis` Q of r columns, where a ridge costs O(r) a
point. The b = t - n newest ones, the border, are not; they enter through their Schur complement

    S = K_bb + alpha I - border (levels + alpha I)^-1 own.

The columns O' are orthogonal to Q, not to each other. Whatever is rounded is rounded so that
bounds get looser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.engine.eigenbasis import EPS, Eigenbasis

# What the variance of a point may grow by, relative to k(x,x), at the finest ridge of a path.
NEGLIGIBLE = 1e-8


def rounding(count: int, accuracy: float = EPS) -> float:
    """The error of an inner product of ``count`` terms, relative to the norms of its factors.

    It grows with the count when all terms have the same sign, as with repeated points.
    """
    return (8 + count / 4) * accuracy


@dataclass(frozen=True)
class RidgePath:
    """The data, ready for any ridge."""

    eigen: Eigenbasis
    columns: Array
    levels: Array
    border: Array
    own: Array
    corner: Array
    newest: Array  # the outcomes of the border's points
    size: float  # the Euclidean norm of all outcomes

    @property
    def rank(self) -> int:
        """r, the number of columns in the basis."""
        return len(self.eigen.z)

    @property
    def outside(self) -> Array:
        """O = K_bn (I - QQ'), (b, n)."""
        if not self.eigen.open:
            return np.zeros((len(self.newest), self.eigen.count))
        return self.columns[:, self.rank :].T

    def energy(self, ridges: Array) -> Array:
        """E_alpha = y' (I + K/alpha)^-1 y, rounded down; (g,)."""
        return Shared(self, ridges).energy

    def inverse(self, ridges: Array) -> Array:
        """1 / (levels + alpha), (g, c)."""
        return np.asarray(1.0 / (self.levels + ridges[:, None]))

    def energy_of_basis(self, ridges: Array, inverse: Array) -> Array:
        """E_alpha without the newest observations; (g,)."""
        return np.asarray(ridges * (inverse[:, : self.rank] @ self.eigen.z_squared))

    def energy_and_log_det(self, ridge: float) -> tuple[float, float]:
        """E_alpha and ln det(I + K/alpha), both rounded up; of a path with all eigenvalues."""
        eigen = self.eigen
        scaled = eigen.z / (eigen.spectrum + ridge)
        error = rounding(eigen.count, eigen.accuracy) * self.size * np.linalg.norm(scaled)
        # K + (slack + alpha) I is at most 1 + slack/alpha times K + alpha I.
        energy = ridge * (eigen.z @ scaled + error) * (1 + 3 * eigen.slack / ridge)
        log_det = np.log1p((np.maximum(eigen.eigenvalues, 0.0) + eigen.slack) / ridge).sum()
        return float(energy), float(log_det)

    def solve(self, vectors: Array, ridges: Array) -> Array:
        """(K + alpha_i I)^-1 v_i for each column v_i of ``vectors`` (t, m) and its own ridge.

        Not rounded in any direction: for derivatives, and for weights that are valid whatever
        their value.
        """
        eigen, rank = self.eigen, self.rank
        old, new = vectors[: eigen.count], vectors[eigen.count :]
        inverse = self.inverse(ridges).T
        u = self.columns.T @ old
        rest = old - eigen.basis @ u[:rank]
        if len(new):
            schur = self.corner - (self.border * inverse.T[:, None, :]) @ self.own
            schur[:, range(len(new)), range(len(new))] += (ridges + eigen.slack)[:, None]
            unexplained = new - self.border @ (inverse * u)
            new = np.asarray(np.linalg.solve(schur, unexplained.T[:, :, None])[:, :, 0].T)
            u, rest = u[:rank] - self.border[:, :rank].T @ new, rest - self.outside.T @ new
        outside = 1.0 / (eigen.floor + ridges) if eigen.open else np.zeros(len(ridges))
        settled = eigen.basis @ (inverse[:rank] * u[:rank]) + outside * rest
        return np.concatenate([settled, new])

    def query(self, prior: Array, vectors: Array) -> PathQuery:
        """Predictions at m points with k(x,x) = ``prior`` (m,) and k_t(x) = ``vectors`` (t, m)."""
        eigen = self.eigen
        old, new = vectors[: eigen.count], np.ascontiguousarray(vectors[eigen.count :])
        u = (old.T @ self.columns).T
        if not eigen.open:
            return PathQuery(self, prior, u, new, np.zeros(len(prior)))
        # |k|^2 - |Q'k|^2, less what rounding may have added, where that is negligible
        squared, inside = _dots(old, old), u[: self.rank]
        error = rounding(len(old), eigen.accuracy) * squared
        outside = np.maximum(squared - _dots(inside, inside) - error, 0.0)
        coarse = np.flatnonzero(error > NEGLIGIBLE * eigen.finest * prior)
        if len(coarse):
            rest = eigen.basis @ inside[:, coarse] - old[:, coarse]
            outside[coarse] = _dots(rest, rest)
        return PathQuery(self, prior, u, new, outside)


class Shared:
    """A path at g ridges.

    ``inverse`` is 1 / (levels + alpha), (g, c), ``scaled`` is (Lambda + alpha I)^-1 z, (g, r),
    ``energy`` is E_alpha, (g,), and ``border_energy`` the border's part of it. Of the border:
    ``inverse_schur`` is S^-1, (g, b, b), ``reduced`` is border (levels + alpha I)^-1, (g b, c),
    and ``solved`` is S^-1 (y_b - reduced z), (g, b).
    """

    def __init__(self, path: RidgePath, ridges: Array) -> None:
        eigen, rank = path.eigen, path.rank
        self.inverse = path.inverse(ridges)
        self.scaled = self.inverse[:, :rank] * eigen.z
        size = path.size * np.sqrt(np.vecdot(self.scaled, self.scaled))
        quadratic = -rounding(eigen.count, eigen.accuracy) * size
        border = len(path.newest)
        if border:
            shape = len(ridges), border
            self.reduced = (path.border * self.inverse[:, None, :]).reshape(
                len(ridges) * border, -1
            )
            schur = path.corner - (self.reduced @ path.own).reshape(*shape, border)
            schur.reshape(len(ridges), -1)[:, :: border + 1] += (ridges + eigen.slack)[:, None]
            self.inverse_schur = np.linalg.inv(schur)
            rest = path.newest - (self.reduced[:, :rank] @ eigen.z).reshape(shape)
            self.solved = np.einsum("gbc,gc->gb", self.inverse_schur, rest)
            quadratic += np.vecdot(rest, self.solved)
        self.border_energy: Array = ridges * quadratic
        self.energy: Array = ridges * (self.scaled @ eigen.z) + self.border_energy


@dataclass(frozen=True)
class Predictions:
    """Mean (g, m), variance (g, m) and energy (g, 1) at g ridges.

    ``border_energy`` (g,) is what the border's points add to the energy,
    ``solved`` is S^-1 (k_b(x) - ..) and ``solved_outcomes`` is S^-1 (y_b - ..), the weights of
    the border's points, (g, b, m) and (g, b).
    """

    mean: Array
    variance: Array
    energy: Array
    border_energy: Array
    solved: Array
    solved_outcomes: Array

    def take(self, points: NDArray[np.intp]) -> Predictions:
        """Those at some of the points, in the order given."""
        return replace(
            self,
            mean=self.mean[:, points],
            variance=self.variance[:, points],
            solved=self.solved[:, :, points],
        )


class PathQuery:
    """Predictions at m points, at any ridges; ``outside`` is |(I - QQ') k_n(x)|^2, (m,)."""

    def __init__(
        self, path: RidgePath, prior: Array, u: Array, newest: Array, outside: Array
    ) -> None:
        self.path, self.prior, self._outside = path, prior, outside
        self._u, self._newest = u, newest
        self._inside = u[: path.rank]
        self._inside_squared = self._inside * self._inside
        self._size = np.sqrt(self._inside_squared.sum(axis=0) + _dots(newest, newest))
        self._rounding = rounding(path.eigen.count + len(newest), path.eigen.accuracy)

    def take(self, points: NDArray[np.intp]) -> PathQuery:
        """The query of some of the points, in the order given."""
        return PathQuery(
            self.path,
            self.prior[points],
            self._u[:, points],
            self._newest[:, points],
            self._outside[points],
        )

    def without_border(self, ridges: Array) -> tuple[Array, Array, Array]:
        """Mean, variance and energy as before the newest observations: close, and cheap.

        Variances are rounded up and energies down.
        """
        eigen, path = self.path.eigen, self.path
        inverse = path.inverse(ridges)[:, : path.rank]
        scaled = inverse * eigen.z
        weight = np.sqrt(self.prior / ridges[:, None])  # at least |(K + alpha I)^-1 k|
        variance = self.prior + self._rounding * (self._size * weight + 2 * self.prior)
        variance -= inverse @ self._inside_squared
        if eigen.open:
            variance -= np.multiply.outer(1.0 / (eigen.floor + ridges), self._outside)
        size = path.size * np.sqrt(np.vecdot(scaled, scaled))
        energy = ridges * (scaled @ eigen.z - rounding(eigen.count, eigen.accuracy) * size)
        return scaled @ self._inside, np.maximum(variance, 0.0), energy[:, None]

    def at_once(self, ridges: Array) -> tuple[Array, Array, Array]:
        """Mean, variance and energy of :meth:`near`."""
        found = self.near(ridges)
        return found.mean, np.maximum(found.variance, 0.0), found.energy

    def at(self, ridges: Array) -> Predictions:
        """Predictions at g ridges that all points share, variances rounded up."""
        found = self.near(ridges)
        inverse = self.path.inverse(ridges)[:, : self.path.rank]
        weight = np.sqrt((inverse * inverse) @ self._inside_squared)
        weight += np.sqrt(np.einsum("gbm,gbm->gm", found.solved, found.solved))
        error = self._rounding * (self._size * weight + 2 * self.prior)
        return replace(found, variance=np.maximum(found.variance + error, 0.0))

    def near(self, ridges: Array) -> Predictions:
        """Predictions with variances as they come out, for a search."""
        path, shared = self.path, Shared(self.path, ridges)
        g, b = len(ridges), len(self._newest)
        mean = shared.scaled @ self._inside
        variance = self.prior - shared.inverse[:, : path.rank] @ self._inside_squared
        if path.eigen.open:
            variance -= np.multiply.outer(1.0 / (path.eigen.floor + ridges), self._outside)
        solved, solved_outcomes = np.empty((g, 0, len(self.prior))), np.empty((g, 0))
        if b:
            # k_b(x) - border (levels + alpha I)^-1 u, all ridges at once
            rest = (shared.reduced @ self._u).reshape(g, b, -1)
            np.subtract(self._newest, rest, out=rest)
            solved, solved_outcomes = shared.inverse_schur @ rest, shared.solved
            mean += (shared.solved[:, None, :] @ rest)[:, 0]
            variance -= np.einsum("gbm,gbm->gm", rest, solved)
        energies = shared.energy[:, None], shared.border_energy
        return Predictions(mean, variance, *energies, solved, solved_outcomes)

    def unexplained(
        self, ridges: Array, inverse: Array, scale: Array, near: Predictions, blend: Array
    ) -> Array:
        """k(x,x) - p' (K + alpha I)^-1 p with p = k_t(x) - scale y, rounded up; (m,).

        Each point has a ridge and a scale of its own; ``inverse`` is :meth:`RidgePath.inverse` of
        the ridges. The border's weights v = S^-1 r are interpolated from those in ``near`` by
        ``blend`` (g, m), and the border's part evaluated as 2 v'r - v'Sv. For every v that is at
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
            v = np.einsum("gm,gbm->bm", blend, near.solved)
            v -= scale * (near.solved_outcomes.T @ blend)
            r = self._newest - np.multiply.outer(path.newest, scale) - path.border @ solved.T
            schur_v = path.corner @ v + (ridges + eigen.slack) * v
            schur_v -= path.own.T @ ((v.T @ path.border) * inverse).T
            explained += _dots(v, 2 * r - schur_v)
            weight += np.sqrt(_dots(v, v))
        size = self._size + np.abs(scale) * path.size
        error = self._rounding * (size * weight + 2 * self.prior)
        return np.asarray(self.prior - explained + error)


def _dots(left: Array, right: Array) -> Array:
    return np.asarray(np.vecdot(left.T, right.T))
