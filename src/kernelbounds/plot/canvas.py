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
    from matplotlib.figure import Figure

# Told apart in grey, too, by their lightness or else by the style of the line beside it.
COLOURS = ("#0014a8", "#c46210", "#4b8b3b", "#9b2335", "#0a7e8c", "#7a7a7a")
STYLES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.5)), (0, (3, 1.5)), "-.")
BAND, NO_GUARANTEE = COLOURS[0], COLOURS[1]
DASHED = (0, (4, 2.5))
MOST_COLUMNS = 5  # of panels: more would be too small to read across a page


def pyplot() -> Any:
    """matplotlib's, which is imported here and not before."""
    try:
        from matplotlib import pyplot as found
    except ImportError as error:
        raise MissingExtraError("Drawing a picture", "plot") from error
    return found


def new_axes(count: int = 1, size: tuple[float, float] = (5.6, 3.5), **shared: bool) -> list[Axes]:
    """Axes of a new figure of pyplot's, in rows of at most MOST_COLUMNS; ``size`` is of each.

    pyplot's, so that a notebook or ``pyplot.show()`` shows it.
    """
    rows = math.ceil(count / MOST_COLUMNS)
    columns = math.ceil(count / rows)
    _, axes = pyplot().subplots(
        rows,
        columns,
        figsize=(columns * size[0], rows * size[1]),
        squeeze=False,
        layout="constrained",
        **shared,
    )
    for unused in axes.flat[count:]:
        unused.remove()
    return list(axes.flat[:count])


def given_axes(axes: Any, count: int, what: str) -> list[Axes]:
    """The axes that a user passes for several panels, in a list or an array of any shape."""
    several = isinstance(axes, Iterable)
    listed = list(np.asarray(list(axes), dtype=object).flat) if several else [axes]
    if len(listed) != count or not all(hasattr(one, "plot") for one in listed):
        raise InputError(f"{what} needs {count} axes here, got {brief(axes)}.")
    return listed


def given_axis(ax: Any) -> Axes:
    """The axes that a user passes for one picture."""
    if not hasattr(ax, "plot"):
        raise InputError(f"ax must be matplotlib axes, got {brief(ax)}.")
    found: Axes = ax
    return found


def tidy(ax: Axes) -> None:
    """Two spines are enough."""
    ax.spines[["top", "right"]].set_visible(False)


def few_ticks(ax: Axes, log: bool) -> None:
    """For a small panel."""
    if not log:
        ax.locator_params(axis="x", nbins=4)


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
    figure: Figure = first.figure  # type: ignore[assignment]  # not a subfigure: it is ours
    # About 1.1 inches for a handle and its space, and a twelfth for each letter.
    widest = 0.6 + max(map(len, labels)) / 12
    columns = max(1, min(len(labels), int(figure.get_figwidth() / widest)))
    figure.legend(
        handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize="small"
    )
