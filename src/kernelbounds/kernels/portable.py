"""Kernels in the Python array API: the same formulas for NumPy, PyTorch, JAX and others.

``xp`` is the namespace of the arrays, such as ``numpy`` or ``torch``. Every function is made of
operations that all of them have, so that it can be compiled, mapped and differentiated by the
library whose arrays it is given. Differences of coordinates come first, as in ``stationary.py``.

======================  ===========================================================
function                value
======================  ===========================================================
``values``              k(x_i, z_j), (m, n)
``partials``            dk(x_i, z_j) / dx_a, (m, n), one for each coordinate a
``diagonal``            k(x_i, x_i), (m,)
``diagonal_partials``   dk(x_i, x_i) / dx_a, (m,), one for each coordinate a
======================  ===========================================================
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from kernelbounds.errors import InputError
from kernelbounds.kernels.levels import Levels
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.stationary import SMALLEST_ALPHA, length_scales
from kernelbounds.kernels.values import evaluation_error

SMOOTHNESS = (0.5, 1.5, 2.5, math.inf)  # of the Matern kernels that have a short closed form
# Values may be off by this many times what is derived for our own (``values.py``), and this many
# units of eps: that counts exp and log1p right to one unit in the last place, and other libraries
# may be off by two. Also, a length scale is divided by here, which is one more error.
TIMES_THE_ERROR, MORE_ERROR = 2.0, 2.0


def portable_error(kernel: Kernel, dim: int) -> float:
    """The error of :func:`values` in units of eps, relative to sqrt(k(x, x) k(z, z))."""
    refuse_unportable(kernel)
    error = evaluation_error(kernel, dim)
    assert error is not None  # it is known for all kernels that are not refused
    # A power may be computed by multiplications, which have an error of half a unit each.
    powers = sum(v for name, v in kernel.get_params().items() if name.endswith("exponent"))
    return TIMES_THE_ERROR * error + MORE_ERROR + float(powers) / 2


def refuse_unportable(kernel: Kernel) -> None:
    """Refuse kernels without a formula here."""
    if type(kernel) in (Sum, Product):
        refuse_unportable(kernel.k1)
        refuse_unportable(kernel.k2)
        return
    if type(kernel) is OnInputs:
        return refuse_unportable(kernel.kernel)
    if type(kernel) is Exponentiation and kernel.exponent >= 1 and kernel.exponent % 1 == 0:
        return refuse_unportable(kernel.kernel)
    short = type(kernel) is Matern and float(kernel.nu) in SMOOTHNESS
    if not short and type(kernel) not in (
        RBF, RationalQuadratic, DotProduct, ConstantKernel, Levels,
    ):  # fmt: skip
        raise InputError(
            f"{kernel} has no formula that all array libraries share; use RBF, Matern with nu 0.5, "
            "1.5, 2.5 or inf, RationalQuadratic, DotProduct, ConstantKernel, Levels, and OnInputs, "
            "sums, products and whole powers of these."
        )


def values(xp: Any, kernel: Kernel, X: Any, Z: Any) -> Any:
    """k(x_i, z_j) for points X (m, d) and Z (n, d); (m, n)."""
    if type(kernel) is Sum:
        return values(xp, kernel.k1, X, Z) + values(xp, kernel.k2, X, Z)
    if type(kernel) is Product:
        return values(xp, kernel.k1, X, Z) * values(xp, kernel.k2, X, Z)
    if type(kernel) is Exponentiation:
        return values(xp, kernel.kernel, X, Z) ** int(kernel.exponent)
    if type(kernel) is OnInputs:
        chosen = _selection(xp, kernel, X)
        return values(xp, kernel.kernel, X @ chosen, Z @ chosen)
    if type(kernel) is ConstantKernel:
        return 0.0 * (X[:, :1] + Z[None, :, 0]) + float(kernel.constant_value)
    if type(kernel) is DotProduct:
        total = float(kernel.sigma_0) ** 2
        for a in range(X.shape[1]):
            total = X[:, a : a + 1] * Z[None, :, a] + total
        return total
    if type(kernel) is Levels:
        return _levels(xp, kernel, X, Z)
    return _profile(xp, kernel, _squares(kernel, X, Z))[0]


def partials(xp: Any, kernel: Kernel, X: Any, Z: Any) -> list[Any]:
    """dk(x_i, z_j) / dx_a, (m, n), for each coordinate a.

    At x_i = z_j the kernel exp(-r) has no gradient; zero is in its subdifferential.
    """
    zero, dim = 0.0 * (X[:, :1] + Z[None, :, 0]), X.shape[1]
    if type(kernel) in (Sum, Product):
        one, two = partials(xp, kernel.k1, X, Z), partials(xp, kernel.k2, X, Z)
        if type(kernel) is Sum:
            return [a + b for a, b in zip(one, two, strict=True)]
        k1, k2 = values(xp, kernel.k1, X, Z), values(xp, kernel.k2, X, Z)
        return [a * k2 + k1 * b for a, b in zip(one, two, strict=True)]
    if type(kernel) is Exponentiation:
        p = int(kernel.exponent)
        outer = p * values(xp, kernel.kernel, X, Z) ** (p - 1)
        return [outer * part for part in partials(xp, kernel.kernel, X, Z)]
    if type(kernel) is OnInputs:
        chosen = _selection(xp, kernel, X)
        inner = partials(xp, kernel.kernel, X @ chosen, Z @ chosen)
        seen = dict(zip(kernel.inputs, inner, strict=True))
        return [seen.get(a, zero) for a in range(dim)]
    if type(kernel) in (ConstantKernel, Levels):
        return [zero] * dim
    if type(kernel) is DotProduct:
        return [zero + Z[None, :, a] for a in range(dim)]
    slope = _profile(xp, kernel, _squares(kernel, X, Z))[1]
    return [
        slope * ((X[:, a : a + 1] - Z[None, :, a]) / scale**2)
        for a, scale in enumerate(_scales(kernel, dim))
    ]


def diagonal(xp: Any, kernel: Kernel, X: Any) -> Any:
    """k(x_i, x_i) at points X (m, d); (m,)."""
    if type(kernel) is Sum:
        return diagonal(xp, kernel.k1, X) + diagonal(xp, kernel.k2, X)
    if type(kernel) is Product:
        return diagonal(xp, kernel.k1, X) * diagonal(xp, kernel.k2, X)
    if type(kernel) is Exponentiation:
        return diagonal(xp, kernel.kernel, X) ** int(kernel.exponent)
    if type(kernel) is OnInputs:
        return diagonal(xp, kernel.kernel, X @ _selection(xp, kernel, X))
    if type(kernel) is DotProduct:
        return xp.sum(X * X, axis=1) + float(kernel.sigma_0) ** 2
    constant = float(kernel.constant_value) if type(kernel) is ConstantKernel else 1.0
    return 0.0 * xp.sum(X, axis=1) + constant  # nan if a coordinate is not finite


def diagonal_partials(xp: Any, kernel: Kernel, X: Any) -> list[Any]:
    """dk(x_i, x_i) / dx_a, (m,), for each coordinate a."""
    dim = X.shape[1]
    if type(kernel) in (Sum, Product):
        one, two = diagonal_partials(xp, kernel.k1, X), diagonal_partials(xp, kernel.k2, X)
        if type(kernel) is Sum:
            return [a + b for a, b in zip(one, two, strict=True)]
        k1, k2 = diagonal(xp, kernel.k1, X), diagonal(xp, kernel.k2, X)
        return [a * k2 + k1 * b for a, b in zip(one, two, strict=True)]
    if type(kernel) is Exponentiation:
        p = int(kernel.exponent)
        outer = p * diagonal(xp, kernel.kernel, X) ** (p - 1)
        return [outer * part for part in diagonal_partials(xp, kernel.kernel, X)]
    if type(kernel) is OnInputs:
        inner = diagonal_partials(xp, kernel.kernel, X @ _selection(xp, kernel, X))
        seen = dict(zip(kernel.inputs, inner, strict=True))
        return [seen.get(a, 0.0 * X[:, 0]) for a in range(dim)]
    if type(kernel) is DotProduct:
        return [2.0 * X[:, a] for a in range(dim)]
    return [0.0 * X[:, 0]] * dim


def namespace(X: Any) -> Any:
    """The namespace of an array; NumPy for lists, tables and whatever else NumPy converts."""
    if type(X).__module__.split(".")[0] == "torch":
        return sys.modules["torch"]  # which made X, and so is imported
    return X.__array_namespace__() if hasattr(X, "__array_namespace__") else np


def as_array(xp: Any, values: np.ndarray[Any, Any], X: Any) -> Any:
    """Convert a NumPy array to one of the library of X, on the device of X where that is a GPU."""
    if xp.__name__ == "torch":  # which would share the memory, and warns if it is read-only
        return xp.asarray(values, device=X.device, copy=True)
    return xp.asarray(values)


def safe_root(xp: Any, squares: Any) -> Any:
    """The square root, with the derivative zero at zero, where automatic ones would be nan.

    The root of nan is nan, so that a point that is not finite has no bounds.
    """
    empty = squares <= 0
    return xp.where(empty, 0.0, xp.sqrt(xp.where(empty, 0.0 * squares + 1.0, squares)))


def _profile(xp: Any, kernel: Kernel, s: Any) -> tuple[Any, Any]:
    """kappa(r) and kappa'(r) / r at s = r^2, see ``stationary.py``."""
    if type(kernel) is RationalQuadratic:
        alpha = max(float(kernel.alpha), SMALLEST_ALPHA)
        h = alpha * xp.log1p(0.5 * s / alpha)
        return xp.exp(-h), -xp.exp(-h * (1 + 1 / alpha))
    nu = float(kernel.nu) if type(kernel) is Matern else math.inf
    if math.isinf(nu):
        kappa = xp.exp(-0.5 * s)
        return kappa, -kappa
    z = safe_root(xp, 2 * nu * s)
    fall = xp.exp(-z)
    if nu == 0.5:  # kappa'(r) / r = -exp(-z) / z, and the difference that it meets is 0 at z = 0
        return fall, -fall / xp.where(z > 0, z, 0.0 * z + 1.0)
    if nu == 1.5:
        return (1.0 + z) * fall, -3.0 * fall
    return (1.0 + z + z * z / 3.0) * fall, -5.0 / 3.0 * (1.0 + z) * fall


