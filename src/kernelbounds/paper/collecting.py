"""Running one study: data collected by a rule, and which claims about f* they lead to are wrong.

The rules look at outcomes, but for the first, and so the points, or how many there are, depend on
the noise:

    fixed     random points
    policy    KernelUCB on fresh random actions
    looks     one point, again and again; the bound is looked at as data come in
    hoped     a site is measured until its mean is what was hoped for, or patience is at an end
    striking  a site is measured until its mean is off by 1.5 standard errors, or the same

What is hoped for at a site, and what it is off from, is f* there: somebody has the right theory.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from kernelbounds.arrays import Array
from kernelbounds.bandits import KernelUCB, SyntheticProblem
from kernelbounds.bounds import CMM, Bound, ConfidenceSet, FixedDesign
from kernelbounds.errors import KernelBoundsError
from kernelbounds.functionals import Average, Functional, Sum
from kernelbounds.functionals.targets import Several
from kernelbounds.paper import specs, studies
from kernelbounds.paper.studies import Study
from kernelbounds.sequence import ConfidenceSequence

GRID = 200  # points at which bounds are compared with f*
MORE = 1.2  # between looks, observations grow by this factor
PATIENCE = {"hoped": 5, "striking": 10}  # measurements of a site
STRIKING = 1.5  # standard errors

BOUNDS: dict[str, Bound] = {
    "CMM": CMM(),
    "all x": FixedDesign(),
    "one x": FixedDesign(simultaneous=False),
    "one x, Gaussian": FixedDesign(simultaneous=False, noise="Gaussian"),
}
# What a Gaussian process claims: its posterior mean +- so many standard deviations.
PROCESS = {"GP": float(norm.isf(studies.DELTA / 2)), "GP, 2 sd": 2.0}
CLAIMS = (*BOUNDS, *PROCESS)
# The standard deviations among which that of the prior is looked for. Functions of norm 10 are at
# most 10, and one that is nearly 0 has no likelihood of its own.
LEAST_PRIOR, LARGEST_PRIOR = 0.1, 100.0


def run_study(study: Study) -> dict[str, Array]:
    """Arrays with a row for each run and a column for each of ``CLAIMS``, the last axis.

    Of ``fixed`` and ``policy``, at each of ``times``: the mean ``half_width``, whether a claim was
    ``wrong`` at the first point of the grid, and the share of it that was ``missed``. Of the
    others: whether it was ``wrong`` about the quantity of interest, and whether it was when the
    same points were measured ``again``, with fresh noise.
    """
    rules: dict[str, Callable[[Study, np.random.Generator], dict[str, Array]]]
    rules = {"fixed": _at_times, "policy": _at_times, "looks": _looking}
    rule = rules.get(study.design, _by_sites)
    seeds = [[study.seed, study.repetition, run] for run in range(study.runs)]
    found = [rule(study, np.random.default_rng(seed)) for seed in seeds]
    result = {name: np.array([run[name] for run in found]) for name in found[0]}
    if study.design == "fixed" and study.law == "Gaussian" and study.rounds >= studies.LATE:
        late = _compared(*_fixed_data(study, np.random.default_rng(seeds[0]), studies.LATE))
        result["late_half_width"] = late["half_width"][None]
    return result


def noise(law: str, rng: np.random.Generator, count: int) -> Array:
    """Independent, with standard deviation sigma, and sub-Gaussian with this scale."""
    match law:
        case "Gaussian":
            unit = rng.standard_normal(count)
        case "Rademacher":
            unit = rng.choice([-1.0, 1.0], count)
        case _:
            unit = rng.uniform(-math.sqrt(3), math.sqrt(3), count)
    return np.asarray(specs.NOISE * unit)


def process(known: ConfidenceSet, targets: Array | Functional) -> tuple[Array, Array]:
    """Posterior mean and standard deviation of a Gaussian process; two arrays (m,).

    The prior has the covariance s^2 k, with the s of largest likelihood, and sigma is known. At the
    ridge alpha = sigma^2/s^2, twice the negative logarithm of the likelihood is E_alpha/sigma^2 +
    ln det(I + K/alpha), but for a constant.
    """
    sigma, path = known.assumptions.noise_scale, known.engine.path()

    def misfit(log_ridge: float) -> float:
        energy, log_det = path.energy_and_log_det(math.exp(log_ridge))
        return energy / sigma**2 + log_det

    ends = [2 * math.log(sigma / s) for s in (LARGEST_PRIOR, LEAST_PRIOR)]
    ridge = math.exp(minimize_scalar(misfit, bounds=ends, method="bounded").x)
    asked = Several([targets]) if isinstance(targets, Functional) else targets
    found = known.engine.query(asked).predict(np.array([ridge]))
    return found.mean[0], np.sqrt(found.variance[0] / ridge) * sigma


def claims(sequence: ConfidenceSequence, targets: Array | Functional) -> tuple[Array, Array]:
    """Lower and upper ends of all ``CLAIMS``, (claims, m) each.

    A bound that excludes every function has its ends crossed, at infinity.
    """
    rows = []
    for bound in BOUNDS.values():
        try:
            if isinstance(targets, Functional):
                low, high = map(np.atleast_1d, sequence.bounds_of(targets, bound))
            else:
                low, high = sequence.bounds(targets, bound)
        except KernelBoundsError:
            nothing = np.ones(1 if isinstance(targets, Functional) else len(targets))
            low, high = math.inf * nothing, -math.inf * nothing
        rows.append((low, high))
    mean, deviation = process(sequence.known, targets)
    rows += [(mean - times * deviation, mean + times * deviation) for times in PROCESS.values()]
    lower, upper = zip(*rows, strict=True)
    return np.array(lower), np.array(upper)


def measured_until(
    enough: Callable[[float, int], bool], patience: int, law: str, rng: np.random.Generator
) -> Array:
    """The noise of one site, whose sum and count decide when there is ``enough``."""
    drawn = noise(law, rng, patience)
    sums = np.cumsum(drawn)
    for count in range(1, patience):
        if enough(float(sums[count - 1]), count):
            return drawn[:count]
    return drawn


# When a site has been measured enough: by the sum of its noise, and how often it was measured.
ENOUGH: dict[str, Callable[[float, int], bool]] = {
    "hoped": lambda total, _: total >= 0,
    "striking": lambda total, n: abs(total) >= STRIKING * specs.NOISE * math.sqrt(n),
}


def _problem(study: Study, rng: np.random.Generator) -> SyntheticProblem:
    """As those of Table 1."""
    return SyntheticProblem.draw(
        study.make_kernel(),
        study.dim,
        rng,
        norm=specs.NORM,
        noise_scale=specs.NOISE,
        centres=specs.CENTRES,
        actions_per_round=specs.ACTIONS,
    )


def _sequence(problem: SyntheticProblem) -> ConfidenceSequence:
    """With the right norm and noise scale."""
    return ConfidenceSequence(problem.function.kernel, specs.NORM, specs.NOISE, studies.DELTA)


def _compared(
    problem: SyntheticProblem, points: Array, outcomes: Array, grid: Array
) -> dict[str, Array]:
    """Claims about f* on the grid; (claims,) each."""
    sequence, truth = _sequence(problem), problem.values(grid)
    sequence.update(points, outcomes)
    lower, upper = claims(sequence, grid)
    outside = (truth < lower) | (truth > upper)
    return {
        "half_width": (upper - lower).clip(min=0).mean(axis=1) / 2,
        "wrong": outside[:, 0],
        "missed": outside.mean(axis=1),
    }


def _fixed_data(
    study: Study, rng: np.random.Generator, count: int
) -> tuple[SyntheticProblem, Array, Array, Array]:
    of_problem, of_points, of_noise, of_grid = rng.spawn(4)
    problem = _problem(study, of_problem)
    points = of_points.random((count, study.dim))
    outcomes = problem.values(points) + noise(study.law, of_noise, count)
    return problem, points, outcomes, of_grid.random((GRID, study.dim))


def _policy_data(
    study: Study, rng: np.random.Generator, count: int
) -> tuple[SyntheticProblem, Array, Array, Array]:
    of_problem, of_actions, of_noise, of_grid = rng.spawn(4)
    problem = _problem(study, of_problem)
    policy, errors = KernelUCB(_sequence(problem)), noise(study.law, of_noise, count)
    for error in errors:
        x = policy.ask(problem.actions(of_actions)).x
        policy.tell(x, float(problem.values(x[None])[0]) + error)
    sequence = policy.sequence
    return problem, sequence.points, sequence.outcomes, of_grid.random((GRID, study.dim))


def _at_times(study: Study, rng: np.random.Generator) -> dict[str, Array]:
    collect = {"fixed": _fixed_data, "policy": _policy_data}[study.design]
    problem, points, outcomes, grid = collect(study, rng, max(study.times))
    looks = [_compared(problem, points[:t], outcomes[:t], grid) for t in study.times]
    return {name: np.array([look[name] for look in looks]) for name in looks[0]}


def _looking(study: Study, rng: np.random.Generator) -> dict[str, Array]:
    """``wrong`` at some look, and ``again`` with as many observations, looked at once."""
    of_problem, of_point, of_noise, of_more = rng.spawn(4)
    problem, point = _problem(study, of_problem), of_point.random((1, study.dim))
    most = min(study.rounds, studies.LOOKS)
    truth, errors = problem.values(point), noise(study.law, of_noise, most)
    sequence, wrong = _sequence(problem), np.zeros(len(CLAIMS), dtype=bool)
    with warnings.catch_warnings():
        # That a bound for one time is looked at twice is what is studied.
        warnings.simplefilter("ignore", UserWarning)
        while (t := len(sequence)) < most:
            new = errors[t : min(most, max(t + 1, math.floor(MORE * t)))]
            sequence.update(np.repeat(point, len(new), axis=0), truth + new)
            lower, upper = claims(sequence, point)
            wrong |= ((truth < lower) | (truth > upper))[:, 0]
    fresh = truth + noise(study.law, of_more, most)
    again = _compared(problem, np.repeat(point, most, axis=0), fresh, point)["wrong"]
    return {"wrong": wrong, "again": again, "count": np.array(most)}


def _by_sites(study: Study, rng: np.random.Generator) -> dict[str, Array]:
    """Of sites that are fixed, how often each is measured depends on what comes out there.

    With ``hoped``, the quantity of interest is the mean of f* over the sites. With ``striking`` it
    is the contrast that the data point to: sum_i w_i f*(x_i), with w_i the sum of deviations at x_i
    from what was expected. It is chosen by looking, as bounds for all x, and so for all functionals
    at once, allow for.
    """
    of_problem, of_sites, of_noise, of_more = rng.spawn(4)
    problem = _problem(study, of_problem)
    sites = of_sites.random((min(study.rounds, studies.SITES), study.dim))
    values, patience = problem.values(sites), PATIENCE[study.design]
    first = [
        measured_until(ENOUGH[study.design], patience, study.law, of_noise)
        for _ in range(len(sites))
    ]
    counts = np.array([len(one) for one in first])
    which = np.repeat(np.arange(len(sites)), counts)

    def wrong(errors: Array) -> Array:
        sequence = _sequence(problem)
        sequence.update(sites[which], values[which] + errors)
        target: Functional = Average(sites)
        truth = float(values.mean())
        if study.design == "striking":
            sums = np.bincount(which, errors, len(sites))
            weights = sums / np.abs(sums).sum()
            target, truth = Sum(sites, weights), float(weights @ values)
        lower, upper = claims(sequence, target)
        return np.asarray((truth < lower[:, 0]) | (truth > upper[:, 0]))

    fresh = noise(study.law, of_more, len(which))
    return {
        "wrong": wrong(np.concatenate(first)),
        "again": wrong(fresh),
        "count": np.array(len(which)),
    }
