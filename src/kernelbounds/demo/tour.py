"""The tour: the numbers of all chapters, and the page that shows them.

The page is one file that needs no network: a template with its style, its script and the numbers.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from threadpoolctl import threadpool_limits

from kernelbounds.demo import chapters
from kernelbounds.display import page_style
from kernelbounds.version import __version__


@dataclass(frozen=True)
class Size:
    """How much the tour computes."""

    places: int  # points of a curve or a band
    counts: tuple[int, ...]  # numbers of observations of the second chapter
    rounds: int  # of the race
    games: int
    certificates: int  # rounds of the fourth chapter
    experiments: int  # of the plan, at most
    functions: int  # from which its norm bounds are chosen


# A picture of 700 pixels does not show more places; the whole takes about ten seconds on one core.
FULL = Size(141, (0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 30, 45, 70, 100), 150, 3, 40, 500, 100)
QUICK = Size(41, (0, 1, 5, 20), 30, 1, 8, 20, 12)


@dataclass(frozen=True)
class Tour:
    """The numbers of each chapter, ready for JSON."""

    norms: dict[str, Any]
    bands: dict[str, Any]
    race: dict[str, Any]
    closing: dict[str, Any]
    plan: dict[str, Any]

    def rows(self) -> list[tuple[str, float, float, float, float | None]]:
        """Return name, mean width, width over CMM's, share inside and regret of each bound.

        The share is that of the truth inside of the band, and the regret is that in the race.
        """
        regrets = {one["id"]: one["regret"][-1] for one in self.race["methods"]}
        last = [(one["id"], one["frames"][-1]) for one in self.bands["bounds"]]
        exact = last[0][1]["width"]
        return [
            (name, one["width"], one["width"] / exact, one["inside"], regrets.get(name))
            for name, one in last
        ]


def steps(size: Size) -> int:
    """Return how often :func:`take` calls ``step``."""
    known = len(size.counts) + size.certificates + chapters.plan_steps(size.functions)
    return known + chapters.race_steps(size.rounds, size.games)


def take(size: Size = FULL, seed: int = 1, step: Callable[[], object] = bool) -> Tour:
    """Compute all chapters."""
    # The matrices are small: more threads wait for each other most of the time, on a busy computer
    # ten times as long as one takes alone.
    with threadpool_limits(limits=1):
        return Tour(
            chapters.norms(size.places, seed),
            chapters.bands(list(size.counts), size.places, seed, step),
            chapters.race(size.rounds, size.games, seed, step),
            chapters.closing(size.certificates, size.places, seed, step),
            chapters.plan(size.experiments, size.functions, step),
        )


def as_html(tour: Tour, seed: int) -> str:
    """Return the whole page."""
    parts = {
        "style": page_style() + _file("tour.css"),
        "script": _file("tour.js"),
        "data": _json(tour),
        "version": escape(__version__),
        "seed": str(seed),
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]], _file("tour.html"))


def _file(name: str) -> str:
    return files("kernelbounds.demo").joinpath(name).read_text(encoding="utf-8")


def _json(tour: Tour) -> str:
    """The numbers as JSON that is fit for a script element: no ``<`` can end it."""
    data = dataclasses.asdict(tour)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
