"""``kernelbounds bound``: from a table to bounds and a picture.

What ``kernelbounds bound`` says of a table: doubts, a refutation, or what the bounds mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

import kernelbounds as kb
from kernelbounds.arrays import Array
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
    Runs,
    TableArgument,
    TurnsOption,
    folder,
    in_lines,
    print_table,
    problem_from_options,
    progress,
    read_points,
    read_runs,
    save_picture,
    say,
    settled_with_progress,
    unit_of,
    warn,
)
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.io.csv_table import write_csv

# By which factor assumptions change, to see what depends on them; at so many points at most.
LOOSER, NOISIER, SENSITIVITY_AT = 2.0, (2.0, 5.0), 20_000


def warn_of(
    problem: kb.Problem, sequence: kb.ConfidenceSequence, runs: Runs, fixed_design: bool
) -> None:
    """What speaks against using the data like this."""
    from kernelbounds.problem import calibration as doubts

    out, outcomes = problem.output, runs.outcomes
    reach = 4 * float(problem.noise or 0.0)
    beyond = runs.lines[(outcomes < out.low - reach) | (outcomes > out.high + reach)]
    if len(beyond):
        warn(
            f"{len(beyond)} of {len(outcomes)} outcomes are outside of the range "
            f"{out.low:g}:{out.high:g} stated for {out.name}, by more than noise explains "
            f"({in_lines(beyond)} of the table): the suggested B is for functions within it."
        )
    alone = doubts.share_alone(problem.kernel, sequence.points)
    if alone > 0.5:
        warn(
            f"{100 * alone:.0f} % of the settings are related to no other one: for so few data "
            "the length scales are far too short, and bounds between settings say nothing. Fewer "
            "turns or interactions, if that is true of your system, or more data, would help."
        )
    if fixed_design and doubts.look_chosen(sequence.points, outcomes):
        warn(
            "later settings are near the best ones before them, as if they had been chosen by "
            "outcomes: then the bounds of a fixed design are wrong, and --fixed-design has to be "
            "left out. If a plan made beforehand has them in this order, all is well."
        )
    norm, noise = kb.study.status.checked_assumptions(problem, sequence)
    for name, one in (("B", norm), ("the noise", noise)):
        if one.strained and one.at_least <= one.assumed:
            warn(
                f"the data need {name} of at least {one.at_least:.3g}{unit_of(problem)}, and "
                f"{one.assumed:.3g}{unit_of(problem)} is assumed: they nearly refute it. Was it "
                "stated with room to spare?"
            )


def refuted(
    problem: kb.Problem, runs: Runs, bound: kb.Bound | None, error: EmptyConfidenceSetError
) -> str:
    """What to do when no function satisfies the assumptions: B or the noise would have to grow."""
    norm, noise = problem.norm_at_least(error.norm_lower_bound), error.noise_lower_bound
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
        + f". The rows before line {_first_refuting(problem, runs, bound)} do not refute them, and "
        "with that line they do. Is the noise "
        "larger than you said, does the output turn more often, do inputs interact, or is a row "
        "wrong? State it anew with room to spare; since you have seen the data, the guarantee "
        "then holds only as far as you would have stated the same without them."
    )


def _first_refuting(problem: kb.Problem, runs: Runs, bound: kb.Bound | None) -> int:
    """The line of a row that refutes the assumptions together with those before it.

    By bisection: fewer rows than ``low`` + 1 do not refute them, and ``high`` do.
    """
    low, high = 0, len(runs.outcomes)
    unit = problem.scaled(runs.points)
    while high - low > 1:
        middle = (low + high) // 2
        sequence = problem.sequence()
        sequence.update(unit[:middle], runs.outcomes[:middle])
        try:
            sequence.bounds(unit[:1], bound)
            low = middle
        except EmptyConfidenceSetError:
            high = middle
    return int(runs.lines[high - 1])


class Place(NamedTuple):
    """A point in the user's units, and bounds on the output there."""

    point: Array
    lower: float
    upper: float


@dataclass(frozen=True)
class Found:
    """Bounds at the points asked for, and at further ones that may have the best value for sure.

    The first ``asked`` points are those asked for. The others are the rows of the table beside a
    grid, which misses the settings that were measured.
    """

    problem: kb.Problem
    sequence: kb.ConfidenceSequence
    bound: kb.Bound | None
    points: Array
    lower: Array
    upper: Array
    asked: int

    @property
    def surest(self) -> Place:
        """Where the lower bound is largest."""
        return self._place(int(np.argmax(self.lower)))

    @property
    def surely_small(self) -> Place:
        """Where the upper bound is smallest."""
        return self._place(int(np.argmin(self.upper)))

    def _place(self, at: int) -> Place:
        return Place(self.points[at], float(self.lower[at]), float(self.upper[at]))


