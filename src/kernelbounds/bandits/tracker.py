"""The maximum of a bound over a fixed finite set as the data grow, by few evaluations.

A bound is the smallest value of a dual function, and the dual function with the ridge, the scale
and the weights of an earlier time, the weights of newer observations being zero, is still an
upper bound on it. Only the radius changes: since then a bound has grown to at most

    value + scale (growth joint_bound_now - joint_bound_then) / 2

at the ridge of then, where the kernel between earlier points has been multiplied by ``growth`` at
most: 1, but with a sparse engine. These ceilings are cheap for all points; the bound itself is
computed only where a ceiling exceeds the best bound so far. See "bounds on a fixed set, lazily" in
``docs/mathematics/boxes.md``.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.bandits.maximisers import in_time
from kernelbounds.bounds.bound import TIE
from kernelbounds.surface import POINTS_AT_ONCE, Surface

# The number of points that are computed first; then twice as many are, and so on. A query of 64
# points costs hardly more than one of a single point (``python -m benchmarks bandits``).
FIRST_POINTS = 64


class Tracker:
    """The bounds of one surface on a fixed set of points, and the times they were computed at."""

    def __init__(self, points: Array) -> None:
        self.points = points
        self._values = np.full(len(points), np.inf)  # infinite: never computed
        self._counts = np.zeros(len(points), dtype=np.int64)  # observations at that time
        self._ridges, self._scales = np.ones(len(points)), np.zeros(len(points))
        self._joint_bound = np.zeros(len(points))
        self._stage: object = None  # the stage of all values, see :class:`Surface`; sizes of each
        self._sizes = np.empty((len(points), 0))

    def largest(self, surface: Surface, allowed: NDArray[np.bool_]) -> tuple[float, int]:
        """Find the largest bound among the points that are allowed, and the index of its point.

        Where bounds tie, it is the point with the widest interval. The surface must be that of
        earlier calls, with the same observations or more.
        """
        tie = TIE * float(surface.a_priori.trivial(self.points).max())
        value, tied = self._highest(surface, allowed, np.full(len(self.points), np.inf), tie)
        if len(tied) == 1:
            return value, int(tied[0])
        opposite = replace(surface, sign=-surface.sign).values(self.points[tied])
        return value, int(tied[np.argmax(opposite >= opposite.max() - tie)])

    def largest_clipped(self, surface: Surface, deadline: float = math.inf) -> float:
        """Find the largest of all bounds, limited to the trivial ones: no s f* is larger.

        After the deadline, a time as of ``time.monotonic``, an upper bound on it is returned.
        """
        everywhere, most = np.ones(len(self.points), dtype=bool), surface.a_priori.most(self.points)
        tie = TIE * float(surface.a_priori.trivial(self.points).max())
        return self._highest(surface, everywhere, most, tie, deadline)[0]

    def _highest(
        self,
        surface: Surface,
        allowed: NDArray[np.bool_],
        most: Array,
        tie: float,
        deadline: float = math.inf,
    ) -> tuple[float, NDArray[np.intp]]:
        """Find the largest bound, each limited to ``most``, and all points that tie.

        After the deadline a ceiling takes the place of a bound.
        """
        if surface.stage is None or not surface.known.count:
            values = limited_values(surface, self.points, most, deadline)
            values[~allowed] = -np.inf
            return float(values.max()), np.flatnonzero(values >= values.max() - tie)
        ceilings = np.where(allowed, np.minimum(self.ceilings(surface), most), -np.inf)
        fresh = allowed & (self._counts == surface.known.count)
        values = np.where(fresh, np.minimum(self._values, most), -np.inf)
        size = FIRST_POINTS
        while True:
            unknown = np.flatnonzero((ceilings > values.max() - 2 * tie) & np.isneginf(values))
            late = time.monotonic() >= deadline
            if late:
                values[unknown] = ceilings[unknown]
            if late or not len(unknown):
                return float(values.max()), np.flatnonzero(values >= values.max() - tie)
            if len(unknown) > size:
                top = np.argpartition(-ceilings[unknown], size - 1)[:size]
                unknown = np.sort(unknown[top])
            self._compute(surface, unknown)
            values[unknown] = np.minimum(self._values[unknown], most[unknown])
            size = min(2 * size, POINTS_AT_ONCE)

    def ceilings(self, surface: Surface) -> Array:
        """Bound the present bounds from above, but for rounding; (n,)."""
        assert surface.stage is not None
        stage, sizes = surface.stage
        if stage != self._stage:  # earlier bounds were those of another kernel
            self._values[:], self._stage = np.inf, stage
            self._sizes = np.ones((len(self.points), len(sizes)))
        result, known = self._values.copy(), np.isfinite(self._values)
        if known.any():
            growth = (sizes / self._sizes[known]).max(axis=1, initial=1.0)
            more = growth * surface.joint_bound(self._ridges[known]) - self._joint_bound[known]
            result[known] += self._scales[known] * more / 2
        return result

    def _compute(self, surface: Surface, which: NDArray[np.intp]) -> None:
        """Compute the bounds at some points, and keep what their ceilings need."""
        found = surface.attained(self.points[which])
        self._values[which], self._ridges[which] = found.values, found.ridges
        self._scales[which] = found.scales
        self._joint_bound[which] = surface.joint_bound(found.ridges)
        self._counts[which] = surface.known.count
        assert surface.stage is not None
        self._sizes[which] = surface.stage[1]


def limited_values(surface: Surface, points: Array, most: Array, deadline: float) -> Array:
    """Compute bounds at points (m, d), limited to ``most``, which is taken after the deadline."""
    values = most.copy()
    for part in in_time(points, deadline):
        values[part] = np.minimum(surface.values(points[part]), most[part])
    return values
