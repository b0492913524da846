"""Srinivas: the bound of GP-UCB (Srinivas, Krause, Kakade and Seeger 2010, Thm. 6)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import EPS, Array, as_numbers, set_checked
from kernelbounds.bounds.bound import Guarantee
from kernelbounds.bounds.ellipsoids import Ellipsoids
from kernelbounds.bounds.rivals.one_ellipsoid import OneEllipsoid
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True, repr=False)
class Srinivas(OneEllipsoid):
    """mu(x) +- sqrt(2 B^2 + 300 gamma_t ln^3(t/delta)) rho(x), from t - 1 outcomes, ridge sigma^2.

    This is the bound of GP-UCB (Srinivas, Krause, Kakade and Seeger 2010, Thm. 6). gamma_t is the
    largest information gain of t points of the domain. The theorem is for noise that never exceeds
    sigma, and for k(x,x) <= 1.

    Parameters
    ----------
    gains : sequence of float
        Upper bounds on gamma_1, gamma_2, ... at the ridge sigma^2, as
        :func:`kernelbounds.theory.maximum_information_gain` has them. Without them it is
        (t/2) ln(1 + 1/sigma^2), which no t points exceed.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=kb.noise.Bounded(0.1))
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.bounds.Srinivas())
    >>> float(upper[0] - lower[0])  # what the norm alone says
    4.0
    """

    gains: tuple[float, ...] = ()

    guarantee = Guarantee(noise="bounded")
    """All times, all x, adaptive points; noise that never exceeds sigma."""

    def __post_init__(self) -> None:
        if not isinstance(self.gains, Iterable):
            raise InputError(f"gains must be a sequence of numbers, got {self.gains!r}.")
        found = as_numbers(list(self.gains), "gains", positive=False) if len(self.gains) else ()
        set_checked(self, gains=tuple(float(gain) for gain in found))

    def ellipsoids(self, known: ConfidenceSet, points: Targets) -> Ellipsoids:
        """See :class:`~kernelbounds.bounds.ellipsoids.EllipsoidBound`."""
        _require_unit_variance(known.prior(points))
        return super().ellipsoids(known, points)

    def ridge_and_factor(self, known: ConfidenceSet) -> tuple[float, float]:
        """sigma^2, and sqrt(2 B^2 + 300 gamma_t ln^3(t/delta))."""
        a, t = known.assumptions, known.count + 1
        if a.noise_scale == 0 or np.any(known.weights != 1):
            raise InputError(
                "Srinivas is for noise of one positive scale; use CMM() without noise, or where "
                "observations have noise scales of their own."
            )
        _require_unit_variance(known.prior(known.points))
        squared = (
            2 * a.norm_bound**2 + 300 * self._gain(t, a.noise_scale) * math.log(t / a.delta) ** 3
        )
        return a.noise_scale**2, math.sqrt(squared) * (1 + 16 * EPS)

    def _gain(self, t: int, noise_scale: float) -> float:
        """An upper bound on gamma_t."""
        if not self.gains:
            return t / 2 * math.log1p(1 / noise_scale**2)
        if t > len(self.gains):
            raise InputError(
                f"gains must be bounds on gamma_1 up to gamma_{t} after {t - 1} observations, got "
                f"{len(self.gains)} of them; compute them for more rounds."
            )
        return self.gains[t - 1]


def _require_unit_variance(prior: Array) -> None:
    if prior.max(initial=0.0) > 1 + 1e-9:
        raise InputError(
            f"Srinivas is for kernels with k(x,x) <= 1, and this has {prior.max():g}; use CMM()."
        )
