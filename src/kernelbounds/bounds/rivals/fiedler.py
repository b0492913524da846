"""Fiedler: the bound of IGP-UCB at any ridge (Fiedler, Scherer and Trimpe 2021, Thm. 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelbounds.arrays import EPS
from kernelbounds.bounds.ellipsoids import RidgeSetting
from kernelbounds.bounds.rivals.one_ellipsoid import OneEllipsoid
from kernelbounds.confidence.confidence_set import ConfidenceSet


@dataclass(frozen=True, repr=False)
class Fiedler(RidgeSetting, OneEllipsoid):
    """mu(x) +- (B + sigma sqrt(ln det(m/lambda K + m I) + 2 ln(1/delta)) / sqrt(lambda)) rho(x).

    This is Chowdhury and Gopalan's bound for any ridge (Fiedler et al. 2021, Thm. 1). Here
    m = max(1, lambda), so that it is AY for ridges lambda up to 1, and has t ln(lambda) more
    under the root for larger ones.

    Parameters
    ----------
    ridge : float, optional
        lambda; None is the paper's sigma^2/c, as for AY. Users of Gaussian processes have sigma^2.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=9.0, noise_scale=0.5)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> for ridge in (0.25, 2.0):
    ...     both = kb.bounds.Fiedler(ridge), kb.AY(ridge)
    ...     print([f"{seq.upper([0.1], bound)[0]:.2f}" for bound in both])
    ['5.79', '5.79']
    ['8.34', '8.28']
    """

    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """lambda, and AY's factor with t ln max(1, lambda) more under the root."""
        a, ridge = known.assumptions, self.ridge_or(known.reference_ridge)
        more = known.count * math.log(max(ridge, 1.0)) * (1 + 4 * EPS)
        noise = math.sqrt((known.log_det_above(ridge) + more - 2 * math.log(a.delta)) / ridge)
        return ridge, a.noise_scale * noise + a.norm_bound
