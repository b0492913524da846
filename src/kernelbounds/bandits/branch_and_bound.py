"""Maxima over a box with a certificate: a ceiling that no point of the box exceeds.

:class:`Grid` certifies as much as equal cells can, and :class:`BranchAndBound` refines its cells
until the certificate is good enough.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_scalar, as_whole
from kernelbounds.bandits.domains import Box
from kernelbounds.bandits.maximisers import Ascent, Maximum
from kernelbounds.display import late_progress
from kernelbounds.errors import InputError
from kernelbounds.surface import Clipped, Surface, in_chunks

SPLIT_AT_ONCE = 64  # cells that are halved together, those with the highest ceilings
DEFAULT_TOLERANCE = 1e-3  # relative to what f* may vary by


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


def check_certifiable(surface: Surface | Clipped) -> None:
    """Raise an error if it is not known how fast a surface varies."""
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
    trivial = surface.a_priori.trivial_over(features, centres)
    varies = 2 * surface.known.assumptions.norm_bound * features.moved
    return float(surface.a_priori.shifted(trivial).max()), float(np.minimum(trivial, varies).max())


def _cells_of(box: Box) -> tuple[Array, Array]:
    """The centres and half widths of cells that cover a box, (m, d): one for each face."""
    both = np.array([(face.lower, face.upper) for face in box.faces()])
    return both.mean(axis=1), (both[:, 1] - both[:, 0]) / 2
