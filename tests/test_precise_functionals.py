"""Functionals, noise scales, levels and parts against 50-digit arithmetic."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from exact import Exact, forecast_scales
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

import kernelbounds as kb
from kernelbounds.functionals import Average, Derivative, Difference, Sum
from kernelbounds.kernels import has_derivatives
from kernelbounds.mixtures import Hybrid, Single
from kernelbounds.mixtures.hybrid import LEAST_RIDGE

EPS = np.finfo(float).eps
ROUGH, SMOOTH = Matern(0.4, nu=1.5), Matern(0.5, nu=2.5)
PARTS = kb.Parts([(kb.OnInputs(SMOOTH, [0]), 3.0), (kb.OnInputs(RBF(0.5), [1]), 0.2), (ROUGH, 0.5)])
WIDE = np.geomspace(1e-4, 1e2, 9)  # noise scales of six orders of magnitude
MIXED = np.array([0.05, 0.1, 0.1, 1.0, 0.2, 0.1, 0.1, 3.0, 0.1])
GRID = (0.1, 0.3, 1.0, 3.0, 10.0)


def _case(kernel, norm_bound=10.0, noise_scale=0.1, scales=None, level=0.0, within=0.0, at=0.0):
    return kernel, norm_bound, noise_scale, scales, level, within, at


CASES = {
    "rbf": _case(RBF(0.5)),
    "matern 3/2, exacting": _case(ROUGH, 1e4, 1e-4),
    "rbf, exacting": _case(2.0 * RBF(0.5), 1e4, 1e-4),
    "without noise": _case(ROUGH, 10.0, 0.0),
    "far from the origin": _case(SMOOTH, at=1e9),
    "own noise scales": _case(SMOOTH, scales=MIXED),
    "noise scales of six orders": _case(RBF(0.5), scales=WIDE),
    "noise scales of six orders, exacting": _case(ROUGH, 1e2, 1e-4, scales=WIDE),
    "level 1e6": _case(RBF(0.5), 1.0, 0.01, level=1e6),
    "level -1e6, without noise": _case(ROUGH, 1.0, 0.0, level=-1e6),
    "linear": _case(DotProduct(0.5)),
    "linear, far from the origin": _case(DotProduct(0.5), at=30.0),
    "product": _case(DotProduct(0.3) * RBF(0.6) + ConstantKernel(0.5), scales=MIXED),
    "parts": _case(PARTS, None),
    "parts, level and noise scales": _case(PARTS, None, scales=MIXED, level=1e3, within=5.0),
    "unknown level": _case(SMOOTH, 2.0, 0.05, level=100.0, within=30.0),
}


def _targets(kernel, rng, X):
    x, z = X[0] + rng.random(2), X[0] - rng.random(2)
    found = {
        "difference": Difference(x, z),
        "difference of data": Difference(X[1], X[2]),
        "near": Difference(x, x + np.array([1e-9, 0.0])),
        "same": Difference(z, z),
        "bend": Sum(np.stack([x, (x + z) / 2, z]), [1.0, -2.0, 1.0]),
        "average": Average(X[0] + rng.random((5, 2)), rng.random(5)),
        "value": x,
    }
    if has_derivatives(kernel):
        found |= {
            "slope": Derivative(x, 0),
            "slope at a point of the data": Derivative(X[3], 1),
            "slope far away": Derivative(X[0] + 40.0, 0),
        }
    return found


def _bounds(seq, target, bound):
    if isinstance(target, np.ndarray):
        lower, upper = seq.bounds(target, bound)
        return lower[0], upper[0]
    return seq.bounds_of(target, bound)


def _exact_pair(seq, mixture, X, y, scales):
    """The reference, with R_t from equal shares and all else from the shares chosen."""
    a, known = seq.assumptions, seq.known
    c = a.mixture_scale
    ridge = a.noise_scale**2 / c
    weighted = known.radius_engine.rows.lower.diagonal()
    enough = max(ridge, LEAST_RIDGE * float(forecast_scales(weighted)[0]))
    assert np.ptp(forecast_scales(weighted)) == 0 or isinstance(mixture, Single)
    options = {"noise_scales": scales, "level": seq.offset.level}
    base = Exact(
        seq.kernel, X, y, a.norm_bound, a.noise_scale, 0.01, c,
        mixture, enough, **options,
    )  # fmt: skip
    if seq.parts is None:
        return base, ridge
    return Exact(
        known.kernel, X, y, a.norm_bound, a.noise_scale, 0.01, c,
        radius_squared=base.radius_squared(), **options,
    ), ridge  # fmt: skip


@pytest.mark.parametrize(
    "mixture",
    [
        pytest.param(Single(0.7), id="single", marks=pytest.mark.slow),
        pytest.param(Hybrid(), id="hybrid"),
    ],
)
@pytest.mark.parametrize("name", CASES)
def test_never_too_tight_and_not_needlessly_loose(name, mixture):
    kernel, norm_bound, noise_scale, scales, level, within, at = CASES[name]
    rng = np.random.default_rng(list(CASES).index(name))
    X = at + rng.random((9, 2))
    seq = kb.ConfidenceSequence(
        kernel, norm_bound, noise_scale, 0.01, mixture=mixture, offset=kb.Offset(level, within)
    )
    a = seq.assumptions
    f = kb.RKHSFunction(seq.kernel, at + rng.random((6, 2)), rng.standard_normal(6))
    noise = (noise_scale if scales is None else scales) * rng.standard_normal(9)
    y = level + f.rescaled(0.8 * a.norm_bound)(X) + noise
    seq.update(X, y, scales)
    exact, ridge = _exact_pair(seq, mixture, X, y, scales)
    radius = float(mp.sqrt(exact.radius_squared()))
    # As in test_precision.py: at a given tiny ridge there is no sharper way.
    trace = seq.known.engine.data.trace
    inherent = 100 * EPS * trace / ridge if ridge else 0.0
    if isinstance(mixture, Hybrid):  # whose forecasts are less precise at a larger ridge
        assert radius * (1 - 1e-7) <= seq.radius <= radius * (1 + 1e-6)
    else:
        assert radius * (1 - 1e-9) <= seq.radius <= radius * (1 + 1e-6 + inherent)
    methods = {"CMM": (kb.CMM(), exact.cmm)}
    if ridge:
        methods |= {
            "AMM": (kb.AMM(), lambda sign: exact.amm(ridge, sign)),
            "DMM": (kb.DMM(), lambda sign: min(exact.amm(f * ridge, sign) for f in GRID)),
        }
    for what, target in _targets(seq.known.kernel, rng, X).items():
        exact.at(target)
        for method, (bound, reference) in methods.items():
            lower, upper = _bounds(seq, target, bound)
            for sign, found in ((1, upper), (-1, -lower)):
                by_norm, by_size = exact.gap(found, reference(sign), sign)
                loose = 1e-6 + (inherent if method != "CMM" else 0.0)
                assert by_norm > -1e-9, (what, method, sign, by_norm)
                assert by_size < loose, (what, method, sign, by_size)
