"""Functions near the data along the leading directions of a fixed design.

===============  ==============  ==========================================================
code             symbol          meaning
===============  ==============  ==========================================================
``count``        p               the number of directions
``path.eigen``   V_p             orthonormal, (t, p): the leading eigenvectors of K_t
``radius``       r_p             |V_p' eps| <= r_p with probability at least 1 - delta
``relative``     r_p^2/sigma^2   which depends on p, delta and the kind of noise alone
===============  ==============  ==========================================================

The points were fixed before the outcomes, and V_p is a function of the points, so that V_p' eps
has p coordinates however many observations there are. Let the noise be sigma-sub-Gaussian given all
points, each eps_s given those before it, so that E exp(a'eps) <= exp(sigma^2 |a|^2 / 2) for each
fixed vector a. With a standard Gaussian vector g in R^p that is independent of it,

    E exp(lambda |V_p' eps|^2 / (2 sigma^2)) = E exp(sqrt(lambda) g'V_p' eps / sigma)
        <= E exp(lambda |V_p g|^2 / 2) = (1 - lambda)^(-p/2),          0 < lambda < 1,

and by Markov's inequality |V_p' eps|^2 <= sigma^2 (2 ln(1/delta) - p ln(1 - lambda)) / lambda with
probability at least 1 - delta. The lambda that makes it smallest depends on p and delta alone. With
-ln(1 - lambda) <= lambda + lambda^2 / (2 (1 - lambda)) and 1/lambda = 1 + sqrt(p / (4 L)) it is
sigma^2 (p + 2 sqrt(p L) + 2 L), L = ln(1/delta), the bound of Hsu, Kakade and Zhang (2012). Of
independent Gaussian noise with standard deviations of at most sigma, |V_p' eps|^2 / sigma^2 is
stochastically at most chi-squared with p degrees of freedom: the covariance of V_p' eps is at most
sigma^2 I, so that it is a sum of p independent squares with weights of at most 1.

All of R^t is the case p = t, V_p = I: a bound on the noise energy at one time, which is less than
R_t where nothing can be predicted, and whose set is CMM's.

Then max f(x) subject to |V_p'(f_t - y_t)| <= r_p and ||f|| <= B has the dual of CMM, restricted to
p directions: with u = V_p' k_t(x) and z = V_p' y_t,

    mean  sum_i u_i z_i / (lambda_i + alpha),   variance  k(x,x) - sum_i u_i^2 / (lambda_i + alpha),
    energy  alpha sum_i z_i^2 / (lambda_i + alpha).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds.dual_function import DualFunction
from kernelbounds.confidence.assumptions import Assumptions
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.diagnosis import least_norm, least_squared_radius
from kernelbounds.confidence.radius import Radius
from kernelbounds.engine import RidgePath, minimise_over_ridge
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.functionals.targets import Targets
from kernelbounds.noise import Bounded

# Numbers of directions are compared at this many ridges, from this multiple of (sigma / B)^2 to
# that multiple of (r_t / B)^2.
RIDGES_COMPARED, LEAST_RIDGE, LARGEST_RIDGE = 48, 0.01, 100.0
# A ridge of this many times the largest eigenvalue acts as if it were infinite.
INFINITE_RIDGE = 1e10
# Newton's method starts on the side from which each step doubles the digits.
NEWTON_STEPS = 12
# The relative error of scipy's quantiles is below 1e-12.
QUANTILE_ERROR = 1e-11


def relative_radii(counts: Array, delta: float, noise: str) -> Array:
    """r_p^2 / sigma^2, rounded up, for numbers p of directions."""
    if noise == "Gaussian":
        return np.asarray(chi2.isf(delta, counts) * (1 + QUANTILE_ERROR))
    level = -2 * math.log(delta)
    # At the best lambda, s = 1 / (1 - lambda) solves s - 1 - ln s = 2 ln(1/delta) / p. Newton's
    # method starts above the solution, and any lambda is valid.
    excess = level / counts
    s = 1 + excess + np.sqrt(2 * excess)
    for _ in range(NEWTON_STEPS):
        s = np.maximum(s - (s - 1 - np.log(s) - excess) / np.maximum(1 - 1 / s, 1e-8), 1 + 1e-8)
    rate = 1 - 1 / s
    return np.asarray((level - counts * np.log1p(-rate)) / rate * (1 + 16 * EPS))


@dataclass(frozen=True)
class Projection:
    """The functions of norm at most B with |V_p'(f_t - y_t)| <= r_p."""

    known: ConfidenceSet
    path: RidgePath
    relative: float  # r_p^2 / sigma^2
    whole: bool = False  # whether p = t and V_p = I

    @classmethod
    def of(
        cls, known: ConfidenceSet, delta: float, noise: str, count: int | None = None
    ) -> Projection:
        """The set with ``count`` directions, or those that promise the narrowest bounds."""
        directions = known.engine.directions()
        path = directions.path
        counts = np.arange(1, path.eigen.eigenvectors + 1)
        relative = relative_radii(counts.astype(float), delta, noise)
        relative *= directions.squared_norms(counts)
        if count is None:
            count = promising_count(known, path, relative)
        return cls(known, path.leading(count), float(relative[count - 1]))

    @classmethod
    def of_energy(cls, known: ConfidenceSet, delta: float, noise: str) -> Projection:
        """The set with |f_t - y_t| <= r_t, the noise energy of one time; also where K is singular.

        No direction is left out, so data refute noise scales that are too small.
        """
        relative = float(relative_radii(np.array([float(known.count)]), delta, noise)[0])
        if isinstance(known.stated.noise, Bounded):  # Its energy is bounded for certain.
            relative = min(relative, known.count * (1 + 4 * EPS))
        return cls(known, known.engine.path(), relative, whole=True)

    @property
    def count(self) -> int:
        """The number of directions, p."""
        return self.known.count if self.whole else self.path.rank

    @property
    def radius(self) -> Radius:
        """The radius r_p, with B."""
        a = self.known.assumptions
        return Radius(0.0, a.noise_scale**2 * self.relative, a.norm_bound)

    def extremes(self, points: Targets, signs: Sequence[int]) -> Array:
        """The largest values of s f at points, or of functionals; (signs, m)."""
        engine = self.known.engine
        query = engine.query(points) if self.whole else engine.directions().query(self.path, points)
        dual = DualFunction(self.radius, self.refute_if_empty, count=self.count)
        values = minimise_over_ridge(query, dual, np.array(signs, dtype=float))[0]
        # What overflows is not below the trivial bound.
        values[np.isnan(values)] = np.inf
        return values

    def half_widths(self, points: Targets) -> Array:
        """An upper bound on (upper - lower) / 2, whatever the outcomes, from the ridges tried.

        R~_alpha^2 is at most r_p^2 + alpha B^2, of which outcomes only take away; (m,).
        """
        ridges = _ridges(self.known.assumptions, self.path, self.radius.squared)
        variance = self.known.engine.directions().query(self.path, points).predict(ridges).variance
        factors = np.sqrt(self.radius.joint_bound(ridges))
        return np.asarray((factors[:, None] * np.sqrt(variance)).min(axis=0))

    @property
    def norm_lower_bound(self) -> float:
        """The smallest B with which the set is not empty."""
        scatter = self.known.radius_engine.data.scatter if self.whole else 0.0
        return least_norm(self.path, self.radius.squared, scatter)

    def refute_if_empty(self) -> None:
        """Raise :class:`EmptyConfidenceSetError` when the set is empty."""
        a, least = self.known.assumptions, self.norm_lower_bound
        if least > a.norm_bound:
            noise = math.sqrt(least_squared_radius(self.path, a.norm_bound) / self.relative)
            has_parts = self.known.evidence.parts is not None
            noise = noise if noise <= a.noise.largest else math.inf
            raise EmptyConfidenceSetError(
                a.norm_bound, a.noise_scale, least, noise, has_parts, a.noise.in_words
            )


