"""A confidence bound as a function of x: values, gradients, and ceilings over boxes.

Inside, everything is an upper bound on s f* for one sign s, and a :class:`Surface` is that bound
before clipping: where it exceeds the trivial bound B sqrt(k(x,x)) its size still tells which
points are more uncertain, and that is what decisions are made by. :class:`Clipped` is what may be
said of f*.

Bounds as users get them: checked, and never beyond the trivial ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.assume.offset import Level
from kernelbounds.bounds import Bound, ConfidenceSet, DualBound, DualMinimum
from kernelbounds.bounds.bound import TIE, as_upper_bounds, checked_extremes
from kernelbounds.engine import Largest
from kernelbounds.errors import KernelBoundsError
from kernelbounds.functionals.targets import Differences, Functionals, Targets
from kernelbounds.surface.witness import Witness, witness_of

# Lower bounds that exceed upper ones by more than this, relative to the trivial bound, are not
# explained by CMM's search, whose errors stay below TIE = 1e-7 of it.
CROSSING = 1e-7
POINTS_AT_ONCE = 1024  # a query's working memory is this many kernel vectors


T = TypeVar("T", Array, Functionals, Targets)


def in_chunks(points: T) -> list[T]:
    """The points, a bounded number at a time."""
    starts = range(0, len(points), POINTS_AT_ONCE)
    return [points[start : start + POINTS_AT_ONCE] for start in starts]


def raw_extremes(
    known: ConfidenceSet, bound: Bound, points: Targets, signs: Sequence[int]
) -> Array:
    """Upper bounds on s (f* - level) at m points for the signs s, as the bound has them.

    Where f* = g + h is not of the kernel's space, g stands for f*; (signs, m).
    """
    if not known.count:
        return np.tile(known.trivial(points), (len(signs), 1))
    # Overflow in a formula, where it happens, leads to an infinite bound.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        parts = [checked_extremes(bound, known, part, signs) for part in in_chunks(points)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def clip(values: Array, trivial: Array) -> Array:
    """Limited to +-B sqrt(k(x,x)): |f(x) - level| is never larger, by Cauchy-Schwarz."""
    return np.asarray(np.maximum(np.minimum(values, trivial), -trivial))


def with_level(known: ConfidenceSet, points: Targets, values: Array, signs: Sequence[int]) -> Array:
    """Bounds on s f* from those on s (f* - level), (signs, m), rounded up."""
    level = known.level(points)
    if level is None:
        return values
    return np.array([level.add(sign, part) for sign, part in zip(signs, values, strict=True)])


def limited(
    known: ConfidenceSet, points: Targets, values: Array, trivial: Array, signs: Sequence[int]
) -> Array:
    """Bounds on s f* (signs, m), no larger and no smaller than s f* can be."""
    ends = (np.array([end] * len(signs)) for end in (trivial, -trivial))
    most, least = (with_level(known, points, end, signs) for end in ends)
    return np.asarray(np.maximum(np.minimum(values, most), least))


def extremes(known: ConfidenceSet, bound: Bound, points: Targets, signs: Sequence[int]) -> Array:
    """Upper bounds on s f* at m points for the signs s, clipped; (signs, m)."""
    trivial = known.trivial(points)
    result = clip(raw_extremes(known, bound, points, signs), trivial)
    if len(signs) == 2 and np.any(result.sum(axis=0) < -CROSSING * trivial):
        refuse_crossing(known, bound)
    return with_level(known, points, result, signs)


def refuse_crossing(known: ConfidenceSet, bound: Bound) -> None:
    """Lower bounds exceed upper ones: say why, as far as one can tell."""
    bound.refute(known)
    if type(bound).__module__.split(".")[0] != __name__.split(".")[0]:
        raise KernelBoundsError(
            f"the bound {bound!r} gives lower bounds that exceed its upper ones, though the data "
            "do not refute the assumptions."
        )
    raise KernelBoundsError(
        "lower bounds exceed upper ones, though the data do not refute the assumptions: either "
        "norm_bound is within rounding of the smallest value that they allow, or the kernel "
        f"{known.kernel} is evaluated with too few digits."
    )


_NOTHING = Largest(-np.inf, 0, -np.inf)


@dataclass(frozen=True)
class Surface:
    """Upper bounds on s f*, for one sign s, as a function of x, before clipping.

    With a ``reference`` z (d,) it is the difference s (f*(x) - f*(z)) that is bounded, by a
    :class:`~kernelbounds.bounds.DualBound`.
    """

    known: ConfidenceSet
    bound: Bound
    sign: int
    reference: Array | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.known.kernel

    @property
    def smooth(self) -> bool:
        """Whether gradients are known: of the kernel, of the bound, and of the level."""
        return (
            kernels.differentiable(self.kernel)
            and isinstance(self.bound, DualBound)
            and self.known.offset.constant is not None
        )

    @property
    def stage(self) -> tuple[object, Array] | None:
        """What earlier bounds must share with those of now to limit them, and sizes.

        Since an earlier time with an equal stage, the kernel between points of that time has been
        multiplied by the largest ratio of a size to what it was then, or by less. None: earlier
        bounds say nothing of those of now, see :meth:`DualBound.lasting`.
        """
        if not (isinstance(self.bound, DualBound) and self.bound.lasting(self.known)):
            return None
        stage, sizes = self.known.engine.stage
        return (stage, self.known.shares), sizes

    def targets(self, points: Array) -> Targets:
        """What is bounded at points (m, d)."""
        return points if self.reference is None else Differences(points, self.reference)

    def trivial(self, points: Array) -> Array:
        """B sqrt(k(x,x)), (m,); or B |phi(x) - phi(z)|."""
        return self.known.trivial(self.targets(points))

    def trivial_over(self, features: kernels.Features, centres: Array) -> Array:
        """The same over whole boxes, from above, (m,)."""
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
        """What s f* never exceeds, given :meth:`trivial` of the points; (m,)."""
        asked = self.targets(points)
        return np.asarray(with_level(self.known, asked, trivial[None], (self.sign,))[0])

    def limited(self, points: Array, values: Array, trivial: Array) -> Array:
        """Values at the points, no larger and no smaller than s f* can be; (m,)."""
        asked, signs = self.targets(points), (self.sign,)
        return np.asarray(limited(self.known, asked, values[None], trivial, signs)[0])

    def shifted(self, bounds: Array) -> Array:
        """Bounds on s f* from those on s (f* - level), where the level is constant."""
        level = self._constant_level
        return bounds if level is None else level.add(self.sign, bounds)

    @property
    def _constant_level(self) -> Level | None:
        return self.known.constant_level(of_differences=self.reference is not None)

    def largest(self, points: Array, trivial: Array) -> Largest:
        """The largest bound at points (m, d), where it is, and the bound on -s f* there.

        Where bounds tie, the place is the one with the widest interval. ``trivial`` (m,) is
        :meth:`trivial` of the points.
        """
        tie, best, start = TIE * float(trivial.max()), _NOTHING, 0
        if not self.known.count or self.known.offset.constant is None:
            return self._largest_of_all(points, tie)
        for part in in_chunks(self.targets(points)):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                found = self.bound.largest(self.known, part, self.sign, tie)
            wider = found.opposite > best.opposite + tie and found.value >= best.value - tie
            if wider or found.value > best.value + tie:
                value = max(found.value, best.value)
                best = Largest(value, start + found.at, found.opposite)
            start += len(part)
        if not best.value + best.opposite >= -CROSSING / TIE * tie:
            refuse_crossing(self.known, self.bound)
        if (level := self._constant_level) is None:
            return best
        ends = (best.value, self.sign), (best.opposite, -self.sign)
        value, opposite = (float(level.add(sign, np.array(end))) for end, sign in ends)
        return Largest(value, best.at, opposite)

    def _largest_of_all(self, points: Array, tie: float) -> Largest:
        """The same, from both bounds at all points."""
        values, others = (
            replace(self, sign=sign).values(points) for sign in (self.sign, -self.sign)
        )
        return Largest.of(values, others, tie)

    def attained(self, points: Array) -> DualMinimum:
        """The bounds, all at once, and the ridges and scales; (m,) each."""
        assert isinstance(self.bound, DualBound)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            found = self.bound.attained(self.known, self.targets(points), (self.sign,))
        values = as_upper_bounds(self.bound, found.values, (1, len(points)))
        values = with_level(self.known, self.targets(points), values, (self.sign,))
        return DualMinimum(values[0], found.ridges[0], found.scales[0], found.path)

    def joint_bound(self, ridges: Array) -> Array:
        """joint_bound_alpha of a :class:`~kernelbounds.bounds.DualBound`, like the ridges."""
        assert isinstance(self.bound, DualBound)
        return np.asarray(self.bound.joint_bound(self.known, ridges))

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """The bounds (m,) and their gradients (m, d); only for a ``smooth`` surface."""
        if not self.known.count:
            return self.shifted(self.trivial(points)), self.trivial_gradients(points)
        found = self.attained(points)
        with np.errstate(all="ignore"):
            gradients = self._witness(points, found).gradients(found.scales)
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

    def _witness(self, points: Array, found: DualMinimum) -> Witness:
        return witness_of(self.known, self.sign, points, found, self.reference)

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """The bounds at the centres of m boxes, and upper bounds on them over each whole box.

        Centres and half widths are (m, d), and the kernel is a differentiable one. Of a bound that
        is not a :class:`~kernelbounds.bounds.DualBound` nothing is known between the centres, and
        the ceilings are upper bounds on s f* itself.
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
        found = self.attained(centres)
        with np.errstate(all="ignore"):
            witness = self._witness(centres, found)
            ceilings = witness.ceilings(moved, half_widths, self.joint_bound(found.ridges))
            over_box = self.shifted(ceilings)
        if self.bound.exact and self.known.base.keeps_observations:  # else it is exact for k'
            over_box = np.fmin(over_box, found.values + norm_bound * moved.moved)
        over_box = np.where(np.isnan(over_box), np.inf, over_box)
        return found.values, np.maximum(over_box, found.values)


