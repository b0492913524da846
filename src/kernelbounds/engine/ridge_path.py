"""Kernel ridge regression along the whole path of ridge values, following the data as they grow.

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

Observations are rows of the kernel matrix here, so that merged ones count once. The first n are in
an :class:`Eigenbasis` Q of r columns, where a ridge costs O(r) a point. The b = t - n newest ones,
the border, are not; they enter through their Schur complement

    S = K_bb + alpha I - border (levels + alpha I)^-1 own.

The columns O' are orthogonal to Q, not to each other. Whatever is rounded is rounded so that
bounds get looser. :class:`RidgePath` is a value; :class:`GrowingPath` makes one after each append,
and decides when the basis takes in the border.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.chebyshev import Chebyshev
from kernelbounds.engine.eigenbasis import FINEST_RIDGE_OF_FLOOR, SLACK_ERRORS, Eigenbasis
from kernelbounds.engine.rows import NO_SCATTER, KernelRows, Scatter
from kernelbounds.errors import InputError


def dot_error(count: int, accuracy: float = EPS) -> float:
    """The error of an inner product of ``count`` terms, relative to the norms of its factors.

    It grows with the count when all terms have the same sign, as with repeated points. BLAS adds in
    at least four partial sums, so that a term meets count / 4 roundings of EPS / 2 each; this is
    twice that, and 8 for short sums and for products.
    """
    return (8 + count / 4) * accuracy


# The accuracy to which S^-1 is interpolated between ridges. Twelve ridges are enough for it where
# the largest ridge is three times the smallest.
BORDER_ACCURACY = 1e-12


@dataclass(frozen=True)
class RidgePath:
    """The data side of kernel ridge regression, so decomposed that every further ridge is cheap.

    It has the energy; for means and variances at points, make a :class:`~.path_query.PathQuery`.
    """

    eigen: Eigenbasis
    columns: Array
    levels: Array
    border: Array
    own: Array
    corner: Array
    newest: Array  # the outcomes of the border's points
    outcome_norm: float  # the Euclidean norm of all outcomes
    trace: float  # the trace of the kernel matrix
    scatter: Scatter = NO_SCATTER  # of outcomes at equal points, a part of every energy

    @property
    def rank(self) -> int:
        """The number of columns in the basis, r."""
        return len(self.eigen.z)

    @classmethod
    def without_border(cls, eigen: Eigenbasis, outcome_norm: float, trace: float) -> RidgePath:
        """The path of observations that are all in the basis."""
        none = np.empty((0, len(eigen.z)))
        return cls(
            eigen, eigen.basis, eigen.spectrum, none, none.T, np.empty((0, 0)), np.empty(0),
            outcome_norm, trace,
        )  # fmt: skip

    def leading(self, size: int) -> RidgePath:
        """The path along the ``size`` leading eigenvectors; see :meth:`Eigenbasis.leading`."""
        return self.without_border(self.eigen.leading(size), self.outcome_norm, self.trace)

    @property
    def outside(self) -> Array:
        """O = K_bn (I - QQ'), (b, n)."""
        if not self.eigen.open:
            return np.zeros((len(self.newest), self.eigen.count))
        return self.columns[:, self.rank :].T

    def vector_norms(self, magnitudes: Array) -> Array:
        """At least |k_t| of functionals of these magnitudes, by Cauchy and Schwarz; (m,)."""
        return np.sqrt(magnitudes * self.trace)

    def energy(self, ridges: Array) -> Array:
        """E_alpha = y' (I + K/alpha)^-1 y, rounded down; (g,)."""
        return PathAtRidges(self, ridges).energy

    def inverse(self, ridges: Array) -> Array:
        """1 / (levels + alpha), (g, c)."""
        return np.asarray(1.0 / (self.levels + ridges[:, None]))

    def energy_of_basis(self, ridges: Array, inverse: Array) -> Array:
        """E_alpha of the observations in the basis, without the border; (g,)."""
        residual = ridges * (inverse[:, : self.rank] @ self.eigen.z_squared)
        return np.asarray(residual + self.scatter.least)

    def energy_and_log_det(self, ridge: float) -> tuple[float, float]:
        """E_alpha and ln det(I + K/alpha), both rounded up; for a path that was not truncated."""
        eigen = self.eigen
        scaled = eigen.z / (eigen.spectrum + ridge)
        error = dot_error(eigen.count, eigen.accuracy) * self.outcome_norm * np.linalg.norm(scaled)
        # K + (slack + alpha) I is at most 1 + slack/alpha times K + alpha I.
        energy = ridge * (eigen.z @ scaled + error) * (1 + 3 * eigen.slack / ridge)
        energy += self.scatter.most
        log_det = np.log1p((np.maximum(eigen.eigenvalues, 0.0) + eigen.slack) / ridge).sum()
        return float(energy), float(log_det)

    def solve(self, vectors: Array, ridges: Array) -> Array:
        """(K' + alpha_i I)^-1 v_i for each column v_i of ``vectors`` (t, m) and its own ridge.

        It is not rounded in any direction: it serves derivatives, and weights that are valid
        whatever their value.
        """
        eigen, inverse = self.eigen, self.inverse(ridges)
        old, new = vectors.T[:, : eigen.count], vectors.T[:, eigen.count :]
        u = old @ self.columns
        along = inverse * u
        if new.size:
            new = self._solve_border(new - along @ self.border.T, ridges)
            along -= inverse * (new @ self.border)
        if not eigen.open:
            return np.hstack([along @ self.columns.T, new]).T
        # (v - Q Q'v - O' new) / (floor + alpha), of which the columns have all but the first term
        outside = 1.0 / (eigen.floor + ridges[:, None])
        settled = (along - outside * u) @ self.columns.T
        settled += outside * old
        return np.hstack([settled, new]).T

    def _solve_border(self, vectors: Array, ridges: Array) -> Array:
        """S^-1 v_i for each row v_i of ``vectors`` (m, b) and its own ridge, (m, b).

        S^-1 is a block of (K' + alpha I)^-1, so that few ridges are enough to interpolate it.
        """
        nodes, which = np.unique(ridges, return_inverse=True)
        blend = (which == np.arange(len(nodes))[:, None]).astype(float)
        low, high = np.log(nodes[[0, -1]]).tolist()
        if low < high:
            few = Chebyshev.for_accuracy(low, high, BORDER_ACCURACY)
            if few.size < len(nodes):
                nodes, blend = np.exp(few.points), few.basis(np.log(ridges))
        solved = vectors @ PathAtRidges(self, nodes).inverse_schur  # which is symmetric
        return np.asarray(np.einsum("gm,gmb->mb", blend, solved))


class PathAtRidges:
    """The quantities of a path at g ridges that do not depend on the points asked for.

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
        size = path.outcome_norm * np.sqrt(np.vecdot(self.scaled, self.scaled))
        quadratic = -dot_error(eigen.count, eigen.accuracy) * size
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


# From this many observations on a truncated eigenbasis pays; with fewer, to decompose the whole
# matrix at every step takes under half a millisecond.
LEAST_TRUNCATED = 64
# A cut is at least this times the trace of the kernel matrix and the rounding error. With a smaller
# one the ridges that go with it, 512 times as large, would drown in the rounding errors of the
# border's Schur complement.
LEAST_CUT = 1e5
# A negative eigenvalue this large, relative to the largest, is not explained by rounding, not even
# in single precision for a matrix that is nearly one; then the function is not a kernel.
LARGEST_NEGATIVE = 1e-8
# Where a larger part of the eigenvectors than this is kept, to extend a basis is no cheaper than to
# decompose the matrix anew (measured: ``python -m benchmarks loop``, random points).
DENSE_RANK = 0.7
# The border of a basis that is extended is an eighth of its rank, so that extending, which costs
# rank^2 t, and carrying the border along, rank t a step, cost about the same; 12 at least.
SHORTEST_BORDER, BORDER_OF_RANK = 12, 8
# The border of a basis that is decomposed anew is a sixteenth of the data, likewise for t^3.
BORDER_OF_COUNT = 16


class GrowingPath:
    """An eigenbasis that is renewed now and then, and the newest observations as its border.

    A truncated basis is decomposed anew whenever the number of observations has doubled, and
    extended by its border in between. A short path, and one that must serve ridges down to
    rounding errors, has no border; it is decomposed at every step. When a basis is renewed depends
    on the data alone, and so does the path, however they were appended.

    Parameters
    ----------
    data : KernelRows
    finest, finest_per_point : float
        The path is to be accurate for ridges of at least ``finest`` or t times
        ``finest_per_point``, whichever is larger, where t counts all observations, merged ones
        included. If both are zero, it is accurate for all ridges.
    """

    def __init__(self, data: KernelRows, finest: float, finest_per_point: float) -> None:
        self._data = data
        self._finest, self._finest_per_point = finest, finest_per_point
        self._start, self._bordering, self._dense = 0, False, True
        self._next = 1  # number of observations at which the basis is to be renewed
        self._eigen: Eigenbasis | None = None
        self._columns = self._border = self._own = self._corner = np.empty((0, 0))
        self._levels = np.empty(0)
        self._bordered = 0

    def current(self) -> RidgePath:
        """The path of all observations so far."""
        count = self._data.count
        if count >= self._next:
            self._renew(count)
        return self._path(count)

    def _renew(self, count: int) -> None:
        start = 1
        while _double(start) <= count:
            start = _double(start)
        if not self._bordering or start != self._start:
            self._begin(start, count)
        while count >= self._next:
            if self._dense:
                anchor = self._next
                while anchor + _dense_border(anchor) <= count:
                    anchor += _dense_border(anchor)
                self._adopt(self._decomposed(anchor))
            else:
                self._adopt(self._extended(self._next))
        self._next = min(self._next, _double(start) if self._bordering else count + 1)

    def _begin(self, start: int, count: int) -> None:
        """Decompose the matrix anew, and decide how to go on until its size has doubled."""
        trace = float(np.trace(self._data.lower[:start, :start]))
        self._start, self._dense = start, True
        self._bordering = (
            start >= LEAST_TRUNCATED and self._cut(start) > LEAST_CUT * self._data.accuracy * trace
        )
        eigen = self._decomposed(start if self._bordering else count)
        self._dense = len(eigen.z) > DENSE_RANK * eigen.count
        self._adopt(eigen)

    def _decomposed(self, count: int) -> Eigenbasis:
        cut = self._cut(count) if self._bordering else 0.0
        data = self._data
        eigen = Eigenbasis.of(*data.spectrum(count), data.outcomes[:count], cut, data.accuracy)
        values, negative = eigen.eigenvalues, LARGEST_NEGATIVE
        if data.whitening.blocks:  # Blocks enlarge the errors of values.
            negative = max(negative, SLACK_ERRORS * data.accuracy)
        if values[0] < -negative * values[-1]:
            raise InputError(
                f"{self._data.kernel} is not a kernel: its matrix on the data has the negative "
                f"eigenvalue {values[0]:.3g}."
            )
        return eigen

    def _extended(self, count: int) -> Eigenbasis:
        path = self._path(count)
        w, cut = path.border[:, : path.rank], self._cut(count)
        return path.eigen.extended(w, path.outside, path.corner, path.newest, cut)

    def _adopt(self, eigen: Eigenbasis) -> None:
        # The larger the basis, the more it costs to extend it, and so the longer its border.
        rank = len(eigen.z)
        size = _dense_border(eigen.count)
        if not self._dense:
            size = max(SHORTEST_BORDER, rank // BORDER_OF_RANK)
        self._eigen, self._columns = eigen, eigen.basis
        self._levels, self._border = eigen.spectrum, np.empty((size, rank))
        if eigen.open:  # the border has columns of its own
            self._columns = np.empty((eigen.count, rank + size))
            self._columns[:, :rank] = eigen.basis
            self._eigen = replace(eigen, basis=self._columns[:, :rank])
            self._levels = np.append(eigen.spectrum, np.full(size, eigen.floor))
            self._border = np.eye(size, rank + size, rank)
        self._bordered, self._next = 0, eigen.count + size
        self._own = np.empty((self._columns.shape[1], size))
        self._corner = np.empty((size, size))

    def _path(self, count: int) -> RidgePath:
        """The path of the first ``count`` observations."""
        data, eigen = self._data, self._eigen
        assert eigen is not None
        n, rank, size = eigen.count, len(eigen.z), count - eigen.count
        for b in range(self._bordered, size):
            row = data.lower[n + b]
            column, own = row[:n], row[n : n + b + 1]
            w = column @ eigen.basis
            self._border[b, :rank] = self._own[:rank, b] = w
            if eigen.open:
                rest = column - eigen.basis @ w
                # The second pass makes the rest orthogonal to the last of its own digits, not of
                # the column's: a component along the basis would count 1 / (floor + alpha) times,
                # in place of 1 / (lambda + alpha), and would make bounds too tight.
                rest -= eigen.basis @ (rest @ eigen.basis)
                self._columns[:, rank + b] = rest
                products = rest @ self._columns[:, rank : rank + b + 1]
                self._own[rank + b, : b + 1] = self._own[rank : rank + b + 1, b] = products
            self._corner[b, : b + 1] = self._corner[: b + 1, b] = own
        self._bordered = size
        used = rank + size if eigen.open else rank
        return RidgePath(
            eigen,
            self._columns[:, :used],
            self._levels[:used],
            self._border[:size, :used],
            self._own[:used, :size],
            self._corner[:size, :size],
            data.outcomes[n:count],
            data.outcome_norm,
            data.trace,
            data.scatter,
        )

    def _cut(self, count: int) -> float:
        observations = count + self._data.merged_away
        return max(self._finest, observations * self._finest_per_point) / FINEST_RIDGE_OF_FLOOR


def _double(count: int) -> int:
    """The next number of observations at which the matrix is decomposed anew."""
    return max(2 * count, LEAST_TRUNCATED)


def _dense_border(count: int) -> int:
    """How large a border may grow before a basis that cannot be extended is decomposed anew."""
    return 1 + count // BORDER_OF_COUNT
