"""What it costs to state B or sigma larger than they are, and what the data say about B.

Bands of CMM around the paper's test functions (Matérn-5/2, length scale 0.5, three inputs in
[0, 1], norm 10, Gaussian noise of 0.1, delta 0.01), on the same random points with assumptions
that are right, twice and four times too large, and with a smaller delta.
``docs/assumptions.md`` quotes what it prints.

    python examples/loose.py
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

KERNEL = Matern(length_scale=0.5, nu=2.5)
NORM, NOISE, DIM = 10.0, 0.1, 3
BELIEFS = {  # factors on B and on sigma
    "2B, σ": (2, 1),
    "4B, σ": (4, 1),
    "B, 2σ": (1, 2),
    "B, 4σ": (1, 4),
    "2B, 2σ": (2, 2),
    "4B, 4σ": (4, 4),
}


def data(seed: int, observations: int) -> tuple[np.ndarray, np.ndarray]:
    """Random points and noisy values there of a random function with the norm stated."""
    rng = np.random.default_rng(seed)
    f = kb.RKHSFunction(KERNEL, rng.random((20, DIM)), rng.standard_normal(20)).rescaled(NORM)
    x = rng.random((observations, DIM))
    return x, f(x) + NOISE * rng.standard_normal(observations)


def width(
    x: np.ndarray, y: np.ndarray, norm_bound: float, noise_scale: float, delta: float = 0.01
) -> float:
    """The mean width of the band at 100 random points."""
    sequence = kb.ConfidenceSequence(KERNEL, norm_bound, noise_scale, delta, mixture_scale=1.0)
    sequence.update(x, y)
    lower, upper = sequence.bounds(np.random.default_rng(1).random((100, DIM)))
    return float(np.mean(upper - lower))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10)
    parser.add_argument("--observations", type=int, nargs="*", default=[30, 100, 300])
    arguments = parser.parse_args()
    seeds = range(arguments.problems)

    print("Mean width of the band with the right B and sigma, and by which factor it grows\n")
    print("| observations | B, σ | " + " | ".join(BELIEFS) + " | δ = 0.0001 |")
    print("|---|---|" + "---|" * len(BELIEFS) + "---|")
    for count in arguments.observations:
        right = np.array([width(*data(seed, count), NORM, NOISE) for seed in seeds])
        cells = [f"{np.mean(right):.2f}"]
        for b, s in BELIEFS.values():
            loose = [width(*data(seed, count), b * NORM, s * NOISE) for seed in seeds]
            cells.append(f"{np.mean(loose / right):.2f}")
        surer = [width(*data(seed, count), NORM, NOISE, delta=1e-4) for seed in seeds]
        cells.append(f"{np.mean(surer / right):.2f}")
        print(f"| {count} | " + " | ".join(cells) + " |")

    scales = (0.01, 0.1, 1.0, 10.0, 100.0)
    print("\nnorm_lower_bound by mixture scale c; the true norm is 10\n")
    print("| observations | " + " | ".join(f"c = {c:g}" for c in scales) + " |")
    print("|---|" + "---|" * len(scales))
    for count in arguments.observations:
        x, y = data(0, count)
        found = []
        for c in scales:
            sequence = kb.ConfidenceSequence(KERNEL, 2 * NORM, NOISE, mixture_scale=c)
            sequence.update(x, y)
            found.append(f"{sequence.norm_lower_bound:.1f}")
        print(f"| {count} | " + " | ".join(found) + " |")


if __name__ == "__main__":
    main()
