"""Running one cell: a policy on a random problem, as in Sec. 7 of the paper.

Beside the paper's methods there are two more radii, a mixture over several scales and the limit
that only a simulation knows, and the appendix's recursion as a rival in time.

The recursion is in plain NumPy, with one explicit inverse for each ridge. The printed recursion
has a slip; the upper left block of the new inverse is (K + alpha I)^-1 + K_22 v v', where
v = (K + alpha I)^-1 k and K_22 = 1 / (k(x,x) + alpha - k'v). The inverses live in buffers of full
size and are updated in place, which is a little faster than joining the printed blocks. Nothing is
done about rounding errors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

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
from kernelbounds.paper.specs import Cell, Setting
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.theory import regret_rate

PROBLEM, PLAY, POLICY = range(3)  # what each stream of random numbers is for
# The noise is what outcomes and values differ by, both of which are rounded: a relative 1e-13 of
# its energy on the paper's problems.
NOISE_ROUNDING = 1e-10


def run_cell(cell: Cell) -> dict[str, Array]:
    """Return regret, bounds at the action, outcome and seconds of each round; (rounds,) each."""
    problem, play = problem_of(cell), generator(cell.seed, cell.repetition, PLAY)
    if cell.method in specs.RECURSIONS:
        return _time_recursion(cell, problem, play)
    trace = simulate(_policy(cell, problem), problem, cell.setting.rounds, play)
    names = ("regret", "lower", "upper", "outcome", "seconds")
    return {name: getattr(trace, name) for name in names}


def played(cell: Cell, regret: Array) -> Array:
    """Find the actions of a finished cell, (rounds, dim), from its regret in each round.

    The sets of actions are drawn again, and in each the one is taken that has this regret.
    """
    of_actions, _ = generator(cell.seed, cell.repetition, PLAY).spawn(2)
    problem, points = problem_of(cell), np.empty((len(regret), cell.setting.dim))
    for t, lost in enumerate(regret):
        actions = problem.actions(of_actions)
        values = problem.values(actions)
        points[t] = actions[np.abs(values.max() - values - lost).argmin()]
    return points


def sequence_of(cell: Cell, found: dict[str, Array]) -> ConfidenceSequence:
    """Make the confidence sequence of a finished cell of Kernel AMM-UCB again, as at its end."""
    sequence = _sequence(cell, problem_of(cell), _amm(cell.setting))
    sequence.update(played(cell, found["regret"]), found["outcome"])
    return sequence


def radius_ratios(cell: Cell, found: dict[str, Array], times: list[int]) -> list[float]:
    """Return R_t^2 over the noise energy at these times of a finished cell with noise."""
    problem, points = problem_of(cell), played(cell, found["regret"])
    energies = np.cumsum(noise_of(cell, problem) ** 2)
    result = []
    for t in times:
        sequence = _sequence(cell, problem, CMM())
        sequence.update(points[:t], found["outcome"][:t])
        result.append(sequence.radius**2 / float(energies[t - 1]))
    return result


def generator(*seed: int) -> np.random.Generator:
    """Make the random numbers of a seed, a repetition and a stream of ``PROBLEM, PLAY, POLICY``."""
    return np.random.default_rng(seed)


def random_problem(
    kernel: Kernel, dim: int, rng: np.random.Generator, noise_scale: float = specs.NOISE
) -> SyntheticProblem:
    """Draw a problem as those of Table 1."""
    return SyntheticProblem.draw(
        kernel, dim, rng, norm=specs.NORM, noise_scale=noise_scale, centres=specs.CENTRES,
        actions_per_round=specs.ACTIONS,
    )  # fmt: skip


def problem_of(cell: Cell) -> SyntheticProblem:
    """Draw the problem of a cell, which is the same for all methods."""
    setting, rng = cell.setting, generator(cell.seed, cell.repetition, PROBLEM)
    noise = 0.0 if setting.noiseless else specs.NOISE
    return random_problem(setting.make_kernel(), setting.dim, rng, noise)


def noise_of(cell: Cell, problem: SyntheticProblem) -> Array:
    """Draw the noise of each round as :func:`simulate` does; it is the same for all methods."""
    _, of_noise = generator(cell.seed, cell.repetition, PLAY).spawn(2)
    return np.array([problem.noise(of_noise) for _ in range(cell.setting.rounds)])


def _amm(setting: Setting) -> AMM:
    """AMM; without noise, at the ridge of Props. D.15 and D.16."""
    if not setting.noiseless:
        return AMM()
    rate = regret_rate(setting.make_kernel(), setting.dim, noiseless=True)
    return AMM(float(rate.tuning(setting.rounds)))


def _policy(cell: Cell, problem: SyntheticProblem) -> Policy:
    if cell.method == "Random":
        rng = generator(cell.seed, cell.repetition, POLICY)
        return RandomPolicy(_sequence(cell, problem, AMM()), rng=rng)
    bound: Bound
    match cell.method:
        case "DMM":
            bound = DMM()
        case "AMM":
            bound = _amm(cell.setting)
        case "AY":
            bound = AY()
        case "IGP":
            bound = IGP(eta=2 / cell.setting.rounds)
        case method if specs.is_users_own(method):
            bound = specs.bound_of(method)
        case _:
            bound = CMM()
    return KernelUCB(_sequence(cell, problem, bound))


def _sequence(cell: Cell, problem: SyntheticProblem, bound: Bound) -> ConfidenceSequence:
    setting, kernel = cell.setting, problem.function.kernel
    mixture: Mixture
    match cell.method:
        case "CMM default":
            mixture = Hybrid()
        case "CMM scales":
            mixture = Scales()
        case "CMM limit":
            mixture = Limit.of(noise_of(cell, problem))
        case _:
            mixture = Single(mixture_scale(kernel, setting.dim, setting.rounds))
    return ConfidenceSequence(
        kernel, setting.norm_bound, setting.noise_scale, specs.DELTA, bound=bound, mixture=mixture
    )


# --- radii for comparison


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
    """R_t^2 = sum of eps_s^2, the noise energy itself: with less, f* would be outside of the set.

    Parameters
    ----------
    energies : sequence of float
        The noise energy of the first t outcomes, from t = 0 on.
    """

    energies: tuple[float, ...] = field(repr=False)

    @classmethod
    def of(cls, noise: Array) -> Limit:
        """Sum the noise of each round."""
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


# --- the appendix's recursion


class Recursion:
    """AMM upper bounds for one ridge; with several ridges the best of them, which is DMM.

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
    """(K + alpha I)^-1, in the upper left corner of a buffer, and ln det(I + K/alpha)."""

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


def _time_recursion(
    cell: Cell, problem: SyntheticProblem, rng: np.random.Generator
) -> dict[str, Array]:
    """KernelUCB on the recursion: what it loses is regret, what it costs is seconds."""
    sequence = _sequence(cell, problem, AMM())
    a, setting = sequence.assumptions, cell.setting
    reference = a.noise_scale**2 / a.mixture_scale
    factors = sorted(PAPERS_GRID, key=lambda f: f != 1.0) if cell.method[0] == "D" else [1.0]
    ridges = [factor * reference for factor in factors]
    rival = Recursion(sequence.kernel, a, ridges, (setting.rounds, setting.dim))
    of_actions, of_noise = rng.spawn(2)
    regret, seconds = np.empty(setting.rounds), np.empty(setting.rounds)
    for t in range(setting.rounds):
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
