"""What ``kernelbounds bound`` says of a table: doubts, a refutation, or what the bounds mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import kernelbounds as kb  # whose names are imported when they are used, and not for help
from kernelbounds.arrays import Array
from kernelbounds.commands.shared import (
    Runs,
    in_lines,
    print_table,
    progress,
    say,
    unit_of,
    warn,
)
from kernelbounds.errors import EmptyConfidenceSetError

# By which factor assumptions change, to see what depends on them; at so many points at most.
LOOSER, NOISIER, SENSITIVITY_AT = 2.0, (2.0, 5.0), 20_000


def warn_of(
    problem: kb.Problem, sequence: kb.ConfidenceSequence, runs: Runs, fixed_design: bool
) -> None:
    """What speaks against using the data like this."""
    from kernelbounds.problem import doubts

    out, outcomes = problem.output, runs.outcomes
    reach = 4 * float(problem.noise or 0.0)
    beyond = runs.lines[(outcomes < out.low - reach) | (outcomes > out.high + reach)]
    if len(beyond):
        warn(
            f"{len(beyond)} of {len(outcomes)} outcomes are outside of the range "
            f"{out.low:g}:{out.high:g} stated for {out.name}, by more than noise explains "
            f"({in_lines(beyond)} of the table): the suggested B is for functions within it."
        )
    alone = doubts.share_alone(problem.kernel, sequence.points)
    if alone > 0.5:
        warn(
            f"{100 * alone:.0f} % of the settings are related to no other one: for so few data "
            "the length scales are far too short, and bounds between settings say nothing. Fewer "
            "turns or interactions, if that is true of your system, or more data, would help."
        )
    if fixed_design and doubts.look_chosen(sequence.points, outcomes):
        warn(
            "later settings are near the best ones before them, as if they had been chosen by "
            "outcomes: then the bounds of a fixed design are wrong, and --fixed-design has to be "
            "left out. If a plan made beforehand has them in this order, all is well."
        )
    norm, noise = kb.study.status.checked_assumptions(problem, sequence)
    for name, one in (("B", norm), ("the noise", noise)):
        if one.strained and one.at_least <= one.assumed:
            warn(
                f"the data need {name} of at least {one.at_least:.3g}{unit_of(problem)}, and "
                f"{one.assumed:.3g}{unit_of(problem)} is assumed: they nearly refute it. Was it "
                "stated with room to spare?"
            )


def refuted(
    problem: kb.Problem, runs: Runs, bound: kb.Bound | None, error: EmptyConfidenceSetError
) -> str:
    """What to do when no function satisfies the assumptions: B or the noise would have to grow."""
    norm, noise = problem.norm_at_least(error.norm_lower_bound), error.noise_lower_bound
    larger = noisier = ""
    unit = unit_of(problem)
    if math.isfinite(norm):
        larger = f"B would have to be at least {norm:.3g}{unit}"
    if math.isfinite(noise):
        noisier = f"the noise at least {noise:.3g}{unit}"
    least = ", or ".join(part for part in (larger, noisier) if part)
    return (
        f"the data refute the assumptions: no function with B = {problem.norm_bound:.4g}{unit} and "
        f"noise {problem.noise:g}{unit} explains them"
        + (f" ({least})" if least else "")
        + f". The rows before line {_first_refuting(problem, runs, bound)} do not refute them, and "
        "with that line they do. Is the noise "
        "larger than you said, does the output turn more often, do inputs interact, or is a row "
        "wrong? State it anew with room to spare; since you have seen the data, the guarantee "
        "then holds only as far as you would have stated the same without them."
    )


def _first_refuting(problem: kb.Problem, runs: Runs, bound: kb.Bound | None) -> int:
    """The line of a row that refutes the assumptions together with those before it.

    By bisection: fewer rows than ``low`` + 1 do not refute them, and ``high`` do.
    """
    low, high = 0, len(runs.outcomes)
    unit = problem.scaled(runs.points)
    while high - low > 1:
        middle = (low + high) // 2
        sequence = problem.sequence()
        sequence.update(unit[:middle], runs.outcomes[:middle])
        try:
            sequence.bounds(unit[:1], bound)
            low = middle
        except EmptyConfidenceSetError:
            high = middle
    return int(runs.lines[high - 1])


class Place(NamedTuple):
    """A point in the user's units, and bounds on the output there."""

    point: Array
    lower: float
    upper: float


