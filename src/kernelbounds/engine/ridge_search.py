"""The minimum of a dual function over the ridge, for many points at once.

For each point the function is quasiconvex in the ridge (``docs/mathematics/exact-bound.md``). So
where its smallest value in a window of ridges is inside the window, that is the minimum; and where
it is at an end, the minimiser is at that end or beyond it. The search begins with the window in
which minimisers are likely and, for points whose minimiser is beyond an end, moves on to the next.
Within a window everything is interpolated, by polynomials through Chebyshev points, between ridges
that all points share, and the minimum is sought on an even grid. The value returned is that of the
dual function itself at the place found, so that what a search may lose is tightness, never
validity. Where only the largest of many bounds is wanted, cheap ceilings tell at which few points
to search.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.chebyshev import Chebyshev
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.path_query import PathQuery
from kernelbounds.engine.ridge_path import PathAtRidges, RidgePath

# Central differences of orders 1 to 4, scaled for Stirling's formula,
# f(s) = f_0 + d1 s + d2 s^2 + d3 (s^3 - s) + d4 (s^4 - s^2), at s = -2 .. 2.
_AROUND = np.arange(-2, 3)[:, None]
_DIFFERENCES = np.array(
    [
        [0, -1 / 2, 0, 1 / 2, 0],
        [0, 1 / 2, -1, 1 / 2, 0],
        [-1 / 12, 1 / 6, 0, -1 / 6, 1 / 12],
        [1 / 24, -1 / 6, 1 / 4, -1 / 6, 1 / 24],
    ]
)


def vertex(grid: Array, values: Array) -> Array:
    """The minimiser between the points of an even grid (n,), of each column of values (n, m); (m,).

    The minimiser on the grid is refined by the parabola through its neighbours and, by a step of
    Newton's method, by the quartic through two neighbours on either side.
    """
    lowest = values.argmin(axis=0)
    at = np.minimum(np.maximum(lowest, 2), len(grid) - 3)
    d1, d2, d3, d4 = _DIFFERENCES @ values[at + _AROUND, np.arange(len(at))]
    bend = 2 * np.maximum(np.maximum(d2, np.abs(d1)), 1e-200)  # at a minimum, it is 2 d2
    s = -d1 / bend
    squared = s * s
    shift = (d3 * (3 * squared - 1) + d4 * s * (4 * squared - 2)) / bend
    s -= np.where(np.abs(shift) < 0.5, shift, 0.0)
    # Near an end of the grid the minimiser is taken from the grid.
    s = np.where(lowest == at, s, lowest - at)
    return np.asarray(grid[at] + (grid[1] - grid[0]) * s)


def finer(grid: Array, best: Array, largest: int) -> Array:
    """An even grid around minimisers on another, with a quarter of its step.

    The step is larger where the grid would have more than ``largest`` points.
    """
    step = float(grid[1] - grid[0])
    low, high = max(best.min() - step, grid[0]), min(best.max() + step, grid[-1])
    size = min(1 + math.ceil(4 * (high - low) / step), largest)
    return np.linspace(low, high, max(size, len(grid)))


# How many points are evaluated first in a search for the largest bound. In the paper's problems it
# is among the six highest ceilings in most rounds (``python -m benchmarks bandits``).
FIRST_EVALUATED = 6


class Largest(NamedTuple):
    """The largest of the upper bounds on s f, over m points."""

    value: float
    at: int  # the index of its point
    opposite: float  # the bound on -s f there

    @classmethod
    def of(cls, values: Array, opposite: Array, tie: float) -> Largest:
        """The largest of bounds at all points; those within ``tie`` of it count as equal."""
        value = float(values.max())
        tied = (values >= value - tie).nonzero()[0]
        return cls.widest(value, tied, opposite[tied], tie)

    @classmethod
    def widest(cls, value: float, tied: NDArray[np.intp], opposite: Array, tie: float) -> Largest:
        """Among points that tie for the largest, the first with the widest interval."""
        at = int((opposite >= opposite.max() - tie).argmax())
        return cls(value, int(tied[at]), float(opposite[at]))


def largest_by_ceilings(
    ceilings: Array, tie: float, evaluate: Callable[[NDArray[np.intp]], Array | None]
) -> tuple[float, NDArray[np.intp]] | None:
    """The largest of m values, and the indices of all within ``tie`` of it, from few values.

    Values are at most their ceilings (m,), give or take a tie, and are evaluated where ceilings are
    largest. The result is None if an evaluation fails.
    """
    points = np.arange(len(ceilings))
    if len(ceilings) > FIRST_EVALUATED:
        points = np.sort(np.argpartition(-ceilings, FIRST_EVALUATED)[:FIRST_EVALUATED])
    while (values := evaluate(points)) is not None:
        best = float(values.max())
        open_ = ~(ceilings < best - 2 * tie)
        open_[points] = True
        if np.count_nonzero(open_) == len(points):
            return best, points[values >= best - tie]
        points = np.flatnonzero(open_)
    return None


# At ridges above this times the largest eigenvalue a bound is the one without data: the relative
# difference is at most lambda_max / alpha.
INFINITE_RIDGE = 1e10
# The relative accuracy of the interpolation. The bound is the dual function itself at the ridge and
# scale found, and errs by the square of their errors, about 1e-11.
ACCURACY = 3e-6
# How many points the even grid, on which minima are sought, has for each point of interpolation.
# With three, the quartic through five neighbours is as accurate as the interpolation.
GRID_OF_NODES = 3
# Relative third differences of the factor that a quartic does not follow well. Those of
# alpha^(-1/2), the smoothest factor there is, are 4e-4 on the usual grid; with four times as much,
# CMM stays within 1e-6 of 50-digit arithmetic (tests/test_precision.py).
ROUGH_DIFFERENCE = 1.5e-3
# A grid that is too coarse is made four times finer, at most MOST_REFINEMENTS times and with at
# most LARGEST_GRID points: 4^6 is past what third differences in double precision can tell.
MOST_REFINEMENTS, LARGEST_GRID = 6, 400
LEAST_POSITIVE = 1e-290  # stands for a variance or a ridge of zero in logarithms


class DualFamily(Protocol):
    """A family of upper bounds on f(x), indexed by the ridge and a scale.

    For bounds on -f(x) the same functions are called with the negative mean.
    """

    @property
    def likely(self) -> tuple[float, float]:
        """The log ridges between which most minimisers are."""
        ...

    def best_scale(self, ridge: Array, deviation: Array, energy: Array) -> Array:
        """The scale that makes the bound smallest, in place of which any other is valid."""
        ...

    def factor(self, ridge: Array, energy: Array) -> Array:
        """The factor of the bound at that scale, which is mean + factor deviation."""
        ...

    def at_scale(self, ridge: Array, scale: Array, unexplained: Array) -> Array:
        """The bound from k(x,x) - p'(K + alpha I)^-1 p, where p = k_t(x) - scale y."""
        ...


