"""How often claims about f* were wrong, and how wide they were, by how the data came about."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.paper import designs, results, specs
from kernelbounds.paper.designs import (
    CLAIMS,
    DELTA,
    DEVIATIONS,
    GRID_SIZE,
    LENGTH_SCALE,
    DesignRuns,
    jobs,
)
from kernelbounds.paper.figures import (
    COLOURS,
    draw_rate,
    figure_files,
    legend_above,
    log_axes,
    rate_axes,
)
from kernelbounds.paper.results import ErrorRate, Repetitions, ResultStore
from kernelbounds.paper.specs import Experiment, Picture, Rows

RULE_TITLES = {
    "fixed": "random points",
    "policy": "KernelUCB",
    "looks": "looked at again and again",
    "hoped": "until as hoped",
    "striking": "until striking",
}
# What is claimed, and is wrong or not.
ANY, ONE, SHARE = f"any of {GRID_SIZE} x", "one x", f"share of {GRID_SIZE} x"
QUANTITIES = {"looks": "one x, at some look", "hoped": "mean of sites", "striking": "a contrast"}
UNIFORM_CLAIMS = ("CMM", "all x")  # those that hold at all x together
LIKE = ("CMM", "DMM", "AMM", "Random", "AY", "IGP")  # the methods whose colours the claims have
CLAIM_COLOURS = {claim: COLOURS[method] for claim, method in zip(CLAIMS, LIKE, strict=True)}
EXPLANATION = """
CMM holds at all times and x, whatever the rule. All x and one x are FixedDesign() and
FixedDesign(simultaneous=False); with Gaussian, for Gaussian noise only. GP: mean ± {:.3f} and ± 2
posterior standard deviations of a Gaussian process, amplitude by maximum likelihood.
"""


class DesignGroup(Repetitions[DesignRuns]):
    """All data sets that were collected in one way, with a kernel and a law of noise.

    The arrays are those of :meth:`DesignRuns.run`, of all repetitions together.
    """

    @property
    def kernel(self) -> str:
        """The kernel and the dimension, for the head of a row."""
        return f"{specs.KERNEL_TITLES[self.job.kernel]}, d = {self.job.dim}"

    def promised(self, claim: str, quantity: str) -> bool:
        """Whether a bound would hold for the quantity if the points were fixed beforehand.

        A Gaussian process promises nothing about one f*, but people read its band as if it did.
        A contrast that is chosen by outcomes is for bounds that hold at all x together.
        """
        if quantity == QUANTITIES["striking"]:
            return claim in UNIFORM_CLAIMS
        if quantity == ANY:
            return claim in (*UNIFORM_CLAIMS, *DEVIATIONS)
        return claim != "one x, Gaussian" or self.job.law == "Gaussian"

    def rates(self) -> Iterator[tuple[str, int | None, bool, dict[str, ErrorRate]]]:
        """Yield the quantity, the number of observations, whether noise is fresh, and the rates."""
        if self.job.design in QUANTITIES:
            quantity = QUANTITIES[self.job.design]
            yield quantity, None, False, self._rates(self["wrong"], quantity)
            quantity = ONE if self.job.design == "looks" else quantity
            yield quantity, None, True, self._rates(self["again"], quantity)
            return
        for i, t in enumerate(self.job.times):
            yield ANY, t, False, self._rates(np.sign(self["missed"][:, i]), ANY)
            yield ONE, t, False, self._rates(self["wrong"][:, i], ONE)

    def widths(self) -> dict[int, Array]:
        """Return mean half-widths by the number of observations; (claims,) each."""
        means = self["half_width"].mean(axis=0)
        result = dict(zip(self.job.times, means, strict=True))
        if "late_half_width" in self.arrays:
            result[designs.LATE_TIME] = self["late_half_width"].mean(axis=0)
        return result

    def _rates(self, wrong: Array, quantity: str) -> dict[str, ErrorRate]:
        return {
            claim: ErrorRate(int(wrong[:, i].sum()), len(wrong))
            for i, claim in enumerate(CLAIMS)
            if self.promised(claim, quantity)
        }


def gather(members: list[DesignRuns], store: ResultStore) -> list[DesignGroup]:
    """Read all data sets, and put those of all repetitions together."""
    return [
        DesignGroup(one.job, {name: np.concatenate(parts) for name, parts in one.arrays.items()})
        for one in results.repetitions(members, store)
    ]


def as_text(found: list[DesignGroup]) -> str:
    """Return tables of widths, and of coverage with fixed points and with rules that look."""
    widths = [["kernel", "t", *CLAIMS]]
    fixed = [["kernel", "noise", "t", "wrong at", *CLAIMS]]
    chosen = [["rule", "kernel", "noise", "t", "wrong about", *CLAIMS]]
    for one in found:
        kernel, law = one.kernel, one.job.law
        if one.job.design == "fixed" and law == "Gaussian":
            for count, means in one.widths().items():
                widths.append([kernel, f"{count}", *(f"{mean:.3f}" for mean in means)])
        for quantity, t, fresh, rates in one.rates():
            shown = [str(rates.get(claim, "")) for claim in CLAIMS]
            if one.job.design != "fixed":
                mean = f"{t or round(float(one['count'].mean()))}"
                rule = "  once more, fresh noise" if fresh else RULE_TITLES[one.job.design]
                chosen.append([rule, kernel, law, mean, quantity, *shown])
                continue
            fixed.append([kernel, law, f"{t}", quantity, *shown])
            if quantity == ONE and t is not None:
                missed = one["missed"][:, one.job.times.index(t)].mean(axis=0)
                texts = [
                    f"{100 * share:.2f} %" if claim in rates else ""
                    for claim, share in zip(CLAIMS, missed, strict=True)
                ]
                fixed.append(["", "", "", SHARE, *texts])
    n = len(next(one for one in found if one.job.design == "fixed").arrays["wrong"])
    delta = f"δ = {DELTA:g}"
    tables = {
        f"Mean half-widths at {GRID_SIZE} random x, {delta}, Gaussian noise, points fixed": widths,
        f"Points fixed: share of {n} runs in which a claim was wrong [95 %], and mean share of x "
        f"where it was; {delta}": fixed,
        "Points chosen by outcomes: the same; t is a mean where it is random": chosen,
    }
    return results.under_headings(tables) + EXPLANATION.format(DEVIATIONS["GP"])


def as_rows(found: list[DesignGroup]) -> Rows:
    """Yield one row for each way of collecting, number of observations, quantity and claim."""
    for one in found:
        job = one.job
        way = {"design": job.design, "kernel": job.kernel, "dim": job.dim, "noise": job.law}
        for quantity, t, fresh, rates in one.rates():
            about = {
                "observations": t or one["count"].mean(),
                "quantity": quantity,
                "fresh_noise": int(fresh),
            }
            for claim, rate in rates.items():
                half_width = missed = math.nan
                if t is not None:
                    at = job.times.index(t), CLAIMS.index(claim)
                    half_width, missed = (
                        one[name][:, *at].mean() for name in ("half_width", "missed")
                    )
                low, high = rate.interval
                measured = {
                    "claim": claim,
                    "wrong": rate.wrong,
                    "runs": rate.runs,
                    "share": rate.share,
                    "low": low,
                    "high": high,
                    "half_width": half_width,
                    "share_missed": missed,
                }
                yield way | about | measured
        if job.design == "fixed" and designs.LATE_TIME in (late := one.widths()):
            about = {"observations": designs.LATE_TIME, "quantity": "half-width", "fresh_noise": 0}
            for claim, width in zip(CLAIMS, late[designs.LATE_TIME], strict=True):
                yield way | about | {"claim": claim, "half_width": width}


def draw(found: list[DesignGroup], path: Path) -> None:
    """Draw half-widths above and rates of errors below, with a column for each kernel."""
    kernels = list(dict.fromkeys(one.job.kernel for one in found))
    designs = list(dict.fromkeys(one.job.design for one in found))
    with figure_files(path, 2, len(kernels)) as axes:
        for one in found:
            if one.job.law != "Gaussian":
                continue
            above, below = axes[:, kernels.index(one.job.kernel)]
            if one.job.design == "fixed":
                _draw_widths(above, one.widths())
                title = f"{one.kernel}, ℓ = {LENGTH_SCALE:g}"
                above.set_title(title, fontsize=10)
            _draw_rates(below, one, -designs.index(one.job.design))
        for axis in axes[0]:
            axis.set_xlabel("observations")
        for column, axis in enumerate(axes[1]):
            rate_axes(axis, DELTA, [RULE_TITLES[design] for design in designs], not column)
            axis.set_xlabel("share of runs with a wrong claim")
        axes[0, 0].set_ylabel("mean half-width")
        legend_above(axes[0, 0], len(CLAIMS))


def _draw_widths(axis: Any, widths: dict[int, Array]) -> None:
    for i, claim in enumerate(CLAIMS):
        values = [means[i] for means in widths.values()]
        axis.plot(list(widths), values, "o-", color=CLAIM_COLOURS[claim], label=claim, markersize=3)
    log_axes(axis, widths, (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5))


def _draw_rates(axis: Any, one: DesignGroup, place: float) -> None:
    """Draw the rates at the last time: at any x for claims about all x, else at one x."""
    # Filled symbols come last, and are seen where others are in the same place.
    for quantity, t, fresh, rates in sorted(one.rates(), key=lambda found: not found[2]):
        if t not in (None, one.job.times[-1]):
            continue
        for claim, rate in rates.items():
            if t is not None and (claim in UNIFORM_CLAIMS) != (quantity == ANY):
                continue
            height, colour = place + 0.35 - 0.14 * CLAIMS.index(claim), CLAIM_COLOURS[claim]
            draw_rate(axis, rate, height, colour, hollow=fresh)


EXPERIMENT = Experiment(
    jobs,
    gather,
    {"txt": as_text},
    as_rows,
    (Picture("designs", draw, "Designs", "Half-widths against observations, and rates of errors"),),
    note="Above: mean half-widths where points were fixed before the outcomes. Below: how "
    "often a claim was wrong, with exact 95 % intervals, by how the points came about; the line is "
    "δ. Open symbols: the same points measured again, with fresh noise.",
)
