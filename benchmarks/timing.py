"""How everything is timed: all sides in turn, REPEATS times, and of each call its fastest time.

A side is a function that works through a list of calls, the same in every repeat, and returns the
time of each. Times are those of the processor, because other work on the machine does not count,
and both sides have one thread. Noise only ever adds time, so the fastest of a call's times is the
closest to what it takes; a side's time is the sum of those.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from benchmarks.problem import Array
from benchmarks.report import progress

T = TypeVar("T")
Side = Callable[[], Array]

REPEATS = 3


def timed(function: Callable[..., T], *arguments: Any) -> tuple[T, float]:
    """What a call returns, and the seconds of processor time that it takes."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def once(function: Callable[..., object], *arguments: Any) -> Side:
    """A side that is a single call."""
    return lambda: np.array([timed(function, *arguments)[1]])


def fastest(title: str, *sides: Side) -> list[Array]:
    """For each side, the fastest time of each of its calls."""
    best = [np.array(np.inf)] * len(sides)
    for repeat in range(REPEATS):
        progress(f"{title}, {repeat + 1} of {REPEATS}")
        best = [np.minimum(times, side()) for times, side in zip(best, sides, strict=True)]
    return best
