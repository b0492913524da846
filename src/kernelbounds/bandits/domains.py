"""Domains, from which actions are chosen: a finite set, or a box."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import qmc

from kernelbounds.arrays import (
    Array,
    as_flag,
    as_floats,
    as_points,
    as_scalar,
    as_vector,
    as_whole,
    brief,
)
from kernelbounds.categories import Categories
from kernelbounds.errors import InputError

# A box is searched for each combination of levels: with more of them, that takes minutes.
MOST_FACES = 1000


class Finite:
    """A fixed finite set of actions.

    Parameters
    ----------
    points : array of shape (m, d)
        The actions, a row for each.
    once : bool
        Whether each action can be tried only once. If so, actions that were told or are pending
        are not asked for again.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> screen = kb.KernelUCB(seq, kb.Finite([[0.0], [0.5], [1.0]], once=True))
    >>> first = screen.ask()
    >>> screen.tell(first, 0.7)
    >>> screen.ask().index != first.index
    True
    """

    def __init__(self, points: ArrayLike, once: bool = False) -> None:
        self.points = as_points(points, "points")
        self.points.flags.writeable = False
        self.once = as_flag(once, "once")

    def __repr__(self) -> str:
        return f"Finite({len(self.points)} points of dimension {self.dim}, once={self.once})"

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return int(self.points.shape[1])

    @property
    def lower(self) -> Array:
        """The lower end of the box around the points, (d,)."""
        return np.asarray(self.points.min(axis=0))

    @property
    def upper(self) -> Array:
        """The upper end of the box around the points, (d,)."""
        return np.asarray(self.points.max(axis=0))

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Tell which points (m, d) are in the set."""
        return among(points, self.points)


