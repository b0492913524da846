"""Bounds over the functions of the confidence set that satisfy facts, A f(z) >= b.

For all multipliers eta >= 0, and all functions f of the set with A f(z) >= b,

    s L f  <=  s L f + eta'(A f(z) - b)  <=  bound of the functional s L + eta'A, less eta'b,

whatever the bound. So **validity rests on the bound of a functional**, which is certified as any
other, and never on the search for multipliers, which decides only how tight the result is. The
search alternates between the best multipliers at a ridge (``multipliers.py``) and the best ridge
for the functional, which is CMM's own search. See ``docs/mathematics/facts.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds.dual_bound import DualBound, DualMinimum
from kernelbounds.bounds.with_facts.multipliers import Posterior, best_multipliers
from kernelbounds.bounds.with_facts.normal_facts import NormalFacts
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine import RidgePath
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
