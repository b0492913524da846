"""The settings with the best estimate: what one would use today, without a proof that it is best.

The estimate at x is the middle of the interval, (lower(x) + upper(x)) / 2: of all numbers it has
the smallest error in the worst case. Where data are far away the interval is wide and its middle
says little, so an estimate counts as no more than lower(x) + r / 2, with the range r of the output.
So

    score(x) = min((lower(x) + upper(x)) / 2, lower(x) + r / 2)

is maximised, which is the middle wherever the interval is no wider than the range.
"""

from __future__ import annotations

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits import Ascent, Box, Finite
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.points import named, settable, whole_inputs
from kernelbounds.study.records import Promising
from kernelbounds.surface import Clipped

# Points that fill the box, besides those observed; the best of them is then improved.
CANDIDATES = 1024


class _Score:
    """The score above, of s f* with s = -1 when minimising, as a function that can be climbed."""

    def __init__(self, sequence: ConfidenceSequence, sign: int, output_range: float) -> None:
        self._upper = Clipped(sequence.surface(sign))
        self._minus_lower = Clipped(sequence.surface(-sign))
        self._range = output_range
        self.smooth = self._upper.smooth

    def values(self, points: Array) -> Array:
        """Values at points (m, d)."""
        upper, lower = self._upper.values(points), -self._minus_lower.values(points)
        return np.minimum((lower + upper) / 2, lower + self._range / 2)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, d)."""
        upper, upwards = self._upper.values_and_gradients(points)
        lower, downwards = (-part for part in self._minus_lower.values_and_gradients(points))
        wide = upper - lower > self._range
        values = np.minimum((lower + upper) / 2, lower + self._range / 2)
        return values, np.where(wide[:, None], downwards, (upwards + downwards) / 2)


def most_promising(
    problem: Problem, sequence: ConfidenceSequence, domain: Box | Finite, minimise: bool
) -> Promising:
    """The settings with the best score found, in the user's units; nothing is certified."""
    with sequence.known.lock:
        score = _Score(sequence, -1 if minimise else 1, problem.output.range)
        if isinstance(domain, Finite):
            candidates = domain.points
        else:
            filling = problem.scaled(settable(problem, domain.filling(CANDIDATES)))
            candidates = np.concatenate([sequence.points, filling])
        best = candidates[int(score.values(candidates).argmax())]
        if isinstance(domain, Box):  # around the best of them, with the same whole numbers
            near = domain.fixed({at: float(best[at]) for at in whole_inputs(problem)})
            top = Ascent(scan=1, starts=1).climb(score, near, best[None]).x
            feasible = np.concatenate([best[None], problem.scaled(settable(problem, top[None]))])
            best = feasible[int(score.values(feasible).argmax())]
        (lower,), (upper,) = sequence.bounds(best[None])
    values = named(problem, problem.unscaled(best[None])[0].tolist())
    return Promising(values, float(lower + upper) / 2, float(lower), float(upper))
