"""The maximum information gain under both decays (Lemma D.3, after Vakili et al. 2021).

============  ==============  ==========================================================
code          paper           meaning
============  ==============  ==========================================================
``rounds``    T               number of rounds; an array gives an array
``ridge``     alpha           the ridge value; broadcast against ``rounds``
``log_term``  ln(1 + kappa T/alpha)
``directions``                eigenfunctions worth telling apart, the paper's D less one
============  ==============  ==========================================================

Both follow from gamma_T <= (D/2) ln(1 + kappa T/(alpha D)) + T psi^2 sum_{m > D} xi_m/(2 alpha),
which holds for every D, by a choice of D.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, brief
from kernelbounds.errors import InputError
from kernelbounds.theory.checks import as_ridge, as_rounds, check_shapes
from kernelbounds.theory.eigendecay import Decay, ExponentialDecay, PolynomialDecay


def information_gain_bound(decay: Decay, rounds: ArrayLike, ridge: ArrayLike) -> Array:
    """gamma_T(alpha) <= (directions + 1) ln(1 + kappa T/alpha).

    Polynomial decay, Eq. (32): directions = (C psi^2 T/(alpha ln(1 + kappa T/alpha)))^(1/beta_p),
    where C = C_p max(1, 1/(beta_p - 1)) and not C_p, see
    :attr:`~kernelbounds.theory.PolynomialDecay.tail_constant`.

    Exponential decay, Eq. (33): directions = ((2/C_e2) (ln T + C_beta))^(1/beta_e), with
    C_beta = ln(C_e1 psi^2/(alpha C_e2)) for beta_e = 1 and
    ln(2 C_e1 psi^2/(alpha beta_e C_e2)) + C~_beta below. The bracket counts as 0 where it is
    negative, which the print does not say: D = 0 then does.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.ExponentialDecay(constant=1.0, rate=1.0, exponent=1.0)
    >>> theory.information_gain_bound(decay, [10, 100, 1000], ridge=0.1).round(1)
    array([ 47.1, 102.4, 178.9])
    """
    T, alpha = as_rounds(rounds), as_ridge(ridge)
    check_shapes(rounds=T, ridge=alpha)
    log_term = np.log1p(decay_checked(decay).kernel_bound * T / alpha)
    return np.asarray((_directions(decay, T, alpha, log_term) + 1) * log_term)


def decay_checked(decay: Decay) -> Decay:
    """Refuse what is not a decay."""
    if not isinstance(decay, PolynomialDecay | ExponentialDecay):
        raise InputError(
            f"decay must be a PolynomialDecay or ExponentialDecay, got {brief(decay)}."
        )
    return decay


def _directions(decay: Decay, T: Array, alpha: Array, log_term: Array) -> Array:
    if isinstance(decay, PolynomialDecay):
        scaled = decay.tail_constant * decay.eigenfunction_bound**2 * T / alpha
        return np.asarray((scaled / log_term) ** (1 / decay.exponent))
    bracket = np.log(T * decay.growth / alpha) + decay.shape_term
    return np.asarray((2 / decay.rate * np.maximum(bracket, 0.0)) ** (1 / decay.exponent))
