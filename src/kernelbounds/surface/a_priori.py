"""What f* cannot exceed whatever the data are: by its norm, its level, and facts.

Inside, everything is an upper limit of s f* for one sign s, or of the difference s (f*(x) - f*(z))
from a reference z. Without a level and facts, that is the trivial bound B sqrt(k(x,x)), or
B |phi(x) - phi(z)|, by Cauchy-Schwarz.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.bounds import ConfidenceSet
from kernelbounds.bounds.with_facts import limits_in_boxes
from kernelbounds.structure.offset import Level
from kernelbounds.surface.at_points import limits_of, over_classes, targets_at, with_level


@dataclass(frozen=True)
class APrioriBounds:
    """Upper bounds on s f*, or on s (f*(x) - f*(z)), that hold without the data."""

    known: ConfidenceSet
    sign: int
    reference: Array | None = None  # z, (d,)

    def trivial(self, points: Array) -> Array:
        """The trivial bounds B sqrt(k(x,x)), or B |phi(x) - phi(z)|, at points (m, d); (m,)."""
        if self.known.evidence.classes is not None:
            return over_classes(self.known, lambda one: replace(self, known=one).trivial(points))
        return self.known.trivial(targets_at(points, self.reference))

    def trivial_gradients(self, points: Array) -> Array:
        """Gradients of :meth:`trivial`, (m, d)."""
        if self.known.evidence.classes is not None:
            return values_and_slopes_over_classes(
                self.known,
                lambda one: (
                    replace(self, known=one).trivial(points),
                    replace(self, known=one).trivial_gradients(points),
                ),
            )[1]
        prior = self.known.prior(targets_at(points, self.reference))[:, None]
        half = kernels.diagonal_gradient(self.known.kernel, points) / 2
        if self.reference is not None:
            one = np.ones((len(points), 1))
            half -= kernels.pull_back(self.known.kernel, points, self.reference[None], one)
        return np.asarray(self.trivial(points)[:, None] * half / np.maximum(prior, 1e-300))

    def trivial_over(self, features: kernels.Features, centres: Array) -> Array:
        """Upper bounds on :meth:`trivial` over whole boxes, (m,)."""
        norm_bound = self.known.assumptions.norm_bound
        if self.reference is None:
            return norm_bound * features.size
        return self.trivial(centres) + norm_bound * features.moved

    def shifted(self, bounds: Array) -> Array:
        """Turn bounds on s (f* - level) into bounds on s f*, where the level is constant."""
        constant = self.known.evidence.offset.constant or 0.0
        most = self.known.assumptions.misspecification
        if self.reference is not None:  # a level that f* has at both points
            constant, most = 0.0, 2 * most
        if not constant and not most:
            return bounds
        return Level(np.array(constant), most).add(self.sign, bounds)

    def most(self, points: Array) -> Array:
        """The largest values that s f* can have at points (m, d); (m,)."""
        return self._within(points, self.trivial(points))

    def clip(self, points: Array, values: Array) -> Array:
        """Clip values at points to the range that s f* can have there; (m,)."""
        trivial = self.trivial(points)
        return np.minimum(
            np.maximum(values, self._within(points, -trivial)), self._within(points, trivial)
        )

    def _within(self, points: Array, bounds: Array) -> Array:
        """Turn bounds on s (f* - level) at points into bounds on s f*, with what facts limit."""
        asked = targets_at(points, self.reference)
        largest = with_level(self.known, asked, bounds[None], (self.sign,))[0]
        return np.asarray(np.minimum(largest, limits_of(self.known, asked, self.sign)))

    def range_over(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """The lower and upper limits of ceilings of s f* over boxes; (m,) each."""
        features = kernels.features_in_boxes(self.known.kernel, centres, half_widths)
        least_trivial = self.trivial(centres) - self.known.assumptions.norm_bound * features.moved
        lowest = self.shifted(-np.maximum(least_trivial, 0.0))
        highest = self.shifted(self.trivial_over(features, centres))
        return lowest, np.minimum(highest, self.by_facts_over(centres, half_widths))

    def by_facts_over(self, centres: Array, half_widths: Array) -> Array | float:
        """The largest values of s f* throughout boxes that facts alone allow, (m,)."""
        if not self.known.facts:
            return np.inf
        low, high = limits_in_boxes(self.known, centres - half_widths, centres + half_widths)
        most = high if self.sign == 1 else -low
        if self.reference is not None:
            most = most + limits_of(self.known, self.reference[None], -self.sign)
        return most


def values_and_slopes_over_classes(
    known: ConfidenceSet, compute: Callable[[ConfidenceSet], tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Compute values (m,) over several classes, with the gradients (m, d) of the class they are of.

    ``compute`` returns both in one class.
    """
    values: list[Array] = []
    gradients: list[Array] = []

    def in_one(one: ConfidenceSet) -> Array:
        found, slopes = compute(one)
        values.append(found)
        gradients.append(slopes)
        return found

    joined = over_classes(known, in_one)
    chosen = np.abs(np.array(values) - joined).argmin(axis=0)
    return joined, np.array(gradients)[chosen, np.arange(len(joined))]
