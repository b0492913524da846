"""Bounds on the cumulative regret of KernelUCB, and the rates at which they grow (Sec. 6.3).

==================  ===========  ========================================================
code                paper        meaning
==================  ===========  ========================================================
``rounds``          T            number of rounds; an array gives an array
``gain``            gamma_T      (bound on the) maximum information gain at the ridge
``count``           tau_T        (bound on the) number of potentials of at least 1
``value_bound``     C            |f*(x)| <= C; sqrt(kappa) B always does
``norm_bound``      B            ||f*|| <= B
``noise_scale``     sigma        the noise is sigma-sub-Gaussian
``mixture_scale``   c            of the mixture N(0, c K_t); the ridge is sigma^2/c
``power``                        of T in the rate
``log_power``                    of ln T in the rate
``tuned``           c or alpha   the mixture scale with noise, the ridge without
``tuning_power``    q            the tuned constant is proportional to T^q
==================  ===========  ========================================================

The bounds (Thm. 6.2, Eq. 56) are for KernelUCB with CMM, DMM or AMM. DMM needs a grid that contains
the ridge, and AMM must use it. Only the run's own information gain and count enter the proofs, so
either may be put in place of the maxima after the run. The rates (Propositions D.13 to D.16) leave
out the constants, which the bounds have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import LARGEST, Array, as_flag, as_numbers, as_scalar, brief, check_shapes
from kernelbounds.bounds import Assumptions
from kernelbounds.errors import InputError
from kernelbounds.kernels import checked_kernel, smoothness
from kernelbounds.mixtures import Single
from kernelbounds.theory.eigendecay import (
    Decay,
    decay_exponent,
    information_gain_bound,
    potential_count_bound_under,
)


def largest_value(norm_bound: float, kernel_bound: float) -> float:
    """Return C = sqrt(kappa) B, by Cauchy-Schwarz (Sec. 6 has kappa B).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.largest_value(norm_bound=3.0, kernel_bound=4.0)
    6.0
    """
    B = as_scalar(norm_bound, "norm_bound", least=0.0)
    return B * math.sqrt(as_scalar(kernel_bound, "kernel_bound", above=0.0))


def radius_bound(assumptions: Assumptions, gain: ArrayLike) -> Array:
    """Bound the radius R~ at the ridge sigma^2/c (Eq. 17).

    The bound is sqrt(2 sigma^2 gamma + sigma^2 B^2/c + 2 sigma^2 ln(1/delta)). With another mixture
    than the paper's, its price is added to 2 ln(1/delta), as in :func:`regret_bound`.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds import theory
    >>> known = kb.Assumptions(norm_bound=3.0, noise_scale=0.1, delta=0.01)
    >>> theory.radius_bound(known, gain=[1.0, 5.0]).round(3)
    array([0.689, 0.745])
    """
    a = _noisy(assumptions)
    gamma = as_numbers(gain, "gain", positive=False)
    inside = 2 * gamma + a.norm_bound**2 / a.mixture_scale + log_level(a)
    return np.asarray(a.noise_scale * np.sqrt(inside))


def regret_bound(
    assumptions: Assumptions,
    rounds: ArrayLike,
    gain: ArrayLike,
    count: ArrayLike,
    value_bound: float,
) -> Array:
    """Bound the regret with probability 1 - delta, for all T at once (Thm. 6.2).

    The bound is 2 C tau_T + sigma sqrt(24 T gamma_T (gamma_T + B^2/(2 c) + ln(1/delta))).

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds import theory
    >>> known = kb.Assumptions(norm_bound=3.0, noise_scale=0.1, delta=0.01)
    >>> found = theory.regret_bound(
    ...     known, [10, 100], gain=[4.0, 6.0], count=[3, 4], value_bound=3.0
    ... )
    >>> found.round(1)
    array([34. , 88.4])
    """
    a = _noisy(assumptions)
    T, _, gamma, tau = _numbers_of_run(rounds, 1.0, gain, count)
    C = as_scalar(value_bound, "value_bound", least=0.0)
    return _with_noise(a, np.asarray(a.mixture_scale), T, gamma, 2 * C * tau)


def noiseless_regret_bound(
    norm_bound: float,
    rounds: ArrayLike,
    ridge: ArrayLike,
    gain: ArrayLike,
    count: ArrayLike,
    value_bound: float,
) -> Array:
    """Bound the regret without noise, at any ridge alpha > 0 (Eq. 56).

    The bound is 2 C tau_T(alpha) + sqrt(12 alpha B^2 T gamma_T(alpha)).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> found = theory.noiseless_regret_bound(
    ...     3.0, [10, 100], ridge=0.01, gain=[4.0, 6.0], count=[3, 4], value_bound=3.0
    ... )
    >>> found.round(1)
    array([24.6, 49.5])
    """
    T, alpha, gamma, tau = _numbers_of_run(rounds, ridge, gain, count)
    B = as_scalar(norm_bound, "norm_bound", least=0.0)
    C = as_scalar(value_bound, "value_bound", least=0.0)
    return np.asarray(2 * C * tau + B * np.sqrt(12 * alpha * T * gamma))


def regret_bound_under(
    decay: Decay,
    norm_bound: float,
    noise_scale: float,
    delta: float,
    rounds: ArrayLike,
    mixture_scale: ArrayLike = 1.0,
) -> Array:
    """Bound the regret explicitly in T, by Thm. 6.2 with Lemmas D.3, D.10 and D.11.

    c may depend on T, as an array.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.ExponentialDecay(constant=1.0, rate=1.0, exponent=1.0)
    >>> found = theory.regret_bound_under(
    ...     decay, norm_bound=3.0, noise_scale=0.1, delta=0.01, rounds=[100, 10_000]
    ... )
    >>> found.round(0)
    array([ 1498., 34048.])
    """
    T = as_rounds(rounds)
    a = _noisy(Assumptions(norm_bound, noise_scale, delta, Single()))
    c = as_numbers(mixture_scale, "mixture_scale")
    check_shapes(rounds=T, mixture_scale=c)
    ridge = a.noise_scale**2 / c
    gamma = information_gain_bound(decay, T, ridge)
    tau = np.minimum(T, potential_count_bound_under(decay, ridge))
    C = largest_value(a.norm_bound, decay.kernel_bound)
    return _with_noise(a, c, T, gamma, 2 * C * tau)


def noiseless_regret_bound_under(
    decay: Decay, norm_bound: float, rounds: ArrayLike, ridge: ArrayLike
) -> Array:
    """Bound the regret without noise explicitly in T, by Eq. (56) with Lemmas D.3, D.10, D.11.

    The ridge may depend on T, as an array.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.ExponentialDecay(constant=1.0, rate=1.0, exponent=1.0)
    >>> found = theory.noiseless_regret_bound_under(
    ...     decay, norm_bound=3.0, rounds=[100, 10_000], ridge=[0.01, 0.0001]
    ... )
    >>> found.round(0)
    array([  739., 32972.])
    """
    gamma = information_gain_bound(decay, rounds, ridge)
    tau = np.minimum(rounds, potential_count_bound_under(decay, ridge))
    C = largest_value(norm_bound, decay.kernel_bound)
    return noiseless_regret_bound(norm_bound, rounds, ridge, gamma, tau, C)


def log_level(a: Assumptions) -> float:
    """Return 2 ln(1/delta) plus what the mixture adds to it in the paper's radius."""
    if math.isinf(a.mixture.excess_over_paper):
        raise InputError(f"no regret bound is known for the radius of {a.mixture}.")
    return a.mixture.excess_over_paper - 2 * math.log(a.delta)


