"""One step at t = 1000 against Gaussian-process libraries that refit at every step."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from sklearn.gaussian_process import GaussianProcessRegressor

import kernelbounds as kb
from benchmarks.problem import MATERN, ROUNDS, Array, Problem, Run, play
from benchmarks.report import Row, faster
from benchmarks.timing import Side, fastest, once

LAST_ROUNDS = 100  # rounds; our step is their mean, so it pays its part of each decomposition


def run() -> list[Row]:
    problem = Problem.of(MATERN)
    data, points = play(problem, kb.CMM(), greedy=True), problem.candidates[-1]
    rivals: dict[str, tuple[Callable[[Problem, Run, Array], object], float]] = {
        "scikit-learn": (_scikit_learn, 3.0)
    }
    if importlib.util.find_spec("botorch"):
        rivals["BoTorch"] = (_botorch, 6.0)

    def side(refit: Callable[[Problem, Run, Array], object]) -> Side:
        refit(problem, data, points)  # imports and caches
        return once(refit, problem, data, points)

    ours, *theirs = fastest(
        f"step: CMM loop and refits of {' and '.join(rivals)}",
        lambda: play(problem, kb.CMM(), greedy=True).times[-LAST_ROUNDS:],
        *(side(refit) for refit, _ in rivals.values()),
    )
    rows = [
        faster(f"step at t = {ROUNDS}: {name}", ours.sum() / LAST_ROUNDS, times.sum(), target)
        for (name, (_, target)), times in zip(rivals.items(), theirs, strict=True)
    ]
    if "BoTorch" not in rivals:
        title = f"step at t = {ROUNDS}: BoTorch"
        rows.append(Row(title, "", "not installed", None, "times faster", (">=", 6.0)))
    return rows


def _scikit_learn(problem: Problem, data: Run, points: Array) -> tuple[Array, Array]:
    model = GaussianProcessRegressor(problem.kernel, alpha=problem.ridge, optimizer=None)
    model.fit(data.points, data.outcomes)
    mean, deviation = model.predict(points, return_std=True)
    return mean, deviation**2


def _botorch(problem: Problem, data: Run, points: Array) -> tuple[Array, Array]:
    import gpytorch
    import torch
    from botorch.models import SingleTaskGP

    torch.set_num_threads(1)
    kernel = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=None)
    kernel.lengthscale = problem.kernel.length_scale
    outcomes = torch.from_numpy(data.outcomes)[:, None]
    model = SingleTaskGP(
        torch.from_numpy(data.points),
        outcomes,
        torch.full_like(outcomes, problem.ridge),
        covar_module=kernel.double(),
        mean_module=gpytorch.means.ZeroMean(),
        outcome_transform=None,
    )
    model.eval()
    with torch.no_grad():
        posterior = model.posterior(torch.from_numpy(points))
        return posterior.mean[:, 0].numpy(), posterior.variance[:, 0].numpy()
