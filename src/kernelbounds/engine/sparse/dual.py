"""The dual of a bound in the features of inducing points, and the function that attains it.

=============  ================================  ================================================
code           symbol                            meaning
=============  ================================  ================================================
``ridges``     a = alpha + c1                    with the floor c1 of K'
``scales``     tau                               times the sign of the bound, where it is signed
``features``   S phi(x)                          with the factors S of features that joined late
``attaining``  theta = (A + a I)^-1 (a S phi     where A = S Phi' Phi S and b = S Phi' y
               + tau b)
``slopes``     g = S phi - (A theta - tau b)/a   half the derivative of the dual by S phi
=============  ================================  ================================================

For every theta, k'(x,x) - p'(K' + alpha I)^-1 p with p = k'_t(x) - tau y is at most

    |g|^2 + (theta' A theta - tau^2 |y|^2) / a + (1 + 1/s) r(x,x),

so that errors of theta only loosen it. See ``docs/mathematics/boxes.md``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from kernelbounds.arrays import Array, column_dots
from kernelbounds.engine.ridge_path import dot_error
from kernelbounds.engine.sparse.dictionary import RESIDUAL_MARGIN, Dictionary
from kernelbounds.engine.sparse.statistics import Statistics


class DualMaximiser(NamedTuple):
    """The dual of m targets, at a ridge and a scale for each, and the function that attains it.

    That function, times the scale, is ``own`` times the target's representer less
    sum_j ``pulls``_j k(., z_j), for n centres z_j: inducing points, or all observations.
    """

    unexplained: Array  # k(x,x) - p'(K + alpha I)^-1 p, rounded up, (m,)
    squared_norm: Array  # the squared norm of that function, rounded up, (m,)
    own: float
    pulls: Array  # (m, n)
    curvature: float  # the dual, times the scale, has second derivatives of this at most
    pulls_error: Array  # how far errors of the pulls move that function, in norm, (m,)


class SparseDual(NamedTuple):
    """The dual of m targets at any ridges and scales."""

    dictionary: Dictionary
    statistics: Statistics
    factors: Array  # S, (k,)
    values: Array  # A = vectors diag(values) vectors'
    vectors: Array
    floor: float  # c1
    enlarging: float  # 1 + 1/s
    features: Array  # S phi, (k, m)
    residuals: Array  # rounded up, (m,)
    magnitudes: Array  # see :meth:`Dictionary.features`

    @property
    def error(self) -> float:
        """The error of sums over observations and over features, relative to their terms."""
        return dot_error(self.statistics.terms + len(self.factors), self.dictionary.accuracy)

    def variance(self, ridges: Array) -> Array:
        """The variance at a ridge for each target, (m,)."""
        a, along = ridges + self.floor, self.vectors.T @ self.features
        shrunk = column_dots(along, along * (a / (self.values[:, None] + a)))
        return shrunk + self.enlarging * self.residuals

    def at(self, ridges: Array, signed_scales: Array, moved: Array) -> DualMaximiser:
        """The dual at a ridge and a scale for each target, valid as far as it is ``moved``."""
        stats, tau, a, phi = self.statistics, signed_scales, ridges + self.floor, self.features
        b = self.factors * stats.products
        aims = a * phi + np.multiply.outer(b, tau)
        theta = self.vectors @ ((self.vectors.T @ aims) / (self.values[:, None] + a))
        moments = self.factors[:, None] * (stats.moments @ (self.factors[:, None] * theta))
        pulled = (moments - np.multiply.outer(b, tau)) / a
        g = phi - pulled
        value = column_dots(g, g) + (column_dots(theta, moments) - tau**2 * stats.squares) / a

        # The errors of sums over observations, and of those over features.
        error = self.error
        trace = float(np.max(self.factors, initial=1.0)) ** 2 * stats.trace
        lengths = np.sqrt(column_dots(theta, theta)), np.sqrt(column_dots(g, g))
        both = np.sqrt(trace) * lengths[0] + np.abs(tau) * np.sqrt(stats.squares)
        of_pulled = error * (
            np.sqrt(trace) * both / a + lengths[1] + np.sqrt(column_dots(phi, phi))
        )
        lost = 2 * lengths[1] * of_pulled + of_pulled**2 + error * both**2 / a
        # Residuals are enlarged for the errors of features, which are relative to k(x,x).
        more = self.dictionary.least_residual * (2 * np.sqrt(self.magnitudes) + moved) * moved
        unexplained = value + 2 * lost + self.enlarging * (self.residuals + more)

        own = self.enlarging * (1 + RESIDUAL_MARGIN)
        slopes = self.factors[:, None] * g
        rest = slopes - own / self.factors[:, None] * phi
        slip = np.sqrt(self.dictionary.error * self.magnitudes)
        squared = column_dots(slopes, slopes) + own**2 * self.residuals
        curvature = max(own, float(np.max(self.factors, initial=1.0)) ** 2)
        squared += 2 * own * np.sqrt(column_dots(rest, rest)) * slip + 4 * curvature * lost
        pulls = -solve_triangular(self.dictionary.factor.T, rest, check_finite=False)
        # The computed pulls solve exactly a system with a slightly different factor. Its rows are
        # nearly as long as those of the factor, sqrt(k(z,z)).
        lengths_of_rows = np.linalg.norm(self.dictionary.factor, axis=1)
        lost_pulls = self.error * (lengths_of_rows @ np.abs(pulls))
        return DualMaximiser(unexplained, squared, own, pulls.T, curvature, lost_pulls)
