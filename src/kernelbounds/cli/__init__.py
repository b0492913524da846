"""The command line: ``kernelbounds assume``, ``plan``, ``calibrate``, ``bound``, ``study``, ..."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from kernelbounds import __version__
from kernelbounds.cli import (
    assume_command,
    bound_command,
    calibrate_command,
    demo_command,
    plan_command,
)
from kernelbounds.cli.study_commands import study_app
from kernelbounds.errors import KernelBoundsError
from kernelbounds.paper import specs

QUICK_ROUNDS, QUICK_REPETITIONS = 150, 3

# One line for each paragraph, because terminals break them where they like.
_HELP = "\n\n".join((
    "Error bars that hold at all settings and at all times at once, from a table of runs.",
    "Begin with assume: say the ranges of your inputs and your output, the noise, and how often "
    "the output may turn. It writes problem.json, which the others take as --problem. Then bound "
    "makes a band from a CSV file, plan says how many runs it takes, and study suggests "
    "experiments one by one, with a certificate of how good the best one is.",
    "No data at hand? Take the tour: demo.",
))  # fmt: skip

app = typer.Typer(
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
)
for _name, _module in (
    ("assume", assume_command),
    ("plan", plan_command),
    ("calibrate", calibrate_command),
    ("bound", bound_command),
):
    app.command(_name, no_args_is_help=True)(_module.command)
app.command("demo")(demo_command.command)  # It is the only command that needs no arguments.
app.add_typer(study_app, name="study", short_help=study_app.info.help)
# Otherwise lists of commands, as on the site, cut their first sentences after 45 characters.
for _one in (*app.registered_commands, *study_app.registered_commands):
    _one.short_help = (inspect.getdoc(_one.callback) or "").partition("\n")[0]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kernelbounds {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


EXPERIMENTS = "; ".join(f"{name}: {text}" for name, text in specs.EXPERIMENTS.items())


@app.command(
    "reproduce",
    no_args_is_help=True,
    help=f"""Reproduce the paper's experiments.

Names: {EXPERIMENTS}; or all. Interrupt at any time and run again to go on.

The last four are not in the paper. Their methods are their own, certificates take at most
{specs.CERTIFICATE_ROUNDS} rounds, {specs.CERTIFICATE_REPETITIONS} times, a repetition of designs
is up to {max(specs.DESIGNS.values())} runs, in proportion to the rounds, and scale goes up to the
square of the rounds.""",
)
def reproduce_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
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
    workers: Annotated[
        int, typer.Option(min=1, help="Processes on this machine.", show_default="all cores")
    ] = os.cpu_count() or 1,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster instead.")
    ] = None,
) -> None:
    """Run what is missing, then write tables, figures and a report."""
    from kernelbounds.paper.reproduce import reproduce

    console = Console(stderr=True)

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False)

    choices = specs.Choices(
        rounds if rounds is not None else QUICK_ROUNDS if quick else specs.ROUNDS,
        reps if reps is not None else QUICK_REPETITIONS if quick else specs.REPETITIONS,
        seed,
        _listed(methods),
        _listed(kernels),
    )
    try:
        done = reproduce(names, choices, out, workers, dask, say)
    except KeyboardInterrupt:
        say(f"interrupted; finished runs are in {out}, the same command goes on")
        raise SystemExit(130) from None
    typer.echo(done.table, nl=False)
    for file in done.files:
        say(f"wrote {file}")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def main() -> None:
    """Run the command line; the library's own errors become one line and exit code 1."""
    try:
        app()
    except KernelBoundsError as error:
        # As markup, what is in brackets would be lost: kernelbounds[plot].
        Console(stderr=True).print(
            Text("error: ", style="red").append(str(error), style="default"), soft_wrap=True
        )
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
