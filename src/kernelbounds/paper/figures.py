"""The paper's figures, as PNG and SVG: the bands of Figure 1, and regret and time by round."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.arrays import Array
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound
from kernelbounds.errors import MissingExtraError
from kernelbounds.kernels import mixture_scale
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.paper import cells, specs, table1
from kernelbounds.paper.cells import Cell, MethodRuns
from kernelbounds.paper.results import ErrorRate, Estimate, ResultStore
from kernelbounds.paper.specs import Choices, Experiment, Job, Picture, Setting
from kernelbounds.paper.table1 import bounds_and_baselines, name_of
from kernelbounds.sequence import ConfidenceSequence

COLOURS = {
    "CMM": "#0014a8", "DMM": "#0a7e8c", "AMM": "#4b8b3b", "AY": "#c46210", "IGP": "#9b2335",
    "Random": "#7a7a7a", "AMM recursion": "#b8860b", "DMM recursion": "#6b4c9a",
}  # fmt: skip
# For bounds of the user's own, in turn; none is close to one above.
USERS_COLOURS = ("#d6249f", "#000000", "#8a5a00", "#4f7fd9")
REGRET_LABELS = ("round", "cumulative regret")
SMOOTHED_STEPS = 51  # in the running median of a curve of time


def colours(runs: Iterable[MethodRuns]) -> dict[str, str]:
    """Return the colour of each method, the user's own in the order of the runs."""
    users_own = dict.fromkeys(one.method for one in runs if specs.is_users_own(one.method))
    return COLOURS | dict(zip(users_own, itertools.cycle(USERS_COLOURS), strict=False))


def grid_of(
    settings: Iterable[Setting],
) -> tuple[list[str], Callable[[Setting], tuple[int, int]]]:
    """Place panels as in the paper's Figure 2: kernels in columns and length scales in rows.

    Return the kernels, and a function from a setting to its row and column.
    """
    found = {setting.kernel for setting in settings}
    kernels = [kernel for kernel in specs.KERNELS if kernel in found]
    return kernels, lambda s: (specs.LENGTH_SCALES.index(s.length_scale), kernels.index(s.kernel))


def draw_regret(name: str, members: list[Cell], store: ResultStore, folder: Path) -> None:
    """Draw the regret of all methods, with a panel for each setting."""
    runs = cells.collect(members, store)
    settings = cells.settings_of(runs)
    kernels, place = grid_of(settings)
    with figure_files(folder, name, len(specs.LENGTH_SCALES), len(kernels), REGRET_LABELS) as axes:
        for setting in settings:
            _panel(axes[place(setting)], runs, setting, setting.title)
        _legend(axes)


def draw_loose(name: str, members: list[Cell], store: ResultStore, folder: Path) -> None:
    """Draw the regret with believed noise in rows and believed norm in columns."""
    runs = cells.collect(members, store)
    settings = cells.settings_of(runs)
    noises = sorted({s.noise_scale for s in settings})
    norms = sorted({s.norm_bound for s in settings})
    with figure_files(folder, name, len(noises), len(norms), REGRET_LABELS) as axes:
        for setting in settings:
            axis = axes[noises.index(setting.noise_scale), norms.index(setting.norm_bound)]
            _panel(axis, runs, setting, setting.believed)
        _legend(axes)


def draw_times(name: str, members: list[Cell], store: ResultStore, folder: Path) -> None:
    """Draw the time per step: all of it, zoomed in, and on a logarithmic scale."""
    runs = cells.collect(members, store)
    curves = {one.method: 1e3 * smoothed(one.seconds.mean(axis=0)) for one in runs}
    with figure_files(folder, name, 1, 3, ("round", "milliseconds")) as axes:
        for axis, heading in zip(axes[0], ("time per step", "zoomed in", "log scale"), strict=True):
            for method, curve in curves.items():
                style = "--" if method in cells.RECURSIONS else "-"
                axis.plot(
                    1 + np.arange(len(curve)), curve, style, color=colours(runs)[method],
                    label=name_of(method), linewidth=1.3,
                )  # fmt: skip
            axis.set_title(heading, fontsize=10)
            axis.margins(x=0)
        slowest = max(curve.max() for method, curve in curves.items() if method != "DMM recursion")
        axes[0, 1].set_ylim(0, 1.1 * slowest)
        axes[0, 2].set_yscale("log")
        _legend(axes)


