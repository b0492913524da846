"""AY: the rival bound of AY-GP-UCB (Abbasi-Yadkori 2012, Thm. 3.11; App. C.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.assume.assumptions import Assumptions
from kernelbounds.bounds.confidence_set import ConfidenceSet
from kernelbounds.bounds.ellipsoids import EllipsoidBound, Ellipsoids, checked_ridge
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True, repr=False)
class AY(EllipsoidBound):
    """mu_lambda(x) +- (sigma sqrt(l_lambda + 2 ln(1/delta)) / sqrt(lambda) + B) rho_lambda(x).

    Parameters
    ----------
    ridge : float, optional
        lambda; None is the paper's sigma^2/c.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.AY())
    >>> exact = seq.bounds([[0.5]], bound=kb.CMM())
    >>> bool(lower[0] <= exact[0][0] and exact[1][0] <= upper[0])
    True
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ridge", checked_ridge(self.ridge, "ridge"))

    def ellipsoids(self, known: ConfidenceSet, points: Targets) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.ellipsoids.EllipsoidBound`."""
        ridge = known.reference_ridge if self.ridge is None else self.ridge
        found = known.predict(points, np.array([ridge]))
        factor = _factor(ridge, known.log_det_above(ridge), known.assumptions)
        return Ellipsoids(np.array([[ridge]]), np.array([[factor]]), found.mean, found.variance)

    def joint_bound(self, known: ConfidenceSet, ridges: Array) -> Array:
        """See :class:`~kernelbounds.bounds.DualBound`."""
        ridge = float(ridges.flat[0])
        factor = _factor(ridge, known.log_det_above(ridge), known.assumptions)
        return np.full_like(ridges, factor**2 + known.energy_above(ridge) / ridge)


def _factor(ridge: float, log_det: float, a: Assumptions) -> float:
    """sigma sqrt(l_lambda + 2 ln(1/delta)) / sqrt(lambda) + B."""
    return a.noise_scale * math.sqrt((log_det - 2 * math.log(a.delta)) / ridge) + a.norm_bound
