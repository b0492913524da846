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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from kernelbounds.arrays import Array
from kernelbounds.bandits import KernelUCB, SyntheticProblem
from kernelbounds.bounds import CMM, Bound, ConfidenceSet, FixedDesign
from kernelbounds.errors import KernelBoundsError
from kernelbounds.functionals import Average, Functional, Sum
from kernelbounds.functionals.targets import Several
from kernelbounds.paper import results, specs
from kernelbounds.paper.cells import random_problem
from kernelbounds.paper.figures import COLOURS, draw_rate, figure_files, legend_above, log_axes
from kernelbounds.paper.results import ErrorRate, ResultStore
from kernelbounds.paper.specs import Choices, Experiment, Job, Picture
from kernelbounds.sequence import ConfidenceSequence

DELTA, LENGTH_SCALE = 0.1, 0.5
DIMS = {"matern-5/2": 3, "rbf": 3, "matern-3/2": 1}  # by kernel
# All have standard deviation sigma, and are sub-Gaussian with scale sigma: +-sigma, and uniform on
# +-sqrt(3) sigma, for which E exp(s e/sigma) = sum 3^k s^2k/(2k+1)! and (2k+1)! >= 3^k 2^k k!.
NOISE_LAWS = ("Gaussian", "Rademacher", "uniform")
SKEW = 0.1  # the probability of the larger of two values of skewed noise
COST = {"looks": 12.0, "striking": 6.0, "fixed": 3.0, "policy": 3.0, "hoped": 2.0}
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

RULE_TITLES = {
    "fixed": "random points",
    "policy": "KernelUCB",
    "looks": "looked at again and again",
    "hoped": "until as hoped",
    "striking": "until striking",
}
# What is claimed, and is wrong or not.
ANY, ONE, SHARE = f"any of {GRID_SIZE} x", "one x", f"share of {GRID_SIZE} x"
QUANTITIES = {"looks": "one x, at some look", "hoped": "mean of sites", "striking": "a contrast"}
UNIFORM_CLAIMS = ("CMM", "all x")  # those that hold at all x together
LIKE = ("CMM", "DMM", "AMM", "Random", "AY", "IGP")  # the methods whose colours the claims have
CLAIM_COLOURS = {claim: COLOURS[method] for claim, method in zip(CLAIMS, LIKE, strict=True)}
EXPLANATION = """
CMM holds at all times and x, whatever the rule. All x and one x are FixedDesign() and
FixedDesign(simultaneous=False); with Gaussian, for Gaussian noise only. GP: mean ± {:.3f} and ± 2
posterior standard deviations of a Gaussian process, amplitude by maximum likelihood.
"""


# --- collecting data by a rule


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
        found = [rule(self, np.random.default_rng(seed)) for seed in seeds]
        result = {name: np.array([one[name] for one in found]) for name in found[0]}
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
    looks = [_compared(problem, points[:t], outcomes[:t], grid) for t in job.times]
    return {name: np.array([look[name] for look in looks]) for name in looks[0]}


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
        while (t := len(sequence)) < most:
            new = errors[t : min(most, max(t + 1, math.floor(LOOK_FACTOR * t)))]
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


# --- tables and figure


