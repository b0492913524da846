"""The rows of the kernel matrix, on which all linear algebra is done, growing by appends."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, with_room
from kernelbounds.engine.whitening import Whitening
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
# What products of a kernel matrix with a block's factor add to the accuracy, in units of EPS and of
# what the factor enlarges errors by. Two inner products of n terms have 16 + n/2 rounding errors,
# and one unit of accuracy raises eigenvalues by 32. So 1/2 + n/64 is enough; this is twice that.
PRODUCT_ERRORS, PRODUCT_ERRORS_PER_ROW = 1.0, 1 / 32
# The same of the outcomes, in units of sqrt(kappa): (8 + n/4) sqrt(kappa) EPS, relative to their
# norm, where an inner product is rounded by 8 + n/4 for each unit of accuracy; this is twice that.
OUTCOME_ERRORS = 2.0
# Merging adds 1.5 rounding errors to the outcomes, relative to their norm: those of weighted sums,
# of their weights and of a division. Half of the 8 + n/4 by which inner products are rounded
# (``dot_error``) is more than that, also where the errors count twice.
MERGING_ERROR = 0.5


class Representers(NamedTuple):
    """The representers r of m functionals L f = <f, r>; for the value at x, r = k(., x)."""

    squared_norms: Array  # |r|^2 = k(x,x), (m,), rounded up where terms may cancel
    vectors: Array  # M k_t(x), with k(x, x_s) = L k(., x_s) for functionals; (t, m)
    magnitudes: Array | None = None  # None: squared_norms; see :class:`Functionals`


class Scatter(NamedTuple):
    """The squared distance of outcomes at equal points from their mean, rounded down and up."""

    least: float
    most: float


NO_SCATTER = Scatter(0.0, 0.0)


class Precision(NamedTuple):
    """The precision of a kernel's values, which for an unknown kernel is guessed from them."""

    known: bool  # whether it is derived, from a formula of scikit-learn's
    accuracy: float  # the relative precision, EPS or more
    first: float  # the one assumed before any value was seen; of a user's kernel, single precision
    single: bool = True  # whether all values so far are single-precision numbers
    telling: bool = False  # whether any of them has enough digits to tell

    @classmethod
    def of(cls, kernel: Kernel, dim: int) -> Precision:
        """The precision for points of a dimension, before any value was seen."""
        error = kernels.evaluation_error(kernel, dim)
        if error is None:
            return cls(False, EPS * kernels.UNKNOWN_KERNEL_ERROR, SINGLE_EPS)
        accuracy = EPS * max(1.0, error / COVERED_ERROR)
        return cls(True, accuracy, accuracy)

    def judged(self, kernel: Kernel, points: Array, values: Array) -> Precision:
        """The precision after new points, and the kernel's values there."""
        values = values[np.abs(values) < 1e30]
        single = self.single and np.array_equal(values, values.astype(np.float32))
        # Numbers with at most 12 binary places are the same in either precision.
        telling = self.telling or bool(np.any(values * 2.0**12 != np.round(values * 2.0**12)))
        error = EPS * kernels.measured_error(kernel, points)
        error = max(error, SINGLE_EPS if single and telling else 0.0)
        accuracy = max(self.accuracy, error)
        return self._replace(accuracy=accuracy, single=single, telling=telling)


