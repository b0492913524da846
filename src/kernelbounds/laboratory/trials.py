"""Runs on data with a known truth, and the first time at which a bound is wrong.

A run has ``SITES`` random points of the unit cube that may be observed, and more that never are.
Bounds are compared with the truth at all of them, after each of the first observations and then
whenever their number has grown by some percent (:func:`looks`). Times between looks are not seen,
so a count of wrong runs is at most what it would be with all times: a bound that is flagged is
wrong. Between looks, designs that follow the bounds stay where they are.

Designs may know the truth and all outcomes so far, but nothing that is still to come, so all of
them are allowed where a bound holds for adaptive points.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array
from kernelbounds.bounds import Bound
from kernelbounds.errors import EmptyConfidenceSetError
from kernelbounds.functionals import Sum
from kernelbounds.kernels import cross
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.laboratory import (
    LENGTH_SCALE,
    NOISE_SCALE,
    NORM,
    Case,
    bound_named,
)
from kernelbounds.paper.designs import looks, unit_noise
from kernelbounds.paper.specs import CENTRES, COST, Job, kernel_named
from kernelbounds.sequence import ConfidenceSequence

SITES, MORE_POINTS = 32, 32
FIRST_LOOKS, LOOK_FACTOR = 20, 1.1
# A truth of norm B has it but for this, so that rounding in its norm is no violation.
NORM_SLACK = 1e-12
HIDDEN_RIDGE = (NOISE_SCALE / NORM) ** 2  # that of a Gaussian process with deviations B


@dataclass(frozen=True)
class Violation:
    """The first time at which a bound was wrong, and where.

    ``x`` is None where it was wrong about a contrast, a weighted sum of values at the sites, and
    where the bound claimed that no function fits the data at all; then ``truth`` is nan as well.
    """

    time: int
    x: Array | None = None
    truth: float = math.nan
    lower: float = math.nan
    upper: float = math.nan


@dataclass(frozen=True)
class Trials(Job):
    """Some runs of one bound under one design, with successive seeds from ``seed`` on."""

    method: str
    design: str
    seed: int
    runs: int
    rounds: int
    delta: float
    cases: tuple[Case, ...]
    fingerprint: str
    given: Bound | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The bound, the design, the first and last seed, and a hash of all fields."""
        exact = hashlib.sha256(json.dumps(self.as_data()).encode()).hexdigest()[:12]
        method = "".join(c if c.isalnum() or c in "._" else "-" for c in self.method)
        return f"{method}-{self.design}-{self.seed}-{self.seed + self.runs - 1}-{exact}"

    @property
    def cost(self) -> float:
        """The cost of the bound."""
        return COST.get(self.method, 1.0)

    @property
    def seeds(self) -> range:
        """The seeds of the runs."""
        return range(self.seed, self.seed + self.runs)

    def case(self, seed: int) -> Case:
        """Return the kind of problem of a run."""
        return self.cases[seed % len(self.cases)]

    def as_data(self) -> dict[str, Any]:
        """Return the fields without the bound, whose fingerprint stands for it."""
        data = {name: value for name, value in vars(self).items() if name != "given"}
        return {**data, "cases": [list(case) for case in self.cases]}

    def run(self) -> dict[str, Array]:
        """Return when, where and by how much the bound was first wrong in each run.

        The arrays are ``time``, 0 where it never was, ``x`` with nan in unused columns, ``truth``,
        ``lower`` and ``upper``.
        """
        dim = max(case.dim for case in self.cases)
        times, x = np.zeros(self.runs, dtype=np.int64), np.full((self.runs, dim), np.nan)
        ends = np.full((self.runs, 3), np.nan)
        for i, seed in enumerate(self.seeds):
            case, bound = self.case(seed), self.given
            if bound is None:
                bound = bound_named(self.method, self.rounds, self.delta, case)
            found = first_violation(bound, self.design, case, seed, self.rounds, self.delta)
            if found is None:
                continue
            times[i], ends[i] = found.time, (found.truth, found.lower, found.upper)
            if found.x is not None:
                x[i, : len(found.x)] = found.x
        truth, lower, upper = ends.T
        return {"time": times, "x": x, "truth": truth, "lower": lower, "upper": upper}


