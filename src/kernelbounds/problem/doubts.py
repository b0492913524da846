"""What data say against the way in which they are about to be used. None of it is proof."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, qmc
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array

# An observation with correlations below this to all others says nothing of them: at 0.1 it explains
# a hundredth of their variance.
CORRELATED = 0.1
# A design that was fixed in advance looks chosen with this probability at most, for each of the two
# directions.
BY_CHANCE = 0.001
# So many observations come first, before there is a best one to speak of.
FIRST = 5
# Points of the box from which shares of it are known.
BOX = 256


def share_alone(kernel: Kernel, points: Array) -> float:
    """The share of the distinct points (n, d) that the kernel relates to no other one.

    If most are alone, the length scales are far too short for so few data: no bound is narrower
    between points than without data.
    """
    distinct = np.unique(points, axis=0)
    if len(distinct) < 2:
        return 0.0
    matrix = kernels.cross(kernel, distinct, distinct)
    roots = np.sqrt(np.diag(matrix))
    correlations = np.abs(matrix / np.multiply.outer(roots, roots))
    np.fill_diagonal(correlations, 0.0)
    return float(np.mean(correlations.max(axis=1) < CORRELATED))


def look_chosen(points: Array, outcomes: Array) -> bool:
    """Whether points (n, d), in order, seem to follow the outcomes before them.

    Of each new point after the first few, p is the share of the box around all points that is
    nearer to the best point so far. If the points were drawn from that box beforehand, the p are
    uniform and independent, wherever the best ones are, and -2 sum log p has a chi-squared
    distribution (Fisher). Designs that fill the box evenly are near to that; of one that seeks the
    maximum, or the minimum, many p are small.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    box = low + (high - low) * qmc.Sobol(points.shape[1], rng=np.random.default_rng(0)).random(BOX)
    logs = np.zeros(2)
    later = 0
    for t in range(FIRST, len(points)):
        if np.any(np.all(points[:t] == points[t], axis=1)):
            continue  # repeats are made to measure the noise
        later += 1
        for at, best in enumerate((np.argmax(outcomes[:t]), np.argmin(outcomes[:t]))):
            distance = np.linalg.norm(points[t] - points[best])
            nearer = np.count_nonzero(np.linalg.norm(box - points[best], axis=1) < distance)
            logs[at] += np.log((nearer + 1) / (BOX + 1))
    return bool(later and np.any(chi2.sf(-2 * logs, 2 * later) < BY_CHANCE))
