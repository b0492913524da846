"""Random waves: the terms of which random functions are sums.

    h(g(w(x))),    g(z) = sum_j b_j cos(s omega_j . z + phi_j).

w is increasing along each input and h monotone, so that neither changes how often the wave turns,
and they make it uneven: steep here and flat there, with plateaus or peaks, as in real systems. The
speed s says how often it turns. A term has a wave for each combination of levels of its categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array

# Cosines in each wave: enough for a function that looks random, and not like a plain sine.
WAVE_TERMS = 16
# How uneven functions are: w has slopes between 1 - MAX_UNEVENNESS and 1 + MAX_UNEVENNESS, and h is
# tanh or exp of at most MAX_BEND times a wave between -1 and 1. tanh(u) is at most 1.3 times as
# steep as a ramp. Without any turns waves are nearly straight, and real functions saturate: there h
# may be tanh(2 u), which is 2.1 times as steep.
MAX_UNEVENNESS, MAX_BEND, MAX_BEND_WITHOUT_TURNS = 0.3, 1.0, 2.0


class Category(NamedTuple):
    """How many levels a category has, and by which share of the range these differ at most."""

    levels: int
    matters: float


NO_CATEGORIES: Mapping[int, Category] = {}


class Wave:
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
        """Return g(w(x)) at points with these angles, (m,)."""
        return np.cos(speed * angles + self.phases) @ self.heights

    def value(self, angles: Array, speed: float, low: float, high: float) -> Array:
        """Return h(g(w(x))), (m,), where g goes from low to high and h(g) from -1 to 1."""
        between = 2 * (self.wave(angles, speed) - low) / (high - low) - 1
        if self.shape == 1:
            between = np.tanh(self.bend * between) / np.tanh(self.bend)
        elif self.shape == 2:
            between = np.sign(self.bend) * np.expm1(self.bend * between) / np.sinh(abs(self.bend))
        return between


class Seen(NamedTuple):
    """The points with one combination of levels: their rows, and the angles of their wave there."""

    number: int
    rows: NDArray[np.intp]
    angles: Array


# What each term of a function needs to know about points; None: the term is left out.
Angles = list[list[Seen] | None]
Ranges = list[tuple[float, float]]


class Term:
    """One term of a part of a function: waves, one for each combination of levels of categories.

    A part without categories has one term. A category of which the levels have something in common
    makes two: one with waves of their own, and one without.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        turns: Array,
        part: int,
        numbers: tuple[int, ...],
        categories: Mapping[int, Category],
    ) -> None:
        self.part, self.numbers, self.categories, self.weight = part, numbers, categories, 1.0
        self.waves = [Wave(rng, turns, numbers) for _ in range(combinations_of(categories))]

    def angles(self, x: Array) -> list[Seen]:
        """Return what the waves need to know about points, by combinations of levels."""
        which = np.zeros(len(x), dtype=np.intp)
        for at, one in self.categories.items():
            which = one.levels * which + np.rint(x[:, at]).astype(np.intp)
        found = [(number, np.flatnonzero(which == number)) for number in np.unique(which).tolist()]
        return [Seen(number, rows, self.waves[number].angles(x[rows])) for number, rows in found]

    def wave(self, seen: list[Seen], speed: float) -> Array:
        """Return the waves at points, (m,)."""
        return _in_rows(seen, [self.waves[one.number].wave(one.angles, speed) for one in seen])

    def ranges(self, seen: list[Seen], speed: float) -> Ranges:
        """Return the range of each wave, at points in all levels."""
        values = [self.waves[one.number].wave(one.angles, speed) for one in seen]
        if not self.numbers:  # Each wave is a constant.
            values = [np.concatenate(values)] * len(values)
        return [(float(one.min()), float(one.max())) for one in values]

    def value(self, seen: list[Seen], speed: float, ranges: Ranges) -> Array:
        """Return the values of the term at points, (m,)."""
        values = [
            self.waves[number].value(angles, speed, *ranges[number]) for number, _, angles in seen
        ]
        return self.weight * _in_rows(seen, values)


def _in_rows(seen: list[Seen], values: list[Array]) -> Array:
    """Put values back into the order of the points, (m,)."""
    found = np.empty(sum(map(len, values)))
    for one, there in zip(seen, values, strict=True):
        found[one.rows] = there
    return found


def terms_of_part(
    rng: np.random.Generator,
    turns: Array,
    part: int,
    inputs: tuple[int, ...],
    categories: Mapping[int, Category],
) -> Iterator[Term]:
    """Yield the terms of a part: each category has waves of its own, or not; both if 0 < m < 1."""
    numbers = tuple(at for at in inputs if at not in categories)
    named = {at: categories[at] for at in inputs if at in categories}
    for chosen in product(*[[True, False][: 1 + (one.matters < 1)] for one in named.values()]):
        own = {at: one for (at, one), yes in zip(named.items(), chosen, strict=True) if yes}
        if numbers or own:  # Otherwise the term is a constant.
            yield Term(rng, turns, part, numbers, own)


def combinations_of(categories: Mapping[int, Category]) -> int:
    """Return the number of combinations of levels."""
    return int(np.prod([one.levels for one in categories.values()]))
