"""Bounds that are wrong on purpose: a laboratory that does not flag them measures nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds import CMM, Bound, ConfidenceSet
from kernelbounds.confidence.diagnosis import refute_if_empty
from kernelbounds.confidence.radius import Radius
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True, repr=False)
class Shrunk(Bound):
    """CMM with a radius that is too small, ``factor`` R_t in place of R_t.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds.laboratory.controls import Shrunk
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> bool(seq.upper([0.4], bound=Shrunk(0.8))[0] < seq.upper([0.4])[0])
    True
    """

    factor: float = 0.8

    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        return CMM().extremes(self._shrunk(known), points, signs)

    def refute(self, known: ConfidenceSet) -> None:
        """See :class:`~kernelbounds.bounds.Bound`."""
        refute_if_empty(self._shrunk(known))

    def _shrunk(self, known: ConfidenceSet) -> ConfidenceSet:
        smaller = Radius(0.0, self.factor**2 * known.radius.squared, known.radius.norm_bound)
        return dataclasses.replace(known, own_radius=smaller)


@dataclass(frozen=True, repr=False)
class Deviations(Bound):
    """The band mu(x) +- ``count`` standard deviations of a Gaussian process with covariance k.

    The process knows sigma, and its mean and standard deviation are mu and rho at the ridge
    sigma^2. People read this band as if it held for one function, at all x and at all times.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds.laboratory.controls import Deviations
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> bool(seq.upper([0.4], bound=Deviations(2.0))[0] < seq.upper([0.4])[0])
    True
    """

    count: float = 2.0

    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        found = known.predict(points, np.array([known.assumptions.noise_scale**2]))
        reach = self.count * np.sqrt(found.variance[0])
        return np.array([sign * found.mean[0] + reach for sign in signs])
