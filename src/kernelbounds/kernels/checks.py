"""Check which kernels are accepted, and with which hyperparameters."""

from __future__ import annotations

import copy
import math
from typing import Any

from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Kernel, Matern, WhiteKernel

from kernelbounds.arrays import as_floats, brief
from kernelbounds.errors import InputError, said
from kernelbounds.kernels.on_inputs import OnInputs

# Points are at most 1e100, and so neither distances in length scales nor their squares overflow.
SHORTEST_LENGTH_SCALE = 1e-40
# At the smallest nu, k(x, z) has fallen below a half at a hundredth of a length scale, and still
# rougher kernels cannot be told from noise; at the largest, the kernel differs from RBF by less
# than 0.005. Between them the precision of Matern kernels was measured.
SMALLEST_NU, LARGEST_NU = 0.05, 50.0
LENGTHS = ("length_scale", "periodicity")
POSITIVE = (*LENGTHS, "nu", "alpha")
REAL = ("constant_value", "sigma_0", "exponent")


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
    if any(isinstance(part, WhiteKernel) for part in parts):
        raise InputError(
            "kernel contains a WhiteKernel, which models noise and not the function; "
            "remove it and pass noise_scale instead."
        )
    if any(isinstance(part, CompoundKernel) for part in parts):
        raise InputError("kernel contains a CompoundKernel, which is several kernels, not one.")
    for part in parts:
        if isinstance(part, Kernel) and is_known(type(part)):
            _check_parameters(part)
    return copied


def is_known(cls: type) -> bool:
    """Whether a class of kernels is scikit-learn's or this package's, and not a user's."""
    return bool(cls.__module__ == sklearn_kernels.__name__ or cls is OnInputs)


def _check_parameters(kernel: Kernel) -> None:
    """Refuse hyperparameters with which scikit-learn would fail only where they are used."""
    for name, value in kernel.get_params(deep=False).items():
        infinite_nu = name == "nu" and isinstance(value, float) and value == math.inf  # RBF
        if name not in (*POSITIVE, *REAL) or infinite_nu:
            continue
        what = f"{name} of {type(kernel).__name__}"
        numbers = as_floats(value, what)
        per_input = name == "length_scale" and type(kernel) in (RBF, Matern)
        if numbers.size != 1 and not (per_input and numbers.ndim == 1 and numbers.size):
            kind = "a number or one for each input" if per_input else "a number"
            raise InputError(f"{what} must be {kind}, got {brief(value)}.")
        if name in POSITIVE and numbers.min() <= 0:
            raise InputError(f"{what} must be positive, got {brief(value)}.")
        if name in LENGTHS and numbers.min() < SHORTEST_LENGTH_SCALE:
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
