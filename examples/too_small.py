"""What a norm bound that is a little too small does: docs/how-to/how-wrong.md.

python examples/too_small.py
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

KERNEL = Matern(length_scale=0.2, nu=2.5)
NORM, NOISE, DELTA = 3.0, 0.2, 0.1
GRID = np.linspace(0, 1, 101)[:, None]


def played(factor: float, seed: int, rounds: int) -> tuple[bool, bool]:
    """Whether any bound was ever wrong, and whether the data refuted B = factor times the norm."""
    rng = np.random.default_rng(seed)
    function = kb.RKHSFunction(KERNEL, rng.random((8, 1)), rng.standard_normal(8))
    truth = function.rescaled(NORM)(GRID)
    seq = kb.ConfidenceSequence(KERNEL, factor * NORM, NOISE, delta=DELTA)
    chosen, wrong = int(rng.integers(len(GRID))), False
    for _ in range(rounds):
        seq.update(GRID[chosen], truth[chosen] + NOISE * rng.choice([-1.0, 1.0]))
        try:
            lower, upper = seq.bounds(GRID)
        except kb.EmptyConfidenceSetError:
            return wrong, True
        wrong = wrong or bool(np.any((truth < lower) | (truth > upper)))
        chosen = int(np.argmax(upper))  # as KernelUCB does
    return wrong, False


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    print(f"| B / norm of f* | wrong in, of {given.runs} | refuted | wrong, and never refuted |")
    print("|---|---|---|---|")
    for factor in (1.0, 0.98, 0.95, 0.9, 0.8):
        found = np.array([played(factor, seed, given.rounds) for seed in range(given.runs)])
        wrong, refuted = found.T
        unnoticed = np.sum(wrong & ~refuted)
        print(f"| {factor:g} | {wrong.sum()} | {refuted.sum()} | {unnoticed} |", flush=True)


if __name__ == "__main__":
    main()