class Minimum(NamedTuple):
    """Bounds, and the log ridges and scales of the dual at which they were found."""

    values: Array
    log_ridges: Array
    scales: Array

    def improve(self, at: Any, other: Minimum) -> None:
        """Replace the entries ``at`` by those of the other where its bounds are smaller."""
        smaller = other.values < self.values[at]
        for mine, theirs in zip(self, other, strict=True):
            mine[at] = np.where(smaller, theirs, mine[at])


def minimise_over_ridge(
    query: PathQuery, dual: DualFamily, signs: Array
) -> tuple[Array, Array, Array]:
    """The smallest bounds over alpha > 0, and the ridges and scales there; (signs, m)."""
    count = len(query.prior)
    where, sides = np.tile(np.arange(count), len(signs)), signs.repeat(count)
    first = RidgeWindow.likely(query.path, dual)
    search = WindowSearch(query, first)
    found, ends = (search if len(signs) == 1 else search.take(where)).minimise(dual, sides)
    for end in (-1, 1):
        window, beyond = first, np.flatnonzero(ends == end)
        while len(beyond):
            window = window.next(end)
            search = WindowSearch(query.take(where[beyond]), window)
            better, ends_there = search.minimise(dual, sides[beyond])
            found.improve(beyond, better)
            beyond = beyond[ends_there == end]
    values, log_ridges, scales = (each.reshape(len(signs), -1) for each in found)
    return values, np.exp(log_ridges), scales


