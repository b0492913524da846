"""Progress on the terminal, for what takes longer than a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 2.0  # seconds before anything is shown


@contextmanager
def late_progress(
    title: str, total: int | None = None, show: bool | None = None
) -> Iterator[Callable[..., None]]:
    """A function to call with a text (and the steps done) now and then.

    It shows a bar on a terminal's standard error once PATIENCE has passed; nothing elsewhere.
    With ``show`` it is shown at once, also where there is no terminal, or else never.
    """
    console = Console(stderr=True)
    shown_on = console.is_terminal if show is None else show
    patience = 0.0 if show else PATIENCE
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=not shown_on,
    )  # fmt: skip
    task, start, shown = bar.add_task(title, total=total), time.monotonic(), False

    def report(text: str, done: int | None = None) -> None:
        nonlocal shown
        if not shown and time.monotonic() - start >= patience:
            bar.start()
            shown = True
        bar.update(task, description=f"{title}: {text}", completed=done)

    try:
        yield report
    finally:
        if shown:
            bar.stop()
