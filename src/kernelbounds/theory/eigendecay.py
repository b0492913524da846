"""How fast the eigenvalues of a kernel fall, and what follows for gains and potentials (App. D.2).

==========================  ===============  =================================================
code                        paper            meaning
==========================  ===============  =================================================
``constant``                C_p or C_e1      scale of the envelope
``rate``                    C_e2             speed of exponential decay
``exponent``                beta_p, beta_e   power of i in the envelope
``eigenfunction_bound``     psi              |phi_m(x)| <= psi for all m and x
``kernel_bound``            kappa            k(x, x) <= kappa for all x
``rounds``                  T                number of rounds; an array gives an array
``ridge``                   alpha            the ridge value; broadcast against ``rounds``
``directions``              D - 1            eigenfunctions worth telling apart, less one
``threshold``               b                a potential of at least b^2 counts as large
``per_gain``                1/ln(1 + b^2)    large potentials per unit of ln det
==========================  ===============  =================================================

Eigenvalues and eigenfunctions are those of k(x, y) = sum_m xi_m phi_m(x) phi_m(y) with phi_m
orthonormal under some measure on the domain, xi_1 >= xi_2 >= ... The two classes of decay are those
of Definition D.2.

Bounds on the information gain (Lemma D.3, after Vakili et al. 2021) follow, by a choice of D, from
gamma_T <= (D/2) ln(1 + kappa T/(alpha D)) + T psi^2 sum_{m > D} xi_m/(2 alpha), which holds for
every D. Bounds on the number of large potentials follow from these and do not depend on T; the
letters A to F of their components are those of Lemma D.11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, as_numbers, as_scalar, as_whole, brief, check_shapes
from kernelbounds.errors import InputError
from kernelbounds.kernels import checked_kernel, smoothness
from kernelbounds.theory.information_gain import as_threshold


@dataclass(frozen=True)
class PolynomialDecay:
    """Polynomial decay of eigenvalues: xi_i <= C_p i^(-beta_p) with C_p > 0 and beta_p > 1.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.PolynomialDecay(constant=1.0, exponent=3.0)
    >>> decay.envelope([1, 2, 4])
    array([1.      , 0.125   , 0.015625])
    """

    constant: float
    exponent: float
    eigenfunction_bound: float = 1.0
    kernel_bound: float = 1.0

    def __post_init__(self) -> None:
        _check(self, exponent={"above": 1.0})

    def envelope(self, index: ArrayLike) -> Array:
        """Compute C_p i^(-beta_p), for i = 1, 2, ..."""
        i = as_numbers(index, "index", least=1.0)
        return np.asarray(self.constant * i**-self.exponent)

    @property
    def tail_constant(self) -> float:
        """The number C = C_p max(1, 1/(beta_p - 1)): sum_{m > D} xi_m <= C D^(1 - beta_p).

        The sum is at most the integral of C_p z^(-beta_p) from D, which is
        C_p D^(1 - beta_p)/(beta_p - 1). Lemma D.3 has C_p alone, which is right for
        beta_p >= 2 only.
        """
        return self.constant * max(1.0, 1 / (self.exponent - 1))

    def _directions(self, T: Array, alpha: Array, log_term: Array) -> Array:
        """(C psi^2 T/(alpha ln(1 + kappa T/alpha)))^(1/beta_p), Eq. (32)."""
        scaled = self.tail_constant * self.eigenfunction_bound**2 * T / alpha
        return np.asarray((scaled / log_term) ** (1 / self.exponent))

    def _count_components(self, alpha: Array, per_gain: float) -> dict[str, Array]:
        """Bound tau <= A ln(1 + kappa tau/alpha), with one A or the other, by Cor. D.6.

        The second A is (4/ln(1 + b^2))^(beta/(beta - 1)) (C psi^2/alpha)^(1/(beta - 1)). Cor. D.6
        puts e/(e - 1) outside the power; the print has it inside, which is larger.
        """
        p = 1 / (self.exponent - 1)
        spread = self.tail_constant * self.eigenfunction_bound**2 / alpha
        power = (4 * per_gain) ** (1 + p) * spread**p
        return {
            "logarithmic": solve_log1p(4 * per_gain, self.kernel_bound / alpha),
            "polynomial": solve_log1p(power, self.kernel_bound / alpha),
        }


@dataclass(frozen=True)
class ExponentialDecay:
    """Exponential decay of eigenvalues: xi_i <= C_e1 exp(-C_e2 i^beta_e), 0 < beta_e <= 1.

    C_e1 and C_e2 are positive.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.ExponentialDecay(constant=1.0, rate=1.0, exponent=1.0)
    >>> decay.envelope([1, 2, 4]).round(3)
    array([0.368, 0.135, 0.018])
    """

    constant: float
    rate: float
    exponent: float
    eigenfunction_bound: float = 1.0
    kernel_bound: float = 1.0

    def __post_init__(self) -> None:
        _check(self, rate={"above": 0.0}, exponent={"above": 0.0, "most": 1.0})

    def envelope(self, index: ArrayLike) -> Array:
        """Compute C_e1 exp(-C_e2 i^beta_e), for i = 1, 2, ..."""
        i = as_numbers(index, "index", least=1.0)
        return np.asarray(self.constant * np.exp(-self.rate * i**self.exponent))

    @property
    def shape_term(self) -> float:
        """C~_beta = p (ln(2 p/C_e2) - 1) with p = 1/beta_e - 1; 0 for beta_e = 1 (Lemma D.11)."""
        p = 1 / self.exponent - 1
        return float(p * (np.log(2 * p / self.rate) - 1)) if p > 0 else 0.0

    @property
    def growth(self) -> float:
        """The number G for which the first logarithm in C_beta of Lemma D.3 is ln(G/alpha).

        C_e1 psi^2/C_e2 for beta_e = 1, and 2 C_e1 psi^2/(beta_e C_e2) below.
        """
        scale = self.constant * self.eigenfunction_bound**2 / self.rate
        return scale if self.exponent == 1 else 2 * scale / self.exponent

    def _directions(self, T: Array, alpha: Array, log_term: Array) -> Array:
        """((2/C_e2) (ln T + C_beta))^(1/beta_e), Eq. (33); ``log_term`` is not used."""
        bracket = np.log(T * self.growth / alpha) + self.shape_term
        return np.asarray((2 / self.rate * np.maximum(bracket, 0.0)) ** (1 / self.exponent))

    def _count_components(self, alpha: Array, per_gain: float) -> dict[str, Array]:
        """Return the components of Lemma D.11, by what decides the bound in each case.

        A: ln T + C_beta <= 0. B: there are few directions. C and D: kappa. E: G. F: C~_beta.
        """
        kappa, beta, shape = self.kernel_bound, self.exponent, self.shape_term
        # For beta_e < 1, bounding ln(G tau/alpha) + C~_beta by 2 ln(G tau/alpha) doubles the
        # 2/C_e2.
        width = (2 if beta == 1 else 4) / self.rate
        scale = 4 * per_gain * width ** (1 / beta)
        found = {
            "A": alpha * math.exp(min(-shape, 600.0)) / self.growth,
            "B": solve_log1p(4 * per_gain, kappa / alpha),
            "C": np.full_like(alpha, scale * math.log(2) ** (1 + 1 / beta)),
            "D": _power_of_log(scale, 2 * kappa / alpha, beta),
            "E": _power_of_log(scale, self.growth / alpha, beta),
        }
        if beta < 1:
            few = (4 * max(shape, 0.0) / self.rate) ** (1 / beta) + 1
            bound = solve_log1p(2 * per_gain * few, kappa / alpha)
            found["F"] = bound if shape >= 0 else np.zeros_like(bound)
        return found


Decay = PolynomialDecay | ExponentialDecay


def decay_exponent(kernel: Kernel, dim: int) -> float:
    """Return beta_p = (2 nu + d)/d for a Matern kernel, beta_e = 1/d for RBF (App. D.4).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from kernelbounds import theory
    >>> theory.decay_exponent(Matern(0.3, nu=2.5), dim=2)
    3.5
    """
    nu = smoothness(checked_kernel(kernel))
    d = as_whole(dim, "dim", least=1)
    return 1 / d if np.isinf(nu) else (2 * nu + d) / d


def _check(decay: Decay, **more: dict[str, float]) -> None:
    """Replace the fields of a decay by checked floats."""
    names = ("constant", "eigenfunction_bound", "kernel_bound")
    limits: dict[str, dict[str, float]] = {name: {"above": 0.0} for name in names} | more
    for name, limit in limits.items():
        object.__setattr__(decay, name, as_scalar(getattr(decay, name), name, **limit))


def information_gain_bound(decay: Decay, rounds: ArrayLike, ridge: ArrayLike) -> Array:
    """Bound the information gain: gamma_T(alpha) <= (directions + 1) ln(1 + kappa T/alpha).

    Polynomial decay, Eq. (32): directions = (C psi^2 T/(alpha ln(1 + kappa T/alpha)))^(1/beta_p),
    where C = C_p max(1, 1/(beta_p - 1)) and not C_p, see
    :attr:`~kernelbounds.theory.PolynomialDecay.tail_constant`.

    Exponential decay, Eq. (33): directions = ((2/C_e2) (ln T + C_beta))^(1/beta_e), with
    C_beta = ln(C_e1 psi^2/(alpha C_e2)) for beta_e = 1 and
    ln(2 C_e1 psi^2/(alpha beta_e C_e2)) + C~_beta below. Where the bracket is negative it counts as
    0, as D = 0 is then a valid choice; the print does not say so.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.ExponentialDecay(constant=1.0, rate=1.0, exponent=1.0)
    >>> theory.information_gain_bound(decay, [10, 100, 1000], ridge=0.1).round(1)
    array([ 47.1, 102.4, 178.9])
    """
    T, alpha = as_numbers(rounds, "rounds", least=1.0), as_numbers(ridge, "ridge")
    check_shapes(rounds=T, ridge=alpha)
    log_term = np.log1p(decay_checked(decay).kernel_bound * T / alpha)
    return np.asarray((decay._directions(T, alpha, log_term) + 1) * log_term)


def decay_checked(decay: Decay) -> Decay:
    """Return a decay, or refuse any other object."""
    if not isinstance(decay, PolynomialDecay | ExponentialDecay):
        raise InputError(
            f"decay must be a PolynomialDecay or ExponentialDecay, got {brief(decay)}."
        )
    return decay


INVERSION_FACTOR = math.e / (math.e - 1)  # the factor of Lemma D.7 at eta = 1/e


def solve_log1p(a: ArrayLike, b: ArrayLike) -> Array:
    """Bound X by e/(e - 1) A ln(1 + A B), given that X <= A ln(1 + B X) (Cor. D.6).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.solve_log1p(2.0, [0.1, 10.0]).round(3)
    array([0.577, 9.633])
    """
    A, B = _factors(a, b)
    return np.asarray(INVERSION_FACTOR * A * np.log1p(A * B))


def solve_log(a: ArrayLike, b: ArrayLike) -> Array:
    """Bound X by e/(e - 1) A ln(A B), given that X <= A ln(B X) (Lemma D.7 at eta = 1/e).

    Where A B < 1 no X > 0 satisfies the premise, and this is 0.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.solve_log(2.0, [0.1, 10.0]).round(3)
    array([0.   , 9.478])
    """
    A, B = _factors(a, b)
    return np.asarray(INVERSION_FACTOR * A * np.log(np.maximum(A * B, 1.0)))


def _factors(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    A, B = (as_numbers(v, name, positive=False) for v, name in ((a, "a"), (b, "b")))
    check_shapes(a=A, b=B)
    return A, B


def potential_count_bound_under(decay: Decay, ridge: ArrayLike, threshold: float = 1.0) -> Array:
    """Bound tau_T(alpha) for all T by the largest of the components (Lemmas D.10 and D.11).

    No potential exceeds kappa/alpha, so the count is 0 for alpha > kappa/b^2. (The print has
    alpha >= kappa/b^2; but at equality the first potential can be b^2, and counts.)

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.ExponentialDecay(constant=1.0, rate=1.0, exponent=1.0)
    >>> theory.potential_count_bound_under(decay, [0.01, 0.1, 2.0]).round(1)
    array([2408. , 1346.6,    0. ])
    """
    alpha, b = as_numbers(ridge, "ridge"), as_threshold(threshold)
    largest = np.max(list(count_components(decay, alpha, b).values()), axis=0)
    return np.where(alpha > decay.kernel_bound / b**2, 0.0, largest)


def count_components(decay: Decay, ridge: ArrayLike, threshold: float = 1.0) -> dict[str, Array]:
    """Return the components of :func:`potential_count_bound_under` by name, arrays like ``ridge``.

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
    alpha, b = as_numbers(ridge, "ridge"), as_threshold(threshold)
    return decay_checked(decay)._count_components(alpha, 1 / math.log1p(b**2))


def _power_of_log(scale: float, inside: Array, beta: float) -> Array:
    """Bound tau, given that tau <= scale ln(inside tau)^(1 + 1/beta), by Lemma D.7.

    With s = beta/(1 + beta), X = tau^s is at most (scale^s/s) ln(inside^s X), and therefore at most
    e/(e - 1) (scale^s/s) ln((scale inside)^s/s).
    """
    s = beta / (1 + beta)
    return np.asarray(solve_log(scale**s / s, inside**s) ** (1 / s))
