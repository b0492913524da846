"""Draw the four ideas of docs/ideas/assumptions.md: norm, length scale, ridge, noise.

python examples/ideas.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

COLOURS = ["#0014a8", "#4b8b3b", "#c46210"]
X = np.linspace(0, 1, 401)[:, None]


def interpolant(kernel: Matern, values: np.ndarray, points: np.ndarray) -> kb.RKHSFunction:
    """The function of the smallest norm with these values."""
    return kb.RKHSFunction(kernel, points, np.linalg.solve(kernel(points), values))


def draw_norms(axis: Axes) -> None:
    """Three functions of the same height and of norm 1, 3 and 10, under one kernel."""
    kernel = Matern(length_scale=0.3, nu=2.5)
    points = np.linspace(0, 1, 41)[:, None]

    def wave(cycles: float) -> kb.RKHSFunction:
        return interpolant(kernel, np.sin(2 * np.pi * cycles * (points[:, 0] - 0.5)), points)

    one = kb.RKHSFunction(kernel, [[0.5]], [1.0])
    cycles = [brentq(lambda c, n=n: wave(c).norm - n, 0.5, 6) for n in (3, 10)]
    for f, colour in zip([one, *map(wave, cycles)], COLOURS, strict=True):
        axis.plot(X, f(X), color=colour, label=f"norm {f.norm:.0f}")
    axis.set_title("Norm: the same height, more and faster turns")
    axis.set_ylim(-1.1, 1.45)


def draw_length_scales(axis: Axes) -> None:
    """Functions of norm 3 with the same centres and weights, for three length scales."""
    rng = np.random.default_rng(3)
    centres, weights = rng.random((12, 1)), rng.standard_normal(12)
    for scale, colour in zip((1.0, 0.3, 0.1), COLOURS, strict=True):
        f = kb.RKHSFunction(Matern(scale, nu=2.5), centres, weights).rescaled(3.0)
        axis.plot(X, f(X), color=colour, label=f"length scale {scale:g}")
    axis.set_title("Length scale: three functions of norm 3")
    axis.set_ylim(-2.2, 3.1)


def draw_ridges(axis: Axes) -> None:
    """The same noisy data, fitted with three ridges."""
    rng = np.random.default_rng(0)
    kernel = Matern(length_scale=0.2, nu=2.5)
    points = np.linspace(0.02, 0.98, 15)[:, None]
    outcomes = np.sin(2 * np.pi * points[:, 0]) + 0.3 * rng.standard_normal(15)
    axis.plot(points, outcomes, "k.", markersize=7, label="data")
    for ridge, colour in zip((10.0, 0.3, 1e-4), COLOURS, strict=True):
        weights = np.linalg.solve(kernel(points) + ridge * np.eye(15), outcomes)
        f = kb.RKHSFunction(kernel, points, weights)
        axis.plot(X, f(X), color=colour, label=f"ridge {ridge:g}: norm {f.norm:.1f}")
    axis.set_title("Ridge: smooth and far, or wild and close")
    axis.set_ylim(-2.0, 3.1)


def draw_tails(axis: Axes) -> None:
    """The probability of large noise, against the tail that sigma = 1 allows."""
    t = np.linspace(0, 6, 601)
    axis.fill_between(t, np.minimum(1, 2 * np.exp(-(t**2) / 2)), 1e-9, color="#e3e6f5")
    axis.text(2.25, 2e-6, "within what σ = 1 allows", color="#5560a0", fontsize=9)
    axis.plot(t, 2 * norm.sf(t), color=COLOURS[0], label="Gaussian")
    uniform = np.maximum(1 - t / np.sqrt(3), 1e-12)
    axis.plot(t, uniform, color=COLOURS[1], label="uniform")
    axis.plot([0, 1, 1], [1, 1, 1e-9], color="#0a7e8c", label="two values, ±1")
    axis.plot(t, np.exp(-np.sqrt(2) * t), "--", color="#9b2335", label="Laplace: no σ is enough")
    outliers = 0.99 * 2 * norm.sf(t / 0.71) + 0.01 * 2 * norm.sf(t / 7.1)
    axis.plot(t, outliers, ":", color="#9b2335", label="1 % outliers: σ = 1 is too small")
    axis.set_yscale("log")
    axis.set_ylim(1e-6, 3)
    axis.set_title("Sub-Gaussian: noises of standard deviation 1")
    axis.set_xlabel("t")
    axis.set_ylabel("probability that |noise| > t")


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for ideas.png")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7), layout="constrained")
    draw_norms(axes[0, 0])
    draw_length_scales(axes[0, 1])
    draw_ridges(axes[1, 0])
    draw_tails(axes[1, 1])
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0)
        axis.title.set_fontsize(11)
    for axis, columns in zip(axes.flat, (3, 3, 2), strict=False):
        axis.set_xlabel("x")
        axis.set_ylabel("f(x)")
        axis.axhline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
        axis.legend(frameon=False, fontsize=9, ncols=columns, loc="upper left")
    axes[1, 1].legend(frameon=False, fontsize=9, loc="upper right")
    figure.savefig(arguments.out / "ideas.png", dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
