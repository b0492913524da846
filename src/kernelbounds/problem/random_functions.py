"""Random functions with a given range that turn at most a given number of times.

A function is a sum of parts, one for each set of inputs that act together:

    f(x) = sum_S a_S h_S(g_S(w(x_S))),    g_S(z) = sum_j b_j cos(s omega_j . z + phi_j).

g is a random wave. w is increasing along each input and h monotone, so that neither changes how
often f turns, and they make it uneven: steep here and flat there, with plateaus or peaks, as in
real systems. s is as large as the number of turns allows.

Where categories are among the inputs of S, f has a wave of its own for each combination of their
levels. A category that matters by a share m < 1 only has a wave that all its levels have in common
as well: with one category and one part, f is (1 - m) h(g) + m h_level(g_level), so that two levels
differ by at most m of the range, up to the scaling of the sum to the whole range.

Where the shape is known (:class:`Shapes`), functions are mirrored so that they have it, slowed down
a little if they nearly have it, and left out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product, repeat
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from kernelbounds.arrays import Array
from kernelbounds.facts import Concave, Convex, Decreasing, Fact, Increasing, Region

# Cosines in each wave: enough for a function that looks random, and not like a plain sine.
WAVE_TERMS = 16
# Turns are counted on this many lines along each input, at this many points for each turn.
LINES_PER_INPUT, POINTS_PER_TURN = 8, 16
# The range of a function is known from this many points of the cube, and from the corners, where
# functions without turns are largest. With more inputs than MAX_CORNER_DIM there are too many
# corners.
RANGE_POINTS, MAX_CORNER_DIM = 512, 6
# The speed s is found between these two by bisection, in steps that take the ratio of the two ends
# from 100 to 1.02.
SPEED_STEPS, SLOWEST_SPEED, FASTEST_SPEED = 8, 0.03, 3.0
# How uneven functions are: w has slopes between 1 - MAX_UNEVENNESS and 1 + MAX_UNEVENNESS, and h is
# tanh or exp of at most MAX_BEND times a wave between -1 and 1. tanh(u) is at most 1.3 times as
# steep as a ramp. Without any turns waves are nearly straight, and real functions saturate: there h
# may be tanh(2 u), which is 2.1 times as steep.
MAX_UNEVENNESS, MAX_BEND, MAX_BEND_WITHOUT_TURNS = 0.3, 1.0, 2.0
# Turns are counted on a few lines only. A function that has a known shape on these, and not quite
# elsewhere, has it at one of these parts of its speed; otherwise it is another function.
SPEED_SHARES = (1.0, 0.9, 0.8, 0.65, 0.5)
# No more functions than this are tried for each that is wanted: seconds for two hundred.
MOST_TRIES = 20
# With categories, lines and points for the range are at all combinations of levels. There are more
# of them than without, but at most this many times as many.
MORE_WITH_LEVELS = 8


class Category(NamedTuple):
    """How many levels a category has, and by which share of the range these differ at most."""

    levels: int
    matters: float


NO_CATEGORIES: Mapping[int, Category] = {}


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


class _Wave:
    """One wave with its shape, h(g(w(x))), of the inputs that are numbers."""

    def __init__(self, rng: np.random.Generator, turns: Array, inputs: tuple[int, ...]) -> None:
        dim, most_bent = len(inputs), MAX_BEND if turns.any() else MAX_BEND_WITHOUT_TURNS
        self.inputs = inputs
        self.mirrored = np.zeros(dim, dtype=bool)
        frequencies = rng.standard_normal((WAVE_TERMS, dim))
        self.frequencies = frequencies * np.pi / 2 * (turns[list(inputs)] + 1)
        self.phases = rng.uniform(0, 2 * np.pi, WAVE_TERMS)
        self.heights = rng.standard_normal(WAVE_TERMS)
        self.slopes = rng.uniform(0, MAX_UNEVENNESS, dim)
        self.centres = rng.random(dim)
        self.bend = rng.uniform(0.1, most_bent) * rng.choice([-1, 1])
        self.shape = int(rng.integers(3))

    def angles(self, x: Array) -> Array:
        """Return omega_j . w(x), (m, WAVE_TERMS): all that a wave needs to know about points."""
        z = x[:, self.inputs]
        z = np.where(self.mirrored, 1 - z, z)
        warped = z + self.slopes * np.sin(2 * np.pi * (z - self.centres)) / (2 * np.pi)
        return np.asarray(warped @ self.frequencies.T)

    def wave(self, angles: Array, speed: float) -> Array:
        return np.cos(speed * angles + self.phases) @ self.heights

    def value(self, angles: Array, speed: float, low: float, high: float) -> Array:
        between = 2 * (self.wave(angles, speed) - low) / (high - low) - 1
        if self.shape == 1:
            between = np.tanh(self.bend * between) / np.tanh(self.bend)
        elif self.shape == 2:
            between = np.sign(self.bend) * np.expm1(self.bend * between) / np.sinh(abs(self.bend))
        return between


class _Seen(NamedTuple):
    """The points with one combination of levels: their rows, and the angles of their wave there."""

    number: int
    rows: NDArray[np.intp]
    angles: Array


class _Term:
    """A share of a part: waves, one for each combination of levels of some categories."""

    def __init__(self, categories: Mapping[int, Category], waves: list[_Wave]) -> None:
        self.share, self.waves = 1.0, waves
        self.inputs, self._counts = list(categories), [one.levels for one in categories.values()]

    def angles(self, x: Array) -> list[_Seen]:
        """Return what the waves need to know about points, by combinations of levels."""
        which = np.zeros(len(x), dtype=np.intp)
        for at, count in zip(self.inputs, self._counts, strict=True):
            which = count * which + np.rint(x[:, at]).astype(np.intp)
        found = [(number, np.flatnonzero(which == number)) for number in np.unique(which).tolist()]
        return [_Seen(number, rows, self.waves[number].angles(x[rows])) for number, rows in found]

    def wave(self, seen: list[_Seen], speed: float) -> Array:
        """Return the waves at points, (m,)."""
        return _in_rows(seen, [self.waves[one.number].wave(one.angles, speed) for one in seen])

    def ranges(self, seen: list[_Seen], speed: float) -> list[tuple[float, float]]:
        """Return the range of each wave, at points in all levels."""
        values = [self.waves[one.number].wave(one.angles, speed) for one in seen]
        if not self.waves[0].inputs:  # Without numbers, each wave is a constant.
            values = [np.concatenate(values)] * len(values)
        return [(float(one.min()), float(one.max())) for one in values]

    def value(self, seen: list[_Seen], speed: float, ranges: list[tuple[float, float]]) -> Array:
        """Return the waves at points with their shapes, (m,), as a share of the part."""
        values = [
            self.waves[number].value(angles, speed, *ranges[number]) for number, _, angles in seen
        ]
        return self.share * _in_rows(seen, values)


def _in_rows(seen: list[_Seen], values: list[Array]) -> Array:
    """Put values back into the order of the points, (m,)."""
    found = np.empty(sum(map(len, values)))
    for one, there in zip(seen, values, strict=True):
        found[one.rows] = there
    return found


# What the terms of a part need to know about points, and the ranges of their waves.
_Angles = list[list[_Seen]]
_Ranges = list[list[tuple[float, float]]]


class _Part:
    """One part of a function, a_S h_S(g_S(w(x_S))), for points x of the whole cube."""

    def __init__(
        self,
        rng: np.random.Generator,
        turns: Array,
        inputs: tuple[int, ...],
        parts: int,
        categories: Mapping[int, Category],
    ) -> None:
        self.inputs = inputs
        numbers = tuple(at for at in inputs if at not in categories)
        named = {at: categories[at] for at in inputs if at in categories}
        self.terms: list[_Term] = []
        # Each category has a wave of its own for each level, or one for all; both for 0 < m < 1.
        for chosen in product(*[[True, False][: 1 + (one.matters < 1)] for one in named.values()]):
            own = {at: one for (at, one), yes in zip(named.items(), chosen, strict=True) if yes}
            if not numbers and not own:
                continue  # a constant
            count = int(np.prod([one.levels for one in own.values()]))
            waves = [_Wave(rng, turns, numbers) for _ in range(count)]
            self.terms.append(_Term(own, waves))
        # Some effects are larger than others.
        self.weight = 1.0 if parts == 1 else float(rng.exponential())

    def divide(self, special: Mapping[int, float]) -> None:
        """Divide the part among its terms, given which share is special to levels, by category."""
        for term in self.terms:
            shares = [
                special[at] if at in term.inputs else 1 - special[at]
                for at in self.inputs
                if at in special
            ]
            term.share = float(np.prod(shares))

    def angles(self, x: Array) -> _Angles:
        """Return what the terms need to know about points."""
        return [term.angles(x) for term in self.terms]

    def ranges(self, angles: _Angles, speed: float) -> _Ranges:
        """Return the ranges of all waves, at points in all levels."""
        return [term.ranges(seen, speed) for term, seen in zip(self.terms, angles, strict=True)]

    def value(self, angles: _Angles, speed: float, ranges: _Ranges) -> Array:
        """Return the values of the part at points, (m,)."""
        each = zip(self.terms, angles, ranges, strict=True)
        values = [term.value(seen, speed, ends) for term, seen, ends in each]
        return self.weight * np.asarray(sum(values[1:], values[0]))

    def align(self, axis: int, points: Array, speed: float) -> None:
        """Mirror waves so that along a number all of them rise on average, or fall as the first."""
        waves = [wave for term in self.terms for wave in term.waves if axis in wave.inputs]
        rises = []
        for wave in waves:
            ends = [points.copy(), points.copy()]
            ends[0][:, axis], ends[1][:, axis] = 0.0, 1.0
            low, high = (wave.wave(wave.angles(x), speed).mean() for x in ends)
            rises.append(high > low)
        for wave, rising in zip(waves, rises, strict=True):
            wave.mirrored[wave.inputs.index(axis)] ^= rising != rises[0]


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
        for function.upside_down in (False, True)[: 1 + bool(self.bends)]:
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
        self._turns, self.categories = turns, categories
        self.mirrored, self.upside_down = np.zeros(len(turns), dtype=bool), False
        self.parts = [_Part(rng, turns, inputs, len(subsets), categories) for inputs in subsets]
        self._divide_parts()
        self._one_wave = len(self.parts) == 1 and len(self.parts[0].terms) == 1
        self._lines = LINES_PER_INPUT * min(self._combinations, MORE_WITH_LEVELS)
        starts = rng.random((self._lines, len(turns)))
        for at, one in categories.items():
            starts[:, at] = np.floor(one.levels * starts[:, at])
        lines = self._angles_along(starts)
        points = self._in_all_levels(rng)
        everywhere = [part.angles(points) for part in self.parts]
        slow, fast = SLOWEST_SPEED, FASTEST_SPEED
        for _ in range(SPEED_STEPS):
            middle = float(np.sqrt(slow * fast))
            if not self._one_wave:  # The turns of a single wave do not depend on its range.
                self._set_speed(middle, everywhere)
            too_fast = self._turns_too_often(lines, middle)
            slow, fast = (slow, middle) if too_fast else (middle, fast)
        for part_of_speed in SPEED_SHARES:
            self._set_speed(part_of_speed * slow, everywhere)
            values = self._raw(everywhere)
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

    def _divide_parts(self) -> None:
        """Make what is special to the levels of a category a share of all, as much as it matters.

        The parts that depend on the category are not all, and so the share of these is larger.
        """
        special = {}
        for at, one in self.categories.items():
            own = sum(part.weight for part in self.parts if at in part.inputs)
            whole = sum(part.weight for part in self.parts)
            special[at] = min(1.0, one.matters * whole / own)
        for part in self.parts:
            part.divide(special)

    @property
    def _combinations(self) -> int:
        """The number of combinations of levels."""
        return int(np.prod([one.levels for one in self.categories.values()]))

    def _in_all_levels(self, rng: np.random.Generator) -> Array:
        """Points that fill the cube of the numbers, and its corners, at all levels; (m, d)."""
        numbers = [at for at in range(self.dim) if at not in self.categories]
        unit = np.empty((1, 0))
        if numbers:
            count = max(RANGE_POINTS * MORE_WITH_LEVELS // self._combinations, LINES_PER_INPUT)
            unit = qmc.Sobol(len(numbers), rng=rng).random(min(RANGE_POINTS, count))
            unit = with_corners(unit)
        return at_all_levels(unit, numbers, self.categories, self.dim)

    def align(self, axis: int, points: Array) -> None:
        """Make the waves of all levels rise, or fall, together along an input."""
        for part in self.parts:
            part.align(axis, points, self._speed)

    def __call__(self, x: Array) -> Array:
        """Return values (m,) at points (m, d) of the unit cube."""
        x = np.where(self.mirrored, 1 - x, x)
        values = self._raw([part.angles(x) for part in self.parts])
        return self._sign * np.asarray(2 * (values - self._low) / (self._high - self._low) - 1)

    @property
    def _sign(self) -> int:
        return -1 if self.upside_down else 1

    def of_part(self, at: int, x: Array) -> Array:
        """Return what one of the parts adds to the values, (m,), with its share of the constant."""
        part, share = self.parts[at], 1 / len(self.parts)
        value = part.value(
            part.angles(np.where(self.mirrored, 1 - x, x)), self._speed, self._ranges[at]
        )
        return self._sign * (2 * (value - share * self._low) / (self._high - self._low) - share)

    def _set_speed(self, speed: float, angles: list[_Angles]) -> None:
        self._speed = speed
        both = zip(self.parts, angles, strict=True)
        self._ranges = [part.ranges(one, speed) for part, one in both]

    def _raw(self, angles: Sequence[_Angles | None]) -> Array:
        """Return the sum of the parts whose angles are given."""
        given = zip(self.parts, angles, self._ranges, strict=True)
        values = [
            part.value(one, self._speed, ends) for part, one, ends in given if one is not None
        ]
        return np.asarray(sum(values[1:], values[0]))

    def _angles_along(self, lines: Array) -> list[list[_Angles | None]]:
        """Return angles on lines through points along each input, of the parts that vary there."""
        found: list[list[_Angles | None]] = []
        for at, most in enumerate(self._turns):
            if at in self.categories:  # along which nothing turns
                continue
            along = np.linspace(0, 1, POINTS_PER_TURN * (int(most) + 1) + 1)
            x = np.repeat(lines, len(along), axis=0)
            x[:, at] = np.tile(along, len(lines))
            found.append([part.angles(x) if at in part.inputs else None for part in self.parts])
        return found

    def _turns_too_often(self, lines: list[list[_Angles | None]], speed: float) -> bool:
        numbers = [most for at, most in enumerate(self._turns) if at not in self.categories]
        for angles, most in zip(lines, numbers, strict=True):
            # A single part turns where its wave does, because h is monotone.
            one = angles[0] if self._one_wave else None
            values = (
                self._raw(angles) if one is None else self.parts[0].terms[0].wave(one[0], speed)
            )
            if self._counted(values) > most:
                return True
            # What is special to a level, and may be small, turns no more often than the whole.
            for part, seen in zip(self.parts, angles, strict=True):
                if seen is not None and len(part.terms) > 1:
                    waves = map(_Term.wave, part.terms, seen, repeat(speed))
                    if any(self._counted(wave) > most for wave in waves):
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
