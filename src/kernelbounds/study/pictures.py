"""Pictures of a study: its history, its certificates over time, and slices through the best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelbounds import files, plot
from kernelbounds.arrays import Array
from kernelbounds.bandits import Certificate
from kernelbounds.plot import canvas
from kernelbounds.problem import Problem
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.replay import Best

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def history(problem: Problem, outcomes: Array, best: Best, ax: Axes | None = None) -> Axes:
    """Draw outcomes in the order told, and bounds on the best settings known at each time."""
    axes = canvas.new_axes()[0] if ax is None else canvas.given_axis(ax)
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
