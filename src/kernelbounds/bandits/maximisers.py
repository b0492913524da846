"""Maximising a bound over a box: what a maximiser is, and two of three.

:class:`Ascent` is fast and promises nothing, :class:`Grid` promises what a grid can, and
:class:`~kernelbounds.bandits.branch_and_bound.BranchAndBound` keeps at it until the promise is
good enough.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_whole
from kernelbounds.bandits.domains import Box
from kernelbounds.errors import InputError
from kernelbounds.surface import POINTS_AT_ONCE, Clipped, Surface, in_parts


class Maximum(NamedTuple):
    """What a maximiser finds, which one of your own returns too.

    Attributes
    ----------
    x : array of shape (d,)
        The best point found.
    value : float
        The value there.
    ceiling : float
        What no point of the box can exceed; infinite where nothing is known.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> box = kb.Box([0.0], [1.0])
    >>> found = kb.Grid(cells=50).maximise(seq.surface(1), box, starts=np.empty((0, 1)))
    >>> found.x.shape, found.value <= found.ceiling
    ((1,), True)
    """

    x: Array
    value: float
    ceiling: float = math.inf


class Maximiser(Protocol):
    """A way to maximise a surface over a box."""

    def maximise(self, surface: Surface | Clipped, box: Box, starts: Array) -> Maximum:
        """The maximum; ``starts`` (m, d) are points of the box worth a look, possibly none."""
        ...


class Function(Protocol):
    """What :meth:`Ascent.climb` can maximise."""

    @property
    def smooth(self) -> bool:
        """Whether it has gradients."""
        ...

    def values(self, points: Array) -> Array:
        """Values at points (m, d)."""
        ...

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, d)."""
        ...


@dataclass(frozen=True)
class Ascent:
    """A quasi-random scan of the box, and gradient ascent from the best points of it.

    Where the gradient in x is not known, a simplex method (Nelder-Mead) takes its place. No
    guarantee comes with either.

    Parameters
    ----------
    scan : int
        Points of the scan.
    starts : int
        Ascents.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> ucb = kb.KernelUCB(seq, kb.Box([0.0], [1.0]), maximiser=kb.Ascent(scan=64, starts=2))
    >>> ucb.ask().x.shape
    (1,)
    """

    scan: int = 1024
    starts: int = 6

    def __post_init__(self) -> None:
        object.__setattr__(self, "scan", as_whole(self.scan, "scan", least=1))
        object.__setattr__(self, "starts", as_whole(self.starts, "starts", least=1))

    def maximise(self, surface: Surface | Clipped, box: Box, starts: Array) -> Maximum:
        """See :class:`Maximiser`."""
        return self.climb(surface, box, starts)

    def climb(
        self, function: Function, box: Box, starts: Array, deadline: float = math.inf
    ) -> Maximum:
        """The best point of any function that is found by a time, as of ``time.monotonic``.

        Some points are looked at in any case.
        """
        free = np.flatnonzero(box.upper > box.lower)
        points = np.concatenate([starts, box.filling(self.scan)])
        seen = [(points[part], function.values(points[part])) for part in in_time(points, deadline)]
        points, values = (np.concatenate(parts) for parts in zip(*seen, strict=True))
        at = int(values.argmax())
        best = Maximum(points[at], float(values[at]))
        if not len(free):
            return best._replace(ceiling=best.value)
        if best.value == math.inf:  # a bound may say nothing at all, for a while
            return best
        for start in _spread(points, values, self.starts, box):
            if time.monotonic() >= deadline:
                break
            found = self._from(function, box, points[start], free, deadline)
            if found.value > best.value:
                best = found
        return best

    def _from(
        self, function: Function, box: Box, start: Array, free: NDArray[np.intp], deadline: float
    ) -> Maximum:
        """One ascent, in coordinates where the box is the unit cube."""
        low, width = box.lower[free], (box.upper - box.lower)[free]
        x = start.copy()

        def place(unit: Array) -> Array:
            x[free] = np.clip(low + unit * width, low, box.upper[free])
            return x[None]

        def loss(unit: Array) -> float:
            return -float(function.values(place(unit))[0])

        def loss_and_gradient(unit: Array) -> tuple[float, Array]:
            value, gradient = function.values_and_gradients(place(unit))
            return -float(value[0]), -gradient[0, free] * width

        def stop_late(_: Array) -> None:
            if time.monotonic() >= deadline:
                raise StopIteration  # upon which the best so far is returned

        unit, sides = (start[free] - low) / width, [(0.0, 1.0)] * len(free)
        if function.smooth:
            found = minimize(
                loss_and_gradient, unit, jac=True, method="L-BFGS-B", bounds=sides,
                callback=stop_late, options={"maxiter": 60},
            )  # fmt: skip
        else:
            found = minimize(
                loss, unit, method="Nelder-Mead", bounds=sides, callback=stop_late,
                options={"maxfev": 100 * len(free), "xatol": 1e-6, "fatol": 1e-9},
            )  # fmt: skip
        place(found.x)
        return Maximum(x.copy(), -float(found.fun))


