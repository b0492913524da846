"""Bound the widths that bounds will have after observations that are yet to be made.

==============  ==============  ===========================================================
code            symbol          meaning
==============  ==============  ===========================================================
``penalty``     P               R_t^2 <= E_alpha + P for all alpha >= ``least``, see
                                :meth:`~kernelbounds.mixtures.Mixture.penalty`
``variance``    rho_alpha^2     the posterior variance after those observations
==============  ==============  ===========================================================

For such ridges R~_alpha^2 = R_t^2 + alpha B^2 - E_alpha <= P + alpha B^2: outcomes cancel. So the
width of AMM at alpha, which CMM and a DMM with that ridge never exceed, is at most

    2 sqrt(P / alpha + B^2) rho_alpha(x).

Of a fixed design the radius does not depend on outcomes in the first place, and neither does the
width of a linear estimate.
"""

from __future__ import annotations

import copy
import math
import operator
from typing import Any, Protocol

import numpy as np

from kernelbounds.arrays import Array, as_points, as_whole, brief
from kernelbounds.bounds import CMM, Bound, ConfidenceSet, FixedDesign
from kernelbounds.bounds.bound import TIE
from kernelbounds.engine import with_single_observations
from kernelbounds.errors import InputError
from kernelbounds.surface import in_chunks

# Each ridge that is tried is this times the one before. Within a factor of 1.2 of the best one the
# width is within half a percent of the least, because it is flat there.
RIDGE_STEP = 1.4
# From this on, relative to P / B^2 and to the trace of the kernel matrix, a ridge is so large that
# the width is the trivial one.
LARGE_RIDGE = 100.0


class Fillable(Protocol):
    """A domain with space-filling points, such as :class:`~kernelbounds.Box`."""

    def filling(self, count: int) -> Array:
        """Points that fill the domain evenly, (count, d)."""
        ...


def as_design(design: Any, domain: Fillable | None, dim: int) -> Array:
    """Make the points of a design from an array, or from a number and a domain."""
    if domain is None and np.ndim(design) == 0:
        raise InputError(
            f"design must be points, or a number of them together with a Box, got {brief(design)}."
        )
    if domain is None:
        return as_points(design, "design", dim, one=True)
    if not hasattr(domain, "filling"):
        raise InputError(f"domain must be a kernelbounds.Box, got {brief(domain)}.")
    return as_points(domain.filling(as_whole(design, "design", least=1)), "domain", dim)


def predicted_width(
    known: ConfidenceSet, bound: Bound, points: Array, design: Array, noise_scales: Array | None
) -> Array:
    """Bound upper - lower at points (m, d) after a design, whatever its outcomes; (m,)."""
    a = known.assumptions
    if a.misspecification:
        raise InputError(
            "how wide bounds will be depends on the outcomes where misspecification is not 0, here "
            f"{a.misspecification:g}."
        )
    if not a.noise.scale_is_stated:
        raise InputError(
            "how wide bounds will be depends on the outcomes where the noise scale is unknown; "
            "ask with a noise scale that you find plausible."
        )
    future = copy.deepcopy(known)
    future.evidence.add(design, np.zeros(len(design)), noise_scales)
    if isinstance(bound, FixedDesign):
        if a.noise_scale > 0:
            found = [bound.predicted_width(future, part) for part in in_chunks(points)]
            return np.minimum(np.concatenate(found), 2 * future.trivial(points))
        bound = CMM()  # without noise a fixed design is no better
    penalty, least = outcome_free(future)
    if math.isinf(penalty):
        raise InputError(f"how wide bounds will be depends on the outcomes with {a.mixture}.")
    ridges = _ridges(future, bound, penalty, least)
    factors = 2 * np.sqrt(penalty / ridges + a.norm_bound**2)
    widths = []
    for part in in_chunks(points):
        variance = future.predict(part, ridges).variance
        trivial = future.trivial(part)
        # The searches for the best ridges are this far from them, at both ends.
        least_width = (factors[:, None] * np.sqrt(variance)).min(axis=0) + 2 * TIE * trivial
        widths.append(np.minimum(least_width, 2 * trivial))
    return np.concatenate(widths)


def _ridges(future: ConfidenceSet, bound: Bound, penalty: float, least: float) -> Array:
    """The ridges of the bound for which the width is known, or a grid of them."""
    allowed = bound.below_amm_at(future.reference_ridge)
    if allowed is None:
        squared = max(future.assumptions.norm_bound**2, 1e-200)
        most = max(LARGE_RIDGE * penalty / squared, LARGE_RIDGE * future.engine.data.trace, least)
        count = 1 + math.ceil(math.log(most / least) / math.log(RIDGE_STEP))
        return np.asarray(least * RIDGE_STEP ** np.arange(count))
    ridges = np.array([ridge for ridge in allowed if ridge >= least])
    if not allowed:
        raise InputError(
            "only the widths of CMM, DMM, AMM and FixedDesign can be predicted, not that of "
            f"{bound}."
        )
    if not len(ridges):
        raise InputError(
            f"how wide {bound} will be depends on the outcomes, because its ridges are below "
            f"{least:.3g}; for ridges from there on it does not."
        )
    return ridges


def outcome_free(known: ConfidenceSet) -> tuple[float, float]:
    """P and a least ridge, above which R_t^2 <= E_alpha + P whatever the outcomes.

    P is infinite where the mixture knows no such bound. Where f* has parts, R_t comes from the
    kernel with equal shares s, and E_alpha from one that is at most max_i s / s_i times as
    large; so the least ridge is multiplied by that number.
    """
    a = known.assumptions
    if a.noise_scale == 0:
        return 0.0, known.reference_ridge
    engine = with_single_observations(
        known.radius_engine,
        "the predicted width of CMM, DMM and AMM",
        "ask for FixedDesign(), or make a sequence without engine=",
    )
    found, least = a.noise.penalty(a.mixture, engine, known.reference_ridge, a.delta)
    if (parts := known.evidence.parts) is None or not (shares := known.shares):
        return found, least
    return found, least * max(map(operator.truediv, parts.equal_shares, shares))
