"""Which kernels are taken, and with which hyperparameters."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel, WhiteKernel

from kernelbounds.arrays import as_floats, brief
from kernelbounds.errors import InputError, said
from kernelbounds.kernels.on_inputs import OnInputs

# Points are at most 1e100, so that distances of them in length scales, and their squares, do not
# overflow.
SHORTEST = 1e-40
# At the former, k(x, z) has fallen below a half at a hundredth of a length scale, and still rougher
# kernels cannot be told from noise; at the latter the kernel differs from RBF by less than 0.005.
# Between them the precision of Matern kernels was measured.
ROUGHEST, SMOOTHEST = 0.05, 50.0
_LENGTHS = ("length_scale", "periodicity")
_POSITIVE = (*_LENGTHS, "nu", "alpha")
_REAL = ("constant_value", "sigma_0", "exponent")


def checked_kernel(kernel: Any) -> Kernel:
    """A private copy of ``kernel``, refused when it cannot define a function space."""
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
    """Whether a class of kernels is scikit-learn's or ours, and not a user's."""
    return bool(cls.__module__ == sklearn_kernels.__name__ or cls is OnInputs)


def _check_parameters(kernel: Kernel) -> None:
    """scikit-learn takes any hyperparameters, and fails where they are used."""
    for name, value in kernel.get_params(deep=False).items():
        smooth = name == "nu" and isinstance(value, float) and value == math.inf  # RBF
        if name not in (*_POSITIVE, *_REAL) or smooth:
            continue
        numbers = as_floats(value, f"{name} of {type(kernel).__name__}")
        if not numbers.size or (name in _POSITIVE and np.any(numbers <= 0)):
            raise InputError(
                f"{name} of {type(kernel).__name__} must be positive, got {brief(value)}."
            )
        if name in _LENGTHS and np.any(numbers < SHORTEST):
            raise InputError(
                f"{name} of {type(kernel).__name__} must be at least {SHORTEST:g}, or distances "
                f"overflow, got {brief(value)}; measure the points in another unit."
            )
        if name == "nu" and not np.all((numbers >= ROUGHEST) & (numbers <= SMOOTHEST)):
            raise InputError(
                f"nu of {type(kernel).__name__} must be between {ROUGHEST:g}, below which the "
                f"kernel cannot be told from noise, and {SMOOTHEST:g}, above which nu=inf or RBF "
                f"is nearly the same kernel, got {brief(value)}."
            )
