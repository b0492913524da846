"""The clause on coverage: short runs with a known truth, and an exact binomial test.

Data with a known truth, and what a bound says of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.arrays import Array
from kernelbounds.bounds import CMM, Bound, ConfidenceSet
from kernelbounds.bounds.bound import TIE, fault_of
from kernelbounds.errors import EmptyConfidenceSetError, KernelBoundsError
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

KERNEL = Matern(length_scale=0.3, nu=1.5)
NORM, NOISE = 3.0, 0.2
SURE = 1e-6  # delta in the clauses on fixed data, where a valid bound fails with this probability
BOTH = (1, -1)

# Bounds that should agree may differ by this, relative to the trivial bound: ten times what CMM's
# search leaves between points that are computed together and apart.
AGREEMENT = 10 * TIE


class BrokenError(Exception):
    """What is wrong, as the end of a sentence that begins with the bound."""


@dataclass(frozen=True)
class Case:
    """Data with a known truth, and points to ask about."""

    known: ConfidenceSet
    truth: RKHSFunction
    points: Array

    @property
    def scale(self) -> Array:
        """What bounds are compared relative to, (m,)."""
        return self.known.trivial(self.points)


def make_case(
    count: int, dim: int = 2, noise: float = NOISE, seed: int = 0, spread: float = 1.0
) -> Case:
    """Asked about are random points, points of the data, twice the same, and one far away.

    Noise scales of the observations are ``noise`` divided and multiplied by ``spread``, in turn.
    """
    rng = np.random.default_rng([seed, count, dim])
    truth = random_truth(rng, dim)
    data = rng.random((count, dim))
    data[count // 2 :: 7] = data[0]  # some are repeated
    sequence = ConfidenceSequence(KERNEL, NORM, noise, SURE)
    scales = noise * spread ** np.resize([-1.0, 1.0], count)
    outcomes = truth(data) + scales * rng.standard_normal(count)
    sequence.update(data, outcomes, None if spread == 1 else scales)
    asked = np.concatenate([rng.random((12, dim)), data[:3], data[:1], np.full((1, dim), 30.0)])
    return Case(sequence.known, truth, asked)


def random_truth(rng: np.random.Generator, dim: int) -> RKHSFunction:
    """A function of norm B."""
    return RKHSFunction(KERNEL, rng.random((6, dim)), rng.standard_normal(6)).rescaled(NORM)


def ask(bound: Bound, known: ConfidenceSet, points: Array, signs: Sequence[int] = BOTH) -> Array:
    """The bounds, as many at once as it takes, refused where they are none."""
    found = []
    for some in few_at_once(bound, points):
        with np.errstate(all="ignore"):
            part = bound.extremes(known, some, signs)
        found.append(as_numbers(part, (len(signs), len(some)), "extremes"))
    return np.concatenate(found, axis=1)


def few_at_once(bound: Bound, points: Array) -> list[Array]:
    """The points, no more at a time than a bound takes."""
    most = bound.points_at_once or len(points)
    return [points[start : start + most] for start in range(0, len(points), most)]


def as_numbers(found: object, wanted: tuple[int, int], what: str) -> Array:
    """What a method returned, refused where it is not upper bounds."""
    if fault := fault_of(found, wanted):
        raise BrokenError(f"{fault}; this was from {what}()")
    return np.asarray(found, dtype=np.float64)


def equal(case: Case, one: Array, other: Array, difference: str) -> None:
    """Refuse bounds that differ; infinite ones are equal."""
    with np.errstate(invalid="ignore"):
        off = np.where(one == other, 0.0, np.abs(one - other)) / case.scale
    if not off.max() <= AGREEMENT:
        raise BrokenError(
            f"gives other bounds {difference}; they differ by up to {off.max():.2g} times the "
            "trivial bound"
        )


# A run is a miss when the truth is outside of the bounds anywhere on the grid after any number of
# observations, which has a probability of at most DELTA. The bound fails when so many runs miss
# that a binomial variable reaches this with a probability below LEVEL. Where it is below DOUBTFUL
# there are MORE runs, and all are judged together. With at most two looks, a valid bound fails
# with a probability of at most 2 LEVEL.
RUNS, ROUNDS, DELTA, LEVEL = 60, 12, 0.1, 5e-5
DOUBTFUL, MORE = 0.05, 240
AT_ONE_TIME = 40  # observations before a bound that holds at one time is asked for
GRID = np.linspace(0, 1, 25)[:, None]


def coverage(bound: Bound) -> tuple[int, int, float]:
    """Runs that miss, all runs, and the mean width at their ends relative to CMM's."""
    runs, misses, widths = RUNS, 0, np.zeros(2)
    for first, last in ((0, RUNS), (RUNS, RUNS + MORE)):
        for run in range(first, last):
            sequence = _played(bound, run)
            if sequence is None:
                misses += 1
                continue
            with suppress(EmptyConfidenceSetError):  # CMM may notice what the bound does not
                ends = [_bounds(sequence, one, GRID) for one in (bound, CMM())]
                widths += [np.mean(upper - lower) for lower, upper in ends]
        runs, probability = last, probability_of(misses, last)
        if probability < LEVEL:
            raise BrokenError(
                f"missed the truth in {misses} of {runs} runs at delta = {DELTA:g}, where at most "
                f"{DELTA * runs:g} are expected; of a valid bound, so many are seen with a "
                f"probability of {probability:.1g} at most"
            )
        if probability >= DOUBTFUL:
            break
    return misses, runs, float(widths[0] / widths[1])


def probability_of(misses: int, runs: int) -> float:
    """That of so many misses or more, of a bound that misses with probability delta."""
    return float(binom.sf(misses - 1, runs, DELTA))


def _played(bound: Bound, run: int) -> ConfidenceSequence | None:
    """A run with points chosen by the bound, where that may be; None when it misses the truth."""
    rng, guarantee = np.random.default_rng([7, run]), bound.guarantee
    # Every other truth is as high at one place as its norm allows, so that a width below what the
    # norm demands is noticed at once. Noise is small in half of the runs, and large in the others.
    truth = RKHSFunction(KERNEL, rng.random((1, 1)), [1.0]) if run % 2 else random_truth(rng, 1)
    noise, values = (0.1, 1.0)[run % 4 // 2], truth.rescaled(NORM)(GRID)
    sequence = ConfidenceSequence(KERNEL, NORM * (1 + 1e-12), noise, DELTA, bound=bound)
    upper = np.zeros(len(GRID))
    where = slice(None) if guarantee.uniform else slice(run % len(GRID), run % len(GRID) + 1)
    rounds = ROUNDS if guarantee.anytime else AT_ONE_TIME
    for number in range(1, rounds + 1):
        # The largest upper bound, as KernelUCB has it; now and then another, to see all places.
        chosen = guarantee.sequential and rng.random() < 0.7
        at = int(upper.argmax()) if chosen else int(rng.integers(len(GRID)))
        sequence.update(GRID[at], values[at] + noise * rng.standard_normal())
        if number < rounds and not guarantee.anytime:
            continue
        try:
            lower, upper = _bounds(sequence, bound, GRID[where])
        except KernelBoundsError:  # its set is empty, or its bounds cross
            return None
        true = values[where]
        if np.any(true < lower - 1e-9 * NORM) or np.any(true > upper + 1e-9 * NORM):
            return None
    return sequence


def _bounds(sequence: ConfidenceSequence, bound: Bound, points: Array) -> tuple[Array, Array]:
    parts = [sequence.bounds(some, bound) for some in few_at_once(bound, points)]
    lower, upper = (np.concatenate(side) for side in zip(*parts, strict=True))
    return lower, upper
