"""Numerical eigenvalues of a kernel on the unit cube, and envelopes above them.

==========================  ========  =====================================================
code                        paper     meaning
==========================  ========  =====================================================
``eigenvalues``             xi_m      falling, of the integral operator on [0, 1]^d
``eigenfunction_bound``     psi       largest |phi_m| found: an estimate from below
``kernel_bound``            kappa     largest k(x, x) found
==========================  ========  =====================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_numbers, as_scalar, as_whole, brief
from kernelbounds.errors import InputError
from kernelbounds.theory.eigendecay import (
    Decay,
    ExponentialDecay,
    PolynomialDecay,
    decay_checked,
    decay_exponent,
)

SMALLEST_EIGENVALUE = 1e-12  # relative to the largest; below, there are rounding errors only


@dataclass(frozen=True)
class Spectrum:
    """The first eigenvalues of a kernel under the uniform measure on [0, 1]^d.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> spectrum = theory.nystrom_spectrum(RBF(0.3), dim=1, count=8, points=64)
    >>> len(spectrum.eigenvalues), round(spectrum.kernel_bound, 3)
    (8, 1.0)
    """

    eigenvalues: Array
    eigenfunction_bound: float
    kernel_bound: float


def nystrom_spectrum(kernel: Kernel, dim: int, count: int = 64, points: int = 1024) -> Spectrum:
    """Compute eigenvalues of K/n at n quasi-random points, which tend to those of the operator.

    With K/n = U diag(xi) U', the eigenfunctions at the points are sqrt(n) U. At most ``count``
    eigenvalues are returned, and none that double precision cannot resolve. Those far below the
    first are less accurate; take ``points`` well above ``count``.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> spectrum = theory.nystrom_spectrum(RBF(0.3), dim=1, count=8, points=64)
    >>> spectrum.eigenvalues[:3].round(3)
    array([0.59 , 0.29 , 0.094])
    """
    k = kernels.checked_kernel(kernel)
    d, m = (as_whole(v, name, least=1) for v, name in ((dim, "dim"), (count, "count")))
    n = 2 ** int(np.ceil(np.log2(as_whole(points, "points", least=2))))
    if m > n:
        raise InputError(f"count must be at most points, got {m} of {n}.")
    X = sobol(n, d)
    values, vectors = np.linalg.eigh(kernels.cross(k, X, X) / n)
    values, vectors = values[::-1][:m], vectors[:, ::-1][:, :m]
    kept = values > SMALLEST_EIGENVALUE * values[0]
    return Spectrum(
        values[kept],
        float(np.sqrt(n) * np.abs(vectors[:, kept]).max()),
        float(kernels.diagonal(k, X).max()),
    )


def sobol(count: int, dim: int) -> Array:
    """Return the first points of Sobol's sequence, at the middle of their cells; (count, dim)."""
    if dim > qmc.Sobol.MAXDIM:
        raise InputError(f"dim must be at most {qmc.Sobol.MAXDIM}, got {dim}.")
    size = 2 ** int(np.ceil(np.log2(count)))
    found = qmc.Sobol(dim, scramble=False).random(size)
    return np.asarray((found + 0.5 / size)[:count], dtype=np.float64)


def polynomial_envelope(spectrum: Spectrum, exponent: float) -> PolynomialDecay:
    """Fit the smallest C_p with xi_i <= C_p i^(-beta_p) for all eigenvalues given.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from kernelbounds import theory
    >>> spectrum = theory.nystrom_spectrum(Matern(0.3, nu=1.5), dim=1, count=8, points=64)
    >>> decay = theory.polynomial_envelope(spectrum, exponent=4.0)
    >>> theory.is_above(decay, spectrum.eigenvalues)
    True
    """
    values = _eigenvalues(spectrum)
    power = np.arange(1, len(values) + 1) ** as_scalar(exponent, "exponent", above=1.0)
    constant = float((values * power).max())
    return PolynomialDecay(constant, exponent, spectrum.eigenfunction_bound, spectrum.kernel_bound)


def exponential_envelope(spectrum: Spectrum, exponent: float) -> ExponentialDecay:
    """Fit C_e2 by least squares on ln xi_i, then the smallest C_e1 that is above them all.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> spectrum = theory.nystrom_spectrum(RBF(0.3), dim=1, count=8, points=64)
    >>> decay = theory.exponential_envelope(spectrum, exponent=1.0)
    >>> round(decay.rate, 2)
    1.67
    """
    values = _eigenvalues(spectrum)
    beta = as_scalar(exponent, "exponent", above=0.0, most=1.0)
    power = np.arange(1, len(values) + 1) ** beta
    if len(values) < 2:
        raise InputError("an exponential envelope needs at least two eigenvalues.")
    rate = -float(np.polyfit(power, np.log(values), 1)[0])
    if rate <= 0:
        raise InputError("the eigenvalues do not fall.")
    constant = float(np.exp((np.log(values) + rate * power).max()))
    return ExponentialDecay(
        constant, rate, beta, spectrum.eigenfunction_bound, spectrum.kernel_bound
    )


def fitted_decay(kernel: Kernel, dim: int, count: int = 64, points: int = 1024) -> Decay:
    """Fit the envelope with the known exponent of an RBF or Matern kernel above its spectrum.

    Its constants are numerical: right for the eigenvalues computed, and taken on trust beyond.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from kernelbounds import theory
    >>> decay = theory.fitted_decay(Matern(0.3, nu=1.5), dim=1, count=8, points=64)
    >>> f"constant {decay.constant:.2f}, exponent {decay.exponent:g}"
    'constant 13.49, exponent 4'
    """
    exponent = decay_exponent(kernel, dim)
    spectrum = nystrom_spectrum(kernel, dim, count, points)
    if np.isinf(kernels.smoothness(kernel)):
        return exponential_envelope(spectrum, exponent)
    return polynomial_envelope(spectrum, exponent)


def is_above(decay: Decay, eigenvalues: ArrayLike) -> bool:
    """Tell whether an envelope is above some eigenvalues, given in falling order.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> decay = theory.PolynomialDecay(constant=1.0, exponent=3.0)
    >>> theory.is_above(decay, [0.9, 0.1, 0.01])
    True
    >>> theory.is_above(decay, [0.9, 0.2, 0.01])
    False
    """
    values = as_numbers(eigenvalues, "eigenvalues", positive=False)
    if values.ndim != 1:
        raise InputError(f"eigenvalues must be a 1-D array, got shape {values.shape}.")
    envelope = decay_checked(decay).envelope(np.arange(1, len(values) + 1))
    return bool(np.all(values <= envelope * (1 + 1e-12)))


def _eigenvalues(spectrum: Spectrum) -> Array:
    if not isinstance(spectrum, Spectrum):
        raise InputError(f"spectrum must be a Spectrum, got {brief(spectrum)}.")
    values = as_numbers(spectrum.eigenvalues, "eigenvalues")
    if values.ndim != 1 or not values.size:
        raise InputError(f"a spectrum needs a 1-D array of eigenvalues, got shape {values.shape}.")
    return values
