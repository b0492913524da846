"""What facts buy: the band of a saturating yield with and without limits, shape and a known value.

The second picture has f* in any of four classes, one for each length scale, of which the data
refute some. Every band is of the same measurements.

python examples/facts.py --out docs/images
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb
from kernelbounds.facts import Between, Concave, Fact, Increasing, Value

BOX = kb.Box.named(catalyst=(0.0, 1.0))
# The yield has norm 92 under this kernel.
KERNEL, NORM_BOUND, NOISE = Matern(length_scale=0.5, nu=2.5), 150.0, 3.0
FACTS: dict[str, list[Fact]] = {
    "between 0 and 60": [Between(0, 60, region=BOX)],
    "never falls": [Increasing(0, region=BOX)],
    "concave": [Concave(0, region=BOX)],
    "0 without catalyst": [Value([0.0], 0.0)],
}
FACTS["all four"] = [fact for facts in FACTS.values() for fact in facts]
# Length scales and norm bounds; the norms of the wave below are 2.0, 2.7, 9.0 and 38, so that it is
# in the second and in the third class.
CLASSES, WAVE_NOISE = {0.1: 1.5, 0.2: 3.0, 0.5: 10.0, 1.0: 30.0}, 0.1
BLUE, GREY, COLOURS = "#0014a8", "#bbbbbb", ("#c46210", "#4b8b3b", "#8a2be2", "#b22222")


def saturating(X: np.ndarray) -> np.ndarray:
    """The yield in grams, of which 60 is the most that the raw material can give."""
    return 60 * (1 - np.exp(-3 * X[:, 0]))


def wave(X: np.ndarray) -> np.ndarray:
    """One and a half waves."""
    return np.sin(3 * np.pi * X[:, 0])


def told(seq: kb.ConfidenceSequence, X: np.ndarray, y: np.ndarray) -> kb.ConfidenceSequence:
    """The sequence with these measurements."""
    seq.update(X, y)
    return seq


def draw_facts(grid: np.ndarray, file: Path) -> None:
    """The band without facts in grey, and that with each of them in blue."""
    rng = np.random.default_rng(3)
    X = rng.random((8, 1))
    y = saturating(X) + NOISE * rng.standard_normal(8)
    figure, axes = pyplot.subplots(
        2, 3, figsize=(11, 5.6), sharex=True, sharey=True, layout="constrained"
    )
    plain = None
    print("| said | half-width | |\n|---|---|---|")
    for axis, (name, facts) in zip(axes.flat, [("nothing", []), *FACTS.items()], strict=True):
        seq = told(kb.ConfidenceSequence(KERNEL, NORM_BOUND, NOISE, facts=facts), X, y)
        lower, upper = seq.bounds(grid)
        inside = np.all((lower <= saturating(grid)) & (saturating(grid) <= upper))
        print(f"| {name} | {np.mean(upper - lower) / 2:.1f} | truth inside: {inside} |")
        plain = plain or (lower, upper)
        axis.fill_between(grid[:, 0], *plain, color=GREY, alpha=0.6, lw=0)
        if facts:
            axis.fill_between(grid[:, 0], lower, upper, color=BLUE, alpha=0.45, lw=0)
        finish(axis, X, y, saturating, name if facts else "nothing more said")
    for axis in axes[1]:
        axis.set_xlabel("catalyst")
    for axis in axes[:, 0]:
        axis.set_ylabel("yield, g")
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def draw_classes(grid: np.ndarray, counts: tuple[int, ...], file: Path) -> None:
    """The band of AnyOf, and the edges of the bands of its classes alone."""
    rng = np.random.default_rng(0)
    X = rng.random((max(counts), 1))
    y = wave(X) + WAVE_NOISE * rng.standard_normal(len(X))
    members = [(Matern(length_scale=scale, nu=2.5), bound) for scale, bound in CLASSES.items()]
    figure, axes = pyplot.subplots(
        1, len(counts), figsize=(11, 3.6), sharey=True, layout="constrained"
    )
    for axis, count in zip(axes, counts, strict=True):
        seq = kb.ConfidenceSequence(kb.AnyOf(members), noise_scale=WAVE_NOISE)
        lower, upper = told(seq, X[:count], y[:count]).bounds(grid)
        inside = np.all((lower <= wave(grid)) & (wave(grid) <= upper))
        out = [list(CLASSES)[number] for number in seq.refuted_classes]
        print(f"\n{count} measurements: ±{np.mean(upper - lower) / 2:.3f}")
        print(f"  refuted: {out}, truth inside: {inside}")
        axis.fill_between(grid[:, 0], lower, upper, color=BLUE, alpha=0.25, lw=0)
        for scale, member, colour in zip(CLASSES, members, COLOURS, strict=True):
            if scale in out:
                continue
            alone = kb.ConfidenceSequence(*member, noise_scale=WAVE_NOISE)
            edges = told(alone, X[:count], y[:count]).bounds(grid)
            print(f"  length scale {scale} alone: ±{np.mean(edges[1] - edges[0]) / 2:.3f}")
            axis.plot(grid[:, 0], edges[0], color=colour, lw=1, label=f"ℓ = {scale}")
            axis.plot(grid[:, 0], edges[1], color=colour, lw=1)
        lost = f", ℓ = {' and '.join(map(str, out))} refuted" if out else ""
        finish(axis, X[:count], y[:count], wave, f"{count} measurements{lost}")
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def finish(
    axis: Axes,
    X: np.ndarray,
    y: np.ndarray,
    truth: Callable[[np.ndarray], np.ndarray],
    title: str,
) -> None:
    """Add the truth, the measurements and the title."""
    line = np.linspace(0, 1, 201)[:, None]
    axis.plot(line[:, 0], truth(line), "k--", lw=1)
    axis.plot(X[:, 0], y, "k.", ms=5)
    axis.set_title(title, fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Print widths and write both pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the pictures")
    parser.add_argument("--quick", action="store_true", help="fewer points and measurements")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")
    grid = np.linspace(0, 1, 21 if arguments.quick else 201)[:, None]
    draw_facts(grid, arguments.out / "facts.png")
    counts = (6, 12) if arguments.quick else (6, 20, 200)
    draw_classes(grid, counts, arguments.out / "facts-classes.png")


if __name__ == "__main__":
    main()
