"""The demonstration: a tour of the library in five chapters, as one page for a browser.

==================  ===============================================================
:func:`norms`       1: what a bound on the norm admits
:func:`bands`       2: the bands of all bounds on one data set, as it grows
:func:`race`        3: five bounds look for the best action, and pay for every other
:func:`closing`     4: a certificate closes in, round by round
:func:`plan`        5: how narrow the band will be, before the first experiment
==================  ===============================================================

A chapter runs the library, and returns numbers that are ready for JSON. The page is one file that
needs no network: ``tour.html`` with the style of ``tour.css``, after that of all pages, and the
numbers, which ``tour.js`` draws.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern
from threadpoolctl import threadpool_limits

from kernelbounds.arrays import Array
from kernelbounds.bandits import Finite, KernelLUCB, KernelUCB
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound, FixedDesign
from kernelbounds.display import page_style
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.problem import Problem, assume, assuming
from kernelbounds.problem.model import predicted_half_widths
from kernelbounds.problem.plans import counts_up_to
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.version import __version__

__all__ = ["FULL", "QUICK", "Size", "Tour", "as_html", "steps", "take"]

Step = Callable[[], object]  # called now and then, to show progress

DIGITS = 5  # significant: far more than a picture shows
DELTA = 0.01

# Length scales of chapter 1, and what they are called on the page.
NORMS_LENGTH_SCALES = {"slowly": 0.4, "moderately": 0.15, "quickly": 0.06}
NORMS_FUNCTIONS = 6
NORMS_LARGEST, NORMS_FIRST = 10.0, 6.0  # The slider of B ends at one and begins at the other.

BANDS_KERNEL = Matern(length_scale=0.2, nu=2.5)
BANDS_NORM, BANDS_NORM_BOUND, BANDS_NOISE = 4.0, 5.0, 0.3
BANDS_ABOUT = {
    "CMM": "the default: the exact extremes over all curves that fit",
    "DMM": "a little wider than CMM, and cheaper",
    "AMM": "wider again, and the cheapest of the three",
    "AY": "from the literature, Abbasi-Yadkori 2012",
    "IGP": "from the literature, Chowdhury and Gopalan 2017",
    "FixedDesign": "promises less: points fixed in advance, and one look at one moment only",
}
# The page shows these at first. A fixed design promises less, and is left to the reader.
BANDS_SHOWN = ("CMM", "IGP")

RACE_KERNEL = Matern(length_scale=0.2, nu=2.5)
RACE_NORM, RACE_NORM_BOUND, RACE_NOISE = 9.0, 10.0, 0.5
RACE_ACTIONS = 101
RACE_ROUNDS_OF_STEP = 10  # a step is then about as long as those of other chapters

CLOSING_KERNEL = Matern(length_scale=0.3, nu=2.5)
CLOSING_NORM, CLOSING_NORM_BOUND, CLOSING_NOISE = 4.0, 5.0, 0.2

PLAN_INPUT, PLAN_OUTPUT, PLAN_NOISE = "temperature[°C]=180:220", "yield[%]=0:100", 1.0
PLAN_TURNS = (0, 1, 2)


@dataclass(frozen=True)
class Size:
    """The amount that the tour computes."""

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

        The share is the part of the truth that is inside of the band; the regret is from the race.
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
    race = size.games * len(_papers_bounds(size.rounds)) * (size.rounds // RACE_ROUNDS_OF_STEP)
    plan = sum(assuming.steps(_problem(turns), size.functions) for turns in PLAN_TURNS)
    return len(size.counts) + race + size.certificates + plan


def take(size: Size = FULL, seed: int = 1, step: Step = bool) -> Tour:
    """Compute all chapters; ``step`` is called now and then."""
    # The matrices are small, and several threads mostly wait for each other: on a busy computer
    # they take ten times as long as one.
    with threadpool_limits(limits=1):
        return Tour(
            norms(size, seed),
            bands(size, seed, step),
            race(size, seed, step),
            closing(size, seed, step),
            plan(size, step),
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
    """Write the numbers as JSON that is fit for a script element: no ``<`` can end it."""
    data = dataclasses.asdict(tour)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


# --- the chapters


def number(value: float) -> float | None:
    """Round a number for JSON, which has no nan and no infinity: those become None."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def numbers(values: Any) -> list[float | None]:
    """Round an array for JSON, as :func:`number` does."""
    return [number(value) for value in np.ravel(values).tolist()]


