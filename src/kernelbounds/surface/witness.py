"""The functions that attain a bound, and what they tell of the bound nearby.

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

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.bounds import Attained
from kernelbounds.engine import Attaining
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
        found: Attained,
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
    def attaining(self, scales: Array, moved: Array) -> Attaining:
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
