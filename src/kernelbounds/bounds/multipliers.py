"""The best multipliers of inequalities, for many targets at once.

=================  ===========  ============================================================
code               symbol       meaning
=================  ===========  ============================================================
``covariance``     C            posterior covariance of the inequalities' sums, (J, J)
``gaps``           b - m        what the ridge estimate lacks of each inequality, (J,)
``cross``          c            posterior covariance of the sums with the targets, (J, m)
``variance``       rho^2        posterior variance of the targets, (m,)
``factor``         beta^2       R~_alpha^2 / alpha
``multipliers``    eta          one for each inequality, at least zero, (m, J)
=================  ===========  ============================================================

At a given ridge, the bound with multipliers eta and a scale is

    mu - eta'(b - m) + (rho^2 + 2 eta'c + eta'C eta) / (2 scale) + scale beta^2 / 2,

which is convex in (eta, scale) together. Whatever is found here is valid, see ``constrained.py``.
"""

from __future__ import annotations

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
# Of beta^2 and rho^2, at least these parts are taken to be left once inequalities bind.
LEAST_FACTOR, LEAST_VARIANCE = 1e-8, 1e-14


def best_multipliers(
    covariance: Array,
    gaps: Array,
    cross: Array,
    variance: Array,
    factor: float,
    negligible: float,
    start: Array,
) -> Array:
    """Minimise the bound over eta >= 0 and the scale, beginning with multipliers ``start``; (m, J).

    This is the active-set method of Lawson and Hanson for non-negative least squares, with the
    scale as one more variable; all targets take a step together. On the face of inequalities that
    bind, the minimum has a closed form, that of conditioning on A f(z) = b: with a = C^-1 (b - m)
    and e = C^-1 c,

        scale^2 = (rho^2 - c'e) / (beta^2 - (b - m)'a),    eta = scale a - e.

    From there the inequality is added that the maximiser violates most, if by more than
    ``negligible``; inequalities whose multipliers would become negative on the way are dropped.
    """
    result, scales = start.copy(), np.sqrt(variance / max(factor, 1e-280))
    open_ = start.any(axis=1) | np.any(gaps[:, None] - cross / scales > negligible, axis=0)
    if not open_.all():
        if open_.any():
            parts = cross[:, open_], variance[open_], factor, negligible, start[open_]
            result[open_] = best_multipliers(covariance, gaps, *parts)
        return result
    everyone, count = np.arange(len(variance)), len(gaps)
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 1e-12))
    covariance = covariance + REGULARISATION * np.eye(count)
    slots = np.argsort(start == 0, axis=1, kind="stable")[:, :MOST_BINDING]
    values = np.take_along_axis(start, slots, axis=1)
    used = values > 0
    enlarged = variance + np.vecdot(start, 2 * cross.T + start @ covariance)
    scales = np.sqrt(np.maximum(enlarged, 0.0) / max(factor, 1e-280))
    live = everyone
    for _ in range(MOST_STEPS):
        if not len(live):
            break
        width = int(np.max(np.flatnonzero(used[live].any(axis=0)), initial=-1)) + 1
        at, on, now = slots[live, :width], used[live, :width], values[live, :width]
        wanted, scale = _on_face(
            covariance, at, on, gaps[at] * on, cross[at, live[:, None]] * on, variance[live], factor
        )
        negative = on & (wanted <= 0)
        shares = np.where(negative, now / np.maximum(now - wanted, 1e-300), 1.0)
        share = shares.min(axis=1, initial=1.0)
        now = now + share[:, None] * (wanted - now)
        scales[live] += share * (scale - scales[live])
        dropped = negative & (shares <= share[:, None])
        now[dropped | ~on] = 0.0
        used[live, :width], values[live, :width] = on & ~dropped, now

        arrived = ~negative.any(axis=1)
        which = live[arrived]
        multipliers = np.zeros((len(which), count))
        np.add.at(multipliers, (np.arange(len(which))[:, None], at[arrived]), now[arrived])
        lacking = gaps - (cross[:, which].T + multipliers @ covariance) / scales[which, None]
        row, slot = np.nonzero(on[arrived])
        lacking[row, at[arrived][row, slot]] = -np.inf  # which binds already
        worst = (lacking / spread).argmax(axis=1)
        free = ~used[which]
        more = (lacking[np.arange(len(which)), worst] > negligible) & free.any(axis=1)
        row, place = which[more], free[more].argmax(axis=1)
        slots[row, place], used[row, place], values[row, place] = worst[more], True, 0.0
        live = np.concatenate([live[~arrived], which[more]])
    result = np.zeros((len(variance), count))
    np.add.at(result, (everyone[:, None], slots), np.where(used, values, 0.0))
    return np.maximum(result, 0.0)


def _on_face(
    covariance: Array,
    at: NDArray[np.intp],
    on: NDArray[np.bool_],
    gaps: Array,
    cross: Array,
    variance: Array,
    factor: float,
) -> tuple[Array, Array]:
    """The best multipliers (n, w) and scale (n,) where the inequalities ``at``, if ``on``, bind."""
    face = covariance[at[:, :, None], at[:, None, :]] * (on[:, :, None] & on[:, None, :])
    diagonal = np.arange(at.shape[1])
    face[:, diagonal, diagonal] += ~on
    solved = np.linalg.solve(face, np.stack([gaps, cross], axis=2))
    left = np.maximum(factor - np.vecdot(gaps, solved[:, :, 0]), LEAST_FACTOR * factor)
    rest = np.maximum(variance - np.vecdot(cross, solved[:, :, 1]), LEAST_VARIANCE * variance)
    scale = np.sqrt(rest / np.maximum(left, 1e-280))
    return scale[:, None] * solved[:, :, 0] - solved[:, :, 1], scale


def most_violating(covariance: Array, gaps: Array) -> Array:
    """The multipliers that maximise 2 eta'(b - m) - eta'C eta, by non-negative least squares; (J,).

    With C = V'V this is |v|^2 - |V eta - v|^2, where V'v = b - m.
    """
    values, basis = np.linalg.eigh(covariance)
    roots = np.sqrt(np.maximum(values, 1e3 * REGULARISATION))
    return np.asarray(nnls(roots[:, None] * basis.T, basis.T @ gaps / roots)[0])
