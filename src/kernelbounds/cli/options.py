"""Options that several commands share, above all those that state a problem.

A command that needs a problem has a parameter ``problem`` and the decorator :func:`with_problem`,
which gives it the options of ``STATEMENTS`` in place of that parameter.

Help and slips must not wait for NumPy and SciPy, so the files of commands import nothing that needs
them: what computes is imported by a command when it runs, or reached through ``kb``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import kernelbounds as kb
from kernelbounds.cli.output import progress, warn
from kernelbounds.errors import InputError

TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE.csv", help="A table with a column for each input and the output."
    ),
]
OutOption = Annotated[Path, typer.Option(help="Folder for the results.")]


class Statement(NamedTuple):
    """An option that states an argument of Problem; ``default`` is what help says of it."""

    kind: Any
    help: str
    default: str | bool = False
    metavar: str | None = None


# A new argument of Problem needs a line here, under its name, and every command has it.
STATEMENTS = {
    "input": Statement(
        list[str],
        "An input and its range, once for each: temperature=180:220, with a unit "
        "'temperature[°C]=180:220', on a logarithmic scale time=1:1000:log, in whole numbers "
        "stages=1:5:integer, with its own number of turns pressure=1:3:turns=1. A category is "
        "written with its levels, 'quench=oil|water|air'. If a change of level alone moves the "
        "output by at most a share of its range, say so: 'quench=oil|water|air:matters=0.3'.",
        metavar="NAME=LOW:HIGH",
    ),
    "output": Statement(
        str,
        "What is measured, and a plausible range of its true values: yield=0:100. If effects and "
        "noise multiply, use a logarithmic scale: productivity=1.5:5:log.",
        metavar="NAME=LOW:HIGH",
    ),
    "noise": Statement(
        str,
        "Standard deviation of the noise, in units of the output, or in percent, 5%, for a "
        "logarithmic output; 0 means none. Round it up: twice the true value widens the band "
        "somewhat, but half of it voids the guarantee. unknown: the data bound it, if it is "
        "Gaussian and the same in all runs; 'unknown, at most 2' if you are sure of that limit. "
        "'within 0.5': no measurement is ever farther from the true value, and errors are 0 on "
        "average; with --delta 0 they need not be 0 on average.",
        metavar="NUMBER|PERCENT|WORDS",
    ),
    "successes": Statement(
        str,
        "If the output is a rate of successes: the column that counts the successes. The noise "
        "follows from the tries, and the rate is between 0 and 1.",
        metavar="COLUMN",
    ),
    "tries": Statement(
        str,
        "With --successes: the column that counts the tries of a run, which must be independent; "
        "attempts=20 also says how many you plan for each run.",
        "1 planned",
        "COLUMN[=NUMBER]",
    ),
    "turns": Statement(
        int,
        "How many times the output may turn, from rising to falling or back, as one input goes "
        "through its range: a steady rise has no turns, an optimum is one turn, a full wave has "
        "two. It must be true at ANY value of the others: if the output rises steadily when cold, "
        "but has an optimum when hot, that is one turn.",
        "2",
    ),
    "interactions": Statement(
        str,
        "none: effects add up. pairs: the effect of an input may depend on one other at a time, "
        "as in a x b + b x c. all: it may depend on all others together, as in a x b x c. If the "
        "output is a product of effects, its logarithm is a sum: --output y=1:9:log and none.",
        "all",
        "all|pairs|none",
    ),
    "limits": Statement(
        str,
        "Hard limits of the true values: 0:60, or only one of them, 0: or :60. They must be "
        "certain, whereas the range of --output need only be plausible. This and the next five "
        "cost nothing in delta, but a false one voids the guarantee.",
        metavar="LOW:HIGH",
    ),
    "increasing": Statement(
        list[str],
        "An input with which the output never falls, at any values of the others; once for each.",
        metavar="NAME",
    ),
    "decreasing": Statement(
        list[str], "An input with which the output never rises; once for each.", metavar="NAME"
    ),
    "concave": Statement(
        list[str],
        "An input along which the output always bends downwards, as a hill or as a rise that "
        "flattens out, at any values of the others; once for each.",
        metavar="NAME",
    ),
    "convex": Statement(
        list[str],
        "An input along which the output always bends upwards, as a valley or as a rise that "
        "steepens; once for each.",
        metavar="NAME",
    ),
    "known": Statement(
        list[str],
        "A value that is known when some or all of the inputs have given values: "
        "'catalyst=0 -> yield=0', 'catalyst=0 & pressure=1 -> yield=2 +- 0.5'; once for each.",
        metavar="'NAME=X -> OUTPUT=Y'",
    ),
    "delta": Statement(
        float,
        "The probability that any bound fails, if the assumptions are true; it may be 0 with "
        "--noise 'within ...'.",
        "0.01",
    ),
    "norm_bound": Statement(
        float,
        "B, if you know it for the kernel, in units of the output (or of its natural logarithm, "
        "for a logarithmic output).",
        "suggested",
    ),
    "kernel": Statement(
        str,
        "The kernel of inputs scaled to [0, 1], if you know one: 'Matern(0.5, nu=2.5)'.",
        "chosen",
    ),
    "kernels": Statement(
        str,
        "one: the kernel with the narrowest band. any: the output may belong to any of the kernels "
        "that were compared, and those that the data refute drop out; the band is wider.",
        "one",
        "one|any",
    ),
    "experiments": Statement(
        int, "About how many measurements are planned: the kernel is chosen for that many.", "100"
    ),
    "quantile": Statement(
        float,
        "The share of random functions with this range and this number of turns that the suggested "
        "norm bound covers.",
        "0.9",
    ),
    "problem": Statement(
        Path,
        "Read the problem from this JSON file instead of --input and --output. Other options "
        "replace what the file says, and the suggested kernel and B are then computed again.",
        metavar="FILE",
    ),
}


def problem_from_options(
    input: list[str] | None = None,
    output: str | None = None,
    problem: Path | None = None,
    **others: Any,
) -> kb.Problem:
    """Return the problem that the options state; None stands for the default of :class:`Problem`.

    Examples
    --------
    >>> problem_from_options(["temperature=180:220"], "yield=0:100", noise=0.5).inputs.names
    ('temperature',)
    """
    # An option that may be given several times is an empty list where it is not given.
    given = {name: value for name, value in others.items() if value not in (None, [])}
    if problem is not None:
        if input or output is not None:
            raise InputError(
                "the file of --problem already has the inputs and the output: pass either "
                "--problem, or --input and --output."
            )
        return kb.Problem.load(problem).replace(**given)
    if not input:
        raise InputError(
            "state at least one input, such as --input temperature=180:220, or --problem FILE."
        )
    if output is None:
        raise InputError("state what is measured, such as --output yield=0:100.")
    return kb.Problem(input, output, **given)


def changed_by_options(problem: kb.Problem, **options: Any) -> kb.Problem:
    """Change a problem as options say; "none" takes a statement back.

    Examples
    --------
    >>> old = kb.Problem(["speed=1:9"], "yield=0:100", 0.5, limits="0:", increasing=["speed"])
    >>> changed_by_options(old, noise="1", limits="none", increasing=["none"], turns=None)
    Problem(['speed=1:9'], 'yield=0:100', noise=1.0)
    """
    found = {name: value for name, value in options.items() if value not in (None, [])}
    for name in kb.problem.facts_in_words.NO_FACTS.keys() & found.keys():
        if found[name] == "none":
            found[name] = None
        elif found[name] == ["none"] and "none" not in problem.inputs.names:
            found[name] = []
    if "input" in found:
        found["inputs"] = found.pop("input")
    return problem.replace(**found)


def with_changes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that state a problem, in place of its parameter ``problem``.

    The command gets a function in place of that, which takes a problem and returns the changed one.
    """
    return _with_options(
        command, lambda given: functools.partial(changed_by_options, **given), ("problem",)
    )


