"""What the commands of studies say, and how they read an outcome: trials, notes, certificates."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import typer

import kernelbounds as kb
from kernelbounds.cli.output import print_table, remark, say
from kernelbounds.display.numbers import about, at_least, at_most
from kernelbounds.errors import EmptyConfidenceSetError, InputError, KernelBoundsError

# An aim is far if it is less than the mean half-width of the band divided by this. In four
# simulated studies of two and three inputs, certificates over the whole ranges were 0.7 to 1.7
# times the half-width that was predicted for as many runs.
FAR_AIM_RATIO = 2.0
# After an outcome is told, a certificate is made in this many seconds, unless there are more
# observations than this: then a search of so short a time would take longer, and find little.
TELL_SECONDS, MOST_CERTIFIED = 1.0, 500


def warn_of_far_aim(problem: kb.Problem, aim: float) -> None:
    """Remark that an aim is out of reach for the planned number of experiments, where it is."""
    out, noise = problem.output, problem.stated_noise
    width, _ = kb.problem.model.predicted_half_widths(problem, problem.experiments)
    if aim >= out.difference(width / FAR_AIM_RATIO):
        return
    unknown = f" for a noise of {noise.planned_text}, and wider if it is unknown"
    remark(
        f"an aim of {out.amount(aim, '{:g}'.format)} is far: after {problem.experiments} runs that "
        f"fill the ranges, the band is {out.plus_minus(width)} on average"
        f"{unknown * noise.is_unknown}, and certificates over whole ranges are of about that size. "
        "See what is in reach, and what stronger assumptions would buy: kernelbounds plan"
    )


def print_trials(study: kb.Study, trials: Sequence[kb.study.Trial]) -> None:
    """Print several trials as a table, with what is known of the output there now."""
    problem, out = study.problem, study.problem.output
    known_now = [_known_now(study, one) for one in trials]
    names = [one.label for one in problem.inputs]
    rows = [
        [
            str(one.number),
            *setting_texts(one.values),
            about(estimate),
            out.between(lower, upper),
        ]
        for one, (estimate, lower, upper, _) in zip(trials, known_now, strict=True)
    ]
    print_table("what to try", ["trial", *names, "estimate", f"{out.name}, guaranteed"], rows)
    reasons: dict[str, list[str]] = {}
    for one in trials:
        reasons.setdefault(one.why, []).append(str(one.number))
    for why, numbers in reasons.items():
        if why:
            say(f"trial{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {why}")
    if condition := kb.study.revision.condition_of(study.revisions):
        say(f"guaranteed {condition}")
    stale = [str(one.number) for one, (*_, same) in zip(trials, known_now, strict=True) if not same]
    if stale:
        say(
            f"chosen before the latest outcomes: trial {', '.join(stale)}; for a new choice, drop "
            "it and ask again"
        )


def setting_texts(values: Mapping[str, float | str]) -> list[str]:
    """Write settings for the columns of a table: numbers, or the names of levels."""
    return [one if isinstance(one, str) else f"{one:.10g}" for one in values.values()]


def _known_now(study: kb.Study, trial: kb.study.Trial) -> tuple[float, float, float, bool]:
    """Return estimate and bounds at a trial, and whether it was chosen knowing these bounds.

    Where the data refute the assumptions, they are those of the time when it was asked for.
    """
    estimate, lower, upper = trial.estimate, trial.lower, trial.upper
    with suppress(EmptyConfidenceSetError):
        (estimate,), (lower,), (upper,) = study.estimate_with_bounds(trial.values)
    same = math.isclose(upper - lower, trial.upper - trial.lower, rel_tol=1e-6)
    return float(estimate), float(lower), float(upper), same or math.isnan(trial.lower)


def command_line(study: kb.Study, command: str, trial: int) -> str:
    """Write a command about a trial, for pasting into a shell; an outcome is left to be filled in.

    >>> problem = kb.Problem(["x=0:1"], "pH=1:9", 0.1, kernel="RBF(0.5)", norm_bound=9.0)
    >>> command_line(kb.Study.create(":memory:", problem), "tell", 3)
    'kernelbounds study tell :memory: --trial 3 pH=...'
    """
    words = ["kernelbounds study", command, quoted(study.path), f"--trial {trial}"]
    if command != "drop":
        words += [quoted(f"{name}=...") for name in study.problem.outcomes.names]
    return " ".join(words)


def quoted(text: object) -> str:
    r"""Quote text for a shell where it needs that: '"pH value=..."' in double quotes.

    >>> quoted("yield=..."), quoted("pH value=..."), quoted("it's=...")
    ('yield=...', '"pH value=..."', '"it\'s=..."')
    """
    plain = str(text)
    if shlex.quote(plain) == plain:
        return plain
    # In double quotes, which Windows knows, too, unless something in them has a meaning.
    return shlex.quote(plain) if set(plain) & set('"$`\\!%') else f'"{plain}"'


def described(study: kb.Study, trial: kb.study.Trial) -> str:
    """Write the settings of a trial, and what is known of the output there now."""
    out, unit = study.problem.output, study.problem.output.after_number
    estimate, lower, upper, same = _known_now(study, trial)
    condition = kb.study.revision.condition_of(study.revisions)
    known = f"{out.name} {out.about(estimate, lower, upper)}{condition and f', {condition}'}"
    if lower <= out.low and upper >= out.high:
        known = (
            f"as far as is known, {out.name} there may be anywhere in its plausible range "
            f"{out.low:g}:{out.high:g}{unit}"
        )
        known += ", or beyond" if lower < out.low or upper > out.high else ""
    lines = [f"trial {trial.number}: {study.problem.inputs.settings_text(trial.values.values())}"]
    lines += [trial.why] * bool(trial.why) + [known]
    if not same:
        lines.append(
            "it was chosen before the latest outcomes; for a new choice: "
            + command_line(study, "drop", trial.number)
        )
    return "\n  ".join(lines)


def unexpected_at(study: kb.Study, point: Mapping[str, Any], value: Any) -> str:
    """Say where an outcome at some settings should be, if this one is not there."""
    if not 0 < len(study) <= MOST_CERTIFIED:
        return ""
    problem, sequence = study.problem, study.sequence
    (outcome,), scales = problem.scaled_outcomes([value])
    with suppress(KernelBoundsError):  # settings out of range, or data that refute the assumptions
        unit = problem.scaled([[point[name] for name in problem.inputs.names]])
        (low,), (high,) = sequence.prediction_bounds(unit, noise_scale=scales)
        if not low <= outcome <= high:
            below, above = problem.outcomes.bounds(low, high)
            ends = f"{at_least(float(below), 4)} to {at_most(float(above), 4)}"
            return f"{ends}{problem.output.after_number}"
    return ""


def certify(study: kb.Study) -> None:
    """Make a certificate in a short time, for the curve of certificates, and print it.

    The outcomes are safe on the disk by now, so an interrupt does no harm.
    """
    if len(study) > MOST_CERTIFIED:
        return
    try:
        regret = study.certificate(TELL_SECONDS).regret
        if math.isfinite(regret):
            within = study.problem.output.amount(regret)
            condition = kb.study.revision.condition_of(study.revisions)
            typer.echo(
                f"certified: the best settings known are within {within} of the best"
                f"{condition and f', {condition}'}"
            )
    except EmptyConfidenceSetError:
        remark(
            "the outcomes now contradict the assumptions, so there is no certificate; "
            "kernelbounds study status says what to do"
        )
    except KeyboardInterrupt:
        remark("no certificate was made; the outcome is safe in the file")


def ask_about_repeats(study: kb.Study, told: kb.study.Told) -> None:
    """Ask whether an outcome that was told is one that was there before, told twice."""
    new = study.trial(told.trial)
    for one in reversed([] if told.again else study.trials):
        if one.number != new.number and (one.ran, one.outcome) == (new.ran, new.outcome):
            remark(
                f"this is equal to trial {one.number}, and counts as another run; if it is the "
                f"same one, told twice: kernelbounds study undo {quoted(study.path)}"
            )
            return


def ask_about_slips(study: kb.Study, told: kb.study.Told, value: Any, expected: str) -> None:
    """Remark on an outcome that was told if it looks wrong, and say how it is corrected.

    ``expected`` is what :func:`unexpected_at` has said of it before it was told.
    """
    problem, out = study.problem, study.problem.output
    (scaled,), scales = problem.scaled_outcomes([value])
    noise = problem.stated_noise.planned if scales is None else scales[0]
    correct_it = command_line(study, "correct", told.trial)
    if abs(scaled - out.middle) > 10 * noise + out.span:
        remark(
            f"{kb.study.telling.told_text(problem, value)} is far from the range {out.written}; "
            f"if that is a slip: {correct_it}"
        )
    elif expected and not told.again:
        remark(
            f"this is outside {expected}, where the assumptions and the outcomes before it put the "
            f"outcome. If it is a slip of the pen: {correct_it}"
        )
    else:
        ask_about_units(study, int(not told.again))


def ask_about_units(study: kb.Study, new: int) -> None:
    """Ask whether outcomes are in the unit of the range, where it is the new ones that differ."""
    sequence, doubtful = study.sequence, kb.problem.runs.doubtful_unit
    points, outcomes, before = sequence.points, sequence.outcomes, len(sequence) - new
    question = doubtful(study.problem, points, outcomes) if new else ""
    if question and not doubtful(study.problem, points[:before], outcomes[:before]):
        remark(question)


def outcome_among(problem: kb.Problem, given: Mapping[str, Any]) -> Any:
    """Return the outcome among values by name: a number, or successes and tries."""
    found = tuple(given[name] for name in problem.outcomes.names)
    return found[0] if problem.counts is None else found


def read_values(pairs: list[str], problem: kb.Problem) -> dict[str, Any]:
    """Read ``name=value`` from the command line: a number, or the name of a level."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = (part.strip() for part in pair.rpartition("="))
        if not separator or not name:
            raise InputError(f"write name=value, such as temperature=200, got {pair!r}.")
        if name in found:
            raise InputError(f"{name} is given twice.")
        if name in problem.inputs.categories_by_name:
            found[name] = text
            continue
        if not kb.problem.quantities.NUMBER.fullmatch(text):
            hint = "; write a point for the decimal comma" if "," in text else ""
            if kb.problem.quantities.NUMBER.match(text) and not hint:
                hint = "; leave out the unit, and whatever else is after the number"
            if text.lower() in ("nan", "na", "none", "") and name in problem.outcomes.names:
                hint = (
                    "; tell what was measured, or drop a trial that was not run (study drop). If "
                    "it failed because of its outcome, tell what you decided beforehand that a "
                    "failure counts as: to leave it out would void the guarantee"
                )
            raise InputError(f"{name} must be a number, got {text!r}{hint}.")
        found[name] = float(text)
    return found
