"""The options of the command line by which a problem is said, shared by all commands that need one.

A command takes them as parameters of the types below, and passes them to
:func:`problem_from_options`.

What these commands have in common: a folder for results, progress, tables and pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import kernelbounds as kb
from kernelbounds.arrays import Array
from kernelbounds.errors import InputError, MissingExtraError
from kernelbounds.io import files
from kernelbounds.io.csv_table import read_csv

TableArgument = Annotated[
    Path, typer.Argument(metavar="TABLE.csv", help="With a column for each input and the output.")
]

FEW_LINES = 5  # of a table, named in a message


def folder(out: Path) -> Path:
    """The folder, made where it is not there."""
    with files.failure_reported(f"make the folder {str(out)!r}"):
        out.mkdir(parents=True, exist_ok=True)
    return out


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error; yields what to call after each step, or so many of them."""
    # SciPy reads a table for Sobol's points when they are first needed, in compiled code that
    # swallows a Ctrl-C. That is done before there is a bar, where nobody presses it yet.
    from scipy.stats import qmc

    qmc.Sobol(1).random(1)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps=1: bar.advance(task, steps)


def assumed_with_progress(problem: kb.Problem) -> kb.problem.Assumed:
    """:func:`~kernelbounds.problem.assume`, with a bar."""
    with progress("norms of functions like yours", kb.problem.assuming.steps(problem)) as step:
        return kb.problem.assume(problem, step=step)


def settled_with_progress(problem: kb.Problem) -> kb.Problem:
    """:meth:`Problem.settled`, with a bar."""
    if problem.kernel is not None and problem.norm_bound is not None:
        return problem
    found = assumed_with_progress(problem)
    warn_if_few_are_covered(found)
    return found.problem


def warn_if_few_are_covered(found: kb.problem.Assumed) -> None:
    """Say when a norm bound that was given leaves out most functions of the stated kind."""
    problem = found.problem
    if found.share_covered < problem.quantile:
        warn(
            f"B = {problem.norm_bound:.4g}{unit_of(problem)} covers only "
            f"{100 * found.share_covered:.0f} % of random functions with your range and turns, "
            f"with {found.chosen.name}; {100 * problem.quantile:.0f} % would take "
            f"{found.chosen.norm_bound:.4g}{unit_of(problem)}. Leave out --norm-bound unless you "
            "know it for this kernel."
        )


class Runs(NamedTuple):
    """A table of runs: points (n, d) and outcomes (n,) in the user's units, and their lines."""

    points: Array
    outcomes: Array
    lines: NDArray[np.int64]


def read_runs(table: Path, problem: kb.Problem) -> Runs:
    """From a CSV file, with a column for each input and for the output."""
    values, lines = _read(table, problem, [*problem.names, problem.output.name])
    return Runs(values[:, :-1], values[:, -1], lines)


def read_points(table: Path, problem: kb.Problem) -> Array:
    """Points (n, d) in the user's units, from a CSV file."""
    return _read(table, problem, problem.names)[0]


def _read(
    table: Path, problem: kb.Problem, names: Sequence[str]
) -> tuple[Array, NDArray[np.int64]]:
    """Columns of these names, the inputs first, and the lines of the rows."""
    found = read_csv(table, list(names))
    values = np.stack([found.columns[name] for name in names], axis=-1)
    for row, name, value, expected in problem.outside(values[:, : problem.dim]):
        cell = kb.problem.quantities.in_digits(value)
        raise InputError(
            f"{table}: line {found.lines[row]}, column {name!r}: {cell} is not {expected}; correct "
            "it, or state a wider range."
        )
    return values, np.asarray(found.lines)


def in_lines(lines: Sequence[int] | NDArray[np.int64]) -> str:
    """Lines of a table as text, not more than a few of them.

    >>> in_lines([4]), in_lines([2, 3]), in_lines(range(2, 12))
    ('line 4', 'lines 2, 3', 'lines 2, 3, 4, 5, 6 and 5 more')
    """
    few = ", ".join(str(line) for line in lines[:FEW_LINES])
    more = f" and {len(lines) - FEW_LINES} more" if len(lines) > FEW_LINES else ""
    return f"line{'' if len(lines) == 1 else 's'} {few}{more}"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """On standard output; the first column is text and the others are numbers."""
    table = Table(title=title, title_justify="left")
    for at, name in enumerate(columns):
        table.add_column(name, justify="left" if at == 0 else "right", no_wrap=at == 0)
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False).print(table)


def say(text: str) -> None:
    """A paragraph on standard output, not as markup."""
    Console(highlight=False).print(text, markup=False, soft_wrap=True)


def warn(text: str) -> None:
    """A paragraph that stands out."""
    Console(highlight=False, stderr=True).print(f"Warning: {text}", markup=False, style="yellow")


def save_picture(path: Path, draw: Callable[[], Any]) -> None:
    """Write a picture; ``draw`` returns its axes. Without matplotlib say what to install."""
    try:
        axes = draw()
    except MissingExtraError as error:
        warn(f"no picture: {error}")
        return
    from matplotlib import pyplot

    figure = np.ravel(np.asarray(axes, dtype=object))[0].figure
    with files.failure_reported(f"write the picture to {str(path)!r}"), files.replacing(path) as to:
        figure.savefig(to, dpi=140, format="png")
    pyplot.close(figure)
    say(f"wrote {path}")


def unit_of(problem: kb.Problem) -> str:
    """Of the output, after a number."""
    return kb.problem.quantities.after_number(problem.output.unit)


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