@dataclass(frozen=True)
class Clipped:
    """A surface, limited to the trivial bounds: what may be said of s f*."""

    surface: Surface

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.surface.kernel

    @property
    def known(self) -> ConfidenceSet:
        """What the bound looks at."""
        return self.surface.known

    @property
    def sign(self) -> int:
        """s."""
        return self.surface.sign

    @property
    def smooth(self) -> bool:
        """Whether gradients are known."""
        return self.surface.smooth

    def values(self, points: Array) -> Array:
        """The bounds at points (m, d)."""
        surface = self.surface
        asked = surface.targets(points)
        return np.asarray(extremes(surface.known, surface.bound, asked, (surface.sign,))[0])

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """The bounds (m,) and their gradients (m, d); only for a ``smooth`` surface."""
        values, gradients = self.surface.values_and_gradients(points)
        trivial, steepest = self.surface.trivial(points), self.surface.trivial_gradients(points)
        high = values >= self.surface.shifted(trivial)
        low = values < self.surface.shifted(-trivial)
        gradients[high], gradients[low] = steepest[high], -steepest[low]
        return self.surface.limited(points, values, trivial), gradients

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """As those of the surface, and nowhere beyond the trivial bounds."""
        surface = self.surface
        values, over_box = surface.ceilings(centres, half_widths)
        moved = kernels.features_in_boxes(self.kernel, centres, half_widths)
        trivial, norm_bound = surface.trivial(centres), surface.known.assumptions.norm_bound
        values = surface.limited(centres, values, trivial)
        # Nowhere in the box is the clipped surface below minus the trivial bound there.
        lowest = surface.shifted(-np.maximum(trivial - norm_bound * moved.moved, 0.0))
        highest = surface.shifted(surface.trivial_over(moved, centres))
        return values, np.maximum(np.minimum(over_box, highest), np.maximum(values, lowest))
