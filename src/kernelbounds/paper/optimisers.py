"""Optimisers with and without a guarantee beside each other: regret, certified regret and time.

All meet the same functions on the unit cube with the same noise, and choose one point a trial.
Functions of the paper are those of Table 1, and ours are told the true kernel, norm and noise.
The known functions are scaled to 0 and 100, and ours are told what a user might say of them in
words: that range, the noise, and how often the output turns along each input.

Simple regret is that of the point which a method recommends. Certified regret is what our bounds
say of the trials of *any* method: they hold for points that were chosen by any rule.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import Array
from kernelbounds.bandits import Certificate, KernelUCB
from kernelbounds.errors import said
from kernelbounds.paper import results, specs
from kernelbounds.paper.cells import PLAY, POLICY, PROBLEM, random_problem
from kernelbounds.paper.certified_rounds import known_function, largest, least_norm
from kernelbounds.paper.contenders import CONTENDERS, Optimiser
from kernelbounds.paper.figures import in_rows, legend_above, titled_panels
from kernelbounds.paper.results import Repetitions, ResultStore
from kernelbounds.paper.specs import Choices, Experiment, Job, Picture, Rows, Setting
from kernelbounds.problem import Problem

TIMES = (10, 20)  # trials after which ours are certified; also after the last
# Random functions of the paper.
SETTINGS = {kernel.replace("/", "_"): Setting(kernel, 0.5) for kernel in specs.KERNELS}
SCALE = 100.0  # the range of known functions
KNOWN_NOISE = 1.0
# How often the known functions turn along each input, counted on lines through the cube.
TURNS = {"branin": (5, 1), "hartmann": (1, 3, 3), "camel": (5, 3)}
TITLES = {"branin": "Branin", "hartmann": "Hartmann-3", "camel": "six-hump camel"}
NORM_POINTS = 2**10  # on which the norms of known functions are computed, from below
CERTIFICATE_SECONDS = 60.0  # more than any certificate takes here
# How much looser than the bounds certificates may be, over the range of the output: a finer search
# takes much longer, and gains no more than this.
CERTIFICATE_SLACK = 0.01
NAMES = ("regret", "simple", "certified", "true", "seconds")


@dataclass(frozen=True)
class Task:
    """A function on the unit cube that is to be maximised, and what ours are told of it."""

    values: Callable[[Array], Array]
    best: float
    noise_scale: float
    problem: Problem


def title(function: str) -> str:
    """Return the title of a function."""
    return TITLES[function] if function in TITLES else SETTINGS[function].title


@cache
def task(function: str, trials: int, seed: int, repetition: int) -> Task:
    """Make a task, whose function depends on the seed and the repetition if it is a random one.

    Tasks are kept, because all methods ask for the same ones.
    """
    if function in TITLES:
        return _known(function, trials)
    kernel, dim = SETTINGS[function].make_kernel(), SETTINGS[function].dim
    drawn = random_problem(kernel, dim, np.random.default_rng((seed, repetition, PROBLEM)))
    # No function of norm B exceeds B where k(x,x) = 1, so that this range says nothing new.
    problem = Problem(
        [f"x{i}=0:1" for i in range(dim)], f"y={-specs.NORM}:{specs.NORM}", specs.NOISE,
        delta=specs.DELTA, kernel=kernel, norm_bound=specs.NORM * (1 + 1e-12),
    ).settled()  # fmt: skip
    return Task(drawn.values, largest(drawn.values, dim), specs.NOISE, problem)


@cache
def _known(function: str, trials: int) -> Task:
    turns = TURNS[function]
    raw = known_function(function).formula
    low, high = -largest(lambda x: -raw(x), len(turns)), largest(raw, len(turns))

    def values(points: Array) -> Array:
        return np.asarray(SCALE * (raw(points) - low) / (high - low))

    problem = Problem(
        [f"x{i}=0:1:turns={count}" for i, count in enumerate(turns)], f"score=0:{SCALE:g}",
        KNOWN_NOISE, delta=specs.DELTA, experiments=trials,
    ).settled()  # fmt: skip
    return Task(values, SCALE, KNOWN_NOISE, problem)


@dataclass(frozen=True)
class OptimiserRun(Job):
    """One optimiser on one function; the noise depends on the seed and the repetition alone."""

    function: str
    method: str
    trials: int
    repetition: int
    seed: int = 0

    @property
    def name(self) -> str:
        """The function, the method, the number of trials, the seed and the repetition."""
        method = re.sub(r"\W+", "_", self.method)
        run = f"T{self.trials}-seed{self.seed}-{self.repetition}"
        return f"optimisers-{self.function}-{method}-{run}"

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that the method needs."""
        return CONTENDERS[self.method].packages

    def run(self) -> dict[str, Array]:
        """Return regret, that of the recommended point, seconds and certificates of each trial.

        ``certified`` is what the regret of the best point known is at most, ``true`` its true
        regret; both are nan where there was no certificate. A method of others that fails ends its
        run, and what is missing is nan; a failure of ours is an error.
        """
        known = task(self.function, self.trials, self.seed, self.repetition)
        result = {name: np.full(self.trials, math.nan) for name in NAMES}
        result["failed"] = np.zeros(1)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._play(known, result)
        except Exception as error:
            if CONTENDERS[self.method].ours:
                raise
            warnings.warn(f"{self.method} failed on {self.function}: {said(error)}", stacklevel=2)
            result["failed"][0] = 1
        return result

    def _play(self, known: Task, result: dict[str, Array]) -> None:
        of_noise, of_policy = (
            np.random.default_rng((self.seed, self.repetition, stream)) for stream in (PLAY, POLICY)
        )
        noise = known.noise_scale * of_noise.standard_normal(self.trials)
        seed = int(of_policy.integers(2**31))
        optimiser = CONTENDERS[self.method].make(known.problem, seed)

        def regret(x: Array) -> float:
            return known.best - float(known.values(x[None])[0])

        for t in range(self.trials):
            start = time.process_time()
            x = optimiser.ask()
            asked = time.process_time() - start
            outcome = float(known.values(x[None])[0] + noise[t])
            start = time.process_time()
            optimiser.tell(x, outcome)
            result["seconds"][t] = asked + time.process_time() - start
            result["regret"][t] = max(regret(x), 0.0)
            result["simple"][t] = max(regret(optimiser.recommended()), 0.0)
            drawn = self.method in CERTIFIED and t + 1 in TIMES
            if t + 1 == self.trials or drawn:
                found = certificate(known.problem, optimiser)
                result["certified"][t], result["true"][t] = found.regret, regret(found.x)


