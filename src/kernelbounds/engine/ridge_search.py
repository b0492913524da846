"""Minimising a dual function over the ridge, for many points at once.

For each point the function is quasiconvex in the ridge (``docs/mathematics.md``), so a bracket
of a local minimum is a bracket of the global one. A coarse scan that leaves out the newest
observations brackets it, where a wide range is not cheaper, and interpolation in log ridge finds
it. The value returned is that of the dual function itself at the place found, so that what a search
may lose is tightness, never validity.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.engine.chebyshev import Chebyshev
from kernelbounds.engine.eigenbasis import EPS, Eigenbasis
from kernelbounds.engine.even_grid import finer, vertex
from kernelbounds.engine.ridge_path import PathQuery

# Above the largest eigenvalue, in log ridge: where a coarse scan ends, and where it ends when a
# minimiser may be beyond that.
ABOVE, FAR_ABOVE = 3 * np.log(10), 10 * np.log(10)
STEP = 0.5 * np.log(10)  # of the coarse scan, in log ridge
# Many points have minimisers all over the range where they are likely. To search all of it costs
# less than a scan when the border w has few entries.
MANY, CHEAP = 64, 1000
SPAN = 8.0  # of minimisers, in log ridge, that are sought together
MARGIN, LARGEST_MARGIN = 0.3, 10.0  # around what the scan found, doubled until it suffices
LARGEST_MOVE = 1.5  # from the guess without the newest observations, before that is doubted
# Of the interpolation, relatively. The bound is the dual function itself at the ridge and scale
# found, and errs by the square of theirs.
ACCURACY = 3e-6
# Third differences of the factor, relatively, that the quartic does not follow well; those of
# alpha^(-1/2) are 4e-4 on the usual grid. So many times a grid that is too coarse is made finer,
# with at most so many points.
ROUGH, DEEPEST, LARGEST_GRID = 1.5e-3, 6, 400
FEW = 6  # points that are evaluated at first where the highest is sought
FLAT = 1e-12  # relative to the bound without data
NEARLY = 1e-9  # relative to the trivial bound: above the rounding errors of ceilings
FINER = 3  # points of the last grid for each point of interpolation


class Dual(Protocol):
    """A family of upper bounds on f(x), indexed by the ridge and a scale.

    For bounds on -f(x) the same functions are called with the negative mean.
    """

    @property
    def likely(self) -> tuple[float, float]:
        """Log ridges between which most minimisers are."""
        ...

    def best_scale(self, ridge: Array, deviation: Array, energy: Array) -> Array:
        """The scale that makes the bound smallest, in place of which any other is valid."""
        ...

    def factor(self, ridge: Array, energy: Array) -> Array:
        """What multiplies the deviation in the bound at that scale, mean + factor deviation."""
        ...

    def at_scale(self, ridge: Array, scale: Array, unexplained: Array) -> Array:
        """The bound from k(x,x) - p'(K + alpha I)^-1 p, where p = k_t(x) - scale y."""
        ...


class Minimum(NamedTuple):
    """Bounds, and the log ridges and scales of the dual at which they were found."""

    values: Array
    best: Array
    scales: Array

    def improve(self, at: Any, other: Minimum) -> None:
        """Take over, among the entries ``at``, what is smaller in the other."""
        smaller = other.values < self.values[at]
        for mine, theirs in zip(self, other, strict=True):
            mine[at] = np.where(smaller, theirs, mine[at])


class Scan(NamedTuple):
    """Log ridges of the smallest values on a coarse grid, and those.

    Where a bound is ``flat``, none on the grid is below the one without data, at infinity.
    """

    best: Array
    smallest: Array
    flat: NDArray[np.bool_]


