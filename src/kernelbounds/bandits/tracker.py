"""The maximum of a bound over a fixed finite set, as the data grow, without most of the work.

A bound is the smallest value of a dual function, and the dual function with the ridge, the scale
and the weights of an earlier time, the weights of newer observations being zero, is still an
upper bound on it. Only the radius changes: since then a bound has grown to at most

    value + scale (reach_now - reach_then) / 2

at the ridge of then. These ceilings are cheap for all points; the bound itself is computed only
where a ceiling exceeds the best bound so far.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.surface import POINTS_AT_ONCE, Surface

FIRST = 64  # points that are computed at first; then twice as many, and so on
# Bounds that agree within this, relative to the trivial bound, tie, and the first one wins. CMM's
# search leaves differences below it, which depend on the points that are computed together.
TIE = 1e-7


class Tracker:
    """Follows one surface over a fixed set of points."""

    def __init__(self, points: Array) -> None:
        self.points = points
        self._values = np.full(len(points), np.inf)
        self._ridges, self._scales = np.ones(len(points)), np.zeros(len(points))
        self._reach = np.zeros(len(points))

    def maximum(self, surface: Surface, allowed: NDArray[np.bool_]) -> tuple[float, int]:
        """The largest bound among the points that are allowed, and the index of its point.

        The surface must be that of earlier calls, with the same observations or more.
        """
        trivial = surface.trivial(self.points)
        tie = TIE * float(trivial.max())
        if not surface.lasting or not surface.engine.data.count:
            values = np.where(allowed, surface.values(self.points), -np.inf)
            return float(values.max()), int(np.argmax(values >= values.max() - tie))
        ceilings, known = trivial.copy(), np.isfinite(self._values)
        if known.any():
            growth = surface.reach(self._ridges[known]) - self._reach[known]
            grown = self._values[known] + self._scales[known] * growth / 2 + tie
            ceilings[known] = np.fmin(grown, trivial[known])
        ceilings[~allowed] = -np.inf
        values, size = np.full(len(trivial), -np.inf), FIRST
        while True:
            best = values.max()
            unknown = np.flatnonzero((ceilings > best - tie) & np.isneginf(values))
            if not len(unknown):
                return float(best), int(np.argmax(values >= best - tie))
            if len(unknown) > size:
                top = np.argpartition(-ceilings[unknown], size - 1)[:size]
                unknown = np.sort(unknown[top])
            found = surface.attained(self.points[unknown])
            self._values[unknown], self._ridges[unknown] = found.values, found.ridges
            self._scales[unknown] = found.scales
            self._reach[unknown] = surface.reach(found.ridges)
            clipped = np.fmin(found.values, trivial[unknown])
            values[unknown] = np.maximum(clipped, -trivial[unknown])
            size = min(2 * size, POINTS_AT_ONCE)
