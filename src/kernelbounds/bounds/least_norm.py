"""The smallest norm that the data allow."""

from __future__ import annotations

import math

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.engine import RidgePath

# A grid over all ridges, refined around its best point: each pass narrows log alpha by 2/47, so
# that after four passes it is known to about 3e-4 of a unit and the value, at a maximum, to 1e-7.
POINTS, PASSES = 48, 4
# Ridges, relative to the smallest that double precision can tell from zero, by which a supremum
# that is infinite is recognised: (E - R^2)/alpha then grows a hundredfold between them.
TINY, SMALL = 1e2, 1e4


def least_norm(path: RidgePath, squared_radius: float) -> float:
    """B_min = sup over alpha of sqrt((E_alpha - R_t^2) / alpha), of a path for all ridges.

    It is infinite when outcomes contradict each other whatever the norm.
    """

    def excess(log_ridge: Array) -> Array:
        ridges = np.exp(log_ridge)
        return np.asarray((path.energy(ridges) - squared_radius) / ridges)

    floor = path.eigen.floor
    low, high = math.log(floor), math.log(path.eigen.spectrum.max(initial=floor)) + 20
    tiny, small = excess(low + np.log([TINY, SMALL]))
    if tiny > 0 and tiny > 0.5 * (SMALL / TINY) * small:
        return math.inf
    best = 0.0
    for _ in range(PASSES):
        grid = np.linspace(low, high, POINTS)
        values = excess(grid)
        at = int(values.argmax())
        best = max(best, float(values[at]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    return math.sqrt(best)
