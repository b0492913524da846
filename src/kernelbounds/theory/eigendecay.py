"""How fast the eigenvalues of a kernel fall: the two classes of Definition D.2.

==========================  ===============  =================================================
code                        paper            meaning
==========================  ===============  =================================================
``constant``                C_p or C_e1      scale of the envelope
``rate``                    C_e2             speed of exponential decay
``exponent``                beta_p, beta_e   power of i in the envelope
``eigenfunction_bound``     psi              |phi_m(x)| <= psi for all m and x
``kernel_bound``            kappa            k(x, x) <= kappa for all x
==========================  ===============  =================================================

Eigenvalues and eigenfunctions are those of k(x, y) = sum_m xi_m phi_m(x) phi_m(y) with phi_m
orthonormal under some measure on the domain, xi_1 >= xi_2 >= ...
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, as_scalar, as_whole
from kernelbounds.kernels import checked_kernel, smoothness
from kernelbounds.theory.checks import as_numbers


@dataclass(frozen=True)
class PolynomialDecay:
    """xi_i <= C_p i^(-beta_p) with C_p > 0 and beta_p > 1.

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
        """C_p i^(-beta_p), for i = 1, 2, ..."""
        i = as_numbers(index, "index", least=1.0)
        return np.asarray(self.constant * i**-self.exponent)

    @property
    def tail_constant(self) -> float:
        """C with sum_{m > D} xi_m <= C D^(1 - beta_p): C_p max(1, 1/(beta_p - 1)).

        The sum is at most the integral of C_p z^(-beta_p) from D, which is
        C_p D^(1 - beta_p)/(beta_p - 1). Lemma D.3 has C_p alone, which is right for
        beta_p >= 2 only.
        """
        return self.constant * max(1.0, 1 / (self.exponent - 1))


@dataclass(frozen=True)
class ExponentialDecay:
    """xi_i <= C_e1 exp(-C_e2 i^beta_e) with C_e1, C_e2 > 0 and 0 < beta_e <= 1.

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
        """C_e1 exp(-C_e2 i^beta_e), for i = 1, 2, ..."""
        i = as_numbers(index, "index", least=1.0)
        return np.asarray(self.constant * np.exp(-self.rate * i**self.exponent))

    @property
    def shape_term(self) -> float:
        """C~_beta = p (ln(2 p/C_e2) - 1) with p = 1/beta_e - 1; 0 for beta_e = 1 (Lemma D.11)."""
        p = 1 / self.exponent - 1
        return float(p * (np.log(2 * p / self.rate) - 1)) if p > 0 else 0.0

    @property
    def growth(self) -> float:
        """G, such that the first logarithm in C_beta of Lemma D.3 is ln(G/alpha).

        C_e1 psi^2/C_e2 for beta_e = 1, and 2 C_e1 psi^2/(beta_e C_e2) below.
        """
        scale = self.constant * self.eigenfunction_bound**2 / self.rate
        return scale if self.exponent == 1 else 2 * scale / self.exponent


Decay = PolynomialDecay | ExponentialDecay


def decay_exponent(kernel: Kernel, dim: int) -> float:
    """beta_p = (2 nu + d)/d of a Matern kernel, beta_e = 1/d of the RBF kernel (App. D.4).

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
    names = ("constant", "eigenfunction_bound", "kernel_bound")
    limits: dict[str, dict[str, float]] = {name: {"above": 0.0} for name in names} | more
    for name, limit in limits.items():
        object.__setattr__(decay, name, as_scalar(getattr(decay, name), name, **limit))
