"""Functions in the reproducing-kernel Hilbert space of a kernel."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_points, as_scalar, as_vector
from kernelbounds.errors import InputError


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
        self.kernel = kernels.checked_kernel(kernel)
        self.centres = as_points(centres, "centres")
        self.weights = as_vector(weights, "weights", len(self.centres))

    def __call__(self, points: ArrayLike) -> Array:
        """Values f(x) at ``points`` of shape (m, d)."""
        x = as_points(points, "X", self.centres.shape[1])
        return np.asarray(kernels.cross(self.kernel, x, self.centres) @ self.weights)

    @property
    def norm(self) -> float:
        """The RKHS norm, ||f|| = sqrt(w' K w) with K the kernel matrix of the centres."""
        gram = kernels.cross(self.kernel, self.centres, self.centres)
        return math.sqrt(max(0.0, float(self.weights @ gram @ self.weights)))

    def rescaled(self, norm: float) -> RKHSFunction:
        """The multiple of this function that has the given norm."""
        target = as_scalar(norm, "norm", least=0)
        if self.norm == 0:
            raise InputError("the zero function cannot be rescaled to another norm.")
        return RKHSFunction(self.kernel, self.centres, self.weights * (target / self.norm))
