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
from dataclasses import dataclass
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
from kernelbounds.kernels.stationary import SMALLEST_ALPHA, is_stationary, length_scales
from kernelbounds.kernels.values import evaluation_error, nested_kernels

# The kernels that have a formula here; Matern and powers have one for some of their settings.
PORTABLE = (RBF, RationalQuadratic, DotProduct, ConstantKernel, Levels, OnInputs, Sum, Product)
SMOOTHNESS = (0.5, 1.5, 2.5, math.inf)  # of the Matern kernels that have a short closed form
# Values may be off by this many times what is derived for our own (``values.py``), and this many
# units of eps: that counts exp and log1p right to one unit in the last place, and other libraries
# may be off by two. Also, a length scale is divided by here, which is one more error.
TIMES_THE_ERROR, MORE_ERROR = 2.0, 2.0


def portable_error(kernel: Kernel, dim: int) -> float:
    """Bound the error of :func:`values` in units of eps, relative to sqrt(k(x, x) k(z, z)).

    Kernels without a formula here are refused.
    """
    powers = 0.0
    for part in nested_kernels(kernel):
        known = type(part) in PORTABLE
        if type(part) is Matern:
            known = float(part.nu) in SMOOTHNESS
        elif type(part) is Exponentiation:
            known = part.exponent >= 1 and part.exponent % 1 == 0
            powers += float(part.exponent)
        if not known:
            raise InputError(
                f"{part} has no formula that all array libraries share; use RBF, Matern with nu "
                "0.5, 1.5, 2.5 or inf, RationalQuadratic, DotProduct, ConstantKernel, Levels, and "
                "OnInputs, sums, products and whole powers of these."
            )
    error = evaluation_error(kernel, dim)
    assert error is not None  # it is known for all kernels that are not refused
    # A power may be computed by multiplications, which have an error of half a unit each.
    return TIMES_THE_ERROR * error + MORE_ERROR + powers / 2


def values(xp: Any, kernel: Kernel, X: Any, Z: Any) -> Any:
    """k(x_i, z_j) for points X (m, d) and Z (n, d); (m, n)."""
    return _evaluated(xp, kernel, X, Z, with_partials=False).values


def partials(xp: Any, kernel: Kernel, X: Any, Z: Any) -> list[Any]:
    """dk(x_i, z_j) / dx_a, (m, n), for each coordinate a.

    At x_i = z_j the kernel exp(-r) has no gradient; zero is in its subdifferential.
    """
    return _evaluated(xp, kernel, X, Z, with_partials=True).partials


def diagonal(xp: Any, kernel: Kernel, X: Any) -> Any:
    """k(x_i, x_i) at points X (m, d); (m,)."""
    return _evaluated(xp, kernel, X, None, with_partials=False).values


def diagonal_partials(xp: Any, kernel: Kernel, X: Any) -> list[Any]:
    """dk(x_i, x_i) / dx_a, (m,), for each coordinate a."""
    return _evaluated(xp, kernel, X, None, with_partials=True).partials


@dataclass(frozen=True)
class _Jet:
    """The values of a function of x and, if they are asked for, its partial derivatives."""

    values: Any
    partials: list[Any]  # one for each coordinate, or empty

    def __add__(self, other: _Jet) -> _Jet:
        pairs = zip(self.partials, other.partials, strict=True)
        return _Jet(self.values + other.values, [a + b for a, b in pairs])

    def __mul__(self, other: _Jet) -> _Jet:
        pairs = zip(self.partials, other.partials, strict=True)
        parts = [a * other.values + self.values * b for a, b in pairs]
        return _Jet(self.values * other.values, parts)

    def __pow__(self, p: int) -> _Jet:
        outer = p * self.values ** (p - 1) if self.partials else None
        return _Jet(self.values**p, [outer * part for part in self.partials])


