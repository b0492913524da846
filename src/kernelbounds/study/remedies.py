"""What to do when the data refute the assumptions of a study."""

from __future__ import annotations

import math

from kernelbounds.display.numbers import at_most
from kernelbounds.noise import Bounded
from kernelbounds.problem import Problem
from kernelbounds.problem.candidate_kernels import turns_along_inputs
from kernelbounds.problem.checked import Checked
from kernelbounds.problem.noise_in_words import UNKNOWN


def remedies(problem: Problem, norm: Checked, noise: Checked, contradicted: str) -> list[str]:
    """Say what to do when the assumptions are refuted, a sentence or an item at a time.

    ``contradicted`` is a sentence on the facts that the data contradict, empty if there are none.
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
        ways = [
            *_noise_remedy(problem, noise),
            "- if the output varies more, or faster, than was assumed: a new study with "
            f"{larger}--turns {turns} or more;",
        ]
    return [
        f"{said} All observations are safe in the file, and more can be told; but there are no "
        "bounds any more. What to do:",
        *ways,
        "- if an outcome was typed wrongly: study correct.",
        "A new study with the same observations is made by study revise. Its guarantee holds only "
        "if the new assumptions would have been made without these data.",
    ]


def _noise_remedy(problem: Problem, noise: Checked) -> list[str]:
    """Say what to do if the noise was assumed wrongly; nothing where it cannot be the reason."""
    stated = problem.stated_noise
    if problem.counts is not None:
        return [
            "- if the tries of a run are not independent, or the rate drifts among them: a new "
            "study of rates as they are, without --successes and --tries, with --noise that "
            "repeated runs show;"
        ]
    if noise.assumed <= noise.at_least and not stated.exceeds_range(noise.at_least):
        least = at_most(noise.at_least, 2)
        if problem.output.log:
            least = f"{at_most(100 * noise.at_least, 2)}%"
        words = problem.stated_noise.words
        larger = f"--noise '{words} {least}'" if words else f"--noise {least}"
        return [
            "- if single outcomes scatter more than was assumed: a new study with "
            f"{larger} or more;"
        ]
    if isinstance(stated.law, Bounded):
        return [
            "- if a measurement may be farther from the true value: a new study with a larger "
            "limit in --noise 'within ...';"
        ]
    if stated.is_unknown:
        return [
            "- if the noise is larger in some runs than in others: a new study with --noise that "
            "repeated runs show where it is largest;"
        ]
    return []
