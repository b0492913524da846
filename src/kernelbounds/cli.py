"""The command line."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kernelbounds import __version__, demo
from kernelbounds.errors import KernelBoundsError

app = typer.Typer(
    help="Anytime-valid confidence bounds for sequential kernel regression.",
    no_args_is_help=True,
    add_completion=False,
)


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


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Where to write the picture (PNG, SVG or PDF).")] = Path(
        "kernelbounds-demo.png"
    ),
    observations: Annotated[int, typer.Option(min=1, max=2000, help="How many to make.")] = 25,
    seed: Annotated[int, typer.Option(min=0, help="Of the test function and the noise.")] = 1,
) -> None:
    """Compare all bounds on a one-dimensional test function: a table and a picture."""
    console = Console()
    if out.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"{out} must end in .png, .svg or .pdf.", param_hint="--out")
    if not out.resolve().parent.is_dir():
        raise typer.BadParameter(f"the folder of {out} does not exist.", param_hint="--out")
    with console.status(f"observing {observations} points and computing five bounds"):
        result = demo.run(observations, seed)
    table = Table(title=f"Bounds at 99% confidence after {observations} observations")
    table.add_column("method")
    for heading in ("mean width", "relative to CMM", "truth inside"):
        table.add_column(heading, justify="right")
    exact = result.bands[0].mean_width
    for band in result.bands:
        inside = f"{100 * band.coverage(result.truth):.0f}%"
        width = band.mean_width
        table.add_row(band.name, f"{width:.3f}", f"{width / exact:.2f} x", inside)
    console.print(table)
    _write_whole(result, out)
    console.print(f"picture: {out}")


def _write_whole(result: demo.Demo, out: Path) -> None:
    """Draw to a temporary file and rename it, so that an interrupt leaves no half picture."""
    with tempfile.TemporaryDirectory(dir=out.resolve().parent) as folder:
        picture = Path(folder) / f"picture{out.suffix.lower()}"
        demo.draw(result, picture)
        os.replace(picture, out)


def main() -> None:
    """Entry point: the library's own errors become one line and exit code 1."""
    try:
        app()
    except KernelBoundsError as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
