"""The contract of a bound, checked, as scikit-learn checks estimators.

Each clause is a function below that raises :class:`_Broken` with what is wrong; the docstring of
:func:`check_bound` lists them. Everything is seeded: a bound passes always or never.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.stats import binom
from sklearn.gaussian_process.kernels import Kernel, Matern

from kernelbounds.arrays import Array, brief, shortened
from kernelbounds.bounds import CMM, TIE, Bound, DualBound, Knowledge
from kernelbounds.errors import InputError, KernelBoundsError, said
from kernelbounds.kernels import cross
from kernelbounds.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

T = TypeVar("T")

KERNEL = Matern(length_scale=0.3, nu=1.5)
NORM, NOISE = 3.0, 0.2
SURE = 1e-6  # delta in the clauses on fixed data, where a valid bound fails with this probability
BOTH = (1, -1)

# Bounds that should agree may differ by this, relative to the trivial bound: ten times what CMM's
# search leaves between points that are computed together and apart.
AGREEMENT = 10 * TIE

# The coverage run. A run is a miss when the truth is outside of the bounds anywhere on the grid
# after any number of observations, which has a probability of at most DELTA. The bound fails when
# so many runs miss that a binomial variable reaches this with a probability below LEVEL.
RUNS, ROUNDS, DELTA, LEVEL = 60, 12, 0.1, 1e-4
GRID = np.linspace(0, 1, 25)[:, None]


@dataclass(frozen=True)
class BoundReport:
    """What :func:`check_bound` has measured of a bound that passes.

    Attributes
    ----------
    misses : int
        Runs of the coverage test in which the truth was outside at any time.
    runs : int
        All runs of the coverage test.
    width : float
        Mean width at the ends of these runs, relative to CMM's on the same data.
    follows_units : bool
        Whether the bounds are multiplied by s when outcomes, B and sigma are, and c by s^2. All
        bounds of the package are; it is no part of the contract.
    """

    misses: int
    runs: int
    width: float
    follows_units: bool

    def __str__(self) -> str:
        units = "follows" if self.follows_units else "does not follow"
        return (
            f"the contract holds; the truth was outside in {self.misses} of {self.runs} runs at "
            f"delta = {DELTA:g}; {self.width:.2f} times as wide as CMM; {units} the units"
        )


def check_bound(bound: Bound) -> BoundReport:
    """Check that a bound keeps the contract of :class:`Bound`; it takes a few seconds.

    Raises one :class:`KernelBoundsError` that names the bound and the clause that it breaks:

    - *repr*: it has one, which messages and saved files need;
    - *answers*: numbers of the shape (signs, points), for one and many points, observations and
      signs in one and two dimensions; never nan or minus infinity; without noise too, where it
      may also refuse by a ``KernelBoundsError``;
    - *sides*: lower bounds are not above upper ones, sign +1 bounds f* from above and -1 from
      below, and the order of the signs does not matter;
    - *points*: a bound depends on its point alone, not on the others asked for or their order;
    - *nothing changes*: asking leaves the points and the data as they were;
    - *copies*: a deep copy gives the same bounds, which batches need;
    - *data*: asking again gives the same, on data added one by one or at once, whatever other
      data the object was asked about before;
    - *largest*: ``largest`` agrees with ``extremes``;
    - *dual*, for a :class:`~kernelbounds.bounds.DualBound`: ``attained`` agrees with
      ``extremes``, its ridges, scales and ``reach`` give its values by the formula of the class,
      no other scale gives less, and ``exact`` and ``lasting`` keep what they promise;
    - *coverage*: in 60 short runs whose points are chosen by the bound itself, the truth leaves the
      bounds no more often than delta = 0.1 allows.

    A valid bound fails with probability at most 1e-4, over the random numbers that are fixed
    here. To pass is no proof: a bound may be too narrow where these runs do not lead.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> report = kb.check_bound(kb.AMM())
    >>> report.follows_units, report.misses <= 16
    (True, True)
    """
    if not isinstance(bound, Bound):
        made = "an object of a class, not the class" if isinstance(bound, type) else "an object"
        raise InputError(
            f"check_bound takes {made} that is derived from kernelbounds.Bound, got {brief(bound)}."
        )
    for clause, check in CLAUSES.items():
        _apply(bound, clause, check)
    misses, width = _apply(bound, "coverage", _coverage)
    return BoundReport(misses, RUNS, width, _apply(bound, "units", _follows_units))


class _Broken(Exception):
    """What is wrong, as the end of a sentence that begins with the bound."""


def _apply(bound: Bound, clause: str, check: Callable[[Bound], T]) -> T:
    try:
        return check(bound)
    except _Broken as broken:
        problem, cause = str(broken), None
    except Exception as error:
        problem, cause = f"raised {type(error).__name__}: {said(error)}", error
    raise KernelBoundsError(
        f"the bound {_name(bound)} breaks the contract of kernelbounds.Bound, clause "
        f"'{clause}': it {problem}."
    ) from cause


def _name(bound: Bound) -> str:
    try:
        return shortened(repr(bound))
    except Exception:  # which is what the first clause reports
        return type(bound).__name__


# --- random data, and what a bound says of them


@dataclass(frozen=True)
class _Case:
    """Data with a known truth, and points to ask about."""

    known: Knowledge
    truth: RKHSFunction
    points: Array

    @property
    def scale(self) -> Array:
        """What bounds are compared relative to, (m,)."""
        return self.known.trivial(self.points)


def _case(count: int, dim: int = 2, noise: float = NOISE, seed: int = 0) -> _Case:
    """Asked about are random points, points of the data, twice the same, and one far away."""
    rng = np.random.default_rng([seed, count, dim])
    truth = _random_truth(rng, dim)
    data = rng.random((count, dim))
    data[count // 2 :: 7] = data[0]  # some are repeated
    sequence = ConfidenceSequence(KERNEL, NORM, noise, SURE)
    sequence.update(data, truth(data) + noise * rng.standard_normal(count))
    asked = np.concatenate([rng.random((12, dim)), data[:3], data[:1], np.full((1, dim), 30.0)])
    return _Case(sequence.known, truth, asked)


def _random_truth(rng: np.random.Generator, dim: int, kernel: Kernel = KERNEL) -> RKHSFunction:
    return RKHSFunction(kernel, rng.random((6, dim)), rng.standard_normal(6)).rescaled(NORM)


def _ask(bound: Bound, known: Knowledge, points: Array, signs: Sequence[int] = BOTH) -> Array:
    """The bounds, refused where they are none."""
    with np.errstate(all="ignore"):
        found = bound.extremes(known, points, signs)
    return _numbers(found, (len(signs), len(points)), "extremes")


def _numbers(found: object, wanted: tuple[int, int], what: str) -> Array:
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise _Broken(f"returned {type(found).__name__} in place of an array from {what}") from None
    if values.shape != wanted:
        raise _Broken(
            f"returned the shape {values.shape} from {what} for {wanted[0]} sign(s) and "
            f"{wanted[1]} point(s); it must be {wanted}"
        )
    if not np.all(values > -np.inf):
        raise _Broken(f"returned nan or minus infinity from {what}, which bounds nothing")
    return values


def _equal(case: _Case, one: Array, other: Array, difference: str) -> None:
    """Refuse bounds that differ; infinite ones are equal."""
    with np.errstate(invalid="ignore"):
        off = np.where(one == other, 0.0, np.abs(one - other)) / case.scale
    if not off.max() <= AGREEMENT:
        raise _Broken(
            f"gives other bounds {difference}; they differ by up to {off.max():.2g} times the "
            "trivial bound"
        )


# --- the clauses


def _repr(bound: Bound) -> None:
    if not (isinstance(text := repr(bound), str) and text):
        raise _Broken("has an empty repr")


def _answers(bound: Bound) -> None:
    for dim in (1, 2):
        for count in (1, 3, 150):
            case = _case(count, dim)
            for signs in ((1,), (-1,), BOTH):
                for points in (case.points, case.points[:1]):
                    _ask(bound, case.known, points, signs)
    quiet = _case(8, noise=0.0)
    try:
        _ask(bound, quiet.known, quiet.points)
    except KernelBoundsError:
        return  # it refuses data without noise, and says so
    except _Broken as broken:
        raise _Broken(f"{broken}; this was at noise_scale = 0") from None


def _sides(bound: Bound) -> None:
    for count in (3, 150):
        case = _case(count)
        upper, opposite = both = _ask(bound, case.known, case.points)
        if np.any(upper + opposite < -AGREEMENT * case.scale):
            raise _Broken("gives lower bounds that exceed its upper ones")
        truth = case.truth(case.points)
        slack = AGREEMENT * case.scale
        if np.any(truth > upper + slack) or np.any(-truth > opposite + slack):
            swapped = np.all(truth <= opposite + slack) and np.all(-truth <= upper + slack)
            raise _Broken(
                "has its signs the wrong way round: +1 asks for an upper bound on f*, and -1 for "
                "one on -f*"
                if swapped
                else f"does not contain the truth after {count} observations of a fixed example"
            )
        turned = _ask(bound, case.known, case.points, (-1, 1))[::-1]
        _equal(case, both, turned, "for the signs (1, -1) and (-1, 1)")
        alone = [_ask(bound, case.known, case.points, (sign,))[0] for sign in BOTH]
        _equal(case, both, np.array(alone), "for both signs at once and one at a time")


def _points(bound: Bound) -> None:
    for count in (3, 150):
        case = _case(count)
        together = _ask(bound, case.known, case.points)
        backwards = _ask(bound, case.known, case.points[::-1].copy())[:, ::-1]
        _equal(case, together, backwards, "when the points are given in another order")
        apart = [_ask(bound, case.known, point[None]) for point in case.points]
        _equal(case, together, np.concatenate(apart, axis=1), "at a point when others are asked")


def _data(bound: Bound) -> None:
    case, other, fresh = _case(40), _case(40, seed=1), copy.deepcopy(bound)
    first = _ask(bound, case.known, case.points)
    _equal(case, first, _ask(bound, case.known, case.points), "when it is asked twice")
    used, new = (_ask(one, other.known, other.points) for one in (bound, fresh))
    _equal(other, used, new, "after it was asked about other data")
    grown = ConfidenceSequence(KERNEL, NORM, NOISE, SURE)
    for x, y in zip(case.known.points, case.known.outcomes, strict=True):
        grown.update(x, y)
        _ask(bound, grown.known, case.points[:2])
    one_by_one = _ask(bound, grown.known, case.points)
    _equal(case, first, one_by_one, "for data that were added one by one and at once")


def _nothing_changes(bound: Bound) -> None:
    case = _case(20)
    looked_at = {
        "the points that it is asked about": case.points,
        "the points of the data": case.known.points,
        "the outcomes": case.known.outcomes,
    }
    before = {name: array.copy() for name, array in looked_at.items()}
    _ask(bound, case.known, case.points)
    for name, array in looked_at.items():
        if not np.array_equal(array, before[name]):
            raise _Broken(f"changes {name}")


def _copies(bound: Bound) -> None:
    case = _case(20)
    found = _ask(copy.deepcopy(bound), case.known, case.points)
    _equal(case, _ask(bound, case.known, case.points), found, "as a deep copy of itself")


def _largest(bound: Bound) -> None:
    for count in (3, 150):
        case = _case(count)
        near = AGREEMENT * float(case.scale.max())
        both = _ask(bound, case.known, case.points)
        for sign, upper, opposite in zip(BOTH, both, both[::-1], strict=True):
            with np.errstate(all="ignore"):
                found = bound.largest(case.known, case.points, sign, near)
            there = upper[found.at], opposite[found.at]
            pairs = [(found.value, upper.max()), (found.opposite, there[1])]
            if any(a != b and not abs(a - b) <= near for a, b in pairs):
                raise _Broken("returns another largest bound from largest than from extremes")
            if there[0] < upper.max() - 2 * near:
                raise _Broken("does not find where its bounds are largest")


def _dual(bound: Bound) -> None:
    if not isinstance(bound, DualBound):
        return
    for case in (_case(3), _case(150)):
        known, points = case.known, case.points
        with np.errstate(all="ignore"):
            found = bound.attained(known, points, BOTH)
            reach = np.asarray(bound.reach(known, found.ridges))
        wanted = len(BOTH), len(points)
        _numbers(found.values, wanted, "attained")
        for name, array in (("ridges", found.ridges), ("scales", found.scales), ("reach", reach)):
            if not np.all(np.isfinite(_numbers(array, wanted, name)) & (array > 0)):
                raise _Broken(f"returned {name} that are not positive")
        _equal(case, _ask(bound, known, points), found.values, "from attained than from extremes")
        at = _DualAt(known, points, found.ridges, reach)
        _equal(case, found.values, at.scale(found.scales), "than its ridges, scales and reach")
        for factor in (0.5, 2.0):
            if np.any(at.scale(factor * found.scales) < found.values - AGREEMENT * case.scale):
                raise _Broken("has scales that are not the best at their ridges")
        if bound.exact:
            _check_exact(case, found.values)
        if bound.lasting(known):
            _check_lasting(bound, case, at, found.scales)


@dataclass(frozen=True)
class _DualAt:
    """The dual function of :class:`DualBound` at given ridges, all arrays (signs, m)."""

    known: Knowledge
    points: Array
    ridges: Array
    reach: Array

    def scale(self, scales: Array) -> Array:
        """s mu + rho^2 / (2 scale) + scale (reach - E / alpha) / 2."""
        result = np.empty_like(scales)
        for i, sign in enumerate(BOTH):
            for j, ridge in enumerate(self.ridges[i]):
                found = self.known.predict(self.points[[j]], np.array([ridge]))
                scale, excess = scales[i, j], self.reach[i, j] - found.energy[0] / ridge
                spread = found.variance[0, 0] / scale + scale * excess
                result[i, j] = sign * found.mean[0, 0] + spread / 2
        return result


def _check_exact(case: _Case, values: Array) -> None:
    """Between two points such a bound changes by at most B |phi(x) - phi(c)|."""
    known, points = case.known, case.points
    prior = known.prior(points)
    gram = cross(known.kernel, points, points)
    squared = np.maximum(prior[:, None] + prior - 2 * gram, 0.0)
    most = known.assumptions.norm_bound * np.sqrt(squared) + AGREEMENT * case.scale.max()
    if np.any(np.abs(values[:, :, None] - values[:, None, :]) > most):
        raise _Broken("says that it is exact, and changes faster than functions of norm B do")


def _check_lasting(bound: DualBound, case: _Case, then: _DualAt, scales: Array) -> None:
    """With more data, and the ridges and scales of before, the dual function is no smaller."""
    values = then.scale(scales)
    later = ConfidenceSequence(KERNEL, NORM, NOISE, SURE)
    later.update(case.known.points, case.known.outcomes)
    more = np.random.default_rng(3).random((10, case.points.shape[1]))
    later.update(more, case.truth(more))
    grown = np.asarray(bound.reach(later.known, then.ridges)) - then.reach
    now = _ask(bound, later.known, case.points)
    if np.any(now > values + scales * grown / 2 + AGREEMENT * case.scale):
        raise _Broken("says that its ridges last, and is larger later than they allow")


# --- statistics


def _coverage(bound: Bound) -> tuple[int, float]:
    """The number of runs that miss, and the mean width at their ends relative to CMM's."""
    misses, widths = 0, np.zeros(2)
    for run in range(RUNS):
        sequence = _played(bound, run)
        if sequence is None:
            misses += 1
            continue
        for i, one in enumerate((bound, CMM())):
            lower, upper = sequence.bounds(GRID, one)
            widths[i] += np.mean(upper - lower)
    if binom.sf(misses - 1, RUNS, DELTA) < LEVEL:
        raise _Broken(
            f"missed the truth in {misses} of {RUNS} runs at delta = {DELTA:g}; of a valid bound, "
            f"so many are seen with a probability below {LEVEL:g}"
        )
    return misses, float(widths[0] / widths[1])


