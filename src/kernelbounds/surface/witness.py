"""Witnesses: the functions that attain a bound, and what they tell of the bound nearby.

============  ==========================  ====================================================
code          symbol                      meaning
============  ==========================  ====================================================
``sign``      s                           +1: upper bounds on f*; -1: upper bounds on -f*
``ridges``    alpha                       where each bound is attained
``scales``    rho / beta                  likewise, see :class:`~kernelbounds.bounds.DualBound`
witness       (own phi(c) - sum_j         the function whose value at c is the bound there, and
              pulls_j phi(x_j)) / scale   whose gradient there is the bound's
============  ==========================  ====================================================

In a bound on f(x) + sum_i w_i f(z_i) with fixed z_i, as on a difference, or where facts bind,
phi(c) + sum_i w_i phi(z_i) takes the place of phi(c), and k_t(x) and k(x,x) are those of the sum:
phi(x) moves as before, and the z_i are more centres.

The ridge and the scale minimise the dual function, so that its derivative in x is that of the
bound (envelope theorem), and p'(K + alpha I)^-1 p is convex in p, so that for all x and c

    bound(x)  <=  bound(c) + witness(x) - witness(c) + curvature |phi(x) - phi(c)|^2 / (2 scale).

The witness is a known function with a known norm: its first-order expansion at c has an error of
at most that norm times |phi(x) - phi(c) - D phi(c)(x - c)|. See ``docs/mathematics/boxes.md``.

With all observations kept, own and curvature are 1, the x_j are the observations, and the pulls are
w = (K + alpha I)^-1 p with p = k_t(x) - s scale y_t, or M'w where noise has a whitening M. With a
sparse engine the x_j are the inducing points (``engine/sparse/dual.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kernelbounds import kernels
from kernelbounds.arrays import Array, column_dots
from kernelbounds.bounds import DualMinimum
from kernelbounds.bounds.bound import dual_value
from kernelbounds.engine import (
    ROUNDED_DOWN,
    DualMaximiser,
    ExactEngine,
    SparseEngine,
    dot_error,
)
from kernelbounds.engine.eigenbasis import SLACK_ERRORS
from kernelbounds.functionals.targets import Shifted, Targets

if TYPE_CHECKING:
    from kernelbounds.surface.surface import Surface

# Any scale is valid. One that is this many times the scale that balances the dual function without
# data, sqrt(k(x,x) / joint_bound), would cost half of the digits.
LARGEST_SCALE = 1e7
# What is certified needs weights that are right to the digits of the data. A path solves with
# K' >= K in the place of K, and each refinement multiplies the error by |K' - K| / alpha.
REFINEMENTS = 2
# For a gradient, weights are refined while K' is further from K than this: rounding errors move the
# witness by a few slack / alpha, and a floor by (floor / (2 alpha))^2 at most, relatively, see
# docs/mathematics/boxes.md. Errors of the ridge that was found move it by 1e-7 and more.
PRECISE = 5e-9
# Rows of the kernel matrix that are multiplied at a time. With 3,000 observations, two products
# take a tenth of the time of a copy of the matrix, and twice as long with 256 rows as with 128.
ROWS_AT_ONCE = 128


class Witness(ABC):
    """The functions that attain the bounds of a surface at m points, for any scales.

    ``found`` has the ridges and scales at which the bounds are attained, and ``centres`` (n, d)
    are the x_j of the module's formulas.
    """

    magnitudes: Array  # k(x,x), or see :class:`~kernelbounds.functionals.targets.Functionals`; (m,)
    error: float  # of sums over all that is known, relative to their terms

    def __init__(
        self, surface: Surface, points: Array, asked: Targets, found: DualMinimum, centres: Array
    ) -> None:
        self._shift = np.empty((len(points), 0))
        self._centres = centres
        if isinstance(asked, Shifted):
            self._shift = asked.shift.weights
            self._centres = np.concatenate([centres, asked.shift.centres])
        self._kernel, self._sign = surface.kernel, surface.sign
        self._points, self._found = points, found

    @abstractmethod
    def attaining(self, scales: Array, moved: Array) -> DualMaximiser:
        """The functions at scales (m,), with their errors where phi moves by ``moved`` (m,)."""

    @abstractmethod
    def pulls(self) -> tuple[float, Array]:
        """Return own, and the pulls (m, n), where the bounds are attained, with errors unknown."""

    @abstractmethod
    def variance(self) -> Array:
        """rho_alpha^2 at the ridges, (m,), to choose scales by."""

    def gradients(self) -> Array:
        """Compute the gradients of the bounds at the points, (m, d)."""
        return self._gradients(*self.pulls(), self._found.scales)

    def ceilings(self, features: kernels.Features, half_widths: Array, joint_bound: Array) -> Array:
        """Compute upper bounds on the bound over boxes around the points, (m,).

        ``joint_bound`` (m,) is that of :class:`~kernelbounds.bounds.DualBound` at the ridges.
        """
        # The scale that is best for bound(c) + |phi(x) - phi(c)|^2 / (2 scale), where
        # bound(c) = s mu + rho^2 / (2 scale) + scale beta^2 / 2 and rho = beta found.scale.
        floor = self.error * self.magnitudes
        enlarged = 1 + features.moved**2 / np.maximum(self.variance(), floor)
        largest_scale = LARGEST_SCALE * np.sqrt(self.magnitudes / np.maximum(joint_bound, 1e-280))
        scales = np.minimum(self._found.scales * np.sqrt(enlarged), largest_scale)

        here = self.attaining(scales, features.moved)
        at_centre = dual_value(here.unexplained, scales, joint_bound)
        norm = np.sqrt(np.maximum(here.squared_norm, 0.0)) / scales
        slope = np.abs(self._gradients(here.own, here.pulls, scales)) * half_widths
        slope_error = here.pulls_error / scales
        first_order = slope.sum(axis=1) + (norm + slope_error) * features.bent
        first_order += slope_error * features.moved
        change = np.fmin(first_order, norm * features.moved)
        bent = here.curvature * features.moved**2 / (2 * scales)
        return np.asarray(at_centre + change + bent)

    def _gradients(self, own: float, pulls: Array, scales: Array) -> Array:
        """Compute (own grad k(x,x) / 2 - sum_j pulls_j grad k(x, x_j)) / scale, (m, d)."""
        diagonal = kernels.diagonal_gradient(self._kernel, self._points)
        if self._shift.size:
            pulls = np.hstack([pulls, -own * self._shift])
        pulled = kernels.pull_back(self._kernel, self._points, self._centres, pulls)
        return np.asarray((own * diagonal / 2 - pulled) / scales[:, None])


def witness_of(surface: Surface, points: Array, asked: Targets, found: DualMinimum) -> Witness:
    """Return the functions that attain bounds at points, as the surface's engine has them.

    ``asked`` are the functionals that were bounded: values at the points, or :class:`Shifted` ones.
    """
    engine = surface.known.engine
    if isinstance(engine, SparseEngine):
        return OfInducingPoints(surface, engine, points, asked, found)
    assert isinstance(engine, ExactEngine)
    return OfObservations(surface, engine, points, asked, found)


class OfObservations(Witness):
    """w = (K + alpha I)^-1 p with p = k_t(x) - s scale y_t."""

    def __init__(
        self,
        surface: Surface,
        engine: ExactEngine,
        points: Array,
        asked: Targets,
        found: DualMinimum,
    ) -> None:
        data = self._data = engine.rows
        super().__init__(surface, points, asked, found, data.points)
        self.error = dot_error(data.count, data.accuracy)
        self._prior, self._vectors, magnitudes = data.representers(asked)
        self.magnitudes = self._prior if magnitudes is None else magnitudes
        self._solve = engine.solve if found.path is None else found.path.solve

    def pulls(self) -> tuple[float, Array]:
        """See :class:`Witness`; weights are refined where K' is not close enough to K."""
        alpha, path, data = self._found.ridges, self._found.path, self._data
        floor = path.eigen.floor if path is not None and path.eigen.open else 0.0
        slack = SLACK_ERRORS * data.accuracy * data.trace
        error = slack / alpha + (floor / (2 * alpha)) ** 2
        later = error * (slack + floor) / alpha
        weights = self._refined(self._right(self._found.scales), error > PRECISE, later > PRECISE)
        return 1.0, data.whitening.transposed_times(weights.T)

    def variance(self) -> Array:
        """See :class:`Witness`."""
        solved = self._solve(self._vectors, self._found.ridges)
        return np.asarray(self._prior - column_dots(self._vectors, solved))

    def _right(self, scales: Array) -> Array:
        """p = k_t(x) - s scale y_t, (t, m)."""
        return np.asarray(self._vectors - self._sign * np.outer(scales, self._data.outcomes).T)

    def _refined(self, right: Array, *each: NDArray[np.bool_]) -> Array:
        """(K + alpha I)^-1 p for the columns p of ``right`` (t, m).

        ``each`` refinement is of the columns (m,) that it says.
        """
        alpha, lower = self._found.ridges, self._data.lower
        weights = self._solve(right, alpha)
        for which in each:
            if which.any():
                known, ridges = weights[:, which], alpha[which]
                rest = right[:, which] - _symmetric_product(lower, known) - ridges * known
                weights[:, which] += self._solve(rest, ridges)
        return weights

    def attaining(self, scales: Array, moved: Array) -> DualMaximiser:
        """See :class:`Witness`."""
        data, alpha, error = self._data, self._found.ridges, self.error
        p = self._right(scales)
        weights = self._refined(p, *[np.full(len(scales), True)] * REFINEMENTS)
        explained, size = column_dots(weights, p), np.sqrt(column_dots(weights, weights))
        length = np.sqrt(column_dots(p, p))
        if self._shift.size:  # a sum has the errors of its terms
            length += np.sqrt(self.magnitudes * data.trace)
        # Errors of inner products, and of the weights, which count by their square.
        lost = 2 * error * (size * length + self.magnitudes) + (error * length) ** 2 / alpha
        lost += 4 * error * size**2 * (data.trace + alpha)
        # Of y, p has the scatter as one more direction, in which K is 0.
        of_scatter = ROUNDED_DOWN * data.scatter.least * scales**2 / alpha
        unexplained = self._prior - explained - of_scatter + lost
        # |phi(c) - sum_j w_j phi(x_j)|^2, where K w = p - alpha w
        squared = (
            self._prior - 2 * column_dots(weights, self._vectors) + explained - alpha * size**2
        )
        squared = np.maximum(squared, 0.0) + 3 * lost
        largest = np.sqrt(np.max(np.diagonal(data.lower)))
        terms = np.abs(weights).sum(axis=0) * largest
        if self._shift.size:
            terms += np.sqrt(self.magnitudes)
        pulls = data.whitening.transposed_times(weights.T)
        return DualMaximiser(unexplained, squared, 1.0, pulls, 1.0, error * terms)


