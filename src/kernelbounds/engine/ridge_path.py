"""Kernel ridge regression along the whole path of ridge values.

=============  =================================  ==============================================
code           paper                              meaning
=============  =================================  ==============================================
``ridges``     alpha                              ridge values
``u``          Q' k_n(x)                          kernel vectors of m points in the basis, (r, m)
``w``          K_bn Q                             those of the b = t - n newest points, (b, r)
``outside``    K_bn (I - Q Q')                    what of those is outside the basis, (b, n)
``columns``    Q and, if open, ``outside``'       side by side, (n, r + b)
``tail``       K_bn (I - Q Q') K_nb               and its inner products, (b, b)
``corner``     K_bb                               kernel matrix of the newest points, (b, b)
=============  =================================  ==============================================

The first n observations are in an :class:`Eigenbasis`, where a ridge costs O(r) a point. The
newest ones, the border, are not; they enter through their Schur complement

    S = K_bb + alpha I - w (Lambda + alpha I)^-1 w' - tail / (floor + alpha).

Whatever is rounded is rounded so that bounds get looser.
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
    w: Array
    tail: Array
    corner: Array
    newest: Array  # the outcomes of the border's points
    size: float  # the Euclidean norm of all outcomes

    @property
    def outside(self) -> Array:
        """K_bn (I - QQ'), (b, n)."""
        if not self.eigen.open:
            return np.zeros((len(self.newest), self.eigen.count))
        return self.columns[:, len(self.eigen.z) :].T

    def energy(self, ridges: Array) -> Array:
        """E_alpha = y' (I + K/alpha)^-1 y, rounded down; (g,)."""
        return Shared(self, ridges).energy

    def inverse(self, ridges: Array) -> Array:
        """1 / (Lambda + alpha), (g, r)."""
        return np.asarray(1.0 / (self.eigen.spectrum + ridges[:, None]))

    def energy_of_basis(self, ridges: Array, inverse: Array) -> Array:
        """E_alpha without the newest observations; (g,)."""
        return np.asarray(ridges * (inverse @ self.eigen.z**2))

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
        eigen, border = self.eigen, len(self.newest)
        old, new = vectors[: eigen.count], vectors[eigen.count :]
        u = eigen.basis.T @ old
        inverse = 1.0 / (eigen.spectrum[:, None] + ridges)
        outside = 1.0 / (eigen.floor + ridges) if eigen.open else np.zeros(len(ridges))
        rest = old - eigen.basis @ u
        if border:
            schur = self.corner - (self.w * inverse.T[:, None, :]) @ self.w.T
            schur -= outside[:, None, None] * self.tail
            schur[:, range(border), range(border)] += (ridges + eigen.slack)[:, None]
            unexplained = new - self.w @ (inverse * u) - outside * (self.outside @ old)
            new = np.asarray(np.linalg.solve(schur, unexplained.T[:, :, None])[:, :, 0].T)
            u, rest = u - self.w.T @ new, rest - self.outside.T @ new
        return np.concatenate([eigen.basis @ (inverse * u) + outside * rest, new])

    def query(self, prior: Array, vectors: Array) -> PathQuery:
        """Predictions at m points with k(x,x) = ``prior`` (m,) and k_t(x) = ``vectors`` (t, m)."""
        eigen = self.eigen
        old, new = vectors[: eigen.count], np.ascontiguousarray(vectors[eigen.count :])
        along = (old.T @ self.columns).T
        u, tail = along[: len(eigen.z)], along[len(eigen.z) :]
        if not eigen.open:
            return PathQuery(self, prior, u, new, np.zeros(len(prior)), np.zeros(new.shape))
        # |(I - QQ') k|^2 = |k|^2 - |u|^2, less what rounding may have added, if that is negligible
        squared = _dots(old, old)
        error = rounding(len(old), eigen.accuracy) * squared
        if error.max() <= NEGLIGIBLE * eigen.finest * prior.min():
            outside = np.maximum(squared - _dots(u, u) - error, 0.0)
        else:
            rest = eigen.basis @ u
            rest -= old
            outside = _dots(rest, rest)
        return PathQuery(self, prior, u, new, outside, tail)


class Shared:
    """A path at g ridges.

    ``inverse`` is 1 / (Lambda + alpha), (g, r), ``outside`` is 1 / (floor + alpha), (g,),
    ``energy`` is E_alpha, (g,), and ``border_energy`` the border's part of it. Of the border:
    ``inverse_schur`` is S^-1, (g, b, b), ``reduced`` is w (Lambda + alpha I)^-1, (g, b, r), and
    ``solved`` is S^-1 (y_b - reduced z), (g, b).
    """

    def __init__(self, path: RidgePath, ridges: Array) -> None:
        eigen = path.eigen
        self.inverse = path.inverse(ridges)
        self.outside = 1.0 / (eigen.floor + ridges) if eigen.open else np.zeros(len(ridges))
        scaled = self.inverse * eigen.z
        size = path.size * np.sqrt(np.einsum("gr,gr->g", scaled, scaled))
        quadratic = -rounding(eigen.count, eigen.accuracy) * size
        border = len(path.newest)
        if border:
            self.reduced = path.w * self.inverse[:, None, :]
            schur = path.corner - self.reduced @ path.w.T
            schur -= self.outside[:, None, None] * path.tail
            schur.reshape(len(ridges), -1)[:, :: border + 1] += (ridges + eigen.slack)[:, None]
            self.inverse_schur = np.linalg.inv(schur)
            rest = path.newest - self.reduced @ eigen.z
            self.solved = np.einsum("gbc,gc->gb", self.inverse_schur, rest)
            quadratic += np.einsum("gb,gb->g", rest, self.solved)
        self.border_energy: Array = ridges * quadratic
        self.energy: Array = ridges * (scaled @ eigen.z) + self.border_energy


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
    """Predictions at m points, at any ridges.

    ``outside`` is |(I - QQ') k_n(x)|^2, (m,), and ``tail`` is K_bn (I - QQ') k_n(x), (b, m).
    """

    def __init__(
        self, path: RidgePath, prior: Array, u: Array, newest: Array, outside: Array, tail: Array
    ) -> None:
        self.path, self.prior, self._u, self._newest = path, prior, u, newest
        self._outside, self._tail = outside, tail
        self._u_squared = u * u
        self._size = np.sqrt(self._u_squared.sum(axis=0) + _dots(newest, newest))
        self._rounding = rounding(path.eigen.count + len(newest), path.eigen.accuracy)

    def take(self, points: NDArray[np.intp]) -> PathQuery:
        """The query of some of the points, in the order given."""
        return PathQuery(
            self.path,
            self.prior[points],
            self._u[:, points],
            self._newest[:, points],
            self._outside[points],
            self._tail[:, points],
        )

    def without_border(self, ridges: Array) -> tuple[Array, Array, Array]:
        """Mean, variance and energy as before the newest observations: close, and cheap.

        Variances are rounded up and energies down.
        """
        eigen, path = self.path.eigen, self.path
        inverse = path.inverse(ridges)
        scaled = inverse * eigen.z
        weight = np.sqrt(self.prior / ridges[:, None])  # at least |(K + alpha I)^-1 k|
        variance = self.prior + self._rounding * (self._size * weight + 2 * self.prior)
        variance -= inverse @ self._u_squared
        if eigen.open:
            variance -= np.multiply.outer(1.0 / (eigen.floor + ridges), self._outside)
        size = path.size * np.sqrt(np.einsum("gr,gr->g", scaled, scaled))
        energy = ridges * (scaled @ eigen.z - rounding(eigen.count, eigen.accuracy) * size)
        return scaled @ self._u, np.maximum(variance, 0.0), energy[:, None]

    def at_once(self, ridges: Array) -> tuple[Array, Array, Array]:
        """Mean, variance and energy of :meth:`near`."""
        found = self.near(ridges)
        return found.mean, found.variance, found.energy

    def at(self, ridges: Array) -> Predictions:
        """Predictions at g ridges that all points share, variances rounded up."""
        found = self.near(ridges)
        inverse = self.path.inverse(ridges)
        weight = np.sqrt((inverse * inverse) @ self._u_squared)
        weight += np.sqrt(np.einsum("gbm,gbm->gm", found.solved, found.solved))
        error = self._rounding * (self._size * weight + 2 * self.prior)
        return replace(found, variance=np.maximum(found.variance + error, 0.0))

    def near(self, ridges: Array) -> Predictions:
        """Predictions with variances as they come out, for a search."""
        shared = Shared(self.path, ridges)
        g, b = len(ridges), len(self._newest)
        mean = (shared.inverse * self.path.eigen.z) @ self._u
        variance = self.prior - shared.inverse @ self._u_squared
        if self.path.eigen.open:
            variance -= np.multiply.outer(shared.outside, self._outside)
        solved, solved_outcomes = np.empty((g, 0, len(self.prior))), np.empty((g, 0))
        if b:
            # k_b(x) - w (Lambda + alpha I)^-1 u - tail / (floor + alpha), all ridges at once
            rest = (shared.reduced.reshape(g * b, -1) @ self._u).reshape(g, b, -1)
            rest += shared.outside[:, None, None] * self._tail
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
        eigen, path = self.path.eigen, self.path
        p = np.multiply.outer(scale, eigen.z).T
        np.subtract(self._u, p, out=p)
        solved = p * inverse.T
        explained = _dots(solved, p)
        outside = 1.0 / (eigen.floor + ridges) if eigen.open else np.zeros(len(ridges))
        explained += outside * self._outside
        weight = np.sqrt(_dots(solved, solved))
        if len(self._newest):
            v = np.einsum("gm,gbm->bm", blend, near.solved)
            v -= scale * (near.solved_outcomes.T @ blend)
            r = self._newest - np.multiply.outer(path.newest, scale)
            r -= path.w @ solved + outside * self._tail
            schur_v = path.corner @ v + (ridges + eigen.slack) * v - outside * (path.tail @ v)
            schur_v -= path.w @ ((v.T @ path.w) * inverse).T
            explained += _dots(v, 2 * r - schur_v)
            weight += np.sqrt(_dots(v, v))
        size = self._size + np.abs(scale) * path.size
        error = self._rounding * (size * weight + 2 * self.prior)
        return np.asarray(self.prior - explained + error)


def _dots(left: Array, right: Array) -> Array:
    return np.asarray(np.vecdot(left.T, right.T))
