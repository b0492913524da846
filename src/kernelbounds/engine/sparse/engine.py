"""The sparse engine: kernel ridge regression from sums over observations that are not kept."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array, column_dots
from kernelbounds.engine.base import Approximation, Engine, Fits
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.path_query import PathQuery, Predictions
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.ridge_path import RidgePath, dot_error
from kernelbounds.engine.sparse.basis import LEAST_KEPT, Basis, Coordinates, Design, design_floor
from kernelbounds.engine.sparse.dictionary import (
    BLOCK_OF_COUNT,
    FEATURE_MARGIN,
    SHARE_OF_ERROR,
    Block,
    Dictionary,
    Growth,
    typical_ridge,
)
from kernelbounds.engine.sparse.dual import SparseDual
from kernelbounds.engine.sparse.statistics import Chunk, Forecaster, Statistics
from kernelbounds.engine.whitening import Whitening
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True)
class UnkeptObservations:
    """The view of observations that are not kept: their number and sums, and no single one."""

    kernel: Kernel
    dim: int | None = None  # known from the first point on, be it an inducing one
    accuracy: float = EPS
    count: int = 0
    trace: float = 0.0
    squared_weights: float = 0.0
    first_accuracy: float = EPS
    scatter: float = 0.0  # zero is below what outcomes at equal points may differ by

    def accuracy_in(self, dim: int) -> float:
        """The relative precision of the kernel's values."""
        error = kernels.evaluation_error(self.kernel, dim)
        if error is None:
            raise InputError(
                f"a sparse engine needs a kernel of scikit-learn's, whose precision is known, got "
                f"{self.kernel}."
            )
        return EPS * max(1.0, error)

    def of(self, total: Statistics) -> UnkeptObservations:
        """The same knowledge once the sums over all observations are ``total``."""
        weights = total.squared_weights
        return replace(self, count=total.count, trace=total.trace, squared_weights=weights)

    @property
    def points(self) -> Array:
        """Refuse: the single observations are not kept."""
        raise _not_kept("points")

    @property
    def observed(self) -> Array:
        """Refuse: the single observations are not kept."""
        raise _not_kept("outcomes")

    @property
    def outcomes(self) -> Array:
        """Refuse: the single observations are not kept."""
        raise _not_kept("outcomes")

    @property
    def weights(self) -> Array:
        """Refuse: the single observations are not kept."""
        raise _not_kept("noise scales")

    @property
    def whitening(self) -> Whitening:
        """Refuse: the whitening is not kept."""
        raise _not_kept("noise scales")


def _not_kept(what: str) -> InputError:
    return InputError(f"a sparse engine does not keep the {what} of its observations.")


# A block has one row for every BLOCK_OF_COUNT rows before it, within these limits. Where it ends,
# :class:`Growth` learns what is unknown by then, and a chunk that is full is closed.
SMALLEST_BLOCK, LARGEST_BLOCK = 8, 1000
# The most observations that are not yet in the eigenbasis of Phi' Phi, which takes m^3 steps to
# renew.
BORDER_ROWS = 48
# s rho is FLOOR_SHARE sqrt(v alpha rho), v being the mean residual over the mean variance, and at
# least LEAST_FLOOR_SHARE rho. Measured with RBF and Matérn kernels and 100 to 1000 inducing points:
# an s within a factor of two of the best one makes widths at most 2 percent larger than the least.
FLOOR_SHARE, LEAST_FLOOR_SHARE = 0.6, 0.1
# That is for queries among the observations. Far from those what is unknown is the residual, which
# K' multiplies by 1 + 1/s, while s rho adds to all squared widths this over 16 (sigma/B)^2,
# relatively (see ``_negligible``). The best s rho there is four times the geometric mean of rho and
# (sigma/B)^2; it is half of that at least, and 0.3 (sigma/B)^2, which costs a percent.
FAR_FROM_DATA_SHARE, HARMLESS_FLOOR = 2.0, 0.3
# Up to this part of 0.3 (sigma/B)^2, rho is as good as nothing, and 1 + 1/s as good as 1.
NEGLIGIBLE_PART = 0.1
# This many of the newest points are landmarks, where searches start. A few will do, because a
# policy tries what is best again and again.
NEWEST_LANDMARKS = 64


