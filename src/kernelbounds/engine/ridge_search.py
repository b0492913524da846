"""Minimising a dual function over the ridge, for many points at once.

For each point the function is quasiconvex in the ridge (``docs/mathematics.md``), so a bracket
of a local minimum is a bracket of the global one. A coarse scan that leaves out the newest
observations brackets it, where a wide range is not cheaper, and interpolation in log ridge finds
it. The value returned is that of the dual function itself at the place found, so that what a search
may lose is tightness, never validity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.engine.chebyshev import Chebyshev
from kernelbounds.engine.eigenbasis import EPS, Eigenbasis
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
FEW = 6  # points that are evaluated at first where the highest is sought
FLAT = 1e-12  # relative to the bound without data
NEARLY = 1e-9  # relative to the trivial bound: above the rounding errors of ceilings
FINER = 5  # points of the last grid for each point of interpolation


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

    def at_best_scale(self, ridge: Array, mean: Array, deviation: Array, energy: Array) -> Array:
        """The bound at that scale."""
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
            part, where = query, None if len(signs) == 1 else everywhere
            if len(members) < best.size:
                points, where = np.unique(everywhere[members], return_inverse=True)
                part = query.take(points)
            nearby = Nearby(part, _range(best[members], margin), limits)
            found, settled = nearby.minimise(dual, signs[members // shape[1]], where)
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

    def minimise(
        self, dual: Dual, signs: Array, where: NDArray[np.intp] | None = None
    ) -> tuple[Minimum, NDArray[np.bool_]]:
        """Bounds, and whether their ridges are minimisers; (n,).

        ``where`` (n,) says which point of the query each bound is for: both sides of a point
        share the predictions there. None: one bound for each point, in order.
        """
        query, found, log_deviation = self._query, self._found, self._log_deviation
        path, nodes = query.path, self._nodes
        if where is not None:
            query, found = query.take(where), found.take(where)
            log_deviation = log_deviation[:, where]
        grid, blend = nodes.grid(FINER * nodes.size)
        ridges = np.exp(grid)
        mean, deviation = blend @ (signs * found.mean), np.exp(blend @ log_deviation)
        # Where a confidence set is nearly empty, energies cancel; most of them is had exactly.
        energy = path.energy_of_basis(ridges, path.inverse(ridges)) + blend @ found.border_energy
        best = _vertex(grid, dual.at_best_scale(ridges[:, None], mean, deviation, energy[:, None]))
        settled = np.ones(len(signs), dtype=bool)
        if self._open[0]:
            settled &= best > grid[1]
        if self._open[1]:
            settled &= best < grid[-2]
        # The bound itself, there.
        ridges, blend = np.exp(best), nodes.basis(best)
        inverse = path.inverse(ridges)
        deviation = np.exp(np.einsum("gm,gm->m", blend, log_deviation))
        energy = path.energy_of_basis(ridges, inverse) + found.border_energy @ blend
        scale = dual.best_scale(ridges, deviation, energy)
        unexplained = query.unexplained(ridges, inverse, signs * scale, found, blend)
        return Minimum(dual.at_scale(ridges, scale, unexplained), best, scale), settled

    def minimise_all(self, dual: Dual, signs: Array) -> tuple[Minimum, NDArray[np.bool_]]:
        """The same for all points and several signs; (signs, m)."""
        shape = len(signs), len(self._query.prior)
        where = None if len(signs) == 1 else np.tile(np.arange(shape[1]), shape[0])
        found, settled = self.minimise(dual, signs.repeat(shape[1]), where)
        return _reshaped(found, shape), settled.reshape(shape)


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
    deviation = np.sqrt(variance)
    shape = len(signs), len(query.prior)
    found = Scan(np.empty(shape), np.empty(shape), np.empty(shape, dtype=bool))
    for sign, best, smallest, flat in zip(signs, *found, strict=True):
        values = dual.at_best_scale(ridges[:, None], sign * mean, deviation, energy)
        best[:], smallest[:] = _vertex(grid, values), values.min(axis=0)
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


def _vertex(grid: Array, values: Array) -> Array:
    """The minimiser on an even grid, refined by a parabola through its neighbours; (m,)."""
    at = np.minimum(np.maximum(values.argmin(axis=0), 1), len(grid) - 2)
    flat = at * values.shape[1] + np.arange(len(at))
    left, middle, right = (values.take(flat + shift * values.shape[1]) for shift in (-1, 0, 1))
    bend, slope = left - 2 * middle + right, left - right
    # Without a vertex, at an end of the grid, it is the end.
    shift = np.divide(slope, 2 * bend, out=np.sign(slope), where=bend > 0)
    return np.asarray(grid[at] + (grid[1] - grid[0]) * np.minimum(np.maximum(shift, -1.0), 1.0))
