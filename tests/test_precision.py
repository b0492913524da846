"""Against 50-digit arithmetic, on cases that are hard for double precision."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from exact import Exact, forecast_scales, kernel_value, random_data
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import kernelbounds as kb
from kernelbounds.mixtures import Hybrid, Single
from kernelbounds.mixtures.hybrid import LEAST_RIDGE

KERNELS = {
    "rbf": lambda scale, variance: (
        RBF(scale) if variance == 1 else ConstantKernel(variance) * RBF(scale)
    ),
    "matern32": lambda scale, variance: ConstantKernel(variance) * Matern(scale, nu=1.5),
    "matern52": lambda scale, variance: ConstantKernel(variance) * Matern(scale, nu=2.5),
    # A number and a category, see exact.py.
    "levels": lambda scale, variance: (
        kb.OnInputs(ConstantKernel(variance) * Matern(scale, nu=2.5), [0])
        * kb.OnInputs(kb.Levels(0.7), [1])
    ),
}


def _spread(rng, t):
    return rng.random((t, 2))


def _repeated(rng, t):
    return np.repeat(rng.random((max(t // 4, 1), 2)), 4, axis=0)[:t]


def _nearly_repeated(rng, t):
    return _repeated(rng, t) + 1e-9 * rng.standard_normal((t, 2))


def _in_levels(rng, t):
    return np.column_stack([rng.random(t), rng.integers(3, size=t)])


LAYOUTS = {
    "spread": _spread,
    "repeated": _repeated,
    "nearly repeated": _nearly_repeated,
    "in levels": _in_levels,
}

# kernel, length scale, k(x,x), layout, noise scale, norm bound
CASES = [
    ("rbf", 0.5, 1.0, "spread", 0.1, 10.0),
    ("matern32", 0.5, 1.0, "repeated", 0.1, 10.0),
    ("matern52", 0.5, 4.0, "nearly repeated", 0.1, 10.0),
    ("rbf", 0.5, 1.0, "nearly repeated", 1e-4, 10.0),
    ("matern52", 0.5, 1.0, "spread", 1e-4, 1e4),
    ("matern32", 0.3, 0.01, "nearly repeated", 1e-4, 1e4),
    ("rbf", 0.5, 1.0, "repeated", 1e-4, 1e4),
    ("rbf", 50.0, 1.0, "spread", 0.1, 10.0),
    ("rbf", 50.0, 1.0, "spread", 1e-4, 1e4),
    ("matern52", 50.0, 1.0, "nearly repeated", 1e-4, 10.0),
    ("rbf", 1e-3, 1.0, "nearly repeated", 0.1, 1e4),
    ("matern32", 1e-3, 1.0, "spread", 1e-4, 10.0),
    ("rbf", 2.0, 1e4, "spread", 1e-4, 1.0),
    ("matern52", 0.5, 1.0, "spread", 0.0, 10.0),
    ("matern32", 0.5, 1.0, "nearly repeated", 0.0, 10.0),
    ("rbf", 0.3, 1.0, "spread", 0.0, 1e4),
    ("levels", 0.5, 1.0, "in levels", 0.1, 10.0),
    ("levels", 50.0, 4.0, "in levels", 1e-4, 1e4),
    ("levels", 0.5, 1.0, "in levels", 0.0, 10.0),
]


def _named(case, mixture, **more):
    return pytest.param(case, mixture, id="-".join(map(str, case)) + f"-{mixture}", **more)


# Those of the paper's radius with odd numbers take seconds, and are left to the slow tests.
@pytest.mark.parametrize(
    ("case", "mixture"),
    [
        *(_named(case, Hybrid()) for case in CASES),
        *(_named(case, Single(0.7)) for case in CASES[::2]),
        *(_named(case, Single(0.7), marks=pytest.mark.slow) for case in CASES[1::2]),
    ],
)
def test_never_too_tight_and_not_needlessly_loose(case, mixture):
    name, length_scale, variance, layout, noise_scale, norm_bound = case
    rng = np.random.default_rng(CASES.index(case))
    t = 12
    X = LAYOUTS[layout](rng, t)
    kernel = KERNELS[name](length_scale, variance)
    y = random_data(kernel, rng, X, norm_bound, noise_scale)
    if noise_scale == 0 and layout == "nearly repeated":
        X, y = X[::4], y[::4]  # without noise, rounding of y itself would refute the norm bound
    queries = np.vstack([rng.random((4, 2)), X[:2], X[:1] + 1e-7])
    sequence = kb.ConfidenceSequence(kernel, norm_bound, noise_scale, 0.01, mixture=mixture)
    sequence.update(X, y)
    c = sequence.assumptions.mixture_scale
    ridge = noise_scale**2 / c
    # What Hybrid makes its forecasts at, where double precision asks for a larger ridge.
    enough = max(ridge, LEAST_RIDGE * float(forecast_scales(kernel.diag(X))[0]))
    exact = Exact(
        lambda a, b: kernel_value(name, length_scale, variance, a, b),
        X, y, norm_bound, noise_scale, 0.01, c, mixture, enough,
    )  # fmt: skip
    radius = float(mp.sqrt(exact.radius_squared()))
    if isinstance(mixture, Hybrid):
        # Forecasts may be whatever they are, and at a larger ridge are less precise.
        digits = 1e-9 if enough == ridge else 1e-7
        assert radius * (1 - digits) <= sequence.radius <= radius * (1 + 1e-6)
    # K enters with an error of a few eps trace(K), so a formula at a fixed, tiny ridge cannot be
    # had more sharply than this without risking validity. CMM chooses its ridge, and must.
    inherent = 100 * np.finfo(float).eps * kernel.diag(X).sum() / ridge if ridge else 0.0
    methods = {"CMM": (kb.CMM(), lambda sign: exact.cmm(sign))}
    if noise_scale:
        methods |= {
            "AMM": (kb.AMM(), lambda sign: exact.amm(ridge, sign)),
            "AMM at 3": (kb.AMM(3 * ridge), lambda sign: exact.amm(3 * ridge, sign)),
            "DMM": (
                kb.DMM(),
                lambda sign: min(exact.amm(f * ridge, sign) for f in (0.1, 0.3, 1.0, 3.0, 10.0)),
            ),
        }
    if noise_scale and isinstance(mixture, Single):  # of which these know nothing
        methods |= {
            "AY": (kb.AY(), lambda sign: exact.ay(ridge, sign)),
            "IGP": (kb.IGP(0.02), lambda sign: exact.igp(0.02, sign)),
        }
    # In the company of many others, points are computed in other ways.
    crowd = np.vstack([queries, rng.random((400, 2))])
    trivial = norm_bound * np.sqrt(kernel.diag(queries))
    bounds = {
        method: [sequence.bounds(points, bound) for points in (queries, crowd)]
        for method, (bound, _) in methods.items()
    }
    for i, x in enumerate(queries):
        exact.at(x)
        for method, (_, reference) in methods.items():
            found, loose = bounds[method], 1e-6
            if method not in ("CMM", "IGP"):
                loose += inherent
            for sign in (1, -1):
                value = exact.clipped(reference(sign))
                for lower, upper in found:
                    gap = (upper[i] if sign == 1 else -lower[i]) / trivial[i] - value
                    assert gap > -1e-15, (method, i, sign, gap)
                    assert gap < loose, (method, i, sign, gap)


@pytest.mark.parametrize("above", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_where_the_confidence_set_is_nearly_empty(seed, above):
    """B is just above the smallest norm that the data allow: R~ nearly vanishes at a ridge."""
    rng = np.random.default_rng(seed)
    name = ["rbf", "matern32", "matern52"][seed % 3]
    kernel, t, sigma = KERNELS[name](0.3, 1.0), [1, 2, 5, 8, 12][seed], 0.01
    X = rng.random((t, 2))
    y = random_data(kernel, rng, X, 1.0, sigma)
    loose = kb.ConfidenceSequence(kernel, 100.0, sigma, mixture_scale=1.0)
    loose.update(X, y)
    norm_bound = (1 + above) * loose.norm_lower_bound
    assert norm_bound > 0.01
    sequence = kb.ConfidenceSequence(kernel, norm_bound, sigma, mixture_scale=1.0)
    sequence.update(X, y)
    exact = Exact(
        lambda a, b: kernel_value(name, 0.3, 1.0, a, b), X, y, norm_bound, sigma, 0.01, 1.0
    )
    queries = np.vstack([rng.random((3, 2)), X[:1], [[3.0, 3.0]]])
    crowd = np.vstack([queries, rng.random((100, 2))])
    found = [sequence.bounds(points) for points in (queries, crowd)]
    for i, x in enumerate(queries):
        exact.at(x)
        for sign in (1, -1):
            value = exact.clipped(exact.cmm(sign))
            for lower, upper in found:
                gap = (upper[i] if sign == 1 else -lower[i]) / norm_bound - value
                assert -1e-15 < gap < 1e-6, (i, sign, gap)
