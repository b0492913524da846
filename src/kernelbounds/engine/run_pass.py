"""Kernel ridge regression along a finished run: all its steps from one Cholesky factor.

==============  ======================  ==============================================
code            paper                   meaning
==============  ======================  ==============================================
``ridge``       alpha                   the ridge value
``variances``   rho^2_alpha,t-1(x_t)    variance at the point of each round, from before
``log_dets``    l_alpha,t               ln det(I + K_t/alpha), t = 0 .. T
``energies``    E_alpha,t               y_t' (I + K_t/alpha)^-1 y_t, t = 0 .. T
==============  ======================  ==============================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError


@dataclass(frozen=True)
class RunPass:
    """What a learner at one ridge knew before each of T rounds."""

    ridge: float
    variances: Array  # (T,)
    log_dets: Array  # (T + 1,)
    energies: Array  # (T + 1,); zeros without outcomes


def along_run(gram: Array, ridge: float, outcomes: Array | None = None) -> RunPass:
    """One factorisation L L' = K_T + alpha I, whose leading blocks are the factors of all t.

    Left of the diagonal, row t is L^-1 k_t-1(x_t) with the factor of the round before. With
    z = L^-1 y, E_alpha,t = alpha sum_{s<=t} z_s^2.
    Nothing is rounded up here, unlike in the bounds.
    """
    count = len(gram)
    factor, failed = lapack.dpotrf(gram + ridge * np.eye(count), lower=1)
    if failed:
        raise InputError(
            f"ridge = {ridge:g} is too small for {count} points of this kernel in double "
            "precision; use a larger one."
        )
    energies = np.zeros(count + 1)
    if outcomes is not None:
        whitened = lapack.dtrtrs(factor, outcomes[:, None], lower=1)[0][:, 0]
        energies[1:] = ridge * np.cumsum(whitened**2)
    # k(x_t, x_t) - sum_{s<t} L_ts^2, which unlike L_tt^2 - alpha is exact where nothing is known.
    left = np.tril(factor, -1)
    variances = np.maximum(np.diagonal(gram) - np.einsum("ij,ij->i", left, left), 0.0)
    log_dets = np.append(0.0, np.cumsum(np.log1p(variances / ridge)))
    return RunPass(ridge, variances, log_dets, energies)
