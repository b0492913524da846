"""One step at t = 1000 against Gaussian-process libraries that refit at every step."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

import kernelbounds as kb
from benchmarks.problem import MATERN, ROUNDS, Array, Problem, Run, play
from benchmarks.report import Row, faster, progress

LOOPS, REFITS = 5, 2  # alternately, so each rival is the median of 10 refits
LAST = 100  # rounds; our step is their mean, so it pays its part of each decomposition


def run() -> list[Row]:
    problem = Problem.of(MATERN)
    points = problem.candidates[-1]
    rivals: dict[str, tuple[Callable[[Problem, Run, Array], object], float]] = {
        "scikit-learn": (_scikit_learn, 3.0)
    }
    if importlib.util.find_spec("botorch"):
        rivals["BoTorch"] = (_botorch, 6.0)

    ours: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for loop in range(LOOPS):
        progress(f"step: CMM loop and refits of {' and '.join(rivals)}, {loop + 1} of {LOOPS}")
        data = play(problem, kb.CMM(), greedy=True)
        ours.append(data.times[-LAST:].mean())
        for name, (refit, _) in rivals.items():
            if not loop:
                refit(problem, data, points)  # imports and caches
            for _ in range(REFITS):
                start = time.perf_counter()
                refit(problem, data, points)
                times[name].append(time.perf_counter() - start)

    step = float(np.median(ours))
    rows = [
        faster(f"step at t = {ROUNDS}: {name}", step, float(np.median(times[name])), target)
        for name, (_, target) in rivals.items()
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