def largest_minimum(query: PathQuery, dual: DualFamily, sign: int, tie: float) -> Largest | None:
    """The largest of the smallest bounds on s f over m points.

    At any ridge the dual function with no weight on the newest observations is above the bound, so
    that only points where that is high are searched. The result is None if a minimiser is not in
    the likely window, or is below the finest ridge of the path.
    """
    window = RidgeWindow.likely(query.path, dual)
    finest = float(np.log(max(query.path.eigen.finest, 1e-300)))
    opposite = np.empty(len(query.prior))

    def search(points: NDArray[np.intp]) -> Array | None:
        both = WindowSearch(query.take(np.tile(points, 2)), window)
        found, ends = both.minimise(dual, np.repeat([sign, -sign], len(points)).astype(float))
        usual = (ends == 0) & (found.log_ridges >= finest)
        values, opposite[points] = np.split(np.where(usual, found.values, np.nan), 2)
        return None if np.isnan(values).any() else values

    ridges = window.shared.ridges
    before = query.predict_without_border(ridges)
    factor = dual.factor(ridges, before.energy)[:, None]
    ceilings = (sign * before.mean + factor * np.sqrt(before.variance)).min(axis=0)
    found = largest_by_ceilings(ceilings, tie, search)
    if found is None or np.isnan(opposite[found[1]]).any():
        return None
    value, tied = found
    return Largest.widest(value, tied, opposite[tied], tie)


class RidgeWindow:
    """A range of log ridges, and the path at the nodes of interpolation."""

    def __init__(self, path: RidgePath, low: float, high: float) -> None:
        self._path, self._low, self._high = path, low, high
        self._limits = _limits(path.eigen)
        self.open = low > self._limits[0], high < self._limits[1]  # whether more is beyond
        self.nodes = Chebyshev.for_accuracy(low, high, ACCURACY)
        self.shared = PathAtRidges(path, np.exp(self.nodes.points))

    @classmethod
    def likely(cls, path: RidgePath, dual: DualFamily) -> RidgeWindow:
        """The window where minimisers are likely, moved to within the limits of the path."""
        (low, high), limits = dual.likely, _limits(path.eigen)
        width = min(high - low, limits[1] - limits[0])
        low = min(max(low, limits[0]), limits[1] - width)
        return cls(path, low, min(low + width, limits[1]))

    def next(self, end: int) -> RidgeWindow:
        """The neighbouring window, beyond the lower (-1) or the upper (1) end.

        Neighbours overlap by an eighth, so that a minimiser at the seam is well inside one of them.
        """
        shift = end * 7 / 8 * (self._high - self._low)
        low, high = self._low + shift, self._high + shift
        return RidgeWindow(self._path, max(low, self._limits[0]), min(high, self._limits[1]))


