"""A linear estimate of f* at one x for a fixed design, its bias and its noise.

==============  ==============================  =============================================
code            symbol                          meaning
==============  ==============================  =============================================
``weights``     w = (K + alpha I)^-1 k_t(x)     of the estimate w'y; any others are as valid
``length``      |w|                             the noise of the estimate, in units of sigma
``bias``        |phi(x) - sum_s w_s phi(x_s)|   how far off it can be, in units of B
``margin``      q                               what is added to the bias, in units of the noise
==============  ==============================  =============================================

For w that depends on points alone, w'y - f*(x) = w'eps - <f*, phi(x) - sum_s w_s phi(x_s)>. The
last term is at most B bias, and w'eps is sigma |w|-sub-Gaussian, given all points. The bias pushes
the estimate to one side only: with b = B bias / (sigma |w|) and probability at least 1 - delta, for
delta <= exp(-1/2),

    |w'y - f*(x)|  <=  B bias + sigma |w| q,    exp(-q^2 / 2) + exp(-(2b + q)^2 / 2) = delta

(``docs/mathematics/fixed-designs.md``). q is sqrt(2 ln(2/delta)) where there is no bias, and falls
to sqrt(2 ln(1/delta)) as that grows.

Independent Gaussian noise makes w'y - f*(x) Gaussian with a mean of at most B bias and a standard
deviation of at most sigma |w|, and in place of the right side there is the 1 - delta quantile of
|N(B bias, sigma^2 |w|^2)| (Armstrong and Kolesar, 2018), which grows with both for delta <= 1/2.

The ridge alpha is the one that makes the interval shortest, for each x, whatever the outcomes. That
ridge is chosen for the B and sigma that were assumed at first, and stays where others are assumed
later: the interval then grows with B, and with sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from kernelbounds.arrays import EPS, Array
from kernelbounds.confidence.assumptions import Assumptions
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine import Estimators, dot_error, vertex
from kernelbounds.functionals.targets import Targets

# Log ridges are tried in such steps, from the slack of the eigenvalues, below which they have no
# effect, to this times the largest one, where a bound is the one without data. The place of the
# minimum is found by a quartic; the bound is that at the place, wherever it is.
LOG_RIDGE_STEP, INFINITE_RIDGE = 0.5, 1e6
# Halvings of an interval of length at most ten, to the last digit.
HALVINGS = 56
# Probabilities and their logarithms are right to a few rounding errors, and their relative slope is
# at least q: this is more than what margins are wrong by.
MARGIN_ERROR = 1e-12
# Of a bias of more than this many standard deviations, one side is all that matters: the
# other has a probability below 1e-300.
ONE_SIDED = 40.0
# Biases at which the search knows the quantile, in standard deviations.
TABLE_OF_BIASES = np.append(np.linspace(0.0, 4.0, 65), ONE_SIDED)


def estimated(
    known: ConfidenceSet, points: Targets, signs: Sequence[int], delta: float, noise: str
) -> Array:
    """Upper bounds on s f* at m points, each of which holds by itself; (signs, m)."""
    found = shortest(known, points, delta, noise)
    half = _half_widths(known, found, delta, noise)
    return np.array([sign * found.values + half for sign in signs])


def estimated_half_widths(known: ConfidenceSet, points: Targets, delta: float, noise: str) -> Array:
    """(upper - lower) / 2, which does not depend on outcomes, rounding apart; (m,)."""
    return _half_widths(known, shortest(known, points, delta, noise), delta, noise)


def _half_widths(known: ConfidenceSet, found: Estimators, delta: float, noise: str) -> Array:
    path = known.engine.directions().path
    half = half_widths(known, found, margins(delta, noise))
    # The estimate itself is an inner product of c and z, and z of eigenvectors and outcomes.
    lost = 2 * dot_error(path.eigen.count, path.eigen.accuracy) * path.outcome_norm * found.length
    return np.asarray(half * (1 + 16 * EPS) + lost)


def shortest(known: ConfidenceSet, points: Targets, delta: float, noise: str) -> Estimators:
    """The ridge estimators with the shortest intervals under the B and sigma assumed at first."""
    directions = known.engine.directions()
    path = directions.path
    path = path.leading(path.eigen.eigenvectors)
    query = directions.query(path, points)
    low, high = math.log(path.eigen.slack), math.log(INFINITE_RIDGE * float(path.levels.max()))
    # From the largest eigenvalue, which does not depend on how observations are merged.
    grid = high - LOG_RIDGE_STEP * np.arange(5.0 + math.ceil((high - low) / LOG_RIDGE_STEP))[::-1]
    table = margins(delta, noise)(TABLE_OF_BIASES)
    found = query.estimators(np.exp(grid))
    tried = half_widths(
        known, found, lambda biases: np.interp(biases, TABLE_OF_BIASES, table), known.chosen_for
    )
    return query.estimates(np.exp(vertex(grid, tried)))


def half_widths(
    known: ConfidenceSet,
    found: Estimators,
    margin: Callable[[Array], Array],
    assumed: Assumptions | None = None,
) -> Array:
    """B bias + sigma |w| q, rounded up but for the last digit, for the B and sigma assumed."""
    a, directions = assumed or known.assumptions, known.engine.directions()
    squared = directions.squared_norms(np.array([directions.path.eigen.eigenvectors]))
    orthonormal = math.sqrt(float(squared[0]))
    bias, deviation = a.norm_bound * found.bias, a.noise_scale * orthonormal * found.length
    return np.asarray(bias + deviation * margin(bias / np.maximum(deviation, 1e-300)))


def margins(delta: float, noise: str) -> Callable[[Array], Array]:
    """q as a function of the bias in standard deviations, rounded up."""
    if noise == "Gaussian":
        return lambda biases: folded_margins(biases, delta)
    return lambda biases: sub_gaussian_margins(biases, delta)


def sub_gaussian_margins(biases: Array, delta: float) -> Array:
    """q(b) with exp(-q^2 / 2) + exp(-(2b + q)^2 / 2) = delta, for delta at most exp(-1/2).

    Divided by the first term and in logarithms, which neither underflow nor cancel, this is
    q^2 / 2 - ln(1 + exp(-2b (b + q))) = ln(1/delta).
    """
    b, level = np.minimum(biases, ONE_SIDED), -math.log(delta)

    def enough(q: Array) -> Array:
        return np.asarray(q**2 / 2 - np.log1p(np.exp(-2 * b * (b + q))) >= level)

    return _least(math.sqrt(2 * level), math.sqrt(2 * (level + math.log(2))), enough, b)


def folded_margins(biases: Array, delta: float) -> Array:
    """q(b) such that |N(b, 1)| exceeds b + q with probability delta, for delta at most 1/2.

    That is P(N > q) + P(N > 2b + q) = delta, so that q is between the quantiles of delta and of
    delta/2, and falls with b. The upper end of the last interval is returned.
    """
    b = np.minimum(biases, ONE_SIDED)

    def enough(q: Array) -> Array:
        return np.asarray(ndtr(-q) + ndtr(-2 * b - q) <= delta)

    return _least(-ndtri(delta), -ndtri(delta / 2), enough, b)


def _least(low: float, high: float, enough: Callable[[Array], Array], biases: Array) -> Array:
    """The least margin that is enough for each bias, found by halving between two; rounded up."""
    below, above = np.full_like(biases, low), np.full_like(biases, high + MARGIN_ERROR)
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        found = enough(middle)
        below, above = np.where(found, below, middle), np.where(found, middle, above)
    return np.asarray(above + MARGIN_ERROR)
