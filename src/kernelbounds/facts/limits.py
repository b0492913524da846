"""Facts about values: limits, known values, and bounds on averages and differences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import (
    EPS,
    LARGEST,
    Array,
    as_scalar,
    as_vector,
    as_whole,
    brief,
    set_checked,
)
from kernelbounds.errors import InputError
from kernelbounds.facts.fact import Constraints, Fact, Region
from kernelbounds.functionals import Derivative, Sum

# The step of a difference quotient that stands for a derivative, in length scales. What it may be
# off by falls with the step, and the errors of rounding rise.
STEP_OF_DERIVATIVE = 3e-4


def checked_range(low: float | None, high: float | None, of: str) -> tuple[float, float]:
    """Check the ends of a range, of which one may be None, but not both."""
    ends = []
    for name, given, none in (("low", low, -math.inf), ("high", high, math.inf)):
        open_ = given is None or (isinstance(given, float) and given == none)
        ends.append(
            none if open_ else as_scalar(given, f"{name} of {of}", least=-LARGEST, most=LARGEST)
        )
    if ends[0] > ends[1]:
        raise InputError(f"the limits of {of} are upside down: {ends[0]:g} is above {ends[1]:g}.")
    if ends == [-math.inf, math.inf]:
        raise InputError(f"{of} needs a low or a high end.")
    return ends[0], ends[1]


def both_sides(centres: Array, rows: Array, low: float | None, high: float | None) -> Constraints:
    """low <= A f(z) <= high, where either end may be None or infinite."""
    ends = (1.0, low), (-1.0, high)
    sides = [(s, s * end) for s, end in ends if end is not None and math.isfinite(end)]
    return Constraints.of_one(
        centres,
        np.concatenate([sign * rows for sign, _ in sides]),
        np.concatenate([np.full(len(rows), end) for _, end in sides]),
    )


@dataclass(frozen=True)
class Between(Fact):
    """low <= f*(x) <= high for all x of the region.

    Parameters
    ----------
    low, high : float, optional
        The limits; None: there is none on that side.
    region : Box or pair (lower, upper), optional
        Where the fact holds; None: everywhere.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> limits = kb.facts.Between(0.0, 1.0, region=kb.Box([0.0], [1.0]))
    >>> plain, better = (
    ...     kb.ConfidenceSequence(RBF(0.3), 3.0, 0.1, facts=facts) for facts in ([], [limits])
    ... )
    >>> for seq in (plain, better):
    ...     seq.update([[0.2], [0.5]], [0.9, 0.2])
    >>> bool(better.upper([0.35])[0] < plain.upper([0.35])[0])
    True
    """

    low: float | None = None
    high: float | None = None
    region: Any = None

    def __post_init__(self) -> None:
        low, high = checked_range(self.low, self.high, "Between")
        set_checked(self, low=low, high=high, region=Region.checked(self.region))

    def constraints(self, region: Region) -> Constraints:
        """See :class:`Fact`."""
        centres = region.places()
        return both_sides(centres, np.eye(len(centres)), self.low, self.high)

    def limits(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """See :class:`Fact`."""
        low, high = super().limits(lower, upper)
        inside = slice(None) if self.region is None else self.region.contains(lower, upper)
        low[inside], high[inside] = self.low, self.high
        return low, high


@dataclass(frozen=True)
class Value(Fact):
    """|f*(x) - y| <= within, at one point x or wherever some coordinates have given values.

    Parameters
    ----------
    x : array of shape (d,), optional
        The point.
    y : float
        The value there.
    within : float
        How far f* may be from it.
    where : dict, optional
        In place of x, values of some coordinates: ``{0: 0.0}`` is the face x_0 = 0.
    region : Box or pair (lower, upper), optional
        With ``where``: the rest of the coordinates; None: all values.

    Examples
    --------
    Without catalyst, input 0, nothing is produced:

    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> nothing = kb.facts.Value(where={0: 0.0}, y=0.0, region=kb.Box([0, 0], [1, 1]))
    >>> seq = kb.ConfidenceSequence(RBF(0.5), 3.0, 0.1, facts=[nothing])
    >>> seq.update([[0.5, 0.5]], [1.0])
    >>> float(seq.upper([[0.0, 0.3]])[0])
    0.0
    """

    x: Any = None
    y: float = 0.0
    within: float = 0.0
    where: Any = None
    region: Any = None

    def __post_init__(self) -> None:
        y = as_scalar(self.y, "y of Value", least=-LARGEST, most=LARGEST)
        within = as_scalar(self.within, "within of Value", least=0.0, most=LARGEST)
        set_checked(self, y=y, within=within, region=Region.checked(self.region))
        if (self.x is None) == (self.where is None):
            raise InputError("Value needs either a point x or a dict where, such as {0: 0.0}.")
        if self.x is not None:
            size = np.size(np.asarray(self.x, dtype=object))
            x = tuple(as_vector(self.x, "x of Value", size).tolist())
            set_checked(self, x=x, region=Region(x, x))
            return
        given = dict(self.where) if isinstance(self.where, tuple) else self.where
        if not isinstance(given, dict) or not given:
            raise InputError(f"where must be a dict such as {{0: 0.0}}, got {brief(self.where)}.")
        where = (
            (as_whole(axis, "an axis of where", least=0), as_scalar(value, "a value of where"))
            for axis, value in given.items()
        )
        set_checked(self, where=tuple(sorted(where)))

    def __str__(self) -> str:
        place = dict(self.where) if self.x is None else list(self.x)
        return f"Value({place} -> {self.y:g})"

    def axes(self) -> Iterable[int]:
        """See :class:`Fact`."""
        return (axis for axis, _ in self.where or ())

    def constraints(self, region: Region) -> Constraints:
        """See :class:`Fact`."""
        centres = region.with_fixed(self.where or ()).places()
        return both_sides(centres, np.eye(len(centres)), *self._range)

    @property
    def _range(self) -> tuple[float, float]:
        """y - within and y + within, rounded outwards."""
        if not self.within:
            return self.y, self.y
        low, high = self.y - self.within, self.y + self.within
        return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)

    def limits(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """See :class:`Fact`."""
        low, high = super().limits(lower, upper)
        inside = np.ones(len(lower), dtype=bool)
        if self.region is not None:
            inside = self.region.contains(lower, upper)
        for axis, value in self.where or ():
            inside &= (lower[:, axis] == value) & (upper[:, axis] == value)
        low[inside], high[inside] = self._range
        return low, high


@dataclass(frozen=True)
class AtLeast(Fact):
    """L f* >= value, for one of :mod:`kernelbounds.functionals`.

    A derivative is not a sum of values. For functions of norm at most B it is within B |..| / h of
    (f(x + h e) - f(x)) / h, where .. is phi(x + h e) - phi(x) - h d phi(x), which is known; so that
    quotient is at least the value less this: less 4e-4 B |d phi(x)| for RBF kernels, and
    two percent of B |d phi(x)| for Matern with nu = 3/2. The step h is 3e-4 length scales.

    Parameters
    ----------
    functional : Sum, Difference, Average or Derivative
        A derivative needs a kernel that has them, a level that is a number, and no
        misspecification. What is known of slopes in a region is said by ``Slope``.
    value : float
        What L f* is at least.

    Examples
    --------
    The second setting is known to be better by 0.5 at least:

    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> better = kb.functionals.Difference([0.6], [0.4])
    >>> seq = kb.ConfidenceSequence(RBF(0.3), 3.0, 0.1, facts=[kb.facts.AtLeast(better, 0.5)])
    >>> seq.update([[0.4], [0.6]], [0.2, 0.9])
    >>> bool(seq.bounds_of(better)[0] > 0.4999)
    True
    """

    functional: Sum | Derivative
    value: float = 0.0

    def __post_init__(self) -> None:
        given: object = self.functional
        if not isinstance(given, Sum | Derivative):
            raise InputError(
                "AtLeast takes a Sum, Difference, Average or Derivative of "
                f"kernelbounds.functionals, got {brief(given)}."
            )
        value = as_scalar(self.value, "value of AtLeast", least=-LARGEST, most=LARGEST)
        set_checked(self, value=value)

    @property
    def region(self) -> Region:  # type: ignore[override]
        """The box around the points of the functional."""
        one = self.functional
        points = one.points if isinstance(one, Sum) else np.array([one.point])
        return Region(tuple(points.min(axis=0).tolist()), tuple(points.max(axis=0).tolist()))

    @property
    def depends_on_norm(self) -> bool:
        """Whether the functional is a derivative."""
        return isinstance(self.functional, Derivative)

    def constraints(self, region: Region) -> Constraints:
        """See :class:`Fact`."""
        if not isinstance(self.functional, Sum):
            raise InputError(
                f"{self} is about a derivative, which only a kernel relates to values."
            )
        weights = self.functional.weights[None]
        return Constraints.of_one(self.functional.points, weights, np.array([self.value]))

    def constraints_in(self, kernel: Kernel, norm_bound: float, region: Region) -> Constraints:
        """See :class:`Fact`."""
        if isinstance(self.functional, Sum):
            return self.constraints(region)
        x, axis = self.functional.point[None], self.functional.axis
        steepness = float(kernels.derivative_diagonal(kernel, x, np.array([axis]))[0])
        size = float(kernels.diagonal(kernel, x)[0])
        step = np.zeros_like(x)
        if steepness > 0:  # otherwise all functions of the space are constant along the axis
            step[0, axis] = STEP_OF_DERIVATIVE * math.sqrt(size / steepness)
        centres = np.concatenate([x, x + step])
        length = float(centres[1, axis] - centres[0, axis])  # as it is after rounding
        if length <= 0:
            return Constraints.of_one(x, np.zeros((0, 1)), np.zeros(0))
        bent = float(kernels.features_in_boxes(kernel, x, np.where(step > 0, length, 0.0)).bent[0])
        least = self.value - norm_bound * bent / length
        return Constraints.of_one(
            centres, np.array([[-1.0, 1.0]]) / length, np.array([math.nextafter(least, -math.inf)])
        )


# Each of at most this many points has two inequalities; more of them make a query slow, and any
# choice of points is valid.
MOST_OUTCOMES = 256


@dataclass(frozen=True, eq=False)
class NearOutcomes(Fact):
    """|f*(x_s) - y_s| <= b_s at points where outcomes have noise of at most b_s.

    It is not stated by users: it follows from outcomes with :class:`kernelbounds.noise.Bounded`.
    """

    points: Array  # (n, d), all different
    low: Array  # (n,)
    high: Array  # (n,)
    limit: float  # the largest b_s
    region: None = None

    @classmethod
    def of(cls, points: Array, outcomes: Array, limits: Array) -> NearOutcomes:
        """The fact of outcomes (n,) at points (n, d), of which several may be equal."""
        places, at = np.unique(points, axis=0, return_inverse=True)
        low, high = np.full(len(places), -np.inf), np.full(len(places), np.inf)
        # The differences are rounded, and the limits are quotients.
        rounding = 2 * EPS * (np.abs(outcomes) + limits)
        np.maximum.at(low, at.reshape(-1), outcomes - limits - rounding)
        np.minimum.at(high, at.reshape(-1), outcomes + limits + rounding)
        return cls(places, low, high, float(limits.max(initial=0.0)))

    def constraints(self, region: Region) -> Constraints:
        """See :class:`Fact`; at most ``MOST_OUTCOMES`` points, evenly chosen by their order."""
        count = len(self.points)
        chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_OUTCOMES)).astype(np.intp))
        rows = np.eye(len(chosen))
        return Constraints.of_one(
            self.points[chosen],
            np.concatenate([rows, -rows]),
            np.concatenate([self.low[chosen], -self.high[chosen]]),
        )

    def limits(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """See :class:`Fact`; at the points themselves."""
        low, high = super().limits(lower, upper)
        known = {point.tobytes(): at for at, point in enumerate(self.points)}
        for number in np.flatnonzero((lower == upper).all(axis=1)):
            at = known.get(np.ascontiguousarray(lower[number]).tobytes())
            if at is not None:
                low[number], high[number] = self.low[at], self.high[at]
        return low, high

    def __str__(self) -> str:
        return f"noise of at most {self.limit:g} in every outcome"
