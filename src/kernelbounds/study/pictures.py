"""What was known after the first observations of a study, and pictures of it.

The pictures are its history, its certificates over time, and slices through the best settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kernelbounds import plot
from kernelbounds.arrays import Array, brief
from kernelbounds.bandits import Certificate
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.io import files
from kernelbounds.plot import canvas
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The picture of the history has bounds at no more numbers of observations than this.
MAX_HISTORY_COUNTS = 60


class Best(NamedTuple):
    """Bounds at the best settings known after each of several numbers of observations, (n,) each.

    They are nan where the data had refuted the assumptions.
    """

    counts: Array
    lower: Array
    upper: Array


def evenly(count: int, most: int) -> list[int]:
    """Return at most ``most`` numbers of observations, spread from 1 to ``count``."""
    return sorted({round(float(one)) for one in np.linspace(1, count, min(count, most))})


def replayed(
    problem: Problem, points: Array, outcomes: Array, counts: list[int]
) -> Iterator[ConfidenceSequence]:
    """Yield the sequence as it was after each of these numbers of observations, which increase.

    It is always the same object, which is updated from one number to the next.
    """
    sequence, done = problem.sequence(), 0
    unit = problem.scaled(points)
    for count in counts:
        sequence.update(unit[done:count], outcomes[done:count])
        done = count
        yield sequence


def running_best(
    problem: Problem, points: Array, outcomes: Array, minimise: bool, counts: list[int]
) -> Best:
    """Return bounds at the observed settings that surely had the best value at each time."""
    known = []
    for sequence in replayed(problem, points, outcomes, counts):
        try:
            lower, upper = sequence.bounds(sequence.points)
            at = int(upper.argmin() if minimise else lower.argmax())
            known.append((lower[at], upper[at]))
        except EmptyConfidenceSetError:
            known.append((np.nan, np.nan))
    sides = np.array(known, dtype=float).reshape(-1, 2)
    return Best(np.array(counts, dtype=float), sides[:, 0], sides[:, 1])


def history(problem: Problem, outcomes: Array, best: Best) -> Axes:
    """Draw outcomes in the order told, and bounds on the best settings known at each time."""
    axes = canvas.new_axes()[0]
    axes.fill_between(
        best.counts, best.lower, best.upper, step="post", color=canvas.BAND, alpha=0.16,
        linewidth=0, label="truth at the best settings known",
    )  # fmt: skip
    for side in (best.lower, best.upper):
        axes.step(best.counts, side, where="post", color=canvas.BAND, linewidth=1.2)
    axes.plot(
        1 + np.arange(len(outcomes)), outcomes, "o", color="black", markersize=3.5,
        label="outcomes",
    )  # fmt: skip
    axes.set(xlabel="observations", ylabel=canvas.as_written(problem.output.label))
    # Bounds after the first few observations may be far out, where there is nothing else to see.
    low, high = min(outcomes.min(), problem.output.low), max(outcomes.max(), problem.output.high)
    axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    canvas.whole_ticks(axes.xaxis)
    canvas.tidy(axes)
    canvas.legend([axes], own=True)
    return axes


def slices(
    problem: Problem, sequence: ConfidenceSequence, data: tuple[Array, Array], x: Array
) -> Any:
    """Draw bounds along each input through a point, with steps between whole numbers."""

    def bounds(points: Array) -> tuple[Array, Array]:
        return sequence.bounds(problem.nearest(points))

    return plot.slices(bounds, problem.box, x, data=data, **problem.axes)


def save_all(
    folder: str | PathLike[str],
    problem: Problem,
    sequence: ConfidenceSequence,
    points: Array,
    outcomes: Array,
    found: list[tuple[int, Certificate]],
    *,
    minimise: bool,
    aim: float | None,
) -> list[Path]:
    """Write history.png, and certificate.png and slices.png where there are certificates."""
    where = files.as_path(folder)
    with files.failure_reported(f"make the folder {brief(str(folder))}"):
        where.mkdir(parents=True, exist_ok=True)
    counts = evenly(len(outcomes), MAX_HISTORY_COUNTS)
    best = running_best(problem, points, outcomes, minimise, counts)
    drawn: dict[str, Any] = {"history": history(problem, outcomes, best)}
    if found:
        drawn["certificate"] = plot.certificate(
            [count for count, _ in found],
            [one.regret for _, one in found],
            enough=aim,
            output=f"certified regret, {problem.output.label}",
        )
    if found and found[-1][0] == len(outcomes):
        drawn["slices"] = slices(problem, sequence, (points, outcomes), found[-1][1].x)
    paths = {where / f"{name}.png": axes for name, axes in drawn.items()}
    for path, axes in paths.items():
        canvas.save(axes, path)
    return list(paths)
