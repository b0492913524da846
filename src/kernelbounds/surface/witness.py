"""The functions that attain a bound, and what they tell of the bound nearby.

============  ==========================  ====================================================
code          symbol                      meaning
============  ==========================  ====================================================
``sign``      s                           +1: upper bounds on f*; -1: upper bounds on -f*
``ridges``    alpha                       where each bound is attained
``scales``    rho / beta                  likewise, see :class:`~kernelbounds.bounds.DualBound`
``weights``   w = (K + alpha I)^-1 p      with p = k_t(x) - s scale y_t
witness       (phi(c) - sum_j w_j         the function whose value at c is the bound there, and
              phi(x_j)) / scale           whose gradient there is the bound's
============  ==========================  ====================================================

Of a bound on f(x) - f(z) with a fixed z, phi(c) - phi(z) takes the place of phi(c), and k_t(x) and
k(x,x) are those of the difference: phi(x) moves as before, and z is one more centre, of weight 1.

The ridge and the scale minimise the dual function, so that its derivative in x is that of the
bound (envelope theorem), and p'(K + alpha I)^-1 p is convex in p, so that for all x and c

    bound(x)  <=  bound(c) + witness(x) - witness(c) + |phi(x) - phi(c)|^2 / (2 scale).

The witness is a known function with a known norm: its first-order expansion at c has an error of
at most that norm times |phi(x) - phi(c) - D phi(c)(x - c)|. See ``docs/mathematics/bounds.md``.
"""

from __future__ import annotations

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.bounds import Attained, Knowledge
from kernelbounds.engine import WITHOUT_ROUNDING, rounding
from kernelbounds.functionals import Differences

# Any scale is valid. One that is this many times the scale that balances the dual function without
# data, sqrt(k(x,x) / joint_bound), would cost half of the digits.
LARGEST_SCALE = 1e7
# A gradient is not as forgiving of errors of the weights as a value. Each refinement multiplies
# them by the condition number times the rounding error; two leave the digits of the data.
REFINEMENTS = 2


class Witness:
    """The functions that attain the bounds at m points, for any scales.

    With a ``reference`` z (d,) they are bounds on the differences s (f(x) - f(z)).
    """

    def __init__(
        self,
        known: Knowledge,
        sign: int,
        points: Array,
        found: Attained,
        reference: Array | None = None,
    ) -> None:
        data = known.engine.rows
        self._data, self._sign, self._points, self._found = data, sign, points, found
        self._reference = np.empty((0, points.shape[1])) if reference is None else reference[None]
        targets = points if reference is None else Differences(points, reference)
        self._prior, self._vectors, magnitudes = data.representers(targets)
        self._magnitudes = self._prior if magnitudes is None else magnitudes
        right = np.concatenate([self._vectors, np.tile(data.outcomes, (len(points), 1)).T], axis=1)
        ridges = np.tile(found.ridges, 2)
        solve = known.engine.solve if found.path is None else found.path.solve
        solved, gram = solve(right, ridges), data.gram
        for _ in range(REFINEMENTS):
            solved += solve(right - gram @ solved - ridges * solved, ridges)
        self._of_vectors, self._of_outcomes = np.split(solved, 2, axis=1)

    def gradients(self, scales: Array) -> Array:
        """(grad k(x,x) / 2 - sum_j w_j grad k(x, x_j)) / scale, (m, d)."""
        return self._gradients(self._weights(scales), scales)

    def ceilings(self, features: kernels.Features, half_widths: Array, joint_bound: Array) -> Array:
        """Upper bounds on the bound over boxes around the points, (m,).

        ``joint_bound`` (m,) is that of :class:`~kernelbounds.bounds.DualBound` at the ridges.
        """
        data, alpha = self._data, self._found.ridges
        error = rounding(data.count, data.accuracy)
        variance = self._prior - _dots(self._vectors, self._of_vectors)
        # The scale that is best for bound(c) + |phi(x) - phi(c)|^2 / (2 scale), where
        # bound(c) = s mu + rho^2 / (2 scale) + scale beta^2 / 2 and rho = beta found.scale.
        floor = error * self._magnitudes
        enlarged = 1 + features.moved**2 / np.maximum(variance, floor)
        largest_scale = LARGEST_SCALE * np.sqrt(self._magnitudes / np.maximum(joint_bound, 1e-280))
        scales = np.minimum(self._found.scales * np.sqrt(enlarged), largest_scale)

        weights = self._weights(scales)
        p = self._vectors - self._sign * np.multiply.outer(data.outcomes, scales)
        explained, size = _dots(weights, p), np.sqrt(_dots(weights, weights))
        length = np.sqrt(_dots(p, p))
        if len(self._reference):  # a difference has the errors of its terms
            length += np.sqrt(self._magnitudes * data.trace)
        # Errors of inner products, and of the weights, which count by their square.
        lost = 2 * error * (size * length + self._magnitudes) + (error * length) ** 2 / alpha
        lost += 4 * error * size**2 * (data.trace + alpha)
        # Of y, p has the scatter as one more direction, in which K is 0.
        of_scatter = WITHOUT_ROUNDING * data.scatter.least * scales**2 / alpha
        unexplained = self._prior - explained - of_scatter + lost
        at_centre = unexplained / (2 * scales) + scales * joint_bound / 2

        # |phi(c) - sum_j w_j phi(x_j)|^2, where K w = p - alpha w
        squared = self._prior - 2 * _dots(weights, self._vectors) + explained - alpha * size**2
        norm = np.sqrt(np.maximum(squared, 0.0) + 3 * lost) / scales
        slope = np.abs(self._gradients(weights, scales)) * half_widths
        largest = np.sqrt(np.max(np.diagonal(data.lower)))
        slope_error = error * np.abs(weights).sum(axis=0) * largest / scales
        slope_error += error * np.sqrt(self._magnitudes) * len(self._reference) / scales
        first_order = slope.sum(axis=1) + (norm + slope_error) * features.bent
        first_order += slope_error * features.moved
        change = np.fmin(first_order, norm * features.moved)
        return np.asarray(at_centre + change + features.moved**2 / (2 * scales))

    def _weights(self, scales: Array) -> Array:
        return self._of_vectors - self._sign * scales * self._of_outcomes

    def _gradients(self, weights: Array, scales: Array) -> Array:
        data = self._data
        diagonal = kernels.diagonal_gradient(data.kernel, self._points)
        centres = np.concatenate([data.points, self._reference])
        ones = np.ones((len(self._points), len(self._reference)))
        pulls = np.concatenate([weights.T * data.weights, ones], axis=1)
        pulled = kernels.pull_back(data.kernel, self._points, centres, pulls)
        return np.asarray((diagonal / 2 - pulled) / scales[:, None])


def _dots(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("im,im->m", left, right))
