"""``kernelbounds bound``: from a table to bounds and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import kernelbounds as kb  # whose names are imported when they are used, and not for help
from kernelbounds.arrays import Array
from kernelbounds.commands import findings
from kernelbounds.commands.options import (
    DeltaOption,
    ExperimentsOption,
    InputOption,
    InteractionsOption,
    KernelOption,
    NoiseOption,
    NormBoundOption,
    OutputOption,
    ProblemOption,
    QuantileOption,
    TurnsOption,
    problem_from_options,
)
from kernelbounds.commands.shared import (
    TableArgument,
    folder,
    progress,
    read_points,
    read_runs,
    save_picture,
    say,
    settled_with_progress,
)
from kernelbounds.csv_table import write_csv
from kernelbounds.errors import EmptyConfidenceSetError, InputError

# Columns of bounds.csv, besides the inputs.
BOUNDS = ("lower", "upper")
# Points of a grid along each input, by the number of inputs; for more inputs a grid says little,
# and points that fill the box take its place.
GRID = {1: 201, 2: 41, 3: 13}
FILLING = 2000


def command(
    table: TableArgument,
    input: InputOption = None,
    output: OutputOption = None,
    noise: NoiseOption = None,
    turns: TurnsOption = None,
    interactions: InteractionsOption = None,
    delta: DeltaOption = None,
    norm_bound: NormBoundOption = None,
    kernel: KernelOption = None,
    experiments: ExperimentsOption = None,
    quantile: QuantileOption = None,
    problem: ProblemOption = None,
    at: Annotated[
        str,
        typer.Option(
            metavar="grid|rows|FILE",
            help="Where: a grid of the ranges, the rows of the table (with what was measured "
            "beside), or the rows of another CSV file with a column for each input.",
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
            "--gaussian-process",
            help="Draw a Gaussian process with the same kernel, dashed. It guarantees nothing.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("bounds"),
) -> None:
    """Bounds on the true output, from a table of runs: as CSV and as a picture.

    Writes bounds.csv, bounds.png and problem.json.

    Example: kernelbounds bound runs.csv --problem assume/problem.json
    """
    described = problem_from_options(
        input, output, noise, turns, interactions, delta, norm_bound, kernel, experiments,
        quantile, problem,
    )  # fmt: skip
    if described.noise is None:
        raise InputError("say how noisy the output is, such as --noise 0.5; 0 is none.")
    measured = [described.output.name] if at == "rows" else []
    for name in (*described.names, *measured):
        if name in BOUNDS:
            raise InputError(
                f"bounds.csv has a column {name!r} for the bounds; give your own another name, "
                "here and in the table."
            )
    runs = read_runs(table, described)
    points = _points(described, runs.points, at, grid)
    described = settled_with_progress(described)
    chosen = kb.FixedDesign() if fixed_design else None
    sequence = described.sequence()
    sequence.update(described.scaled(runs.points), runs.outcomes)
    findings.warn_of(described, sequence, runs, fixed_design)

    def bounds(where: Array, bound: kb.Bound | None = chosen) -> tuple[Array, Array]:
        return sequence.bounds(described.scaled(where), bound)

    try:
        with progress("bounds", len(points)) as step:
            lower, upper = _in_parts(bounds, points, fixed_design, step)
    except EmptyConfidenceSetError as error:
        raise InputError(findings.refuted(described, runs, chosen, error)) from None
    place = folder(out)
    described.save(place / "problem.json")
    columns = dict(zip(described.names, points.T, strict=True))
    if at == "rows":
        columns[described.output.name] = runs.outcomes
    write_csv(place / "bounds.csv", columns | dict(zip(BOUNDS, (lower, upper), strict=True)))
    found = findings.Found(described, sequence, chosen, points, lower, upper, len(points))
    # Bounds of a fixed design hold at the points asked for together, and at no further ones.
    if at == "grid" and not fixed_design:
        below, above = bounds(runs.points)
        found = replace(
            found,
            points=np.concatenate([points, runs.points]),
            lower=np.concatenate([lower, below]),
            upper=np.concatenate([upper, above]),
        )
    findings.summarise(found)
    for name in ("problem.json", "bounds.csv"):
        say(f"wrote {place / name}")
    best = found.surest.point
    process = kb.plot.gaussian_process(sequence) if gaussian_process else None
    overlay = None
    if process is not None:
        overlay = {
            process.label: lambda where: process(described.scaled(rounded(described, where)))
        }
    save_picture(
        place / "bounds.png",
        lambda: draw(described, bounds, (runs.points, runs.outcomes), best, overlay),
    )


def _points(problem: kb.Problem, rows: Array, at: str, grid: int | None) -> Array:
    """Where bounds are asked for, in the user's units."""
    if at == "rows":
        return rows
    if at != "grid":
        return read_points(Path(at), problem)
    side = grid or GRID.get(problem.dim)
    if side is None:
        return kb.study.points.settable(problem, problem.unit_box.filling(FILLING))
    if side**problem.dim > 1_000_000:
        raise InputError(
            f"a grid of {side} points along each of {problem.dim} inputs has "
            f"{float(side) ** problem.dim:.3g} points; a million are the most."
        )
    unit = np.meshgrid(*[np.linspace(0, 1, side)] * problem.dim, indexing="ij")
    points = kb.study.points.settable(problem, np.stack(unit, axis=-1).reshape(-1, problem.dim))
    return np.unique(points, axis=0)  # whole numbers may coincide


def _in_parts(
    bounds: Callable[[Array], tuple[Array, Array]],
    points: Array,
    together: bool,
    step: Callable[[float], None],
) -> tuple[Array, Array]:
    """Bounds at many points, part by part for the bar; those of a fixed design at once."""
    parts = [points] if together else kb.surface.in_parts(points)
    found = []
    for part in parts:
        found.append(bounds(part))
        step(len(part))
    lower, upper = (np.concatenate(sides) for sides in zip(*found, strict=True))
    return lower, upper


def draw(
    problem: kb.Problem,
    bounds: Callable[[Array], tuple[Array, Array]],
    data: tuple[Array, Array],
    best: Array,
    overlay: Any,
) -> Any:
    """A band for one input, maps for two, slices through the best point for more."""
    shared: dict[str, Any] = {
        "data": data,
        "log": [one.log for one in problem.inputs],
        "labels": [one.label for one in problem.inputs],
        "output": problem.output.label,
    }

    def anywhere(where: Array) -> tuple[Array, Array]:
        return bounds(rounded(problem, where))

    if problem.dim == 2 and overlay is None:
        return kb.plot.maps(anywhere, problem.box, **shared)
    if problem.dim == 1:
        axes = [kb.plot.band(anywhere, problem.box, without_guarantee=overlay, **shared)]
    else:
        axes = list(
            kb.plot.slices(anywhere, problem.box, best, without_guarantee=overlay, **shared)
        )
    # Far beyond the range stated, where there are no data, one need not see how far.
    out = problem.output
    for ax in axes:
        bottom, top = ax.get_ylim()
        ax.set_ylim(max(bottom, out.low - out.range / 2), min(top, out.high + out.range / 2))
    return axes


def rounded(problem: kb.Problem, where: Array) -> Array:
    """Points for a picture: whole numbers have steps between them."""
    points = [one.unscaled(one.scaled(where[:, i])) for i, one in enumerate(problem.inputs)]
    return np.stack(points, axis=-1)
