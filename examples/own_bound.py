"""A bound of one's own beside the paper's: docs/how-to/own-bounds.md.

python examples/own_bound.py --out docs/images
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb
from kernelbounds.bounds import ConfidenceSet

ROUNDS, SEEDS = 300, 5
NORM, NOISE, DELTA = 10.0, 0.1, 0.01


@dataclass(frozen=True)
class TwoMixtures(kb.Bound):
    """AMM at one ridge, with the smaller of the radii of several mixture scales c.

    Each radius holds at all times with probability 1 - delta/n, so all n do with 1 - delta.
    """

    scales: tuple[float, ...] = (0.03, 1.0)
    ridge: float = 0.1

    def extremes(
        self, known: ConfidenceSet, points: np.ndarray, signs: Sequence[int]
    ) -> np.ndarray:
        """See :class:`kernelbounds.Bound`."""
        a = known.assumptions
        # Outcomes without noise are 1e-6-sub-Gaussian too.
        variance = max(a.noise_scale, 1e-6) ** 2
        radius = min(
            known.energy_above(variance / c) + variance * known.log_det_above(variance / c)
            for c in self.scales
        )
        radius += 2 * variance * np.log(len(self.scales) / a.delta)
        found = known.predict(points, np.array([self.ridge]))
        squared = radius + self.ridge * a.norm_bound**2 - found.energy[0]
        width = np.sqrt(max(squared, 0.0) / self.ridge * found.variance[0])
        return np.array([sign * found.mean[0] + width for sign in signs])


BOUNDS = {"CMM": kb.CMM(), "AMM": kb.AMM(), "AY": kb.AY(), "TwoMixtures": TwoMixtures()}
COLOURS = {"CMM": "#0014a8", "AMM": "#4b8b3b", "AY": "#c46210", "TwoMixtures": "#d6249f"}


def regret(bound: kb.Bound, seed: int, rounds: int) -> np.ndarray:
    """Cumulative regret of KernelUCB on one of the paper's problems, d = 3."""
    problem = kb.SyntheticProblem.draw(
        Matern(length_scale=0.5, nu=2.5), 3, np.random.default_rng([0, seed, 0])
    )
    policy = kb.KernelUCB(problem.sequence(bound, rounds=rounds))
    trace = kb.simulate(policy, problem, rounds, np.random.default_rng([0, seed, 1]))
    return np.cumsum(trace.regret)


def draw(curves: dict[str, np.ndarray], file: Path) -> None:
    """Bands on one function, and the regret that they lead to."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10.5, 3.9), layout="constrained")
    rng = np.random.default_rng(1)
    kernel, grid = Matern(length_scale=0.5, nu=1.5), np.linspace(0, 1, 301)[:, None]
    truth = kb.RKHSFunction(kernel, rng.random((20, 1)), rng.standard_normal(20)).rescaled(NORM)
    points = np.sort(0.05 + 0.6 * rng.random((20, 1)), axis=0)
    sequence = kb.ConfidenceSequence(kernel, NORM, NOISE, DELTA)
    sequence.update(points, truth(points) + NOISE * rng.standard_normal(20))
    for name, bound in BOUNDS.items():
        lower, upper = sequence.bounds(grid, bound)
        middle = truth(grid)
        for end, label in ((lower, name), (upper, None)):
            left.plot(grid, end - middle, color=COLOURS[name], linewidth=1.5, label=label)
    left.axhline(0, color="black", linestyle="--", linewidth=1)
    left.plot(points, np.zeros(20), "k|", markersize=9, label="data")
    left.set_xlabel("x")
    left.set_ylabel("bound − f*(x)")
    left.set_title("Bands around the truth, 20 observations", fontsize=11)
    for name, found in curves.items():
        mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1) if len(found) > 1 else 0.0
        rounds = 1 + np.arange(len(mean))
        right.plot(rounds, mean, color=COLOURS[name], linewidth=1.5)
        right.fill_between(
            rounds, mean - spread, mean + spread, color=COLOURS[name], alpha=0.15, linewidth=0
        )
    right.set_ylim(bottom=0)
    right.set_xlabel("round")
    right.set_ylabel("cumulative regret")
    right.set_title(f"The paper's problem, {len(found)} seeds: mean ± std", fontsize=11)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0)
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def main() -> None:
    """Check the bound, run all of them, print a table and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for own-bounds.png")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(f"TwoMixtures: {kb.check_bound(TwoMixtures())}")
    curves = {
        name: np.array([regret(bound, seed, arguments.rounds) for seed in range(arguments.seeds)])
        for name, bound in BOUNDS.items()
    }
    print(
        f"\n| bound | regret after {arguments.rounds} rounds, {arguments.seeds} seeds |\n|---|---|"
    )
    for name, found in curves.items():
        spread = found[:, -1].std(ddof=1) if len(found) > 1 else 0.0
        print(f"| {name} | {found[:, -1].mean():.1f} ± {spread:.1f} |")
    draw(curves, arguments.out / "own-bounds.png")


if __name__ == "__main__":
    main()
