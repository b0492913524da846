"""The data so far: points, outcomes and their kernel matrix, growing by appends."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array

# The error of a kernel's values, in units of EPS, that is covered where the linear algebra rounds
# by multiples of EPS. It raises eigenvalues by 32 EPS times the largest one (``eigenbasis.py``), of
# which the decomposition takes less than a third. Errors of 4 EPS sqrt(k(x,x) k(z,z)) move
# eigenvalues by at most 4 EPS times the trace. That is within the rest where the values are close
# to each other, because then the largest eigenvalue is close to the trace; elsewhere most values
# are small, and so are their errors.
COVERED = 4.0
SINGLE = float(np.finfo(np.float32).eps)


class Observations:
    """Observations in the order they were made.

    An append either happens completely or, when the kernel cannot be evaluated, not at all.
    The arrays are kept in buffers that grow geometrically, so an append costs O(t) amortised
    beyond the kernel evaluations.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.count = 0
        self.trace = 0.0  # of the kernel matrix
        # How precise the kernel's values are, relatively, beyond what the constants of the linear
        # algebra allow for. Of a kernel that is not one of scikit-learn's this is a guess from its
        # values, and may grow.
        self._known = True
        self.accuracy = EPS
        # The same before any values were judged; of an unknown kernel, that of single precision.
        self.first_accuracy = EPS
        self._single, self._telling = True, False  # whether values are in single precision
        self._points = np.empty((0, 0))
        self._outcomes = np.empty(0)
        self._lower = np.empty((0, 0))

    @property
    def dim(self) -> int | None:
        """Dimension of the points; None before the first one."""
        return self._points.shape[1] if self.count else None

    @property
    def points(self) -> Array:
        """x_1 .. x_t, (t, d)."""
        return self._points[: self.count]

    @property
    def outcomes(self) -> Array:
        """y_1 .. y_t, (t,)."""
        return self._outcomes[: self.count]

    @property
    def lower(self) -> Array:
        """The kernel matrix K_t on and below its diagonal; not to be read above."""
        return self._lower[: self.count, : self.count]

    @property
    def gram(self) -> Array:
        """The whole kernel matrix, as a new array."""
        lower = np.tril(self.lower)
        return np.asarray(lower + np.tril(lower, -1).T)

    def first(self, count: int) -> Observations:
        """The first so many, in the same memory; to be read only."""
        some = copy.copy(self)
        some.count, some.trace = count, float(self.lower.diagonal()[:count].sum())
        return some

    def append(self, points: Array, outcomes: Array) -> None:
        """Add observations and their rows of the kernel matrix."""
        if self.count == 0:
            kernels.cross(self.kernel, points[:1], points[:1])  # does it take such points at all?
        own = kernels.diagonal(self.kernel, points)[:, None]
        if len(points) > 1:
            pairs = kernels.cross(self.kernel, points, points)
            own = np.where(np.eye(len(points)) == 0, 0.5 * (pairs + pairs.T), own)
        old = kernels.cross(self.kernel, self.points, points) if self.count else None
        self._commit(points, outcomes, old, own)

    def restore(self, points: Array, outcomes: Array, gram: Array) -> None:
        """Take over data whose kernel matrix is already known (a saved file)."""
        self._commit(points, outcomes, None, gram)

    def _commit(self, points: Array, outcomes: Array, old: Array | None, own: Array) -> None:
        start, stop = self.count, self.count + len(points)
        if not start:
            error = kernels.evaluation_error(self.kernel, points.shape[1])
            self._known = error is not None
            self.accuracy = EPS * (kernels.UNKNOWN if error is None else max(1.0, error / COVERED))
            self.first_accuracy = self.accuracy if self._known else SINGLE
        self._reserve(stop, points.shape[1])
        self._points[start:stop] = points
        self._outcomes[start:stop] = outcomes
        self._lower[start:stop, start:stop] = own
        if old is not None:
            self._lower[start:stop, :start] = old.T
        self.count = stop
        if not self._known:
            self._judge(start, stop)
        for value in own.diagonal().tolist():  # one by one, however many there are
            self.trace += value

    def _judge(self, start: int, stop: int) -> None:
        """What the newest values tell of the precision of an unknown kernel."""
        rows = np.tril(self._lower[start:stop, :stop], start)
        rows = rows[np.abs(rows) < 1e30]
        self._single &= np.array_equal(rows, rows.astype(np.float32))
        # Numbers that are short anyway say nothing.
        self._telling |= bool(np.any(rows * 2.0**12 != np.round(rows * 2.0**12)))
        error = EPS * kernels.measured_error(self.kernel, self._points[start:stop])
        if self._single and self._telling:
            error = max(error, SINGLE)
        self.accuracy = max(self.accuracy, error)

    def _reserve(self, count: int, dim: int) -> None:
        if count <= len(self._outcomes):
            return
        capacity = max(64, count, len(self._outcomes) * 3 // 2)
        points, outcomes = np.empty((capacity, dim)), np.empty(capacity)
        lower = np.empty((capacity, capacity))
        if self.count:
            points[: self.count] = self.points
            outcomes[: self.count] = self.outcomes
            lower[: self.count, : self.count] = self.lower
        self._points, self._outcomes, self._lower = points, outcomes, lower
