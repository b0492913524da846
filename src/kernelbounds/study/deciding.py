"""What to try next, and how good the best setting is: the policy, on scaled inputs.

A setting must be feasible: of few digits, and whole where an input takes whole numbers only. With
some whole inputs and some not, the box is searched as if all were continuous, which gives limits
that are valid and a little loose, but what is suggested and recommended is feasible.

The settings with the best estimate: what one would use today, without a proof that it is best.

The estimate at x is the middle of the interval, (lower(x) + upper(x)) / 2: of all numbers it has
the smallest error in the worst case. Where data are far away the interval is wide and its middle
says little, so an estimate counts as no more than lower(x) + r / 2, with the range r of the output.
So

    score(x) = min((lower(x) + upper(x)) / 2, lower(x) + r / 2)

is maximised, which is the middle wherever the interval is no wider than the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits import Ascent, Box, BranchAndBound, Certificate, Finite, KernelUCB
from kernelbounds.bandits.certify import certify_box
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.records import Promising, named, settable, whole_inputs
from kernelbounds.surface import Clipped

# Points that fill the box, besides those observed; the best of them is then improved.
PROMISING = 1024


class _Score:
    """The score above, of s f* with s = -1 when minimising, as a function that can be climbed."""

    def __init__(self, sequence: ConfidenceSequence, sign: int, output_range: float) -> None:
        self._upper = Clipped(sequence.surface(sign))
        self._minus_lower = Clipped(sequence.surface(-sign))
        self._range = output_range
        self.smooth = self._upper.smooth

    def values(self, points: Array) -> Array:
        """Values at points (m, d)."""
        upper, lower = self._upper.values(points), -self._minus_lower.values(points)
        return np.minimum((lower + upper) / 2, lower + self._range / 2)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, d)."""
        upper, upwards = self._upper.values_and_gradients(points)
        lower, downwards = (-part for part in self._minus_lower.values_and_gradients(points))
        wide = upper - lower > self._range
        values = np.minimum((lower + upper) / 2, lower + self._range / 2)
        return values, np.where(wide[:, None], downwards, (upwards + downwards) / 2)


def most_promising(
    problem: Problem, sequence: ConfidenceSequence, domain: Box | Finite, minimise: bool
) -> Promising:
    """The settings with the best score found, in the user's units; nothing is certified."""
    with sequence.known.lock:
        score = _Score(sequence, -1 if minimise else 1, problem.output.range)
        if isinstance(domain, Finite):
            candidates = domain.points
        else:
            filling = problem.scaled(settable(problem, domain.filling(PROMISING)))
            candidates = np.concatenate([sequence.points, filling])
        best = candidates[int(score.values(candidates).argmax())]
        if isinstance(domain, Box):  # around the best of them, with the same whole numbers
            near = domain.fixed({at: float(best[at]) for at in whole_inputs(problem)})
            top = Ascent(scan=1, starts=1).maximise(score, near, best[None]).x
            feasible = np.concatenate([best[None], problem.scaled(settable(problem, top[None]))])
            best = feasible[int(score.values(feasible).argmax())]
        (lower,), (upper,) = sequence.bounds(best[None])
    values = named(problem, problem.unscaled(best[None])[0].tolist())
    return Promising(values, float(lower + upper) / 2, float(lower), float(upper))


# Candidates among which whole numbers are chosen; other inputs are then chosen anew beside them.
CANDIDATES = 1024


def next_point(
    problem: Problem,
    sequence: ConfidenceSequence,
    domain: Box | Finite,
    minimise: bool,
    pending: Array,
) -> Array:
    """The settings to try next, in the user's units, (d,), when those pending (n, d) are known."""
    policy = KernelUCB(sequence, domain, minimise=minimise)
    if len(pending):
        policy.begin(problem.scaled(pending))
    whole = whole_inputs(problem)
    if isinstance(domain, Finite) or not whole:
        return np.asarray(settable(problem, policy.ask().x[None])[0])
    # The largest bound over the box may be between whole numbers, and stay there for ever however
    # often its neighbours are tried.
    candidates = problem.scaled(settable(problem, domain.filling(CANDIDATES)))
    best = policy.ask(actions=np.unique(candidates, axis=0)).x
    chosen = policy.ask(fixed={at: float(best[at]) for at in whole}).x
    return np.asarray(settable(problem, chosen[None])[0])


def surest(sequence: ConfidenceSequence, points: Array, minimise: bool) -> float:
    """The best value that one of these points has for sure."""
    sure = sequence.upper(points).min() if minimise else sequence.lower(points).max()
    return float(sure)


def certified(
    problem: Problem,
    sequence: ConfidenceSequence,
    domain: Box | Finite,
    minimise: bool,
    seconds: float,
) -> Certificate:
    """The best settings known and their regret, in the user's units."""
    if isinstance(domain, Finite):
        found = KernelUCB(sequence, domain, minimise=minimise).certificate(seconds=seconds)
    else:
        found = _certified_in_box(problem, sequence, domain, -1 if minimise else 1, seconds)
    point = problem.unscaled(found.x[None])[0]
    return replace(found, x=point, named=named(problem, point), index=None)


def with_the_past(now: Certificate, past: Sequence[Certificate], minimise: bool) -> Certificate:
    """The best that this certificate and earlier ones, of fewer outcomes, say together.

    All of them are true at once, with probability 1 - delta. So what an earlier one has excluded
    stays excluded, also where there was less time to look this time.
    """
    known, side = (now, *past), "min_lower" if minimise else "max_upper"
    limits = [limit for one in known if (limit := getattr(one, side)) is not None]
    if not limits:
        return now
    limit = max(limits) if minimise else min(limits)

    def limited(one: Certificate) -> Certificate:
        regret = max(one.upper - limit if minimise else limit - one.lower, 0.0)
        return replace(one, **{side: limit}, regret=min(one.regret, regret))

    return min(map(limited, known), key=lambda one: one.regret)


def _certified_in_box(
    problem: Problem, sequence: ConfidenceSequence, box: Box, sign: int, seconds: float
) -> Certificate:
    with sequence.known.lock:
        return certify_box(
            sequence.surface(sign), sequence.surface(-sign), box, sequence.points,
            BranchAndBound(seconds=seconds), whole=whole_inputs(problem),
            feasible=lambda points: problem.scaled(settable(problem, points)),
        )  # fmt: skip
