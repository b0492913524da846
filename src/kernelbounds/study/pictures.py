"""Pictures of a study: its history, its certificates over time, and slices through the best.

The past of a study: what was known after the first observations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kernelbounds import plot
from kernelbounds.arrays import Array
from kernelbounds.bandits import Certificate
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.io import files
from kernelbounds.plot import canvas
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence


class Best(NamedTuple):
    """Bounds on the settings that were the best known, after so many observations; (n,) each.

    Nan where the data had refuted the assumptions.
    """

    counts: Array
    lower: Array
    upper: Array


def evenly(count: int, most: int) -> list[int]:
    """Numbers of observations from 1 to ``count``, at most so many, and the last among them."""
    return sorted({round(float(one)) for one in np.linspace(1, count, min(count, most))})


def replayed(
    problem: Problem, points: Array, outcomes: Array, counts: list[int]
) -> Iterator[ConfidenceSequence]:
    """The sequence as it was after each of these numbers of observations, which increase.

    It is one object, which is updated from one to the next.
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
    """Bounds at the observed settings that had the best one for sure."""
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


if TYPE_CHECKING:
    from matplotlib.axes import Axes


def history(problem: Problem, outcomes: Array, best: Best, ax: Axes | None = None) -> Axes:
    """Draw outcomes in the order told, and bounds on the best settings known at each time."""
    axes = canvas.axes_for(ax)
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
    # Bounds of the first few observations may be far out, where nothing else is to be seen.
    low, high = min(outcomes.min(), problem.output.low), max(outcomes.max(), problem.output.high)
    axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    canvas.whole_ticks(axes.xaxis)
    canvas.tidy(axes)
    canvas.legend([axes], own=ax is None)
    return axes


def certificates(
    problem: Problem, found: list[tuple[int, Certificate]], enough: float | None
) -> Axes:
    """Draw the certified regret over the number of observations."""
    return plot.certificate(
        [count for count, _ in found],
        [one.regret for _, one in found],
        enough=enough,
        output=f"certified regret, {problem.output.label}",
    )


def slices(
    problem: Problem, sequence: ConfidenceSequence, data: tuple[Array, Array], x: Array
) -> Any:
    """Draw bounds along each input through a point; whole inputs as if they were continuous."""

    def bounds(points: Array) -> tuple[Array, Array]:
        columns = [one.scaled(points[:, at]) for at, one in enumerate(problem.inputs)]
        return sequence.bounds(np.stack(columns, axis=-1))

    return plot.slices(
        bounds,
        problem.box,
        x,
        data=data,
        log=[one.name for one in problem.inputs if one.log] or None,
        labels=[one.label for one in problem.inputs],
        output=problem.output.label,
    )


def save(axes: Any, path: Path) -> Path:
    """Write the figure of these axes to a PNG file, whole or not at all, and close it."""
    from matplotlib import pyplot

    figure = np.atleast_1d(axes)[0].figure
    try:
        with files.failure_reported(f"write the picture {path}"), files.replacing(path) as file:
            figure.savefig(file, format="png", dpi=150)
    finally:
        pyplot.close(figure)
    return path
