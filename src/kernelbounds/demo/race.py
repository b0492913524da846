"""Chapter 3: five bounds look for the best action, and pay for every other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.arrays import Array
from kernelbounds.bandits import Finite, KernelUCB
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound
from kernelbounds.demo.numbers import numbers
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

KERNEL = Matern(length_scale=0.2, nu=2.5)
NORM, NORM_BOUND, NOISE, DELTA = 9.0, 10.0, 0.5, 0.01
ACTIONS = 101
ROUNDS_OF_STEP = 10  # about as long as the steps of other chapters


def methods(rounds: int) -> dict[str, Bound]:
    """Those of the paper's experiments."""
    return {"CMM": CMM(), "DMM": DMM(), "AMM": AMM(), "AY": AY(), "IGP": IGP(eta=2 / rounds)}


def chapter(rounds: int, games: int, seed: int, step: Callable[[], object]) -> dict[str, Any]:
    """Mean regret over some games, and where each bound has played in the first of them.

    In one game all of them meet the same function and the same noise in the same round. ``step`` is
    called :func:`steps` times.
    """
    actions = np.linspace(0, 1, ACTIONS)[:, None]
    regrets: dict[str, list[Array]] = {name: [] for name in methods(rounds)}
    played: dict[str, list[int]] = {}
    shown = np.empty(0)
    for game in range(games):
        rng = np.random.default_rng([seed, game])
        centres, weights = rng.random((20, 1)), rng.standard_normal(20)
        values = RKHSFunction(KERNEL, centres, weights).rescaled(NORM)(actions)
        noise = NOISE * rng.standard_normal(rounds)
        shown = values if game == 0 else shown
        for name, bound in methods(rounds).items():
            chosen = _play(bound, actions, values, noise, step)
            regrets[name].append(np.cumsum(values.max() - values[chosen]))
            played.setdefault(name, chosen)
    return {
        "x": numbers(actions),
        "values": numbers(shown),
        "rounds": rounds,
        "games": games,
        "noise": NOISE,
        "methods": [
            {
                "id": name,
                "regret": numbers(np.mean(regrets[name], axis=0)),
                "played": played[name],
            }
            for name in regrets
        ],
    }


def steps(rounds: int, games: int) -> int:
    """How often :func:`chapter` calls ``step``."""
    return games * len(methods(rounds)) * (rounds // ROUNDS_OF_STEP)


def _play(
    bound: Bound, actions: Array, values: Array, noise: Array, step: Callable[[], object]
) -> list[int]:
    """Which actions are chosen, round by round."""
    sequence = ConfidenceSequence(KERNEL, NORM_BOUND, NOISE, DELTA, bound=bound)
    policy, chosen = KernelUCB(sequence, Finite(actions)), list[int]()
    for error in noise:
        found = policy.ask()
        chosen.append(int(found.index or 0))
        policy.tell(found, values[chosen[-1]] + error)
        if len(chosen) % ROUNDS_OF_STEP == 0:
            step()
    return chosen
