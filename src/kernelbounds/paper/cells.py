"""Running one cell, one trial or one study.

Radii for comparison: a mixture over scales, and the limit, which only a simulation knows.

What a load takes: time, memory, and the width of the bounds.

It runs in a process of its own (``python -m kernelbounds.paper.cells``), whose peak memory is
that of the load. Times are those of the processor, which others on the machine do not change much.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kernelbounds.arrays import Array
from kernelbounds.bandits import Finite, KernelUCB, Policy, RandomPolicy, SyntheticProblem, simulate
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound
from kernelbounds.bounds.dmm import PAPERS_GRID
from kernelbounds.engine import Engine
from kernelbounds.engine.sparse.ranges import sums
from kernelbounds.kernels import mixture_scale
from kernelbounds.mixtures import Hybrid, Mixture, Single
from kernelbounds.mixtures.hybrid import energy_bound
from kernelbounds.paper import functions, loads, specs, specs as own, trials
from kernelbounds.paper.collecting import run_study
from kernelbounds.paper.loads import Load
from kernelbounds.paper.recursion import Recursion
from kernelbounds.paper.specs import Cell, Job, Setting
from kernelbounds.paper.studies import Study
from kernelbounds.paper.trials import Trial
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.sequence.sparse import Sparse
from kernelbounds.theory import regret_rate

# The noise is what outcomes and values differ by, both of which are rounded: a relative 1e-13 of
# its energy on the paper's problems.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Scales(Mixture):
    """The paper's mixtures at several scales c_j = B^2 / 10^j, with equal weights.

    R_t^2 is the S that solves sum_j w_j exp((S - Q_j) / (2 sigma^2)) = 1 / delta, where Q_j is
    E + sigma^2 l at the ridge sigma^2 / c_j (``docs/mathematics/radius.md``, with rate 1 alone).
    """

    factors: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # c_j / B^2

    def scale(self, norm_bound: float) -> float:
        """That of the factor 1."""
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
        Of the first t outcomes, from t = 0 on.
    """

    energies: tuple[float, ...] = field(repr=False)

    @classmethod
    def of(cls, noise: Array) -> Limit:
        """From the noise of each round."""
        sums = np.cumsum(np.append(0.0, noise**2)) * (1 + ROUNDING)
        return cls(tuple(sums.tolist()))

    def scale(self, norm_bound: float) -> float:
        """It makes no forecasts; the default's, for ridges to begin a search from."""
        return Hybrid().scale(norm_bound)

    def squared_radius(
        self, engine: Engine, ridge: float, noise_scale: float, delta: float, losses: Array
    ) -> tuple[float, float]:
        """See :class:`Mixture`."""
        return 0.0, self.energies[engine.data.count]


BATCH = 50_000  # observations that are in memory at a time
STATUS = Path("/proc/self/status")  # on Linux
# For the times of single passes and of the product Phi' Phi: blocks of so many rows, so many times.
ROWS, BLOCKS = 1000, 10


def run_load(load: Load) -> dict[str, Array]:
    """The numbers that :func:`weigh` finds, in a process of its own."""
    command = [sys.executable, "-m", "kernelbounds.paper.cells", json.dumps(load.as_data())]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return {name: np.array([value]) for name, value in json.loads(found).items()}


def weigh(load: Load) -> dict[str, float]:
    """Seconds and megabytes, mean half-width, share of points covered, and inducing points.

    Of a sparse engine also the seconds a row of either pass of a cluster, and of Phi' Phi.
    """
    rng = np.random.default_rng([load.seed, list(loads.KERNELS).index(load.kernel)])
    truth = SyntheticProblem.draw(
        load.make_kernel(), loads.DIM, rng, norm=loads.NORM, noise_scale=loads.NOISE,
        centres=loads.CENTRES,
    )  # fmt: skip
    queries, sites = rng.random((loads.QUERIES, loads.DIM)), rng.random((loads.SITES, loads.DIM))
    sequence = ConfidenceSequence(
        load.make_kernel(), loads.NORM, loads.NOISE, loads.DELTA, engine=_engine(load)
    )
    seconds = 0.0
    for start in range(0, load.count, BATCH):
        size = min(BATCH, load.count - start)
        X = rng.random((size, loads.DIM))
        if load.engine == "merged":
            X = sites[rng.integers(len(sites), size=size)]
        y = truth.values(X) + loads.NOISE * rng.standard_normal(size)
        seconds += _timed(sequence.update, X, y)[0]
    at_queries, (lower, upper) = _timed(sequence.bounds, queries)
    values = truth.values(queries)
    found = {
        "seconds": seconds,
        "bounds_seconds": at_queries,
        "megabytes": _peak(),
        "half_width": float((upper - lower).mean() / 2),
        "covered": float(((lower <= values) & (values <= upper)).mean()),
        "inducing": 0.0,
    }
    if (what := sequence.approximation) is not None:
        found["inducing"] = float(what.inducing)
        if load.engine == "sparse":
            found |= _passes(sequence, rng)
    return found


