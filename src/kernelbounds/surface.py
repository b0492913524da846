"""A confidence bound as a function of x: values, gradients, and ceilings over boxes.

============  ==========================  ====================================================
code          symbol                      meaning
============  ==========================  ====================================================
``sign``      s                           +1: upper bounds on f*; -1: upper bounds on -f*
``ridges``    alpha                       where each bound is attained
``scales``    rho / beta                  likewise, see :class:`~kernelbounds.bounds.DualBound`
``weights``   w = (K + alpha I)^-1 p      with p = k_t(x) - s scale y_t
``witness``   (phi(c) - sum_j w_j         the function whose value at c is the bound there, and
              phi(x_j)) / scale           whose gradient there is the bound's
============  ==========================  ====================================================

The ridge and the scale minimise the dual function, so that its derivative in x is that of the
bound (envelope theorem), and p'(K + alpha I)^-1 p is convex in p, so that for all x and c

    bound(x)  <=  bound(c) + witness(x) - witness(c) + |phi(x) - phi(c)|^2 / (2 scale).

The witness is a known function with a known norm: its first-order expansion at c has an error of
at most that norm times |phi(x) - phi(c) - D phi(c)(x - c)|. See ``docs/mathematics.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.bounds import CMM, DMM, Assumptions, Attained, Bound, DualBound
from kernelbounds.bounds.radius import refute_if_empty
from kernelbounds.engine import Engine, rounding
from kernelbounds.errors import KernelBoundsError

LARGEST_SCALE = 1e7  # relative to the one that balances the dual function without data
REFINEMENTS = 2  # of weights: a gradient is not as forgiving of their errors as a value
CROSSING = 1e-7  # of bounds, relative to the trivial one, that rounding does not explain
POINTS_AT_ONCE = 1024  # a query's working memory is this many kernel vectors


def in_parts(points: Array) -> list[Array]:
    """The points, a bounded number at a time."""
    if len(points) <= POINTS_AT_ONCE:
        return [points]
    return np.split(points, range(POINTS_AT_ONCE, len(points), POINTS_AT_ONCE))


def extremes(
    engine: Engine, assumptions: Assumptions, bound: Bound, points: Array, signs: Sequence[int]
) -> Array:
    """Upper bounds on s f* at m points for the signs s, never beyond the trivial ones; (signs, m).

    |f(x)| <= B sqrt(k(x,x)) whatever the data, by Cauchy-Schwarz.
    """
    trivial = assumptions.norm_bound * np.sqrt(kernels.diagonal(engine.data.kernel, points))
    if not engine.data.count:
        return np.tile(trivial, (len(signs), 1))
    # Overflow in a formula, where it happens, leads to the trivial bound.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        parts = [bound.extremes(engine, assumptions, part, signs) for part in in_parts(points)]
    found = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    result = np.maximum(np.fmin(found, trivial), -trivial)
    if len(signs) == 2 and np.any(result.sum(axis=0) < -CROSSING * trivial):
        refute_if_empty(engine, assumptions)
        raise KernelBoundsError(
            "lower bounds exceed upper ones, though the data do not refute the assumptions: either "
            "norm_bound is within rounding of the smallest value that they allow, or the kernel "
            f"{engine.data.kernel} is evaluated with too few digits."
        )
    return result


@dataclass(frozen=True)
class Surface:
    """Upper bounds on s f*, for one sign s, as a function of x."""

    engine: Engine
    assumptions: Assumptions
    bound: Bound
    sign: int

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.engine.data.kernel

    @property
    def smooth(self) -> bool:
        """Whether gradients are known: of the kernel, and of the bound."""
        return kernels.differentiable(self.kernel) and self.dual

    @property
    def dual(self) -> bool:
        """Whether the bound says where it is attained."""
        return isinstance(self.bound, DualBound)

    @property
    def lasting(self) -> bool:
        """Whether a ridge that was in question stays so when observations are added.

        It does not where the ridge follows the data: that of the other methods without noise.
        """
        return self.dual and (self.assumptions.noise_scale > 0 or isinstance(self.bound, CMM))

    def values(self, points: Array) -> Array:
        """The bounds at points (m, d)."""
        found = extremes(self.engine, self.assumptions, self.bound, points, (self.sign,))
        return np.asarray(found[0])

    def largest(self, points: Array) -> tuple[float, int, float]:
        """The largest bound at points (m, d), where it is, and the bound on -s f* there."""
        few = len(points) <= POINTS_AT_ONCE
        if isinstance(self.bound, CMM | DMM) and few and self.engine.data.count:
            trivial = self.trivial(points)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                found = self.bound.largest(
                    self.engine, self.assumptions, points, self.sign, trivial
                )
            if found is not None:
                value, at, opposite = found
                most = float(trivial[at])
                opposite = max(min(opposite, most), -most)
                if value > -float(trivial.min()) and value + opposite >= -CROSSING * most:
                    return value, at, opposite
        signs = self.sign, -self.sign
        both = extremes(self.engine, self.assumptions, self.bound, points, signs)
        at = int(both[0].argmax())
        return float(both[0, at]), at, float(both[1, at])

    def trivial(self, points: Array) -> Array:
        """B sqrt(k(x,x))."""
        return np.asarray(self.assumptions.norm_bound * np.sqrt(self._prior(points)))

    def attained(self, points: Array) -> Attained:
        """The bounds, neither clipped nor in parts, and the ridges and scales; (m,) each."""
        assert isinstance(self.bound, DualBound)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            found = self.bound.attained(self.engine, self.assumptions, points, (self.sign,))
        return Attained(found.values[0], found.ridges[0], found.scales[0], found.path)

    def reach(self, ridges: Array) -> Array:
        """reach_alpha of a :class:`~kernelbounds.bounds.DualBound`, like the ridges."""
        assert isinstance(self.bound, DualBound)
        return np.asarray(self.bound.reach(self.engine, self.assumptions, ridges))

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """The bounds (m,) and their gradients (m, d); only for a ``smooth`` surface."""
        prior = self._prior(points)
        diagonal = kernels.diagonal_gradient(self.kernel, points)
        trivial = self.assumptions.norm_bound * np.sqrt(prior)
        steepest = trivial[:, None] * diagonal / (2 * np.maximum(prior, 1e-300))[:, None]
        if not self.engine.data.count:
            return trivial, steepest
        found = self.attained(points)
        witness = Witness(self, points, found)
        with np.errstate(all="ignore"):
            gradients = witness.gradients(found.scales)
        high, low = ~(found.values < trivial), found.values < -trivial
        gradients[high], gradients[low] = steepest[high], -steepest[low]
        # At a point measured without noise the bound has a kink.
        gradients[~np.isfinite(gradients).all(axis=1)] = 0.0
        return np.maximum(np.fmin(found.values, trivial), -trivial), gradients

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """The bounds at the centres of m boxes, and upper bounds on them over each whole box.

        Centres and half widths are (m, d), and the kernel is a differentiable one. Of a bound that
        is not a :class:`~kernelbounds.bounds.DualBound` nothing is known between the centres, and
        the ceilings are upper bounds on s f* itself.
        """
        norm_bound = self.assumptions.norm_bound
        moved = kernels.features_in_boxes(self.kernel, centres, half_widths)
        trivial, highest = self.trivial(centres), norm_bound * moved.size
        if not self.engine.data.count:
            return trivial, highest
        if not self.dual:
            # |f*(x) - f*(c)| <= B |phi(x) - phi(c)|, whatever the method.
            values = self.values(centres)
            return values, np.minimum(values + norm_bound * moved.moved, highest)
        found = self.attained(centres)
        values = np.maximum(np.fmin(found.values, trivial), -trivial)
        with np.errstate(all="ignore"):
            over_box = Witness(self, centres, found).ceilings(moved, half_widths)
        if isinstance(self.bound, CMM):
            over_box = np.fmin(over_box, found.values + norm_bound * moved.moved)
        # Nowhere is the surface below minus the trivial bound.
        lowest = -np.maximum(trivial - norm_bound * moved.moved, 0.0)
        return values, np.maximum(np.fmin(over_box, highest), np.maximum(values, lowest))

    def _prior(self, points: Array) -> Array:
        return kernels.diagonal(self.kernel, points)


class Witness:
    """The functions that attain the bounds at m points, for any scales."""

    def __init__(self, surface: Surface, points: Array, found: Attained) -> None:
        data = surface.engine.data
        self._surface, self._points, self._found = surface, points, found
        self._prior = kernels.diagonal(data.kernel, points)
        self._vectors = kernels.cross(data.kernel, data.points, points)
        right = np.concatenate([self._vectors, np.tile(data.outcomes, (len(points), 1)).T], axis=1)
        ridges = np.tile(found.ridges, 2)
        solve = surface.engine.solve if found.path is None else found.path.solve
        solved, gram = solve(right, ridges), data.gram
        for _ in range(REFINEMENTS):
            solved += solve(right - gram @ solved - ridges * solved, ridges)
        self._of_vectors, self._of_outcomes = np.split(solved, 2, axis=1)

    def gradients(self, scales: Array) -> Array:
        """(grad k(x,x) / 2 - sum_j w_j grad k(x, x_j)) / scale, (m, d)."""
        return self._gradients(self._weights(scales), scales)

    def ceilings(self, features: kernels.Features, half_widths: Array) -> Array:
        """Upper bounds on the surface over boxes around the points, (m,)."""
        data, alpha = self._surface.engine.data, self._found.ridges
        error = rounding(data.count, data.accuracy)
        variance = self._prior - _dots(self._vectors, self._of_vectors)
        # The scale that is best for bound(c) + |phi(x) - phi(c)|^2 / (2 scale), where
        # bound(c) = s mu + rho^2 / (2 scale) + scale beta^2 / 2 and rho = beta found.scale.
        floor = error * self._prior
        enlarged = 1 + features.moved**2 / np.maximum(variance, floor)
        reach = self._surface.reach(alpha)
        # Any scale is valid; with one that is out of all proportion digits would be lost.
        largest_scale = LARGEST_SCALE * np.sqrt(self._prior / np.maximum(reach, 1e-280))
        scales = np.minimum(self._found.scales * np.sqrt(enlarged), largest_scale)

        weights = self._weights(scales)
        p = self._vectors - self._surface.sign * np.multiply.outer(data.outcomes, scales)
        explained, size = _dots(weights, p), np.sqrt(_dots(weights, weights))
        length = np.sqrt(_dots(p, p))
        # Errors of inner products, and of the weights, which count by their square.
        lost = 2 * error * (size * length + self._prior) + (error * length) ** 2 / alpha
        lost += 4 * error * size**2 * (data.trace + alpha)
        unexplained = self._prior - explained + lost
        at_centre = unexplained / (2 * scales) + scales * reach / 2

        # |phi(c) - sum_j w_j phi(x_j)|^2, where K w = p - alpha w
        squared = self._prior - 2 * _dots(weights, self._vectors) + explained - alpha * size**2
        norm = np.sqrt(np.maximum(squared, 0.0) + 3 * lost) / scales
        slope = np.abs(self._gradients(weights, scales)) * half_widths
        largest = np.sqrt(np.max(np.diagonal(data.lower)))
        slope_error = error * np.abs(weights).sum(axis=0) * largest / scales
        first_order = slope.sum(axis=1) + (norm + slope_error) * features.bent
        first_order += slope_error * features.moved
        change = np.fmin(first_order, norm * features.moved)
        return np.asarray(at_centre + change + features.moved**2 / (2 * scales))

    def _weights(self, scales: Array) -> Array:
        return self._of_vectors - self._surface.sign * scales * self._of_outcomes

    def _gradients(self, weights: Array, scales: Array) -> Array:
        data = self._surface.engine.data
        diagonal = kernels.diagonal_gradient(data.kernel, self._points)
        pulled = kernels.pull_back(data.kernel, self._points, data.points, weights.T)
        return np.asarray((diagonal / 2 - pulled) / scales[:, None])


def _dots(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("im,im->m", left, right))
