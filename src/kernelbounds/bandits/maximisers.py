"""Maximising a bound over a box, with or without a certificate.

:class:`Ascent` is fast and certifies nothing, :class:`Grid` certifies as much as equal cells can,
and :class:`BranchAndBound` refines its cells until the certificate is good enough.
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
from kernelbounds.arrays import Array, as_scalar, as_whole
from kernelbounds.bandits.domains import Box
from kernelbounds.display import late_progress
from kernelbounds.errors import InputError
from kernelbounds.surface import POINTS_AT_ONCE, Clipped, Surface, in_chunks

SPLIT_AT_ONCE = 64  # cells that are halved together, those with the highest ceilings
DEFAULT_TOLERANCE = 1e-3  # relative to what f* may vary by
# Points that are looked at with facts, of those with the highest bounds without them, and as many
# from all over the box: a look with facts of three inputs takes milliseconds.
LOOKS_WITH_FACTS = 64
# Points that are looked at first where there is a deadline: how long they take says how many more
# there is time for. Consecutive ones in the order of a golden section are spread over the set.
FIRST_LOOK = 16
GOLDEN_SECTION = (math.sqrt(5) - 1) / 2


class Maximum(NamedTuple):
    """The result of a maximiser, which one of your own returns too.

    Attributes
    ----------
    x : array of shape (d,)
        The best point found.
    value : float
        The value there.
    ceiling : float
        An upper bound over the whole box; infinite where none is known.

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
        """Find the maximum; ``starts`` (m, d) are points of the box worth a look, possibly none.

        Along a category there are levels only: ``box.faces()`` has a box for each combination.
        """


class Function(Protocol):
    """A function of x that :class:`Ascent` can maximise."""

    @property
    def smooth(self) -> bool:
        """Whether the function has gradients."""

    def values(self, points: Array) -> Array:
        """The values at points (m, d)."""

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """The values (m,) and gradients (m, d)."""


class Negated:
    """Minus a surface: the lower bound on s f*, to be maximised."""

    def __init__(self, surface: Clipped) -> None:
        self._surface = surface
        self.smooth = surface.smooth

    def values(self, points: Array) -> Array:
        """See :class:`Function`."""
        return -self._surface.values(points)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """See :class:`Function`."""
        values, gradients = self._surface.values_and_gradients(points)
        return -values, -gradients


