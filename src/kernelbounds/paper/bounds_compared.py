"""The bounds of the literature beside ours: width, regret, certified regret and time.

Widths are those at random points, after a number of observations at random points that are the
same for all methods. Regret is that of KernelUCB with each bound on the problems of Table 1. The
limit is CMM with R_t^2 the noise energy itself, which only a simulation knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits import KernelUCB, SyntheticProblem, simulate
from kernelbounds.bounds import CMM, RIVALS, Bound
from kernelbounds.kernels import mixture_scale
from kernelbounds.mixtures import Hybrid, Mixture, Single
from kernelbounds.paper import specs
from kernelbounds.paper.cells import PLAY, PROBLEM, Limit, generator, random_problem
from kernelbounds.paper.figures import USERS_COLOURS, figure_files, grid_of, legend_above
from kernelbounds.paper.results import (
    ResultStore,
    csv_text,
    grouped,
    numbers,
    standard_error,
    under_headings,
    write_texts,
)
from kernelbounds.paper.specs import LENGTH_SCALES, RivalRun, Setting
from kernelbounds.sequence import ConfidenceSequence

WIDTHS = 4  # the stream of random numbers for data whose widths are measured
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)  # of widths; 20 is twice the norm bound
TITLES = {
    "CMM default": "CMM, default", "CMM": "CMM, the paper's c", "CMM limit": "CMM, the limit",
}  # fmt: skip
STYLES = {
    "CMM default": ("#0014a8", "-"), "CMM": ("#4f7fd9", "-"), "CMM limit": ("black", "--"),
    "Srinivas 2010": ("#bbbbbb", "-"), "AY 2012": ("#c46210", "-"),
    "OnlineToSet 2012": ("#8a5a00", "-"), "IGP 2017": ("#9b2335", "-"),
    "Durand 2018": ("#e0a030", "-"), "Fiedler 2021": ("#d6249f", ":"),
    "Neiswanger 2021": ("#777777", ":"), "Vakili 2021": ("#4b8b3b", ":"),
    "Emmenegger 2023": ("#0a7e8c", "-"), "Whitehouse 2023": ("#6b4c9a", "-"),
}  # fmt: skip


def run(job: RivalRun) -> dict[str, Array]:
    """Return the mean width at ``RIVAL_TIMES`` and, of each round, regret, its bound and seconds.

    The last three are nan for a bound that policies cannot use.
    """
    setting, rng = job.setting, generator(job.seed, job.repetition, PROBLEM)
    problem = random_problem(setting.make_kernel(), setting.dim, rng)
    result = {"width": _widths(job, problem, generator(job.seed, job.repetition, WIDTHS))}
    names = ("regret", "regret_bound", "seconds")
    sequence = _sequence(job, problem, _noise_of_play(job, problem))
    if not sequence.bound.guarantee.sequential:
        return result | {name: np.full(setting.rounds, math.nan) for name in names}
    policy = KernelUCB(sequence)
    played = simulate(policy, problem, setting.rounds, generator(job.seed, job.repetition, PLAY))
    values = played.regret, policy.history.regret_bound, played.seconds
    return result | dict(zip(names, values, strict=True))


def _widths(job: RivalRun, problem: SyntheticProblem, rng: np.random.Generator) -> Array:
    rounds, dim = job.setting.rounds, job.setting.dim
    X, asked = rng.random((rounds, dim)), problem.actions(rng)
    noise = np.array([problem.noise(rng) for _ in range(rounds)])
    sequence, found, start = _sequence(job, problem, noise), [], 0
    for stop in times(rounds):
        sequence.update(X[start:stop], problem.values(X[start:stop]) + noise[start:stop])
        lower, upper = sequence.bounds(asked)
        found.append(float((upper - lower).mean()))
        start = stop
    return np.array(found)


def _sequence(job: RivalRun, problem: SyntheticProblem, noise: Array) -> ConfidenceSequence:
    setting, kernel = job.setting, problem.function.kernel
    mixture: Mixture = Single(mixture_scale(kernel, setting.dim, setting.rounds))
    if job.method == "CMM default":
        mixture = Hybrid()
    elif job.method == "CMM limit":
        mixture = Limit.of(noise)
    sequence = ConfidenceSequence(
        kernel, setting.norm_bound, setting.noise_scale, specs.DELTA, mixture=mixture
    )
    bound: Bound = CMM()
    if job.method in RIVALS:
        bound = RIVALS[job.method](setting.rounds, kernel, setting.dim, sequence.assumptions)
    elif specs.is_users_own(job.method):
        bound = specs.bound_of(job.method)
    return ConfidenceSequence(
        kernel, setting.norm_bound, setting.noise_scale, specs.DELTA, bound=bound, mixture=mixture
    )


def _noise_of_play(job: RivalRun, problem: SyntheticProblem) -> Array:
    """Draw the noise of each round as :func:`simulate` does."""
    _, of_noise = generator(job.seed, job.repetition, PLAY).spawn(2)
    return np.array([problem.noise(of_noise) for _ in range(job.setting.rounds)])


def times(rounds: int) -> list[int]:
    """Return after how many observations widths are measured."""
    return sorted({min(time, rounds) for time in (*specs.RIVAL_TIMES, rounds)})


@dataclass(frozen=True)
class Rival:
    """All repetitions of one method in one setting."""

    setting: Setting
    method: str
    width: Array  # (repetitions, times)
    regret: Array  # (repetitions, rounds)
    regret_bound: Array  # (repetitions, rounds)
    seconds: Array  # (repetitions, rounds)


def write(jobs: list[RivalRun], store: ResultStore, folder: Path) -> str:
    """Make the tables and the figures of the experiment, and return the tables as text."""
    found = []
    for (setting, method), members in grouped(jobs, lambda j: (j.setting, j.method)).items():
        runs = [store.read(one) for one in members]
        names = ("width", "regret", "regret_bound", "seconds")
        found.append(Rival(setting, method, *(np.array([r[n] for r in runs]) for n in names)))
    _draw(found, folder, "rivals", "mean width", lambda one: (times(one.setting.rounds), one.width))
    _draw(
        found, folder, "rivals-regret", "cumulative regret",
        lambda one: (range(1, one.setting.rounds + 1), np.cumsum(one.regret, axis=1)),
    )  # fmt: skip
    return write_texts(folder, "rivals", as_text(found), as_csv(found))


def as_text(found: list[Rival]) -> str:
    """Return widths, regret, certified regret and time, a row for each method."""
    settings = list(dict.fromkeys(one.setting for one in found))
    rounds, count = settings[0].rounds, len(found[0].width)
    reference = {one.setting: one.width for one in found if one.method == "CMM default"}

    def table(shown: Callable[[Rival], str]) -> list[list[str]]:
        rows = grouped(found, lambda one: one.method).items()
        head = ["", *(setting.title for setting in settings)]
        return [head, *([TITLES.get(method, method), *map(shown, row)] for method, row in rows)]

    def relative(one: Rival) -> str:
        return f"{float((one.width[:, -1] / reference[one.setting][:, -1]).mean()):.2f}"

    after = f"after {rounds} rounds, mean ± standard error of {count}"
    return under_headings(
        {
            f"Mean width after {rounds} observations over that of CMM, default": table(relative),
            f"Regret of KernelUCB {after}": table(lambda one: _total(one.regret)),
            f"What that regret is certified to be at most {after}": table(
                lambda one: _total(one.regret_bound)
            ),
            "Milliseconds a step of KernelUCB, median of the last quarter of the rounds": table(
                lambda one: _shown(1e3 * float(np.median(one.seconds[:, -(rounds // 4) - 1 :])), 1)
            ),
        }
    )


def as_csv(found: list[Rival]) -> str:
    """Return one row for each method and setting."""
    head = ["kernel", "length_scale", "method", "repetitions", "rounds", "width", "regret"]
    head += ["regret_standard_error", "certified_regret", "milliseconds"]
    rows = []
    for one in found:
        s, totals = one.setting, one.regret.sum(axis=1)
        values = [float(one.width[:, -1].mean()), float(totals.mean()), standard_error(totals)]
        values.append(float(one.regret_bound.sum(axis=1).mean()))
        values.append(1e3 * float(np.median(one.seconds)))
        about = [s.kernel, s.length_scale, one.method, len(totals), s.rounds]
        rows.append([*about, *numbers(*values)])
    return csv_text(head, rows)


def _draw(
    found: list[Rival], folder: Path, name: str, what: str,
    curve: Callable[[Rival], tuple[Sequence[int], Array]],
) -> None:  # fmt: skip
    """Draw a curve for each method; kernels in columns and length scales in rows."""
    kernels, place_of = grid_of(one.setting for one in found)
    own = dict.fromkeys(one.method for one in found if one.method not in STYLES)
    styles = STYLES | {method: (USERS_COLOURS[i % 4], "-.") for i, method in enumerate(own)}
    with figure_files(folder, name, len(LENGTH_SCALES), len(kernels)) as axes:
        for one in found:
            axis, (x, values) = axes[place_of(one.setting)], curve(one)
            if np.isnan(values).any():
                continue
            colour, style = styles[one.method]
            label, wide = TITLES.get(one.method, one.method), one.method in TITLES
            mean, width = values.mean(axis=0), 2.2 if wide else 1.2
            axis.plot(x, mean, style, color=colour, label=label, linewidth=width)
            axis.set_title(one.setting.title, fontsize=10)
            if name == "rivals":
                axis.set_xscale("log")
                axis.set_yscale("log")
                axis.set_xticks(x, list(map(str, x)))
                axis.minorticks_off()
        if name == "rivals":
            for axis in axes.flat:
                low, high = axis.get_ylim()
                inside = [width for width in TICKS if low <= width <= high]
                axis.set_yticks(inside, [f"{width:g}" for width in inside])
        for axis in axes[-1]:
            axis.set_xlabel("observations" if name == "rivals" else "round")
        for axis in axes[:, 0]:
            axis.set_ylabel(what)
        legend_above(axes, axes[0, 0], 5, size=8)


def _total(values: Array) -> str:
    totals = values.sum(axis=1)
    error = standard_error(totals)
    text = _shown(float(totals.mean()), 1)
    return text if math.isnan(error) else f"{text} ± {error:.1f}"


def _shown(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"
