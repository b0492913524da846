"""Kernel ridge regression at one ridge for points that are known in advance.

:func:`along_run` takes all steps of a finished run from one Cholesky factor:

==============  ======================  ====================================================
code            paper                   meaning
==============  ======================  ====================================================
``ridge``       alpha                   the ridge value
``variances``   rho^2_alpha,t-1(x_t)    the variance at the point of each round, before it
``log_dets``    l_alpha,t               ln det(I + K_t/alpha), t = 0 .. T
``energies``    E_alpha,t               y_t' (I + K_t/alpha)^-1 y_t, t = 0 .. T
==============  ======================  ====================================================

:class:`LazyVariances` are variances at many candidates given those chosen so far, brought up to
date on demand. Candidates that are never looked at cost nothing:

==============  ======================  ====================================================
code            paper                   meaning
==============  ======================  ====================================================
``ceilings``    >= rho^2_alpha,t(x)     the variance when last looked at; it only falls, (n,)
``levels``                              how many points were chosen by then, (n,)
``rows``        (L^-1 k_t(x))'          the candidates' rows of the factor, (n, capacity)
``factor``      L L' = K_t + alpha I    that of the chosen points
==============  ======================  ====================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.errors import InputError


@dataclass(frozen=True)
class RunPass:
    """The knowledge of a learner at one ridge, before each of T rounds and after the last."""

    ridge: float
    variances: Array  # (T,)
    log_dets: Array  # (T + 1,)
    energies: Array  # (T + 1,); zeros without outcomes


def along_run(gram: Array, ridge: float, outcomes: Array | None = None) -> RunPass:
    """Compute all steps of a run from one factor L L' = K_T + alpha I.

    Its leading blocks are the factors of all t. Left of the diagonal, row t is L^-1 k_t-1(x_t) with
    the factor of the round before. With z = L^-1 y, E_alpha,t = alpha sum_{s<=t} z_s^2. Nothing is
    rounded up here, unlike in the bounds.
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


class LazyVariances:
    """rho^2_alpha at n candidates, of which at most ``capacity``, with repeats, are chosen."""

    def __init__(self, kernel: Kernel, points: Array, ridge: float, capacity: int) -> None:
        self.ridge = ridge
        self.ceilings = kernels.diagonal(kernel, points)
        self.levels = np.zeros(len(points), dtype=np.int64)
        self.count = 0
        self._kernel, self._points = kernel, points
        self._prior = self.ceilings.copy()
        # The operating system provides memory only where it is written.
        self._rows = np.empty((len(points), capacity))
        self._factor = np.zeros((capacity, capacity))
        self._chosen = np.empty((capacity, points.shape[1]))

    def refresh(self, which: NDArray[np.int64]) -> None:
        """Lower the ceilings of these candidates to their variances.

        A row is extended from its level to the present by one product and one small triangular
        solve, for many candidates at a time.
        """
        stale = which[self.levels[which] < self.count]
        # Rows that lack 1 to 7 entries are extended together, those that lack 8 to 63, and so on.
        missing = np.frexp((self.count - self.levels[stale]).astype(np.float64))[1] // 4
        for size in np.unique(missing):
            self._extend(stale[missing == size])

    def choose(self, index: int) -> None:
        """Condition on a candidate whose variance is up to date."""
        t = self.count
        self._factor[t, :t] = self._rows[index, :t]
        self._factor[t, t] = np.sqrt(self.ceilings[index] + self.ridge)
        self._chosen[t] = self._points[index]
        self.count += 1

    def _extend(self, which: NDArray[np.int64]) -> None:
        """[row_old, row_new] [[L11, 0], [L21, L22]]' = [k_old', k_new'], solved for row_new."""
        old, now = int(self.levels[which].min()), self.count
        right = kernels.cross(self._kernel, self._points[which], self._chosen[old:now])
        rows = self._rows[which, :old]
        right -= rows @ self._factor[old:now, :old].T
        corner = self._factor[old:now, old:now]
        new = blas.dtrsm(1.0, corner, right, side=1, lower=1, trans_a=1)
        explained = np.einsum("ij,ij->i", rows, rows) + np.einsum("ij,ij->i", new, new)
        self._rows[which, old:now] = new
        self.ceilings[which] = np.maximum(self._prior[which] - explained, 0.0)
        self.levels[which] = now