def minimise_over_ridge(query: PathQuery, dual: Dual, signs: Array) -> tuple[Array, Array, Array]:
    """The smallest bounds over alpha > 0, and the ridges and scales there; (signs, m)."""
    limits, border = _limits(query.path.eigen), len(query.path.newest)
    low, high = max(dual.likely[0], limits[0]), min(dual.likely[1], limits[1])
    cheap = border * len(query.path.eigen.z) <= CHEAP
    if cheap and len(query.prior) >= MANY and high - low > STEP:
        found, settled = Nearby(query, (low, high), limits).minimise_all(dual, signs)
        odd = ~settled.all(axis=0)
    else:
        scan = _scan(query, query.without_border, dual, signs, limits)
        found, settled = _minimise_from(query, dual, signs, scan, limits)
        moved = np.abs(found.best - scan.best) > LARGEST_MOVE
        odd = (moved | ~settled | scan.flat).any(axis=0) & (border > 0)
    if odd.any():
        # Minimisers where they are not likely, or far from where they were without the border.
        part = query.take(np.flatnonzero(odd))
        evaluate = part.at_once if border else part.without_border
        scan = _scan(part, evaluate, dual, signs, limits)
        found.improve((slice(None), odd), _minimise_from(part, dual, signs, scan, limits)[0])
    return found.values, np.exp(found.best), found.scales


def largest_minimum(
    query: PathQuery, dual: Dual, sign: int, most: Array
) -> tuple[float, int, float] | None:
    """The largest of the smallest bounds on s f over m points, where it is, and that on -s f there.

    Bounds above ``most`` (m,) count as that. The coarse scan is the dual function, too, with no
    weight on the newest observations, so what it finds is above the bound: only points where
    that is high are searched. None where the search is not as simple as usual.
    """
    limits = _limits(query.path.eigen)
    finest = float(np.log(max(query.path.eigen.finest, 1e-300)))
    signs = np.array([sign, -sign], dtype=np.float64)
    guess, above, _ = _scan(query, query.without_border, dual, signs, limits)
    ceilings = np.fmin(above[0], most)
    opposite: dict[int, float] = {}

    def search(points: NDArray[np.intp]) -> Array | None:
        # The other side, too, where ceilings are highest: one of these is probably the place.
        top = points[np.argsort(-ceilings[points])[:2]]
        everywhere = np.append(points, top)
        side = np.repeat([0, 1], [len(points), len(top)])
        near = guess[side, everywhere]
        if np.ptp(near) > SPAN:
            return None
        nearby = Nearby(query.take(everywhere), _range(near, MARGIN), limits)
        found, settled = nearby.minimise(dual, signs[side])
        usual = settled & (np.abs(found.best - near) <= LARGEST_MOVE) & (found.best >= finest)
        for at in np.flatnonzero(usual & (side == 1)):
            opposite[int(everywhere[at])] = float(found.values[at])
        if not usual[: len(points)].all():
            return None
        return np.fmin(found.values[: len(points)], most[points])

    found = highest(ceilings, most, search)
    if found is None:
        return None
    value, at = found
    if at not in opposite:
        other, ridges, _ = minimise_over_ridge(query.take(np.array([at])), dual, signs[1:])
        if np.log(ridges[0, 0]) < finest:
            return None
        opposite[at] = float(other[0, 0])
    return value, at, opposite[at]


def highest(
    ceilings: Array, most: Array, evaluate: Callable[[NDArray[np.intp]], Array | None]
) -> tuple[float, int] | None:
    """The largest of m values and the index of the first that has it, from few of the values.

    Values are at most their ceilings (m,), give or take rounding errors in proportion to ``most``,
    and are evaluated where the ceilings are highest. None when that fails.
    """
    above = ceilings + NEARLY * most
    points = np.arange(len(above))
    if len(above) > FEW:
        points = np.sort(np.argpartition(-above, FEW)[:FEW])
    while (values := evaluate(points)) is not None:
        open_ = above > values.max()
        open_[points] = True
        if np.count_nonzero(open_) == len(points):
            return float(values.max()), int(points[values.argmax()])
        points = np.flatnonzero(open_)
    return None


