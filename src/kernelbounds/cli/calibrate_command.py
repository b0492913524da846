"""``kernelbounds calibrate``: what pilot data suggest, and how far that can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import kernelbounds as kb
from kernelbounds.cli.options import (
    OutOption,
    TableArgument,
    counted,
    folder,
    read_runs,
    say,
    with_problem,
    write_table,
)
from kernelbounds.errors import InputError


# Kernel and norm bound are what is looked for.
@with_problem(without=("kernel", "norm_bound"))
def command(
    table: TableArgument,
    problem: kb.Problem,
    split: Annotated[
        float | None,
        typer.Option(
            help="Use this share of the rows as the pilot data, the first ones, and keep the rest "
            "apart in fresh.csv: 0.3 for three of ten.",
            show_default="all rows are pilot data",
        ),
    ] = None,
    out: OutOption = Path("calibration"),
) -> None:
    """Suggest length scales, the noise and B from pilot data.

    Each suggestion says whether it is an estimate, a stated assumption or a heuristic.
    Writes problem.json for the other commands, for use on OTHER data than these.

    Example: kernelbounds calibrate pilot.csv --problem assume/problem.json --split 0.4
    """
    X, y, _ = read_runs(table, problem)
    pilot = len(y)
    if split is not None:
        if not 0 < split < 1:
            raise InputError(f"--split must be between 0 and 1, got {split:g}.")
        pilot = round(split * len(y))
    with Console(stderr=True).status("fitting length scales, and norms under them"):
        found = kb.problem.calibrate(problem, X[:pilot], y[:pilot])
    say(f"What {pilot} rows suggest:")
    for one in found.suggestions:
        say(f"  {one.what}: {one.value}\n      {one.kind}: {one.why}")
    repeats = kb.problem.calibration.count_repeats
    left_out = repeats(X) - repeats(X[:pilot])
    if left_out > 0:
        say(
            f"Repeated settings that were not used for the noise: {counted(left_out, 'row')}. They "
            "are among the rows kept apart, which must not be looked at. A larger --split, or a "
            "table whose first rows have repeats, would use them."
        )
    where = folder(out)
    found.problem.save(where / "problem.json")
    say(f"wrote {where / 'problem.json'}")
    if split is None:
        say(
            "These assumptions have seen the data. Bounds from the same rows would not be "
            "guaranteed: use them for new runs, or calibrate again with --split 0.3."
        )
        return
    for name, part in (("pilot.csv", slice(pilot)), ("fresh.csv", slice(pilot, None))):
        write_table(where / name, problem, X[part], {problem.output.name: y[part]})
    more = " --noise ..." if found.problem.noise is None else ""
    say(f"Now: kernelbounds bound {where / 'fresh.csv'} --problem {where / 'problem.json'}{more}")
