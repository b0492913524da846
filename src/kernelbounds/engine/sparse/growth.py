"""The rule by which observations become inducing points.

A row joins when its residual, given the inducing points so far, is too large,

    r(x) > tolerance v(x) / (1 - m / most)^2,   v = alpha rho_alpha^2 / (alpha + rho_alpha^2),

where rho_alpha^2 = alpha phi' (A + alpha I)^-1 phi + r is the variance at x, at a ridge alpha like
those of CMM, and v the variance once x is observed. The half-widths of CMM are about sqrt(2 v) B
then, so that the ratio r / v is what the residual adds to the square of a width, relatively. Where
many rows are close to each other the limit is smaller (``EXCESS_LIMIT``). All of this is known
before the outcome.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import lapack

from kernelbounds import kernels
from kernelbounds.arrays import Array, column_dots
from kernelbounds.engine.sparse.dictionary import JITTER, RESIDUAL_MARGIN, Block, Dictionary, jitter
from kernelbounds.engine.sparse.statistics import Statistics

# Residuals below this many times the errors of features are not worth a point: they would not fall.
LEAST_RESIDUAL_OF_ERROR = 8.0
# R_t^2 - t sigma^2 is between one and eight times sqrt(t) sigma^2 (RBF and Matérn in three
# dimensions, 1000 to 64,000 observations, Hybrid and Single), and the best ridge of CMM is about
# that over B^2.
RIDGE_OF_ROOT = 4.0
# Where observations are close together, their residuals add up to rho. So a row joins with a
# smaller residual, by a factor of LARGEST_REDUCTION at most, if t rows like it would make rho more
# than EXCESS_LIMIT (sigma/B)^2. That holds while half of the room is free, since the residuals of
# rough kernels never become small.
EXCESS_LIMIT, LARGEST_REDUCTION = 0.03, 25.0
# rho_alpha^2 is computed anew when at least one in BLOCK_OF_COUNT observations is new.
BLOCK_OF_COUNT = 16


def typical_ridge(typical: float, count: int) -> float:
    """The ridges that matter after ``count`` observations; ``typical`` is (sigma/B)^2."""
    return typical * min(count, RIDGE_OF_ROOT * math.sqrt(count))


@dataclass(frozen=True)
class Joined:
    """The rows of a block that became inducing points, and the features they give the block."""

    rows: list[int]
    features: Array  # of all rows of the block, (k, n)

    @property
    def before(self) -> Array:
        """The features with zeros where a point joined after a row."""
        order = np.arange(self.features.shape[1])
        return np.where(order >= np.array(self.rows, dtype=int)[:, None], self.features, 0.0)


@dataclass(frozen=True)
class Growth:
    """The rule, with rho_alpha^2 as it was some observations ago."""

    tolerance: float
    most: int  # the largest number of inducing points
    ridge: float = 0.0  # alpha, in the inverse
    inverse: Array = field(default_factory=lambda: np.empty((0, 0)))  # (A + alpha I)^-1
    count: int = 0  # of the observations in the inverse
    mean_unknown: float = math.inf  # the mean of rho_alpha^2 over them

    def after(self, known: Statistics, typical: float) -> Growth:
        """The rule with rho_alpha^2 of today, if enough is new; ``typical`` is (sigma/B)^2."""
        if known.count < self.count + self.count // BLOCK_OF_COUNT:
            return self
        ridge = typical_ridge(typical, known.count)
        matrix = known.moments + ridge * np.eye(len(known.moments))
        factor, failed = lapack.dpotrf(matrix, lower=1)
        if failed:  # the ridge drowns in rounding errors
            return self
        inverse = np.tril(lapack.dpotri(factor, lower=1)[0])
        # sum_s phi_s' (A + alpha I)^-1 phi_s = tr A (A + alpha I)^-1
        seen = ridge * (len(inverse) - ridge * float(inverse.trace()))
        return replace(
            self,
            ridge=ridge,
            inverse=inverse + np.tril(inverse, -1).T,
            count=known.count,
            mean_unknown=(seen + known.residual) / known.count,
        )

    def unknown(self, block: Block) -> Array:
        """w^2 rho_alpha^2 of the rows, if nothing is known of features newer than the inverse."""
        size = len(self.inverse)
        old, new = block.phi[:size], block.phi[size:]
        shrunk = self.ridge * column_dots(old, self.inverse @ old)
        return np.asarray(shrunk + column_dots(new, new) + block.residuals)

    def left_unknown(self, block: Block) -> Array:
        """w^2 v of the rows: the variance once the row itself is known."""
        unknown = self.unknown(block)
        return np.asarray(self.ridge * unknown / np.maximum(self.ridge + unknown, 1e-300))

    def _limit(self, block: Block, size: int) -> Array:
        """The residual above which a row joins while all the room is free; (n,)."""
        most = self.tolerance * self.left_unknown(block)
        if not self.count or size > self.most / 2:
            return most
        typical = self.ridge / typical_ridge(1.0, self.count)
        enough = EXCESS_LIMIT * typical / self.count
        return np.asarray(np.clip(enough, most / LARGEST_REDUCTION, most))

    def joining(self, dictionary: Dictionary, block: Block) -> tuple[Dictionary, Joined]:
        """The dictionary with the rows that join, none of which depends on rows after it."""
        size, (points, w) = len(dictionary), (block.points, block.weights)
        rows: list[int] = []
        room = min(self.most - size, len(block))
        made = np.empty((max(room, 0), len(block)))
        if room <= 0:
            return dictionary, Joined(rows, made)
        least = LEAST_RESIDUAL_OF_ERROR * (JITTER + dictionary.least_residual) * block.prior
        # The limit rises as the dictionary fills, so that some room is left for later rows.
        limit = self._limit(block, size)
        rest, pivots = block.residuals, list[float]()
        while len(rows) < room:
            start = rows[-1] + 1 if rows else 0
            free = (self.most - size - len(rows)) / self.most
            most = np.maximum(limit / free**2, least)[start:]
            wanting = np.flatnonzero(rest[start:] > most)
            if not len(wanting):
                break
            row, done = start + int(wanting[0]), made[: len(rows)]
            values = kernels.cross(dictionary.kernel, points[row : row + 1], points)[0] * w
            values -= (block.phi[:, row] @ block.phi + done[:, row] @ done) / w[row]
            own = values[row] / w[row]
            pivots.append(np.sqrt(own + jitter(block.prior[row : row + 1] / w[row] ** 2)[0]))
            made[len(rows)] = values / pivots[-1]
            rest = rest - (1 + RESIDUAL_MARGIN) * made[len(rows)] ** 2
            rows.append(row)
        joined = Joined(rows, made[: len(rows)])
        if not rows:
            return dictionary, joined
        corner = np.tril((joined.features[:, rows] / w[rows]).T, -1) + np.diag(pivots)
        left = (block.phi[:, rows] / w[rows]).T
        return dictionary.extended(points[rows], left, corner), joined
