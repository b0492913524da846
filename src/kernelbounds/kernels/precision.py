"""How far computed values of a kernel are from the exact ones.

Errors are bounds on |computed k(x, z) - k(x, z)| / sqrt(k(x, x) k(z, z)), for all points of a
dimension, in units of eps = 2 u. They are derived, formula by formula:

* A stationary kernel: a relative error (d / 2 + 5 / 2) u of the distance (``distances.py``) changes
  kappa by as much times r |kappa'(r)|; to this comes the formula's own ``rounding``.
* An inner product of d terms and a constant: (d + 1) u, by Cauchy and Schwarz.
* A sum has the larger error of its terms and a rounding error, again by Cauchy and Schwarz.
* A product has the sum of its factors' errors and a rounding error.
* A power p >= 1 has p times the error of its base, and that of the power itself. A power below 1
  enlarges errors of small values without bound.
* A kernel on some of the inputs has the error that it has in so many dimensions.

Of all else nothing is known.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Product,
    Sum,
)

from kernelbounds.arrays import EPS, Array
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.stationary import Profile, is_stationary, profile
from kernelbounds.kernels.values import cross, diagonal

# The rounding errors that a kernel of which nothing is known is given at least. It is a guess, made
# for formulas that expand |x - z|^2 around an origin a few length scales away: scikit-learn's
# PairwiseKernel has errors of 6 at two length scales from zero, and of 200 at twenty.
UNKNOWN = 64.0
# Squared distances over which the error of a stationary kernel is maximised: all at which it is not
# constant. The error changes by less than a hundredth between two of them. Those below 1e-8 are for
# periodic kernels, whose length scales may be as short as 1e-40 periods.
SQUARES = np.concatenate(
    [np.geomspace(1e-90, 1e-8, 10_000, endpoint=False), np.geomspace(1e-8, 1e8, 2000)]
)


def evaluation_error(kernel: Kernel, dim: int) -> float | None:
    """The error of :func:`cross` in units of eps; None where it is not known."""
    if type(kernel) in (Sum, Product):
        one, other = evaluation_error(kernel.k1, dim), evaluation_error(kernel.k2, dim)
        if one is None or other is None:
            return None
        return (max(one, other) if type(kernel) is Sum else one + other) + 0.5
    if type(kernel) is Exponentiation:
        base, power = evaluation_error(kernel.kernel, dim), float(kernel.exponent)
        return None if base is None or power < 1 else power * base + 1
    if type(kernel) is OnInputs:
        return evaluation_error(kernel.kernel, len(kernel.inputs))
    if type(kernel) is ConstantKernel:
        return 0.0
    if type(kernel) is DotProduct:
        return (dim + 1) / 2
    return _stationary_error(profile(kernel), dim) if is_stationary(kernel) else None


@lru_cache(maxsize=64)
def _stationary_error(kappa: Profile, dim: int) -> float:
    s = np.minimum(SQUARES, kappa.monotone**2)
    of_distance = (dim / 2 + 2.5) * s * np.abs(kappa.slope(s))
    return 1.01 * float(np.max(of_distance + kappa.rounding(s))) / 2


def measured_error(kernel: Kernel, points: Array) -> float:
    """At least the error, in units of eps, from what k(x, x) is in a matrix at these points."""
    prior = diagonal(kernel, points)
    errors = [
        abs(float(cross(kernel, x, x.copy())[0, 0]) - known) / max(known, 1e-300)
        for x, known in zip(points[:, None], prior, strict=True)
    ]
    return float(4 * max(errors) / EPS)
