"""The commands that open a page in a browser: ``kernelbounds demo`` and ``studio``."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelbounds.cli.output import print_table, progress, say, warn
from kernelbounds.display.numbers import at_most
from kernelbounds.errors import InputError
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
