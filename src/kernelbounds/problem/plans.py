"""How wide the band will be, and how good a certificate, before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import qmc

from kernelbounds.arrays import Array, as_scalar, as_whole
from kernelbounds.bandits import Finite, KernelUCB
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import at_most
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.facts import Fact, Value
from kernelbounds.noise import Bounded, Gaussian
from kernelbounds.problem.assuming import Assumed, assume, plausible_range, steps
from kernelbounds.problem.facts_in_words import (
    NO_FACTS,
    arguments_of_each_fact,
    stated_facts,
    unit_region,
)
from kernelbounds.problem.model import predicted_half_widths
from kernelbounds.problem.problem import Problem
from kernelbounds.problem.random_functions import RandomFunction

# Plans look at these numbers of experiments: the first, each larger by the ratio than the one
# before, up to a default number that the user may raise to the largest.
FIRST_COUNT, COUNT_RATIO = 5, 1.5
DEFAULT_COUNT, LARGEST_COUNT = 1000, 5000
# What to expect of ordinary functions comes from simulated runs on this many points of the cube.
RUNS, ACTIONS = 4, 256
# What it costs not to know the noise comes from one simulated design for each of these shares of
# the output's range, or of what the noise is at most, with bounds at this many points.
UNKNOWN_POINTS, UNKNOWN_COUNTS = 64, (30, 50, 100, 300)
PLAUSIBLE_NOISES, SHARES_OF_MOST = (0.01, 0.05, 0.2), (0.1, 0.3, 1.0)
# What facts buy comes from simulated designs with this many functions, at most this many numbers of
# experiments, and bounds at this many points: a few seconds for two inputs.
WORTH_RUNS, WORTH_COUNTS, WORTH_POINTS = 3, 5, 64
NOTHING, ALL = "nothing known", "all of it known"


@dataclass(frozen=True)
class Plan:
    """What to expect after each of several numbers of experiments, see :func:`plan`.

    Attributes
    ----------
    assumed : Assumed
        The kernel and the norm bound, and what they were chosen from.
    counts : array of int
        Numbers of experiments.
    half_width, largest_half_width : arrays
        Half of upper - lower after a space-filling design, at most, whatever the outcomes: mean
        over 128 points that fill the box, and largest over these and its corners.
    simulated_half_width, simulated_error, simulated_regret : arrays
        Means over simulated runs, with some of the random functions as the truth: of the half-width
        after a space-filling design, of how far the estimate is off after the same, and of the
        regret that KernelUCB's certificates state. Nan beyond the planned number of experiments.

    Widths and regrets of a logarithmic output are those of its natural logarithm.

    Examples
    --------
    >>> from kernelbounds.problem import Problem, plan
    >>> problem = Problem(
    ...     ["x=0:1"], "y=-1:1", noise=0.02, experiments=2, kernel="Matern(0.75, nu=2.5)",
    ...     norm_bound=10.0,
    ... )
    >>> expected = plan(problem, most=8)
    >>> expected
    Plan(y at most ±0.520 after 5, ±0.235 after 8 experiments)
    >>> expected.half_width.round(2), expected.regret.round(1)  # after each of the counts
    (array([0.52, 0.23]), array([5.8, 2.4]))
    """

    assumed: Assumed
    counts: Array
    half_width: Array
    largest_half_width: Array
    simulated_half_width: Array
    simulated_error: Array
    simulated_regret: Array

    def __repr__(self) -> str:
        out = self.problem.output
        after = [f"{width} after {count}" for count, width in self._chosen]
        return f"Plan({out.label} at most {', '.join(after)} experiments)"

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        out, drawn = self.problem.output, self.counts.tolist()
        what = "Half-width of the band, at most, against the number of experiments; both log."
        return notebook.card(
            "Plan",
            [
                ("output", out.label),
                ("norm bound B", self.problem.norm_text),
                ("kernel", self.assumed.chosen.name),
                *((f"{count} experiments", f"at most {width}") for count, width in self._chosen),
            ],
            notebook.line_picture(drawn, self.half_width.tolist(), what, log=True),
            f"The picture has the half-width after {drawn[0]} to {drawn[-1]} experiments.",
        )

    @property
    def _chosen(self) -> list[tuple[int, str]]:
        """A few numbers of experiments, with their half-widths rounded up."""
        at = np.unique(np.linspace(0, len(self.counts) - 1, 4).round().astype(int))
        widths = [float(self.half_width[i]) for i in at]
        out = self.problem.output
        texts = [out.plus_minus(w) if out.log else f"±{at_most(w)}" for w in widths]
        return [(int(self.counts[i]), text) for i, text in zip(at, texts, strict=True)]

    @property
    def problem(self) -> Problem:
        """The problem, with a kernel and a norm bound."""
        return self.assumed.problem

    @property
    def regret(self) -> Array:
        """The largest regret that a certificate can state among the points looked at.

        Where x* has the largest upper bound, the best action known has no smaller lower bound than
        x*, and its regret is at most upper(x*) - lower(x*). Over a whole box the largest width may
        be a little more, and a search that ends early states more.
        """
        return 2 * self.largest_half_width


def plan(problem: Problem, most: int = DEFAULT_COUNT, step: Callable[[], object] = bool) -> Plan:
    """Predict widths and regrets from the assumptions alone, up to ``most`` experiments.

    ``step`` is called :func:`steps_of` times, for a progress bar.

    Examples
    --------
    >>> from kernelbounds.problem import Problem
    >>> expected = plan(Problem(["x=0:1"], "y=-1:1", noise=0.1, turns=1, experiments=10), most=20)
    >>> expected.counts
    array([ 5,  8, 11, 17, 20])
    >>> bool(expected.half_width[-1] < expected.half_width[0])
    True
    """
    counts = counts_up_to(most)
    assumed = assume(problem, step=step)
    known = assumed.problem
    predicted = []
    for count in counts:
        predicted.append(predicted_half_widths(known, int(count), assumed.noise))
        step()
    simulated = np.full((RUNS, 3, len(counts)), np.nan)
    for run, at in enumerate(_ordinary(assumed)[:RUNS]):
        function, rng = assumed.functions[at], np.random.default_rng(run)
        simulated[run] = _simulated(assumed, function, counts, rng)
        step()
    return Plan(assumed, counts, *np.array(predicted).T, *simulated.mean(axis=0))


def steps_of(problem: Problem, most: int = DEFAULT_COUNT) -> int:
    """Return how often :func:`plan` calls ``step``."""
    return steps(problem) + len(counts_up_to(most)) + RUNS


def counts_up_to(most: int) -> Array:
    """Return the numbers of experiments at which a plan looks."""
    most = as_whole(most, "most", least=1, most=LARGEST_COUNT)
    number = int(np.log(max(most / FIRST_COUNT, 1)) / np.log(COUNT_RATIO)) + 1
    counts = np.append(np.rint(FIRST_COUNT * COUNT_RATIO ** np.arange(number)), most).astype(int)
    return np.unique(np.minimum(counts, most))


def needed(problem: Problem, within: float, most: int = DEFAULT_COUNT) -> int | None:
    """Return how many experiments it takes for a mean half-width of at most ``within``.

    The number is at most five per cent too large; None means more than ``most``. ``within`` is on
    the scale of the model.
    """
    most = as_whole(most, "most", least=1, most=LARGEST_COUNT)
    within = as_scalar(within, "within", above=0.0)

    def is_enough(count: int) -> bool:
        return predicted_half_widths(problem, count)[0] <= within

    low, high = 0, 1
    while not is_enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def alternatives(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield stronger assumptions by name, to see what they would buy; each gets its own kernel."""
    problem = problem.replace(kernel=None, norm_bound=None)
    if problem.dim > 2 and problem.interactions == "all":
        yield "only pairs of inputs interact", problem.replace(interactions="pairs")
    if problem.dim > 1 and problem.interactions != "none":
        yield "inputs do not interact", problem.replace(interactions="none")
    if problem.turns > 0 and all(one.turns is None for one in problem.inputs):
        fewer = problem.turns - 1
        yield f"{fewer} turn{'' if fewer == 1 else 's'}", problem.replace(turns=fewer)


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
        """How many times as wide the band is after each number of experiments, on average; (c,)."""
        return np.asarray(np.ma.masked_invalid(self.unknown / self.known).mean(axis=0))


