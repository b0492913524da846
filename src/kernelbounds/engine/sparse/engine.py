"""Kernel ridge regression from sums over the observations."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.path_query import PathQuery, Predictions
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.ridge_path import RidgePath, rounding
from kernelbounds.engine.sparse.basis import DROPPED, Basis
from kernelbounds.engine.sparse.block import Block
from kernelbounds.engine.sparse.dictionary import FEATURE_ERROR, Dictionary
from kernelbounds.engine.sparse.forecaster import Forecaster
from kernelbounds.engine.sparse.residuals import Chunk
from kernelbounds.engine.sparse.statistics import Statistics
from kernelbounds.engine.sparse.summary import Summary
from kernelbounds.errors import InputError
from kernelbounds.functionals import Targets

# Rows that are taken at a time, at least, at most, and relative to those before: forecasts are made
# from what was known before the first of them.
SMALLEST_BLOCK, LARGEST_BLOCK, BLOCK_OF_COUNT = 8, 1000, 16
# Newest observations that are not in the eigenbasis of Phi' Phi, which takes m^3 steps to renew.
BORDER = 48
# s in K', at least. Between 0.1 and 0.3 widths differ by less than half a percent (RBF and Matérn,
# 256 to 1500 inducing points, 4000 observations), and 1 is up to 4 per cent wider. Where rho is
# small s is larger, such that s rho is this times t (sigma/B)^2, to which ridges are similar.
SHARE, SHARE_OF_RIDGE = 0.2, 2e-4


@dataclass(frozen=True)
class Approximation:
    """What the inducing points do not see.

    Attributes
    ----------
    inducing : int
        Their number, m.
    floor : float
        (1 + s) rho: every ridge acts like one that is larger by this. Those that matter grow with
        the number of observations, like (R_t / B)^2.
    mean_residual : float
        k(x,x) - |phi(x)|^2, mean over the observations; what is unknown at a point like those
        besides is (1 + 1/s) times that. Compare with the square of a bound's half-width over B.
    """

    inducing: int
    floor: float
    mean_residual: float


class SparseEngine:
    """The four quantities from :class:`Statistics`, for the kernel matrix K'.

    ``ridge`` is that of the forecasts, and ``typical`` (sigma/B)^2, times t of which the ridges
    are that matter.
    """

    keeps_observations = False

    def __init__(self, kernel: Kernel, inducing: Array, ridge: float, typical: float) -> None:
        self.dictionary = Dictionary(kernel, inducing)
        self.data = Summary(kernel)
        self.data.accuracy = self.data.accuracy_in(inducing.shape[1])
        self.statistics = Statistics.none(len(inducing))
        self._typical = typical
        self._newest = Chunk.empty(len(inducing), inducing.shape[1])
        self._forecasts = Forecasts(np.empty(0), np.empty(0))
        self._forecaster = Forecaster.of(ridge, self.statistics)
        self._basis: Basis | None = None
        # Observations that are not in the basis: features (m, b) and outcomes (b,).
        self._border, self._outcomes = np.empty((len(inducing), 0)), np.empty(0)
        self._path: RidgePath | None = None

    def snapshot(self) -> SparseEngine:
        """Another engine on the observations so far."""
        return copy.copy(self)  # appends replace what they change

    @property
    def dim(self) -> int | None:
        """Of the points."""
        return int(self.dictionary.inducing.shape[1])

    def whole_blocks(self, count: int) -> int:
        """How many of so many new observations are in blocks that are complete.

        Appended up to there, and then the others with those after them, they are in the same blocks
        as all in one go.
        """
        taken = 0
        while taken + (size := size_of_block(self.statistics.count + taken)) <= count:
            taken += size
        return taken

    def append(self, points: Array, outcomes: Outcomes | Array) -> None:
        """Add observations, a block at a time; on an error nothing is added."""
        if points.shape[1] != self.dictionary.inducing.shape[1]:
            raise InputError(
                f"points have {points.shape[1]} coordinates, and the inducing points "
                f"{self.dictionary.inducing.shape[1]}."
            )
        known = outcomes if isinstance(outcomes, Outcomes) else Outcomes.plain(outcomes)
        total, newest, forecaster, made = self.statistics, self._newest, self._forecaster, []
        border, stop = [(self._border, self._outcomes)], 0
        while stop < len(points):
            start, stop = stop, min(stop + size_of_block(total.count), len(points))
            rows = Outcomes(*(part[start:stop] for part in known))
            block = Block.of(self.dictionary, points[start:stop], rows, self.data.accuracy)
            made.append(forecaster.forecasts(block))
            total = total + Statistics.of(block)
            forecaster = forecaster.after(block, total)
            border.append((block.phi, block.outcomes))
            newest = newest.with_more(block)
            if newest.full:
                newest = newest.settle(self.data.kernel, self._typical)
                total = replace(total, excess=total.excess + newest.largest)
                newest = Chunk.empty(len(self.dictionary), points.shape[1])
        self.statistics, self._newest, self._path = total, newest, None
        self._forecaster = forecaster
        if sum(len(part) for _, part in border) > BORDER:
            self._basis = None
        else:
            self._border = np.concatenate([part for part, _ in border], axis=1)
            self._outcomes = np.concatenate([part for _, part in border])
        together = zip(self._forecasts, *made, strict=True)
        self._forecasts = Forecasts(*map(np.concatenate, together))
        self.data = self.data.of(total, points.shape[1])

    def approximation(self) -> Approximation:
        """How far K' is from K."""
        stats = self.statistics
        mean = stats.residual / max(stats.squared_weights, 1e-300)
        return Approximation(len(self.dictionary), self._floor, mean)

    @property
    def _excess(self) -> float:
        """rho."""
        return self.statistics.excess + self._newest.largest

    @property
    def _share(self) -> float:
        """s."""
        usual = SHARE_OF_RIDGE * self.statistics.count * self._typical
        return max(SHARE, usual / max(self._excess, 1e-300))

    @property
    def _floor(self) -> float:
        """(1 + s) rho."""
        return (1 + self._share) * self._excess

    def forecasts_since(self, start: int, ridge: float, least: float) -> tuple[Forecasts, float]:
        """Those made of the outcomes from number ``start`` on, and their ridge."""
        return Forecasts(*(part[start:] for part in self._forecasts)), self._forecaster.ridge

    def largest_forecast_ridge(self, ridge: float, least: float) -> float:
        """At which forecasts are made."""
        return self._forecaster.ridge

    def energy_and_log_det(self, ridge: float) -> tuple[float, float]:
        """E and ln det(I + A/alpha) of the features alone, N(0, c Phi Phi'), both rounded up.

        E = |y|^2 - b' (A + alpha I)^-1 b.
        """
        stats = self.statistics
        factor = np.linalg.cholesky(stats.moments + ridge * np.eye(len(stats.moments)))
        solved = solve_triangular(factor, stats.products, lower=True, check_finite=False)
        error = rounding(stats.count, self.data.accuracy)
        lost = error * (1 + stats.trace / ridge)
        energy = stats.squares - float(solved @ solved) + 8 * lost * stats.squares
        log_det = 2 * float(np.log(factor.diagonal()).sum()) - len(factor) * math.log(ridge)
        return energy, log_det + len(factor) * lost

    def predict(self, points: Targets, ridges: Array) -> Predictions:
        """Mean, variance and energy at points and ridges, rounded so that bounds get looser."""
        return self.query(points).predict(ridges)

    def path(self, finest: float = 0.0, finest_per_point: float = 0.0) -> RidgePath:
        """Energies at all ridges."""
        if self._path is None:
            self._path = self._renewed()
        return self._path

    def query(
        self, points: Targets, finest: float = 0.0, finest_per_point: float = 0.0
    ) -> PathQuery:
        """Means, variances and energies at ``points``."""
        path = self.path()
        assert self._basis is not None
        phi, rest, _ = self.dictionary.features(points, self.data.accuracy)
        # The direction of what is left of the outcomes has nothing of k'(x).
        u = np.concatenate([self._basis.of_features @ phi, np.zeros((1, len(rest)))])
        prior = np.einsum("mn,mn->n", phi, phi) + (1 + 1 / self._share) * rest
        return PathQuery(path, prior, u, self._border.T @ phi, np.zeros(len(rest)))

    def solve(self, vectors: Array, ridges: Array) -> Array:
        """Not known: vectors have an entry for each observation."""
        raise InputError("gradients, and maxima over boxes, are not known with a sparse engine.")

    query_along = solve

    def _renewed(self) -> RidgePath:
        """The path of all observations: those in the basis, and the newest as its border."""
        self._newest = self._newest.settle(self.data.kernel, self._typical)
        if self._basis is None:
            self._basis = Basis.of(self.statistics, self.data.accuracy)
            self._border, self._outcomes = self._border[:, :0], self._outcomes[:0]
        stats, basis, border = self.statistics, self._basis, self._border
        accuracy = self.data.accuracy
        slack = (rounding(stats.count, accuracy) + FEATURE_ERROR) * stats.trace
        floor = self._floor + slack
        spectrum = np.append(basis.values + floor, floor)
        # The errors of z are those of b over the root of an eigenvalue.
        accuracy *= 4 + math.sqrt(1 / (DROPPED * rounding(stats.count, accuracy)))
        columns = np.broadcast_to(0.0, (basis.count, len(spectrum)))
        along = np.append(basis.of_features @ border, np.zeros((1, border.shape[1])), axis=0)
        eigen = Eigenbasis(
            columns, spectrum, floor, basis.outcomes, slack, False, np.empty(0), accuracy
        )
        corner = border.T @ border + self._floor * np.eye(border.shape[1])
        return RidgePath(
            eigen, columns, spectrum, along.T, along, corner, self._outcomes,
            float(np.sqrt(stats.squares)), stats.trace,
        )  # fmt: skip


def size_of_block(count: int) -> int:
    """How many of the next observations are taken together."""
    return min(max(count // BLOCK_OF_COUNT, SMALLEST_BLOCK), LARGEST_BLOCK)
