"""All five bounds on one test function, as in the paper's Figure 1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.arrays import Array
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound
from kernelbounds.errors import MissingExtraError
from kernelbounds.kernels import mixture_scale
from kernelbounds.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

NORM_BOUND, NOISE_SCALE, DELTA = 10.0, 0.1, 0.01


@dataclass(frozen=True)
class Band:
    """The bounds of one method on the grid."""

    name: str
    lower: Array
    upper: Array

    @property
    def mean_width(self) -> float:
        """Mean over the grid of upper minus lower."""
        return float(np.mean(self.upper - self.lower))

    def coverage(self, truth: Array) -> float:
        """The fraction of the grid where the truth lies in the band."""
        return float(np.mean((self.lower <= truth) & (truth <= self.upper)))


@dataclass(frozen=True)
class Figure1:
    """A test function with ||f*|| = B, noisy observations of it, and the bands of all methods."""

    grid: Array
    truth: Array
    points: Array
    outcomes: Array
    bands: tuple[Band, ...]


def run(observations: int = 25, seed: int = 1) -> Figure1:
    """Observe a Matern-3/2 function of length scale 0.5 on [0, 1] where the CMM band is widest."""
    rng = np.random.default_rng(seed)
    kernel = Matern(length_scale=0.5, nu=1.5)
    centres, weights = rng.random((20, 1)), rng.standard_normal(20)
    function = RKHSFunction(kernel, centres, weights).rescaled(NORM_BOUND)
    sequence = ConfidenceSequence(
        kernel,
        NORM_BOUND,
        NOISE_SCALE,
        DELTA,
        mixture_scale=mixture_scale(kernel, dim=1, horizon=observations),
    )
    grid = np.linspace(0, 1, 401)[:, None]
    for _ in range(observations):
        lower, upper = sequence.bounds(grid)
        x = grid[np.argmax(upper - lower)]
        sequence.update(x, function(x[None])[0] + NOISE_SCALE * rng.standard_normal())
    methods: dict[str, Bound] = {
        "CMM": CMM(),
        "DMM": DMM(),
        "AMM": AMM(),
        "AY-GP-UCB": AY(),
        "IGP-UCB": IGP(eta=2 / observations),
    }
    bands = tuple(Band(name, *sequence.bounds(grid, bound)) for name, bound in methods.items())
    return Figure1(grid[:, 0], function(grid), sequence.points[:, 0], sequence.outcomes, bands)


def draw(found: Figure1, file: Path | BinaryIO, form: str | None = None) -> None:
    """Write the picture, as png, svg or pdf: one panel a method, the same axes for all."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("Drawing the bands", "plot") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    colours = ["#0014a8", "#0a7e8c", "#4b8b3b", "#c46210", "#9b2335"]
    figure, axes = pyplot.subplots(
        1, len(found.bands), figsize=(15, 3.4), sharex=True, sharey=True, layout="constrained"
    )
    for axis, band, colour in zip(axes, found.bands, colours, strict=True):
        axis.fill_between(found.grid, band.lower, band.upper, color=colour, alpha=0.22, linewidth=0)
        axis.plot(found.grid, band.lower, color=colour, linewidth=1.2)
        axis.plot(found.grid, band.upper, color=colour, linewidth=1.2, label="bounds")
        axis.plot(found.grid, found.truth, "k--", linewidth=1.2, label="truth")
        axis.plot(found.points, found.outcomes, "k.", markersize=4, label="data", clip_on=False)
        axis.set_title(f"{band.name}\nmean width {band.mean_width:.2f}", fontsize=11)
        axis.set_xlabel("x")
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0)
    axes[0].set_ylabel("f(x)")
    axes[0].legend(frameon=False, fontsize=9)
    figure.savefig(file, dpi=160, format=form)
    pyplot.close(figure)