def cost_of_unknown_noise(
    assumed: Assumed, most: int = DEFAULT_COUNT, step: Callable[[], object] = bool
) -> CostOfUnknown:
    """Simulate the band with noise that is unknown beside that with the same noise, known.

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
    points = qmc.Sobol(problem.dim, rng=np.random.default_rng(5)).random(UNKNOWN_POINTS)
    points = problem.unit_box.scaled(points)
    design = problem.unit_box.filling(int(counts[-1]))
    widths = np.full((2, len(noises), len(counts)), np.nan)
    for row, (noise, at) in enumerate(zip(noises.tolist(), _ordinary(assumed), strict=False)):
        errors = np.random.default_rng(row).standard_normal(len(design))
        outcomes = assumed.scaled_values(assumed.functions[at], design) + noise * errors
        for case, scale in enumerate((None, noise)):
            sequence = problem.sequence(facts=(), noise_scale=scale)
            for column, count in enumerate(counts):
                new = slice(len(sequence), count)
                sequence.update(design[new], outcomes[new])
                with suppress(EmptyConfidenceSetError):  # by chance, or B is too small
                    lower, upper = sequence.bounds(points)
                    widths[case, row, column] = np.mean(upper - lower) / 2
                step()
    return CostOfUnknown(counts, noises, *widths)


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
        """About how many experiments a band of ± this takes; None: more than were simulated."""
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
    points = qmc.Sobol(problem.dim, rng=np.random.default_rng(4)).random(WORTH_POINTS)
    points = problem.inputs.nearest(problem.unscaled(problem.unit_box.scaled(points)))
    design = problem.inputs.nearest(problem.unscaled(problem.unit_box.filling(int(counts[-1]))))
    # On the places at which limits are used, functions may exceed their range a little.
    places = np.concatenate([unit_region(problem.inputs).places(), points])
    truths = []
    for at in _ordinary(assumed)[:WORTH_RUNS]:
        excess = max(float(np.abs(assumed.functions[at](places)).max()), 1.0)
        low, high = problem.output.scaled(plausible_range(problem)).tolist()
        truths.append(partial(_within, assumed.functions[at], excess, low, high))
    found = {}
    for name, one in _cases(problem).items():
        case = one if _is_settled(one) else assume(one, step=step).problem
        facts = [fact for fact in case.facts if not _is_on_a_face(fact)]
        widths = np.full((len(truths), len(counts)), np.nan)
        for run, truth in enumerate(truths):
            rng = np.random.default_rng(run)
            outcomes = truth(design) + _noise(problem, assumed.noise, rng, len(design))
            own = [
                replace(fact, y=float(truth(np.array([fact.x]))[0]))
                if isinstance(fact, Value)
                else fact
                for fact in facts
            ]
            for column, count in enumerate(counts):
                with suppress(EmptyConfidenceSetError):  # by chance, or because B is too small
                    sequence = case.sequence(facts=own, noise_scale=assumed.noise)
                    sequence.update(design[:count], outcomes[:count])
                    lower, upper = sequence.bounds(points)
                    widths[run, column] = np.mean(upper - lower) / 2
                step()
        found[name] = np.ma.filled(np.ma.masked_invalid(widths).mean(axis=0), np.nan)
    return Worth(counts, found)


def _noise(problem: Problem, scale: float, rng: np.random.Generator, count: int) -> Array:
    """Draw noise of a scale, Gaussian or, where it is within a limit, uniform within that."""
    if isinstance(problem.stated_noise.law, Bounded):
        return rng.uniform(-scale, scale, count)
    return scale * rng.standard_normal(count)


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
    return simulated + sum(steps(one) for one in cases if not _is_settled(one))


def has_worth(problem: Problem) -> bool:
    """Tell whether facts are stated, other than that a rate is between 0 and 1."""
    return problem.facts != problem.replace(**NO_FACTS).facts


def _cases(problem: Problem) -> dict[str, Problem]:
    """Return the problems that are simulated, which state nothing, one fact or all of them."""
    stated = zip(stated_facts(problem), arguments_of_each_fact(problem), strict=True)
    plain = problem.replace(**NO_FACTS, kernels="one")
    alone = {
        words: problem.replace(**(NO_FACTS | arguments), kernels="one")
        for (words, fact), arguments in stated
        if not _is_on_a_face(fact) and fact not in plain.facts  # which a rate has in any case
    }
    cases = {NOTHING: plain} | alone
    return cases | {ALL: problem} if len(alone) > 1 else cases


def _is_settled(problem: Problem) -> bool:
    return problem.kernel is not None and problem.norm_bound is not None


def _is_on_a_face(fact: Fact) -> bool:
    return isinstance(fact, Value) and fact.x is None


def _ordinary(assumed: Assumed) -> list[int]:
    """Return the numbers of functions with norms from the median on: ordinary ones."""
    return list(np.argsort(assumed.chosen.norms)[len(assumed.functions) // 2 :])


def _simulated(
    assumed: Assumed, function: RandomFunction, counts: Array, rng: np.random.Generator
) -> Array:
    """Simulate half-widths and errors after a design, and KernelUCB's regrets; (3, counts).

    All are without facts; :func:`worth_of_facts` says what these buy. Where noise is within a
    limit, actions are chosen by bounds that do not use each outcome by itself, which are a little
    wider and far faster to compute; the certificates do use it.
    """
    problem = assumed.problem
    found = np.full((3, len(counts)), np.nan)
    actions = qmc.Sobol(problem.dim, rng=np.random.default_rng(3)).random(ACTIONS)
    actions = problem.unit_box.scaled(actions)
    truth = assumed.scaled_values(function, actions)
    noise = assumed.noise
    sequence = problem.sequence(facts=(), noise_scale=noise)
    ucb = KernelUCB(problem.sequence(facts=(), noise_scale=noise), Finite(actions))
    chooser = ucb
    if isinstance(problem.stated_noise.law, Bounded):
        law = Bounded(noise, pointwise=False)
        chooser = KernelUCB(problem.sequence(facts=(), noise_scale=law), Finite(actions))
    design = problem.unit_box.filling(int(problem.experiments))

    def measured(points: Array) -> Array:
        return assumed.scaled_values(function, points) + _noise(problem, noise, rng, len(points))

    try:
        for at, count in enumerate(counts[counts <= problem.experiments]):
            new = design[len(sequence) : count]
            sequence.update(new, measured(new))
            estimate, lower, upper = sequence.estimate_with_bounds(actions)
            found[:2, at] = np.mean(upper - lower) / 2, np.mean(np.abs(estimate - truth))
            while len(ucb.sequence) < count:
                x = chooser.ask().x
                y = measured(x[None])[0]
                chooser.tell(x, y)
                if chooser is not ucb:
                    # Its own tell would compute bounds on x for a history that nobody reads.
                    ucb.sequence.update(x, y)
            found[2, at] = ucb.certificate().regret
    except EmptyConfidenceSetError:  # This happens with probability delta; the rest stays nan.
        pass
    return found
