"""Measured regret under its proved bounds, with noise (along a run) and without (by horizon).

Of each setting three bounds are drawn, from the tightest: the data-dependent sum of widths; the
theorem with the information gain and the count of the run itself, which is all that its proof
uses; and the theorem before any data, with the largest information gain over points that fill
the cube. How fast the measured regret grows is fitted, beside what is proved of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.paper import cells, results
from kernelbounds.paper.cells import Cell
from kernelbounds.paper.figures import COLOURS, draw_estimate, figure_files, titled_panels
from kernelbounds.paper.results import Estimate, ResultStore
from kernelbounds.paper.specs import KERNELS, Choices, Experiment, Picture, Rows, Setting
from kernelbounds.theory import (
    Rate,
    maximum_information_gain,
    noiseless_regret_bound,
    regret_bound,
    regret_rate,
    run_bound,
    self_consistent_counts,
)
from kernelbounds.theory.spectrum import sobol

FITTED_PART = 8  # with noise, the fit is over the rounds from T/8 to T
FITTED_POINTS = 40
CANDIDATES = 2048  # points in the cube over which the information gain is maximised
# The regret and its bounds, with a colour each.
CURVE_COLOURS = {
    "measured": COLOURS["AMM"],
    "data-dependent bound": COLOURS["DMM"],
    "theorem, after the run": COLOURS["CMM"],
    "theorem, before the run": COLOURS["Random"],
}


@dataclass(frozen=True)
class FittedGrowth:
    """The fitted exponent of T in the regret, for each repetition, and the mean of all."""

    title: str
    rate: Rate  # proved
    rounds: int
    exponents: Array  # (repetitions,)

    @property
    def mean(self) -> Estimate:
        """The mean of the fitted exponents, with its confidence interval."""
        return Estimate.of_mean(self.exponents)

    @property
    def proved(self) -> float:
        """The exponent of the proved rate near T, logarithms included."""
        return float(self.rate.local_exponent(math.sqrt(self.rounds / FITTED_PART * self.rounds)))


def slopes(rounds: Array, regret: Array) -> Array:
    """Fit ln regret to ln T by least squares; regret is (repetitions, len(rounds))."""
    logs = np.log(np.maximum(regret, 1e-12))
    return np.asarray(np.polyfit(np.log(rounds), logs.T, 1)[0])


def running_slopes(regret: Array) -> Array:
    """Fit the regret along a run, at points even in ln t from T/8 on; regret is cumulative."""
    total = regret.shape[1]
    first = max(total / FITTED_PART, 1)
    at = np.unique(np.geomspace(first, total, FITTED_POINTS).round().astype(int))
    return slopes(at.astype(np.float64), regret[:, at - 1])


@dataclass(frozen=True)
class RegretCurves:
    """The regret and its bounds in one setting, or without noise in one for each horizon."""

    setting: Setting  # the first of them
    rounds: Array  # T, (n,)
    curves: Sequence[Array]  # in the order of ``CURVE_COLOURS``; (repetitions, n), the last (1, n)
    growth: FittedGrowth


def horizons(rounds: int) -> list[int]:
    """Return the T of runs without noise, whose ridge depends on T: each is a run of its own."""
    return sorted({max(2, rounds // part) for part in (1, 2, 4, 8)})


def jobs(choices: Choices) -> list[Cell]:
    """Return all cells: AMM with noise and without."""
    kernels = [kernel for kernel in KERNELS if kernel in choices.kernels]
    settings = [Setting(kernel, 0.5, 3, choices.rounds) for kernel in kernels]
    settings += [
        Setting(kernel, 0.2, 2, horizon, noise_scale=0.0, noiseless=True)
        for kernel in kernels
        for horizon in horizons(choices.rounds)
    ]
    return cells.cells_in(settings, choices, ["AMM"])


def gather(members: list[Cell], store: ResultStore) -> list[RegretCurves]:
    """Compute the regret and its bounds, with noise and without, for each kernel."""
    families = results.grouped(members, lambda cell: (cell.setting.noiseless, cell.setting.kernel))
    return [_curves(family, store) for family in families.values()]


def as_text(curves: list[RegretCurves]) -> str:
    """Return a table of measured and proved exponents, and of the bounds over the regret at T."""
    heads = ("setting", "exponent", "95 % interval", "proved", "near T", "data", "after", "before")
    rows: list[tuple[str, ...]] = [heads]
    for one in curves:
        found = one.growth.mean
        last, *ends = (float(values[:, -1].mean()) for values in one.curves)
        shown = (f"{found.value:.3f}", found.interval(".3f"), str(one.growth.rate))
        factors = (f"x {end / last:.3g}" for end in ends)
        rows.append((one.growth.title, *shown, f"{one.growth.proved:.2f}", *factors))
    return "\n".join(results.aligned(rows)) + "\n"


def as_rows(curves: list[RegretCurves]) -> Rows:
    """Yield one row for each setting and round, or horizon."""
    names = ("rounds", "regret", "data_dependent", "theorem_after", "theorem_before")
    for one in curves:
        for row in zip(one.rounds, *(c.mean(axis=0) for c in one.curves), strict=True):
            yield {"setting": one.growth.title, **dict(zip(names, row, strict=True))}


def _curves(members: list[Cell], store: ResultStore) -> RegretCurves:
    """Compute the regret and its bounds along runs, or at each horizon where there is no noise."""
    by_setting = results.grouped(members, lambda cell: cell.setting)
    found = [_regret_and_bounds(one, group, store) for one, group in by_setting.items()]
    settings, setting, curves = list(by_setting), members[0].setting, found[0]
    rounds, title = np.arange(1.0, setting.rounds + 1), f"{setting.title}, d = {setting.dim}"
    if setting.noiseless:
        rounds, title = np.array([float(one.rounds) for one in settings]), f"{title}, no noise"
        ends = [[one[:, -1] for one in four] for four in zip(*found, strict=True)]
        curves = [np.stack(values, axis=1) for values in ends]
        exponents = np.full(len(curves[0]), math.nan)
        if len(rounds) > 1:
            exponents = slopes(rounds, curves[0])
    else:
        exponents = running_slopes(curves[0])
    rate = regret_rate(setting.make_kernel(), setting.dim, noiseless=setting.noiseless)
    growth = FittedGrowth(title, rate, settings[-1].rounds, exponents)
    return RegretCurves(setting, rounds, curves, growth)


def _regret_and_bounds(setting: Setting, members: list[Cell], store: ResultStore) -> list[Array]:
    """Compute the regret and its three bounds along the runs of a setting."""
    found = [store.read(cell) for cell in members]
    sequences = [cells.finished_sequence(*pair) for pair in zip(members, found, strict=True)]
    runs = [run_bound(sequence) for sequence in sequences]
    T, ridge, C = np.arange(1.0, setting.rounds + 1), runs[0].ridge, runs[0].value_bound

    def theorem(gains: Array, counts: Array) -> Array:
        if setting.noiseless:
            return noiseless_regret_bound(setting.norm_bound, T, ridge, gains, counts, C)
        return regret_bound(sequences[0].assumptions, T, gains, counts, C)

    return [
        np.cumsum([one["regret"] for one in found], axis=1),
        np.array([run.cumulative for run in runs]),
        np.array([theorem(run.gains, run.counts) for run in runs]),
        theorem(*_largest(setting, ridge))[None],
    ]


def _largest(setting: Setting, ridge: float) -> tuple[Array, Array]:
    """Return upper bounds on gamma_t and tau_t over points that fill the cube, t = 1 .. T."""
    points = sobol(CANDIDATES, setting.dim)
    found = maximum_information_gain(setting.make_kernel(), points, ridge, setting.rounds)
    return found.upper, self_consistent_counts(found.upper)


def draw_regret(curves: list[RegretCurves], path: Path) -> None:
    """Draw the regret and its bounds, with noise above and without below."""
    by_place = {(one.setting.noiseless, KERNELS.index(one.setting.kernel)): one for one in curves}
    with titled_panels(
        path, by_place, ("", "cumulative regret"), lambda at: at,
        lambda at: by_place[at].growth.title, size=9,
    ) as panels:  # fmt: skip
        for place, axis in panels.items():
            one = by_place[place]
            marks = {"marker": "o", "markersize": 3} if one.setting.noiseless else {}
            for (label, colour), values in zip(CURVE_COLOURS.items(), one.curves, strict=True):
                mean = values.mean(axis=0)
                axis.plot(one.rounds, mean, color=colour, label=label, linewidth=1.3, **marks)
                if len(values) > 1:
                    ends = np.quantile(values, [0.0, 1.0], axis=0)
                    axis.fill_between(one.rounds, *ends, color=colour, alpha=0.15, linewidth=0)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel("T" if one.setting.noiseless else "round")
            if one.setting.noiseless:
                axis.minorticks_off()
                axis.set_xticks(one.rounds, [f"{rounds:g}" for rounds in one.rounds])
        panels[min(panels)].legend(frameon=False, fontsize=7)


def draw_growth(curves: list[RegretCurves], path: Path) -> None:
    """Draw fitted exponents beside the proved ones."""
    found = [one.growth for one in curves]
    with figure_files(path, 1, 2) as axes:
        axis, beside = axes[0]
        places = np.arange(len(found))[::-1]
        for place, one in zip(places, found, strict=True):
            draw_estimate(axis, one.mean, place, COLOURS["AMM"], label="measured, 95 %")
            axis.plot(one.rate.power, place, "|", color="black", markersize=14, label="proved")
            axis.plot(one.proved, place, "|", color=COLOURS["Random"], markersize=14,
                      label="proved, with logarithms near T")  # fmt: skip
        axis.axvline(0.5, color="black", linewidth=0.6, linestyle=":")
        axis.set_yticks(places, [one.title for one in found], fontsize=7)
        axis.set_xlabel("exponent of T")
        axis.margins(y=0.12)
        beside.axis("off")
        handles, labels = axis.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        beside.legend(unique.values(), unique.keys(), frameon=False, loc="center left")


EXPERIMENT = Experiment(
    jobs,
    gather,
    {"txt": as_text},
    as_rows,
    (
        Picture(
            "theory-regret", draw_regret, "Regret under its bounds",
            "Measured regret and three bounds above it",
        ),
        Picture(
            "theory-growth", draw_growth, "Growth",
            "Fitted exponents of the regret beside the proved ones",
        ),
    ),
    note="Bounds from the tightest: the widths of the bands where the policy played; the "
    "theorem with the information gain of the run; the theorem with the largest information gain "
    "over points that fill the cube. Bands reach from the smallest to the largest repetition.",
)  # fmt: skip
