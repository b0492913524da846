"""Width, time and memory against the number of observations, measured and by a model.

A load is measured in a process of its own (``python -m kernelbounds.paper.scale``), whose peak
memory is that of the load. Times are those of the processor, which others on the machine do not
change much.

The model says what a cluster of W workers would take for t observations with m inducing points. Of
R ranges all but the first and the last are passed over twice (``sequence/cluster.py``),

    seconds = t (growth + sums (1 - 2/R)) / W  +  2 log2(W) (8 m^2 / NETWORK + TASK)  +  bounds,

where growth and sums, a row, and bounds are measured, and what a cluster is made of is assumed.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kernelbounds.arrays import Array
from kernelbounds.engine.sparse.ranges import sums
from kernelbounds.paper import results, specs
from kernelbounds.paper.cells import random_problem
from kernelbounds.paper.figures import COLOURS, figure_files, legend_above
from kernelbounds.paper.results import ResultStore
from kernelbounds.paper.specs import Choices, Experiment, Job, Picture, Rows
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.sequence.cluster import longest_range
from kernelbounds.sequence.sparse import Sparse

LENGTH_SCALE, DIM = 0.5, 3
QUERIES = 1000  # points at which bounds are computed
REPEATED_SITES = 200  # different points, where observations are repeated
COUNTS = (250, 1000, 4000, 16_000, 64_000, 250_000, 1_000_000, 4_000_000, 10_000_000)
# The number of inducing points that are given: with these, bounds are at most a few percent wider.
INDUCING = {"rbf": 512, "matern-5/2": 1024}
EXACT_COUNT = 4000  # most observations: the kernel matrix has the square of this many entries
UNGIVEN_COUNT = 1_000_000  # most observations where no inducing points are given
# The share of the largest number of observations that each kernel goes up to: rough kernels take
# ten times the time, for more inducing points and for what those do not see.
COUNT_SHARE = {"rbf": 1.0, "matern-5/2": 1 / 15}
BATCH = 50_000  # observations that are in memory at a time
PROCESS_STATUS = Path("/proc/self/status")  # on Linux
# For the times of single passes and of the product Phi' Phi: blocks of rows, and their number.
BLOCK_ROWS, BLOCKS = 1000, 10
ENGINE_TITLES = {
    "exact": "exact",
    "sparse": "sparse, given points",
    "grown": "sparse, grown online",
    "merged": f"exact, {REPEATED_SITES} different points",
}
ENGINE_COLOURS = {
    "exact": COLOURS["IGP"], "sparse": COLOURS["CMM"], "grown": COLOURS["DMM"],
    "merged": COLOURS["AY"],
}  # fmt: skip
# A cluster as one rents it: bytes a second between two machines, and seconds for a task besides
# what it computes.
NETWORK, TASK = 1e8, 0.05
MODEL_WORKERS, MODEL_COUNTS = 100, (1_000_000, 10_000_000, 100_000_000)
QUANTITIES = {"half_width": "mean half-width", "seconds": "seconds", "megabytes": "MB"}


# --- measuring a load


@dataclass(frozen=True)
class Load(Job):
    """A number of observations of one function, which depends on the kernel and the seed alone.

    A load is run in a process of its own, so that its memory is its own.
    """

    kernel: str
    engine: str
    count: int
    seed: int = 0
    repetition: int = 0
    timed = True

    @property
    def name(self) -> str:
        """The kernel, the engine, the number of observations and the seed."""
        run = f"n{self.count}-seed{self.seed}-{self.repetition}"
        return f"scale-{specs.for_file(self.kernel)}-{self.engine}-{run}"

    def run(self) -> dict[str, Array]:
        """Return the numbers that :func:`measure` finds, in a process of its own."""
        command = [sys.executable, "-m", "kernelbounds.paper.scale", json.dumps(self.as_data())]
        found = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        return {name: np.array([value]) for name, value in json.loads(found).items()}


def jobs(choices: Choices) -> list[Load]:
    """Return all loads, with up to the square of the rounds: a million for 1000 rounds."""
    most = {"exact": EXACT_COUNT, "sparse": max(COUNTS)}
    return [
        Load(kernel, engine, count, choices.seed)
        for kernel in INDUCING
        if kernel in choices.kernels
        for engine in ENGINE_TITLES
        for count in COUNTS
        if count <= max(choices.rounds**2 * COUNT_SHARE[kernel], COUNTS[0])
        and count <= most.get(engine, UNGIVEN_COUNT)
    ]


def measure(load: Load) -> dict[str, float]:
    """Measure seconds, megabytes, mean half-width, share of points covered and inducing points.

    Of a sparse engine also the seconds a row of either pass of a cluster, and of Phi' Phi.
    """
    rng = np.random.default_rng([load.seed, list(INDUCING).index(load.kernel)])
    kernel = specs.kernel_named(load.kernel, LENGTH_SCALE)
    truth = random_problem(kernel, DIM, rng)
    queries = rng.random((QUERIES, DIM))
    sites = rng.random((REPEATED_SITES, DIM))
    engine = Sparse() if load.engine == "grown" else None
    if load.engine == "sparse":
        count = INDUCING[load.kernel]
        engine = Sparse.filling([0.0] * DIM, [1.0] * DIM, count)
    sequence = ConfidenceSequence(kernel, specs.NORM, specs.NOISE, specs.DELTA, engine=engine)
    seconds = 0.0
    for start in range(0, load.count, BATCH):
        size = min(BATCH, load.count - start)
        X = rng.random((size, DIM))
        if load.engine == "merged":
            X = sites[rng.integers(len(sites), size=size)]
        y = truth.values(X) + specs.NOISE * rng.standard_normal(size)
        seconds += _timed(sequence.update, X, y)[0]
    at_queries, (lower, upper) = _timed(sequence.bounds, queries)
    values, about = truth.values(queries), sequence.approximation
    found = {
        "seconds": seconds,
        "bounds_seconds": at_queries,
        "megabytes": _peak_megabytes(),
        "half_width": float((upper - lower).mean() / 2),
        "covered": float(((lower <= values) & (values <= upper)).mean()),
        "inducing": 0.0 if about is None else float(about.inducing),
    }
    return found | (_passes(sequence, rng) if load.engine == "sparse" else {})


def _passes(sequence: ConfidenceSequence, rng: np.random.Generator) -> dict[str, float]:
    """Measure the seconds a row of Phi' Phi alone, and of both passes of a cluster."""
    engine: Any = sequence.known.radius_engine
    X = rng.random((BLOCK_ROWS * BLOCKS, DIM))
    y = specs.NOISE * rng.standard_normal(len(X))
    phi = rng.random((len(engine.data.dictionary), BLOCK_ROWS))

    def product() -> None:
        for _ in range(BLOCKS):
            phi @ phi.T

    told = sequence.known.evidence.for_engine(X, y, None)
    sequence.update(X[:BLOCK_ROWS], y[:BLOCK_ROWS])  # so that the next are whole blocks
    times = {
        "product": _timed(product)[0],
        "sums": _timed(sums, engine, len(sequence), [(X, told)])[0],
        "growth": _timed(sequence.update, X, y)[0],
    }
    return {f"{name}_seconds_a_row": value / len(X) for name, value in times.items()}


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()
    found = function(*arguments)
    return time.process_time() - start, found


