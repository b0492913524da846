"""A kernel for inputs that are categories, whose values are numbers of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, as_scalar


class Levels(Kernel):  # type: ignore[misc]  # scikit-learn has no types
    """k(x, z) = 1 where x and z are equal, and the correlation between levels elsewhere.

    The numbers of levels are names only: no two levels are closer than others. For any number of
    levels this is a kernel, rho + (1 - rho) [x = z], whose values have no rounding error. Use
    :class:`OnInputs` to let it see the category alone, a product with the kernel of the numbers if
    the function of these may differ from level to level, and a sum, or :class:`Parts`, for an
    effect that adds up.

    Parameters
    ----------
    correlation : float
        rho, between 0, where levels say nothing of each other, and 1, where all are the same.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> import kernelbounds as kb
    >>> kernel = kb.OnInputs(Matern(0.5, nu=2.5), [0]) * kb.OnInputs(kb.Levels(0.8), [1])
    >>> kernel([[0.3, 0.0]], [[0.3, 0.0], [0.3, 2.0]])  # the same level, and another one
    array([[1. , 0.8]])
    """

    def __init__(self, correlation: float = 0.5) -> None:
        self.correlation = correlation

    @property
    def correlation(self) -> float:
        """The correlation between levels, rho."""
        return self._correlation

    @correlation.setter
    def correlation(self, correlation: float) -> None:
        # scikit-learn's clone requires the very object that it passed, which is a float.
        as_scalar(correlation, "correlation of Levels", least=0.0, most=1.0)
        self._correlation = correlation

    def cross(self, left: Array, right: Array) -> Array:
        """The matrix k(left_i, right_j) of points (m, d) and (n, d)."""
        same = (left[:, None, :] == right[None, :, :]).all(axis=2)
        return np.where(same, 1.0, float(self.correlation))

    # The methods below are scikit-learn's protocol for kernels.

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the kernel matrix, and with ``eval_gradient`` a gradient in no parameters."""
        left = np.atleast_2d(np.asarray(X))
        values = self.cross(left, left if Y is None else np.atleast_2d(np.asarray(Y)))
        return (values, np.empty((*values.shape, 0))) if eval_gradient else values

    def diag(self, X: ArrayLike) -> Any:
        """k(x, x) at each x, which is 1."""
        return np.ones(len(np.atleast_2d(np.asarray(X))))

    def is_stationary(self) -> bool:
        """Return True, because k(x, z) is a function of x - z."""
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}(correlation={self.correlation:.3g})"
