"""Width, time and memory against the number of observations: tables, figure, and a model.

The model says what a cluster of W workers would take for the time of t observations with m inducing
points. Of R ranges all but the first and the last are passed over twice (``sequence/cluster.py``),

    seconds = t (growth + sums (1 - 2/R)) / W  +  2 log2(W) (8 m^2 / NETWORK + TASK)  +  bounds,

where growth and sums, a row, and bounds are measured, and what a cluster is made of is assumed.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelbounds.paper import loads
from kernelbounds.paper.figures import COLOURS, figure_files
from kernelbounds.paper.loads import Load
from kernelbounds.paper.store import Store
from kernelbounds.paper.tables import aligned
from kernelbounds.sequence.cluster import longest_range

KERNELS = {"rbf": "RBF", "matern-5/2": "Matérn-5/2"}
ENGINES = {
    "exact": "exact",
    "sparse": "sparse, given points",
    "grown": "sparse, grown online",
    "merged": f"exact, {loads.SITES} different points",
}
COLOUR = dict(zip(ENGINES, map(COLOURS.get, ("IGP", "CMM", "DMM", "AY")), strict=True))
# A cluster as one rents it: bytes a second between two machines, and seconds for a task besides
# what it computes.
NETWORK, TASK = 1e8, 0.05
WORKERS, AHEAD = 100, (1_000_000, 10_000_000, 100_000_000)
QUANTITIES = {"half_width": "mean half-width", "seconds": "seconds", "megabytes": "MB"}


@dataclass(frozen=True)
class Weighed:
    """What a load took; see ``weighing.weigh``."""

    load: Load
    found: dict[str, float]

    def __getitem__(self, quantity: str) -> float:
        """A measured quantity; ``seconds`` are those of the observations and the bounds."""
        if quantity == "seconds":
            return self.found["seconds"] + self.found["bounds_seconds"]
        return self.found[quantity]

    @property
    def over_product(self) -> float:
        """Its time, relative to that of Phi' Phi alone."""
        return self["seconds"] / (self.load.count * self["product_seconds_a_row"])

    def on_cluster(self, workers: int, count: int) -> float:
        """Seconds with so many workers and observations, by the model."""
        m, growth, sums = (
            self["inducing"],
            *(self[f"{name}_seconds_a_row"] for name in ("growth", "sums")),
        )
        if workers == 1:
            return count * growth + self["bounds_seconds"]
        ranges = 1 + max(workers, math.ceil(count / longest_range(int(m))))
        passes = count * (growth + sums * (1 - 2 / ranges)) / workers
        steps = 2 * math.ceil(math.log2(workers))
        return passes + steps * (8 * m**2 / NETWORK + TASK) + self["bounds_seconds"]


def write(members: list[Load], store: Store, folder: Path) -> str:
    """Make the tables and the figure of the experiment, and return the tables as text."""
    found = collect(members, store)
    text = as_text(found)
    (folder / "scale.txt").write_text(text, encoding="utf-8")
    (folder / "scale.csv").write_text(as_csv(found), encoding="utf-8")
    draw(found, folder)
    return text


def collect(members: list[Load], store: Store) -> list[Weighed]:
    """What each of them took."""
    return [
        Weighed(one, {name: float(value[0]) for name, value in store.read(one).items()})
        for one in members
    ]


def as_text(found: list[Weighed]) -> str:
    """For the terminal: what was measured, how it compares, and what a cluster would take."""
    rows = [["kernel", "t", *(f"{name}: half-width, s, MB" for name in ENGINES)]]
    for kernel, count in dict.fromkeys((one.load.kernel, one.load.count) for one in found):
        cells = []
        for engine in ENGINES:
            one = find(found, kernel, engine, count)
            cells.append(
                f"{one['half_width']:.4f}  {_short(one['seconds'])}  {one['megabytes']:.0f}"
                if one
                else ""
            )
        rows.append([KERNELS[kernel], f"{count:,}", *cells])
    missed = sum(one["covered"] < 1 for one in found)
    compared = [["kernel", "t", "inducing points", "width over exact", "time over that of Φ'Φ"]]
    for one in found:
        if one.load.engine in ("sparse", "grown"):
            exact = find(found, one.load.kernel, "exact", one.load.count)
            wider = f"{one['half_width'] / exact['half_width']:.3f}" if exact else ""
            given = one.load.engine == "sparse"
            compared.append(
                [
                    KERNELS[one.load.kernel],
                    f"{one.load.count:,}",
                    f"{one['inducing']:.0f} {'given' if given else 'grown'}",
                    wider,
                    f"{one.over_product:.1f}" if given else "",
                ]
            )
    model = [["kernel", "inducing points", "workers", *(f"t = {t:,}" for t in AHEAD)]]
    for one in largest(found).values():
        for workers in (1, 2, WORKERS):
            times = [_time(one.on_cluster(workers, t)) for t in AHEAD]
            head = [KERNELS[one.load.kernel], f"{one['inducing']:.0f}", f"{workers}"]
            model.append([*head, *times])
    headings = {
        f"After t observations, and bounds at {loads.QUERIES} points: ℓ = {loads.LENGTH_SCALE:g}, "
        f"d = {loads.DIM}, B = {loads.NORM:g}, σ = {loads.NOISE:g}, δ = {loads.DELTA:g}": rows,
        "Sparse engines": compared,
        f"By a model, not measured: {NETWORK / 1e6:.0f} MB/s between machines, {1e3 * TASK:.0f} ms "
        "a task": model,
    }
    parts = ["\n".join([heading, *aligned(lines), ""]) for heading, lines in headings.items()]
    end = (
        f"Seconds of one processor core. f* was inside the bounds at all {loads.QUERIES} points in "
        f"{len(found) - missed} of {len(found)} cases.\n"
    )
    return "\n".join([*parts, end])