def _peak_megabytes() -> float:
    """Return the peak memory so far; getrusage on Linux would begin with that of the parent."""
    if PROCESS_STATUS.exists():
        lines = PROCESS_STATUS.read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts bytes


# --- tables and figure


@dataclass(frozen=True)
class MeasuredLoad:
    """The width, time and memory of a load, as :func:`measure` finds them."""

    load: Load
    found: dict[str, float]

    def __getitem__(self, quantity: str) -> float:
        """Return a measured quantity; ``seconds`` are those of the observations and the bounds."""
        if quantity == "seconds":
            return self.found["seconds"] + self.found["bounds_seconds"]
        return self.found[quantity]

    @property
    def over_product(self) -> float:
        """The time, relative to that of Phi' Phi alone."""
        return self["seconds"] / (self.load.count * self["product_seconds_a_row"])

    def on_cluster(self, workers: int, count: int) -> float:
        """Return the seconds with a number of workers and of observations, by the model."""
        m, growth = self["inducing"], self["growth_seconds_a_row"]
        if workers == 1:
            return count * growth + self["bounds_seconds"]
        ranges = 1 + max(workers, math.ceil(count / longest_range(int(m))))
        passes = count * (growth + self["sums_seconds_a_row"] * (1 - 2 / ranges)) / workers
        steps = 2 * math.ceil(math.log2(workers))
        return passes + steps * (8 * m**2 / NETWORK + TASK) + self["bounds_seconds"]


def collect(members: list[Load], store: ResultStore) -> list[MeasuredLoad]:
    """Read the measurements of loads."""
    return [
        MeasuredLoad(one, {name: float(value[0]) for name, value in store.read(one).items()})
        for one in members
    ]


