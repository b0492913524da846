"""Certificates: the best action known, and a bound on how much better any other can be.

With the sign s = -1 when minimising, ``optimistic`` is the upper bound on s f* and minus
``pessimistic``, the upper bound on -s f*, is the lower one. The best action has the largest lower
bound; the regret is at most the maximum of the upper bounds, minus that.
"""

from __future__ import annotations

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.branch_and_bound import BranchAndBound
from kernelbounds.bandits.domains import Box
from kernelbounds.bandits.maximisers import Ascent
from kernelbounds.bandits.records import Certificate
from kernelbounds.surface import Clipped, Surface
from kernelbounds.surface.clipping import CROSSING, refuse_crossing


def certify_finite(
    optimistic: Surface, pessimistic: Surface, points: Array, limit: float
) -> Certificate:
    """Over a finite set, of which ``limit`` is the largest optimistic bound."""
    sure = -Clipped(pessimistic).values(points)
    index = int(sure.argmax())
    return _certificate(optimistic, points[index], float(sure[index]), limit, index, {})


def certify_box(
    optimistic: Surface,
    pessimistic: Surface,
    box: Box,
    played: Array,
    maximiser: BranchAndBound,
    enough: float,
) -> Certificate:
    """Over a box, only as tightly as it takes to see whether the regret is below ``enough``."""
    sure = Ascent().climb(Negated(Clipped(pessimistic)), box, played)
    starts = np.concatenate([played, sure.x[None]])
    limit = maximiser.compare(Clipped(optimistic), box, starts, sure.value + enough).ceiling
    return _certificate(optimistic, sure.x, sure.value, limit, None, box.named_values(sure.x))


def _certificate(
    optimistic: Surface,
    x: Array,
    least: float,
    limit: float,
    index: int | None,
    named: dict[str, float],
) -> Certificate:
    """In the user's terms."""
    most = float(Clipped(optimistic).values(x[None])[0])
    if min(most, limit) < least - CROSSING * float(optimistic.trivial(x[None])[0]):
        refuse_crossing(optimistic.known, optimistic.bound)
    regret = limit - least
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
