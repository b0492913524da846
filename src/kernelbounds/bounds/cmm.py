"""CMM: the exact martingale-mixture bound, computed by a search over the ridge (Eq. 12).

The paper's cone program for the same bound (Thm. 4.4), solved by CVXPY, is here to check it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kernelbounds.arrays import LARGEST, Array, brief
from kernelbounds.bounds.bound import DualBound, DualMinimum
from kernelbounds.bounds.dual_function import DualFunction
from kernelbounds.confidence.confidence_set import ConfidenceSet
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
        program for each point with CVXPY: an independent check, thousands of times slower, and off
        by the errors of the solver.

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
    """The least value of the dual over ridges, sought first above t times ``finest``."""
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
