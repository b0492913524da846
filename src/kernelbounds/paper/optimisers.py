"""Optimisers beside each other: regret, what is certified, and time, with and without a guarantee.

All meet the same functions on the unit cube with the same noise, and choose one point a trial.
Functions of the paper are those of Table 1, and ours are told the true kernel, norm and noise.
The known functions are scaled to 0 and 100, and ours are told what a user might say of them in
words: that range, the noise, and how often the output turns along each input.

Simple regret is that of the point which a method recommends. Certified regret is what our bounds
say of the trials of *any* method: they hold for points that were chosen by any rule.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from kernelbounds.arrays import Array
from kernelbounds.bandits import Certificate, KernelUCB
from kernelbounds.errors import said
from kernelbounds.paper import specs
from kernelbounds.paper.cells import PLAY, POLICY, PROBLEM, generator, random_problem
from kernelbounds.paper.certified_rounds import known_function, least_norm
from kernelbounds.paper.contenders import CONTENDERS, Optimiser
from kernelbounds.paper.figures import figure_files, legend_above
from kernelbounds.paper.results import (
    ResultStore,
    csv_text,
    grouped,
    numbers,
    standard_error,
    under_headings,
    write_texts,
)
from kernelbounds.paper.specs import OptimiserRun
from kernelbounds.problem import Problem

SCALE = 100.0  # the range of known functions
KNOWN_NOISE = 1.0
# How often the known functions turn along each input, counted on lines through the cube.
TURNS = {"branin": (5, 1), "hartmann": (1, 3, 3), "camel": (5, 3)}
TITLES = {"branin": "Branin", "hartmann": "Hartmann-3", "camel": "six-hump camel"}
# Where the largest value of a function is looked for: the best of these points are improved.
SCANNED, STARTS = 2**13, 12
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
    """Return the name of a function for people."""
    if function in TITLES:
        return TITLES[function]
    setting = specs.OPTIMISER_SETTINGS[function]
    return f"{specs.KERNEL_TITLES[setting[0]]}, ℓ = {setting[1]:g}"


def dim_of(function: str) -> int:
    """Return the number of inputs of a function."""
    return len(TURNS[function]) if function in TURNS else specs.OPTIMISER_DIM


@cache
def task(function: str, trials: int, seed: int, repetition: int) -> Task:
    """Make a task; a random function depends on the seed and the repetition, a known one does not.

    Tasks are kept, because all methods ask for the same ones.
    """
    if function in TITLES:
        return _known(function, trials)
    kernel_name, length_scale = specs.OPTIMISER_SETTINGS[function]
    kernel, dim = specs.kernel_named(kernel_name, length_scale), specs.OPTIMISER_DIM
    drawn = random_problem(kernel, dim, generator(seed, repetition, PROBLEM))
    # No function of norm B exceeds B where k(x,x) = 1, so that this range says nothing new.
    problem = Problem(
        [f"x{i}=0:1" for i in range(dim)], f"y={-specs.NORM}:{specs.NORM}", specs.NOISE,
        delta=specs.DELTA, kernel=kernel, norm_bound=specs.NORM * (1 + 1e-12),
    ).settled()  # fmt: skip
    return Task(drawn.values, largest(drawn.values, dim), specs.NOISE, problem)


@cache
def _known(function: str, trials: int) -> Task:
    turns = TURNS[function]
    raw = _camel if function == "camel" else known_function(function).formula
    low, high = -largest(lambda x: -raw(x), len(turns)), largest(raw, len(turns))

    def values(points: Array) -> Array:
        return np.asarray(SCALE * (raw(points) - low) / (high - low))

    problem = Problem(
        [f"x{i}=0:1:turns={count}" for i, count in enumerate(turns)], f"score=0:{SCALE:g}",
        KNOWN_NOISE, delta=specs.DELTA, experiments=trials,
    ).settled()  # fmt: skip
    return Task(values, SCALE, KNOWN_NOISE, problem)


def _camel(x: Array) -> Array:
    u, v = 4 * x[:, 0] - 2, 2 * x[:, 1] - 1
    return np.asarray(-(4 - 2.1 * u**2 + u**4 / 3) * u**2 - u * v - 4 * (v**2 - 1) * v**2)


def largest(values: Callable[[Array], Array], dim: int) -> float:
    """Find the largest value of a function on the unit cube, from many starts."""
    points = qmc.Sobol(dim, scramble=False).random(SCANNED)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * dim), axis=-1).reshape(-1, dim)
    points = np.concatenate([points, corners])
    found = values(points)
    starts = points[np.argsort(-found)[:STARTS]]
    tops: list[float] = [
        -minimize(
            lambda x: -float(values(x[None])[0]), start, method="L-BFGS-B", bounds=[(0, 1)] * dim,
            options={"ftol": 1e-15, "gtol": 1e-9},
        ).fun
        for start in starts
    ]  # fmt: skip
    return max(float(found.max()), *tops)


def run(job: OptimiserRun) -> dict[str, Array]:
    """Return regret, that of the recommended point, and seconds of each trial, and certificates.

    ``certified`` is what the regret of the best point known is at most, ``true`` its true regret;
    both are nan where there was no certificate. A method of others that fails ends its run, and
    what is missing is nan; a failure of ours is an error.
    """
    known = task(job.function, job.trials, job.seed, job.repetition)
    contender = CONTENDERS[job.method]
    result = {name: np.full(job.trials, math.nan) for name in NAMES}
    result["failed"] = np.zeros(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _play(job, known, result)
    except Exception as error:
        if contender.ours:
            raise
        warnings.warn(f"{job.method} failed on {job.function}: {said(error)}", stacklevel=2)
        result["failed"][0] = 1
    return result


def _play(job: OptimiserRun, known: Task, result: dict[str, Array]) -> None:
    contender = CONTENDERS[job.method]
    of_noise = generator(job.seed, job.repetition, PLAY)
    noise = known.noise_scale * of_noise.standard_normal(job.trials)
    seed = int(generator(job.seed, job.repetition, POLICY).integers(2**31))
    optimiser = contender.make(known.problem, seed)
    for t in range(job.trials):
        start = time.process_time()
        x = optimiser.ask()
        asked = time.process_time() - start
        value = float(known.values(x[None])[0])
        start = time.process_time()
        optimiser.tell(x, value + float(noise[t]))
        result["seconds"][t] = asked + time.process_time() - start
        result["regret"][t] = max(known.best - value, 0.0)
        chosen = float(known.values(optimiser.recommended()[None])[0])
        result["simple"][t] = max(known.best - chosen, 0.0)
        drawn = job.method in CERTIFIED and t + 1 in specs.OPTIMISER_TIMES
        if t + 1 == job.trials or drawn:
            found = certificate(known.problem, optimiser)
            result["certified"][t] = found.regret
            result["true"][t] = known.best - float(known.values(found.x[None])[0])


def certificate(problem: Problem, optimiser: Optimiser) -> Certificate:
    """Certify the best point known from the trials of any method."""
    sequence = problem.sequence()
    sequence.update(np.array(optimiser.points), optimiser.outcomes)
    slack = CERTIFICATE_SLACK * problem.output.span
    policy = KernelUCB(sequence, problem.unit_box)
    return policy.certificate(tolerance=slack, seconds=CERTIFICATE_SECONDS)


@dataclass(frozen=True)
class Played:
    """All repetitions of one method on one function, without those that failed."""

    function: str
    method: str
    failed: int  # the number of repetitions that did
    regret: Array  # (repetitions, trials)
    simple: Array  # (repetitions, trials)
    certified: Array  # (repetitions, trials)
    true: Array  # regret of the points that were certified, (repetitions, trials)
    seconds: Array  # (repetitions, trials)


def write(jobs: list[OptimiserRun], store: ResultStore, folder: Path) -> str:
    """Make the tables and the figures of the experiment, and return the tables as text."""
    found = []
    for (function, method), members in grouped(jobs, lambda j: (j.function, j.method)).items():
        runs = [store.read(one) for one in members]
        whole = [one for one in runs if not one["failed"][0]]
        arrays = [
            np.array([one[name] for one in whole]).reshape(len(whole), members[0].trials)
            for name in NAMES
        ]
        found.append(Played(function, method, len(runs) - len(whole), *arrays))
    draw(found, folder, "optimisers", "simple regret")
    draw(found, folder, "optimisers-cumulative", "cumulative regret")
    return write_texts(folder, "optimisers", as_text(found), as_csv(found))


def as_text(found: list[Played]) -> str:
    """Return regret, certified regret and time, a row for each method."""
    functions = list(dict.fromkeys(one.function for one in found))
    count, trials = found[0].regret.shape

    def table(shown: Callable[[Played], str]) -> list[list[str]]:
        rows = grouped(found, lambda one: one.method).items()
        head = ["", *map(title, functions)]
        return [head, *([method, *map(shown, row)] for method, row in rows)]

    after = f"after {trials} trials, mean ± standard error of {count}"
    tables = {
        f"Regret of the recommended point {after}": table(lambda one: _mean(one.simple[:, -1], 2)),
        f"Cumulative regret {after}": table(lambda one: _mean(one.regret.sum(axis=1), 0)),
        f"Certified regret, by our bounds on the method's trials, {after}": table(
            lambda one: _mean(one.certified[:, -1], 1)
        ),
        "Milliseconds of one processor core a trial, median of the second half": table(
            lambda one: f"{_milliseconds(one):.0f}"
        ),
        "Recommended point": [
            [method, CONTENDERS[method].rule]
            for method in dict.fromkeys(one.method for one in found)
        ],
    }
    if known := [function for function in functions if function in TITLES]:
        tables["What ours are told of known functions, and their true norms"] = [
            ["", "turns", "kernel", "B", "norm, at least"],
            *(_told(function, trials) for function in known),
        ]
    issued, wrong = certificates(found)
    tables[f"Certificates that were wrong: {wrong} of {issued}"] = [[""]]
    if any(one.failed for one in found):
        tables[f"Failures in {count} runs"] = table(lambda one: str(one.failed))
    return under_headings(tables)


def _told(function: str, trials: int) -> list[str]:
    """Return what follows from the words for a known function, beside its least norm."""
    known, dim = task(function, trials, 0, 0), len(TURNS[function])
    problem = known.problem
    kernel = problem.sequence().kernel
    points = qmc.Sobol(dim, scramble=False).random(NORM_POINTS)
    norm = least_norm(kernel, points, known.values(points) - problem.output.middle)
    turns = ", ".join(map(str, TURNS[function]))
    return [title(function), turns, str(kernel), f"{problem.norm_bound:.0f}", f"{norm:.0f}"]


def certificates(found: list[Played]) -> tuple[int, int]:
    """Count the certificates that were issued, and those that were wrong."""
    true = np.concatenate([one.true.ravel() for one in found])
    claimed = np.concatenate([one.certified.ravel() for one in found])
    return int((~np.isnan(claimed)).sum()), int((true > claimed).sum())


def as_csv(found: list[Played]) -> str:
    """Return one row for each method and function."""
    head = ["function", "method", "guarantee", "repetitions", "failed", "trials"]
    head += ["simple_regret", "simple_regret_standard_error", "cumulative_regret"]
    head += ["cumulative_regret_standard_error", "certified_regret", "milliseconds"]
    rows = []
    for one in found:
        simple, total = one.simple[:, -1], one.regret.sum(axis=1)
        values = [_average(simple), _error(simple), _average(total), _error(total)]
        values += [_average(one.certified[:, -1]), _milliseconds(one)]
        count, trials = one.regret.shape
        about = [one.function, one.method, "yes" if CONTENDERS[one.method].ours else "no"]
        rows.append([*about, count, one.failed, trials, *numbers(*values)])
    return csv_text(head, rows)


CERTIFIED = ("KernelUCB", "Study, best")  # those whose certificates are drawn
COLOURS = {
    "KernelUCB": "#0014a8", "Study, best": "#0a9ea8", "BoTorch LogNEI": "#c46210",
    "BoTorch UCB": "#e0a030", "Optuna GP": "#9b2335", "Optuna TPE": "#d98aa0",
    "bayes_opt": "#4b8b3b", "random": "#aaaaaa",
}  # fmt: skip


def draw(found: list[Played], folder: Path, name: str, what: str) -> None:
    """Draw a curve for each method and, for simple regret, what ours certify; a panel a function.

    Curves are means over repetitions. A method that failed in all of its runs has none. Ours are
    drawn once, and not again for their doors.
    """
    panels = grouped(found, lambda one: one.function)
    columns = min(3, len(panels))
    cumulative = name.endswith("cumulative")
    size = math.ceil(len(panels) / columns), columns
    with figure_files(folder, name, *size, panel=(4.0, 3.0)) as axes:
        for axis, (function, members) in zip(axes.flat, panels.items(), strict=False):
            for one in members:
                ours, own = CONTENDERS[one.method].ours, one.method in CERTIFIED
                if not len(one.regret) or (ours and not own):
                    continue
                colour, width = COLOURS.get(one.method, "black"), 2.6 if own else 1.3
                curve = one.regret.cumsum(axis=1) if cumulative else one.simple
                trials = 1 + np.arange(curve.shape[1])
                order = 3 if own else 2
                axis.plot(
                    trials, curve.mean(axis=0), color=colour, label=one.method, linewidth=width,
                    zorder=order,
                )  # fmt: skip
                known = ~np.isnan(one.certified).any(axis=0)
                if not cumulative and own:
                    axis.plot(
                        trials[known], one.certified[:, known].mean(axis=0), "--o", color=colour,
                        label=f"{one.method}: certified", linewidth=1.2, markersize=4, zorder=order,
                    )  # fmt: skip
            axis.set_title(f"{title(function)}, d = {dim_of(function)}", fontsize=10)
            if not cumulative and function in TITLES:
                axis.axhline(SCALE, color="#888888", linestyle=":", linewidth=1)
                axis.text(1, SCALE, "range", va="bottom", color="#666666", fontsize=8)
            axis.margins(x=0.01)
            if not cumulative:
                axis.set_yscale("log")
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis in axes[-1]:
            axis.set_xlabel("trial")
        for axis in axes[:, 0]:
            axis.set_ylabel(what)
        legend_above(axes, axes[0, 0], 5, size=9)


def _average(values: Array) -> float:
    return float(values.mean()) if len(values) else math.nan


def _error(values: Array) -> float:
    return standard_error(values) if len(values) else math.nan


def _mean(values: Array, digits: int) -> str:
    mean, error = _average(values), _error(values)
    if math.isnan(mean):
        return ""
    text = f"{mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {error:.{digits}f}"


def _milliseconds(one: Played) -> float:
    late = one.seconds[:, one.seconds.shape[1] // 2 :]
    return 1e3 * float(np.median(late)) if late.size else math.nan