@dataclass(frozen=True)
class Ascent:
    """A quasi-random scan of the box, and gradient ascent from the best points of it.

    Where the gradient in x is not known, a simplex method (Nelder-Mead) takes its place. No
    guarantee comes with either. Where there are categories, each combination of levels has a scan
    and ascents of its own.

    Parameters
    ----------
    scan : int
        The number of points of the scan.
    starts : int
        The number of ascents.

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

    def maximise(
        self, surface: Function, box: Box, starts: Array, deadline: float = math.inf
    ) -> Maximum:
        """Find the best point of a surface, or another function, by a deadline.

        The deadline is a time as of ``time.monotonic``. Some points are looked at in any case.
        """
        faces = box.faces()
        if len(faces) > 1:
            return self._best_of_faces(surface, faces, starts, deadline)
        free = np.flatnonzero(box.upper > box.lower)
        points = np.concatenate([starts, box.filling(self.scan)])
        if isinstance(surface, Surface | Clipped) and surface.known.facts:
            points = _highest_without_facts(surface, points, deadline)
        seen = [(points[part], surface.values(points[part])) for part in in_time(points, deadline)]
        points, values = (np.concatenate(parts) for parts in zip(*seen, strict=True))
        at = int(values.argmax())
        best = Maximum(points[at], float(values[at]))
        if not len(free):
            return best._replace(ceiling=best.value)
        if best.value == math.inf:  # with few data, a bound may be infinite
            return best
        for start in spread(points, values, self.starts, box.lower, box.upper):
            if time.monotonic() >= deadline:
                break
            found = self._from(surface, box, points[start], free, deadline)
            if found.value > best.value:
                best = found
        return best

    def _best_of_faces(
        self, surface: Function, faces: list[Box], starts: Array, deadline: float
    ) -> Maximum:
        """Find the best point of several boxes, each with its share of the time that is left."""
        best = Maximum(faces[0].lower, -math.inf)
        for number, face in enumerate(faces):
            levels = list(face.categories)
            there = starts[(starts[:, levels] == face.lower[levels]).all(axis=1)]
            now = time.monotonic()
            found = self.maximise(
                surface, face, there, now + (deadline - now) / (len(faces) - number)
            )
            best = max(best, found, key=lambda one: one.value)
        # The ceiling of a box that is a point is the value there, if all of them are points.
        pointwise = np.array_equal(faces[0].lower, faces[0].upper)
        return best._replace(ceiling=best.value if pointwise else math.inf)

    def _from(
        self, function: Function, box: Box, start: Array, free: NDArray[np.intp], deadline: float
    ) -> Maximum:
        """Ascend from one point, in coordinates where the box is the unit cube."""
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
                raise StopIteration  # SciPy then returns the best point so far

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
    """The best of the centres of equal cells, with the ceiling that the cells guarantee.

    Parameters
    ----------
    cells : int
        The largest number of cells.

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
        faces = box.faces()
        cells, free = max(self.cells // len(faces), 1), faces[0].upper > faces[0].lower
        side = round(cells ** (1 / max(free.sum(), 1)))
        side -= side ** int(free.sum()) > cells
        sides = np.where(free, side, 1)
        axes = [(np.arange(side) + 0.5) / side for side in sides]
        unit = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, box.dim)
        centres = np.concatenate([face.scaled(unit) for face in faces])
        half = (faces[0].upper - faces[0].lower) / (2 * sides)
        best, ceiling = Maximum(centres[0], -math.inf), -math.inf
        for part in in_chunks(centres):
            values, ceilings = surface.ceilings(part, np.broadcast_to(half, part.shape))
            ceiling, at = max(ceiling, float(ceilings.max())), int(values.argmax())
            if values[at] > best.value:
                best = Maximum(part[at], float(values[at]))
        return best._replace(ceiling=ceiling)


def in_time(points: Array, deadline: float) -> Iterator[NDArray[np.intp]]:
    """Choose points in parts, by their positions: one part, and more while there is time.

    A part takes at most half of the time left, if its points take as long as those before them.
    Each has points from all over the set, so that the parts before the deadline are not a corner
    of it.
    """
    if deadline == math.inf:
        yield np.arange(len(points))
        return
    order = np.argsort(np.arange(1, len(points) + 1) * GOLDEN_SECTION % 1.0, kind="stable")
    start, size = 0, FIRST_LOOK
    began = now = time.monotonic()
    while start < len(order) and (start == 0 or now < deadline):
        yield order[start : start + size]
        start, began, now = start + size, now, time.monotonic()
        affordable = (deadline - now) / max(2 * (now - began) / size, 1e-9)
        size = int(min(max(affordable, 1), POINTS_AT_ONCE))


def check_certifiable(surface: Surface | Clipped) -> None:
    """Refuse a surface of which it is not known how fast it varies."""
    if not kernels.differentiable(surface.kernel):
        raise InputError(
            f"a certified maximum is not available for the kernel {surface.kernel}: how fast it "
            "varies is not known. It is for scikit-learn's kernels, their sums and products."
        )
    if surface.known.evidence.offset.constant is None:
        raise InputError(
            "a certified maximum is not available with a mean function as offset: how fast it "
            "varies is not known. Model the trend by a part with a kernel of its own."
        )


