"""Measure coverage: run what is missing, count the wrong runs, and judge the bounds."""

from __future__ import annotations

import itertools
import math
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds import Bound
from kernelbounds.checking import p_value
from kernelbounds.laboratory import (
    NOISE_SCALE,
    NORM,
    Case,
    Programme,
    promises_design,
    promises_noise,
)
from kernelbounds.paper import results
from kernelbounds.paper.figures import (
    COLOURS,
    USERS_COLOURS,
    draw_rate,
    figure_files,
    legend_above,
    rate_axes,
)
from kernelbounds.paper.results import ErrorRate, ResultStore, written_together
from kernelbounds.paper.specs import Rows

# The probability with which any of the valid bounds of a programme is refuted is at most this.
LEVEL = 1e-3


@dataclass(frozen=True)
class Run:
    """One run of a bound, and the first time at which it was wrong.

    Attributes
    ----------
    method, design : str
        Names of the bound and of the way of collecting data.
    seed : int
        All that is random in the run.
    case : Case
        The dimension, the kernel, the truth and the law of the noise.
    time : int
        The number of observations at the first violation that was seen; 0 for none.
    x : array of shape (dim,)
        Where it was; nan for a contrast of several places, and where the bound claimed that no
        function fits the data.
    truth, lower, upper : float
        f*(x) and the bounds at x.
    """

    method: str
    design: str
    seed: int
    case: Case
    time: int
    x: Array
    truth: float
    lower: float
    upper: float

    def command(self, programme: Programme) -> str:
        """Return the command that repeats the run."""
        case = self.case
        words = ["kernelbounds", "coverage", "--bounds", self.method, "--designs", self.design]
        words += ["--noises", case.noise, "--truths", case.truth, "--kernels", case.kernel]
        words += ["--dims", f"{case.dim}", "--rounds", f"{programme.rounds}"]
        words += ["--delta", f"{programme.delta:g}", "--seed", f"{self.seed}", "--runs", "1"]
        return shlex.join(words)


@dataclass(frozen=True)
class Coverage:
    """The measurement of a programme, which :func:`coverage` makes.

    Attributes
    ----------
    programme : Programme
        What was run.
    runs : list of Run
        All runs, by bound and design, in the order of their seeds.
    computed : int
        The number of jobs that were not there before.
    """

    programme: Programme
    runs: list[Run]
    computed: int

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """The bounds by their names."""
        return self.programme.bounds_by_name

    def designs_of(self, method: str) -> list[str]:
        """Return the designs under which a bound promises to hold."""
        bound = self.bounds[method]
        return [one for one in self.programme.designs if promises_design(bound, one)]

    def rate(
        self, method: str, designs: Iterable[str] | None = None, **case: str | int
    ) -> ErrorRate | None:
        """Return the error rate of a bound, among runs with noise for which it is made.

        ``designs`` are those that the bound promises to hold under if there are none, and ``case``
        narrows the runs: ``noise="heavy"``, ``dim=3``. None where there are no such runs. Runs
        under different designs share functions and noise, and are no independent trials.
        """
        bound = self.bounds[method]
        wanted = set(self.designs_of(method) if designs is None else designs)
        found = [
            one.time > 0
            for one in self.runs
            if one.method == method
            and one.design in wanted
            and all(getattr(one.case, name) == value for name, value in case.items())
            and ("noise" in case or promises_noise(bound, one.case.noise))
        ]
        return ErrorRate(sum(found), len(found)) if found else None

    @cached_property
    def judged(self) -> dict[tuple[str, str], ErrorRate]:
        """The error rates on which bounds are judged, by bound and group of runs.

        A group has runs under one design alone, which are independent: runs under different
        designs share functions and noise. It has only runs in which the bound promises to hold:
        all of them, or those with a law of noise, a truth, a kernel or a dimension.
        """
        found: dict[tuple[str, str], ErrorRate] = {}
        for method, bound in self.bounds.items():
            noises = [one for one in self.programme.noises if promises_noise(bound, one)]
            kinds = {noise: {"noise": noise} for noise in noises} | self.programme.kinds
            for design in self.designs_of(method):
                groups = {design: self.rate(method, [design])}
                for name, kind in kinds.items():
                    groups[f"{design}, {name}"] = self.rate(method, [design], **kind)
                found |= {(method, name): rate for name, rate in groups.items() if rate}
        return found

    @cached_property
    def refuted(self) -> dict[str, list[str]]:
        """The groups of runs that refute the guarantee of a bound, for each refuted bound.

        A group refutes a bound when so many of its runs are wrong that a binomial variable with
        success probability delta reaches their number with a probability below 0.001 over the
        number of groups of all bounds. So a valid bound is refuted with a probability of at most
        0.001 in all.
        """
        found: dict[str, list[str]] = {}
        for (method, group), rate in self.judged.items():
            if self.is_too_often(rate):
                found.setdefault(method, []).append(group)
        return found

    def is_too_often(self, rate: ErrorRate) -> bool:
        """Tell whether the rate under one design is too high for a bound with miscoverage delta."""
        probability = p_value(rate.wrong, rate.runs, self.programme.delta)
        return probability < LEVEL / max(1, len(self.judged))

    def is_flagged(self, method: str, **case: str | int) -> bool:
        """Tell whether a bound is wrong too often under a design that it promises to hold under.

        ``case`` narrows the runs as in :meth:`rate`.
        """
        rates = (self.rate(method, [design], **case) for design in self.designs_of(method))
        return any(rate is not None and self.is_too_often(rate) for rate in rates)

    def first_violations(self) -> list[Run]:
        """Return the run with the earliest violation, for each bound and design.

        Runs with noise for which a bound is not made are left out.
        """
        earliest: dict[tuple[str, str], Run] = {}
        for one in self.runs:
            key = one.method, one.design
            counts = one.time and promises_noise(self.bounds[one.method], one.case.noise)
            if counts and (key not in earliest or one.time < earliest[key].time):
                earliest[key] = one
        order = [(name, design) for name in self.bounds for design in self.programme.designs]
        return [earliest[key] for key in order if key in earliest]


