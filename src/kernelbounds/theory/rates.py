"""The rates of Propositions D.13 to D.16, and the tuning that attains them.

================  ===========  ==========================================================
code              paper        meaning
================  ===========  ==========================================================
``power``                      of T in the regret bound
``log_power``                  of ln T in the regret bound
``tuning_power``  q            the tuned constant is proportional to T^q
``tuned``         c or alpha   the mixture scale with noise, the ridge without
================  ===========  ==========================================================

Constants are left out here; :mod:`~kernelbounds.theory.regret_bounds` has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import LARGEST, Array, as_flag, as_scalar, brief
from kernelbounds.errors import InputError
from kernelbounds.kernels import checked_kernel, smoothness
from kernelbounds.theory.checks import as_rounds
from kernelbounds.theory.eigendecay import decay_exponent


@dataclass(frozen=True)
class Rate:
    """Regret O(T^power ln(T)^log_power) when c or alpha is proportional to T^tuning_power.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> rate = theory.Rate(power=0.5, log_power=2.0, tuned="ridge", tuning_power=-1.0)
    >>> rate.below_root, round(float(rate.tuning(1000)), 6)
    (False, 0.001)
    """

    power: float
    log_power: float
    tuned: Literal["mixture_scale", "ridge"]
    tuning_power: float

    def __str__(self) -> str:
        parts = [f"T^{self.power:.3g}"] if self.power else []
        parts += [f"ln(T)^{self.log_power:.3g}"] if self.log_power else []
        return " ".join(parts) or "1"

    def __call__(self, rounds: ArrayLike) -> Array:
        """T^power ln(T)^log_power."""
        T = as_rounds(rounds)
        return np.asarray(T**self.power * np.log(T) ** self.log_power)

    def tuning(self, rounds: ArrayLike, scale: float = 1.0) -> Array:
        """scale T^tuning_power: the mixture scale or ridge for a run of T rounds."""
        factor = as_scalar(scale, "scale", above=0.0)
        return np.asarray(factor * as_rounds(rounds) ** self.tuning_power)

    def local_exponent(self, rounds: ArrayLike) -> Array:
        """d ln(rate) / d ln T = power + log_power / ln T: what a fit near T should compare with."""
        T = as_rounds(rounds)
        if np.any(T <= 1):
            raise InputError(f"rounds must be above 1 for a local exponent, got {brief(rounds)}.")
        return np.asarray(self.power + self.log_power / np.log(T))

    @property
    def below_root(self) -> bool:
        """Whether this grows more slowly than sqrt(T)."""
        return self.power < 0.5


def polynomial_rate(exponent: float) -> Rate:
    """c ~ T^(-1/(beta_p + 1)): T^((beta_p + 3)/(2 beta_p + 2)) ln(T)^(1 - 1/beta_p), D.13.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> rate = theory.polynomial_rate(4.0)
    >>> rate.power, rate.log_power, rate.tuned, rate.tuning_power
    (0.7, 0.75, 'mixture_scale', -0.2)
    """
    beta = as_scalar(exponent, "exponent", above=1.0, most=LARGEST)
    power = (beta + 3) / (2 * beta + 2)
    return Rate(power, 1 - 1 / beta, "mixture_scale", -1 / (beta + 1))


def exponential_rate(exponent: float) -> Rate:
    """c ~ 1: sqrt(T) ln(T)^(1 + 1/beta_e), Prop. D.14.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> rate = theory.exponential_rate(0.5)
    >>> rate.power, rate.log_power
    (0.5, 3.0)
    """
    beta = as_scalar(exponent, "exponent", above=0.0, most=1.0)
    return Rate(0.5, 1 + 1 / beta, "mixture_scale", 0.0)


def noiseless_polynomial_rate(exponent: float) -> Rate:
    """alpha ~ T^((1 - beta_p^2)/(1 + beta_p^2)): T^((beta_p + 1)/(beta_p^2 + 1)) ln T, D.15.

    Below sqrt(T) when beta_p > 1 + sqrt(2).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> rate = theory.noiseless_polynomial_rate(3.0)
    >>> rate.power, rate.tuned, rate.tuning_power
    (0.4, 'ridge', -0.8)
    """
    beta = as_scalar(exponent, "exponent", above=1.0, most=LARGEST)
    squared = beta**2
    return Rate((beta + 1) / (squared + 1), 1.0, "ridge", (1 - squared) / (1 + squared))


def noiseless_exponential_rate(exponent: float) -> Rate:
    """alpha ~ 1/T: ln(T)^(1 + 1/beta_e), Prop. D.16 (its statement prints alpha ~ 1).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> rate = theory.noiseless_exponential_rate(0.5)
    >>> rate.power, rate.log_power, rate.tuning_power
    (0.0, 3.0, -1.0)
    """
    beta = as_scalar(exponent, "exponent", above=0.0, most=1.0)
    return Rate(0.0, 1 + 1 / beta, "ridge", -1.0)


def regret_rate(kernel: Kernel, dim: int, *, noiseless: bool = False) -> Rate:
    """The proved rate for an RBF or Matern kernel in [0, 1]^dim.

    For Matern kernels nu > 1/2 is assumed (App. D.4).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> rate = theory.regret_rate(RBF(0.3), dim=2)
    >>> rate.power, rate.log_power
    (0.5, 3.0)
    """
    quiet = as_flag(noiseless, "noiseless")
    nu, beta = smoothness(checked_kernel(kernel)), decay_exponent(kernel, dim)
    if np.isinf(nu):
        return noiseless_exponential_rate(beta) if quiet else exponential_rate(beta)
    if nu <= 0.5:
        raise InputError(f"the decay of Matern kernels is known for nu above 1/2, got {nu:g}.")
    return noiseless_polynomial_rate(beta) if quiet else polynomial_rate(beta)
