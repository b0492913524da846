"""Maximisers against dense grids, on standard test functions brought into the model."""

from __future__ import annotations

import time

import numpy as np
import pytest
from problems import BOUNDS, noisy_only, truth
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
)

import kernelbounds as kb

MATERN = Matern(length_scale=0.4, nu=2.5)


def branin(x):
    a, b = 15 * x[:, 0] - 5, 15 * x[:, 1]
    bend = b - 5.1 * a**2 / (4 * np.pi**2) + 5 * a / np.pi - 6
    return -(bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


def hartmann3(x):
    A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
    P = 1e-4 * np.array(
        [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
    )
    inner = np.sum(A * (x[:, None, :] - P) ** 2, axis=2)
    return np.exp(-inner) @ np.array([1.0, 1.2, 3.0, 3.2])


def wiggly(x):
    return np.sin(13 * x[:, 0]) * np.sin(27 * x[:, 0]) + x[:, 0]


PROBLEMS = {
    "branin": (branin, 2, MATERN),
    "hartmann3": (hartmann3, 3, MATERN),
    "wiggly": (wiggly, 1, Matern(length_scale=0.1, nu=2.5)),
}
GRIDS = {1: 4001, 2: 81, 3: 24}


def _in_the_model(name, norm=5.0):
    """The test function, interpolated by kernels at random points and scaled to a norm."""
    function, dim, kernel = PROBLEMS[name]
    centres = np.random.default_rng(0).random((40, dim))
    values = function(centres)
    weights = np.linalg.solve(kernel(centres) + 1e-6 * np.eye(40), values - values.mean())
    return kb.RKHSFunction(kernel, centres, weights).rescaled(norm)


def _sequence(name, bound, t, noise_scale=0.1):
    function, rng = _in_the_model(name), np.random.default_rng(t)
    seq = kb.ConfidenceSequence(function.kernel, 5.0, noise_scale, bound=bound)
    X = rng.random((t, function.centres.shape[1]))
    seq.update(X, function(X) + noise_scale * rng.standard_normal(t))
    return seq


def _unit_box(dim):
    return kb.Box(np.zeros(dim), np.ones(dim))


def _grid(dim):
    axes = [np.linspace(0, 1, GRIDS[dim])] * dim
    return np.stack(np.meshgrid(*axes), -1).reshape(-1, dim)


def _none(dim):
    return np.empty((0, dim))


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("t", "noise_scale"), [(4, 0.1), (30, 0.1), (150, 0.1), (30, 0.0)])
def test_certificates_contain_the_maximum(name, bound, t, noise_scale):
    noisy_only(bound, noise_scale)
    dim = PROBLEMS[name][1]
    seq = _sequence(name, BOUNDS[bound], t, noise_scale)
    box, tolerance = _unit_box(dim), 0.05
    for sign in (1, -1):
        surface = seq.surface(sign)
        highest = surface.values(_grid(dim)).max()
        found = kb.BranchAndBound(tolerance, seconds=2, cells=20_000).maximise(
            surface, box, _none(dim)
        )
        assert highest <= found.ceiling
        assert found.value <= found.ceiling
        assert surface.values(found.x[None])[0] == pytest.approx(found.value, rel=1e-6)
        climbed = kb.Ascent().maximise(surface, box, _none(dim))
        # DMM, a minimum of five smooth functions, has kinks on which gradient ascent stops short.
        assert climbed.value >= highest - (5e-3 if bound == "DMM" else 1e-6)
        assert np.isinf(climbed.ceiling)
        coarse = kb.Grid(cells=512).maximise(surface, box, _none(dim))
        assert coarse.value <= highest + 1e-2 and highest <= coarse.ceiling


@pytest.mark.parametrize("name", PROBLEMS)
def test_cmm_is_certified_within_the_tolerance(name):
    dim = PROBLEMS[name][1]
    surface = _sequence(name, kb.CMM(), 60).surface(1)
    found = kb.BranchAndBound(0.05, seconds=60).maximise(surface, _unit_box(dim), _none(dim))
    assert found.ceiling - found.value <= 0.05


@pytest.mark.parametrize(
    "kernel",
    [
        RBF((0.3, 0.6)),
        Matern(0.4, nu=0.5),
        Matern(0.4, nu=1.5),
        Matern(0.4, nu=3.3),
        RationalQuadratic(0.4, 1.5),
        DotProduct(0.5),
        ConstantKernel(2.0) * RBF(0.4) + DotProduct(0.2),
        RBF(0.6) * (DotProduct(0.3) + ConstantKernel(2.0)),
    ],
    ids=str,
)
def test_other_kernels_are_certified_too(kernel):
    rng = np.random.default_rng(2)
    seq = kb.ConfidenceSequence(kernel, 3.0, 0.1)
    function = truth(kernel, rng, 2.5, centres=6)
    X = rng.random((20, 2))
    seq.update(X, function(X) + 0.1 * rng.standard_normal(20))
    for box in (_unit_box(2), kb.Box([-0.5, 0.3], [2.0, 0.3])):
        x = box.scaled(rng.random((4000, 2)))
        found = kb.BranchAndBound(cells=4000).maximise(seq.surface(1), box, _none(2))
        assert seq.upper(x).max() <= found.ceiling
        assert np.all((box.lower <= found.x) & (found.x <= box.upper))


def test_budgets_are_kept_and_the_ceiling_is_valid_all_the_same():
    surface = _sequence("hartmann3", kb.AMM(), 40).surface(1)
    start = time.monotonic()
    found = kb.BranchAndBound(1e-6, seconds=0.5).maximise(surface, _unit_box(3), _none(3))
    assert time.monotonic() - start < 3
    assert surface.values(_grid(3)).max() <= found.ceiling
    few = kb.BranchAndBound(1e-6, cells=1).maximise(surface, _unit_box(3), _none(3))
    assert few.ceiling >= found.ceiling


def test_finer_grids_guarantee_more():
    surface = _sequence("branin", kb.CMM(), 40).surface(1)
    gaps = []
    for cells in (100, 2500, 10_000):
        found = kb.Grid(cells).maximise(surface, _unit_box(2), _none(2))
        gaps.append(found.ceiling - found.value)
    assert gaps[0] > gaps[1] > gaps[2] > 0


def test_comparing_with_a_level_stops_early():
    surface = _sequence("branin", kb.CMM(), 40).surface(1)
    top = surface.values(_grid(2)).max()
    search = kb.BranchAndBound(1e-9, seconds=30)
    assert search.compare(surface, _unit_box(2), _none(2), top - 0.5).value > top - 0.5
    start = time.monotonic()
    assert search.compare(surface, _unit_box(2), _none(2), top + 0.5).ceiling <= top + 0.5
    assert time.monotonic() - start < 10


def test_certified_asking():
    seq = _sequence("branin", kb.CMM(), 20)
    ucb = kb.KernelUCB(seq, _unit_box(2), maximiser=kb.BranchAndBound(0.05))
    s = ucb.ask()
    assert s.upper <= s.limit <= s.upper + 0.05 + 1e-6
    ucb.tell(s.x, 0.0)
    assert ucb.history.regret_bound[-1] == s.limit - s.lower
