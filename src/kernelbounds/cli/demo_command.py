"""``kernelbounds demo``: a tour of the library, as a page for a browser and a table."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelbounds.cli.options import print_table, progress, say
from kernelbounds.display.numbers import at_most
from kernelbounds.io import files

if TYPE_CHECKING:
    from kernelbounds import demo


def command(
    out: Annotated[
        Path, typer.Option(help="Where to write the page, a file that ends in .html.")
    ] = Path("kernelbounds-demo.html"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the test functions and the noise.")] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller tour, in a few seconds.")
    ] = False,
    open_page: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Whether to open the page in a browser.",
            show_default="if there is a screen and somebody at it",
        ),
    ] = None,
) -> None:
    """Take a tour: an interactive page in one file, without a network, and a table.

    What a norm bound admits, the bands of all bounds, a race, a certificate and a plan.
    """
    from kernelbounds import demo

    if out.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{out} must end in .html.", param_hint="--out")
    try:
        files.check_writable(out)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write to {out}: {error.strerror}.", param_hint="--out"
        ) from None
    size = demo.QUICK if quick else demo.FULL
    with progress("computing five chapters", demo.steps(size)) as step:
        tour = demo.take(size, seed, step)
    with files.failure_reported(f"write the page to {str(out)!r}"):
        files.write_text(out, demo.as_html(tour, seed))
    show(tour)
    say(f"page: {out}")
    if open_page or (open_page is None and _somebody_is_there()):
        webbrowser.open(out.resolve().as_uri())
    else:
        say("Open it in a browser; it needs no network.")


def show(tour: demo.Tour) -> None:
    """Print the main numbers of the page."""
    bands, race, closing, plan = tour.bands, tour.race, tour.closing, tour.plan
    rows = [
        [name, f"{width:.3f}", f"{times:.2f} x", _percent(inside),
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


def _percent(share: float) -> str:
    """Write a share rounded down: a band that misses something must not seem to contain all."""
    return f"{int(100 * share)}%"


def _somebody_is_there() -> bool:
    """Tell whether a browser would be seen: on a screen, and neither in CI nor elsewhere."""
    elsewhere = any(os.environ.get(name) for name in ("CI", "SSH_CONNECTION", "SSH_TTY"))
    screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return sys.stdout.isatty() and screen and not elsewhere
