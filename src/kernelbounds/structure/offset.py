"""The level of f*, which is known by itself and not by the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernelbounds.arrays import EPS, LARGEST, Array, as_floats, as_scalar, brief, set_checked
from kernelbounds.errors import InputError, said


class Level(NamedTuple):
    """A known level at m points, or of m functionals, and how far it may be off; (m,) each."""

    values: Array
    errors: Array | float = 0.0

    def add(self, sign: int, bounds: Array) -> Array:
        """Upper bounds on s f from those on s (f - level), rounded up."""
        total = bounds + sign * self.values
        return np.asarray(total + self.errors + EPS * (np.abs(total) + self.errors))

    def within(self, deviations: Array | float) -> Level:
        """The level where it may be off by ``deviations`` more."""
        return self._replace(errors=self.errors + deviations)


@dataclass(frozen=True)
class Offset:
    """f* = level + deviation + the function that the kernel and the norm bound speak of.

    The level is known, and the deviation is an unknown constant of a known range: the guarantee
    holds whatever it is. To subtract the mean of the outcomes instead would void it.

    A range of up to a thousand times the norm bound costs a few percent of the bounds' width. A
    wider one costs digits, and with them width: with 1e5 times the norm bound, bounds may be ten
    times as wide. ``docs/how-to/structure.md`` has a table, and says how one measurement makes the
    range small.

    Parameters
    ----------
    level : float or function
        A number, or the known mean of f* as a function of points (m, d) that returns (m,).
    within : float
        The deviation is between -within and within; at most a thousand times the norm bound, if
        you can.

    Examples
    --------
    A yield of between 20 and 80 percent that moves by a few percent with its inputs:

    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(1.0), 3.0, 0.5, offset=Offset(50, within=30))
    >>> seq.update([[0.2], [0.4], [0.6], [0.8]], [61.2, 62.8, 63.1, 62.0])
    >>> lower, upper = seq.bounds([[0.5]])
    >>> bool(55 < lower[0] < upper[0] < 75)
    True
    """

    level: float | Callable[[Array], Any] = 0.0
    within: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.level):
            level = as_scalar(self.level, "level of an offset", least=-LARGEST, most=LARGEST)
            set_checked(self, level=level)
        within = as_scalar(self.within, "within of an offset", least=0.0, most=LARGEST)
        set_checked(self, within=within)

    @property
    def constant(self) -> float | None:
        """The level, where it is a number."""
        return None if callable(self.level) else self.level

    def at(self, points: Array) -> Array:
        """The level at points (m, d); (m,)."""
        if not callable(self.level):
            return np.full(len(points), self.level)
        try:
            values = self.level(points.copy())
        except Exception as error:
            raise InputError(f"the mean function of the offset failed: {said(error)}.") from error
        found = as_floats(values, "the mean function of the offset")
        if found.shape != (len(points),):
            raise InputError(
                f"the mean function of the offset gave shape {found.shape} for {len(points)} "
                f"points; it must be ({len(points)},)."
            )
        return found


def checked_offset(offset: Any) -> Offset:
    """The offset that was given, or one made from a number; None means a level of 0."""
    if isinstance(offset, Offset):
        return offset
    if offset is None:
        return Offset()
    if callable(offset) or isinstance(offset, str):
        raise InputError(
            f"offset must be a number or a kernelbounds.Offset, got {brief(offset)}; "
            "a mean function is Offset(function)."
        )
    return Offset(as_scalar(offset, "offset"))
