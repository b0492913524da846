"""The kernels in 40-digit arithmetic, each as its definition stands."""

from __future__ import annotations

import math
from functools import lru_cache

import mpmath as mp
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

import kernelbounds as kb


def exact(kernel, x, z) -> mp.mpf:
    """k(x, z) for points given as sequences of floats, which are taken to be exact."""
    with mp.workdps(40):
        return _value(kernel, _exactly(tuple(x)), _exactly(tuple(z)))


@lru_cache(maxsize=1024)
def _exactly(point) -> list[mp.mpf]:
    """The coordinates of a point, which no number of digits rounds."""
    return [mp.mpf(float(a)) for a in point]


def exact_derivative(kernel, x, axis, z, unit=1.0) -> mp.mpf:
    """dk(x, z)/dx_a, by a difference quotient over 1e-30 of a unit of length."""
    with mp.workdps(140):
        x, z = (_exactly(tuple(point)) for point in (x, z))
        step = mp.mpf(10) ** -30 * mp.mpf(unit)
        ahead, behind = (_value(kernel, _moved(x, axis, h), z) for h in (step, -step))
        return (ahead - behind) / (2 * step)


def exact_squared_norm(kernel, x, axis, unit=1.0) -> mp.mpf:
    """d^2 k(x, x') / dx_a dx'_a at x' = x, by difference quotients over 1e-200 of a unit."""
    with mp.workdps(600):
        x = _exactly(tuple(x))
        step = mp.mpf(10) ** -200 * mp.mpf(unit)
        ahead, behind = (_moved(x, axis, h) for h in (step, -step))
        mixed = 2 * _value(kernel, ahead, behind)  # kernels are symmetric
        return (_value(kernel, ahead, ahead) - mixed + _value(kernel, behind, behind)) / (
            4 * step**2
        )


def _moved(x, axis, step):
    return [a + step if i == axis else a for i, a in enumerate(x)]


def _value(kernel, x, z):
    if isinstance(kernel, Sum):
        return _value(kernel.k1, x, z) + _value(kernel.k2, x, z)
    if isinstance(kernel, Product):
        return _value(kernel.k1, x, z) * _value(kernel.k2, x, z)
    if isinstance(kernel, Exponentiation):
        return _value(kernel.kernel, x, z) ** mp.mpf(float(kernel.exponent))
    if isinstance(kernel, kb.OnInputs):
        return _value(kernel.kernel, *([p[i] for i in kernel.inputs] for p in (x, z)))
    if isinstance(kernel, kb.Levels):
        return mp.mpf(1) if x == z else mp.mpf(float(kernel.correlation))
    if isinstance(kernel, ConstantKernel):
        return mp.mpf(float(kernel.constant_value))
    if isinstance(kernel, DotProduct):
        return mp.mpf(float(kernel.sigma_0)) ** 2 + mp.fsum(a * b for a, b in zip(x, z))
    if isinstance(kernel, ExpSineSquared):
        # Of many turns only the fraction counts, so more than 40 digits are needed before it.
        with mp.extradps(120):
            turns = (x[0] - z[0]) / mp.mpf(float(kernel.periodicity))
            turns -= mp.nint(turns)
        return mp.exp(-2 * (mp.sin(mp.pi * turns) / mp.mpf(float(kernel.length_scale))) ** 2)
    r = mp.sqrt(_square(kernel.length_scale, x, z))
    if isinstance(kernel, RationalQuadratic):
        alpha = mp.mpf(float(kernel.alpha))
        return mp.exp(-alpha * mp.log1p(r * r / (2 * alpha)))
    if isinstance(kernel, Matern) and not math.isinf(kernel.nu):
        return profile(float(kernel.nu), r)
    if isinstance(kernel, RBF):
        return mp.exp(-r * r / 2)
    raise TypeError(kernel)


def profile(nu: float, r: mp.mpf) -> mp.mpf:
    """The Matern kernel at a distance of r length scales."""
    order = mp.mpf(nu)
    z = mp.sqrt(2 * order) * r
    if z == 0:
        return mp.mpf(1)
    return 2 ** (1 - order) / mp.gamma(order) * z**order * mp.besselk(order, z)


def _square(length_scale, x, z):
    apart = [a - b for a, b in zip(x, z)]
    try:
        apart = [d / mp.mpf(float(scale)) for d, scale in zip(apart, length_scale)]
        unit = mp.mpf(1)
    except TypeError:
        unit = mp.mpf(float(length_scale))
    return mp.fsum(d * d for d in apart) / (unit * unit)


class ExactFunction:
    """f = sum_i w_i k(., z_i) with values and norm in 40 digits; weights are floats."""

    def __init__(self, kernel, centres, weights):
        self._kernel, self._centres = kernel, centres
        self._weights = [mp.mpf(float(w)) for w in weights]

    def __call__(self, points) -> list[float]:
        return [float(self._at(x)) for x in points]

    @property
    def norm(self) -> float:
        with mp.workdps(40):
            squared = mp.fsum(w * self._at(z) for w, z in zip(self._weights, self._centres))
            return float(mp.sqrt(squared))

    def _at(self, x):
        with mp.workdps(40):
            return mp.fsum(
                w * exact(self._kernel, x, z) for w, z in zip(self._weights, self._centres)
            )
