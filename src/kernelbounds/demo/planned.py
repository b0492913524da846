"""Chapter 5: how narrow the band will be, before the first experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelbounds.demo.numbers import number, numbers
from kernelbounds.problem import Problem, assume, assuming
from kernelbounds.problem.plans import counts_up_to
from kernelbounds.problem.problem import predicted_half_widths

INPUT, OUTPUT, NOISE = "temperature[°C]=180:220", "yield[%]=0:100", 1.0
TURNS = (0, 1, 2)


def chapter(most: int, functions: int, step: Callable[[], object]) -> dict[str, Any]:
    """Half-widths by the number of experiments, for functions that may turn more or less often.

    ``step`` is called :func:`steps` times.
    """
    counts = [int(count) for count in counts_up_to(most)]
    curves = []
    for turns in TURNS:
        # Chosen from fewer functions than `kernelbounds plan` draws, to be there in a moment.
        known = assume(_problem(turns), functions=functions, step=step).problem
        widths = [predicted_half_widths(known, count)[0] for count in counts]
        curves.append(
            {
                "turns": turns,
                "norm_bound": number(float(known.norm_bound or 0.0)),
                "half_width": numbers(widths),
            }
        )
    problem = _problem(TURNS[0])
    return {
        "input": problem.inputs[0].label,
        "output": problem.output.label,
        "unit": problem.output.unit,
        "noise": NOISE,
        "counts": counts,
        "curves": curves,
    }


def steps(functions: int) -> int:
    """How often :func:`chapter` calls ``step``."""
    return sum(assuming.steps(_problem(turns), functions) for turns in TURNS)


def _problem(turns: int) -> Problem:
    return Problem([INPUT], OUTPUT, NOISE, turns)
