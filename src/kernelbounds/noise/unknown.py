"""An unknown noise scale: an upper bound on it from forecasts, and the radius that follows.

============  =================  ==================================================================
code          symbol             meaning
============  =================  ==================================================================
``errors``    |y_s - m_s|        of forecaster j, made before y_s, and right or wrong; (8, t)
``gains``     g_s                the variance of a forecast in units of its own noise s_j^2; (8, t)
``counts``    n                  rounds whose gain is at most 1, or at most 3: chosen before y_s
``energies``  A                  the sum of squared errors over those rounds
============  =================  ==================================================================

Let E[exp(-lambda (eps + b)^2 / (2 sigma^2)) | past] <= (1 + lambda)^(-1/2) for every number b and
the lambda below, as for Gaussian noise of standard deviation sigma. Then

    prod over these rounds of  (1 + lambda)^(1/2) exp(-lambda (y_s - m_s)^2 / (2 sigma^2))

is a non-negative supermartingale whatever the forecasts are. The mixture of all of them, with equal
weights, exceeds 1/delta at any time with probability at most delta. It increases with sigma, so
sigma is at most its root at all times at once. See ``docs/mathematics/noise.md``.
"""

from __future__ import annotations

import math

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine import ExactEngine, Forecasts
from kernelbounds.engine.forecasts import forecasts_since
from kernelbounds.mixtures import Hybrid
from kernelbounds.mixtures.hybrid import energy_bound, half_losses, least_forecast_ridge

# The noise scales s_j that forecasters are made for, largest first, as shares of B sqrt(k(x,x)) at
# the first point. With more of them, or fewer steps of a factor 2, bounds on sigma are within three
# percent of these from 50 observations on.
FORECASTERS = 3.0 ** -np.arange(8.0)
# Rounds count whose forecasts have a variance of at most these times s_j^2.
LARGEST_GAINS = 1.0, 3.0
# Up to 2.6 or so, noise of +-sigma satisfies the assumption too, with any bias b; larger ones would
# help with fewer than 40 observations alone.
RATES = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 2.4])
# In each of the intervals (s_(j+1), s_j] of noise scales, the losses of the radius are those of one
# forecaster, with one choice between forecast and constant in each round. It is the forecaster for
# the lower end: radii are smallest with a third to two thirds of sigma, and flat there.
FORECASTER_OF_INTERVAL = np.minimum(np.arange(len(FORECASTERS)) + 1, len(FORECASTERS) - 1)
# The root is known to this, relatively, and the upper end of its interval is taken.
ROOT_ACCURACY = 1e-6
# An error of zero in all rounds would make the bound zero, which is for sequences without noise.
SMALLEST_SCALE = 1e-100
# The energy of noise, without forecasts, is bounded with these rates.
ENERGY_RATES = 0.2, 0.4, 0.7, 0.9
# Forecasts take no noise scale at its word. So that data refute one that is too small, a share of
# delta is for the largest energy of noise of that scale.
SHARE_OF_ENERGY = 0.02


def largest_energy(count: int, delta: float) -> float:
    """The energy that noise of scale 1 exceeds at no time, with probability 1 - delta."""
    halves = -count * np.log1p(-np.array(ENERGY_RATES)) / (2 * np.array(ENERGY_RATES))
    return energy_bound(ENERGY_RATES, halves, count, 1.0, max(delta, 5e-324))