class WindowSearch:
    """A search for minima in a window, by interpolation between its ridges."""

    def __init__(self, query: PathQuery, window: RidgeWindow) -> None:
        self._query, self._window, self._nodes = query, window, window.nodes
        # Rounded up, variances are less noisy where ridges are tiny, as they are on a path that
        # is not truncated.
        self._found = query.predict_at(window.shared, round_up=not query.path.eigen.flat)
        # The logarithm of a variance is as smooth as the variance, and small variances keep their
        # digits. It is finite also where k(x,x) = 0, as with a linear kernel at the origin.
        least = np.maximum(EPS * query.prior, LEAST_POSITIVE)
        self._log_deviation = 0.5 * np.log(np.maximum(self._found.variance, least))

    def take(self, points: NDArray[np.intp]) -> WindowSearch:
        """The search at some of the points, in the order given, with the same predictions."""
        part = copy(self)
        part._query, part._found = self._query.take(points), self._found.take(points)
        part._log_deviation = self._log_deviation[:, points]
        return part

    def minimise(self, dual: DualFamily, signs: Array) -> tuple[Minimum, NDArray[np.intp]]:
        """Bounds for a sign at each point, and at which end of the window each is; (m,).

        An end is -1 or 1. It is 0 where the minimum over all ridges was found: inside the window,
        or at an end beyond which there is nothing to search.
        """
        grid, blend = self._nodes.grid(GRID_OF_NODES * self._nodes.size)
        best, rough = self._vertices(grid, blend, dual, signs)
        ends = np.zeros(len(signs), dtype=np.intp)
        ends[(best < (grid[1] + grid[2]) / 2) & self._window.open[0]] = -1
        ends[(best > (grid[-3] + grid[-2]) / 2) & self._window.open[1]] = 1
        for _ in range(MOST_REFINEMENTS):
            which = np.flatnonzero((rough[0] <= best) & (best <= rough[1]) & (ends == 0))
            if not len(which):
                break
            grid = finer(grid, best[which], LARGEST_GRID)
            blend = self._nodes.basis(grid).T
            best[which], rough = self.take(which)._vertices(grid, blend, dual, signs[which])
        return self._bounds_at(best, dual, signs), ends

    def _vertices(
        self, grid: Array, blend: Array, dual: DualFamily, signs: Array
    ) -> tuple[Array, tuple[float, float]]:
        """Minimisers on an even grid (m,), and the range of log ridges where it is too coarse."""
        path, ridges = self._query.path, np.exp(grid)
        mean, deviation = blend @ (signs * self._found.mean), np.exp(blend @ self._log_deviation)
        # Where a confidence set is nearly empty, the energies in R~^2 cancel. So the basis' part,
        # which is most of them, is computed, and only the border's part is interpolated.
        energy = path.energy_of_basis(ridges, path.inverse(ridges))
        factor = dual.factor(ridges, energy + blend @ self._found.border_energy)
        best = vertex(grid, mean + factor[:, None] * deviation)
        # Where a confidence set is nearly empty, the factor nearly vanishes, too, and bends too
        # much for a quartic.
        bends = np.abs(factor[3:] - factor[:-3] + 3 * (factor[1:-2] - factor[2:-1]))
        rough = np.flatnonzero(bends > ROUGH_DIFFERENCE * factor[1:-2])
        if not len(rough):
            return best, (np.inf, -np.inf)
        return best, (grid[max(rough[0] - 1, 0)], grid[min(rough[-1] + 4, len(grid) - 1)])

    def _bounds_at(self, log_ridges: Array, dual: DualFamily, signs: Array) -> Minimum:
        """The dual function itself at a log ridge for each point (m,)."""
        path, found = self._query.path, self._found
        ridges, blend = np.exp(log_ridges), self._nodes.basis(log_ridges)
        inverse = path.inverse(ridges)
        deviation = np.exp(np.einsum("gm,gm->m", blend, self._log_deviation))
        energy = path.energy_of_basis(ridges, inverse) + found.border_energy @ blend
        scale = dual.best_scale(ridges, deviation, energy)
        unexplained = self._query.unexplained(ridges, inverse, signs * scale, found, blend)
        return Minimum(dual.at_scale(ridges, scale, unexplained), log_ridges, scale)


def _limits(eigen: Eigenbasis) -> tuple[float, float]:
    """The log ridges between which to search.

    Below them a truncated path is not accurate, and on another the slack drowns the ridge.
    (Somewhat below the finest ridge a truncated path still tells that a minimiser is there.) Above
    them the ridge is as good as infinite.
    """
    bottom = max(eigen.finest / 8 if eigen.flat else eigen.slack, LEAST_POSITIVE)
    top = max(float(eigen.spectrum.max(initial=eigen.slack)), bottom)
    return float(np.log(bottom)), float(np.log(top) + np.log(INFINITE_RIDGE))
