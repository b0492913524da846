"""The cells of the paper's tables and figures: runs of one policy on one random problem (Sec. 7).

Beside the paper's methods there are CMM with other radii (``radii.py``), and the appendix's
recursions as rivals in time (``recursion.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits import KernelUCB, Policy, RandomPolicy, SyntheticProblem, simulate
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound
from kernelbounds.kernels import mixture_scale
from kernelbounds.mixtures import Hybrid, Mixture, Single
from kernelbounds.paper import recursion, specs
from kernelbounds.paper.known_truth import random_problem
from kernelbounds.paper.radii import Limit, Scales
from kernelbounds.paper.recursion import RECURSIONS
from kernelbounds.paper.results import ResultStore
from kernelbounds.paper.specs import Choices, Job, Setting, for_file
from kernelbounds.paper.summaries import repetitions
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.theory import regret_rate

PROBLEM, PLAY, POLICY = range(3)  # what each stream of random numbers is for


@dataclass(frozen=True)
class Cell(Job):
    """One method on one problem.

    The problem, its actions and its noise depend on the seed and the repetition alone, so that
    all methods play the same problems. A bound of a user's own has a ``fingerprint``, so that it
    is run again when it was changed.
    """

    setting: Setting
    method: str
    repetition: int
    seed: int = 0
    timed: bool = False
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """The setting, the seed, the method and the repetition."""
        method = for_file(self.method) + ("-timed" if self.timed else "")
        return f"{self.setting.name}-seed{self.seed}-{method}-{self.repetition}"

    @property
    def cost(self) -> float:
        """The cost of the method."""
        return specs.COST.get(self.method, 1.0)

    def as_data(self) -> dict[str, Any]:
        """Return the fields, without those that only some cells have."""
        data = asdict(self)
        if not self.setting.noiseless:
            del data["setting"]["noiseless"]
        if not self.fingerprint:
            del data["fingerprint"]
        return data

    def run(self) -> dict[str, Array]:
        """Return regret, bounds at the action, outcome and seconds of each round; (rounds,) each.

        A recursion has the regret and the seconds alone.
        """
        problem, play, rounds = problem_of(self), self.generator(PLAY), self.setting.rounds
        sequence = sequence_for(self, _bound(self), noise_of(self))
        if self.method in RECURSIONS:
            return recursion.timed_run(self.method, sequence, problem, rounds, play)
        policy: Policy = KernelUCB(sequence)
        if self.method == "Random":
            policy = RandomPolicy(sequence, rng=self.generator(POLICY))
        trace = simulate(policy, problem, rounds, play)
        names = ("regret", "lower", "upper", "outcome", "seconds")
        return {name: getattr(trace, name) for name in names}

    def generator(self, stream: int) -> np.random.Generator:
        """Make the random numbers of one of the streams ``PROBLEM``, ``PLAY`` and ``POLICY``."""
        return np.random.default_rng((self.seed, self.repetition, stream))


def cells_in(
    settings: Iterable[Setting],
    choices: Choices,
    methods: Sequence[str] | None = None,
    timed: bool = False,
) -> list[Cell]:
    """Return all repetitions of these methods, or of the chosen ones, in some settings."""
    methods, fingerprints = methods or chosen_methods(choices), choices.fingerprints
    return [
        Cell(setting, method, repetition, choices.seed, timed, fingerprints.get(method, ""))
        for setting in settings
        for repetition in range(choices.repetitions)
        for method in methods
    ]


def chosen_methods(choices: Choices) -> list[str]:
    """Return the methods that a user chose: the paper's in its order, then the user's own."""
    return [*(method for method in specs.METHODS if method in choices.methods), *choices.users_own]


# --- the parts of a cell, and what a finished one has done


def problem_of(cell: Cell) -> SyntheticProblem:
    """Draw the problem of a cell, which is the same for all methods."""
    setting, noise = cell.setting, 0.0 if cell.setting.noiseless else specs.NOISE
    return random_problem(setting.make_kernel(), setting.dim, cell.generator(PROBLEM), noise)


def noise_of(cell: Cell) -> Array:
    """Draw the noise of each round as :func:`simulate` does; it is the same for all methods."""
    problem, (_, of_noise) = problem_of(cell), cell.generator(PLAY).spawn(2)
    return np.array([problem.noise(of_noise) for _ in range(cell.setting.rounds)])


def sequence_for(cell: Cell, bound: Bound, noise: Array) -> ConfidenceSequence:
    """Make the confidence sequence of a method, without observations.

    Its radius is the paper's, but for three methods: CMM with several scales, with the default of
    the library, and with the limit, which alone looks at the noise.
    """
    setting, kernel = cell.setting, cell.setting.make_kernel()
    mixture: Mixture
    match cell.method:
        case "CMM default":
            mixture = Hybrid()
        case "CMM scales":
            mixture = Scales()
        case "CMM limit":
            mixture = Limit.of(noise)
        case _:
            mixture = Single(mixture_scale(kernel, setting.dim, setting.rounds))
    return ConfidenceSequence(
        kernel, setting.norm_bound, setting.noise_scale, specs.DELTA, bound=bound, mixture=mixture
    )


def _bound(cell: Cell) -> Bound:
    setting = cell.setting
    match cell.method:
        case "DMM":
            return DMM()
        case "AMM" if setting.noiseless:
            # This is the ridge of Props. D.15 and D.16.
            rate = regret_rate(setting.make_kernel(), setting.dim, noiseless=True)
            return AMM(float(rate.tuning(setting.rounds)))
        case "AMM" | "Random":
            return AMM()
        case "AY":
            return AY()
        case "IGP":
            return IGP(eta=2 / setting.rounds)
        case method if specs.is_users_own(method):
            return specs.bound_of(method)
    return CMM()


def played(cell: Cell, regret: Array) -> Array:
    """Find the actions of a finished cell, (rounds, dim), from its regret in each round.

    The sets of actions are drawn again, and in each the one is taken that has this regret.
    """
    of_actions, _ = cell.generator(PLAY).spawn(2)
    problem, points = problem_of(cell), np.empty((len(regret), cell.setting.dim))
    for t, lost in enumerate(regret):
        actions = problem.actions(of_actions)
        values = problem.values(actions)
        points[t] = actions[np.abs(values.max() - values - lost).argmin()]
    return points


def finished_sequence(
    cell: Cell, found: dict[str, Array], rounds: int | None = None
) -> ConfidenceSequence:
    """Make the confidence sequence of a finished cell again, as it was after these rounds."""
    sequence = sequence_for(cell, _bound(cell), noise_of(cell))
    sequence.update(played(cell, found["regret"][:rounds]), found["outcome"][:rounds])
    return sequence


def radius_ratios(cell: Cell, found: dict[str, Array], times: list[int]) -> list[float]:
    """Return R_t^2 over the noise energy at these times of a finished cell with noise."""
    energies = np.cumsum(noise_of(cell) ** 2)
    return [finished_sequence(cell, found, t).radius ** 2 / float(energies[t - 1]) for t in times]


@dataclass(frozen=True)
class MethodRuns:
    """All repetitions of one method in one setting."""

    setting: Setting
    method: str
    regret: Array  # cumulative, (repetitions, rounds)
    seconds: Array  # of each step, (repetitions, rounds)

    @property
    def final(self) -> Array:
        """The cumulative regret at the end, (repetitions,)."""
        return np.asarray(self.regret[:, -1])

    @property
    def mean(self) -> float:
        """The mean over the repetitions, at the end."""
        return float(self.final.mean())

    @property
    def std(self) -> float:
        """The standard deviation over the repetitions, at the end; nan for a single one."""
        return float(self.final.std(ddof=1)) if len(self.final) > 1 else math.nan


def collect(members: Iterable[Cell], store: ResultStore) -> list[MethodRuns]:
    """Read the runs of each setting and method, in the order of the cells."""
    return [
        MethodRuns(
            one.job.setting, one.job.method, np.cumsum(one["regret"], axis=1), one["seconds"]
        )
        for one in repetitions(members, store)
    ]


def find(runs: list[MethodRuns], setting: Setting, method: str) -> MethodRuns | None:
    """Return the runs of a method in a setting, if there are any."""
    return next((one for one in runs if (one.setting, one.method) == (setting, method)), None)


def settings_of(runs: list[MethodRuns]) -> list[Setting]:
    """Return the settings of the runs, in order."""
    return list(dict.fromkeys(one.setting for one in runs))
