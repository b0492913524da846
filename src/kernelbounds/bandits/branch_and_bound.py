"""The certified maximiser: branch and bound over boxes."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_scalar, as_whole
from kernelbounds.bandits.domains import Box
from kernelbounds.bandits.maximisers import Ascent, Maximum, check_certifiable, most_over
from kernelbounds.progress import late_progress
from kernelbounds.surface import Clipped, Surface

SPLIT_AT_ONCE = 64  # cells with the highest ceilings
DEFAULT_TOLERANCE = 1e-3  # relative to what f* may vary by


@dataclass(frozen=True)
class BranchAndBound:
    """A maximum with a ceiling that no point of the box exceeds.

    The box is cut into cells, those that may still hold the maximum into smaller ones, until the
    best ceiling and the best value agree within the tolerance, or a value is found above the
    trivial bound, or time or cells run out; the ceiling is valid either way. A look at some points
    and at one cell is taken in any case, however short the time. Ceilings of
    cells come from :meth:`~kernelbounds.surface.Surface.ceilings`; they tighten with the square of
    a cell's size where the kernel is smooth enough. Practical up to three dimensions or so.

    Parameters
    ----------
    tolerance : float, optional
        None is a thousandth of the trivial bound, B max sqrt(k(x,x)), or of what f* may vary by
        in the box where that is less.
    seconds : float
        After which to stop.
    cells : int
        After which to stop.

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
        """See :class:`~kernelbounds.bandits.maximisers.Maximiser`."""
        return self.compare(surface, box, starts, math.inf)

    def compare(self, surface: Surface | Clipped, box: Box, starts: Array, level: float) -> Maximum:
        """The same, but stop as soon as it is clear on which side of ``level`` the maximum is."""
        check_certifiable(surface)
        start = time.monotonic()
        deadline = start + self.seconds
        best = Ascent().climb(surface, box, starts, start + self.seconds / 2)
        if best.ceiling == best.value:  # a box that is a point
            return best
        cells, (most, varies) = _Cells(surface, box), most_over(surface, box)
        tolerance = self.tolerance or DEFAULT_TOLERANCE * varies
        with late_progress("certifying the maximum") as report:
            while True:
                best = max(best, cells.best, key=lambda found: found.value)
                ceiling = max(cells.highest(), best.value)
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
    """Cells that cover what of the box may still hold the maximum."""

    def __init__(self, surface: Surface | Clipped, box: Box) -> None:
        self._surface = surface
        self._centres = ((box.lower + box.upper) / 2)[None]
        self._halves = ((box.upper - box.lower) / 2)[None]
        self._ceilings = np.empty(0)
        self.best = Maximum(self._centres[0], -math.inf)
        self.count = 0
        self._pace = 0.0  # seconds that a cell took, the last time
        self._ceilings = self._evaluate(self._centres, self._halves)

    def highest(self) -> float:
        """What no point of any cell exceeds."""
        return float(self._ceilings.max(initial=-math.inf))

    def split(self, value: float, seconds: float) -> None:
        """Halve the cells with the highest ceilings, and forget those that cannot beat a value.

        There are fewer of them, but one at least, where all would take longer than so many seconds.
        """
        open_ = self._ceilings > value
        at_once = min(SPLIT_AT_ONCE, max(1, int(seconds / max(2 * self._pace, 1e-9))))
        order = np.argsort(-self._ceilings, kind="stable")[:at_once]
        chosen = order[open_[order]]
        centres, halves = self._centres[chosen], self._halves[chosen]
        axis = self._longest(centres, halves)
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
        start = time.monotonic()
        values, ceilings = self._surface.ceilings(centres, halves)
        self.count += len(centres)
        self._pace = (time.monotonic() - start) / len(centres)
        at = int(values.argmax())
        if values[at] > self.best.value:
            self.best = Maximum(centres[at].copy(), float(values[at]))
        return ceilings

    def _longest(self, centres: Array, halves: Array) -> Array:
        """The axis along which the features of each cell move the most."""
        moved = [
            kernels.features_in_boxes(self._surface.kernel, centres, halves * axis).moved
            for axis in np.eye(centres.shape[1])
        ]
        return np.asarray(np.argmax(moved, axis=0))
