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
from kernelbounds.bounds import CMM, RIVALS
from kernelbounds.paper import results, specs
from kernelbounds.paper.cells import PLAY, Cell, noise_of, problem_of, sequence_for
from kernelbounds.paper.figures import USERS_COLOURS, legend_above, log_axes, titled_panels
from kernelbounds.paper.results import Repetitions
from kernelbounds.paper.specs import Choices, Experiment, Job, Picture, Rows, Setting
from kernelbounds.sequence import ConfidenceSequence

# Numbers of observations after which widths are measured; also after the last.
TIMES = (10, 30, 100)
OURS = ("CMM default", "CMM", "CMM limit")
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


@dataclass(frozen=True)
class RivalRun(Job):
    """One bound on one problem of Table 1, which depends on the seed and the repetition alone."""

    setting: Setting
    method: str
    repetition: int
    seed: int = 0
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """The setting, the seed, the method and the repetition."""
        return f"rivals-{self.cell.name}"

    @property
    def cost(self) -> float:
        """The cost of the method."""
        return self.cell.cost

    @property
    def cell(self) -> Cell:
        """The cell of Table 1 that has the same problem and the same noise."""
        return Cell(self.setting, self.method, self.repetition, self.seed)

    def run(self) -> dict[str, Array]:
        """Return the mean width at :func:`times` and, by round, regret, its bound and seconds.

        The last three are nan for a bound that policies cannot use.
        """
        cell, rounds = self.cell, self.setting.rounds
        problem = problem_of(cell)
        result = {"width": _widths(cell, problem)}
        names = ("regret", "regret_bound", "seconds")
        sequence = _sequence(cell, noise_of(cell))
        if not sequence.bound.guarantee.sequential:
            return result | {name: np.full(rounds, math.nan) for name in names}
        policy = KernelUCB(sequence)
        played = simulate(policy, problem, rounds, cell.generator(PLAY))
        values = played.regret, policy.history.regret_bound, played.seconds
        return result | dict(zip(names, values, strict=True))


def _widths(cell: Cell, problem: SyntheticProblem) -> Array:
    rounds, rng = cell.setting.rounds, cell.generator(WIDTHS)
    X, asked = rng.random((rounds, cell.setting.dim)), problem.actions(rng)
    noise = np.array([problem.noise(rng) for _ in range(rounds)])
    sequence, found, start = _sequence(cell, noise), [], 0
    for stop in times(rounds):
        sequence.update(X[start:stop], problem.values(X[start:stop]) + noise[start:stop])
        lower, upper = sequence.bounds(asked)
        found.append(float((upper - lower).mean()))
        start = stop
    return np.array(found)


def _sequence(cell: Cell, noise: Array) -> ConfidenceSequence:
    setting, method = cell.setting, cell.method
    sequence = sequence_for(cell, CMM(), noise)
    if method in RIVALS:
        make, kernel = RIVALS[method], sequence.kernel
        bound = make(setting.rounds, kernel, setting.dim, sequence.assumptions)
    elif specs.is_users_own(method):
        bound = specs.bound_of(method)
    else:
        return sequence
    return sequence_for(cell, bound, noise)


def times(rounds: int) -> list[int]:
    """Return the numbers of observations after which widths are measured."""
    return sorted({min(time, rounds) for time in (*TIMES, rounds)})


def jobs(choices: Choices) -> list[RivalRun]:
    """Return all runs; the methods are the bounds of the literature, ours and the user's own."""
    fewer = choices.at_most(specs.RIVAL_ROUNDS, specs.RIVAL_REPETITIONS)
    fingerprints = choices.fingerprints
    return [
        RivalRun(setting, method, repetition, choices.seed, fingerprints.get(method, ""))
        for setting in fewer.settings()
        for repetition in range(fewer.repetitions)
        for method in (*OURS, *RIVALS, *choices.users_own)
    ]


Rival = Repetitions[RivalRun]  # all repetitions of one method in one setting


def title(one: Rival) -> str:
    """Return the title of a method."""
    return TITLES.get(one.job.method, one.job.method)


