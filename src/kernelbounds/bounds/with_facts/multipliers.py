"""The best multipliers of inequalities, for many targets at once.

=================  ===========  ============================================================
code               symbol       meaning
=================  ===========  ============================================================
``covariance``     C            posterior covariance of the inequalities' sums, (g, J, J)
``gaps``           b - m        what the ridge estimate lacks of each inequality, (g, J)
``factors``        beta^2       R~_alpha^2 / alpha, (g,)
``number``         alpha        which of the g ridges is that of each target, (m,)
``cross``          c            posterior covariance of the sums with the targets, (m, J)
``variance``       rho^2        posterior variance of the targets, (m,)
``multipliers``    eta          one for each inequality, at least zero, (m, J)
=================  ===========  ============================================================

At a given ridge, the bound with multipliers eta and a scale is

    mu - eta'(b - m) + (rho^2 + 2 eta'c + eta'C eta) / (2 scale) + scale beta^2 / 2,

which is convex in (eta, scale) together. Whatever is found here is valid; ``constrained_bounds.py``
says why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from kernelbounds.arrays import Array

# The number of inequalities that may bind at one target. A target with more is bounded by the first
# ones; with limits and three shapes of two inputs, 89 of 324 were the most seen.
MOST_BINDING = 96
# Each step adds one inequality or drops some; few targets need twice as many as bind.
MOST_STEPS = 2 * MOST_BINDING
# This is added to the diagonal of C, where sums have norm 1, so that multipliers stay small where
# places are so close that their inequalities can hardly be told apart.
REGULARISATION = 1e-11
# Least parts of beta^2 and rho^2 that remain after conditioning, lest rounding make them negative.
LEAST_FACTOR, LEAST_VARIANCE = 1e-8, 1e-14


@dataclass(frozen=True)
class Posterior:
    """What is known, given the data, of the inequalities at g ridges and of m targets."""

    covariance: Array
    gaps: Array
    factors: Array
    number: NDArray[np.intp]
    cross: Array
    variance: Array

    def lacking(self, which: NDArray[np.intp], multipliers: Array, scales: Array) -> Array:
        """What the maximisers of some targets lack of the inequalities, b - A f(z), (n, J)."""
        attained, number = self.cross[which], self.number[which]
        used = np.flatnonzero(multipliers.any(axis=0))  # few of the inequalities bind anywhere
        few = multipliers[:, used]
        for ridge in np.unique(number) if len(used) else ():
            rows = number == ridge
            attained[rows] += few[rows] @ self.covariance[ridge, used]
        attained /= -scales[:, None]
        attained += self.gaps[number]
        return attained

    def on_face(
        self, which: NDArray[np.intp], at: NDArray[np.intp], on: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """The best multipliers (n, w) and scales (n,) where inequalities ``at``, if ``on``, bind.

        With a = C^-1 (b - m) and e = C^-1 c this is what conditioning on A f(z) = b gives:

            scale^2 = (rho^2 - c'e) / (beta^2 - (b - m)'a),    eta = scale a - e.
        """
        number, variance = self.number[which, None], self.variance[which]
        factor = self.factors[number[:, 0]]
        face = self.covariance[number[:, :, None], at[:, :, None], at[:, None, :]]
        face *= on[:, :, None] & on[:, None, :]
        diagonal = np.arange(at.shape[1])
        face[:, diagonal, diagonal] += np.where(on, REGULARISATION, 1.0)
        gaps, cross = self.gaps[number, at] * on, self.cross[which[:, None], at] * on
        solved = np.linalg.solve(face, np.stack([gaps, cross], axis=2))
        left = np.maximum(factor - np.vecdot(gaps, solved[:, :, 0]), LEAST_FACTOR * factor)
        rest = np.maximum(variance - np.vecdot(cross, solved[:, :, 1]), LEAST_VARIANCE * variance)
        scale = np.sqrt(rest / np.maximum(left, 1e-280))
        return scale[:, None] * solved[:, :, 0] - solved[:, :, 1], scale


def best_multipliers(known: Posterior, negligible: float, start: Array) -> Array:
    """Minimise the bound over eta >= 0 and the scale, beginning with multipliers ``start``; (m, J).

    This is the active-set method of Lawson and Hanson for non-negative least squares, with the
    scale as one more variable; all targets take a step together. From the minimum on the face of
    the inequalities that bind, the one is added that the maximiser violates most, if by more than
    ``negligible``; inequalities whose multipliers would become negative on the way are dropped.
    """
    everyone, enlarged = np.arange(len(start)), known.variance.copy()
    if start.any():
        # What is lacking with a scale of 1 is b - m - c - C eta.
        products = known.gaps[known.number] - known.lacking(everyone, start, np.ones(len(start)))
        enlarged += np.vecdot(start, known.cross + products)
    enlarged = np.maximum(enlarged, LEAST_VARIANCE * known.variance)
    scales = np.sqrt(enlarged / known.factors[known.number])
    violated = (known.lacking(everyone, start, scales) > negligible).any(axis=1)
    live = np.flatnonzero(start.any(axis=1) | violated)
    if not len(live):
        return start
    slots = np.argsort(start == 0, axis=1, kind="stable")[:, :MOST_BINDING]
    values = np.take_along_axis(start, slots, axis=1)
    used = values > 0
    for _ in range(MOST_STEPS):
        if not len(live):
            break
        width = int(np.max(np.flatnonzero(used[live].any(axis=0)), initial=-1)) + 1
        at, on, now = slots[live, :width], used[live, :width], values[live, :width]
        wanted, scale = known.on_face(live, at, on)
        negative = on & (wanted <= 0)
        shares = np.where(negative, now / np.maximum(now - wanted, 1e-300), 1.0)
        share = shares.min(axis=1, initial=1.0)
        now = now + share[:, None] * (wanted - now)
        scales[live] += share * (scale - scales[live])
        dropped = negative & (shares <= share[:, None])
        now[dropped | ~on] = 0.0
        used[live, :width], values[live, :width] = on & ~dropped, now

        arrived = ~negative.any(axis=1)
        which, at, on = live[arrived], at[arrived], on[arrived]
        multipliers = _dense(at, now[arrived], start.shape[1])
        lacking = known.lacking(which, multipliers, scales[which])
        row, slot = np.nonzero(on)
        lacking[row, at[row, slot]] = -np.inf  # This inequality binds already.
        worst = lacking.argmax(axis=1)
        free = ~used[which]
        more = (lacking[np.arange(len(which)), worst] > negligible) & free.any(axis=1)
        row, place = which[more], free[more].argmax(axis=1)
        slots[row, place], used[row, place], values[row, place] = worst[more], True, 0.0
        live = np.concatenate([live[~arrived], which[more]])
    return np.maximum(_dense(slots, np.where(used, values, 0.0), start.shape[1]), 0.0)


def _dense(at: NDArray[np.intp], values: Array, count: int) -> Array:
    """Multipliers of all inequalities, (n, J), from those of some, which are different."""
    result, (row, slot) = np.zeros((len(at), count)), np.nonzero(values)
    result[row, at[row, slot]] = values[row, slot]
    return result


def most_violating(covariance: Array, gaps: Array) -> Array:
    """The multipliers that maximise 2 eta'(b - m) - eta'C eta, by non-negative least squares; (J,).

    With C = V'V this is |v|^2 - |V eta - v|^2, where V'v = b - m.
    """
    values, basis = np.linalg.eigh(covariance)
    roots = np.sqrt(np.maximum(values, 1e3 * REGULARISATION))
    try:
        return np.asarray(nnls(roots[:, None] * basis.T, basis.T @ gaps / roots)[0])
    except RuntimeError:  # after three steps for each multiplier, it gives up; zeros are valid
        return np.zeros(len(gaps))
