"""A radius close to the energy of the noise itself: forecasts where they pay, and else a constant.

==============  =============  ============================================================
code            symbol         meaning
==============  =============  ============================================================
``rates``       lambda_j       in (0, 1]; one supermartingale each
``weights``     w_j            positive; of their mixture, and divided by their sum
``errors``      e_s            (y_s - m_s)^2 / sigma^2, of a forecast m_s made before y_s
``gains``       g_s            v_s / sigma^2, its variance in units of the noise's
``halves``      q_j            Q_j / (2 sigma^2), half of the losses taken
==============  =============  ============================================================

For conditionally sigma-sub-Gaussian noise eps, and whatever m and v are known before the outcome
(``docs/mathematics/radius.md``),

    E exp(lambda eps^2 / (2 sigma^2) - lambda L / (2 sigma^2))  <=  1

for both of the losses

    energy     L = (sigma^2 / lambda) ln(1 / (1 - lambda))                            (lambda < 1)
    forecast   L = (sigma^2 / lambda) ln(1 + lambda v / sigma^2)
                   + sigma^2 (y - m)^2 / (sigma^2 + lambda v).

So one of them may be chosen in every round before the outcome is seen, and with Q_j the sum of
those taken, R_t^2 is the S that solves

    sum_j w_j exp(lambda_j (S - Q_j) / (2 sigma^2)) = 1 / delta.

lambda = 1 with the forecasts of N(0, c K) is the paper's radius.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import EPS, Array, as_scalar, brief, set_checked
from kernelbounds.engine import Engine, ExactEngine, Forecasts
from kernelbounds.engine.forecasts import forecasts_since, largest_forecast_ridge
from kernelbounds.errors import InputError
from kernelbounds.mixtures.mixture import Mixture

# Forecasts need not be exact, but from a matrix that is numerically singular they would be useless.
# Relative to the largest k(x,x), the first ridge leaves them half of the digits with 10,000
# observations. The second, also relative to the error of the kernel's values, is above what errors
# add to a matrix of that size.
LEAST_RIDGE, LEAST_RIDGE_OF_ERROR = 1e-8, 1e4
# What is divided by these must not overflow: a rate, a weight, and c.
SMALLEST_RATE, SMALLEST_WEIGHT, SMALLEST_SCALE = 1e-90, 1e-100, 1e-300
# With the default rates: the two small ones have a tenth together, which costs bounds of the first
# few hundred rounds one percent at most, and the others share the rest.
WEIGHTS = (1.0, 3.0, 9.0, 9.0, 9.0, 9.0)
# Squares of outcomes, at most 1e200 each, never have a larger sum.
LARGEST_ENERGY = 1e210
# More steps than it ever takes: each step of Newton's method from afar removes a term of the sum,
# and then the digits double.
NEWTON_STEPS = 50


@dataclass(frozen=True)
class Hybrid(Mixture):
    """In each round a forecast or a constant, whichever is expected to cost less.

    It has no unit and no horizon, and nothing needs to be tuned: bounds are multiplied by a number
    when outcomes, B and sigma are. The constant takes sigma at its word. Where sigma may be too
    small, :class:`Single` is the more forgiving choice (``docs/mathematics/radius.md``).

    Parameters
    ----------
    rates : sequence of float
        The lambda_j, in (0, 1]. Small ones are for long runs: their energy loss is closer to the
        noise energy, and they pay more for delta.
    relative_scale : float
        c / B^2, for the forecasts of N(0, c K).
    weights : sequence of float
        The w_j, one for each rate, relative to each other: they are divided by their sum. Without
        them the default rates have 1, 3, 9, 9, 9 and 9, and other rates have equal ones.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> radii = []
    >>> for mixture in (kb.mixtures.Hybrid(), kb.mixtures.Single(1.0)):
    ...     seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, mixture=mixture)
    ...     seq.update([[i / 20] for i in range(20)], [0.3] * 20)
    ...     radii.append(seq.radius)
    >>> radii[0] < radii[1]
    True
    """

    rates: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
    relative_scale: float = 0.03
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rates = _numbers(self.rates, "rates", above=SMALLEST_RATE, most=1.0)
        if not rates:
            raise InputError("rates is empty; pass at least one number in (0, 1].")
        scale = as_scalar(self.relative_scale, "relative_scale", above=0.0, most=1e100)
        weights = _numbers(self.weights, "weights", above=SMALLEST_WEIGHT, most=1e100)
        if not weights:
            weights = WEIGHTS if rates == Hybrid.rates else (1.0,) * len(rates)
        if len(weights) != len(rates):
            raise InputError(
                f"weights must be one for each of the {len(rates)} rates, got {len(weights)}."
            )
        set_checked(self, rates=rates, relative_scale=scale, weights=weights)

    def scale(self, norm_bound: float) -> float:
        """See :class:`Mixture`."""
        return max(self.relative_scale * norm_bound**2, SMALLEST_SCALE)

    @property
    def excess_over_paper(self) -> float:
        """2 ln(1/w), the weight of the paper's own supermartingale being w."""
        weight = sum(w for rate, w in zip(self.rates, self.weights, strict=True) if rate == 1.0)
        return 2 * math.log(sum(self.weights) / weight) if weight else math.inf

    def forecasts(
        self, engine: ExactEngine, ridge: float, noise_scale: float, start: int
    ) -> Forecasts:
        """The forecasts of N(0, c K), with a smaller c where double precision asks for it.

        Forecasts end before the first outcome that needs a still smaller c: none may know later
        points.
        """
        made, alpha = forecasts_since(engine, start, ridge, least_forecast_ridge(engine))
        # v = c rho^2, where c = sigma^2 / alpha.
        return Forecasts(made.errors, noise_scale**2 * (made.variances / alpha))

    def penalty(
        self, engine: ExactEngine, ridge: float, noise_scale: float, delta: float
    ) -> tuple[float, float]:
        """See :class:`Mixture`; the ridge is the largest at which a forecast is made.

        If forecasts change to a larger ridge b after n outcomes, their energy is that of the first
        n at the smaller ridge, plus E_b, less E_b of the first n: at most E_b in all. Their
        log-determinants only fall.
        """
        squared, least = super().penalty(engine, ridge, noise_scale, delta)
        return squared, max(
            least, largest_forecast_ridge(engine, ridge, least_forecast_ridge(engine))
        )

    def losses(self, forecasts: Forecasts, noise_scale: float) -> Array:
        """See :class:`Mixture`; the losses of what is taken in each round, at each rate."""
        return half_losses(self.rates, forecasts, noise_scale)

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        count = engine.data.count
        return 0.0, energy_bound(self.rates, losses, count, noise_scale, delta, self.weights)

    @property
    def joint_losses(self) -> tuple[int, ...]:
        """At the rate 1 forecasts are always taken, and cost E + sigma^2 l in all (the chain rule).

        So their sum needs no forecasts, and R_t is never much larger than the paper's.
        """
        return tuple(j for j, rate in enumerate(self.rates) if rate == 1.0)


