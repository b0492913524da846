"""Figures, colours and legends."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelbounds.arrays import brief
from kernelbounds.errors import InputError, MissingExtraError

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
SIZES = {1: (5.6, 3.5), 2: (3.6, 2.9), 3: (3.2, 2.7)}  # inches of a panel, by their columns
SMALL = (2.7, 2.4)
# Of a legend, in inches: a letter of small print, and a handle with the space around it.
LETTER, HANDLE = 0.066, 0.62
ROUND = [1, 2, 2.5, 5, 10]  # steps from one number on an axis to the next, times a power of ten
PLAIN = (1e-4, 1e5)  # numbers that are easier to read without an exponent


def require_matplotlib() -> None:
    """Raise where it is not installed, before anything is computed."""
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
    """Axes of a new figure, in rows of at most MOST_COLUMNS; ``size`` is of each.

    The figure is pyplot's, so that a notebook or ``pyplot.show()`` shows it.
    """
    require_matplotlib()
    from matplotlib import pyplot

    rows = math.ceil(count / MOST_COLUMNS)
    columns = math.ceil(count / rows)
    width, height = size or SIZES.get(columns, SMALL)
    figure, axes = pyplot.subplots(
        rows,
        columns,
        figsize=(columns * width, rows * height),
        squeeze=False,
        sharex=share_x,
        sharey=share_y,
    )
    figure.set_layout_engine("constrained", wspace=space)
    for unused in axes.flat[count:]:
        unused.remove()
    figure.align_labels()
    return list(axes.flat[:count])


def as_written(text: object) -> str:
    """A text for matplotlib with its dollar signs escaped, between which it would read a formula.

    All words of a user go through here: names, units and labels.

    >>> print(as_written("price [$], cost [$]"))
    price [\\$], cost [\\$]
    """
    return str(text).replace("$", r"\$")


def given_axes(axes: Any, count: int, what: str) -> list[Axes]:
    """The axes that a user passes for several panels, in a list or an array of any shape."""
    several = isinstance(axes, Iterable)
    listed = list(np.asarray(list(axes), dtype=object).flat) if several else [axes]
    if len(listed) != count or not all(hasattr(one, "fill_between") for one in listed):
        raise InputError(f"{what} needs {count} axes here, got {brief(axes)}.")
    return listed


def given_axis(ax: Any) -> Axes:
    """The axes that a user passes for one picture."""
    if not hasattr(ax, "fill_between"):
        raise InputError(f"ax must be matplotlib axes, got {brief(ax)}.")
    found: Axes = ax
    return found


def tidy(ax: Axes) -> None:
    """Two spines are enough."""
    ax.spines[["top", "right"]].set_visible(False)


def few_ticks(axis: Axis) -> None:
    """A few round numbers on a linear axis, for a small panel."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(4, steps=ROUND))


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """A few round numbers on a logarithmic axis, without exponents where that is short."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    if high < 3 * low:  # powers of ten and their multiples would be too few
        axis.set_major_locator(MaxNLocator(4, steps=ROUND))
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    if PLAIN[0] <= low and high <= PLAIN[1]:
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def whole_ticks(axis: Axis) -> None:
    """Rounds are counted."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(8, steps=ROUND, integer=True))


def is_leftmost(ax: Axes) -> bool:
    """Whether axes are in the first column of a grid of panels, or in none."""
    spec = ax.get_subplotspec()
    return spec is None or spec.is_first_col()


def legend(axes: list[Axes], own: bool) -> None:
    """Above the panels in a figure of our own, where it hides nothing; else in the first."""
    first = axes[0]
    handles, labels = first.get_legend_handles_labels()
    if not handles:
        return
    if not own:
        first.legend(frameon=True, framealpha=0.8, edgecolor="none", fontsize="small")
        return
    figure: Any = first.figure
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=_columns([HANDLE + LETTER * len(one) for one in labels], figure.get_figwidth()),
        frameon=False,
        fontsize="small",
    )


def _columns(widths: list[float], room: float) -> int:
    """The most columns of a legend that fit; it fills them one after the other."""
    for columns in range(len(widths), 1, -1):
        if sum(max(some) for some in np.array_split(widths, columns)) <= room:
            return columns
    return 1