def _engine(load: Load) -> Sparse | None:
    if load.engine == "sparse":
        return Sparse.filling([0.0] * loads.DIM, [1.0] * loads.DIM, load.inducing)
    return Sparse() if load.engine == "grown" else None


def _passes(sequence: ConfidenceSequence, rng: np.random.Generator) -> dict[str, float]:
    """Seconds a row of Phi' Phi alone, and of both passes of a cluster."""
    engine: Any = sequence.known.radius_engine
    X = rng.random((ROWS * BLOCKS, loads.DIM))
    y = loads.NOISE * rng.standard_normal(len(X))
    phi = rng.random((len(engine.dictionary), ROWS))

    def product() -> None:
        for _ in range(BLOCKS):
            phi @ phi.T

    told = sequence.known.told(X, y, None)
    sequence.update(X[:ROWS], y[:ROWS])  # so that the next are whole blocks
    times = {
        "product": _timed(product)[0],
        "sums": _timed(sums, engine, len(sequence), [(X, told)])[0],
        "growth": _timed(sequence.update, X, y)[0],
    }
    return {f"{name}_seconds_a_row": value / len(X) for name, value in times.items()}


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()
    found = function(*arguments)
    return time.process_time() - start, found


def _peak() -> float:
    """Megabytes, at most so far."""
    if STATUS.exists():  # the other one begins with that of the parent
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts bytes


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(weigh(Load(**json.loads(sys.argv[1])))))


PROBLEM, PLAY, POLICY = range(3)  # what each stream of random numbers is for
# Certificates are computed in each of the first rounds, and then whenever there are so many times
# as many observations: one costs about as much as three rounds.
EACH_ROUND, LATER = 30, 1.02


def run_cell(cell: Job) -> dict[str, Array]:
    """Of a cell regret, bounds at the action, outcome and seconds of each round; (rounds,) each.

    Of a trial the certified regret, max_upper - lower and the regret in truth, in those ``rounds``
    in which a certificate was computed; and the norm of the function. Of a study see
    :func:`~kernelbounds.paper.collecting.run_study`, and of a load
    :func:`~kernelbounds.paper.cells.weigh`.
    """
    with threadpool_limits(1):
        if isinstance(cell, Trial):
            return _run_trial(cell)
        if isinstance(cell, Study):
            return run_study(cell)
        if isinstance(cell, Load):
            return run_load(cell)
        setting, problem = cell.setting, _problem(cell)
        play = _generator(cell, PLAY)
        if cell.method in specs.RECURSIONS:
            return _time_recursion(cell, problem, play)
        trace = simulate(_policy(cell, problem), problem, setting.rounds, play)
    names = ("regret", "lower", "upper", "outcome", "seconds")
    return {name: getattr(trace, name) for name in names}


def played(cell: Cell, regret: Array) -> Array:
    """The actions of a finished cell, (rounds, dim), from its regret in each round.

    The sets of actions are drawn again, and in each the one is taken that has this regret.
    """
    problem, (of_actions, _) = _problem(cell), _generator(cell, PLAY).spawn(2)
    points = np.empty((len(regret), cell.setting.dim))
    for t, lost in enumerate(regret):
        actions = problem.actions(of_actions)
        values = problem.values(actions)
        points[t] = actions[np.abs(values.max() - values - lost).argmin()]
    return points


def sequence_of(cell: Cell, found: dict[str, Array]) -> ConfidenceSequence:
    """The confidence sequence of a finished cell of Kernel AMM-UCB, at its end."""
    sequence = _sequence(cell, _problem(cell), _amm(cell.setting))
    sequence.update(played(cell, found["regret"]), found["outcome"])
    return sequence


