"""Search with a sampler that knows what is certain."""

from __future__ import annotations

import optuna
import optunahub
from optuna.distributions import FloatDistribution

module = optunahub.load_module(package="samplers/kernelbounds")
space = {"x": FloatDistribution(-5, 5), "y": FloatDistribution(-5, 5)}
# What is known before the first trial: a plausible range, the noise, a kernel and a norm bound.
problem = module.problem_of(space, "loss=0:90", noise=0.1, kernel="RBF(1.5)", norm_bound=1000.0)


def objective(trial: optuna.Trial) -> float:
    """Return the square of the distance from a point."""
    x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)
    return (x - 1) ** 2 + (y + 2) ** 2


if __name__ == "__main__":
    study = optuna.create_study(sampler=module.KernelBoundsSampler(problem))
    study.optimize(objective, n_trials=20)
    print(study.best_trial.params, study.best_trial.value)
