"""The paper's figures, and what all figures of experiments share: files, panels, colours, legends.

Figures are PNG and SVG files. Those of regret and time by round are data for the report as well,
whose script draws the same curves in the same panels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from kernelbounds.paper.cells import RECURSIONS, Cell, MethodRuns
from kernelbounds.paper.results import ErrorRate, Estimate
from kernelbounds.paper.specs import Choices, Experiment, Job, Picture, Setting
from kernelbounds.paper.table1 import bounds_and_baselines, name_of
from kernelbounds.sequence import ConfidenceSequence

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


def draw_estimate(axis: Any, found: Estimate, height: float, colour: str, **marker: Any) -> None:
    """Draw an estimate as a circle on its confidence interval, unless that is infinite."""
    if np.isfinite(found.low):
        axis.plot([found.low, found.high], [height, height], color=colour, linewidth=2)
    axis.plot(found.value, height, "o", color=colour, **marker)


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


def rate_axes(axis: Any, delta: float, titles: Sequence[str], labelled: bool = True) -> None:
    """Make axes for rates of errors, with a line at delta and a place at -i for each title i."""
    axis.axvline(delta, color="black", linewidth=0.6)
    axis.set_xlim(-0.03, 1.03)
    axis.set_ylim(0.5 - len(titles), 0.5)
    axis.set_yticks([-i for i in range(len(titles))], titles if labelled else [])


Place = Callable[[Any], tuple[float, float]]  # of a panel, by which rows and columns are ordered


def in_rows(things: Sequence[Any], columns: int) -> Place:
    """Place panels row by row, in the order of the things that they are of."""
    return lambda thing: divmod(things.index(thing), columns)


def by_kernel(setting: Setting) -> tuple[int, int]:
    """Place panels as in the paper's Figure 2: length scales in rows and kernels in columns."""
    return specs.LENGTH_SCALES.index(setting.length_scale), specs.KERNELS.index(setting.kernel)


@contextmanager
def titled_panels(
    path: Path,
    things: Iterable[Any],
    labels: tuple[str, str],
    place: Place = by_kernel,
    title: Callable[[Any], str] = lambda setting: setting.title,
    size: float = 10,
    **options: Any,
) -> Iterator[dict[Any, Any]]:
    """Make :func:`figure_files` with a panel for each setting or other thing, under its title."""
    places = {thing: place(thing) for thing in things}
    rows, columns = (sorted(set(keys)) for keys in zip(*places.values(), strict=True))
    with figure_files(path, len(rows), len(columns), labels, **options) as axes:
        panels = {
            thing: axes[rows.index(row), columns.index(column)]
            for thing, (row, column) in places.items()
        }
        for axis in axes.flat:
            axis.set_visible(axis in panels.values())
        for thing, axis in panels.items():
            axis.set_title(title(thing), fontsize=size)
        yield panels


# --- Figure 1: the bands of all bounds on one function, from the same observations

BANDS = {
    "CMM": "CMM", "DMM": "DMM", "AMM": "AMM", "AY": "AY-GP-UCB", "IGP": "IGP-UCB",
}  # titles by method # fmt: skip


@dataclass(frozen=True)
class Figure1(Job):
    """The bands on a Matern-3/2 function with length scale 0.5 on [0, 1] and ||f*|| = B.

    It is observed where the band of CMM is widest.
    """

    observations: int = 25
    seed: int = 1

    @property
    def name(self) -> str:
        """The number of observations and the seed."""
        return f"figure1-t{self.observations}-seed{self.seed}"

    def run(self) -> dict[str, Array]:
        """Return the grid and the truth on it, points and outcomes, and the ends of the bands.

        ``lower`` and ``upper`` are (methods, grid), in the order of ``BANDS``.
        """
        rng = np.random.default_rng(self.seed)
        kernel = Matern(length_scale=0.5, nu=1.5)
        centres, weights = rng.random((20, 1)), rng.standard_normal(20)
        function = RKHSFunction(kernel, centres, weights).rescaled(specs.NORM)
        scale = mixture_scale(kernel, dim=1, horizon=self.observations)
        sequence = ConfidenceSequence(
            kernel, specs.NORM, specs.NOISE, specs.DELTA, mixture_scale=scale
        )
        grid = np.linspace(0, 1, 401)[:, None]
        for _ in range(self.observations):
            lower, upper = sequence.bounds(grid)
            x = grid[np.argmax(upper - lower)]
            sequence.update(x, function(x[None])[0] + specs.NOISE * rng.standard_normal())
        bounds: list[Bound] = [CMM(), DMM(), AMM(), AY(), IGP(eta=2 / self.observations)]
        ends = np.array([sequence.bounds(grid, bound) for bound in bounds])
        return {
            "grid": grid[:, 0],
            "truth": function(grid),
            "points": sequence.points[:, 0],
            "outcomes": sequence.outcomes,
            "lower": ends[:, 0],
            "upper": ends[:, 1],
        }


