"""The forms of the page: edits of a study, and the questions that state a new one.

An edit is a function that changes a study and says what it did, in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.problem import Input, Output, Problem, assume
from kernelbounds.problem.drawings import draw_functions
from kernelbounds.problem.quantities import NUMBER
from kernelbounds.studio.desk import SUFFIX, OpenStudy
from kernelbounds.studio.svg import as_svg
from kernelbounds.study import Study
from kernelbounds.study.telling import told_text

Answers = Mapping[str, list[str]]

# The preview draws this many functions, enough to see what is admitted; the study itself is made
# with as many as everywhere else.
PREVIEW_FUNCTIONS = 40
# The choices of the questions about a new study: what is sent, and what the page says.
CHOICES = {
    "kinds": {
        "number": "a number",
        "integer": "a whole number",
        "log": "a number whose ratios matter",
        "category": "one of several names",
    },
    "shapes": {
        "": "anything",
        "increasing": "it never falls",
        "decreasing": "it never rises",
        "concave": "it always bends down",
        "convex": "it always bends up",
    },
    "turns": {
        "0": "never: it rises or falls all the way",
        "1": "once: it has one best or worst value",
        "2": "twice: a full wave",
        "3": "three times",
    },
    "interactions": {
        "all": "may depend on all others",
        "pairs": "may depend on one other at a time",
        "none": "does not depend on the others: effects add up",
    },
    "noises": {
        "about": "is about",
        "unknown": "is not known",
        "within": "is never more than",
    },
}


def first(given: Answers, name: str, default: str = "") -> str:
    """Return the first answer to a question, without spaces around it."""
    return (given.get(name) or [default])[0].strip()


def number(text: str, what: str) -> float:
    """Read a number that somebody typed, with a point or a comma."""
    plain = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    if not NUMBER.fullmatch(plain):
        raise InputError(f"{what} must be a number, got {text!r}.")
    return float(plain)


def whole(text: str, what: str, least: int = 1) -> int:
    """Read a whole number that somebody typed."""
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{what} must be a whole number from {least} on, got {text!r}.")
    return int(text)


def settings(problem: Problem, given: Answers, prefix: str = "") -> dict[str, float | str]:
    """Read a value of each input, in fields that have its name after a prefix."""
    typed = {one: first(given, prefix + one.name) for one in problem.inputs}
    return {one.name: text if one.levels else number(text, one.name) for one, text in typed.items()}


# --- edits


def compute(one: OpenStudy, given: Answers) -> str:
    """Compute bounds however many outcomes there are."""
    one.compute()
    return "Bounds are being computed; this may take minutes."


def ask(one: OpenStudy, given: Answers) -> str:
    """Ask for new trials, beside those that are pending."""
    count = whole(first(given, "count", "1"), "the number of trials")
    try:
        new = one.study.ask(count, more=True, purpose=first(given, "aim", "best"))
    except EmptyConfidenceSetError:
        raise InputError(
            "the data refute what is assumed, so nothing can be suggested; see what to do above."
        ) from None
    numbers = ", ".join(str(trial.number) for trial in new)
    return f"Trial{'s' * (count > 1)} {numbers} to be run."


def tell(one: OpenStudy, given: Answers) -> str:
    """Tell the outcome of a trial, or of a run with settings of one's own."""
    study, problem = one.study, one.study.problem
    value = _outcome(problem, given)
    if number_of_trial := first(given, "trial"):
        told = study.tell(study.trial(whole(number_of_trial, "trial")), value)
    else:
        told = study.tell(settings(problem, given), value)
    if note := first(given, "note"):
        study.note(told.trial, note)
    return f"Trial {told.trial}: {told_text(problem, value)} is safe in the file."


def drop(one: OpenStudy, given: Answers) -> str:
    """Give up a pending trial."""
    return f"Trial {one.study.drop(_trial_number(given)).number} was given up."


def undo(one: OpenStudy, given: Answers) -> str:
    """Take back the outcome of a trial."""
    one.study.undo(_trial_number(given))
    return f"The outcome of trial {_trial_number(given)} was taken back; it is pending again."


def correct(one: OpenStudy, given: Answers) -> str:
    """Correct an outcome that was typed wrongly."""
    problem, trial = one.study.problem, _trial_number(given)
    value = _outcome(problem, given)
    told = one.study.correct(trial, value)
    done = "was told like that already" if told.again else "is corrected"
    return f"Trial {trial} {done}: {told_text(problem, value)}."


def note(one: OpenStudy, given: Answers) -> str:
    """Add a note to a trial."""
    return f"Noted on trial {one.study.note(_trial_number(given), first(given, 'text')).trial}."


