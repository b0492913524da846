"""OnlineToSet: a set around online forecasts (Abbasi-Yadkori, Pal and Szepesvari 2012)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds.rivals.forecast_set import ForecastSet
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine.ridge_fit import RunPass


@dataclass(frozen=True, repr=False)
class OnlineToSet(ForecastSet):
    """The largest f(x) over the functions with ||f|| <= B near the forecasts of an online learner,

        sum_s (p_s - f(x_s))^2  <=  1 + 2 G + 32 sigma^2 ln((sqrt(8) sigma + sqrt(1 + G)) / delta),

    where G bounds the learner's regret (Abbasi-Yadkori, Pal and Szepesvari 2012, Thm. 1). The
    learner is that of Vovk, Azoury and Warmuth: p_s = mu_s-1(x_s) / (1 + v_s), with
    G = lambda B^2 + sum_s y_s^2 v_s / (1 + v_s), v_s = rho^2_s-1(x_s) / lambda. The numbers 1 and
    32 are the theorem's, and have the units of outcomes: it does not follow the units.

    Parameters
    ----------
    ridge : float, optional
        lambda; None is sigma^2/B^2.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.bounds.OnlineToSet())
    >>> bool(lower[0] < upper[0])
    True
    """

    def constraint(self, known: ConfidenceSet, run: RunPass) -> tuple[Array, Array, float]:
        """The forecasts as targets, all with weight 1, and the right side."""
        a, y, gains = known.assumptions, known.outcomes, run.variances / run.ridge
        regret = run.ridge * a.norm_bound**2 + float(y**2 @ (gains / (1 + gains)))
        spread = math.sqrt(8) * a.noise_scale + math.sqrt(1 + regret)
        squared = 1 + 2 * regret + 32 * a.noise_scale**2 * math.log(spread / a.delta)
        return (y - run.errors) / (1 + gains), np.ones(known.count), squared
