"""A long log: bounds on a pump's efficiency from a file of 200,000 rows, read in batches.

`kb.Sparse` keeps sums in place of rows, and `update_from` reads the file without loading it whole.

python examples/long_log.py --out docs/images
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb

PUMP = kb.Box.named(speed=(0.0, 1.0), valve=(0.0, 1.0))  # parts of full speed, of fully open
NOISE = 2.0  # percent
KERNEL = RBF(length_scale=0.7)


def efficiency(X: np.ndarray) -> np.ndarray:
    """Percent. It has norm 86 under this kernel; what a user would know is that 120 is enough."""
    return 80 * np.exp(-((X[:, 0] - 0.7) ** 2 + (X[:, 1] - 0.6) ** 2) / (2 * 0.6**2))


def write_log(path: Path, rows: int, rng: np.random.Generator) -> None:
    """As a logger would: one line after the other, with a column nobody needs."""
    X = np.column_stack([rng.beta(4, 2, rows), rng.beta(2, 3, rows)])
    y = efficiency(X) + NOISE * rng.standard_normal(rows)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["second", "speed", "valve", "efficiency"])
        for second, (x, outcome) in enumerate(zip(X, y, strict=True)):
            writer.writerow([second, f"{x[0]:.4f}", f"{x[1]:.4f}", f"{outcome:.2f}"])


def main() -> None:
    """Write a log, read it, and draw what it says along the speed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--rows", type=int, default=200_000)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    rng = np.random.default_rng(0)
    shares = (0.005, 0.1, 0.895)
    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
    seq = kb.ConfidenceSequence(KERNEL, 120.0, NOISE, engine=kb.Sparse(PUMP.filling(64)))
    along = np.column_stack([np.linspace(0, 1, 101), np.full(101, 0.4)])
    with tempfile.TemporaryDirectory() as folder:
        for axis, share in zip(axes, shares, strict=True):
            path = Path(folder) / "log.csv"
            write_log(path, int(share * arguments.rows), rng)
            seq.update_from(path, inputs=["speed", "valve"], output="efficiency")
            lower, upper = seq.bounds(along)
            truth = efficiency(along)
            inside = bool(np.all((lower <= truth) & (truth <= upper)))
            print(f"{len(seq)} rows: ±{np.mean(upper - lower) / 2:.2f}, truth inside: {inside}")
            axis.fill_between(along[:, 0], lower, upper, color="#d5daf2", label="99 % bounds")
            axis.plot(along[:, 0], truth, "k--", linewidth=1, label="the truth")
            axis.set(title=f"{len(seq):,} rows", xlabel="speed, valve at 0.4")
            axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("efficiency [%]")
    axes[0].legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig(arguments.out / "gallery-long-log.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