def as_text(found: list[Rival]) -> str:
    """Return tables of widths, regret, certified regret and time, with a row for each method."""
    rounds, count = found[0].job.setting.rounds, len(found[0]["width"])
    reference = {one.job.setting: one["width"] for one in found if one.job.method == OURS[0]}

    def table(shown: Callable[[Rival], str]) -> list[list[str]]:
        return results.crossed(found, title, lambda one: one.job.setting.title, shown)

    def relative(one: Rival) -> str:
        return f"{float((one['width'][:, -1] / reference[one.job.setting][:, -1]).mean()):.2f}"

    def milliseconds(one: Rival) -> str:
        late = one["seconds"][:, -(rounds // 4) - 1 :]
        return results.plus_minus(1e3 * float(np.median(late)), math.nan)

    after = f"after {rounds} rounds, mean ± standard error of {count}"
    return results.under_headings(
        {
            f"Mean width after {rounds} observations over that of CMM, default": table(relative),
            f"Regret of KernelUCB {after}": table(
                lambda one: results.mean_text(one["regret"].sum(axis=1))
            ),
            f"What that regret is certified to be at most {after}": table(
                lambda one: results.mean_text(one["regret_bound"].sum(axis=1))
            ),
            "Milliseconds a step of KernelUCB, median of the last quarter of the rounds": table(
                milliseconds
            ),
        }
    )


def as_rows(found: list[Rival]) -> Rows:
    """Yield one row for each method and setting."""
    for one in found:
        s, totals = one.job.setting, one["regret"].sum(axis=1)
        yield {
            "kernel": s.kernel,
            "length_scale": s.length_scale,
            "method": one.job.method,
            "repetitions": len(totals),
            "rounds": s.rounds,
            "width": one["width"][:, -1].mean(),
            "regret": totals.mean(),
            "regret_standard_error": results.standard_error(totals),
            "certified_regret": one["regret_bound"].sum(axis=1).mean(),
            "milliseconds": 1e3 * np.median(one["seconds"]),
        }


def draw_widths(found: list[Rival], path: Path) -> None:
    """Draw the mean width of each bound against the number of observations."""

    def curve(one: Rival) -> tuple[Sequence[int], Array]:
        return times(one.job.setting.rounds), one["width"]

    _draw(found, path, ("observations", "mean width"), curve, TICKS)


def draw_regret(found: list[Rival], path: Path) -> None:
    """Draw the cumulative regret of KernelUCB with each bound."""

    def curve(one: Rival) -> tuple[Sequence[int], Array]:
        return range(1, one.job.setting.rounds + 1), np.cumsum(one["regret"], axis=1)

    _draw(found, path, ("round", "cumulative regret"), curve)


def _draw(
    found: list[Rival],
    path: Path,
    labels: tuple[str, str],
    curve: Callable[[Rival], tuple[Sequence[int], Array]],
    log_ticks: Sequence[float] = (),
) -> None:
    """Draw a curve for each method, on logarithmic axes where there are ticks for them."""
    settings = list(dict.fromkeys(one.job.setting for one in found))
    own = dict.fromkeys(one.job.method for one in found if one.job.method not in STYLES)
    styles = STYLES | {method: (USERS_COLOURS[i % 4], "-.") for i, method in enumerate(own)}
    with titled_panels(path, settings, labels) as panels:
        for one in found:
            method, axis = one.job.method, panels[one.job.setting]
            x, values = curve(one)
            if np.isnan(values).any():
                continue
            colour, style = styles[method]
            width = 2.2 if method in TITLES else 1.2
            axis.plot(
                x, values.mean(axis=0), style, color=colour, label=title(one), linewidth=width
            )
            if log_ticks:
                log_axes(axis, x, log_ticks)
        legend_above(panels[settings[0]], 5)


EXPERIMENT = Experiment(
    jobs,
    results.repetitions,
    {"txt": as_text},
    as_rows,
    (
        Picture("rivals", draw_widths, "Widths", "Mean width against observations, by bound"),
        Picture(
            "rivals-regret", draw_regret, "Regret", "Cumulative regret against rounds, by bound"
        ),
    ),
    note="Above: mean widths after random observations. Below: regret of KernelUCB with each "
    "bound. Dashed: the limit, where R² is the noise energy itself, which nobody knows. Dotted: "
    "bounds that promise less, or that coincide with others.",
)
