"""Bounds where points were fixed before the outcomes, and where not: tables and figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from kernelbounds.arrays import Array
from kernelbounds.paper import studies
from kernelbounds.paper.collecting import CLAIMS, GRID, PROCESS
from kernelbounds.paper.figures import COLOURS, figure_files
from kernelbounds.paper.store import Store
from kernelbounds.paper.studies import Study
from kernelbounds.paper.tables import aligned

KERNELS = {"matern-5/2": "Matérn-5/2", "rbf": "RBF", "matern-3/2": "Matérn-3/2"}
RULES = {
    "fixed": "random points",
    "policy": "KernelUCB",
    "looks": "looked at again and again",
    "hoped": "until as hoped",
    "striking": "until striking",
}
# What is claimed, and is wrong or not.
ANY, ONE, SHARE = f"any of {GRID} x", "one x", f"share of {GRID} x"
UNIFORM = ("CMM", "all x")  # together at all x
QUANTITIES = {"looks": "one x, at some look", "hoped": "mean of sites", "striking": "a contrast"}
COLOUR = dict(
    zip(CLAIMS, map(COLOURS.get, ("CMM", "DMM", "AMM", "Random", "AY", "IGP")), strict=True)
)
EXPLAINED = """\
CMM holds at all times and x, whatever the rule. All x and one x are FixedDesign() and
FixedDesign(simultaneous=False); with Gaussian, for Gaussian noise only. GP: mean ± {:.3f} and ± 2
posterior standard deviations of a Gaussian process, amplitude by maximum likelihood."""


@dataclass(frozen=True)
class Rate:
    """How many of some runs led to a wrong claim."""

    wrong: int
    runs: int

    @property
    def share(self) -> float:
        """Of the runs."""
        return self.wrong / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """Exact, of 95 %, by Clopper and Pearson."""
        found = binomtest(self.wrong, self.runs).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = (100 * end for end in self.interval)
        return f"{100 * self.share:.1f} % [{low:.1f}, {high:.1f}]"


@dataclass(frozen=True)
class Group:
    """All repetitions of a way of collecting, with a kernel and a law of noise."""

    study: Study  # the first of them
    arrays: dict[str, Array]  # see ``collecting.run_study``

    @property
    def kernel(self) -> str:
        """For the head of a row."""
        return f"{KERNELS[self.study.kernel]}, d = {self.study.dim}"

    def promised(self, claim: str, quantity: str) -> bool:
        """Whether a bound would hold for the quantity if the points were fixed beforehand.

        A Gaussian process promises nothing about one f*, but people read its band as if it did.
        A contrast that is chosen by outcomes is for bounds that hold at all x together.
        """
        if quantity == QUANTITIES["striking"]:
            return claim in UNIFORM
        if quantity == ANY:
            return claim in (*UNIFORM, *PROCESS)
        return claim != "one x, Gaussian" or self.study.law == "Gaussian"

    def rates(self) -> Iterator[tuple[str, int | None, bool, dict[str, Rate]]]:
        """By quantity, number of observations, and whether noise is fresh: rates by claim."""
        design = self.study.design
        if design in QUANTITIES:
            quantity = QUANTITIES[design]
            yield quantity, None, False, self._rates(self.arrays["wrong"], quantity)
            quantity = ONE if design == "looks" else quantity
            yield quantity, None, True, self._rates(self.arrays["again"], quantity)
            return
        for i, t in enumerate(self.study.times):
            yield ANY, t, False, self._rates(np.sign(self.arrays["missed"][:, i]), ANY)
            yield ONE, t, False, self._rates(self.arrays["wrong"][:, i], ONE)

    def widths(self) -> dict[int, Array]:
        """Mean half-widths by the number of observations; (claims,) each."""
        means = self.arrays["half_width"].mean(axis=0)
        result = dict(zip(self.study.times, means, strict=True))
        if "late_half_width" in self.arrays:
            result[studies.LATE] = self.arrays["late_half_width"].mean(axis=0)
        return result

    def _rates(self, wrong: Array, quantity: str) -> dict[str, Rate]:
        return {
            claim: Rate(int(wrong[:, i].sum()), len(wrong))
            for i, claim in enumerate(CLAIMS)
            if self.promised(claim, quantity)
        }


def write(members: list[Study], store: Store, folder: Path) -> str:
    """Make the tables and the figure of the experiment, and return the tables as text."""
    found = collect(members, store)
    text = as_text(found)
    (folder / "designs.txt").write_text(text, encoding="utf-8")
    (folder / "designs.csv").write_text(as_csv(found), encoding="utf-8")
    draw(found, folder)
    return text


def collect(members: list[Study], store: Store) -> list[Group]:
    """The repetitions of each way together, in order."""
    groups: dict[tuple[str, str, str], list[Study]] = {}
    for one in members:
        groups.setdefault((one.design, one.kernel, one.law), []).append(one)
    result = []
    for group in groups.values():
        parts = [store.read(one) for one in group]
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        result.append(Group(group[0], arrays))
    return result


def as_text(found: list[Group]) -> str:
    """For the terminal: widths, coverage with fixed points, and with the rules that look."""
    widths = [["kernel", "t", *CLAIMS]]
    for one in _of(found, "fixed"):
        if one.study.law == "Gaussian":
            for count, means in one.widths().items():
                widths.append([one.kernel, f"{count}", *(f"{mean:.3f}" for mean in means)])
    fixed = [["kernel", "noise", "t", "wrong at", *CLAIMS]]
    for one in _of(found, "fixed"):
        for quantity, t, _, rates in one.rates():
            fixed.append([one.kernel, one.study.law, f"{t}", quantity, *_shown(rates)])
            if quantity == ONE and t is not None:
                missed = one.arrays["missed"][:, one.study.times.index(t)].mean(axis=0)
                texts = [
                    f"{100 * share:.2f} %" if claim in rates else ""
                    for claim, share in zip(CLAIMS, missed, strict=True)
                ]
                fixed.append(["", "", "", SHARE, *texts])
    chosen = [["rule", "kernel", "noise", "t", "wrong about", *CLAIMS]]
    for one in found:
        if one.study.design == "fixed":
            continue
        for quantity, t, fresh, rates in one.rates():
            mean = f"{t or round(float(one.arrays['count'].mean()))}"
            rule = "  once more, fresh noise" if fresh else RULES[one.study.design]
            chosen.append([rule, one.kernel, one.study.law, mean, quantity, *_shown(rates)])
    n, delta = len(_of(found, "fixed")[0].arrays["wrong"]), studies.DELTA
    headings = {
        f"Mean half-widths at {GRID} random x, δ = {delta:g}, Gaussian noise, points fixed": widths,
        f"Points fixed: share of {n} runs in which a claim was wrong [95 %], and mean share of x "
        f"where it was; δ = {delta:g}": fixed,
        "Points chosen by outcomes: the same; t is a mean where it is random": chosen,
    }
    parts = ["\n".join([heading, *aligned(rows), ""]) for heading, rows in headings.items()]
    return "\n".join([*parts, EXPLAINED.format(PROCESS["GP"]), ""])


def as_csv(found: list[Group]) -> str:
    """One row for each way of collecting, number of observations, quantity and claim."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ["design", "kernel", "dim", "noise", "observations", "quantity", "fresh_noise", "claim"]
    writer.writerow([*names, "wrong", "runs", "share", "low", "high", "half_width", "share_missed"])
    for one in found:
        s = one.study
        for quantity, t, fresh, rates in one.rates():
            count = t or f"{one.arrays['count'].mean():.6g}"
            head = [s.design, s.kernel, s.dim, s.law, count, quantity, int(fresh)]
            for claim, rate in rates.items():
                ends = [f"{x:.6g}" for x in (rate.share, *rate.interval)]
                more = ["", ""]
                if t is not None:
                    i, j = s.times.index(t), CLAIMS.index(claim)
                    means = (one.arrays[name][:, i, j].mean() for name in ("half_width", "missed"))
                    more = [f"{mean:.6g}" for mean in means]
                writer.writerow([*head, claim, rate.wrong, rate.runs, *ends, *more])
        if s.design == "fixed" and studies.LATE in (late := one.widths()):
            for claim, width in zip(CLAIMS, late[studies.LATE], strict=True):
                head = [s.design, s.kernel, s.dim, s.law, studies.LATE, "half-width", 0, claim]
                writer.writerow([*head, *[""] * 5, f"{width:.6g}", ""])
    return out.getvalue()