class ScaleForecasts:
    """Forecasts of all outcomes by forecasters for several noise scales, each made once and kept.

    Forecaster j is kernel ridge regression at the ridge s_j^2 / c, for the relative scale c / B^2
    of :class:`~kernelbounds.mixtures.Hybrid`. It needs neither B nor a right kernel.
    """

    def __init__(self) -> None:
        self.errors = np.empty((len(FORECASTERS), 0))
        self.gains = np.empty((len(FORECASTERS), 0))
        self.ridges = np.empty(0)  # s_j^2 / c, (8,)
        # How many rounds are in the sums of losses of a mixture, and these sums.
        self._sums: dict[tuple[Hybrid, float], tuple[int, Array]] = {}

    def extend(self, engine: ExactEngine) -> None:
        """Make the forecasts of outcomes that have none yet."""
        start, count = self.errors.shape[1], engine.data.count
        if start == count:
            return
        # The kernel is as large as at the first point where it is not zero.
        positive = engine.data.largest[engine.data.largest > 0]
        size = float(positive[0]) if len(positive) else 1.0
        self.ridges = np.asarray(size * FORECASTERS**2 / Hybrid.relative_scale)
        least, new = least_forecast_ridge(engine), np.empty((2, len(FORECASTERS), count - start))
        for j, ridge in enumerate(self.ridges.tolist()):
            done = start
            while done < count:
                made, alpha = forecasts_since(engine, done, ridge, least)
                rows = slice(done - start, done - start + len(made.errors))
                new[:, j, rows] = made.errors, made.variances / alpha
                done += len(made.errors)
        self.errors = np.hstack([self.errors, new[0]])
        self.gains = np.hstack([self.gains, new[1]])

    def upper_bound(self, delta: float) -> float:
        """sigma_max, rounded up: sigma exceeds it at any time with probability at most delta.

        It is infinite while the forecasts say too little.
        """
        counted = [self.gains <= most for most in LARGEST_GAINS]
        rounding = 1 + (16 + self.errors.shape[1]) * EPS
        counts = np.concatenate([one.sum(axis=1) for one in counted])[:, None]
        squares = self.errors**2 * rounding
        energies = np.concatenate([(squares * one).sum(axis=1) for one in counted])[:, None]
        growth = counts / 2 * np.log1p(RATES)
        level = math.log(growth.size / delta)

        def exceeds(log_scale: float) -> bool:
            logs = growth - RATES * energies / 2 * math.exp(-2 * log_scale)
            return float(np.logaddexp.reduce(logs, axis=None)) >= level

        largest = math.sqrt(float(energies.max(initial=0.0)))
        if not largest:
            return SMALLEST_SCALE if np.logaddexp.reduce(growth, axis=None) >= level else math.inf
        # Beyond this, the energies change the sum by less than the level's last digit.
        low, high = math.log(largest) - 12, math.log(largest) + 20
        if not exceeds(high):
            return math.inf
        while exceeds(low):
            low, high = low - 12, low
            if low < math.log(SMALLEST_SCALE):
                return SMALLEST_SCALE
        while high - low > ROOT_ACCURACY:
            middle = (low + high) / 2
            low, high = (low, middle) if exceeds(middle) else (middle, high)
        return math.exp(high) * (1 + 1e-12)

    def squared_radius(self, mixture: Hybrid, reference: Array, most: float, delta: float) -> float:
        """The largest R_t^2 of all noise scales up to ``most``; ``reference`` is s_j, (8,).

        In each interval of scales the losses increase with sigma, so that its upper end has the
        largest R_t^2, at delta / (1 + delta): terms of the mixture below 1, whose sum is below 1,
        need not increase.
        """
        count, level = self.errors.shape[1], delta / (1 + delta)
        # The interval of ``most`` itself, which ends there; the first one has no end of its own.
        top = max(int(np.count_nonzero(reference >= most)) - 1, 0)
        j = int(FORECASTER_OF_INTERVAL[top])
        made = Forecasts(self.errors[j], reference[j] ** 2 * self.gains[j])
        decided_at = float(reference[top])
        halves = half_losses(mixture.rates, made, most, decided_at).sum(axis=0)
        found = energy_bound(mixture.rates, halves, count, most, level, mixture.weights)
        # Below it, few intervals can have a larger radius: one term of the mixture says so.
        sums = self._sums_at_ends(mixture, reference)
        weights = np.array(mixture.weights) / sum(mixture.weights)
        logs = -np.log(weights * level) / np.array(mixture.rates)
        largest = 2 * reference**2 * (sums * (1 + count * EPS) + logs).min(axis=1)
        for number in range(top + 1, len(reference)):
            if largest[number] * (1 + 1e-9) > found:
                end, halves = float(reference[number]), sums[number]
                radius = energy_bound(mixture.rates, halves, count, end, level, mixture.weights)
                found = max(found, radius)
        return found

    def _sums_at_ends(self, mixture: Hybrid, reference: Array) -> Array:
        """The sums of half the losses at the upper ends s_j of all intervals, (8, rates)."""
        key = mixture, float(reference[0])
        known, sums = self._sums.get(key, (0, np.zeros((len(reference), len(mixture.rates)))))
        j, new = FORECASTER_OF_INTERVAL, slice(known, None)
        errors = self.errors[j, new] / reference[:, None]
        gains = self.gains[j, new] * (reference[j] / reference)[:, None] ** 2
        losses = half_losses(mixture.rates, Forecasts(errors.ravel(), gains.ravel()), 1.0)
        sums = sums + losses.reshape(len(reference), -1, len(mixture.rates)).sum(axis=1)
        self._sums = {key: (self.errors.shape[1], sums)}
        return np.asarray(sums)
