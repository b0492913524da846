"""``kernelbounds bound``: from a table to bounds, and a picture of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import kernelbounds as kb
from kernelbounds.arrays import Array
from kernelbounds.cli.bound_report import Found, fact_refuted, refuted, summarise, warn_of
from kernelbounds.cli.options import (
    OutOption,
    Results,
    TableArgument,
    progress,
    settled_with_progress,
    warn,
    with_problem,
)
from kernelbounds.errors import EmptyConfidenceSetError, FactRefutedError, InputError
from kernelbounds.io.csv_table import read_csv

if TYPE_CHECKING:
    from kernelbounds.problem.runs import Runs

# Columns of bounds.csv, besides the inputs.
BOUND_COLUMNS = ("estimate", "lower", "upper")
# Points of a grid along each input, by the number of inputs. With more inputs a grid says little,
# and points that fill the box take its place.
GRID_SIDES = {1: 201, 2: 41, 3: 13}
FILLING_POINTS = 2000
MAX_GRID_POINTS = 1_000_000


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
    for name in (*problem.names, *[problem.output.name][: at == "rows"]):
        if name in BOUND_COLUMNS:
            raise InputError(
                f"bounds.csv has a column {name!r} of its own; rename yours, here and in the table."
            )
    runs = kb.problem.runs.Runs.read(problem, table)
    runs.refuse_more_levels_than_rows(problem)
    points = _points(problem, runs.points, at, grid)
    problem = settled_with_progress(problem)
    chosen = kb.FixedDesign() if fixed_design else None
    if fixed_design and problem.facts:
        warn(
            "the bounds of a fixed design do not use what you know of the output ("
            f"{'; '.join(problem.facts_in_words)}); leave out --fixed-design to use it."
        )
    sequence = problem.sequence(facts=() if fixed_design else None)
    sequence.update(problem.scaled(runs.points), *problem.scaled_outcomes(runs.measured))
    warn_of(problem, sequence, runs, fixed_design)
    # Bounds of a fixed design hold at the points asked for together, and at no further ones.
    asked, parts, sides = len(points), [points], []
    if not fixed_design:
        parts = [*kb.surface.in_chunks(points), *[runs.points][: at == "grid"]]
        points = np.concatenate(parts)
    try:
        with progress("bounds", len(points)) as step:
            for part in parts:
                sides.append(problem.estimate_with_bounds(sequence, part, chosen))
                step(len(part))
    except FactRefutedError as error:
        raise InputError(fact_refuted(problem, runs, sequence, error)) from None
    except EmptyConfidenceSetError as error:
        raise InputError(refuted(problem, runs, chosen, error)) from None
    estimate, lower, upper = (np.concatenate(side) for side in zip(*sides, strict=True))
    results = Results(out)
    results.problem(problem)
    measured = {problem.output.name: runs.outcomes} if at == "rows" else {}
    three = estimate[:asked], lower[:asked], upper[:asked]
    columns = dict(zip(BOUND_COLUMNS, three, strict=True))
    results.table("bounds.csv", problem.inputs.columns(points[:asked]) | measured | columns)
    found = Found(problem, sequence, chosen, points, estimate, lower, upper, asked)
    summarise(found)
    overlay = kb.plot.gaussian_process(sequence) if gaussian_process else None
    if problem.inputs.numbers:
        results.picture("bounds.png", lambda: draw(found, runs, overlay))


def _points(problem: kb.Problem, rows: Array, at: str, grid: int | None) -> Array:
    """Return the points at which bounds are asked for, in the user's units."""
    if at == "rows":
        return rows
    if at != "grid":
        table = read_csv(at, problem.names, problem.inputs.categories_by_name)
        return problem.inputs.checked_points(
            table.columns, place=lambda row: f"{at}: line {table.lines[row]}: "
        )
    dim = len(problem.inputs.numbers)
    side = grid or GRID_SIDES.get(max(dim, 1))
    if side is None:
        return problem.inputs.settable(problem.unit_box.filling(FILLING_POINTS))
    sides = [
        np.arange(one.high + 1) if one.levels else np.linspace(0, 1, side) for one in problem.inputs
    ]
    size = math.prod(map(len, sides))
    if size > MAX_GRID_POINTS:
        levels = ", at all levels," if problem.inputs.categories else ""
        raise InputError(
            f"a grid of {side} points along each of {dim} inputs{levels} has {float(size):.3g} "
            "points; a million are the most."
        )
    unit = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)
    # Points of the grid may coincide when they are rounded to whole numbers.
    return np.unique(problem.inputs.settable(unit.reshape(-1, problem.dim)), axis=0)


def draw(found: Found, runs: Runs, process: Any) -> Any:
    """Draw a band for one input, maps for two, slices through the best point for more.

    Inputs that are categories do not count: each picture is one of all levels.
    """
    problem, out = found.problem, found.problem.output

    def band(where: Array) -> tuple[Array, Array, Array]:
        sides = found.sequence.estimate_with_bounds(problem.inputs.nearest(where), found.bound)
        return problem.unscaled_estimate(*sides)

    shared = problem.axes | {"data": (runs.points, runs.outcomes)}
    best = found.points[np.argmax(found.estimate)]
    box = kb.plot.canvas.drawable(problem.box, best)
    if len(problem.inputs.numbers) == 2 and process is None:
        return kb.plot.maps(band, box, **shared)
    if process is not None:

        def overlay(where: Array) -> tuple[Array, Array]:
            return problem.unscaled_bounds(*process(problem.inputs.nearest(where)))

        shared["without_guarantee"] = {process.label: overlay}
    shared["limits"] = problem.limits
    if len(problem.inputs.numbers) == 1:
        axes = [kb.plot.band(band, box, **shared)]
    else:
        axes = list(kb.plot.slices(band, box, best, **shared))
    # Where there are no data, one need not see how far the band exceeds the range stated.
    for ax in axes:
        bottom, top = ax.get_ylim()
        low, high = out.least(out.middle - out.span), out.most(out.middle + out.span)
        ax.set_ylim(max(bottom, float(low)), min(top, float(high)))
    return axes
