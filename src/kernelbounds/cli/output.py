"""What all commands print and write: paragraphs, warnings, tables, progress, and result files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import kernelbounds as kb
from kernelbounds.display import late_progress
from kernelbounds.errors import MissingExtraError
from kernelbounds.io import files


class Results:
    """A folder, made where it is not there; what is written to it is named on standard output."""

    def __init__(self, folder: Path) -> None:
        with files.failure_reported(f"make the folder {str(folder)!r}"):
            folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def problem(self, problem: kb.Problem) -> None:
        """Write problem.json."""
        problem.save(self.folder / "problem.json")
        self._say_wrote("problem.json")

    def table(self, name: str, columns: Mapping[str, Any]) -> None:
        """Write columns (n,) to a CSV file."""
        from kernelbounds.io.csv_table import write_csv

        write_csv(self.folder / name, columns)
        self._say_wrote(name)

    def picture(self, name: str, draw: Callable[[], Any]) -> None:
        """Write the picture whose axes ``draw`` returns, or warn that matplotlib is missing."""
        try:
            axes = draw()
        except MissingExtraError as error:
            warn(f"no picture: {error}")
            return
        kb.plot.canvas.save(axes, self.folder / name)
        self._say_wrote(name)

    def _say_wrote(self, name: str) -> None:
        say(f"wrote {self.folder / name}")


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[..., None]]:
    """Show a progress bar on standard error; yields what to call after one or more steps."""
    # SciPy reads a table for Sobol's points when they are first needed, in compiled code that
    # swallows a Ctrl-C. So this is done before there is a bar, when nobody presses it yet.
    from scipy.stats import qmc

    qmc.Sobol(1).random(1)
    with late_progress(description, total, show=Console(stderr=True).is_terminal) as report:
        yield lambda steps=1: report(advance=steps)


def counted(count: int, noun: str) -> str:
    """Write a number with its noun, in the singular or the plural.

    >>> counted(1, "row"), counted(3, "row")
    ('1 row', '3 rows')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on standard output; the first column is text and the others are numbers."""
    table = Table(title=title, title_justify="left")
    for at, name in enumerate(columns):
        table.add_column(name, justify="left" if at == 0 else "right", no_wrap=at == 0)
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False).print(table)


def say(text: str, *, aside: bool = False) -> None:
    """Print a paragraph, with brackets as they are; with ``aside``, on standard error."""
    Console(highlight=False, stderr=aside).print(text, markup=False, soft_wrap=True)


def remark(text: str) -> None:
    """Print something that a user may want to know, on standard error."""
    say(f"note: {text}", aside=True)


def warn(text: str) -> None:
    """Print a warning, in yellow, on standard error."""
    Console(highlight=False, stderr=True).print(f"Warning: {text}", markup=False, style="yellow")