class KernelRows:
    """The rows of the kernel matrix M K M', with their points, whitening M and outcomes.

    A row of weight w is an observation of w f(x): its row and column of the kernel matrix and its
    outcome are multiplied by w. So the noise has the same scale in all rows. Where it is correlated
    a row is a combination of several, see :class:`~.whitening.Whitening`. Several observations at
    one point are one row (see :class:`~.observations.MergedRepeats`); how they differ from each
    other is their ``scatter``, which is a part of every energy E_alpha.

    An append either happens completely or, when the kernel cannot be evaluated, not at all.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.count = 0
        self.merged_away = 0  # how many more observations than rows there are
        self.scatter = NO_SCATTER
        self.trace = 0.0  # the trace of the kernel matrix
        self.points = np.empty((0, 0))  # x_1 .. x_n, (n, d)
        self.outcomes = np.empty(0)  # M y, (n,)
        self.whitening = Whitening.none()  # M
        self.weighted = False  # whether M is not the identity
        self.error_factor = 1.0  # what blocks multiply the errors of kernel values by, relatively
        self._more = 0.0  # what blocks add to these errors
        self._lower = np.empty((0, 0))
        self._spectrum = np.empty(0), np.empty((0, 0))  # the last one asked for
        self._precision: Precision | None = None  # None before the first point

    def merged(
        self, points: Array, whitening: Whitening, outcomes: Array, count: int
    ) -> KernelRows:
        """New rows that stand for ``count`` observations, with the same knowledge of the kernel."""
        other = KernelRows(self.kernel)
        other.weighted, other._precision = self.weighted, self._precision
        other.merged_away = count - len(points)
        if len(points):
            other.append(points, whitening, outcomes)
        return other

    @property
    def accuracy(self) -> float:
        """The relative error that the linear algebra has to allow for, EPS or more.

        It is more where the kernel's values have larger errors than ``COVERED_ERROR``, or where
        noise is correlated. Of a kernel that is not one of scikit-learn's it is a guess from the
        values, and may grow.
        """
        more = WEIGHTS_ERROR / COVERED_ERROR * self.weighted + MERGING_ERROR * (
            self.merged_away > 0
        )
        own = (EPS if self._precision is None else self._precision.accuracy) + EPS * more
        return own * self.error_factor + self._more

    @property
    def first_accuracy(self) -> float:
        """The accuracy before any values were judged; of an unknown kernel, single precision."""
        return EPS if self._precision is None else self._precision.first

    @property
    def lower(self) -> Array:
        """The kernel matrix on and below its diagonal; entries above it are undefined."""
        return self._lower[: self.count, : self.count]

    def spectrum(self, count: int) -> tuple[Array, Array]:
        """The eigenvalues and eigenvectors of the kernel matrix of the first ``count`` rows.

        The last ones are kept, because paths to different ridges begin with the same matrix.
        """
        if len(self._spectrum[0]) != count:
            self._spectrum = np.linalg.eigh(self._lower[:count, :count])
        return self._spectrum

    @property
    def gram(self) -> Array:
        """The whole kernel matrix, as a new array."""
        lower = np.tril(self.lower)
        return np.asarray(lower + np.tril(lower, -1).T)

    @property
    def outcome_norm(self) -> float:
        """The Euclidean norm of all outcomes, merged ones included."""
        return math.hypot(float(np.linalg.norm(self.outcomes)), math.sqrt(self.scatter.most))

    def accuracy_in(self, dim: int) -> float:
        """The accuracy for points of a dimension; before the first point, what is assumed of it."""
        return self.accuracy if self.count else Precision.of(self.kernel, dim).first

    def representers(self, targets: Targets) -> Representers:
        """The representers of values at points, an array (m, d), or of other functionals."""
        if isinstance(targets, Functionals):
            vectors = targets.vectors(self.kernel, self.points)
            magnitudes = targets.magnitudes(self.kernel)
        else:
            vectors, magnitudes = kernels.vectors(self.kernel, targets, self.points), None
        if self.weighted:
            vectors = self.whitening.times(vectors)
        prior = squared_norms(self.kernel, targets, self.accuracy)
        # Transposed, so that matrix products find the memory order they want.
        return Representers(prior, vectors.T, magnitudes)

    def append(self, points: Array, whitening: Whitening, outcomes: Array) -> None:
        """Add points with their whitening, and outcomes that were multiplied by it."""
        if self.count == 0:
            kernels.cross(self.kernel, points[:1], points[:1])  # raises for points it does not take
        own = kernels.diagonal(self.kernel, points)[:, None]
        if len(points) > 1:
            pairs = kernels.cross(self.kernel, points, points)
            own = np.where(np.eye(len(points)) == 0, 0.5 * (pairs + pairs.T), own)
        old = kernels.cross(self.kernel, self.points, points) if self.count else None
        if self.weighted or not whitening.is_identity:
            own = whitening.of_matrix(own)
            old = None if old is None else self.whitening.between(old, whitening)
        self.add(points, whitening, outcomes, own, old)

    def add(
        self,
        points: Array,
        whitening: Whitening,
        outcomes: Array,
        own: Array,
        old: Array | None = None,
    ) -> None:
        """Add rows of M K M' that are known: among themselves, and with those before them."""
        start, stop = self.count, self.count + len(points)
        precision = self._precision or Precision.of(self.kernel, points.shape[1])
        before = self.points if start else np.empty((0, points.shape[1]))
        so_far = np.concatenate([before, points])
        self._lower = with_room(self._lower, stop, start, axes=2)
        self._lower[start:stop, start:stop] = own
        if old is not None:
            self._lower[start:stop, :start] = old.T
        weighted = self.weighted or not whitening.is_identity
        if not precision.known:
            values = self._lower[start:stop, :stop]
            if weighted:  # weights would hide that values are in single precision
                values = kernels.cross(self.kernel, points, so_far)
            precision = precision.judged(self.kernel, points, np.tril(values, start))
        factor, more = self._errors_of_blocks(points, whitening, own)
        self.count, self.points, self.weighted, self._precision = stop, so_far, weighted, precision
        self.error_factor, self._more = max(self.error_factor, factor), max(self._more, more)
        self.outcomes = np.append(self.outcomes, outcomes)
        self.whitening = self.whitening.then(whitening)
        for value in own.diagonal().tolist():  # One by one: the sum does not depend on blocks.
            self.trace += value

    def _errors_of_blocks(
        self, points: Array, whitening: Whitening, own: Array
    ) -> tuple[float, float]:
        """The loss of accuracy by blocks of correlated noise, relative to the largest eigenvalue.

        Errors of K are multiplied by | |A| |^2 at most, and the largest eigenvalue by that of
        A K A' over that of K, which is at least 1 over the largest eigenvalue of C.
        """
        factor, more = 1.0, 0.0
        for one in whitening.blocks:
            w = whitening.weights[one.rows]
            plain = kernels.cross(self.kernel, points[one.rows], points[one.rows])
            before = float(np.linalg.eigvalsh(plain * np.multiply.outer(w, w))[-1])
            after = float(np.linalg.eigvalsh(own[one.rows, one.rows])[-1])
            ratio = min(one.enlarging * before / max(after, 1e-300), one.condition)
            errors = PRODUCT_ERRORS + PRODUCT_ERRORS_PER_ROW * len(w)
            factor = max(factor, ratio)
            more = max(more, EPS * (errors * ratio + OUTCOME_ERRORS * math.sqrt(one.condition)))
        return factor, more
