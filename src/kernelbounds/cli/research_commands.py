"""``kernelbounds reproduce`` and ``coverage``: the experiments of the paper, and of coverage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kernelbounds import laboratory as lab
from kernelbounds.cli.options import OutOption
from kernelbounds.cli.output import say
from kernelbounds.paper import specs

WorkersOption = Annotated[
    int, typer.Option(min=1, help="Processes on this machine.", show_default="all cores")
]
ALL_CORES = os.cpu_count() or 1
DaskOption = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster instead.")
]
QUICK_ROUNDS, QUICK_REPETITIONS = 150, 3
EXPERIMENTS = "; ".join(f"{name}: {text}" for name, text in specs.TITLES.items())
REPRODUCE_HELP = f"""Reproduce the paper's experiments.

Names: {EXPERIMENTS}; or all. You may interrupt at any time; run the command again to go on.

The last six are not in the paper. Their methods are their own, certificates take at most
{specs.CERTIFICATE_ROUNDS} rounds, {specs.CERTIFICATE_REPETITIONS} times, a repetition of designs
is up to {max(specs.DESIGNS.values())} runs, in proportion to the rounds, scale goes up to the
square of the rounds, rivals, to which --methods adds bounds of your own, takes at most
{specs.RIVAL_ROUNDS} rounds, {specs.RIVAL_REPETITIONS} times, and optimisers, which has those that
are installed (the extra compare has all), at most {specs.OPTIMISER_TRIALS} trials,
{specs.OPTIMISER_REPETITIONS} times."""


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", show_default=False)],
    out: OutOption = Path("results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version: 150 rounds, 3 repetitions.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(help="T; the paper has 1000.")] = None,
    reps: Annotated[int | None, typer.Option(help="Repetitions; the paper has 10.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of problems, actions and noise.")] = 0,
    methods: Annotated[
        str,
        typer.Option(
            help="Comma-separated, of " + ", ".join(specs.METHODS) + ", and package.module:Name "
            "for a bound of your own, looked for in the current directory first."
        ),
    ] = ",".join(specs.METHODS),
    kernels: Annotated[
        str, typer.Option(help="Comma-separated, of " + ", ".join(specs.KERNELS) + ".")
    ] = ",".join(specs.KERNELS),
    workers: WorkersOption = ALL_CORES,
    dask: DaskOption = None,
) -> None:
    """Run what is missing, then write tables, figures and a report."""
    from kernelbounds.paper import reproduce as paper

    choices = specs.Choices(
        rounds if rounds is not None else QUICK_ROUNDS if quick else specs.ROUNDS,
        reps if reps is not None else QUICK_REPETITIONS if quick else specs.REPETITIONS,
        seed,
        listed(methods),
        listed(kernels),
    )
    with resumable(out):
        done = paper.reproduce(names, choices, out, workers, dask, partial(say, aside=True))
    typer.echo(done.table, nl=False)
    for file in done.files:
        say(f"wrote {file}", aside=True)


def coverage(
    bounds: Annotated[
        str,
        typer.Option(
            help="Comma-separated, of " + ", ".join((*lab.BOUNDS, *lab.CONTROLS)) + ", "
            "rivals for all bounds of the literature or one of them such as 'Fiedler 2021', and "
            "package.module:Name for a bound of your own, looked for in the current directory "
            "first. CMM-shrunk and GP-2sd are wrong on purpose."
        ),
    ] = ",".join((*lab.BOUNDS, *lab.CONTROLS)),
    designs: Annotated[
        str, typer.Option(help="Where observations are made: " + lab.explained(lab.DESIGNS))
    ] = ",".join(lab.DESIGNS),
    noises: Annotated[
        str, typer.Option(help="Laws of the noise: " + lab.explained(lab.NOISES))
    ] = ",".join(lab.NOISES),
    truths: Annotated[
        str, typer.Option(help="Functions, all of norm B: " + lab.explained(lab.TRUTHS))
    ] = ",".join(lab.TRUTHS),
    kernels: Annotated[
        str, typer.Option(help="Comma-separated, of " + ", ".join(lab.KERNELS) + ".")
    ] = ",".join(lab.DEFAULT_KERNELS),
    dims: Annotated[str, typer.Option(help="Numbers of inputs.")] = ",".join(
        map(str, lab.DEFAULT_DIMS)
    ),
    runs: Annotated[
        int,
        typer.Option(
            min=1, help="Runs of each bound under each design, shared among the kinds of problems."
        ),
    ] = lab.RUNS,
    rounds: Annotated[int, typer.Option(min=2, help="Observations in a run.")] = lab.ROUNDS,
    delta: Annotated[float, typer.Option(help="What the bounds are told.")] = lab.DELTA,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 0,
    out: OutOption = Path("results-coverage"),
    workers: WorkersOption = ALL_CORES,
    dask: DaskOption = None,
) -> None:
    """Measure how often bounds are wrong, at all times and points at once.

    Functions are known, so that one sees it. Interrupt at any time and run again to go on. A run
    that was wrong is listed with its seed, with which it can be run again.
    """
    from kernelbounds.laboratory import coverage as measure
    from kernelbounds.laboratory.measuring import write

    try:
        numbers = [int(dim) for dim in listed(dims)]
    except ValueError:
        raise typer.BadParameter(
            f"{dims!r} must be whole numbers with commas between them.", param_hint="--dims"
        ) from None
    programme = lab.Programme(
        listed(bounds), listed(designs), listed(noises), listed(truths), listed(kernels), numbers,
        runs, rounds, delta, seed,
    )  # fmt: skip
    with resumable(out):
        found = measure(programme, out, workers, dask, partial(say, aside=True))
    text, made = write(found, out)
    typer.echo(text, nl=False)
    for file in made:
        say(f"wrote {file}", aside=True)


@contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Say how to go on when somebody interrupts a long command."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"finished runs are in {out}, and the same command goes on from there")
        raise


def listed(text: str) -> tuple[str, ...]:
    """Split a text at its commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
