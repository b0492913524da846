"""``kernelbounds bound``: from a table to bounds and a picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from kernelbounds import plot
from kernelbounds.arrays import Array
from kernelbounds.bounds import Bound, FixedDesign
from kernelbounds.commands.options import (
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
    problem_from_options,
)
from kernelbounds.commands.shared import (
    TableArgument,
    folder,
    print_table,
    read_points,
    read_runs,
    save_picture,
    say,
    settled_with_progress,
    unit_of,
    warn,
)
from kernelbounds.csv_table import write_csv
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.problem import Problem
from kernelbounds.problem.doubts import look_chosen, share_alone
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.study.points import settable, written
from kernelbounds.study.status import checked_assumptions

# Columns of bounds.csv, besides the inputs.
BOUNDS = ("lower", "upper")
# Points of a grid along each input, by the number of inputs; for more inputs a grid says little,
# and points that fill the box take its place.
GRID = {1: 201, 2: 41, 3: 13}
FILLING = 2000
# By which factor assumptions change, to see what depends on them; at so many points at most.
LOOSER, NOISIER, SENSITIVITY_AT = 2.0, (2.0, 5.0), 20_000


def command(
    table: TableArgument,
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
    at: Annotated[
        str,
        typer.Option(
            metavar="grid|rows|FILE",
            help="Where: a grid of the ranges, the rows of the table, or the rows of another CSV "
            "file with a column for each input.",
        ),
    ] = "grid",
    grid: Annotated[
        int | None,
        typer.Option(min=2, help="Points of the grid along each input.", show_default=False),
    ] = None,
    fixed_design: Annotated[
        bool,
        typer.Option(
            "--fixed-design",
            help="The settings were fixed before the first outcome: narrower bounds, for one look "
            "at the data.",
        ),
    ] = False,
    gaussian_process: Annotated[
        bool,
        typer.Option(
            "--gaussian-process",
            help="Draw a Gaussian process with the same kernel, dashed. It guarantees nothing.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("bounds"),
) -> None:
    """Bounds on the true output, from a table of runs: as CSV and as a picture.

    Writes bounds.csv, bounds.png and problem.json.

    Example: kernelbounds bound runs.csv --problem assume/problem.json
    """
    described = problem_from_options(
        input, output, noise, turns, interactions, delta, norm_bound, kernel, experiments,
        quantile, problem,
    )  # fmt: skip
    if described.noise is None:
        raise InputError("say how noisy the output is, such as --noise 0.5; 0 is none.")
    for name in described.names:
        if name in BOUNDS:
            raise InputError(
                f"bounds.csv has a column {name!r} for the bounds; give that input another name, "
                "here and in the table."
            )
    X, y = read_runs(table, described)
    points = _points(described, X, at, grid)
    described = settled_with_progress(described)
    chosen = FixedDesign() if fixed_design else None
    sequence = described.sequence()
    sequence.update(described.scaled(X), y)
    _warn_of(described, sequence, y, fixed_design)

    def bounds(where: Array, bound: Bound | None = chosen) -> tuple[Array, Array]:
        return sequence.bounds(described.scaled(where), bound)

    try:
        lower, upper = bounds(points)
    except EmptyConfidenceSetError as error:
        least = described.norm_at_least(error.norm_lower_bound)
        raise InputError(_refuted(described, least, error.noise_lower_bound)) from None
    place = folder(out)
    described.save(place / "problem.json")
    columns = dict(zip(described.names, points.T, strict=True))
    write_csv(place / "bounds.csv", columns | dict(zip(BOUNDS, (lower, upper), strict=True)))
    _summarise(described, sequence, points, lower, upper, chosen)
    for name in ("problem.json", "bounds.csv"):
        say(f"wrote {place / name}")
    best = points[int(np.argmax(lower))]
    process = plot.gaussian_process(sequence) if gaussian_process else None
    overlay = None
    if process is not None:
        overlay = {
            process.label: lambda where: process(described.scaled(rounded(described, where)))
        }
    save_picture(place / "bounds.png", lambda: draw(described, bounds, (X, y), best, overlay))


def _points(problem: Problem, rows: Array, at: str, grid: int | None) -> Array:
    """Where bounds are asked for, in the user's units."""
    if at == "rows":
        return rows
    if at != "grid":
        return read_points(Path(at), problem)
    side = grid or GRID.get(problem.dim)
    if side is None:
        return settable(problem, problem.unit_box.filling(FILLING))
    if side**problem.dim > 1_000_000:
        raise InputError(
            f"a grid of {side} points along each of {problem.dim} inputs has "
            f"{float(side) ** problem.dim:.3g} points; a million are the most."
        )
    unit = np.meshgrid(*[np.linspace(0, 1, side)] * problem.dim, indexing="ij")
    points = settable(problem, np.stack(unit, axis=-1).reshape(-1, problem.dim))
    return np.unique(points, axis=0)  # whole numbers may coincide


