"""CMM: the exact martingale-mixture bound (Thm. 4.4 and Eq. 12).

It is computed by a search over the ridge, the paper's dual. The paper's cone program, solved with
CVXPY, is here too, as an independent check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np

from kernelbounds.arrays import LARGEST, Array, brief
from kernelbounds.bounds.dual_bound import DualBound, DualMinimum, dual_value
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.diagnosis import refute_if_empty
from kernelbounds.confidence.radius import Radius
from kernelbounds.engine import (
    Largest,
    RidgePath,
    largest_minimum,
    minimise_over_ridge,
    with_single_observations,
)
from kernelbounds.errors import InputError, KernelBoundsError, MissingExtraError
from kernelbounds.functionals.targets import Targets


def cone_extremes(known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
    """max of s k_{t+1}(x)'w s.t. ||K_{t,t+1} w - y_t|| <= R_t, ||L_{t+1} w|| <= B; (signs, m).

    L_{t+1} comes from the eigendecomposition of K_{t+1}, which needs no jitter.
    """
    try:
        import cvxpy
    except ImportError as error:
        raise MissingExtraError("The cone solver", "cone") from error
    instead = 'use solver="dual", which finds the same maximum'
    data = with_single_observations(known.engine, 'solver="cone"', instead).rows
    cp: Any = cvxpy  # its types are incomplete
    # No function explains how outcomes at equal points differ, so that is taken off the radius.
    radius = np.sqrt(max(known.radius.squared - data.scatter.least, 0.0))
    result = np.empty((len(signs), len(points)))
    prior, vectors, _ = data.representers(points)
    for i, corner in enumerate(prior[:, None, None]):
        column = vectors[:, i : i + 1]
        gram = np.block([[data.gram, column], [column.T, corner]])
        spectrum, basis = np.linalg.eigh(gram)
        root = np.sqrt(np.maximum(spectrum, 0.0))[:, None] * basis.T
        w = cp.Variable(len(gram))
        constraints = [
            cp.norm(gram[:-1] @ w - data.outcomes) <= radius,
            cp.norm(root @ w) <= known.assumptions.norm_bound,
        ]
        for s, sign in enumerate(signs):
            problem = cp.Problem(cp.Maximize(sign * gram[-1] @ w), constraints)
            problem.solve(solver=cp.CLARABEL)
            if problem.status not in ("optimal", "optimal_inaccurate"):
                raise KernelBoundsError(
                    f"the cone program at point {i} ended as {problem.status!r}; "
                    'use solver="dual", which also says when the confidence set is empty.'
                )
            result[s, i] = problem.value
    return result


# Log ridges, relative to (R_t / B)^2, between which nearly all minimisers are: measured in loops of
# 1000 rounds on the paper's problems. Elsewhere the search takes another window, and more time.
LIKELY_LOG_RIDGES = -2.2, 4.2
# With more rounds than these R_t^2 is ever closer to the energy of the noise, and minimisers fall
# by this for each unit of the logarithm of t (RBF and Matérn, up to 20,000 observations).
FALL_PER_LOG_COUNT, COUNT_WITHOUT_FALL = 0.35, 100


@dataclass(frozen=True, repr=False)
class CMM(DualBound):
    """The largest and smallest values of f(x) over the confidence set itself,

        max f(x)  subject to  ||f_t - y_t|| <= R_t  and  ||f|| <= B
            =  min over alpha > 0 of mu_alpha(x) + R~_alpha rho_alpha(x) / sqrt(alpha),

    by strong duality. The function of alpha is quasiconvex.

    Parameters
    ----------
    solver : "dual" or "cone"
        "dual" (default) minimises over alpha. "cone" solves the paper's second-order cone
        program for each point with CVXPY: an independent check, thousands of times slower.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.9]], [0.3, -0.2])
    >>> lower, upper = seq.bounds([[0.5]], bound=kb.CMM())
    >>> wider = seq.bounds([[0.5]], bound=kb.AMM())
    >>> bool(wider[0][0] <= lower[0] and upper[0] <= wider[1][0])
    True
    """

    solver: Literal["dual", "cone"] = "dual"

    uses_only_radius = True  # The confidence set is made from R_t and B alone.
    exact = True  # The bound is the maximum over the confidence set.

    def __post_init__(self) -> None:
        if not isinstance(self.solver, str) or self.solver not in ("dual", "cone"):
            raise InputError(f'solver must be "dual" or "cone", got {brief(self.solver)}.')

    def below_amm_at(self, reference_ridge: float) -> tuple[float, ...] | None:
        """None, for all ridges: the bound is the least AMM of all."""
        return None

    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """See :class:`~kernelbounds.bounds.Bound`."""
        if self.solver == "cone":
            return cone_extremes(known, points, signs)
        return self.attained(known, points, signs).values

    def attained(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> DualMinimum:
        """See :class:`~kernelbounds.bounds.DualBound`; by the dual, whatever the solver."""
        return minimise_dual(known, points, np.array(signs, dtype=float), _finest(known))

    def largest(self, known: ConfidenceSet, points: Targets, sign: int, tie: float) -> Largest:
        """See :class:`~kernelbounds.bounds.Bound`; computed only where it may be the largest."""
        found = None
        if self.solver == "dual":
            query = known.engine.query(points, finest_per_point=_finest(known))
            found = largest_minimum(query, DualFunction.of(known), sign, tie)
        return super().largest(known, points, sign, tie) if found is None else found

    def joint_bound(self, known: ConfidenceSet, ridges: Array) -> Array:
        """R~^2/alpha + E/alpha = R_t^2/alpha + B^2."""
        return known.radius.joint_bound(ridges)

    def lasting(self, known: ConfidenceSet) -> bool:
        """True: all ridges are in question at all times."""
        return True


def minimise_dual(
    known: ConfidenceSet, points: Targets, signs: Array, finest: float
) -> DualMinimum:
    """The least value of the dual over ridges, sought first among those above t ``finest``."""
    query = known.engine.query(points, finest_per_point=finest)
    values, ridges, scales = minimise_over_ridge(query, DualFunction.of(known), signs)
    # A value that overflows is above the trivial bound anyway.
    values[np.isnan(values)] = np.inf
    path: RidgePath | None = query.path
    if ridges.min() < query.path.eigen.finest:
        # Some minimisers are below the path's finest ridge: a path to 16 times smaller ones, again.
        finer = (ridges < query.path.eigen.finest).any(axis=0)
        found = minimise_dual(known, points[finer], signs, finest / 16)
        values[:, finer], ridges[:, finer] = found.values, found.ridges
        scales[:, finer], path = found.scales, found.path
    return DualMinimum(values, ridges, scales, path)


def _finest(known: ConfidenceSet) -> float:
    """The ridge, per observation, below which a minimiser rarely is.

    The ridge is a fifth of (R_t / B)^2, and R_t^2 is about t sigma^2.
    """
    if not known.evidence.growing:  # one path serves all assumptions that are tried on a snapshot
        return 0.0
    a = known.assumptions
    misfit = a.misfit if math.isfinite(a.misfit) else known.chosen_for.misfit
    if not a.noise.scale_is_stated and misfit:
        # A path is kept while the bound on an unknown noise scale changes by less than 4.
        misfit = 4.0 ** math.floor(math.log2(misfit) / 2)
    return 0.2 * min(misfit / max(a.norm_bound, 1e-100), LARGEST) ** 2


@dataclass(frozen=True)
class DualFunction:
    """The dual of max f(x) over the confidence set (Thm. 4.5), in alpha and scale,

        mu_alpha(x) + rho_alpha^2(x) / (2 scale) + scale R~_alpha^2 / (2 alpha),

    where eta_2 = scale / 2 and eta_1 = eta_2 / alpha.
    """

    radius: Radius
    refute: Callable[[], None]  # raises where no function is left, when R~^2 is negative
    count: int = field(default=0, kw_only=True)  # t

    @classmethod
    def of(cls, known: ConfidenceSet) -> Self:
        """The dual function of CMM."""
        return cls(known.radius, lambda: refute_if_empty(known), count=known.count)

    @property
    def likely(self) -> tuple[float, float]:
        """The log ridges between which the minimiser probably is.

        Minimisers are around (R_t / B)^2, mostly above, and lower with many observations.
        """
        radius = self.radius
        centre = radius.squared / max(radius.norm_bound**2, 1e-280)
        log_centre = math.log(min(max(centre, 1e-280), 1e280))
        log_centre -= FALL_PER_LOG_COUNT * math.log(max(self.count / COUNT_WITHOUT_FALL, 1.0))
        return log_centre + LIKELY_LOG_RIDGES[0], log_centre + LIKELY_LOG_RIDGES[1]

    def best_scale(self, ridge: Array, deviation: Array, energy: Array) -> Array:
        """scale = sqrt(alpha) rho / R~."""
        # Where R~ nearly vanishes the best scale is nearly infinite; a large one will do.
        radius = self.radius
        least = 1e-14 * (radius.squared + ridge * radius.norm_bound**2)
        squared = np.maximum(np.maximum(self._around(ridge, energy), least), 1e-280)
        return np.maximum(np.sqrt(ridge / squared) * deviation, 1e-150)

    def factor(self, ridge: Array, energy: Array) -> Array:
        """R~_alpha / sqrt(alpha), as in Eq. (12), at ridges in increasing order."""
        squared = self._around(ridge, energy)
        if _may_be_negative_between(ridge, squared):
            self.refute()
        return np.asarray(np.sqrt(squared / ridge))

    def at_scale(self, ridge: Array, scale: Array, unexplained: Array) -> Array:
        """The dual from k(x,x) - p'(K + alpha I)^-1 p = rho^2 + 2 scale mu - scale^2 E/alpha.

        It is rounded up.
        """
        return dual_value(unexplained, scale, self.radius.joint_bound(ridge))

    def _around(self, ridge: Array, energy: Array) -> Array:
        squared = self.radius.around(ridge, energy)
        if squared.min() >= 0:
            return squared
        self.refute()
        return np.maximum(squared, 0.0)


def _may_be_negative_between(ridges: Array, squared: Array) -> bool:
    """Whether R~_alpha^2 may be negative near its least value, if that is not at an end.

    E_alpha is concave, hence R~_alpha^2 convex in alpha, and above the lines through two
    neighbouring values outside of these two. Where the least value is at an end, another window of
    the search has it inside.
    """
    at = int(squared.argmin())
    if not 2 <= at < len(ridges) - 2:
        return False
    (a, b, c, d, e), (u, v, w, x, y) = ridges[at - 2 : at + 3], squared[at - 2 : at + 3]
    falling, rising = (w - v) / (c - b), (x - w) / (d - c)
    left = _crossing(b, v, (v - u) / (b - a), c, w, rising)
    return min(left, _crossing(c, w, falling, d, x, (y - x) / (e - d))) < 0


def _crossing(a: float, u: float, falling: float, b: float, v: float, rising: float) -> float:
    """The least value, between a and b, of the larger of two lines through (a, u) and (b, v)."""
    if falling >= 0 or rising <= 0:
        return min(u, v)
    return u + falling * (v - u - rising * (b - a)) / (falling - rising)