def with_problem(
    *, needs_noise: bool = False, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that state a problem, in place of its parameter ``problem``.

    ``without`` names options that the command does not have.
    """

    def stated(given: dict[str, Any]) -> kb.Problem:
        problem = problem_from_options(**given)
        if needs_noise and problem.stated_noise.law is None:
            example = "5%" if problem.output.log else "0.5"
            raise InputError(
                f"state how noisy the output is, such as --noise {example}; 0 means none, and "
                "--noise unknown lets the data bound it."
            )
        return problem

    return lambda command: _with_options(command, stated, without)


def _refuse_to_replace(file: Path, out: Path, problem: kb.Problem | None) -> None:
    """Refuse a folder where the file of --problem would get another problem, or one fitted later.

    A study, or bounds that somebody has quoted, may rest on the file.
    """
    there = out / "problem.json"
    if not there.exists() or not there.samefile(file):
        return
    if problem is None or problem.as_data() != kb.Problem.load(file).as_data():
        raise InputError(
            f"{str(there)!r} is the file of --problem, and this command would replace it by a "
            "problem that says something else; nothing was changed. Name another folder with --out."
        )


def _with_options(
    command: Callable[..., None], stated: Callable[[dict[str, Any]], Any], without: Collection[str]
) -> Callable[..., None]:
    """Give a command the options of ``STATEMENTS``, and what ``stated`` makes of them."""
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=one.kind | None,
            default=typer.Option(
                None,
                help=one.help,
                metavar=one.metavar,
                show_default=one.default,
                rich_help_panel="The problem",
            ),
        )
        for name, one in STATEMENTS.items()
        if name not in without
    ]

    # To evaluate kb.Problem would import SciPy, for which a line of help need not wait.
    del command.__annotations__["problem"]
    parameters = []
    for name, one in inspect.signature(command, eval_str=True).parameters.items():
        # By keyword, so that options may stand before arguments that have no default.
        own = one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters += options if name == "problem" else [own]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        statement = {one.name: given.pop(one.name) for one in options}
        problem = stated(statement)
        file = statement.get("problem")
        # A command with --force compares the two by itself.
        if file is not None and "out" in given and "force" not in given:
            _refuse_to_replace(file, given["out"], None if without else problem)
        command(problem=problem, **given)

    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_options


def assumed_with_progress(problem: kb.Problem) -> kb.problem.Assumed:
    """Suggest a kernel and a norm bound with :func:`~kernelbounds.problem.assume`, with a bar."""
    with progress("norms of functions like yours", kb.problem.assuming.steps(problem)) as step:
        found = kb.problem.assume(problem, step=step)
    if found.share_covered < problem.quantile:
        warn(
            f"B = {found.problem.norm_text} covers only {100 * found.share_covered:.0f} % of "
            f"random functions with your range and turns, with {found.chosen.name}; "
            f"{100 * problem.quantile:.0f} % would take "
            f"{problem.output.norm_text(found.chosen.norm_bound)}. Leave out --norm-bound unless "
            "you know it for this kernel."
        )
    return found


def settled_with_progress(problem: kb.Problem) -> kb.Problem:
    """Settle a problem as :meth:`Problem.settled` does, with a bar."""
    return problem if problem.is_settled else assumed_with_progress(problem).problem