def _numbers(given: object, name: str, *, above: float, most: float) -> tuple[float, ...]:
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise InputError(f"{name} must be a sequence of numbers, got {brief(given)}.")
    return tuple(as_scalar(one, f"each of {name}", above=above, most=most) for one in given)


def least_forecast_ridge(engine: Engine) -> float:
    """The least ridge of forecasts, relative to the largest k(x,x)."""
    return max(LEAST_RIDGE, LEAST_RIDGE_OF_ERROR * engine.data.first_accuracy)


def half_losses(
    rates: tuple[float, ...],
    forecasts: Forecasts,
    noise_scale: float,
    decided_at: float | None = None,
) -> Array:
    """L / (2 sigma^2) of each round (n, j); forecasts are taken where they should cost less.

    What is expected of a forecast is E (y - m)^2 = sigma^2 + v: the choice is made before y, and
    as if the noise scale were ``decided_at``, or sigma itself. At the rate 1 the constant costs
    infinitely much, so that forecasts are always taken.
    """
    rate, at = np.array(rates), noise_scale if decided_at is None else decided_at
    # An infinite loss removes its term from the sum; where gains are infinite, it is not chosen.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        errors = ((forecasts.errors / noise_scale) ** 2)[:, None]
        energy = -np.log1p(-rate) / rate
        gains = (forecasts.variances / at**2)[:, None]
        known_before, variance = _before_outcome(rate, gains)
        pays = known_before + (1 + gains) / variance < energy
        if at != noise_scale:
            gains = (forecasts.variances / noise_scale**2)[:, None]
            known_before, variance = _before_outcome(rate, gains)
        return np.asarray(np.where(pays, known_before + errors / variance, energy) / 2)


def _before_outcome(rate: Array, gains: Array) -> tuple[Array, Array]:
    """The parts of a forecast's loss that are known before the outcome; gains are (n, 1)."""
    return np.log1p(rate * gains) / rate, 1 + rate * gains


def energy_bound(
    rates: Sequence[float],
    halves: Array,
    count: int,
    noise_scale: float,
    delta: float,
    weights: Sequence[float] = (),
) -> float:
    """R_t^2, rounded up: the noise energy exceeds it at no time, with probability 1 - delta.

    Weights are relative to each other, and equal where there are none.
    """
    if not np.isfinite(halves).any():
        return LARGEST_ENERGY
    rounding = 1 + 4 * (8 + count) * EPS  # room for the errors of this many terms
    weights = weights or (1.0,) * len(rates)
    found = _solve(rates, weights, (halves * rounding).tolist(), -math.log(delta))
    return 2 * noise_scale**2 * found


def _solve(
    rates: Sequence[float], weights: Sequence[float], halves: Sequence[float], log_level: float
) -> float:
    """The u with ln sum_j w_j exp(lambda_j (u - q_j)) = log_level, from above; sum_j w_j = 1.

    The left side is convex and increases with u, so that Newton's method, started where one term
    alone is enough, comes down to the solution and never passes it.
    """
    # In plain numbers, of which there are few: arrays would take ten times as long.
    whole = math.fsum(weights)
    logs = [math.log(weight / whole) for weight in weights]
    each = list(zip(rates, logs, halves, strict=True))
    u = min(q + (log_level - log) / rate for rate, log, q in each)
    for _ in range(NEWTON_STEPS):
        terms = [log + rate * (u - q) for rate, log, q in each]
        largest = max(terms)
        parts = [math.exp(term - largest) for term in terms]
        total = math.fsum(parts)
        slope = math.fsum(map(math.prod, zip(rates, parts, strict=True))) / total
        step = (largest + math.log(total) - log_level) / slope
        u -= step
        if step <= 4 * EPS * abs(u):
            break
    # Logarithms have absolute errors, each as important as its term, which a small slope enlarges.
    size = 1 - math.fsum(map(math.prod, zip(logs, parts, strict=True))) / total + log_level
    return max(u, 0.0) + 16 * EPS * (abs(u) + size / slope)