def _warn_of(
    problem: Problem, sequence: ConfidenceSequence, outcomes: Array, fixed_design: bool
) -> None:
    """What speaks against using the data like this."""
    out = problem.output
    reach = 4 * float(problem.noise or 0.0)
    beyond = np.count_nonzero((outcomes < out.low - reach) | (outcomes > out.high + reach))
    if beyond:
        warn(
            f"{beyond} of {len(outcomes)} outcomes are outside of the range "
            f"{out.low:g}:{out.high:g} stated for {out.name}, by more than noise explains: the "
            "suggested B is for functions within it."
        )
    alone = share_alone(problem.kernel, sequence.points)
    if alone > 0.5:
        warn(
            f"{100 * alone:.0f} % of the settings are related to no other one: for so few data "
            "the length scales are far too short, and bounds between settings say nothing. Fewer "
            "turns or interactions, if that is true of your system, or more data, would help."
        )
    if fixed_design and look_chosen(sequence.points, outcomes):
        warn(
            "later settings are near the best ones before them, as if they had been chosen by "
            "outcomes: then the bounds of a fixed design are wrong, and --fixed-design has to be "
            "left out. If a plan made beforehand has them in this order, all is well."
        )
    norm, noise = checked_assumptions(problem, sequence)
    for name, one in (("B", norm), ("the noise", noise)):
        if one.strained and one.at_least <= one.assumed:
            warn(
                f"the data need {name} of at least {one.at_least:.3g}{unit_of(problem)}, and "
                f"{one.assumed:.3g}{unit_of(problem)} is assumed: they nearly refute it. Was it "
                "stated with room to spare?"
            )


def _refuted(problem: Problem, norm: float, noise: float) -> str:
    """What to do when no function satisfies the assumptions: B or the noise would have to grow."""
    larger = noisier = ""
    unit = unit_of(problem)
    if math.isfinite(norm):
        larger = f"B would have to be at least {norm:.3g}{unit}"
    if math.isfinite(noise):
        noisier = f"the noise at least {noise:.3g}{unit}"
    least = ", or ".join(part for part in (larger, noisier) if part)
    return (
        f"the data refute the assumptions: no function with B = {problem.norm_bound:.4g}{unit} and "
        f"noise {problem.noise:g}{unit} explains them"
        + (f" ({least})" if least else "")
        + ". Is the noise "
        "larger than you said, does the output turn more often, do inputs interact, or is a row "
        "wrong? State it anew with room to spare; since you have seen the data, the guarantee "
        "then holds only as far as you would have stated the same without them."
    )


