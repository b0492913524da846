"""Vakili: a bound at one x for points fixed beforehand (Vakili et al. 2021, Thm. 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelbounds.arrays import EPS
from kernelbounds.bounds.bound import Guarantee
from kernelbounds.bounds.ellipsoids import RidgeSetting
from kernelbounds.bounds.rivals.one_ellipsoid import OneEllipsoid, bayesian_ridge
from kernelbounds.confidence.confidence_set import ConfidenceSet


@dataclass(frozen=True, repr=False)
class Vakili(RidgeSetting, OneEllipsoid):
    """mu_lambda(x) +- (B + sigma sqrt(2 ln(2/delta)) / sqrt(lambda)) rho_lambda(x), at one x.

    This is the bound of Vakili, Bouziani, Jalali, Bernacchia and Shiu (2021, Thm. 1) for points
    that are fixed before the outcomes, at one time and one x. Each side holds with
    probability 1 - delta/2. :class:`FixedDesign` with ``simultaneous=False`` is as general.

    Parameters
    ----------
    ridge : float, optional
        lambda; None is sigma^2/B^2.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.2)
    >>> plan = np.linspace(0, 1, 60)[:, None]
    >>> seq.update(plan, np.sin(4 * plan[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=60))
    >>> for bound in (kb.bounds.Vakili(), kb.FixedDesign(simultaneous=False)):
    ...     lower, upper = seq.bounds([0.5], bound)
    ...     print(f"{upper[0] - lower[0]:.2f} ({bound.guarantee})")
    0.48 (one time, one x, fixed points, sub-Gaussian noise)
    0.39 (one time, one x, fixed points, sub-Gaussian noise)
    """

    guarantee = Guarantee(anytime=False, uniform=False, adaptive=False)
    """One time, one x, and points fixed beforehand."""

    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """lambda, and B + sigma sqrt(2 ln(2/delta)) / sqrt(lambda)."""
        a = known.assumptions
        ridge = self.ridge_or(bayesian_ridge(known))
        noise = a.noise_scale * math.sqrt(2 * math.log(2 / a.delta) / ridge)
        return ridge, (a.norm_bound + noise) * (1 + 8 * EPS)
