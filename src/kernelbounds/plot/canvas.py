"""Figures, axes, colours and legends."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelbounds.arrays import brief
from kernelbounds.errors import InputError, MissingExtraError
from kernelbounds.io import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Pairs of bounds and runs are told apart in grey, too, by the style of their lines. Dashes and the
# colour beside them are for what has no guarantee alone.
COLOURS = ("#0014a8", "#4b8b3b", "#9b2335", "#0a7e8c", "#6b4c9a", "#7a7a7a")
STYLES: tuple[Any, ...] = (
    "-", (0, (7, 1.5, 1.5, 1.5)), (0, (1, 1.2)), (0, (12, 2)), (0, (7, 1.5, 1, 1.5, 1, 1.5)), "-",
)  # fmt: skip
BAND, NO_GUARANTEE = COLOURS[0], "#c46210"
DASHED = (0, (4, 2.5))
MOST_COLUMNS = 5  # of panels: more would be too small to read across a page
PANEL_SIZES = {1: (5.6, 3.5), 2: (3.6, 2.9), 3: (3.2, 2.7)}  # inches, by the number of columns
SMALL_PANEL = (2.7, 2.4)
# Widths in a legend, in inches: a letter of small print, and a handle with the space around it.
LETTER_WIDTH, HANDLE_WIDTH = 0.066, 0.62
TICK_STEPS = [1, 2, 2.5, 5, 10]  # from one number on an axis to the next, times a power of ten
PLAIN_RANGE = (1e-4, 1e5)  # numbers that are easier to read without an exponent


def require_matplotlib() -> None:
    """Raise where matplotlib is not installed, before anything is computed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("Drawing a picture", "plot") from error


def new_axes(
    count: int = 1,
    size: tuple[float, float] | None = None,
    *,
    share_x: bool = False,
    share_y: bool = False,
    space: float = 0.02,
) -> list[Axes]:
    """Make the axes of a new figure, in rows of at most MOST_COLUMNS; ``size`` is that of each.

    The figure is pyplot's, so that a notebook or ``pyplot.show()`` shows it.
    """
    require_matplotlib()
    from matplotlib import pyplot

    rows = math.ceil(count / MOST_COLUMNS)
    columns = math.ceil(count / rows)
    width, height = size or PANEL_SIZES.get(columns, SMALL_PANEL)
    figsize = (columns * width, rows * height)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=figsize, squeeze=False, sharex=share_x, sharey=share_y
    )
    figure.set_layout_engine("constrained", wspace=space)
    for unused in axes.flat[count:]:
        unused.remove()
    figure.align_labels()
    return list(axes.flat[:count])


def as_written(text: object) -> str:
    """Escape the dollar signs of a text, between which matplotlib would read a formula.

    All words of a user go through here: names, units and labels.

    >>> print(as_written("price [$], cost [$]"))
    price [\\$], cost [\\$]
    """
    return str(text).replace("$", r"\$")


def given_axes(axes: Any, count: int, what: str) -> list[Axes]:
    """Check the axes that a user passes for several panels, in a list or an array of any shape."""
    several = isinstance(axes, Iterable)
    listed = list(np.asarray(list(axes), dtype=object).flat) if several else [axes]
    if len(listed) != count or not all(hasattr(one, "fill_between") for one in listed):
        raise InputError(f"{what} needs {count} axes here, got {brief(axes)}.")
    return listed


def axes_for(ax: Any) -> Axes:
    """Check the axes that a user passes for one picture, or make those of a new figure for None."""
    found: Axes = new_axes()[0] if ax is None else ax
    if not hasattr(found, "fill_between"):
        raise InputError(f"ax must be matplotlib axes, got {brief(ax)}.")
    return found


def save(axes: Any, path: Path) -> None:
    """Write the figure of these axes to a PNG file, whole or not at all, and close it."""
    from matplotlib import pyplot

    figure = np.ravel(np.asarray(axes, dtype=object))[0].figure
    try:
        with files.failure_reported(f"write the picture {path}"), files.replacing(path) as file:
            figure.savefig(file, format="png", dpi=150)
    finally:
        pyplot.close(figure)


def tidy(ax: Axes) -> None:
    """Remove the spines at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)


def round_ticks(axis: Axis) -> None:
    """Put a few round numbers on a linear axis, for a small panel."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(4, steps=TICK_STEPS))


def whole_ticks(axis: Axis) -> None:
    """Put whole numbers on an axis, because rounds are counted."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(8, steps=TICK_STEPS, integer=True))


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Put a few round numbers on a logarithmic axis, without exponents where that is short."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if high < 3 * low:  # powers of ten and their multiples would be too few
        round_ticks(axis)
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    if PLAIN_RANGE[0] <= low and high <= PLAIN_RANGE[1]:
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def finish(ax: Axes, own: bool) -> None:
    """Tidy a picture of one panel, and add its legend; ``own`` is a figure that we made."""
    tidy(ax)
    legend([ax], own)


def is_leftmost(ax: Axes) -> bool:
    """Whether axes are in the first column of a grid of panels, or in no grid."""
    spec = ax.get_subplotspec()
    return spec is None or spec.is_first_col()


def legend(axes: list[Axes], own: bool) -> None:
    """Put a legend above the panels of a figure of our own, where it hides nothing.

    In a figure of the user's it is put into the first panel.
    """
    first = axes[0]
    handles, labels = first.get_legend_handles_labels()
    if not handles:
        return
    if not own:
        first.legend(frameon=True, framealpha=0.8, edgecolor="none", fontsize="small")
        return
    figure: Any = first.figure
    widths = [HANDLE_WIDTH + LETTER_WIDTH * len(one) for one in labels]
    # The most columns that fit; a legend fills them one after the other.
    fits = (
        columns
        for columns in range(len(widths), 1, -1)
        if sum(max(some) for some in np.array_split(widths, columns)) <= figure.get_figwidth()
    )
    figure.legend(
        handles, labels, loc="outside upper center", ncols=next(fits, 1), frameon=False,
        fontsize="small",
    )  # fmt: skip
