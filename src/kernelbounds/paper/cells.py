"""The cells of the paper's tables and figures: runs of one policy on one random problem (Sec. 7).

Beside the paper's methods there are CMM with other radii, and the appendix's recursions, whose time
is compared with ours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array
from kernelbounds.bandits import KernelUCB, Policy, RandomPolicy, SyntheticProblem, simulate
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Assumptions, Bound
from kernelbounds.bounds.dmm import PAPERS_GRID
from kernelbounds.engine import Engine
from kernelbounds.kernels import mixture_scale
from kernelbounds.mixtures import Hybrid, Mixture, Single
from kernelbounds.mixtures.hybrid import energy_bound
from kernelbounds.paper import specs
from kernelbounds.paper.results import ResultStore, repetitions
from kernelbounds.paper.specs import Choices, Job, Setting, for_file
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.theory import regret_rate

# --- radii for comparison: a mixture over several scales, and the limit that nobody knows

# The noise is what outcomes and values differ by, both of which are rounded: a relative 1e-13 of
# its energy on the paper's problems.
NOISE_ROUNDING = 1e-10


@dataclass(frozen=True)
class Scales(Mixture):
    """The paper's mixtures at several scales c_j = B^2 / 10^j, with equal weights.

    R_t^2 is the S that solves sum_j w_j exp((S - Q_j) / (2 sigma^2)) = 1 / delta, where Q_j is
    E + sigma^2 l at the ridge sigma^2 / c_j (``docs/mathematics/radius.md``, with rate 1 alone).
    """

    factors: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # c_j / B^2

    def scale(self, norm_bound: float) -> float:
        """Return the scale of the factor 1."""
        return norm_bound**2

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        halves, count = np.zeros(len(self.factors)), engine.data.count
        if count:
            for j, factor in enumerate(self.factors):
                energy = engine.energy_above(ridge / factor)
                log_det = engine.log_det_above(ridge / factor)
                halves[j] = energy / (2 * noise_scale**2) + log_det / 2
        rates = (1.0,) * len(self.factors)
        return 0.0, energy_bound(rates, halves, count, noise_scale, delta)


@dataclass(frozen=True)
class Limit(Mixture):
    """The least valid radius: R_t^2 is the noise energy itself, below which f* would be left out.

    Parameters
    ----------
    energies : sequence of float
        The noise energy of the first t outcomes, from t = 0 on.
    """

    energies: tuple[float, ...] = field(repr=False)

    @classmethod
    def of(cls, noise: Array) -> Limit:
        """Make the limit from the noise of each round."""
        sums = np.cumsum(np.append(0.0, noise**2)) * (1 + NOISE_ROUNDING)
        return cls(tuple(sums.tolist()))

    def scale(self, norm_bound: float) -> float:
        """Return the default's scale, for ridges to begin a search from: no forecasts are made."""
        return Hybrid().scale(norm_bound)

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        return 0.0, self.energies[engine.data.count]


# --- cells

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
            return timed_run(self.method, sequence, problem, rounds, play)
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


def random_problem(
    kernel: Kernel, dim: int, rng: np.random.Generator, noise_scale: float = specs.NOISE
) -> SyntheticProblem:
    """Draw a problem like those of Table 1."""
    return SyntheticProblem.draw(
        kernel, dim, rng, norm=specs.NORM, noise_scale=noise_scale, centres=specs.CENTRES,
        actions_per_round=specs.ACTIONS,
    )  # fmt: skip


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


# --- the appendix's recursion for the inverse of K + alpha I (App. E.2), as a rival in time

# It is in plain NumPy, with one explicit inverse for each ridge. The printed recursion has a slip;
# the upper left block of the new inverse is (K + alpha I)^-1 + K_22 v v', where
# v = (K + alpha I)^-1 k and K_22 = 1 / (k(x,x) + alpha - k'v). The inverses live in buffers of full
# size and are updated in place, which is a little faster than joining the printed blocks. Nothing
# is done about rounding errors.
RECURSIONS = ("AMM recursion", "DMM recursion")


