"""``kernelbounds plan``: how many experiments it takes, before the first one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kernelbounds as kb
from kernelbounds.cli.options import OutOption, with_problem
from kernelbounds.cli.output import Results, print_table, progress, say
from kernelbounds.display.numbers import at_most, factor
from kernelbounds.errors import InputError

if TYPE_CHECKING:
    from kernelbounds.problem.worth import CostOfUnknown, Worth

# As in kernelbounds.problem.plans, which would take too long to import for a line of help.
DEFAULT_COUNT, LARGEST_COUNT = 1000, 5000


@with_problem(needs_noise=True)
def plan(
    problem: kb.Problem,
    within: Annotated[
        str | None,
        typer.Option(
            help="Say how many experiments a band of ± this takes, in units of the output, or in "
            "percent, 10%, for a logarithmic output.",
            metavar="NUMBER|PERCENT",
            show_default="a tenth of the output's range",
        ),
    ] = None,
    most: Annotated[
        int,
        typer.Option(min=5, max=LARGEST_COUNT, help="Look no further than this many experiments."),
    ] = DEFAULT_COUNT,
    compare: Annotated[
        bool, typer.Option(help="Whether to say how much stronger assumptions would gain.")
    ] = True,
    facts: Annotated[
        bool,
        typer.Option(
            help="Whether to simulate how much each fact that you state, such as --limits, narrows "
            "the band."
        ),
    ] = True,
    design: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of settings in design.csv.", show_default="5 for each input"
        ),
    ] = None,
    out: OutOption = Path("plan"),
) -> None:
    """Predict the width of the band and the certified regret, from the assumptions alone.

    Regret is how far the best known settings may fall short of the best possible ones. The
    command writes problem.json, plan.csv, plan.png, and design.csv with settings that fill the
    ranges evenly. With three inputs it takes about half a minute; --no-compare and
    a smaller --most are faster.

    Example: kernelbounds plan --problem assume/problem.json --within 5
    """
    from threadpoolctl import threadpool_limits

    aim = problem.output.span / 10
    if within is not None:
        aim = kb.problem.outputs.checked_amount(within, "--within", problem.output, above=0.0)
        aim = math.log1p(aim) if problem.output.log else aim
    # The matrices are small: more threads wait for each other most of the time, on a busy computer
    # ten times as long as one takes alone.
    with threadpool_limits(limits=1):
        with progress("predicting", kb.problem.plans.steps_of(problem, most)) as step:
            expected = kb.problem.plan(problem, most, step)
        show(expected)
        show_alternatives(expected.problem, aim, most, compare=compare)
        show_simulated(expected, aim, most, facts=facts)
    say("Assume only what you know: if an assumption is wrong, so are the bounds.")
    _write(expected, Results(out), design or 5 * len(problem.inputs))


def show_alternatives(problem: kb.Problem, aim: float, most: int, *, compare: bool) -> None:
    """Print what it takes as stated and, with ``compare``, under stronger assumptions."""
    others = list(kb.problem.plans.alternatives(problem)) if compare else []
    rows = []
    with progress("what other assumptions would buy", len(others) + 1) as step:
        for name, one in [("as stated", problem), *others]:
            rows.append(_row(name, one, aim, most))
            step()
    print_table(
        "What assumptions buy",
        ["assumption", "B", f"band after {problem.experiments}",
         f"experiments for {_aim_text(problem.output, aim)}"],
        rows,
    )  # fmt: skip


def _row(name: str, problem: kb.Problem, aim: float, most: int) -> list[str]:
    try:
        settled = problem.settled()
    except InputError:
        return [name, "?", "?", "?"]
    count, out = kb.problem.plans.needed(settled, aim, most), settled.output
    width, _ = kb.problem.model.predicted_half_widths(settled, settled.experiments)
    return [
        name, settled.norm_text, out.short_plus_minus(width),
        f"more than {most}" if count is None else str(count),
    ]  # fmt: skip


def show(expected: kb.problem.Plan) -> None:
    """Print widths and regrets by the number of experiments."""
    problem, out = expected.problem, expected.problem.output
    rows = [
        [str(count), _most(out, width, "±"), _usual(out, typical, "±"), _usual(out, error, "±"),
         _most(out, regret), _usual(out, usual)]
        for count, width, typical, error, regret, usual in zip(
            expected.counts, expected.half_width, expected.simulated_half_width,
            expected.simulated_error, expected.regret, expected.simulated_regret, strict=True,
        )
    ]  # fmt: skip
    kernel = kb.kernels.kernel_to_text(problem.kernel)
    print_table(
        f"{out.label}: band and certified regret, with {kernel}, B = {problem.norm_text}",
        ["experiments", "band, at most", "band, simulated", "estimate, simulated",
         "regret, at most", "regret among 256, simulated"],
        rows,
    )  # fmt: skip
    say(
        f"Band: the true output is known {'up to this factor' if out.log else 'to ± this'} on "
        "average. Estimate: how far it is off on average, without guarantee. "
        f"Regret: {'the factor by which' if out.log else 'how far'} the best known "
        "settings may fall short of the best possible ones, as study status certifies it."
    )
    if problem.stated_noise.is_unknown:
        largest = "5 % of the range" if problem.noise == "unknown" else "the most that you stated"
        say(
            f"Your noise is unknown, so these tables are for noise that is known to be "
            f"{problem.stated_noise.planned_text}, {largest}. Before the data nobody can say more; "
            "the last table says how much wider not knowing it makes the band."
        )
    if problem.counts is not None:
        planned = problem.counts.planned
        say(
            f"An experiment is a run of {planned} tr{'y' if planned == 1 else 'ies'}; to plan "
            f"another number, say --tries {problem.counts.tries}=20."
        )
    known = f" and noise is known to be {problem.stated_noise.planned_text} or less"
    known *= problem.stated_noise.is_unknown
    say(
        f"At most: certain if the assumptions hold{known}, whatever the outcomes, with settings "
        "that fill the ranges evenly; the band is the mean half-width at 128 points, and the "
        "regret the largest width at these and in the corners. Simulated: the mean over 4 of the "
        "random functions; the regret is that of choosing among 256 settings, and it is larger "
        "over the whole ranges. A band wider than the output's range, "
        f"{out.stated_range}, says nothing."
    )
    say(
        "Plan by 'band, at most': in simulated studies, the regrets that were certified over whole "
        f"ranges were 0.7 to 1.7 times that{', in logarithms' * out.log}. 'Regret, at most' is for "
        "the worst of all functions."
    )


def show_simulated(expected: kb.problem.Plan, aim: float, most: int, *, facts: bool) -> None:
    """Simulate and print what facts buy, and what it costs not to know the noise."""
    from kernelbounds.problem import worth as simulated

    problem = expected.problem
    if facts and simulated.has_worth(problem):
        with progress("what facts buy", simulated.worth_steps(problem, most)) as step:
            worth = simulated.worth_of_facts(expected.assumed, most, step)
        show_worth(problem, worth, aim)
    if problem.stated_noise.is_unknown:
        with progress("what an unknown noise costs", simulated.unknown_steps(most)) as step:
            cost = simulated.cost_of_unknown_noise(expected.assumed, most, step)
        show_cost(problem, cost)


def show_worth(problem: kb.Problem, worth: Worth, aim: float) -> None:
    """Print the band with and without each fact, and how many experiments each one saves."""
    from kernelbounds.problem.worth import ALL, NOTHING, WORTH_RUNS

    out = problem.output
    unit = " up to a factor" if out.log else f" [{out.unit}]" if out.unit else ""
    left_out = [words for words in problem.facts_in_words if words not in worth.half_width]
    if left_out:
        say(f"Not simulated, because random functions do not satisfy it: {'; '.join(left_out)}.")
    if len(worth.half_width) == 1:
        return
    print_table(
        f"What you know buys: the mean band{unit}, simulated with {WORTH_RUNS} random functions",
        ["experiments", *worth.half_width],
        [
            [str(count), *(_usual(out, w, "±") or "?" for w in widths)]
            for count, *widths in zip(worth.counts, *worth.half_width.values(), strict=True)
        ],
    )
    plain = worth.half_width[NOTHING]
    # Where the aim is out of reach without facts, the band that is in reach takes its place.
    target = aim if plain[-1] <= aim else float(plain[-1])
    before = worth.experiments(NOTHING, target)
    for name in list(worth.half_width)[1:]:
        after = worth.experiments(name, target)
        if before is None or after is None:
            continue
        known = "With all that you know" if name == ALL else f"If {_as_clause(name)}"
        if round(after) < round(before):
            saved = f"about {after:.0f} experiments in place of {before:.0f}"
            if after <= worth.counts[0]:
                saved = f"{worth.counts[0]} experiments or fewer in place of {before:.0f}"
        else:
            saved = f"no fewer experiments than the {before:.0f} without"
        say(f"{known}: {saved}, for a band of {_aim_text(out, target, 3)}.")
    say(
        "The bands of the tables above use what you know for B and the kernel only; here it limits "
        "the band as well, and each column has the B and the kernel that follow from what is known."
    )


def show_cost(problem: kb.Problem, cost: CostOfUnknown) -> None:
    """Print the simulated band with an unknown noise, and with the same noise if it is known."""
    out = problem.output

    def one(unknown: float, known: float) -> str:
        if not math.isfinite(unknown + known):
            return "?"
        return f"{_usual(out, unknown, '±')} ({_usual(out, known, '±')})"

    print_table(
        "What an unknown noise costs: the simulated band, and in brackets that of a known noise",
        ["experiments", *(
            f"noise {out.noise_text(float(out.difference(noise)), '{:.3g}'.format)}"
            for noise in cost.noises
        )],
        [
            [str(count), *map(one, unknown, known)]
            for count, unknown, known in zip(cost.counts, cost.unknown.T, cost.known.T, strict=True)
        ],
    )  # fmt: skip
    finite = [pair for pair in zip(cost.counts, cost.ratios, strict=True) if math.isfinite(pair[1])]
    if finite:
        (first, ratio), *others = finite
        times = f"{ratio:.3g} times as wide after {first} runs" + "".join(
            f", {ratio:.3g} after {count}" for count, ratio in others
        )
        say(
            f"Not knowing the noise makes the band {times}, on average over these: one "
            "simulated run for each noise, on a random function with your range and turns, so this "
            "is not a promise. Before some 20 to 40 runs, an unknown noise may be of any size, "
            "and the band is the one without data, unless you can say 'unknown, at most "
            "...'."
        )


def _most(out: kb.problem.Output, scaled: float, sign: str = "") -> str:
    """Write a width or a regret without its unit, rounded up; of a logarithmic output a factor."""
    return factor(float(out.difference(scaled))) if out.log else f"{sign}{at_most(scaled)}"


def _usual(out: kb.problem.Output, scaled: float, sign: str = "") -> str:
    """Write a simulated width or regret, which no bound rests on."""
    if not math.isfinite(scaled):
        return ""
    return f"{math.exp(scaled):.4g}" if out.log else f"{sign}{scaled:.3g}"


def _aim_text(out: kb.problem.Output, aim: float, digits: int = 4) -> str:
    if out.log:
        return f"a factor of {math.exp(aim):.4g}"
    return f"±{aim:.{digits}g}{out.after_number}"


def _as_clause(words: str) -> str:
    """Turn what is known of values into a clause; what is known of shape is one already."""
    for value in (" between ", " at least ", " at most "):
        words = words.replace(value, f" is{value}", 1)
    return words


def _write(expected: kb.problem.Plan, results: Results, size: int) -> None:
    """Write the problem, what was predicted and simulated, a design, and a picture."""
    from kernelbounds.problem.drawings import draw_plan

    problem, out = expected.problem, expected.problem.output
    half, error, regret = "half_width", "estimate_error", "regret"
    if out.log:  # Widths and regrets are factors in the user's units.
        half, error, regret = "band_factor", "estimate_factor", "regret_factor"
    certain = {half: expected.half_width, regret: expected.regret}
    simulated = {
        half: expected.simulated_half_width,
        error: expected.simulated_error,
        regret: expected.simulated_regret,
    }
    known = expected.simulated_half_width > 0  # and not nan
    results.problem(problem)
    for file, kind, columns, rows in (
        ("plan.csv", "at_most", certain, slice(None)),
        ("simulated.csv", "simulated", simulated, known),
    ):
        values = {f"{name}_{kind}": out.widths(some[rows]) for name, some in columns.items()}
        results.table(file, {"experiments": expected.counts[rows], **values})
    points = problem.inputs.settable(problem.inputs.unit_box.filling(size))
    results.table("design.csv", problem.inputs.columns(points))
    results.picture("plan.png", lambda: draw_plan(expected))
