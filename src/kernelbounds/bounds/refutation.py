"""What the data refute: the smallest norm, and the smallest noise scale, that they allow.

The confidence set is empty exactly when E_alpha > R_t^2 + alpha B^2 for some ridge alpha: the left
side is the least value of ||f_t - y_t||^2 + alpha ||f||^2 over all functions f.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kernelbounds.arrays import LARGEST, Array
from kernelbounds.bounds.assumptions import SMALLEST_NOISE
from kernelbounds.engine import RidgePath

# A grid over all ridges, refined around its best point: each pass narrows log alpha by 2/47, so
# that after four passes it is known to about 3e-4 of a unit and the value, at a maximum, to 1e-7.
POINTS, PASSES = 48, 4
# The smallest noise scale is sought between powers of two, then by bisection, to this accuracy. At
# less than this fraction of the misfit that no function avoids, radii are all rounding errors, or
# come from forecasts alone, which any noise scale allows.
NOISE_ACCURACY, LEAST_NOISE = 1e-3, 1e-6


def least_norm(path: RidgePath, squared_radius: float, scatter: float = 0.0) -> float:
    """B_min = sup over alpha of sqrt((E_alpha - R_t^2) / alpha), of a path for all ridges.

    It is infinite where outcomes at equal points contradict each other, whatever the norm: every
    E_alpha is at least their ``scatter``. No other contradiction can be told for certain from one
    that a large norm resolves, since eigenvalues below rounding errors need not be zero. The
    supremum is finite there, and valid: the path's matrix is at least the kernel matrix.
    """
    if scatter > squared_radius:
        return math.inf
    return math.sqrt(
        _supremum(path, lambda ridges: (path.energy(ridges) - squared_radius) / ridges)
    )


def least_squared_radius(path: RidgePath, norm_bound: float) -> float:
    """sup over alpha of E_alpha - alpha B^2: a smaller R_t^2 leaves no function of norm B."""
    return _supremum(path, lambda ridges: path.energy(ridges) - ridges * norm_bound**2)


def least_noise(squared_radius: Callable[[float], float], least: float, unit: float) -> float:
    """The smallest sigma with R_t^2(sigma) >= ``least``, from below, near ``unit``.

    Zero means that a tiny fraction of the unit is enough, infinity that nothing is.
    """
    if least <= 0:
        return 0.0
    low = high = unit = max(unit, SMALLEST_NOISE)
    while squared_radius(high) < least:
        low, high = high, 2 * high
        if high > LARGEST:
            return math.inf
    while low == high or squared_radius(low) >= least:
        low, high = low / 2, low
        if low < max(LEAST_NOISE * unit, SMALLEST_NOISE):
            return 0.0
    while high > (1 + NOISE_ACCURACY) * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if squared_radius(middle) >= least else (middle, high)
    return low


def _supremum(path: RidgePath, function: Callable[[Array], Array]) -> float:
    """The largest value of a function of the ridge, 0 at least."""
    eigen, best = path.eigen, 0.0
    # The floor may be large, and bounds try smaller ridges, too. Below the slack none matters.
    low = math.log(min(eigen.floor, eigen.slack or eigen.floor))
    high = math.log(eigen.spectrum.max(initial=eigen.floor)) + 20
    for _ in range(PASSES):
        grid = np.linspace(low, high, POINTS)
        values = function(np.exp(grid))
        at = int(values.argmax())
        best = max(best, float(values[at]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    return best
