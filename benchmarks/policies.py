"""Policies of the literature beside ours: regret on the way, and of the action they recommend.

All play the same problems on the same finite set, with the same noise. The command ``python -m
benchmarks.policies`` prints the table of ``docs/how-to/bandits.md``, in about two minutes, and
fails if a certificate is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from benchmarks.problem import Array
from kernelbounds.bandits import BatchedElimination, PartitionedUCB, Policy, VarianceReduction

KERNELS = {"RBF": RBF(0.3), "Matern-3/2": Matern(0.3, nu=1.5)}
DIM, NORM, NOISE, ACTIONS, ROUNDS, SEEDS = 2, 5.0, 0.1, 400, 150, 6


def policies(kernel: RBF | Matern) -> dict[str, Callable[..., Policy]]:
    # The smoothness of RBF is infinite, with which no cell is ever cut: it is played with that of
    # a Matern-5/2 kernel, so that there is something to compare.
    nu = kernel.nu if isinstance(kernel, Matern) else 2.5
    return {
        "KernelUCB": kb.KernelUCB,
        "KernelLUCB": kb.KernelLUCB,
        "VarianceReduction": VarianceReduction,
        "BatchedElimination": partial(BatchedElimination, rounds=ROUNDS),
        "PartitionedUCB": partial(PartitionedUCB, nu=nu),
        "RandomPolicy": kb.RandomPolicy,
    }


def play(make: Callable[..., Policy], kernel: RBF | Matern, seed: int) -> Array:
    """Play one problem, and return the cumulative, the simple and the certified regret."""
    rng = np.random.default_rng(seed)
    problem = kb.SyntheticProblem.draw(kernel, DIM, rng, norm=NORM, noise_scale=NOISE)
    actions, noise = rng.random((ACTIONS, DIM)), NOISE * rng.standard_normal(ROUNDS)
    values = problem.values(actions)
    # The norm of the function is rounded, and the bound must not be below it.
    policy = make(kb.ConfidenceSequence(kernel, NORM * (1 + 1e-12), NOISE), kb.Finite(actions))
    regrets = values.max() - values
    lost = 0.0
    for t in range(ROUNDS):
        at = policy.ask().index
        lost += regrets[at]
        policy.tell(actions[at], float(values[at]) + noise[t])
    found = policy.certificate()
    return np.array([lost, regrets[found.index], found.regret])


def main() -> int:
    wrong = 0
    print(f"{'':30}{'cumulative':>16}{'simple':>18}{'certified':>16}")
    for problem, kernel in KERNELS.items():
        for name, make in policies(kernel).items():
            found = np.array([play(make, kernel, seed) for seed in range(SEEDS)])
            wrong += int((found[:, 1] > found[:, 2]).sum())
            errors = found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
            cells = zip(found.mean(axis=0), errors, (1, 4, 3), strict=True)
            texts = [f"{mean:.{digits}f} +- {error:.{digits}f}" for mean, error, digits in cells]
            print(f"{problem:11}{name:19}" + "".join(f"{text:>17}" for text in texts), flush=True)
    print(f"{wrong} certificates were wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
