"""A confidence bound as a function of x: values, gradients, and ceilings over boxes.

Inside, everything is an upper bound on s f* for one sign s. A :class:`Surface` is that bound before
clipping: where it exceeds the trivial bound B sqrt(k(x,x)) its size still tells which points are
more uncertain, and policies decide by it. :class:`Clipped` never exceeds the trivial bound, and is
what may be said of f*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds import Bound, ConfidenceSet, DualBound, DualMinimum
from kernelbounds.bounds.bound import TIE
from kernelbounds.bounds.with_facts import limits_in_boxes
from kernelbounds.engine import Largest, largest_by_ceilings
from kernelbounds.functionals.targets import Targets, differences
from kernelbounds.structure.offset import Level
from kernelbounds.surface.at_points import (
    CROSSING,
    extremes,
    in_chunks,
    limits_of,
    over_classes,
    over_facts,
    raw_extremes,
    refuse_crossing,
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
        :meth:`DualBound.lasting`.
        """
        if not (isinstance(self.bound, DualBound) and self.bound.lasting(self.known)):
            return None
        stage, sizes = self.known.engine.stage
        return (stage, self.known.shares), sizes

    def without_facts(self) -> Surface:
        """The surface of the same bound if nothing but B and R_t were known, which is cheap."""
        return replace(self, known=self.known.without_facts())

    def targets(self, points: Array) -> Targets:
        """The values, or differences from the reference, that are bounded at points (m, d)."""
        return points if self.reference is None else differences(points, self.reference)

    def trivial(self, points: Array) -> Array:
        """The trivial bounds B sqrt(k(x,x)), or B |phi(x) - phi(z)|, at points (m, d); (m,)."""
        return self.known.trivial(self.targets(points))

    def trivial_over(self, features: kernels.Features, centres: Array) -> Array:
        """Upper bounds on :meth:`trivial` over whole boxes, (m,)."""
        norm_bound = self.known.assumptions.norm_bound
        if self.reference is None:
            return norm_bound * features.size
        return self.trivial(centres) + norm_bound * features.moved

    def values(self, points: Array) -> Array:
        """The bounds at points (m, d)."""
        asked, signs = self.targets(points), (self.sign,)
        values = raw_extremes(self.known, self.bound, asked, signs)
        return np.asarray(with_level(self.known, asked, values, signs)[0])

    def most(self, points: Array, trivial: Array) -> Array:
        """The largest values that s f* can have, given :meth:`trivial` of the points; (m,)."""
        asked = self.targets(points)
        largest = with_level(self.known, asked, trivial[None], (self.sign,))[0]
        return np.asarray(np.minimum(largest, limits_of(self.known, asked, self.sign)))

    def limited(self, points: Array, values: Array, trivial: Array) -> Array:
        """Clip values at points to the range that s f* can have there; (m,)."""
        return np.minimum(
            np.maximum(values, self.most(points, -trivial)), self.most(points, trivial)
        )

    def limits_over(self, centres: Array, half_widths: Array) -> Array | float:
        """Return the largest values of s f* throughout boxes that facts alone allow, (m,)."""
        if not self.known.facts:
            return np.inf
        low, high = limits_in_boxes(self.known, centres - half_widths, centres + half_widths)
        most = high if self.sign == 1 else -low
        if self.reference is not None:
            most = most + limits_of(self.known, self.reference[None], -self.sign)
        return most

    def shifted(self, bounds: Array) -> Array:
        """Turn bounds on s (f* - level) into bounds on s f*, where the level is constant."""
        constant = self.known.evidence.offset.constant or 0.0
        most = self.known.assumptions.misspecification
        if self.reference is not None:  # a level that f* has at both points
            constant, most = 0.0, 2 * most
        if not constant and not most:
            return bounds
        return Level(np.array(constant), most).add(self.sign, bounds)

    def largest(self, points: Array, trivial: Array) -> Largest:
        """Find the largest bound at points (m, d), its place, and the bound on -s f* there.

        Where bounds tie, the place is the one with the widest interval. ``trivial`` (m,) is
        :meth:`trivial` of the points.
        """
        tie, opposite = TIE * float(trivial.max()), replace(self, sign=-self.sign)
        if not self.known.count or self.known.evidence.offset.constant is None:
            return Largest.of(self.values(points), opposite.values(points), tie)
        if self.known.facts:
            return self._largest_over_facts(points, tie)
        best, start = Largest(-np.inf, 0, -np.inf), 0
        for chunk in in_chunks(self.targets(points)):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                found = self.bound.largest(self.known, chunk, self.sign, tie)
            wider = found.opposite > best.opposite + tie and found.value >= best.value - tie
            if wider or found.value > best.value + tie:
                value = max(found.value, best.value)
                best = Largest(value, start + found.at, found.opposite)
            start += len(chunk)
        if not best.value + best.opposite >= -CROSSING / TIE * tie:
            refuse_crossing(self.known, self.bound)
        shifted = self.shifted(np.array(best.value)), opposite.shifted(np.array(best.opposite))
        return Largest(float(shifted[0]), best.at, float(shifted[1]))

    def _largest_over_facts(self, points: Array, tie: float) -> Largest:
        """Find the largest bound over functions that satisfy facts, where others are large."""
        asked, plain = self.targets(points), self.known.without_facts()
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
        (over,) = over_facts(self.known, self.bound, self.targets(points), (self.sign,))
        found, signs = over.found, (self.sign,)
        values = with_level(self.known, self.targets(points), found.values, signs)
        whole = DualMinimum(values[0], found.ridges[0], found.scales[0], found.path)
        return whole, over.targets, over.price

    def joint_bound(self, ridges: Array) -> Array:
        """joint_bound_alpha of a :class:`~kernelbounds.bounds.DualBound` at each of the ridges."""
        assert isinstance(self.bound, DualBound)
        return np.asarray(self.bound.joint_bound(self.known, ridges))

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Compute bounds (m,) and their gradients (m, d); only for a ``smooth`` surface."""
        if not self.known.count:
            return self.shifted(self.trivial(points)), self.trivial_gradients(points)
        found, asked, _ = self._attained(points)
        with np.errstate(all="ignore"):
            gradients = witness_of(self, points, asked, found).gradients()
        # At a point measured without noise the bound has a kink.
        gradients[~np.isfinite(gradients).all(axis=1)] = 0.0
        return found.values, gradients

    def trivial_gradients(self, points: Array) -> Array:
        """Gradients of :meth:`trivial`, (m, d)."""
        prior = self.known.prior(self.targets(points))[:, None]
        half = kernels.diagonal_gradient(self.kernel, points) / 2
        if self.reference is not None:
            one = np.ones((len(points), 1))
            half -= kernels.pull_back(self.kernel, points, self.reference[None], one)
        return np.asarray(self.trivial(points)[:, None] * half / np.maximum(prior, 1e-300))

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """Compute the bounds at the centres of m boxes, and ceilings of them over each whole box.

        Centres and half widths are (m, d), and the kernel is a differentiable one. Between the
        centres, nothing is known of a bound that is not a
        :class:`~kernelbounds.bounds.DualBound`, and its ceilings are upper bounds on s f* itself.
        """
        norm_bound = self.known.assumptions.norm_bound
        moved = kernels.features_in_boxes(self.kernel, centres, half_widths)
        if not self.known.count:
            trivial = self.trivial(centres), self.trivial_over(moved, centres)
            return self.shifted(trivial[0]), self.shifted(trivial[1])
        if not isinstance(self.bound, DualBound):
            # |f*(x) - f*(c)| <= B |phi(x) - phi(c)|, whatever the method.
            values = self.values(centres)
            return values, values + norm_bound * moved.moved
        found, asked, price = self._attained(centres)
        with np.errstate(all="ignore"):
            witness = witness_of(self, centres, asked, found)
            ceilings = witness.ceilings(moved, half_widths, self.joint_bound(found.ridges))
            # The multipliers of the centre give valid bounds in the whole box.
            over_box = self.shifted(ceilings - price + EPS * np.abs(price))
        # With a sparse engine the bound is exact for k', and not for k.
        if self.bound.exact and self.known.engine.approximation() is None:
            over_box = np.fmin(over_box, found.values + norm_bound * moved.moved)
        over_box = np.where(np.isnan(over_box), np.inf, over_box)
        return found.values, np.maximum(over_box, found.values)


@dataclass(frozen=True)
class SurfaceOverClasses(Surface):
    """The surface where f* is in any, or in all, of several classes; by those of each class."""

    def _joined(self, compute: Callable[[Surface], Array]) -> Array:
        def of_one(known: ConfidenceSet) -> Array:
            return compute(Surface(known, self.bound, self.sign, self.reference))

        return over_classes(self.known, of_one)

    @property
    def smooth(self) -> bool:
        """Whether gradients are known, in all classes."""
        return all(Surface(one, self.bound, self.sign).smooth for one in self.known.in_classes())

    @property
    def stage(self) -> None:
        """None: earlier bounds say nothing of the present ones, as classes may drop out."""

    def trivial(self, points: Array) -> Array:
        """See :class:`Surface`."""
        return self._joined(lambda one: one.trivial(points))

    def largest(self, points: Array, trivial: Array) -> Largest:
        """See :class:`Surface`."""
        tie, opposite = TIE * float(trivial.max()), replace(self, sign=-self.sign)
        return Largest.of(self.values(points), opposite.values(points), tie)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """See :class:`Surface`; the gradient is that of the class whose bound it is."""
        return self._values_and_slopes(lambda one: one.values_and_gradients(points))

    def trivial_gradients(self, points: Array) -> Array:
        """See :class:`Surface`."""
        return self._values_and_slopes(
            lambda one: (one.trivial(points), one.trivial_gradients(points))
        )[1]

    def _values_and_slopes(
        self, compute: Callable[[Surface], tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        slopes: list[Array] = []
        every: list[Array] = []

        def values(one: Surface) -> Array:
            found, gradients = compute(one)
            slopes.append(gradients)
            every.append(found)
            return found

        joined = self._joined(values)
        chosen = np.abs(np.array(every) - joined).argmin(axis=0)
        return joined, np.array(slopes)[chosen, np.arange(len(joined))]

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """See :class:`Surface`."""
        both = self._joined(lambda one: np.array(one.ceilings(centres, half_widths)))
        return both[0], both[1]


def surface_of(known: ConfidenceSet, bound: Bound, sign: int) -> Surface:
    """Make the surface of a bound on s f*."""
    kind = Surface if known.evidence.classes is None else SurfaceOverClasses
    return kind(known, bound, sign)


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
    def smooth(self) -> bool:
        """Whether gradients are known."""
        return self.surface.smooth

    def without_facts(self) -> Clipped:
        """See :meth:`Surface.without_facts`."""
        return Clipped(self.surface.without_facts())

    def values(self, points: Array) -> Array:
        """The bounds at points (m, d)."""
        surface = self.surface
        asked = surface.targets(points)
        return np.asarray(extremes(surface.known, surface.bound, asked, (surface.sign,))[0])

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Compute bounds (m,) and their gradients (m, d); only for a ``smooth`` surface."""
        values, gradients = self.surface.values_and_gradients(points)
        trivial, steepest = self.surface.trivial(points), self.surface.trivial_gradients(points)
        high = values >= self.surface.shifted(trivial)
        low = values < self.surface.shifted(-trivial)
        gradients[high], gradients[low] = steepest[high], -steepest[low]
        limited = self.surface.limited(points, values, trivial)
        gradients[limited < np.minimum(values, self.surface.shifted(trivial))] = 0.0  # by a fact
        return limited, gradients

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """Compute :meth:`Surface.ceilings`, nowhere beyond the trivial bounds."""
        surface = self.surface
        values, over_box = surface.ceilings(centres, half_widths)
        moved = kernels.features_in_boxes(self.kernel, centres, half_widths)
        trivial, norm_bound = surface.trivial(centres), surface.known.assumptions.norm_bound
        values = surface.limited(centres, values, trivial)
        # Nowhere in the box is the clipped surface below minus the trivial bound there.
        lowest = surface.shifted(-np.maximum(trivial - norm_bound * moved.moved, 0.0))
        highest = surface.shifted(surface.trivial_over(moved, centres))
        highest = np.minimum(highest, surface.limits_over(centres, half_widths))
        return values, np.maximum(np.minimum(over_box, highest), np.maximum(values, lowest))
