"""The command line: ``kernelbounds assume``, ``plan``, ``calibrate``, ``bound``, ``study``, ..."""

from __future__ import annotations

import inspect
import io
import os
import sys
import warnings
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from kernelbounds import __version__
from kernelbounds.cli import (
    assume_commands,
    bound_command,
    page_commands,
    plan_command,
    research_commands,
)
from kernelbounds.cli.output import say, warn
from kernelbounds.cli.study_commands import study_app
from kernelbounds.errors import KernelBoundsError

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


class _Group(TyperGroup):
    """Commands that show the value which they refuse; Typer shows only what it should be."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            found: list[Any] = getattr(error.__cause__, "errors", list)()  # those of Pydantic
            if found:
                error.message += f", got {found[0]['input']!r}"
            raise


app = typer.Typer(
    cls=_Group, help=_HELP, no_args_is_help=True, context_settings={"default_map": _DEFAULTS}
)
for _command in (
    assume_commands.assume,
    plan_command.plan,
    assume_commands.calibrate,
    bound_command.bound,
):
    app.command(no_args_is_help=True)(_command)
app.add_typer(study_app, name="study", short_help=study_app.info.help)
app.command()(page_commands.demo)
app.command()(page_commands.studio)
app.command(no_args_is_help=True, help=research_commands.REPRODUCE_HELP)(
    research_commands.reproduce
)
app.command()(research_commands.coverage)

# Without a short help, lists of commands, as on the site, cut sentences after 45 characters.
for _one in (*app.registered_commands, *study_app.registered_commands):
    if _one.help is None:
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


_PARAMETERS = [
    inspect.signature(one.callback).parameters for one in app.registered_commands if one.callback
]
_FOLDERS_OF_RESULTS = [str(one["out"].default) for one in _PARAMETERS if "out" in one]


def _stamps() -> list[tuple[int, int]]:
    """Return the times and sizes of all files and folders that the command may change.

    They are those that are named, those that results have by default, and the folders of these.
    """
    words = [word.partition("=")[2] if word[:2] == "--" else word for word in sys.argv[1:]]
    found = []
    paths = [*words, *_FOLDERS_OF_RESULTS]
    for path in (*paths, *(os.path.dirname(path) or "." for path in paths)):
        there = (0, 0)
        with suppress(OSError, ValueError):
            there = os.stat(path).st_mtime_ns, os.stat(path).st_size
        found.append(there)
    return found


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the interrupt that an exception stems from; Typer makes exit code 130 of it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def main() -> None:
    """Run the command line; the library's own errors become one line and exit code 1.

    An interrupt becomes one line, too, and exit code 130. What it says was kept are the notes of
    the exception, if the command has made any.
    """
    _outlive_readers()
    warnings.showwarning = _warned
    before = _stamps()
    try:
        app(prog_name="kernelbounds")  # also as ``python -m kernelbounds``
    except KernelBoundsError as error:
        # As markup, what is in brackets would be lost: kernelbounds[plot].
        Console(stderr=True).print(
            Text("error: ", style="red").append(str(error), style="default"), soft_wrap=True
        )
        raise SystemExit(1) from None
    except BaseException as error:
        interrupt = _interrupt_behind(error)
        if interrupt is None or (isinstance(error, SystemExit) and error.code != 130):
            raise
        unchanged = _stamps() == before
        kept = "nothing was changed" if unchanged else "what had been written by then is kept"
        say(f"interrupted; {' '.join(getattr(interrupt, '__notes__', [])) or kept}", aside=True)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
