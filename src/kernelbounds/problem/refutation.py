"""Explanations of refuted assumptions, in the user's words.

They say which assumption the data refute, where and by how much, and by which row of a table.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from kernelbounds.bounds import Bound
from kernelbounds.display.numbers import at_least
from kernelbounds.errors import EmptyConfidenceSetError, FactRefutedError
from kernelbounds.functionals import Difference
from kernelbounds.noise import SubGaussian
from kernelbounds.problem.facts_in_words import in_users_words
from kernelbounds.problem.model import norm_at_least
from kernelbounds.problem.problem import Problem
from kernelbounds.problem.runs import Runs, first_few
from kernelbounds.sequence import ConfidenceSequence

# A message names no more places than this where facts are contradicted.
PLACES_NAMED = 3
# A refutation does not say how large B would have to be beyond this multiple of what was stated.
FAR_LARGER_NORM = 1000
SEEN = (
    "since you have seen the data, the guarantee then holds only as far as you would have stated "
    "the same without them."
)


def contradiction(problem: Problem, sequence: ConfidenceSequence, error: FactRefutedError) -> str:
    """Say in the user's words and units which facts the data contradict, where and how far.

    ``sequence`` has the data.
    """
    out, words = problem.output, in_users_words(problem, error.fact)
    several = " and " in error.fact
    settings = [problem.inputs.settings_text(point) for point in problem.unscaled(error.places)]
    where = ", ".join(settings[:PLACES_NAMED])
    said = f"the data contradict {'these together: ' if several else ''}{words}."
    if error.on_average:
        return f"{said} The contradiction is largest around {where}."
    plain = problem.sequence(facts=())
    plain.update(sequence.points, sequence.outcomes, sequence.noise_scales)
    try:
        if len(error.places) == 2:
            first, last = sorted(error.places)
            lower, upper = plain.bounds_of(Difference(last, first))
            falls, amount = upper < 0, -upper if upper < 0 else lower
            by = f"{at_least(amount)}{out.after_number}"
            if out.log:
                by = f"a factor of {at_least(float(out.least(amount)))}"
            change = f"{'falls' if falls else 'rises'} by at least {by}"
            ends = " to ".join(
                problem.inputs.settings_text(x) for x in problem.unscaled([first, last])
            )
            return f"{said} From {ends}, the true {out.name} {change}."
        lower, upper = problem.outcomes.bounds(*plain.bounds(error.places))
    except EmptyConfidenceSetError:
        return f"{said} The contradiction is largest at {where}."
    known = "; ".join(
        f"at {place} it is {out.between(low, high)}"
        for place, low, high in zip(settings, lower, upper, strict=True)
    )
    return (
        f"{said} By the data and the other assumptions, the true {out.name} is elsewhere: {known}."
    )


def refuted(
    problem: Problem, runs: Runs, bound: Bound | None, error: EmptyConfidenceSetError
) -> str:
    """Say how B or the noise would have to grow where no function satisfies the assumptions."""
    out, said, norm = problem.output, problem.stated_noise, float(problem.norm_bound or 0.0)
    larger = norm_at_least(problem, error.norm_lower_bound)
    if problem.candidates:
        larger = norm * error.norm_lower_bound  # The bound is a factor here.
    least = []
    if norm <= larger < math.inf:
        many = f"at least {out.norm_text(larger, at_least)}"
        if larger > FAR_LARGER_NORM * norm:
            many = f"more than {FAR_LARGER_NORM} times as large"
        least.append(f"B would have to be {many}")
    if (said.scale or 0.0) <= error.noise_lower_bound < math.inf:
        noise = said.in_units(error.noise_lower_bound)
        is_limit = not isinstance(said.law, SubGaussian)
        what = "the limit of the noise" if is_limit else "the noise"
        size = f"at least {said.text(noise, at_least)}"
        if said.exceeds_range(noise):  # Such noise explains anything, and its size says nothing.
            size = f"larger than the whole range of {out.name}"
        least.append(f"{what}{'' if least else ' would have to be'} {size}")
    larger_ones = f" ({', or '.join(least)})" if least else ""
    doubt = "Is the noise larger than you said"
    if problem.counts is not None:
        doubt = "Are the tries of a run not independent, or not all counted"
    elif said.is_unknown and not least[1:]:
        doubt = "Is the noise not the same in all runs"
    return (
        f"the data refute the assumptions: no function with B = {problem.norm_text} explains "
        f"them, with {said.clause}{larger_ones}. The rows before line "
        f"{_first_refuting(problem, runs, bound)} do not refute them, but with that line they do. "
        f"{doubt}, does the output turn more often, do inputs interact, or is a row wrong? "
        f"{_unused(runs)}State it again with room to spare; {SEEN}"
    )


def fact_refuted(
    problem: Problem, runs: Runs, sequence: ConfidenceSequence, error: FactRefutedError
) -> str:
    """Say in the user's words which fact the data contradict, where, and by how much."""
    said = contradiction(problem, sequence, error)
    noise = "" if problem.noise == "unknown" else f" or the noise, {problem.stated_noise.text()},"
    return (
        f"{said} The rows before line {_first_refuting(problem, runs, None)} do not contradict it, "
        f"but with that line they do. Is it not true everywhere, is B = {problem.norm_text}{noise} "
        f"too small, or is a row wrong? {_unused(runs)}State it again; {SEEN}"
    )


def _unused(runs: Runs) -> str:
    """Say which columns of the table are not inputs: one of them may be what is missing."""
    if not runs.unused:
        return ""
    names = first_few([repr(name) for name in runs.unused])
    if len(runs.unused) == 1:
        return f"Column {names} of the table is not used: if it matters, it is a missing input. "
    return (
        f"Columns {names} of the table are not used: if one of them matters, it is a missing "
        "input. "
    )


def _first_refuting(problem: Problem, runs: Runs, bound: Bound | None) -> int:
    """Return the line of the row that refutes the assumptions together with those before it."""
    unit = problem.scaled(runs.points)

    def refutes(count: int) -> bool:
        sequence = problem.sequence(facts=None if bound is None else ())
        sequence.update(unit[:count], *problem.scaled_outcomes(runs.measured[:count]))
        try:
            sequence.bounds(unit[:1], bound)
        except EmptyConfidenceSetError:
            return True
        return False

    return runs.lines[bisect_left(range(1, len(unit)), True, key=refutes)]