def norms(size: Size, seed: int) -> dict[str, Any]:
    """Draw functions of norm 1, for each length scale; multiplied by B, they have norm B.

    With k(x, x) = 1 a function of norm B has values in [-B, B].
    """
    rng, grid = np.random.default_rng(seed), _unit_grid(size.places)
    families = []
    for name, scale in NORMS_LENGTH_SCALES.items():
        drawn = [_drawn(Matern(scale, nu=2.5), 12, 1.0, rng) for _ in range(NORMS_FUNCTIONS)]
        values = [numbers(one(grid)) for one in drawn]
        families.append({"name": name, "length_scale": scale, "functions": values})
    ends = {"largest": NORMS_LARGEST, "first": NORMS_FIRST}
    return {"x": numbers(grid), "families": families, **ends}


def bands(size: Size, seed: int, step: Step) -> dict[str, Any]:
    """Compute the band of each bound after each count of observations.

    Points are fixed before the outcomes, so that all bounds may be asked for.
    """
    rng, counts = np.random.default_rng(seed), list(size.counts)
    function = _drawn(BANDS_KERNEL, 12, BANDS_NORM, rng)
    grid, points = _unit_grid(size.places), rng.random((counts[-1], 1))
    outcomes = function(points) + BANDS_NOISE * rng.standard_normal(len(points))
    truth, bounds = function(grid), {**_papers_bounds(counts[-1]), "FixedDesign": FixedDesign()}
    frames: dict[str, list[dict[str, Any]]] = {name: [] for name in bounds}
    for count in counts:
        for name, bound in bounds.items():
            # A fixed design allows one look only, so each look has a new sequence.
            sequence = ConfidenceSequence(
                BANDS_KERNEL, BANDS_NORM_BOUND, BANDS_NOISE, DELTA, bound=bound
            )
            if count:
                sequence.update(points[:count], outcomes[:count])
            lower, upper = sequence.bounds(grid)
            frames[name].append(
                {
                    "lower": numbers(lower),
                    "upper": numbers(upper),
                    "width": number(float(np.mean(upper - lower))),
                    "inside": float(np.mean((lower <= truth) & (truth <= upper))),
                }
            )
        step()
    return {
        **_data(grid, truth, points, outcomes, BANDS_NORM_BOUND, BANDS_NOISE),
        "counts": counts,
        "bounds": [
            {"id": name, "about": about, "shown": name in BANDS_SHOWN, "frames": frames[name]}
            for name, about in BANDS_ABOUT.items()
        ],
    }


def race(size: Size, seed: int, step: Step) -> dict[str, Any]:
    """Compute the mean regret over some games, and where each bound played in the first of them.

    In one game all of them meet the same function and the same noise in the same round.
    """
    actions, bounds = _unit_grid(RACE_ACTIONS), _papers_bounds(size.rounds)
    regrets: dict[str, list[Array]] = {name: [] for name in bounds}
    played: dict[str, list[int]] = {}
    shown: list[float | None] = []
    for game in range(size.games):
        rng = np.random.default_rng([seed, game])
        values = _drawn(RACE_KERNEL, 20, RACE_NORM, rng)(actions)
        noise = RACE_NOISE * rng.standard_normal(size.rounds)
        shown = shown or numbers(values)
        for name, bound in bounds.items():
            chosen = _play(bound, actions, values, noise, step)
            regrets[name].append(np.cumsum(values.max() - values[chosen]))
            played.setdefault(name, chosen)
    return {
        "x": numbers(actions),
        "values": shown,
        "rounds": size.rounds,
        "games": size.games,
        "noise": RACE_NOISE,
        "methods": [
            {"id": name, "regret": numbers(np.mean(found, axis=0)), "played": played[name]}
            for name, found in regrets.items()
        ],
    }