def _played(bound: Bound, run: int) -> ConfidenceSequence | None:
    """A run with points chosen by the bound; None when it misses the truth."""
    rng = np.random.default_rng([7, run])
    # Every other truth is as high at one place as its norm allows, so that a width below what the
    # norm demands is noticed at once. Noise is small in half of the runs, and large in the others.
    truth = RKHSFunction(KERNEL, rng.random((1, 1)), [1.0]) if run % 2 else _random_truth(rng, 1)
    noise, values = (0.1, 1.0)[run % 4 // 2], truth.rescaled(NORM)(GRID)
    sequence = ConfidenceSequence(KERNEL, NORM * (1 + 1e-12), noise, DELTA, bound=bound)
    for _ in range(ROUNDS):
        # The largest upper bound, as KernelUCB has it; now and then another, to see all places.
        at = int(rng.integers(len(GRID)))
        if len(sequence) and rng.random() < 0.7:
            at = int(upper.argmax())
        sequence.update(GRID[at], values[at] + noise * rng.standard_normal())
        try:
            lower, upper = sequence.bounds(GRID)
        except KernelBoundsError:  # its set is empty, or its bounds cross
            return None
        if np.any(values < lower - 1e-9 * NORM) or np.any(values > upper + 1e-9 * NORM):
            return None
    return sequence


def _follows_units(bound: Bound) -> bool:
    case, unit = _case(20), 2.0**10
    a = case.known.assumptions
    other = ConfidenceSequence(
        KERNEL, unit * NORM, unit * NOISE, a.delta, unit**2 * a.mixture_scale
    )
    other.update(case.known.points, unit * case.known.outcomes)
    found = _ask(bound, other.known, case.points) / unit
    return bool(np.allclose(found, _ask(bound, case.known, case.points), rtol=1e-6, atol=AGREEMENT))


CLAUSES: dict[str, Callable[[Bound], None]] = {
    "repr": _repr,
    "answers": _answers,
    "nothing changes": _nothing_changes,
    "sides": _sides,
    "points": _points,
    "copies": _copies,
    "data": _data,
    "largest": _largest,
    "dual": _dual,
}
