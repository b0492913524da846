"""Chapter 2: the bands of all bounds on one data set, as it grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound, FixedDesign
from kernelbounds.demo.numbers import number, numbers
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

KERNEL = Matern(length_scale=0.2, nu=2.5)
NORM, NORM_BOUND, NOISE, DELTA = 4.0, 5.0, 0.3, 0.01
# Of them the page shows some at first; a fixed design promises less, and is left to the reader.
SHOWN = ("CMM", "IGP")


def methods(most: int) -> dict[str, tuple[Bound, str]]:
    """All bounds, and what is special about each."""
    return {
        "CMM": (CMM(), "the default: the exact extremes over all curves that fit"),
        "DMM": (DMM(), "a little wider than CMM, and cheaper"),
        "AMM": (AMM(), "wider again, and the cheapest of the three"),
        "AY": (AY(), "from the literature, Abbasi-Yadkori 2012"),
        "IGP": (IGP(eta=2 / most), "from the literature, Chowdhury and Gopalan 2017"),
        "FixedDesign": (
            FixedDesign(),
            "promises less: points fixed in advance, and one look at one moment only",
        ),
    }


def chapter(
    counts: list[int], places: int, seed: int, step: Callable[[], object]
) -> dict[str, Any]:
    """Points are fixed before the outcomes, so that all bounds may be asked for.

    ``step`` is called once for each count.
    """
    rng = np.random.default_rng(seed)
    centres, weights = rng.random((12, 1)), rng.standard_normal(12)
    function = RKHSFunction(KERNEL, centres, weights).rescaled(NORM)
    grid, points = np.linspace(0, 1, places)[:, None], rng.random((counts[-1], 1))
    outcomes = function(points) + NOISE * rng.standard_normal(len(points))
    truth, bounds = function(grid), methods(counts[-1])
    frames: dict[str, list[dict[str, Any]]] = {name: [] for name in bounds}
    for count in counts:
        for name, (bound, _) in bounds.items():
            # Each look at a fixed design is one on its own, so the sequence is new.
            sequence = ConfidenceSequence(KERNEL, NORM_BOUND, NOISE, DELTA, bound=bound)
            if count:
                sequence.update(points[:count], outcomes[:count])
            lower, upper = sequence.bounds(grid)
            frames[name].append(
                {
                    "lower": numbers(lower),
                    "upper": numbers(upper),
                    "width": number(float(np.mean(upper - lower))),
                    "inside": float(np.mean((lower <= truth) & (truth <= upper))),
                }
            )
        step()
    return {
        "x": numbers(grid),
        "truth": numbers(truth),
        "points": numbers(points),
        "outcomes": numbers(outcomes),
        "counts": counts,
        "norm_bound": NORM_BOUND,
        "noise": NOISE,
        "bounds": [
            {"id": name, "about": about, "shown": name in SHOWN, "frames": frames[name]}
            for name, (_, about) in bounds.items()
        ],
    }
