"""The rows of the kernel matrix, on which all linear algebra is done, growing by appends."""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, with_room
from kernelbounds.functionals.targets import Functionals, Targets, squared_norms

# The error of a kernel's values, in units of EPS, that is covered where the linear algebra rounds
# by multiples of EPS. It raises eigenvalues by 32 EPS times the largest one (``eigenbasis.py``), of
# which the decomposition takes less than a third. Errors of 4 EPS sqrt(k(x,x) k(z,z)) move
# eigenvalues by at most 4 EPS times the trace. That is within the rest where the values are close
# to each other, because then the largest eigenvalue is close to the trace; elsewhere most values
# are small, and so are their errors.
COVERED_ERROR = 4.0
SINGLE_EPS = float(np.finfo(np.float32).eps)
# The error that the weights of two observations add to a kernel value, in units of EPS.
WEIGHTS_ERROR = 1.0
# Merging adds 1.5 rounding errors to the outcomes, relative to their norm: those of weighted sums,
# of their weights and of a division. Half of the 8 + n/4 by which inner products are rounded
# (``dot_error``) is more than that, also where the errors count twice.
MERGING_ERROR = 0.5


class Representers(NamedTuple):
    """The representers r of m functionals L f = <f, r>; for the value at x, r = k(., x)."""

    squared_norms: Array  # |r|^2 = k(x,x), (m,), rounded up where terms may cancel
    vectors: Array  # w_s L k(., x_s) = w_s k(x, x_s), (t, m)
    magnitudes: Array | None = None  # None: squared_norms; see :class:`Functionals`


class Scatter(NamedTuple):
    """How far outcomes at equal points are from their mean, |y - mean|^2, from below and above."""

    least: float
    most: float


NO_SCATTER = Scatter(0.0, 0.0)


