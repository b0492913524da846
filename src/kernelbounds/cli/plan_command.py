"""``kernelbounds plan``: how many experiments it takes, before the first one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import kernelbounds as kb
from kernelbounds.cli.options import (
    OutOption,
    Results,
    print_table,
    progress,
    say,
    with_problem,
)
from kernelbounds.display.numbers import at_most
from kernelbounds.errors import InputError

# As in kernelbounds.problem.plans, which would take too long to import for a line of help.
DEFAULT_COUNT, LARGEST_COUNT = 1000, 5000


@with_problem(needs_noise=True)
def plan(
    problem: kb.Problem,
    within: Annotated[
        float | None,
        typer.Option(
            help="Say how many experiments it takes for a band of ± this, in units of the output.",
            show_default="a tenth of the output's range",
        ),
    ] = None,
    most: Annotated[
        int,
        typer.Option(min=5, max=LARGEST_COUNT, help="Look no further than this many experiments."),
    ] = DEFAULT_COUNT,
    compare: Annotated[
        bool, typer.Option(help="Whether to say what stronger assumptions would buy.")
    ] = True,
    facts: Annotated[
        bool,
        typer.Option(
            help="Whether to simulate what each thing that you know of the output buys, such as "
            "--limits."
        ),
    ] = True,
    design: Annotated[
        int | None,
        typer.Option(min=1, help="Settings in design.csv.", show_default="5 for each input"),
    ] = None,
    out: OutOption = Path("plan"),
) -> None:
    """Predict the width of the band and the certified regret, from the assumptions alone.

    Regret is by how much the best settings known may fall short of the best possible. Writes
    problem.json, plan.csv, plan.png and design.csv, settings that fill the ranges evenly. With
    three inputs it takes about half a minute; --no-compare and a smaller --most are faster.

    Example: kernelbounds plan --problem assume/problem.json --within 5
    """
    aim = within if within is not None else problem.output.range / 10
    if not 0 < aim < math.inf:
        raise InputError(f"--within must be above 0, got {aim:g}.")
    with progress("predicting", kb.problem.plans.steps_of(problem, most)) as step:
        expected = kb.problem.plan(problem, most, step)
    show(expected)
    others = list(kb.problem.plans.alternatives(problem)) if compare else []
    rows = []
    with progress("what other assumptions would buy", len(others) + 1) as step:
        for name, one in [("as stated", expected.problem), *others]:
            rows.append(_row(name, one, aim, most))
            step()
    print_table(
        "What assumptions buy",
        ["assumption", "B", f"band after {problem.experiments}",
         f"experiments for ±{aim:.4g}{problem.output.after_number}"],
        rows,
    )  # fmt: skip
    if facts and expected.problem.facts:
        with progress(
            "what facts buy", kb.problem.plans.worth_steps(expected.problem, most)
        ) as step:
            worth = kb.problem.plans.worth_of_facts(expected.assumed, most, step)
        show_worth(expected.problem, worth, aim)
    say("Assume only what you know: if it is wrong, the bounds are.")
    _write(expected, Results(out), design or 5 * problem.dim)


def _row(name: str, problem: kb.Problem, aim: float, most: int) -> list[str]:
    try:
        settled = problem.settled()
    except InputError:
        return [name, "?", "?", "?"]
    count, unit = kb.problem.plans.needed(settled, aim, most), settled.output.after_number
    width, _ = kb.problem.problem.predicted_half_widths(settled, settled.experiments)
    return [
        name, f"{settled.norm_bound:.4g}{unit}", f"±{at_most(width)}{unit}",
        f"more than {most}" if count is None else str(count),
    ]  # fmt: skip


def show(expected: kb.problem.Plan) -> None:
    """Print widths and regrets by the number of experiments."""
    rows = [
        [str(count), f"±{at_most(width)}", f"±{typical:.3g}" if np.isfinite(typical) else "",
         at_most(regret), f"{usual:.3g}" if np.isfinite(usual) else ""]
        for count, width, typical, regret, usual in zip(
            expected.counts, expected.half_width, expected.simulated_half_width,
            expected.regret, expected.simulated_regret, strict=True,
        )
    ]  # fmt: skip
    problem = expected.problem
    kernel = kb.kernels.kernel_to_text(problem.kernel)
    print_table(
        f"{problem.output.label}: band and certified regret, with {kernel}, "
        f"B = {problem.norm_bound:.4g}{problem.output.after_number}",
        ["experiments", "band, at most", "band, simulated", "regret, at most",
         "regret among 256, simulated"],
        rows,
    )  # fmt: skip
    say(
        "Band: the true output is known to ± this on average. Regret: by how much the best "
        "settings known may fall short of the best possible, as study status certifies it."
    )
    say(
        "At most: certain if the assumptions hold, whatever the outcomes, with settings that fill "
        "the ranges evenly; the band is the mean half-width at 128 points, and the regret the "
        "largest width at these and in the corners. Simulated: the mean over 4 of the random "
        "functions; the regret is that of choosing among 256 settings, and it is larger over the "
        "whole ranges. A band wider than the output's range, "
        f"{problem.output.range:g}{problem.output.after_number}, says nothing."
    )
    say(
        "Plan by 'band, at most': in simulated studies, the regrets that were certified over whole "
        "ranges were 0.7 to 1.7 times that. 'Regret, at most' is for the worst of all functions."
    )


def show_worth(problem: kb.Problem, worth: kb.problem.plans.Worth, aim: float) -> None:
    """Print the band with and without each fact, and how many experiments each one saves."""
    plans, unit = kb.problem.plans, problem.output.after_number
    left_out = [words for words in problem.facts_in_words if words not in worth.half_width]
    if left_out:
        say(f"Not simulated, because random functions do not have it: {'; '.join(left_out)}.")
    if len(worth.half_width) == 1:
        return
    print_table(
        f"What you know buys: the mean band{f' [{unit.strip()}]' if unit else ''}, simulated with "
        f"{plans.WORTH_RUNS} random functions",
        ["experiments", *worth.half_width],
        [
            [str(count), *(f"±{w:.3g}" if np.isfinite(w) else "?" for w in widths)]
            for count, *widths in zip(worth.counts, *worth.half_width.values(), strict=True)
        ],
    )
    plain = worth.half_width[plans.NOTHING]
    # Where the aim is out of reach without facts, the band that is in reach takes its place.
    target = aim if plain[-1] <= aim else float(plain[-1])
    before = worth.experiments(plans.NOTHING, target)
    for name in list(worth.half_width)[1:]:
        after = worth.experiments(name, target)
        if before is None or after is None:
            continue
        known = "With all that you know" if name == plans.ALL else f"If {_as_clause(name)}"
        if round(after) < round(before):
            saved = f"about {after:.0f} experiments in place of {before:.0f}"
            if after <= worth.counts[0]:
                saved = f"{worth.counts[0]} experiments or fewer in place of {before:.0f}"
        else:
            saved = f"no fewer experiments than the {before:.0f} without"
        say(f"{known}: {saved}, for a band of ±{target:.3g}{unit}.")
    say(
        "The bands of the tables above use what you know for B and the kernel only; here it limits "
        "the band as well, and each column has the B and the kernel that follow from what is known."
    )


def _as_clause(words: str) -> str:
    """Turn what is known of values into a clause; what is known of shape is one already."""
    for value in (" between ", " at least ", " at most "):
        words = words.replace(value, f" is{value}", 1)
    return words


def _write(expected: kb.problem.Plan, results: Results, size: int) -> None:
    problem = expected.problem
    results.problem(problem)
    certain = {
        "experiments": expected.counts,
        "half_width_at_most": expected.half_width,
        "regret_at_most": expected.regret,
    }
    simulated = {
        "experiments": expected.counts,
        "half_width_simulated": expected.simulated_half_width,
        "regret_simulated": expected.simulated_regret,
    }
    results.table("plan.csv", certain)
    finite = np.isfinite(expected.simulated_half_width)
    results.table("simulated.csv", {name: some[finite] for name, some in simulated.items()})
    points = problem.settable(problem.unit_box.filling(size))
    results.table("design.csv", problem.columns(points))
    results.picture("plan.png", lambda: draw(expected))


def draw(expected: kb.problem.Plan) -> Any:
    """Draw half-widths and regrets against the number of experiments, both logarithmic."""
    problem, canvas = expected.problem, kb.plot.canvas
    unit = f" [{problem.output.unit}]" if problem.output.unit else ""
    panels = canvas.new_axes(2)
    rows = (
        (expected.half_width, expected.simulated_half_width, f"half-width of the band{unit}",
         problem.output.range / 2),
        (expected.regret, expected.simulated_regret, f"certified regret{unit}",
         problem.output.range),
    )  # fmt: skip
    for ax, (most, usual, name, trivial) in zip(panels, rows, strict=True):
        ax.plot(expected.counts, most, "o-", markersize=3, color=canvas.BAND, label="at most")
        ax.plot(expected.counts, usual, "s-", markersize=3, color=canvas.COLOURS[1],
                label="simulated, with functions like yours")  # fmt: skip
        ax.axhline(
            trivial, color="black", linewidth=0.8, linestyle=":", label="no more than the range"
        )
        ax.set(xscale="log", yscale="log")
        values = np.concatenate([most, usual[np.isfinite(usual)]])
        canvas.log_ticks(ax.yaxis, values.min(), values.max())
        canvas.log_ticks(ax.xaxis, expected.counts[0], expected.counts[-1])
        ax.set(xlabel="experiments", ylabel=canvas.as_written(name))
        canvas.tidy(ax)
    canvas.legend(panels, own=True)
    return panels
