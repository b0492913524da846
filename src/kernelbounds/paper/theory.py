"""Measured regret under its proved bounds, with noise (along a run) and without (by horizon).

Of each setting three bounds are drawn, from the tightest: the data-dependent sum of widths; the
theorem with the information gain and the count of the run itself, which is all that its proof
uses; and the theorem before any data, with the largest information gain over points that fill
the cube.

How fast the measured regret grows, beside what is proved.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from kernelbounds.arrays import Array
from kernelbounds.paper import specs
from kernelbounds.paper.cells import sequence_of
from kernelbounds.paper.figures import COLOURS, figure_files
from kernelbounds.paper.specs import Cell, Setting
from kernelbounds.paper.store import Store
from kernelbounds.paper.tables import aligned, title
from kernelbounds.theory import (
    Rate,
    RunBound,
    maximum_information_gain,
    noiseless_regret_bound,
    regret_bound,
    regret_rate,
    run_bound,
    self_consistent_counts,
)
from kernelbounds.theory.spectrum import sobol

PARTS = 8  # with noise, the fit is over the rounds from T/8 to T
POINTS = 40


@dataclass(frozen=True)
class Growth:
    """The exponent of T in the regret: one fit a repetition, and their mean."""

    title: str
    rate: Rate  # proved
    rounds: int
    exponents: Array  # (repetitions,)

    @property
    def mean(self) -> float:
        """Of the fitted exponents."""
        return float(self.exponents.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % confidence interval for the mean, by Student's t."""
        count = len(self.exponents)
        if count < 2:
            return -math.inf, math.inf
        error = float(self.exponents.std(ddof=1)) / math.sqrt(count)
        reach = float(student.ppf(0.975, count - 1)) * error
        return self.mean - reach, self.mean + reach

    @property
    def proved(self) -> float:
        """The exponent of the proved rate near T, logarithms included."""
        return float(self.rate.local_exponent(math.sqrt(self.rounds / PARTS * self.rounds)))


def slopes(rounds: Array, regret: Array) -> Array:
    """Least squares of ln regret on ln T; regret is (repetitions, len(rounds))."""
    logs = np.log(np.maximum(regret, 1e-12))
    return np.asarray(np.polyfit(np.log(rounds), logs.T, 1)[0])


def running_slopes(regret: Array) -> Array:
    """The same along running sums of T rounds, at points even in ln t from T/8 on."""
    total = regret.shape[1]
    at = np.unique(np.geomspace(max(total / PARTS, 1), total, POINTS).round().astype(int))
    return slopes(at.astype(np.float64), regret[:, at - 1])


CANDIDATES = 2048  # points in the cube over which the information gain is maximised
LABELS = ("measured", "data-dependent bound", "theorem, after the run", "theorem, before the run")


@dataclass(frozen=True)
class Curves:
    """Regret and its bounds, from the tightest; (repetitions, len(rounds)) or (len(rounds),)."""

    kernel: str
    noiseless: bool
    title: str
    rounds: Array
    regret: Array
    data_dependent: Array
    after: Array
    before: Array
    growth: Growth


def write(cells: list[Cell], store: Store, folder: Path) -> str:
    """Make the figures and tables of the experiment, and return the table as text."""
    groups: dict[Setting, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.setting, []).append(cell)
    curves = [_running(s, members, store) for s, members in groups.items() if not s.noiseless]
    for kernel in specs.KERNELS:
        quiet = {s: m for s, m in groups.items() if s.noiseless and s.kernel == kernel}
        if quiet:
            curves.append(_by_horizon(quiet, store))
    _draw_regret(curves, folder)
    _draw_growth([one.growth for one in curves], folder)
    text = as_text(curves)
    (folder / "theory.txt").write_text(text, encoding="utf-8")
    (folder / "theory.csv").write_text(_as_csv(curves), encoding="utf-8")
    return text


def as_text(curves: list[Curves]) -> str:
    """Exponents, measured and proved, and how far the bounds are above the regret at the end."""
    heads = ("setting", "exponent", "95 % interval", "proved", "near T", "data", "after", "before")
    rows: list[tuple[str, ...]] = [heads]
    for one in curves:
        low, high = one.growth.interval
        last = float(one.regret[:, -1].mean())
        ends = (one.data_dependent[:, -1].mean(), one.after[:, -1].mean(), one.before[-1])
        interval = f"[{low:.3f}, {high:.3f}]" if math.isfinite(low) else ""
        shown = (f"{one.growth.mean:.3f}", interval, str(one.growth.rate))
        factors = (f"x {float(end) / last:.3g}" for end in ends)
        rows.append((one.title, *shown, f"{one.growth.proved:.2f}", *factors))
    return "\n".join(aligned(rows)) + "\n"


def _running(setting: Setting, members: list[Cell], store: Store) -> Curves:
    """One run has all T: the mixture scale is that of its end."""
    found = [store.read(cell) for cell in members]
    runs = [run_bound(sequence_of(c, f)) for c, f in zip(members, found, strict=True)]
    a = sequence_of(members[0], found[0]).assumptions
    T = np.arange(1.0, setting.rounds + 1)
    regret = np.cumsum([one["regret"] for one in found], axis=1)
    gains, counts = _largest(setting, runs[0].ridge)
    C = runs[0].value_bound
    rate = regret_rate(setting.make_kernel(), setting.dim)
    name = f"{title(setting)}, d = {setting.dim}"
    return Curves(
        setting.kernel,
        False,
        name,
        T,
        regret,
        np.array([run.cumulative for run in runs]),
        np.array([regret_bound(a, T, run.gains, run.counts, C) for run in runs]),
        regret_bound(a, T, gains, counts, C),
        Growth(name, rate, setting.rounds, running_slopes(regret)),
    )


