"""The interface of facts, the linear inequalities that a fact stands for, and the boxes it is of.

===========  ==========  =====================================================================
code         symbol      meaning
===========  ==========  =====================================================================
``centres``  z_1 .. z_n  places, (n, d)
``rows``     A           weights of the values at these places, (J, n)
``least``    b           A f*(z) >= b, (J,)
===========  ==========  =====================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

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


@dataclass(frozen=True)
class Constraints:
    """Linear inequalities A f*(z) >= b, and the number of the fact that each belongs to.

    Attributes
    ----------
    centres : array of shape (n, d)
        The places z.
    rows : array of shape (J, n)
        A.
    least : array of shape (J,)
        b.
    owners : array of shape (J,)
        The number of each inequality's fact.

    Examples
    --------
    >>> from kernelbounds.facts import Between, Region
    >>> found = Between(0, 60).constraints(Region((0.0,), (1.0,)))
    >>> found.rows.shape, sorted(set(found.least.tolist()))
    ((66, 33), [-60.0, 0.0])
    """

    centres: Array
    rows: Array
    least: Array
    owners: NDArray[np.intp]

    @classmethod
    def of_one(cls, centres: Array, rows: Array, least: Array) -> Constraints:
        """Inequalities that all belong to one fact."""
        return cls(centres, rows, least, np.zeros(len(least), dtype=np.intp))

    def take(self, which: NDArray[Any]) -> Constraints:
        """Select some of the inequalities, by their numbers or a mask."""
        return Constraints(self.centres, self.rows[which], self.least[which], self.owners[which])

    @classmethod
    def joined(cls, parts: Sequence[Constraints]) -> Constraints:
        """Join the inequalities of several facts; a place that two of them use occurs once."""
        every = np.concatenate([part.centres for part in parts])
        centres, at = np.unique(every, axis=0, return_inverse=True)
        rows = np.zeros((sum(len(part.rows) for part in parts), len(centres)))
        row = column = 0
        for part in parts:
            below, right = row + len(part.rows), column + len(part.centres)
            np.add.at(rows[row:below].T, at.reshape(-1)[column:right], part.rows.T)
            row, column = below, right
        least = np.concatenate([part.least for part in parts])
        owners = np.repeat(np.arange(len(parts)), [len(part.least) for part in parts])
        return cls(centres, rows, least, owners)


class Fact(ABC):
    """Something that is known of f* itself, whatever the data.

    A fact of one's own is a frozen dataclass that implements :meth:`constraints`.

    Attributes
    ----------
    region : Region or None
        Where the fact holds; None: everywhere. It is then used at places in the box that the
        observations span, or in the domain of a policy.

    Examples
    --------
    >>> from kernelbounds.facts import Between, Fact, Increasing
    >>> facts = [Between(0, 60), Increasing(0)]
    >>> all(isinstance(fact, Fact) for fact in facts)
    True
    """

    region: Region | None

    @abstractmethod
    def constraints(self, region: Region) -> Constraints:
        """The inequalities that follow from the fact at places in a region."""

    @property
    def depends_on_norm(self) -> bool:
        """Whether the inequalities depend on the norm bound, see :meth:`constraints_in`."""
        return False

    def constraints_in(self, kernel: Kernel, norm_bound: float, region: Region) -> Constraints:
        """The inequalities for functions of norm at most B in the space of a kernel.

        Only a fact that is not about values depends on these.
        """
        return self.constraints(region)

    def limits(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """What the fact alone says of f* throughout m boxes with these ends, (m, d) each.

        The result is lower and upper limits, (m,) each, infinite where nothing is said. A point is
        a box with equal ends.
        """
        return np.full(len(lower), -np.inf), np.full(len(lower), np.inf)

    def axes(self) -> Iterable[int]:
        """The coordinates that the fact speaks of."""
        return ()

    def __str__(self) -> str:
        known: Any = self
        if not is_dataclass(known):
            return repr(self)
        settings = [
            f"{value:g}" if isinstance(value, float) else str(value)
            for one in fields(known)
            if one.name != "region" and (value := getattr(self, one.name)) is not None
        ]
        return f"{type(self).__name__}({', '.join(settings)})"


def checked_facts(given: Any, dim: int | None = None) -> tuple[Fact, ...]:
    """Check the facts that a user passed: that they are facts, and of the same dimension."""
    if given is None:
        return ()
    if isinstance(given, Fact):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InputError(f"facts must be a list of kernelbounds.facts, got {brief(given)}.")
    facts = tuple(given)
    for fact in facts:
        if not isinstance(fact, Fact):
            raise InputError(
                f"facts must be a list of kernelbounds.facts, such as Between(0, 60), and has "
                f"{brief(fact)}."
            )
        try:
            hash(fact)
        except TypeError:
            raise InputError(
                f"a fact must be hashable, as a frozen dataclass is: {fact}."
            ) from None
    sizes = [None if fact.region is None else fact.region.dim for fact in facts]
    if dim is None:  # the first region says it
        dim = next((size for size in sizes if size is not None), None)
    for fact, size in zip(facts, sizes, strict=True):
        if size not in (None, dim):
            raise InputError(f"{fact} is about {size} inputs, but there are {dim}.")
        if missing := [axis for axis in fact.axes() if dim is not None and axis >= dim]:
            raise InputError(
                f"{fact} speaks of input {missing[0]}, but there are {dim}, counted from 0."
            )
    return facts
