"""How many rounds it takes to certify a small regret, on four known functions.

The functions have inputs in the unit cube and are to be maximised. Each is shifted and scaled, so
that on its points the mean is 0 and the range is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import Kernel, Matern

from kernelbounds import kernels
from kernelbounds.arrays import Array
from kernelbounds.bandits import Finite, KernelUCB
from kernelbounds.bounds import CMM, DMM
from kernelbounds.kernels import mixture_scale
from kernelbounds.mixtures import Hybrid, Single
from kernelbounds.paper import specs
from kernelbounds.paper.cells import PLAY, generator
from kernelbounds.paper.figures import COLOURS, figure_files, legend_above
from kernelbounds.paper.results import (
    ResultStore,
    aligned,
    csv_text,
    grouped,
    numbers,
    write_texts,
)
from kernelbounds.paper.specs import NORM_SLACK, REGRET_LEVELS, CertificateRun
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.theory.spectrum import sobol

# Kernel matrices of a few thousand points have rounding errors of 1e-12, and this is above them.
# Norms of the four functions change by less than 1 % when it is ten times as large.
NORM_RIDGE = 1e-11
# Certificates are computed in each of the first rounds, and then whenever the number of
# observations has grown by this factor: one certificate costs about as much as three rounds.
FIRST_ROUNDS, GROWTH_FACTOR = 30, 1.02
# How a regret is certified, and the arrays in which it is stored.
MEASURES = {"by_bounds": "max upper − lower", "regret": "by differences"}
MIXTURE_TITLES = {"paper": "the paper's c", "default": "default"}
POLICY_COLOURS = {
    ("CMM", "default"): COLOURS["CMM"], ("DMM", "default"): COLOURS["DMM"],
    ("CMM", "paper"): COLOURS["IGP"], ("DMM", "paper"): COLOURS["AY"],
}  # fmt: skip


@dataclass(frozen=True)
class KnownFunction:
    """A function with the points at which it may be tried.

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


@cache
def known_function(name: str) -> KnownFunction:
    """Return one of the four functions, by the names of ``specs.CERTIFICATE_KERNELS``."""
    cube = sobol(2048, 3)
    found = {
        "wiggly": ("wiggly, one input", _wiggly, _grid(201, 1), _grid(401, 1)),
        "branin": ("Branin, two inputs", _branin, _grid(25, 2), _grid(49, 2)),
        "reactor": ("reactor, three inputs", _reactor, cube[:1024], cube),
        "hartmann": ("Hartmann, three inputs", _hartmann, cube[:1024], cube),
    }
    return KnownFunction(*found[name])


@cache
def norm_of(name: str, nu: float, length_scale: float) -> float:
    """Compute the norm in the space of a Matern kernel; it is kept, as many runs ask for it."""
    return known_function(name).norm(Matern(length_scale=length_scale, nu=nu))


def _wiggly(x: Array) -> Array:
    return np.asarray(np.sin(3 * np.pi * x[:, 0]) + 0.5 * np.sin(7 * x[:, 0]))


def _branin(x: Array) -> Array:
    u, v = 15 * x[:, 0] - 5, 15 * x[:, 1]
    valley = v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6
    return np.asarray(-(valley**2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) - 10)


def _reactor(x: Array) -> Array:
    """Yield: conversion grows with temperature and time, selectivity falls with temperature."""
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
    """A grid with ``count`` points a side, (count^dim, dim)."""
    sides = np.meshgrid(*[np.linspace(0, 1, count)] * dim, indexing="ij")
    return np.stack(sides, axis=-1).reshape(-1, dim)


def run(job: CertificateRun) -> dict[str, Array]:
    """Return the certified regret, max_upper - lower and the true regret, and the function's norm.

    They are those of the ``rounds`` in which a certificate was computed.
    """
    function = known_function(job.function)
    kernel = Matern(length_scale=job.length_scale, nu=job.nu)
    norm = norm_of(job.function, job.nu, job.length_scale)
    papers = Single(mixture_scale(kernel, function.points.shape[1], job.rounds))
    sequence = ConfidenceSequence(
        kernel,
        NORM_SLACK * norm,
        specs.CERTIFICATE_NOISE,
        specs.CERTIFICATE_DELTA,
        bound=CMM() if job.bound == "CMM" else DMM(),
        mixture=papers if job.mixture == "paper" else Hybrid(),
    )
    policy = KernelUCB(sequence, Finite(function.points))
    values, rng = function.values(function.points), generator(job.seed, job.repetition, PLAY)
    rows: list[tuple[float, ...]] = []
    for t in range(1, job.rounds + 1):
        asked = policy.ask()
        noise = specs.CERTIFICATE_NOISE * rng.standard_normal()
        policy.tell(asked.x, float(values[asked.index]) + noise)
        if t <= FIRST_ROUNDS or t >= math.ceil(GROWTH_FACTOR * rows[-1][0]) or t == job.rounds:
            found = policy.certificate()
            by_bounds = (math.inf if found.max_upper is None else found.max_upper) - found.lower
            true = float(values.max() - values[found.index])
            rows.append((t, found.regret, by_bounds, true))
    names = ("rounds", "regret", "by_bounds", "true_regret")
    return dict(zip(names, np.array(rows).T.copy(), strict=True)) | {"norm": np.array([norm])}


