"""The function space of a kernel: which kernels define one, how smooth it is, functions in it."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product

from kernelbounds.arrays import Array, as_floats, as_points, as_scalar, as_vector, as_whole, brief
from kernelbounds.errors import InputError, said
from kernelbounds.kernels.levels import Levels
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.values import cross

# Points are at most 1e100, and so neither distances in length scales nor their squares overflow.
SHORTEST_LENGTH_SCALE = 1e-40
# At the smallest nu, k(x, z) has fallen below a half at a hundredth of a length scale, and still
# rougher kernels cannot be told from noise; at the largest, the kernel differs from RBF by less
# than 0.005. Between them the precision of Matern kernels was measured.
SMALLEST_NU, LARGEST_NU = 0.05, 50.0
LENGTH_PARAMETERS = ("length_scale", "periodicity")
POSITIVE_PARAMETERS = (*LENGTH_PARAMETERS, "nu", "alpha")
REAL_PARAMETERS = ("constant_value", "sigma_0", "exponent")


def checked_kernel(kernel: Any) -> Kernel:
    """Return a private copy of a kernel, or refuse one that cannot define a function space."""
    if not isinstance(kernel, Kernel):
        raise InputError(
            "kernel must be a scikit-learn kernel object such as "
            f"sklearn.gaussian_process.kernels.Matern(), got {brief(kernel)}."
        )
    try:
        # scikit-learn's clone would drop attributes that are not hyperparameters.
        copied = copy.deepcopy(kernel)
        parts = [copied, *copied.get_params(deep=True).values()]
    except Exception as error:
        name = type(kernel).__name__
        raise InputError(f"a kernel {name} cannot be copied: {said(error)}.") from error
    if any(isinstance(part, sklearn_kernels.WhiteKernel) for part in parts):
        raise InputError(
            "kernel contains a WhiteKernel, which models noise and not the function; "
            "remove it and pass noise_scale instead."
        )
    if any(isinstance(part, sklearn_kernels.CompoundKernel) for part in parts):
        raise InputError("kernel contains a CompoundKernel, which is several kernels, not one.")
    for part in parts:
        if isinstance(part, Kernel) and is_known(type(part)):
            _check_parameters(part)
    return copied


def is_known(cls: type) -> bool:
    """Whether a class of kernels is scikit-learn's or this package's, and not a user's."""
    return bool(cls.__module__ == sklearn_kernels.__name__ or cls in (OnInputs, Levels))


def _check_parameters(kernel: Kernel) -> None:
    """Refuse hyperparameters with which scikit-learn would fail only where they are used."""
    for name, value in kernel.get_params(deep=False).items():
        infinite_nu = name == "nu" and isinstance(value, float) and value == math.inf  # RBF
        if name not in (*POSITIVE_PARAMETERS, *REAL_PARAMETERS) or infinite_nu:
            continue
        what = f"{name} of {type(kernel).__name__}"
        numbers = as_floats(value, what)
        per_input = name == "length_scale" and type(kernel) in (RBF, Matern)
        if numbers.size != 1 and not (per_input and numbers.ndim == 1 and numbers.size):
            kind = "a number or one for each input" if per_input else "a number"
            raise InputError(f"{what} must be {kind}, got {brief(value)}.")
        if name in POSITIVE_PARAMETERS and numbers.min() <= 0:
            raise InputError(f"{what} must be positive, got {brief(value)}.")
        if name in LENGTH_PARAMETERS and numbers.min() < SHORTEST_LENGTH_SCALE:
            raise InputError(
                f"{what} must be at least {SHORTEST_LENGTH_SCALE:g}, or distances overflow, got "
                f"{brief(value)}; measure the points in another unit."
            )
        if name == "nu" and not SMALLEST_NU <= numbers <= LARGEST_NU:
            raise InputError(
                f"{what} must be between {SMALLEST_NU:g}, below which the kernel cannot be told "
                f"from noise, and {LARGEST_NU:g}, above which nu=inf or RBF is nearly the same "
                f"kernel, got {brief(value)}."
            )


def smoothness(kernel: Kernel) -> float:
    """The nu of a Matern kernel, infinity for RBF; a constant factor does not change it."""
    if type(kernel) is Product:
        for one, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if type(one) is ConstantKernel:
                return smoothness(other)
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


class RKHSFunction:
    """The function f = sum_i w_i k(., z_i), with its exact RKHS norm.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its hyperparameters are used as they stand.
    centres : array of shape (n, d)
        The z_i, a row for each.
    weights : array of shape (n,)
        The w_i.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> f = RKHSFunction(RBF(0.5), centres=[[0.0], [1.0]], weights=[1.0, -1.0]).rescaled(10.0)
    >>> round(f.norm, 12)
    10.0
    """

    def __init__(self, kernel: Kernel, centres: ArrayLike, weights: ArrayLike) -> None:
        self.kernel = checked_kernel(kernel)
        self.centres = as_points(centres, "centres")
        self.weights = as_vector(weights, "weights", len(self.centres))

    def __call__(self, points: ArrayLike) -> Array:
        """Values f(x) at ``points`` of shape (m, d)."""
        x = as_points(points, "X", self.centres.shape[1])
        return np.asarray(cross(self.kernel, x, self.centres) @ self.weights)

    @property
    def norm(self) -> float:
        """The RKHS norm, ||f|| = sqrt(w' K w) with K the kernel matrix of the centres."""
        gram = cross(self.kernel, self.centres, self.centres)
        return math.sqrt(max(0.0, float(self.weights @ gram @ self.weights)))

    def rescaled(self, norm: float) -> RKHSFunction:
        """The multiple of this function that has the given norm."""
        target = as_scalar(norm, "norm", least=0)
        if self.norm == 0:
            raise InputError("the zero function cannot be rescaled to another norm.")
        return RKHSFunction(self.kernel, self.centres, self.weights * (target / self.norm))