@dataclass(frozen=True)
class DesignGroup:
    """All repetitions of one way of collecting data, with a kernel and a law of noise."""

    job: DesignRuns  # the first of them
    arrays: dict[str, Array]  # see :meth:`DesignRuns.run`

    @property
    def kernel(self) -> str:
        """The kernel and the dimension, for the head of a row."""
        return f"{specs.KERNEL_TITLES[self.job.kernel]}, d = {self.job.dim}"

    def promised(self, claim: str, quantity: str) -> bool:
        """Whether a bound would hold for the quantity if the points were fixed beforehand.

        A Gaussian process promises nothing about one f*, but people read its band as if it did.
        A contrast that is chosen by outcomes is for bounds that hold at all x together.
        """
        if quantity == QUANTITIES["striking"]:
            return claim in UNIFORM_CLAIMS
        if quantity == ANY:
            return claim in (*UNIFORM_CLAIMS, *DEVIATIONS)
        return claim != "one x, Gaussian" or self.job.law == "Gaussian"

    def rates(self) -> Iterator[tuple[str, int | None, bool, dict[str, ErrorRate]]]:
        """Yield the quantity, the number of observations, whether noise is fresh, and the rates."""
        if self.job.design in QUANTITIES:
            quantity = QUANTITIES[self.job.design]
            yield quantity, None, False, self._rates(self.arrays["wrong"], quantity)
            quantity = ONE if self.job.design == "looks" else quantity
            yield quantity, None, True, self._rates(self.arrays["again"], quantity)
            return
        for i, t in enumerate(self.job.times):
            yield ANY, t, False, self._rates(np.sign(self.arrays["missed"][:, i]), ANY)
            yield ONE, t, False, self._rates(self.arrays["wrong"][:, i], ONE)

    def widths(self) -> dict[int, Array]:
        """Return mean half-widths by the number of observations; (claims,) each."""
        means = self.arrays["half_width"].mean(axis=0)
        result = dict(zip(self.job.times, means, strict=True))
        if "late_half_width" in self.arrays:
            result[LATE_TIME] = self.arrays["late_half_width"].mean(axis=0)
        return result

    def _rates(self, wrong: Array, quantity: str) -> dict[str, ErrorRate]:
        return {
            claim: ErrorRate(int(wrong[:, i].sum()), len(wrong))
            for i, claim in enumerate(CLAIMS)
            if self.promised(claim, quantity)
        }


def write(members: list[DesignRuns], store: ResultStore, folder: Path) -> str:
    """Make the tables and the figure of the experiment, and return the tables as text."""
    found = [
        DesignGroup(one.job, {name: np.concatenate(parts) for name, parts in one.arrays.items()})
        for one in results.repetitions(members, store)
    ]
    draw(found, folder)
    return results.write_texts(folder, "designs", as_text(found), as_csv(found))


EXPERIMENT = Experiment(
    jobs,
    write,
    "Above: mean half-widths where points were fixed before the outcomes. Below: how "
    "often a claim was wrong, with exact 95 % intervals, by how the points came about; the line is "
    "δ. Open symbols: the same points measured again, with fresh noise.",
    (Picture("designs", "Designs", "Half-widths against observations, and rates of errors"),),
)


def as_text(found: list[DesignGroup]) -> str:
    """Return tables of widths, and of coverage with fixed points and with rules that look."""
    widths = [["kernel", "t", *CLAIMS]]
    fixed = [["kernel", "noise", "t", "wrong at", *CLAIMS]]
    chosen = [["rule", "kernel", "noise", "t", "wrong about", *CLAIMS]]
    for one in found:
        kernel, law = one.kernel, one.job.law
        if one.job.design == "fixed" and law == "Gaussian":
            for count, means in one.widths().items():
                widths.append([kernel, f"{count}", *(f"{mean:.3f}" for mean in means)])
        for quantity, t, fresh, rates in one.rates():
            shown = [str(rates.get(claim, "")) for claim in CLAIMS]
            if one.job.design != "fixed":
                mean = f"{t or round(float(one.arrays['count'].mean()))}"
                rule = "  once more, fresh noise" if fresh else RULE_TITLES[one.job.design]
                chosen.append([rule, kernel, law, mean, quantity, *shown])
                continue
            fixed.append([kernel, law, f"{t}", quantity, *shown])
            if quantity == ONE and t is not None:
                missed = one.arrays["missed"][:, one.job.times.index(t)].mean(axis=0)
                texts = [
                    f"{100 * share:.2f} %" if claim in rates else ""
                    for claim, share in zip(CLAIMS, missed, strict=True)
                ]
                fixed.append(["", "", "", SHARE, *texts])
    n = len(next(one for one in found if one.job.design == "fixed").arrays["wrong"])
    delta = f"δ = {DELTA:g}"
    tables = {
        f"Mean half-widths at {GRID_SIZE} random x, {delta}, Gaussian noise, points fixed": widths,
        f"Points fixed: share of {n} runs in which a claim was wrong [95 %], and mean share of x "
        f"where it was; {delta}": fixed,
        "Points chosen by outcomes: the same; t is a mean where it is random": chosen,
    }
    return results.under_headings(tables) + EXPLANATION.format(DEVIATIONS["GP"])


