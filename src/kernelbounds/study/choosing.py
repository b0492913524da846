"""What to try next, for one of three purposes. Bounds hold for any rule, and the rule may change.

``best``
    Settings that are probably good. The first 2d + 1 trials fill the ranges evenly. After that x
    maximises the augmented expected improvement

        E[max(f(x) - m, 0)] (1 - s / sqrt(s^2 + v(x))),

    where f is the Gaussian process of the estimate (``surface/estimate.py``), v(x) its variance,
    s^2 its noise, and m its largest mean at settings that were tried. The factor, of Huang, Allen,
    Notz and Zeng (J. Global Optimization 34, 2006), is small where more runs would teach little.
``certificate``
    KernelUCB: the settings with the best bound, which a certificate must exclude.
``learning``
    The settings at which the band is widest.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import qmc

from kernelbounds.arrays import Array, brief
from kernelbounds.bandits import Finite, KernelUCB
from kernelbounds.bandits.kernel_ucb import with_imagined_outcomes
from kernelbounds.display.numbers import about, at_least, at_most
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.deciding import FILLING_POINTS, Search
from kernelbounds.study.study_file import NewTrial, Point
from kernelbounds.surface import Clipped, deviations, unlimited_estimate

PURPOSES = BEST, CERTIFICATE, LEARNING = ("best", "certificate", "learning")
# Below this many standard deviations, an expected improvement is computed by its expansion.
FAR_BELOW = -6.0


def checked_purpose(purpose: Any) -> None:
    """Raise where a purpose is none of those that there are."""
    if purpose not in PURPOSES:
        raise InputError(f"a purpose is one of {', '.join(PURPOSES)}, got {brief(purpose)}.")


def first_runs(dim: int) -> int:
    """Return how many runs fill the ranges before good settings are looked for."""
    return 2 * dim + 1


def new_trials(
    search: Search,
    sequence: ConfidenceSequence,
    waiting: Sequence[Point],
    count: int,
    purpose: str,
) -> list[NewTrial]:
    """Choose settings to try beside those waiting."""
    problem, taken = search.problem, list(waiting)
    reasons = []
    if math.isinf(sequence.known.assumptions.noise_scale) and purpose != BEST:
        # While an unknown noise may be any, all points look alike.
        guess = copy.deepcopy(sequence)
        guess.keep_noise_scale()
    else:
        guess = sequence
    for _ in range(count):
        pending = problem.scaled(taken) if taken else np.empty((0, problem.dim))
        chosen, why = _RULES[purpose](search, guess, pending)
        taken.append(tuple(problem.settable(chosen[None])[0].tolist()))
        reasons.append(why)
    new = taken[len(waiting) :]
    unit = problem.scaled(new)
    lower, upper = sequence.bounds(unit)
    observed = sequence.points if len(sequence) else unit[:1]
    if search.minimise:
        gain = sequence.upper(observed).min() - lower
    else:
        gain = upper - sequence.lower(observed).max()
    columns = np.stack(
        [
            *problem.unscaled_bounds(lower, upper),
            problem.output.difference(np.maximum(gain, 0.0)),
        ],
        axis=1,
    )
    return [
        NewTrial(point, low, high, better, purpose, why or _why(search, purpose, low, high, better))
        for point, why, (low, high, better) in zip(new, reasons, columns.tolist(), strict=True)
    ]


def _why(search: Search, purpose: str, lower: float, upper: float, gain: float) -> str:
    """Say why settings were chosen by their bounds."""
    out = search.problem.output
    if purpose == LEARNING:
        return f"Least is known there: {out.name} is {out.between(lower, upper)}."
    if lower <= out.low and upper >= out.high:
        return "As far as is known, the best settings may be there."
    best = f"down to {at_least(lower)}" if search.minimise else f"up to {at_most(upper)}"
    return (
        f"{out.name} could be {best}{out.after_number} there, {out.amount(gain)} better than what "
        "is sure, so a certificate has to exclude it."
    )


def _probably_good(
    search: Search, sequence: ConfidenceSequence, pending: Array
) -> tuple[Array, str]:
    """Choose settings (d,) for ``best``, and say why."""
    problem, planned = search.problem, len(sequence) + len(pending)
    first = first_runs(problem.dim)
    if planned < first:
        # Without scrambling, the first point is the middle, and all have few digits.
        sobol = qmc.Sobol(problem.dim, scramble=False).random_base2(first.bit_length())
        filling = problem.unit_box.scaled(sobol[planned + 1][None])
        return search.feasible(filling)[0], f"One of the first {first} runs, which fill the ranges."
    believed = sequence
    if len(pending):
        believed = copy.deepcopy(sequence)
        believed.keep_noise_scale()
        believed.update(pending, unlimited_estimate(sequence.known, pending))
    score = _Improvement(believed, -1 if search.minimise else 1)
    chosen = search.maximised(score, believed.points)
    return chosen, score.why(search, chosen)


class _Improvement:
    """The logarithm of the augmented expected improvement of s f, with the sign s."""

    smooth = False

    def __init__(self, sequence: ConfidenceSequence, sign: int) -> None:
        self._known, self._sign, self._points = sequence.known, sign, sequence.points
        self._noise = deviations(self._known, self._points[:1])[1]
        self.best = float((sign * unlimited_estimate(self._known, self._points)).max())

    def values(self, points: Array) -> Array:
        """Return values (m,) at points (m, d)."""
        means = self._sign * unlimited_estimate(self._known, points)
        found, noise = deviations(self._known, points)
        spread = np.maximum(found, 1e-150)
        # 1 - s / sqrt(s^2 + v), without cancellation where v is small.
        both = np.hypot(noise, spread)
        worth = spread**2 / (both * (both + noise))
        return np.asarray(log_improvement((means - self.best) / spread) + np.log(spread * worth))

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Gradients are not known."""
        raise NotImplementedError

    def why(self, search: Search, point: Array) -> str:
        """Say in a sentence why settings were chosen."""
        out = search.problem.output
        mean = float(self._sign * unlimited_estimate(self._known, point[None])[0])
        here, best = (
            f"{about(float(out.most(self._sign * one)))}{out.after_number}"
            for one in (mean, self.best)
        )
        if (np.abs(self._points - point).max(axis=1) < 1e-9).any():
            return f"A repeat: the estimate there is {here}, and another run makes it surer."
        if mean > self.best:
            return f"The estimate there, {here}, is better than at any settings tried."
        if mean > self.best - self._noise:
            return f"The estimate there, {here}, is close to the best, {best}, and less is known."
        return (
            f"The estimate there is {here}; at the best settings tried it is {best}, but less is "
            "known there, so it may be better."
        )


