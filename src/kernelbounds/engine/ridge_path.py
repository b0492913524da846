"""Kernel ridge regression along the whole path of ridge values.

=============  =================================  ==============================================
code           paper                              meaning
=============  =================================  ==============================================
``ridges``     alpha                              ridge values
``columns``    Q and, if open, O'                 with O = K_bn (I - Q Q'), (n, c)
``levels``     Lambda and, if open, the floor     the values along the columns, (c,)
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

from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.rows import NO_SCATTER, Scatter


def rounding(count: int, accuracy: float = EPS) -> float:
    """The error of an inner product of ``count`` terms, relative to the norms of its factors.

    It grows with the count when all terms have the same sign, as with repeated points. BLAS adds in
    at least four partial sums, so that a term meets count / 4 roundings of EPS / 2 each; this is
    twice that, and 8 for short sums and for products.
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
    trace: float  # of the kernel matrix
    scatter: Scatter = NO_SCATTER  # of outcomes at equal points, a part of every energy

    @property
    def rank(self) -> int:
        """r, the number of columns in the basis."""
        return len(self.eigen.z)

    def leading(self, size: int) -> RidgePath:
        """The path along so many leading eigenvectors alone; see :meth:`Eigenbasis.leading`."""
        eigen = self.eigen.leading(size)
        none = np.empty((0, size))
        return RidgePath(
            eigen, eigen.basis, eigen.spectrum, none, none.T, none[:, :0], none[:, 0], self.size,
            self.trace,
        )  # fmt: skip

    @property
    def outside(self) -> Array:
        """O = K_bn (I - QQ'), (b, n)."""
        if not self.eigen.open:
            return np.zeros((len(self.newest), self.eigen.count))
        return self.columns[:, self.rank :].T

    def size_of_vectors(self, magnitudes: Array) -> Array:
        """At least |k_t|, by Cauchy and Schwarz, of all terms of a functional's representer."""
        return np.sqrt(magnitudes * self.trace)

    def energy(self, ridges: Array) -> Array:
        """E_alpha = y' (I + K/alpha)^-1 y, rounded down; (g,)."""
        return PathAtRidges(self, ridges).energy

    def inverse(self, ridges: Array) -> Array:
        """1 / (levels + alpha), (g, c)."""
        return np.asarray(1.0 / (self.levels + ridges[:, None]))

    def energy_of_basis(self, ridges: Array, inverse: Array) -> Array:
        """E_alpha without the newest observations; (g,)."""
        explained = ridges * (inverse[:, : self.rank] @ self.eigen.z_squared)
        return np.asarray(explained + self.scatter.least)

    def energy_and_log_det(self, ridge: float) -> tuple[float, float]:
        """E_alpha and ln det(I + K/alpha), both rounded up; of a path with all eigenvalues."""
        eigen = self.eigen
        scaled = eigen.z / (eigen.spectrum + ridge)
        error = rounding(eigen.count, eigen.accuracy) * self.size * np.linalg.norm(scaled)
        # K + (slack + alpha) I is at most 1 + slack/alpha times K + alpha I.
        energy = ridge * (eigen.z @ scaled + error) * (1 + 3 * eigen.slack / ridge)
        energy += self.scatter.most
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


class PathAtRidges:
    """What a path is at g ridges, whatever the points in question.

    ===================  ============================================  ===========
    ``ridges``           alpha                                         (g,)
    ``inverse``          1 / (levels + alpha)                          (g, c)
    ``scaled``           (Lambda + alpha I)^-1 z                       (g, r)
    ``reduced``          border (levels + alpha I)^-1                  (g b, c)
    ``inverse_schur``    S^-1                                          (g, b, b)
    ``solved_outcomes``  S^-1 (y_b - reduced z)                        (g, b)
    ``border_energy``    the border's part of E_alpha, rounded down    (g,)
    ``energy``           E_alpha, rounded down                         (g,)
    ===================  ============================================  ===========
    """

    def __init__(self, path: RidgePath, ridges: Array) -> None:
        eigen, rank = path.eigen, path.rank
        self.ridges, self.inverse = ridges, path.inverse(ridges)
        self.scaled = self.inverse[:, :rank] * eigen.z
        size = path.size * np.sqrt(np.vecdot(self.scaled, self.scaled))
        quadratic = -rounding(eigen.count, eigen.accuracy) * size
        border = len(path.newest)
        self.solved_outcomes = np.empty((len(ridges), border))
        if border:
            shape = len(ridges), border
            self.reduced = (path.border * self.inverse[:, None, :]).reshape(
                len(ridges) * border, -1
            )
            schur = path.corner - (self.reduced @ path.own).reshape(*shape, border)
            schur.reshape(len(ridges), -1)[:, :: border + 1] += (ridges + eigen.slack)[:, None]
            self.inverse_schur = np.linalg.inv(schur)
            rest = path.newest - (self.reduced[:, :rank] @ eigen.z).reshape(shape)
            self.solved_outcomes = np.einsum("gbc,gc->gb", self.inverse_schur, rest)
            quadratic += np.vecdot(rest, self.solved_outcomes)
        self.border_energy: Array = ridges * quadratic
        self.energy: Array = ridges * (self.scaled @ eigen.z) + self.border_energy
        self.energy += path.scatter.least
