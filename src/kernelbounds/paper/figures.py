"""The paper's figures of regret and time by round: as PNG and SVG, and as data for the report.

The report's script draws the same curves in the same panels as the figures.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.paper import cells, specs, table1
from kernelbounds.paper.cells import Cell, MethodRuns
from kernelbounds.paper.drawing import (
    COLOURS,
    USERS_COLOURS,
    Place,
    by_kernel,
    figure_files,
    legend_above,
    setting_panels,
)
from kernelbounds.paper.recursion import RECURSIONS
from kernelbounds.paper.specs import Choices, Experiment, Setting
from kernelbounds.paper.table1 import bounds_and_baselines, name_of

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
        with setting_panels(path, settings, labels, self.place, self.title) as panels:
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
        found = {method: cells.find(runs, setting, method) for method in colours(runs)}
        members = {method: one for method, one in found.items() if one}
        count = min(one.regret.shape[1] for one in members.values())
        kept = np.unique(np.linspace(0, count - 1, min(count, CURVE_POINTS)).round().astype(int))
        curves = {}
        for method, one in members.items():
            mean, std = (_numbers(values[kept]) for values in curve(one))
            curves[method] = {"mean": mean, "std": std}
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


def _cells_in_dim(dim: int, choices: Choices) -> list[Cell]:
    return cells.cells_in(choices.settings(dim), choices)


EXPERIMENTS: dict[str, Experiment[Any, Any]] = {
    "figure2": Experiment(table1.jobs, cells.collect, curves=CurvePanels()),
    "figure-time": Experiment(
        _timed_cells,
        cells.collect,
        curves=CurvePanels(timed=True),
        note="To choose an action and to learn from its reward: running medians, with "
        "nothing run beside it. Dashed: the appendix's recursions, in plain NumPy.",
    ),
    "figure-2d": Experiment(partial(_cells_in_dim, 2), cells.collect, curves=CurvePanels()),
    "figure-4d": Experiment(partial(_cells_in_dim, 4), cells.collect, curves=CurvePanels()),
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
