"""Bounds over the functions of the confidence set that satisfy facts, A f(z) >= b.

For all multipliers eta >= 0, and all functions f of the set with A f(z) >= b,

    s L f  <=  s L f + eta'(A f(z) - b)  <=  bound of the functional s L + eta'A, less eta'b,

whatever the bound. So **validity rests on the bound of a functional**, which is certified as any
other, and never on the search for multipliers, which decides only how tight the result is. The
search alternates between the best multipliers at a ridge (``multipliers.py``) and the best ridge
for the functional, which is CMM's own search. See ``docs/mathematics/facts.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds.bound import DualBound, DualMinimum
from kernelbounds.bounds.cmm import CMM
from kernelbounds.bounds.with_facts.multipliers import Posterior, best_multipliers, most_violating
from kernelbounds.bounds.with_facts.normal_facts import NormalFacts
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.diagnosis import norm_lower_bound
from kernelbounds.engine import RidgePath
from kernelbounds.errors import EmptyConfidenceSetError, FactRefutedError
from kernelbounds.functionals.targets import Shifted, Targets, WeightedSums, as_functionals

# Multipliers are sought at ridges on a grid with these steps in log alpha, one an alternation,
# and the bound is that of the best ridge for them. Targets take part while they gain. On the
# problems of tests/test_facts.py with 6, 12 and 30 observations, bounds are within 3e-5 of B of the
# cone program's in 19 of 20 cases, and within 3e-4 in all.
LOG_RIDGE_STEPS = 1.0, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25
# A gain below this, relative to the bound, is not worth another alternation.
NEGLIGIBLE_GAIN = 5e-4
# An inequality that is violated by less than this, relative to B times its norm, is not worth
# another step.
NEGLIGIBLE_VIOLATION = 3e-5


@dataclass(frozen=True)
class ConstrainedMinimum:
    """Bounds over functions that satisfy facts, and what attains them, for one sign.

    The bounds of ``targets``, the functionals L + s eta'A, less ``price``, eta'b rounded down, are
    the values of ``found``.
    """

    found: DualMinimum
    targets: Targets
    price: Array
    multipliers: Array

    @property
    def values(self) -> Array:
        """The bounds on s L f, (m,)."""
        return np.asarray(self.found.values[0])


def constrained(
    bound: DualBound, known: ConfidenceSet, targets: Targets, signs: Sequence[int]
) -> list[ConstrainedMinimum]:
    """Upper bounds on s L f at m targets L, for each sign s, over functions with the facts."""
    plain, facts = bound.attained(known, targets, signs), NormalFacts.of(known)
    every = [
        DualMinimum(plain.values[[i]], plain.ridges[[i]], plain.scales[[i]], plain.path)
        for i in range(len(signs))
    ]
    if facts is None:
        none = np.zeros(len(targets)), np.zeros((len(targets), 0))
        return [ConstrainedMinimum(one, targets, *none) for one in every]
    search = _Search(bound, known, facts, targets)
    return [search.improved(one, sign) for one, sign in zip(every, signs, strict=True)]


class _Search:
    """The search for the multipliers of m targets, which takes turns with that for their ridges."""

    def __init__(
        self, bound: DualBound, known: ConfidenceSet, facts: NormalFacts, targets: Targets
    ) -> None:
        self._bound, self._known, self._facts, self._targets = bound, known, facts, targets
        self._of_targets = known.engine.query(targets)
        values = as_functionals(targets).vectors(known.kernel, facts.sums.centres)
        self._prior_cross = values @ facts.sums.weights.T

    def improved(self, plain: DualMinimum, sign: int) -> ConstrainedMinimum:
        """Improve the bounds without facts, for one sign."""
        count, norm_bound = len(self._targets), self._known.assumptions.norm_bound
        values, best_ridges, scales = (
            one[0].copy() for one in (plain.values, plain.ridges, plain.scales)
        )
        multipliers = np.zeros((count, len(self._facts)))
        price, path = np.zeros(count), plain.path
        open_, ridges, tried = np.arange(count), plain.ridges[0], multipliers
        for step in LOG_RIDGE_STEPS:
            tried = self._multipliers(open_, sign, ridges, tried, step)
            binding = tried.any(axis=1)
            open_, tried = open_[binding], tried[binding]
            if not len(open_):
                break
            shifted = _plus(self._targets[open_], self._facts.sums, sign * tried)
            found = self._bound.attained(self._known, shifted, (sign,))
            path = _finer(path, found.path)
            cost = self._facts.price(tried, norm_bound)
            size = np.abs(found.values[0]) + np.abs(cost)
            now = found.values[0] - cost + EPS * size
            gain = values[open_] - now
            better = gain > 0
            at = open_[better]
            values[at], price[at], multipliers[at] = now[better], cost[better], tried[better]
            best_ridges[at], scales[at] = found.ridges[0][better], found.scales[0][better]
            worth = gain > NEGLIGIBLE_GAIN * size
            open_, tried, ridges = open_[worth], tried[worth], found.ridges[0][worth]
            if not len(open_):
                break
        if not multipliers.any():
            return ConstrainedMinimum(plain, self._targets, price, multipliers)
        whole = DualMinimum(values[None], best_ridges[None], scales[None], path)
        shifted = _plus(self._targets, self._facts.sums, sign * multipliers)
        return ConstrainedMinimum(whole, shifted, price, multipliers)

    def _multipliers(
        self, which: NDArray[np.intp], sign: int, ridges: Array, start: Array, step: float
    ) -> Array:
        """The best multipliers of some targets, each at its ridge or one near it; (n, J).

        Ridges are rounded to a grid, at whose points targets share the work.
        """
        rounded, number = np.unique(np.rint(np.log(ridges) / step), return_inverse=True)
        grid = np.exp(rounded * step)
        prior, cross = self._of_targets.prior[which], sign * self._prior_cross[which]
        facts, variance = [], prior.copy()
        for i, ridge in enumerate(grid.tolist()):
            here, rows = self._facts.at(self._known, ridge), np.flatnonzero(number == i)
            seen = sign * self._of_targets.whitened(ridge, which[rows])[0]
            cross[rows] -= seen.T @ here.seen
            variance[rows] -= np.vecdot(seen.T, seen.T)
            facts.append(here)
        around = self._known.radius.around(grid, np.array([here.energy for here in facts]))
        posterior = Posterior(
            np.array([here.covariance for here in facts]),
            np.array([here.gaps for here in facts]),
            np.maximum(around, 1e-280) / grid,
            number,
            cross,
            np.maximum(variance, EPS * prior),
        )
        negligible = NEGLIGIBLE_VIOLATION * self._known.assumptions.norm_bound
        return best_multipliers(posterior, negligible, start)


def _plus(targets: Targets, sums: WeightedSums, multipliers: Array) -> Shifted:
    """The targets, with multiples of the facts' sums added to them."""
    weights, centres = multipliers @ sums.weights, sums.centres
    if isinstance(targets, Shifted):
        centres = np.concatenate([targets.shift.centres, centres])
        return Shifted(targets.base, centres, np.hstack([targets.shift.weights, weights]))
    return Shifted(targets, centres, weights)