class KernelRows:
    """Points with their weights, outcomes, and kernel matrix.

    A row of weight w is an observation of w f(x): its row and column of the kernel matrix and its
    outcome are multiplied by w. So the noise has the same scale in all rows. Several observations
    at one point are one such row (see :class:`~.observations.MergedRepeats`); how they differ from
    each other is their ``scatter``, which is a part of every energy E_alpha.

    An append either happens completely or, when the kernel cannot be evaluated, not at all.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.count = 0
        self.merged_away = 0  # how many more observations than rows there are
        self.scatter = NO_SCATTER
        self.trace = 0.0  # of the kernel matrix
        self._known: bool | None = None  # whether the precision is; None before the first point
        self._value_accuracy = EPS  # the accuracy without what weights and merging add
        # The accuracy before any values were judged; of an unknown kernel, single precision.
        self.first_accuracy = EPS
        # Whether all values so far are single-precision numbers, and whether any has enough digits
        # to tell.
        self._single, self._telling = True, False
        self._points = np.empty((0, 0))
        self._outcomes, self._weights = np.empty(0), np.empty(0)
        self.weighted = False  # whether any weight is not 1
        self._lower = np.empty((0, 0))

    def merged(self, points: Array, weights: Array, outcomes: Array, count: int) -> KernelRows:
        """New rows that stand for ``count`` observations, with all that is known of the kernel."""
        other = KernelRows(self.kernel)
        other._known, other.first_accuracy = self._known, self.first_accuracy
        other._single, other._telling = self._single, self._telling
        other.weighted, other._value_accuracy = self.weighted, self._value_accuracy
        other.merged_away = count - len(points)
        if len(points):
            other.append(points, weights, outcomes)
        return other

    @property
    def accuracy(self) -> float:
        """The relative precision by which the linear algebra has to round, EPS or more.

        It is more where the kernel's values have larger errors than ``COVERED_ERROR``. Of a kernel
        that is not one of scikit-learn's it is a guess from the values, and may grow.
        """
        more = WEIGHTS_ERROR / COVERED_ERROR * self.weighted + MERGING_ERROR * (
            self.merged_away > 0
        )
        return self._value_accuracy + EPS * more

    @property
    def points(self) -> Array:
        """x_1 .. x_n, (n, d)."""
        return self._points[: self.count]

    @property
    def outcomes(self) -> Array:
        """y_1 .. y_n, (n,), times their weights."""
        return self._outcomes[: self.count]

    @property
    def weights(self) -> Array:
        """w_1 .. w_n, (n,)."""
        return self._weights[: self.count]

    @property
    def lower(self) -> Array:
        """The kernel matrix on and below its diagonal; entries above it are undefined."""
        return self._lower[: self.count, : self.count]

    @property
    def gram(self) -> Array:
        """The whole kernel matrix, as a new array."""
        lower = np.tril(self.lower)
        return np.asarray(lower + np.tril(lower, -1).T)

    @property
    def outcome_norm(self) -> float:
        """The Euclidean norm of all outcomes, merged ones included."""
        return math.hypot(float(np.linalg.norm(self.outcomes)), math.sqrt(self.scatter.most))

    def first(self, count: int) -> KernelRows:
        """The first ``count`` rows, in the same memory and only for reading."""
        some = copy.copy(self)
        some.count, some.trace = count, float(self.lower.diagonal()[:count].sum())
        return some

    def accuracy_in(self, dim: int) -> float:
        """The ``accuracy``, or before there are points the least it is going to be."""
        if self.count:
            return self.accuracy
        error = kernels.evaluation_error(self.kernel, dim)
        return SINGLE_EPS if error is None else EPS * max(1.0, error / COVERED_ERROR)

    def representers(self, targets: Targets) -> Representers:
        """The representers of values at points, an array (m, d), or of other functionals."""
        if isinstance(targets, Functionals):
            vectors = targets.vectors(self.kernel, self.points)
            magnitudes = targets.magnitudes(self.kernel)
        else:
            vectors, magnitudes = kernels.vectors(self.kernel, targets, self.points), None
        if self.weighted:
            vectors = vectors * self.weights
        prior = squared_norms(self.kernel, targets, self.accuracy)
        # Transposed, so that matrix products find the memory order they want.
        return Representers(prior, vectors.T, magnitudes)

    def append(self, points: Array, weights: Array, outcomes: Array) -> None:
        """Add points with their weights, and outcomes that are multiplied by these already."""
        w = weights
        if self.count == 0:
            kernels.cross(self.kernel, points[:1], points[:1])  # raises for points it does not take
        own = kernels.diagonal(self.kernel, points)[:, None]
        if len(points) > 1:
            pairs = kernels.cross(self.kernel, points, points)
            own = np.where(np.eye(len(points)) == 0, 0.5 * (pairs + pairs.T), own)
        old = kernels.cross(self.kernel, self.points, points) if self.count else None
        if self.weighted or np.any(w != 1):
            own = own * np.multiply.outer(w, w)
            old = None if old is None else old * np.multiply.outer(self.weights, w)
        self.add(points, weights, outcomes, own, old)

    def add(
        self, points: Array, weights: Array, outcomes: Array, own: Array, old: Array | None = None
    ) -> None:
        """Add rows whose kernel values are known: among themselves, and with those before them."""
        start, stop = self.count, self.count + len(points)
        if self._known is None:
            error = kernels.evaluation_error(self.kernel, points.shape[1])
            self._known = error is not None
            unit = (
                kernels.UNKNOWN_KERNEL_ERROR if error is None else max(1.0, error / COVERED_ERROR)
            )
            self._value_accuracy = EPS * unit
            self.first_accuracy = SINGLE_EPS if error is None else self._value_accuracy
        if not start:
            self._points = np.empty((0, points.shape[1]))
        self._points = with_room(self._points, stop, start)
        self._outcomes = with_room(self._outcomes, stop, start)
        self._weights = with_room(self._weights, stop, start)
        self._lower = with_room(self._lower, stop, start, axes=2)
        self._points[start:stop] = points
        self._outcomes[start:stop] = outcomes
        self._weights[start:stop] = weights
        self._lower[start:stop, start:stop] = own
        if old is not None:
            self._lower[start:stop, :start] = old.T
        self.count = stop
        self.weighted = self.weighted or bool(np.any(weights != 1))
        if not self._known:
            self._judge(start, stop)
        for (
            value
        ) in own.diagonal().tolist():  # one by one, so that the sum does not depend on the blocks
            self.trace += value

    def _judge(self, start: int, stop: int) -> None:
        """Judge the precision of an unknown kernel by its newest values."""
        values = self._lower[start:stop, :stop]
        if self.weighted:  # weights would hide that values are in single precision
            values = kernels.cross(self.kernel, self._points[start:stop], self._points[:stop])
        rows = np.tril(values, start)
        rows = rows[np.abs(rows) < 1e30]
        self._single &= np.array_equal(rows, rows.astype(np.float32))
        # Numbers with at most 12 binary places are the same in either precision.
        self._telling |= bool(np.any(rows * 2.0**12 != np.round(rows * 2.0**12)))
        error = EPS * kernels.measured_error(self.kernel, self._points[start:stop])
        if self._single and self._telling:
            error = max(error, SINGLE_EPS)
        self._value_accuracy = max(self._value_accuracy, error)