def summarise(found: Found) -> None:
    """What the bounds mean, the best point, and what looser assumptions cost."""
    problem, out, unit = found.problem, found.problem.output, unit_of(found.problem)
    written = kb.study.records.written
    half = float(np.mean((found.upper - found.lower)[: found.asked]) / 2)
    when = (
        "if the settings were fixed before the first outcome, and you look once"
        if found.bound is not None
        else "and after any number of further runs, wherever they are"
    )
    if "norm_bound" in problem.suggested:
        missed = problem.delta + 1 - problem.quantile
        say(
            f"Of 100 systems like the random functions with your range and turns, the band misses "
            f"about {100 * missed:.3g} somewhere, on average: {100 * (1 - problem.quantile):.3g} "
            "that the suggested norm bound does not cover, and "
            f"{100 * problem.delta:.3g} by chance."
        )
    say(
        f"With probability {1 - problem.delta:g} the true {out.name} is between lower and upper at "
        f"all points at once, {when}, provided that the assumptions hold: noise of at most "
        f"{problem.noise:g}{unit}, and a norm of at most {problem.norm_bound:.4g}{unit}. "
        f"The band is ±{half:.3g}{unit} on average; {out.name} was stated to move by "
        f"{out.range:g}{unit}."
    )
    if 2 * half > out.range:
        say(
            "On average the band is wider than the range you stated, so at most points these runs "
            "say nothing. More runs would help, or assuming less freedom where that is true "
            "(fewer turns, --interactions pairs or none): kernelbounds plan says how much. The "
            "band is narrower near the runs: --at rows."
        )
    high, low = found.surest, found.surely_small
    where = f"At the {found.asked} points asked for"
    if len(found.points) > found.asked:
        where = f"On the grid of {found.asked} points and at the rows of the table"
    say(
        f"{where}, the largest lower bound is at {written(problem, high.point)}: {out.name} is "
        f"between {high.lower:.4g} and {high.upper:.4g}{unit} there, and at none of them above "
        f"{found.upper.max():.4g}{unit}. The smallest upper bound is at "
        f"{written(problem, low.point)}: between {low.lower:.4g} and {low.upper:.4g}{unit}, and at "
        f"none of them below {found.lower.min():.4g}{unit}."
    )
    _show_sensitivity(found)


