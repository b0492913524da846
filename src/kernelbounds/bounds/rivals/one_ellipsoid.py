"""What most rivals are: one interval around a ridge estimate, whose factor is not made from R_t."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.ellipsoids import EllipsoidBound, Ellipsoids
from kernelbounds.confidence.confidence_set import LARGEST_RIDGE, ConfidenceSet
from kernelbounds.functionals.targets import Targets


class OneEllipsoid(EllipsoidBound):
    """An interval mu_alpha(x) +- beta rho_alpha(x) whose beta is not made from R_t.

    A bound of this kind says what alpha and beta are. Both are fixed by the assumptions, by a
    log-determinant and by the number of observations, as those of most of the literature are.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds.bounds.rivals.one_ellipsoid import OneEllipsoid
    >>> isinstance(kb.AY(), OneEllipsoid)
    True
    """

    @abstractmethod
    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """alpha, and beta made from quantities that are rounded up."""

    def ellipsoids(self, known: ConfidenceSet, points: Targets) -> Ellipsoids:
        """See :class:`EllipsoidBound`."""
        ridge, factor = self.ridge_and_factor(known)
        found = known.predict(points, np.array([ridge]))
        return Ellipsoids(np.array([[ridge]]), np.array([[factor]]), found.mean, found.variance)

    def joint_bound(self, known: ConfidenceSet, ridges: Array) -> Array:
        """See :class:`~kernelbounds.bounds.DualBound`."""
        ridge, factor = self.ridge_and_factor(known)
        return np.full_like(ridges, factor**2 + known.energy_above(ridge) / ridge)


def bayesian_ridge(known: ConfidenceSet) -> float:
    """sigma^2/B^2, the ridge of a Gaussian process with the covariance B^2 k."""
    a = known.assumptions
    if a.noise_scale == 0 or math.isinf(a.noise_scale):
        return known.reference_ridge
    return min(a.noise_scale**2 / max(a.norm_bound**2, 1e-300), LARGEST_RIDGE)
