"""A problem as plain data, in a JSON file, and as the arguments of Python code."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import brief, shortened
from kernelbounds.errors import InputError, said
from kernelbounds.io import files
from kernelbounds.kernels import kernel_to_text
from kernelbounds.problem.facts_in_words import NO_FACTS
from kernelbounds.problem.inputs import Input
from kernelbounds.problem.outputs import Output

if TYPE_CHECKING:
    from kernelbounds.problem.problem import Problem

FORMAT = "kernelbounds problem 1"
# A problem looks as it did before there were these arguments, unless it states them.
NEWER_ARGUMENTS = (*NO_FACTS, "kernels", "candidates", "successes", "tries")
# Norm bounds of the same problem differ by less than this, whatever the threads: 1e-9 was seen.
NORM_ROUNDING = 1e-6


def arguments(problem: Problem) -> dict[str, Any]:
    """Return the arguments that make the same problem, by their names."""
    return {field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)}


def stated_arguments(problem: Problem) -> dict[str, Any]:
    """Return the arguments of a problem that do not have their defaults, as plain data."""
    defaults = inspect.signature(type(problem)).parameters
    return {
        name: _plain(name, value)
        for name, value in arguments(problem).items()
        if not bool(value == defaults[name].default)
    }


def as_data(problem: Problem) -> dict[str, Any]:
    """Return the arguments of a problem as plain data for JSON."""
    stated = stated_arguments(problem)
    data = {"format": FORMAT} | {
        name: _plain(name, value)
        for name, value in arguments(problem).items()
        if name not in NEWER_ARGUMENTS or name in stated
    }
    # A kernel that has no text can be used, and its repr be shown, but not be read again.
    data["kernel"] = None if problem.kernel is None else kernel_to_text(problem.kernel)
    return data


def arguments_from(data: Any) -> dict[str, Any]:
    """Return the arguments of a problem from what :func:`as_data` returned."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise InputError(f"this is not a problem of kernelbounds: {FORMAT!r} is not in it.")
    found = {key: value for key, value in data.items() if key != "format"}
    found["inputs"] = [Input(**one) for one in found["inputs"]]
    found["output"] = Output(**found["output"])
    return found


def write(path: str | PathLike[str], data: Mapping[str, Any]) -> None:
    """Write the data of a problem to a JSON file, whole or not at all."""
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    with files.failure_reported(f"write the problem to {brief(str(path))}"):
        files.write_text(files.as_path(path), text)


def read(path: str | PathLike[str]) -> Any:
    """Read the data of a problem from a JSON file."""
    with files.failure_reported(f"read the problem in {brief(str(path))}"):
        raw = files.as_path(path).read_bytes()
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{brief(str(path))} is not a JSON file: {said(error)}.") from None


def compare(path: Path, problem: Problem) -> tuple[bool, str]:
    """Tell whether a file says all that a problem does, and in which argument it contradicts it.

    Suggestions that are found anew may have other last digits, on another machine or with another
    number of threads: these do not contradict what is in the file.
    """
    there: dict[str, Any] = {}
    missing = "nothing that can be read"
    with suppress(InputError):
        there, missing = type(problem).load(path).as_data(), "nothing"
    complete, here = True, problem.as_data()
    for name in there | here:
        # What is not stated, such as limits, is not in the file.
        old, new = there.get(name, missing), here.get(name, "nothing")
        if name == "suggested" or old == new:
            continue
        if old is None:
            complete = False
        elif not _same_norms(name, old, new):
            follows = name in problem.suggested
            why = ", which follows from the same statements in this version" if follows else ""
            both = f"{shortened(str(old), 100)} and not {shortened(str(new), 100)}"
            return False, f"{name} = {both}{why}"
    return complete, ""


def _same_norms(name: str, old: Any, new: Any) -> bool:
    """Tell whether norm bounds, or kernels with theirs, are the same but for rounding."""
    if name == "candidates" and isinstance(old, list) and isinstance(new, list):
        return [kernel for kernel, _ in old] == [kernel for kernel, _ in new] and all(
            math.isclose(one, other, rel_tol=NORM_ROUNDING)
            for (_, one), (_, other) in zip(old, new, strict=True)
        )
    return name == "norm_bound" and math.isclose(old, new, rel_tol=NORM_ROUNDING)


def _plain(name: str, value: Any) -> Any:
    """Return an argument as plain data: text, numbers, and lists or dicts of them."""
    if name == "inputs":
        of_categories = {"levels", "matters"}
        return [_fields(one, set() if one.levels else of_categories) for one in value]
    if name == "output":
        return _fields(value, set() if value.log else {"log"})
    if name == "kernel":
        return None if value is None else kernel_text(value)
    if name == "limits" and value is not None:
        return value.text
    if name == "candidates":
        return [[kernel_text(kernel), norm_bound] for kernel, norm_bound in value]
    return list(value) if isinstance(value, tuple) else value


def _fields(quantity: Input | Output, without: set[str]) -> dict[str, Any]:
    data = dataclasses.asdict(quantity)
    return {name: value for name, value in data.items() if name not in without}


def kernel_text(kernel: Kernel) -> str:
    """Write a kernel as the command line takes it, or the repr of a user's own kernel class."""
    try:
        return kernel_to_text(kernel)
    except InputError:
        return repr(kernel)
