"""Certificates: the best action known, and a bound on how much better any other can be.

With the sign s = -1 when minimising, ``optimistic`` is the upper bound on s f* and minus
``pessimistic``, the upper bound on -s f*, is the lower one. The best action z has the largest lower
bound, or nearly so. Its regret is at most the maximum over x of

* the upper bound on s f*(x), minus the lower one at z, and of
* the upper bound on the difference s (f*(x) - f*(z)).

The latter is the smaller, because no function is as bad as it can be at both ends; it needs a
:class:`~kernelbounds.bounds.DualBound`.

When time runs out, what was not looked at counts by its trivial bounds: |s f*(x)| is at most
B sqrt(k(x,x)), and |f*(x) - f*(z)| at most B |phi(x) - phi(z)|.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.branch_and_bound import DEFAULT_TOLERANCE, BranchAndBound
from kernelbounds.bandits.domains import Box
from kernelbounds.bandits.maximisers import (
    Ascent,
    Maximum,
    check_certifiable,
    in_time,
    most_over,
)
from kernelbounds.bandits.records import Certificate
from kernelbounds.bounds import DualBound
from kernelbounds.surface import Clipped, Surface
from kernelbounds.surface.clipping import CROSSING, refuse_crossing

# Actions with the largest lower bounds, of which the one with the least regret is taken. The first
# is the best but for a percent or so; a third one hardly ever is.
CANDIDATES = 2


# The part of the time that goes to the lower bounds, of which only the largest matter.
FOR_LOWER = 0.25


def certify_finite(
    optimistic: Surface,
    pessimistic: Surface,
    points: Array,
    limit_by: Callable[[float], float],
    seconds: float,
) -> Certificate:
    """Over a finite set, within some time or little more; it may be infinite.

    ``limit_by`` gives, by a time as of ``time.monotonic``, what no optimistic bound exceeds.
    """
    start = time.monotonic()
    deadline = start + seconds
    sure = -pessimistic.most(points, pessimistic.trivial(points))
    for part in in_time(points, start + FOR_LOWER * seconds):
        sure[part] = -Clipped(pessimistic).values(points[part])
    best = np.argsort(-sure, kind="stable")[:CANDIDATES]
    differences = np.full(len(best), np.inf)
    differences[0] = _largest_difference(optimistic, points, int(best[0]), deadline)
    limit = limit_by(deadline)
    for more in range(1, len(best)):
        if time.monotonic() < deadline:
            differences[more] = _largest_difference(optimistic, points, int(best[more]), deadline)
    chosen = int(np.argmin(np.minimum(differences, limit - sure[best])))
    index, difference = int(best[chosen]), float(differences[chosen])
    return _certificate(optimistic, points[index], float(sure[index]), limit, difference, index, {})


def certify_box(
    optimistic: Surface,
    pessimistic: Surface,
    box: Box,
    played: Array,
    maximiser: BranchAndBound,
    enough: float,
) -> Certificate:
    """Over a box, only as tightly as it takes to see whether the regret is below ``enough``."""
    check_certifiable(optimistic)
    start = time.monotonic()
    by = start + FOR_LOWER * maximiser.seconds
    sure = Ascent().climb(Negated(Clipped(pessimistic)), box, played, by)
    return certify_action(
        optimistic, box, sure, played, until(maximiser, start + maximiser.seconds), enough
    )


def certify_action(
    optimistic: Surface,
    box: Box,
    sure: Maximum,
    played: Array,
    maximiser: BranchAndBound,
    enough: float,
) -> Certificate:
    """Of one action of a box, with its lower bound, however it was chosen."""
    starts, named = np.concatenate([played, sure.x[None]]), box.named_values(sure.x)
    if not isinstance(optimistic.bound, DualBound):
        limit = maximiser.compare(Clipped(optimistic), box, starts, sure.value + enough).ceiling
        return _certificate(optimistic, sure.x, sure.value, limit, np.inf, None, named)
    limit, varies = most_over(optimistic, box)
    tolerance = maximiser.tolerance or DEFAULT_TOLERANCE * varies
    deadline = time.monotonic() + maximiser.seconds
    maximiser = replace(maximiser, tolerance=tolerance, seconds=maximiser.seconds / 2)
    difference = Clipped(replace(optimistic, reference=sure.x))
    regret = maximiser.compare(difference, box, starts, enough).ceiling
    if enough == np.inf:  # somebody is going to read it
        maximiser = until(maximiser, deadline)
        limit = maximiser.maximise(Clipped(optimistic), box, starts).ceiling
    return _certificate(optimistic, sure.x, sure.value, limit, regret, None, named)


def until(maximiser: BranchAndBound, deadline: float) -> BranchAndBound:
    """A maximiser with the time that is left; none is a nanosecond."""
    return replace(maximiser, seconds=max(deadline - time.monotonic(), 1e-9))


def _largest_difference(optimistic: Surface, points: Array, at: int, deadline: float) -> float:
    """What s (f*(x) - f*(z)) does not exceed on a finite set, of which z is a point."""
    if not isinstance(optimistic.bound, DualBound):
        return np.inf
    surface = replace(optimistic, reference=points[at])
    others = points[(points != points[at]).any(axis=1)]
    if not len(others):
        return 0.0
    trivial = surface.trivial(others)
    most, largest = surface.most(others, trivial), 0.0
    for part in in_time(others, deadline):
        found = surface.largest(others[part], trivial[part]).value
        largest = max(largest, min(found, float(most[part].max())))
        most[part] = 0.0
    return max(largest, float(most.max()))  # of the others that were not looked at


def _certificate(
    optimistic: Surface,
    x: Array,
    least: float,
    limit: float,
    difference: float,
    index: int | None,
    named: dict[str, float],
) -> Certificate:
    """In the user's terms."""
    most = float(Clipped(optimistic).values(x[None])[0])
    if min(most, limit) < least - CROSSING * float(optimistic.trivial(x[None])[0]):
        refuse_crossing(optimistic.known, optimistic.bound)
    regret = min(limit - least, difference)
    if optimistic.sign == 1:
        return Certificate(x.copy(), least, most, limit, None, regret, index, named)
    return Certificate(x.copy(), -most, -least, None, -limit, regret, index, named)


class Negated:
    """Minus a surface: the pessimistic bound, to be maximised."""

    def __init__(self, surface: Clipped) -> None:
        self._surface = surface
        self.smooth = surface.smooth

    def values(self, points: Array) -> Array:
        """Values at points (m, d)."""
        return -self._surface.values(points)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, d)."""
        values, gradients = self._surface.values_and_gradients(points)
        return -values, -gradients
