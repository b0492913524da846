"""Certified regret by differences beside the largest upper minus the best lower bound.

KernelUCB plays 625 points in two dimensions, on functions of norm B of three kernels.

python examples/differences.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

import kernelbounds as kb

FAMILIES: dict[str, Kernel] = {
    "Matérn-5/2, ℓ = 0.4": Matern(length_scale=0.4, nu=2.5),
    "RBF, ℓ = 0.3": RBF(length_scale=0.3),
    "Matérn-3/2, ℓ = 0.2": Matern(length_scale=0.2, nu=1.5),
}
NORM, NOISE, DELTA = 5.0, 0.1, 0.01
ROUNDS, SEEDS, SIDE = 100, 3, 25
AT = (40, 100)  # rounds of the table
EVERY = 5  # rounds between certificates
BLUE, ORANGE, GREEN = "#0014a8", "#c46210", "#4b8b3b"


def play(kernel: Kernel, seed: int, rounds: int, side: int) -> np.ndarray:
    """Certified regret by bounds, by differences, and the true one; (certificates, 3)."""
    axis = np.linspace(0, 1, side)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    rng = np.random.default_rng([seed, side])
    truth = kb.RKHSFunction(kernel, rng.random((20, 2)), rng.standard_normal(20)).rescaled(NORM)
    values = truth(points)
    policy = kb.KernelUCB(kb.ConfidenceSequence(kernel, NORM, NOISE, DELTA), kb.Finite(points))
    found = []
    for t in range(1, rounds + 1):
        at = policy.ask().index
        policy.tell(points[at], values[at] + NOISE * rng.standard_normal())
        if t % EVERY == 0:
            c = policy.certificate()
            apart = c.max_upper - policy.sequence.lower(points).max()
            found.append([apart, c.regret, values.max() - values[c.index]])
    return np.array(found)


def draw_one(axis) -> None:
    """Upper bounds on f(x) - f(z) in one dimension, by bounds and by the difference."""
    rng = np.random.default_rng(4)
    kernel, grid = Matern(length_scale=0.3, nu=2.5), np.linspace(0, 1, 201)[:, None]
    truth = kb.RKHSFunction(kernel, rng.random((20, 1)), rng.standard_normal(20)).rescaled(NORM)
    points = rng.random((12, 1))
    sequence = kb.ConfidenceSequence(kernel, NORM, NOISE, DELTA)
    sequence.update(points, truth(points) + NOISE * rng.standard_normal(12))
    lower, upper = sequence.bounds(grid)
    best = int(np.argmax(lower))
    differences = [kb.functionals.Difference(x, grid[best]) for x in grid]
    _, of_difference = sequence.bounds_of(differences)
    axis.plot(grid, upper - lower[best], color=ORANGE, label="upper(x) − lower(x̂)")
    axis.plot(grid, of_difference, color=BLUE, label="upper bound on f*(x) − f*(x̂)")
    axis.plot(grid, truth(grid) - truth(grid)[best], "k--", linewidth=1, label="f*(x) − f*(x̂)")
    axis.plot(points, np.full(12, axis.get_ylim()[0]), "k|", markersize=9)
    axis.axvline(grid[best, 0], color="black", linewidth=0.5)
    for values, colour in ((upper - lower[best], ORANGE), (of_difference, BLUE)):
        axis.axhline(values.max(), color=colour, linewidth=0.7, linestyle=":")
    axis.set_xlabel("x; the vertical line is x̂, the ticks are 12 observations")
    axis.set_title("One function: the dotted lines certify the regret", fontsize=11)
    axis.set_ylim(top=2.6)
    axis.legend(frameon=False, fontsize=9, loc="upper left")
    axis.margins(x=0)


def draw(curves: dict[str, np.ndarray], file: Path) -> None:
    """What a difference is worth at each point, and in each round."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10.5, 4.0), layout="constrained")
    draw_one(left)
    for (name, found), colour in zip(curves.items(), (BLUE, GREEN, ORANGE), strict=True):
        rounds = EVERY * (1 + np.arange(found.shape[1]))
        right.plot(rounds, found[:, :, 0].mean(axis=0), "--", color=colour)
        right.plot(rounds, found[:, :, 1].mean(axis=0), color=colour, label=name)
    right.set_yscale("log")
    right.set_yticks(ticks := [0.1, 0.2, 0.5, 1, 2, 5], list(map(str, ticks)))
    right.minorticks_off()
    right.set_xlabel("round")
    right.set_ylabel("certified regret")
    right.set_title("KernelUCB: by differences (lines), by bounds (dashed)", fontsize=11)
    right.legend(frameon=False, fontsize=9)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def main() -> None:
    """Print the table and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for functionals.png")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--side", type=int, default=SIDE, help="points on each side of the square")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    curves = {}
    print("| kernel | round | max upper − lower | by differences | ratio | true regret |")
    print("|---|---|---|---|---|---|")
    for name, kernel in FAMILIES.items():
        runs = [play(kernel, s, arguments.rounds, arguments.side) for s in range(arguments.seeds)]
        curves[name] = np.array(runs)
        for t in AT:
            if t <= arguments.rounds:
                apart, regret, true = curves[name][:, t // EVERY - 1].mean(axis=0)
                cells = f"{apart:.2f} | {regret:.2f} | {regret / apart:.2f} | {true:.3f}"
                print(f"| {name} | {t} | {cells} |")
    draw(curves, arguments.out / "functionals.png")


if __name__ == "__main__":
    main()
