"""The textbook case: one wave, measured with noise, and a band that closes in on it.

python examples/textbook.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb


def wave(X: np.ndarray) -> np.ndarray:
    """The truth, which the bounds do not know."""
    return np.sin(2 * np.pi * X[:, 0])


def main() -> None:
    """Measure, print the width of the band, and draw it three times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    rng = np.random.default_rng(0)
    box = kb.Box.named(x=(0.0, 1.0))
    grid = np.linspace(0, 1, 201)[:, None]
    # One wave of height 1 has norm 4.1 under this kernel (docs/how-to/assumptions.md).
    seq = kb.ConfidenceSequence(Matern(length_scale=0.5, nu=2.5), norm_bound=5.0, noise_scale=0.2)
    counts = (5, 20) if arguments.quick else (5, 25, 200)
    figure, axes = pyplot.subplots(
        1, len(counts), figsize=(11, 3.4), sharey=True, layout="constrained"
    )
    for axis, count in zip(axes, counts, strict=True):
        X = rng.random((count - len(seq), 1))
        seq.update(X, wave(X) + 0.2 * rng.standard_normal(len(X)))
        lower, upper = seq.bounds(grid)
        inside = bool(np.all((lower <= wave(grid)) & (wave(grid) <= upper)))
        print(f"{count} measurements: ±{np.mean(upper - lower) / 2:.2f}, truth inside: {inside}")
        kb.plot.band(seq, box, axis, truth=wave)
        axis.set_title(f"{count} measurements")
    figure.savefig(arguments.out / "gallery-textbook.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