class Box:
    """A product of intervals, lower_i <= x_i <= upper_i, and of categories.

    A category is a coordinate whose values are the numbers of its levels, from 0 on.

    Parameters
    ----------
    lower, upper : arrays of shape (d,)
        A coordinate with equal limits is fixed.
    names : sequence of str, optional
        Names of the coordinates. Points may then also be given as dicts.
    categories : dict, optional
        The coordinates, by name or position, that are :class:`~kernelbounds.Categories`.

    Examples
    --------
    >>> from kernelbounds import Categories
    >>> box = Box.named(temperature=(20, 80), pressure=(1, 5), quench=Categories("oil", "water"))
    >>> box.fixed({"pressure": 2, "quench": "oil"})
    Box(temperature=(20, 80), pressure=(2, 2), quench='oil')
    """

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        names: Sequence[str] | None = None,
        categories: Mapping[Any, Categories] | None = None,
    ) -> None:
        self.lower, self.upper = as_floats(lower, "lower"), as_floats(upper, "upper")
        if not (self.lower.ndim == 1 and self.lower.shape == self.upper.shape):
            both = self.lower.size == self.upper.size == 1
            example = (
                f"[{self.lower.item():g}], [{self.upper.item():g}]" if both else "[0, 0], [1, 5]"
            )
            raise InputError(
                "lower and upper must be lists with a number for each coordinate, as in "
                f"Box({example}), got {brief(lower)} and {brief(upper)}."
            )
        size = len(self.lower)
        if size == 0:
            raise InputError("a Box needs at least one coordinate; lower is empty.")
        self.names = None if names is None else _checked_names(names, size)
        if np.any(self.lower > self.upper):
            at = int(np.argmax(self.lower > self.upper))
            raise InputError(
                f"the box is inverted: lower {self.lower[at]:g} is above upper "
                f"{self.upper[at]:g} in coordinate {self.label(at)}."
            )
        self.lower.flags.writeable = self.upper.flags.writeable = False
        self.categories = {self._position(key): one for key, one in (categories or {}).items()}
        for at, one in self.categories.items():
            if not isinstance(one, Categories):
                raise InputError(f"categories must be kernelbounds.Categories, got {brief(one)}.")
            one.name(self.lower[at]), one.name(self.upper[at])  # both are levels

    @classmethod
    def named(cls, **sides: tuple[float, float] | Categories) -> Box:
        """Make a box with named coordinates, ``Box.named(kp=(0, 10), kd=(0, 2))``."""
        categories = {name: one for name, one in sides.items() if isinstance(one, Categories)}
        limits = sides | {name: (0, len(one) - 1) for name, one in categories.items()}
        try:
            lower, upper = zip(*limits.values(), strict=True)
        except (TypeError, ValueError):
            raise InputError(
                f"each coordinate needs a pair (lower, upper) or Categories, got {brief(sides)}."
            ) from None
        return cls(lower, upper, tuple(limits), categories)

    def __repr__(self) -> str:
        names = [f"{name}=" for name in self.names] if self.names else [""] * self.dim
        sides = []
        for at, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if one := self.categories.get(at):
                levels = one.names[int(low) : int(high) + 1]
                sides.append(repr(one if len(levels) > 1 else levels[0]))
            else:
                sides.append(f"({low:g}, {high:g})")
        return f"Box({', '.join(map(''.join, zip(names, sides, strict=True)))})"

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return len(self.lower)

    def fixed(self, values: Mapping[Any, float]) -> Box:
        """Return the box with some coordinates held at given values, by name or by position.

        The values are given and not chosen, so they need not be within the limits. Those of
        categories are levels, by their names or numbers.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        if not isinstance(values, Mapping):
            raise InputError(
                f"fixed must be a dict of coordinates and values, got {brief(values)}."
            )
        for key, value in values.items():
            at = self._position(key)
            lower[at] = upper[at] = self._coordinate(at, value, f"fixed[{key!r}]")
        return Box(lower, upper, self.names, self.categories)

    def faces(self) -> list[Box]:
        """Return the box at each combination of levels: boxes in which all categories are fixed.

        Without categories, or where all are fixed, that is the box alone.
        """
        free = [at for at in self.categories if self.lower[at] < self.upper[at]]
        levels = [range(int(self.lower[at]), int(self.upper[at]) + 1) for at in free]
        if math.prod(map(len, levels)) > MOST_FACES:
            raise InputError(
                f"the categories have {math.prod(map(len, levels))} combinations of levels, and "
                f"{MOST_FACES} are the most; fix some of them."
            )
        if not free:
            return [self]
        return [self.fixed(dict(zip(free, each, strict=True))) for each in product(*levels)]

    def _coordinate(self, at: int, value: Any, what: str) -> float:
        if at in self.categories:
            return self.categories[at].number(value, what)
        return as_scalar(value, what)

    def point(self, values: Mapping[str, Any]) -> Array:
        """Return a point that is given by the names of its coordinates, (d,)."""
        names = self.names or ()
        if not (isinstance(values, Mapping) and names and set(values) == set(names)):
            raise InputError(
                "a point given as a dict needs exactly the coordinates of the box "
                f"({', '.join(names) or 'none'}), got {brief(values)}."
            )
        given = enumerate(names)
        return np.array([self._coordinate(at, values[name], name) for at, name in given])

    def named_values(self, point: ArrayLike) -> dict[str, Any]:
        """The coordinates of a point by name, with the names of levels; empty without names."""
        values: list[Any] = as_vector(point, "point", self.dim).tolist()
        for at, one in self.categories.items():
            values[at] = one.name(values[at])
        return dict(zip(self.names, values, strict=True)) if self.names else {}

    def scaled(self, unit: Array) -> Array:
        """Stretch points of the unit cube, (m, d), to the box; each level has an equal share."""
        points = np.clip(self.lower + unit * (self.upper - self.lower), self.lower, self.upper)
        for at in self.categories:
            low, high = self.lower[at], self.upper[at]
            points[:, at] = np.minimum(low + np.floor(unit[:, at] * (high - low + 1)), high)
        return points

    def clipped(self, points: Array) -> Array:
        """Move points to the nearest ones of the box, (m, d)."""
        inside = np.clip(points.reshape(-1, self.dim), self.lower, self.upper)
        levels = list(self.categories)
        inside[:, levels] = np.rint(inside[:, levels])
        return inside

    def filling(self, count: int) -> Array:
        """Fill the box evenly with ``count`` points, (count, d): a Sobol sequence, always the same.

        Coordinates that are fixed stay so.
        """
        number = as_whole(count, "count", least=1)
        if self.dim > qmc.Sobol.MAXDIM:
            raise InputError(
                f"a box of {self.dim} dimensions cannot be filled; {qmc.Sobol.MAXDIM} are the most."
            )
        power = math.ceil(math.log2(max(number, 2)))
        unit = qmc.Sobol(self.dim, scramble=True, rng=np.random.default_rng(0)).random_base2(power)
        return self.scaled(unit[:number])

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Tell which points (m, d) are in the box, and at levels of its categories."""
        return np.asarray((self.clipped(points) == points).all(axis=1))

    def warn_if_outside(self, points: Array, stacklevel: int) -> None:
        """Warn of points (m, d) outside of the box: they may be data, or in wrong units."""
        outside = self.clipped(points) != points
        if outside.any():
            row, at = np.argwhere(outside)[0]
            warnings.warn(
                f"{outside.any(axis=1).sum()} of {len(points)} points told are outside of the box, "
                f"the first with {points[row, at]:g} in coordinate {self.label(at)}, which is "
                f"between {self.lower[at]:g} and {self.upper[at]:g}; outcomes are used as data.",
                stacklevel=stacklevel + 1,
            )

    def _position(self, key: Any) -> int:
        if self.names is not None and key in self.names:
            return self.names.index(key)
        whole = isinstance(key, int | np.integer) and not isinstance(key, bool)
        if whole and 0 <= key < self.dim:
            return int(key)
        names = f" or one of {', '.join(self.names)}" if self.names else ""
        raise InputError(
            f"there is no coordinate {brief(key)} in this box; use 0 to {self.dim - 1}{names}."
        )

    def label(self, at: int) -> str:
        """The name or number of a coordinate, for messages."""
        return repr(self.names[at]) if self.names else str(at)


Domain = Finite | Box


def key_of(point: Array) -> bytes:
    """Return a key that is equal for equal points, also for minus zero and zero."""
    return (point + 0.0).tobytes()


def among(points: Array, others: Iterable[Array]) -> NDArray[np.bool_]:
    """Tell which points (m, d) are equal to one of some others."""
    keys = {key_of(point) for point in others}
    return np.array([key_of(point) in keys for point in points], dtype=bool)


def _checked_names(names: Any, size: int) -> tuple[str, ...]:
    listed = tuple(names) if isinstance(names, Sequence) and not isinstance(names, str) else ()
    strings = [name for name in listed if isinstance(name, str)]
    if not len(listed) == len(set(strings)) == size:
        raise InputError(f"names must be {size} different strings, got {brief(names)}.")
    return listed