def _summarise(
    problem: Problem,
    sequence: ConfidenceSequence,
    points: Array,
    lower: Array,
    upper: Array,
    bound: Bound | None,
) -> None:
    """What the bounds mean, the best point, and what looser assumptions cost."""
    out, unit = problem.output, unit_of(problem)
    half = float(np.mean(upper - lower) / 2)
    when = (
        "if the settings were fixed before the first outcome, and you look once"
        if bound is not None
        else "and after any number of further runs, wherever they are"
    )
    say(
        f"With probability {1 - problem.delta:g} the true {out.name} is between lower and upper at "
        f"all points at once, {when}, provided that the assumptions hold: noise of at most "
        f"{problem.noise:g}{unit}, and a norm of at most {problem.norm_bound:.4g}{unit}. "
        f"The band is ±{half:.3g}{unit} on average; {out.name} was stated to move by "
        f"{out.range:g}{unit}."
    )
    if "norm_bound" in problem.suggested:
        missed = problem.delta + 1 - problem.quantile
        say(
            f"That norm was suggested: it covers {100 * problem.quantile:g} of 100 random "
            f"functions with your range and turns, so that of 100 systems like these the band "
            f"misses at most {100 * missed:.3g}."
        )
    if 2 * half > out.range:
        say(
            "On average the band is wider than the range you stated, so at most points these runs "
            "say nothing. More runs would help, or assuming less freedom where that is true "
            "(fewer turns, --interactions pairs or none): kernelbounds plan says how much. The "
            "band is narrower near the runs: --at rows."
        )
    high, low = int(np.argmax(lower)), int(np.argmin(upper))
    say(
        f"The largest lower bound is at {written(problem, points[high])}: {out.name} is between "
        f"{lower[high]:.4g} and {upper[high]:.4g}{unit} there, and at none of these {len(points)} "
        f"points above {upper.max():.4g}{unit}. The smallest upper bound is at "
        f"{written(problem, points[low])}: between {lower[low]:.4g} and {upper[low]:.4g}{unit}, "
        f"and at none of them below {lower.min():.4g}{unit}."
    )
    few = points[:: -(-len(points) // SENSITIVITY_AT)]
    rows = []
    for name, norm, noise in (
        ("as stated", 1.0, 1.0),
        (f"{LOOSER:g} B", LOOSER, 1.0),
        *((f"{times:g} times the noise", 1.0, times) for times in NOISIER),
    ):
        loose = problem.replace(
            norm_bound=norm * float(problem.norm_bound or 0.0),
            noise=noise * float(problem.noise or 0.0),
        ).sequence()
        loose.update(sequence.points, sequence.outcomes)
        below, above = loose.bounds(problem.scaled(few), bound)
        rows.append([
            name, f"±{np.mean(above - below) / 2:.3g}{unit}", f"{below.max():.4g}{unit}",
        ])  # fmt: skip
    print_table(
        "Sensitivity to the assumptions", ["assumption", "band", "largest lower bound"], rows
    )


def draw(
    problem: Problem,
    bounds: Callable[[Array], tuple[Array, Array]],
    data: tuple[Array, Array],
    best: Array,
    overlay: Any,
) -> Any:
    """A band for one input, maps for two, slices through the best point for more."""
    shared: dict[str, Any] = {
        "data": data,
        "log": [one.log for one in problem.inputs],
        "labels": [one.label for one in problem.inputs],
        "output": problem.output.label,
    }

    def anywhere(where: Array) -> tuple[Array, Array]:
        return bounds(rounded(problem, where))

    if problem.dim == 2 and overlay is None:
        return plot.maps(anywhere, problem.box, **shared)
    if problem.dim == 1:
        axes = [plot.band(anywhere, problem.box, without_guarantee=overlay, **shared)]
    else:
        axes = list(plot.slices(anywhere, problem.box, best, without_guarantee=overlay, **shared))
    # Far beyond the range stated, where there are no data, one need not see how far.
    out = problem.output
    for ax in axes:
        bottom, top = ax.get_ylim()
        ax.set_ylim(max(bottom, out.low - out.range / 2), min(top, out.high + out.range / 2))
    return axes


def rounded(problem: Problem, where: Array) -> Array:
    """Points for a picture: whole numbers have steps between them."""
    points = [one.unscaled(one.scaled(where[:, i])) for i, one in enumerate(problem.inputs)]
    return np.stack(points, axis=-1)
