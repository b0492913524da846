"""All five bounds on one test function, as in the paper's Figure 1.

The paper's figures, as PNG and SVG.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.arrays import Array
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound
from kernelbounds.errors import MissingExtraError
from kernelbounds.kernels import mixture_scale
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.paper import specs as own
from kernelbounds.paper.specs import KERNELS, LENGTH_SCALES, RECURSIONS, Setting
from kernelbounds.paper.tables import Runs, columns, find, methods, name_of, title
from kernelbounds.sequence import ConfidenceSequence

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


NORM_BOUND, NOISE_SCALE, DELTA = 10.0, 0.1, 0.01


@dataclass(frozen=True)
class Band:
    """The bounds of one method on the grid."""

    name: str
    lower: Array
    upper: Array

    @property
    def mean_width(self) -> float:
        """Mean over the grid of upper minus lower."""
        return float(np.mean(self.upper - self.lower))

    def coverage(self, truth: Array) -> float:
        """The fraction of the grid where the truth lies in the band."""
        return float(np.mean((self.lower <= truth) & (truth <= self.upper)))


@dataclass(frozen=True)
class Figure1:
    """A test function with ||f*|| = B, noisy observations of it, and the bands of all methods."""

    grid: Array
    truth: Array
    points: Array
    outcomes: Array
    bands: tuple[Band, ...]


def run(observations: int = 25, seed: int = 1) -> Figure1:
    """Observe a Matern-3/2 function of length scale 0.5 on [0, 1] where the CMM band is widest."""
    rng = np.random.default_rng(seed)
    kernel = Matern(length_scale=0.5, nu=1.5)
    centres, weights = rng.random((20, 1)), rng.standard_normal(20)
    function = RKHSFunction(kernel, centres, weights).rescaled(NORM_BOUND)
    sequence = ConfidenceSequence(
        kernel,
        NORM_BOUND,
        NOISE_SCALE,
        DELTA,
        mixture_scale=mixture_scale(kernel, dim=1, horizon=observations),
    )
    grid = np.linspace(0, 1, 401)[:, None]
    for _ in range(observations):
        lower, upper = sequence.bounds(grid)
        x = grid[np.argmax(upper - lower)]
        sequence.update(x, function(x[None])[0] + NOISE_SCALE * rng.standard_normal())
    methods: dict[str, Bound] = {
        "CMM": CMM(),
        "DMM": DMM(),
        "AMM": AMM(),
        "AY-GP-UCB": AY(),
        "IGP-UCB": IGP(eta=2 / observations),
    }
    bands = tuple(Band(name, *sequence.bounds(grid, bound)) for name, bound in methods.items())
    return Figure1(grid[:, 0], function(grid), sequence.points[:, 0], sequence.outcomes, bands)


def draw(found: Figure1, file: Path | BinaryIO, form: str | None = None) -> None:
    """Write the picture, as png, svg or pdf: one panel a method, the same axes for all."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("Drawing the bands", "plot") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    colours = ["#0014a8", "#0a7e8c", "#4b8b3b", "#c46210", "#9b2335"]
    figure, axes = pyplot.subplots(
        1, len(found.bands), figsize=(15, 3.4), sharex=True, sharey=True, layout="constrained"
    )
    for axis, band, colour in zip(axes, found.bands, colours, strict=True):
        axis.fill_between(found.grid, band.lower, band.upper, color=colour, alpha=0.22, linewidth=0)
        axis.plot(found.grid, band.lower, color=colour, linewidth=1.2)
        axis.plot(found.grid, band.upper, color=colour, linewidth=1.2, label="bounds")
        axis.plot(found.grid, found.truth, "k--", linewidth=1.2, label="truth")
        axis.plot(found.points, found.outcomes, "k.", markersize=4, label="data", clip_on=False)
        axis.set_title(f"{band.name}\nmean width {band.mean_width:.2f}", fontsize=11)
        axis.set_xlabel("x")
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0)
    axes[0].set_ylabel("f(x)")
    axes[0].legend(frameon=False, fontsize=9)
    figure.savefig(file, dpi=160, format=form)
    pyplot.close(figure)
