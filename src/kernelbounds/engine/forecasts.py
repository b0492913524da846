"""Forecasts of each outcome from those before it, from which the radius R_t is made.

One by one, forecasts are rows of a Cholesky factor: of the merged rows that a window starts with,
and of the observations of that window. In a block they all come from the merged rows alone. A
forecast may be anything that is known before its outcome, so both are valid, and rounding errors do
no harm; only the difference from the outcome must be right.

Forecasts are made at a ``ridge``, or at ``least`` times the largest k(x,x) so far where that is
more.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.exact import ExactEngine, cached
from kernelbounds.engine.observations import ForecastWindow, Observations
from kernelbounds.engine.path_query import PathQuery
from kernelbounds.engine.ridge_fit import LEAST_RIDGE_OF_TRACE, Forecasts, RidgeFit
from kernelbounds.engine.ridge_path import GrowingPath, RidgePath

# Differences of sums over all forecasts cancel, so a factor is trusted with these only at ridges
# a thousand times as large as for bounds.
LEAST_RIDGE_FOR_SUMS = 1e3 * LEAST_RIDGE_OF_TRACE
# The outcome enters the sum of at most eight terms in which y - m is computed: its rounding errors,
# as multiples of the outcome's.
OUTCOME_ROUNDINGS = 8


class BlockStart(NamedTuple):
    """The predictions and sums before a block, at one ridge."""

    mean: Array  # mu_alpha at the points so far, (n,)
    variance: Array  # rho_alpha^2, (n,)
    energy: float  # E_alpha and ln det(I + K/alpha), rounded down
    log_det: float


def forecasts_since(
    engine: ExactEngine, start: int, ridge: float, least: float
) -> tuple[Forecasts, float]:
    """Forecast outcomes from number ``start`` on, one at least, and return their ridge, too.

    Forecasts end where a larger ridge is needed, since none may know later points. Each is made
    from all outcomes before it or, where observations are many and points few, from those before
    its block (``Observations.blocks_from``).
    """
    data = engine.data
    window, after = window_of(data, start)
    enough = forecast_ridges(data.largest[start:after], ridge, least)
    alpha = float(enough[0])
    stop = start + int(np.searchsorted(enough, alpha, side="right"))
    if window.in_block:
        made = in_block(data, block_start(engine, window, alpha), start, stop)
    else:
        made = one_by_one(data, window, start, stop, engine.fit(alpha))
    lost = OUTCOME_ROUNDINGS * EPS * np.abs(data.outcomes[start:stop])
    lost += data.whitening.part(start, stop).errors(data.outcomes[start:stop])
    return Forecasts(np.abs(made.errors) + lost, made.variances), alpha


def gained_in_blocks(engine: ExactEngine, ridge: float, least: float) -> tuple[float, float]:
    """Bound from above how much E_alpha and ln det(I + K/alpha) grew since the first block.

    Alpha is the ridge of the next forecast. These are the sums of what forecasts one by one would
    have cost.
    """
    data, start = engine.data, engine.data.blocks_from
    assert start is not None
    alpha = float(forecast_ridges(data.largest[start], ridge, least))
    before = block_start(engine, window_of(data, start)[0], alpha)
    now = engine.sums_above(alpha, LEAST_RIDGE_FOR_SUMS)
    gains = now[0] - before.energy, now[1] - before.log_det
    return max(gains[0], 0.0) + 4 * EPS * now[0], max(gains[1], 0.0) + 4 * EPS * now[1]


def largest_forecast_ridge(engine: ExactEngine, ridge: float, least: float) -> float:
    """The largest ridge at which a forecast is made."""
    return float(forecast_ridges(engine.data.largest[-1:], ridge, least).max(initial=0.0))


def forecast_ridges(largest: Array, ridge: float, least: float) -> Array:
    """The ridges at which forecasts are made, given the largest k(x,x) up to each; they never fall.

    A ridge is ``ridge``, or ``least`` times the power of two above the largest k(x,x), which
    seldom changes.
    """
    scales = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1]), 0.0)
    return np.maximum(ridge, least * scales)


def window_of(data: Observations, number: int) -> tuple[ForecastWindow, int]:
    """The window of an observation, and the number of the first one after it."""
    at = bisect_right(data.windows, number, key=lambda one: one.start)
    after = data.windows[at].start if at < len(data.windows) else data.count
    return data.windows[at - 1], after


def one_by_one(
    data: Observations, window: ForecastWindow, start: int, stop: int, current: RidgeFit
) -> Forecasts:
    """Forecast some of a window's outcomes; ``current`` is the fit of all present rows."""
    first = len(window.merged) - window.start
    fit = current
    if window.start != data.merged.count or stop != data.count:
        fit = RidgeFit(data.rows_of(window, stop), current.ridge)
    made = fit.forecasts()
    return Forecasts(*(part[first + start : first + stop] for part in made))


def block_start(engine: ExactEngine, window: ForecastWindow, ridge: float) -> BlockStart:
    """The predictions and sums before a block, from an eigenbasis, which takes any ridge."""

    def made() -> BlockStart:
        rows = engine.data.rows_of(window, window.start)
        path = GrowingPath(rows, 0.0, 0.0).current()
        asked = PathQuery.of(path, rows.representers(window.merged.points))
        found = asked.predict(np.array([ridge]))
        log_det = _log_det_below(path, ridge)
        return BlockStart(found.mean[0], found.variance[0], float(found.energy[0]), log_det)

    return cached(engine.block_starts, (window.start, ridge), made)


def in_block(data: Observations, known: BlockStart, start: int, stop: int) -> Forecasts:
    """Forecast outcomes of a block, by the prior at points without observations.

    A point whose noise is correlated with that of others counts as one without observations.
    """
    numbers, weights = data.of_point[start:stop], data.weights[start:stop]
    seen = numbers < len(known.mean)
    mean, variance = np.zeros(len(numbers)), data.prior[start:stop].copy()
    mean[seen] = weights[seen] * known.mean[numbers[seen]]
    variance[seen] = weights[seen] ** 2 * known.variance[numbers[seen]]
    return Forecasts(data.outcomes[start:stop] - mean, variance)


def _log_det_below(path: RidgePath, ridge: float) -> float:
    """ln det(I + K/alpha), rounded down."""
    values = np.maximum(path.eigen.eigenvalues - path.eigen.slack, 0.0)
    return float(np.log1p(values / ridge).sum()) * (1 - len(values) * EPS)
