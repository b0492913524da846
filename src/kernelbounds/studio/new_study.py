"""A new study from questions that an engineer can answer, with the admitted functions drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.errors import InputError
from kernelbounds.problem import Input, Output, Problem, assume
from kernelbounds.problem.admitted_functions import admitted_functions
from kernelbounds.studio.desk import SUFFIX
from kernelbounds.studio.sections import Answers, first, number
from kernelbounds.studio.svg import as_svg
from kernelbounds.study import Study

# Enough to see what is admitted; the study itself is made with as many as everywhere else.
PREVIEW_FUNCTIONS = 40
KINDS = {
    "number": "a number",
    "integer": "a whole number",
    "log": "a number whose ratios matter",
    "category": "one of several names",
}
SHAPES = {
    "": "anything",
    "increasing": "it never falls",
    "decreasing": "it never rises",
    "concave": "it always bends down",
    "convex": "it always bends up",
}
TURNS = {
    "0": "never: it rises or falls all the way",
    "1": "once: it has one best or worst value",
    "2": "twice: a full wave",
    "3": "three times",
}
INTERACTIONS = {
    "all": "may depend on all others",
    "pairs": "may depend on one other at a time",
    "none": "does not depend on the others: effects add up",
}
NOISE = {
    "about": "is about",
    "unknown": "is not known",
    "within": "is never more than",
}


def questions() -> dict[str, Any]:
    """Return what the form needs: the choices of its questions."""
    return {"turns": TURNS, "interactions": INTERACTIONS, "noises": NOISE, **one_input()}


def one_input() -> dict[str, Any]:
    """Return the choices of the questions about one input."""
    return {"kinds": KINDS, "shapes": SHAPES}


def problem_of(given: Answers) -> Problem:
    """Return the problem that the answers state; one sentence says what is missing."""
    stated: dict[str, Any] = {shape: [] for shape in SHAPES if shape}
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
        "picture": as_svg(lambda: admitted_functions(found), what),
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
