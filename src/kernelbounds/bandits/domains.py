"""Domains, from which actions are chosen: a finite set, or a box."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc

from kernelbounds.arrays import Array, as_flag, as_points, as_scalar, as_vector, as_whole, brief
from kernelbounds.errors import InputError


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

    @property
    def example(self) -> Array:
        """One point of the domain, (1, d)."""
        return self.points[:1]


class Box:
    """A product of intervals, lower_i <= x_i <= upper_i.

    Parameters
    ----------
    lower, upper : arrays of shape (d,)
        A coordinate with equal limits is fixed.
    names : sequence of str, optional
        Names of the coordinates. Points may then also be given as dicts.

    Examples
    --------
    >>> box = Box.named(temperature=(20, 80), pressure=(1, 5))
    >>> box.fixed({"pressure": 2})
    Box(temperature=(20, 80), pressure=(2, 2))
    """

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, names: Sequence[str] | None = None
    ) -> None:
        size = np.size(np.asarray(lower, dtype=object))
        if size == 0:
            raise InputError("a Box needs at least one coordinate; lower is empty.")
        self.lower, self.upper = as_vector(lower, "lower", size), as_vector(upper, "upper", size)
        self.names = None if names is None else _checked_names(names, size)
        if np.any(self.lower > self.upper):
            at = int(np.argmax(self.lower > self.upper))
            raise InputError(
                f"the box is inverted: lower {self.lower[at]:g} is above upper "
                f"{self.upper[at]:g} in coordinate {self.label(at)}."
            )
        self.lower.flags.writeable = self.upper.flags.writeable = False

    @classmethod
    def named(cls, **limits: tuple[float, float]) -> Box:
        """Make a box with named coordinates, ``Box.named(kp=(0, 10), kd=(0, 2))``."""
        try:
            lower, upper = zip(*limits.values(), strict=True)
        except (TypeError, ValueError):
            raise InputError(
                f"each coordinate needs a pair (lower, upper), got {brief(limits)}."
            ) from None
        return cls(lower, upper, tuple(limits))

    def __repr__(self) -> str:
        names = [f"{name}=" for name in self.names] if self.names else [""] * self.dim
        sides = zip(names, self.lower, self.upper, strict=True)
        return f"Box({', '.join(f'{name}({low:g}, {high:g})' for name, low, high in sides)})"

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return len(self.lower)

    @property
    def example(self) -> Array:
        """One point of the domain, (1, d)."""
        return self.lower[None]

    def fixed(self, values: Mapping[Any, float]) -> Box:
        """Return the box with some coordinates held at given values, by name or by position.

        The values are given and not chosen, so they need not be within the limits.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        if not isinstance(values, Mapping):
            raise InputError(
                f"fixed must be a dict of coordinates and values, got {brief(values)}."
            )
        for key, value in values.items():
            at = self._position(key)
            lower[at] = upper[at] = as_scalar(value, f"fixed[{key!r}]")
        return Box(lower, upper, self.names)

    def point(self, values: Mapping[str, float]) -> Array:
        """Return a point that is given by the names of its coordinates, (d,)."""
        names = self.names or ()
        if not (isinstance(values, Mapping) and names and set(values) == set(names)):
            raise InputError(
                "a point given as a dict needs exactly the coordinates of the box "
                f"({', '.join(names) or 'none'}), got {brief(values)}."
            )
        return np.array([as_scalar(values[name], name) for name in names])

    def named_values(self, point: Array) -> dict[str, float]:
        """The coordinates of a point by name; empty without names."""
        values = as_vector(point, "point", self.dim).tolist()
        return dict(zip(self.names, values, strict=True)) if self.names else {}

    def scaled(self, unit: Array) -> Array:
        """Stretch points of the unit cube, (m, d), to the box."""
        return np.clip(self.lower + unit * (self.upper - self.lower), self.lower, self.upper)

    def clipped(self, points: Array) -> Array:
        """Move points to the nearest ones of the box, (m, d)."""
        return np.clip(points.reshape(-1, self.dim), self.lower, self.upper)

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

    def warn_if_outside(self, points: Array, stacklevel: int) -> None:
        """Warn of points (m, d) outside of the box: they may be data, or in wrong units."""
        outside = (points < self.lower) | (points > self.upper)
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


def _checked_names(names: Any, size: int) -> tuple[str, ...]:
    listed = tuple(names) if isinstance(names, Sequence) and not isinstance(names, str) else ()
    strings = [name for name in listed if isinstance(name, str)]
    if not len(listed) == len(set(strings)) == size:
        raise InputError(f"names must be {size} different strings, got {brief(names)}.")
    return listed
