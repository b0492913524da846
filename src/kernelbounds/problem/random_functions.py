"""Random functions with a given range that turn at most a given number of times.

A function is a sum of parts, one for each set of inputs that act together:

    f(x) = sum_S a_S h_S(g_S(w(x_S))),    g_S(z) = sum_j b_j cos(s omega_j . z + phi_j).

g is a random wave. w is increasing along each input and h monotone, so that neither changes how
often f turns, and they make it uneven: steep here and flat there, with plateaus or peaks, as in
real systems. s is as large as the number of turns allows.

Where the shape is known (:class:`Shapes`), functions are mirrored so that they have it, slowed down
a little if they nearly have it, and left out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import Array
from kernelbounds.facts import Concave, Convex, Decreasing, Fact, Increasing, Region

# Cosines in each wave: enough for a function that looks random, and not like a plain sine.
WAVE_TERMS = 16
# Turns are counted on this many lines along each input, at this many points for each turn.
LINES, POINTS_PER_TURN = 8, 16
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
SLOWER = (1.0, 0.9, 0.8, 0.65, 0.5)
# No more functions than this are tried for each that is wanted: seconds for two hundred.
MOST_TRIES = 20


def subsets_of(dim: int, interactions: str) -> list[tuple[int, ...]]:
    """Return the sets of inputs that act together."""
    if interactions == "all" or dim == 1:
        return [tuple(range(dim))]
    return list(combinations(range(dim), 1 if interactions == "none" else 2))


def with_corners(points: Array) -> Array:
    """Append the corners of the unit cube to points of it, unless there are too many corners."""
    dim = points.shape[1]
    if dim > MAX_CORNER_DIM:
        return points
    return np.concatenate([points, list(product([0.0, 1.0], repeat=dim))])


class _Part:
    """One part of a function, a_S h_S(g_S(w(x_S))), for points x of the whole cube."""

    def __init__(
        self, rng: np.random.Generator, turns: Array, inputs: tuple[int, ...], parts: int
    ) -> None:
        dim, most_bent = len(inputs), MAX_BEND if turns.any() else MAX_BEND_WITHOUT_TURNS
        self.inputs = inputs
        frequencies = rng.standard_normal((WAVE_TERMS, dim))
        self.frequencies = frequencies * np.pi / 2 * (turns[list(inputs)] + 1)
        self.phases = rng.uniform(0, 2 * np.pi, WAVE_TERMS)
        self.heights = rng.standard_normal(WAVE_TERMS)
        self.slopes = rng.uniform(0, MAX_UNEVENNESS, dim)
        self.centres = rng.random(dim)
        self.bend = rng.uniform(0.1, most_bent) * rng.choice([-1, 1])
        self.shape = int(rng.integers(3))
        # Some effects are larger than others.
        self.weight = 1.0 if parts == 1 else float(rng.exponential())

    def angles(self, x: Array) -> Array:
        """Return omega_j . w(x), (m, WAVE_TERMS): all that a wave needs to know about points."""
        z = x[:, self.inputs]
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
        return self.weight * between


class Shapes:
    """Facts about shape along inputs, and the places at which they are looked at."""

    def __init__(self, facts: Sequence[Fact], region: Region) -> None:
        self.slopes: list[tuple[int, Array, Array]] = []
        self.bends: list[tuple[int, Array, Array]] = []
        for fact in facts:
            if not isinstance(fact, Increasing | Decreasing | Convex | Concave):
                continue
            found = fact.constraints(region)
            kinds = self.bends if isinstance(fact, Convex | Concave) else self.slopes
            kinds.append((fact.axis, found.centres, found.rows))

    def __bool__(self) -> bool:
        return bool(self.slopes or self.bends)

    def without_bends(self) -> Shapes:
        """The facts about rising and falling alone."""
        fewer = Shapes((), Region((0.0,), (1.0,)))
        fewer.slopes = self.slopes
        return fewer

    def fitted(self, function: RandomFunction) -> bool:
        """Mirror a function so that it has these shapes, and tell whether it has them."""
        for function.upside_down in (False, True)[: 1 + bool(self.bends)]:
            function.mirrored[:] = False
            for axis, centres, rows in self.slopes:
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
    ):
        self._turns = turns
        self.mirrored, self.upside_down = np.zeros(len(turns), dtype=bool), False
        self.parts = [_Part(rng, turns, inputs, len(subsets)) for inputs in subsets]
        lines = self._angles_along(rng.random((LINES, len(turns))))
        points = with_corners(qmc.Sobol(len(turns), rng=rng).random(RANGE_POINTS))
        everywhere = [part.angles(points) for part in self.parts]
        slow, fast = SLOWEST_SPEED, FASTEST_SPEED
        for _ in range(SPEED_STEPS):
            middle = float(np.sqrt(slow * fast))
            if len(self.parts) > 1:  # The turns of a single part do not depend on its range.
                self._set_speed(middle, everywhere)
            too_fast = self._turns_too_often(lines, middle)
            slow, fast = (slow, middle) if too_fast else (middle, fast)
        for part_of_speed in SLOWER:
            self._set_speed(part_of_speed * slow, everywhere)
            values = self._raw(everywhere)
            self._low, self._high = float(values.min()), float(values.max())
            self.has_shapes = not shapes or shapes.fitted(self)
            if self.has_shapes:
                break

    @property
    def dim(self) -> int:
        """The number of inputs, d."""
        return len(self._turns)

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
            part.angles(np.where(self.mirrored, 1 - x, x)), self._speed, *self._ranges[at]
        )
        return self._sign * (2 * (value - share * self._low) / (self._high - self._low) - share)

    def _set_speed(self, speed: float, angles: list[Array]) -> None:
        self._speed = speed
        waves = [part.wave(one, speed) for part, one in zip(self.parts, angles, strict=True)]
        self._ranges = [(float(wave.min()), float(wave.max())) for wave in waves]

    def _raw(self, angles: Sequence[Array | None]) -> Array:
        """Return the sum of the parts whose angles are given."""
        given = zip(self.parts, angles, self._ranges, strict=True)
        values = [
            part.value(one, self._speed, *ends) for part, one, ends in given if one is not None
        ]
        return np.asarray(sum(values[1:], values[0]))

    def _angles_along(self, lines: Array) -> list[list[Array | None]]:
        """Return angles on lines through points along each input, of the parts that vary there."""
        found = []
        for at, most in enumerate(self._turns):
            along = np.linspace(0, 1, POINTS_PER_TURN * (int(most) + 1) + 1)
            x = np.repeat(lines, len(along), axis=0)
            x[:, at] = np.tile(along, len(lines))
            found.append([part.angles(x) if at in part.inputs else None for part in self.parts])
        return found

    def _turns_too_often(self, lines: list[list[Array | None]], speed: float) -> bool:
        for angles, most in zip(lines, self._turns, strict=True):
            # A single part turns where its wave does, because h is monotone.
            one = angles[0] if len(self.parts) == 1 else None
            values = self._raw(angles) if one is None else self.parts[0].wave(one, speed)
            rises = np.diff(values.reshape(LINES, -1), axis=1) > 0
            if np.any(np.count_nonzero(np.diff(rises, axis=1), axis=1) > most):
                return True
        return False


def random_functions(
    rng: np.random.Generator,
    turns: Array,
    subsets: list[tuple[int, ...]],
    shapes: Shapes,
    count: int,
    step: Callable[[], object],
) -> list[RandomFunction] | None:
    """Draw functions that have these shapes; None where too few of those tried have them."""
    drawn: list[RandomFunction] = []
    for tried in range(MOST_TRIES * count):
        if tried == count and 2 * MOST_TRIES * len(drawn) < count:
            return None  # because there would be too few in the end as well
        one = RandomFunction(rng, turns, subsets, shapes)
        if one.has_shapes:
            drawn.append(one)
            step()
        if len(drawn) == count:
            return drawn
    return None