def _squares(kernel: Kernel, X: Any, Z: Any) -> Any:
    """Squared distances in length scales, (m, n)."""
    total = 0.0
    for a, scale in enumerate(_scales(kernel, X.shape[1])):
        moved = (X[:, a : a + 1] - Z[None, :, a]) / scale
        total = moved * moved + total
    return total


def _scales(kernel: Kernel, dim: int) -> list[float]:
    """The length scale of each coordinate."""
    return [float(one) for one in np.broadcast_to(length_scales(kernel, dim), dim)]


def _levels(xp: Any, kernel: Levels, X: Any, Z: Any) -> Any:
    same = X[:, :1] == Z[None, :, 0]
    for a in range(1, X.shape[1]):
        same = same & (X[:, a : a + 1] == Z[None, :, a])
    zero = 0.0 * (X[:, :1] + Z[None, :, 0])
    return xp.where(same, zero + 1.0, zero + float(kernel.correlation))


def _selection(xp: Any, kernel: OnInputs, X: Any) -> Any:
    """A matrix of zeros and ones, (d, k), whose product with points has the kernel's inputs.

    Libraries differ in how columns are taken, and agree on products, which are exact here.
    """
    chosen = np.zeros((X.shape[1], len(kernel.inputs)))
    chosen[list(kernel.inputs), range(len(kernel.inputs))] = 1.0
    return as_array(xp, chosen, X)
