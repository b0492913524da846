"""B and the kernel by example: norms of random functions that have the stated range and turns.

==================  ====================================================================
code                meaning
==================  ====================================================================
``norms``           norms of the functions, each less its best level, (number of functions,)
``width``           half of the predicted width of the band, mean over points
==================  ====================================================================

See :mod:`kernelbounds.problem.random_functions` for the functions,
:mod:`kernelbounds.problem.norms` for how norms are computed, and
:mod:`kernelbounds.problem.candidate_kernels` for the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import beta
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, shortened
from kernelbounds.errors import InputError
from kernelbounds.facts import Concave, Convex, Decreasing, Increasing
from kernelbounds.kernels import kernel_to_text
from kernelbounds.problem.candidate_kernels import (
    KERNELS,
    candidate_kernels,
    turns_along_inputs,
)
from kernelbounds.problem.facts_in_words import NO_FACTS, NO_LIMITS, stated_facts, unit_region
from kernelbounds.problem.model import predicted_half_widths
from kernelbounds.problem.norms import GRID_SIDES, Sampled, norms_of
from kernelbounds.problem.problem import SUGGESTED, Problem
from kernelbounds.problem.random_functions import (
    RandomFunction,
    Shapes,
    random_functions,
    subsets_of,
)
from kernelbounds.problem.waves import Category

# Norms are computed from values at no more points, which take some seconds for each kernel, and for
# no more combinations of levels.
MOST_POINTS, MOST_COMBINATIONS = 6000, 100
# With this many functions, the one that decides B is not always the same extreme one: in 19 of 20
# sets of 200, the norm bound covers between 86 and 94 of 100 functions, and 90 of them on average.
FUNCTIONS = 200
# With this probability over the draw of the functions, a norm bound covers at least what is said.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Candidate:
    """One of the kernels that :func:`assume` has compared, with its norm bound and its band.

    Attributes
    ----------
    name : str
        The kernel in words, with its length scales for inputs scaled to [0, 1].
    kernel : kernel
        The kernel itself.
    norms : array
        Norms of the random functions, in their order, in units of the output (of a logarithmic
        one: of its natural logarithm; so are the next and ``width``).
    norm_bound : float
        The B that goes with this kernel: the stated share of the norms is smaller.
    settled : bool
        Whether the norms are known; if not, they go on rising on finer and finer grids.
    width : float
        Mean half-width predicted after the planned number of experiments; infinite if not settled.

    Examples
    --------
    The kernel that was chosen is the one with the narrowest band:

    >>> from kernelbounds.problem import Problem, assume
    >>> found = assume(Problem(["x=0:1"], "y=-1:1", noise=0.02, turns=1), functions=10)
    >>> [one.name for one in found.candidates if not one.settled]
    ['RBF, ℓ = 0.38']
    >>> found.chosen.width == min(one.width for one in found.candidates)
    True
    """

    name: str
    kernel: Kernel
    norms: Array
    norm_bound: float
    settled: bool
    width: float


@dataclass(frozen=True)
class Assumed:
    """What :func:`assume` returns: a kernel and a norm bound, and what they were chosen from.

    Attributes
    ----------
    problem : Problem
        The problem given, now with a kernel and a norm bound.
    candidates : tuple of Candidate
        All kernels that were compared.
    chosen : Candidate
        The kernel that was taken.
    functions : tuple of RandomFunction
        The random functions, on the unit cube, with values in [-1, 1].
    noise : float
        The noise scale for which widths were predicted, ``problem.stated_noise.planned``.
    left_out : tuple of str
        Facts about shape that the functions need not satisfy, because too few of those that were
        tried do. B is then one of functions without these shapes.

    Examples
    --------
    >>> from kernelbounds.problem import Problem, assume
    >>> found = assume(Problem(["x=0:1"], "y=-1:1", noise=0.02, turns=1), functions=20)
    >>> found
    Assumed(Matérn-5/2, ℓ = 0.75, B = 17.92, which covers 95% of 20 random functions)
    >>> found.problem.norm_bound == found.chosen.norm_bound
    True
    >>> round(found.miss_probability, 2)  # delta, and one function in ten whose norm is above B
    0.11
    >>> round(found.miss_probability_at_most, 2)  # which is all that twenty functions can tell
    0.31
    """

    problem: Problem
    candidates: tuple[Candidate, ...]
    chosen: Candidate
    functions: tuple[RandomFunction, ...]
    noise: float
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Assumed({self.chosen.name}, B = {self.problem.norm_bound:.4g}, which covers "
            f"{self.share_covered:.0%} of {len(self.functions)} random functions)"
        )

    @property
    def miss_probability(self) -> float:
        """The probability that the band misses a function of this kind somewhere, approximately.

        A further random function has a norm above the suggested B with probability 1 - quantile at
        most, and otherwise bounds fail with probability delta. That is an average over draws of
        the functions, for a kernel that was not chosen by their norms. With a B that was given, the
        share of the functions that it does not cover takes the place of 1 - quantile.
        """
        suggested = "norm_bound" in self.problem.suggested
        covered = self.problem.quantile if suggested else self.share_covered
        return min(1.0, self.problem.delta + 1 - covered)

    @property
    def miss_probability_at_most(self) -> float:
        """An upper bound on the miss probability, with confidence CONFIDENCE.

        Where k of n norms are at most B, the share of all functions of this kind that B covers is
        above the p-quantile of the beta distribution with parameters k and n + 1 - k, except with
        probability p. Here p is 1 - CONFIDENCE divided by the number of kernels, because any of
        them could have been taken.
        """
        n = len(self.functions)
        k = round(self.share_covered * n)
        doubt = (1 - CONFIDENCE) / len(self.candidates)
        covered = float(beta.ppf(doubt, k, n + 1 - k)) if k else 0.0
        return min(1.0, self.problem.delta + 1 - covered)

    @property
    def share_covered(self) -> float:
        """The share of the functions whose norm is at most the norm bound."""
        bound = self.problem.norm_bound or 0.0
        return float(np.mean(self.chosen.norms <= bound))

    @cached_property
    def norm_bound_without_facts(self) -> float | None:
        """The B of functions that need not be within limits, nor have shapes, with the same kernel.

        None where no such facts are stated, or where the norms of those functions cannot be told.
        """
        if not any(getattr(self.problem, name) for name in NO_FACTS if name != "known"):
            return None
        plain = self.problem.replace(**NO_FACTS, kernels="one", candidates=(), norm_bound=None)
        try:
            found = assume(plain.replace(kernel=self.chosen.kernel), len(self.functions))
        except InputError:
            return None
        return found.chosen.norm_bound

    def values(self, function: RandomFunction, unit: Array) -> Array:
        """Evaluate one of the functions at points (m, d) of the unit cube, in output units."""
        return self.problem.output.most(self.scaled_values(function, unit))

    def scaled_values(self, function: RandomFunction, unit: Array) -> Array:
        """Evaluate one of the functions as :meth:`values` does, on the scale of the model."""
        low, high = self.problem.output.scaled(plausible_range(self.problem))
        return np.asarray(low + (high - low) * (function(unit) + 1) / 2)


def assume(
    problem: Problem, functions: int = FUNCTIONS, seed: int = 0, step: Callable[[], object] = bool
) -> Assumed:
    """Suggest a kernel and a norm bound for a problem, before any data.

    Random functions are drawn that go through the whole range of the output and turn at most as
    often as stated, see :mod:`kernelbounds.problem.random_functions`. For each kernel, B is the
    ``quantile`` of their norms. The kernel is the one whose band is then predicted to be the
    narrowest. What the problem says of kernel and norm bound already is kept.

    The functions are within the limits that are stated, and have the shapes. Values that are known
    are left out: the functions need not have these.

    ``step`` is called after each function and each kernel, for a progress bar: :func:`steps` times
    in all.

    Examples
    --------
    >>> from kernelbounds.problem import Problem
    >>> found = assume(Problem(["x=0:1"], "y=-1:1", noise=0.02, turns=1), functions=40)
    >>> found.chosen.name, 5 < found.problem.norm_bound < 20
    ('Matérn-5/2, ℓ = 0.75', True)
    """
    rng = np.random.default_rng(seed)
    out, noise = problem.output, problem.stated_noise.planned
    subsets = subsets_of(len(problem.inputs), problem.interactions)
    combinations = math.prod(map(len, problem.inputs.categories.values()))
    if combinations > MOST_COMBINATIONS:
        raise InputError(
            f"norms are not computed for categories with {combinations} combinations of levels, "
            f"only for up to {MOST_COMBINATIONS}: give both kernel and norm_bound, or leave "
            "levels out."
        )
    if not problem.is_settled and not _can_be_told(problem, combinations):
        raise InputError(_cannot_be_told(problem))
    drawn, left_out = _drawn(problem, rng, subsets, functions, step)
    if problem.kernel is not None:
        pieces = [Sampled(drawn, tuple(range(len(problem.inputs))), flat=True)]
    else:
        pieces = [Sampled(drawn, inputs, part) for part, inputs in enumerate(subsets)]
    candidates = []
    for name, kernel, parts in candidate_kernels(problem, subsets):
        norms, settled = norms_of(pieces, parts, problem.quantile)
        norms = norms * np.subtract(*out.scaled(plausible_range(problem)[::-1])) / 2
        bound = _covering(norms, problem.quantile)
        filled = problem.replace(kernel=kernel, norm_bound=problem.norm_bound or bound)
        width = predicted_half_widths(filled, problem.experiments, noise)[0] if settled else np.inf
        candidates.append(Candidate(name, kernel, norms, bound, settled, width))
        step()
    chosen = _chosen(problem, candidates)
    bound = problem.norm_bound or chosen.norm_bound
    # What was suggested by an earlier call stays a suggestion.
    suggested = [n for n in SUGGESTED if getattr(problem, n) is None or n in problem.suggested]
    if problem.kernels == "any" and not problem.candidates:
        suggested.append("candidates")
    settlement: dict[str, Any] = {"kernel": chosen.kernel, "norm_bound": bound}
    if problem.kernels == "any":
        any_of = problem.candidates or [(c.kernel, c.norm_bound) for c in candidates if c.settled]
        # A norm bound that was given is for one kernel, and so is a kernel.
        settlement["candidates"] = any_of if problem.norm_bound is None else problem.candidates
    found = problem.replace(**settlement, suggested=suggested)
    if problem.facts:
        found.sequence(noise_scale=noise)  # which refuses facts that contradict each other
    return Assumed(found, tuple(candidates), chosen, tuple(drawn), noise, left_out)


def _drawn(
    problem: Problem,
    rng: np.random.Generator,
    subsets: list[tuple[int, ...]],
    count: int,
    step: Callable[[], object],
) -> tuple[list[RandomFunction], tuple[str, ...]]:
    """Draw functions that have the shapes stated, and name those that are too rare to be drawn."""
    stated = Shapes.of(problem.facts, unit_region(problem.inputs))
    levels = {
        at: Category(len(one.levels), one.matters)
        for at, one in enumerate(problem.inputs)
        if one.levels
    }
    turns, bends = turns_along_inputs(problem), (Convex, Concave)
    for shapes, too_rare in (
        (stated, ()),
        (Shapes(stated.slopes), bends),
        (Shapes(), (Increasing, Decreasing, *bends)),
    ):
        drawn = random_functions(rng, turns, subsets, shapes, count, step, levels)
        if drawn is not None:
            known = stated_facts(problem)
            return drawn, tuple(one.words for one in known if isinstance(one.fact, too_rare))
    raise AssertionError("Functions without any shape are never too rare.")


def _chosen(problem: Problem, candidates: list[Candidate]) -> Candidate:
    """Choose the kernel of the narrowest band, among those for which B is large enough.

    A norm bound that was given is a bound for one kernel and not for another: the smoother the
    kernel, the larger the norms of the same functions. Where it is too small for all kernels, the
    one for which it covers the most functions is chosen.
    """
    if problem.is_settled:
        return candidates[0]
    settled = [one for one in candidates if one.settled]
    if not settled:
        raise InputError(_cannot_be_told(problem))
    most = np.inf if problem.norm_bound is None else problem.norm_bound
    enough = [one for one in settled if one.norm_bound <= most]
    if enough:
        return min(enough, key=lambda one: one.width)
    return max(settled, key=lambda one: np.count_nonzero(one.norms <= most))


def _covering(norms: Array, share: float) -> float:
    """Return a norm that a further function exceeds with probability at most 1 - share.

    A further norm exceeds the k-th smallest of n with probability 1 - k / (n + 1), because it is as
    likely to fall into one of the n + 1 places in their order as into any other. (With fewer than
    1 / (1 - share) functions there is no such norm; then the largest is returned.)
    """
    place = min(math.ceil(share * (len(norms) + 1)), len(norms))
    return float(np.sort(norms)[place - 1])


def _most_acting_together(problem: Problem) -> int:
    """Return how many numbers act on each other at most: all of them if a kernel was given."""
    numbers = set(problem.inputs.numbers)
    if problem.kernel is not None:
        return len(numbers)
    return max(
        len(numbers & set(one)) for one in subsets_of(len(problem.inputs), problem.interactions)
    )


def _can_be_told(problem: Problem, combinations: int) -> bool:
    """Tell whether the norms of functions can be computed from values on grids."""
    together = _most_acting_together(problem)
    if not together:
        return True
    points = GRID_SIDES[together][1] ** together if together in GRID_SIDES else math.inf
    # A kernel that was given need not be a product, and then levels multiply the points.
    return points * (combinations if problem.kernel is not None else 1) <= MOST_POINTS


def _cannot_be_told(problem: Problem) -> str:
    """Say why there is no suggestion, and what to do."""
    if problem.kernel is not None:
        return (
            f"norms under {shortened(kernel_to_text(problem.kernel), 100)} of functions "
            "with that many turns are infinite or cannot be computed: give norm_bound too, or "
            "leave out the kernel."
        )
    return (
        f"norms of functions of {len(problem.inputs)} inputs, of which "
        f"{_most_acting_together(problem)} act on each other, cannot be computed for that many "
        f"turns (they can for up to {max(GRID_SIDES)} inputs with few turns): say "
        "interactions='pairs' or 'none', or fewer turns, if that is true, or give both kernel and "
        "norm_bound."
    )


def plausible_range(problem: Problem) -> tuple[float, float]:
    """Return the range of the output, as far as it is within the limits."""
    low, high = (problem.limits or NO_LIMITS).ends
    return max(low, problem.output.low), min(high, problem.output.high)


def steps(problem: Problem, functions: int = FUNCTIONS) -> int:
    """Return how often :func:`assume` calls ``step``."""
    return functions + (1 if problem.kernel is not None else len(KERNELS))
