"""The smoothness nu of a kernel, and the mixture scale that goes with it."""

from __future__ import annotations

import math

from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product

from kernelbounds.arrays import as_whole
from kernelbounds.errors import InputError
from kernelbounds.kernels.checks import checked_kernel


def smoothness(kernel: Kernel) -> float:
    """The nu of a Matern kernel, infinity for RBF; a constant factor does not change it."""
    if isinstance(kernel, Product) and isinstance(kernel.k1, ConstantKernel):
        return smoothness(kernel.k2)
    if isinstance(kernel, Product) and isinstance(kernel.k2, ConstantKernel):
        return smoothness(kernel.k1)
    if type(kernel) is Matern:
        return float(kernel.nu)
    if type(kernel) is RBF:
        return math.inf
    raise InputError(
        f"the smoothness of {kernel} is not known; it is defined here for RBF and Matern kernels "
        "and their constant multiples."
    )


def mixture_scale(kernel: Kernel, dim: int, horizon: int) -> float:
    """The mixture scale c that gives the paper's regret rates (Sec. 7).

    c = 1 for the RBF kernel and c = T^(-d / (2 d + 2 nu)) for the Matern kernel, with T the
    number of rounds planned and d the dimension.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> kb.mixture_scale(RBF(0.5), dim=3, horizon=1000)
    1.0
    >>> round(kb.mixture_scale(Matern(0.5, nu=2.5), dim=3, horizon=1000), 3)
    0.152
    """
    nu = smoothness(checked_kernel(kernel))
    d, rounds = as_whole(dim, "dim", least=1), as_whole(horizon, "horizon", least=1)
    return 1.0 if math.isinf(nu) else float(rounds ** (-d / (2 * d + 2 * nu)))
