"""``kernelbounds calibrate``: what pilot data suggest, and how far that can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import kernelbounds as kb
from kernelbounds.arrays import Array
from kernelbounds.cli.options import (
    DeltaOption,
    ExperimentsOption,
    InputOption,
    InteractionsOption,
    NoiseOption,
    OutputOption,
    ProblemOption,
    QuantileOption,
    TableArgument,
    TurnsOption,
    folder,
    problem_from_options,
    read_runs,
    say,
)
from kernelbounds.errors import InputError
from kernelbounds.io.csv_table import write_csv


def command(
    table: TableArgument,
    input: InputOption = None,
    output: OutputOption = None,
    noise: NoiseOption = None,
    turns: TurnsOption = None,
    interactions: InteractionsOption = None,
    delta: DeltaOption = None,
    experiments: ExperimentsOption = None,
    quantile: QuantileOption = None,
    problem: ProblemOption = None,
    split: Annotated[
        float | None,
        typer.Option(
            help="Use this share of the rows as the pilot data, the first ones, and keep the rest "
            "apart in fresh.csv: 0.3 for three of ten.",
            show_default="all rows are pilot data",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("calibration"),
) -> None:
    """Suggest length scales, the noise and B from pilot data.

    Each suggestion says whether it is an estimate, a stated assumption or a heuristic.
    Writes problem.json for the other commands, for use on OTHER data than these.

    Example: kernelbounds calibrate pilot.csv --problem assume/problem.json --split 0.4
    """
    described = problem_from_options(
        input, output, noise, turns, interactions, delta, None, None, experiments, quantile, problem
    )
    X, y, _ = read_runs(table, described)
    pilot = len(y)
    if split is not None:
        if not 0 < split < 1:
            raise InputError(f"--split must be between 0 and 1, got {split:g}.")
        pilot = round(split * len(y))
    with Console(stderr=True).status("fitting length scales, and norms under them"):
        found = kb.problem.calibrate(described, X[:pilot], y[:pilot])
    say(f"What {pilot} rows suggest:")
    for one in found.suggestions:
        say(f"  {one.what}: {one.value}\n      {one.kind}: {one.why}")
    repeats = kb.problem.calibration.count_repeats
    left_out = repeats(X) - repeats(X[:pilot])
    if left_out > 0:
        say(
            f"Repeated settings that were not used for the noise: {_rows(left_out)}. They are "
            "among the rows kept apart, which must not be looked at. A larger --split, or a table "
            "whose first rows have repeats, would use them."
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
        _write_rows(where / name, described, X[part], y[part])
    more = " --noise ..." if found.problem.noise is None else ""
    say(f"Now: kernelbounds bound {where / 'fresh.csv'} --problem {where / 'problem.json'}{more}")


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _write_rows(path: Path, problem: kb.Problem, X: Array, y: Array) -> None:
    columns = dict(zip(problem.names, X.T, strict=True))
    write_csv(path, columns | {problem.output.name: y})
    say(f"wrote {path}")
