"""What the data say against facts: the least norm with facts, and the facts they contradict."""

from __future__ import annotations

import math

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds.cmm import CMM
from kernelbounds.bounds.dual_bound import DualBound
from kernelbounds.bounds.with_facts.multipliers import most_violating
from kernelbounds.bounds.with_facts.normal_facts import NormalFacts
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.diagnosis import norm_lower_bound
from kernelbounds.errors import EmptyConfidenceSetError, FactRefutedError
from kernelbounds.functionals.targets import WeightedSums

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
