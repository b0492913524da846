"""Confidence sets around forecasts or outcomes, and the two bounds from them.

``Emmenegger`` is of weighted likelihood ratios (Emmenegger, Mutny and Krause 2023), ``OnlineToSet``
of online forecasts (Abbasi-Yadkori, Pal and Szepesvari 2012).

Both bound a sum of squares over the rounds, and CMM's dual gives the largest f(x) over the
functions of norm at most B within that bound:

==============  ====================================  =========================================
code            symbol                                meaning
==============  ====================================  =========================================
``errors``      y_s - m_s                             of ridge forecasts m_s = mu_s-1(x_s)
``variances``   rho^2_s-1(x_s)                        theirs, before the outcome
``gains``       v_s = rho^2_s-1(x_s) / lambda
``squared``                                           the bound on the sum of squares
==============  ====================================  =========================================
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds.bound import Bound
from kernelbounds.bounds.cmm import CMM
from kernelbounds.bounds.ellipsoids import RidgeSetting
from kernelbounds.bounds.rivals.one_ellipsoid import bayesian_ridge
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.diagnosis import norm_lower_bound, refute_if_empty
from kernelbounds.confidence.evidence import Evidence
from kernelbounds.confidence.radius import Radius
from kernelbounds.engine import ExactEngine, Outcomes
from kernelbounds.engine.ridge_fit import RunPass, along_run
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True, repr=False)
class ForecastSet(RidgeSetting, Bound):
    """The largest f(x) over functions of norm at most B that are near forecasts or outcomes."""

    bounds_functionals = True  # CMM bounds them.

    @abstractmethod
    def constraint(self, known: ConfidenceSet, run: RunPass) -> tuple[Array, Array, float]:
        """Targets z_s, weights u_s and S, where sum_s u_s^2 (z_s - w_s f*(x_s))^2 <= S.

        w_s are the weights of the observations, whose w_s y_s are ``known.outcomes``.
        """

    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        return CMM().extremes(self._admitted(known), points, signs)

    def norm_lower_bound(self, known: ConfidenceSet) -> float:
        """See :class:`~kernelbounds.bounds.Bound`."""
        return norm_lower_bound(self._admitted(known)) if known.count else 0.0

    def refute(self, known: ConfidenceSet) -> None:
        """See :class:`~kernelbounds.bounds.Bound`."""
        refute_if_empty(self._admitted(known))

    def _admitted(self, known: ConfidenceSet) -> ConfidenceSet:
        """The functions that the constraint admits, as a confidence set that CMM can look at."""
        a = known.assumptions
        key = self, a.norm_bound, a.noise_scale, a.delta
        return known.evidence.kept(key, lambda: self._new_set(known))

    def _new_set(self, known: ConfidenceSet) -> ConfidenceSet:
        a = known.assumptions
        if a.noise_scale == 0:
            raise InputError(
                f"{type(self).__name__} is for noisy data; use CMM() where noise_scale is 0."
            )
        ridge = self.ridge_or(bayesian_ridge(known))
        gram = kernels.cross(known.kernel, known.points, known.points)
        np.fill_diagonal(gram, kernels.diagonal(known.kernel, known.points))
        gram *= known.weights[:, None] * known.weights
        targets, weights, squared = self.constraint(known, along_run(gram, ridge, known.outcomes))
        engine = ExactEngine(known.kernel)
        z = targets / known.weights
        engine.append(known.points, Outcomes(z, z, weights * known.weights))
        # Sums of t squares, of which each target is known to a few roundings.
        squared *= 1 + (64 + 4 * known.count) * EPS
        lost = 8 * EPS * float(np.linalg.norm(weights * targets))
        radius = Radius(0.0, squared, a.norm_bound).enlarged(lost)
        return ConfidenceSet(Evidence(engine, a.noise.unit), a, known.chosen_for, own_radius=radius)


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
