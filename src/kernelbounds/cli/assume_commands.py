"""``kernelbounds assume`` and ``calibrate``: kernel and norm bound, by example or pilot data."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import kernelbounds as kb
from kernelbounds.cli.options import (
    OutOption,
    TableArgument,
    assumed_with_progress,
    with_problem,
)
from kernelbounds.cli.output import Results, counted, print_table, say, warn
from kernelbounds.display.numbers import about
from kernelbounds.errors import InputError


@with_problem()
def assume(
    problem: kb.Problem,
    out: OutOption = Path("assume"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace a problem.json that says something else.")
    ] = False,
) -> None:
    """See what your assumptions admit, and choose the norm bound B, before you measure.

    This draws random functions with your range and turns, in your units, and computes their norms.
    It writes functions.png, norms.csv and problem.json, which other commands read with --problem.

    Example: kernelbounds assume --input temperature=180:220 --output yield=0:100 --noise 0.5
    """
    from kernelbounds.problem.drawings import draw_functions

    found = assumed_with_progress(problem)
    path = out / "problem.json"
    keep = False
    if path.exists() and not force:  # A study may rest on the file, so its digits must stay.
        keep, contradiction = kb.problem.problem_file.compare(path, found.problem)
        if contradiction:
            raise InputError(
                f"{str(path)!r} already exists, with {contradiction}; nothing was changed. Name "
                "another folder with --out, or use --force to replace it."
            )
    show(found)
    results = Results(out)
    if keep:
        say(f"kept {path}, which says the same")
    else:
        results.problem(found.problem)
    results.table("norms.csv", {one.name: sorted(one.norms) for one in found.candidates})
    results.picture("functions.png", lambda: draw_functions(found))


def show(found: kb.problem.Assumed) -> None:
    """Print the kernels that were compared, and which of them is taken."""
    problem, out = found.problem, found.problem.output
    in_unit = f" [{out.norm_unit}]" if out.norm_unit else ""
    share = f"{100 * problem.quantile:g} %"
    rows = []
    for one in found.candidates:
        at_least = "" if one.settled else "> "
        rows.append([
            ("→ " if one is found.chosen else "  ") + one.name,
            at_least + about(statistics.median(one.norms)),
            at_least + about(one.norm_bound),
            out.short_plus_minus(one.width) if math.isfinite(one.width) else "",
        ])  # fmt: skip
    print_table(
        f"Norms of {len(found.functions)} random functions with your range and turns",
        ["kernel (inputs scaled to [0, 1])", f"median norm{in_unit}", f"{share} have less",
         f"band after {problem.experiments} runs"],
        rows,
    )  # fmt: skip
    say(
        f"Chosen: {found.chosen.name}, the narrowest band, with B = {problem.norm_text}."
        f" It covers {100 * found.share_covered:.0f} % of these functions. So, of 100 systems like "
        f"them, the band misses about {100 * found.miss_probability:.3g} at some "
        f"settings, on average: {100 * (found.miss_probability - problem.delta):.3g} that B does "
        f"not cover, and {100 * problem.delta:.3g} by chance (delta). From {len(found.functions)} "
        f"functions we can say with confidence {kb.problem.assuming.CONFIDENCE:g} that it misses "
        f"at most {math.ceil(100 * found.miss_probability_at_most)}. If your system is wilder than "
        "all of them, there is no guarantee: look at functions.png, and if in doubt allow more "
        "turns or a larger --quantile."
    )
    if found.norm_bound_without_facts is not None:
        drawn = problem.replace(known=()).facts_in_words
        so = (
            "; ".join(words for words in drawn if words not in found.left_out) or "within its range"
        )
        smaller = found.chosen.norm_bound < found.norm_bound_without_facts
        say(
            f"The functions satisfy what you know of the output: {so}."
            + f" B = {out.norm_text(found.chosen.norm_bound)} with what you know, "
            f"{out.norm_text(found.norm_bound_without_facts)} without, under the same kernel."
            * smaller
        )
    if found.left_out:
        say(
            f"For too few random functions it is true that {' and '.join(found.left_out)}. So the "
            "functions drawn need not have this, nor does B take it into account. The bounds still "
            "use it."
        )
    if problem.known:
        say(
            f"The functions need not have the values that you know ({len(problem.known)} stated); "
            "the bounds use them."
        )
    if problem.candidates:
        say(
            f"All {len(problem.candidates)} kernels with known norms are kept, each with its own "
            "B: the true function may belong to any of them. The bands above are those of single "
            "kernels; the band of all of them together is wider."
        )
    if any(not one.settled for one in found.candidates):
        say(
            "Norms after > are not known: they keep rising the closer one looks. Such functions "
            "are not in the space of that kernel."
        )
    if problem.stated_noise.law is None:
        warn(
            f"the noise is missing. The bands above are for {problem.stated_noise.planned_text}, "
            "1 % of the range, but the other commands need the noise: state --noise, the standard "
            "deviation when the same settings are run again, rounded up, or --noise unknown."
        )
    elif problem.stated_noise.is_unknown:
        say(
            f"The noise is {problem.stated_noise.text()}: the bands above are for "
            f"{problem.stated_noise.planned_text}, if it were known. Not knowing it makes them "
            "wider: kernelbounds plan says how much."
        )


# The kernel and the norm bound are what this command looks for, so it does not take them.
@with_problem(without=("kernel", "norm_bound"))
def calibrate(
    table: TableArgument,
    problem: kb.Problem,
    split: Annotated[
        float | None,
        typer.Option(
            help="Use this share of the rows, the first ones, as the pilot data, and keep the rest "
            "apart in fresh.csv: 0.3 means three rows out of ten.",
            show_default="all rows are pilot data",
        ),
    ] = None,
    out: OutOption = Path("calibration"),
) -> None:
    """Suggest length scales, the noise and B from pilot data.

    Each line says whether it is a guarantee, an estimate, a stated assumption or a heuristic. What
    is fitted to the rows is never a guarantee. "B at least" is one if --problem already has the
    kernel and the noise, and "noise at most" is one with --noise unknown.
    It writes problem.json for the other commands, for use on OTHER data than these.

    Example: kernelbounds calibrate pilot.csv --problem assume/problem.json --split 0.4
    """
    runs = kb.problem.runs.Runs.read(problem, table)
    runs.refuse_more_levels_than_rows(problem)
    X, y = runs.points, runs.measured
    pilot = len(y)
    if split is not None:
        if not 0 < split < 1:
            raise InputError(f"--split must be between 0 and 1, got {split:g}.")
        pilot = round(split * len(y))
    with Console(stderr=True).status("fitting length scales, and norms under them"):
        found = kb.problem.calibrate(problem, X[:pilot], y[:pilot])
    say(f"What {pilot} rows suggest:")
    for one in found.suggestions:
        say(f"  {one.what}: {one.value}\n      {one.kind}: {one.why}")
    repeats = kb.problem.runs.count_repeats
    left_out = repeats(X) - repeats(X[:pilot])
    if left_out > 0:
        say(
            f"Repeated settings that were not used for the noise: {counted(left_out, 'row')}. They "
            "are among the rows kept apart, which must not be looked at. A larger --split, or a "
            "table whose first rows have repeats, would use them."
        )
    results = Results(out)
    results.problem(found.problem)
    if split is None:
        say(
            "These assumptions have seen the data. Bounds from the same rows would not be "
            "guaranteed: use them for new runs, or calibrate again with --split 0.3."
        )
        return
    for name, part in (("pilot.csv", slice(pilot)), ("fresh.csv", slice(pilot, None))):
        inputs = problem.inputs.columns(X[part])
        columns = y[part, None].T if problem.counts is None else y[part].astype(int).T
        told = dict(zip(problem.outcomes.names, columns, strict=True))
        results.table(name, inputs | told)
    more = " --noise ..." if found.problem.stated_noise.law is None else ""
    say(f"Now: kernelbounds bound {out / 'fresh.csv'} --problem {out / 'problem.json'}{more}")
