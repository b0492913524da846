"""Bounds on the cumulative regret of KernelUCB with CMM, DMM or AMM (Thm. 6.2, Sec. 6.3).

==================  ==========  =========================================================
code                paper       meaning
==================  ==========  =========================================================
``rounds``          T           number of rounds; an array gives an array
``gain``            gamma_T     (bound on the) maximum information gain at the ridge
``count``           tau_T       (bound on the) number of potentials of at least 1
``value_bound``     C           |f*(x)| <= C; sqrt(kappa) B always does
``norm_bound``      B           ||f*|| <= B
``noise_scale``     sigma       the noise is sigma-sub-Gaussian
``mixture_scale``   c           of the mixture N(0, c K_t); the ridge is sigma^2/c
==================  ==========  =========================================================

DMM needs a grid that contains the ridge, and AMM must use it. Only the run's own information gain
and count enter the proofs, so either may be put in place of the maxima after the run.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, as_scalar, brief
from kernelbounds.bounds import Assumptions
from kernelbounds.errors import InputError
from kernelbounds.mixtures import Single
from kernelbounds.theory.checks import (
    as_numbers,
    as_ridge,
    as_rounds,
    check_in_space,
    check_shapes,
)
from kernelbounds.theory.count_bounds import potential_count_bound_under
from kernelbounds.theory.eigendecay import Decay
from kernelbounds.theory.gain_bounds import information_gain_bound


def largest_value(norm_bound: float, kernel_bound: float) -> float:
    """C = sqrt(kappa) B, by Cauchy-Schwarz. (Sec. 6 has kappa B.)

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.largest_value(norm_bound=3.0, kernel_bound=4.0)
    6.0
    """
    B = as_scalar(norm_bound, "norm_bound", least=0.0)
    return B * math.sqrt(as_scalar(kernel_bound, "kernel_bound", above=0.0))


def radius_bound(assumptions: Assumptions, gain: ArrayLike) -> Array:
    """R~ at the ridge sigma^2/c is at most
    sqrt(2 sigma^2 gamma + sigma^2 B^2/c + 2 sigma^2 ln(1/delta)), Eq. (17).

    With another mixture than the paper's, its price is added to 2 ln(1/delta), here and below.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds import theory
    >>> known = kb.Assumptions(norm_bound=3.0, noise_scale=0.1, delta=0.01)
    >>> theory.radius_bound(known, gain=[1.0, 5.0]).round(3)
    array([0.688, 0.744])
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
    """With probability 1 - delta, for all T at once (Thm. 6.2), the regret is at most

    2 C tau_T + sigma sqrt(24 T gamma_T (gamma_T + B^2/(2 c) + ln(1/delta))).

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds import theory
    >>> known = kb.Assumptions(norm_bound=3.0, noise_scale=0.1, delta=0.01)
    >>> found = theory.regret_bound(
    ...     known, [10, 100], gain=[4.0, 6.0], count=[3, 4], value_bound=3.0
    ... )
    >>> found.round(1)
    array([34. , 88.2])
    """
    a, T = _noisy(assumptions), as_rounds(rounds)
    gamma, tau = (
        as_numbers(v, name, positive=False) for v, name in ((gain, "gain"), (count, "count"))
    )
    check_shapes(rounds=T, gain=gamma, count=tau)
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
    """Without noise, at every ridge alpha > 0 (Eq. 56), the regret is at most

    2 C tau_T(alpha) + sqrt(12 alpha B^2 T gamma_T(alpha)).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> found = theory.noiseless_regret_bound(
    ...     3.0, [10, 100], ridge=0.01, gain=[4.0, 6.0], count=[3, 4], value_bound=3.0
    ... )
    >>> found.round(1)
    array([24.6, 49.5])
    """
    T, alpha = as_rounds(rounds), as_ridge(ridge)
    gamma, tau = (
        as_numbers(v, name, positive=False) for v, name in ((gain, "gain"), (count, "count"))
    )
    check_shapes(rounds=T, ridge=alpha, gain=gamma, count=tau)
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
    """Thm. 6.2 with Lemmas D.3, D.10 and D.11: explicit in T. c may depend on T, as an array.

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
    """Eq. (56) with Lemmas D.3, D.10 and D.11: explicit in T. The ridge may depend on T.

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
    T, alpha = as_rounds(rounds), as_ridge(ridge)
    gamma = information_gain_bound(decay, T, alpha)
    tau = np.minimum(T, potential_count_bound_under(decay, alpha))
    C = largest_value(norm_bound, decay.kernel_bound)
    return noiseless_regret_bound(norm_bound, T, alpha, gamma, tau, C)


def log_level(a: Assumptions) -> float:
    """2 ln(1/delta), and what the mixture costs on top of the paper's."""
    if math.isinf(a.mixture.price):
        raise InputError(f"no regret bound is known for the radius of {a.mixture}.")
    return a.mixture.price - 2 * math.log(a.delta)


def _with_noise(a: Assumptions, c: Array, T: Array, gamma: Array, start: Array) -> Array:
    inside = gamma + a.norm_bound**2 / (2 * c) + log_level(a) / 2
    return np.asarray(start + a.noise_scale * np.sqrt(24 * T * gamma * inside))


def _noisy(assumptions: Assumptions) -> Assumptions:
    if not isinstance(assumptions, Assumptions):
        raise InputError(f"assumptions must be kernelbounds.Assumptions, got {brief(assumptions)}.")
    check_in_space(assumptions)
    if assumptions.noise_scale == 0:
        raise InputError(
            "noise_scale is 0: use noiseless_regret_bound, which holds at every ridge."
        )
    return assumptions
