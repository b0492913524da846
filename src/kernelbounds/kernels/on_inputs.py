"""A kernel on some of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from kernelbounds.arrays import Array, as_whole, brief
from kernelbounds.errors import InputError


class OnInputs(Kernel):  # type: ignore[misc]  # scikit-learn has no types
    """k(x, z) = kernel(x', z'), where x' and z' are some of the coordinates of x and z.

    It combines with other kernels as scikit-learn's own do: use a sum for effects that add up, and
    a product for effects that interact.

    Parameters
    ----------
    kernel : Kernel
        A kernel in as many dimensions as there are ``inputs``.
    inputs : sequence of int
        The coordinates, counted from 0; in this order, if the kernel has a length scale for each.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> import kernelbounds as kb
    >>> kernel = kb.OnInputs(Matern(0.5, nu=2.5), [0]) + kb.OnInputs(RBF(0.3), [1, 2])
    >>> kernel
    OnInputs(Matern(length_scale=0.5, nu=2.5), [0]) + OnInputs(RBF(length_scale=0.3), [1, 2])
    >>> kernel([[0.1, 0.2, 0.3]], [[0.1, 9.0, 9.0]])  # the same first input: one of two effects
    array([[1.]])
    """

    def __init__(self, kernel: Kernel, inputs: ArrayLike) -> None:
        if not isinstance(kernel, Kernel):
            raise InputError(f"OnInputs needs a scikit-learn kernel, got {brief(kernel)}.")
        self.kernel = kernel
        self.inputs = inputs

    @property
    def inputs(self) -> tuple[int, ...]:
        """The coordinates, counted from 0."""
        return self._inputs

    @inputs.setter
    def inputs(self, inputs: ArrayLike) -> None:
        self._inputs = _distinct(inputs)

    def select(self, points: Array) -> Array:
        """Return the coordinates of points (m, d) that the kernel sees."""
        dim, needed = points.shape[1], max(self.inputs) + 1
        if dim < needed:
            raise InputError(f"{self} needs points of {needed} dimensions or more, got {dim}.")
        return points.take(self.inputs, axis=1)

    # The methods below are scikit-learn's protocol for kernels.

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the kernel matrix, and with ``eval_gradient`` its gradient in ``theta``."""
        left, right = (None if points is None else self._seen(points) for points in (X, Y))
        return self.kernel(left, right, eval_gradient=eval_gradient)

    def diag(self, X: ArrayLike) -> Any:
        """k(x, x) at each x."""
        return self.kernel.diag(self._seen(X))

    def is_stationary(self) -> bool:
        """Whether k(x, z) is a function of x - z."""
        return bool(self.kernel.is_stationary())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return ``kernel`` and ``inputs``, and with ``deep`` the parameters of the kernel."""
        params = {"kernel": self.kernel, "inputs": self.inputs}
        if deep:
            nested = self.kernel.get_params(deep=True)
            params |= {f"kernel__{name}": value for name, value in nested.items()}
        return params

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The hyperparameters of the kernel."""
        return [one._replace(name=f"kernel__{one.name}") for one in self.kernel.hyperparameters]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel!r}, {list(self.inputs)})"

    def _seen(self, points: ArrayLike) -> Array:
        return self.select(np.atleast_2d(np.asarray(points)))


def _distinct(inputs: Any) -> tuple[int, ...]:
    """Check the inputs, and return them as a tuple of whole numbers."""
    values = inputs.tolist() if isinstance(inputs, np.ndarray) else inputs
    listed = values if isinstance(values, list | tuple | range) else ()
    numbers = tuple(as_whole(one, "an input of OnInputs", least=0) for one in listed)
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(
            "inputs of OnInputs must be a list of distinct whole numbers, such as [0, 2], got "
            f"{brief(inputs)}."
        )
    # scikit-learn's clone requires the very object that it passed, which is such a tuple.
    whole = isinstance(inputs, tuple) and all(type(one) is int for one in inputs)
    return inputs if whole else numbers
