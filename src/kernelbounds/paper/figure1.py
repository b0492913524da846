"""Figure 1: the bands of all bounds on one function, from the same observations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.arrays import Array
from kernelbounds.bounds import AMM, AY, CMM, DMM, IGP, Bound
from kernelbounds.kernels import mixture_scale
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.paper import specs
from kernelbounds.paper.drawing import COLOURS, figure_files
from kernelbounds.paper.specs import Experiment, Job, Picture
from kernelbounds.sequence import ConfidenceSequence

BANDS = {
    "CMM": "CMM", "DMM": "DMM", "AMM": "AMM", "AY": "AY-GP-UCB", "IGP": "IGP-UCB",
}  # titles by method # fmt: skip


@dataclass(frozen=True)
class Figure1(Job):
    """The bands on a Matern-3/2 function with length scale 0.5 on [0, 1] and ||f*|| = B.

    It is observed where the band of CMM is widest.
    """

    observations: int = 25
    seed: int = 1

    @property
    def name(self) -> str:
        """The number of observations and the seed."""
        return f"figure1-t{self.observations}-seed{self.seed}"

    def run(self) -> dict[str, Array]:
        """Return the grid and the truth on it, points and outcomes, and the ends of the bands.

        ``lower`` and ``upper`` are (methods, grid), in the order of ``BANDS``.
        """
        rng = np.random.default_rng(self.seed)
        kernel = Matern(length_scale=0.5, nu=1.5)
        centres, weights = rng.random((20, 1)), rng.standard_normal(20)
        function = RKHSFunction(kernel, centres, weights).rescaled(specs.NORM)
        scale = mixture_scale(kernel, dim=1, horizon=self.observations)
        sequence = ConfidenceSequence(
            kernel, specs.NORM, specs.NOISE, specs.DELTA, mixture_scale=scale
        )
        grid = np.linspace(0, 1, 401)[:, None]
        for _ in range(self.observations):
            lower, upper = sequence.bounds(grid)
            x = grid[np.argmax(upper - lower)]
            sequence.update(x, function(x[None])[0] + specs.NOISE * rng.standard_normal())
        bounds: list[Bound] = [CMM(), DMM(), AMM(), AY(), IGP(eta=2 / self.observations)]
        ends = np.array([sequence.bounds(grid, bound) for bound in bounds])
        return {
            "grid": grid[:, 0],
            "truth": function(grid),
            "points": sequence.points[:, 0],
            "outcomes": sequence.outcomes,
            "lower": ends[:, 0],
            "upper": ends[:, 1],
        }


def draw_figure1(found: dict[str, Array], path: Path) -> None:
    """Draw one panel for each method, with the same axes for all."""
    grid, bands = found["grid"], zip(found["lower"], found["upper"], strict=True)
    with figure_files(
        path, 1, len(BANDS), ("x", "f(x)"), (3.0, 3.4), 160, sharex=True, sharey=True
    ) as axes:
        for axis, (method, title), (lower, upper) in zip(
            axes[0], BANDS.items(), bands, strict=True
        ):
            colour = COLOURS[method]
            axis.fill_between(grid, lower, upper, color=colour, alpha=0.22, linewidth=0)
            axis.plot(grid, lower, color=colour, linewidth=1.2)
            axis.plot(grid, upper, color=colour, linewidth=1.2, label="bounds")
            axis.plot(grid, found["truth"], "k--", linewidth=1.2, label="truth")
            observed = found["points"], found["outcomes"]
            axis.plot(*observed, "k.", markersize=4, label="data", clip_on=False)
            axis.set_title(f"{title}\nmean width {np.mean(upper - lower):.2f}", fontsize=11)
            axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
            axis.margins(x=0)
        axes[0, 0].legend(frameon=False, fontsize=9)


EXPERIMENT = Experiment(
    jobs=lambda choices: [Figure1()],
    gather=lambda jobs, store: store.read(jobs[0]),
    pictures=(
        Picture(
            "figure1", draw_figure1, "Figure 1",
            "Confidence bands of the five bounds on one test function, with the truth and the data",
        ),
    ),
    note="Narrower is better, as long as the dashed truth is inside.",
)  # fmt: skip
