"""The clause on coverage: short runs with a known truth, and an exact binomial test."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy.stats import binom

from kernelbounds.arrays import Array
from kernelbounds.bounds import CMM, Bound
from kernelbounds.checking.cases import KERNEL, NORM, BrokenError, few_at_once, random_truth
from kernelbounds.errors import EmptyConfidenceSetError, KernelBoundsError
from kernelbounds.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

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