def import_runs(one: OpenStudy, path: Path, given: Answers) -> str:
    """Add the runs of a table."""
    skip = first(given, "skip")
    told = one.study.import_runs(
        path, skip=whole(skip, "the number of rows", least=0) if skip else None, name=path.name
    )
    new = sum(not one.again for one in told)
    return f"Imported {new} run{'s' * (new != 1)}; the study has {len(one.study)} observations."


def _outcome(problem: Problem, given: Answers) -> Any:
    values = tuple(number(first(given, name), name) for name in problem.outcomes.names)
    return values[0] if problem.counts is None else values


def _trial_number(given: Answers) -> int:
    return whole(first(given, "trial"), "trial")


EDITS = {
    "compute": compute, "ask": ask, "tell": tell, "drop": drop, "undo": undo, "correct": correct,
    "note": note,
}  # fmt: skip


# --- a new study


def problem_of(given: Answers) -> Problem:
    """Return the problem that the answers state; one sentence says what is missing."""
    stated: dict[str, Any] = {shape: [] for shape in CHOICES["shapes"] if shape}
    inputs = []
    for row, name in enumerate(given.get("input-name", [])):
        answers = {
            field: given.get(f"input-{field}", [])[row].strip()
            for field in ("unit", "kind", "low", "high", "levels", "shape")
        }
        inputs.append(_input(name.strip(), answers))
        if answers["shape"]:
            stated[answers["shape"]].append(name.strip())
    name = first(given, "output-name")
    if not name:
        raise InputError("say what you measure, such as strength.")
    low, high = (
        number(first(given, f"output-{end}"), f"the {word} of {name}")
        for end, word in (("low", "smallest value"), ("high", "largest value"))
    )
    output = Output(name, low, high, first(given, "output-unit"), log="output-log" in given)
    if any(limits := [first(given, f"limit-{end}") for end in ("low", "high")]):
        ends = [f"{number(one, 'a limit'):.15g}" if one else "" for one in limits]
        stated["limits"] = ":".join(ends)
    for field, read in (("delta", float), ("experiments", int)):
        if text := first(given, field):
            stated[field] = read(number(text, field))
    return Problem(
        inputs, output, _noise(given, output), int(first(given, "turns", "1")),
        first(given, "interactions", "all"), **stated,
    )  # fmt: skip


def _input(name: str, answers: Mapping[str, str]) -> Input:
    if not name:
        raise InputError("each input needs a name, such as temperature.")
    kind, unit = answers["kind"], answers["unit"]
    if kind == "category":
        levels = [one.strip() for one in re.split(r"[,|;]", answers["levels"]) if one.strip()]
        if len(levels) < 2:
            raise InputError(f"{name} needs two names or more, with commas between them.")
        return Input(name, 0, len(levels) - 1, levels=tuple(levels))
    low, high = (
        number(answers[end], f"the {word} of {name}")
        for end, word in (("low", "lowest setting"), ("high", "highest setting"))
    )
    return Input(name, low, high, unit, log=kind == "log", integer=kind == "integer")


def _noise(given: Answers, output: Output) -> float | str:
    kind, amount = first(given, "noise-kind", "about"), first(given, "noise")
    if kind == "unknown":
        return f"unknown, at most {amount}" if amount else "unknown"
    if not amount:
        raise InputError(
            f"say by how much {output.name} differs when the same settings are run again."
        )
    if not amount.endswith("%"):
        amount = f"{number(amount, 'the noise'):.15g}"
    if kind == "within":
        return f"within {amount}"
    return amount if amount.endswith("%") else float(amount)


def preview(given: Answers) -> dict[str, Any]:
    """Draw functions that the answers admit, and say what follows from them."""
    try:
        found = assume(problem_of(given), functions=PREVIEW_FUNCTIONS)
    except InputError as error:
        return {"missing": str(error), "picture": ""}
    out, problem = found.problem.output, found.problem
    what = f"Functions that {out.name} may be, as far as is known"
    width = found.chosen.width
    band = f"After {problem.experiments} runs that fill the ranges, the band will be about "
    return {
        "missing": "",
        "picture": as_svg(lambda: draw_functions(found), what),
        "band": f"{band}{out.plus_minus(width)}." if np.isfinite(width) else "",
        "left_out": found.left_out,
    }


def create(given: Answers, folder: Path) -> Path:
    """Make the study in a new file of a folder, and return its path."""
    name = first(given, "file")
    if not re.fullmatch(r"[\w][\w .+-]*", name):
        raise InputError(
            f"the name of the study must be a plain file name, such as oven, got {name!r}."
        )
    path = folder / (name if name.endswith(SUFFIX) else f"{name}{SUFFIX}")
    problem = problem_of(given)
    minimise = first(given, "goal", "maximise") == "minimise"
    within: str | float | None = first(given, "stop-within") or None
    if within is not None and not str(within).endswith("%"):
        within = number(str(within), "the aim")
    Study.create(path, problem, minimise=minimise, stop_within=within).close()
    return path
