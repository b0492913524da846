"""How wide the band of a problem will be, from its assumptions alone."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from kernelbounds.problem.problem import Problem
from kernelbounds.problem.random_functions import with_corners

# Points that fill the cube, besides the corners, where bounds are widest.
POINTS = 128


def predicted_half_widths(problem: Problem, experiments: int) -> tuple[float, float]:
    """Half of upper - lower after a space-filling design, at most: mean and largest over points.

    See :meth:`kernelbounds.ConfidenceSequence.predicted_width`.
    """
    points = with_corners(qmc.Sobol(problem.dim, rng=np.random.default_rng(1)).random(POINTS))
    design = problem.unit_box.filling(experiments)
    widths = problem.sequence().predicted_width(points, design)
    return float(widths[:POINTS].mean() / 2), float(widths.max() / 2)
