"""Why bands of Gaussian processes are not guarantees: coverage under adaptive sampling.

A rule measures where mean + 2 standard deviations is largest, as Bayesian optimisation does. After
every fifth round we ask whether the truth is inside the band at all of 101 points, for mean ± 2 and
± 3 standard deviations of the Gaussian process and for the bounds of this library, from the same
data.

python examples/coverage.py --out docs/images      # about a minute
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

KERNEL, B, SIGMA, DELTA = Matern(length_scale=0.2, nu=2.5), 5.0, 0.2, 0.05
GRID = np.linspace(0, 1, 101)[:, None]
EVERY = 5
DEVIATIONS = (2.0, 3.0)


def play(rounds: int, rng: np.random.Generator) -> np.ndarray:
    """For each band and each fifth round, whether the truth was outside of it somewhere."""
    centres, weights = rng.random((20, 1)), rng.standard_normal(20)
    f = kb.RKHSFunction(KERNEL, centres, weights).rescaled(B)(GRID)
    seq = kb.ConfidenceSequence(KERNEL, B, SIGMA, DELTA)
    chosen = rng.integers(len(GRID))
    outside = []
    for done in range(1, rounds + 1):
        seq.update(GRID[chosen], f[chosen] + SIGMA * rng.standard_normal())
        process = kb.plot.gaussian_process(seq, DEVIATIONS[0])
        low, high = process(GRID)
        chosen = int(np.argmax(high))
        if done % EVERY:
            continue
        middle, half = (low + high) / 2, (high - low) / 2
        lower, upper = seq.bounds(GRID)
        misses = [np.any(np.abs(f - middle) > half * d / DEVIATIONS[0]) for d in DEVIATIONS]
        outside.append([*misses, np.any((f < lower) | (f > upper))])
    return np.array(outside).T


def main() -> None:
    """Count, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    seeds = np.random.SeedSequence(0).spawn(arguments.runs)
    outside = np.array([play(arguments.rounds, np.random.default_rng(seed)) for seed in seeds])
    now = 100 * outside.mean(axis=0)
    ever = 100 * np.maximum.accumulate(outside, axis=2).mean(axis=0)
    names = [f"Gaussian process ±{d:g} sd" for d in DEVIATIONS] + ["kernelbounds, δ = 0.05"]
    print(f"truth outside the band somewhere, % of {arguments.runs} runs")
    print("| band | after the last round | at some look |")
    print("|---|---|---|")
    for name, last, some in zip(names, now[:, -1], ever[:, -1], strict=True):
        print(f"| {name} | {last:.1f} | {some:.1f} |")

    looks = np.arange(EVERY, arguments.rounds + 1, EVERY)
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 3.8), sharey=True, layout="constrained")
    titles = "Truth outside the band now, % of runs", "Outside at this or an earlier look"
    for axis, shares, title in zip(axes, (now, ever), titles, strict=True):
        for share, name, colour in zip(
            shares, names, ("#c46210", "#4b8b3b", "#0014a8"), strict=True
        ):
            axis.plot(looks, share, "o-", color=colour, markersize=4, label=name)
        axis.axhline(100 * DELTA, color="black", linewidth=1, linestyle="--", label="5 % allowed")
        axis.set(ylim=(-2, 102), xlabel="rounds", title=title)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=9)
    figure.savefig(arguments.out / "ideas-coverage.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
