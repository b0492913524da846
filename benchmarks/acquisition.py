"""A bound as a BoTorch acquisition function, with gradients, against the bound in NumPy without."""

from __future__ import annotations

import numpy as np
import torch

import kernelbounds as kb
from benchmarks.problem import CANDIDATES, DIM, MATERN, SMOOTH, Problem
from benchmarks.report import Row, agreement, share
from benchmarks.timing import fastest, once
from kernelbounds.integrations.botorch import ConfidenceBound

OBSERVATIONS, CALLS = 500, 20


def run() -> list[Row]:
    rows = []
    for name, kernel in (("Matern-5/2", MATERN), ("RBF", SMOOTH)):
        problem = Problem.of(kernel)
        sequence = problem.sequence(kb.CMM())
        X = np.random.default_rng(1).random((OBSERVATIONS, DIM))
        sequence.update(X, problem.truth(X) + problem.noise[:OBSERVATIONS])
        points = problem.candidates[0]
        tensor = torch.tensor(points[:, None], requires_grad=True)
        acquisition = ConfidenceBound(sequence)
        difference = acquisition(tensor).detach().numpy() - sequence.upper(points)

        def with_gradients(acquisition=acquisition, tensor=tensor) -> None:  # type: ignore[no-untyped-def]
            for _ in range(CALLS):
                torch.autograd.grad(acquisition(tensor).sum(), tensor)

        def values(sequence=sequence, points=points) -> None:  # type: ignore[no-untyped-def]
            for _ in range(CALLS):
                sequence.upper(points)

        title = f"acquisition, {name}, {CANDIDATES} points, t = {OBSERVATIONS}"
        ours, rival = fastest(title, once(with_gradients), once(values))
        rows += [
            share(f"{title} / NumPy", ours.sum() / CALLS, rival.sum() / CALLS, 3.0),
            agreement(f"{title}: |difference|", np.abs(difference).max(), 1e-8),
        ]
    return rows
