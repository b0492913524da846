"""Measured regret under its proved bounds, with noise (along a run) and without (by horizon).

Of each setting three bounds are drawn, from the tightest: the data-dependent sum of widths; the
theorem with the information gain and the count of the run itself, which is all that its proof
uses; and the theorem before any data, with the largest information gain over points that fill
the cube. How fast the measured regret grows is fitted, beside what is proved of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.paper import results
from kernelbounds.paper.cells import Cell, cells, finished_sequence
from kernelbounds.paper.figures import COLOURS, draw_interval, figure_files
from kernelbounds.paper.results import Estimate, ResultStore
from kernelbounds.paper.specs import KERNELS, Choices, Experiment, Picture, Setting
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
    """The exponent of T in the regret: one fit a repetition, and their mean."""

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
    """Regret and its bounds, from the tightest; (repetitions, len(rounds)) each."""

    kernel: str
    noiseless: bool
    title: str
    rounds: Array
    regret: Array
    data_dependent: Array
    after: Array
    before: Array  # the same for all repetitions, (1, len(rounds))
    growth: FittedGrowth

    @property
    def all(self) -> tuple[Array, ...]:
        """The regret and its bounds, in the order of ``CURVE_COLOURS``."""
        return self.regret, self.data_dependent, self.after, self.before


def horizons(rounds: int) -> list[int]:
    """Return the T of runs without noise, whose ridge depends on T: each is a run of its own."""
    return sorted({max(2, rounds // part) for part in (1, 2, 4, 8)})


def jobs(choices: Choices) -> list[Cell]:
    """Return all cells, of AMM with noise and without."""
    kernels = [kernel for kernel in KERNELS if kernel in choices.kernels]
    settings = [Setting(kernel, 0.5, 3, choices.rounds) for kernel in kernels]
    settings += [
        Setting(kernel, 0.2, 2, horizon, noise_scale=0.0, noiseless=True)
        for kernel in kernels
        for horizon in horizons(choices.rounds)
    ]
    return cells(settings, choices, ["AMM"])


def write(members: list[Cell], store: ResultStore, folder: Path) -> str:
    """Make the figures and tables of the experiment, and return the table as text."""
    by_setting = results.grouped(members, lambda cell: cell.setting)
    noisy = [s for s in by_setting if not s.noiseless]
    quiet = results.grouped((s for s in by_setting if s.noiseless), lambda s: s.kernel).values()
    curves = [_running(setting, by_setting[setting], store) for setting in noisy]
    curves += [_by_horizon({s: by_setting[s] for s in group}, store) for group in quiet]
    _draw_regret(curves, folder)
    _draw_growth([one.growth for one in curves], folder)
    return results.write_texts(folder, "theory", as_text(curves), _as_csv(curves))


EXPERIMENT = Experiment(
    jobs,
    write,
    "Bounds from the tightest: the widths of the bands where the policy played; the "
    "theorem with the information gain of the run; the theorem with the largest information gain "
    "over points that fill the cube. Bands reach from the smallest to the largest repetition.",
    (
        Picture(
            "theory-regret", "Regret under its bounds", "Measured regret and three bounds above it"
        ),
        Picture("theory-growth", "Growth", "Fitted exponents of the regret beside the proved ones"),
    ),
)


def as_text(curves: list[RegretCurves]) -> str:
    """Return exponents, measured and proved, and how far the bounds are above the regret at T."""
    heads = ("setting", "exponent", "95 % interval", "proved", "near T", "data", "after", "before")
    rows: list[tuple[str, ...]] = [heads]
    for one in curves:
        found = one.growth.mean
        last, *ends = (float(values[:, -1].mean()) for values in one.all)
        interval = f"[{found.low:.3f}, {found.high:.3f}]" if math.isfinite(found.low) else ""
        shown = (f"{found.value:.3f}", interval, str(one.growth.rate))
        factors = (f"x {end / last:.3g}" for end in ends)
        rows.append((one.title, *shown, f"{one.growth.proved:.2f}", *factors))
    return "\n".join(results.aligned(rows)) + "\n"


def _running(setting: Setting, members: list[Cell], store: ResultStore) -> RegretCurves:
    """One run has all T: the mixture scale is that of its end."""
    found = [store.read(cell) for cell in members]
    sequences = [finished_sequence(cell, one) for cell, one in zip(members, found, strict=True)]
    runs = [run_bound(sequence) for sequence in sequences]
    a, C = sequences[0].assumptions, runs[0].value_bound
    T = np.arange(1.0, setting.rounds + 1)
    regret = np.cumsum([one["regret"] for one in found], axis=1)
    gains, counts = _largest(setting, runs[0].ridge)
    rate = regret_rate(setting.make_kernel(), setting.dim)
    title = f"{setting.title}, d = {setting.dim}"
    return RegretCurves(
        setting.kernel,
        False,
        title,
        T,
        regret,
        np.array([run.cumulative for run in runs]),
        np.array([regret_bound(a, T, run.gains, run.counts, C) for run in runs]),
        regret_bound(a, T, gains, counts, C)[None],
        FittedGrowth(title, rate, setting.rounds, running_slopes(regret)),
    )


def _by_horizon(groups: dict[Setting, list[Cell]], store: ResultStore) -> RegretCurves:
    """A run has one T, for which its ridge was chosen."""
    columns = []
    for setting, members in groups.items():
        found = [store.read(cell) for cell in members]
        runs = [run_bound(finished_sequence(c, f)) for c, f in zip(members, found, strict=True)]
        B, T, ridge, C = setting.norm_bound, setting.rounds, runs[0].ridge, runs[0].value_bound
        ends = [(run.gains[-1], run.counts[-1]) for run in runs]
        gains, counts = _largest(setting, ridge)
        column = (
            [one["regret"].sum() for one in found],
            [run.cumulative[-1] for run in runs],
            [float(noiseless_regret_bound(B, T, ridge, *end, C)) for end in ends],
            [float(noiseless_regret_bound(B, T, ridge, gains[-1], counts[-1], C))],
        )
        columns.append(column)
    regret, data, after, before = (np.array(rows).T for rows in zip(*columns, strict=True))
    setting, horizons = next(iter(groups)), np.array([float(s.rounds) for s in groups])
    rate = regret_rate(setting.make_kernel(), setting.dim, noiseless=True)
    title = f"{setting.title}, d = {setting.dim}, no noise"
    several = len(horizons) > 1
    exponents = slopes(horizons, regret) if several else np.full(len(regret), math.nan)
    growth = FittedGrowth(title, rate, int(horizons[-1]), exponents)
    return RegretCurves(setting.kernel, True, title, horizons, regret, data, after, before, growth)


def _largest(setting: Setting, ridge: float) -> tuple[Array, Array]:
    """Upper bounds on gamma_t and tau_t over points that fill the cube, t = 1 .. T."""
    points = sobol(CANDIDATES, setting.dim)
    found = maximum_information_gain(setting.make_kernel(), points, ridge, setting.rounds)
    return found.upper, self_consistent_counts(found.upper)


def _draw_regret(curves: list[RegretCurves], folder: Path) -> None:
    kernels = list(dict.fromkeys(one.kernel for one in curves))
    labels = "", "cumulative regret"
    with figure_files(folder, "theory-regret", 2, len(kernels), labels) as axes:
        for one in curves:
            axis = axes[int(one.noiseless), kernels.index(one.kernel)]
            marks = {"marker": "o", "markersize": 3} if one.noiseless else {}
            for (label, colour), values in zip(CURVE_COLOURS.items(), one.all, strict=True):
                mean = values.mean(axis=0)
                axis.plot(one.rounds, mean, color=colour, label=label, linewidth=1.3, **marks)
                if len(values) > 1:
                    ends = np.quantile(values, [0.0, 1.0], axis=0)
                    axis.fill_between(one.rounds, *ends, color=colour, alpha=0.15, linewidth=0)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_title(one.title, fontsize=9)
            axis.set_xlabel("T" if one.noiseless else "round")
            if one.noiseless:
                axis.minorticks_off()
                axis.set_xticks(one.rounds, [f"{rounds:g}" for rounds in one.rounds])
        axes.flat[0].legend(frameon=False, fontsize=7)


def _draw_growth(found: list[FittedGrowth], folder: Path) -> None:
    with figure_files(folder, "theory-growth", 1, 2) as axes:
        axis, beside = axes[0]
        places = np.arange(len(found))[::-1]
        for place, one in zip(places, found, strict=True):
            mean = one.mean
            draw_interval(axis, (mean.low, mean.high), place, COLOURS["AMM"])
            axis.plot(mean.value, place, "o", color=COLOURS["AMM"], label="measured, 95 %")
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


def _as_csv(curves: list[RegretCurves]) -> str:
    head = ("setting", "rounds", "regret", "data_dependent", "theorem_after", "theorem_before")
    rows = [
        [one.title, *results.numbers(*row)]
        for one in curves
        for row in zip(one.rounds, *(values.mean(axis=0) for values in one.all), strict=True)
    ]
    return results.csv_text(head, rows)
