"""Random functions of a given range that turn so many times and no more.

A function is a sum of parts, one for each set of inputs that act together:

    f(x) = sum_S a_S h_S(g_S(w(x_S))),    g_S(z) = sum_j b_j cos(s omega_j . z + phi_j).

g is a random wave. w is increasing along each input and h monotone, so that neither changes how
often f turns, and they make it uneven: steep here and flat there, with plateaus or peaks, as in
real systems. s is as large as the number of turns allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import Array

# Of each wave: enough for a function that looks random, and not a plain sine.
TERMS = 16
# Turns are counted on this many lines along each input, at so many points for each turn.
LINES, POINTS_OF_TURN = 8, 16
# Points of the cube from which the range of a function is known, besides the corners, where
# functions without turns are largest; of more inputs than this there are too many.
POINTS, CORNERS_UP_TO = 512, 6
# Steps of the bisection for s, in which the ratio of its two ends goes from 100 to 1.02.
STEPS, SLOWEST, FASTEST = 8, 0.03, 3.0
# How uneven: w has slopes between 1 - UNEVEN and 1 + UNEVEN, and h is tanh or exp of at most BENT
# times a wave between -1 and 1. tanh(u) is at most 1.3 times as steep as a ramp. Without any turns
# waves are nearly straight, and real functions saturate: there it is tanh(2 u), 2.1 times.
UNEVEN, BENT, BENT_WITHOUT_TURNS = 0.3, 1.0, 2.0


def subsets_of(dim: int, interactions: str) -> list[tuple[int, ...]]:
    """Which inputs act together."""
    if interactions == "all" or dim == 1:
        return [tuple(range(dim))]
    return list(combinations(range(dim), 1 if interactions == "none" else 2))


def with_corners(points: Array) -> Array:
    """Points of the unit cube, and then its corners, where there are not too many."""
    dim = points.shape[1]
    if dim > CORNERS_UP_TO:
        return points
    return np.concatenate([points, list(product([0.0, 1.0], repeat=dim))])


@dataclass
class _Part:
    """a_S h_S(g_S(w(x_S))), for points of the whole cube."""

    inputs: tuple[int, ...]
    frequencies: Array  # (TERMS, |S|)
    phases: Array
    heights: Array
    slopes: Array  # (|S|,), as the next
    centres: Array
    bend: float
    shape: int
    weight: float

    def angles(self, x: Array) -> Array:
        """omega_j . w(x), (m, TERMS): all that a wave needs to know of points."""
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


class RandomFunction:
    """One of them, on the unit cube, with values in [-1, 1] that reach both ends.

    That is so on points that fill the cube; between them values may be beyond by a few per cent.
    """

    def __init__(self, rng: np.random.Generator, turns: Array, subsets: list[tuple[int, ...]]):
        self._turns = turns
        self.parts = [_random_part(rng, turns, inputs, len(subsets)) for inputs in subsets]
        lines = self._angles_along(rng.random((LINES, len(turns))))
        points = with_corners(qmc.Sobol(len(turns), rng=rng).random(POINTS))
        everywhere = [part.angles(points) for part in self.parts]
        slow, fast = SLOWEST, FASTEST
        for _ in range(STEPS):
            middle = float(np.sqrt(slow * fast))
            if len(self.parts) > 1:  # the turns of a single part do not depend on its range
                self._set_speed(middle, everywhere)
            too_fast = self._turns_too_often(lines, middle)
            slow, fast = (slow, middle) if too_fast else (middle, fast)
        self._set_speed(slow, everywhere)
        values = self._raw(everywhere)
        self._low, self._high = float(values.min()), float(values.max())

    @property
    def dim(self) -> int:
        """d."""
        return len(self._turns)

    def __call__(self, x: Array) -> Array:
        """Values (m,) at points (m, d) of the unit cube."""
        values = self._raw([part.angles(x) for part in self.parts])
        return np.asarray(2 * (values - self._low) / (self._high - self._low) - 1)

    def of_part(self, at: int, x: Array) -> Array:
        """What one of the parts adds to the value, with its share of the constant; (m,)."""
        part, share = self.parts[at], 1 / len(self.parts)
        value = part.value(part.angles(x), self._speed, *self._ranges[at])
        return 2 * (value - share * self._low) / (self._high - self._low) - share

    def _set_speed(self, speed: float, angles: list[Array]) -> None:
        self._speed = speed
        waves = [part.wave(one, speed) for part, one in zip(self.parts, angles, strict=True)]
        self._ranges = [(float(wave.min()), float(wave.max())) for wave in waves]

    def _raw(self, angles: Sequence[Array | None]) -> Array:
        """The sum of the parts, or of those whose angles are given."""
        given = zip(self.parts, angles, self._ranges, strict=True)
        values = [
            part.value(one, self._speed, *ends) for part, one, ends in given if one is not None
        ]
        return np.asarray(sum(values[1:], values[0]))

    def _angles_along(self, lines: Array) -> list[list[Array | None]]:
        """Along each input, on lines through these points; other parts are constant there."""
        found = []
        for at, most in enumerate(self._turns):
            along = np.linspace(0, 1, POINTS_OF_TURN * (int(most) + 1) + 1)
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


def _random_part(
    rng: np.random.Generator, turns: Array, inputs: tuple[int, ...], parts: int
) -> _Part:
    dim = len(inputs)
    return _Part(
        inputs,
        frequencies=rng.standard_normal((TERMS, dim)) * np.pi / 2 * (turns[list(inputs)] + 1),
        phases=rng.uniform(0, 2 * np.pi, TERMS),
        heights=rng.standard_normal(TERMS),
        slopes=rng.uniform(0, UNEVEN, dim),
        centres=rng.random(dim),
        bend=rng.uniform(0.1, BENT if turns.any() else BENT_WITHOUT_TURNS) * rng.choice([-1, 1]),
        shape=int(rng.integers(3)),
        # Some effects are larger than others.
        weight=1.0 if parts == 1 else float(rng.exponential()),
    )
