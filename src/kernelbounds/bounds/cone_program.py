"""The paper's cone program for the exact bound (Thm. 4.4), solved by CVXPY to check CMM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.engine import (
    with_single_observations,
)
from kernelbounds.errors import KernelBoundsError, MissingExtraError
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