def draw_figure1(found: dict[str, Array], path: Path) -> None:
    """Draw one panel for each method, with the same axes for all."""
    grid, bands = found["grid"], zip(found["lower"], found["upper"], strict=True)
    with figure_files(
        path, 1, len(BANDS), ("x", "f(x)"), (3.0, 3.4), 160, sharex=True, sharey=True
    ) as axes:
        for axis, (method, title), (lower, upper) in zip(
            axes[0], BANDS.items(), bands, strict=True
        ):
            colour = COLOURS[method]
            axis.fill_between(grid, lower, upper, color=colour, alpha=0.22, linewidth=0)
            axis.plot(grid, lower, color=colour, linewidth=1.2)
            axis.plot(grid, upper, color=colour, linewidth=1.2, label="bounds")
            axis.plot(grid, found["truth"], "k--", linewidth=1.2, label="truth")
            observed = found["points"], found["outcomes"]
            axis.plot(*observed, "k.", markersize=4, label="data", clip_on=False)
            axis.set_title(f"{title}\nmean width {np.mean(upper - lower):.2f}", fontsize=11)
            axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
            axis.margins(x=0)
        axes[0, 0].legend(frameon=False, fontsize=9)


# --- Figure 2 and those of the appendix: regret and time by round

SMOOTHED_STEPS = 51  # in the running median of a curve of time
# Of each curve on the page of the report: points, at most, and significant digits.
CURVE_POINTS, CURVE_DIGITS = 250, 5


def colours(runs: Iterable[MethodRuns]) -> dict[str, str]:
    """Return the colour of each method, the user's own in the order of the runs."""
    users_own = dict.fromkeys(one.method for one in runs if specs.is_users_own(one.method))
    return COLOURS | dict(zip(users_own, itertools.cycle(USERS_COLOURS), strict=False))


def regret_curve(one: MethodRuns) -> tuple[Array, Array]:
    """Return the mean cumulative regret by round, and its spread."""
    return one.regret.mean(axis=0), spread(one.regret)


def time_curve(one: MethodRuns) -> tuple[Array, Array]:
    """Return the smoothed milliseconds of each step, and their spread."""
    each = np.array([smoothed(seconds) for seconds in one.seconds])
    return 1e3 * smoothed(one.seconds.mean(axis=0)), 1e3 * spread(each)


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


def draw_regret(runs: list[MethodRuns], panels: dict[Setting, Any]) -> None:
    """Draw mean ± standard deviation of each method; the y axes end where those that learn do."""
    for setting, axis in panels.items():
        highest = 0.0
        for behind, method in enumerate(bounds_and_baselines(runs)):
            one, colour = cells.find(runs, setting, method), colours(runs)[method]
            if one is None:
                continue
            mean, reach = regret_curve(one)
            reach, rounds = np.nan_to_num(reach), 1 + np.arange(len(mean))
            # Where curves coincide the tighter bound is in front, and the user's own before all.
            order = 9.5 if specs.is_users_own(method) else 9 - behind
            axis.plot(
                rounds, mean, color=colour, label=name_of(method), linewidth=1.3, zorder=order
            )
            axis.fill_between(
                rounds, mean - reach, mean + reach, color=colour, alpha=0.15, linewidth=0
            )
            if method != "Random":
                highest = max(highest, float((mean + reach)[-1]))
        if highest:
            axis.set_ylim(0, 1.05 * highest)
        axis.margins(x=0)


def draw_times(runs: list[MethodRuns], path: Path) -> None:
    """Draw the time per step: all of it, zoomed in, and on a logarithmic scale."""
    curves = {one.method: time_curve(one)[0] for one in runs}
    with figure_files(path, 1, 3, ("round", "milliseconds")) as axes:
        for axis, heading in zip(axes[0], ("time per step", "zoomed in", "log scale"), strict=True):
            for method, curve in curves.items():
                style = "--" if method in RECURSIONS else "-"
                axis.plot(
                    1 + np.arange(len(curve)), curve, style, color=colours(runs)[method],
                    label=name_of(method), linewidth=1.3,
                )  # fmt: skip
            axis.set_title(heading, fontsize=10)
            axis.margins(x=0)
        slowest = max(curve.max() for method, curve in curves.items() if method != "DMM recursion")
        axes[0, 1].set_ylim(0, 1.1 * slowest)
        axes[0, 2].set_yscale("log")
        legend_above(axes[0, 0], 7)


