"""A study at a glance: its card in a notebook."""

from __future__ import annotations

from kernelbounds import notebook
from kernelbounds.bandits import Certificate
from kernelbounds.problem import Problem
from kernelbounds.rounding import at_most, interval
from kernelbounds.study.points import written
from kernelbounds.study.records import Trial


def card(
    problem: Problem,
    minimise: bool,
    aim: float | None,
    count: int,
    pending: list[Trial],
    certificates: list[tuple[int, Certificate]],
) -> notebook.Html:
    """What is sought, how far it is, and the certificates that were made so far."""
    out = problem.output
    unit = f" {out.unit}" if out.unit else ""
    facts: list[tuple[object, object]] = [
        ("minimise" if minimise else "maximise", out.label),
        ("over", ", ".join(one.text for one in problem.inputs)),
        ("observations", count),
    ]
    facts += [
        (f"trial {one.number} pending", written(problem, one.values.values())) for one in pending
    ]
    picture, note = None, "" if count else "Ask for a trial, run it and tell its outcome."
    if certificates:
        last, best = certificates[-1]
        facts += [
            (f"best after {last}", written(problem, best.x.tolist())),
            (f"{out.name} there", f"in {interval(best.lower, best.upper)}{unit}"),
            ("certified", f"within {at_most(best.regret)}{unit} of the best possible"),
        ]
    if aim is not None:
        facts.append(("aim", f"within {aim:.4g}{unit}"))
    if len(certificates) > 1:
        counts, regrets = [n for n, _ in certificates], [one.regret for _, one in certificates]
        note = f"Certified regret after {counts[0]} to {counts[-1]} observations, on a log scale."
        picture = notebook.line_picture(counts, regrets, note, log=True, aim=aim)
    return notebook.card("Study", facts, picture, note)
