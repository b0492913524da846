"""The paper's figures, as PNG and SVG."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.errors import MissingExtraError
from kernelbounds.paper import own
from kernelbounds.paper.specs import KERNELS, LENGTH_SCALES, RECURSIONS, Setting
from kernelbounds.paper.summary import Runs, find
from kernelbounds.paper.tables import columns, methods, name_of, title

COLOURS = {
    "CMM": "#0014a8", "DMM": "#0a7e8c", "AMM": "#4b8b3b", "AY": "#c46210", "IGP": "#9b2335",
    "Random": "#7a7a7a", "AMM recursion": "#b8860b", "DMM recursion": "#6b4c9a",
}  # fmt: skip
# For bounds of the user's own, in turn; none is close to one above.
OWN_COLOURS = ("#d6249f", "#000000", "#8a5a00", "#4f7fd9")
SMOOTHING = 51  # steps, in curves of time


def figure_names(name: str) -> list[str]:
    """The files of a figure."""
    return [f"{name}.png", f"{name}.svg"]


def colours(runs: Iterable[Runs]) -> dict[str, str]:
    """By method: the fixed ones, then the user's own in the order of the runs."""
    own_ones = dict.fromkeys(one.method for one in runs if own.is_own(one.method))
    return COLOURS | dict(zip(own_ones, itertools.cycle(OWN_COLOURS), strict=False))


def regret(runs: list[Runs], folder: Path, name: str) -> None:
    """Kernels in columns and length scales in rows, as in the paper's Figure 2."""
    settings = columns(runs)
    kernels = [kernel for kernel in KERNELS if any(s.kernel == kernel for s in settings)]
    with figure_files(folder, name, len(LENGTH_SCALES), len(kernels)) as axes:
        for row, scale in enumerate(LENGTH_SCALES):
            for column, kernel in enumerate(kernels):
                for setting in settings:
                    if (setting.kernel, setting.length_scale) == (kernel, scale):
                        _panel(axes[row, column], runs, setting, title(setting))
        _label(axes, "round", "cumulative regret")


def loose(runs: list[Runs], folder: Path, name: str) -> None:
    """Believed noise in rows, believed norm in columns."""
    settings = columns(runs)
    noises = sorted({s.noise_scale for s in settings})
    norms = sorted({s.norm_bound for s in settings})
    with figure_files(folder, name, len(noises), len(norms)) as axes:
        for setting in settings:
            axis = axes[noises.index(setting.noise_scale), norms.index(setting.norm_bound)]
            heading = f"believed σ = {setting.noise_scale:g}, B = {setting.norm_bound:g}"
            _panel(axis, runs, setting, heading)
        _label(axes, "round", "cumulative regret")


def times(runs: list[Runs], folder: Path, name: str) -> None:
    """Time per step: all of it, zoomed in, and on a logarithmic scale."""
    with figure_files(folder, name, 1, 3) as axes:
        for axis, heading in zip(axes[0], ("time per step", "zoomed in", "log scale"), strict=True):
            for one in runs:
                curve = 1e3 * smoothed(one.seconds.mean(axis=0))
                label = name_of(one.method)
                dashed = "--" if one.method in RECURSIONS else "-"
                axis.plot(
                    1 + np.arange(len(curve)),
                    curve,
                    dashed,
                    color=colours(runs)[one.method],
                    label=label,
                    linewidth=1.3,
                )
            axis.set_title(heading, fontsize=10)
            axis.margins(x=0)
        slowest = max(
            float(np.max(smoothed(o.seconds.mean(axis=0))))
            for o in runs
            if o.method != "DMM recursion"
        )
        axes[0, 1].set_ylim(0, 1.1e3 * slowest)
        axes[0, 2].set_yscale("log")
        _label(axes, "round", "milliseconds")


def smoothed(values: Array) -> Array:
    """A running median, which single hiccups of the machine do not move."""
    half = SMOOTHING // 2
    padded = np.pad(values, half, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, SMOOTHING)
    return np.asarray(np.median(windows, axis=1))


def _panel(axis: Any, runs: list[Runs], setting: Setting, heading: str) -> None:
    """Mean +- standard deviation of each method; the y axis is for those that learn."""
    highest = 0.0
    for behind, method in enumerate(methods(runs)):
        one, colour, label = find(runs, setting, method), colours(runs)[method], name_of(method)
        if one is None:
            continue
        mean = one.regret.mean(axis=0)
        spread = one.regret.std(axis=0, ddof=1) if len(one.regret) > 1 else np.zeros_like(mean)
        rounds = 1 + np.arange(len(mean))
        # Where curves coincide the tighter bound is in front, and the user's own before all.
        order = 9.5 if own.is_own(method) else 9 - behind
        axis.plot(rounds, mean, color=colour, label=label, linewidth=1.3, zorder=order)
        axis.fill_between(
            rounds, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0
        )
        if method != "Random":
            highest = max(highest, float((mean + spread)[-1]))
    if highest:
        axis.set_ylim(0, 1.05 * highest)
    axis.set_title(heading, fontsize=10)
    axis.margins(x=0)


def _label(axes: Any, x: str, y: str) -> None:
    for axis in axes[-1]:
        axis.set_xlabel(x)
    for axis in axes[:, 0]:
        axis.set_ylabel(y)
    # Outside of the panels: inside, it would hide curves of some setting or other.
    handles, labels = axes.flat[0].get_legend_handles_labels()
    axes.flat[0].figure.legend(
        handles, labels, loc="outside upper center", ncols=7 * axes.shape[1] // 3, fontsize=8,
        frameon=False,
    )  # fmt: skip


@contextmanager
def figure_files(folder: Path, name: str, rows: int, cols: int) -> Iterator[Any]:
    """Axes to draw on, (rows, cols); the files are written at the end."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("Drawing figures", "plot") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(
        {"svg.hashsalt": "kernelbounds", "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure, axes = pyplot.subplots(
            rows, cols, figsize=(3.6 * cols, 2.7 * rows), squeeze=False, layout="constrained"
        )
        yield axes
        for file in figure_names(name):
            figure.savefig(
                folder / file, dpi=200, metadata={"Date": None} if file.endswith("svg") else None
            )
        pyplot.close(figure)
