"""Bounds on data whose points were fixed before the outcomes, and on data where they were not.

A data set is collected by a rule, and then it is seen which claims about f* are wrong. The rules
look at outcomes, but for the first, so that the points, or how many there are, depend on the noise:

    fixed     random points
    policy    KernelUCB on fresh random actions
    looks     one point, again and again; the bound is looked at as data come in
    hoped     a site is measured until its mean is what was hoped for, or patience is at an end
    striking  a site is measured until its mean is off by 1.5 standard errors, or patience ends

What is hoped for at a site, and what its mean is off from, is f* there: somebody has the right
theory.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from kernelbounds.arrays import Array
from kernelbounds.bandits import KernelUCB, SyntheticProblem
from kernelbounds.bounds import CMM, Bound, ConfidenceSet, FixedDesign
from kernelbounds.errors import KernelBoundsError
from kernelbounds.functionals import Average, Functional, Sum
from kernelbounds.functionals.targets import Several
from kernelbounds.paper import specs
from kernelbounds.paper.cells import random_problem
from kernelbounds.paper.results import stacked
from kernelbounds.paper.specs import Choices, Job
from kernelbounds.sequence import ConfidenceSequence

DELTA, LENGTH_SCALE = 0.1, 0.5
DIMS = {"matern-5/2": 3, "rbf": 3, "matern-3/2": 1}  # by kernel
# All have standard deviation sigma, and are sub-Gaussian with scale sigma: +-sigma, and uniform on
# +-sqrt(3) sigma, for which E exp(s e/sigma) = sum 3^k s^2k/(2k+1)! and (2k+1)! >= 3^k 2^k k!.
NOISE_LAWS = ("Gaussian", "Rademacher", "uniform")
COST = {"looks": 12.0, "striking": 6.0, "fixed": 3.0, "policy": 3.0, "hoped": 2.0}
SKEW = 0.1  # the probability of the larger of two values of skewed noise
TIMES = (30, 100, 300)  # numbers of observations after which bounds are computed
LATE_TIME = 1000  # observations after which the widths of a single data set are computed
POLICY_ROUNDS, LOOK_ROUNDS, SITES = 100, 300, 80  # at most
GRID_SIZE = 200  # points at which bounds are compared with f*
LOOK_FACTOR = 1.2  # by which observations grow between looks
PATIENCE = {"hoped": 5, "striking": 10}  # measurements of a site, at most
# When a site has been measured enough: by the sum of its noise, and how often it was measured.
ENOUGH: dict[str, Callable[[float, int], bool]] = {
    "hoped": lambda total, _: total >= 0,
    "striking": lambda total, n: abs(total) >= 1.5 * specs.NOISE * math.sqrt(n),
}

BOUNDS: dict[str, Bound] = {
    "CMM": CMM(),
    "all x": FixedDesign(),
    "one x": FixedDesign(simultaneous=False),
    "one x, Gaussian": FixedDesign(simultaneous=False, noise="Gaussian"),
}
# What a Gaussian process claims: its posterior mean +- a number of standard deviations.
DEVIATIONS = {"GP": float(norm.isf(DELTA / 2)), "GP, 2 sd": 2.0}
CLAIMS = (*BOUNDS, *DEVIATIONS)
# The standard deviations among which that of the prior is looked for. Functions of norm 10 are at
# most 10, and one that is nearly 0 has no likelihood of its own.
PRIOR_DEVIATIONS = 0.1, 100.0


@dataclass(frozen=True)
class DesignRuns(Job):
    """Some data sets that were collected in one way, and the bounds on them.

    Functions depend on the kernel, the seed, the repetition and the number of the data set alone.
    """

    kernel: str
    design: str
    law: str
    repetition: int
    rounds: int = specs.ROUNDS
    seed: int = 0

    @property
    def name(self) -> str:
        """The design, the kernel, the law of the noise and the repetition."""
        run = f"T{self.rounds}-seed{self.seed}-{self.repetition}"
        return f"design-{self.design}-{specs.for_file(self.kernel)}-{self.law}-{run}"

    @property
    def cost(self) -> float:
        """The cost of the design."""
        return COST[self.design]

    @property
    def dim(self) -> int:
        """The number of inputs, which are in the unit cube."""
        return DIMS[self.kernel]

    @property
    def runs(self) -> int:
        """The number of data sets, in proportion to the rounds."""
        share = min(self.rounds, specs.ROUNDS)
        return max(2, specs.DESIGNS[self.design] * share // specs.ROUNDS)

    @property
    def times(self) -> list[int]:
        """The numbers of observations after which bounds are computed, where fixed beforehand."""
        most = min(self.rounds, POLICY_ROUNDS if self.design == "policy" else max(TIMES))
        return [t for t in TIMES if t <= most] or [most]

    def run(self) -> dict[str, Array]:
        """Return arrays whose first axis is the data sets, and whose last axis is the claims.

        Of ``fixed`` and ``policy``, at each of ``times``: the mean ``half_width``, whether a claim
        was ``wrong`` at the first point of the grid, and the share of the grid that it ``missed``.
        Of the other designs: whether a claim was ``wrong`` about the quantity of interest, and
        whether it was when the same points were measured ``again``, with fresh noise.
        """
        rules = {"fixed": _at_times, "policy": _at_times, "looks": _looking}
        rule = rules.get(self.design, _by_sites)
        seeds = [[self.seed, self.repetition, number] for number in range(self.runs)]
        result = stacked([rule(self, np.random.default_rng(seed)) for seed in seeds])
        if self.design == "fixed" and self.law == "Gaussian" and self.rounds >= LATE_TIME:
            late = _compared(*fixed_data(self, np.random.default_rng(seeds[0]), LATE_TIME))
            result["late_half_width"] = late["half_width"][None]
        return result


def jobs(choices: Choices) -> list[DesignRuns]:
    """Return all runs, whose methods and kernels do not depend on the choices.

    Rules that look at outcomes meet all laws of noise with the first kernel only. Looking again at
    a single point has nothing to do with the kernel.
    """
    first = next(iter(DIMS))
    return [
        DesignRuns(kernel, design, law, repetition, choices.rounds, choices.seed)
        for design in specs.DESIGNS
        for kernel in DIMS
        for law in NOISE_LAWS
        if design == "fixed" or kernel == first or (law == "Gaussian" and design != "looks")
        for repetition in range(choices.repetitions)
    ]


def draw_noise(law: str, rng: np.random.Generator, count: int) -> Array:
    """Draw independent noise of standard deviation sigma, sub-Gaussian with this scale."""
    return specs.NOISE * unit_noise(law, rng, count)


def unit_noise(law: str, rng: np.random.Generator, count: int) -> Array:
    """Draw independent noise that is sub-Gaussian with scale 1, but for ``heavy`` and ``loud``.

    A variable that is 1 - p with probability p, and -p otherwise, is sub-Gaussian with the variance
    proxy (1 - 2p) / (2 ln((1 - p) / p)) and no smaller one (Kearns and Saul, 1998).
    """
    match law:
        case "Rademacher":
            return rng.choice([-1.0, 1.0], count)
        case "uniform":
            return rng.uniform(-math.sqrt(3), math.sqrt(3), count)
        case "skewed":
            proxy = (1 - 2 * SKEW) / (2 * math.log((1 - SKEW) / SKEW))
            return np.asarray(((rng.random(count) < SKEW) - SKEW) / math.sqrt(proxy))
        case "heavy":
            return rng.standard_t(3, count) / math.sqrt(3)
        case "loud":
            return 1.5 * rng.standard_normal(count)
    return rng.standard_normal(count)


def looks(rounds: int, first: int, factor: float) -> list[int]:
    """Return the numbers of observations after which bounds are compared with the truth.

    They are the ``first`` ones, then each is ``factor`` times the last, and the end.

    Examples
    --------
    >>> found = looks(200, first=20, factor=1.1)
    >>> found[:5], found[-5:], len(found)
    ([1, 2, 3, 4, 5], [149, 163, 179, 196, 200], 47)
    """
    found = list(range(1, min(first, rounds) + 1))
    while found[-1] < rounds:
        found.append(max(found[-1] + 1, math.floor(factor * found[-1])))
    return [*(time for time in found if time < rounds), rounds]


def process(known: ConfidenceSet, targets: Array | Functional) -> tuple[Array, Array]:
    """Compute posterior mean and standard deviation of a Gaussian process; two arrays (m,).

    The prior has the covariance s^2 k, with the s of largest likelihood, and sigma is known. At the
    ridge alpha = sigma^2/s^2, twice the negative logarithm of the likelihood is E_alpha/sigma^2 +
    ln det(I + K/alpha), but for a constant.
    """
    sigma, path = known.assumptions.noise_scale, known.engine.path()

    def misfit(log_ridge: float) -> float:
        energy, log_det = path.energy_and_log_det(math.exp(log_ridge))
        return energy / sigma**2 + log_det

    ends = [2 * math.log(sigma / s) for s in reversed(PRIOR_DEVIATIONS)]
    ridge = math.exp(minimize_scalar(misfit, bounds=ends, method="bounded").x)
    asked = Several([targets]) if isinstance(targets, Functional) else targets
    found = known.engine.query(asked).predict(np.array([ridge]))
    return found.mean[0], np.sqrt(found.variance[0] / ridge) * sigma


def claims(sequence: ConfidenceSequence, targets: Array | Functional) -> tuple[Array, Array]:
    """Compute lower and upper ends of all ``CLAIMS``, (claims, m) each.

    A bound that excludes every function has its ends crossed, at infinity.
    """
    ends = []
    mean, deviation = process(sequence.known, targets)
    for bound in BOUNDS.values():
        try:
            if isinstance(targets, Functional):
                found = sequence.bounds_of(targets, bound)
            else:
                found = sequence.bounds(targets, bound)
        except KernelBoundsError:
            found = np.full_like(mean, math.inf), np.full_like(mean, -math.inf)
        ends.append(np.reshape(found, (2, -1)))
    ends += [np.stack([mean - d * deviation, mean + d * deviation]) for d in DEVIATIONS.values()]
    lower, upper = np.stack(ends, axis=1)
    return lower, upper


def measured_until(
    enough: Callable[[float, int], bool], patience: int, law: str, rng: np.random.Generator
) -> Array:
    """Draw the noise of one site, whose sum and count decide when there is ``enough``."""
    drawn = draw_noise(law, rng, patience)
    sums = np.cumsum(drawn)
    for count in range(1, patience):
        if enough(float(sums[count - 1]), count):
            return drawn[:count]
    return drawn


def _problem(job: DesignRuns, rng: np.random.Generator) -> SyntheticProblem:
    kernel = specs.kernel_named(job.kernel, LENGTH_SCALE)
    return random_problem(kernel, job.dim, rng)


def _sequence(problem: SyntheticProblem) -> ConfidenceSequence:
    """Make a confidence sequence that is told the right norm and noise scale."""
    return ConfidenceSequence(problem.function.kernel, specs.NORM, specs.NOISE, DELTA)


def _compared(
    problem: SyntheticProblem, points: Array, outcomes: Array, grid: Array
) -> dict[str, Array]:
    """Compare the claims about f* on the grid with f*; (claims,) each."""
    sequence, truth = _sequence(problem), problem.values(grid)
    sequence.update(points, outcomes)
    lower, upper = claims(sequence, grid)
    outside = (truth < lower) | (truth > upper)
    return {
        "half_width": (upper - lower).clip(min=0).mean(axis=1) / 2,
        "wrong": outside[:, 0],
        "missed": outside.mean(axis=1),
    }


def fixed_data(
    job: DesignRuns, rng: np.random.Generator, count: int
) -> tuple[SyntheticProblem, Array, Array, Array]:
    """Draw a problem, points and outcomes of ``fixed`` or ``policy``, and a grid."""
    of_problem, of_points, of_noise, of_grid = rng.spawn(4)
    problem = _problem(job, of_problem)
    noise, grid = draw_noise(job.law, of_noise, count), of_grid.random((GRID_SIZE, job.dim))
    if job.design == "fixed":
        points = of_points.random((count, job.dim))
        return problem, points, problem.values(points) + noise, grid
    policy = KernelUCB(_sequence(problem))
    for error in noise:
        x = policy.ask(problem.actions(of_points)).x
        policy.tell(x, float(problem.values(x[None])[0]) + error)
    return problem, policy.sequence.points, policy.sequence.outcomes, grid


def _at_times(job: DesignRuns, rng: np.random.Generator) -> dict[str, Array]:
    problem, points, outcomes, grid = fixed_data(job, rng, max(job.times))
    return stacked([_compared(problem, points[:t], outcomes[:t], grid) for t in job.times])


def _looking(job: DesignRuns, rng: np.random.Generator) -> dict[str, Array]:
    """Measure one point, and look at the claims again and again as data come in."""
    of_problem, of_point, of_noise, of_more = rng.spawn(4)
    problem, point = _problem(job, of_problem), of_point.random((1, job.dim))
    most = min(job.rounds, LOOK_ROUNDS)
    truth, errors = problem.values(point), draw_noise(job.law, of_noise, most)
    sequence, wrong = _sequence(problem), np.zeros(len(CLAIMS), dtype=bool)
    with warnings.catch_warnings():
        # That a bound for one time is looked at twice is what is studied.
        warnings.simplefilter("ignore", UserWarning)
        for time in looks(most, first=1, factor=LOOK_FACTOR):
            new = errors[len(sequence) : time]
            sequence.update(np.repeat(point, len(new), axis=0), truth + new)
            lower, upper = claims(sequence, point)
            wrong |= ((truth < lower) | (truth > upper))[:, 0]
    fresh = truth + draw_noise(job.law, of_more, most)
    again = _compared(problem, np.repeat(point, most, axis=0), fresh, point)["wrong"]
    return {"wrong": wrong, "again": again, "count": np.array(most)}


def _by_sites(job: DesignRuns, rng: np.random.Generator) -> dict[str, Array]:
    """Measure fixed sites, each until its own outcomes say that it is enough.

    With ``hoped``, the quantity of interest is the mean of f* over the sites. With ``striking`` it
    is the contrast that the data point to: sum_i w_i f*(x_i), with w_i the sum of deviations at x_i
    from what was expected. It is chosen by looking, as bounds for all x, and so for all functionals
    at once, allow for.
    """
    of_problem, of_sites, of_noise, of_more = rng.spawn(4)
    problem = _problem(job, of_problem)
    sites = of_sites.random((min(job.rounds, SITES), job.dim))
    values, enough, patience = problem.values(sites), ENOUGH[job.design], PATIENCE[job.design]
    first = [measured_until(enough, patience, job.law, of_noise) for _ in sites]
    which = np.repeat(np.arange(len(sites)), [len(one) for one in first])

    def wrong(errors: Array) -> Array:
        sequence = _sequence(problem)
        sequence.update(sites[which], values[which] + errors)
        target: Functional = Average(sites)
        truth = float(values.mean())
        if job.design == "striking":
            sums = np.bincount(which, errors, len(sites))
            weights = sums / np.abs(sums).sum()
            target, truth = Sum(sites, weights), float(weights @ values)
        lower, upper = claims(sequence, target)
        return np.asarray((truth < lower[:, 0]) | (truth > upper[:, 0]))

    fresh = draw_noise(job.law, of_more, len(which))
    return {
        "wrong": wrong(np.concatenate(first)),
        "again": wrong(fresh),
        "count": np.array(len(which)),
    }