def log_improvement(z: Array) -> Array:
    """Return ln E[max(z + Z, 0)] of a standard normal Z, which is ln(phi(z) + z Phi(z)).

    >>> log_improvement(np.array([0.0, -40.0])).round(2)
    array([  -0.92, -808.3 ])
    """
    near = np.maximum(z, FAR_BELOW)
    far = np.minimum(z, FAR_BELOW)
    log_density = -(far**2) / 2 - math.log(2 * math.pi) / 2
    # phi(z) + z Phi(z) = phi(z) (1 - 3 / z^2 + ...) / z^2 for z far below 0.
    expansion = log_density - 2 * np.log(-far) + np.log1p(-3 / far**2)
    exact = np.log(np.exp(-(near**2) / 2) / math.sqrt(2 * math.pi) + near * ndtr(near))
    return np.asarray(np.where(z < FAR_BELOW, expansion, exact))


def _excluding(search: Search, sequence: ConfidenceSequence, pending: Array) -> tuple[Array, str]:
    """Choose settings (d,) for ``certificate``."""
    domain = search.domain
    policy = KernelUCB(sequence, domain, minimise=search.minimise)
    if len(pending):
        policy.begin(pending)
    if isinstance(domain, Finite) or not search.whole:
        return policy.ask().x, ""
    # The largest bound over the box may be between whole numbers, and stay there for ever however
    # often its neighbours are tried.
    candidates = search.feasible(domain.filling(FILLING_POINTS))
    best = policy.ask(actions=np.unique(candidates, axis=0)).x
    return policy.ask(fixed={at: float(best[at]) for at in search.whole}).x, ""


def _unknown(search: Search, sequence: ConfidenceSequence, pending: Array) -> tuple[Array, str]:
    """Choose settings (d,) for ``learning``."""
    if len(pending):
        sequence = with_imagined_outcomes(sequence, pending)
    with sequence.lock:
        return search.maximised(_Width(sequence), np.empty((0, search.problem.dim))), ""


class _Width:
    """The width of the band, upper(x) - lower(x)."""

    def __init__(self, sequence: ConfidenceSequence) -> None:
        self._sides = [Clipped(sequence.surface(sign)) for sign in (1, -1)]
        self.smooth = all(one.smooth for one in self._sides)

    def values(self, points: Array) -> Array:
        """Return values (m,) at points (m, d)."""
        upper, minus_lower = (one.values(points) for one in self._sides)
        return np.asarray(upper + minus_lower)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Return values (m,) and gradients (m, d) at points (m, d)."""
        (upper, rising), (minus_lower, falling) = (
            one.values_and_gradients(points) for one in self._sides
        )
        return upper + minus_lower, rising + falling


_RULES = {BEST: _probably_good, CERTIFICATE: _excluding, LEARNING: _unknown}