def most_over(surface: Surface | Clipped, box: Box) -> tuple[float, float]:
    """Bound s f* over a box by the trivial bounds, and bound how much it varies there.

    The surface has passed :func:`check_certifiable`. Where the level is unknown, f* may be far
    larger than it varies: from the centre it is at most B |phi(x) - phi(c)| away.
    """
    centres, halves = _cells_of(box)
    features = kernels.features_in_boxes(surface.kernel, centres, halves)
    raw = surface.surface if isinstance(surface, Clipped) else surface
    trivial = raw.trivial_over(features, centres)
    varies = 2 * raw.known.assumptions.norm_bound * features.moved
    return float(raw.shifted(trivial).max()), float(np.minimum(trivial, varies).max())


def _cells_of(box: Box) -> tuple[Array, Array]:
    """The centres and half widths of cells that cover a box, (m, d): one for each face."""
    both = np.array([(face.lower, face.upper) for face in box.faces()])
    return both.mean(axis=1), (both[:, 1] - both[:, 0]) / 2


def _highest_without_facts(surface: Surface | Clipped, points: Array, deadline: float) -> Array:
    """Choose the points worth a look with facts, which takes much longer than a look without.

    Facts only lower the bounds. So the points are those with the highest bounds without facts, and
    some from all over the box, since limits make the highest bounds equal.
    """
    if len(points) <= 2 * LOOKS_WITH_FACTS:
        return points
    rough, values = surface.without_facts(), np.full(len(points), -np.inf)
    for part in in_time(points, deadline):
        values[part] = rough.values(points[part])
    highest = np.argsort(-values, kind="stable")[:LOOKS_WITH_FACTS]
    spread = np.arange(0, len(points), -(-len(points) // LOOKS_WITH_FACTS))
    return points[np.union1d(highest, spread)]


def spread(points: Array, values: Array, count: int, lower: Array, upper: Array) -> list[int]:
    """Choose the best points of a box that are not too near to better ones, best first."""
    width = np.where(upper > lower, upper - lower, 1.0)
    chosen: list[int] = []
    for at in np.argsort(-values, kind="stable"):
        near = np.abs(points[chosen] - points[at]) / width
        if not chosen or near.max(axis=1).min() > 0.05:
            chosen.append(int(at))
        if len(chosen) == count:
            break
    return chosen


@dataclass(frozen=True)
class BranchAndBound:
    """A maximum with a ceiling that no point of the box exceeds.

    The box is cut into cells, those that may still hold the maximum into smaller ones, until the
    best ceiling and the best value agree within the tolerance, or a value is found above the
    trivial bound, or time or cells run out; the ceiling is valid either way. Some points and one
    cell are looked at in any case, however short the time. Ceilings of cells come from
    :meth:`~kernelbounds.surface.Surface.ceilings`; they tighten with the square of a cell's size
    where the kernel is smooth enough. The search is practical up to three dimensions or so.

    Parameters
    ----------
    tolerance : float, optional
        The gap between the ceiling and the value at which to stop. None is a thousandth of the
        trivial bound, B max sqrt(k(x,x)), or of what f* may vary by in the box where that is less.
    seconds : float
        The time after which to stop.
    cells : int
        The number of cells after which to stop.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> search = kb.BranchAndBound(tolerance=0.05)
    >>> suggestion = kb.KernelUCB(seq, kb.Box([0.0], [1.0]), maximiser=search).ask()
    >>> bool(suggestion.upper <= suggestion.limit <= suggestion.upper + 0.05)
    True
    """

    tolerance: float | None = None
    seconds: float = 10.0
    cells: int = 200_000

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            tolerance = as_scalar(self.tolerance, "tolerance", above=0.0)
            object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "seconds", as_scalar(self.seconds, "seconds", above=0.0))
        object.__setattr__(self, "cells", as_whole(self.cells, "cells", least=1))

    def maximise(self, surface: Surface | Clipped, box: Box, starts: Array) -> Maximum:
        """See :class:`Maximiser`."""
        return self.compare(surface, box, starts, math.inf)

    def compare(self, surface: Surface | Clipped, box: Box, starts: Array, level: float) -> Maximum:
        """Maximise, but stop once it is clear on which side of ``level`` the maximum is."""
        check_certifiable(surface)
        start = time.monotonic()
        deadline = start + self.seconds
        best = Ascent().maximise(surface, box, starts, start + self.seconds / 2)
        if best.ceiling == best.value:  # a box that is a point
            return best
        cells, (most, varies) = _Cells(surface, box), most_over(surface, box)
        tolerance = self.tolerance or DEFAULT_TOLERANCE * varies
        with late_progress("certifying the maximum") as report:
            while True:
                best = max(best, cells.best, key=lambda found: found.value)
                ceiling = max(cells.highest_ceiling(), best.value)
                # Beyond the trivial bound a ceiling says nothing.
                decided = best.value > min(level, most) or ceiling <= level < math.inf
                precise = ceiling <= best.value + tolerance
                left = deadline - time.monotonic()
                if decided or precise or cells.count >= self.cells or left <= 0:
                    return best._replace(ceiling=ceiling)
                gap = ceiling - best.value
                report(f"gap {gap:.3g} (to be {tolerance:.3g}), {cells.count} cells")
                cells.split(best.value, left)


class _Cells:
    """Cells that cover the part of the box that may still hold the maximum."""

    def __init__(self, surface: Surface | Clipped, box: Box) -> None:
        self._surface = surface
        self._centres, self._halves = _cells_of(box)
        self.best = Maximum(self._centres[0], -math.inf)
        self.count = 0
        self._pace = 0.0  # seconds that a cell took, the last time
        self._ceilings = self._evaluate(self._centres, self._halves)

    def highest_ceiling(self) -> float:
        """The highest ceiling of all cells."""
        return float(self._ceilings.max(initial=-math.inf))

    def split(self, value: float, seconds: float) -> None:
        """Halve the cells with the highest ceilings, and forget those that cannot beat ``value``.

        Fewer cells are halved, but one at least, where all would take longer than ``seconds``.
        """
        open_ = self._ceilings > value
        at_once = min(SPLIT_AT_ONCE, max(1, int(seconds / max(2 * self._pace, 1e-9))))
        order = np.argsort(-self._ceilings, kind="stable")[:at_once]
        chosen = order[open_[order]]
        centres, halves = self._centres[chosen], self._halves[chosen]
        axis = self._longest_axis(centres, halves)
        row = np.arange(len(chosen))
        halves[row, axis] /= 2
        shift = np.zeros_like(halves)
        shift[row, axis] = halves[row, axis]
        children = np.concatenate([centres - shift, centres + shift])
        sizes = np.concatenate([halves, halves])
        ceilings = np.minimum(self._evaluate(children, sizes), np.tile(self._ceilings[chosen], 2))
        open_[chosen] = False
        self._centres = np.concatenate([self._centres[open_], children])
        self._halves = np.concatenate([self._halves[open_], sizes])
        self._ceilings = np.concatenate([self._ceilings[open_], ceilings])

    def _evaluate(self, centres: Array, halves: Array) -> Array:
        """Compute the ceilings of cells, and keep the best of their centres."""
        start = time.monotonic()
        values, ceilings = self._surface.ceilings(centres, halves)
        self.count += len(centres)
        self._pace = (time.monotonic() - start) / len(centres)
        at = int(values.argmax())
        if values[at] > self.best.value:
            self.best = Maximum(centres[at].copy(), float(values[at]))
        return ceilings

    def _longest_axis(self, centres: Array, halves: Array) -> Array:
        """Find the axis along which the features of each cell move the most."""
        moved = [
            kernels.features_in_boxes(self._surface.kernel, centres, halves * axis).moved
            for axis in np.eye(centres.shape[1])
        ]
        return np.asarray(np.argmax(moved, axis=0))