def promising_count(known: ConfidenceSet, path: RidgePath, relative: Array) -> int:
    """The number of directions with the least mean squared width at the data, judged by the points.

    At a ridge alpha the squared half-width is at most (r_p^2 / alpha + B^2) times the variance, the
    difference being what outcomes tell; of the variances, the mean over the data is

        (tr K - sum_{i<=p} lambda_i^2 / (lambda_i + alpha)) / t.

    This looks at points, weights, B and sigma, and not at outcomes, so that p is fixed as they are.
    B and sigma are those that were assumed at first, also where others are believed, so that sets
    for several B have the same p and are nested.
    """
    a, eigen = known.chosen_for, path.eigen
    size = eigen.eigenvectors
    values, levels = eigen.eigenvalues[-size:][::-1], eigen.spectrum[:size][::-1]  # descending
    squared = a.noise_scale**2 * relative
    ridges = _ridges(a, path, float(squared[-1]))[:, None]
    variances = path.trace - np.cumsum(values**2 / (levels + ridges), axis=1)
    widths = (squared / ridges + a.norm_bound**2) * np.maximum(variances, 0.0)
    return 1 + int(widths.min(axis=0).argmin())


def _ridges(a: Assumptions, path: RidgePath, squared: float) -> Array:
    """Ridges from far too small to far too large for squared radii up to ``squared``."""
    eigen = path.eigen
    ends = np.array([LEAST_RIDGE * a.noise_scale**2, LARGEST_RIDGE * squared]) / max(
        a.norm_bound**2, 1e-280
    )
    low, high = np.log(np.clip(ends, eigen.slack, INFINITE_RIDGE * float(eigen.spectrum.max())))
    return np.exp(np.linspace(low, high, RIDGES_COMPARED))
