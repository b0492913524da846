"""Random functions with a given range that turn at most a given number of times.

A function is a sum of parts, one for each set of inputs that act together:

    f(x) = sum_S a_S h_S(g_S(w(x_S))),    g_S(z) = sum_j b_j cos(s omega_j . z + phi_j).

g is a random wave. w is increasing along each input and h monotone, so that neither changes how
often f turns, and they make it uneven: steep here and flat there, with plateaus or peaks, as in
real systems. s is as large as the number of turns allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import Array

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


class RandomFunction:
    """A random function on the unit cube, with values in [-1, 1] that reach both ends.

    The range is exact on points that fill the cube; between them, values may exceed it by a few per
    cent.
    """

    def __init__(self, rng: np.random.Generator, turns: Array, subsets: list[tuple[int, ...]]):
        self._turns = turns
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
        self._set_speed(slow, everywhere)
        values = self._raw(everywhere)
        self._low, self._high = float(values.min()), float(values.max())

    @property
    def dim(self) -> int:
        """The number of inputs, d."""
        return len(self._turns)

    def __call__(self, x: Array) -> Array:
        """Return values (m,) at points (m, d) of the unit cube."""
        values = self._raw([part.angles(x) for part in self.parts])
        return np.asarray(2 * (values - self._low) / (self._high - self._low) - 1)

    def of_part(self, at: int, x: Array) -> Array:
        """Return what one of the parts adds to the values, (m,), with its share of the constant."""
        part, share = self.parts[at], 1 / len(self.parts)
        value = part.value(part.angles(x), self._speed, *self._ranges[at])
        return 2 * (value - share * self._low) / (self._high - self._low) - share

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