def _evaluated(xp: Any, kernel: Kernel, X: Any, Z: Any, with_partials: bool) -> _Jet:
    """Evaluate k(x_i, z_j), or k(x_i, x_i) where Z is None."""
    if type(kernel) in (Sum, Product):
        one, two = (_evaluated(xp, k, X, Z, with_partials) for k in (kernel.k1, kernel.k2))
        return one + two if type(kernel) is Sum else one * two
    if type(kernel) is Exponentiation:
        return _evaluated(xp, kernel.kernel, X, Z, with_partials) ** int(kernel.exponent)
    if type(kernel) is not OnInputs:
        dim = X.shape[1] if with_partials else 0
        return _at_points(xp, kernel, X, dim) if Z is None else _at_pairs(xp, kernel, X, Z, dim)
    chosen = _selection(xp, kernel, X)
    seen = X @ chosen, None if Z is None else Z @ chosen
    inner = _evaluated(xp, kernel.kernel, *seen, with_partials)
    if not with_partials:
        return inner
    zero = 0.0 * (X[:, 0] if Z is None else X[:, :1] + Z[None, :, 0])
    along = dict(zip(kernel.inputs, inner.partials, strict=True))
    return _Jet(inner.values, [along.get(a, zero) for a in range(X.shape[1])])


def _at_pairs(xp: Any, kernel: Kernel, X: Any, Z: Any, dim: int) -> _Jet:
    """Evaluate a kernel that is not made of others at all pairs, with ``dim`` partials."""
    if is_stationary(kernel):
        scales = np.broadcast_to(length_scales(kernel, X.shape[1]), X.shape[1]).tolist()
        squares = 0.0
        for a, scale in enumerate(scales):
            moved = (X[:, a : a + 1] - Z[None, :, a]) / scale
            squares = moved * moved + squares
        kappa, slope = _profile(xp, kernel, squares)
        parts = [
            slope * ((X[:, a : a + 1] - Z[None, :, a]) / scale**2)
            for a, scale in enumerate(scales[:dim])
        ]
        return _Jet(kappa, parts)
    zero = 0.0 * (X[:, :1] + Z[None, :, 0])
    if type(kernel) is DotProduct:
        total = float(kernel.sigma_0) ** 2
        for a in range(X.shape[1]):
            total = X[:, a : a + 1] * Z[None, :, a] + total
        return _Jet(total, [zero + Z[None, :, a] for a in range(dim)])
    if type(kernel) is ConstantKernel:
        return _Jet(zero + float(kernel.constant_value), [zero] * dim)
    same = X[:, :1] == Z[None, :, 0]
    for a in range(1, X.shape[1]):
        same = same & (X[:, a : a + 1] == Z[None, :, a])
    return _Jet(xp.where(same, zero + 1.0, zero + float(kernel.correlation)), [zero] * dim)


def _at_points(xp: Any, kernel: Kernel, X: Any, dim: int) -> _Jet:
    """Evaluate a kernel that is not made of others on the diagonal, with ``dim`` partials."""
    if type(kernel) is DotProduct:
        squares = xp.sum(X * X, axis=1) + float(kernel.sigma_0) ** 2
        return _Jet(squares, [2.0 * X[:, a] for a in range(dim)])
    constant = float(kernel.constant_value) if type(kernel) is ConstantKernel else 1.0
    # The sum makes the value nan where a coordinate is not finite.
    return _Jet(0.0 * xp.sum(X, axis=1) + constant, [0.0 * X[:, 0]] * dim)


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


def _selection(xp: Any, kernel: OnInputs, X: Any) -> Any:
    """A matrix of zeros and ones, (d, k), whose product with points has the kernel's inputs.

    Libraries differ in how columns are taken, and agree on products, which are exact here.
    """
    chosen = np.zeros((X.shape[1], len(kernel.inputs)))
    chosen[list(kernel.inputs), range(len(kernel.inputs))] = 1.0
    return as_array(xp, chosen, X)
