"""The clause on dual bounds: what gradients, certified maxima and fast updates rely on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds import Bound, ConfidenceSet, DualBound
from kernelbounds.checking.coverage import (
    AGREEMENT,
    BOTH,
    KERNEL,
    NOISE,
    NORM,
    SURE,
    BrokenError,
    Case,
    as_numbers,
    ask,
    equal,
    make_case,
)
from kernelbounds.kernels import cross
from kernelbounds.sequence import ConfidenceSequence


def dual(bound: Bound) -> None:
    """``attained``, ``joint_bound``, ``exact`` and ``lasting`` are what :class:`DualBound` says."""
    if not isinstance(bound, DualBound):
        return
    for case in (make_case(3), make_case(150)):
        known, points = case.known, case.points
        with np.errstate(all="ignore"):
            found = bound.attained(known, points, BOTH)
            joint_bound = np.asarray(bound.joint_bound(known, found.ridges))
        wanted = len(BOTH), len(points)
        as_numbers(found.values, wanted, "attained")
        for name, array in (
            ("ridges", found.ridges),
            ("scales", found.scales),
            ("joint_bound", joint_bound),
        ):
            if not np.all(np.isfinite(as_numbers(array, wanted, name)) & (array > 0)):
                raise BrokenError(f"returned {name} that are not positive")
        equal(case, ask(bound, known, points), found.values, "from attained than from extremes")
        at = DualAt(known, points, found.ridges, joint_bound)
        equal(case, found.values, at.scale(found.scales), "than its ridges, scales and joint_bound")
        for factor in (0.5, 2.0):
            if np.any(at.scale(factor * found.scales) < found.values - AGREEMENT * case.scale):
                raise BrokenError("has scales that are not the best at their ridges")
        if bound.exact:
            _check_exact(case, found.values)
        if bound.lasting(known):
            _check_lasting(bound, case, at, found.scales)


@dataclass(frozen=True)
class DualAt:
    """The dual function of :class:`DualBound` at given ridges, all arrays (signs, m)."""

    known: ConfidenceSet
    points: Array
    ridges: Array
    joint_bound: Array

    def scale(self, scales: Array) -> Array:
        """s mu + rho^2 / (2 scale) + scale (joint_bound - E / alpha) / 2."""
        result = np.empty_like(scales)
        for i, sign in enumerate(BOTH):
            for j, ridge in enumerate(self.ridges[i]):
                found = self.known.predict(self.points[[j]], np.array([ridge]))
                scale, excess = scales[i, j], self.joint_bound[i, j] - found.energy[0] / ridge
                spread = found.variance[0, 0] / scale + scale * excess
                result[i, j] = sign * found.mean[0, 0] + spread / 2
        return result


def _check_exact(case: Case, values: Array) -> None:
    """Between two points such a bound changes by at most B |phi(x) - phi(c)|."""
    known, points = case.known, case.points
    prior = known.prior(points)
    gram = cross(known.kernel, points, points)
    squared = np.maximum(prior[:, None] + prior - 2 * gram, 0.0)
    most = known.assumptions.norm_bound * np.sqrt(squared) + AGREEMENT * case.scale.max()
    if np.any(np.abs(values[:, :, None] - values[:, None, :]) > most):
        raise BrokenError("says that it is exact, and changes faster than functions of norm B do")


def _check_lasting(bound: DualBound, case: Case, then: DualAt, scales: Array) -> None:
    """With more data, and the ridges and scales of before, the dual function is no smaller."""
    values = then.scale(scales)
    later = ConfidenceSequence(KERNEL, NORM, NOISE, SURE)
    later.update(case.known.points, case.known.outcomes)
    more = np.random.default_rng(3).random((10, case.points.shape[1]))
    later.update(more, case.truth(more))
    grown = np.asarray(bound.joint_bound(later.known, then.ridges)) - then.joint_bound
    now = ask(bound, later.known, case.points)
    if np.any(now > values + scales * grown / 2 + AGREEMENT * case.scale):
        raise BrokenError("says that its ridges last, and is larger later than they allow")