def _numbers_of_run(
    rounds: ArrayLike, ridge: ArrayLike, gain: ArrayLike, count: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """Return T, alpha, gamma_T and tau_T as arrays that fit together."""
    T, alpha = as_rounds(rounds), as_numbers(ridge, "ridge")
    gamma, tau = (
        as_numbers(gain, "gain", positive=False),
        as_numbers(count, "count", positive=False),
    )
    check_shapes(rounds=T, ridge=alpha, gain=gamma, count=tau)
    return T, alpha, gamma, tau


def as_rounds(rounds: ArrayLike) -> Array:
    """Check numbers of rounds, which are at least 1."""
    return as_numbers(rounds, "rounds", least=1.0)


def _with_noise(a: Assumptions, c: Array, T: Array, gamma: Array, start: Array) -> Array:
    """Compute the bound of Thm. 6.2, in which ``start`` is 2 C tau_T."""
    inside = gamma + a.norm_bound**2 / (2 * c) + log_level(a) / 2
    return np.asarray(start + a.noise_scale * np.sqrt(24 * T * gamma * inside))


def checked_assumptions(assumptions: Assumptions) -> Assumptions:
    """Return the assumptions, if the theorems are about such; raise an error otherwise."""
    if not isinstance(assumptions, Assumptions):
        raise InputError(f"assumptions must be kernelbounds.Assumptions, got {brief(assumptions)}.")
    if assumptions.misspecification:
        raise InputError(
            "the theory is about functions of the kernel's space: misspecification must be 0, got "
            f"{assumptions.misspecification:g}."
        )
    law = assumptions.noise
    if assumptions.delta == 0 or not (law.scale_is_stated and law.is_sub_gaussian):
        raise InputError(
            "the theory is about sub-Gaussian noise of a stated scale and a positive delta, got "
            f"{law} with delta {assumptions.delta:g}."
        )
    return assumptions


def _noisy(assumptions: Assumptions) -> Assumptions:
    """Return the assumptions, if there is noise; other bounds are for those without."""
    if checked_assumptions(assumptions).noise_scale == 0:
        raise InputError(
            "noise_scale is 0: use noiseless_regret_bound, which holds at every ridge."
        )
    return assumptions


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
        """The exponent of T that a fit near T should show, power + log_power / ln T."""
        T = as_rounds(rounds)
        if np.any(T <= 1):
            raise InputError(f"rounds must be above 1 for a local exponent, got {brief(rounds)}.")
        return np.asarray(self.power + self.log_power / np.log(T))

    @property
    def below_root(self) -> bool:
        """Whether this grows more slowly than sqrt(T)."""
        return self.power < 0.5


def polynomial_rate(exponent: float) -> Rate:
    """The rate T^((beta_p + 3)/(2 beta_p + 2)) ln(T)^(1 - 1/beta_p) (Prop. D.13).

    c ~ T^(-1/(beta_p + 1)).

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
    """The rate sqrt(T) ln(T)^(1 + 1/beta_e), with c ~ 1 (Prop. D.14).

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
    """The rate T^((beta_p + 1)/(beta_p^2 + 1)) ln T without noise (Prop. D.15).

    alpha ~ T^((1 - beta_p^2)/(1 + beta_p^2)). The rate is below sqrt(T) for beta_p > 1 + sqrt(2).

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
    """The rate ln(T)^(1 + 1/beta_e) without noise, with alpha ~ 1/T (Prop. D.16 prints alpha ~ 1).

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
    """Return the proved rate for an RBF or Matern kernel in [0, 1]^dim.

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
