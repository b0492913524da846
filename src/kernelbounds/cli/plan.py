"""``kernelbounds plan``: how many experiments it takes, before the first one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import kernelbounds as kb
from kernelbounds.cli.options import (
    DeltaOption,
    ExperimentsOption,
    InputOption,
    InteractionsOption,
    KernelOption,
    NoiseOption,
    NormBoundOption,
    OutputOption,
    ProblemOption,
    QuantileOption,
    TurnsOption,
    folder,
    print_table,
    problem_from_options,
    progress,
    save_picture,
    say,
    unit_of,
)
from kernelbounds.errors import InputError
from kernelbounds.io.csv_table import write_csv

# As in kernelbounds.problem.plans, which would take too long to import for a line of help.
FURTHEST, MOST = 5000, 1000


def command(
    input: InputOption = None,
    output: OutputOption = None,
    noise: NoiseOption = None,
    turns: TurnsOption = None,
    interactions: InteractionsOption = None,
    delta: DeltaOption = None,
    norm_bound: NormBoundOption = None,
    kernel: KernelOption = None,
    experiments: ExperimentsOption = None,
    quantile: QuantileOption = None,
    problem: ProblemOption = None,
    within: Annotated[
        float | None,
        typer.Option(
            help="Say how many experiments it takes for a band of ± this, in units of the output.",
            show_default="a tenth of the output's range",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(min=5, max=FURTHEST, help="Look no further than this many experiments.")
    ] = MOST,
    compare: Annotated[
        bool, typer.Option(help="Whether to say what stronger assumptions would buy.")
    ] = True,
    design: Annotated[
        int | None,
        typer.Option(min=1, help="Settings in design.csv.", show_default="5 for each input"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("plan"),
) -> None:
    """Predict the width of the band and the certified regret, from the assumptions alone.

    Regret is by how much the best settings known may fall short of the best possible. Writes
    problem.json, plan.csv, plan.png and design.csv, settings that fill the ranges evenly. With
    three inputs it takes about half a minute; --no-compare and a smaller --most are faster.

    Example: kernelbounds plan --problem assume/problem.json --within 5
    """
    described = problem_from_options(
        input, output, noise, turns, interactions, delta, norm_bound, kernel, experiments,
        quantile, problem,
    )  # fmt: skip
    if described.noise is None:
        raise InputError("say how noisy the output is, such as --noise 0.5; 0 is none.")
    aim = within if within is not None else described.output.range / 10
    if not 0 < aim < math.inf:
        raise InputError(f"--within must be above 0, got {aim:g}.")
    with progress("predicting", kb.problem.plans.steps_of(described, most)) as step:
        expected = kb.problem.plan(described, most, step)
    show(expected)
    others = list(kb.problem.plans.alternatives(described)) if compare else []
    rows = []
    with progress("what other assumptions would buy", len(others) + 1) as step:
        for name, one in [("as stated", expected.problem), *others]:
            rows.append(_row(name, one, aim, most))
            step()
    print_table(
        "What assumptions buy",
        ["assumption", "B", f"band after {described.experiments}",
         f"experiments for ±{aim:.4g}{unit_of(described)}"],
        rows,
    )  # fmt: skip
    say("Assume only what you know: if it is wrong, the bounds are.")
    _write(expected, folder(out), design or 5 * described.dim)


def _row(name: str, problem: kb.Problem, aim: float, most: int) -> list[str]:
    try:
        settled = problem.settled()
    except InputError:
        return [name, "?", "?", "?"]
    count, unit = kb.problem.plans.needed(settled, aim, most), unit_of(settled)
    width = kb.problem.problem.predicted_half_widths(settled, settled.experiments)[0]
    return [
        name, f"{settled.norm_bound:.4g}{unit}", f"±{width:.3g}{unit}",
        f"more than {most}" if count is None else str(count),
    ]  # fmt: skip


def show(expected: kb.problem.Plan) -> None:
    """Widths and regrets by the number of experiments."""

    def cell(value: float) -> str:
        return f"{value:.3g}" if np.isfinite(value) else ""

    rows = [
        [str(count), f"±{cell(width)}", f"±{cell(typical)}" if np.isfinite(typical) else "",
         cell(regret), cell(usual)]
        for count, width, typical, regret, usual in zip(
            expected.counts, expected.half_width, expected.simulated_half_width,
            expected.regret, expected.simulated_regret, strict=True,
        )
    ]  # fmt: skip
    problem = expected.problem
    kernel = kb.kernels.kernel_to_text(problem.kernel)
    print_table(
        f"{problem.output.label}: band and certified regret, with {kernel}, "
        f"B = {problem.norm_bound:.4g}{unit_of(problem)}",
        ["experiments", "band, at most", "band, simulated", "regret, at most",
         "regret among 256, simulated"],
        rows,
    )  # fmt: skip
    say(
        "Band: the true output is known to ± this on average. Regret: by how much the best "
        "settings known may fall short of the best possible, as study status certifies it."
    )
    say(
        "At most: for certain if the assumptions hold, whatever the outcomes, with settings that "
        "fill the ranges evenly (mean half-width at 128 points; for the regret, the largest width "
        "at these and in the corners). Simulated: what "
        "happened with 4 of the random functions; the regret is that of choosing one of 256 "
        "settings step by step, and over the whole ranges it takes more. The output's range is "
        f"{problem.output.range:g}{unit_of(problem)}: a wider band says less than that."
    )
    say(
        "Plan by 'band, at most': it is for certain, and regrets certified by studies over whole "
        "ranges were of about that size too in simulations, 0.7 to 1.7 times. 'Regret, at most' is "
        "for the worst of all functions, and the last column for a choice among 256 settings that "
        "were fixed beforehand."
    )


def _write(expected: kb.problem.Plan, where: Path, size: int) -> None:
    problem = expected.problem
    problem.save(where / "problem.json")
    finite = np.isfinite(expected.simulated_half_width)
    write_csv(where / "plan.csv", {
        "experiments": expected.counts,
        "half_width_at_most": expected.half_width,
        "regret_at_most": expected.regret,
    })  # fmt: skip
    write_csv(where / "simulated.csv", {
        "experiments": expected.counts[finite],
        "half_width_simulated": expected.simulated_half_width[finite],
        "regret_simulated": expected.simulated_regret[finite],
    })  # fmt: skip
    points = kb.study.records.settable(problem, problem.unit_box.filling(size))
    write_csv(where / "design.csv", dict(zip(problem.names, points.T, strict=True)))
    for name in ("problem.json", "plan.csv", "simulated.csv", "design.csv"):
        say(f"wrote {where / name}")
    save_picture(where / "plan.png", lambda: draw(expected))


def draw(expected: kb.problem.Plan) -> Any:
    """Half-widths and regrets against the number of experiments, both logarithmic."""
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
        ax.set_xscale("log")
        ax.set_yscale("log")
        values = np.concatenate([most, usual[np.isfinite(usual)]])
        canvas.log_ticks(ax.yaxis, values.min(), values.max())
        canvas.log_ticks(ax.xaxis, expected.counts[0], expected.counts[-1])
        ax.set_xlabel("experiments")
        ax.set_ylabel(canvas.as_written(name))
        canvas.tidy(ax)
    canvas.legend(panels, own=True)
    return panels
