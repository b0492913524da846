"""What a norm bound admits: functions through five exact measurements, for three values of B.

python examples/admitted.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

KERNEL = Matern(length_scale=0.3, nu=2.5)
X = np.array([[0.05], [0.25], [0.4], [0.7], [0.95]])
Y = np.array([0.2, 1.0, 0.7, -0.6, 0.1])
GRID = np.linspace(0, 1, 301)[:, None]


def through_the_data(B: float, rng: np.random.Generator) -> np.ndarray:
    """A random function of norm B that meets all measurements.

    It is the smoothest one plus a function that is zero at the measurements. The two are
    orthogonal, so their squared norms add up to the squared norm of the sum.
    """
    centres = np.vstack([X, rng.random((25, 1))])
    wild = kb.RKHSFunction(KERNEL, centres, rng.standard_normal(len(centres)))
    back = kb.RKHSFunction(KERNEL, X, np.linalg.solve(KERNEL(X), wild(X)))
    rest = np.sqrt(B**2 - smoothest().norm ** 2) / np.sqrt(wild.norm**2 - back.norm**2)
    return smoothest()(GRID) + rest * (wild(GRID) - back(GRID))


def smoothest() -> kb.RKHSFunction:
    """The function of the smallest norm with these values."""
    return kb.RKHSFunction(KERNEL, X, np.linalg.solve(KERNEL(X), Y))


def main() -> None:
    """Draw the functions and the band that contains them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--functions", type=int, default=40, help="to draw in each panel")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    rng = np.random.default_rng(1)
    print(f"The data alone need a norm of {smoothest().norm:.2f}.")
    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
    for axis, B in zip(axes, (2.0, 4.0, 8.0), strict=True):
        seq = kb.ConfidenceSequence(KERNEL, norm_bound=B, noise_scale=0.0)
        seq.update(X, Y)
        lower, upper = seq.bounds(GRID)
        axis.fill_between(GRID[:, 0], lower, upper, color="#d5daf2", linewidth=0)
        for _ in range(arguments.functions):
            f = through_the_data(B, rng)
            assert np.all((lower - 1e-6 <= f) & (f <= upper + 1e-6))
            axis.plot(GRID, f, color="#0014a8", alpha=0.25, linewidth=0.8)
        axis.plot(X, Y, "ko", markersize=5)
        axis.set_title(f"B = {B:g}: band ±{np.mean(upper - lower) / 2:.2f} on average")
        axis.set_xlabel("x")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(arguments.out / "ideas-admitted.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
