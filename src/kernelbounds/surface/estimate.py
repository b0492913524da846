"""The estimate of f*: one number at each x, beside the bounds that hold for certain.

It is the kernel ridge estimate mu_alpha(x), Eq. (2), at the ridge alpha under which the outcomes
are likeliest, and it is moved into [lower(x), upper(x)] where it is outside.

A ridge alpha and noise of variance s^2 are the Gaussian process N(0, c K) with c = s^2 / alpha. Of
t outcomes with that noise, -2 times the log-likelihood is, up to a constant,

    t ln s^2 + E_alpha / s^2 + ln det(I + K/alpha),     with s^2 = E_alpha / t, or sigma^2 if less.

So the noise may be smaller than was stated, and it need not be known. While there are few outcomes
they say little of c and s, and (ln(c / c_0) / 2)^2 + (ln(s^2 / sigma^2) / 4)^2 is added, where c_0
is the mixture's c, 0.03 B^2 by default. ``docs/mathematics/estimate.md`` compares this with other
estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import EPS, Array
from kernelbounds.bounds import Bound, ConfidenceSet
from kernelbounds.confidence.diagnosis import is_refuted
from kernelbounds.errors import InputError
from kernelbounds.surface.at_points import extremes, in_chunks
from kernelbounds.surface.surface import Clipped, Surface

# The ridges that are tried, relative to the mean of k(x,x): from noise that is nothing beside the
# function to a function that is nothing beside the noise. Steps of a quarter change an estimate by
# much less than its error.
LOG_RIDGES = np.arange(np.log(1e-10), np.log(1e5), 0.25)
# What ln(c / c_0) and ln(s^2 / sigma^2) are divided by, in the terms that are added. With 1 in
# place of 2 estimates are worse from 20 outcomes on, with 4 up to 10. Without the second
# term outcomes that tell nothing of each other, as a few of many inputs, would be taken for exact.
SPREAD, NOISE_SPREAD = 2.0, 4.0


@dataclass(frozen=True)
class RidgeFunction:
    """mu_alpha = sum_j w_j k(., z_j), and how unlikely the outcomes are: less is better."""

    kernel: Kernel
    ridge: float
    centres: Array  # z, (n, d)
    weights: Array  # w, (n,)
    noise: float = 0.0  # s^2
    unlikely: float = 0.0

    def values(self, points: Array) -> Array:
        """Return values at points (m, d); (m,)."""
        if not len(self.centres):
            return np.zeros(len(points))
        parts = [kernels.cross(self.kernel, one, self.centres) for one in in_chunks(points)]
        return np.concatenate([part @ self.weights for part in parts])

    def gradients(self, points: Array) -> Array:
        """Return gradients at points (m, d); (m, d)."""
        if not len(self.centres):
            return np.zeros(points.shape)
        return np.concatenate(
            [
                kernels.pull_back(
                    self.kernel,
                    one,
                    self.centres,
                    np.broadcast_to(self.weights, (len(one), len(self.weights))),
                )
                for one in in_chunks(points)
            ]
        )


def likeliest(known: ConfidenceSet, by_points: bool = False) -> RidgeFunction:
    """Choose the ridge under which the outcomes are likeliest, and of several classes the class.

    The function is without the level of f*, and is 0 before there are outcomes. With
    ``by_points``, outcomes at equal points count once for the noise, as their mean does.
    """
    if known.evidence.classes is not None:
        return likeliest(_likeliest_class(known, by_points), by_points)
    a = known.assumptions
    c = known.chosen_for.mixture_scale
    key = "likeliest", a.misfit, a.norm_bound, c, known.equal_shares, by_points
    return known.evidence.kept(key, lambda: _likeliest(known, by_points))


def _likeliest_class(known: ConfidenceSet, by_points: bool = False) -> ConfidenceSet:
    if known.evidence.classes is None:
        return known
    members = [one for one in known.in_classes() if not is_refuted(one)] or known.in_classes()
    return min(members, key=lambda one: likeliest(one, by_points).unlikely)


def deviations(known: ConfidenceSet, points: Array) -> tuple[Array, float]:
    """Return standard deviations at points (m, d), (m,), and that of the noise.

    They are those of the Gaussian process N(0, c K) of the estimate, c = s^2 / alpha, given the
    outcomes: a guess at how far an estimate may be off, without guarantee.
    """
    member = _likeliest_class(known)
    found = likeliest(member)
    if not member.count:
        return np.sqrt(member.chosen_for.mixture_scale * member.prior(points)), math.sqrt(
            found.noise
        )
    variances = member.predict(points, np.array([found.ridge])).variance[0]
    scale = found.noise / found.ridge
    return np.sqrt(scale * np.maximum(variances, 0.0)), math.sqrt(found.noise)


class Covariances:
    """Covariances with the values at some points, of the Gaussian process of :func:`deviations`.

    There must be outcomes.
    """

    def __init__(self, known: ConfidenceSet, points: Array) -> None:
        self._known, self._points = _likeliest_class(known), points
        self._found = likeliest(self._known)
        self._explained = self._whitened(points)

    def _whitened(self, points: Array) -> Array:
        return self._known.engine.query(points).whitened(self._found.ridge)[0]

    def moves(self, points: Array) -> Array:
        """Return by how much a run at each of points (m, d) moves the means at the others; (n, m).

        That is c(z, x) / sqrt(v(x) + s^2), the standard deviation of how the mean at z changes with
        the outcome of a run at x.
        """
        kernel, scale = self._known.kernel, self._found.noise / self._found.ridge
        explained = self._whitened(points)
        covariance = kernels.cross(kernel, self._points, points) - self._explained.T @ explained
        variance = self._known.prior(points) - (explained**2).sum(axis=0)
        outcome = scale * np.maximum(variance, 0.0) + self._found.noise
        return np.asarray(scale * covariance / np.sqrt(np.maximum(outcome, 1e-300)))


def _likeliest(known: ConfidenceSet, by_points: bool) -> RidgeFunction:
    engine = known.engine
    if not known.count:
        return RidgeFunction(known.kernel, known.reference_ridge, np.empty((0, 0)), np.empty(0))
    if known.assumptions.misfit:
        ridge, noise, unlikely = _likeliest_ridge(known, by_points)
    else:  # the smallest ridge that there is
        ridge, unlikely = known.reference_ridge, 0.0
        found = engine.fits(np.array([ridge]))
        noise = float(found.energies[0] / found.outcomes)
    return RidgeFunction(known.kernel, ridge, *engine.ridge_weights(ridge), noise, unlikely)


def _likeliest_ridge(known: ConfidenceSet, by_points: bool) -> tuple[float, float, float]:
    """Return alpha, s^2, and how unlikely the outcomes are."""
    data, most = known.engine.data, known.assumptions.misfit**2
    typical = data.trace / max(data.squared_weights, 1e-300)  # the mean of k(x,x)
    ridges = np.exp(LOG_RIDGES) * max(typical, 1e-100)
    found = known.engine.fits(ridges)
    count = found.outcomes
    if by_points:
        count *= len(np.unique(data.points, axis=0)) / data.count
    energies = np.maximum(found.energies, 1e-300)
    noise = np.minimum(energies / count, most)
    scale = noise / ridges
    unlikely = count * np.log(noise) + energies / noise + found.log_dets
    unlikely += (np.log(scale / max(known.chosen_for.mixture_scale, 1e-300)) / SPREAD) ** 2
    if math.isfinite(most):
        unlikely += (np.log(noise / most) / NOISE_SPREAD) ** 2
    best = int(unlikely.argmin())
    ridge = max(float(ridges[best]), 64 * EPS * data.trace)
    return ridge, float(noise[best]), float(unlikely[best])


def estimate_with_bounds(
    known: ConfidenceSet, bound: Bound, points: Array
) -> tuple[Array, Array, Array]:
    """Return estimates, lower bounds and upper bounds at points (m, d); (m,) each."""
    upper, negative_lower = extremes(bound.view_of(known), bound, points, (1, -1))
    values = unlimited_estimate(known, points)
    return np.minimum(np.maximum(values, -negative_lower), upper), -negative_lower, upper


def unlimited_estimate(known: ConfidenceSet, points: Array, by_points: bool = False) -> Array:
    """Return estimates at points (m, d) that need not be within the bounds; (m,)."""
    values, level = likeliest(known, by_points).values(points), known.evidence.known_level(points)
    return values if level is None else values + level.values


def estimate_gradients(known: ConfidenceSet, bound: Bound, points: Array) -> Array:
    """Return gradients of the estimate at points (m, d), or of the bound that limits it there."""
    values, lower, upper = estimate_with_bounds(known, bound, points)
    function = likeliest(known)
    free = unlimited_estimate(known, points) == values
    if not kernels.differentiable(function.kernel) or known.evidence.offset.constant is None:
        raise InputError(
            f"the gradient in x of the estimate with {function.kernel} is not known, or not that "
            "of the level of the offset."
        )
    gradients = function.gradients(points)
    for sign, limit in ((1, upper), (-1, lower)):
        moved = ~free & (values == limit)
        if moved.any():
            surface = Clipped(Surface(bound.view_of(known), bound, sign))
            if not surface.smooth:
                raise InputError(f"the gradient in x of {bound} is not known.")
            gradients[moved] = sign * surface.values_and_gradients(points[moved])[1]
    return gradients
