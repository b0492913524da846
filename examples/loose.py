"""What it costs to state B or sigma larger than they are, and what the data say about them.

Bands of CMM around the paper's test functions (Matérn-5/2, length scale 0.5, three inputs in
[0, 1], norm 10, Gaussian noise of 0.1, delta 0.01), on the same random points with assumptions
that are right, twice and four times too large, and with a smaller delta; with the default radius
and with the paper's, c = 1.
``docs/how-to/assumptions.md`` quotes what it prints.

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
MIXTURES = {"Hybrid()": kb.mixtures.Hybrid(), "Single(1)": kb.mixtures.Single(1.0)}


def data(seed: int, observations: int) -> tuple[np.ndarray, np.ndarray]:
    """Random points and noisy values there of a random function with the norm stated."""
    rng = np.random.default_rng(seed)
    f = kb.RKHSFunction(KERNEL, rng.random((20, DIM)), rng.standard_normal(20)).rescaled(NORM)
    x = rng.random((observations, DIM))
    return x, f(x) + NOISE * rng.standard_normal(observations)


def width(
    mixture: kb.mixtures.Mixture,
    x: np.ndarray,
    y: np.ndarray,
    norm_bound: float,
    noise_scale: float,
    delta: float = 0.01,
) -> float:
    """The mean width of the band at 100 random points."""
    sequence = kb.ConfidenceSequence(KERNEL, norm_bound, noise_scale, delta, mixture=mixture)
    sequence.update(x, y)
    lower, upper = sequence.bounds(np.random.default_rng(1).random((100, DIM)))
    return float(np.mean(upper - lower))


def costs(mixture: kb.mixtures.Mixture, count: int, seeds: range) -> list[str]:
    """The mean width with the right assumptions, and the factors of looser ones on it."""

    def widths(norm_bound: float, noise_scale: float, delta: float = 0.01) -> np.ndarray:
        found = [width(mixture, *data(s, count), norm_bound, noise_scale, delta) for s in seeds]
        return np.array(found)

    right = widths(NORM, NOISE)
    cells = [f"{np.mean(right):.2f}"]
    for b, s in BELIEFS.values():
        cells.append(f"{np.mean(widths(b * NORM, s * NOISE) / right):.2f}")
    return [*cells, f"{np.mean(widths(NORM, NOISE, delta=1e-4) / right):.2f}"]


def lower_bounds(counts: list[int]) -> None:
    """Print what the data of the first problem say about B and sigma, by mixture."""
    mixtures = {"Hybrid()": kb.mixtures.Hybrid()}
    mixtures |= {f"Single({c:g})": kb.mixtures.Single(c) for c in (0.01, 0.1, 1.0, 10.0, 100.0)}
    print("\nnorm_lower_bound, the true norm being 10, and noise_lower_bound, the true sigma 0.1\n")
    print("| | observations | " + " | ".join(f"`{name}`" for name in mixtures) + " |")
    print("|---|---|" + "---|" * len(mixtures))
    for what, belief, digits in (
        ("norm_lower_bound", (2 * NORM, NOISE), 1),
        ("noise_lower_bound", (NORM, NOISE), 3),
    ):
        for count in counts:
            cells = []
            for mixture in mixtures.values():
                sequence = kb.ConfidenceSequence(KERNEL, *belief, mixture=mixture)
                sequence.update(*data(0, count))
                cells.append(f"{getattr(sequence, what):.{digits}f}")
            print(f"| `{what}` | {count} | " + " | ".join(cells) + " |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10)
    parser.add_argument("--observations", type=int, nargs="*", default=[30, 100, 300])
    arguments = parser.parse_args()
    print("Mean width of the band with the right B and sigma, and by which factor it grows\n")
    print("| mixture | observations | B, σ | " + " | ".join(BELIEFS) + " | δ = 0.0001 |")
    print("|---|---|---|" + "---|" * len(BELIEFS) + "---|")
    for name, mixture in MIXTURES.items():
        for count in arguments.observations:
            cells = costs(mixture, count, range(arguments.problems))
            print(f"| `{name}` | {count} | " + " | ".join(cells) + " |")
    lower_bounds(arguments.observations)


if __name__ == "__main__":
    main()
