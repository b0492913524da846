"""An upper bound on the kernel matrix, diagonal in an orthonormal basis.

==============  ===========================================================================
code            meaning
==============  ===========================================================================
``basis``       Q, orthonormal columns, (n, r)
``spectrum``    Lambda, the values along them, (r,)
``floor``       the value along everything orthogonal to them
``z``           Q' y_n, the outcomes in the basis, (r,); y_n = Q z
==============  ===========================================================================

Together they stand for the matrix

    K' = Q Lambda Q' + floor (I - Q Q'),   K' >= K_n  in the positive semi-definite order.

Such a matrix belongs to a larger function space, in which no function has a larger norm, so
every confidence bound computed from K' in place of K_n is valid and only a little looser. This
is used twice:

* **Rounding.** ``slack``, above the errors of the eigendecomposition and of the kernel
  evaluations, is added to all eigenvalues.
* **Truncation.** Eigenvalues below a cut are raised to one floor just above it. For a ridge
  alpha this enlarges a variance by at most a factor 1 + (floor / (2 alpha))^2, whatever the
  data (``docs/mathematics/rounding.md``). The outcomes are not small along those directions, so
  a Krylov space of n = KRYLOV_VECTORS of them is kept in the basis: energies change only by terms
  of order (floor / alpha)^(2 n - 1), and means by terms of order (floor / alpha)^n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import qr

from kernelbounds.arrays import EPS, Array

# All eigenvalues are raised by this many rounding errors of the largest one. The errors of LAPACK's
# decomposition stay below 10 of them (measured on kernel matrices of up to 1000 points), and those
# of the kernel's values, four each, add at most 4 where the kernel is not negative.
SLACK_ERRORS = 32
# Where there is no floor, directions with eigenvalues below this many slacks are dropped, because
# rounding errors may be a quarter of them.
LEAST_KEPT_SLACKS = 4
# Krylov vectors of the outcomes that are kept: energies then change by terms of order
# (floor / alpha)^7, which is 1e-19 at the finest ridge, and means by terms of order
# (floor / alpha)^4, which is 1e-11.
KRYLOV_VECTORS = 4
# How far a floor is above the largest value below it, relatively. The Krylov vectors' bound divides
# by the difference; a thousandth keeps that well-conditioned and costs next to nothing.
FLOOR_MARGIN = 1e-3
# A cut that is DEEPER_CUT times lower serves smaller ridges. It is worth it where the spectrum
# falls so fast that it costs at most one more vector for every VECTORS_PER_MORE.
DEEPER_CUT, VECTORS_PER_MORE = 4.0, 8
# A path is used for ridges of at least this many floors, at which one truncation enlarges a
# variance by a factor of at most 1 + (1 / 1024)^2 (docs/mathematics/rounding.md).
FINEST_RIDGE_OF_FLOOR = 512
# Columns are dependent where pivots of their QR decomposition are below this times the largest:
# far above rounding errors, and what is lost is added to the slack.
DEPENDENT_PIVOT = 1e-12


@dataclass(frozen=True)
class Eigenbasis:
    """An upper bound on a kernel matrix, diagonal in ``basis`` and constant elsewhere."""

    basis: Array
    spectrum: Array
    floor: float
    z: Array
    slack: float
    flat: bool  # whether directions outside the basis carry the floor; else they are dropped
    eigenvalues: Array  # all of the kernel matrix's, where it was decomposed as a whole
    accuracy: float = EPS  # the relative error of the kernel's values
    # How many columns are eigenvectors of the matrix, if it was decomposed as a whole. They come
    # first, in ascending order of their eigenvalues; the other columns depend on the outcomes.
    eigenvectors: int = 0

    @property
    def count(self) -> int:
        """The number of rows of the kernel matrix, n."""
        return len(self.basis)

    @cached_property
    def open(self) -> bool:
        """Whether there are directions outside the basis, and the floor is their value."""
        return self.flat and len(self.z) < self.count

    @cached_property
    def z_squared(self) -> Array:
        """The squares of ``z``."""
        return np.asarray(self.z**2)

    @property
    def finest(self) -> float:
        """The smallest ridge at which the floor does not matter."""
        return FINEST_RIDGE_OF_FLOOR * self.floor if self.flat else 0.0

    def leading(self, size: int) -> Eigenbasis:
        """The basis of the ``size`` leading eigenvectors, of a matrix decomposed as a whole.

        All other directions are dropped, whatever their eigenvalues: data and functions are known
        by their components along these eigenvectors alone.
        """
        kept = slice(self.eigenvectors - size, self.eigenvectors)
        basis = np.ascontiguousarray(self.basis[:, kept])
        return replace(
            self, basis=basis, spectrum=self.spectrum[kept], z=self.z[kept], flat=False,
            eigenvectors=size,
        )  # fmt: skip

    @classmethod
    def of(
        cls, values: Array, vectors: Array, outcomes: Array, cut: float, accuracy: float = EPS
    ) -> Eigenbasis:
        """The eigenbasis of a kernel matrix from its spectrum, with small eigenvalues raised.

        Without a cut, directions of eigenvalues that vanish within the slack are dropped, which
        amounts to an infinite floor.
        """
        # A kernel matrix has no negative eigenvalues, so where they occur their size is an error.
        slack = max(SLACK_ERRORS * accuracy * max(float(values[-1]), 1e-120), -4 * float(values[0]))
        tail = (
            _tail(values, cut) if cut else int(np.searchsorted(values, LEAST_KEPT_SLACKS * slack))
        )
        basis, spectrum, z, floor = _tail_raised(values, vectors, outcomes @ vectors, tail)
        return cls(
            basis, spectrum + slack, floor + slack, z, slack, cut > 0, values, accuracy,
            len(values) - tail,
        )  # fmt: skip

    def extended(
        self, w: Array, outside: Array, corner: Array, newest: Array, cut: float
    ) -> Eigenbasis:
        """The basis with b more observations, K_bn = w Q' + ``outside`` and K_bb = ``corner``.

        K' bordered by the new rows maps the span of Q, of ``outside`` and of the new coordinates
        into itself: its eigenvectors there are those of a small matrix.
        """
        q, coupling, lost = _orthogonal_to(self.basis, outside.T)
        rank = q.shape[1]
        old, size = len(self.z), len(newest)
        matrix = np.zeros((old + rank + size,) * 2)
        np.fill_diagonal(matrix[:old, :old], self.spectrum)
        np.fill_diagonal(matrix[old : old + rank, old : old + rank], self.floor)
        matrix[old + rank :, :old] = w
        matrix[old + rank :, old : old + rank] = coupling.T
        matrix[old + rank :, old + rank :] = corner
        values, vectors = np.linalg.eigh(matrix)  # reads the lower triangle
        slack = max(SLACK_ERRORS * self.accuracy * float(values[-1]), self.slack) + lost
        # Values that are the old floor, give or take rounding, go back to the floor.
        tail = _tail(values, cut, 1.001 * self.floor)
        z = np.concatenate([self.z, np.zeros(rank), newest]) @ vectors
        kept, spectrum, z, floor = _tail_raised(values, vectors, z, tail)
        basis = np.empty((self.count + size, kept.shape[1]))
        basis[: self.count] = np.column_stack([self.basis, q]) @ kept[: old + rank]
        basis[self.count :] = kept[old + rank :]
        floor = max(floor, self.floor) + slack
        return Eigenbasis(
            basis, spectrum + slack, floor, z, slack, True, np.empty(0), self.accuracy
        )


def _tail_raised(
    values: Array, vectors: Array, z: Array, tail: int
) -> tuple[Array, Array, Array, float]:
    """The vectors that are kept, their values, z along them, and the floor of everything else."""
    krylov = Krylov(np.maximum(values[:tail], 0.0), z[:tail])
    return (
        np.column_stack([vectors[:, tail:], vectors[:, :tail] @ krylov.vectors]),
        np.append(values[tail:], krylov.values),
        np.append(z[tail:], krylov.start),
        krylov.floor,
    )


def _tail(values: Array, cut: float, least: float = 0.0) -> int:
    """How many of the ascending values to raise: those below the cut, or below a deeper one."""
    usual, fewer = np.searchsorted(values, np.maximum([cut, cut / DEEPER_CUT], least))
    return int(fewer if VECTORS_PER_MORE * (usual - fewer) <= len(values) - usual else usual)


def _orthogonal_to(basis: Array, columns: Array) -> tuple[Array, Array, float]:
    """Q, R and e with columns = QR + error of norm at most e, and Q orthogonal to ``basis``."""
    if not columns.any():
        return np.empty((len(basis), 0)), np.empty((0, columns.shape[1])), 0.0
    q, r, order = qr(columns, mode="economic", pivoting=True, check_finite=False)
    rank = int(np.sum(np.abs(np.diagonal(r)) > DEPENDENT_PIVOT * abs(r[0, 0])))
    lost = float(np.linalg.norm(r[rank:]))
    # Directions that were small in the columns need a second pass to be orthogonal.
    q = q[:, :rank] - basis @ (basis.T @ q[:, :rank])
    q, again = qr(q, mode="economic", check_finite=False)
    restored = np.empty((rank, columns.shape[1]))
    restored[:, order] = again @ r[:rank]
    return q, restored, lost


class Krylov:
    """A bound on diag(values), exact on the Krylov space V of ``start`` but for its last vector.

    Along ``vectors`` (columns) the bound has ``values``, elsewhere the ``floor``, which is just
    above all values; ``start`` becomes the start in the basis of the vectors. The bound is

        floor I - V (V' N^-1 V)^-1 V',   N = floor I - diag(values),

    the least one of this form, since V B V' <= N exactly when B <= (V' N^-1 V)^-1. For v and Nv in
    V that matrix maps V'v to V'Nv, so it agrees with N on the powers of N that make up V.
    """

    def __init__(self, values: Array, start: Array) -> None:
        size = float(np.linalg.norm(start))
        self.floor = (1 + FLOOR_MARGIN) * float(values.max(initial=0.0))
        self.vectors = np.empty((len(values), 0))
        self.values = self.start = np.empty(0)
        if size == 0:
            return
        spill, vector = size, start
        while self.vectors.shape[1] < min(KRYLOV_VECTORS, len(values)):
            self.vectors = np.column_stack([self.vectors, vector / spill])
            vector = values * self.vectors[:, -1]
            for _ in range(2):
                vector = vector - self.vectors @ (self.vectors.T @ vector)
            spill = float(np.linalg.norm(vector))
            if spill <= DEPENDENT_PIVOT * self.floor:
                break
        gap = np.maximum(self.floor - values, 1e-300)
        inverse, rotation = np.linalg.eigh(self.vectors.T @ (self.vectors / gap[:, None]))
        # The last term is above the rounding errors of the decomposition, whose condition number
        # is at most 1 / FLOOR_MARGIN.
        self.values = self.floor - 1 / inverse + 1e-12 * self.floor
        self.vectors, self.start = self.vectors @ rotation, size * rotation[0]