class Recursion:
    """The upper bounds of AMM for one ridge, or the best for several ridges, which is DMM.

    The first ridge is the reference sigma^2/c, which the radius of the data needs.
    """

    def __init__(
        self,
        kernel: Kernel,
        assumptions: Assumptions,
        ridges: Sequence[float],
        shape: tuple[int, int],
    ) -> None:
        self._kernel, self._assumptions = kernel, assumptions
        self._count = 0
        self._points, self._outcomes = np.empty(shape), np.empty(shape[0])
        self._fits = [_Inverse(ridge, shape[0]) for ridge in ridges]

    def upper(self, points: Array) -> Array:
        """Compute upper bounds at points (m, d)."""
        a, t = self._assumptions, self._count
        prior: Array = self._kernel.diag(points)
        trivial: Array = a.norm_bound * np.sqrt(prior)
        if not t:
            return trivial
        vectors, outcomes = self._kernel(self._points[:t], points), self._outcomes[:t]
        best, radius = trivial, 0.0
        for i, fit in enumerate(self._fits):
            inverse = fit.inverse[:t, :t]
            weights = inverse @ outcomes
            energy = fit.ridge * float(outcomes @ weights)
            if i == 0:
                radius = energy + a.noise_scale**2 * (fit.log_det - 2 * math.log(a.delta))
            mean = weights @ vectors
            variance = prior - np.einsum("ij,ij->j", vectors, inverse @ vectors)
            squared = radius + fit.ridge * a.norm_bound**2 - energy
            width = np.sqrt(squared / fit.ridge) * np.sqrt(np.maximum(variance, 0.0))
            best = np.minimum(best, mean + width)
        return np.asarray(np.maximum(best, -trivial))

    def update(self, point: Array, outcome: float) -> None:
        """Add an observation at a point (1, d)."""
        t = self._count
        prior = self._kernel.diag(point)[0]
        column = self._kernel(self._points[:t], point)[:, 0] if t else np.empty(0)
        for fit in self._fits:
            fit.grow(prior, column)
        self._points[t], self._outcomes[t] = point[0], outcome
        self._count += 1


class _Inverse:
    """The inverse (K + alpha I)^-1, in a corner of a buffer, and ln det(I + K/alpha)."""

    def __init__(self, ridge: float, size: int) -> None:
        self.ridge, self.inverse, self.log_det = ridge, np.empty((size, size)), 0.0

    def grow(self, prior: float, column: Array) -> None:
        """Add a row and a column to K: the new point's k(x,x), and k with the others, (t,)."""
        t = len(column)
        v = self.inverse[:t, :t] @ column
        variance = prior - column @ v
        k22 = 1 / (variance + self.ridge)
        self.log_det += math.log1p(variance / self.ridge)
        self.inverse[:t, :t] += np.outer(k22 * v, v)
        self.inverse[t, :t] = self.inverse[:t, t] = -k22 * v
        self.inverse[t, t] = k22


def timed_run(
    method: str,
    sequence: ConfidenceSequence,
    problem: SyntheticProblem,
    rounds: int,
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Run KernelUCB on a recursion, and return the regret and the seconds of each round.

    The kernel and the assumptions are those of the sequence. Actions and noise are those that
    :func:`~kernelbounds.simulate` draws, which is not used: its checks would be in the times.
    """
    a = sequence.assumptions
    reference = a.noise_scale**2 / a.mixture_scale
    factors = sorted(PAPERS_GRID, key=lambda f: f != 1.0) if method[0] == "D" else [1.0]
    ridges = [factor * reference for factor in factors]
    rival = Recursion(sequence.kernel, a, ridges, (rounds, problem.function.centres.shape[1]))
    of_actions, of_noise = rng.spawn(2)
    regret, seconds = np.empty(rounds), np.empty(rounds)
    for t in range(rounds):
        actions = problem.actions(of_actions)
        values = problem.values(actions)
        start = time.perf_counter()
        chosen = int(rival.upper(actions).argmax())
        asked = time.perf_counter() - start
        outcome = float(values[chosen]) + problem.noise(of_noise)
        start = time.perf_counter()
        rival.update(actions[[chosen]], outcome)
        seconds[t] = asked + time.perf_counter() - start
        regret[t] = values.max() - values[chosen]
    return {"regret": regret, "seconds": seconds}
