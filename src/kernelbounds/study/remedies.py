"""What to do when the data refute the assumptions of a study."""

from __future__ import annotations

import math

from kernelbounds.display.numbers import at_most
from kernelbounds.noise import Bounded
from kernelbounds.problem import Problem
from kernelbounds.problem.candidate_kernels import turns_along_inputs
from kernelbounds.problem.checked import Checked
from kernelbounds.problem.noise_in_words import UNKNOWN


def remedies(
    problem: Problem, norm: Checked, noise: Checked, contradicted: str, refuting: str, options: bool
) -> list[str]:
    """Say what to do when the assumptions are refuted, a sentence or an item at a time.

    ``contradicted`` is a sentence on the facts that the data contradict, empty if there are none,
    and ``refuting`` one on the trial with which the data refute the assumptions. With ``options``
    it is said how to state the new assumptions on the command line; a page is read by people who
    may not have it.
    """
    by_chance = f", or something of probability {problem.delta:g} has happened"
    by_chance *= problem.delta > 0
    if contradicted:
        said = (
            f"{contradicted[:1].upper()}{contradicted[1:]} So that is wrong, or "
            f"another assumption is{by_chance}."
        )
        larger = (
            "- if the norm bound may be larger: a new study with a larger one;"
            if problem.noise == UNKNOWN
            else "- if the noise or the norm bound may be larger: a new study with larger ones;"
        )
        ways = ["- if what you stated is not true everywhere: a new study without it;", larger]
    else:
        said = (
            "The data refute the assumptions: no function with this kernel and norm bound fits the "
            f"outcomes, with {problem.stated_noise.clause}. One of the assumptions is wrong"
            f"{by_chance}."
        )
        larger = f"--norm-bound {at_most(norm.at_least, 2)} or more, or "
        larger *= math.isfinite(norm.at_least)
        turns = int(turns_along_inputs(problem).max()) + 1
        more = (
            f"{larger}--turns {turns} or more" if options else "a larger norm bound or more turns"
        )
        ways = [
            *_noise_remedy(problem, noise, options),
            f"- if the output varies more, or faster, than was assumed: a new study with {more};",
        ]
    how = "study correct" if options else "correct it"
    made = " is made by study revise. Its guarantee holds" if options else " has a guarantee"
    return [
        f"{said} {refuting}{' ' * bool(refuting)}All observations are safe in the file, and more "
        "can be told; but there are no bounds any more. What to do:",
        *ways,
        f"- if an outcome was typed wrongly: {how}.",
        f"A new study with the same observations{made} only if the new assumptions would have "
        "been made without these data.",
    ]


def _noise_remedy(problem: Problem, noise: Checked, options: bool) -> list[str]:
    """Say what to do if the noise was assumed wrongly; nothing where it cannot be the reason."""
    stated, noise_option = problem.stated_noise, "--noise" if options else "the noise"
    if problem.counts is not None:
        return [
            "- if the tries of a run are not independent, or the rate drifts among them: a new "
            f"study of rates as they are{', without --successes and --tries,' * options} with "
            f"{noise_option} that repeated runs show;"
        ]
    if noise.assumed <= noise.at_least and not stated.exceeds_range(noise.at_least):
        least = at_most(noise.at_least, 2)
        if problem.output.log:
            least = f"{at_most(100 * noise.at_least, 2)}%"
        words = problem.stated_noise.words
        larger = f"--noise '{words} {least}'" if words else f"--noise {least}"
        larger = f"{larger} or more" if options else "a larger noise"
        return [f"- if single outcomes scatter more than was assumed: a new study with {larger};"]
    if isinstance(stated.law, Bounded):
        where = " in --noise 'within ...'" if options else ""
        return [
            "- if a measurement may be farther from the true value: a new study with a larger "
            f"limit{where};"
        ]
    if stated.is_unknown:
        return [
            "- if the noise is larger in some runs than in others: a new study with "
            f"{noise_option} that repeated runs show where it is largest;"
        ]
    return []
