"""Frozen bounds at the states of a horizon: time in NumPy, and agreement of PyTorch and JAX."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
import torch

import kernelbounds as kb
from benchmarks.problem import DIM, MATERN, SMOOTH, Array, Problem
from benchmarks.report import Row, agreement, seconds
from benchmarks.timing import fastest, once

OBSERVATIONS, STATES, CALLS = 300, 50, 20
MOST_MILLISECONDS, FURTHEST_APART = 2.0, 1e-8


def run() -> list[Row]:
    rows = []
    for name, kernel in (("Matern-5/2", MATERN), ("RBF", SMOOTH)):
        problem = Problem.of(kernel)
        sequence = problem.sequence(kb.CMM())
        rng = np.random.default_rng(1)
        X = rng.random((OBSERVATIONS, DIM))
        sequence.update(X, problem.truth(X) + problem.noise[:OBSERVATIONS])
        frozen, states = sequence.frozen(), rng.random((STATES, DIM))

        def called(function: Callable[[Array], object], states: Array = states) -> None:
            for _ in range(CALLS):
                function(states)

        title = f"frozen, {name}, {STATES} states, t = {OBSERVATIONS}"
        calls = (frozen.bounds, frozen.bounds_and_gradients, sequence.bounds)
        *ours, rival = (float(one.sum()) / CALLS for one in fastest(
            title, *(once(called, call) for call in calls)))  # fmt: skip
        for what, took in zip(("bounds", "with gradients"), ours, strict=True):
            target = ("<=", MOST_MILLISECONDS)
            rows.append(
                Row(f"{title}: {what}", seconds(took), seconds(rival), 1e3 * took, "ms", target)
            )
        expected = np.concatenate(frozen.bounds(states))
        for library, found in others(frozen, states).items():
            apart = np.abs(found - expected).max()
            rows.append(agreement(f"{title}: {library}, |difference|", apart, FURTHEST_APART))
    return rows


def others(frozen: kb.Frozen, states: Array) -> dict[str, Array]:
    """Lower and upper bounds, one after the other, in each of the other libraries there are."""
    found = {"PyTorch": torch.cat(frozen.bounds(torch.asarray(states))).numpy()}
    if importlib.util.find_spec("jax"):
        import jax

        with jax.enable_x64(True):
            compiled = jax.jit(frozen.bounds)
            found["JAX"] = np.concatenate(compiled(jax.numpy.asarray(states)))
    return found