@dataclass(frozen=True)
class Grid:
    """The best of the centres of equal cells, with the error that the cells guarantee.

    Parameters
    ----------
    cells : int
        At most so many cells.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> ucb = kb.KernelUCB(seq, kb.Box([0.0], [1.0]), maximiser=kb.Grid(cells=100))
    >>> bool(ucb.ask().limit >= ucb.ask().upper)
    True
    """

    cells: int = 10_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", as_whole(self.cells, "cells", least=1))

    def maximise(self, surface: Surface | Clipped, box: Box, starts: Array) -> Maximum:
        """See :class:`Maximiser`; the value is that of a centre, and ``starts`` are not used."""
        check_certifiable(surface)
        free = box.upper > box.lower
        sides = np.where(free, _per_axis(self.cells, int(free.sum())), 1)
        axes = [(np.arange(side) + 0.5) / side for side in sides]
        centres = box.scaled(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, box.dim))
        half = (box.upper - box.lower) / (2 * sides)
        best, ceiling = Maximum(centres[0], -math.inf), -math.inf
        for part in in_parts(centres):
            values, ceilings = surface.ceilings(part, np.broadcast_to(half, part.shape))
            ceiling, at = max(ceiling, float(ceilings.max())), int(values.argmax())
            if values[at] > best.value:
                best = Maximum(part[at], float(values[at]))
        return best._replace(ceiling=ceiling)


def in_time(points: Array, deadline: float) -> Iterator[slice]:
    """Slices of the points, a bounded number in each, as long as there is time; at least one.

    Each takes points from all over, so that those before a deadline are no corner of the whole.
    """
    if deadline == math.inf:
        yield slice(None)
        return
    parts = -(-len(points) // POINTS_AT_ONCE)
    for first in range(parts):
        if first and time.monotonic() >= deadline:
            return
        yield slice(first, None, parts)


def check_certifiable(surface: Surface | Clipped) -> None:
    """Certified maximisers need to know how fast the kernel's features move."""
    if not kernels.differentiable(surface.kernel):
        raise InputError(
            f"a certified maximum is not available for the kernel {surface.kernel}: how fast it "
            "varies is not known. It is for scikit-learn's kernels, their sums and products."
        )
    if surface.known.offset.constant is None:
        raise InputError(
            "a certified maximum is not available with a mean function as offset: how fast it "
            "varies is not known. Model the trend by a part with a kernel of its own."
        )


def most_over(surface: Surface | Clipped, box: Box) -> tuple[float, float]:
    """What s f* never exceeds in a box, and by how much at most it varies there.

    For a surface that passes :func:`check_certifiable`. Where the level is unknown f* may be far
    larger than it varies: from the centre it is at most B |phi(x) - phi(c)| away.
    """
    centre, half = ((box.lower + box.upper) / 2)[None], ((box.upper - box.lower) / 2)[None]
    features = kernels.features_in_boxes(surface.kernel, centre, half)
    raw = surface.surface if isinstance(surface, Clipped) else surface
    trivial = raw.trivial_over(features, centre)
    varies = 2 * raw.known.assumptions.norm_bound * features.moved
    return float(raw.shifted(trivial)[0]), float(np.minimum(trivial, varies)[0])


def _spread(points: Array, values: Array, count: int, box: Box) -> list[int]:
    """The best points that are not too near to better ones."""
    width = np.where(box.upper > box.lower, box.upper - box.lower, 1.0)
    chosen: list[int] = []
    for at in np.argsort(-values, kind="stable"):
        near = np.abs(points[chosen] - points[at]) / width
        if not chosen or near.max(axis=1).min() > 0.05:
            chosen.append(int(at))
        if len(chosen) == count:
            break
    return chosen


def _per_axis(cells: int, dims: int) -> int:
    side: int = max(1, round(float(cells) ** (1 / max(dims, 1))))
    return side if side**dims <= cells else side - 1
