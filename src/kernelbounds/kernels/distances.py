"""Differences of points, in length scales or modulo a period.

Coordinates are subtracted as they stand: x - z is then right to half a unit in its last digit,
wherever the origin is. Divided by a length scale l first, x/l - z/l would be wrong by eps |x| / l.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import ExpSineSquared, Kernel, RationalQuadratic

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError


def length_scales(kernel: Kernel, dim: int) -> Array:
    """What differences are measured in, (1,) or (d,): length scales, or the period."""
    if type(kernel) is ExpSineSquared:
        if dim > 1:
            raise InputError(
                f"{kernel} is a kernel in one dimension only, and the points have {dim}: in more, "
                "a positive definite function of the distance has a limit, and a periodic one has "
                "none unless it is constant."
            )
        return np.array([float(kernel.periodicity)])
    scales = np.array(kernel.length_scale, dtype=np.float64, ndmin=1)
    if scales.ndim > 1 or len(scales) not in (1, dim):
        raise InputError(
            f"{kernel} has {scales.size} length scales, but the points have {dim} dimensions."
        )
    if type(kernel) is RationalQuadratic and len(scales) > 1:
        raise InputError(f"{kernel} must have one length scale; scikit-learn defines no other.")
    return scales


def squares(kernel: Kernel, left: Array, right: Array) -> tuple[Array, float]:
    """Squared distances in length scales, (m, n), up to the factor that comes second.

    The caller has a pass over the matrix into which the factor can be folded. The points are
    measured in powers of two near the length scales. That is exact, and keeps squares from
    underflowing unless a distance is below 1e-150 length scales.

    The relative error is (d + 5) u, the factor and its application included: u for a difference,
    which is squared, u for the square, (d - 1) u for the sum, 2 u for 1/l^2 and u for applying it.
    """
    scales = length_scales(kernel, left.shape[1])
    if len(scales) > 1:
        mantissas, exponents = np.frexp(scales)
        units = np.ldexp(1.0, -exponents)
        return cdist(left * units, right * units, "sqeuclidean", w=1 / mantissas**2), 1.0
    mantissa, exponent = math.frexp(scales[0])
    unit = math.ldexp(1.0, -exponent)
    if type(kernel) is ExpSineSquared:
        moved = unit * differences(kernel, left, right, 0)
        return moved * moved, 1 / mantissa**2
    return cdist(left * unit, right * unit, "sqeuclidean"), 1 / mantissa**2


def differences(kernel: Kernel, left: Array, right: Array, axis: int) -> Array:
    """x - z along one coordinate, (m, n); for a periodic kernel the nearest such difference."""
    x, z = left[:, axis, None], right[:, axis]
    if type(kernel) is ExpSineSquared:
        return _wrapped(x, z, float(kernel.periodicity))
    return np.asarray(x - z)


def centred(kernel: Kernel, left: Array, right: Array) -> tuple[Array, Array]:
    """The points in length scales, around the mean of those on the left."""
    scales, origin = length_scales(kernel, left.shape[1]), left.mean(axis=0)
    return (left - origin) / scales, (right - origin) / scales


def in_length_scales(kernel: Kernel, vectors: Array) -> Array:
    """The squared lengths of vectors (m, d) in length scales, (m,)."""
    scaled = vectors / length_scales(kernel, vectors.shape[1])
    return np.asarray(np.vecdot(scaled, scaled))


def _wrapped(x: Array, z: Array, period: float) -> Array:
    """x - z less the nearest multiple of the period, rounded once, however many periods.

    x - z = high + low exactly, and each is reduced exactly. So is their sum, once more as a sum of
    two parts, because low exceeds a period where floats at x are further apart than that.
    """
    high, low = _two_sum(x, -z)
    high, low = _two_sum(_nearest(high, period), _nearest(low, period))
    return np.asarray(_nearest(high, period) + low)


def _nearest(value: Array, period: float) -> Array:
    """The remainder in [-p/2, p/2]. It is exact: both fmod and, by Sterbenz, x - p are."""
    value = np.fmod(value, period)
    return np.asarray(value - period * (value > period / 2) + period * (value < -period / 2))


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its error, which is a float (Knuth)."""
    total = np.asarray(a + b)
    of_b = total - a
    return total, np.asarray((a - (total - of_b)) + (b - of_b))
