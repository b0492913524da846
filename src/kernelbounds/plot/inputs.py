"""The inputs of a picture: the box in the user's units, and how its coordinates are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelbounds.arrays import Array, as_vector, as_whole, brief
from kernelbounds.bandits import Box
from kernelbounds.errors import InputError
from kernelbounds.plot.canvas import as_written, log_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN = 0.02  # at both ends of an axis, so that dots on the edge of the box are whole
REACH = 0.3  # the distance from a slice at which data are not seen any more, in units of the box

Log = Collection[str] | Sequence[bool] | None


@dataclass(frozen=True)
class Inputs:
    """A box, which of its coordinates have logarithmic axes, and their labels; d each."""

    box: Box
    log: tuple[bool, ...]
    labels: tuple[str, ...]

    @classmethod
    def checked(cls, domain: Any, log: Log, labels: Sequence[str] | None) -> Inputs:
        """Check what users pass; None is no logarithmic axis, and the names of the box."""
        if not isinstance(domain, Box):
            raise InputError(f"domain must be a kernelbounds.Box, got {brief(domain)}.")
        numbered = ("x",) if domain.dim == 1 else tuple(f"x{at}" for at in range(domain.dim))
        shown = tuple(domain.names or numbered if labels is None else labels)
        if len(shown) != domain.dim or not all(isinstance(one, str) for one in shown):
            raise InputError(
                f"labels must be {domain.dim} strings, one for each input, got {brief(labels)}."
            )
        flags = _flags(domain, log)
        for at, flag in enumerate(flags):
            if flag and not domain.lower[at] > 0:
                raise InputError(
                    f"a logarithmic axis needs positive limits, but coordinate {domain.label(at)} "
                    f"starts at {domain.lower[at]:g}."
                )
        return cls(domain, flags, shown)

    @property
    def free(self) -> list[int]:
        """The coordinates that are not fixed."""
        return np.flatnonzero(self.box.lower < self.box.upper).tolist()

    @property
    def centre(self) -> Array:
        """The middle of the box, as it is shown."""
        middle = (self._to_axes(self.box.lower) + self._to_axes(self.box.upper)) / 2
        return np.where(self.log, np.exp(np.where(self.log, middle, 0.0)), middle)

    def position(self, key: Any) -> int:
        """Find a free coordinate by its name or number."""
        names = self.box.names or ()
        at = names.index(key) if key in names else key
        if isinstance(at, bool) or at not in self.free:
            raise InputError(
                f"there is no input {brief(key)} to be drawn in {self.box!r}; use a name or a "
                "number from 0 of one that is not fixed."
            )
        return int(at)

    def point(self, given: Any, name: str) -> Array:
        """Check a point: an array (d,), a dict by names, a suggestion or a certificate.

        None is the middle of the box. A dict may leave coordinates out; they are in the middle.
        """
        if given is None:
            return self.centre
        if isinstance(given, Mapping):
            names, point = self.box.names or (), self.centre
            for key, value in given.items():
                if key not in names:
                    raise InputError(f"{name} has {brief(key)}, which {self.box!r} has not.")
                point[names.index(key)] = value
            given = point
        return as_vector(getattr(given, "x", given), name, self.box.dim)

    def ticks(self, at: int, count: int) -> Array:
        """Return ``count`` values of a coordinate, evenly along its axis."""
        space = np.geomspace if self.log[at] else np.linspace
        number = as_whole(count, "resolution", least=2)
        return np.asarray(space(self.box.lower[at], self.box.upper[at], number))

    def line(self, through: Array, at: int, count: int) -> Array:
        """Return ``count`` points (m, d) along one coordinate."""
        ticks = self.ticks(at, count)
        points = np.repeat(through[None], len(ticks), axis=0)
        points[:, at] = ticks
        return points

    def nearness(
        self, points: Array, through: Array, shown: Sequence[int], reach: float = REACH
    ) -> Array:
        """Compute how near points (n, d) are to a slice, from 1 on it to 0 at ``reach``; (n,).

        The distance is the Euclidean length of what is not shown of x - through, in units of the
        box. A coordinate that is fixed has no width in the box; its unit is that of the points.
        What is outside of the limits of what is shown is not near.
        """
        x, here = self._to_axes(points), self._to_axes(through)
        low, high = self._to_axes(self.box.lower), self._to_axes(self.box.upper)
        hidden = [at for at in range(self.box.dim) if at not in shown]
        with np.errstate(invalid="ignore"):  # nan, if neither has a place on a logarithmic axis
            apart, width = np.abs(x - here)[:, hidden], (high - low)[hidden]
            unit = np.where(width > 0, width, np.maximum(apart.max(axis=0, initial=0.0), 1e-300))
            near = 1 - np.sqrt(np.square(apart / unit).sum(axis=1)) / reach
        inside = ((low <= x) & (x <= high))[:, shown].all(axis=1)
        return np.where(inside & (near > 0), near, 0.0)

    def label_axis(self, ax: Axes, which: str, at: int, margin: float = MARGIN) -> None:
        """Set the scale, limits and label of an axis; ``which`` is "x" or "y"."""
        low, high = (self._to_axes(side)[at] for side in (self.box.lower, self.box.upper))
        limits = np.array([low, high]) + margin * (high - low) * np.array([-1, 1])
        scale, ends = ("log", np.exp(limits)) if self.log[at] else ("linear", limits)
        named = {"scale": scale, "lim": ends, "label": as_written(self.labels[at])}
        ax.set(**{which + name: value for name, value in named.items()})
        if self.log[at]:
            log_ticks(getattr(ax, f"{which}axis"), self.box.lower[at], self.box.upper[at])

    def _to_axes(self, points: Array) -> Array:
        """Points (.., d) with logarithms where axes are logarithmic."""
        # What is not positive is infinitely far from everything on such an axis.
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(points > 0, np.log(points), -np.inf)
        return np.where(self.log, logs, points)


def _flags(box: Box, log: Log) -> tuple[bool, ...]:
    if log is None:
        return (False,) * box.dim
    listed: list[Any] = [log] if isinstance(log, str) else list(log)
    if all(isinstance(one, str) for one in listed):
        for one in listed:
            if one not in (box.names or ()):
                raise InputError(f"log has {brief(one)}, which is no coordinate of {box!r}.")
        return tuple(name in listed for name in box.names or ("",) * box.dim)
    if len(listed) != box.dim or not all(isinstance(one, bool | np.bool_) for one in listed):
        raise InputError(
            f"log must be names of coordinates, or True or False for each of {box.dim}, got "
            f"{brief(log)}."
        )
    return tuple(map(bool, listed))
