"""How wide the band of a problem will be, from its assumptions alone."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.stats import qmc

from kernelbounds.problem.problem import Problem

# Points that fill the cube; and of so many inputs all corners, where bounds are widest.
POINTS, CORNERS_UP_TO = 128, 6


def predicted_half_widths(problem: Problem, experiments: int) -> tuple[float, float]:
    """Half of upper - lower after a space-filling design, at most: mean and largest of the cube.

    See :meth:`kernelbounds.ConfidenceSequence.predicted_width`.
    """
    points = qmc.Sobol(problem.dim, rng=np.random.default_rng(1)).random(POINTS)
    if problem.dim <= CORNERS_UP_TO:
        points = np.concatenate([points, list(product([0.0, 1.0], repeat=problem.dim))])
    design = problem.unit_box.filling(experiments)
    widths = problem.sequence().predicted_width(points, design)
    return float(widths[:POINTS].mean() / 2), float(widths.max() / 2)
