"""How wide the band will be, and how good a certificate, before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array, as_scalar, as_whole
from kernelbounds.bandits import Finite, KernelUCB
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import at_most
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.noise import Bounded
from kernelbounds.problem.assuming import Assumed, assume, steps
from kernelbounds.problem.model import predicted_half_widths, scattered_points
from kernelbounds.problem.problem import Problem
from kernelbounds.problem.random_functions import RandomFunction

# Plans look at these numbers of experiments: the first, each larger by the ratio than the one
# before, up to a default number that the user may raise to the largest.
FIRST_COUNT, COUNT_RATIO = 5, 1.5
DEFAULT_COUNT, LARGEST_COUNT = 1000, 5000
# What to expect of ordinary functions comes from simulated runs on this many points of the cube.
RUNS, ACTIONS = 4, 256


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
    for run, at in enumerate(ordinary_functions(assumed)[:RUNS]):
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
    if len(problem.inputs) > 2 and problem.interactions == "all":
        yield "only pairs of inputs interact", problem.replace(interactions="pairs")
    if len(problem.inputs) > 1 and problem.interactions != "none":
        yield "inputs do not interact", problem.replace(interactions="none")
    if problem.turns > 0 and all(one.turns is None for one in problem.inputs):
        fewer = problem.turns - 1
        yield f"{fewer} turn{'' if fewer == 1 else 's'}", problem.replace(turns=fewer)


def drawn_noise(problem: Problem, scale: float, rng: np.random.Generator, count: int) -> Array:
    """Draw Gaussian noise of a scale or, where noise is within a limit, uniform noise."""
    if isinstance(problem.stated_noise.law, Bounded):
        return rng.uniform(-scale, scale, count)
    return scale * rng.standard_normal(count)


def ordinary_functions(assumed: Assumed) -> list[int]:
    """Return the positions of functions with ordinary norms: the median and those above it."""
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
    actions = scattered_points(problem, ACTIONS, seed=3)
    truth = assumed.scaled_values(function, actions)
    noise = assumed.noise
    sequence = problem.sequence(facts=(), noise_scale=noise)
    ucb = KernelUCB(problem.sequence(facts=(), noise_scale=noise), Finite(actions))
    chooser = ucb
    if isinstance(problem.stated_noise.law, Bounded):
        law = Bounded(noise, pointwise=False)
        chooser = KernelUCB(problem.sequence(facts=(), noise_scale=law), Finite(actions))
    design = problem.inputs.unit_box.filling(int(problem.experiments))

    def measured(points: Array) -> Array:
        errors = drawn_noise(problem, noise, rng, len(points))
        return assumed.scaled_values(function, points) + errors

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