def _finer(one: RidgePath | None, other: RidgePath | None) -> RidgePath | None:
    """Of two paths, the one that is accurate at smaller ridges."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda path: path.eigen.finest)


# Log ridges, relative to (R_t / B)^2, at which the least norm under facts is sought.
RIDGES_FOR_NORMS = np.linspace(-10.0, 6.0, 17)
# The least norm is estimated on that grid, and lowered by these fractions in turn until CMM shows
# that no function of the norm satisfies the facts.
SHORTER_NORMS = (1e-6, 1e-4, 1e-3, 1e-2, 0.1)


def least_norm_with_facts(known: ConfidenceSet) -> float:
    """B_min with facts: no function of a smaller norm satisfies them and fits the data."""
    facts = NormalFacts.of(known)
    return norm_lower_bound(known) if facts is None else _least_norm(known, facts)[0]


def _least_norm(known: ConfidenceSet, facts: NormalFacts) -> tuple[float, Array]:
    """B_min, and the multipliers that show it where facts make it larger.

    At a ridge alpha, ||f_t - y_t||^2 / alpha + ||f||^2 is at least E_alpha / alpha plus the largest
    2 eta'(b - m) - eta'C eta over eta >= 0, for functions with A f(z) >= b. The multipliers of the
    best ridge are checked with CMM: with a norm bound below the result, eta'A f(z) is below eta'b
    for all functions of the confidence set.
    """
    if not known.count:
        # eta'b <= eta'A f(z) <= ||f|| |r|, with the representer r of eta'A.
        eta = most_violating(facts.gram, facts.least)
        together = WeightedSums(facts.sums.centres, eta[None] @ facts.sums.weights)
        roundings = (8 + np.count_nonzero(eta)) * EPS * float(eta @ facts.sizes)
        size = math.sqrt(float(known.prior(together)[0])) + roundings
        return max(float(facts.price(eta[None], 0.0)[0]), 0.0) / max(size, 1e-280), eta
    squared, least, eta = known.radius.squared, norm_lower_bound(known), np.zeros(len(facts))
    best = least**2
    for ridge in squared / max(known.assumptions.norm_bound**2, 1e-280) * np.exp(RIDGES_FOR_NORMS):
        here = facts.at(known, float(ridge))
        tried = most_violating(here.covariance, here.gaps)
        norm = (here.energy - squared) / ridge
        norm += tried @ (2 * here.gaps - here.covariance @ tried)
        if norm > best:
            best, eta = float(norm), tried
    together = WeightedSums(facts.sums.centres, eta[None] @ facts.sums.weights)
    for shorter in SHORTER_NORMS if eta.any() else ():
        norm = math.sqrt(best) * (1 - shorter)
        cost = float(facts.price(eta[None], norm)[0])
        if norm > least and _most(known.assuming(norm_bound=norm), together) < cost:
            return norm, eta
    return least, np.zeros(len(facts))


def _most(known: ConfidenceSet, functional: WeightedSums) -> float:
    """The largest value of one functional over the confidence set, whatever the facts."""
    try:
        return float(CMM().attained(known, functional, (1,)).values[0, 0])
    except EmptyConfidenceSetError:
        return -math.inf


def refute_by_facts(bound: DualBound, known: ConfidenceSet) -> None:
    """Raise :class:`FactRefutedError` where the data contradict a fact, or several together."""
    facts = NormalFacts.of(known)
    if facts is None or not known.count:
        return
    stated, sums = facts.stated, facts.sums
    # One inequality that the data contradict says more than several together.
    lacking = facts.least - bound.attained(known, sums, (1,)).values[0]
    eta = ((lacking > 0) & (lacking == lacking.max())).astype(float)
    if not eta.any():
        norm, eta = _least_norm(known, facts)
        if norm <= known.assumptions.norm_bound:
            return
    # Weights of the inequalities as they were stated, which add up to 1.
    weights = eta * np.abs(sums.weights).max(axis=1) / np.abs(stated.rows).max(axis=1)
    weights /= weights.sum()
    names = list(dict.fromkeys(str(known.facts[owner]) for owner in stated.owners[eta > 0]))
    together = WeightedSums(stated.centres, weights[None] @ stated.rows)
    level, most = known.level(together), _most(known, together)
    if level is not None:
        most = float(level.add(1, np.array([most]))[0])
    top = int(weights.argmax())
    places = stated.centres[stated.rows[top] != 0].tolist()
    several, negated = int(np.count_nonzero(eta)) > 1, bool(np.all(together.weights <= 0))
    least = float(weights @ stated.least)
    raise FactRefutedError(" and ".join(names), places, least, most, several, negated)
