"""IGP: the rival bound of IGP-UCB (Chowdhury and Gopalan 2017, Thm. 2; App. C.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array, as_scalar
from kernelbounds.bounds.confidence_set import ConfidenceSet
from kernelbounds.bounds.ellipsoids import EllipsoidBound, Ellipsoids
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True, repr=False)
class IGP(EllipsoidBound):
    """mu(x) +- (sigma sqrt(l + t eta + 2 ln(1/delta)) + B) rho(x), all at the ridge 1 + eta.

    Parameters
    ----------
    eta : float
        Positive; the recommended value is 2/T for a run of T rounds.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.IGP(eta=2 / 1000))
    >>> bool(lower[0] < upper[0])
    True
    """

    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", as_scalar(self.eta, "eta", above=0.0))

    def ellipsoids(self, known: ConfidenceSet, points: Targets) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.ellipsoids.EllipsoidBound`."""
        ridge = 1 + self.eta
        found = known.predict(points, np.array([ridge]))
        factor = self._factor(known, known.log_det_above(ridge))
        return Ellipsoids(np.array([[ridge]]), np.array([[factor]]), found.mean, found.variance)

    def joint_bound(self, known: ConfidenceSet, ridges: Array) -> Array:
        """See :class:`~kernelbounds.bounds.DualBound`."""
        ridge = 1 + self.eta
        factor = self._factor(known, known.log_det_above(ridge))
        return np.full_like(ridges, factor**2 + known.energy_above(ridge) / ridge)

    def _factor(self, known: ConfidenceSet, log_det: float) -> float:
        """sigma sqrt(l_(1 + eta) + t eta + 2 ln(1/delta)) + B."""
        a = known.assumptions
        noise = math.sqrt(log_det + known.count * self.eta - 2 * math.log(a.delta))
        return a.noise_scale * noise + a.norm_bound
