"""What is predicted of each outcome from those before it.

One by one, the forecasts are rows of a Cholesky factor: of the merged rows that a window starts
with, and of its own observations. In a block they all come from the merged rows alone. A forecast
may be anything that is known before its outcome, so that both are valid, and rounding errors do no
harm; what must be right is the difference from the outcome.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.growing_path import GrowingPath
from kernelbounds.engine.observations import Observations, Window
from kernelbounds.engine.path_query import PathQuery
from kernelbounds.engine.ridge_fit import Forecasts, RidgeFit
from kernelbounds.engine.ridge_path import RidgePath

# The outcome enters the sum of at most eight terms in which y - m is computed: its rounding errors,
# as multiples of the outcome's.
LOST = 8


class BlockStart(NamedTuple):
    """What is known before a block, at one ridge."""

    mean: Array  # mu_alpha at the points so far, (n,)
    variance: Array  # rho_alpha^2, (n,)
    energy: float  # E_alpha and ln det(I + K/alpha), rounded down
    log_det: float


def forecast_ridges(largest: Array, ridge: float, least: float) -> Array:
    """The ridges at which forecasts are made, given the largest k(x,x) up to each; they never fall.

    They are ``ridge``, or ``least`` times the power of two above the largest k(x,x), which seldom
    changes.
    """
    scales = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1]), 0.0)
    return np.maximum(ridge, least * scales)


def window_of(data: Observations, number: int) -> tuple[Window, int]:
    """The window of an observation, and the number of the first one after it."""
    at = bisect_right(data.windows, number, key=lambda one: one.start)
    after = data.windows[at].start if at < len(data.windows) else data.count
    return data.windows[at - 1], after


def one_by_one(
    data: Observations, window: Window, start: int, stop: int, current: RidgeFit
) -> Forecasts:
    """Forecasts of some of a window's outcomes; ``current`` is the fit of all rows of today."""
    first = len(window.merged) - window.start
    if window.start == data.merged.count and stop == data.count:
        made = current.forecasts()
    elif window.start == data.merged.count:  # later points may need a larger ridge
        made = RidgeFit(data.rows.first(first + stop), current.ridge).forecasts()
    else:
        made = RidgeFit(data.rows_of(window, stop), current.ridge).forecasts()
    return Forecasts(*(part[first + start : first + stop] for part in made))


def block_start(data: Observations, window: Window, ridge: float) -> BlockStart:
    """What is known before a block; from an eigenbasis, which takes any ridge."""
    rows = data.rows_of(window, window.start)
    path = GrowingPath(rows, 0.0, 0.0).current()
    found = PathQuery.of(path, rows.representers(window.merged.points)).predict(np.array([ridge]))
    return BlockStart(
        found.mean[0], found.variance[0], float(found.energy[0]), _log_det(path, ridge)
    )


def in_block(data: Observations, known: BlockStart, start: int, stop: int) -> Forecasts:
    """Forecasts of outcomes of a block; at a point without observations, those of the prior."""
    numbers, weights = data.of_point[start:stop], data.weights[start:stop]
    seen = numbers < len(known.mean)
    mean, variance = np.zeros(len(numbers)), np.empty(len(numbers))
    mean[seen], variance[seen] = known.mean[numbers[seen]], known.variance[numbers[seen]]
    if not seen.all():
        variance[~seen] = kernels.diagonal(data.kernel, data.points[start:stop][~seen])
    return Forecasts(data.outcomes[start:stop] - weights * mean, weights**2 * variance)


def rounded(made: Forecasts, outcomes: Array) -> Forecasts:
    """Their errors, from above."""
    return Forecasts(np.abs(made.errors) + LOST * EPS * np.abs(outcomes), made.variances)


def _log_det(path: RidgePath, ridge: float) -> float:
    """ln det(I + K/alpha), rounded down."""
    values = np.maximum(path.eigen.eigenvalues - path.eigen.slack, 0.0)
    return float(np.log1p(values / ridge).sum()) * (1 - len(values) * EPS)
