"""Kernel ridge regression from statistics of fixed size, whatever the number of observations.

==============  ===========================  ====================================================
code            symbol                       meaning
==============  ===========================  ====================================================
``inducing``    z_1 .. z_m                   points, chosen without a look at outcomes, (m, d)
``factor``      L, L L' = K_mm + jitter I    lower triangular, (m, m)
``features``    phi(x) = L^-1 k_m(x)         rows of Phi, (n, m); phi(x) . phi(x) <= k(x,x)
``residuals``   r(x) = k(x,x) - |phi(x)|^2   what the inducing points do not see, (n,)
``moments``     A = Phi' Phi                 (m, m), summed over the observations
``products``    b = Phi' y                   (m,)
``excess``      rho >= lambda_max(K - Phi Phi')
==============  ===========================  ====================================================

With R = K - Phi Phi' and any s > 0, the matrix of data and one more point x is at most that of

    K' = Phi Phi' + (1 + s) rho I,   k'(x) = Phi phi(x),   k'(x,x) = |phi(x)|^2 + (1 + 1/s) r(x).

The difference is [[(1 + s) rho I - R, -R_x], [., r(x) / s]], where R_x is the residual of k_t(x)
and |R_x|^2 <= rho r(x), because residuals are a kernel of their own; so it is positive
semi-definite. A larger matrix belongs to a larger function space, in which no function has a larger
norm: bounds from K' are valid, and only looser.

K' is Phi Phi' on the span of Phi, and constant elsewhere. With A = U D U' that span has the basis
Q = Phi U D^-1/2, in which k'(x) is D^1/2 U' phi(x) and the outcomes are D^-1/2 U' b; what is left
of the outcomes is one more direction. So nothing is needed but sums over the observations.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.observations import Outcomes
from kernelbounds.engine.path_query import PathQuery, Predictions
from kernelbounds.engine.ridge_fit import Forecasts
from kernelbounds.engine.ridge_path import RidgePath, rounding
from kernelbounds.errors import InputError
from kernelbounds.functionals import Functionals, Targets, squared_norms

# Added to the diagonal of K_mm, relative to its largest entry. The factor then has a condition
# number of at most a few times 1e5, and features errors of 1e-8 at most, relatively; the residuals
# that it adds are of its own size.
JITTER = 1e-8
# What is added to residuals, relative to k(x,x), for those errors.
FEATURE_ERROR = 2e-8
# Rows that are taken at a time, at least, at most, and relative to those before: forecasts are made
# from what was known before the first of them.
SMALLEST_BLOCK, LARGEST_BLOCK, BLOCK_OF_COUNT = 8, 1000, 16
# Observations whose residuals are bounded together. The bounds of chunks add up, and so are the
# tighter the larger the chunks, which cost the cube of this.
CHUNK = 1000
# Newest observations that are not in the eigenbasis of Phi' Phi, which takes m^3 steps to renew.
BORDER = 48
# The inverse for the forecasts is computed anew after so many observations, or m, and updated in
# between.
UPDATES = 256
# They are bounded anew when this part of the chunk, or more, is new.
SETTLED_AGAIN = 8
# s above, at least. Between 0.1 and 0.3 widths differ by less than half a percent (RBF and Matérn,
# 256 to 1500 inducing points, 4000 observations), and 1 is up to 4 per cent wider. Where rho is
# small s is larger, such that s rho is this times t (sigma/B)^2, to which ridges are similar.
SHARE, SHARE_OF_RIDGE = 0.2, 2e-4
# Residuals whose trace is below this, relative to the number of observations times (sigma/B)^2, are
# bounded by it: to bound their largest eigenvalue would take most of the time.
NEGLIGIBLE = 1e-3
# Directions of Phi' Phi that are smaller than this times the rounding errors of its trace are left
# out, as if they were known not to tell anything.
DROPPED = 1e4


@dataclass(frozen=True)
class Statistics:
    """Sums over observations; those of two sets of observations add up."""

    moments: Array
    products: Array
    squares: float  # |y|^2
    count: int
    trace: float  # of K
    residual: float  # the trace of R
    excess: float  # rho, without the newest observations
    squared_weights: float

    def __add__(self, other: Statistics) -> Statistics:
        """Of both; lambda_max of a matrix is at most the sum of those of its diagonal blocks."""
        return Statistics(
            self.moments + other.moments,
            self.products + other.products,
            self.squares + other.squares,
            self.count + other.count,
            self.trace + other.trace,
            self.residual + other.residual,
            self.excess + other.excess,
            self.squared_weights + other.squared_weights,
        )

    @classmethod
    def none(cls, size: int) -> Statistics:
        """Of no observations."""
        return cls(np.zeros((size, size)), np.zeros(size), 0.0, 0, 0.0, 0.0, 0.0, 0.0)


class Dictionary:
    """Inducing points and the features that they make."""

    def __init__(self, kernel: Kernel, inducing: Array) -> None:
        self.kernel, self.inducing = kernel, inducing
        gram = kernels.cross(kernel, inducing, inducing)
        gram = 0.5 * (gram + gram.T)
        gram.flat[:: len(gram) + 1] += JITTER * float(gram.diagonal().max())
        try:
            self.factor = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            raise InputError(
                f"{kernel} is not a kernel: its matrix on the inducing points is not positive "
                "semi-definite."
            ) from None

    def __len__(self) -> int:
        return len(self.inducing)

    def features(self, targets: Targets, accuracy: float) -> tuple[Array, Array, Array]:
        """phi (m, n), residuals rounded up (n,) and k(x,x) (n,), of points or other functionals."""
        size = None
        if isinstance(targets, Functionals):
            vectors = targets.vectors(self.kernel, self.inducing)
            size = targets.magnitudes(self.kernel)
        else:
            vectors = kernels.vectors(self.kernel, targets, self.inducing)
        prior = squared_norms(self.kernel, targets, accuracy)
        phi = solve_triangular(self.factor, vectors.T, lower=True, check_finite=False)
        rest = np.maximum(prior - np.einsum("mn,mn->n", phi, phi), 0.0)
        return phi, rest + FEATURE_ERROR * (prior if size is None else size), prior


class Summary:
    """What a sparse engine knows of its observations one by one: nothing but their number."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.count, self.trace = kernel, 0, 0.0
        self.accuracy = self.first_accuracy = EPS
        self.dim: int | None = None
        self.squared_weights = 0.0

    def accuracy_in(self, dim: int) -> float:
        """How precise the kernel's values are."""
        error = kernels.evaluation_error(self.kernel, dim)
        if error is None:
            raise InputError(
                f"a sparse engine needs a kernel of scikit-learn's, whose precision is known, got "
                f"{self.kernel}."
            )
        return EPS * max(1.0, error)

    def of(self, total: Statistics, dim: int) -> Summary:
        """The same of more observations."""
        other = copy.copy(self)
        other.count, other.trace, other.dim = total.count, total.trace, dim
        other.squared_weights = total.squared_weights
        return other

    def __getattr__(self, name: str) -> Array:
        if name in ("points", "outcomes", "observed", "weights", "lower", "gram"):
            raise InputError(f"a sparse engine does not keep the {name} of its observations.")
        raise AttributeError(name)