def as_text(found: list[MeasuredLoad]) -> str:
    """Return tables of what was measured, how it compares, and what a cluster would take."""
    rows = [["kernel", "t", *(f"{name}: half-width, s, MB" for name in ENGINE_TITLES)]]
    compared = [["kernel", "t", "inducing points", "width over exact", "time over that of Φ'Φ"]]
    by_place = {(one.load.kernel, one.load.count, one.load.engine): one for one in found}
    for kernel, count in dict.fromkeys((kernel, count) for kernel, count, _ in by_place):
        cells = [""] * len(ENGINE_TITLES)
        for i, engine in enumerate(ENGINE_TITLES):
            if one := by_place.get((kernel, count, engine)):
                short = f"{one['seconds']:.2g}" if one["seconds"] < 10 else f"{one['seconds']:.0f}"
                cells[i] = f"{one['half_width']:.4f}  {short}  {one['megabytes']:.0f}"
        rows.append([specs.KERNEL_TITLES[kernel], f"{count:,}", *cells])
    for one in found:
        kernel, count, engine = one.load.kernel, one.load.count, one.load.engine
        if engine in ("sparse", "grown"):
            exact, given = by_place.get((kernel, count, "exact")), engine == "sparse"
            inducing = f"{one['inducing']:.0f} {'given' if given else 'grown'}"
            wider = f"{one['half_width'] / exact['half_width']:.3f}" if exact else ""
            slower = f"{one.over_product:.1f}" if given else ""
            compared.append([specs.KERNEL_TITLES[kernel], f"{count:,}", inducing, wider, slower])
    model = [["kernel", "inducing points", "workers", *(f"t = {t:,}" for t in MODEL_COUNTS)]]
    for one in largest(found).values():
        for workers in (1, 2, MODEL_WORKERS):
            times = [_time(one.on_cluster(workers, t)) for t in MODEL_COUNTS]
            head = [specs.KERNEL_TITLES[one.load.kernel], f"{one['inducing']:.0f}", f"{workers}"]
            model.append([*head, *times])
    tables = {
        f"After t observations, and bounds at {QUERIES} points: "
        f"ℓ = {LENGTH_SCALE:g}, d = {DIM}, B = {specs.NORM:g}, σ = {specs.NOISE:g}, "
        f"δ = {specs.DELTA:g}": rows,
        "Sparse engines": compared,
        f"By a model, not measured: {NETWORK / 1e6:.0f} MB/s between machines, {1e3 * TASK:.0f} ms "
        "a task": model,
    }
    inside = sum(one["covered"] == 1 for one in found)
    text = results.under_headings(tables)
    return (
        f"{text}\nSeconds of one processor core. f* was inside the bounds at all {QUERIES} points "
        f"in {inside} of {len(found)} cases.\n"
    )


def as_rows(found: list[MeasuredLoad]) -> Rows:
    """Yield one row for each load."""
    names = dict.fromkeys(name for one in found for name in one.found)
    for one in found:
        about = {"kernel": one.load.kernel, "engine": one.load.engine}
        measured = {name: one.found.get(name, "") for name in names}
        yield {**about, "observations": one.load.count, **measured}


def draw(found: list[MeasuredLoad], path: Path) -> None:
    """Draw widths, seconds and memory in rows, and kernels in columns."""
    by_kernel = results.grouped(found, lambda one: one.load.kernel)
    with figure_files(path, len(QUANTITIES), len(by_kernel)) as axes:
        for panels, (kernel, members) in zip(axes.T, by_kernel.items(), strict=True):
            by_engine = results.grouped(members, lambda one: one.load.engine)
            for axis, quantity in zip(panels, QUANTITIES, strict=True):
                for engine, title in ENGINE_TITLES.items():
                    curve = by_engine.get(engine, [])
                    axis.plot(
                        [one.load.count for one in curve], [one[quantity] for one in curve], "o-",
                        color=ENGINE_COLOURS[engine], label=title, markersize=3, linewidth=1.3,
                    )  # fmt: skip
                axis.set_xscale("log")
                axis.set_xlim(150, 2e7)  # the same for all, so that rows can be compared
                if quantity == "megabytes":
                    axis.set_ylim(bottom=0)
                else:
                    # Widths may lie within one power of ten, which alone would be no scale.
                    axis.set_yscale("log", subs=[2, 5])
                    axis.yaxis.set_major_formatter("{x:g}")
                    axis.yaxis.set_minor_formatter("{x:g}" if quantity == "half_width" else "")
            if last := largest(members).get(kernel):
                counts = [t for t in COUNTS if t >= 16_000]
                panels[1].plot(
                    counts, [last.on_cluster(MODEL_WORKERS, t) for t in counts], "--",
                    color=ENGINE_COLOURS["sparse"], linewidth=1.0,
                    label=f"sparse on {MODEL_WORKERS} workers, by a model",
                )  # fmt: skip
            title = f"{specs.KERNEL_TITLES[kernel]}, ℓ = {LENGTH_SCALE:g}"
            panels[0].set_title(title, fontsize=10)
            panels[-1].set_xlabel("observations")
        for axis, name in zip(axes[:, 0], QUANTITIES.values(), strict=True):
            axis.set_ylabel(name)
        legend_above(axes[1, 0], 3)


def largest(found: list[MeasuredLoad]) -> dict[str, MeasuredLoad]:
    """Return by kernel the sparse load with given points that had the most observations."""
    ordered = sorted(found, key=lambda one: one.load.count)
    return {one.load.kernel: one for one in ordered if one.load.engine == "sparse"}


def _time(seconds: float) -> str:
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


EXPERIMENT = Experiment(
    jobs,
    collect,
    {"txt": as_text},
    as_rows,
    (Picture("scale", draw, "Scale", "Width, time and memory against the number of observations"),),
    note="Mean half-widths, seconds of one processor core for the observations and a thousand "
    "bounds, and the peak memory of the process. Dashed: what a cluster would take by a model that "
    "is fitted to these times, not measured.",
)


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(measure(Load(**json.loads(sys.argv[1])))))