def _by_horizon(groups: dict[Setting, list[Cell]], store: Store) -> Curves:
    """A run has one T, for which its ridge was chosen."""
    T = np.array([float(setting.rounds) for setting in groups])
    regret, data, after, before = [], [], [], []
    for setting, members in groups.items():
        found = [store.read(cell) for cell in members]
        runs = [run_bound(sequence_of(c, f)) for c, f in zip(members, found, strict=True)]
        gains, counts = _largest(setting, runs[0].ridge)
        regret.append([one["regret"].sum() for one in found])
        data.append([run.cumulative[-1] for run in runs])
        after.append([_noiseless(setting, run, run.gains[-1], run.counts[-1]) for run in runs])
        before.append(_noiseless(setting, runs[0], gains[-1], counts[-1]))
    setting = next(iter(groups))
    rate = regret_rate(setting.make_kernel(), setting.dim, noiseless=True)
    name = f"{title(setting)}, d = {setting.dim}, no noise"
    measured = np.array(regret).T
    exponents = slopes(T, measured) if len(T) > 1 else np.full(len(measured), math.nan)
    return Curves(
        setting.kernel, True, name, T, measured, np.array(data).T, np.array(after).T,
        np.array(before), Growth(name, rate, int(T[-1]), exponents),
    )  # fmt: skip


def _noiseless(setting: Setting, run: RunBound, gain: float, count: float) -> float:
    B = setting.norm_bound
    return float(noiseless_regret_bound(B, setting.rounds, run.ridge, gain, count, run.value_bound))


def _largest(setting: Setting, ridge: float) -> tuple[Array, Array]:
    """Upper bounds on gamma_t and tau_t over points that fill the cube, t = 1 .. T."""
    points = sobol(CANDIDATES, setting.dim)
    found = maximum_information_gain(setting.make_kernel(), points, ridge, setting.rounds)
    return found.upper, self_consistent_counts(found.upper)


def _draw_regret(curves: list[Curves], folder: Path) -> None:
    kernels = list(dict.fromkeys(one.kernel for one in curves))
    colours = (COLOURS["AMM"], COLOURS["DMM"], COLOURS["CMM"], COLOURS["Random"])
    with figure_files(folder, "theory-regret", 2, len(kernels)) as axes:
        for one in curves:
            axis = axes[int(one.noiseless), kernels.index(one.kernel)]
            marks = {"marker": "o", "markersize": 3} if one.noiseless else {}
            for label, colour, values in zip(
                LABELS, colours, (one.regret, one.data_dependent, one.after, one.before),
                strict=True,
            ):  # fmt: skip
                mean = values if values.ndim == 1 else values.mean(axis=0)
                axis.plot(one.rounds, mean, color=colour, label=label, linewidth=1.3, **marks)
                if values.ndim == 2 and len(values) > 1:
                    ends = np.quantile(values, [0.0, 1.0], axis=0)
                    axis.fill_between(one.rounds, *ends, color=colour, alpha=0.15, linewidth=0)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_title(one.title, fontsize=9)
            axis.set_xlabel("T" if one.noiseless else "round")
            if one.noiseless:
                axis.minorticks_off()
                axis.set_xticks(one.rounds, [f"{rounds:g}" for rounds in one.rounds])
        for axis in axes[:, 0]:
            axis.set_ylabel("cumulative regret")
        axes.flat[0].legend(frameon=False, fontsize=7)


def _draw_growth(found: list[Growth], folder: Path) -> None:
    with figure_files(folder, "theory-growth", 1, 2) as axes:
        axis: Any = axes[0, 0]
        places = np.arange(len(found))[::-1]
        for place, one in zip(places, found, strict=True):
            low, high = one.interval
            if math.isfinite(low):
                axis.plot([low, high], [place, place], color=COLOURS["AMM"], linewidth=2)
            axis.plot(one.mean, place, "o", color=COLOURS["AMM"], label="measured, 95 %")
            axis.plot(one.rate.power, place, "|", color="black", markersize=14, label="proved")
            axis.plot(one.proved, place, "|", color=COLOURS["Random"], markersize=14,
                      label="proved, with logarithms near T")  # fmt: skip
        axis.axvline(0.5, color="black", linewidth=0.6, linestyle=":")
        axis.set_yticks(places, [one.title for one in found], fontsize=7)
        axis.set_xlabel("exponent of T")
        axis.margins(y=0.12)
        axes[0, 1].axis("off")
        handles, labels = axis.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        axes[0, 1].legend(unique.values(), unique.keys(), frameon=False, loc="center left")


def _as_csv(curves: list[Curves]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("rounds", "regret", "data_dependent", "theorem_after", "theorem_before")
    writer.writerow(["setting", *names])
    for one in curves:
        means = (one.regret.mean(0), one.data_dependent.mean(0), one.after.mean(0), one.before)
        for row in zip(one.rounds, *means, strict=True):
            writer.writerow([one.title, *(f"{value:.6g}" for value in row)])
    return out.getvalue()