def coverage(
    programme: Programme,
    out: Path | None = None,
    workers: int = 1,
    dask: str | None = None,
    say: Callable[[str], None] = print,
) -> Coverage:
    """Measure how often bounds are wrong, at any time and at any point.

    Parameters
    ----------
    programme : Programme
        The bounds, the problems and the number of runs.
    out : Path, optional
        A folder for the results, from which a measurement that was interrupted goes on. Without
        one, nothing is kept.
    workers : int
        Processes on this machine.
    dask : str, optional
        The address of a Dask cluster to run on instead.
    say : callable
        Is called with what there is to say while it runs.

    Examples
    --------
    Two standard deviations of a Gaussian process are no band for one function:

    >>> from kernelbounds.laboratory import Programme, coverage
    >>> found = coverage(Programme(["CMM", "GP-2sd"], designs=["ucb"], runs=12, rounds=10))
    >>> found.refuted.keys()
    dict_keys(['GP-2sd'])
    >>> print(found.rate("CMM"))
    0.0 % [0.0, 30.8]
    """
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return coverage(programme, Path(folder), workers, dask, say)
    store, jobs = ResultStore(out), programme.jobs()
    store.make()
    computed = results.run_missing(jobs, store, workers, dask, say)
    runs = []
    for job in jobs:
        arrays = store.read(job)
        for i, seed in enumerate(job.seeds):
            case = job.case(seed)
            ends = (float(arrays[name][i]) for name in ("truth", "lower", "upper"))
            x = arrays["x"][i, : case.dim]
            runs.append(Run(job.method, job.design, seed, case, int(arrays["time"][i]), x, *ends))
    return Coverage(programme, runs, computed)


def write(found: Coverage, folder: Path) -> tuple[str, list[Path]]:
    """Write tables as text and CSV, and a figure; return the text and the files.

    Each file is replaced as a whole, and none before all are made.
    """

    def make(place: Path) -> str:
        draw(found, place / "coverage")
        text = as_text(found)
        texts = {
            "coverage.txt": text,
            "coverage.csv": results.csv_text(as_rows(found)),
            "violations.csv": results.csv_text(violations(found), VIOLATION_COLUMNS),
        }
        for name, content in texts.items():
            (place / name).write_text(content, encoding="utf-8")
        return text

    return written_together(folder, make)


def as_text(found: Coverage) -> str:
    """Return the tables: by design, by kind of problem, and the first violations."""
    p = found.programme
    designs = [["bound", "verdict", *p.designs]]
    noises, others = [["bound", *p.noises]], [["bound", *p.kinds]]
    for name, bound in found.bounds.items():
        shown = []
        for design in p.designs:
            rate = found.rate(name, [design])
            flagged = rate is not None and found.is_too_often(rate)
            shown.append(_shown(rate, flagged, promises_design(bound, design)))
        designs.append([name, "refuted" if name in found.refuted else "holds", *shown])
        laws = {noise: promises_noise(bound, noise) for noise in p.noises}
        noises.append([name, *(_pooled(found, name, laws[law], noise=law) for law in laws)])
        others.append([name, *(_pooled(found, name, True, **kind) for kind in p.kinds.values())])
    tables = {
        "Share of runs in which f* was outside of the bounds at some time and place, in per cent "
        f"[95 %]; {p.runs} runs under each design, δ = {p.delta:g}, T = {p.rounds}": designs,
        "By law of noise, under the designs that a bound promises to hold under": noises,
        "By truth, kernel and dimension, where a bound promises to hold": others,
    }
    first = [["bound", "design", "seed", "t", "problem", "what was wrong"]]
    for run in found.first_violations():
        problem = ", ".join(map(str, run.case[1:])) + f", d = {run.case.dim}"
        place = [run.method, run.design, f"{run.seed}", f"{run.time}", problem]
        first.append([*place, described(run)])
    if len(first) > 1:
        tables["The earliest violation, with noise for which a bound is made"] = first
    text = results.under_headings(tables)
    if len(first) > 1:
        text += f"\nRun the first again: {found.first_violations()[0].command(p)}\n"
    return text + (
        "\n*: more often than δ allows, under one design at least. In brackets: not promised. "
        "Noise for which a bound is not made counts in its own column alone. Runs under different "
        "designs share functions and noise, so that intervals over several are too narrow.\n"
        f"‖f*‖ = B = {NORM:g} and σ = {NOISE_SCALE:g}, and the bounds are told so.\n"
    )