def as_csv(found: list[Weighed]) -> str:
    """One row for each load."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = list(dict.fromkeys(name for one in found for name in one.found))
    writer.writerow(["kernel", "engine", "observations", *names])
    for one in found:
        values = [f"{one.found[name]:.6g}" if name in one.found else "" for name in names]
        writer.writerow([one.load.kernel, one.load.engine, one.load.count, *values])
    return out.getvalue()


def draw(found: list[Weighed], folder: Path) -> None:
    """Kernels in columns; widths, seconds and memory in rows."""
    kernels = [kernel for kernel in KERNELS if any(one.load.kernel == kernel for one in found)]
    with figure_files(folder, "scale", len(QUANTITIES), len(kernels)) as axes:
        for column, kernel in enumerate(kernels):
            for axis, quantity in zip(axes[:, column], QUANTITIES, strict=True):
                for engine in ENGINES:
                    _curve(axis, found, kernel, engine, quantity)
                axis.set_xscale("log")
                axis.set_xlim(150, 2e7)  # the same for all, so that rows can be compared
                if quantity == "megabytes":
                    axis.set_ylim(bottom=0)
                else:
                    # Widths may lie within one power of ten, which alone would be no scale.
                    axis.set_yscale("log", subs=[2, 5])
                    axis.yaxis.set_major_formatter(_plain)
                    axis.yaxis.set_minor_formatter(_plain if quantity == "half_width" else "")
            if kernel in (last := largest(found)):
                _ahead(axes[1, column], last[kernel])
            axes[0, column].set_title(f"{KERNELS[kernel]}, ℓ = {loads.LENGTH_SCALE:g}", fontsize=10)
            axes[-1, column].set_xlabel("observations")
        for axis, name in zip(axes[:, 0], QUANTITIES.values(), strict=True):
            axis.set_ylabel(name)
        handles, labels = axes[1, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(
            handles, labels, loc="outside upper center", ncols=3, fontsize=8, frameon=False
        )


def _curve(axis: Any, found: list[Weighed], kernel: str, engine: str, quantity: str) -> None:
    of_it = [one for one in found if (one.load.kernel, one.load.engine) == (kernel, engine)]
    counts = [one.load.count for one in of_it]
    values = [one[quantity] for one in of_it]
    axis.plot(
        counts, values, "o-", color=COLOUR[engine], label=ENGINES[engine], markersize=3,
        linewidth=1.3,
    )  # fmt: skip


def _ahead(axis: Any, one: Weighed) -> None:
    """What a cluster would take."""
    counts = [t for t in loads.COUNTS if t >= 16_000]
    seconds = [one.on_cluster(WORKERS, t) for t in counts]
    axis.plot(
        counts, seconds, "--", color=COLOUR["sparse"], linewidth=1.0,
        label=f"sparse on {WORKERS} workers, by a model",
    )  # fmt: skip


def _plain(value: float, _place: int) -> str:
    """0.01 and 100, not powers of ten."""
    return f"{value:g}"


def find(found: list[Weighed], kernel: str, engine: str, count: int) -> Weighed | None:
    """The one of these, if it is there."""
    wanted = (kernel, engine, count)
    return next(
        (one for one in found if (one.load.kernel, one.load.engine, one.load.count) == wanted), None
    )


def largest(found: list[Weighed]) -> dict[str, Weighed]:
    """By kernel the sparse one with given points that had the most observations."""
    ordered = sorted(found, key=lambda one: one.load.count)
    return {one.load.kernel: one for one in ordered if one.load.engine == "sparse"}


def _short(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def _time(seconds: float) -> str:
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
