"""What a policy remembers of its actions: which are pending, and what was known of each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.records import History, Suggestion

Entry = tuple[float, float, float]  # lower and upper bound, and limit, before the outcome


class Ledger:
    """Actions asked for, under way, and told."""

    def __init__(self, minimise: bool) -> None:
        self._minimise = minimise
        self.pending: list[Array] = []
        self.asked: dict[bytes, Entry] = {}
        self._told = array("d")  # entries one after the other: 24 bytes a round, however many

    def ask(self, one: Suggestion) -> None:
        """Keep what is known of an action until its outcome is told.

        Asked for in several rounds before that, it may be told for any of them: the loosest holds.
        """
        key, worst = key_of(one.x), min if self._minimise else max
        lower, upper, limit = self.asked.get(key, (one.lower, one.upper, one.limit))
        self.asked[key] = min(lower, one.lower), max(upper, one.upper), worst(limit, one.limit)

    def was_asked(self, point: Array) -> bool:
        """Whether an action was asked for and not told since."""
        return key_of(point) in self.asked

    def entries(self, points: Array, others: Callable[[Array], list[Entry]]) -> list[Entry]:
        """What was known of actions; of those that were not asked for, what ``others`` says."""
        found = [self.asked.get(key_of(point)) for point in points]
        if None in found:
            return [old or new for old, new in zip(found, others(points), strict=True)]
        return [entry for entry in found if entry is not None]

    def tell(self, points: Array, entries: list[Entry]) -> None:
        """Outcomes of these actions are known."""
        self.record(entries)
        for point in points:
            waiting = [at for at, one in enumerate(self.pending) if np.array_equal(one, point)]
            if waiting:
                del self.pending[waiting[0]]
            if len(waiting) < 2:
                self.asked.pop(key_of(point), None)

    def record(self, entries: Iterable[Entry]) -> None:
        """Add what was known of actions that are told."""
        for entry in entries:
            self._told.extend(entry)

    @property
    def told(self) -> Array:
        """What was known of the actions told, (n, 3); a copy."""
        return np.array(self._told).reshape(-1, 3)

    @property
    def history(self) -> History:
        """What was known of each action told, before its outcome."""
        lower, upper, limit = self.told.T
        return History(lower, upper, limit, self._minimise)


def key_of(point: Array) -> bytes:
    """Equal for equal points, and for minus zero and zero."""
    return (point + 0.0).tobytes()
