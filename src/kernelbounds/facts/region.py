"""Boxes on which facts hold, and the places in them at which facts are used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import EPS, Array, as_vector, as_whole, brief, set_checked
from kernelbounds.errors import InputError

# The places at which a fact is used, to a side, for 1, 2 and 3 inputs: 33, 81 and 125 in all. With
# more inputs they are the points of a Sobol sequence.
PLACES_TO_A_SIDE = {1: 33, 2: 9, 3: 5}
SOBOL_PLACES, SOBOL_STEPS = 128, 8  # and the steps along an axis, in its extent


@dataclass(frozen=True)
class Region:
    """A box on which a fact holds, lower_i <= x_i <= upper_i.

    Wherever a region is expected, a :class:`kernelbounds.Box` or a pair (lower, upper) will do.

    Examples
    --------
    >>> from kernelbounds.facts import Between
    >>> Between(0, 60, region=([0.0, 0.0], [1.0, 0.5])).region
    Region(lower=(0.0, 0.0), upper=(1.0, 0.5), steps=())
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    # The number of equal steps along each axis between places at which facts hold, as for an input
    # that takes whole numbers only; 0 where they hold everywhere.
    steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        size = np.size(np.asarray(self.lower, dtype=object))
        lower = as_vector(self.lower, "the lower end of a region", size)
        upper = as_vector(self.upper, "the upper end of a region", size)
        if not size or np.any(lower > upper):
            raise InputError(
                f"the region is empty: lower {lower.tolist()} is not below upper {upper.tolist()}."
            )
        steps = tuple(as_whole(one, "steps of a region", least=0) for one in self.steps)
        if len(steps) not in (0, size):
            raise InputError(f"steps of a region must be {size} numbers, got {brief(self.steps)}.")
        set_checked(self, lower=tuple(lower.tolist()), upper=tuple(upper.tolist()), steps=steps)

    @classmethod
    def checked(cls, given: Any) -> Region | None:
        """Make a region from what a user passed; None stays None."""
        if given is None or isinstance(given, Region):
            return given
        if hasattr(given, "lower") and hasattr(given, "upper"):
            levels = getattr(given, "categories", {})  # of a box; the others have no steps
            extents = np.subtract(given.upper, given.lower)
            steps = [int(one) if at in levels else 0 for at, one in enumerate(extents)]
            given = given.lower, given.upper, steps if any(steps) else ()
        # In a file, steps may follow.
        if not isinstance(given, list | tuple) or len(given) not in (2, 3):
            raise InputError(
                f"region must be a kernelbounds.Box or a pair (lower, upper), got {brief(given)}."
            )
        return cls(*given)

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return len(self.lower)

    def contains(self, lower: Array, upper: Array) -> Array:
        """Whether facts hold throughout each of m boxes with these ends, (m, d) each; (m,).

        Along an axis with steps they hold at these only, and not between them.
        """
        inside = ((lower >= self.lower) & (upper <= self.upper)).all(axis=1)
        for axis, count in enumerate(self.steps):
            low, extent = self.lower[axis], self.upper[axis] - self.lower[axis]
            if count and extent:
                number = (lower[:, axis] - low) / extent * count
                on_step = np.abs(number - np.rint(number)) <= 4 * EPS * count
                inside &= on_step & (lower[:, axis] == upper[:, axis])
        return np.asarray(inside)

    def with_fixed(self, where: Iterable[tuple[int, float]]) -> Region:
        """The face of the region on which some coordinates have given values."""
        lower, upper = list(self.lower), list(self.upper)
        for axis, value in where:
            lower[axis] = upper[axis] = value
        return Region(tuple(lower), tuple(upper), self.steps)

    def at_levels(self, axes: Iterable[int]) -> Region:
        """The region with steps from level to level along axes that are categories."""
        steps = list(self._steps)
        for axis in axes:
            low, high = self.lower[axis], self.upper[axis]
            whole = low.is_integer() and high.is_integer()
            steps[axis] = steps[axis] or (int(high - low) if whole else 1)
        return Region(self.lower, self.upper, tuple(steps)) if any(steps) else self

    def places(self) -> Array:
        """Places that fill the region evenly, (n, d): a grid, or a Sobol sequence.

        Any choice is valid, and more places make bounds narrower.
        """
        sides = self._sides()
        if sides is not None:
            grid = np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(-1, self.dim)
        else:
            grid = qmc.Sobol(self.dim, scramble=False).random(SOBOL_PLACES)
            grid /= grid.max(axis=0)  # the first point is at the lower end
            for axis, count in enumerate(self.steps):
                grid[:, axis] = np.rint(grid[:, axis] * count) / count if count else grid[:, axis]
        lower, upper = np.array(self.lower), np.array(self.upper)
        places = np.minimum(lower + grid * (upper - lower), upper)
        # Steps of one are those of categories, whose levels are whole numbers to the last digit.
        ones = [axis for axis, count in enumerate(self.steps) if count == upper[axis] - lower[axis]]
        places[:, ones] = lower[ones] + np.rint(places[:, ones] - lower[ones])
        return np.asarray(places)

    def neighbours(self, axis: int, count: int) -> Array:
        """Runs of ``count`` places that follow each other along an axis, (m, count, d).

        On a grid they are its own places, so that inequalities between neighbours add up to those
        between places further apart.
        """
        if self.lower[axis] == self.upper[axis]:
            return np.empty((0, count, self.dim))
        places, sides = self.places(), self._sides()
        if sides is not None:
            grid = places.reshape(*map(len, sides), self.dim)
            along, last = np.moveaxis(grid, axis, 0), max(len(sides[axis]) - count + 1, 0)
            shifted = [along[i : last + i].reshape(-1, self.dim) for i in range(count)]
            return np.stack(shifted, axis=1)
        step = (self.upper[axis] - self.lower[axis]) / (self._steps[axis] or SOBOL_STEPS)
        first = np.minimum(places[:, axis], self.upper[axis] - (count - 1) * step)
        runs = np.tile(places[:, None], (1, count, 1))
        runs[:, :, axis] = np.minimum(first[:, None] + step * np.arange(count), self.upper[axis])
        return runs[first >= self.lower[axis]]

    def _sides(self) -> list[Array] | None:
        """The grid along each axis, from 0 to 1; None where more than three inputs vary."""
        free = np.less(self.lower, self.upper)
        most = PLACES_TO_A_SIDE.get(int(free.sum()), None if free.any() else 1)
        if most is None:
            return None
        sides, even = [], np.linspace(0.0, 1.0, most)
        for extended, count in zip(free, self._steps, strict=True):
            side = np.unique(np.rint(even * count)) / count if count else even
            sides.append(side if extended else np.zeros(1))
        return sides

    @property
    def _steps(self) -> tuple[int, ...]:
        """The number of steps along each axis, where 0 stands for none."""
        return self.steps or (0,) * self.dim