@dataclass(frozen=True)
class Found:
    """Bounds at the points asked for, and at further ones that may have the best value for sure.

    The first ``asked`` points are those asked for. The others are the rows of the table beside a
    grid, which misses the settings that were measured.
    """

    problem: kb.Problem
    sequence: kb.ConfidenceSequence
    bound: kb.Bound | None
    points: Array
    lower: Array
    upper: Array
    asked: int

    @property
    def surest(self) -> Place:
        """Where the lower bound is largest."""
        return self._place(int(np.argmax(self.lower)))

    @property
    def surely_small(self) -> Place:
        """Where the upper bound is smallest."""
        return self._place(int(np.argmin(self.upper)))

    def _place(self, at: int) -> Place:
        return Place(self.points[at], float(self.lower[at]), float(self.upper[at]))


def summarise(found: Found) -> None:
    """What the bounds mean, the best point, and what looser assumptions cost."""
    problem, out, unit = found.problem, found.problem.output, unit_of(found.problem)
    written = kb.study.points.written
    half = float(np.mean((found.upper - found.lower)[: found.asked]) / 2)
    when = (
        "if the settings were fixed before the first outcome, and you look once"
        if found.bound is not None
        else "and after any number of further runs, wherever they are"
    )
    if "norm_bound" in problem.suggested:
        missed = problem.delta + 1 - problem.quantile
        say(
            f"Of 100 systems like the random functions with your range and turns, the band misses "
            f"about {100 * missed:.3g} somewhere, on average: {100 * (1 - problem.quantile):.3g} "
            "that the suggested norm bound does not cover, and "
            f"{100 * problem.delta:.3g} by chance."
        )
    say(
        f"With probability {1 - problem.delta:g} the true {out.name} is between lower and upper at "
        f"all points at once, {when}, provided that the assumptions hold: noise of at most "
        f"{problem.noise:g}{unit}, and a norm of at most {problem.norm_bound:.4g}{unit}. "
        f"The band is ±{half:.3g}{unit} on average; {out.name} was stated to move by "
        f"{out.range:g}{unit}."
    )
    if 2 * half > out.range:
        say(
            "On average the band is wider than the range you stated, so at most points these runs "
            "say nothing. More runs would help, or assuming less freedom where that is true "
            "(fewer turns, --interactions pairs or none): kernelbounds plan says how much. The "
            "band is narrower near the runs: --at rows."
        )
    high, low = found.surest, found.surely_small
    where = f"At the {found.asked} points asked for"
    if len(found.points) > found.asked:
        where = f"On the grid of {found.asked} points and at the rows of the table"
    say(
        f"{where}, the largest lower bound is at {written(problem, high.point)}: {out.name} is "
        f"between {high.lower:.4g} and {high.upper:.4g}{unit} there, and at none of them above "
        f"{found.upper.max():.4g}{unit}. The smallest upper bound is at "
        f"{written(problem, low.point)}: between {low.lower:.4g} and {low.upper:.4g}{unit}, and at "
        f"none of them below {found.lower.min():.4g}{unit}."
    )
    _show_sensitivity(found)


def _show_sensitivity(found: Found) -> None:
    """How the band, and the largest lower bound, change with looser assumptions."""
    problem, unit = found.problem, unit_of(found.problem)
    few = found.points[: found.asked : -(-found.asked // SENSITIVITY_AT)]
    where = problem.scaled(np.concatenate([few, found.points[found.asked :]]))
    rows = []
    looser = (
        ("as stated", 1.0, 1.0),
        (f"{LOOSER:g} B", LOOSER, 1.0),
        *((f"{times:g} times the noise", 1.0, times) for times in NOISIER),
    )
    with progress("looser assumptions", len(looser)) as step:
        for name, norm, noise in looser:
            loose = problem.replace(
                norm_bound=norm * float(problem.norm_bound or 0.0),
                noise=noise * float(problem.noise or 0.0),
            ).sequence()
            loose.update(found.sequence.points, found.sequence.outcomes)
            below, above = loose.bounds(where, found.bound)
            band = np.mean((above - below)[: len(few)]) / 2
            rows.append([name, f"±{band:.3g}{unit}", f"{below.max():.4g}{unit}"])
            step()
    print_table(
        "Sensitivity to the assumptions", ["assumption", "band", "largest lower bound"], rows
    )
