"""What these commands have in common: a folder for results, progress, tables and pictures."""

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

import kernelbounds as kb  # whose names are imported when they are used, and not for help
from kernelbounds import files
from kernelbounds.arrays import Array
from kernelbounds.csv_table import read_csv
from kernelbounds.errors import InputError, MissingExtraError

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
