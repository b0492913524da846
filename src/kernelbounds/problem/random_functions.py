"""Random functions with a given range that turn at most a given number of times.

A function is a sum of parts, one for each set of inputs that act together:

    f(x) = sum_S a_S h_S(g_S(w(x_S))),    g_S(z) = sum_j b_j cos(s omega_j . z + phi_j).

The terms are random waves with a shape, see :mod:`kernelbounds.problem.waves`. The speed s is as
large as the number of turns allows.

Where categories are among the inputs of S, f has a wave of its own for each combination of their
levels. A category that matters by a share m < 1 only has a wave that all its levels have in common
as well: with one category and one part, f is (1 - m) h(g) + m h_level(g_level), so that two levels
differ by at most m of the range, up to the scaling of the sum to the whole range.

Where the shape is known (:class:`Shapes`), functions are mirrored so that they have it, slowed down
a little if they nearly have it, and left out otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Self

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import Array
from kernelbounds.facts import Concave, Convex, Decreasing, Fact, Increasing, Region
from kernelbounds.problem.waves import (
    NO_CATEGORIES,
    Angles,
    Category,
    Term,
    combinations_of,
    terms_of_part,
)

# Turns are counted on this many lines along each input, at this many points for each turn.
LINES_PER_INPUT, POINTS_PER_TURN = 8, 16
# The range of a function is known from this many points of the cube, and from the corners, where
# functions without turns are largest. With more inputs than MAX_CORNER_DIM there are too many
# corners.
RANGE_POINTS, MAX_CORNER_DIM = 512, 6
# The speed s is found between these two by bisection, in steps that take the ratio of the two ends
# from 100 to 1.02.
SPEED_STEPS, SLOWEST_SPEED, FASTEST_SPEED = 8, 0.03, 3.0
# Turns are counted on a few lines only. A function that has a known shape on these, and not quite
# elsewhere, has it at one of these parts of its speed; otherwise it is another function.
SPEED_SHARES = (1.0, 0.9, 0.8, 0.65, 0.5)
# No more functions than this are tried for each that is wanted: seconds for two hundred.
MOST_TRIES = 20
# With categories, lines and points for the range are at all combinations of levels. There are more
# of them than without, but at most this many times as many.
MORE_WITH_LEVELS = 8


def subsets_of(dim: int, interactions: str) -> list[tuple[int, ...]]:
    """Return the sets of inputs that act together."""
    if interactions == "all" or dim == 1:
        return [tuple(range(dim))]
    return list(combinations(range(dim), 1 if interactions == "none" else 2))


def with_corners(points: Array, levels: Mapping[int, int] | None = None) -> Array:
    """Append the corners of the unit cube to points of it, unless there are too many corners.

    ``levels`` has the number of levels of each category, which are all at corners.
    """
    sides = [np.arange((levels or {}).get(axis, 2), dtype=float) for axis in range(points.shape[1])]
    if np.prod(list(map(len, sides))) > 2**MAX_CORNER_DIM:
        return points
    return np.concatenate([points, list(product(*sides))])


@dataclass(frozen=True)
class Shapes:
    """Facts about rising and falling, and about bends, along inputs.

    Each is an axis, places (m, d), and rows of which the products with the values there are at
    least 0.
    """

    slopes: tuple[tuple[int, Array, Array], ...] = ()
    bends: tuple[tuple[int, Array, Array], ...] = ()

    @classmethod
    def of(cls, facts: Sequence[Fact], region: Region) -> Self:
        """Return the facts about shape among these, at the places of a region."""

        def at_places(*kinds: Any) -> tuple[tuple[int, Array, Array], ...]:
            known = [fact for fact in facts if isinstance(fact, kinds)]
            found = [(fact.axis, fact.constraints(region)) for fact in known]
            return tuple((axis, one.centres, one.rows) for axis, one in found)

        return cls(at_places(Increasing, Decreasing), at_places(Convex, Concave))

    def __bool__(self) -> bool:
        return bool(self.slopes or self.bends)

    def fitted(self, function: RandomFunction) -> bool:
        """Mirror a function so that it has these shapes, and tell whether it has them."""
        for upside_down in (False, True) if self.bends else (False,):
            function.upside_down = upside_down
            function.mirrored[:] = False
            for axis, centres, rows in self.slopes:
                function.align(axis, centres)
                function.mirrored[axis] = np.sum(rows @ function(centres)) < 0
            every = (*self.slopes, *self.bends)
            if all(np.all(rows @ function(centres) >= 0) for _, centres, rows in every):
                return True
        return False


class RandomFunction:
    """A random function on the unit cube, with values in [-1, 1] that reach both ends.

    The range is exact on points that fill the cube; between them, values may exceed it by a few per
    cent. ``has_shapes`` tells whether it has the shapes given.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        turns: Array,
        subsets: list[tuple[int, ...]],
        shapes: Shapes | None = None,
        categories: Mapping[int, Category] = NO_CATEGORIES,
    ):
        self._turns, self.categories, self.parts = turns, categories, subsets
        self.mirrored, self.upside_down = np.zeros(len(turns), dtype=bool), False
        self._terms: list[Term] = []
        weights = []
        for part, inputs in enumerate(subsets):
            self._terms += terms_of_part(rng, turns, part, inputs, categories)
            # Some effects are larger than others.
            weights.append(1.0 if len(subsets) == 1 else float(rng.exponential()))
        self._weigh(weights)
        self._lines = LINES_PER_INPUT * min(combinations_of(categories), MORE_WITH_LEVELS)
        starts = rng.random((self._lines, len(turns)))
        for at, one in categories.items():
            starts[:, at] = np.floor(one.levels * starts[:, at])
        lines = self._angles_along(starts)
        everywhere = self._angles(self._in_all_levels(rng))
        slow, fast = SLOWEST_SPEED, FASTEST_SPEED
        for _ in range(SPEED_STEPS):
            middle = float(np.sqrt(slow * fast))
            if len(self._terms) > 1:  # The turns of a single term do not depend on its range.
                self._set_speed(middle, everywhere)
            too_fast = self._turns_too_often(lines, middle)
            slow, fast = (slow, middle) if too_fast else (middle, fast)
        for part_of_speed in SPEED_SHARES:
            self._set_speed(part_of_speed * slow, everywhere)
            values = self._sum(everywhere)
            self._low, self._high = float(values.min()), float(values.max())
            self.has_shapes = not shapes or shapes.fitted(self)
            if self.has_shapes:
                break
        # What levels have in common and what is special to them may turn at any speed together.
        slowest = bool(categories) and slow == SLOWEST_SPEED
        self.turns_too_often = slowest and self._turns_too_often(lines, self._speed)

    @property
    def dim(self) -> int:
        """The number of inputs, d."""
        return len(self._turns)

    def _weigh(self, weights: list[float]) -> None:
        """Divide the weights of parts among their terms.

        What is special to the levels of a category is a share of the whole function, as much as
        the category matters. The parts that depend on it are not the whole, so that its share of
        these is larger.
        """
        special = {}
        for at, one in self.categories.items():
            own = sum(
                weight for weight, part in zip(weights, self.parts, strict=True) if at in part
            )
            special[at] = min(1.0, one.matters * sum(weights) / own)
        for term in self._terms:
            named = [at for at in self.parts[term.part] if at in special]
            shares = [special[at] if at in term.categories else 1 - special[at] for at in named]
            term.weight = weights[term.part] * float(np.prod(shares))

    def _in_all_levels(self, rng: np.random.Generator) -> Array:
        """Return points that fill the cube of the numbers, and corners, at all levels; (m, d)."""
        numbers = [at for at in range(self.dim) if at not in self.categories]
        unit = np.empty((1, 0))
        if numbers:
            most = RANGE_POINTS * MORE_WITH_LEVELS // combinations_of(self.categories)
            count = min(RANGE_POINTS, max(most, LINES_PER_INPUT))
            unit = with_corners(qmc.Sobol(len(numbers), rng=rng).random(count))
        return at_all_levels(unit, numbers, self.categories, self.dim)

    def align(self, axis: int, points: Array) -> None:
        """Mirror waves so that along a number those of each part rise or fall as its first one."""
        for part in range(len(self.parts)):
            terms = [term for term in self._terms if term.part == part and axis in term.numbers]
            waves = [wave for term in terms for wave in term.waves]
            rises = []
            for wave in waves:
                ends = [points.copy(), points.copy()]
                ends[0][:, axis], ends[1][:, axis] = 0.0, 1.0
                low, high = (wave.wave(wave.angles(x), self._speed).mean() for x in ends)
                rises.append(high > low)
            for wave, rising in zip(waves, rises, strict=True):
                wave.mirrored[wave.inputs.index(axis)] ^= rising != rises[0]

    def __call__(self, x: Array) -> Array:
        """Return values (m,) at points (m, d) of the unit cube."""
        return self._scaled(self._sum(self._angles(np.where(self.mirrored, 1 - x, x))), 1.0)

    def of_part(self, at: int, x: Array) -> Array:
        """Return what one of the parts adds to the values, (m,), with its share of the constant."""
        seen = self._angles(np.where(self.mirrored, 1 - x, x), [at])
        return self._scaled(self._sum(seen), 1 / len(self.parts))

    def _scaled(self, values: Array, share: float) -> Array:
        """Scale the range to [-1, 1], with a share of the constant by which it is moved."""
        sign = -1 if self.upside_down else 1
        return sign * (2 * (values - share * self._low) / (self._high - self._low) - share)

    def _set_speed(self, speed: float, angles: Angles) -> None:
        self._speed = speed
        self._ranges = [
            term.ranges(seen, speed) for term, seen in zip(self._terms, angles, strict=True) if seen
        ]

    def _angles(self, x: Array, parts: Collection[int] | None = None) -> Angles:
        """Return what all terms, or those of some parts, need to know about points."""
        return [
            term.angles(x) if parts is None or term.part in parts else None for term in self._terms
        ]

    def _sum(self, angles: Angles) -> Array:
        """Return the sum of the terms whose angles are given."""
        given = zip(self._terms, angles, self._ranges, strict=True)
        values = [term.value(seen, self._speed, ends) for term, seen, ends in given if seen]
        return np.asarray(sum(values[1:], values[0]))

    def _angles_along(self, lines: Array) -> list[tuple[int, Angles]]:
        """Return the turns allowed along each number, and angles on lines along it.

        The angles are those of the parts that vary there.
        """
        found = []
        for at, most in enumerate(self._turns.astype(int).tolist()):
            if at in self.categories:  # along which nothing turns
                continue
            along = np.linspace(0, 1, POINTS_PER_TURN * (most + 1) + 1)
            x = np.repeat(lines, len(along), axis=0)
            x[:, at] = np.tile(along, len(lines))
            varying = [part for part, inputs in enumerate(self.parts) if at in inputs]
            found.append((most, self._angles(x, varying)))
        return found

    def _turns_too_often(self, lines: list[tuple[int, Angles]], speed: float) -> bool:
        counts = Counter(term.part for term in self._terms)
        for most, angles in lines:
            # What is special to a level, and may be small, turns no more often than the whole. A
            # single term turns where the function does, because h is monotone.
            for term, seen in zip(self._terms, angles, strict=True):
                checked = len(self._terms) == 1 or counts[term.part] > 1
                if seen and checked and self._counted(term.wave(seen, speed)) > most:
                    return True
            if len(self._terms) > 1 and self._counted(self._sum(angles)) > most:
                return True
        return False

    def _counted(self, values: Array) -> int:
        """Return the largest number of turns of values on lines."""
        rises = np.diff(values.reshape(self._lines, -1), axis=1) > 0
        return int(np.count_nonzero(np.diff(rises, axis=1), axis=1).max())


