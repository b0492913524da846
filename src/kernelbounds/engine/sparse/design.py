"""Points that were fixed before the outcomes, from sums over the observations.

==============  =============================  ==================================================
code            symbol                         meaning
==============  =============================  ==================================================
``basis``       A = S Phi' Phi S = U D U'      with the factors S of features that joined late
                V = Phi S U D^-1/2             orthonormal columns, which depend on points alone
``floor``       c1 = (1 + s) rho               that of K', another one than for CMM
``error``       e >= |E|                       what A is wrong by for rounding errors
==============  =============================  ==================================================

For every vector c, |k(., x) - sum_i (V c)_i k(., x_i)|^2 <= k'(x,x) - 2 c'V'k'(x) + c'V'K'V c, with
K' as in :mod:`kernelbounds.engine.sparse`, V'k'(x) = D^1/2 U' S phi(x) and V'K'V = D + c1 I. So the
bounds for a fixed design are those of K' along V. Here V is known only up to what A is; with that,

    V'V <= I + e D^-1,    V'K'V <= D + c1 (I + e D^-1) + e (I + h D + D^-1/h)    for all h > 0,

see "Points fixed in advance" in ``docs/mathematics/bounds.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array
from kernelbounds.engine.eigenbasis import Eigenbasis
from kernelbounds.engine.path_query import PathQuery
from kernelbounds.engine.ridge_path import RidgePath, rounding
from kernelbounds.engine.sparse.basis import DROPPED, Basis
from kernelbounds.engine.sparse.dictionary import SHARE_OF_ERROR, Dictionary
from kernelbounds.engine.sparse.statistics import Statistics
from kernelbounds.functionals.targets import Functionals, Targets

# An estimate with weights w is wrong by up to B^2 (c1 |w|^2 + (1 + 1/s) r(x)) for what inducing
# points do not see, squared. With the mean residual and |w|^2 = m/t the best s rho is
# sqrt(rho t r / m); many points x have larger residuals, for which it is this many times that, and
# no less than this times rho, and times (sigma/B)^2. Measured with RBF and Matérn kernels, where
# widths are within 2 percent of the least.
SHARE, LEAST_SHARE, COSTS_NOTHING = 3.0, 0.3, 0.01


def floor_of(stats: Statistics, excess: float, typical: float) -> float:
    """c1 for these observations, with rho and (sigma/B)^2."""
    share = SHARE * math.sqrt(excess * stats.residual / max(len(stats.products), 1))
    return excess + max(share, LEAST_SHARE * excess, COSTS_NOTHING * typical)


@dataclass(frozen=True)
class Design:
    """The directions V, ready for any number of the leading ones."""

    basis: Basis
    path: RidgePath
    enlarging: float  # 1 + 1/s
    error: float

    @classmethod
    def of(
        cls, dictionary: Dictionary, stats: Statistics, scales: Array, floor: float, excess: float
    ) -> Design:
        """Of observations with these statistics; ``excess`` is rho."""
        accuracy, enlarging = dictionary.accuracy, floor / (floor - excess)
        basis = Basis.of(stats, accuracy, scales, floor)
        values, largest = basis.values, float(np.max(scales, initial=1.0)) ** 2
        error = rounding(stats.terms, accuracy) * largest * stats.size
        lost = SHARE_OF_ERROR * dictionary.error * stats.trace  # of features
        # h with the least sum of what is added.
        h = math.sqrt(float((1 / values).sum() / values.sum())) if len(values) else 1.0
        spectrum = values + (floor + lost) * (1 + error / values)
        spectrum += error * (1 + h * values + 1 / (h * values))
        # What Phi' y and Phi' k'(x) are wrong by, over the root of an eigenvalue.
        accuracy *= 4 + largest * math.sqrt(1 / (DROPPED * rounding(stats.terms, accuracy)))
        columns = np.broadcast_to(0.0, (stats.terms, len(values)))
        eigen = Eigenbasis(
            columns, spectrum, floor, basis.outcomes[:-1], floor, False, values, accuracy,
            len(values),
        )  # fmt: skip
        none = np.empty((0, len(values)))
        trace = float(stats.moments.diagonal() @ scales**2) + enlarging * stats.residual
        path = RidgePath(
            eigen, columns, spectrum, none, none.T, np.empty((0, 0)), np.empty(0),
            math.sqrt(stats.squares), trace,
        )  # fmt: skip
        return cls(basis, path, enlarging, error)

    def enlarged(self, counts: NDArray[np.intp]) -> Array:
        """At least |V'V|, where V are so many leading directions."""
        return np.asarray(1 + self.error / self.basis.values[-counts])

    def query(self, dictionary: Dictionary, path: RidgePath, points: Targets) -> PathQuery:
        """What is known of points along the leading directions that the path has."""
        phi, rest, _ = dictionary.features(points)
        scaled = self.basis.scales[:, None] * phi
        prior = np.einsum("mn,mn->n", scaled, scaled) + self.enlarging * rest
        sizes = prior
        if isinstance(points, Functionals):
            sizes = np.maximum(prior, points.magnitudes(dictionary.kernel))
        u = self.basis.of_features[len(self.basis.values) - path.rank :] @ phi
        return PathQuery(path, prior, u, np.empty((0, len(rest))), np.zeros(len(rest)), sizes)
