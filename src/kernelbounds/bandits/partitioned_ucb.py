"""PartitionedUCB: optimism with bounds from the observations of a cell alone.

The box is cut into dyadic cells. A cell of level j has sides 2^-j times those of the box, and
there are 2^(jd) of them. Each has a confidence sequence of its own, of the observations in it, with

    delta_j = delta 2^(-jd) / ((j + 1) (j + 2)).

All of them hold at once with probability 1 - delta: for a cell that is fixed, whether x_t is in it
is known before the outcome, so the observations in it are themselves a sequence with sub-Gaussian
noise given the past, and the cell's bounds fail with probability delta_j at most, at any time. Over
all cells of all levels, made or not, these add up to delta sum_j 1/((j + 1)(j + 2)) = delta.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_scalar
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.batches import Turn, choose_in_turn, with_imagined_outcomes
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.maximisers import Ascent, Maximum
from kernelbounds.bandits.policy import Points, Policy
from kernelbounds.errors import InputError
from kernelbounds.kernels.rkhs import smoothness
from kernelbounds.sequence import ConfidenceSequence


@dataclass(frozen=True)
class DyadicCell:
    """A dyadic cell: number ``place[i]`` of 2^level along each coordinate i.

    The outermost cells reach to infinity, so that any point is in exactly one cell of a level.
    """

    level: int
    place: tuple[int, ...]

    def halves(self, split: NDArray[np.bool_]) -> Iterator[DyadicCell]:
        """Yield the cells of the next level in this one; coordinates of no width are not halved."""
        steps = [(0, 1) if wide else (0,) for wide in split]
        for step in itertools.product(*steps):
            place = tuple(2 * at + one for at, one in zip(self.place, step, strict=True))
            yield DyadicCell(self.level + 1, place)


class PartitionedUCB(Policy):
    """Optimism with cells: x_t maximises the upper bound that its cell's own observations give.

    This is the pi-GP-UCB of Janz, Burt and Gonzalez (2020), which was the first practical method
    with sublinear regret for all Matern kernels with nu > 1. A cell whose side is rho times that of
    the domain is cut into 2^d cells when it has N observations and N + 1 > rho^(-1/b), with
    b = (d + 1)/(d + 2 nu). The bounds of a cell are those of ``sequence``, CMM unless you say
    otherwise, in place of theirs.

    The bounds of cells choose actions, and nothing else: suggestions, history and certificates
    come from ``sequence``, which has all the observations, and hold at its delta. What
    :meth:`cell_bounds` returns is a second promise with the same delta; both hold at once with
    probability 1 - 2 delta.

    Parameters
    ----------
    sequence, domain, minimise
        See :class:`KernelUCB`. What is cut into cells is the box, or that around a finite set, or
        the unit cube where there is no domain.
    nu : float, optional
        The smoothness in the rule of splitting; None is that of the kernel. That of RBF is
        infinite, with which no cell is cut, and the policy chooses as KernelUCB does.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> seq = ConfidenceSequence(Matern(0.5, nu=1.5), norm_bound=2.0, noise_scale=0.1)
    >>> policy = PartitionedUCB(seq, Finite(np.linspace(0, 1, 20)[:, None]))
    >>> history = policy.run(lambda x: float(np.sin(3 * x[0])), rounds=30)
    >>> len(policy.cells) > 2
    True
    """

    def __init__(
        self,
        sequence: ConfidenceSequence,
        domain: Domain | None = None,
        *,
        minimise: bool = False,
        nu: float | None = None,
    ) -> None:
        super().__init__(sequence, domain, minimise=minimise)
        if sequence.approximation is not None:
            raise InputError(
                "PartitionedUCB needs the observations of each cell, which a sparse engine does "
                "not keep; use a sequence without engine=, or KernelUCB."
            )
        if isinstance(domain, Box) and domain.categories:
            raise InputError(
                "PartitionedUCB halves the sides of a box, and categories have none; use KernelUCB."
            )
        self._nu = smoothness(sequence.kernel) if nu is None else as_scalar(nu, "nu", above=0.0)
        self._sequences: dict[DyadicCell, ConfidenceSequence] = {}
        self._maxima: dict[DyadicCell, tuple[int, Maximum]] = {}  # over the box, with the count

    @property
    def cells(self) -> list[tuple[Array, Array]]:
        """The lower and upper ends (d,) of the cells that there are now; none without a domain."""
        with self.lock:
            return [self._ends(cell) for cell in self._leaves()] if self.dim else []

    def cell_bounds(self, X: Points) -> tuple[Array, Array]:
        """Bound f* at points by the observations of their cells alone.

        All of these hold at all times at once with probability 1 - delta. That is a promise beside
        the one of :meth:`bounds`: both hold with probability 1 - 2 delta.
        """
        with self.lock:
            points = self._actions(X)
            lower, upper = np.empty(len(points)), np.empty(len(points))
            for cell, own in self._cell_sequences(points.shape[1]).items():
                at = self._inside(cell, points)
                if at.any():
                    lower[at], upper[at] = own.bounds(points[at])
            return lower, upper

    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """See :class:`Policy`."""
        sequences = dict(self._cell_sequences(space.dim))
        for point in self._ledger.pending:
            self._imagine(sequences, point)
        tops: dict[DyadicCell, Any] = {}  # what is known of each cell, until its sequence changes

        def choose_one(turn: Turn) -> int | Array:
            for point in turn.taken[-1:]:
                tops.pop(self._imagine(sequences, point))
            for cell in sequences.keys() - tops.keys():
                tops[cell] = self._top(cell, sequences[cell], space)
            if isinstance(space, Box):
                return np.asarray(max(filter(None, tops.values()), key=lambda one: one.value).x)
            values = np.full(len(space.points), -np.inf)
            for at, found in tops.values():
                values[at] = found
            values[~self.available(space, turn.taken)] = -np.inf
            return int(values.argmax())

        return choose_in_turn(self, space, count, choose_one)

    def _imagine(self, sequences: dict[DyadicCell, ConfidenceSequence], point: Array) -> DyadicCell:
        """Give a point an imagined outcome in a copy of its cell's sequence; return the cell."""
        cell = next(one for one in sequences if self._inside(one, point[None])[0])
        sequences[cell] = with_imagined_outcomes(sequences[cell], [point])
        return cell

    def _top(self, cell: DyadicCell, own: ConfidenceSequence, space: Domain) -> Any:
        """Maximise a cell's bound over a box, or compute it at the cell's points of a finite set.

        Of a box that does not meet the cell, it is None.
        """
        surface = own.surface(self.sign)
        if isinstance(space, Finite):
            at = self._inside(cell, space.points)
            return at, surface.values(space.points[at])
        kept = self._maxima.get(cell)
        lasting = space is self.domain and own is self._sequences[cell]
        if lasting and kept is not None and kept[0] == len(own):
            return kept[1]
        lower, upper = self._ends(cell, outermost=math.inf)
        lower, upper = np.maximum(lower, space.lower), np.minimum(upper, space.upper)
        if np.any(lower > upper):
            return None
        found = Ascent().maximise(surface, Box(lower, upper), np.empty((0, space.dim)))
        if lasting:
            self._maxima[cell] = len(own), found
        return found

    def settings(self) -> dict[str, Any]:
        """See :class:`Policy`."""
        # Cells are those of the observations, which are saved; JSON has no infinity.
        return {"nu": None if math.isinf(self._nu) else self._nu}

    def restore(self, settings: dict[str, Any]) -> None:
        """See :class:`Policy`."""
        self._nu = math.inf if settings["nu"] is None else settings["nu"]

    # --- the partition

    def _root(self, dim: int) -> tuple[Array, Array]:
        """The lower end and the widths of the box that is cut."""
        if self.domain is None:
            return np.zeros(dim), np.ones(dim)
        return self.domain.lower, self.domain.upper - self.domain.lower

    def _leaves(self, dim: int | None = None) -> dict[DyadicCell, NDArray[np.intp]]:
        """The cells that there are now, with the numbers of the observations in each.

        A cell is cut if it has enough observations, whenever they were made, so the partition
        follows from the points alone.
        """
        size = dim or self.dim or 0
        points = self.sequence.points.reshape(-1, size)
        split = self._root(size)[1] > 0
        exponent = (split.sum() + 2 * self._nu) / (split.sum() + 1)  # 1/b
        found: dict[DyadicCell, NDArray[np.intp]] = {}
        waiting = [(DyadicCell(0, (0,) * size), np.arange(len(points)))]
        while waiting:
            cell, rows = waiting.pop()
            full = math.isfinite(exponent) and len(rows) + 1 > 2.0 ** (cell.level * exponent)
            if not (full and split.any()):
                found[cell] = rows
                continue
            for half in cell.halves(split):
                waiting.append((half, rows[self._inside(half, points[rows])]))
        return found

    def _inside(self, cell: DyadicCell, points: Array) -> NDArray[np.bool_]:
        """Tell which points (m, d) are in a cell."""
        lower, width = self._root(points.shape[1])
        unit = (points - lower) / np.where(width > 0, width, np.inf)
        last = 2.0**cell.level - 1
        return np.asarray((np.clip(np.floor(unit * (last + 1)), 0, last) == cell.place).all(axis=1))

    def _ends(self, cell: DyadicCell, outermost: float = 0.0) -> tuple[Array, Array]:
        """The lower and upper end of a cell, moved outwards where no cell is beyond it."""
        lower, width = self._root(len(cell.place))
        place, sides = np.array(cell.place), np.where(width > 0, 2**cell.level, 1)
        low, high = lower + width * place / sides, lower + width * (place + 1) / sides
        low[place == 0] -= outermost
        high[place == sides - 1] += outermost
        return low, high

    def _cell_sequences(self, dim: int) -> dict[DyadicCell, ConfidenceSequence]:
        """The sequence of each cell, with the observations that are in it."""
        known, leaves = self.sequence.known, self._leaves(dim)
        points, outcomes = self.sequence.points, self.sequence.outcomes
        # Where noise is correlated there are no weights, and asking for them says so.
        scales = None if (known.weights == 1).all() else self.sequence.noise_scales
        wide = int((self._root(dim)[1] > 0).sum())
        kept, self._sequences = self._sequences, {}
        for cell, rows in leaves.items():
            j = cell.level
            share = 2.0 ** (-j * wide) / ((j + 1) * (j + 2))
            if math.isinf(self._nu) or not wide:  # nothing is ever cut, so nothing is shared
                share = 1.0
            own = kept.get(cell) or self.sequence.without_data(
                self.sequence.assumptions.delta * share
            )
            new = rows[len(own) :]
            if len(new):
                own.update_checked(
                    points[new], outcomes[new], None if scales is None else scales[new]
                )
            self._sequences[cell] = own
        self._maxima = {cell: one for cell, one in self._maxima.items() if cell in leaves}
        return self._sequences
