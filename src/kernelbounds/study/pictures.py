"""Pictures of a study: its history, its certificates over time, and slices at the best settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelbounds import plot
from kernelbounds.arrays import Array, brief
from kernelbounds.bandits import Certificate
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.io import files
from kernelbounds.plot import canvas
from kernelbounds.problem import Problem
from kernelbounds.problem.checked import checked_assumptions
from kernelbounds.problem.drawings import axes_of
from kernelbounds.study.findings import evenly, replayed
from kernelbounds.study.trial import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kernelbounds.study.study import Study

# The picture of the history has bounds at no more numbers of observations than this.
MAX_HISTORY_COUNTS = 60
# Bounds are computed at this many settings at a time: 1,000 at once would take 150 MB.
HISTORY_POINTS_AT_ONCE = 256


def save_all(folder: str | PathLike[str], drawings: Mapping[str, Callable[[], Any]]) -> list[Path]:
    """Write each drawing to a PNG file of its name in a folder."""
    where = files.as_path(folder)
    with files.failure_reported(f"make the folder {brief(str(folder))}"):
        where.mkdir(parents=True, exist_ok=True)
    paths = [where / f"{name}.png" for name in drawings]
    for path, draw in zip(paths, drawings.values(), strict=True):
        canvas.save(draw(), path)
    return paths


def over_time(
    study: Study, outcomes: list[Outcome], certificates: list[tuple[int, Certificate]]
) -> dict[str, Callable[[], Axes]]:
    """Return functions that draw the history, the certificates, and how unknown noise closes in."""
    output = study.problem.output
    # The regret of a logarithmic output is drawn as a factor, which is 1 where there is none.
    one, enough = float(output.log), study.stop_within
    what = f"certified factor, {output.name}" if output.log else f"certified regret, {output.label}"
    drawn = {"history": lambda: _history(study.problem, outcomes, study.minimise)}
    if study.problem.stated_noise.is_unknown:
        drawn["noise"] = lambda: _noise(study.problem, outcomes)
    if certificates:
        drawn["certificate"] = lambda: plot.certificate(
            [count for count, _ in certificates],
            [found.regret + one for _, found in certificates],
            enough=None if enough is None else enough + one,
            output=what,
        )
    return drawn


def _history(problem: Problem, outcomes: list[Outcome], minimise: bool) -> Axes:
    """Draw outcomes in the order told, and bounds on the best settings known at each time.

    The band is that of the settings observed that surely have the best value. The line is the best
    estimate at settings observed, which may be other ones. There is neither where the data had
    refuted the assumptions.
    """
    values = np.array([one.value for one in outcomes])
    counts = evenly(len(outcomes), MAX_HISTORY_COUNTS)
    known, estimates, wider = best_known(problem, outcomes, counts, minimise)
    axes = canvas.new_axes()[0]
    axes.fill_between(
        counts, known[0], known[1], step="post", color=canvas.BAND, alpha=0.16, linewidth=0,
        label="truth at the best settings known",
    )  # fmt: skip
    for side in known:
        axes.step(counts, side, where="post", color=canvas.BAND, linewidth=0.8)
    axes.step(
        counts, estimates, where="post", color=canvas.BAND, linewidth=2.2,
        label="best estimate at settings tried",
    )  # fmt: skip
    for count in wider:
        label = "other settings are the best known from here on" if count == wider[0] else None
        axes.axvline(count, color=canvas.BAND, linestyle=":", linewidth=1.0, label=label)
    axes.plot(
        1 + np.arange(len(values)), values, "o", color="black", markersize=3.5, label="outcomes"
    )
    # Bounds after the first few observations may be far out, where there is nothing else to see.
    out = problem.output
    low, high = out.scaled([min(values.min(), out.low), max(values.max(), out.high)])
    margin = 0.05 * (high - low)
    ends = float(out.least(low - margin)), float(out.most(high + margin))
    if out.log:
        axes.set_yscale("log")
        canvas.log_ticks(axes.yaxis, *ends)
    axes.set_ylim(*ends)
    canvas.finish(axes, True, problem.output.label, "observations")
    return axes


def best_known(
    problem: Problem, outcomes: list[Outcome], counts: list[int], minimise: bool
) -> tuple[Array, Array, list[int]]:
    """Return bounds (2, n) on the best settings known at n numbers of observations.

    The best estimate (n,) at settings observed comes with them. Bounds of all times hold together,
    so those at each setting observed are intersected over time: the band gets wider only where
    other settings become the best known. The numbers at which it does are returned, too.
    """
    known, wider = np.full((2, len(counts)), np.nan), []
    estimates = np.full(len(counts), np.nan)
    lower, upper = np.empty(0), np.empty(0)
    last = np.array([-np.inf, np.inf])
    for place, (count, sequence) in enumerate(replayed(problem, outcomes, counts)):
        new = count - len(lower)
        lower = np.concatenate([lower, np.full(new, -np.inf)])
        upper = np.concatenate([upper, np.full(new, np.inf)])
        with suppress(EmptyConfidenceSetError):
            points = sequence.points
            starts = range(0, len(points), HISTORY_POINTS_AT_ONCE)
            chunks = (points[start : start + HISTORY_POINTS_AT_ONCE] for start in starts)
            found = zip(*map(sequence.estimate_with_bounds, chunks), strict=True)
            estimate, *now = problem.outcomes.estimate(*map(np.concatenate, found))
            estimates[place] = estimate.min() if minimise else estimate.max()
            lower, upper = np.maximum(lower, now[0]), np.minimum(upper, now[1])
            best = int(upper.argmin() if minimise else lower.argmax())
            known[:, place] = lower[best], upper[best]
            if lower[best] < last[0] or upper[best] > last[1]:
                wider.append(count)
            last = known[:, place]
    return known, estimates, wider


def _noise(problem: Problem, outcomes: list[Outcome]) -> Axes:
    """Draw how an unknown noise closes in, in the user's units."""
    counts, out = evenly(len(outcomes), MAX_HISTORY_COUNTS), problem.output
    found = [
        checked_assumptions(problem, sequence)[1]
        for _, sequence in replayed(problem, outcomes, counts)
    ]
    times, unit = (100, " [%]") if out.log else (1, f" [{out.unit}]" if out.unit else "")
    return plot.noise(
        counts,
        [times * float(one.at_most or 0.0) for one in found],
        [times * one.at_least for one in found],
        output=f"noise of {out.name}{unit}",
    )


def slices(study: Study, point: Array) -> Any:
    """Draw the band along each input through a point, with steps between whole numbers.

    There is a band for each level of categories, or one for those of the point if they are many.
    """
    problem = study.problem
    return plot.slices(
        estimate_with_bounds(study), canvas.drawable(problem.inputs.box, point), point,
        data=observed(study), limits=problem.limits, **axes_of(problem),
    )  # fmt: skip


def estimate_with_bounds(study: Study) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Return the estimate and its bounds as a function of points (m, d) in the user's units.

    Between whole numbers the function has steps.
    """
    problem, sequence = study.problem, study.sequence
    return lambda points: problem.outcomes.estimate(
        *sequence.estimate_with_bounds(problem.inputs.nearest(points))
    )


def observed(study: Study) -> tuple[Array, Array]:
    """Return the settings (n, d) and the outcomes (n,) of a study, in the user's units."""
    columns = study.observations
    points = (
        study.problem.inputs.points(columns)
        if len(study)
        else np.empty((0, len(study.problem.inputs)))
    )
    return points, columns[study.problem.output.name]