@dataclass(frozen=True)
class Certified:
    """All repetitions of a policy on a function."""

    job: CertificateRun  # the first of them
    norm: float
    rounds: Array  # in which certificates were computed, (n,)
    certified: dict[str, Array]  # by measure, (repetitions, n); the range of the function is 1
    true_regret: Array  # (repetitions, n)

    def first(self, measure: str, level: float) -> Array:
        """Find the first round with a certificate of this level, or infinity; (repetitions,)."""
        enough = self.certified[measure] <= level
        return np.where(enough.any(axis=1), self.rounds[enough.argmax(axis=1)], math.inf)

    @property
    def wrong(self) -> int:
        """The number of repetitions in which a certificate was wrong at some time."""
        least = np.minimum(*self.certified.values())
        return int((self.true_regret > least).any(axis=1).sum())

    @property
    def kernel(self) -> str:
        """The kernel, for the head of a row."""
        return f"Matérn-{2 * self.job.nu:g}/2, ℓ = {self.job.length_scale:g}"


def write(jobs: list[CertificateRun], store: ResultStore, folder: Path) -> str:
    """Make the table and the figure of the experiment, and return the table as text."""
    found = collect(jobs, store)
    draw(found, folder)
    return write_texts(folder, "certificates", as_text(found), as_csv(found))


def collect(jobs: list[CertificateRun], store: ResultStore) -> list[Certified]:
    """Read the repetitions of each policy together, in order."""
    result = []
    for members in grouped(
        jobs, lambda j: (j.function, j.nu, j.length_scale, j.bound, j.mixture)
    ).values():
        runs = [store.read(one) for one in members]
        certified = {name: np.array([one[name] for one in runs]) for name in MEASURES}
        true = np.array([one["true_regret"] for one in runs])
        norm, rounds = float(runs[0]["norm"][0]), runs[0]["rounds"]
        result.append(Certified(members[0], norm, rounds, certified, true))
    return result


def as_text(found: list[Certified]) -> str:
    """Return a table for each function, for the terminal."""
    count, rounds = len(found[0].true_regret), found[0].job.rounds
    lines = [
        f"Rounds until the regret is certified to be at most a part of the range: median of "
        f"{count} (smallest to largest), at most {rounds}",
    ]
    for name, members in grouped(found, lambda one: one.job.function).items():
        function = known_function(name)
        norms = {one.kernel: one.norm for one in members}
        said = "; ".join(
            f"{kernel}: norm {norm:.3g}, B = {NORM_SLACK * norm:.3g}"
            for kernel, norm in norms.items()
        )
        lines += ["", f"{function.title}, {len(function.points)} points; range 1; {said}"]
        levels = (f"{100 * level:g} %" for level in REGRET_LEVELS)
        rows = [["kernel", "bound", "radius", "certified", *levels]]
        for one in members:
            policy = [one.kernel, one.job.bound, MIXTURE_TITLES[one.job.mixture]]
            for measure, label in MEASURES.items():
                shown = [_shown(one.first(measure, level), rounds) for level in REGRET_LEVELS]
                rows.append([*policy, label, *shown])
                policy = ["", "", ""]  # once is enough
        lines += aligned(rows)
    wrong, total = sum(one.wrong for one in found), sum(len(one.true_regret) for one in found)
    lines += ["", f"a certificate was wrong at some time in {wrong} of {total} runs"]
    return "\n".join(lines) + "\n"


def as_csv(found: list[Certified]) -> str:
    """Return one row for each policy, measure and level."""
    head = ["function", "nu", "length_scale", "norm", "norm_bound", "bound", "mixture"]
    head += ["certified", "level", "median", "smallest", "largest", "repetitions"]
    rows = []
    for one in found:
        j, norms = one.job, numbers(one.norm, NORM_SLACK * one.norm)
        policy = [j.function, j.nu, j.length_scale, *norms, j.bound, j.mixture]
        for measure in MEASURES:
            for level in REGRET_LEVELS:
                first = one.first(measure, level)
                rows.append([*policy, measure, level, *numbers(*_middle(first)), len(first)])
    return csv_text(head, rows)


def draw(found: list[Certified], folder: Path) -> None:
    """Draw a panel for each function; kernels differ by the line, policies by the colour."""
    by_function = grouped(found, lambda one: one.job.function)
    rows, columns = math.ceil(len(by_function) / 2), min(2, len(by_function))
    with figure_files(folder, "certificates", rows, columns) as axes:
        for axis, (name, members) in zip(axes.flat, by_function.items(), strict=False):
            kernels = list(dict.fromkeys(one.kernel for one in members))
            for one in members:
                policy = one.job.bound, one.job.mixture
                axis.plot(
                    one.rounds,
                    np.median(one.certified["regret"], axis=0),
                    ("-", "--", ":")[kernels.index(one.kernel)],
                    color=POLICY_COLOURS[policy],
                    label=f"{policy[0]}, {MIXTURE_TITLES[policy[1]]}, {one.kernel.split(',')[0]}",
                    # Of two curves that coincide both can be seen.
                    linewidth=1.8 if policy[0] == "CMM" else 0.9,
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
            lengths = " and ".join(kernel.split(" = ")[1] for kernel in kernels)
            axis.set_title(f"{known_function(name).title}; ℓ = {lengths}", fontsize=9)
        for axis in axes[-1]:
            axis.set_xlabel("round")
        for axis in axes[:, 0]:
            axis.set_ylabel("certified regret / range")
        legend_above(axes, axes[0, 0], columns + 1, size=7)


def _middle(first: Array) -> tuple[float, float, float]:
    """Median, smallest and largest; of an even number the larger of the two in the middle."""
    ordered = np.sort(first)
    return float(ordered[len(ordered) // 2]), float(ordered[0]), float(ordered[-1])


def _shown(first: Array, rounds: int) -> str:
    median, low, high = (
        f"{x:.0f}" if math.isfinite(x) else f"over {rounds}" for x in _middle(first)
    )
    return median if low == high else f"{median} ({low} to {high})"
