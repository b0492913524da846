"""``kernelbounds assume``: a kernel and a norm bound by example, before any data."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import kernelbounds as kb
from kernelbounds.arrays import Array, shortened
from kernelbounds.cli.options import (
    OutOption,
    assumed_with_progress,
    folder,
    print_table,
    save_picture,
    say,
    warn,
    with_problem,
)
from kernelbounds.display.numbers import at_most
from kernelbounds.errors import InputError
from kernelbounds.io.csv_table import write_csv

# The picture shows this many functions that are admitted and this many that are not, each at this
# many points of the slice that bends most, out of this many slices.
ADMITTED_SHOWN, EXCLUDED_SHOWN, SLICE_POINTS, SLICES_TRIED = 10, 2, 121, 16
# Norm bounds of the same problem differ by less than this, whatever the threads: 1e-9 was seen.
NORM_ROUNDING = 1e-6
CAPTION = (
    "All panels cut the same functions, along one input each. One that is too wild is drawn only "
    "where it is wildest."
)


@with_problem()
def command(
    problem: kb.Problem,
    out: OutOption = Path("assume"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace a problem.json that says something else.")
    ] = False,
) -> None:
    """See what your assumptions admit, and choose the norm bound B, before you measure.

    Draws random functions with your range and turns, in your units, and the norms they have.
    Writes problem.json, which the other commands take as --problem, functions.png and norms.csv.

    Example: kernelbounds assume --input temperature=180:220 --output yield=0:100 --noise 0.5
    """
    path = out / "problem.json"
    kept = None if force else _kept(path, problem)
    found = assumed_with_progress(problem)
    if kept is not None:
        found = _as_kept(path, kept, found)
    show(found)
    where = folder(out)
    if kept is not None and kept.as_data() == found.problem.as_data():
        say(f"kept {path}, which says the same")
    else:
        found.problem.save(path)
        say(f"wrote {path}")
    write_csv(where / "norms.csv", {one.name: np.sort(one.norms) for one in found.candidates})
    say(f"wrote {where / 'norms.csv'}")
    save_picture(where / "functions.png", lambda: draw(found))


def _kept(path: Path, described: kb.Problem) -> kb.Problem | None:
    """Return the problem in the file, if there is one; raise where it states something else."""
    if not path.exists():
        return None
    with suppress(InputError):
        there = kb.Problem.load(path)
        if _stated(there) == _stated(described):
            return there
    raise _another(path, "is not what you state now")


def _as_kept(path: Path, kept: kb.Problem, found: kb.problem.Assumed) -> kb.problem.Assumed:
    """Put the suggestions of the file into what was found; raise where they truly differ.

    A study may rest on the file, so its digits must stay. Suggestions that are found anew may have
    other last digits, on another machine or with another number of threads.
    """
    there, now = kept.as_data(), found.problem.as_data()
    for name in kb.problem.problem.SUGGESTED:
        if there[name] is None:
            continue
        if name == "norm_bound" and math.isclose(there[name], now[name], rel_tol=NORM_ROUNDING):
            now[name] = there[name]
        if there[name] != now[name]:
            old, new = (shortened(str(data[name]), 100) for data in (there, now))
            raise _another(
                path,
                f"has {name} = {old}, where {new} follows from the same statements in this version "
                "of kernelbounds",
            )
    return replace(found, problem=kb.Problem.from_data(now))


def _another(path: Path, why: str) -> InputError:
    return InputError(
        f"{str(path)!r} is there already, and {why}; nothing was changed. Give another folder with "
        "--out, or --force to replace it."
    )


def _stated(problem: kb.Problem) -> dict[str, Any]:
    """Return what a user has stated, without what was suggested."""
    return problem.replace(**dict.fromkeys(problem.suggested), suggested=()).as_data()


def show(found: kb.problem.Assumed) -> None:
    """Print the kernels that were compared, and which of them is taken."""
    problem, unit = found.problem, found.problem.output.after_number
    in_unit = f" [{problem.output.unit}]" if unit else ""
    share = f"{100 * problem.quantile:g} %"
    rows = []
    for one in found.candidates:
        at_least = "" if one.settled else "> "
        rows.append([
            ("→ " if one is found.chosen else "  ") + one.name,
            at_least + f"{np.median(one.norms):.4g}",
            at_least + f"{one.norm_bound:.4g}",
            f"±{at_most(one.width)}{unit}" if np.isfinite(one.width) else "",
        ])  # fmt: skip
    print_table(
        f"Norms of {len(found.functions)} random functions with your range and turns",
        ["kernel (inputs scaled to [0, 1])", f"median norm{in_unit}", f"{share} have less",
         f"band after {problem.experiments} runs"],
        rows,
    )  # fmt: skip
    say(
        f"Taken: {found.chosen.name}, the narrowest band, with B = {problem.norm_bound:.4g}{unit}. "
        f"It covers {100 * found.share_covered:.0f} % of these functions. So, of 100 systems that "
        f"are like them, the band misses about {100 * found.miss_probability:.3g} at some "
        f"settings, on average: {100 * (found.miss_probability - problem.delta):.3g} that B does "
        f"not cover, and {100 * problem.delta:.3g} by chance (delta). From {len(found.functions)} "
        f"functions one can say with confidence {kb.problem.assuming.CONFIDENCE:g} that it misses "
        f"at most {math.ceil(100 * found.miss_probability_at_most)}. If your system is wilder than "
        "all of them, no guarantee holds: look at functions.png, and allow more turns, or a larger "
        "--quantile, if in doubt."
    )
    if any(not one.settled for one in found.candidates):
        say(
            "Norms after > are not known: they rise without end the closer one looks. Such "
            "functions are not in the space of that kernel."
        )
    if problem.noise is None:
        warn(
            f"the noise is missing. The bands above are for {found.noise:.3g}{unit}, 1 % of the "
            "range; the other commands need it: --noise, the standard deviation when the same "
            "settings are run again, rounded up."
        )


def draw(found: kb.problem.Assumed) -> Any:
    """Draw slices of random functions along each input: some that are admitted, and the wildest.

    The wildest are those of the largest norms, as far as B does not admit these. Each is drawn only
    along the input along which it bends most, since along others it may well look tame.
    """
    problem, norms, canvas = found.problem, found.chosen.norms, kb.plot.canvas
    within = norms <= float(problem.norm_bound or np.inf)
    inside = np.flatnonzero(within)[:ADMITTED_SHOWN]
    unit = np.linspace(0, 1, SLICE_POINTS)
    panels = canvas.new_axes(problem.dim, share_y=True)
    for axis, (ax, one) in enumerate(zip(panels, problem.inputs, strict=True)):
        admitted = [_along(found, int(at), axis, unit) for at in inside]
        box = kb.Box([one.low], [one.high])
        kb.plot.functions(
            one.unscaled(unit), np.reshape(admitted, (-1, SLICE_POINTS)), box, ax,
            log=[one.log], labels=[one.label], output=problem.output.label if axis == 0 else "",
        )  # fmt: skip
        if one.integer:
            canvas.whole_ticks(ax.xaxis)
    outside = [int(at) for at in np.argsort(-norms)[:EXCLUDED_SHOWN] if not within[at]]
    too_wild: dict[str, Any] = {"color": canvas.NO_GUARANTEE, "linestyle": canvas.DASHED}
    for at in outside:
        slices = [_along(found, at, axis, unit) for axis in range(problem.dim)]
        axis = int(np.argmax([_bend(values) for values in slices]))
        panels[axis].plot(problem.inputs[axis].unscaled(unit), slices[axis], **too_wild)
    if outside:
        panels[0].plot([], [], label="too wild: not admitted", **too_wild)
    panels[0].plot([], [], color="black", linewidth=0.9, label="admitted (all other lines)")
    if problem.dim > 1:
        panels[0].figure.supxlabel(CAPTION, fontsize="small")
    canvas.legend(panels, own=True)
    return panels


def _along(found: kb.problem.Assumed, at: int, axis: int, unit: Array) -> Array:
    """Return values of a function along one input, in the slice in which it bends most.

    The other inputs have random values. Of several such slices, the one that bends most shows what
    the norm is for.
    """
    rng, slices = np.random.default_rng(at), []
    one = found.problem.inputs[axis]
    for _ in range(SLICES_TRIED):
        points = np.tile(rng.random(found.problem.dim), (len(unit), 1))
        points[:, axis] = one.scaled(one.unscaled(unit))  # Whole numbers have steps between them.
        slices.append(found.values(found.functions[at], points))
    return max(slices, key=_bend)


def _bend(values: Array) -> float:
    """Return how much a slice bends: the sum of the changes of its slope."""
    return float(np.abs(np.diff(values, 2)).sum())
