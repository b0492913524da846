"""The library's kernels are scikit-learn's kernel objects; here is what we ask of them.

A kernel is any positive semi-definite ``sklearn.gaussian_process.kernels.Kernel``: RBF, Matern,
RationalQuadratic, DotProduct, ConstantKernel, their sums, products and powers, and user-defined
subclasses. Its hyperparameters are taken as they stand; nothing is fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from kernelbounds.arrays import LARGEST, Array, as_floats, as_whole, brief
from kernelbounds.errors import InputError, said

MANY = 5000  # pairs from which a matrix product pays
# The sum of squared distances from the middle, in length scales, up to which |x - y|^2 / 2 is as
# precise from squares and products as from differences.
COMPACT = 8.0
UNKNOWN = 64.0  # rounding errors, at least, of a kernel of which nothing is known
# Hyperparameters of scikit-learn's kernels.
_POSITIVE = ("length_scale", "nu", "alpha", "periodicity")
_REAL = ("constant_value", "sigma_0", "exponent")
_PRECISE = (RBF, Matern, RationalQuadratic, ExpSineSquared, DotProduct, ConstantKernel)


def checked_kernel(kernel: Any) -> Kernel:
    """A private copy of ``kernel``, refused when it cannot define a function space."""
    if not isinstance(kernel, Kernel):
        raise InputError(
            "kernel must be a scikit-learn kernel object such as "
            f"sklearn.gaussian_process.kernels.Matern(), got {brief(kernel)}."
        )
    try:
        copied = clone(kernel)
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
        if isinstance(part, Kernel) and _is_sklearns(type(part)):
            _check_parameters(part)
    return copied


def cross(kernel: Kernel, left: Array, right: Array) -> Array:
    """The matrix k(left_i, right_j)."""
    if type(kernel) in _NORMALISED and (own := _FORMS.get(getattr(kernel, "nu", np.inf))):
        factor, form = own
        if scaled := _scaled(kernel, factor, left, right):
            return form(*scaled)
    if type(kernel) is Sum:
        return cross(kernel.k1, left, right) + cross(kernel.k2, left, right)
    if type(kernel) is Product:
        return cross(kernel.k1, left, right) * cross(kernel.k2, left, right)
    if type(kernel) is RationalQuadratic:
        # As a power of a number near 1, which scikit-learn takes, it would lose digits.
        alpha = float(kernel.alpha)
        return np.asarray(np.exp(-alpha * np.log1p(_half_squares(kernel, left, right) / alpha)))
    return _checked(kernel, lambda: kernel(left, right), (len(left), len(right)))


def vectors(kernel: Kernel, points: Array, observed: Array) -> Array:
    """:func:`cross` to rounding, and not pair by pair where a matrix product is as precise."""
    if type(kernel) is RBF and len(points) * len(observed) >= MANY:
        scaled = _scaled(kernel, 1.0, points, observed)
        exponents = _minus_half_squares(*scaled) if scaled else None
        if exponents is not None:
            return np.asarray(np.exp(exponents, out=exponents))
    return cross(kernel, points, observed)


def diagonal(kernel: Kernel, points: Array) -> Array:
    """The vector k(x_i, x_i); assumed to be 1 only where the kernel's class says so."""
    if type(kernel) in _NORMALISED:
        return np.ones(len(points))
    values = _checked(kernel, lambda: kernel.diag(points), (len(points),))
    if np.any(values < 0):
        raise InputError(f"{kernel} is not a kernel: k(x, x) is negative at some x.")
    return values


def evaluation_error(kernel: Kernel) -> float:
    """How precisely a kernel is evaluated, in units of the rounding error; 0 is not known."""
    if type(kernel) in (Sum, Product):
        one, other = evaluation_error(kernel.k1), evaluation_error(kernel.k2)
        return max(one, other) if one and other else 0.0
    if type(kernel) is Exponentiation:
        return evaluation_error(kernel.kernel) * float(max(1.0, abs(kernel.exponent)))
    if type(kernel) is Matern and float(kernel.nu) not in (0.5, 1.5, 2.5, np.inf):
        return 16.0  # by a Bessel function
    return 1.0 if type(kernel) in _PRECISE else 0.0


