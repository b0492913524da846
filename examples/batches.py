"""Batches: four benches in parallel, against one bench, by the clock and by the trial.

python examples/batches.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

KERNEL, B, NOISE = Matern(length_scale=0.5, nu=2.5), 4.0, 0.1
SIDE = 21


def play(batch: int, trials: int, seed: int) -> list[float]:
    """The certified regret after each batch, for a random function of norm B."""
    rng = np.random.default_rng(seed)
    f = kb.RKHSFunction(KERNEL, rng.random((20, 2)), rng.standard_normal(20)).rescaled(0.8 * B)
    axes = np.linspace(0, 1, SIDE)
    points = np.stack(np.meshgrid(axes, axes), axis=-1).reshape(-1, 2)
    ucb = kb.KernelUCB(kb.ConfidenceSequence(KERNEL, B, NOISE), kb.Finite(points))
    regrets = []
    for _ in range(trials // batch):
        asked = ucb.ask(n=batch)  # a list, to be tried at the same time
        X = np.array([one.x for one in asked])
        ucb.tell(X, f(X) + NOISE * rng.standard_normal(batch))
        regrets.append(ucb.certificate().regret)
    return regrets


def main() -> None:
    """Play, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--problems", type=int, default=5)
    parser.add_argument("--trials", type=int, default=80)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(10, 4), sharey=True, layout="constrained"
    )
    for batch, colour in ((1, "#0014a8"), (4, "#c46210")):
        runs = [play(batch, arguments.trials, seed) for seed in range(arguments.problems)]
        mean = np.mean(runs, axis=0)
        hours = np.arange(1, len(mean) + 1)
        name = "one bench" if batch == 1 else f"{batch} benches"
        print(f"{name}: certified within {mean[-1]:.2f} after {hours[-1]} hours")
        left.plot(hours, mean, color=colour, label=name)
        right.plot(batch * hours, mean, color=colour, label=name)
    left.set(xlabel="hours, one for each batch", ylabel="certified regret", yscale="log")
    right.set(xlabel="trials")
    ticks = [0.2, 0.5, 1, 2, 5]
    left.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    left.set_title("By the clock")
    right.set_title("By the trial")
    left.legend(frameon=False)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(arguments.out / "gallery-batches.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
