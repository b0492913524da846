"""Make frozen bounds from a confidence set, with allowances for all rounding errors.

With the rows M k_t(x) of the engine in the place of k_t(x), and y its outcomes:

==============  ===========================  ==================================================
code            symbol                       meaning
==============  ===========================  ==================================================
``lower``       L                            a factor of K + alpha I, as it was computed
``inverse``     A                            about L^-1
``distance``    d                            at least |L L' - K - alpha I|
``skew``        eta                          at least |A L - I|
``residual``    |r|                          at least |(K + alpha I) w - y|
``sizes``       s                            sqrt(K_ii), (t,)
``error``       e                            of the kernel's values, in units of eps
==============  ===========================  ==================================================

Norms are spectral. Each is bounded from the matrices themselves, after the fact, so that no error
bound of LAPACK is needed; the proof is in ``docs/mathematics/rounding.md``, *Frozen bounds*. A sum
of n products has an error of at most (n / 2 + 1) eps, relative to that of their absolute values, in
any order of summation.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from kernelbounds.arrays import EPS, Array, as_points, as_scalar, brief
from kernelbounds.bounds import CMM, ConfidenceSet
from kernelbounds.confidence.diagnosis import refute_if_empty
from kernelbounds.engine import ExactEngine
from kernelbounds.errors import InputError
from kernelbounds.kernels import category_inputs
from kernelbounds.kernels.portable import portable_error
from kernelbounds.surface.frozen import AtRidge, Frozen

# Ridges are chosen by the widths at this many points at most, and from this many candidates,
# quantiles of the best ridges of single points; more of either changed widths by two percent at
# most, for RBF and Matern kernels in 1 to 4 dimensions.
TYPICAL_POINTS, CANDIDATES = 64, 9
# The smallest ridge that is chosen, relative to the trace of K. There, d / alpha is below 1e-8
# times the number of observations, and so is what it adds to the variance.
FROZEN_RIDGE_OF_TRACE = 1e-7
# What d / alpha and eta may be. Up to there the proof holds, and they widen bounds by half.
LARGEST_ERROR = 0.1
SAFE = 1.01  # norms and allowances are computed with a few hundred rounding errors, not a hundredth


def freeze(known: ConfidenceSet, ridges: object = None, near: ArrayLike | None = None) -> Frozen:
    """Make the frozen bounds of a confidence set; ``ridges`` and ``near`` as users pass them."""
    engine = _checked_engine(known)
    error = portable_error(known.kernel, engine.data.points.shape[1])
    chosen: tuple[float, ...]
    if ridges is None:
        chosen = (_typical_ridge(known, near),)
    elif near is not None:
        raise InputError("pass either ridges or near, not both: near is for choosing a ridge.")
    else:
        chosen = _checked_ridges(ridges)
    a = known.assumptions
    return Frozen(
        kernel=copy.deepcopy(known.kernel),
        norm_bound=a.norm_bound,
        delta=known.stated.delta,  # of which unknown noise has spent a part
        level=known.evidence.offset.constant or 0.0,
        beyond=a.misspecification,
        points=engine.rows.points.copy(),
        at_ridges=tuple(_at_ridge(known, engine, ridge, error) for ridge in chosen),
    )


def _checked_engine(known: ConfidenceSet) -> ExactEngine:
    """The engine, where bounds of this sequence can be frozen."""
    if known.evidence.classes is not None:
        raise InputError(
            f"bounds under {type(known.evidence.classes).__name__} come from several classes; "
            "freeze a sequence of each class, with the same delta, and join their bounds."
        )
    engine = known.engine
    if not isinstance(engine, ExactEngine):
        raise InputError(
            "frozen bounds need the observations, which a sparse engine does not keep; use a "
            "sequence without engine=."
        )
    if not known.count:
        raise InputError("there is nothing to freeze before the first observation; update first.")
    if known.evidence.offset.constant is None:
        raise InputError(
            "frozen bounds take an offset that is a number, and this one is a function; freeze a "
            "sequence of the outcomes less that function, and add it to the bounds."
        )
    if engine.rows.whitening.blocks:
        raise InputError(
            "frozen bounds are for noise that is uncorrelated, and covariance= was given; use "
            "seq.bounds."
        )
    return engine


def _checked_ridges(ridges: object) -> tuple[float, ...]:
    if not isinstance(ridges, Iterable) or isinstance(ridges, str | bytes):
        return (as_scalar(ridges, "ridges", above=0.0),)
    found = tuple(as_scalar(one, "each of ridges", above=0.0) for one in ridges)
    if not found:
        raise InputError(f"ridges must be one or more positive numbers, got {brief(ridges)}.")
    return found


def _typical_ridge(known: ConfidenceSet, near: ArrayLike | None) -> float:
    """Choose the ridge at which AMM is narrowest on average, at typical points.

    Any ridge is valid, so the choice may look at all data.
    """
    if near is not None:
        points = as_points(near, "near", known.radius_engine.dim, one=True)
    else:
        # Half-way between observations, as bounds are asked for between them; not for categories.
        points, jumps = known.points, category_inputs(known.kernel, known.points.shape[1])
        if not jumps:
            points = 0.5 * (points + np.roll(points, len(points) // 2, axis=0))
    spread = np.linspace(0, len(points) - 1, min(len(points), TYPICAL_POINTS)).round().astype(int)
    points = points[spread]
    least = FROZEN_RIDGE_OF_TRACE * known.engine.data.trace
    plain = known.without_facts()
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        best = CMM().attained(plain, points, (1, -1)).ridges.ravel()
        best = best[np.isfinite(best) & (best > 0)]
        candidates = np.unique(np.maximum(np.quantile(best, np.linspace(0, 1, CANDIDATES)), least))
        found = plain.predict(points, candidates)
        factors = np.sqrt(np.maximum(plain.radius.around(candidates, found.energy), 0) / candidates)
        widths = np.minimum(factors[:, None] * np.sqrt(found.variance), plain.trivial(points))
    return float(candidates[np.nan_to_num(widths.mean(axis=1), nan=np.inf).argmin()])


def _at_ridge(known: ConfidenceSet, engine: ExactEngine, ridge: float, error: float) -> AtRidge:
    rows, count = engine.rows, engine.rows.count
    matrix = rows.gram
    trace, sizes = rows.trace * SAFE, np.sqrt(np.diagonal(matrix))
    matrix[np.diag_indices(count)] += ridge
    lower, failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if failed:
        raise _too_small(ridge, trace)
    inverse = lapack.dtrtri(lower, lower=1)[0]
    sums = SAFE * (count / 2 + 8) * EPS  # above the errors of sums of up to t + 14 products

    # The factor, its inverse, and what they do to the variance.
    distance = SAFE * float(np.linalg.norm(lower @ lower.T - matrix))
    distance += (sums + error * EPS) * (trace + count * ridge)
    skew = SAFE * float(np.linalg.norm(inverse @ lower - np.eye(count)))
    skew += sums * _norm_above(np.abs(inverse) @ np.abs(lower))
    if not max(2 * distance / ridge, 2 * skew) <= LARGEST_ERROR:
        raise _too_small(ridge, trace)
    of_product = sums * SAFE * float(np.linalg.norm(np.abs(inverse) @ sizes))
    of_vectors = (error * EPS) ** 2 * trace / distance
    lost = 3 * of_product + sums + (8 + error) * EPS + of_vectors
    kept = 1 - 2 * distance / ridge

    # The weights, the residual that they leave, and what both do to the mean and the radius.
    y = rows.outcomes
    weights = inverse.T @ (inverse @ y)
    sum_of_sizes = SAFE * float(np.abs(weights) @ sizes)
    length, of_y = (SAFE * float(np.linalg.norm(one)) for one in (weights, y))
    computed = matrix @ weights - y
    of_residual = (sums + error * EPS) * (math.sqrt(trace) * sum_of_sizes + ridge * length + of_y)
    residual = SAFE * float(np.linalg.norm(computed)) + of_residual
    energy = ridge * float(weights @ y - weights @ computed)
    energy -= ridge * length * (of_residual + 2 * sums * (of_y + residual))
    squared = float(known.radius.around(ridge, energy + rows.scatter.least))
    squared += 8 * EPS * (abs(energy) + known.radius.squared + ridge * known.radius.norm_bound**2)
    if squared < 0:
        refute_if_empty(known)
    factor = (math.sqrt(max(squared, 0.0)) + residual) / math.sqrt(ridge) * (1 + 16 * EPS)

    own = rows.whitening.weights  # so that a query needs the kernel's own values only
    return AtRidge(
        ridge=ridge,
        weights=weights * own,
        inverse=np.ascontiguousarray(inverse * own),
        factor=float(factor),
        prior=float((1 + lost) / kept * (1 + 8 * EPS)),
        explained=float((1 - 2 * skew - skew**2) / kept * (1 - 8 * EPS)),
        mean_error=float((sums + (4 + error) * EPS) * sum_of_sizes * SAFE),
    )


def _norm_above(matrix: Array) -> float:
    """At least the spectral norm: the root of those by rows and by columns."""
    return SAFE * math.sqrt(
        float(np.linalg.norm(matrix, 1)) * float(np.linalg.norm(matrix, np.inf))
    )


def _too_small(ridge: float, trace: float) -> InputError:
    return InputError(
        f"the ridge {ridge:g} is too small for frozen bounds in double precision on these data; "
        f"use at least {FROZEN_RIDGE_OF_TRACE * trace:.3g}."
    )
