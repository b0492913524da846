"""A confidence bound as a function of x: values, gradients, and ceilings over boxes.

Inside, everything is an upper bound on s f* for one sign s. A :class:`Surface` is that bound before
clipping: where it exceeds the trivial bound B sqrt(k(x,x)) its size still tells which points are
more uncertain, and policies decide by it. :class:`Clipped` never exceeds the trivial bound, and is
what may be said of f*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds import Bound, ConfidenceSet, DualBound, DualMinimum
from kernelbounds.bounds.bound import TIE
from kernelbounds.engine import Largest, largest_by_ceilings
from kernelbounds.functionals.targets import Targets
from kernelbounds.surface.a_priori import APrioriBounds, values_and_slopes_over_classes
from kernelbounds.surface.at_points import (
    CROSSING,
    extremes,
    in_chunks,
    over_classes,
    over_facts,
    raw_extremes,
    refuse_crossing,
    targets_at,
    with_level,
)
from kernelbounds.surface.witness import witness_of


@dataclass(frozen=True)
class Surface:
    """The upper bound on s f*, for one sign s, as a function of x, before clipping.

    With a ``reference`` z (d,) the surface bounds the difference s (f*(x) - f*(z)), for which the
    bound must be a :class:`~kernelbounds.bounds.DualBound`.
    """

    known: ConfidenceSet
    bound: Bound
    sign: int
    reference: Array | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel of the confidence set."""
        return self.known.kernel

    @property
    def smooth(self) -> bool:
        """Whether gradients are known: of the kernel, of the bound, and of the level."""
        if self.known.evidence.classes is not None:
            return all(replace(self, known=one).smooth for one in self.known.in_classes())
        return (
            kernels.differentiable(self.kernel)
            and isinstance(self.bound, DualBound)
            and self.known.evidence.offset.constant is not None
        )

    @property
    def stage(self) -> tuple[object, Array] | None:
        """The stage of the engine's kernel, and the sizes of its features at this time.

        Bounds of an earlier time with an equal stage limit the present ones: since then, the kernel
        between points of that time has been multiplied at most by the largest ratio of a size to
        what it was then. None where earlier bounds say nothing of the present ones, see
        :meth:`DualBound.lasting`: of several classes, some may drop out.
        """
        if self.known.evidence.classes is not None:
            return None
        if not (isinstance(self.bound, DualBound) and self.bound.lasting(self.known)):
            return None
        stage, sizes = self.known.engine.stage
        return (stage, self.known.shares), sizes

    def without_facts(self) -> Surface:
        """The surface of the same bound if nothing but B and R_t were known, which is cheap."""
        return replace(self, known=self.known.without_facts())

    @property
    def a_priori(self) -> APrioriBounds:
        """What s f*, or the difference, cannot exceed whatever the data are."""
        return APrioriBounds(self.known, self.sign, self.reference)

    def values(self, points: Array) -> Array:
        """The bounds at points (m, d)."""
        asked, signs = targets_at(points, self.reference), (self.sign,)
        values = raw_extremes(self.known, self.bound, asked, signs)
        return np.asarray(with_level(self.known, asked, values, signs)[0])

    def largest(self, points: Array) -> Largest:
        """Find the largest bound at points (m, d), its place, and the bound on -s f* there.

        Where bounds tie, the place is the one with the widest interval.
        """
        tie = TIE * float(self.a_priori.trivial(points).max())
        opposite, evidence = replace(self, sign=-self.sign), self.known.evidence
        if not self.known.count or evidence.offset.constant is None or evidence.classes is not None:
            return Largest.of(self.values(points), opposite.values(points), tie)
        if self.known.facts:
            return self._largest_over_facts(points, tie)
        best, start = Largest(-np.inf, 0, -np.inf), 0
        for chunk in in_chunks(targets_at(points, self.reference)):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                found = self.bound.largest(self.known, chunk, self.sign, tie)
            wider = found.opposite > best.opposite + tie and found.value >= best.value - tie
            if wider or found.value > best.value + tie:
                value = max(found.value, best.value)
                best = Largest(value, start + found.at, found.opposite)
            start += len(chunk)
        if not best.value + best.opposite >= -CROSSING / TIE * tie:
            refuse_crossing(self.known, self.bound)
        value = float(self.a_priori.shifted(np.array(best.value)))
        return Largest(value, best.at, float(opposite.a_priori.shifted(np.array(best.opposite))))

    def _largest_over_facts(self, points: Array, tie: float) -> Largest:
        """Find the largest bound over functions that satisfy facts, where others are large."""
        asked, plain = targets_at(points, self.reference), self.known.without_facts()
        ceilings = raw_extremes(plain, self.bound, asked, (self.sign,))
        ceilings = with_level(plain, asked, ceilings, (self.sign,))[0]
        found = largest_by_ceilings(ceilings, tie, lambda at: self.values(points[at]))
        assert found is not None  # no evaluation fails
        value, tied = found
        return Largest.widest(value, tied, replace(self, sign=-self.sign).values(points[tied]), tie)

    def attained(self, points: Array) -> DualMinimum:
        """Compute the bounds at points, and the ridges and scales that attain them; (m,) each."""
        return self._attained(points)[0]

    def _attained(self, points: Array) -> tuple[DualMinimum, Targets, Array]:
        """Compute :meth:`attained`, the bounded functionals, and what facts subtract, (m,)."""
        asked, signs = targets_at(points, self.reference), (self.sign,)
        (over,) = over_facts(self.known, self.bound, asked, signs)
        found, values = over.found, with_level(self.known, asked, over.found.values, signs)
        whole = DualMinimum(values[0], found.ridges[0], found.scales[0], found.path)
        return whole, over.targets, over.price

    def joint_bound(self, ridges: Array) -> Array:
        """joint_bound_alpha of a :class:`~kernelbounds.bounds.DualBound` at each of the ridges."""
        assert isinstance(self.bound, DualBound)
        return np.asarray(self.bound.joint_bound(self.known, ridges))

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Compute bounds (m,) and their gradients (m, d); only for a ``smooth`` surface."""
        if self.known.evidence.classes is not None:
            return values_and_slopes_over_classes(
                self.known, lambda one: replace(self, known=one).values_and_gradients(points)
            )
        if not self.known.count:
            trivial = self.a_priori.trivial(points)
            return self.a_priori.shifted(trivial), self.a_priori.trivial_gradients(points)
        found, asked, _ = self._attained(points)
        with np.errstate(all="ignore"):
            gradients = witness_of(self, points, asked, found).gradients()
        # At a point measured without noise the bound has a kink.
        gradients[~np.isfinite(gradients).all(axis=1)] = 0.0
        return found.values, gradients

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """Compute the bounds at the centres of m boxes, and ceilings of them over each whole box.

        Centres and half widths are (m, d), and the kernel is a differentiable one. Between the
        centres, nothing is known of a bound that is not a
        :class:`~kernelbounds.bounds.DualBound`, and its ceilings are upper bounds on s f* itself.
        """
        if self.known.evidence.classes is not None:
            both = over_classes(
                self.known,
                lambda one: np.array(replace(self, known=one).ceilings(centres, half_widths)),
            )
            return both[0], both[1]
        norm_bound, a_priori = self.known.assumptions.norm_bound, self.a_priori
        moved = kernels.features_in_boxes(self.kernel, centres, half_widths)
        if not self.known.count:
            over_box = a_priori.trivial_over(moved, centres)
            return a_priori.shifted(a_priori.trivial(centres)), a_priori.shifted(over_box)
        if not isinstance(self.bound, DualBound):
            # |f*(x) - f*(c)| <= B |phi(x) - phi(c)|, whatever the method.
            values = self.values(centres)
            return values, values + norm_bound * moved.moved
        found, asked, price = self._attained(centres)
        with np.errstate(all="ignore"):
            witness = witness_of(self, centres, asked, found)
            ceilings = witness.ceilings(moved, half_widths, self.joint_bound(found.ridges))
            # The multipliers of the centre give valid bounds in the whole box.
            over_box = a_priori.shifted(ceilings - price + EPS * np.abs(price))
        # With a sparse engine the bound is exact for k', and not for k.
        if self.bound.exact and self.known.engine.approximation() is None:
            over_box = np.fmin(over_box, found.values + norm_bound * moved.moved)
        over_box = np.where(np.isnan(over_box), np.inf, over_box)
        return found.values, np.maximum(over_box, found.values)


@dataclass(frozen=True)
class Clipped:
    """A surface limited to the trivial bounds, which is what may be said of s f*."""

    surface: Surface

    @property
    def kernel(self) -> Kernel:
        """The kernel of the surface."""
        return self.surface.kernel

    @property
    def known(self) -> ConfidenceSet:
        """The confidence set of the bound."""
        return self.surface.known

    @property
    def a_priori(self) -> APrioriBounds:
        """See :class:`Surface`."""
        return self.surface.a_priori

    @property
    def smooth(self) -> bool:
        """Whether gradients are known."""
        return self.surface.smooth

    def without_facts(self) -> Clipped:
        """See :meth:`Surface.without_facts`."""
        return Clipped(self.surface.without_facts())

    def values(self, points: Array) -> Array:
        """The bounds at points (m, d)."""
        surface = self.surface
        asked = targets_at(points, surface.reference)
        return np.asarray(extremes(surface.known, surface.bound, asked, (surface.sign,))[0])

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Compute bounds (m,) and their gradients (m, d); only for a ``smooth`` surface."""
        values, gradients = self.surface.values_and_gradients(points)
        a_priori = self.surface.a_priori
        trivial, steepest = a_priori.trivial(points), a_priori.trivial_gradients(points)
        most = a_priori.shifted(trivial)
        high, low = values >= most, values < a_priori.shifted(-trivial)
        gradients[high], gradients[low] = steepest[high], -steepest[low]
        limited = a_priori.clip(points, values)
        gradients[limited < np.minimum(values, most)] = 0.0  # by a fact
        return limited, gradients

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """Compute :meth:`Surface.ceilings`, nowhere beyond the trivial bounds."""
        values, over_box = self.surface.ceilings(centres, half_widths)
        values = self.surface.a_priori.clip(centres, values)
        lowest, highest = self.surface.a_priori.range_over(centres, half_widths)
        return values, np.maximum(np.minimum(over_box, highest), np.maximum(values, lowest))
