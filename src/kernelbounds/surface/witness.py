"""Witnesses of the two engines: from all observations, and from inducing points.

The functions that attain a bound, and what they tell of the bound nearby.

============  ==========================  ====================================================
code          symbol                      meaning
============  ==========================  ====================================================
``sign``      s                           +1: upper bounds on f*; -1: upper bounds on -f*
``ridges``    alpha                       where each bound is attained
``scales``    rho / beta                  likewise, see :class:`~kernelbounds.bounds.DualBound`
witness       (own phi(c) - sum_j         the function whose value at c is the bound there, and
              pulls_j phi(x_j)) / scale   whose gradient there is the bound's
============  ==========================  ====================================================

Of a bound on f(x) - f(z) with a fixed z, phi(c) - phi(z) takes the place of phi(c), and k_t(x) and
k(x,x) are those of the difference: phi(x) moves as before, and z is one more centre.

The ridge and the scale minimise the dual function, so that its derivative in x is that of the
bound (envelope theorem), and p'(K + alpha I)^-1 p is convex in p, so that for all x and c

    bound(x)  <=  bound(c) + witness(x) - witness(c) + curvature |phi(x) - phi(c)|^2 / (2 scale).

The witness is a known function with a known norm: its first-order expansion at c has an error of
at most that norm times |phi(x) - phi(c) - D phi(c)(x - c)|. See ``docs/mathematics/bounds.md``.

With all observations kept, own and curvature are 1, the x_j are the observations, and the pulls are
w = (K + alpha I)^-1 p with p = k_t(x) - s scale y_t. With a sparse engine the x_j are the inducing
points (``engine/sparse/dual.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, column_dots
from kernelbounds.bounds import ConfidenceSet, DualMinimum
from kernelbounds.engine import WITHOUT_ROUNDING, DualMaximiser, SparseEngine, dot_error
from kernelbounds.functionals.targets import Differences, Targets

# Any scale is valid. One that is this many times the scale that balances the dual function without
# data, sqrt(k(x,x) / joint_bound), would cost half of the digits.
LARGEST_SCALE = 1e7


class Witness(ABC):
    """The functions that attain the bounds at m points, for any scales.

    With a ``reference`` z (d,) they are bounds on the differences s (f(x) - f(z)).
    """

    magnitudes: Array  # k(x,x), or see :class:`~kernelbounds.functionals.targets.Functionals`; (m,)
    variance: Array  # at the ridges, (m,)
    error: float  # of sums over all that is known, relative to their terms

    def __init__(
        self,
        kernel: Kernel,
        centres: Array,
        points: Array,
        found: DualMinimum,
        reference: Array | None,
    ) -> None:
        none = np.empty((0, points.shape[1]))
        self._kernel, self._points, self._found = kernel, points, found
        self._reference = none if reference is None else reference[None]
        self._centres = np.concatenate([centres, self._reference])

    @property
    def targets(self) -> Targets:
        """What is bounded."""
        if not len(self._reference):
            return self._points
        return Differences(self._points, self._reference[0])

    @abstractmethod
    def pulls(self, scales: Array) -> tuple[float, Array]:
        """``own``, and pulls (m, n)."""

    @abstractmethod
    def attaining(self, scales: Array, moved: Array) -> DualMaximiser:
        """At scales (m,), where phi moves by at most so much, (m,)."""

    def gradients(self, scales: Array) -> Array:
        """(own grad k(x,x) / 2 - sum_j pulls_j grad k(x, x_j)) / scale, (m, d)."""
        return self._gradients(*self.pulls(scales), scales)

    def ceilings(self, features: kernels.Features, half_widths: Array, joint_bound: Array) -> Array:
        """Upper bounds on the bound over boxes around the points, (m,).

        ``joint_bound`` (m,) is that of :class:`~kernelbounds.bounds.DualBound` at the ridges.
        """
        # The scale that is best for bound(c) + |phi(x) - phi(c)|^2 / (2 scale), where
        # bound(c) = s mu + rho^2 / (2 scale) + scale beta^2 / 2 and rho = beta found.scale.
        floor = self.error * self.magnitudes
        enlarged = 1 + features.moved**2 / np.maximum(self.variance, floor)
        largest_scale = LARGEST_SCALE * np.sqrt(self.magnitudes / np.maximum(joint_bound, 1e-280))
        scales = np.minimum(self._found.scales * np.sqrt(enlarged), largest_scale)

        here = self.attaining(scales, features.moved)
        at_centre = here.unexplained / (2 * scales) + scales * joint_bound / 2
        norm = np.sqrt(np.maximum(here.squared_norm, 0.0)) / scales
        slope = np.abs(self._gradients(here.own, here.pulls, scales)) * half_widths
        slope_error = here.pulls_error / scales
        first_order = slope.sum(axis=1) + (norm + slope_error) * features.bent
        first_order += slope_error * features.moved
        change = np.fmin(first_order, norm * features.moved)
        bent = here.curvature * features.moved**2 / (2 * scales)
        return np.asarray(at_centre + change + bent)

    def _gradients(self, own: float, pulls: Array, scales: Array) -> Array:
        diagonal = kernels.diagonal_gradient(self._kernel, self._points)
        ones = np.full((len(self._points), len(self._reference)), own)
        pulls = np.concatenate([pulls, ones], axis=1)
        pulled = kernels.pull_back(self._kernel, self._points, self._centres, pulls)
        return np.asarray((own * diagonal / 2 - pulled) / scales[:, None])


# A gradient is not as forgiving of errors of the weights as a value. Each refinement multiplies
# them by the condition number times the rounding error; two leave the digits of the data.
REFINEMENTS = 2


def witness_of(
    known: ConfidenceSet, sign: int, points: Array, found: DualMinimum, reference: Array | None
) -> Witness:
    """What attains bounds at points, as the engine knows it."""
    kind = OfObservations if known.engine.keeps_observations else OfInducingPoints
    return kind(known, sign, points, found, reference)


class OfObservations(Witness):
    """w = (K + alpha I)^-1 (k_t(x) - s scale y_t), solved for once for all scales."""

    def __init__(
        self,
        known: ConfidenceSet,
        sign: int,
        points: Array,
        found: DualMinimum,
        reference: Array | None,
    ) -> None:
        data = known.engine.rows
        super().__init__(data.kernel, data.points, points, found, reference)
        self._data, self._sign = data, sign
        self.error = dot_error(data.count, data.accuracy)
        self._prior, self._vectors, magnitudes = data.representers(self.targets)
        self.magnitudes = self._prior if magnitudes is None else magnitudes
        right = np.concatenate([self._vectors, np.tile(data.outcomes, (len(points), 1)).T], axis=1)
        ridges = np.tile(found.ridges, 2)
        solve = known.engine.solve if found.path is None else found.path.solve
        solved, gram = solve(right, ridges), data.gram
        for _ in range(REFINEMENTS):
            solved += solve(right - gram @ solved - ridges * solved, ridges)
        self._of_vectors, self._of_outcomes = np.split(solved, 2, axis=1)
        self.variance = self._prior - column_dots(self._vectors, self._of_vectors)

    def pulls(self, scales: Array) -> tuple[float, Array]:
        """See :class:`Witness`."""
        return 1.0, self._weights(scales).T * self._data.weights

    def attaining(self, scales: Array, moved: Array) -> DualMaximiser:
        """See :class:`Witness`."""
        data, alpha, error = self._data, self._found.ridges, self.error
        weights = self._weights(scales)
        p = self._vectors - self._sign * np.multiply.outer(data.outcomes, scales)
        explained, size = column_dots(weights, p), np.sqrt(column_dots(weights, weights))
        length = np.sqrt(column_dots(p, p))
        if len(self._reference):  # a difference has the errors of its terms
            length += np.sqrt(self.magnitudes * data.trace)
        # Errors of inner products, and of the weights, which count by their square.
        lost = 2 * error * (size * length + self.magnitudes) + (error * length) ** 2 / alpha
        lost += 4 * error * size**2 * (data.trace + alpha)
        # Of y, p has the scatter as one more direction, in which K is 0.
        of_scatter = WITHOUT_ROUNDING * data.scatter.least * scales**2 / alpha
        unexplained = self._prior - explained - of_scatter + lost
        # |phi(c) - sum_j w_j phi(x_j)|^2, where K w = p - alpha w
        squared = (
            self._prior - 2 * column_dots(weights, self._vectors) + explained - alpha * size**2
        )
        squared = np.maximum(squared, 0.0) + 3 * lost
        largest = np.sqrt(np.max(np.diagonal(data.lower)))
        terms = np.abs(weights).sum(axis=0) * largest
        terms += len(self._reference) * np.sqrt(self.magnitudes)
        pulls = weights.T * data.weights
        return DualMaximiser(unexplained, squared, 1.0, pulls, 1.0, error * terms)

    def _weights(self, scales: Array) -> Array:
        return self._of_vectors - self._sign * scales * self._of_outcomes


class OfInducingPoints(Witness):
    """Of the kernel k' of a sparse engine, which has the features of inducing points."""

    def __init__(
        self,
        known: ConfidenceSet,
        sign: int,
        points: Array,
        found: DualMinimum,
        reference: Array | None,
    ) -> None:
        engine = cast(SparseEngine, known.engine)
        centres = engine.dictionary.inducing
        super().__init__(engine.data.kernel, centres, points, found, reference)
        self._dual, self._sign = engine.dual(self.targets), sign
        self.magnitudes = self._dual.magnitudes
        self.variance = self._dual.variance(found.ridges)
        self.error = self._dual.dictionary.least_residual

    def pulls(self, scales: Array) -> tuple[float, Array]:
        """See :class:`Witness`."""
        here = self.attaining(scales, np.zeros(len(scales)))
        return here.own, here.pulls

    def attaining(self, scales: Array, moved: Array) -> DualMaximiser:
        """See :class:`Witness`."""
        here = self._dual.at(self._found.ridges, self._sign * scales, moved)
        of_reference = len(self._reference) * here.own * np.sqrt(self.magnitudes)
        lost = here.pulls_error + self._dual.error * of_reference
        return here._replace(pulls_error=lost)
