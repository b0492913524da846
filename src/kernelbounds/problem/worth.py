"""What it is worth to know the noise, or facts about the output, by simulation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.facts import Fact, Value
from kernelbounds.noise import Gaussian
from kernelbounds.problem.assuming import Assumed, assume, plausible_range, steps
from kernelbounds.problem.facts_in_words import NO_FACTS, stated_facts, unit_region
from kernelbounds.problem.model import scattered_points
from kernelbounds.problem.plans import DEFAULT_COUNT, counts_up_to, drawn_noise, ordinary_functions
from kernelbounds.problem.problem import Problem
from kernelbounds.problem.random_functions import RandomFunction
from kernelbounds.sequence import ConfidenceSequence

# What it costs not to know the noise comes from one simulated design for each of these shares of
# the output's range, or of what the noise is at most, with bounds at this many points.
UNKNOWN_POINTS, UNKNOWN_COUNTS = 64, (30, 50, 100, 300)
PLAUSIBLE_NOISES, SHARES_OF_MOST = (0.01, 0.05, 0.2), (0.1, 0.3, 1.0)
# What facts buy comes from simulated designs with this many functions, at most this many numbers of
# experiments, and bounds at this many points: a few seconds for two inputs.
WORTH_RUNS, WORTH_COUNTS, WORTH_POINTS = 3, 5, 64
NOTHING, ALL = "nothing known", "all of it known"


@dataclass(frozen=True)
class CostOfUnknown:
    """What it costs not to know the noise, by simulation: see :func:`cost_of_unknown_noise`.

    Attributes
    ----------
    counts : array of int, (c,)
        Numbers of experiments.
    noises : array, (n,)
        Noise scales that are plausible.
    unknown, known : arrays, (n, c)
        Half-widths of the band, means over points, if the noise is unknown, and if it were known
        exactly. Nan where a simulation refuted its assumptions.
    """

    counts: Array
    noises: Array
    unknown: Array
    known: Array

    @property
    def ratios(self) -> Array:
        """By which factor an unknown noise widens the band, on average after each count, (c,)."""
        return np.asarray(np.ma.masked_invalid(self.unknown / self.known).mean(axis=0))


def cost_of_unknown_noise(
    assumed: Assumed, most: int = DEFAULT_COUNT, step: Callable[[], object] = bool
) -> CostOfUnknown:
    """Simulate the band with an unknown noise, and with the same noise if it is known.

    For each noise, the truth is another one of the random functions, and the design fills the
    ranges. Facts are left out. ``step`` is called :func:`unknown_steps` times.

    Examples
    --------
    >>> from kernelbounds.problem import Problem, assume
    >>> problem = Problem(["x=0:1"], "y=-1:1", noise="unknown", turns=1)
    >>> cost = cost_of_unknown_noise(assume(problem, functions=10), most=50)
    >>> bool(1 < cost.ratios[1] < cost.ratios[0])  # after 50 runs, and after 30
    True
    """
    problem, law = assumed.problem, assumed.problem.stated_noise.law
    at_most = law.at_most if isinstance(law, Gaussian) else None
    shares = np.array(PLAUSIBLE_NOISES if at_most is None else SHARES_OF_MOST)
    noises = shares * (at_most or problem.output.span)
    counts = unknown_counts(most)
    points = scattered_points(problem, UNKNOWN_POINTS, seed=5)
    design = problem.inputs.unit_box.filling(int(counts[-1]))
    widths = np.full((2, len(noises), len(counts)), np.nan)
    for row, at in enumerate(ordinary_functions(assumed)[: len(noises)]):
        noise, rng = float(noises[row]), np.random.default_rng(row)
        outcomes = assumed.scaled_values(assumed.functions[at], design)
        data = design, outcomes + noise * rng.standard_normal(len(design))
        for case, scale in enumerate((None, noise)):
            make = partial(problem.sequence, facts=(), noise_scale=scale)
            widths[case, row] = _simulated_widths(make, data, counts, points, step)
    return CostOfUnknown(counts, noises, *widths)


def _simulated_widths(
    make: Callable[[], ConfidenceSequence],
    data: tuple[Array, Array],
    counts: Array,
    points: Array,
    step: Callable[[], object],
) -> list[float]:
    """Return mean half-widths of the band after each number of experiments; nan where refuted."""
    widths = []
    for count in counts:
        width = np.nan
        with suppress(EmptyConfidenceSetError):  # by chance, or because B is too small
            sequence = make()
            sequence.update(*(part[:count] for part in data))
            lower, upper = sequence.bounds(points)
            width = float(np.mean(upper - lower)) / 2
        widths.append(width)
        step()
    return widths


def unknown_counts(most: int) -> Array:
    """Return the numbers of experiments at which :func:`cost_of_unknown_noise` looks."""
    return np.array([count for count in UNKNOWN_COUNTS if count <= most] or [most])


def unknown_steps(most: int = DEFAULT_COUNT) -> int:
    """Return how often :func:`cost_of_unknown_noise` calls ``step``."""
    return 2 * len(PLAUSIBLE_NOISES) * len(unknown_counts(most))


@dataclass(frozen=True)
class Worth:
    """What facts buy, by simulation: see :func:`worth_of_facts`.

    Attributes
    ----------
    counts : array of int
        Numbers of experiments.
    half_width : dict of arrays
        The mean half-width of the band after each of them, by what is known: nothing, each fact
        alone, in the user's words, and all of them.

    Examples
    --------
    >>> worth = Worth(np.array([10, 20, 40]), {"nothing known": np.array([4.0, 2.0, 1.0])})
    >>> round(worth.experiments("nothing known", 2.0)), worth.experiments("nothing known", 0.5)
    (20, None)
    """

    counts: Array
    half_width: dict[str, Array]

    def experiments(self, known: str, within: float) -> float | None:
        """Estimate how many experiments a band of ± ``within`` takes; None: more than simulated."""
        widths = np.minimum.accumulate(self.half_width[known])
        if not widths[-1] <= within:
            return None
        logs = np.log(np.maximum(widths, 1e-300))
        return float(np.exp(np.interp(-np.log(within), -logs, np.log(self.counts))))


def worth_of_facts(
    assumed: Assumed, most: int = DEFAULT_COUNT, step: Callable[[], object] = bool
) -> Worth:
    """Simulate the band with and without each fact that the problem states.

    The truth is one of the random functions, which satisfy all facts, and the design fills the
    ranges. Where B and the kernel are suggested, each case has its own. A value that is known at a
    point is that of the function there; one that is known on a whole face of the ranges is left
    out, because no function that is drawn has it. ``step`` is called :func:`worth_steps` times.
    """
    problem = assumed.problem
    counts = worth_counts(problem, most)
    # Facts hold at values that can be set, and not between whole numbers.
    points = problem.scaled(problem.unscaled(scattered_points(problem, WORTH_POINTS, seed=4)))
    design = problem.scaled(problem.unscaled(problem.inputs.unit_box.filling(int(counts[-1]))))
    # On the places at which limits are used, functions may exceed their range a little.
    places = np.concatenate([unit_region(problem.inputs).places(), points])
    truths = []
    for at in ordinary_functions(assumed)[:WORTH_RUNS]:
        excess = max(float(np.abs(assumed.functions[at](places)).max()), 1.0)
        low, high = problem.output.scaled(plausible_range(problem)).tolist()
        truths.append(partial(_within, assumed.functions[at], excess, low, high))
    found = {}
    for name, one in _cases(problem).items():
        case = one if one.is_settled else assume(one, step=step).problem
        facts = [fact for fact in case.facts if not _is_on_a_face(fact)]
        widths = []
        for run, truth in enumerate(truths):
            rng = np.random.default_rng(run)
            noise = drawn_noise(problem, assumed.noise, rng, len(design))
            own = [
                replace(fact, y=float(truth(np.array([fact.x]))[0]))
                if isinstance(fact, Value)
                else fact
                for fact in facts
            ]
            make = partial(case.sequence, facts=own, noise_scale=assumed.noise)
            data = design, truth(design) + noise
            widths.append(_simulated_widths(make, data, counts, points, step))
        found[name] = np.ma.filled(np.ma.masked_invalid(widths).mean(axis=0), np.nan)
    return Worth(counts, found)


def _within(function: RandomFunction, excess: float, low: float, high: float, x: Array) -> Array:
    """Return values (m,) between low and high of a function with values up to ± excess."""
    return low + (high - low) * (function(x) / excess + 1) / 2


def worth_counts(problem: Problem, most: int = DEFAULT_COUNT) -> Array:
    """Return the numbers of experiments at which :func:`worth_of_facts` looks."""
    counts = counts_up_to(min(most, problem.experiments))
    few = np.unique(np.linspace(0, len(counts) - 1, WORTH_COUNTS).round().astype(int))
    return np.asarray(counts[few])


def worth_steps(problem: Problem, most: int = DEFAULT_COUNT) -> int:
    """Return how often :func:`worth_of_facts` calls ``step``."""
    cases = _cases(problem).values()
    simulated = WORTH_RUNS * len(worth_counts(problem, most)) * len(cases)
    return simulated + sum(steps(one) for one in cases if not one.is_settled)


def has_worth(problem: Problem) -> bool:
    """Tell whether facts are stated, other than that a rate is between 0 and 1."""
    return problem.facts != problem.replace(**NO_FACTS).facts


def _cases(problem: Problem) -> dict[str, Problem]:
    """Return the problems that are simulated, which state nothing, one fact or all of them."""
    plain = problem.replace(**NO_FACTS, kernels="one")
    alone = {
        one.words: problem.replace(**(NO_FACTS | one.argument), kernels="one")
        for one in stated_facts(problem)
        if not _is_on_a_face(one.fact)
        and one.fact not in plain.facts  # which a rate has in any case
    }
    cases = {NOTHING: plain} | alone
    return cases | {ALL: problem} if len(alone) > 1 else cases


def _is_on_a_face(fact: Fact) -> bool:
    return isinstance(fact, Value) and fact.x is None
