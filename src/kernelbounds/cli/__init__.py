"""The command line: ``kernelbounds assume``, ``plan``, ``calibrate``, ``bound``, ``study``, ...

The commands that open a page, ``demo`` and ``studio``, are in this file.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
import warnings
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from kernelbounds import __version__
from kernelbounds.cli import assume_commands, bound_command, plan_command, research_commands
from kernelbounds.cli.output import print_table, progress, say, warn
from kernelbounds.cli.study_commands import study_app
from kernelbounds.display.numbers import at_most
from kernelbounds.errors import InputError, KernelBoundsError
from kernelbounds.io import files

if TYPE_CHECKING:
    from kernelbounds.demo import Tour

OpenOption = Annotated[
    bool | None,
    typer.Option(
        "--open/--no-open",
        help="Whether to open the page in a browser.",
        show_default="if there is a screen and somebody at it",
    ),
]

# One line for each paragraph, because terminals break them where they like.
_HELP = "\n\n".join((
    "Error bars that hold at all settings and at all times at once, from a table of runs.",
    "Begin with assume: state the ranges of your inputs and your output, the noise, and how often "
    "the output may turn. It writes problem.json, which the other commands read with --problem. "
    "Then bound makes a band from a CSV file, plan says how many runs it takes, and study suggests "
    "experiments one by one, with a certificate of how good the best one is.",
    "If you have no data at hand, take the tour: kernelbounds demo.",
))  # fmt: skip

# Typer imports Pydantic to check flags whose default is not a truth value, as those of its own are.
# That would be a third of the time that a slip takes, so they get one here.
_FLAGS = dict.fromkeys(("help", "install_completion", "show_completion"), False)
_DEFAULTS = {**_FLAGS, "study": _FLAGS}

app = typer.Typer(help=_HELP, no_args_is_help=True, context_settings={"default_map": _DEFAULTS})
for _command in (
    assume_commands.assume,
    plan_command.plan,
    assume_commands.calibrate,
    bound_command.bound,
):
    app.command(no_args_is_help=True)(_command)
app.add_typer(study_app, name="study", short_help=study_app.info.help)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Where to write the page, a file that ends in .html.")
    ] = Path("kernelbounds-demo.html"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the test functions and the noise.")] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller tour, in a few seconds.")
    ] = False,
    open_page: OpenOption = None,
) -> None:
    """Take a tour: an interactive page in one file, which needs no network, and a table.

    It shows what a norm bound admits, the bands of all bounds, a race, a certificate and a plan.
    """
    from kernelbounds import demo as tours

    if out.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{out} must end in .html.", param_hint="--out")
    try:
        files.check_writable(out)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write to {out}: {error.strerror}.", param_hint="--out"
        ) from None
    size = tours.QUICK if quick else tours.FULL
    with progress("computing five chapters", tours.steps(size)) as step:
        tour = tours.take(size, seed, step)
    with files.failure_reported(f"write the page to {str(out)!r}"):
        files.write_text(out, tours.as_html(tour, seed))
    _show(tour)
    say(f"page: {out}")
    if not _opened(out.resolve().as_uri(), open_page):
        say("Open it in a browser; it needs no network.")


@app.command()
def studio(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE|FOLDER]...",
            help="Studies, or folders with studies.",
            show_default="the current folder",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port.", show_default="any that is free")
    ] = 0,
    open_page: OpenOption = None,
) -> None:
    """Open a page for your own studies in a browser: look, ask, tell, make new ones.

    The page is served on this computer alone, to whoever has the address that is printed. Several
    people may look at once, and the command line works beside it. Ctrl-C ends it; nothing is lost.

    Example: kernelbounds studio oven.db
    """
    from kernelbounds.studio import server

    chosen = paths or [Path()]
    for path in chosen:
        if not path.exists():
            raise InputError(
                f"there is no {str(path)!r}; kernelbounds studio without a name shows the current "
                "folder, where a new study can be made."
            )

    def started(address: str) -> None:
        say(f"studio: {address}")
        say("Ctrl-C ends it.", aside=True)
        _opened(address, open_page)

    server.serve(chosen, port, started, warn)


def _show(tour: Tour) -> None:
    """Print the main numbers of the page."""
    bands, race, closing, plan = tour.bands, tour.race, tour.closing, tour.plan
    # Shares are rounded down: a band that misses something must not seem to contain all.
    rows = [
        [name, f"{width:.3f}", f"{times:.2f} x", f"{int(100 * inside)}%",
         "" if regret is None else f"{regret:.1f}"]
        for name, width, times, inside, regret in tour.rows()
    ]  # fmt: skip
    print_table(
        f"Bounds at 99% confidence: bands after {bands['counts'][-1]} measurements, and a race of "
        f"{race['rounds']} rounds",
        ["bound", "mean width", "relative to CMM", "truth inside", "regret"],
        rows,
    )
    last, once = closing["frames"][-1], plan["curves"][1]
    say(
        f"certificate: after {len(closing['points'])} measurements the best place known is within "
        f"{at_most(last['regret'])} of the best possible (in truth {last['true_regret']:.3f})"
    )
    say(
        f"plan: a band of at most ±{at_most(once['half_width'][-1])} {plan['unit']} after "
        f"{plan['counts'][-1]} experiments, if the output turns once"
    )


def _opened(address: str, wanted: bool | None) -> bool:
    """Open a page if it is wanted; None: if a browser would be seen, on a screen and not in CI."""
    if wanted is None:
        known = {name for name, value in os.environ.items() if value}
        elsewhere = known & {"CI", "SSH_CONNECTION", "SSH_TTY"}
        screen = sys.platform in ("darwin", "win32") or known & {"DISPLAY", "WAYLAND_DISPLAY"}
        wanted = bool(sys.stdout.isatty() and screen and not elsewhere)
    if wanted:
        webbrowser.open(address)
    return wanted


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


app.command(no_args_is_help=True, help=research_commands.REPRODUCE_HELP)(
    research_commands.reproduce
)
app.command()(research_commands.coverage)

# Without a short help, lists of commands, as on the site, cut sentences after 45 characters.
for _one in (*app.registered_commands, *study_app.registered_commands):
    if _one.help is None:
        _one.short_help = (inspect.getdoc(_one.callback) or "").partition("\n")[0]


class _UntilClosed(io.FileIO):
    """A stream that forgets what is written to it once its reader has gone."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return memoryview(data).nbytes


def _outlive_readers() -> None:
    """Let commands finish, and write their files, when ``| head`` has seen enough.

    Otherwise the first line that nobody reads would end a command before it has written anything.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__") or stream is None or stream.isatty():
            continue  # It is a terminal, or it was replaced by somebody who reads it.
        raw = _UntilClosed(stream.fileno(), "w", closefd=False)
        own = io.TextIOWrapper(
            io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True
        )
        setattr(sys, name, own)


def _warned(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show what the library warns of as commands do, without the place in the code."""
    if category is UserWarning:
        warn(str(message))


def main() -> None:
    """Run the command line; the library's own errors become one line and exit code 1."""
    _outlive_readers()
    warnings.showwarning = _warned
    try:
        app(prog_name="kernelbounds")  # also as ``python -m kernelbounds``
    except KernelBoundsError as error:
        # As markup, what is in brackets would be lost: kernelbounds[plot].
        Console(stderr=True).print(
            Text("error: ", style="red").append(str(error), style="default"), soft_wrap=True
        )
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
