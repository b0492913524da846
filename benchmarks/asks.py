"""How good the settings are that a study recommends after 30 runs, with Optuna's GPSampler beside.

Three systems of ``benchmarks/estimate.py``: the documentation's oven, a pump with one input, and a
fermentation with three inputs and noise of 5 %. The regret is what the recommended settings truly
lose against the best ones, as a share of the range of true values. We recommend what ``status``
calls most promising; Optuna recommends the trial with the best outcome, and has no other answer.
Both see the same noise, in the order of the runs.

Optuna is not needed by anything here: ``pip install optuna torch`` adds its columns.
``python -m benchmarks.asks`` prints the whole table, ``python -m benchmarks.asks certificate`` has
the regrets of that purpose, too, and ``python -m benchmarks.asks batches`` has those of our rule
alone after 28 runs in batches of four, with other distances between their settings.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

import kernelbounds as kb
from benchmarks.estimate import SYSTEMS
from benchmarks.problem import Array
from benchmarks.report import Row, progress
from kernelbounds.study import asking

ROUNDS, SEEDS = 30, 10
COMPARED = ("oven", "pump", "fermentation, logarithms")


def run() -> list[Row]:
    rows = []
    for system in COMPARED:
        ours, theirs = regrets(system, "best"), optuna_regrets(system)
        name = f"asks, {system}: true regret after {ROUNDS} runs, median of {SEEDS}"
        mine = f"{np.median(ours):.2%}"
        if theirs is None:
            rows.append(Row(name, mine, "Optuna is not installed", None, "of its regret"))
            continue
        share = float(np.median(ours) / np.median(theirs))
        rows.append(
            Row(name, mine, f"{np.median(theirs):.2%}", share, "of its regret", ("<=", 1.0))
        )
    return rows


def regrets(system: str, purpose: str, batch: int = 1) -> Array:
    """True regrets of what a study recommends, for each seed, with trials asked for in batches."""
    problem, truth, noise, best, spread = _system(system)
    found = []
    for seed in range(SEEDS):
        progress(f"asks for {purpose}, {system}, {seed + 1} of {SEEDS}")
        rng = np.random.default_rng(seed)
        with kb.Study.create(":memory:", problem) as study:
            for _ in range(ROUNDS // batch):
                for trial in study.ask(batch, purpose=purpose):
                    study.tell(trial, _outcome(problem, truth, trial.values, noise, rng))
            promising = study.status(seconds=5.0).most_promising
        assert promising is not None
        found.append(best - _true(truth, promising.values))
    return np.array(found) / spread


def optuna_regrets(system: str) -> Array | None:
    """The same of Optuna's GPSampler, as it comes; None where Optuna is not installed."""
    try:
        import optuna
        import torch
    except ImportError:
        return None
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    torch.set_num_threads(1)
    problem, truth, noise, best, spread = _system(system)
    found = []
    for seed in range(SEEDS):
        progress(f"asks, Optuna, {system}, {seed + 1} of {SEEDS}")
        rng = np.random.default_rng(seed)
        sampler = optuna.samplers.GPSampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for _ in range(ROUNDS):
            trial = study.ask()
            values = {
                one.name: trial.suggest_float(one.name, one.low, one.high, log=one.log)
                for one in problem.inputs
            }
            study.tell(trial, _outcome(problem, truth, values, noise, rng))
        found.append(best - _true(truth, study.best_params))
    return np.array(found) / spread


Truth = Callable[[Array], Array]


def _system(name: str) -> tuple[kb.Problem, Truth, float, float, float]:
    """The problem, the truth, the noise, the best value there is, and the range of true values."""
    problem, truth, noise = SYSTEMS[name]
    problem = problem.settled()
    unit = problem.inputs.unit_box.filling(2**14)
    values = truth(problem.unscaled(unit))
    found = minimize(
        lambda z: -float(truth(problem.unscaled(np.clip(z, 0, 1)[None]))[0]),
        unit[values.argmax()], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10},
    )  # fmt: skip
    return problem, truth, noise, max(float(values.max()), -found.fun), float(np.ptp(values))


def _true(truth: Truth, values: dict[str, float]) -> float:
    return float(truth(np.array([list(values.values())]))[0])


def _outcome(
    problem: kb.Problem,
    truth: Truth,
    values: dict[str, float],
    noise: float,
    rng: np.random.Generator,
) -> float:
    error, true = noise * rng.standard_normal(), _true(truth, values)
    return true * float(np.exp(error)) if problem.output.log else true + error


def batched(system: str) -> dict[str, Array]:
    """Regrets after 28 runs in batches of four, by the distance between settings of a batch."""
    found, usual = {}, asking.DISTINCT
    for distance in (0.0, usual, 2 * usual):
        asking.DISTINCT = distance
        found[f"ask -n 4, {distance:g} apart"] = regrets(system, "best", batch=4)
    asking.DISTINCT = usual
    return found


if __name__ == "__main__":
    print("| system | rule | median | mean | largest |\n|---|---|--:|--:|--:|")
    for name in COMPARED:
        theirs = None
        if sys.argv[1:] == ["batches"]:
            rules = batched(name)
        else:
            rules = {f"ask --for {one}": regrets(name, one) for one in ("best", *sys.argv[1:])}
            theirs = optuna_regrets(name)
        if theirs is None and sys.argv[1:] != ["batches"]:
            print("Optuna is not installed: pip install optuna torch", file=sys.stderr)
        elif theirs is not None:
            rules["Optuna, GPSampler"] = theirs
        for rule, found in rules.items():
            cells = (f"{100 * one:.2f} %" for one in (np.median(found), found.mean(), found.max()))
            print(f"| {name} | {rule} | {' | '.join(cells)} |", flush=True)