def draw(found: list[Group], folder: Path) -> None:
    """A column for each kernel: half-widths above, and below how often claims were wrong."""
    kernels = list(dict.fromkeys(one.study.kernel for one in found))
    designs = list(dict.fromkeys(one.study.design for one in found))
    with figure_files(folder, "designs", 2, len(kernels)) as axes:
        for column, kernel in enumerate(kernels):
            above, below = axes[:, column]
            members = [
                one for one in found if (one.study.kernel, one.study.law) == (kernel, "Gaussian")
            ]
            for one in members:
                if one.study.design == "fixed":
                    _draw_widths(above, one.widths())
                    above.set_title(f"{one.kernel}, ℓ = {studies.LENGTH_SCALE:g}", fontsize=10)
                _draw_rates(below, one, -designs.index(one.study.design))
            below.axvline(studies.DELTA, color="black", linewidth=0.6)
            below.set_xlim(-0.03, 1.03)
            below.set_ylim(0.5 - len(designs), 0.5)
            places = [-i for i in range(len(designs))]
            below.set_yticks(places, [RULES[d] for d in designs] if not column else [])
            above.set_xlabel("observations")
            below.set_xlabel("share of runs with a wrong claim")
        axes[0, 0].set_ylabel("mean half-width")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(
            handles, labels, loc="outside upper center", ncols=len(CLAIMS), fontsize=8,
            frameon=False,
        )  # fmt: skip


def _draw_widths(axis: Any, widths: dict[int, Array]) -> None:
    for i, claim in enumerate(CLAIMS):
        values = [means[i] for means in widths.values()]
        axis.plot(list(widths), values, "o-", color=COLOUR[claim], label=claim, markersize=3)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(list(widths), [f"{t}" for t in widths])
    low, high = axis.get_ylim()
    shown = [tick for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5) if low <= tick <= high]
    axis.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axis.minorticks_off()


def _draw_rates(axis: Any, one: Group, place: float) -> None:
    """At the last number of observations; bounds for all x at any of them, the others at one."""
    last = one.study.times[-1]
    # Filled symbols come last, and are seen where others are in the same place.
    for quantity, t, fresh, rates in sorted(one.rates(), key=lambda found: not found[2]):
        if t not in (None, last):
            continue
        for claim, rate in rates.items():
            if t is not None and (claim in UNIFORM) != (quantity == ANY):
                continue
            height = place + 0.35 - 0.14 * CLAIMS.index(claim)
            axis.plot(rate.interval, [height, height], color=COLOUR[claim], linewidth=1)
            face = "white" if fresh else COLOUR[claim]
            axis.plot(
                rate.share, height, "o", color=COLOUR[claim], markerfacecolor=face, markersize=3.5
            )


def _of(found: list[Group], design: str) -> list[Group]:
    return [one for one in found if one.study.design == design]


def _shown(rates: dict[str, Rate]) -> list[str]:
    return [str(rates[claim]) if claim in rates else "" for claim in CLAIMS]
