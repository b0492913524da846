"""The number of rounds until a small regret is certified, on four known functions.

The functions are on the unit cube and are to be maximised; ``optimisers.py`` has some of them too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel, Matern

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.bandits import Finite, KernelUCB
from kernelbounds.bounds import CMM, DMM, Bound
from kernelbounds.kernels import mixture_scale
from kernelbounds.mixtures import Hybrid, Single
from kernelbounds.paper import results, specs
from kernelbounds.paper.cells import PLAY
from kernelbounds.paper.figures import COLOURS, in_rows, legend_above, titled_panels
from kernelbounds.paper.results import Repetitions
from kernelbounds.paper.specs import CERTIFICATE_ROUNDS, Choices, Experiment, Job, Picture, Rows
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.theory.spectrum import sobol

# --- known functions: their values, maxima and norms

# Kernel matrices of a few thousand points have rounding errors of 1e-12, and this is above them.
# Norms of the functions of ``certificates`` change by less than 1 % when it is ten times as large.
NORM_RIDGE = 1e-11
# Where the largest value of a function is looked for: the best of these points are improved.
SCANNED, STARTS = 2**13, 12


@dataclass(frozen=True)
class KnownFunction:
    """A function, shifted and scaled to mean 0 and range 1 on the points at which it may be tried.

    ``finer`` are points that fill the cube, ``points`` among them, for computing the norm.
    """

    title: str
    formula: Callable[[Array], Array]
    points: Array
    finer: Array

    def values(self, points: Array) -> Array:
        """Evaluate the function at points (m, d) of the unit cube."""
        known = self.formula(self.points)
        return np.asarray((self.formula(points) - known.mean()) / np.ptp(known))

    def norm(self, kernel: Kernel) -> float:
        """Compute the least norm of a function that has these values at all of ``finer``.

        As a set gets finer this tends to the norm of the function from below. On ``points``, which
        is all that a policy on them can see, the function is that interpolant, whose norm this is.
        """
        return least_norm(kernel, self.finer, self.values(self.finer))


def least_norm(kernel: Kernel, points: Array, values: Array) -> float:
    """Compute the least norm of a function with these values (m,) at points (m, d).

    Its square y' K^-1 y is computed with a ridge, as the matrix is nearly singular.
    """
    gram = kernels.cross(kernel, points, points)
    gram[np.diag_indices_from(gram)] += NORM_RIDGE
    return float(np.sqrt(values @ cho_solve(cho_factor(gram, overwrite_a=True), values)))


def largest(values: Callable[[Array], Array], dim: int) -> float:
    """Find the largest value of a function on the unit cube, from many starts."""
    points = qmc.Sobol(dim, scramble=False).random(SCANNED)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * dim), axis=-1).reshape(-1, dim)
    points = np.concatenate([points, corners])
    found = values(points)
    starts = points[np.argsort(-found)[:STARTS]]
    tops: list[float] = [
        -minimize(
            lambda x: -float(values(x[None])[0]), start, method="L-BFGS-B", bounds=[(0, 1)] * dim,
            options={"ftol": 1e-15, "gtol": 1e-9},
        ).fun
        for start in starts
    ]  # fmt: skip
    return max(float(found.max()), *tops)


@cache
def known_function(name: str) -> KnownFunction:
    """Return a function by its name."""
    cube = sobol(2048, 3)
    found = {
        "wiggly": ("wiggly, one input", _wiggly, _grid(201, 1), _grid(401, 1)),
        "branin": ("Branin, two inputs", _branin, _grid(25, 2), _grid(49, 2)),
        "camel": ("six-hump camel, two inputs", _camel, _grid(25, 2), _grid(49, 2)),
        "reactor": ("reactor, three inputs", _reactor, cube[:1024], cube),
        "hartmann": ("Hartmann, three inputs", _hartmann, cube[:1024], cube),
    }
    return KnownFunction(*found[name])


@cache
def norm_of(name: str, nu: float, length_scale: float) -> float:
    """Compute the norm in the space of a Matern kernel, and keep it, as many runs ask for it."""
    return known_function(name).norm(Matern(length_scale=length_scale, nu=nu))


def _wiggly(x: Array) -> Array:
    return np.asarray(np.sin(3 * np.pi * x[:, 0]) + 0.5 * np.sin(7 * x[:, 0]))


def _branin(x: Array) -> Array:
    u, v = 15 * x[:, 0] - 5, 15 * x[:, 1]
    valley = v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6
    return np.asarray(-(valley**2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) - 10)


def _camel(x: Array) -> Array:
    u, v = 4 * x[:, 0] - 2, 2 * x[:, 1] - 1
    return np.asarray(-(4 - 2.1 * u**2 + u**4 / 3) * u**2 - u * v - 4 * (v**2 - 1) * v**2)


def _reactor(x: Array) -> Array:
    """Compute the yield: conversion grows with heat and time, and selectivity falls with heat."""
    temperature, feed, time = x.T
    conversion = 1 - np.exp(-(0.5 + 2 * time) * np.exp(2 * temperature - 1))
    selectivity = 1 / (1 + 0.5 * np.exp(4 * (temperature - 0.7)))
    return np.asarray(conversion * selectivity * np.exp(-2 * (feed - 0.6) ** 2))


def _hartmann(x: Array) -> Array:
    heights = np.array([1.0, 1.2, 3.0, 3.2])
    widths = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
    centres = 1e-4 * np.array(
        [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
    )
    squares = (widths * (x[:, None] - centres) ** 2).sum(axis=2)
    return np.asarray(np.exp(-squares) @ heights)


def _grid(count: int, dim: int) -> Array:
    """Return a grid with ``count`` points a side, (count^dim, dim)."""
    sides = np.meshgrid(*[np.linspace(0, 1, count)] * dim, indexing="ij")
    return np.stack(sides, axis=-1).reshape(-1, dim)


# --- certificates of them

NOISE, DELTA = 0.01, 0.05  # sigma is relative to the function's range
NORM_SLACK = 1.5  # B over the function's norm
REGRET_LEVELS = (0.2, 0.1, 0.05)  # to which the regret is certified, over the function's range
BOUNDS: dict[str, Bound] = {"CMM": CMM(), "DMM": DMM()}
MIXTURE_TITLES = {"default": "default", "paper": "the paper's c"}
# By function: nu and the length scale of two Matern kernels; inputs are in the unit cube.
KERNELS = {
    "wiggly": ((2.5, 0.25), (3.5, 0.5)),
    "branin": ((2.5, 0.5), (3.5, 1.0)),
    "reactor": ((2.5, 1.0), (3.5, 1.0)),
    "hartmann": ((2.5, 0.5), (3.5, 1.0)),
}
# Certificates are computed in each of the first rounds, and then whenever the number of
# observations has grown by this factor: one certificate costs about as much as three rounds.
FIRST_ROUNDS, GROWTH_FACTOR = 30, 1.02
# How a regret is certified, and the arrays in which it is stored.
MEASURES = {"by_bounds": "max upper − lower", "regret": "by differences"}
POLICY_COLOURS = {
    ("CMM", "default"): COLOURS["CMM"], ("DMM", "default"): COLOURS["DMM"],
    ("CMM", "paper"): COLOURS["IGP"], ("DMM", "paper"): COLOURS["AY"],
}  # fmt: skip


@dataclass(frozen=True)
class CertificateRun(Job):
    """KernelUCB on one known function; the noise depends on the seed and the repetition alone."""

    function: str
    nu: float
    length_scale: float
    bound: str
    mixture: str
    repetition: int
    rounds: int = CERTIFICATE_ROUNDS
    seed: int = 0

    @property
    def name(self) -> str:
        """The function, the kernel, the policy and the repetition."""
        kernel = f"nu{self.nu:g}-l{self.length_scale:g}"
        run = f"T{self.rounds}-seed{self.seed}-{self.repetition}"
        return f"certificate-{self.function}-{kernel}-{self.bound}-{self.mixture}-{run}"

    @property
    def kernel_title(self) -> str:
        """The kernel, for the head of a row."""
        return f"Matérn-{2 * self.nu:g}/2, ℓ = {self.length_scale:g}"

    def run(self) -> dict[str, Array]:
        """Return the certified regret, max_upper - lower, the true regret, and the function's norm.

        They are those of the ``rounds`` in which a certificate was computed.
        """
        function = known_function(self.function)
        kernel = Matern(length_scale=self.length_scale, nu=self.nu)
        norm = norm_of(self.function, self.nu, self.length_scale)
        papers = Single(mixture_scale(kernel, function.points.shape[1], self.rounds))
        mixture = papers if self.mixture == "paper" else Hybrid()
        sequence = ConfidenceSequence(
            kernel, NORM_SLACK * norm, NOISE, DELTA, bound=BOUNDS[self.bound], mixture=mixture
        )
        policy = KernelUCB(sequence, Finite(function.points))
        values = function.values(function.points)
        rng = np.random.default_rng((self.seed, self.repetition, PLAY))
        rows: list[tuple[float, ...]] = []
        for t in range(1, self.rounds + 1):
            asked = policy.ask()
            outcome = float(values[asked.index]) + NOISE * rng.standard_normal()
            policy.tell(asked.x, outcome)
            if t <= FIRST_ROUNDS or t >= math.ceil(GROWTH_FACTOR * rows[-1][0]) or t == self.rounds:
                found = policy.certificate()
                highest = math.inf if found.max_upper is None else found.max_upper
                true = float(values.max() - values[found.index])
                rows.append((t, found.regret, highest - found.lower, true))
        names = ("rounds", "regret", "by_bounds", "true_regret")
        return dict(zip(names, np.array(rows).T.copy(), strict=True)) | {"norm": np.array([norm])}


def jobs(choices: Choices) -> list[CertificateRun]:
    """Return all runs, whose methods and kernels do not depend on the choices."""
    fewer = choices.at_most(CERTIFICATE_ROUNDS, specs.CERTIFICATE_REPETITIONS)
    return [
        CertificateRun(function, *kernel, bound, mixture, repetition, fewer.rounds, choices.seed)
        for function, kernels in KERNELS.items()
        for kernel in kernels
        for bound in BOUNDS
        for mixture in MIXTURE_TITLES
        for repetition in range(fewer.repetitions)
    ]


Certified = Repetitions[CertificateRun]  # all repetitions of a policy on a function


def first_certified(one: Certified, measure: str, level: float) -> Array:
    """Find the first round with a certificate of this level, or infinity; (repetitions,)."""
    enough = one[measure] <= level
    return np.where(enough.any(axis=1), one["rounds"][0, enough.argmax(axis=1)], math.inf)


def wrong_runs(one: Certified) -> int:
    """Count the repetitions in which a certificate was wrong at some time."""
    least = np.minimum(*(one[measure] for measure in MEASURES))
    return int((one["true_regret"] > least).any(axis=1).sum())


def as_text(found: list[Certified]) -> str:
    """Return a table for each function, for the terminal."""
    count, rounds = len(found[0]["norm"]), found[0].job.rounds
    lines = [
        f"Rounds until the regret is certified to be at most a part of the range: median of "
        f"{count} (smallest to largest), at most {rounds}",
    ]
    for name, members in results.grouped(found, lambda one: one.job.function).items():
        function = known_function(name)
        norms = {one.job.kernel_title: float(one["norm"][0, 0]) for one in members}
        said = "; ".join(
            f"{kernel}: norm {norm:.3g}, B = {NORM_SLACK * norm:.3g}"
            for kernel, norm in norms.items()
        )
        lines += ["", f"{function.title}, {len(function.points)} points; range 1; {said}"]
        levels = (f"{100 * level:g} %" for level in REGRET_LEVELS)
        rows = [["kernel", "bound", "radius", "certified", *levels]]
        for one in members:
            policy = [one.job.kernel_title, one.job.bound, MIXTURE_TITLES[one.job.mixture]]
            for measure, label in MEASURES.items():
                first = [first_certified(one, measure, level) for level in REGRET_LEVELS]
                rows.append([*policy, label, *(_shown(rounds_of, rounds) for rounds_of in first)])
                policy = ["", "", ""]  # once is enough
        lines += results.aligned(rows)
    wrong, total = sum(map(wrong_runs, found)), sum(len(one["norm"]) for one in found)
    lines += ["", f"a certificate was wrong at some time in {wrong} of {total} runs"]
    return "\n".join(lines) + "\n"


def as_rows(found: list[Certified]) -> Rows:
    """Yield one row for each policy, measure and level."""
    for one in found:
        j, norm = one.job, float(one["norm"][0, 0])
        for measure, level in itertools.product(MEASURES, REGRET_LEVELS):
            first = first_certified(one, measure, level)
            median, smallest, largest = _middle(first)
            yield {
                "function": j.function,
                "nu": j.nu,
                "length_scale": str(j.length_scale),
                "norm": norm,
                "norm_bound": NORM_SLACK * norm,
                "bound": j.bound,
                "mixture": j.mixture,
                "certified": measure,
                "level": level,
                "median": median,
                "smallest": smallest,
                "largest": largest,
                "repetitions": len(first),
            }


def draw(found: list[Certified], path: Path) -> None:
    """Draw a panel for each function, with a line style for each kernel and a colour a policy."""
    by_function = results.grouped(found, lambda one: one.job.function)
    kernels_of = {
        name: list(dict.fromkeys(one.job.kernel_title for one in members))
        for name, members in by_function.items()
    }

    def title(name: str) -> str:
        lengths = " and ".join(kernel.split(" = ")[1] for kernel in kernels_of[name])
        return f"{known_function(name).title}; ℓ = {lengths}"

    labels, place = ("round", "certified regret / range"), in_rows(list(by_function), 2)
    with titled_panels(path, by_function, labels, place, title, size=9) as panels:
        for name, axis in panels.items():
            members, kernels = by_function[name], kernels_of[name]
            for one in members:
                bound, mixture, kernel = one.job.bound, one.job.mixture, one.job.kernel_title
                axis.plot(
                    one["rounds"][0],
                    np.median(one["regret"], axis=0),
                    ("-", "--", ":")[kernels.index(kernel)],
                    color=POLICY_COLOURS[bound, mixture],
                    label=f"{bound}, {MIXTURE_TITLES[mixture]}, {kernel.split(',')[0]}",
                    # Of two curves that coincide both can be seen.
                    linewidth=1.8 if bound == "CMM" else 0.9,
                )
            for level in REGRET_LEVELS:
                axis.axhline(level, color="black", linewidth=0.4)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_yticks([1.0, *REGRET_LEVELS, 0.01], ["1", *map(str, REGRET_LEVELS), "0.01"])
            # A certificate of more than the range says nothing.
            axis.set_ylim(top=2.0)
            axis.set_xticks([1, 10, 100], ["1", "10", "100"])
            axis.minorticks_off()
        legend_above(axis, min(2, len(panels)) + 1, size=7)


def _middle(first: Array) -> tuple[float, float, float]:
    """Return the median, smallest and largest; of two in the middle, the larger is the median."""
    ordered = np.sort(first)
    return float(ordered[len(ordered) // 2]), float(ordered[0]), float(ordered[-1])


def _shown(first: Array, rounds: int) -> str:
    median, low, high = (
        f"{x:.0f}" if math.isfinite(x) else f"over {rounds}" for x in _middle(first)
    )
    return median if low == high else f"{median} ({low} to {high})"


EXPERIMENT = Experiment(
    jobs,
    results.repetitions,
    {"txt": as_text},
    as_rows,
    (Picture("certificates", draw, "Certificates", "Certified regret against rounds"),),
    note="What the regret of the best action known is certified to be at most, over "
    "the range of the function: medians over repetitions.",
)
