"""How wrong the assumptions can be: docs/how-to/how-wrong.md.

python examples/how_wrong.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb

NORM, NOISE, EPSILON = 3.0, 0.05, 0.1
RUNS, OBSERVATIONS = 40, 60
DESIGNS = (10, 30, 100, 300)
GRID = np.linspace(0, 1, 201)[:, None]


def g_and_h(rng: np.random.Generator) -> tuple[kb.RKHSFunction, float]:
    """A function of norm NORM, and the phase of what is added to it, see :func:`jumps`."""
    kernel = RBF(0.25)
    g = kb.RKHSFunction(kernel, rng.random((8, 1)), rng.standard_normal(8)).rescaled(NORM)
    return g, float(rng.random())


def jumps(X: np.ndarray, phase: float) -> np.ndarray:
    """h: a square wave of height EPSILON, which is in no function space here."""
    return EPSILON * np.where(np.sin(40 * (X[:, 0] + phase)) > 0, 1.0, -1.0)


def observed(epsilon: float, seed: int) -> tuple[kb.ConfidenceSequence, np.ndarray]:
    """A sequence that believes in an epsilon, and f* on the grid."""
    rng = np.random.default_rng(seed)
    g, phase = g_and_h(rng)
    X = rng.random((OBSERVATIONS, 1))
    noise = NOISE * rng.standard_normal(OBSERVATIONS)
    seq = kb.ConfidenceSequence(g.kernel, 1.2 * NORM, NOISE, misspecification=epsilon)
    seq.update(X, g(X) + jumps(X, phase) + noise)
    return seq, g(GRID) + jumps(GRID, phase)


def count(epsilon: float, runs: int) -> tuple[int, int, float]:
    """Runs with a wrong bound, runs that are refuted, and the mean width in the others."""
    wrong, refuted, widths = 0, 0, []
    for seed in range(runs):
        seq, truth = observed(epsilon, seed)
        try:
            lower, upper = seq.bounds(GRID)
        except kb.EmptyConfidenceSetError:
            refuted += 1
            continue
        wrong += bool(np.any((lower > truth) | (truth > upper)))
        widths.append(float(np.mean(upper - lower)))
    return wrong, refuted, float(np.mean(widths)) if widths else np.nan


def widths(n: int, problems: int = 10) -> tuple[float, float]:
    """Mean widths after n observations: the promise, and what they turn out to be."""
    kernel, box = Matern(length_scale=0.5, nu=2.5), kb.Box([0, 0], [1, 1])
    X, design = np.random.default_rng(0).random((200, 2)), box.filling(n)
    seq = kb.ConfidenceSequence(kernel, norm_bound=10.0, noise_scale=0.1)
    promised, real = seq.predicted_width(X, design).mean(), []
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        f = kb.RKHSFunction(kernel, rng.random((20, 2)), rng.standard_normal(20)).rescaled(8.0)
        seq = kb.ConfidenceSequence(kernel, norm_bound=10.0, noise_scale=0.1)
        seq.update(design, f(design) + 0.1 * rng.standard_normal(n))
        lower, upper = seq.bounds(X)
        real.append((upper - lower).mean())
    return float(promised), float(np.mean(real))


def conclusion() -> Any:
    """Is one setting better than another? And under which B?"""
    rng = np.random.default_rng(4)
    kernel = Matern(length_scale=0.5, nu=2.5)
    f = kb.RKHSFunction(kernel, rng.random((20, 1)), rng.standard_normal(20)).rescaled(4.0)
    X = rng.random((40, 1))
    seq = kb.ConfidenceSequence(kernel, norm_bound=6.0, noise_scale=0.1)
    seq.update(X, f(X) + 0.1 * rng.standard_normal(40))
    values = f(GRID)
    best, half = GRID[values.argmax()], GRID[np.abs(values - values.max() + 1).argmin()]
    return seq.sensitivity(better=(best, half))


def draw(found: Any, planned: dict[int, tuple[float, float]], file: Path) -> None:
    """Bounds against B, bands of two sequences, and widths against observations."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FixedLocator, NullLocator

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    found.plot(left)
    left.set_title("Is x better than x2? Under which B?", fontsize=11)
    seq, truth = observed(EPSILON, 0)
    lower, upper = seq.bounds(GRID)
    middle.fill_between(GRID[:, 0], lower, upper, color="#0014a8", alpha=0.2, linewidth=0)
    middle.plot(GRID, truth, color="black", linewidth=1)
    middle.plot(seq.points, seq.outcomes, ".", color="#c46210", markersize=4)
    middle.set_title(f"f* within {EPSILON:g} of the space, and bounds", fontsize=11)
    middle.set_xlabel("x")
    counts = list(planned)
    for at, label, colour in ((0, "at most", "#c46210"), (1, "in fact", "#0014a8")):
        right.loglog(counts, [planned[n][at] for n in counts], "o-", color=colour, label=label)
    for axis, ticks in ((right.xaxis, counts), (right.yaxis, (1, 2, 3, 4, 5))):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:g}")
    right.set_title("Mean width of CMM", fontsize=11)
    right.set_xlabel("observations")
    right.legend(frameon=False)
    for axis in (left, middle, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def main() -> None:
    """Print the tables and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for how-wrong.png")
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = conclusion()
    print(f"x is better than x2: {found}\n")
    print(f"| believed epsilon | wrong | refuted | mean width |, {arguments.runs} runs")
    for epsilon in (0.0, 0.5 * EPSILON, EPSILON, 2 * EPSILON):
        wrong, refuted, width = count(epsilon, arguments.runs)
        print(f"| {epsilon:g} | {wrong} | {refuted} | {width:.2f} |")
    planned = {n: widths(n) for n in DESIGNS}
    print("\n| observations | width at most | width in fact |\n|---|---|---|")
    for n, (promised, real) in planned.items():
        print(f"| {n} | {promised:.2f} | {real:.2f} |")
    draw(found, planned, arguments.out / "how-wrong.png")


if __name__ == "__main__":
    main()
