"""AY: the rival bound of AY-GP-UCB (Abbasi-Yadkori 2012, Thm. 3.11; App. C.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelbounds.bounds.ellipsoids import RidgeSetting
from kernelbounds.bounds.rivals.one_ellipsoid import OneEllipsoid
from kernelbounds.confidence.confidence_set import ConfidenceSet


@dataclass(frozen=True, repr=False)
class AY(RidgeSetting, OneEllipsoid):
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

    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """lambda, and sigma sqrt(l_lambda + 2 ln(1/delta)) / sqrt(lambda) + B."""
        a, ridge = known.assumptions, self.ridge_or(known.reference_ridge)
        noise = math.sqrt((known.log_det_above(ridge) - 2 * math.log(a.delta)) / ridge)
        return ridge, a.noise_scale * noise + a.norm_bound
