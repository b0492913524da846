"""Emmenegger: weighted likelihood ratios (Emmenegger, Mutny and Krause 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.rivals.forecast_set import ForecastSet
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine.ridge_fit import RunPass


@dataclass(frozen=True, repr=False)
class Emmenegger(ForecastSet):
    """The largest f(x) over the functions with ||f|| <= B that weighted likelihood ratios admit,

        sum_s u_s (y_s - f(x_s))^2  <=  sum_s u_s (y_s - m_s)^2 + 2 sigma^2 ln(1/delta),

    with ridge forecasts m_s and u_s = sigma^2 / (sigma^2 + B^2 rho^2_s-1(x_s)), which is small
    where the forecast may be biased (Emmenegger, Mutny and Krause 2023). Any u_s in [0, 1] and m_s
    that are known before y_s give a valid bound.

    Parameters
    ----------
    ridge : float, optional
        That of the forecasts; None is sigma^2/B^2, where the first sum on the right is E_ridge.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.bounds.Emmenegger())
    >>> bool(lower[0] < upper[0])
    True
    """

    def constraint(self, known: ConfidenceSet, run: RunPass) -> tuple[Array, Array, float]:
        """The outcomes as targets, the roots of u_s as weights, and the right side."""
        a = known.assumptions
        trust = a.noise_scale**2 / (a.noise_scale**2 + a.norm_bound**2 * run.variances)
        squared = float(trust @ run.errors**2) - 2 * a.noise_scale**2 * math.log(a.delta)
        return known.outcomes, np.sqrt(trust), squared
