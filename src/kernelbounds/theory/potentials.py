"""Elliptical potentials along a run, and how many of them are large (Sec. 6.2, App. D.2).

==============  ========================  ==================================================
code            paper                     meaning
==============  ========================  ==================================================
``potentials``  rho^2_alpha,t-1(x_t)/     how surprising the point of each round was, (T,)
                alpha
``threshold``   b                         a potential of at least b^2 counts as large
``counts``      tau_t(alpha)              the number of large ones among the first t, (T,)
==============  ========================  ==================================================
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_points, as_scalar
from kernelbounds.engine.run_pass import RunPass, along_run
from kernelbounds.errors import InputError
from kernelbounds.theory.checks import as_numbers, as_threshold


def run_of(kernel: Kernel, X: ArrayLike, ridge: float) -> RunPass:
    """Variances and log-determinants along the points X, (T, d), in their order."""
    k = kernels.checked_kernel(kernel)
    points = as_points(X, "X")
    gram = kernels.cross(k, points, points)
    np.fill_diagonal(gram, kernels.diagonal(k, points))
    return along_run(gram, as_scalar(ridge, "ridge", above=0.0))


def elliptical_potentials(kernel: Kernel, X: ArrayLike, ridge: float) -> Array:
    """rho^2_alpha,t-1(x_t)/alpha for t = 1 .. T.

    Their ln(1 + .) add up to ln det(I + K_T/alpha) (Lemma D.8).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> theory.elliptical_potentials(RBF(0.3), [[0.1], [0.5], [0.9]], ridge=0.1).round(2)
    array([10.  ,  8.46,  8.3 ])
    """
    run = run_of(kernel, X, ridge)
    return np.asarray(run.variances / run.ridge)


def potential_counts(kernel: Kernel, X: ArrayLike, ridge: float, threshold: float = 1.0) -> Array:
    """tau_t(alpha): rounds s <= t whose potential is at least b^2, Eq. (16), for t = 1 .. T.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> theory.potential_counts(RBF(0.3), [[0.1], [0.5], [0.5]], ridge=0.1)
    array([1., 2., 2.])
    """
    b = as_threshold(threshold)
    return np.cumsum(elliptical_potentials(kernel, X, ridge) >= b**2).astype(np.float64)


def potential_sum_bound(gain: ArrayLike) -> Array:
    """sum_t min(1, potential) <= (3/2) ln det(I + K_T/alpha) = 3 gain (Lemma D.4).

    ``gain`` is the information gain (1/2) ln det of the run, or any upper bound on it. Printed
    with 3/2; since min(1, v) <= ln(1 + v)/ln 2 the factor 1/ln 2 = 1.4427 would do.

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.potential_sum_bound([1.0, 2.0])
    array([3., 6.])
    """
    return 3.0 * as_numbers(gain, "gain", positive=False)


def potential_count_bound(gain: ArrayLike, threshold: float = 1.0) -> Array:
    """tau <= 2 gamma / ln(1 + b^2) (Lemma D.9, the second inequality).

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.potential_count_bound([1.0, 2.0]).round(2)
    array([2.89, 5.77])
    """
    b = as_threshold(threshold)
    return 2 * as_numbers(gain, "gain", positive=False) / math.log1p(b**2)


def self_consistent_counts(gains: ArrayLike, threshold: float = 1.0) -> Array:
    """For T = 1, 2, ..., the largest n <= T with n <= 2 gamma_n / ln(1 + b^2) (Lemma D.9).

    By its first inequality no run of T rounds has more large potentials than this. ``gains`` are
    upper bounds on gamma_n for n = 1, 2, ...

    Examples
    --------
    >>> from kernelbounds import theory
    >>> theory.self_consistent_counts([0.9, 1.1, 1.2, 1.25, 1.3])
    array([1., 2., 3., 3., 3.])
    """
    bounds = np.atleast_1d(potential_count_bound(gains, threshold))
    if bounds.ndim != 1:
        raise InputError(f"gains must be a 1-D array, one for each n, got shape {bounds.shape}.")
    n = np.arange(1.0, len(bounds) + 1)
    return np.maximum.accumulate(np.where(n <= bounds * (1 + 1e-12), n, 0.0))