class Losses(Protocol):
    """The losses of forecasts, and their sums at a noise scale."""

    def __call__(self, made: Forecasts) -> Array:
        """The losses of each forecast, (n, j)."""
        ...

    def at(self, sums: Array, noise_scale: float) -> tuple[float, Array]:
        """The noise scale at which sums are known, at least the one given, and the sums."""
        ...


class SparseEngine(Engine):
    """The four quantities from :class:`Statistics`, for the kernel matrix K'.

    Parameters
    ----------
    kernel : kernel
    inducing : array (m, d), or None
        The inducing points; None if there are none yet, and the dimension is not known.
    ridge : float
        The ridge of the forecasts.
    typical : float
        (sigma/B)^2; the ridges that matter are about t times this.
    losses : function
        The losses of forecasts, (n, j), of which the sums are kept.
    growth : Growth
        Which observations become inducing points.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing: Array | None,
        ridge: float,
        typical: float,
        losses: Losses | None = None,
        growth: Growth | None = None,
    ) -> None:
        self.data: UnkeptObservations = UnkeptObservations(kernel)
        self._ridge, self._typical, self._losses_of = ridge, typical, losses
        self._growth = growth or Growth(0.0, 0)
        self._ends_at = SMALLEST_BLOCK  # the count at which the present block ends
        self._lost: Array | None = None  # sums of what the forecasts cost
        self._basis: Basis | None = None
        self._path: RidgePath | None = None
        self._decomposed: tuple[Array, Array] | None = None  # Phi' Phi, for :meth:`dual`
        self._design: Design | None = None
        self._span = False  # whether K' is Phi Phi' alone, see :meth:`within_span`
        self.statistics, self.dictionary = Statistics.none(0), Dictionary.empty(kernel, 0, EPS)
        if inducing is not None:
            accuracy = self.data.accuracy_in(inducing.shape[1])
            self._begin(Dictionary.of(kernel, inducing, accuracy))

    def _begin(self, dictionary: Dictionary) -> None:
        """Take the first dictionary, with which the dimension is known."""
        self.dictionary, size, dim = dictionary, len(dictionary), dictionary.inducing.shape[1]
        self.data = replace(self.data, dim=dim, accuracy=dictionary.accuracy)
        self.statistics, self._newest = Statistics.none(size), Chunk.empty(size, dim)
        self._closed = self.statistics  # the sums over all but the newest observations
        # rho when each of the directions joined: of that much, observations do not see it.
        self._excess_at_joining = np.zeros(size)
        self._forecaster = Forecaster.of(self._ridge, self.statistics)
        # Observations that are not in the basis: features (m, b) and outcomes (b,).
        self._border, self._outcomes = np.empty((size, 0)), np.empty(0)

    @property
    def dim(self) -> int | None:
        """The dimension of the inducing points; None before there are any."""
        return self.data.dim

    def snapshot(self) -> SparseEngine:
        """See :class:`Engine`."""
        return copy.copy(self)  # appends replace what they change

    def whole_blocks(self, count: int) -> int:
        """How many of ``count`` new observations are in blocks that are complete.

        Appended up to there, and then the others with those after them, they are in the same blocks
        as all in one go.
        """
        taken, end = 0, self._ends_at - self.statistics.count
        while end <= count:
            taken, end = end, end + size_of_block(self.statistics.count + end)
        return taken

    def append(self, points: Array, outcomes: Outcomes | Array) -> None:
        """Add observations, a block at a time; on an error nothing is added."""
        if self.dim not in (None, points.shape[1]):
            raise InputError(
                f"points have {points.shape[1]} coordinates, and the inducing points {self.dim}."
            )
        known = outcomes if isinstance(outcomes, Outcomes) else Outcomes.plain(outcomes)
        grown, start = copy.copy(self), 0
        if self.dim is None:
            accuracy, dim = self.data.accuracy_in(points.shape[1]), points.shape[1]
            grown._begin(Dictionary.empty(self.data.kernel, dim, accuracy))
        while start < len(points):
            stop = min(start + grown._ends_at - grown.statistics.count, len(points))
            grown._append_block(points[start:stop], known.rows(start, stop))
            start = stop
        vars(self).update(vars(grown))

    def _append_block(self, points: Array, outcomes: Outcomes) -> None:
        """Append the rows of one block, or some of them."""
        block = Block.of(self.dictionary, points, outcomes)
        self.dictionary, joined = self._growth.joining(self.dictionary, block)
        forecaster, size = self._forecaster, len(self.dictionary)
        # A forecast may know less than all, and must not know how many points join after its row:
        # so nothing is added for the errors of the dictionary at the end of the block.
        then = block.with_features(joined.before, least=0.0)
        if joined.rows:
            forecaster = forecaster.with_features(size)
            self._newest = self._newest.with_features_of(self.dictionary)
            self.statistics = self.statistics.with_features(self._newest.rows)
            late = np.full(len(joined.rows), self.statistics.excess)
            self._excess_at_joining, self._basis = np.append(self._excess_at_joining, late), None
            block = block.with_features(joined.features, self.dictionary.least_residual)
        self._lose(forecaster.forecasts(then))
        added = Statistics.of(block)
        self.statistics = self.statistics + added
        self._forecaster = forecaster.after(block, self.statistics)
        self._newest, self._path = self._newest.with_more(block), None
        self._decomposed = self._design = None
        self._extend_border(block)
        if self.statistics.count == self._ends_at:
            self._end_block(added)
        self.data = self.data.of(self.statistics)

    def _lose(self, forecasts: Forecasts) -> None:
        """Add the losses of forecasts to their sums, in the order of the rounds."""
        if self._losses_of is not None:
            lost = self._losses_of(forecasts)
            before = np.zeros(lost.shape[1]) if self._lost is None else self._lost
            self._lost = np.cumsum(np.concatenate([before[None], lost]), axis=0)[-1]

    def _extend_border(self, block: Block) -> None:
        if len(self._outcomes) + len(block) > BORDER_ROWS:
            self._basis = None
        if self._basis is not None:
            self._border = np.concatenate([self._border, block.phi], axis=1)
            self._outcomes = np.append(self._outcomes, block.outcomes)

    def _end_block(self, last: Statistics) -> None:
        """Close a block whose last rows have these statistics."""
        count = self.statistics.count
        self._ends_at = count + size_of_block(count)
        if self._newest.full:
            closed = self._newest.settle(self.dictionary, self._negligible)
            excess = self.statistics.excess + closed.largest
            chunk = last if last.count == len(closed.rows) else Statistics.of(closed.rows)
            self._closed = replace(self._closed.carrying(chunk), excess=excess)
            self.statistics = self._closed
            self._basis = None  # It came from sums with larger errors.
            self._newest = Chunk.empty(len(self.dictionary), closed.rows.points.shape[1])
        self._growth = self._growth.after(self.statistics, self._typical)

    def losses_at(self, noise_scale: float) -> tuple[float, Array]:
        """The noise scale, or the next larger one that is known, and the sums of losses, (j,)."""
        assert self._losses_of is not None
        return self._losses_of.at(np.empty(0) if self._lost is None else self._lost, noise_scale)

    def approximation(self) -> Approximation:
        """How far K' is from K."""
        stats = self.statistics
        mean = stats.residual / max(stats.squared_weights, 1e-300)
        count = len(self.dictionary)
        return Approximation(count, self._floor, mean, can_grow=count < self._growth.most)

    @property
    def stage(self) -> tuple[int, Array]:
        """A number that changes when features or their scales do, and sizes that K' grows with.

        While the number stays the same, K' between earlier observations and any queries is at most
        what it was, times the largest ratio of a size to what it was, or times 1. The sizes are
        what is added to the diagonal of K', and what multiplies the residuals of queries.
        """
        if not self.statistics.count:
            return 0, np.ones(2)
        path, basis = self._path_and_basis()
        return basis.count, np.array([path.levels[-1], self._enlarging(basis)])

    def newest_points(self, most: int) -> Array:
        """Up to ``most`` of the newest observations' points, as far as they are kept; (n, d)."""
        return self._newest.rows.points[-most:]

    @property
    def landmarks(self) -> Array:
        """Points near which something is known: inducing ones, and the newest; (n, d)."""
        if self.dim is None:
            return np.empty((0, 0))
        return np.concatenate([self.dictionary.inducing, self.newest_points(NEWEST_LANDMARKS)])

    @property
    def _excess(self) -> float:
        """The bound rho on the largest eigenvalue of all residuals."""
        return self.statistics.excess + self._newest.largest

    @property
    def _negligible(self) -> float:
        """The most that the newest observations may add to rho without being noticed.

        With rho, energies fall by t sigma^2 rho / alpha, which is little beside alpha B^2 at
        ridges alpha about 4 sqrt(t) (sigma/B)^2 if it is little beside 16 (sigma/B)^2. It must be
        little beside s rho, too.
        """
        part = len(self._newest.rows) / max(self.statistics.count, 1)
        return NEGLIGIBLE_PART * HARMLESS_FLOOR * self._typical * part

    @property
    def _floor(self) -> float:
        """The floor of K', (1 + s) rho."""
        stats = self.statistics
        if not stats.count:
            return 0.0
        ridge = typical_ridge(self._typical, stats.count)
        rest = stats.residual / stats.count / max(self._growth.mean_unknown, 1e-300)
        share = FLOOR_SHARE * math.sqrt(rest * ridge * self._excess)
        more = max(share, LEAST_FLOOR_SHARE * self._excess)
        far = FAR_FROM_DATA_SHARE * math.sqrt(self._excess * self._typical)
        return self._excess + max(more, far, HARMLESS_FLOOR * self._typical)

    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """Mean, variance and energy at points and ridges, rounded so that bounds get looser."""
        return self.query(points).predict(ridges)

    def path(self, finest: float = 0.0, finest_per_point: float = 0.0) -> RidgePath:
        """Energies at all ridges."""
        return self._path_and_basis()[0]

    def _path_and_basis(self) -> tuple[RidgePath, Basis]:
        """The path of all observations, and the basis that it is in."""
        if self._path is None:
            self._path = self._renewed()
        assert self._basis is not None
        return self._path, self._basis

    def query(
        self, points: Targets, finest: float = 0.0, finest_per_point: float = 0.0
    ) -> PathQuery:
        """Means, variances and energies at ``points``."""
        path, basis = self._path_and_basis()
        phi, rest, _ = self.dictionary.features(points)
        seen, border = basis.coordinates(phi), basis.coordinates(self._border)
        prior = self._products(seen, seen, column_dots)
        if not self._span:
            prior = prior + self._enlarging(basis) * rest
        # The direction of what is left of the outcomes has nothing of k'(x).
        u = np.concatenate([seen.along, np.zeros((1, len(rest)))])
        newest = self._products(border, seen, _matrix)
        return PathQuery(path, prior, u, newest, np.zeros(len(rest)))

    def energy_above(self, ridge: float) -> float:
        """|y|^2, which no energy exceeds: the energy of K itself is not known."""
        return self.statistics.squares * (1 + dot_error(self.statistics.terms))

    def log_det_above(self, ridge: float) -> float:
        """t ln(1 + tr K / (t alpha)), by Hadamard's inequality: that of K itself is not known."""
        count = max(self.data.count, 1)
        return count * math.log1p(self.data.trace / (count * ridge)) * (1 + count * EPS)

    def dual(self, targets: Targets) -> SparseDual:
        """The dual of bounds on targets, which tells what attains them and how they change."""
        (path, basis), stats = self._path_and_basis(), self.statistics
        return SparseDual.of(
            self.dictionary, stats, basis.scales, path.eigen.floor, self._enlarging(basis),
            self._moments(), targets,
        )  # fmt: skip

    def _moments(self) -> tuple[Array, Array]:
        """The eigenvalues and eigenvectors of S Phi' Phi S, with the scales S of features."""
        if self._decomposed is None:
            scales = self._path_and_basis()[1].scales
            scaled = self.statistics.moments * np.multiply.outer(scales, scales)
            values, vectors = np.linalg.eigh(scaled)
            self._decomposed = np.maximum(values, 0.0), vectors
        return self._decomposed

    def fits(self, ridges: Array) -> Fits:
        """See :class:`Engine`; |y|^2 - E_alpha = b' (S Phi' Phi S + alpha I)^-1 b, b = S Phi' y."""
        (values, vectors), stats = self._moments(), self.statistics
        squares = ((self._path_and_basis()[1].scales * stats.products) @ vectors) ** 2
        inverse = 1 / (values + ridges[:, None])
        energies = np.maximum(stats.squares - inverse @ squares, EPS * stats.squares)
        log_dets = np.log1p(values / ridges[:, None]).sum(axis=1)
        return Fits(energies, log_dets, self.data.count)

    def ridge_weights(self, ridge: float) -> tuple[Array, Array]:
        """See :class:`Engine`; the centres are the inducing points."""
        (values, vectors), scales = self._moments(), self._path_and_basis()[1].scales
        along = (scales * self.statistics.products) @ vectors
        of_features = scales * (vectors @ (along / (values + ridge)))
        weights = solve_triangular(self.dictionary.factor.T, of_features, check_finite=False)
        return self.dictionary.inducing, np.asarray(weights)

    def eigenpath(self) -> RidgePath:
        """A path whose directions, eigenvectors of Phi Phi', depend on the points alone."""
        return self._fixed_design().path

    def squared_norms_of_directions(self, counts: NDArray[np.intp]) -> Array:
        """See :class:`Engine`."""
        return self._fixed_design().squared_norms(counts)

    def query_along(self, path: RidgePath, points: Targets) -> PathQuery:
        """See :class:`Engine`."""
        return self._fixed_design().query(self.dictionary, path, points)

    def _fixed_design(self) -> Design:
        if self._design is None:
            self._newest = self._newest.settle(self.dictionary, self._negligible)
            floor = design_floor(self.statistics, self._excess, self._typical)
            self._design = Design.of(
                self.dictionary, self.statistics, self._scales(floor), floor, self._excess
            )
        return self._design

    def within_spans(self) -> list[tuple[SparseEngine, float]]:
        """Engines of Phi Phi' alone, and how far the functions of the span may be from it.

        A function of the span of inducing points is one of the kernel's space with the same norm.
        Observations made before a direction joined have <f, e_s> besides, with
        sum_s <f, e_s>^2 <= rho |f|^2, for the rho of that time: there is one engine with all
        inducing points, and others with the first of them alone.
        """
        found, late = [], self._excess_at_joining
        for level in sorted({late[0], late[len(late) // 2], late[-1]}) if len(late) else []:
            first = int(np.searchsorted(self._excess_at_joining, level, side="right"))
            other, stats, kept = copy.copy(self), self.statistics, self.dictionary
            other._span, other._path, other._basis = True, None, None
            other._decomposed = other._design = None
            other._excess_at_joining = self._excess_at_joining[:first]
            other.statistics = replace(
                stats, moments=stats.moments[:first, :first], products=stats.products[:first]
            )
            other.dictionary = replace(
                kept, inducing=kept.inducing[:first], factor=kept.factor[:first, :first]
            )
            found.append((other, math.sqrt(level)))
        return found

    def _products(
        self, left: Coordinates, right: Coordinates, inner: Callable[[Array, Array], Array]
    ) -> Array:
        """Inner products of features in K'.

        Functions of the span may be any, so we take those without directions that are left out.
        """
        assert self._basis is not None
        if self._span:
            return inner(left.along / self._basis.values[:, None], right.along)
        return self._basis.products(left, right, inner)

    def _floor_of(self, basis: Basis) -> float:
        """The floor of K', which never falls while a basis is used: its scales are of its time."""
        return max(self._floor, basis.floor)

    def _enlarging(self, basis: Basis) -> float:
        """1 + 1/s, by which K' multiplies the residuals of queries."""
        floor = self._floor_of(basis)
        return floor / (floor - self._excess)

    def _scales(self, floor: float) -> Array:
        """The scales of the directions; 1 for functions of the span."""
        if self._span:
            return np.ones(len(self._excess_at_joining))
        return features_scaled(self._excess_at_joining, floor)

    def _renewed(self) -> RidgePath:
        """The path of all observations: those in the basis, and the newest as its border."""
        stats, accuracy = self.statistics, self.data.accuracy
        if not self._span:
            self._newest = self._newest.settle(self.dictionary, self._negligible)
        if self._basis is None:
            scales = self._scales(self._floor)
            floor = self._floor if self._excess_at_joining.any() and not self._span else 0.0
            self._basis = Basis.of(stats, accuracy, scales, floor)
            self._border, self._outcomes = np.empty((len(scales), 0)), np.empty(0)
        basis, border = self._basis, self._basis.coordinates(self._border)
        lowest = 0.0 if self._span else self._floor_of(basis)
        lost = SHARE_OF_ERROR * self.dictionary.error
        slack = (dot_error(stats.terms, accuracy) + lost) * stats.positive_trace + basis.room
        slack = 0.0 if self._span else slack
        floor = lowest + slack
        spectrum = np.append(basis.values + floor, floor)
        # The errors of z are those of b over the root of an eigenvalue. What exact bounds exceed is
        # not rounded up for these, but no more than exact bounds are.
        if not self._span:
            accuracy *= 4 + math.sqrt(1 / (LEAST_KEPT * dot_error(stats.terms, accuracy)))
        columns = np.broadcast_to(0.0, (stats.terms, len(spectrum)))
        along = np.append(border.along, np.zeros((1, self._border.shape[1])), axis=0)
        least = max(floor, EPS * stats.positive_trace)  # the finest ridge that makes a difference
        eigen = Eigenbasis(
            columns, spectrum, least, basis.outcomes, slack, False, np.empty(0), accuracy
        )  # fmt: skip
        corner = self._products(border, border, _matrix) + lowest * np.eye(self._border.shape[1])
        return RidgePath(
            eigen, columns, spectrum, along.T, along, corner, self._outcomes,
            float(np.sqrt(stats.squares)), stats.trace,
        )  # fmt: skip


def features_scaled(late: Array, floor: float) -> Array:
    """The scales 1 / sqrt(1 - tau_j / ((1 + s) rho)) of the directions j, and room for errors."""
    return np.asarray(np.sqrt((1 + FEATURE_MARGIN) / (1 - late / floor)))


def size_of_block(count: int) -> int:
    """How many of the next observations are taken together."""
    return min(max(count // BLOCK_OF_COUNT, SMALLEST_BLOCK), LARGEST_BLOCK)


def _matrix(left: Array, right: Array) -> Array:
    return np.asarray(left.T @ right)
