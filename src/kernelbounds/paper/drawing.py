"""Figures of experiments as PNG and SVG: axes, colours, legends and intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.errors import MissingExtraError
from kernelbounds.paper import specs
from kernelbounds.paper.specs import Setting
from kernelbounds.paper.summaries import ErrorRate, Estimate

COLOURS = {
    "CMM": "#0014a8", "DMM": "#0a7e8c", "AMM": "#4b8b3b", "AY": "#c46210", "IGP": "#9b2335",
    "Random": "#7a7a7a", "AMM recursion": "#b8860b", "DMM recursion": "#6b4c9a",
}  # fmt: skip
# For bounds of the user's own, in turn; none is close to one above.
USERS_COLOURS = ("#d6249f", "#000000", "#8a5a00", "#4f7fd9")


def legend_above(described: Any, columns: int, size: float = 8) -> None:
    """Put the legend of one panel above all panels: inside, it would hide curves."""
    described.figure.legend(
        *described.get_legend_handles_labels(), loc="outside upper center", ncols=columns,
        fontsize=size, frameon=False,
    )  # fmt: skip


def draw_interval(axis: Any, found: Estimate, place: float, colour: str) -> None:
    """Draw a confidence interval as a horizontal line, unless it is infinite."""
    if np.isfinite(found.low):
        axis.plot([found.low, found.high], [place, place], color=colour, linewidth=2)


def draw_rate(axis: Any, rate: ErrorRate, height: float, colour: str, hollow: bool) -> None:
    """Draw a rate of errors as a circle on its confidence interval."""
    axis.plot(rate.interval, [height, height], color=colour, linewidth=1)
    face = "white" if hollow else colour
    axis.plot(rate.share, height, "o", color=colour, markerfacecolor=face, markersize=3.5)


def log_axes(axis: Any, x: Iterable[float], y: Iterable[float]) -> None:
    """Make both scales logarithmic, with ticks at these x, and at those of these y in view."""
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(list(x), [f"{tick:g}" for tick in x])
    low, high = axis.get_ylim()
    inside = [tick for tick in y if low <= tick <= high]
    axis.set_yticks(inside, [f"{tick:g}" for tick in inside])
    axis.minorticks_off()


@contextmanager
def figure_files(
    path: Path,
    rows: int,
    cols: int,
    labels: tuple[str, str] = ("", ""),
    panel: tuple[float, float] = (3.6, 2.7),
    dpi: int = 200,
    **options: Any,
) -> Iterator[Any]:
    """Make axes to draw on, (rows, cols), and write the figure at the end.

    The labels are those of x in the last row, and of y in the first column. The figure is written
    as PNG and SVG, or in one form where the path ends in it.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("Drawing figures", "plot") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(
        {"svg.hashsalt": "kernelbounds", "axes.spines.top": False, "axes.spines.right": False}
    ):
        size = (panel[0] * cols, panel[1] * rows)
        figure, axes = pyplot.subplots(
            rows, cols, figsize=size, squeeze=False, layout="constrained", **options
        )
        yield axes
        for axis in axes[-1] if labels[0] else ():
            axis.set_xlabel(labels[0])
        for axis in axes[:, 0] if labels[1] else ():
            axis.set_ylabel(labels[1])
        for file in [path] if path.suffix else [path.with_suffix(end) for end in (".png", ".svg")]:
            metadata = {"Date": None} if file.suffix == ".svg" else None
            figure.savefig(file, dpi=dpi, metadata=metadata)
        pyplot.close(figure)


Place = Callable[[Setting], tuple[float, float]]  # by which the rows and the columns are ordered


def by_kernel(setting: Setting) -> tuple[int, int]:
    """Place panels as in the paper's Figure 2: length scales in rows and kernels in columns."""
    return specs.LENGTH_SCALES.index(setting.length_scale), specs.KERNELS.index(setting.kernel)


@contextmanager
def setting_panels(
    path: Path,
    settings: Sequence[Setting],
    labels: tuple[str, str],
    place: Place = by_kernel,
    title: Callable[[Setting], str] = lambda setting: setting.title,
) -> Iterator[dict[Setting, Any]]:
    """Make a panel for each setting, under its title, and write the figure at the end."""
    rows, columns = (sorted(set(keys)) for keys in zip(*map(place, settings), strict=True))
    with figure_files(path, len(rows), len(columns), labels) as axes:
        panels = {}
        for setting in settings:
            row, column = place(setting)
            panels[setting] = axes[rows.index(row), columns.index(column)]
            panels[setting].set_title(title(setting), fontsize=10)
        yield panels