def measured_error(kernel: Kernel, points: Array) -> float:
    """The same, at least, from what k(x, x) is in a matrix at these points."""
    prior = diagonal(kernel, points)
    errors = [
        abs(float(cross(kernel, x, x.copy())[0, 0]) - known) / max(known, 1e-300)
        for x, known in zip(points[:, None], prior, strict=True)
    ]
    return float(4 * max(errors) / np.finfo(np.float64).eps)


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
    """
    nu = smoothness(checked_kernel(kernel))
    d, rounds = as_whole(dim, "dim", least=1), as_whole(horizon, "horizon", least=1)
    return 1.0 if math.isinf(nu) else float(rounds ** (-d / (2 * d + 2 * nu)))


def to_data(kernel: Kernel) -> dict[str, Any]:
    """``kernel`` as JSON-ready data: class name and parameters, nested kernels included."""
    if not _is_sklearns(type(kernel)):
        return {"class": type(kernel).__qualname__, "own": True, "repr": str(kernel)}
    params = {
        name: to_data(value) if isinstance(value, Kernel) else _plain(value)
        for name, value in kernel.get_params(deep=False).items()
    }
    return {"class": type(kernel).__name__, "params": params}


def from_data(data: dict[str, Any]) -> Kernel:
    """The kernel that :func:`to_data` described; classes of the user's own cannot be rebuilt."""
    if data.get("own"):
        raise InputError(
            f"the file was saved with a kernel class of your own ({data['class']}); "
            "pass it as load(path, kernel=...)."
        )
    cls = getattr(sklearn_kernels, data["class"], None)
    if not (isinstance(cls, type) and issubclass(cls, Kernel) and _is_sklearns(cls)):
        raise InputError(f"the file names an unknown kernel class {data['class']!r}.")
    params = {
        name: from_data(value) if isinstance(value, dict) else _unplain(value)
        for name, value in data["params"].items()
    }
    return cls(**params)


# The most used kernels are computed as scikit-learn does, with fewer passes over memory and no
# temporary arrays: in a loop over rounds the kernel is a good part of the time. The points come
# divided by the length scale and multiplied by the factor in _FORMS.

_NORMALISED = (RBF, Matern)  # k(x, x) = 1
_ROOT3 = math.sqrt(3)


def _scaled(kernel: Kernel, factor: float, left: Array, right: Array) -> tuple[Array, Array] | None:
    """Points in length scales, times a factor; None where scikit-learn is to say what is wrong."""
    scale = np.atleast_1d(kernel.length_scale) / factor
    # Points are at most 1e100, so that squares of what is divided do not overflow.
    if scale.size in (1, left.shape[1]) and scale.min() > 1e-40:
        return left / scale, right / scale
    return None


def _rbf(left: Array, right: Array) -> Array:
    values = cdist(left, right, "sqeuclidean")
    values *= -0.5
    return np.asarray(np.exp(values, out=values))


def _minus_half_squares(left: Array, right: Array) -> Array | None:
    """-|x - y|^2 / 2 = x'y - |x|^2 / 2 - |y|^2 / 2; None where that would lose digits."""
    middle = left.mean(axis=0)
    x, y = left - middle, right - middle
    x_squared, y_squared = np.vecdot(x, x), np.vecdot(y, y)
    if not x_squared.max() + y_squared.max() <= COMPACT:
        return None
    one, other = np.empty((len(x), x.shape[1] + 2)), np.empty((len(y), x.shape[1] + 2))
    one[:, :-2], one[:, -2], one[:, -1] = x, -0.5 * x_squared, 1.0
    other[:, :-2], other[:, -2], other[:, -1] = y, 1.0, -0.5 * y_squared
    return np.asarray(one @ other.T)


def _matern32(left: Array, right: Array) -> Array:
    distance = cdist(left, right)
    values = 1 + distance
    np.negative(distance, out=distance)
    values *= np.exp(distance, out=distance)
    return np.asarray(values)


def _matern52(left: Array, right: Array) -> Array:
    distance = cdist(left, right)
    values = distance + _ROOT3  # 1 + sqrt(3) d + d^2 by Horner's scheme
    values *= distance
    values += 1
    distance *= -_ROOT3
    values *= np.exp(distance, out=distance)
    return np.asarray(values)


_FORMS: dict[float, tuple[float, Callable[[Array, Array], Array]]] = {
    1.5: (_ROOT3, _matern32),
    2.5: (math.sqrt(5 / 3), _matern52),
    np.inf: (1.0, _rbf),
}


def _half_squares(kernel: Kernel, left: Array, right: Array) -> Array:
    scale = float(kernel.length_scale)
    return np.asarray(0.5 * cdist(left / scale, right / scale, "sqeuclidean"))


def _checked(kernel: Kernel, evaluate: Any, shape: tuple[int, ...]) -> Array:
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(evaluate(), dtype=np.float64)
    except Exception as error:
        raise InputError(
            f"{kernel} could not be evaluated on these points: {said(error)}."
        ) from error
    if values.shape != shape:
        raise InputError(f"{kernel} is not a kernel: it gave shape {values.shape}, not {shape}.")
    if not np.all(np.abs(values) <= LARGEST):
        raise InputError(f"{kernel} is not finite, or above {LARGEST:g}, on these points.")
    return values


def _check_parameters(kernel: Kernel) -> None:
    """scikit-learn takes any hyperparameters, and fails where they are used."""
    for name, value in kernel.get_params(deep=False).items():
        smooth = name == "nu" and isinstance(value, float) and value == math.inf  # RBF
        if name in (*_POSITIVE, *_REAL) and not smooth:
            numbers = as_floats(value, f"{name} of {type(kernel).__name__}")
            if not numbers.size or (name in _POSITIVE and np.any(numbers <= 0)):
                raise InputError(
                    f"{name} of {type(kernel).__name__} must be positive, got {brief(value)}."
                )


def _is_sklearns(cls: type) -> bool:
    return bool(cls.__module__ == sklearn_kernels.__name__)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _unplain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_unplain(item) for item in value)
    return value
