"""The sparse engine: kernel ridge regression from sums over observations that are not kept."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from kernelbounds.arrays import EPS, Array, column_dots
from kernelbounds.engine.base import Approximation, Engine, Fits
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.path_query import PathQuery, Predictions
from kernelbounds.engine.ridge_path import RidgePath, dot_error
from kernelbounds.engine.sparse.basis import LEAST_KEPT, Basis, Coordinates, Design, design_floor
from kernelbounds.engine.sparse.dictionary import FEATURE_MARGIN, SHARE_OF_ERROR, Dictionary
from kernelbounds.engine.sparse.dual import SparseDual
from kernelbounds.engine.sparse.sparse_observations import SparseObservations, size_of_block
from kernelbounds.errors import InputError
from kernelbounds.functionals.targets import Targets

# The most observations that are not yet in the eigenbasis of Phi' Phi, which takes m^3 steps to
# renew.
BORDER_ROWS = 48
# This many of the newest points are landmarks, where searches start. A few will do, because a
# policy tries what is best again and again.
NEWEST_LANDMARKS = 64


class SparseEngine(Engine):
    """The four quantities of a kernel matrix K', from sums over observations.

    With ``span``, K' is Phi Phi' alone, see :meth:`within_spans`.
    """

    def __init__(self, data: SparseObservations, span: bool = False) -> None:
        self.data: SparseObservations = data
        self._span = span
        self._basis: Basis | None = None
        # Observations that are not in the basis: features (m, b) and outcomes (b,).
        self._border, self._outcomes = np.empty((len(data.dictionary), 0)), np.empty(0)
        self._path: RidgePath | None = None
        self._decomposed: tuple[Array, Array] | None = None  # Phi' Phi, for :meth:`dual`
        self._design: Design | None = None

    @property
    def dim(self) -> int | None:
        """The dimension of the inducing points; None before there are any."""
        return self.data.dim

    def snapshot(self) -> SparseEngine:
        """See :class:`Engine`."""
        other = copy.copy(self)
        other.data = copy.copy(self.data)
        return other

    def whole_blocks(self, count: int) -> int:
        """Count those of ``count`` new observations that fill whole blocks.

        Appended up to there, and then the others with those after them, they are in the same blocks
        as all in one go.
        """
        taken, end = 0, self.data.ends_at - self.data.count
        while end <= count:
            taken, end = end, end + size_of_block(self.data.count + end)
        return taken

    def append(self, points: Array, outcomes: Outcomes | Array) -> None:
        """Add observations, a block at a time; on an error nothing is added."""
        dim = points.shape[1]
        if self.dim not in (None, dim):
            raise InputError(f"points have {dim} coordinates, and the inducing points {self.dim}.")
        known = outcomes if isinstance(outcomes, Outcomes) else Outcomes.plain(outcomes)
        grown, start = self.snapshot(), 0
        data = grown.data
        if self.dim is None:
            data.begin(Dictionary.empty(data.kernel, dim, data.accuracy_in(dim)))
        while start < len(points):
            stop = min(start + data.ends_at - data.count, len(points))
            block, basis_lasts = data.append(points[start:stop], known.rows(start, stop))
            if not basis_lasts or len(grown._outcomes) + len(block) > BORDER_ROWS:
                grown._basis = None
            if grown._basis is not None:
                grown._border = np.concatenate([grown._border, block.phi], axis=1)
                grown._outcomes = np.append(grown._outcomes, block.outcomes)
            start = stop
        grown._path = grown._decomposed = grown._design = None
        vars(self).update(vars(grown))

    def losses_at(self, noise_scale: float) -> tuple[float, Array]:
        """The noise scale, or the next larger one that is known, and the sums of losses, (j,)."""
        losses_of, lost = self.data.losses_of, self.data.lost
        assert losses_of is not None
        return losses_of.at(np.empty(0) if lost is None else lost, noise_scale)

    def approximation(self) -> Approximation:
        """Measure how far K' is from K."""
        data, count = self.data, len(self.data.dictionary)
        mean = data.statistics.residual / max(data.squared_weights, 1e-300)
        return Approximation(count, data.floor, mean, can_grow=count < data.growth.most)

    @property
    def stage(self) -> tuple[int, Array]:
        """A number that changes when features or their scales do, and sizes that K' grows with.

        While the number stays the same, K' between earlier observations and any queries is at most
        what it was, times the largest ratio of a size to what it was, or times 1. The sizes are
        what is added to the diagonal of K', and what multiplies the residuals of queries.
        """
        if not self.data.statistics.count:
            return 0, np.ones(2)
        path, basis = self._path_and_basis()
        return basis.count, np.array([path.levels[-1], self._enlarging(basis)])

    def newest_points(self, most: int) -> Array:
        """Up to ``most`` of the newest observations' points, as far as they are kept; (n, d)."""
        return self.data.newest.rows.points[-most:]

    @property
    def landmarks(self) -> Array:
        """Points near which something is known: inducing ones, and the newest; (n, d)."""
        if self.dim is None:
            return np.empty((0, 0))
        return np.concatenate([self.data.dictionary.inducing, self.newest_points(NEWEST_LANDMARKS)])

    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """Mean, variance and energy at points and ridges, rounded so that bounds get looser."""
        return self.query(points).predict(ridges)

    def path(self, finest: float = 0.0, finest_per_point: float = 0.0) -> RidgePath:
        """The path of energies at all ridges."""
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
        """A query for means, variances and energies at ``points``."""
        path, basis = self._path_and_basis()
        phi, rest, _ = self.data.dictionary.features(points)
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
        return self.data.statistics.squares * (1 + dot_error(self.data.statistics.terms))

    def log_det_above(self, ridge: float) -> float:
        """t ln(1 + tr K / (t alpha)), by Hadamard's inequality: that of K itself is not known."""
        count = max(self.data.count, 1)
        return count * math.log1p(self.data.trace / (count * ridge)) * (1 + count * EPS)

    def dual(self, targets: Targets) -> SparseDual:
        """The dual of bounds on targets, which tells what attains them and how they change."""
        (path, basis), data = self._path_and_basis(), self.data
        phi, residuals, magnitudes = data.dictionary.features(targets)
        return SparseDual(
            data.dictionary, data.statistics, basis.scales, *self._moments(), path.eigen.floor,
            self._enlarging(basis), basis.scales[:, None] * phi, residuals, magnitudes,
        )  # fmt: skip

    def _moments(self) -> tuple[Array, Array]:
        """The eigenvalues and eigenvectors of S Phi' Phi S, with the scales S of features."""
        if self._decomposed is None:
            scales = self._path_and_basis()[1].scales
            scaled = self.data.statistics.moments * np.multiply.outer(scales, scales)
            values, vectors = np.linalg.eigh(scaled)
            self._decomposed = np.maximum(values, 0.0), vectors
        return self._decomposed

    def fits(self, ridges: Array) -> Fits:
        """See :class:`Engine`; |y|^2 - E_alpha = b' (S Phi' Phi S + alpha I)^-1 b, b = S Phi' y."""
        (values, vectors), stats = self._moments(), self.data.statistics
        squares = ((self._path_and_basis()[1].scales * stats.products) @ vectors) ** 2
        inverse = 1 / (values + ridges[:, None])
        energies = np.maximum(stats.squares - inverse @ squares, EPS * stats.squares)
        log_dets = np.log1p(values / ridges[:, None]).sum(axis=1)
        return Fits(energies, log_dets, self.data.count)

    def ridge_weights(self, ridge: float) -> tuple[Array, Array]:
        """See :class:`Engine`; the centres are the inducing points."""
        (values, vectors), scales = self._moments(), self._path_and_basis()[1].scales
        along = (scales * self.data.statistics.products) @ vectors
        of_features = scales * (vectors @ (along / (values + ridge)))
        weights = solve_triangular(self.data.dictionary.factor.T, of_features, check_finite=False)
        return self.data.dictionary.inducing, np.asarray(weights)

    def directions(self) -> Design:
        """See :class:`Engine`; they are eigenvectors of Phi Phi'."""
        if self._design is None:
            data = self.data
            data.settle()
            floor = design_floor(data.statistics, data.excess, data.typical)
            self._design = Design.of(
                data.dictionary, data.statistics, self._scales(floor), floor, data.excess
            )
        return self._design

    def within_spans(self) -> list[tuple[SparseEngine, float]]:
        """Engines of Phi Phi' alone, and how far the functions of the span may be from it.

        A function of the span of inducing points is one of the kernel's space with the same norm.
        Observations made before a direction joined have <f, e_s> besides, with
        sum_s <f, e_s>^2 <= rho |f|^2, for the rho of that time: there is one engine with all
        inducing points, and others with the first of them alone.
        """
        data, stats, kept = self.data, self.data.statistics, self.data.dictionary
        found, late = [], data.excess_at_joining
        for level in sorted({late[0], late[len(late) // 2], late[-1]}) if len(late) else []:
            first = int(np.searchsorted(late, level, side="right"))
            some = copy.copy(data)
            some.excess_at_joining = late[:first]
            some.statistics = replace(
                stats, moments=stats.moments[:first, :first], products=stats.products[:first]
            )
            some.dictionary = replace(
                kept, inducing=kept.inducing[:first], factor=kept.factor[:first, :first]
            )
            found.append((SparseEngine(some, span=True), math.sqrt(level)))
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
        return max(self.data.floor, basis.floor)

    def _enlarging(self, basis: Basis) -> float:
        """1 + 1/s, by which K' multiplies the residuals of queries."""
        floor = self._floor_of(basis)
        return floor / (floor - self.data.excess)

    def _scales(self, floor: float) -> Array:
        """The scales of the directions; 1 for functions of the span."""
        if self._span:
            return np.ones(len(self.data.excess_at_joining))
        return features_scaled(self.data.excess_at_joining, floor)

    def _renewed(self) -> RidgePath:
        """The path of all observations: those in the basis, and the newest as its border."""
        stats, accuracy = self.data.statistics, self.data.accuracy
        if not self._span:
            self.data.settle()
        if self._basis is None:
            scales = self._scales(self.data.floor)
            floor = self.data.floor if self.data.excess_at_joining.any() and not self._span else 0.0
            self._basis = Basis.of(stats, accuracy, scales, floor)
            self._border, self._outcomes = np.empty((len(scales), 0)), np.empty(0)
        basis, border = self._basis, self._basis.coordinates(self._border)
        lowest = 0.0 if self._span else self._floor_of(basis)
        lost = SHARE_OF_ERROR * self.data.dictionary.error
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


def _matrix(left: Array, right: Array) -> Array:
    return np.asarray(left.T @ right)
