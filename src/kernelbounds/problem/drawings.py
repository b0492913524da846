"""Pictures of a problem: functions that it admits, its plan, and bounds from a table of runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelbounds import plot
from kernelbounds.arrays import Array
from kernelbounds.bandits import Box
from kernelbounds.bounds import Bound
from kernelbounds.plot import canvas
from kernelbounds.problem.assuming import Assumed
from kernelbounds.problem.inputs import Input
from kernelbounds.problem.plans import ACTIONS, Plan
from kernelbounds.problem.problem import Problem
from kernelbounds.problem.runs import Runs
from kernelbounds.sequence import ConfidenceSequence

# The picture of functions shows this many that are admitted and this many that are not, each at
# this many points of the slice that bends most, out of this many slices.
ADMITTED_SHOWN, EXCLUDED_SHOWN, SLICE_POINTS, SLICES_TRIED = 10, 2, 121, 16
CAPTION = (
    "All panels cut the same functions, along one input each. One that B does not cover is drawn "
    "only where it bends most."
)


def axes_of(problem: Problem) -> dict[str, Any]:
    """Return what pictures are told of the axes: logarithmic ones, and labels with units."""
    return {
        "log": [one.log for one in problem.inputs],
        "labels": [one.label for one in problem.inputs],
        "output": problem.output.label,
        "log_output": problem.output.log,
    }


def draw_functions(found: Assumed) -> Any:
    """Draw slices of random functions along each input: some that B covers, and the wildest.

    The wildest are those of the largest norms, as far as B does not cover these. Each is drawn only
    along the input along which it bends most, since along others it may well look tame.
    """
    problem, norms = found.problem, found.chosen.norms
    within = norms <= float(problem.norm_bound or np.inf)
    inside = np.flatnonzero(within)[:ADMITTED_SHOWN]
    panels = canvas.new_axes(len(problem.inputs), share_y=True)
    for axis, (ax, one) in enumerate(zip(panels, problem.inputs, strict=True)):
        admitted = [_along(found, int(at), axis) for at in inside]
        places, levels = one.unscaled(_ticks(one)), one.categories
        box = Box([one.low], [one.high], categories={} if levels is None else {0: levels})
        plot.functions(
            places, np.reshape(admitted, (-1, len(places))), box, ax,
            log=[one.log], labels=[one.label], output=problem.output.label if axis == 0 else "",
            log_output=problem.output.log,
        )  # fmt: skip
        if one.integer and not one.levels:
            canvas.round_ticks(ax.xaxis, 8, whole=True)
    outside = [int(at) for at in np.argsort(-norms)[:EXCLUDED_SHOWN] if not within[at]]
    too_wild: dict[str, Any] = {"color": canvas.NO_GUARANTEE, "linestyle": canvas.DASHED}
    for at in outside:
        slices = {axis: _along(found, at, axis) for axis in problem.inputs.numbers or [0]}
        axis = max(slices, key=lambda one: _bend(slices[one]))
        one = problem.inputs[axis]
        panels[axis].plot(one.unscaled(_ticks(one)), slices[axis], **too_wild)
    if outside:
        panels[0].plot([], [], label="not covered by B: a larger norm", **too_wild)
    panels[0].plot([], [], color="black", linewidth=0.9, label="covered by B (all other lines)")
    if len(problem.inputs) > 1:
        panels[0].figure.supxlabel(CAPTION, fontsize="small")
    canvas.legend(panels, own=True)
    return panels


def _ticks(one: Input) -> Array:
    """Return scaled values along an input: many, or all levels of a category."""
    return np.arange(one.high + 1) if one.levels else np.linspace(0, 1, SLICE_POINTS)


def _along(found: Assumed, at: int, axis: int) -> Array:
    """Return values of a function along one input, in the slice in which it bends most.

    The other inputs have random values. Of several such slices, the one that bends most shows what
    the norm is for.
    """
    rng, slices = np.random.default_rng(at), []
    one, box = found.problem.inputs[axis], found.problem.inputs.unit_box
    unit = _ticks(one)
    for _ in range(SLICES_TRIED):
        points = np.tile(box.scaled(rng.random((1, len(found.problem.inputs)))), (len(unit), 1))
        points[:, axis] = one.scaled(one.unscaled(unit))  # Whole numbers have steps between them.
        slices.append(found.values(found.functions[at], points))
    return max(slices, key=_bend)


def _bend(values: Array) -> float:
    """Return how much a slice bends: the sum of the changes of its slope."""
    return float(np.abs(np.diff(values, 2)).sum())


def draw_plan(expected: Plan) -> Any:
    """Draw half-widths and regrets against the number of experiments, both logarithmic."""
    out = expected.problem.output
    unit = f" [{out.unit}]" if out.unit and not out.log else ""
    names = ("factor of the band", "certified factor") if out.log else (
        f"half-width of the band{unit}", f"certified regret{unit}"
    )  # fmt: skip
    panels = canvas.new_axes(2)
    rows = (
        (expected.half_width, expected.simulated_half_width, out.span / 2),
        (expected.regret, expected.simulated_regret, out.span),
    )
    for ax, name, row in zip(panels, names, rows, strict=True):
        most, usual, trivial = (out.widths(np.asarray(part)) for part in row)
        ax.plot(expected.counts, most, "o-", markersize=3, color=canvas.BAND, label="at most")
        # Its regret is that of fewer choices, so it must not look like the same thing as "at most".
        colour, how = canvas.COLOURS[1], "simulated, with functions like yours"
        if ax is panels[1]:
            colour = canvas.COLOURS[2]
            how = f"simulated, choosing among only {ACTIONS} settings"
        ax.plot(expected.counts, usual, "s-", markersize=3, color=colour, label=how)
        if ax is panels[0]:
            ax.plot(
                expected.counts, out.widths(expected.simulated_error), "^", markersize=3,
                color=canvas.NO_GUARANTEE, linestyle=canvas.DASHED,
                label="error of the estimate, simulated",
            )  # fmt: skip
        ax.axhline(
            float(trivial), color="black", linewidth=0.8, linestyle=":",
            label="no more than the range",
        )  # fmt: skip
        ax.set(xscale="log", yscale="log")
        canvas.log_ticks(ax.yaxis, *ax.get_ylim())
        canvas.log_ticks(ax.xaxis, expected.counts[0], expected.counts[-1])
        ax.set(xlabel="experiments", ylabel=canvas.as_written(name))
        canvas.tidy(ax)
    canvas.legend(panels, own=True)
    return panels


def draw_bounds(
    problem: Problem,
    sequence: ConfidenceSequence,
    runs: Runs,
    best: Array,
    bound: Bound | None = None,
    process: Any = None,
) -> Any:
    """Draw a band for one input, maps for two, and slices through the best point (d,) for more.

    Inputs that are categories do not count: each picture is one of all levels. The band of a
    ``process``, see :func:`kernelbounds.plot.gaussian_process`, is drawn beside that, and then two
    inputs have slices as well.
    """

    def band(where: Array) -> tuple[Array, Array, Array]:
        sides = sequence.estimate_with_bounds(problem.inputs.nearest(where), bound)
        return problem.outcomes.estimate(*sides)

    shared = axes_of(problem) | {"data": (runs.points, runs.outcomes)}
    box = canvas.drawable(problem.inputs.box, best)
    numbers = len(problem.inputs.numbers)
    if numbers == 2 and process is None:
        return plot.maps(band, box, **shared)
    if process is not None:

        def overlay(where: Array) -> tuple[Array, Array]:
            return problem.outcomes.bounds(*process(problem.inputs.nearest(where)))

        shared["without_guarantee"] = {process.label: overlay}
    shared["limits"] = problem.limits
    axes = [plot.band(band, box, **shared)] if numbers == 1 else plot.slices(
        band, box, best, **shared
    )  # fmt: skip
    # Where there are no data, one need not see how far the band exceeds the range stated.
    out = problem.output
    for ax in axes:
        bottom, top = ax.get_ylim()
        low, high = out.least(out.middle - out.span), out.most(out.middle + out.span)
        ax.set_ylim(max(bottom, float(low)), min(top, float(high)))
    return axes