@dataclass(frozen=True)
class Chunk:
    """The newest observations, whose residuals are bounded together.

    Of the first ``settled`` they are bounded by their largest eigenvalue, ``excess``, and of the
    others by the trace.
    """

    points: Array
    phi: Array
    weights: Array
    residuals: Array
    settled: int = 0
    excess: float = 0.0

    @classmethod
    def empty(cls, size: int, dim: int) -> Chunk:
        """Nothing."""
        return cls(np.empty((0, dim)), np.empty((size, 0)), np.empty(0), np.empty(0))

    def with_more(self, points: Array, phi: Array, weights: Array, residuals: Array) -> Chunk:
        """And some more."""
        return replace(
            self,
            points=np.concatenate([self.points, points]),
            phi=np.concatenate([self.phi, phi], axis=1),
            weights=np.append(self.weights, weights),
            residuals=np.append(self.residuals, residuals),
        )

    @property
    def largest(self) -> float:
        """At least the largest eigenvalue of the residuals."""
        return self.excess + float(self.residuals[self.settled :].sum())

    def settle(self, kernel: Kernel, small: float) -> Chunk:
        """The same with all settled, if that is worth its time: the trace is not small enough.

        By norms that need no iteration: the largest sum of a row, |R|_infinity, and |R^2|_F^1/2.
        """
        count = len(self.weights)
        left = float(self.residuals[self.settled :].sum())
        if left <= small * count or count - self.settled < count // SETTLED_AGAIN:
            return self
        gram = kernels.cross(kernel, self.points, self.points)
        gram *= np.multiply.outer(self.weights, self.weights)
        error = FEATURE_ERROR * float(gram.trace())
        rest = gram - self.phi.T @ self.phi
        rest = 0.5 * (rest + rest.T)
        rows = float(np.abs(rest).sum(axis=1).max())
        square = float(np.sqrt(np.linalg.norm(rest @ rest)))
        return replace(self, settled=count, excess=min(self.largest, min(rows, square) + error))


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
    """The four quantities from :class:`Statistics`, for the kernel matrix K' above."""

    keeps_observations = False

    def __init__(self, kernel: Kernel, inducing: Array, ridge: float, small: float) -> None:
        self.dictionary = Dictionary(kernel, inducing)
        self.data = Summary(kernel)
        self.data.accuracy = self.data.accuracy_in(inducing.shape[1])
        self.statistics = Statistics.none(len(inducing))
        self.ridge = ridge  # of the forecasts
        self._small = small  # (sigma/B)^2
        self._newest = Chunk.empty(len(inducing), inducing.shape[1])
        self._forecasts = Forecasts(np.empty(0), np.empty(0))
        self._inverse = np.eye(len(inducing)) / ridge  # (A + ridge I)^-1, for them
        self._updated = 0  # observations since it was computed anew
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
        while taken + (size := _size_of_block(self.statistics.count + taken)) <= count:
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
        total, newest, made, stop = self.statistics, self._newest, [self._forecasts], 0
        inverse, updated = self._inverse, self._updated
        added: list[tuple[Array, Array]] = [(self._border, self._outcomes)]
        while stop < len(points):
            start, stop = stop, min(stop + _size_of_block(total.count), len(points))
            x, w = points[start:stop], known.weights[start:stop]
            y = known.centred[start:stop] * w
            phi, rest, prior = self.dictionary.features(x, self.data.accuracy)
            phi, rest, prior = phi * w, rest * w**2, prior * w**2
            made.append(self._forecast(inverse, total.products, phi, rest, y))
            added.append((phi, y))
            total = total + Statistics(
                phi @ phi.T, phi @ y, float(y @ y), len(y), float(prior.sum()),
                float(rest.sum()), 0.0, float(w @ w),
            )  # fmt: skip
            inverse, updated = self._inverse_after(inverse, updated, total, phi)
            newest = newest.with_more(x, phi, w, rest)
            if len(newest.weights) >= CHUNK:
                newest = newest.settle(self.data.kernel, NEGLIGIBLE * self._small)
                total = replace(total, excess=total.excess + newest.largest)
                newest = Chunk.empty(len(phi), x.shape[1])
        self.statistics, self._newest, self._path = total, newest, None
        self._inverse, self._updated = inverse, updated
        if sum(len(part) for _, part in added) > BORDER:
            self._basis = None
        else:
            self._border = np.concatenate([part for part, _ in added], axis=1)
            self._outcomes = np.concatenate([part for _, part in added])
        self._forecasts = Forecasts(*map(np.concatenate, zip(*made, strict=True)))
        self.data = self.data.of(total, points.shape[1])

    def _forecast(
        self, inverse: Array, products: Array, phi: Array, rest: Array, y: Array
    ) -> Forecasts:
        """Of a block of outcomes from those before it, by ridge regression on the features.

        Means and variances may be anything that is known before the outcome, so that rounding
        errors do no harm; but y - m is to be its difference from y.
        """
        solved = inverse @ phi
        mean = products @ solved
        variance = self.ridge * np.maximum(np.einsum("mn,mn->n", phi, solved), 0.0) + rest
        return Forecasts(np.abs(y - mean) + 8 * EPS * np.abs(y), variance)

    def _inverse_after(
        self, inverse: Array, updated: int, total: Statistics, phi: Array
    ) -> tuple[Array, int]:
        """(A + ridge I)^-1 with a block more: of few observations by Woodbury's formula."""
        size, count = phi.shape
        if updated + count > max(size, UPDATES):
            matrix = total.moments + self.ridge * np.eye(size)
            return np.asarray(np.linalg.inv(matrix), dtype=float), 0
        solved = inverse @ phi
        inner = np.eye(count) + phi.T @ solved
        lost = solved @ np.linalg.solve(inner, solved.T)
        return np.asarray(inverse - lost, dtype=float), updated + count

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
        usual = SHARE_OF_RIDGE * self.statistics.count * self._small
        return max(SHARE, usual / max(self._excess, 1e-300))

    @property
    def _floor(self) -> float:
        """(1 + s) rho."""
        return (1 + self._share) * self._excess

    def forecasts_since(self, start: int, ridge: float, least: float) -> tuple[Forecasts, float]:
        """Those made of the outcomes from number ``start`` on, and their ridge."""
        return Forecasts(*(part[start:] for part in self._forecasts)), self.ridge

    def largest_forecast_ridge(self, ridge: float, least: float) -> float:
        """At which forecasts are made."""
        return self.ridge

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
        self._newest = self._newest.settle(self.data.kernel, NEGLIGIBLE * self._small)
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


@dataclass(frozen=True)
class Basis:
    """The span of Phi and of the outcomes, of the first n observations."""

    values: Array  # D, (r,)
    of_features: Array  # D^1/2 U', (r, m)
    outcomes: Array  # D^-1/2 U' b, and the length of what is left of them, (r + 1,)
    count: int

    @classmethod
    def of(cls, stats: Statistics, accuracy: float) -> Basis:
        """From their statistics."""
        values, vectors = np.linalg.eigh(stats.moments)
        kept = values > DROPPED * rounding(stats.count, accuracy) * stats.trace
        values, vectors = values[kept], vectors[:, kept]
        z = (vectors.T @ stats.products) / np.sqrt(values)
        rest = math.sqrt(max(stats.squares - float(z @ z), 0.0))
        return cls(values, np.sqrt(values)[:, None] * vectors.T, np.append(z, rest), stats.count)


def _size_of_block(count: int) -> int:
    """How many of the next observations are taken together."""
    return min(max(count // BLOCK_OF_COUNT, SMALLEST_BLOCK), LARGEST_BLOCK)