def certificate(problem: Problem, optimiser: Optimiser) -> Certificate:
    """Certify the best point known from the trials of any method."""
    sequence = problem.sequence()
    sequence.update(np.array(optimiser.points), optimiser.outcomes)
    slack = CERTIFICATE_SLACK * problem.output.span
    policy = KernelUCB(sequence, problem.inputs.unit_box)
    return policy.certificate(tolerance=slack, seconds=CERTIFICATE_SECONDS)


def jobs(choices: Choices) -> list[OptimiserRun]:
    """Return all runs, of all optimisers that are installed."""
    fewer = choices.at_most(specs.OPTIMISER_TRIALS, specs.OPTIMISER_REPETITIONS)
    random = [name for name, one in SETTINGS.items() if one.kernel in choices.kernels]
    return [
        OptimiserRun(function, method, fewer.rounds, repetition, choices.seed)
        for repetition in range(fewer.repetitions)
        for function in (*random, *TITLES)
        for method, one in CONTENDERS.items()
        if one.installed
    ]


# All repetitions of one method on one function. Arrays are of those that did not fail, but for
# ``failed``, which is of all.
Played = Repetitions[OptimiserRun]


def gather(members: list[OptimiserRun], store: ResultStore) -> list[Played]:
    """Read all runs, and leave out those that failed."""
    found = []
    for one in results.repetitions(members, store):
        whole = one["failed"][:, 0] == 0
        arrays = {name: one[name][whole] for name in NAMES}
        found.append(Played(one.job, arrays | {"failed": one["failed"]}))
    return found


def as_text(found: list[Played]) -> str:
    """Return tables of regret, certified regret and time, with a row for each method."""
    count, trials = found[0]["regret"].shape

    def table(shown: Callable[[Played], str]) -> list[list[str]]:
        return results.crossed(
            found, lambda one: one.job.method, lambda one: title(one.job.function), shown
        )

    after = f"after {trials} trials, mean ± standard error of {count}"
    tables = {
        f"Regret of the recommended point {after}": table(
            lambda one: results.mean_text(one["simple"][:, -1], 2)
        ),
        f"Cumulative regret {after}": table(
            lambda one: results.mean_text(one["regret"].sum(axis=1), 0)
        ),
        f"Certified regret, by our bounds on the method's trials, {after}": table(
            lambda one: results.mean_text(one["certified"][:, -1])
        ),
        "Milliseconds of one processor core a trial, median of the second half": table(
            lambda one: f"{_milliseconds(one):.0f}"
        ),
        "Recommended point": [
            [method, CONTENDERS[method].rule]
            for method in dict.fromkeys(one.job.method for one in found)
        ],
    }
    if known := [name for name in TITLES if any(one.job.function == name for one in found)]:
        tables["What ours are told of known functions, and their true norms"] = [
            ["", "turns", "kernel", "B", "norm, at least"],
            *(_told(function, trials) for function in known),
        ]
    issued, wrong = certificates(found)
    tables[f"Certificates that were wrong: {wrong} of {issued}"] = [[""]]
    if any(one["failed"].any() for one in found):
        tables[f"Failures in {count} runs"] = table(lambda one: f"{one['failed'].sum():.0f}")
    return results.under_headings(tables)


