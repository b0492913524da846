"""Bounds that are intervals around ridge estimates at finitely many ridges: DMM, AMM, AY, IGP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernelbounds.arrays import Array, as_scalar, set_checked
from kernelbounds.bounds.bound import DualBound, DualMinimum
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.diagnosis import refute_if_empty
from kernelbounds.engine import Predictions
from kernelbounds.functionals.targets import Targets


class Ellipsoids(NamedTuple):
    """Intervals s mu_alpha(x) + beta_alpha rho_alpha(x) at m points for g ridges alpha.

    Attributes
    ----------
    ridges : array of shape (g, 1)
        alpha.
    factors : array of shape (g, 1)
        beta_alpha.
    mean, variance : arrays of shape (g, m)
        mu_alpha and rho_alpha^2.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> found = kb.DMM().ellipsoids(seq.known, np.array([[0.4], [0.5]]))
    >>> found.mean.shape  # five ridges, two points
    (5, 2)
    >>> found.ends((1, -1)).shape  # and two signs
    (2, 5, 2)
    """

    ridges: Array
    factors: Array
    mean: Array
    variance: Array

    @classmethod
    def of_radius(cls, known: ConfidenceSet, ridges: Array, found: Predictions) -> Ellipsoids:
        """The intervals of Eq. (12), with factors R~_alpha / sqrt(alpha)."""
        squared = known.radius.around(ridges, found.energy)
        if squared.min() < 0:
            refute_if_empty(known)
        factors = np.sqrt(np.maximum(squared, 0.0) / ridges)
        return cls(ridges[:, None], factors[:, None], found.mean, found.variance)

    def ends(self, signs: Sequence[int]) -> Array:
        """Upper bounds on s f at each ridge, (signs, g, m); those that overflow are infinite."""
        half = self.factors * np.sqrt(self.variance)
        return np.fmin([sign * self.mean + half for sign in signs], np.inf)


class EllipsoidBound(DualBound):
    """The smallest ends of some intervals around ridge estimates, for each point and side.

    A bound of one's own of this kind has to say what the intervals are, and has gradients,
    functionals and sharper certificates from that.

    Examples
    --------
    AMM at twice the ridge of the paper:

    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds.bounds import EllipsoidBound, Ellipsoids
    >>> class Doubled(EllipsoidBound):
    ...     def ellipsoids(self, known, points):
    ...         ridges = np.array([2 * known.reference_ridge])
    ...         return Ellipsoids.of_radius(known, ridges, known.predict(points, ridges))
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1, bound=Doubled())
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> amm = kb.AMM(ridge=2 * seq.known.reference_ridge)
    >>> bool(seq.upper([0.4])[0] == seq.upper([0.4], bound=amm)[0])
    True
    """

    @abstractmethod
    def ellipsoids(self, known: ConfidenceSet, points: Targets) -> Ellipsoids:
        """The intervals at m points, or for m functionals."""

    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        return np.asarray(self.ellipsoids(known, points).ends(signs).min(axis=1))

    def attained(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> DualMinimum:
        """See :class:`~kernelbounds.bounds.DualBound`."""
        found = self.ellipsoids(known, points)
        # rho / beta, kept away from zero and infinity, where any scale is valid.
        scales = np.maximum(np.sqrt(found.variance) / np.maximum(found.factors, 1e-150), 1e-150)
        values = found.ends(signs)
        best = values.argmin(axis=1)
        at = best, np.arange(best.shape[1])
        return DualMinimum(
            np.take_along_axis(values, best[:, None], axis=1)[:, 0],
            np.broadcast_to(found.ridges, scales.shape)[at],
            scales[at],
        )

    def joint_bound(self, known: ConfidenceSet, ridges: Array) -> Array:
        """R~^2/alpha + E/alpha = R_t^2/alpha + B^2, for factors R~_alpha / sqrt(alpha)."""
        return known.radius.joint_bound(ridges)


@dataclass(frozen=True, repr=False)  # A bound says its settings itself.
class RidgeSetting:
    """The setting ``ridge`` of bounds that have one, where None stands for a default."""

    ridge: float | None = None

    def __post_init__(self) -> None:
        if self.ridge is not None:
            set_checked(self, ridge=as_scalar(self.ridge, "ridge", above=0.0))

    def ridge_or(self, default: float) -> float:
        """The ridge, or the default where none was set."""
        return default if self.ridge is None else self.ridge
