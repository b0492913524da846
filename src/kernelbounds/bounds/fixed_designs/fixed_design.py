"""FixedDesign: points that were fixed before the outcomes, at one moment in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernelbounds.arrays import Array, as_flag, as_whole, brief, set_checked
from kernelbounds.bounds.bound import Bound, Guarantee
from kernelbounds.bounds.fixed_designs.linear_estimate import estimated, estimated_half_widths
from kernelbounds.bounds.fixed_designs.projection import Projection
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.errors import InputError, KernelBoundsError
from kernelbounds.functionals.targets import Targets

# Of delta, what the leading directions are given, and the noise energy the rest: its set is rarely
# the narrower one, but sees when noise is larger than sigma says. With all of delta for the
# directions bounds are up to half a percent narrower.
SHARE_OF_DIRECTIONS = 0.9


@dataclass(frozen=True, repr=False)
class FixedDesign(Bound):
    """Narrower bounds for points that nobody chose by looking at outcomes, at one time.

    The points, their noise scales, and how many there are, are fixed before any outcome is known:
    by a plan, a grid or a random number generator. The noise of each row is sigma-sub-Gaussian
    given *all* of the points and the outcomes of the rows before it, in the order in which they
    were made; they may be added in any. For points chosen as one goes along, by whomever, and for
    data that are looked at while they come, it is **not valid**; that is what CMM is for. So it is
    not for a table that somebody else has filled, unless the plan is known by which they did.

    All x at once: the noise has only p coordinates V_p' eps along the p leading eigenvectors of the
    kernel matrix, with |V_p' eps| <= r_p (``projection.py``). The bound is

        max f(x)  subject to  |V_p'(f_t - y_t)| <= r_p  and  ||f|| <= B

    at nine tenths of delta, or that with p = t, V_p = I, the energy of the noise at one time, at
    the rest of delta, whichever is smaller. p is chosen from the points alone.

    One x: a linear estimate of f*(x), its largest bias and its noise (``linear_estimate.py``), at
    half of delta, or the bound for all x at the other half.

    Parameters
    ----------
    simultaneous : bool
        Whether the bounds hold at all x together, as those of the other methods do. Else each
        holds on its own with probability 1 - delta, and most are narrower.
    points : int
        With ``simultaneous=False``: the bounds hold together at any ``points`` x that were fixed
        beforehand, as the points of the data were.
    noise : "sub-Gaussian" or "Gaussian"
        Gaussian noise, independent given all of the points and of standard deviation at most
        sigma, allows for narrower ones. :class:`kernelbounds.noise.Gaussian` says so, too.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.2)
    >>> plan = np.linspace(0, 1, 60)[:, None]
    >>> seq.update(plan, np.sin(4 * plan[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=60))
    >>> for bound in (kb.CMM(), FixedDesign(), FixedDesign(simultaneous=False)):
    ...     lower, upper = seq.bounds([0.5], bound)
    ...     print(f"{upper[0] - lower[0]:.2f} ({bound.guarantee})")
    0.70 (all times, all x, adaptive points, sub-Gaussian noise)
    0.55 (one time, all x, fixed points, sub-Gaussian noise)
    0.39 (one time, one x, fixed points, sub-Gaussian noise)
    """

    simultaneous: bool = True
    points: int = 1
    noise: Literal["sub-Gaussian", "Gaussian"] = "sub-Gaussian"

    bounds_functionals = True  # The bound sees a point by its representer alone.

    def __post_init__(self) -> None:
        set_checked(
            self,
            simultaneous=as_flag(self.simultaneous, "simultaneous"),
            points=as_whole(self.points, "points", least=1),
        )
        if not isinstance(self.noise, str) or self.noise not in ("sub-Gaussian", "Gaussian"):
            raise InputError(
                f'noise must be "sub-Gaussian" or "Gaussian", got {brief(self.noise)}.'
            )
        if self.simultaneous and self.points != 1:
            raise InputError(
                "points is for simultaneous=False; simultaneous bounds hold at any number of them."
            )

    @property
    def guarantee(self) -> Guarantee:
        """One time and points fixed beforehand; all x together, or each on its own."""
        return Guarantee(anytime=False, uniform=self.simultaneous, adaptive=False, noise=self.noise)

    @property
    def points_at_once(self) -> int | None:
        """``points``, where the guarantee is for that number of points together."""
        return None if self.simultaneous or self.points == 1 else self.points

    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        sets, noise = self._sets(known), self._noise_in(known)
        if not sets:
            return np.full((len(signs), len(points)), np.inf)
        if self.simultaneous or len(sets) == 1:
            return _smallest(sets, points, signs)
        both = _smallest(sets, points, (1, -1))
        delta = known.assumptions.delta / (2 * self.points)
        narrower = np.minimum(both, estimated(known, points, (1, -1), delta, noise))
        # An estimate that the other bounds rule out failed, as it may at one x in 2/delta. It is
        # left out, but not where other assumptions are tried: intervals that come back when B
        # shrinks would not be nested, and one that is empty speaks against that B.
        found = narrower
        if known.evidence.growing:
            found = np.where(narrower.sum(axis=0) < 0, both, narrower)
        return found[[0 if sign > 0 else 1 for sign in signs]]

    def predicted_width(self, known: ConfidenceSet, points: Targets) -> Array:
        """An upper bound on upper - lower with noise, whatever the outcomes; (m,).

        The width is that along the leading directions or, for single points, that of the linear
        estimate where it is smaller.
        """
        _, *directions = self._sets(known)
        if not directions:  # all functions vanish at the points
            return 2 * known.trivial(points)
        half = directions[0].half_widths(points)
        if not self.simultaneous:
            delta = known.assumptions.delta / (2 * self.points)
            noise = self._noise_in(known)
            half = np.minimum(half, estimated_half_widths(known, points, delta, noise))
        return 2 * half

    def norm_lower_bound(self, known: ConfidenceSet) -> float:
        """See :class:`~kernelbounds.bounds.Bound`; it leaves neither of the two sets empty."""
        return max((one.norm_lower_bound for one in self._sets(known)), default=0.0)

    def refute(self, known: ConfidenceSet) -> None:
        """See :class:`~kernelbounds.bounds.Bound`; called where bounds cross."""
        sets = self._sets(known)
        for one in sets:
            one.refute_if_empty()
        if len(sets) > 1:
            raise KernelBoundsError(
                f"the intervals that {self!r} intersects exclude each other: norm_bound, "
                "noise_scale or the kernel is wrong, or the points were chosen by looking at "
                "outcomes, or something of probability at most delta has happened."
            )

    def _sets(self, known: ConfidenceSet) -> tuple[Projection, ...]:
        """The noise energy's set and that of the leading directions, each at its share of delta.

        The first is all there is without noise, when it is exact, and where all functions vanish at
        the points. There is none while nothing is known of the noise scale.
        """
        a, noise = known.assumptions, self._noise_in(known)
        delta = a.delta / (1 if self.simultaneous else 2)
        directions = known.engine.directions().path.eigen.eigenvectors
        if math.isinf(a.noise_scale):
            return ()
        if a.noise_scale == 0 or not directions:
            return (Projection.of_energy(known, delta, noise),)
        rest = Projection.of_energy(known, (1 - SHARE_OF_DIRECTIONS) * delta, noise)
        return rest, Projection.of(known, SHARE_OF_DIRECTIONS * delta, noise)

    def _noise_in(self, known: ConfidenceSet) -> str:
        """The kind of noise, which the law of the sequence may state as well."""
        return "Gaussian" if known.stated.noise.is_gaussian else self.noise


def _smallest(sets: Sequence[Projection], points: Targets, signs: Sequence[int]) -> Array:
    """The smaller bound of the sets, for each point and side."""
    return np.asarray(np.min([one.extremes(points, signs) for one in sets], axis=0))