def smoothed(values: Array) -> Array:
    """Return a running median, which single delays of the machine do not move."""
    padded = np.pad(values, SMOOTHED_STEPS // 2, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED_STEPS)
    return np.asarray(np.median(windows, axis=1))


def spread(values: Array) -> Array:
    """Return the standard deviation over repetitions, (rounds,); nan for a single one."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    return np.asarray(values.std(axis=0, ddof=1))


def _panel(axis: Any, runs: list[MethodRuns], setting: Setting, heading: str) -> None:
    """Draw mean +- standard deviation of each method; the y axis ends where those that learn do."""
    highest = 0.0
    for behind, method in enumerate(bounds_and_baselines(runs)):
        one, colour = cells.find(runs, setting, method), colours(runs)[method]
        if one is None:
            continue
        mean, reach = one.regret.mean(axis=0), np.nan_to_num(spread(one.regret))
        rounds = 1 + np.arange(len(mean))
        # Where curves coincide the tighter bound is in front, and the user's own before all.
        order = 9.5 if specs.is_users_own(method) else 9 - behind
        axis.plot(rounds, mean, color=colour, label=name_of(method), linewidth=1.3, zorder=order)
        axis.fill_between(rounds, mean - reach, mean + reach, color=colour, alpha=0.15, linewidth=0)
        if method != "Random":
            highest = max(highest, float((mean + reach)[-1]))
    if highest:
        axis.set_ylim(0, 1.05 * highest)
    axis.set_title(heading, fontsize=10)
    axis.margins(x=0)


def _legend(axes: Any) -> None:
    legend_above(axes[0, 0], 7 * axes.shape[1] // 3)


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
    folder: Path,
    name: str,
    rows: int,
    cols: int,
    labels: tuple[str, str] = ("", ""),
    panel: tuple[float, float] = (3.6, 2.7),
    dpi: int = 200,
    **options: Any,
) -> Iterator[Any]:
    """Make axes to draw on, (rows, cols), and write the figure at the end.

    The labels are those of x in the last row, and of y in the first column. The figure is written
    as PNG and SVG, or in one form where the name ends in it.
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
        for file in [name] if Path(name).suffix else [f"{name}.png", f"{name}.svg"]:
            metadata = {"Date": None} if file.endswith("svg") else None
            figure.savefig(folder / file, dpi=dpi, metadata=metadata)
        pyplot.close(figure)


# --- Figure 1


@dataclass(frozen=True)
class Band:
    """The bounds of one method on the grid."""

    name: str
    lower: Array
    upper: Array

    @property
    def mean_width(self) -> float:
        """The mean over the grid of upper minus lower."""
        return float(np.mean(self.upper - self.lower))

    def coverage(self, truth: Array) -> float:
        """Return the fraction of the grid where the truth lies in the band."""
        return float(np.mean((self.lower <= truth) & (truth <= self.upper)))


@dataclass(frozen=True)
class Figure1:
    """A test function with ||f*|| = B, noisy observations of it, and the bands of all methods."""

    grid: Array
    truth: Array
    points: Array
    outcomes: Array
    bands: tuple[Band, ...]


def run_figure1(observations: int = 25, seed: int = 1) -> Figure1:
    """Observe a Matern-3/2 function of length scale 0.5 on [0, 1] where the CMM band is widest."""
    rng = np.random.default_rng(seed)
    kernel = Matern(length_scale=0.5, nu=1.5)
    centres, weights = rng.random((20, 1)), rng.standard_normal(20)
    function = RKHSFunction(kernel, centres, weights).rescaled(specs.NORM)
    scale = mixture_scale(kernel, dim=1, horizon=observations)
    sequence = ConfidenceSequence(kernel, specs.NORM, specs.NOISE, specs.DELTA, mixture_scale=scale)
    grid = np.linspace(0, 1, 401)[:, None]
    for _ in range(observations):
        lower, upper = sequence.bounds(grid)
        x = grid[np.argmax(upper - lower)]
        sequence.update(x, function(x[None])[0] + specs.NOISE * rng.standard_normal())
    bounds: dict[str, Bound] = {
        "CMM": CMM(),
        "DMM": DMM(),
        "AMM": AMM(),
        "AY-GP-UCB": AY(),
        "IGP-UCB": IGP(eta=2 / observations),
    }
    bands = tuple(Band(name, *sequence.bounds(grid, bound)) for name, bound in bounds.items())
    return Figure1(grid[:, 0], function(grid), sequence.points[:, 0], sequence.outcomes, bands)


def draw_figure1(found: Figure1, folder: Path, name: str = "figure1") -> None:
    """Draw one panel for each method, with the same axes for all."""
    with figure_files(
        folder, name, 1, len(found.bands), ("x", "f(x)"), (3.0, 3.4), 160, sharex=True, sharey=True
    ) as axes:
        for axis, band, colour in zip(axes[0], found.bands, COLOURS.values(), strict=False):
            axis.fill_between(
                found.grid, band.lower, band.upper, color=colour, alpha=0.22, linewidth=0
            )
            axis.plot(found.grid, band.lower, color=colour, linewidth=1.2)
            axis.plot(found.grid, band.upper, color=colour, linewidth=1.2, label="bounds")
            axis.plot(found.grid, found.truth, "k--", linewidth=1.2, label="truth")
            axis.plot(found.points, found.outcomes, "k.", markersize=4, label="data", clip_on=False)
            axis.set_title(f"{band.name}\nmean width {band.mean_width:.2f}", fontsize=11)
            axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
            axis.margins(x=0)
        axes[0, 0].legend(frameon=False, fontsize=9)


# --- the experiments


def _write_figure1(_: list[Job], store: ResultStore, folder: Path) -> None:
    draw_figure1(run_figure1(), folder)


def _one_setting(choices: Choices) -> Setting:
    return Setting("matern-5/2", 0.5, rounds=choices.rounds)


def _timed_cells(choices: Choices) -> list[Cell]:
    methods = [*cells.chosen_methods(choices), *cells.RECURSIONS]
    learning = [method for method in methods if method != "Random"]
    return cells.cells_in([_one_setting(choices)], choices, learning, timed=True)


def _cells_in_dim(dim: int, choices: Choices) -> list[Cell]:
    return cells.cells_in(choices.settings(dim), choices)


EXPERIMENTS = {
    "figure1": Experiment(
        lambda choices: [],
        _write_figure1,
        "Narrower is better, as long as the dashed truth is inside.",
        (
            Picture(
                "figure1",
                "Figure 1",
                "Confidence bands of the five bounds on one test function, with the truth and the "
                "data",
            ),
        ),
    ),
    "figure2": Experiment(table1.jobs, partial(draw_regret, "figure2")),
    "figure-time": Experiment(
        _timed_cells,
        partial(draw_times, "figure-time"),
        "To choose an action and to learn from its reward: running medians, with "
        "nothing run beside it. Dashed: the appendix's recursions, in plain NumPy.",
    ),
    "figure-2d": Experiment(partial(_cells_in_dim, 2), partial(draw_regret, "figure-2d")),
    "figure-4d": Experiment(partial(_cells_in_dim, 4), partial(draw_regret, "figure-4d")),
    "figure-loose": Experiment(
        lambda choices: cells.cells_in(_one_setting(choices).loosened(), choices),
        partial(draw_loose, "figure-loose"),
        f"The learner believes what is above each panel; in truth σ = {specs.NOISE:g} and "
        f"B = {specs.NORM:g}.",
    ),
}
