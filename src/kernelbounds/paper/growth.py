"""How fast the measured regret grows, beside what is proved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from kernelbounds.arrays import Array
from kernelbounds.theory import Rate

PARTS = 8  # with noise, the fit is over the rounds from T/8 to T
POINTS = 40


@dataclass(frozen=True)
class Growth:
    """The exponent of T in the regret: one fit a repetition, and their mean."""

    title: str
    rate: Rate  # proved
    rounds: int
    exponents: Array  # (repetitions,)

    @property
    def mean(self) -> float:
        """Of the fitted exponents."""
        return float(self.exponents.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % confidence interval for the mean, by Student's t."""
        count = len(self.exponents)
        if count < 2:
            return -math.inf, math.inf
        error = float(self.exponents.std(ddof=1)) / math.sqrt(count)
        reach = float(student.ppf(0.975, count - 1)) * error
        return self.mean - reach, self.mean + reach

    @property
    def proved(self) -> float:
        """The exponent of the proved rate near T, logarithms included."""
        return float(self.rate.local_exponent(math.sqrt(self.rounds / PARTS * self.rounds)))


def slopes(rounds: Array, regret: Array) -> Array:
    """Least squares of ln regret on ln T; regret is (repetitions, len(rounds))."""
    logs = np.log(np.maximum(regret, 1e-12))
    return np.asarray(np.polyfit(np.log(rounds), logs.T, 1)[0])


def running_slopes(regret: Array) -> Array:
    """The same along running sums of T rounds, at points even in ln t from T/8 on."""
    total = regret.shape[1]
    at = np.unique(np.geomspace(max(total / PARTS, 1), total, POINTS).round().astype(int))
    return slopes(at.astype(np.float64), regret[:, at - 1])