def radius_ratios(cell: Cell, found: dict[str, Array], times: list[int]) -> list[float]:
    """R_t^2 over the noise energy at these times of a finished cell with noise."""
    problem, points = _problem(cell), played(cell, found["regret"])
    energies = np.cumsum(_noise(cell, problem) ** 2)
    result = []
    for t in times:
        sequence = _sequence(cell, problem, CMM())
        sequence.update(points[:t], found["outcome"][:t])
        result.append(sequence.radius**2 / float(energies[t - 1]))
    return result


def _problem(cell: Cell) -> SyntheticProblem:
    setting = cell.setting
    return SyntheticProblem.draw(
        setting.make_kernel(),
        setting.dim,
        _generator(cell, PROBLEM),
        norm=specs.NORM,
        noise_scale=0.0 if setting.noiseless else specs.NOISE,
        centres=specs.CENTRES,
        actions_per_round=specs.ACTIONS,
    )


def _amm(setting: Setting) -> AMM:
    """Without noise, at the ridge of Props. D.15 and D.16."""
    if not setting.noiseless:
        return AMM()
    rate = regret_rate(setting.make_kernel(), setting.dim, noiseless=True)
    return AMM(float(rate.tuning(setting.rounds)))


def _policy(cell: Cell, problem: SyntheticProblem) -> Policy:
    bounds: dict[str, Bound] = {
        "CMM": CMM(),
        "DMM": DMM(),
        "AMM": _amm(cell.setting),
        "AY": AY(),
        "IGP": IGP(eta=2 / cell.setting.rounds),
    }
    bounds |= dict.fromkeys(specs.RADII, CMM())
    if cell.method == "Random":
        return RandomPolicy(_sequence(cell, problem, AMM()), rng=_generator(cell, POLICY))
    bound = own.bound_of(cell.method) if own.is_own(cell.method) else bounds[cell.method]
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
            mixture = Limit.of(_noise(cell, problem))
        case _:
            mixture = Single(mixture_scale(kernel, setting.dim, setting.rounds))
    return ConfidenceSequence(
        kernel,
        setting.norm_bound,
        setting.noise_scale,
        specs.DELTA,
        bound=bound,
        mixture=mixture,
    )


def _noise(cell: Cell, problem: SyntheticProblem) -> Array:
    """Of each round, which is the same for all methods; as :func:`simulate` draws it."""
    _, of_noise = _generator(cell, PLAY).spawn(2)
    return np.array([problem.noise(of_noise) for _ in range(cell.setting.rounds)])


def _run_trial(trial: Trial) -> dict[str, Array]:
    target, kernel = functions.target(trial.function), trial.make_kernel()
    norm = functions.norm_of(trial.function, trial.nu, trial.length_scale)
    papers = Single(mixture_scale(kernel, target.dim, trial.rounds))
    sequence = ConfidenceSequence(
        kernel,
        trials.SLACK * norm,
        trials.NOISE,
        trials.DELTA,
        bound={"CMM": CMM(), "DMM": DMM()}[trial.bound],
        mixture={"paper": papers, "default": Hybrid()}[trial.mixture],
    )
    policy = KernelUCB(sequence, Finite(target.points))
    values, rng = target.values(target.points), _generator(trial, PLAY)
    rows: list[tuple[float, ...]] = []
    for t in range(1, trial.rounds + 1):
        asked = policy.ask()
        value = float(values[asked.index])
        policy.tell(asked.x, value + trials.NOISE * rng.standard_normal())
        if t <= EACH_ROUND or t >= math.ceil(LATER * rows[-1][0]) or t == trial.rounds:
            found = policy.certificate()
            by_bounds = (math.inf if found.max_upper is None else found.max_upper) - found.lower
            true = float(values.max() - values[found.index])
            rows.append((t, found.regret, by_bounds, true))
    names = ("rounds", "regret", "by_bounds", "true_regret")
    return dict(zip(names, np.array(rows).T.copy(), strict=True)) | {"norm": np.array([norm])}


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


def _generator(cell: Job, stream: int) -> np.random.Generator:
    return np.random.default_rng([cell.seed, cell.repetition, stream])