@dataclass(frozen=True)
class CurvePanels:
    """Curves of all methods by round, with a panel for each setting.

    Attributes
    ----------
    timed : bool
        Whether the curves are of time, and not of regret.
    title : callable
        The title of a setting's panel.
    place : callable
        By what the rows and the columns of settings are ordered.
    """

    timed: bool = False
    title: Callable[[Setting], str] = lambda setting: setting.title
    place: Place = by_kernel

    def draw(self, runs: list[MethodRuns], path: Path) -> None:
        """Write the figure."""
        if self.timed:
            draw_times(runs, path)
            return
        labels = "round", "cumulative regret"
        settings = cells.settings_of(runs)
        with titled_panels(path, settings, labels, self.place, self.title) as panels:
            draw_regret(runs, panels)
            first = panels[settings[0]]
            legend_above(first, 7 * first.get_gridspec().ncols // 3)

    def columns(self, runs: list[MethodRuns]) -> int:
        """Return the number of columns of panels."""
        return len({self.place(setting)[1] for setting in cells.settings_of(runs)})

    def as_data(self, runs: list[MethodRuns]) -> dict[str, Any]:
        """Return the curves for the script of the report, whose panels go row by row."""
        return {
            "unit": "milliseconds" if self.timed else "cumulative regret",
            "log": self.timed,
            "panels": [
                self._panel(runs, setting)
                for setting in sorted(cells.settings_of(runs), key=self.place)
            ],
        }

    def _panel(self, runs: list[MethodRuns], setting: Setting) -> dict[str, Any]:
        curve = time_curve if self.timed else regret_curve
        order = list(colours(runs))
        members = [one for one in runs if one.setting == setting]
        count = min(one.regret.shape[1] for one in members)
        kept = np.unique(np.linspace(0, count - 1, min(count, CURVE_POINTS)).round().astype(int))
        curves = {}
        for one in sorted(members, key=lambda one: order.index(one.method)):
            mean, std = (_numbers(values[kept]) for values in curve(one))
            curves[one.method] = {"mean": mean, "std": std}
        return {"title": self.title(setting), "rounds": (1 + kept).tolist(), "curves": curves}


def _numbers(values: Array) -> list[float | None]:
    """Round numbers for JSON, which has no nan."""
    return [float(f"{v:.{CURVE_DIGITS}g}") if math.isfinite(v) else None for v in values.tolist()]


# --- the experiments


def _one_setting(choices: Choices) -> Setting:
    return Setting("matern-5/2", 0.5, rounds=choices.rounds)


def _timed_cells(choices: Choices) -> list[Cell]:
    methods = [*cells.chosen_methods(choices), *RECURSIONS]
    learning = [method for method in methods if method != "Random"]
    return cells.cells_in([_one_setting(choices)], choices, learning, timed=True)


EXPERIMENTS: dict[str, Experiment[Any, Any]] = {
    "figure1": Experiment(
        jobs=lambda choices: [Figure1()],
        gather=lambda jobs, store: store.read(jobs[0]),
        pictures=(
            Picture(
                "figure1",
                draw_figure1,
                "Figure 1",
                "Confidence bands of the five bounds on one "
                "test function, with the truth and the data",
            ),
        ),
        note="Narrower is better, as long as the dashed truth is inside.",
    ),
    "figure2": Experiment(table1.jobs, cells.collect, curves=CurvePanels()),
    "figure-time": Experiment(
        _timed_cells,
        cells.collect,
        curves=CurvePanels(timed=True),
        note="To choose an action and to learn from its reward: running medians, with "
        "nothing run beside it. Dashed: the appendix's recursions, in plain NumPy.",
    ),
    "figure-2d": Experiment(partial(table1.jobs, dim=2), cells.collect, curves=CurvePanels()),
    "figure-4d": Experiment(partial(table1.jobs, dim=4), cells.collect, curves=CurvePanels()),
    "figure-loose": Experiment(
        lambda choices: cells.cells_in(_one_setting(choices).loosened(), choices),
        cells.collect,
        curves=CurvePanels(
            title=lambda setting: setting.believed,
            place=lambda setting: (setting.noise_scale, setting.norm_bound),
        ),
        note=f"The learner believes what is above each panel; in truth σ = {specs.NOISE:g} and "
        f"B = {specs.NORM:g}.",
    ),
}
