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
    title: str = "Study",
    advice: str = "",
    promising: str = "",
) -> notebook.Html:
    """What is sought, how far it is, and the certificates that were made so far."""
    out = problem.output
    unit = f" {out.unit}" if out.unit else ""
    facts: list[tuple[object, object]] = [
        ("minimise" if minimise else "maximise", out.label),
        *((one.name, one.description) for one in problem.inputs),
        ("observations", count),
    ]
    facts += [
        (f"trial {one.number} pending", written(problem, one.values.values())) for one in pending
    ]
    picture = None
    if not count:
        advice = advice or "Ask for a trial, run it and tell its outcome."
    if certificates:
        last, best = certificates[-1]
        facts += [
            (f"best after {last}", written(problem, best.x.tolist())),
            (f"{out.name} there", f"in {interval(best.lower, best.upper)}{unit}"),
            ("certified", f"within {at_most(best.regret)}{unit} of the best possible"),
        ]
        picture = best.picture()
    if promising:
        facts.append(("most promising, not proved", promising))
    if aim is not None:
        facts.append(("aim", f"within {aim:.4g}{unit}"))
    if len(certificates) > 1:
        counts, regrets = [n for n, _ in certificates], [one.regret for _, one in certificates]
        what = "Certified regret against observations, both on logarithmic scales."
        picture = notebook.line_picture(counts, regrets, what, log=True, aim=aim)
        advice = advice or what
    return notebook.card(title, facts, picture, advice)
