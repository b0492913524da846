"""Bounds and policies of a user's own, for the tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kernelbounds as kb
from kernelbounds.bandits import Policy


@dataclass(frozen=True)
class Wider(kb.Bound):
    """AMM and something more: valid, and no more than extremes."""

    by: float = 0.1

    def extremes(self, known, points, signs):
        return kb.AMM().extremes(known, points, signs) + self.by


class Plain(kb.Bound):
    """AMM by another name; it says nothing of itself."""

    def extremes(self, known, points, signs):
        return kb.AMM().extremes(known, points, signs)


class Patient(kb.Bound):
    """Infinite until there are five observations."""

    def extremes(self, known, points, signs):
        found = kb.AMM().extremes(known, points, signs)
        return found if known.count >= 5 else np.full_like(found, np.inf)


class MostUncertain(Policy):
    """The actions of which the least is known; ``scan`` is how closely it looks at a box."""

    scan = 64

    def choose(self, space, count):
        if isinstance(space, kb.Finite):
            points, limit = space.points, self.limit(space)
        else:
            points, limit = (
                space.scaled(np.random.default_rng(0).random((self.scan, space.dim))),
                np.inf,
            )
        lower, upper = self.sequence.bounds(points)
        found = []
        for _ in range(count):
            width = upper - lower
            if isinstance(space, kb.Finite):
                width = np.where(self.available(space, [one.x for one in found]), width, -1)
            for one in found:
                width = np.where(np.all(points == one.x, axis=1), -1, width)
            at = int(width.argmax())
            index = at if isinstance(space, kb.Finite) else None
            found.append(self.suggestion(space, points[at], limit, index))
        return found

    def settings(self):
        return {"scan": self.scan}

    def restore(self, settings):
        self.scan = settings["scan"]
