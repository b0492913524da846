"""All clauses, one after the other, and a sentence about the first that is broken.

Each clause is a function of the bound that raises :class:`BrokenError` with what is wrong.
Everything is seeded: a bound passes always or never.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kernelbounds.arrays import brief, shortened
from kernelbounds.bounds import Bound
from kernelbounds.checking import clauses
from kernelbounds.checking.cases import BrokenError
from kernelbounds.checking.coverage import DELTA, DOUBTFUL, coverage, probability_of
from kernelbounds.checking.dual import dual
from kernelbounds.errors import InputError, KernelBoundsError, said

T = TypeVar("T")

CLAUSES: dict[str, Callable[[Bound], None]] = {
    "repr": clauses.has_repr,
    "answers": clauses.answers,
    "nothing changes": clauses.nothing_changes,
    "sides": clauses.sides,
    "points": clauses.points,
    "copies": clauses.copies,
    "data": clauses.data,
    "largest": clauses.largest,
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
    _apply(bound, "weights", clauses.weights)  # last, so that a narrow bound is called that
    return BoundReport(misses, runs, width, _apply(bound, "units", clauses.follows_units))


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
