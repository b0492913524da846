"""All clauses, one after the other, and a sentence about the first that is broken.

Each clause is a function of the bound that raises :class:`BrokenError` with what is wrong.
Everything is seeded: a bound passes always or never.

The clauses that hold for every bound, except the one on coverage.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from kernelbounds.arrays import brief, shortened
from kernelbounds.bounds import Bound
from kernelbounds.checking.coverage import (
    AGREEMENT,
    BOTH,
    DELTA,
    DOUBTFUL,
    KERNEL,
    NOISE,
    NORM,
    SURE,
    BrokenError,
    ask,
    coverage,
    equal,
    make_case,
    probability_of,
)
from kernelbounds.checking.dual import dual
from kernelbounds.errors import InputError, KernelBoundsError, said
from kernelbounds.sequence import ConfidenceSequence


def has_repr(bound: Bound) -> None:
    """It has a repr, which messages and saved files need."""
    if not (isinstance(text := repr(bound), str) and text):
        raise BrokenError("has an empty repr")


def answers(bound: Bound) -> None:
    """Numbers of the right shape, in all the ways in which it is asked."""
    for dim in (1, 2):
        for count in (1, 3, 150):
            case = make_case(count, dim)
            for signs in ((1,), (-1,), BOTH):
                for points in (case.points, case.points[:1]):
                    ask(bound, case.known, points, signs)
    quiet = make_case(8, noise=0.0)
    try:
        ask(bound, quiet.known, quiet.points)
    except KernelBoundsError:
        return  # it refuses data without noise, and says so
    except BrokenError as broken:
        raise BrokenError(f"{broken}; this was at noise_scale = 0") from None


def sides(bound: Bound) -> None:
    """Upper bounds are above and lower ones below, whatever the order of the signs."""
    for count in (3, 150):
        case = make_case(count)
        upper, opposite = both = ask(bound, case.known, case.points)
        if np.any(upper + opposite < -AGREEMENT * case.scale):
            raise BrokenError("gives lower bounds that exceed its upper ones")
        truth = case.truth(case.points)
        slack = AGREEMENT * case.scale
        if np.any(truth > upper + slack) or np.any(-truth > opposite + slack):
            swapped = np.all(truth <= opposite + slack) and np.all(-truth <= upper + slack)
            raise BrokenError(
                "has its signs the wrong way round: +1 asks for an upper bound on f*, and -1 for "
                "one on -f*"
                if swapped
                else f"does not contain the truth after {count} observations of a fixed example"
            )
        turned = ask(bound, case.known, case.points, (-1, 1))[::-1]
        equal(case, both, turned, "for the signs (1, -1) and (-1, 1)")
        alone = [ask(bound, case.known, case.points, (sign,))[0] for sign in BOTH]
        equal(case, both, np.array(alone), "for both signs at once and one at a time")


def weights(bound: Bound) -> None:
    """The truth is inside also where observations have noise scales of their own."""
    for count in (4, 40):
        for seed in range(4):
            # What is 20 times too precise or too vague is seen beyond the width of most bounds.
            case = make_case(count, seed=seed, spread=20.0)
            try:
                upper, opposite = ask(bound, case.known, case.points)
            except KernelBoundsError:
                return  # it refuses such data, and says so
            truth, slack = case.truth(case.points), AGREEMENT * case.scale
            if np.any(truth > upper + slack) or np.any(-truth > opposite + slack):
                raise BrokenError(
                    "does not contain the truth where observations have noise scales sigma_s of "
                    "their own: known.outcomes are w_s y_s with the known.weights w_s = sigma / "
                    "sigma_s, which observe w_s f*(x_s) with noise of scale sigma; use them so, or "
                    "raise an InputError where weights are not 1"
                )


def points(bound: Bound) -> None:
    """A bound depends on its point alone."""
    for count in (3, 150):
        case = make_case(count)
        together = ask(bound, case.known, case.points)
        backwards = ask(bound, case.known, case.points[::-1].copy())[:, ::-1]
        equal(case, together, backwards, "when the points are given in another order")
        apart = [ask(bound, case.known, point[None]) for point in case.points]
        equal(case, together, np.concatenate(apart, axis=1), "at a point when others are asked")


def data(bound: Bound) -> None:
    """A bound depends on the data alone, not on how they came or what was asked before."""
    case, other, fresh = make_case(40), make_case(40, seed=1), copy.deepcopy(bound)
    first = ask(bound, case.known, case.points)
    equal(case, first, ask(bound, case.known, case.points), "when it is asked twice")
    used, new = (ask(one, other.known, other.points) for one in (bound, fresh))
    equal(other, used, new, "after it was asked about other data")
    grown = ConfidenceSequence(KERNEL, NORM, NOISE, SURE)
    for x, y in zip(case.known.points, case.known.outcomes, strict=True):
        grown.update(x, y)
        ask(bound, grown.known, case.points[:2])
    one_by_one = ask(bound, grown.known, case.points)
    equal(case, first, one_by_one, "for data that were added one by one and at once")


def nothing_changes(bound: Bound) -> None:
    """Asking leaves everything as it was."""
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
    """A deep copy gives the same bounds."""
    case = make_case(20)
    found = ask(copy.deepcopy(bound), case.known, case.points)
    equal(case, ask(bound, case.known, case.points), found, "as a deep copy of itself")


def largest(bound: Bound) -> None:
    """``largest`` agrees with ``extremes``."""
    if bound.points_at_once is not None:
        return  # which is of all points at once
    for count in (3, 150):
        case = make_case(count)
        near = AGREEMENT * float(case.scale.max())
        both = ask(bound, case.known, case.points)
        for sign, upper, opposite in zip(BOTH, both, both[::-1], strict=True):
            with np.errstate(all="ignore"):
                found = bound.largest(case.known, case.points, sign, near)
            there = upper[found.at], opposite[found.at]
            pairs = [(found.value, upper.max()), (found.opposite, there[1])]
            if any(a != b and not abs(a - b) <= near for a, b in pairs):
                raise BrokenError("returns another largest bound from largest than from extremes")
            if there[0] < upper.max() - 2 * near:
                raise BrokenError("does not find where its bounds are largest")


def follows_units(bound: Bound) -> bool:
    """Whether the bounds are multiplied by s when outcomes, B and sigma are."""
    case, unit = make_case(20), 2.0**10
    other = ConfidenceSequence(KERNEL, unit * NORM, unit * NOISE, SURE)
    other.update(case.known.points, unit * case.known.outcomes)
    found = ask(bound, other.known, case.points) / unit
    return bool(np.allclose(found, ask(bound, case.known, case.points), rtol=1e-6, atol=AGREEMENT))


T = TypeVar("T")

CLAUSES: dict[str, Callable[[Bound], None]] = {
    "repr": has_repr,
    "answers": answers,
    "nothing changes": nothing_changes,
    "sides": sides,
    "points": points,
    "copies": copies,
    "data": data,
    "largest": largest,
    "dual": dual,
}


@dataclass(frozen=True)
class BoundReport:
    """What :func:`check_bound` has measured of a bound that passes.

    Attributes
    ----------
    misses : int
        Runs of the coverage test in which the truth was outside at any time, or as far as the
        guarantee of the bound goes.
    runs : int
        All runs of the coverage test; more than 60 where these left doubts.
    width : float
        Mean width at the ends of these runs, relative to CMM's on the same data.
    follows_units : bool
        Whether the bounds are multiplied by s when outcomes, B and sigma are, with the default
        radius. All bounds of the package are; it is no part of the contract.

    Examples
    --------
    Of a bound that was wrong in 2 of 60 runs, where 6 are allowed, and is wider than CMM by 40
    per cent, ``check_bound`` would return

    >>> from kernelbounds.checking import BoundReport
    >>> report = BoundReport(misses=2, runs=60, width=1.4, follows_units=True)
    >>> report.expected, round(report.p_value, 2)
    (6.0, 0.99)
    """

    misses: int
    runs: int
    width: float
    follows_units: bool

    @property
    def expected(self) -> float:
        """How many misses a valid bound has at most, on average: delta times the runs."""
        return DELTA * self.runs

    @property
    def p_value(self) -> float:
        """The probability of so many misses or more, of a bound that misses with probability delta.

        For a valid bound it is below p with a probability of at most p, for each p.
        """
        return probability_of(self.misses, self.runs)

    def __str__(self) -> str:
        units = "follows" if self.follows_units else "does not follow"
        doubtful = self.p_value < DOUBTFUL
        verdict = (
            "no clause is broken, but coverage is doubtful" if doubtful else "the contract holds"
        )
        return (
            f"{verdict}; the truth was outside in {self.misses} of {self.runs} runs, where at most "
            f"{self.expected:g} are expected at delta = {DELTA:g} (p = {self.p_value:.2g}); "
            f"{self.width:.2f} times as wide as CMM; {units} the units"
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
      ``extremes``, its ridges, scales and ``joint_bound`` give its values by the formula of the
      class, no other scale gives less, and ``exact`` and ``lasting`` keep what they promise;
    - *coverage*: in 60 short runs whose points are chosen by the bound itself, the truth leaves the
      bounds no more often than delta = 0.1 allows. Where so many misses have a probability below
      0.05, 240 runs more are made before that is judged. Of a bound whose ``guarantee`` covers
      less, the points are random, it is asked for at the end only, or at one x only;
    - *weights*: the truth is inside also where observations have noise scales of their own, some
      small and some large, which it may also refuse by a ``KernelBoundsError``.

    A valid bound fails with probability at most 1e-4, over the random numbers that are fixed
    here. To pass is no proof: a bound may be too narrow where these runs do not lead.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> report = kb.check_bound(kb.AMM())
    >>> report.follows_units, report.misses <= 16
    (True, True)
    """
    given: Any = bound
    if not isinstance(given, Bound):
        raise InputError(
            "check_bound takes an object of a class that is derived from kernelbounds.Bound, got "
            f"{brief(given)}."
        )
    for clause, check in CLAUSES.items():
        _apply(bound, clause, check)
    misses, runs, width = _apply(bound, "coverage", coverage)
    _apply(bound, "weights", weights)  # last, so that a narrow bound is called that
    return BoundReport(misses, runs, width, _apply(bound, "units", follows_units))


def _apply(bound: Bound, clause: str, check: Callable[[Bound], T]) -> T:
    try:
        return check(bound)
    except BrokenError as broken:
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
