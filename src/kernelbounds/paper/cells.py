"""Running one cell."""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from kernelbounds.arrays import Array
from kernelbounds.bandits import KernelUCB, Policy, RandomPolicy, SyntheticProblem, simulate
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound
from kernelbounds.bounds.dmm import PAPERS_GRID
from kernelbounds.paper import own, specs
from kernelbounds.paper.recursion import Recursion
from kernelbounds.paper.specs import Cell, Setting
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.theory import regret_rate

PROBLEM, PLAY, POLICY = range(3)  # what each stream of random numbers is for


def run_cell(cell: Cell) -> dict[str, Array]:
    """Regret, bounds at the action, outcome and seconds of each round; (rounds,) each."""
    with threadpool_limits(1):
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
    if cell.method == "Random":
        return RandomPolicy(_sequence(cell, problem, AMM()), rng=_generator(cell, POLICY))
    bound = own.bound_of(cell.method) if own.is_own(cell.method) else bounds[cell.method]
    return KernelUCB(_sequence(cell, problem, bound))


def _sequence(cell: Cell, problem: SyntheticProblem, bound: Bound) -> ConfidenceSequence:
    setting = cell.setting
    return problem.sequence(
        bound,
        rounds=setting.rounds,
        delta=specs.DELTA,
        norm_bound=setting.norm_bound,
        noise_scale=setting.noise_scale,
    )


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


def _generator(cell: Cell, stream: int) -> np.random.Generator:
    return np.random.default_rng([cell.seed, cell.repetition, stream])
