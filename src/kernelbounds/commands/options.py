"""The options of the command line by which a problem is said, shared by all commands that need one.

A command takes them as parameters of the types below, and passes them to
:func:`problem_from_options`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import kernelbounds as kb  # whose names are imported when they are used, and not for help
from kernelbounds.errors import InputError

_PANEL = "The problem"

InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=LOW:HIGH",
        help="An input and its range, once for each: temperature=180:220, with a unit "
        "'temperature[°C]=180:220', on a logarithmic scale time=1:1000:log, in whole numbers "
        "stages=1:5:integer, with its own number of turns pressure=1:3:turns=1.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="NAME=LOW:HIGH",
        help="What is measured, and the range its true values can plausibly have: yield=0:100.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
NoiseOption = Annotated[
    float | None,
    typer.Option(
        "--noise",
        help="Standard deviation of the noise, in units of the output; 0 is none. Round it up: "
        "twice the true value widens the band somewhat, half of it voids the guarantee.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
TurnsOption = Annotated[
    int | None,
    typer.Option(
        "--turns",
        help="How many times the output may turn, from rising to falling or back, as one input "
        "goes through its range: a steady rise has none, one optimum is one, a full wave two. It "
        "must be true at ANY value of the others: a steady rise when cold and an optimum when hot "
        "are one turn.",
        rich_help_panel=_PANEL,
        show_default="2",
    ),
]
InteractionsOption = Annotated[
    str | None,
    typer.Option(
        "--interactions",
        metavar="all|pairs|none",
        help="none: effects add up. pairs: the effect of an input may depend on one other at a "
        "time, as in a x b + b x c. all: on all others together, as in a x b x c. If the output is "
        "a product of effects, its logarithm is their sum: none.",
        rich_help_panel=_PANEL,
        show_default="all",
    ),
]
DeltaOption = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="Failure probability of all bounds at once, if the assumptions are true.",
        rich_help_panel=_PANEL,
        show_default="0.01",
    ),
]
NormBoundOption = Annotated[
    float | None,
    typer.Option(
        "--norm-bound",
        help="B, in units of the output, if you know one for the kernel.",
        rich_help_panel=_PANEL,
        show_default="suggested",
    ),
]
KernelOption = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="Of inputs scaled to [0, 1], if you know one: 'Matern(0.5, nu=2.5)'.",
        rich_help_panel=_PANEL,
        show_default="chosen",
    ),
]
ExperimentsOption = Annotated[
    int | None,
    typer.Option(
        "--experiments",
        help="About how many measurements are planned: the kernel is chosen for that many.",
        rich_help_panel=_PANEL,
        show_default="100",
    ),
]
QuantileOption = Annotated[
    float | None,
    typer.Option(
        "--quantile",
        help="The share of random functions with this range and so many turns that the suggested "
        "norm bound covers.",
        rich_help_panel=_PANEL,
        show_default="0.9",
    ),
]
ProblemOption = Annotated[
    Path | None,
    typer.Option(
        "--problem",
        metavar="FILE",
        help="Read the problem from this JSON file in place of --input and --output; other options "
        "take the place of what is in it, and what was suggested follows anew.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]


def problem_from_options(
    input: list[str] | None = None,
    output: str | None = None,
    noise: float | None = None,
    turns: int | None = None,
    interactions: str | None = None,
    delta: float | None = None,
    norm_bound: float | None = None,
    kernel: str | None = None,
    experiments: int | None = None,
    quantile: float | None = None,
    problem: Path | None = None,
) -> kb.Problem:
    """The problem that options say; those that are None are as :class:`Problem` has them.

    Examples
    --------
    >>> problem_from_options(["temperature=180:220"], "yield=0:100", noise=0.5).names
    ('temperature',)
    """
    given = {
        "noise": noise,
        "turns": turns,
        "interactions": interactions,
        "delta": delta,
        "norm_bound": norm_bound,
        "kernel": kernel,
        "experiments": experiments,
        "quantile": quantile,
    }
    others = {name: value for name, value in given.items() if value is not None}
    if problem is not None:
        if input or output is not None:
            raise InputError(
                "--problem has the inputs and the output already; pass it, or --input and --output."
            )
        return kb.Problem.load(problem).replace(**others)
    if not input:
        raise InputError(
            "say at least one input, such as --input temperature=180:220, or --problem FILE."
        )
    if output is None:
        raise InputError("say what is measured, such as --output yield=0:100.")
    return kb.Problem(input, output, **others)  # type: ignore[arg-type]