class OfInducingPoints(Witness):
    """The witness under the kernel k' of a sparse engine, whose features are inducing points."""

    def __init__(
        self,
        surface: Surface,
        engine: SparseEngine,
        points: Array,
        asked: Targets,
        found: DualMinimum,
    ) -> None:
        super().__init__(surface, points, asked, found, engine.data.dictionary.inducing)
        self._dual = engine.dual(asked)
        self.magnitudes = self._dual.magnitudes
        self.error = self._dual.dictionary.least_residual

    def pulls(self) -> tuple[float, Array]:
        """See :class:`Witness`."""
        scales = self._found.scales
        here = self.attaining(scales, np.zeros(len(scales)))
        return here.own, here.pulls

    def variance(self) -> Array:
        """See :class:`Witness`."""
        return self._dual.variance(self._found.ridges)

    def attaining(self, scales: Array, moved: Array) -> DualMaximiser:
        """See :class:`Witness`."""
        here = self._dual.at(self._found.ridges, self._sign * scales, moved)
        if not self._shift.size:
            return here
        of_shift = here.own * np.sqrt(self.magnitudes)
        return here._replace(pulls_error=here.pulls_error + self._dual.error * of_shift)


def _symmetric_product(lower: Array, vectors: Array) -> Array:
    """Multiply a symmetric matrix, of which the lower triangle is given, by vectors (n, m).

    Some rows at a time, and no copy of the matrix is made.
    """
    result = np.empty_like(vectors)
    for start in range(0, len(lower), ROWS_AT_ONCE):
        here = slice(start, start + ROWS_AT_ONCE)
        before, corner = lower[here, :start], np.tril(lower[here, here])
        corner += np.tril(corner, -1).T
        result[here] = before @ vectors[:start] + corner @ vectors[here]
        result[:start] += before.T @ vectors[here]
    return result