def first_violation(
    bound: Bound, design: str, case: Case, seed: int, rounds: int, delta: float
) -> Violation | None:
    """Simulate one run, and return the first violation, if there is one.

    All that is random depends on the seed and the case alone: all bounds meet the same functions,
    the same points and, observation by observation, the same noise.
    """
    of_truth, of_points, of_noise, of_design = np.random.default_rng([seed, case.dim]).spawn(4)
    # The first point is one that only a stubborn design observes; the sites come after it.
    points = of_points.random((1 + SITES + MORE_POINTS, case.dim))
    kernel = kernel_named(case.kernel, LENGTH_SCALE)
    truth = truth_of(case.truth, kernel, points, of_truth)(points)
    noise = NOISE_SCALE * unit_noise(case.noise, of_noise, rounds)
    uneven = case.noise == "heteroscedastic"
    scales = 0.2 + 0.8 * points[:, 0] if uneven else np.ones(len(points))
    # A bound that holds at few points together is asked for at these, and observed there.
    asked = points[: bound.points_at_once] if bound.guarantee.uniform else points[:1]
    sites = slice(1, 1 + SITES) if len(asked) > SITES else slice(0, len(asked))
    order, fits = np.zeros(rounds, dtype=np.int64), None
    if design == "selective":
        seen = points[1 : 1 + SITES]
        found, fits = selective(cross(kernel, seen, seen), noise, scales[1 : 1 + SITES])
        order += 1 + found
    elif design != "stubborn":
        order += of_design.integers(1, 1 + SITES, size=rounds)
    sequence = ConfidenceSequence(kernel, NORM * (1 + NORM_SLACK), NOISE_SCALE, delta, bound=bound)
    before = 0
    for time in [rounds] if design == "once" else looks(rounds, FIRST_LOOKS, LOOK_FACTOR):
        chosen = order[before:time]
        sequence.update(points[chosen], truth[chosen] + scales[chosen] * noise[before:time])
        before = time
        try:
            with warnings.catch_warnings():
                # Bounds that hold at one time warn of a second look, which is what is studied.
                warnings.simplefilter("ignore", UserWarning)
                lower, upper = sequence.bounds(asked)
                values = truth[: len(asked)]
                if fits is not None and bound.guarantee.uniform and bound.bounds_functionals:
                    weights = fits[time - 1] * np.bincount(order[:time] - 1, minlength=SITES)
                    weights /= np.abs(weights).sum()  # as some bounds are for k(x,x) <= 1
                    ends = sequence.bounds_of(Sum(points[1 : 1 + SITES], weights))
                    values = np.append(values, weights @ truth[1 : 1 + SITES])
                    lower, upper = np.append(lower, ends[0]), np.append(upper, ends[1])
        except EmptyConfidenceSetError:
            return Violation(time)
        margin = np.minimum(upper - values, values - lower)
        if margin.min() < 0:
            at = int(margin.argmin())
            place = points[at] if at < len(asked) else None
            return Violation(time, place, float(values[at]), float(lower[at]), float(upper[at]))
        # What comes next is decided by outcomes so far, and stays until bounds are seen again.
        if design == "ucb":
            order[time:] = sites.start + upper[sites].argmax()
        elif design == "weakest":
            width = np.maximum(upper - lower, np.finfo(float).tiny)
            order[time:] = sites.start + (margin / width)[sites].argmin()
    return None


def truth_of(name: str, kernel: Kernel, points: Array, rng: np.random.Generator) -> RKHSFunction:
    """Draw a function of norm B.

    ``spread`` has random weights at random centres, and ``peak`` is +-B k(., z) / sqrt(k(z,z)) for
    one of the points. ``hidden`` is what ridge regression on the sites is furthest from knowing at
    the first point x: a multiple of k(., x) - sum_i w_i k(., x_i), w = (K + alpha I)^-1 k(x).
    """
    match name:
        case "spread":
            centres = rng.random((CENTRES, points.shape[1]))
            found = RKHSFunction(kernel, centres, rng.standard_normal(CENTRES))
        case "peak":
            centre = points[[rng.integers(len(points))]]
            found = RKHSFunction(kernel, centre, rng.choice([-1.0, 1.0], 1))
        case _:
            seen, sign = points[: 1 + SITES], rng.choice([-1.0, 1.0])
            gram = cross(kernel, seen[1:], seen) + HIDDEN_RIDGE * np.eye(SITES, 1 + SITES, 1)
            weights = np.linalg.solve(gram[:, 1:], gram[:, 0])
            found = RKHSFunction(kernel, seen, sign * np.append(1.0, -weights))
    return found.rescaled(NORM)


def selective(gram: Array, noise: Array, scales: Array) -> tuple[NDArray[np.int64], Array]:
    """Measure again where the data look right, and leave alone what looks wrong.

    ``gram`` is the kernel matrix of the sites, ``noise`` that of each observation, to be multiplied
    by the ``scales`` of the sites. Returned are the sites in their order, and after each
    observation the ridge regression of the noise alone, g, at all sites; (rounds, sites).

    The size of the noise along the directions that observations see is Q = eps' K (K + a I)^-1 eps,
    with the ridge a = sigma^2/B^2. One more observation, at the site i, changes the mean of Q by
    (v_i sigma^2 - g_i^2) / (1 + v_i), with the posterior variance a v_i at i: the site is the one
    that makes this largest. Where points are fixed beforehand, Q is bounded by the number of
    directions and little more; here it grows. The contrast sum_s g(x_s) f(x_s), with the sum over
    all observations, shows it.
    """
    variance, fit = gram.copy(), np.zeros(len(gram))
    order, fits = np.zeros(len(noise), dtype=np.int64), np.zeros((len(noise), len(gram)))
    for time, unit in enumerate(noise):
        v = variance.diagonal() / HIDDEN_RIDGE
        order[time] = at = int(np.argmax((v * NOISE_SCALE**2 - fit**2) / (1 + v)))
        gain = variance[at] / (variance[at, at] + HIDDEN_RIDGE)
        fit = fit + gain * (scales[at] * unit - fit[at])
        variance -= np.outer(gain, variance[at])
        fits[time] = fit
    return order, fits
