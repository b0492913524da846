"""The laboratory: how often any bound is wrong, at all times and points at once.

A :class:`Programme` says what ``kernelbounds coverage`` runs: bounds, designs, noises, truths and
seeds. A run is one data set with a known truth, and has a seed of its own. Its kernel, its
dimension, its truth and the law of its noise are those that the seed falls on when all combinations
are counted through: with 84 of them, 84 runs in succession have each once. So a run is known by its
bound, its design, its seed and the lists, and where the lists have one member each, by the seed
alone.

The help of the command line imports this file, which must not wait for NumPy: what needs that is
imported, and bounds are made, when they are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import lazy_loader

import kernelbounds as kb
from kernelbounds.errors import InputError
from kernelbounds.paper.specs import (
    KERNELS,
    fingerprint,
    is_users_own,
    kernel_named,
    refuse_unknown,
)

if TYPE_CHECKING:
    from kernelbounds.laboratory.measuring import Coverage as Coverage, Run as Run, coverage
    from kernelbounds.laboratory.trials import Trials

__all__ = ["Coverage", "Programme", "Run", "coverage"]

__getattr__, _, _ = lazy_loader.attach(
    __name__, submod_attrs={"measuring": ["Coverage", "Run", "coverage"]}
)

DESIGNS = {
    "once": "random points; looked at once, at the end",
    "fixed": "random points; looked at as data come in",
    "ucb": "where the upper bound is largest, as KernelUCB",
    "weakest": "where the truth is closest to leaving the band",
    "stubborn": "one place again and again, until it looks wrong",
    "selective": "again where data look right; then a contrast of what was left to look wrong",
}
NOISES = {
    "Gaussian": "standard deviation σ",
    "Rademacher": "±σ",
    "uniform": "on ±√3 σ",
    "skewed": "two values, the larger with probability 0.1, of variance proxy exactly σ²",
    "heteroscedastic": "Gaussian, standard deviation from 0.2 σ to σ along the first input",
    "heavy": "Student's t with 3 degrees of freedom, standard deviation σ; breaks the assumption",
    "loud": "Gaussian, standard deviation 1.5 σ; breaks the assumption",
}
BREAKING = ("heavy", "loud")  # the laws that are not sub-Gaussian with scale sigma
# The laws with which a bound claims to hold, by what its guarantee says of the noise.
KINDS_OF_NOISE = {
    "sub-Gaussian": tuple(noise for noise in NOISES if noise not in BREAKING),
    "Gaussian": ("Gaussian", "heteroscedastic"),
    "bounded": ("Rademacher",),  # by sigma
}
TRUTHS = {
    "spread": "random weights at 20 random points",
    "peak": "all of the norm at one place",
    "hidden": "all of the norm where observations see least of it",
}
DEFAULT_KERNELS, DEFAULT_DIMS = ("rbf", "matern-3/2"), (1, 3)
LENGTH_SCALE, NORM, NOISE_SCALE = 0.3, 5.0, 0.5
RUNS, ROUNDS, DELTA = 200, 200, 0.1
RUNS_OF_A_JOB = 24  # what is lost when a job is interrupted: some ten seconds of work

# Bounds that have a name here. Those of ``CONTROLS`` are wrong on purpose.
BOUNDS = ("CMM", "DMM", "AMM", "AY", "IGP", "FixedDesign", "FixedDesign-Gaussian")
CONTROLS = ("CMM-shrunk", "GP-2sd")


class Case(NamedTuple):
    """A kind of problem."""

    dim: int
    kernel: str
    truth: str
    noise: str


@dataclass(frozen=True)
class Programme:
    """The programme of a measurement: each bound under each design, with ``runs`` runs.

    Attributes
    ----------
    bounds : mapping from names to bounds
        Or names alone, of :data:`BOUNDS`, :data:`CONTROLS` and ``kernelbounds.bounds.RIVALS``, or
        ``package.module:Name``. The name ``rivals`` stands for all rivals.
    designs, noises, truths, kernels : sequences of str
        Names of :data:`DESIGNS`, :data:`NOISES`, :data:`TRUTHS` and of the paper's kernels.
    dims : sequence of int
        Numbers of inputs, which are in the unit cube.
    runs, rounds : int
        Runs of each bound under each design, shared evenly among all kinds of problems, and
        observations in a run.
    delta : float
        What the bounds are told.
    seed : int
        The seed of the first run; run r has ``seed + r``.

    Examples
    --------
    >>> from kernelbounds.laboratory import Programme
    >>> programme = Programme(["CMM"], designs=["ucb"], noises=["Gaussian"], runs=50)
    >>> [(job.method, job.design, job.runs) for job in programme.jobs()]
    [('CMM', 'ucb', 24), ('CMM', 'ucb', 24), ('CMM', 'ucb', 2)]
    """

    bounds: Mapping[str, kb.Bound] | Sequence[str] = (*BOUNDS, *CONTROLS)
    designs: Sequence[str] = tuple(DESIGNS)
    noises: Sequence[str] = tuple(NOISES)
    truths: Sequence[str] = tuple(TRUTHS)
    kernels: Sequence[str] = DEFAULT_KERNELS
    dims: Sequence[int] = DEFAULT_DIMS
    runs: int = RUNS
    rounds: int = ROUNDS
    delta: float = DELTA
    seed: int = 0

    def __post_init__(self) -> None:
        from kernelbounds.arrays import as_scalar, as_whole, brief

        refuse_unknown("design", self.designs, tuple(DESIGNS))
        refuse_unknown("noise", self.noises, tuple(NOISES))
        refuse_unknown("truth", self.truths, tuple(TRUTHS))
        refuse_unknown("kernel", self.kernels, KERNELS)
        if not self.dims:
            raise InputError("no number of inputs is given; dims is a list such as 1,3.")
        for name, least in (("runs", 1), ("rounds", 2), ("seed", 0)):
            as_whole(getattr(self, name), name, least=least)
        for dim in self.dims:
            as_whole(dim, "dims", least=1)
        as_scalar(self.delta, "delta", above=0.0, most=1.0)
        for name, bound in self.bounds_by_name.items():
            if not isinstance(bound, kb.Bound):
                raise InputError(f"{name} must be a kernelbounds.Bound, got {brief(bound)}.")

    @cached_property
    def bounds_by_name(self) -> dict[str, kb.Bound]:
        """The bounds by their names, with the settings for the first kind of problem."""
        if isinstance(self.bounds, Mapping):
            return dict(self.bounds)
        spelled = [kb.bounds.RIVALS if name == "rivals" else [name] for name in self.bounds]
        names = list(dict.fromkeys(itertools.chain.from_iterable(spelled)))
        own = [name for name in names if is_users_own(name)]
        refuse_unknown("method", names, (*BOUNDS, *CONTROLS, *kb.bounds.RIVALS), own)
        return {name: bound_named(name, self.rounds, self.delta, self.cases[0]) for name in names}

    @property
    def cases(self) -> tuple[Case, ...]:
        """All kinds of problems, in the order of the seeds."""
        lists = (self.dims, self.kernels, self.truths, self.noises)
        return tuple(Case(*one) for one in itertools.product(*lists))

    @property
    def kinds(self) -> dict[str, dict[str, Any]]:
        """Groups of runs by truth, kernel and dimension: a title, and what the cases share."""
        groups: dict[str, dict[str, Any]] = {truth: {"truth": truth} for truth in self.truths}
        groups |= {kernel: {"kernel": kernel} for kernel in self.kernels}
        return groups | {f"d = {dim}": {"dim": dim} for dim in self.dims}

    def jobs(self) -> list[Trials]:
        """Return all jobs, which take some seconds each."""
        from kernelbounds.laboratory.trials import Trials

        cases, given = self.cases, isinstance(self.bounds, Mapping)
        marks = {name: fingerprint(bound) for name, bound in self.bounds_by_name.items()}
        return [
            Trials(
                name, design, self.seed + start, min(RUNS_OF_A_JOB, self.runs - start),
                self.rounds, self.delta, cases, marks[name], bound if given else None,
            )
            for start in range(0, self.runs, RUNS_OF_A_JOB)
            for name, bound in self.bounds_by_name.items()
            for design in self.designs
        ]  # fmt: skip


def bound_named(name: str, rounds: int, delta: float, case: Case) -> kb.Bound:
    """Make a bound of :data:`BOUNDS`, :data:`CONTROLS` or the rivals, or import a user's own.

    Settings of some rivals depend on the problem.
    """
    if is_users_own(name):
        from kernelbounds.bounds.by_name import imported_bound

        return imported_bound(name)
    if name in kb.bounds.RIVALS:
        assumed = kb.Assumptions(NORM, NOISE_SCALE, delta)
        kernel = kernel_named(case.kernel, LENGTH_SCALE)
        return kb.bounds.RIVALS[name](rounds, kernel, case.dim, assumed)
    if name in CONTROLS:
        from kernelbounds.laboratory.controls import Deviations, Shrunk

        return Shrunk(0.8) if name == CONTROLS[0] else Deviations(2.0)
    match name:
        case "IGP":
            return kb.IGP(eta=2 / rounds)  # the paper's choice for T rounds
        case "FixedDesign-Gaussian":
            return kb.FixedDesign(noise="Gaussian")
    made: kb.Bound = getattr(kb, name)()
    return made


def promises_design(bound: kb.Bound, design: str) -> bool:
    """Tell whether a bound claims to hold under a design."""
    stated = bound.guarantee
    if design == "once":
        return True
    return stated.anytime and stated.uniform and (design == "fixed" or stated.adaptive)


def promises_noise(bound: kb.Bound, noise: str) -> bool:
    """Tell whether a bound claims to hold with a law of noise."""
    return noise in KINDS_OF_NOISE[bound.guarantee.noise]


def explained(names: Mapping[str, str]) -> str:
    """Return names with their meanings, for the help of an option."""
    return "; ".join(f"{name}: {text}" for name, text in names.items()) + "."