def _told(function: str, trials: int) -> list[str]:
    """Return what ours conclude from what they are told of a function, and its least norm."""
    known, dim = task(function, trials, 0, 0), len(TURNS[function])
    problem = known.problem
    kernel = problem.sequence().kernel
    points = qmc.Sobol(dim, scramble=False).random(NORM_POINTS)
    norm = least_norm(kernel, points, known.values(points) - problem.output.middle)
    turns = ", ".join(map(str, TURNS[function]))
    return [title(function), turns, str(kernel), f"{problem.norm_bound:.0f}", f"{norm:.0f}"]


def certificates(found: list[Played]) -> tuple[int, int]:
    """Count the certificates that were issued, and those that were wrong."""
    true = np.concatenate([one["true"].ravel() for one in found])
    claimed = np.concatenate([one["certified"].ravel() for one in found])
    return int((~np.isnan(claimed)).sum()), int((true > claimed).sum())


def as_rows(found: list[Played]) -> Rows:
    """Yield one row for each method and function."""
    for one in found:
        job, simple, total = one.job, one["simple"][:, -1], one["regret"].sum(axis=1)
        yield {
            "function": job.function,
            "method": job.method,
            "guarantee": "yes" if CONTENDERS[job.method].ours else "no",
            "repetitions": len(total),
            "failed": int(one["failed"].sum()),
            "trials": job.trials,
            "simple_regret": results.average(simple),
            "simple_regret_standard_error": results.standard_error(simple),
            "cumulative_regret": results.average(total),
            "cumulative_regret_standard_error": results.standard_error(total),
            "certified_regret": results.average(one["certified"][:, -1]),
            "milliseconds": _milliseconds(one),
        }


CERTIFIED = ("KernelUCB", "Study, best")  # those whose certificates are drawn
COLOURS = {
    "KernelUCB": "#0014a8", "Study, best": "#0a9ea8", "BoTorch LogNEI": "#c46210",
    "BoTorch UCB": "#e0a030", "Optuna GP": "#9b2335", "Optuna TPE": "#d98aa0",
    "bayes_opt": "#4b8b3b", "random": "#aaaaaa",
}  # fmt: skip


def draw(cumulative: bool, found: list[Played], path: Path) -> None:
    """Draw cumulative regret, or that of recommended points with what ours certify of them.

    There is a panel for each function. Curves are means over repetitions. A method that failed in
    all of its runs has none, and ours are drawn once, and not again for their doors.
    """
    by_function = results.grouped(found, lambda one: one.job.function)

    def heading(function: str) -> str:
        dim = len(TURNS[function]) if function in TURNS else SETTINGS[function].dim
        return f"{title(function)}, d = {dim}"

    labels = "trial", "cumulative regret" if cumulative else "simple regret"
    place = in_rows(list(by_function), 3)
    with titled_panels(path, by_function, labels, place, heading, panel=(4.0, 3.0)) as panels:
        for function, axis in panels.items():
            for one in by_function[function]:
                if len(one["regret"]) and _has_curve(one.job.method):
                    _draw_curves(axis, one, cumulative)
            axis.margins(x=0.01)
            if not cumulative:
                axis.set_yscale("log")
                if function in TITLES:
                    axis.axhline(SCALE, color="#888888", linestyle=":", linewidth=1)
                    axis.text(1, SCALE, "range", va="bottom", color="#666666", fontsize=8)
        legend_above(next(iter(panels.values())), 5, size=9)


def _has_curve(method: str) -> bool:
    return method in CERTIFIED or not CONTENDERS[method].ours


def _draw_curves(axis: Any, one: Played, cumulative: bool) -> None:
    """Draw the regret of a method, and what ours certify of the points that it recommends."""
    method, certified = one.job.method, one["certified"]
    own, colour = method in CERTIFIED, COLOURS.get(method, "black")
    curve = one["regret"].cumsum(axis=1) if cumulative else one["simple"]
    order, trials = 3 if own else 2, 1 + np.arange(curve.shape[1])
    width = 2.6 if own else 1.3
    axis.plot(trials, curve.mean(axis=0), color=colour, label=method, linewidth=width, zorder=order)
    if own and not cumulative:
        known = ~np.isnan(certified).any(axis=0)
        axis.plot(
            trials[known], certified[:, known].mean(axis=0), "--o", color=colour,
            label=f"{method}: certified", linewidth=1.2, markersize=4, zorder=order,
        )  # fmt: skip


def _milliseconds(one: Played) -> float:
    late = one["seconds"][:, one.job.trials // 2 :]
    return 1e3 * float(np.median(late)) if late.size else math.nan


EXPERIMENT = Experiment(
    jobs,
    gather,
    {"txt": as_text},
    as_rows,
    (
        Picture(
            "optimisers", partial(draw, False), "Recommended points",
            "Regret of the recommended point against trials",
        ),
        Picture(
            "optimisers-cumulative", partial(draw, True), "Regret",
            "Cumulative regret against trials, by method",
        ),
    ),
    note="Above: true regret of the point that each method recommends, means over "
    "repetitions. Dashed: what ours certify it to be at most; the others certify nothing. Dotted: "
    "the range of the known functions. Below: cumulative regret.",
)  # fmt: skip