def _show_sensitivity(found: Found) -> None:
    """How the band, and the largest lower bound, change with looser assumptions."""
    problem, unit = found.problem, unit_of(found.problem)
    few = found.points[: found.asked : -(-found.asked // SENSITIVITY_AT)]
    where = problem.scaled(np.concatenate([few, found.points[found.asked :]]))
    rows = []
    looser = (
        ("as stated", 1.0, 1.0),
        (f"{LOOSER:g} B", LOOSER, 1.0),
        *((f"{times:g} times the noise", 1.0, times) for times in NOISIER),
    )
    with progress("looser assumptions", len(looser)) as step:
        for name, norm, noise in looser:
            loose = problem.replace(
                norm_bound=norm * float(problem.norm_bound or 0.0),
                noise=noise * float(problem.noise or 0.0),
            ).sequence()
            loose.update(found.sequence.points, found.sequence.outcomes)
            below, above = loose.bounds(where, found.bound)
            band = np.mean((above - below)[: len(few)]) / 2
            rows.append([name, f"±{band:.3g}{unit}", f"{below.max():.4g}{unit}"])
            step()
    print_table(
        "Sensitivity to the assumptions", ["assumption", "band", "largest lower bound"], rows
    )


# Columns of bounds.csv, besides the inputs.
BOUNDS = ("lower", "upper")
# Points of a grid along each input, by the number of inputs; for more inputs a grid says little,
# and points that fill the box take its place.
GRID = {1: 201, 2: 41, 3: 13}
FILLING = 2000


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
            help="Where: a grid of the ranges, the rows of the table (with what was measured "
            "beside), or the rows of another CSV file with a column for each input.",
        ),
    ] = "grid",
    grid: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Points of the grid along each input.",
            show_default="201, 41, 13 for one, two, three inputs",
        ),
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
    measured = [described.output.name] if at == "rows" else []
    for name in (*described.names, *measured):
        if name in BOUNDS:
            raise InputError(
                f"bounds.csv has a column {name!r} for the bounds; give your own another name, "
                "here and in the table."
            )
    runs = read_runs(table, described)
    points = _points(described, runs.points, at, grid)
    described = settled_with_progress(described)
    chosen = kb.FixedDesign() if fixed_design else None
    sequence = described.sequence()
    sequence.update(described.scaled(runs.points), runs.outcomes)
    warn_of(described, sequence, runs, fixed_design)

    def bounds(where: Array, bound: kb.Bound | None = chosen) -> tuple[Array, Array]:
        return sequence.bounds(described.scaled(where), bound)

    try:
        with progress("bounds", len(points)) as step:
            lower, upper = _in_parts(bounds, points, fixed_design, step)
    except EmptyConfidenceSetError as error:
        raise InputError(refuted(described, runs, chosen, error)) from None
    place = folder(out)
    described.save(place / "problem.json")
    columns = dict(zip(described.names, points.T, strict=True))
    if at == "rows":
        columns[described.output.name] = runs.outcomes
    write_csv(place / "bounds.csv", columns | dict(zip(BOUNDS, (lower, upper), strict=True)))
    found = Found(described, sequence, chosen, points, lower, upper, len(points))
    # Bounds of a fixed design hold at the points asked for together, and at no further ones.
    if at == "grid" and not fixed_design:
        below, above = bounds(runs.points)
        found = replace(
            found,
            points=np.concatenate([points, runs.points]),
            lower=np.concatenate([lower, below]),
            upper=np.concatenate([upper, above]),
        )
    summarise(found)
    for name in ("problem.json", "bounds.csv"):
        say(f"wrote {place / name}")
    best = found.surest.point
    process = kb.plot.gaussian_process(sequence) if gaussian_process else None
    overlay = None
    if process is not None:
        overlay = {
            process.label: lambda where: process(described.scaled(rounded(described, where)))
        }
    save_picture(
        place / "bounds.png",
        lambda: draw(described, bounds, (runs.points, runs.outcomes), best, overlay),
    )


def _points(problem: kb.Problem, rows: Array, at: str, grid: int | None) -> Array:
    """Where bounds are asked for, in the user's units."""
    if at == "rows":
        return rows
    if at != "grid":
        return read_points(Path(at), problem)
    side = grid or GRID.get(problem.dim)
    if side is None:
        return kb.study.records.settable(problem, problem.unit_box.filling(FILLING))
    if side**problem.dim > 1_000_000:
        raise InputError(
            f"a grid of {side} points along each of {problem.dim} inputs has "
            f"{float(side) ** problem.dim:.3g} points; a million are the most."
        )
    unit = np.meshgrid(*[np.linspace(0, 1, side)] * problem.dim, indexing="ij")
    points = kb.study.records.settable(problem, np.stack(unit, axis=-1).reshape(-1, problem.dim))
    return np.unique(points, axis=0)  # whole numbers may coincide


def _in_parts(
    bounds: Callable[[Array], tuple[Array, Array]],
    points: Array,
    together: bool,
    step: Callable[[float], None],
) -> tuple[Array, Array]:
    """Bounds at many points, part by part for the bar; those of a fixed design at once."""
    parts = [points] if together else kb.surface.in_chunks(points)
    found = []
    for part in parts:
        found.append(bounds(part))
        step(len(part))
    lower, upper = (np.concatenate(sides) for sides in zip(*found, strict=True))
    return lower, upper


def draw(
    problem: kb.Problem,
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
        return kb.plot.maps(anywhere, problem.box, **shared)
    if problem.dim == 1:
        axes = [kb.plot.band(anywhere, problem.box, without_guarantee=overlay, **shared)]
    else:
        axes = list(
            kb.plot.slices(anywhere, problem.box, best, without_guarantee=overlay, **shared)
        )
    # Far beyond the range stated, where there are no data, one need not see how far.
    out = problem.output
    for ax in axes:
        bottom, top = ax.get_ylim()
        ax.set_ylim(max(bottom, out.low - out.range / 2), min(top, out.high + out.range / 2))
    return axes


def rounded(problem: kb.Problem, where: Array) -> Array:
    """Points for a picture: whole numbers have steps between them."""
    points = [one.unscaled(one.scaled(where[:, i])) for i, one in enumerate(problem.inputs)]
    return np.stack(points, axis=-1)
