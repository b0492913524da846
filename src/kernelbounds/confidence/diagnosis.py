"""Diagnosis: what the data say of the norm bound and the noise scale that were assumed.

The confidence set is empty exactly when E_alpha > R_t^2 + alpha B^2 for some ridge alpha: the left
side is the least value of ||f_t - y_t||^2 + alpha ||f||^2 over all functions f. So data refute norm
bounds and noise scales that are too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kernelbounds.arrays import LARGEST, Array, brief
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine import RidgePath
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.noise.law import SMALLEST_NOISE
from kernelbounds.noise.unknown import SHARE_OF_ENERGY, largest_energy
from kernelbounds.structure.classes import AnyOf

NORM_TOLERANCE = 1e-9  # relative, of rounding errors in a function that a user passes
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


def contains(known: ConfidenceSet, function: RKHSFunction) -> bool:
    """Whether ||f|| <= B and ||f_t - y_t|| <= R_t, up to rounding errors of the function."""
    kernel, tolerance = known.radius_engine.data.kernel, NORM_TOLERANCE
    if not isinstance(function, RKHSFunction):
        raise InputError(f"contains() takes a kernelbounds.RKHSFunction, got {brief(function)}.")
    if function.kernel != kernel:
        raise InputError(f"the function's kernel is {function.kernel}, the sequence's is {kernel}.")
    if function.norm > known.assumptions.norm_bound * (1 + tolerance):
        return False
    if not known.count:
        return True
    misfit = np.linalg.norm(known.data.whitening.times(function(known.points)) - known.outcomes)
    most = math.sqrt(known.radius.squared) * (1 + tolerance)
    return bool(misfit <= most + tolerance * np.linalg.norm(known.outcomes))


def norm_lower_bound(known: ConfidenceSet) -> float:
    """B_min: with probability at least 1 - delta it is at most ||f*|| at all times at once."""
    if not known.count:
        return 0.0
    if (classes := known.evidence.classes) is not None:
        # All bounds on the norms must be multiplied by this, as where f* has parts.
        ratios = [norm_lower_bound(one) / one.assumptions.norm_bound for one in known.in_classes()]
        ratio = min(ratios) if isinstance(classes, AnyOf) else max(ratios)
        return known.assumptions.norm_bound * ratio
    return least_norm(known.engine.path(), known.radius.squared, known.data.scatter)


def noise_lower_bound(known: ConfidenceSet) -> float:
    """The smallest noise scale under which some function of norm at most B fits the data.

    With probability at least 1 - delta it is at most the true sigma, if B and the kernel are
    right. Noise scales are tried upwards in steps of one percent; this is the last one before
    the first whose R_t leaves a function. Where the scale is unknown, it follows from the
    energy of the noise alone, and is infinite where it exceeds what the outcomes allow.
    """
    a = known.assumptions
    least = _least_squared_radius(known) if known.count else 0.0
    # The noise has to explain what misspecification does not of the least misfit.
    energy = max(math.sqrt(least) - known.most_misspecified, 0.0) ** 2
    if energy == 0:
        return 0.0
    if not a.noise.is_sub_gaussian:
        return math.sqrt(energy)
    if not a.noise.scale_is_stated:  # R_t then takes no noise scale at its word.
        found = least_noise_of_energy(energy, known.count, SHARE_OF_ENERGY * a.delta)
        return found if found <= a.noise.largest else math.inf
    known.forecasts()  # The sets below share them, where they do not depend on sigma.
    now = known.assuming()

    def admissible(noise_scale: float) -> bool:
        return now.assuming(noise_scale=noise_scale).radius.squared >= least

    # The grid is fixed by what was assumed, and has its unit.
    anchor = a.noise_scale or a.norm_bound or 1.0
    certain = least_noise_of_energy(energy, known.count, CERTAIN_FAILURE * a.delta)
    return least_noise(admissible, certain, anchor)


def noise_upper_bound(known: ConfidenceSet) -> float:
    """sigma_max: Gaussian noise of one scale has at most this, with probability 1 - delta.

    Where the scale is unknown, it is the number in force, at half of delta.
    """
    a = known.assumptions
    if not a.noise.scale_is_stated:
        return a.noise_scale
    if a.delta == 0:
        return math.inf
    return known.evidence.scale_forecasts.upper_bound(a.delta)


def is_refuted(known: ConfidenceSet) -> bool:
    """Whether B_min > B, so that the set is empty."""
    norm_bound = known.assumptions.norm_bound
    key = "refuted", norm_bound, known.radius.squared
    return known.evidence.kept(key, lambda: norm_lower_bound(known) > norm_bound)


def refute_if_empty(known: ConfidenceSet) -> None:
    """Raise :class:`EmptyConfidenceSetError` when B_min > B."""
    a, least = known.assumptions, norm_lower_bound(known)
    if least > a.norm_bound:
        has_parts = known.evidence.parts is not None
        raise EmptyConfidenceSetError(
            a.norm_bound,
            a.noise_scale,
            least,
            noise_lower_bound(known),
            has_parts,
            a.noise.in_words,
        )


def _least_squared_radius(known: ConfidenceSet) -> float:
    """The smallest R_t^2 that leaves a function, in one of the classes or in all of them."""
    if (classes := known.evidence.classes) is None:
        return least_squared_radius(known.engine.path(), known.assumptions.norm_bound)
    each = [_least_squared_radius(one) for one in known.in_classes()]
    return min(each) if isinstance(classes, AnyOf) else max(each)


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
