"""Progress on the terminal, for what takes longer than a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 2.0  # seconds before anything is shown


@contextmanager
def late_progress(title: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A function to call with a text (and the steps done) now and then.

    It shows a bar on a terminal's standard error once PATIENCE has passed; nothing elsewhere.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    task, start, shown = bar.add_task(title, total=total), time.monotonic(), False

    def report(text: str, done: int | None = None) -> None:
        nonlocal shown
        if not shown and time.monotonic() - start > PATIENCE:
            bar.start()
            shown = True
        bar.update(task, description=f"{title}: {text}", completed=done)

    try:
        yield report
    finally:
        if shown:
            bar.stop()
