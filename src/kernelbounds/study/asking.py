"""The choice of the next trials, for one of three purposes.

Bounds hold for any rule of choice, and the rule may change at any time.

``best``
    Settings that make it clear which settings are good. The first 2d + 1 trials fill the ranges
    evenly. After that x maximises the knowledge gradient

        E[max_z (m(z) + c(z, x) Z / sqrt(v(x) + s^2))] - max_z m(z),    Z ~ N(0, 1),

    which is by how much the best estimate is expected to rise with one more run, at x. Here m, c
    and v are the mean, covariance and variance of the Gaussian process of the estimate
    (``surface/estimate.py``), s^2 is its noise, and z goes over settings that may be the best. See
    Frazier, Powell and Dayanik (INFORMS J. Computing 21, 2009). A run beside the best settings
    often says more of where these are than a run at them, which is why this is better than an
    expected improvement; ``docs/evidence/performance.md`` has the comparison.
``certificate``
    KernelUCB: the settings with the best bound, which a certificate must exclude.
``learning``
    The settings at which the band is widest.

Each trial of a batch is chosen as if those before it had been run, with the outcomes that are
expected. For ``best`` it also differs from each of them by a twentieth of the range in at least one
input, as far as there are such settings: otherwise a batch of four could be nearly the same trial
four times.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import Array, brief
from kernelbounds.bandits import Finite, KernelUCB
from kernelbounds.bandits.batches import with_imagined_outcomes
from kernelbounds.display.numbers import at_least, at_most
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.findings import Findings
from kernelbounds.study.search import FILLING_POINTS, Search
from kernelbounds.study.study_file import StudyFile
from kernelbounds.study.trial import Point, StoredTrial
from kernelbounds.surface import Clipped, Covariances, deviations, unlimited_estimate

PURPOSES = BEST, CERTIFICATE, LEARNING = ("best", "certificate", "learning")
# The settings of a batch differ by this share of the range of some input. By
# ``python -m benchmarks.asks batches`` it is about as good as 0 and 0.1 on three systems together,
# and better with one input.
DISTINCT = 0.05
# The settings z that may be the best: this many with the highest mean plus three deviations.
RIVALS, HIGHEST_DEVIATIONS = 200, 3.0
# This many settings around the best estimate are looked at, in boxes of these shares of the ranges:
# points that fill the ranges are too far apart to tell where a maximum is.
POINTS_AROUND, AROUND = 64, (0.4, 0.1)
# Expectations over Z are sums over these nodes with these weights.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def checked_purpose(purpose: Any) -> None:
    """Raise where there is no such purpose."""
    if purpose not in PURPOSES:
        raise InputError(f"a purpose is one of {', '.join(PURPOSES)}, got {brief(purpose)}.")


def first_runs(dim: int) -> int:
    """Return how many runs fill the ranges before good settings are looked for."""
    return 2 * dim + 1


def asked(
    store: StudyFile, findings: Findings, count: int, purpose: str, new_only: bool
) -> list[StoredTrial]:
    """Return pending trials of a study, and new ones where there are fewer than ``count``.

    With ``new_only`` all are new.
    """
    with findings.lock:
        while True:
            waiting = store.pending
            found = [] if new_only else waiting[:count]
            missing = count - len(found)
            if not missing:
                return found
            beside = [one.point for one in waiting]
            new = new_trials(findings.search, findings.sequence, beside, missing, purpose)
            added = store.add_pending(new, [one.number for one in waiting])
            if added is not None:  # No other process has asked or told in the meantime.
                return found + added


def new_trials(
    search: Search,
    sequence: ConfidenceSequence,
    waiting: Sequence[Point],
    count: int,
    purpose: str,
) -> list[StoredTrial]:
    """Choose settings to try beside those that are waiting for their outcomes."""
    problem, taken, reasons = search.problem, list(waiting), list[str]()
    guess = sequence
    if math.isinf(sequence.known.assumptions.noise_scale) and purpose != BEST:
        # While an unknown noise may have any size, all points look alike.
        guess = copy.deepcopy(sequence)
        guess.keep_noise_scale()
    for _ in range(count):
        pending = problem.scaled(taken) if taken else np.empty((0, len(problem.inputs)))
        chosen, why = _RULES[purpose](search, guess, pending)
        taken.append(tuple(problem.inputs.settable(chosen[None])[0].tolist()))
        reasons.append(why)
    new = taken[len(waiting) :]
    unit = problem.scaled(new)
    estimate, lower, upper = sequence.estimate_with_bounds(unit)
    observed = sequence.points if len(sequence) else unit[:1]
    if search.minimise:
        gain = sequence.upper(observed).min() - lower
    else:
        gain = upper - sequence.lower(observed).max()
    better = problem.output.difference(np.maximum(gain, 0.0))
    known = [one.tolist() for one in (*problem.outcomes.estimate(estimate, lower, upper), better)]
    return [
        StoredTrial(
            point, middle, low, high, more, purpose, why or _why(search, purpose, low, high, more)
        )
        for point, why, middle, low, high, more in zip(new, reasons, *known, strict=True)
    ]


def _why(search: Search, purpose: str, lower: float, upper: float, gain: float) -> str:
    """Explain in a sentence why settings were chosen by their bounds."""
    out = search.problem.output
    if purpose == LEARNING:
        return "Least is known there."
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
    """Choose settings (d,) that are probably good, and say why."""
    problem, planned = search.problem, len(sequence) + len(pending)
    first = first_runs(len(problem.inputs))
    if planned < first:
        # Without scrambling, the first point is the middle, and all have few digits.
        sobol = qmc.Sobol(len(problem.inputs), scramble=False).random_base2(first.bit_length())
        filling = problem.inputs.unit_box.scaled(sobol[planned + 1][None])
        return search.feasible(filling)[0], f"One of the first {first} runs, which fill the ranges."
    believed = sequence
    if len(pending):
        believed = copy.deepcopy(sequence)
        believed.keep_noise_scale()
        believed.update(pending, unlimited_estimate(sequence.known, pending))
    score = _Knowledge(search, believed, pending)
    chosen = search.maximised(score, score.rivals)
    return chosen, score.why(chosen)


class _Knowledge:
    """The knowledge gradient of s f, with the sign s, at settings that are not pending.

    At settings too near to pending ones it is their distance from these minus :data:`DISTINCT`,
    which is negative, so that such settings are taken only where there are no others.
    """

    def __init__(self, search: Search, sequence: ConfidenceSequence, pending: Array) -> None:
        self._known, self._sign = sequence.known, search.sign
        self._points, self._pending = sequence.points, pending
        # Settings that are only pending have no outcome yet.
        tried = self._points[: len(self._points) - len(pending)]
        self.best = float(self._means(tried if len(tried) else self._points).max())
        self.rivals = self._highest(search)
        self._covariances = Covariances(self._known, self.rivals)
        self._rival_means = self._means(self.rivals)[:, None]

    def _means(self, points: Array) -> Array:
        return self._sign * unlimited_estimate(self._known, points)

    def _highest(self, search: Search) -> Array:
        """Return the settings that may be the best, (n, d)."""
        domain = search.domain
        if isinstance(domain, Finite):
            points = domain.points
        else:
            points = np.concatenate([self._points, search.feasible(domain.filling(FILLING_POINTS))])
            spread, levels = domain.filling(POINTS_AROUND) - 0.5, list(domain.categories)
            spread[:, levels] = 0.0
            for share in AROUND:
                best = points[self._means(points).argmax()]
                around = search.feasible(domain.clipped(best + share * spread))
                points = np.concatenate([points, around])
        highest = self._means(points) + HIGHEST_DEVIATIONS * deviations(self._known, points)[0]
        return np.asarray(points[np.argsort(-highest, kind="stable")[:RIVALS]])

    def values(self, points: Array) -> Array:
        """Return values (m,) at points (m, d)."""
        moves = self._covariances.moves(points)
        later = np.zeros(len(points))
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            later += weight * (self._rival_means + node * moves).max(axis=0)
        gains = later - self._rival_means.max()
        if not len(self._pending):
            return np.asarray(gains)
        apart = np.abs(points[:, None] - self._pending).max(axis=2).min(axis=1)
        return np.asarray(np.where(apart < DISTINCT, apart - DISTINCT, np.maximum(gains, 0.0)))

    def why(self, point: Array) -> str:
        """Explain in a sentence why settings were chosen.

        It has no estimates, which would not be those that are shown beside it: these here suppose
        outcomes of the trials that are pending, and all change when outcomes are told.
        """
        if (np.abs(self._points - point).max(axis=1) < 1e-9).any():
            why = "A repeat: another run there makes the estimate surer."
        elif float(self._means(point[None])[0]) > self.best:
            why = "The estimate there is better than at any settings tried."
        else:
            why = "A run there says most about which settings are the best."
        if beside := len(self._pending):
            others = "a pending trial" if beside == 1 else f"{beside} pending trials"
            return f"Chosen beside {others}: {why[0].lower()}{why[1:]}"
        return why


def _excluding(search: Search, sequence: ConfidenceSequence, pending: Array) -> tuple[Array, str]:
    """Choose settings (d,) that a certificate must exclude."""
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
    """Choose settings (d,) at which the band is widest."""
    if len(pending):
        sequence = with_imagined_outcomes(sequence, pending)
    with sequence.lock:
        return search.maximised(_Width(sequence), np.empty((0, len(search.problem.inputs)))), ""


class _Width:
    """The width of the band, upper(x) - lower(x), as a function that can be climbed."""

    def __init__(self, sequence: ConfidenceSequence) -> None:
        self._sides = [Clipped(sequence.surface(sign)) for sign in (1, -1)]
        self.smooth = all(one.smooth for one in self._sides)

    def values(self, points: Array) -> Array:
        """Return values (m,) at points (m, d)."""
        return np.asarray(sum(one.values(points) for one in self._sides))

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Return values (m,) and gradients (m, d) at points (m, d)."""
        (upper, rising), (minus_lower, falling) = (
            one.values_and_gradients(points) for one in self._sides
        )
        return upper + minus_lower, rising + falling


_RULES = {BEST: _probably_good, CERTIFICATE: _excluding, LEARNING: _unknown}
