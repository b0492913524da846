"""The clauses of a bound's contract that are checked on fixed data with a known truth.

Each clause is a function of the bound that raises :class:`BrokenError` where the bound breaks it.
Everything is seeded: a bound passes always or never.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.arrays import Array
from kernelbounds.bounds import Bound, ConfidenceSet, DualBound
from kernelbounds.bounds.bound import TIE, fault_of
from kernelbounds.errors import KernelBoundsError
from kernelbounds.kernels import cross
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

KERNEL = Matern(length_scale=0.3, nu=1.5)
NORM, NOISE = 3.0, 0.2
CASE_DELTA = 1e-6  # a valid bound fails on the fixed data with this probability at most
BOTH_SIGNS = (1, -1)

# Bounds that should agree may differ by this, relative to the trivial bound: ten times what CMM's
# search leaves between points that are computed together and apart.
AGREEMENT = 10 * TIE


class BrokenError(Exception):
    """A broken clause, described by the end of a sentence that begins with the bound."""


@dataclass(frozen=True)
class CheckCase:
    """Data with a known truth, and points to ask about."""

    known: ConfidenceSet
    truth: RKHSFunction
    points: Array

    @property
    def slack(self) -> Array:
        """The rounding that is allowed at each of the m points, (m,)."""
        return AGREEMENT * self.known.trivial(self.points)

    def contained(self, upper: Array, opposite: Array) -> bool:
        """Tell whether the truth is within bounds on f* and on -f*, (m,) each."""
        truth, slack = self.truth(self.points), self.slack
        return not (np.any(truth > upper + slack) or np.any(-truth > opposite + slack))

    def require_equal(self, one: Array, other: Array, difference: str) -> None:
        """Refuse bounds (signs, m) that differ, where infinite ones are equal."""
        with np.errstate(invalid="ignore"):
            off = np.where(one == other, 0.0, np.abs(one - other)) / self.slack
        if not off.max() <= 1:
            raise BrokenError(
                f"gives other bounds {difference}; they differ by up to {AGREEMENT * off.max():.2g}"
                " times the trivial bound"
            )


def make_case(
    count: int, dim: int = 2, noise: float = NOISE, seed: int = 0, spread: float = 1.0
) -> CheckCase:
    """Make data, and ask about random points, points of the data, one of them twice, and one far.

    Noise scales of the observations are ``noise`` divided and multiplied by ``spread``, in turn.
    """
    rng = np.random.default_rng([seed, count, dim])
    truth = random_truth(rng, dim)
    data = rng.random((count, dim))
    data[count // 2 :: 7] = data[0]  # some are repeated
    sequence = ConfidenceSequence(KERNEL, NORM, noise, CASE_DELTA)
    scales = noise * spread ** np.resize([-1.0, 1.0], count)
    outcomes = truth(data) + scales * rng.standard_normal(count)
    sequence.update(data, outcomes, None if spread == 1 else scales)
    asked = np.concatenate([rng.random((12, dim)), data[:3], data[:1], np.full((1, dim), 30.0)])
    return CheckCase(sequence.known, truth, asked)


def random_truth(rng: np.random.Generator, dim: int) -> RKHSFunction:
    """Draw a function of norm B."""
    return RKHSFunction(KERNEL, rng.random((6, dim)), rng.standard_normal(6)).rescaled(NORM)


def ask(
    bound: Bound, known: ConfidenceSet, points: Array, signs: Sequence[int] = BOTH_SIGNS
) -> Array:
    """Return ``extremes`` at points, as many at a time as the bound takes, if they are bounds."""
    found = []
    for some in in_portions(bound, points):
        with np.errstate(all="ignore"):
            portion = bound.extremes(known, some, signs)
        found.append(as_upper_bounds(portion, (len(signs), len(some)), "extremes"))
    return np.concatenate(found, axis=1)


def in_portions(bound: Bound, points: Array) -> list[Array]:
    """Split points into portions no larger than the bound takes."""
    size = bound.points_at_once or len(points)
    return [points[start : start + size] for start in range(0, len(points), size)]


def as_upper_bounds(found: object, wanted: tuple[int, int], method: str) -> Array:
    """Return what a method returned as an array, or refuse it where it is not upper bounds."""
    if fault := fault_of(found, wanted):
        raise BrokenError(f"{fault}; this was from {method}()")
    return np.asarray(found, dtype=np.float64)


def has_repr(bound: Bound) -> None:
    """Check that the bound has a repr, which messages and saved files need."""
    if not (isinstance(text := repr(bound), str) and text):
        raise BrokenError("has an empty repr")


def answers(bound: Bound) -> None:
    """Check that the bound gives numbers of the right shape, in all the ways it is asked."""
    for dim in (1, 2):
        for count in (1, 3, 150):
            case = make_case(count, dim)
            for signs in ((1,), (-1,), BOTH_SIGNS):
                for points in (case.points, case.points[:1]):
                    ask(bound, case.known, points, signs)
    quiet = make_case(8, noise=0.0)
    try:
        ask(bound, quiet.known, quiet.points)
    except KernelBoundsError:
        return  # The bound refuses data without noise, and says so.
    except BrokenError as broken:
        raise BrokenError(f"{broken}; this was at noise_scale = 0") from None


def sides(bound: Bound) -> None:
    """Check that upper bounds are above and lower ones below, whatever the order of the signs."""
    for count in (3, 150):
        case = make_case(count)
        upper, opposite = both = ask(bound, case.known, case.points)
        if np.any(upper + opposite < -case.slack):
            raise BrokenError("gives lower bounds that exceed its upper ones")
        if not case.contained(upper, opposite):
            raise BrokenError(
                "has its signs the wrong way round: +1 asks for an upper bound on f*, and -1 for "
                "one on -f*"
                if case.contained(opposite, upper)
                else f"does not contain the truth after {count} observations of a fixed example"
            )
        turned = ask(bound, case.known, case.points, (-1, 1))[::-1]
        case.require_equal(both, turned, "for the signs (1, -1) and (-1, 1)")
        alone = [ask(bound, case.known, case.points, (sign,))[0] for sign in BOTH_SIGNS]
        case.require_equal(both, np.array(alone), "for both signs at once and one at a time")


def weights(bound: Bound) -> None:
    """Check that the truth is inside where observations have noise scales of their own."""
    for count in (4, 40):
        for seed in range(4):
            # Outcomes that are taken for 20 times too precise or too vague move most bounds by
            # more than their width.
            case = make_case(count, seed=seed, spread=20.0)
            try:
                upper, opposite = ask(bound, case.known, case.points)
            except KernelBoundsError:
                return  # The bound refuses such data, and says so.
            if not case.contained(upper, opposite):
                raise BrokenError(
                    "does not contain the truth where observations have noise scales sigma_s of "
                    "their own: known.outcomes are w_s y_s with the known.weights w_s = sigma / "
                    "sigma_s, which observe w_s f*(x_s) with noise of scale sigma; use them so, or "
                    "raise an InputError where weights are not 1"
                )


def points(bound: Bound) -> None:
    """Check that a bound depends on its point alone."""
    for count in (3, 150):
        case = make_case(count)
        together = ask(bound, case.known, case.points)
        backwards = ask(bound, case.known, case.points[::-1].copy())[:, ::-1]
        case.require_equal(together, backwards, "when the points are given in another order")
        alone = np.hstack([ask(bound, case.known, point[None]) for point in case.points])
        case.require_equal(together, alone, "at a point when others are asked")


def data(bound: Bound) -> None:
    """Check that a bound depends on the data alone, not on how they came or what was asked."""
    case, other, fresh = make_case(40), make_case(40, seed=1), copy.deepcopy(bound)
    first = ask(bound, case.known, case.points)
    case.require_equal(first, ask(bound, case.known, case.points), "when it is asked twice")
    used, new = (ask(one, other.known, other.points) for one in (bound, fresh))
    other.require_equal(used, new, "after it was asked about other data")
    grown = ConfidenceSequence(KERNEL, NORM, NOISE, CASE_DELTA)
    for x, y in zip(case.known.points, case.known.outcomes, strict=True):
        grown.update(x, y)
        ask(bound, grown.known, case.points[:2])
    one_by_one = ask(bound, grown.known, case.points)
    case.require_equal(first, one_by_one, "for data that were added one by one and at once")


def nothing_changes(bound: Bound) -> None:
    """Check that asking leaves the points and the data as they were."""
    case = make_case(20)
    looked_at = {
        "the points that it is asked about": case.points,
        "the points of the data": case.known.points,
        "the outcomes": case.known.outcomes,
    }
    before = {name: array.copy() for name, array in looked_at.items()}
    ask(bound, case.known, case.points)
    for name, array in looked_at.items():
        if not np.array_equal(array, before[name]):
            raise BrokenError(f"changes {name}")


def copies(bound: Bound) -> None:
    """Check that a deep copy gives the same bounds."""
    case = make_case(20)
    found = ask(copy.deepcopy(bound), case.known, case.points)
    case.require_equal(ask(bound, case.known, case.points), found, "as a deep copy of itself")


def largest(bound: Bound) -> None:
    """Check that ``largest`` agrees with ``extremes``."""
    if bound.points_at_once is not None:
        return  # ``largest`` takes all points at once.
    for count in (3, 150):
        case = make_case(count)
        near = float(case.slack.max())
        both = ask(bound, case.known, case.points)
        for sign, upper, opposite in zip(BOTH_SIGNS, both, both[::-1], strict=True):
            with np.errstate(all="ignore"):
                found = bound.largest(case.known, case.points, sign, near)
            pairs = [(found.value, upper.max()), (found.opposite, opposite[found.at])]
            if any(a != b and not abs(a - b) <= near for a, b in pairs):
                raise BrokenError("returns another largest bound from largest than from extremes")
            if upper[found.at] < upper.max() - 2 * near:
                raise BrokenError("does not find where its bounds are largest")


def dual(bound: Bound) -> None:
    """Check what gradients, certified maxima and fast updates rely on, of a :class:`DualBound`.

    These are ``attained``, ``joint_bound``, ``exact`` and ``lasting``.
    """
    if not isinstance(bound, DualBound):
        return
    for case in (make_case(3), make_case(150)):
        known, asked = case.known, case.points
        with np.errstate(all="ignore"):
            found = bound.attained(known, asked, BOTH_SIGNS)
            joint_bound = np.asarray(bound.joint_bound(known, found.ridges))
        wanted = len(BOTH_SIGNS), len(asked)
        as_upper_bounds(found.values, wanted, "attained")
        positive = {"ridges": found.ridges, "scales": found.scales, "joint_bound": joint_bound}
        for name, array in positive.items():
            if not np.all(np.isfinite(as_upper_bounds(array, wanted, name)) & (array > 0)):
                raise BrokenError(f"returned {name} that are not positive")
        extremes = ask(bound, known, asked)
        case.require_equal(extremes, found.values, "from attained than from extremes")
        values = _dual_function(case, found.ridges, found.scales, joint_bound)
        case.require_equal(found.values, values, "than its ridges, scales and joint_bound")
        for factor in (0.5, 2.0):
            others = _dual_function(case, found.ridges, factor * found.scales, joint_bound)
            if np.any(others < found.values - case.slack):
                raise BrokenError("has scales that are not the best at their ridges")
        if bound.exact:
            _check_exact(case, found.values)
        if bound.lasting(known):
            later = ConfidenceSequence(KERNEL, NORM, NOISE, CASE_DELTA)
            later.update(known.points, known.outcomes)
            more = np.random.default_rng(3).random((10, asked.shape[1]))
            later.update(more, case.truth(more))
            # With the ridges and scales of before, the dual function is no smaller than the bound.
            grown = np.asarray(bound.joint_bound(later.known, found.ridges)) - joint_bound
            ceilings = values + found.scales * grown / 2
            if np.any(ask(bound, later.known, asked) > ceilings + case.slack):
                raise BrokenError("says that its ridges last, and is larger later than they allow")


def _dual_function(case: CheckCase, ridges: Array, scales: Array, joint_bound: Array) -> Array:
    """Compute s mu + rho^2 / (2 scale) + scale (joint_bound - E / alpha) / 2; all (signs, m)."""
    result = np.empty_like(scales)
    for i, j in np.ndindex(scales.shape):
        ridge, scale = ridges[i, j], scales[i, j]
        found = case.known.predict(case.points[[j]], np.array([ridge]))
        spread = found.variance[0, 0] / scale
        spread += scale * (joint_bound[i, j] - found.energy[0] / ridge)
        result[i, j] = BOTH_SIGNS[i] * found.mean[0, 0] + spread / 2
    return result


def _check_exact(case: CheckCase, values: Array) -> None:
    """Check that between two points the bound changes by at most B |phi(x) - phi(c)|."""
    known, asked = case.known, case.points
    prior = known.prior(asked)
    squared = np.maximum(prior[:, None] + prior - 2 * cross(known.kernel, asked, asked), 0.0)
    most = known.assumptions.norm_bound * np.sqrt(squared) + case.slack.max()
    if np.any(np.abs(values[:, :, None] - values[:, None, :]) > most):
        raise BrokenError("says that it is exact, and changes faster than functions of norm B do")


def follows_units(bound: Bound) -> bool:
    """Tell whether the bounds are multiplied by s when outcomes, B and sigma are."""
    case, unit = make_case(20), 2.0**10
    other = ConfidenceSequence(KERNEL, unit * NORM, unit * NOISE, CASE_DELTA)
    other.update(case.known.points, unit * case.known.outcomes)
    found = ask(bound, other.known, case.points) / unit
    return bool(np.allclose(found, ask(bound, case.known, case.points), rtol=1e-6, atol=AGREEMENT))
