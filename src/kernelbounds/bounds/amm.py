"""AMM: the analytic martingale-mixture bound (Cor. 4.6, Sec. 5.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelbounds.bounds.ellipsoids import EllipsoidBound, Ellipsoids, RidgeSetting
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True, repr=False)
class AMM(RidgeSetting, EllipsoidBound):
    """The largest and smallest values of f(x) in the ellipsoid around one ridge estimate,

        mu_alpha(x) +- R~_alpha rho_alpha(x) / sqrt(alpha).

    Parameters
    ----------
    ridge : float, optional
        alpha; None is the paper's sigma^2/c.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.AMM())
    >>> bool(lower[0] < upper[0])
    True
    """

    uses_only_radius = True  # The interval is made from R_t.

    def below_amm_at(self, reference_ridge: float) -> tuple[float, ...] | None:
        """The ridge of this bound, which is AMM there."""
        return (self.ridge_or(reference_ridge),)

    def ellipsoids(self, known: ConfidenceSet, points: Targets) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.ellipsoids.EllipsoidBound`."""
        ridges = np.array([self.ridge_or(known.reference_ridge)])
        return Ellipsoids.of_radius(known, ridges, known.predict(points, ridges))
