"""Certificates: the best action known, and a bound on how much better any other can be.

With the sign s = -1 when minimising, ``optimistic`` is the upper bound on s f* and minus
``pessimistic``, the upper bound on -s f*, is the lower one. The best action z has the largest lower
bound, or nearly so. Its regret is at most the maximum over x of

* the upper bound on s f*(x), minus the lower one at z, and of
* the upper bound on the difference s (f*(x) - f*(z)).

The latter is the smaller, because no function is as bad as it can be at both ends; it needs a
:class:`~kernelbounds.bounds.DualBound`.

When time runs out, points that were not looked at count by their trivial bounds: |s f*(x)| is at
most B sqrt(k(x,x)), and |f*(x) - f*(z)| at most B |phi(x) - phi(z)|.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.bandits.answers import Certificate
from kernelbounds.bandits.branch_and_bound import (
    DEFAULT_TOLERANCE,
    BranchAndBound,
    check_certifiable,
    most_over,
)
from kernelbounds.bandits.domains import Box
from kernelbounds.bandits.maximisers import Ascent, LowerBound, Maximum, in_time
from kernelbounds.bounds import DualBound
from kernelbounds.surface import Clipped, Surface
from kernelbounds.surface.at_points import CROSSING, refuse_crossing

Rounding = Callable[[Array], Array]  # of points (m, d), to actions that can be carried out

# Actions with the largest lower bounds, of which the one with the least regret is taken. The first
# is the best but for a percent or so; a third one hardly ever is.
CANDIDATES = 2
# The part of the time that goes to the lower bounds, of which only the largest matter.
LOWER_BOUNDS_SHARE = 0.25


def certify_finite(
    optimistic: Surface,
    pessimistic: Surface,
    points: Array,
    limit_by: Callable[[float], float],
    seconds: float,
    among: NDArray[np.bool_] | None = None,
) -> Certificate:
    """Certify the best of a finite set, in ``seconds`` or little more, which may be infinite.

    ``limit_by`` returns an upper bound on s f* over the set, computed by a deadline as of
    ``time.monotonic``. ``among`` (m,) says which points may be the best, at least one of them; None
    stands for all.
    """
    start = time.monotonic()
    deadline = start + seconds
    sure = -pessimistic.a_priori.most(points)
    for part in in_time(points, start + LOWER_BOUNDS_SHARE * seconds):
        sure[part] = -Clipped(pessimistic).values(points[part])
    if among is not None:
        sure[~among] = -np.inf
    best = np.argsort(-sure, kind="stable")[:CANDIDATES]
    best = best[np.isfinite(sure[best])]
    differences = np.full(len(best), np.inf)
    differences[0] = _largest_difference(optimistic, points, int(best[0]), deadline)
    limit = limit_by(deadline)
    for more in range(1, len(best)):
        if time.monotonic() < deadline:
            differences[more] = _largest_difference(optimistic, points, int(best[more]), deadline)
    chosen = int(np.argmin(np.minimum(differences, limit - sure[best])))
    index = int(best[chosen])
    found = Maximum(points[index], float(sure[index]), limit)
    return replace(_certificate(optimistic, found, float(differences[chosen])), index=index)


def certify_box(
    optimistic: Surface,
    pessimistic: Surface,
    box: Box,
    played: Array,
    maximiser: BranchAndBound,
    *,
    enough: float = math.inf,
    whole: Sequence[int] = (),
    feasible: Rounding | None = None,
) -> Certificate:
    """Certify the best known action of a box.

    Parameters
    ----------
    played : array of shape (n, d)
        Actions to begin with.
    enough : float
        Only as much work is done as it takes to see whether the regret is below this number.
    whole : sequence of int
        Coordinates that take whole numbers only: the action has those of the best one played.
    feasible : function, optional
        Moves points (m, d) to actions near them that can be carried out; None if all can be. The
        limit is one over the whole box in any case, which is valid, and a little loose.
    """
    check_certifiable(optimistic)
    start = time.monotonic()
    deadline = start + maximiser.seconds
    lower = LowerBound(pessimistic)
    by = start + LOWER_BOUNDS_SHARE * maximiser.seconds
    if feasible is None:
        sure = Ascent().maximise(lower, box, played, by)
    else:
        sure = _surest_feasible(lower, box, played, whole, feasible, by)
    return certify_best(optimistic, sure, box, played, maximiser, deadline, enough=enough)


def certify_best(
    optimistic: Surface,
    sure: Maximum,
    box: Box,
    played: Array,
    maximiser: BranchAndBound,
    deadline: float,
    *,
    enough: float = math.inf,
    limited: Callable[[Surface], Clipped] = Clipped,
) -> Certificate:
    """Certify an action of a box with its lower bound, by a deadline as of ``time.monotonic``.

    ``limited`` makes what is maximised of a surface: it may be minus infinity at actions that need
    not be compared with.
    """
    check_certifiable(optimistic)
    starts = np.concatenate([played, sure.x[None]])
    maximiser = _until(maximiser, deadline)
    if not isinstance(optimistic.bound, DualBound):
        difference = math.inf
        limit = maximiser.compare(limited(optimistic), box, starts, sure.value + enough).ceiling
    else:
        limit, varies = most_over(optimistic, box)
        tolerance = maximiser.tolerance or DEFAULT_TOLERANCE * varies
        half = replace(maximiser, tolerance=tolerance, seconds=maximiser.seconds / 2)
        differences = limited(replace(optimistic, reference=sure.x))
        difference = half.compare(differences, box, starts, enough).ceiling
        if enough == math.inf:  # The limit itself is going to be read.
            rest = _until(half, deadline)
            limit = rest.maximise(limited(optimistic), box, starts).ceiling
    found = _certificate(optimistic, sure._replace(ceiling=limit), difference)
    return replace(found, named=box.named_values(sure.x))


def _surest_feasible(
    lower: LowerBound, box: Box, played: Array, whole: Sequence[int], feasible: Rounding, by: float
) -> Maximum:
    """Find an action that can be carried out and has a large lower bound, by a deadline.

    The search is beside the best action played, with the same whole numbers and levels.
    """
    values = np.full(len(played), -np.inf)
    for part in in_time(played, by):
        values[part] = lower.values(played[part])
    best = played[values.argmax()]
    near = box.fixed({at: float(best[at]) for at in (*whole, *box.categories)})
    top = Ascent().maximise(lower, near, near.clipped(played), by).x
    actions = np.concatenate([feasible(np.stack([top, best])), best[None]])
    values = lower.values(actions)
    at = int(values.argmax())
    return Maximum(actions[at], float(values[at]))


def _until(maximiser: BranchAndBound, deadline: float) -> BranchAndBound:
    """Return the maximiser with the time that is left, at least a nanosecond."""
    return replace(maximiser, seconds=max(deadline - time.monotonic(), 1e-9))


def _largest_difference(optimistic: Surface, points: Array, at: int, deadline: float) -> float:
    """Bound s (f*(x) - f*(z)) from above over a finite set, of which z is a point."""
    if not isinstance(optimistic.bound, DualBound):
        return np.inf
    surface = replace(optimistic, reference=points[at])
    others = points[(points != points[at]).any(axis=1)]
    if not len(others):
        return 0.0
    most, largest = surface.a_priori.most(others), 0.0
    for part in in_time(others, deadline):
        found = surface.largest(others[part]).value
        largest = max(largest, min(found, float(most[part].max())))
        most[part] = 0.0
    return max(largest, float(most.max()))  # what is left are points that were not looked at


def _certificate(optimistic: Surface, best: Maximum, difference: float) -> Certificate:
    """Make the certificate of an action, from its lower bound and the limit over all actions."""
    least, limit = best.value, best.ceiling
    most = float(Clipped(optimistic).values(best.x[None])[0])
    if min(most, limit) < least - CROSSING * float(optimistic.a_priori.trivial(best.x[None])[0]):
        refuse_crossing(optimistic.known, optimistic.bound)
    regret = min(limit - least, difference)
    if optimistic.sign == 1:
        return Certificate(best.x.copy(), least, most, limit, None, regret)
    return Certificate(best.x.copy(), -most, -least, None, -limit, regret)
