"""Bounds without noise and with B = ||f*||, on inputs where kernels are easily evaluated badly.

Outcomes and truth are computed in 40 digits, so an error of the kernel shows as a bound that the
truth violates, or as assumptions that are refuted though they hold.
"""

from __future__ import annotations

import numpy as np
import pytest
from exact_kernels import ExactFunction
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern, RationalQuadratic

import kernelbounds as kb

UNIX_TIME = 1.7e9


def _close_to(origin, width):
    def draw(rng, count):
        return origin + width * rng.random((count, 1))

    return draw


def _in_pairs(origin, width, apart):
    """Pairs of points that are close to each other: what tells small distances apart."""

    def draw(rng, count):
        points = origin + width * rng.random((count, 1))
        points[count // 2 :] = points[: count - count // 2] + apart
        return points

    return draw


def _repeated(places):
    """Few places, each of them many times."""

    def draw(rng, count):
        return rng.choice(places, count)[:, None]

    return draw


def _over_periods(period, turns):
    def draw(rng, count):
        return period * (rng.integers(0, turns, (count, 1)) + rng.random((count, 1)))

    return draw


CASES = {
    **{
        f"time stamps, rbf {scale}": (RBF(scale), _close_to(UNIX_TIME, 2 * scale))
        for scale in (3.0, 7.0, 20.0, 60.0)
    },
    **{
        f"offset {origin:g}, {kernel}": (kernel, _in_pairs(origin, 1.0, 1e-5))
        for origin in (1e6, 1e9)
        for kernel in (
            RBF(0.7),
            Matern(0.7, nu=1.5),
            Matern(0.7, nu=2.5),
            Matern(0.7, nu=0.8),
            RationalQuadratic(0.7, 2.0),
        )
    },
    **{
        f"repeats, matern {nu}": (Matern(0.5, nu=nu), _repeated([0.1, 0.35, 0.9]))
        for nu in (0.05, 0.1, 0.2, 0.3)
    },
    "power": (RationalQuadratic(0.5, 1e5) ** 2, _close_to(0.0, 1.0)),
    "product": (RationalQuadratic(0.5, 1e5) * RationalQuadratic(0.5, 1e5), _close_to(0.0, 1.0)),
    **{
        f"periods {turns:g}": (ExpSineSquared(1.1, 0.7), _over_periods(0.7, int(turns)))
        for turns in (1e4, 1e6, 1e8)
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_truth_stays_inside(case):
    kernel, draw = CASES[case]
    for seed, count in enumerate((8, 16) * 2):
        rng = np.random.default_rng(seed)
        function = ExactFunction(kernel, draw(rng, 4), rng.standard_normal(4))
        norm_bound = function.norm * (1 + 1e-9)
        X = draw(rng, count)
        points = np.vstack([draw(rng, 30), X[:3]])
        outcomes, truth = np.array(function(X)), np.array(function(points))
        for noise_scale in (0.0, 0.1):
            seq = kb.ConfidenceSequence(kernel, norm_bound, noise_scale)
            seq.update(X, outcomes)
            lower, upper = seq.bounds(points)
            outside = np.maximum(lower - truth, truth - upper).max() / norm_bound
            assert outside < 1e-9, (seed, noise_scale, outside)