def described(run: Run) -> str:
    """Describe in words where a run was wrong."""
    if math.isnan(run.truth):
        return "no function is left"
    if math.isnan(run.x[0]):
        return f"a contrast is {run.truth:.4g}, and not in [{run.lower:.4g}, {run.upper:.4g}]"
    x = ", ".join(f"{value:.3g}" for value in run.x)
    return f"f*({x}) = {run.truth:.4g} is not in [{run.lower:.4g}, {run.upper:.4g}]"


def as_rows(found: Coverage) -> Rows:
    """Yield a row for each bound, design and kind of problem."""
    groups = results.grouped(found.runs, lambda one: (one.method, one.design, one.case))
    for (method, design, case), runs in groups.items():
        bound = found.bounds[method]
        promised = promises_design(bound, design) and promises_noise(bound, case.noise)
        rate = ErrorRate(sum(one.time > 0 for one in runs), len(runs))
        low, high = rate.interval
        about = {"bound": method, "design": design, **case._asdict(), "promised": int(promised)}
        counts = {"wrong": rate.wrong, "runs": rate.runs, "low": low, "high": high}
        yield about | counts


VIOLATION_COLUMNS = (
    "bound", "design", "seed", *Case._fields, "time", "x", "f", "lower", "upper", "command",
)  # fmt: skip


def violations(found: Coverage) -> Rows:
    """Yield a row for each run in which a bound was wrong, with its seed and the command."""
    for one in found.runs:
        if one.time:
            x = " ".join(f"{value:.17g}" for value in one.x)
            wrong = one.time, x, one.truth, one.lower, one.upper
            row = one.method, one.design, one.seed, *one.case, *wrong
            command = one.command(found.programme)
            yield dict(zip(VIOLATION_COLUMNS, (*row, command), strict=True))


def draw(found: Coverage, path: Path) -> None:
    """Draw how often bounds are wrong by design, and by time where one looks more than once."""
    p = found.programme
    others = itertools.cycle(USERS_COLOURS)
    colours = {name: COLOURS.get(name) or next(others) for name in found.bounds}
    with figure_files(path, 1, 2, panel=(4.6, 3.4)) as axes:
        left, right = axes[0]
        step = 0.8 / len(found.bounds)
        for i, (name, bound) in enumerate(found.bounds.items()):
            for row, design in enumerate(p.designs):
                rate = found.rate(name, [design])
                if rate is None:
                    continue
                height, hollow = 0.4 - row - step * (i + 0.5), not promises_design(bound, design)
                draw_rate(left, rate, height, colours[name], hollow)
            # These are the times of first violations; 0 is for runs without.
            looked = [one for one in found.runs if one.method == name and one.design != "once"]
            times = np.array([r.time for r in looked if promises_noise(bound, r.case.noise)])
            if len(times):
                grid = np.unique(np.append(1, times[times > 0]))
                shares = [(times[times > 0] <= t).sum() / len(times) for t in grid]
                ends = np.append(grid, p.rounds), np.append(shares, shares[-1])
                right.step(*ends, where="post", color=colours[name], label=name, linewidth=1.3)
        rate_axes(left, p.delta, p.designs)
        left.set_xlabel("share of runs that were wrong; hollow: not promised")
        right.axhline(p.delta, color="black", linewidth=0.6)
        right.set_xscale("log")
        right.set_xlim(1, p.rounds)
        right.set_ylim(-0.03, 1.03)
        right.set_xlabel("observations")
        right.set_ylabel("share of runs wrong by then")
        legend_above(right, 4)


def _pooled(found: Coverage, method: str, promised: bool, **case: Any) -> str:
    """Show the error rate of a bound under all designs that it promises to hold under."""
    return _shown(found.rate(method, **case), found.is_flagged(method, **case), promised)


def _shown(rate: ErrorRate | None, flagged: bool, promised: bool) -> str:
    if rate is None:
        return ""
    low, high = (100 * end for end in rate.interval)
    text = f"{100 * rate.share:.1f} [{low:.1f}, {high:.1f}]{'*' * flagged}"
    return text if promised else f"({text})"
