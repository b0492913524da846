"""Kernels that suit a problem: their length scales follow from how often the output may turn.

For inputs scaled to [0, 1], a length scale is ``reach`` / (turns + 1). Inputs that act together
have one kernel, with a factor for each category among them; the kernels of several sets are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from kernelbounds.arrays import Array
from kernelbounds.kernels import Levels, OnInputs
from kernelbounds.problem.problem import Problem

# Kernels, and length scales relative to the range of an input over its turns + 1. Length scales
# between these are predicted to give bands narrower by less than 3 per cent, in 36 cases of up to
# six inputs, and Matérn-7/2 by less than 4. RBF is there for comparison: most functions have an
# infinite norm.
REACHES = (0.75, 1.5, 3.0)
KERNELS: tuple[tuple[str, Callable[[Array], Kernel], float], ...] = (
    *(("Matérn-3/2", partial(Matern, nu=1.5), reach) for reach in REACHES),
    *(("Matérn-5/2", partial(Matern, nu=2.5), reach) for reach in REACHES),
    ("RBF", RBF, 0.75),
)


def turns_along_inputs(problem: Problem) -> Array:
    """Return how many times the output may turn along each input, (d,).

    Along an input with n whole numbers, the output cannot turn more than n - 2 times. It does not
    turn where it is known to rise or to fall, and once at most where it is convex or concave. The
    levels of a category have no order, and no turns.
    """
    most = []
    for one in problem.inputs:
        monotone = one.name in (*problem.increasing, *problem.decreasing)
        bent = one.name in (*problem.convex, *problem.concave)
        most.append(
            min(
                problem.turns if one.turns is None else one.turns,
                one.range - 1 if one.integer else math.inf,
                0 if one.levels or monotone else 1 if bent else math.inf,
            )
        )
    return np.array(most, dtype=float)


def correlation(matters: float) -> float:
    """Return the correlation between the levels of a category, given how much it matters.

    With 3 and 6 levels and 1 and 2 numbers, no other one is predicted to give a band that is
    narrower by more than 3 per cent.
    """
    common = 1 - matters
    return round(common**2 / (common**2 + matters**2), 4)


def candidate_kernels(
    problem: Problem, subsets: list[tuple[int, ...]]
) -> Iterator[tuple[str, Kernel, list[Kernel]]]:
    """Yield the name of each candidate, its kernel, and the kernels of its parts."""
    if problem.kernel is not None:
        yield "the kernel given", problem.kernel, [problem.kernel]
        return
    for name, make, reach in KERNELS:
        scales = reach / (turns_along_inputs(problem) + 1)
        parts = [_kernel_on(problem, inputs, make, scales, alone=True) for inputs in subsets]
        on_inputs = [_kernel_on(problem, inputs, make, scales) for inputs in subsets]
        kernel = sum(on_inputs[1:], on_inputs[0])
        of_numbers = scales[problem.inputs.numbers]
        if not of_numbers.size:
            yield "the kernel of categories", kernel, parts
            return
        ends = dict.fromkeys(f"{end:.2g}" for end in (of_numbers.min(), of_numbers.max()))
        yield f"{name}, ℓ = {' to '.join(ends)}", kernel, parts


def _kernel_on(
    problem: Problem,
    inputs: Sequence[int],
    make: Callable[[Array], Kernel],
    scales: Array,
    *,
    alone: bool = False,
) -> Kernel:
    """Return the kernel of some of the inputs: that of the numbers, times Levels of each category.

    It is for points of all inputs, or for points that have these ``alone``.
    """
    place = {at: column if alone else at for column, at in enumerate(inputs)}
    numbers = [at for at in inputs if at in problem.inputs.numbers]
    factors = []
    if numbers:
        kernel, columns = make(scales[numbers]), [place[at] for at in numbers]
        everything = list(range(len(inputs) if alone else len(problem.inputs)))
        factors.append(kernel if columns == everything else OnInputs(kernel, columns))
    factors += [
        OnInputs(Levels(correlation(problem.inputs[at].matters)), [place[at]])
        for at in inputs
        if at not in numbers
    ]
    return math.prod(factors[1:], start=factors[0])
