"""What data say against the way in which they are about to be used. None of it is proof."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom
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

    Each point after the first few is nearer to the best point so far than to half of those before
    it, or not. Of a design that was fixed in advance and put in random order about half are; of one
    that seeks the maximum, or the minimum, many more.
    """
    later = range(FIRST, len(points))
    if not later:
        return False
    nearer = np.zeros(2, dtype=int)
    for t in later:
        distances = np.linalg.norm(points[:t] - points[t], axis=1)
        best = [int(np.argmax(outcomes[:t])), int(np.argmin(outcomes[:t]))]
        nearer += distances[best] < np.median(distances)
    return bool(np.any(binom.sf(nearer - 1, len(later), 0.5) < BY_CHANCE))
