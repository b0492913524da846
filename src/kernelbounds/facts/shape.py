"""Facts about shape: rising, falling, slopes within limits, convex and concave.

A function that rises along an input has f(x + h) >= f(x) for every step h, one that is convex has
f(x - h) - 2 f(x) + f(x + h) >= 0. These inequalities hold whether or not functions of the kernel's
space have derivatives, need nothing but values of the kernel, and between neighbouring places they
are no looser than derivatives at the places (``docs/mathematics/facts.md`` has figures).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelbounds.arrays import Array, as_whole, set_checked
from kernelbounds.errors import InputError
from kernelbounds.facts.fact import Constraints, Fact, Region
from kernelbounds.facts.limits import both_sides, checked_range


def divided_differences(region: Region, axis: int, order: int) -> tuple[Array, Array]:
    """Slopes (order 1), or bends (order 2), of f between neighbouring places along an axis.

    They are weighted sums of f at centres (n, d), with weights (J, n). The weights are made from
    the places as they are after rounding, so that f need not be smooth for their signs to be right.
    """
    runs = region.neighbours(axis, order + 1)
    runs = runs[(np.diff(runs[:, :, axis], axis=1) > 0).all(axis=1)]  # not equal after rounding
    left, right = 1 / np.diff(runs[:, :, axis], axis=1).T[[0, -1]]
    weights = np.column_stack([-left, left] if order == 1 else [left, -(left + right), right])
    centres, at = np.unique(runs.reshape(-1, region.dim), axis=0, return_inverse=True)
    rows = np.zeros((len(runs), len(centres)))
    np.put_along_axis(rows, at.reshape(len(runs), order + 1), weights, axis=1)
    return centres, rows


class _Shape(Fact):
    """A fact about the shape of f* along one input."""

    axis: int
    region: Any

    def __post_init__(self) -> None:
        name = type(self).__name__
        axis, region = as_whole(self.axis, f"axis of {name}", least=0), Region.checked(self.region)
        set_checked(self, axis=axis, region=region)
        if region is None or self.axis >= region.dim:  # A sequence refuses such an axis.
            return
        if region.lower[self.axis] == region.upper[self.axis]:
            raise InputError(
                f"the region has no extent along input {self.axis}, so that f* has no shape there."
            )

    def axes(self) -> Iterable[int]:
        """See :class:`Fact`."""
        return (self.axis,)


@dataclass(frozen=True)
class _OneSign(_Shape):
    """A fact that slopes (``order`` 1) or bends (``order`` 2) have one sign along an input."""

    order: ClassVar[int]
    sign: ClassVar[int]

    axis: int
    region: Any = None

    def constraints(self, region: Region) -> Constraints:
        """See :class:`Fact`."""
        centres, rows = divided_differences(region, self.axis, self.order)
        return Constraints.of_one(centres, self.sign * rows, np.zeros(len(rows)))


class Increasing(_OneSign):
    """f* does not fall as one input rises, the others being as they are.

    Parameters
    ----------
    axis : int
        The input, counted from 0.
    region : Box or pair (lower, upper), optional
        Where the fact holds; None: everywhere.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> rising = kb.facts.Increasing(0, region=kb.Box([0.0], [1.0]))
    >>> seq = kb.ConfidenceSequence(Matern(0.5, nu=2.5), 3.0, 0.1, facts=[rising])
    >>> seq.update([[0.2], [0.5]], [0.3, 0.4])
    >>> bool(seq.upper([0.1])[0] < seq.upper([0.1], bound=kb.AMM())[0])
    True
    """

    order, sign = 1, 1


class Decreasing(_OneSign):
    """f* does not rise as one input rises, the others being as they are; see :class:`Increasing`.

    Examples
    --------
    >>> from kernelbounds.facts import Decreasing
    >>> print(Decreasing(1))
    Decreasing(1)
    """

    order, sign = 1, -1


@dataclass(frozen=True)
class Slope(_Shape):
    """low <= (f*(x + h e) - f*(x)) / h <= high along one input, for all steps h > 0.

    Parameters
    ----------
    axis : int
        The input, counted from 0.
    low, high : float, optional
        The limits, in units of f* to a unit of the input; None: there is none on that side.
    region : Box or pair (lower, upper), optional
        Where the fact holds; None: everywhere.

    Examples
    --------
    >>> from kernelbounds.facts import Slope
    >>> print(Slope(0, low=-1, high=2))
    Slope(0, -1, 2)
    """

    axis: int
    low: float | None = None
    high: float | None = None
    region: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = checked_range(self.low, self.high, "Slope")
        set_checked(self, low=low, high=high)

    def constraints(self, region: Region) -> Constraints:
        """See :class:`Fact`."""
        return both_sides(*divided_differences(region, self.axis, 1), self.low, self.high)


class Convex(_OneSign):
    """f* lies below its chords along one input: it may have a valley there, and no hill.

    Examples
    --------
    >>> from kernelbounds.facts import Convex, Region
    >>> found = Convex(0).constraints(Region((0.0,), (1.0,)))
    >>> bool(np.allclose(found.rows.sum(axis=1), 0))
    True
    """

    order, sign = 2, 1


class Concave(_OneSign):
    """f* lies above its chords along one input: it may have a hill there, and no valley.

    Examples
    --------
    >>> from kernelbounds.facts import Concave
    >>> print(Concave(0))
    Concave(0)
    """

    order, sign = 2, -1