def at_all_levels(
    unit: Array, numbers: Sequence[int], categories: Mapping[int, Category], dim: int
) -> Array:
    """Return points (m, d) with these values (n, ..) of the numbers, at all levels of categories.

    The points of one combination of levels follow each other. Other inputs are at 0.
    """
    combinations_of_levels = list(product(*[range(one.levels) for one in categories.values()]))
    points = np.zeros((len(combinations_of_levels), len(unit), dim))
    points[:, :, list(categories)] = np.array(combinations_of_levels, dtype=float)[:, None]
    points[:, :, list(numbers)] = unit
    return points.reshape(-1, dim)


def random_functions(
    rng: np.random.Generator,
    turns: Array,
    subsets: list[tuple[int, ...]],
    shapes: Shapes,
    count: int,
    step: Callable[[], object],
    categories: Mapping[int, Category] = NO_CATEGORIES,
) -> list[RandomFunction] | None:
    """Draw functions that have these shapes; None where too few of those tried have them."""
    drawn: list[RandomFunction] = []
    for tried in range(MOST_TRIES * count):
        if tried == count and 2 * MOST_TRIES * len(drawn) < count:
            return None  # because there would be too few in the end as well
        one = RandomFunction(rng, turns, subsets, shapes, categories)
        if one.has_shapes and not one.turns_too_often:
            drawn.append(one)
            step()
        if len(drawn) == count:
            return drawn
    return None