def _play(bound: Bound, actions: Array, values: Array, noise: Array, step: Step) -> list[int]:
    """Return the actions that are chosen, round by round."""
    sequence = ConfidenceSequence(RACE_KERNEL, RACE_NORM_BOUND, RACE_NOISE, DELTA, bound=bound)
    policy, chosen = KernelUCB(sequence, Finite(actions)), list[int]()
    for error in noise:
        found = policy.ask()
        chosen.append(int(found.index or 0))
        policy.tell(found, values[chosen[-1]] + error)
        if len(chosen) % RACE_ROUNDS_OF_STEP == 0:
            step()
    return chosen


def closing(size: Size, seed: int, step: Step) -> dict[str, Any]:
    """Compute the band, the certificate and the truth about it after every round, from none on."""
    rng, grid = np.random.default_rng(seed), _unit_grid(size.places)
    function = _drawn(CLOSING_KERNEL, 12, CLOSING_NORM, rng)
    truth, frames = function(grid), []
    sequence = ConfidenceSequence(CLOSING_KERNEL, CLOSING_NORM_BOUND, CLOSING_NOISE, DELTA)
    policy = KernelLUCB(sequence, Finite(grid))
    for round in range(size.certificates + 1):
        lower, upper = sequence.bounds(grid)
        frame: dict[str, Any] = {"lower": numbers(lower), "upper": numbers(upper)}
        if round:
            found = policy.certificate()
            frame |= {
                "best": number(found.x[0]),
                "sure": number(found.lower),
                "limit": number(float(found.max_upper or 0.0)),
                "regret": number(found.regret),
                "true_regret": number(float(truth.max() - function(found.x[None])[0])),
            }
        frames.append(frame)
        if round < size.certificates:
            asked = policy.ask()
            policy.tell(asked, function(asked.x[None])[0] + CLOSING_NOISE * rng.standard_normal())
            step()
    observed = sequence.points, sequence.outcomes
    return {**_data(grid, truth, *observed, CLOSING_NORM_BOUND, CLOSING_NOISE), "frames": frames}


def plan(size: Size, step: Step) -> dict[str, Any]:
    """Compute half-widths by the number of experiments, for functions that turn 0, 1 or 2 times."""
    counts = [int(count) for count in counts_up_to(size.experiments)]
    curves = []
    for turns in PLAN_TURNS:
        # Fewer functions are drawn than by `kernelbounds plan`, to be quick.
        known = assume(_problem(turns), functions=size.functions, step=step).problem
        widths = [predicted_half_widths(known, count)[0] for count in counts]
        norm_bound = number(float(known.norm_bound or 0.0))
        curves.append({"turns": turns, "norm_bound": norm_bound, "half_width": numbers(widths)})
    problem = _problem(PLAN_TURNS[0])
    return {
        "input": problem.inputs[0].label,
        "output": problem.output.label,
        "unit": problem.output.unit,
        "noise": PLAN_NOISE,
        "counts": counts,
        "curves": curves,
    }


def _problem(turns: int) -> Problem:
    return Problem([PLAN_INPUT], PLAN_OUTPUT, PLAN_NOISE, turns)


def _papers_bounds(rounds: int) -> dict[str, Bound]:
    """Return the bounds of the paper's experiments, by name."""
    return {"CMM": CMM(), "DMM": DMM(), "AMM": AMM(), "AY": AY(), "IGP": IGP(eta=2 / rounds)}


def _drawn(kernel: Matern, centres: int, norm: float, rng: np.random.Generator) -> RKHSFunction:
    """Draw a random function of one input with this norm."""
    places, weights = rng.random((centres, 1)), rng.standard_normal(centres)
    return RKHSFunction(kernel, places, weights).rescaled(norm)


def _unit_grid(count: int) -> Array:
    return np.linspace(0, 1, count)[:, None]


def _data(
    grid: Array, truth: Array, points: Array, outcomes: Array, norm_bound: float, noise: float
) -> dict[str, Any]:
    """Return a function, observations of it, and what is known of it, for JSON."""
    return {
        "x": numbers(grid),
        "truth": numbers(truth),
        "points": numbers(points),
        "outcomes": numbers(outcomes),
        "norm_bound": norm_bound,
        "noise": noise,
    }
