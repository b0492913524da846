"""Check a bound against its contract, as scikit-learn checks estimators.

The clauses that are checked on fixed data are in ``clauses.py``. The clause on coverage plays short
runs with a known truth, and judges the misses by an exact binomial test. Everything is seeded: a
bound passes always or never.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.stats import binom

from kernelbounds.arrays import Array, brief, shortened
from kernelbounds.bounds import CMM, Bound
from kernelbounds.checking import clauses
from kernelbounds.checking.clauses import KERNEL, NORM, BrokenError, in_portions, random_truth
from kernelbounds.errors import EmptyConfidenceSetError, InputError, KernelBoundsError, said
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

__all__ = ["BoundReport", "check_bound"]

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
    "dual": clauses.dual,
}

# A run is a miss when the truth is outside of the bounds anywhere on the grid after any number of
# observations, which has a probability of at most DELTA. The bound fails when so many runs miss
# that a binomial variable reaches their number with a probability below FAILING_P_VALUE. Where it
# is below DOUBTFUL_P_VALUE, MORE_RUNS are made, and all are judged together. With at most two
# looks, a valid bound fails with a probability of at most 2 FAILING_P_VALUE.
RUNS, MORE_RUNS, DELTA = 60, 240, 0.1
FAILING_P_VALUE, DOUBTFUL_P_VALUE = 5e-5, 0.05
ROUNDS = 12  # observations of a run
ROUNDS_BEFORE_ONE_TIME = 40  # observations before a bound that holds at one time is asked for
GRID = np.linspace(0, 1, 25)[:, None]


@dataclass(frozen=True)
class BoundReport:
    """The measurements of :func:`check_bound`, of a bound that passes.

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
        """The largest mean number of misses of a valid bound: delta times the runs."""
        return DELTA * self.runs

    @property
    def p_value(self) -> float:
        """The probability of this many misses or more, if each run misses with probability delta.

        For a valid bound it is below p with a probability of at most p, for each p.
        """
        return p_value(self.misses, self.runs, DELTA)

    def __str__(self) -> str:
        units = "follows" if self.follows_units else "does not follow"
        verdict = "the contract holds"
        if self.p_value < DOUBTFUL_P_VALUE:
            verdict = "no clause is broken, but coverage is doubtful"
        return (
            f"{verdict}; the truth was outside in {self.misses} of {self.runs} runs, where at most "
            f"{self.expected:g} are expected at delta = {DELTA:g} (p = {self.p_value:.2g}); "
            f"{self.width:.2f} times as wide as CMM; {units} the units"
        )


def p_value(wrong: int, runs: int, delta: float) -> float:
    """Return the probability that a bound with miscoverage delta is wrong at least this often."""
    return float(binom.sf(wrong - 1, runs, delta))


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
      bounds no more often than delta = 0.1 allows. Where the misses have a probability below
      0.05, 240 more runs are made before they are judged. For a bound whose ``guarantee`` covers
      less, the points are random, or it is asked at the end only, or at one x only;
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
    # The weights come last, so that a bound that is too narrow fails by its coverage.
    _apply(bound, "weights", clauses.weights)
    return BoundReport(misses, runs, width, _apply(bound, "units", clauses.follows_units))


def _apply(bound: Bound, clause: str, check: Callable[[Bound], T]) -> T:
    """Check one clause, and name the bound and the clause where it is broken."""
    try:
        return check(bound)
    except BrokenError as broken:
        problem, cause = str(broken), None
    except Exception as error:
        problem, cause = f"raised {type(error).__name__}: {said(error)}", error
    try:
        name = shortened(repr(bound))
    except Exception:  # the first clause reports a repr that raises
        name = type(bound).__name__
    raise KernelBoundsError(
        f"the bound {name} breaks the contract of kernelbounds.Bound, clause "
        f"'{clause}': it {problem}."
    ) from cause


def coverage(bound: Bound) -> tuple[int, int, float]:
    """Count the runs that miss and all runs, and compare the mean width at their ends to CMM's."""
    misses, widths = 0, np.zeros(2)
    for runs in range(1, RUNS + MORE_RUNS + 1):
        sequence = _play(bound, runs - 1)
        if sequence is None:
            misses += 1
        else:
            with suppress(EmptyConfidenceSetError):  # CMM may notice what the bound does not
                ends = [_bounds(sequence, one, GRID) for one in (bound, CMM())]
                widths += [np.mean(upper - lower) for lower, upper in ends]
        if runs in (RUNS, RUNS + MORE_RUNS):
            probability = p_value(misses, runs, DELTA)
            if probability < FAILING_P_VALUE:
                raise BrokenError(
                    f"missed the truth in {misses} of {runs} runs at delta = {DELTA:g}, where at "
                    f"most {DELTA * runs:g} are expected; a valid bound misses that often with a "
                    f"probability of {probability:.1g} at most"
                )
            if probability >= DOUBTFUL_P_VALUE:
                break
    return misses, runs, float(widths[0] / widths[1])


def _play(bound: Bound, run: int) -> ConfidenceSequence | None:
    """Play a run, with points chosen by the bound where that is valid; None if it misses."""
    rng, guarantee = np.random.default_rng([7, run]), bound.guarantee
    # Every other truth is as high at one place as its norm allows, so that a width below what the
    # norm demands is noticed at once. Noise is small in half of the runs, and large in the others.
    truth = RKHSFunction(KERNEL, rng.random((1, 1)), [1.0]) if run % 2 else random_truth(rng, 1)
    noise, values = (0.1, 1.0)[run % 4 // 2], truth.rescaled(NORM)(GRID)
    sequence = ConfidenceSequence(KERNEL, NORM * (1 + 1e-12), noise, DELTA, bound=bound)
    upper = np.zeros(len(GRID))
    where = slice(None) if guarantee.uniform else slice(run % len(GRID), run % len(GRID) + 1)
    rounds = ROUNDS if guarantee.anytime else ROUNDS_BEFORE_ONE_TIME
    for number in range(1, rounds + 1):
        # The largest upper bound is chosen, as KernelUCB does; now and then another point is, so
        # that all places are seen.
        chosen = guarantee.sequential and rng.random() < 0.7
        at = int(upper.argmax()) if chosen else int(rng.integers(len(GRID)))
        sequence.update(GRID[at], values[at] + noise * rng.standard_normal())
        if number < rounds and not guarantee.anytime:
            continue
        try:
            lower, upper = _bounds(sequence, bound, GRID[where])
        except KernelBoundsError:  # the confidence set is empty, or the bounds cross
            return None
        true = values[where]
        if np.any(true < lower - 1e-9 * NORM) or np.any(true > upper + 1e-9 * NORM):
            return None
    return sequence


def _bounds(sequence: ConfidenceSequence, bound: Bound, points: Array) -> Array:
    """Compute lower and upper bounds, (2, m), at as many points at a time as the bound takes."""
    found = [sequence.bounds(some, bound) for some in in_portions(bound, points)]
    return np.concatenate(found, axis=1)
