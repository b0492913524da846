"""What ``kernelbounds bound`` says: doubts about a table, refutations, and what its bounds mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import kernelbounds as kb
from kernelbounds.arrays import Array
from kernelbounds.cli.output import print_table, progress, say, warn
from kernelbounds.display.numbers import at_least, at_most, confidence
from kernelbounds.errors import EmptyConfidenceSetError, FactRefutedError, InputError
from kernelbounds.problem import refutation
from kernelbounds.problem.runs import LINES_NAMED, Runs, first_few

# The table of sensitivity is for B times the first factor, and for the noise times the others, at
# no more points than this.
LARGER_NORM, LARGER_NOISES, SENSITIVITY_POINTS = 2.0, (2.0, 5.0), 20_000
# Where facts make a difference is told from this many of the points, at most.
FACT_POINTS = 500


def warn_of(
    problem: kb.Problem, sequence: kb.ConfidenceSequence, runs: Runs, fixed_design: bool
) -> None:
    """Warn of data that do not suit the assumptions, or the bound that is computed from them."""
    doubts = kb.problem.runs
    out, outcomes = problem.output, sequence.outcomes
    away = np.abs(outcomes - out.middle) - out.span / 2
    # Noise that is unknown is at most what the data say, of which noise_scales are shares.
    most = sequence.noise_upper_bound if problem.stated_noise.is_unknown else 1.0
    beyond = np.flatnonzero(away > 4 * most * sequence.noise_scales).tolist()
    if beyond:
        warn(
            f"{len(beyond)} of {len(outcomes)} outcomes are outside the range "
            f"{out.low:g}:{out.high:g} stated for {out.name}, by more than noise explains "
            f"(line{'s' * (len(beyond) > 1)} {first_few([runs.lines[row] for row in beyond])} of "
            "the table): the suggested B is for functions within it."
        )
    if question := doubts.doubtful_unit(problem, sequence.points, outcomes):
        warn(question)
    alone = doubts.share_alone(problem.kernel, sequence.points)
    if alone > 0.5:
        warn(
            f"{100 * alone:.0f} % of the settings are unrelated to any other: the length scales "
            "are far too short for this few data, and bounds between settings say nothing. More "
            "data would help, or fewer turns or interactions, if that is true of your system."
        )
    for at, levels in problem.inputs.categories.items():
        there = {levels.name(number) for number in runs.points[:, at]}
        if missing := [name for name in levels if name not in there]:
            warn(
                f"no run has {problem.inputs.names[at]}={', '.join(missing[:LINES_NAMED])}: bounds "
                "there rest on the other levels, as far as these are related."
            )
    numbers = sequence.points[:, problem.inputs.numbers]
    if fixed_design and numbers.size and doubts.look_chosen(numbers, outcomes):
        warn(
            "later settings are near the best ones before them, as if they had been chosen by "
            "outcomes. If they were, the bounds of a fixed design are wrong: leave out "
            "--fixed-design. If a plan made beforehand has them in this order, all is well."
        )
    if problem.counts is not None and "kernel" in problem.suggested:
        usual = int(np.median(runs.measured[:, 1]))
        if usual >= 2 * problem.counts.planned:
            name = problem.counts.tries
            warn(
                f"most runs have {usual} {name} or more, but the kernel was chosen for "
                f"{problem.counts.planned} in each run: if their number did not depend on "
                f"outcomes, --tries {name}={usual} gives a narrower band."
            )
    norm, noise = kb.problem.checked.checked_assumptions(problem, sequence)
    if noise.at_most == math.inf:
        warn(
            f"{len(outcomes)} runs are too few to bound an unknown noise, which takes some 20 to "
            "40: until then the bounds use only what you know of the output, and not the data. If "
            "you are sure of a limit, say --noise 'unknown, at most ...'."
        )
    needed = (
        ("B", norm, out.norm_text(norm.at_least, at_least), out.norm_text(norm.assumed)),
        ("the noise", noise, problem.stated_noise.text(noise.at_least, at_least),
         problem.stated_noise.text()),
    )  # fmt: skip
    for name, one, least, assumed in needed:
        if one.strained and one.at_least <= one.assumed:
            warn(
                f"the data need {name} of at least {least}, and {assumed} is assumed: they nearly "
                "refute it. Did you state it with room to spare?"
            )


@dataclass(frozen=True)
class Found:
    """Estimates and bounds at the points asked for, and at further ones that may be better.

    The first ``asked`` points are those asked for. The others are the rows of the table beside a
    grid, which misses the settings that were measured.
    """

    problem: kb.Problem
    sequence: kb.ConfidenceSequence
    bound: kb.Bound | None
    points: Array
    estimate: Array
    lower: Array
    upper: Array
    asked: int

    def some_points(self, most: int) -> Array:
        """Return at most this many of the points asked for, spread evenly."""
        return self.points[: self.asked : -(-self.asked // most)]

    def there(self, at: np.intp) -> str:
        """Write the settings of a point, and what is known of the output there."""
        settings = self.problem.inputs.settings_text(self.points[at])
        return self.problem.output.about(
            float(self.estimate[at]), float(self.lower[at]), float(self.upper[at]), settings
        )


def find(
    problem: kb.Problem,
    sequence: kb.ConfidenceSequence,
    runs: Runs,
    asked: Array,
    further: Array | None,
    bound: kb.Bound | None,
) -> Found:
    """Compute estimates and bounds with a progress bar; raise with an explanation if refuted."""
    parts = [asked] if bound is not None else list(kb.surface.in_chunks(asked))
    parts += [] if further is None else [further]
    points, sides = np.concatenate(parts), []
    try:
        with progress("bounds", len(points)) as step:
            for part in parts:
                sides.append(problem.estimate_with_bounds(sequence, part, bound))
                step(len(part))
    except FactRefutedError as error:
        raise InputError(refutation.fact_refuted(problem, runs, sequence, error)) from None
    except EmptyConfidenceSetError as error:
        raise InputError(refutation.refuted(problem, runs, bound, error)) from None
    estimate, lower, upper = (np.concatenate(side) for side in zip(*sides, strict=True))
    return Found(problem, sequence, bound, points, estimate, lower, upper, len(asked))


def summarise(found: Found) -> None:
    """Print the best estimates, what the bounds mean, and what looser assumptions cost."""
    problem, out, unit = found.problem, found.problem.output, found.problem.output.after_number
    where = f"At the {found.asked} points asked for"
    if len(found.points) > found.asked:
        where = f"On the grid of {found.asked} points and at the rows of the table"
    most, least = np.argmax(found.estimate), np.argmin(found.estimate)
    smallest = f": the largest estimate. The smallest is {found.there(least)}"
    say(f"{out.name} is {found.there(most)}{smallest if most != least else ''}.")
    widths = out.scaled(found.upper) - out.scaled(found.lower)
    half = float(np.mean(widths[: found.asked]) / 2)
    norm = f"a norm of at most {problem.norm_text}"
    if found.sequence.classes is not None:
        count = len(problem.candidates)
        norm = f"under one of {count} kernels, a norm of at most the B of that one"
    facts = found.bound is None and problem.facts
    holds = f"{norm}, and what you know of {out.name}" if facts else f"and {norm}"
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
    sure = f"{problem.certainty.capitalize()}{'' if problem.delta else ','}"
    say(
        f"{sure} the true {out.name} is between lower and upper at "
        f"all points at once, {when}, provided that the assumptions hold: "
        f"{problem.stated_noise.clause}, {holds}. The band is {out.plus_minus(half)} on average; "
        f"{out.name} was stated to move by {out.stated_range}."
    )
    if found.bound is None:
        say_facts(found)
    if 2 * half > out.span:
        say(
            "On average the band is wider than the range you stated, so at most points these runs "
            "say nothing. More runs would help, or assuming less freedom where that is true "
            f"({_less_freedom(problem)}): kernelbounds plan says how much. The band is narrower "
            "near the runs: --at rows."
        )
    say(
        f"{where}, the largest lower bound is at "
        f"{problem.inputs.settings_text(found.points[np.argmax(found.lower)])}: "
        f"{at_least(found.lower.max(), 4)}{unit}, and none is above "
        f"{at_most(found.upper.max(), 4)}{unit}. The smallest upper bound is at "
        f"{problem.inputs.settings_text(found.points[np.argmin(found.upper)])}: "
        f"{at_most(found.upper.min(), 4)}{unit}, and none is below "
        f"{at_least(found.lower.min(), 4)}{unit}."
    )
    _show_sensitivity(found)


def _less_freedom(problem: kb.Problem) -> str:
    """Name the options that assume less freedom than the problem does."""
    fewer = {"all": ", --interactions pairs or none", "pairs": ", --interactions none"}
    several = len(problem.inputs) > 1
    return "fewer turns" + (fewer.get(problem.interactions, "") if several else "")


def say_facts(found: Found) -> None:
    """Say what is used besides the data, and at how many of the points it makes a difference."""
    problem, sequence = found.problem, found.sequence
    if problem.facts:
        shares = sequence.binding_facts(problem.scaled(found.some_points(FACT_POINTS)))
        facts, where = list(problem.facts_in_words), "nowhere"
        if max(shares) > 0:
            both = zip(facts, shares, strict=True)
            facts = [f"{words} ({100 * share:.0f} %)" for words, share in both]
            where = "at some of the points (their share in brackets)"
        say(f"What you know makes the band narrower {where}: {'; '.join(facts)}.")
    if sequence.classes is not None:
        say(kb.problem.checked.kernels_sentence(problem, sequence))


def _show_sensitivity(found: Found) -> None:
    """Print how the band, and the largest lower bound, change with looser assumptions."""
    problem, out = found.problem, found.problem.output
    few = found.some_points(SENSITIVITY_POINTS)
    where = problem.scaled(np.concatenate([few, found.points[found.asked :]]))
    looser = (
        ("as stated", 1.0, 1.0),
        (f"{LARGER_NORM:g} B", LARGER_NORM, 1.0),
        *((f"{times:g} times the noise", 1.0, times) for times in LARGER_NOISES),
    )
    if problem.stated_noise.is_unknown:  # of which a multiple says nothing, since the data bound it
        looser = looser[:2]
    stated, rows = problem.stated_noise.scale, []
    with progress("looser assumptions", len(looser)) as step:
        for name, norm, noise in looser:
            loose = problem.replace(
                norm_bound=norm * float(problem.norm_bound or 0.0),
                candidates=[(kernel, norm * own) for kernel, own in problem.candidates],
            ).sequence(
                facts=None if found.bound is None else (),
                noise_scale=None if stated is None else noise * stated,
            )
            scales = noise * found.sequence.noise_scales
            loose.update(found.sequence.points, found.sequence.outcomes, scales)
            step()
            try:
                below, above = loose.bounds(where, found.bound)
            except EmptyConfidenceSetError:  # R_t depends on B and on the noise, and may be smaller
                rows.append([name, "refuted by the data", ""])
                continue
            band = float(np.mean((above - below)[: len(few)])) / 2
            best = at_least(float(problem.outcomes.bounds(below.max(), 0.0)[0]), 4)
            rows.append([name, out.short_plus_minus(band), f"{best}{out.after_number}"])
    print_table(
        "Sensitivity to the assumptions", ["assumption", "band", "largest lower bound"], rows
    )
    if problem.stated_noise.is_unknown:
        _say_noise(found)


def _say_noise(found: Found) -> None:
    """Print what the data say of an unknown noise."""
    problem, said = found.problem, found.problem.stated_noise
    noise = kb.problem.checked.checked_assumptions(problem, found.sequence)[1]
    most, least = float(noise.at_most or 0.0), ""
    if noise.at_least > 0:
        least = f" (and at least {said.text(noise.at_least, at_least)}, if B is right)"
    if most >= noise.assumed:
        say(
            "The noise is unknown, and these runs do not bound it yet."
            if math.isinf(most)
            else f"The noise is {said.text()}, as you stated{least}; these runs do not "
            "bound it more tightly yet."
        )
        return
    say(
        f"The noise is at most {said.text(most, at_most)}{least}, found from the data, "
        "whatever B and the kernel are. This is part of what holds with probability "
        f"{confidence(problem.delta)}."
    )