def as_csv(found: list[DesignGroup]) -> str:
    """Return one row for each way of collecting, number of observations, quantity and claim."""
    head = ["design", "kernel", "dim", "noise", "observations", "quantity", "fresh_noise", "claim"]
    head += ["wrong", "runs", "share", "low", "high", "half_width", "share_missed"]
    rows: list[list[object]] = []
    for one in found:
        job = one.job
        way = [job.design, job.kernel, job.dim, job.law]
        for quantity, t, fresh, rates in one.rates():
            count = t or f"{one.arrays['count'].mean():.6g}"
            for claim, rate in rates.items():
                row = [*way, count, quantity, int(fresh), claim, rate.wrong, rate.runs]
                row += results.numbers(rate.share, *rate.interval)
                means = [math.nan, math.nan]
                if t is not None:
                    i, j = job.times.index(t), CLAIMS.index(claim)
                    means = [one.arrays[name][:, i, j].mean() for name in ("half_width", "missed")]
                rows.append([*row, *results.numbers(*means)])
        if job.design == "fixed" and LATE_TIME in (late := one.widths()):
            for claim, width in zip(CLAIMS, late[LATE_TIME], strict=True):
                row = [*way, LATE_TIME, "half-width", 0, claim, *[""] * 5]
                rows.append([*row, *results.numbers(width), ""])
    return results.csv_text(head, rows)


def draw(found: list[DesignGroup], folder: Path) -> None:
    """Draw half-widths above and rates of errors below, with a column for each kernel."""
    kernels = list(dict.fromkeys(one.job.kernel for one in found))
    designs = list(dict.fromkeys(one.job.design for one in found))
    with figure_files(folder, "designs", 2, len(kernels)) as axes:
        for one in found:
            if one.job.law != "Gaussian":
                continue
            above, below = axes[:, kernels.index(one.job.kernel)]
            if one.job.design == "fixed":
                _draw_widths(above, one.widths())
                title = f"{one.kernel}, ℓ = {LENGTH_SCALE:g}"
                above.set_title(title, fontsize=10)
            _draw_rates(below, one, -designs.index(one.job.design))
        for axis in axes[0]:
            axis.set_xlabel("observations")
        for column, axis in enumerate(axes[1]):
            axis.axvline(DELTA, color="black", linewidth=0.6)
            axis.set_xlim(-0.03, 1.03)
            axis.set_ylim(0.5 - len(designs), 0.5)
            places = [-i for i in range(len(designs))]
            axis.set_yticks(places, [RULE_TITLES[d] for d in designs] if not column else [])
            axis.set_xlabel("share of runs with a wrong claim")
        axes[0, 0].set_ylabel("mean half-width")
        legend_above(axes[0, 0], len(CLAIMS))


def _draw_widths(axis: Any, widths: dict[int, Array]) -> None:
    for i, claim in enumerate(CLAIMS):
        values = [means[i] for means in widths.values()]
        axis.plot(list(widths), values, "o-", color=CLAIM_COLOURS[claim], label=claim, markersize=3)
    log_axes(axis, widths, (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5))


def _draw_rates(axis: Any, one: DesignGroup, place: float) -> None:
    """Draw the rates at the last time: at any x for claims about all x, else at one x."""
    # Filled symbols come last, and are seen where others are in the same place.
    for quantity, t, fresh, rates in sorted(one.rates(), key=lambda found: not found[2]):
        if t not in (None, one.job.times[-1]):
            continue
        for claim, rate in rates.items():
            if t is not None and (claim in UNIFORM_CLAIMS) != (quantity == ANY):
                continue
            height, colour = place + 0.35 - 0.14 * CLAIMS.index(claim), CLAIM_COLOURS[claim]
            draw_rate(axis, rate, height, colour, hollow=fresh)
