"""The radii of the confidence sets, and what data refute.

==================  ==============  =======================================================
code                paper           meaning
==================  ==============  =======================================================
``energy``          E_alpha         y' (I + K/alpha)^-1 y
``squared``         R_t^2           squared radius of the data constraint, Eq. (radius_def)
``around``          R~_alpha,t^2    squared radius of the ridge-centred ellipsoid
==================  ==============  =======================================================

The confidence set is empty exactly when E_alpha > R_t^2 + alpha B^2 for some ridge alpha: the left
side is the least value of ||f_t - y_t||^2 + alpha ||f||^2 over all functions f. So data refute norm
bounds and noise scales that are too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import EPS, LARGEST, Array
from kernelbounds.engine import RidgePath
from kernelbounds.noise.laws import SMALLEST_NOISE
from kernelbounds.noise.unknown import largest_energy


@dataclass(frozen=True)
class Radius:
    """The radius R_t of the data constraint, in two terms, and the norm bound B.

    R_t^2 = ``energy`` + ``penalty``. With the paper's mixture the former is E at
    alpha = sigma^2/c, where it cancels exactly in R~^2; with others it is 0. Without noise R_t = 0
    (Sec. 6.3). A bound of one's own finds it as ``known.radius``.

    Attributes
    ----------
    energy, penalty : float
        The two terms of R_t^2.
    norm_bound : float
        B.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> radius = seq.known.radius
    >>> radius.squared == radius.energy + radius.penalty, radius.norm_bound
    (True, 2.0)
    >>> energy = seq.known.energy_below(0.5)
    >>> bool(np.isclose(radius.around(0.5, energy), seq.ridge_radius(0.5) ** 2))
    True
    """

    energy: float
    penalty: float
    norm_bound: float

    def enlarged(self, by: float) -> Radius:
        """(R_t + ``by``)^2 in place of R_t^2, rounded up."""
        more = by * (2 * math.sqrt(self.squared) + by)
        return Radius(self.energy, self.penalty + more * (1 + 16 * EPS), self.norm_bound)

    @property
    def squared(self) -> float:
        """R_t^2."""
        return self.energy + self.penalty

    def around(self, ridge: Array | float, energy: Array | float) -> Array:
        """R~_alpha^2 = R_t^2 + alpha B^2 - E_alpha, Cor. (rkhs_ridge_conf_set)."""
        return np.asarray((self.energy - energy) + self.penalty + ridge * self.norm_bound**2)

    def joint_bound(self, ridge: Array) -> Array:
        """R_t^2 / alpha + B^2, which bounds ||f_t - y_t||^2 / alpha + ||f||^2."""
        return self.squared / ridge + self.norm_bound**2


# A grid over all ridges, refined around its best point: each pass narrows log alpha by 2/47, so
# that after four passes it is known to about 3e-4 of a unit and the value, at a maximum, to 1e-7.
GRID_POINTS, GRID_PASSES = 48, 4
# Noise scales are tried on a grid with this many points to the octave, one percent apart.
NOISE_STEPS_PER_OCTAVE = 64
# A probability of this times delta is nothing next to delta.
CERTAIN_FAILURE = 1e-12
# Where even smaller noise scales are admissible, they are bisected to this accuracy. At less than
# this fraction of what is certain, radii are all rounding errors, or come from forecasts alone,
# which any noise scale allows.
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


def least_noise_of_energy(energy: float, count: int, delta: float) -> float:
    """A lower bound on sigma if the noise has at least this energy; it fails with delta."""
    return math.sqrt(energy / largest_energy(count, delta))


def least_noise(admissible: Callable[[float], bool], certain: float, anchor: float) -> float:
    """The last noise scale before the first admissible one, on a grid fixed before the data.

    The grid is ``anchor`` times powers of 2^(1/64). The scan starts just below ``certain``, which
    sigma all but surely exceeds, and goes upwards: R_t need not grow with sigma, so bisection would
    be wrong (``docs/mathematics/radius.md``). If the start is admissible, a smaller scale that is
    not is returned, or 0 where even a tiny one is. Infinity: no noise scale is admissible.
    """
    if certain < SMALLEST_NOISE:
        return 0.0
    number = math.floor(NOISE_STEPS_PER_OCTAVE * math.log2(certain / anchor))

    def on_grid(number: int) -> float:
        return float(anchor * 2.0 ** (number / NOISE_STEPS_PER_OCTAVE))

    low = max(on_grid(number), SMALLEST_NOISE)
    if admissible(low):
        return _smaller(admissible, low)
    while (high := on_grid(number + 1)) <= LARGEST:
        if admissible(high):
            return low
        low, number = high, number + 1
    return math.inf


def _smaller(admissible: Callable[[float], bool], most: float) -> float:
    """A noise scale just below an admissible one, and below ``most``; 0 where that is tiny."""
    low = high = most
    while admissible(low):
        low, high = low / 2, low
        if low < max(LEAST_NOISE * most, SMALLEST_NOISE):
            return 0.0
    while high > (1 + NOISE_ACCURACY) * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if admissible(middle) else (middle, high)
    return low


def _supremum(path: RidgePath, function: Callable[[Array], Array]) -> float:
    """The largest value of a function of the ridge, 0 at least."""
    eigen, best = path.eigen, 0.0
    # The floor may be large, and bounds try smaller ridges, too. Below the slack none matters.
    low = math.log(min(eigen.floor, eigen.slack or eigen.floor))
    # From e^20 times the largest eigenvalue on, a ridge acts as if it were infinite.
    high = math.log(eigen.spectrum.max(initial=eigen.floor)) + 20
    for _ in range(GRID_PASSES):
        grid = np.linspace(low, high, GRID_POINTS)
        values = function(np.exp(grid))
        at = int(values.argmax())
        best = max(best, float(values[at]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    return best
