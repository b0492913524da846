"""What a trial costs besides its objective: our sampler in Optuna, with Optuna's GPSampler beside.

Both go on with the same study of 200 trials and three parameters, whose outcomes are free. The time
is that of the processor for asking and telling; the first trial, in which both read what there is,
does not count. Optuna keeps its trials in memory.

Without ``pip install optuna torch`` there is no rival.
"""

from __future__ import annotations

import numpy as np

import kernelbounds as kb
from benchmarks.problem import Array
from benchmarks.report import Row, share
from benchmarks.timing import fastest, timed

TRIALS, MORE, DIM = 200, 10, 3
NAMES = tuple("abc")


def run() -> list[Row]:
    try:
        import optuna
        import torch
    except ImportError:
        return [
            Row("samplers: time of a trial", "", "Optuna is not installed", None, "of its time")
        ]
    from kernelbounds.integrations.optuna import KernelBoundsSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    torch.set_num_threads(1)
    problem = kb.Problem(
        [f"{name}=0:1" for name in NAMES], "y=-2:2", noise=0.1, kernel="Matern(1.0, nu=2.5)",
        norm_bound=10.0,
    )  # fmt: skip
    space = {name: optuna.distributions.FloatDistribution(0, 1) for name in NAMES}
    rng = np.random.default_rng(0)
    points, noise = rng.random((TRIALS, DIM)), 0.1 * rng.standard_normal(TRIALS)
    old = [
        optuna.trial.create_trial(
            params=dict(zip(NAMES, point.tolist(), strict=True)), distributions=space,
            value=_truth(point) + error,
        )
        for point, error in zip(points, noise.tolist(), strict=True)
    ]  # fmt: skip

    def further(sampler: optuna.samplers.BaseSampler) -> Array:
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials(old)
        errors = 0.1 * np.random.default_rng(1).standard_normal(MORE + 1)

        def trial(error: float) -> None:
            asked = study.ask(space)
            study.tell(asked, _truth(np.array(list(asked.params.values()))) + error)

        return np.array([timed(trial, float(error))[1] for error in errors])[1:]

    rules = [(f"for {one}", KernelBoundsSampler, (problem, one)) for one in ("best", "certificate")]
    sides = [lambda c=kind, a=arguments: further(c(*a)) for _, kind, arguments in rules]
    *ours, theirs = fastest("samplers", *sides, lambda: further(optuna.samplers.GPSampler(seed=0)))
    return [
        share(f"samplers, {name}: a trial after {TRIALS}", one.mean(), theirs.mean(), 1.0)
        for (name, *_), one in zip(rules, ours, strict=True)
    ]


def _truth(point: Array) -> float:
    return float(1 - ((point - 0.4) ** 2).sum())
