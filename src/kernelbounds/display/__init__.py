"""Output for people: numbers as text, cards in notebooks, and progress on the terminal.

Numbers are in ``numbers.py`` and cards in ``cards.py``. Progress, for what takes longer than a
moment, is here, and so is the style that all pages share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds before anything is shown


def page_style() -> str:
    """Return the style that the tour, the studio and reports of studies have in common."""
    from importlib.resources import files

    return files("kernelbounds.display").joinpath("page.css").read_text(encoding="utf-8")


@contextmanager
def late_progress(
    title: str, total: int | None = None, show: bool | None = None
) -> Iterator[Callable[..., None]]:
    """Yield a function that reports progress: a text, and the number of steps done or added.

    A bar is shown on a terminal's standard error once PATIENCE has passed, and nothing elsewhere.
    If ``show`` is true, the bar is shown at once, even without a terminal; if false, never.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    disable = not (console.is_terminal if show is None else show)
    bar = Progress(*columns, console=console, transient=True, disable=disable)
    task, begin = bar.add_task(title, total=total), time.monotonic() + (0.0 if show else PATIENCE)

    def report(text: str = "", done: int | None = None, advance: int | None = None) -> None:
        if time.monotonic() >= begin:
            bar.start()  # once it runs, this does nothing
        said = f"{title}: {text}" if text else title
        bar.update(task, description=said, completed=done, advance=advance)

    try:
        if show:
            bar.start()
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()