def _minimise_from(
    query: PathQuery, dual: Dual, signs: Array, scan: Scan, limits: tuple[float, float]
) -> tuple[Minimum, NDArray[np.bool_]]:
    """Bounds, and whether they are the smallest, from a scan; (signs, m)."""
    shape, best, done = scan.best.shape, scan.best.flatten(), scan.flat.flatten()
    everywhere = np.tile(np.arange(shape[1]), shape[0])
    smallest = Minimum(np.full(best.size, np.inf), best.copy(), np.ones(best.size))
    pending, margin = np.arange(best.size), MARGIN
    while len(pending) and margin <= LARGEST_MARGIN:
        for group in _groups(best[pending]):
            members = pending[group]
            between = _range(best[members], margin)
            if len(members) == shape[1] == best.size:
                nearby = Nearby(query, between, limits)
            else:
                points, where = np.unique(everywhere[members], return_inverse=True)
                nearby = Nearby(query.take(points), between, limits).take(where)
            found, settled = nearby.minimise(dual, signs[members // shape[1]])
            smallest.improve(members, found)
            best[members] = found.best
            done[members] |= settled
        pending, margin = pending[~done[pending]], 2 * margin
    return _reshaped(smallest, shape), done.reshape(shape)


def _reshaped(found: Minimum, shape: tuple[int, ...]) -> Minimum:
    return Minimum(*(part.reshape(shape) for part in found))


class Nearby:
    """Predictions on a range of log ridges, where minimisers are looked for."""

    def __init__(
        self, query: PathQuery, between: tuple[float, float], limits: tuple[float, float]
    ) -> None:
        low, high = max(between[0], limits[0]), min(between[1], limits[1])
        self._query, self._open = query, (low != limits[0], high != limits[1])
        self._nodes = Chebyshev.for_accuracy(low, high, ACCURACY)
        ridges = np.exp(self._nodes.points)
        # Variances that are rounded up have less noise where ridges are tiny.
        self._found = query.near(ridges) if query.path.eigen.flat else query.at(ridges)
        # A logarithm, which is as smooth, gives small deviations their digits.
        self._log_deviation = 0.5 * np.log(np.maximum(self._found.variance, EPS * query.prior))

    def take(self, points: NDArray[np.intp]) -> Nearby:
        """Some of the points, in the order given; both sides of one share its predictions."""
        part = copy(self)
        part._query, part._found = self._query.take(points), self._found.take(points)
        part._log_deviation = self._log_deviation[:, points]
        return part

    def minimise(self, dual: Dual, signs: Array) -> tuple[Minimum, NDArray[np.bool_]]:
        """Bounds for a sign at each point, and whether their ridges are minimisers; (m,)."""
        grid, blend = self._nodes.grid(FINER * self._nodes.size)
        best, rough = self._vertices(grid, blend, dual, signs)
        settled = np.ones(len(signs), dtype=bool)
        if self._open[0]:
            settled &= best > (grid[1] + grid[2]) / 2
        if self._open[1]:
            settled &= best < (grid[-3] + grid[-2]) / 2
        for _ in range(DEEPEST):
            which = np.flatnonzero((rough[0] <= best) & (best <= rough[1]) & settled)
            if not len(which):
                break
            grid = finer(grid, best[which], LARGEST_GRID)
            blend = self._nodes.basis(grid).T
            best[which], rough = self.take(which)._vertices(grid, blend, dual, signs[which])
        return self._at(best, dual, signs), settled

    def minimise_all(self, dual: Dual, signs: Array) -> tuple[Minimum, NDArray[np.bool_]]:
        """The same for all points and several signs; (signs, m)."""
        shape = len(signs), len(self._query.prior)
        part = self if len(signs) == 1 else self.take(np.tile(np.arange(shape[1]), shape[0]))
        found, settled = part.minimise(dual, signs.repeat(shape[1]))
        return _reshaped(found, shape), settled.reshape(shape)

    def _vertices(
        self, grid: Array, blend: Array, dual: Dual, signs: Array
    ) -> tuple[Array, tuple[float, float]]:
        """Minimisers on an even grid (m,), and between which points it is too coarse."""
        path, ridges = self._query.path, np.exp(grid)
        mean, deviation = blend @ (signs * self._found.mean), np.exp(blend @ self._log_deviation)
        # Where a confidence set is nearly empty, energies cancel; most of them is had exactly.
        energy = path.energy_of_basis(ridges, path.inverse(ridges))
        factor = dual.factor(ridges, energy + blend @ self._found.border_energy)
        best = vertex(grid, mean + factor[:, None] * deviation)
        # There, too, the factor nearly vanishes, and bends too much for a quartic.
        bends = np.abs(factor[3:] - factor[:-3] + 3 * (factor[1:-2] - factor[2:-1]))
        rough = np.flatnonzero(bends > ROUGH * factor[1:-2])
        if not len(rough):
            return best, (np.inf, -np.inf)
        return best, (grid[max(rough[0] - 1, 0)], grid[min(rough[-1] + 4, len(grid) - 1)])

    def _at(self, best: Array, dual: Dual, signs: Array) -> Minimum:
        """The bounds themselves at log ridges (m,)."""
        path, found = self._query.path, self._found
        ridges, blend = np.exp(best), self._nodes.basis(best)
        inverse = path.inverse(ridges)
        deviation = np.exp(np.einsum("gm,gm->m", blend, self._log_deviation))
        energy = path.energy_of_basis(ridges, inverse) + found.border_energy @ blend
        scale = dual.best_scale(ridges, deviation, energy)
        unexplained = self._query.unexplained(ridges, inverse, signs * scale, found, blend)
        return Minimum(dual.at_scale(ridges, scale, unexplained), best, scale)


def _range(values: Array, margin: float) -> tuple[float, float]:
    return float(values.min()) - margin, float(values.max()) + margin


def _limits(eigen: Eigenbasis) -> tuple[float, float]:
    """The log ridges between which to search.

    Below, a truncated path is not accurate, and the slack of another drowns the ridge. Above, a
    bound differs from the one without data by less than it matters.
    """
    top = float(np.log(eigen.spectrum.max(initial=eigen.slack)))
    bottom = float(np.log(eigen.finest / 8 if eigen.flat else eigen.slack))
    return bottom, max(top, bottom) + float(FAR_ABOVE)


Evaluate = Callable[[Array], tuple[Array, Array, Array]]


def _scan(
    query: PathQuery, evaluate: Evaluate, dual: Dual, signs: Array, limits: tuple[float, float]
) -> Scan:
    """The dual function on a coarse grid; (signs, m)."""
    near = limits[0], limits[1] - float(FAR_ABOVE - ABOVE)
    found = _scan_between(query, evaluate, dual, signs, near)
    if found.best.max() < near[1] - 2 * STEP:
        return found
    return _scan_between(query, evaluate, dual, signs, limits)


def _scan_between(
    query: PathQuery, evaluate: Evaluate, dual: Dual, signs: Array, limits: tuple[float, float]
) -> Scan:
    grid = np.arange(*limits, STEP)
    ridges = np.exp(grid)
    mean, variance, energy = evaluate(ridges)
    deviation, factor = np.sqrt(variance), dual.factor(ridges[:, None], energy)
    shape = len(signs), len(query.prior)
    found = Scan(np.empty(shape), np.empty(shape), np.empty(shape, dtype=bool))
    for sign, best, smallest, flat in zip(signs, *found, strict=True):
        values = sign * mean + factor * deviation
        best[:], smallest[:] = vertex(grid, values), values.min(axis=0)
        flat[:] = values[-1] - smallest <= FLAT * np.abs(values[-1])
        best[flat] = grid[-1]
    return found


def _groups(values: Array) -> list[NDArray[np.intp]]:
    """Indices of values, in groups that span at most SPAN."""
    if np.ptp(values) <= SPAN:
        return [np.arange(len(values))]
    order = np.argsort(values, kind="stable")
    groups, start = [], 0
    while start < len(order):
        stop = int(np.searchsorted(values[order], values[order[start]] + SPAN, side="right"))
        groups.append(np.sort(order[start:stop]))
        start = stop
    return groups
