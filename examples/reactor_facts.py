"""The reactor with facts: limits of the yield, and its shape along pressure and catalyst.

python examples/reactor_facts.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from reactor import NOISE, RANGES, true_yield

import kernelbounds as kb
from kernelbounds.facts import Between, Concave, Fact, Increasing

LOWER, UPPER = np.array(list(RANGES.values())).T
BOX = kb.Box([0.0] * 3, [1.0] * 3)  # a problem scales its inputs to this box
BEST = np.array([0.6, 1.0, 0.5])
SHAPE = [
    Increasing(1, region=BOX),  # more pressure never lowers the yield,
    Concave(1, region=BOX),  # and gives less and less of it
    Concave(2, region=BOX),  # there is one best amount of catalyst
]
FACTS: dict[str, list[Fact]] = {
    "nothing more": [],
    "0 to 100 percent": [Between(0, 100, region=BOX)],
    "shape": [*SHAPE],
    "both": [Between(0, 100, region=BOX), *SHAPE],
}


def truth(unit: np.ndarray) -> np.ndarray:
    """The yield at points of the unit box."""
    return true_yield(*(LOWER + unit * (UPPER - LOWER)).T)


def main() -> None:
    """Print mean half-widths, and draw cuts through the best settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--points", type=int, default=200, help="where widths are averaged")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    inputs = [f"{name}={low:g}:{high:g}" for name, (low, high) in RANGES.items()]
    assumed = kb.Problem(inputs, "yield=0:100", NOISE, turns=1).settled().sequence()
    rng = np.random.default_rng(1)
    X, points = rng.random((60, 3)), rng.random((arguments.points, 3))
    y = truth(X) + NOISE * rng.standard_normal(60)
    cuts = np.tile(BEST, (3, 41, 1))
    for axis, cut in enumerate(cuts):
        cut[:, axis] = np.linspace(0, 1, 41)
    bands = {}
    print("| said | 20 runs | 60 runs |\n|---|---|---|")
    for name, facts in FACTS.items():
        seq = kb.ConfidenceSequence(
            assumed.kernel,
            assumed.assumptions.norm_bound,
            NOISE,
            offset=assumed.offset,
            facts=facts,
        )
        widths = []
        for new in (slice(20), slice(20, 60)):
            seq.update(X[new], y[new])
            lower, upper = seq.bounds(points)
            inside = bool(np.all((lower <= truth(points)) & (truth(points) <= upper)))
            widths.append(f"{np.mean(upper - lower) / 2:.0f}")
            if not inside:
                print("truth inside: False")
        print(f"| {name} | ±{widths[0]} | ±{widths[1]} |")
        bands[name] = [seq.bounds(cut) for cut in cuts]

    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
    for axis, (panel, label) in enumerate(zip(axes, RANGES, strict=True)):
        along = LOWER[axis] + cuts[axis, :, axis] * (UPPER[axis] - LOWER[axis])
        panel.fill_between(along, *bands["nothing more"][axis], color="#bbbbbb", alpha=0.6, lw=0)
        panel.fill_between(along, *bands["both"][axis], color="#0014a8", alpha=0.45, lw=0)
        panel.plot(along, truth(cuts[axis]), "k--", lw=1)
        panel.set_xlabel(label)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("yield, percent")
    figure.savefig(arguments.out / "gallery-reactor-facts.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
