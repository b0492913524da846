"""The inequalities of facts in a confidence set: for f less its level, and scaled to norm 1."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.facts import Constraints, Region
from kernelbounds.facts.fact import checked_facts
from kernelbounds.functionals.targets import WeightedSums

# A sum whose norm is below this part of the largest one says nothing that rounding errors do not.
LEAST_NORM = 1e-12


def inequalities(known: ConfidenceSet) -> Constraints | None:
    """The inequalities of the facts; None where there are none.

    Facts that hold everywhere are used in ``known.region``, or in the box that the points span.
    """
    region = known.region
    if region is None and known.count:
        points = known.engine.landmarks
        region = Region(tuple(points.min(axis=0)), tuple(points.max(axis=0)))
    used = [
        (number, fact.constraints_in(known.kernel, known.assumptions.norm_bound, places))
        for number, fact in enumerate(known.facts)
        if (where := fact.region or region) is not None
        and (places := where.at_levels(kernels.category_inputs(known.kernel, where.dim)))
    ]
    used = [(number, found) for number, found in used if len(found.least)]
    if not used:
        return None
    numbers, parts = zip(*used, strict=True)
    joined = Constraints.joined(parts)
    return replace(joined, owners=np.array(numbers)[joined.owners])


def limits_in_boxes(known: ConfidenceSet, lower: Array, upper: Array) -> tuple[Array, Array]:
    """The limits that facts state for f* throughout boxes, see :meth:`Fact.limits`."""
    checked_facts(known.facts, lower.shape[1])
    low, high = np.full(len(lower), -np.inf), np.full(len(lower), np.inf)
    for fact in known.facts:
        least, most = fact.limits(lower, upper)
        low, high = np.maximum(low, least), np.minimum(high, most)
    return low, high


@dataclass(frozen=True)
class NormalFacts:
    """The inequalities of facts for f less its level, scaled so that each sum has norm 1."""

    sums: WeightedSums
    least: Array  # b, (J,)
    gram: Array  # inner products of the sums' representers, (J, J)
    stated: Constraints  # the inequalities as the facts state them, not scaled
    sizes: Array  # sum_j |w_j| sqrt(k(z_j, z_j)): a value of a sum is at most B times that, (J,)
    at_ridges: dict[float, FactsAtRidge] = field(default_factory=dict)  # computed so far

    def __len__(self) -> int:
        """The number of inequalities, J."""
        return len(self.least)

    @classmethod
    def of(cls, known: ConfidenceSet) -> NormalFacts | None:
        """The facts of a confidence set, scaled in its function space; None where there are none.

        Where f* = g + h, with |h| bounded, the inequalities are those that follow for g.
        """
        if not known.facts:
            return None
        a = known.assumptions
        norm_bound = a.norm_bound if any(fact.depends_on_norm for fact in known.facts) else None
        key = known.facts, known.region, known.shares, norm_bound, a.misspecification
        return known.evidence.kept(key, lambda: cls._of(known))

    @classmethod
    def _of(cls, known: ConfidenceSet) -> NormalFacts | None:
        stated = inequalities(known)
        if stated is None:
            return None
        sums, least = WeightedSums(stated.centres, stated.rows), stated.least.copy()
        level = known.level(sums)
        if level is not None:
            least -= level.values + level.errors + EPS * (np.abs(level.values) + np.abs(least))
        gram = sums.weights @ kernels.cross(known.kernel, sums.centres, sums.centres)
        gram = gram @ sums.weights.T
        norms = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
        kept = norms > LEAST_NORM * norms.max(initial=0.0)
        if not kept.any():
            return None
        size = norms[kept]
        least = least[kept] / size
        weights = sums.weights[kept] / size[:, None]
        return cls(
            WeightedSums(sums.centres, weights),
            least - 2 * EPS * np.abs(least),
            gram[np.ix_(kept, kept)] / np.multiply.outer(size, size),
            stated.take(kept),
            np.abs(weights) @ np.sqrt(kernels.diagonal(known.kernel, sums.centres)),
        )

    def price(self, multipliers: Array, norm_bound: float) -> Array:
        """eta'b for multipliers (m, J), rounded down; (m,).

        There is room in it for the rounding errors of the weights in eta'A, too: each meets a few
        of its own, and one for each multiplier that is added.
        """
        roundings = (8 + np.count_nonzero(multipliers, axis=1)) * EPS
        size = np.abs(self.least) + norm_bound * self.sizes
        return np.asarray(multipliers @ self.least - roundings * (multipliers @ size))

    def at(self, known: ConfidenceSet, ridge: float) -> FactsAtRidge:
        """The posterior of the facts' sums at a ridge."""
        if ridge not in self.at_ridges:
            query = known.engine.query(self.sums)
            seen, outcomes = query.whitened(ridge)
            self.at_ridges[ridge] = FactsAtRidge(
                seen,
                self.gram - seen.T @ seen,
                self.least - seen.T @ outcomes,
                float(query.path.energy(np.array([ridge]))[0]),
            )
        return self.at_ridges[ridge]


class FactsAtRidge(NamedTuple):
    """What the data say of the facts' sums at one ridge, not rounded in any direction."""

    seen: Array  # V of :meth:`PathQuery.whitened`
    covariance: Array  # C, (J, J)
    gaps: Array  # b - m, (J,)
    energy: float  # E_alpha
