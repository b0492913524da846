"""How many potentials can be large, under both decays: bounds free of T (App. D.2).

==============  ==================  ======================================================
code            paper               meaning
==============  ==================  ======================================================
``ridge``       alpha               the ridge value; an array gives an array
``threshold``   b                   a potential of at least b^2 counts as large
``per_gain``    1/ln(1 + b^2)       large potentials per unit of ln det
``growth``      G                   see :attr:`~kernelbounds.theory.ExponentialDecay.growth`
==============  ==================  ======================================================

The letters A to F of the components are those of Lemma D.11.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array
from kernelbounds.theory.checks import as_numbers, as_ridge, as_threshold, check_shapes
from kernelbounds.theory.eigendecay import Decay, ExponentialDecay, PolynomialDecay
from kernelbounds.theory.gain_bounds import decay_checked

FACTOR = math.e / (math.e - 1)


def solve_log1p(a: ArrayLike, b: ArrayLike) -> Array:
    """X <= A ln(1 + B X) implies X <= e/(e - 1) A ln(1 + A B) (Cor. D.6).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.solve_log1p(2.0, [0.1, 10.0]).round(3)
    array([0.577, 9.633])
    """
    A, B = _factors(a, b)
    return np.asarray(FACTOR * A * np.log1p(A * B))


def solve_log(a: ArrayLike, b: ArrayLike) -> Array:
    """X <= A ln(B X) implies X <= e/(e - 1) A ln(A B) (Lemma D.7 at eta = 1/e).

    Where A B < 1 no X > 0 satisfies the premise, and this is 0.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.solve_log(2.0, [0.1, 10.0]).round(3)
    array([0.   , 9.478])
    """
    A, B = _factors(a, b)
    return np.asarray(FACTOR * A * np.log(np.maximum(A * B, 1.0)))


def _factors(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    A, B = (as_numbers(v, name, positive=False) for v, name in ((a, "a"), (b, "b")))
    check_shapes(a=A, b=B)
    return A, B


def potential_count_bound_under(decay: Decay, ridge: ArrayLike, threshold: float = 1.0) -> Array:
    """tau_T(alpha) <= the largest of the components, for all T (Lemmas D.10 and D.11).

    No potential exceeds kappa/alpha, so the count is 0 for alpha > kappa/b^2. (The print has
    alpha >= kappa/b^2; but at equality the first potential can be b^2, and counts.)

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.ExponentialDecay(constant=1.0, rate=1.0, exponent=1.0)
    >>> theory.potential_count_bound_under(decay, [0.01, 0.1, 2.0]).round(1)
    array([2408. , 1346.6,    0. ])
    """
    alpha, b = as_ridge(ridge), as_threshold(threshold)
    largest = np.max(list(count_components(decay, alpha, b).values()), axis=0)
    return np.where(alpha > decay.kernel_bound / b**2, 0.0, largest)


def count_components(decay: Decay, ridge: ArrayLike, threshold: float = 1.0) -> dict[str, Array]:
    """The components of the bound by name, each an array like ``ridge``.

    Lemma D.10 has two, here "logarithmic" and "polynomial". Lemma D.11 has A to E, and F when
    beta_e < 1. A component whose case cannot occur is 0.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.PolynomialDecay(constant=1.0, exponent=3.0)
    >>> parts = theory.count_components(decay, ridge=0.1)
    >>> {name: round(float(value), 1) for name, value in parts.items()}
    {'logarithmic': 37.2, 'polynomial': 422.0}
    """
    alpha, b = as_ridge(ridge), as_threshold(threshold)
    per_gain = 1 / math.log1p(b**2)
    checked = decay_checked(decay)
    if isinstance(checked, PolynomialDecay):
        return _polynomial(checked, alpha, per_gain)
    return _exponential(checked, alpha, per_gain)


def _polynomial(decay: PolynomialDecay, alpha: Array, per_gain: float) -> dict[str, Array]:
    """tau <= A ln(1 + kappa tau/alpha), with one A or the other, then Cor. D.6.

    The second A is (4/ln(1 + b^2))^(beta/(beta - 1)) (C psi^2/alpha)^(1/(beta - 1)). Cor. D.6
    puts e/(e - 1) outside the power; the print has it inside, which is larger.
    """
    p = 1 / (decay.exponent - 1)
    spread = decay.tail_constant * decay.eigenfunction_bound**2 / alpha
    return {
        "logarithmic": solve_log1p(4 * per_gain, decay.kernel_bound / alpha),
        "polynomial": solve_log1p(
            (4 * per_gain) ** (1 + p) * spread**p, decay.kernel_bound / alpha
        ),
    }


def _exponential(decay: ExponentialDecay, alpha: Array, per_gain: float) -> dict[str, Array]:
    """A: ln T + C_beta <= 0. B: few directions. C, D: kappa decides. E: G decides. F: C~_beta."""
    kappa, beta, shape = decay.kernel_bound, decay.exponent, decay.shape_term
    # For beta_e < 1, bounding ln(G tau/alpha) + C~_beta by 2 ln(G tau/alpha) doubles the 2/C_e2.
    width = (2 if beta == 1 else 4) / decay.rate
    scale = 4 * per_gain * width ** (1 / beta)
    found = {
        "A": alpha * math.exp(min(-shape, 600.0)) / decay.growth,
        "B": solve_log1p(4 * per_gain, kappa / alpha),
        "C": np.full_like(alpha, scale * math.log(2) ** (1 + 1 / beta)),
        "D": _power_of_log(scale, 2 * kappa / alpha, beta),
        "E": _power_of_log(scale, decay.growth / alpha, beta),
    }
    if beta < 1:
        few = (4 * max(shape, 0.0) / decay.rate) ** (1 / beta) + 1
        bound = solve_log1p(2 * per_gain * few, kappa / alpha)
        found["F"] = bound if shape >= 0 else np.zeros_like(bound)
    return found


def _power_of_log(scale: float, inside: Array, beta: float) -> Array:
    """tau <= scale ln(inside tau)^(1 + 1/beta), by Lemma D.7 for X = tau^s, s = beta/(1 + beta).

    X <= (scale^s/s) ln(inside^s X), hence X <= e/(e - 1) (scale^s/s) ln((scale inside)^s/s).
    """
    s = beta / (1 + beta)
    return np.asarray(solve_log(scale**s / s, inside**s) ** (1 / s))
