"""``kernelbounds bound``: from a table to bounds, and a picture of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kernelbounds as kb
from kernelbounds.cli.options import (
    OutOption,
    TableArgument,
    settled_with_progress,
    with_problem,
)
from kernelbounds.cli.output import Results, warn
from kernelbounds.errors import InputError

if TYPE_CHECKING:
    from kernelbounds.arrays import Array

# Columns of bounds.csv, besides the inputs.
BOUND_COLUMNS = ("estimate", "lower", "upper")
# Points of a grid along each input, by the number of inputs. With more inputs a grid says little,
# and points that fill the box take its place.
GRID_SIDES = {1: 201, 2: 41, 3: 13}
FILLING_POINTS = 2000


@with_problem(needs_noise=True)
def bound(
    table: TableArgument,
    problem: kb.Problem,
    at: Annotated[
        str,
        typer.Option(
            metavar="grid|rows|FILE",
            help="Where to compute bounds: on a grid over the ranges, at the rows of the table "
            "(beside what was measured), or at the rows of another CSV file with a column for each "
            "input.",
        ),
    ] = "grid",
    grid: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Points of the grid along each input.",
            show_default="201, 41, 13 for one, two, three inputs",
        ),
    ] = None,
    fixed_design: Annotated[
        bool,
        typer.Option(
            "--fixed-design",
            help="The settings were fixed before the first outcome: narrower bounds, for one look "
            "at the data.",
        ),
    ] = False,
    gaussian_process: Annotated[
        bool,
        typer.Option(
            "--gp",
            "--gaussian-process",
            help="Draw a Gaussian process with the same kernel, ±2 standard deviations, dashed. It "
            "guarantees nothing.",
        ),
    ] = False,
    out: OutOption = Path("bounds"),
) -> None:
    """Estimate the true output from a table of runs, with bounds, as CSV and as a picture.

    It writes bounds.csv, bounds.png and problem.json.

    Example: kernelbounds bound runs.csv --problem assume/problem.json
    """
    from kernelbounds.cli import bound_report
    from kernelbounds.problem.drawings import draw_bounds
    from kernelbounds.problem.runs import Runs

    for name in (*problem.inputs.names, *[problem.output.name][: at == "rows"]):
        if name in BOUND_COLUMNS:
            raise InputError(
                f"bounds.csv has a column {name!r} of its own; rename yours, here and in the table."
            )
    runs = Runs.read(problem, table)
    runs.refuse_more_levels_than_rows(problem)
    asked = _points(problem, runs.points, at, grid)
    problem = settled_with_progress(problem)
    chosen = kb.FixedDesign() if fixed_design else None
    if fixed_design and problem.facts:
        warn(
            "the bounds of a fixed design do not use what you know of the output ("
            f"{'; '.join(problem.facts_in_words)}); leave out --fixed-design to use it."
        )
    sequence = problem.sequence(facts=() if fixed_design else None)
    sequence.update(problem.scaled(runs.points), *problem.scaled_outcomes(runs.measured))
    bound_report.warn_of(problem, sequence, runs, fixed_design)
    # Bounds of a fixed design hold at the points asked for together, and at no further ones.
    further = runs.points if at == "grid" and not fixed_design else None
    found = bound_report.find(problem, sequence, runs, asked, further, chosen)
    results = Results(out)
    results.problem(problem)
    measured = {problem.output.name: runs.outcomes} if at == "rows" else {}
    sides = (side[: len(asked)] for side in (found.estimate, found.lower, found.upper))
    columns = dict(zip(BOUND_COLUMNS, sides, strict=True))
    results.table("bounds.csv", problem.inputs.columns(asked) | measured | columns)
    bound_report.summarise(found)
    process = kb.plot.gaussian_process(sequence) if gaussian_process else None
    if problem.inputs.numbers:
        best = found.points[found.estimate.argmax()]
        results.picture(
            "bounds.png", lambda: draw_bounds(problem, sequence, runs, best, chosen, process)
        )


def _points(problem: kb.Problem, rows: Array, at: str, grid: int | None) -> Array:
    """Return the points at which bounds are asked for, in the user's units."""
    from kernelbounds.problem.runs import read_table

    if at == "rows":
        return rows
    if at != "grid":
        table = read_table(problem, at, problem.inputs.names)
        return problem.inputs.checked_points(
            table.columns, place=lambda row: f"{at}: line {table.lines[row]}: "
        )
    side = grid or GRID_SIDES.get(max(len(problem.inputs.numbers), 1))
    if side is None:
        return problem.inputs.settable(problem.inputs.unit_box.filling(FILLING_POINTS))
    return problem.inputs.grid(side)
