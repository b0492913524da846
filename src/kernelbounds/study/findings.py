"""The findings of a study: its confidence sequence, and its certificates over time.

Both follow from the outcomes in the file. The sequence is kept in memory, and certificates in the
file, because a search takes seconds.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from kernelbounds.bandits import Certificate
from kernelbounds.display import late_progress
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.search import Search
from kernelbounds.study.study_file import StudyFile
from kernelbounds.study.trial import Outcome

# Certificates of the past are made at this many numbers of observations first, with this many
# seconds each: after 30 runs of the documentation's oven, 0.2 s, 1 s and 4 s certify a regret of
# 361, 39.6 and 36.8 MPa.
FIRST_CERTIFICATES, SHORT_SECONDS = 8, 1.0
# The regret is taken to fall with a power of the number of observations between these two, whatever
# the last certificates say: the trend of a few is rough.
SLOWEST_POWER, FASTEST_POWER = 0.25, 2.0


class Replay:
    """The confidence sequence of a problem after a list of outcomes, which may change.

    Outcomes that were added to the list are added to the sequence. Where others were withdrawn or
    corrected, the sequence begins anew.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.sequence, self.outcomes = problem.sequence(), list[Outcome]()

    def after(self, outcomes: Sequence[Outcome]) -> ConfidenceSequence:
        """Bring the sequence to the state after these outcomes, and return it."""
        if self.outcomes != list(outcomes[: len(self.outcomes)]):
            self.sequence, self.outcomes = self.problem.sequence(), []
        if new := outcomes[len(self.outcomes) :]:
            points = self.problem.scaled([one.point for one in new])
            self.sequence.update(points, *self.problem.scaled_outcomes([one.told for one in new]))
            self.outcomes = list(outcomes)
        return self.sequence


class Findings:
    """What a study has found out so far.

    Threads that need several answers about one moment hold the ``lock`` meanwhile.
    """

    def __init__(self, store: StudyFile, search: Search) -> None:
        self.search, self.lock = search, threading.RLock()
        self._store, self._replay = store, Replay(search.problem)

    @property
    def sequence(self) -> ConfidenceSequence:
        """The confidence sequence of all outcomes in the file."""
        with self.lock:
            return self._replay.after(self._store.outcomes)

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that are in the sequence."""
        with self.lock:
            self._replay.after(self._store.outcomes)
            return self._replay.outcomes

    def kept(self) -> list[tuple[int, Certificate]]:
        """Return the last certificate for each number of observations, as it was made."""
        return [(count, _restored(data)) for count, _, data in self._store.certificates]

    def over_time(self) -> list[tuple[int, Certificate]]:
        """Return the certificates, each joined with those before it, so that none gets worse."""
        found: list[tuple[int, Certificate]] = []
        for count, one in self.kept():
            before = [certificate for _, certificate in found[-1:]]
            found.append((count, self.search.with_the_past(one, before)))
        return found

    def certificate(self, seconds: float) -> Certificate:
        """Return the certificate of all outcomes, a kept one if it had at least as much time."""
        with self.lock:
            sequence, past, found = self.sequence, [], None
            if not len(sequence):
                raise InputError("there is nothing to certify before the first observation.")
            for count, spent, data in self._store.certificates:
                if count < len(sequence):
                    past.append(_restored(data))
                elif count == len(sequence) and spent >= seconds:
                    found = _restored(data)
            found = found or self._made(sequence, self._replay.outcomes, seconds)
            return self.search.with_the_past(found, past)

    def fill(self, most: int, seconds: float) -> None:
        """Make certificates of the past that are missing, as far as there is time.

        They are for ``most`` numbers of observations, spread evenly. A few of them are made first,
        then those between, so that what there is when time is up is spread evenly, too.
        """
        outcomes = self.outcomes
        there = {len(outcomes)} | {count for count, _, _ in self._store.certificates}
        wanted = set(evenly(len(outcomes), most)) - there
        deadline = time.monotonic() + seconds
        with late_progress("certificates of the past", len(wanted)) as report:
            done, number = 0, FIRST_CERTIFICATES
            while wanted:
                now = sorted(wanted & set(evenly(len(outcomes), min(number, most))))
                each = SHORT_SECONDS
                if number == FIRST_CERTIFICATES:  # There should be time for each of the first ones.
                    each = min(each, seconds / max(len(now), 1))
                for count, sequence in replayed(self.search.problem, outcomes, now):
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return
                    report(f"{count} observations", done)
                    with suppress(EmptyConfidenceSetError):
                        self._made(sequence, outcomes[:count], min(left, each))
                    wanted.remove(count)
                    done += 1
                number *= 2

    def _made(
        self, sequence: ConfidenceSequence, outcomes: list[Outcome], seconds: float
    ) -> Certificate:
        """Make the certificate of a sequence of these outcomes, and keep it."""
        found = self.search.certified(sequence, seconds)
        with suppress(InputError):  # A file that cannot be written to may be read all the same.
            self._store.add_certificate(outcomes, seconds, found.as_data())
        return found


def _restored(data: dict[str, Any]) -> Certificate:
    regret = math.inf if data["regret"] is None else data["regret"]
    return Certificate(**(data | {"x": np.array(data["x"]), "regret": regret}))


def more_needed(
    old: list[tuple[int, float]], count: int, regret: float, aim: float | None
) -> int | None:
    """Guess how many more observations are needed, if the regret goes on falling as it did lately.

    ``old`` has numbers of observations and regrets of earlier certificates. The trend is since
    there were a third as many observations. None is returned where there is no trend yet, no aim,
    or one that is reached.
    """
    if aim is None or regret <= aim:
        return None
    for before, then in old:
        if count / 3 <= before < count and regret < then < math.inf:
            power = math.log(then / regret) / math.log(count / before)
            times = math.pow(regret / aim, 1 / min(max(power, SLOWEST_POWER), FASTEST_POWER))
            return math.ceil(count * (times - 1))
    return None


def evenly(count: int, most: int) -> list[int]:
    """Return at most ``most`` numbers of observations, spread from 1 to ``count``."""
    return sorted({round(float(one)) for one in np.linspace(1, count, min(count, most))})


def replayed(
    problem: Problem, outcomes: list[Outcome], counts: list[int]
) -> Iterator[tuple[int, ConfidenceSequence]]:
    """Yield numbers of observations, which increase, and the sequence as it was after each.

    It is always the same object, which is updated from one number to the next.
    """
    replay = Replay(problem)
    for count in counts:
        yield count, replay.after(outcomes[:count])
