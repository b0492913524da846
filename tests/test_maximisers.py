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
from kernelbounds import kernels
from kernelbounds.engine import ExactEngine, SparseEngine
from kernelbounds.kernels.derivatives import _product

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
@pytest.mark.parametrize("bound", ["CMM", "DMM", "AMM", "AY", "IGP"])
@pytest.mark.parametrize(("t", "noise_scale"), [(4, 0.1), (120, 0.1), (30, 0.0)])
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
    start = time.process_time()
    found = kb.BranchAndBound(1e-6, seconds=0.5).maximise(surface, _unit_box(3), _none(3))
    assert time.process_time() - start < 3
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
    start = time.process_time()
    assert search.compare(surface, _unit_box(2), _none(2), top + 0.5).ceiling <= top + 0.5
    assert time.process_time() - start < 10


def test_certified_asking():
    seq = _sequence("branin", kb.CMM(), 20)
    ucb = kb.KernelUCB(seq, _unit_box(2), maximiser=kb.BranchAndBound(0.05))
    s = ucb.ask()
    assert s.upper <= s.limit <= s.upper + 0.05 + 1e-6
    ucb.tell(s.x, 0.0)
    assert ucb.history.regret_bound[-1] == s.limit - s.lower


@pytest.fixture
def slow_machine(monkeypatch):
    """A clock that stands still but for queries: 50 milliseconds for each, and one for a point."""
    now = [0.0]

    def slowed(query):
        def slow_query(self, points, *args, **kwargs):
            now[0] += 0.05 + len(points) / 1000
            return query(self, points, *args, **kwargs)

        return slow_query

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for engine in (ExactEngine, SparseEngine):
        monkeypatch.setattr(engine, "query", slowed(engine.query))
    return lambda: now[0]


BEGUN = 1.5  # seconds of that clock: a block of points, begun in time


@pytest.mark.parametrize("bound", [kb.CMM(), kb.AMM()])
@pytest.mark.parametrize("which", ["domain", "actions", "sparse"])
@pytest.mark.parametrize("minimise", [False, True])
def test_finite_sets_are_certified_in_time(slow_machine, bound, which, minimise):
    """What was not looked at counts by its trivial bounds, so that all is true however early."""
    function, rng = _in_the_model("branin"), np.random.default_rng(0)
    engine = kb.Sparse() if which == "sparse" else None
    seq = kb.ConfidenceSequence(function.kernel, 5.0, 0.1, bound=bound, engine=engine)
    X, points = rng.random((60, 2)), rng.random((9000, 2))
    seq.update(X, function(X) + 0.1 * rng.standard_normal(60))
    sign = -1 if minimise else 1
    values, regrets = sign * function(points), []
    for seconds in (0.5, 5.0, 20.0, 1000.0):
        ucb = kb.KernelUCB(
            seq, None if which == "actions" else kb.Finite(points), minimise=minimise
        )
        start = slow_machine()
        found = ucb.certificate(points if which == "actions" else None, seconds=seconds)
        assert slow_machine() - start < seconds + BEGUN
        limit = found.min_lower if minimise else found.max_upper
        assert values.max() <= sign * limit <= 5.0
        assert values.max() - values[found.index] <= found.regret <= 10.0
        assert found.lower <= sign * values[found.index] <= found.upper
        regrets.append(found.regret)
    assert slow_machine() - start > 10  # a look at all points takes longer than the first three
    assert regrets[-1] < 0.5 * regrets[0]


@pytest.mark.parametrize("kernel", [MATERN, RBF(0.4) + ConstantKernel(0.1)])
@pytest.mark.parametrize("seconds", [0.1, 3.0, 30.0])
def test_boxes_are_certified_in_time(slow_machine, kernel, seconds):
    function, rng = truth(kernel, np.random.default_rng(3), 3.0), np.random.default_rng(0)
    seq = kb.ConfidenceSequence(kernel, 3.0, 0.1)
    X = rng.random((200, 2))
    seq.update(X, function(X) + 0.1 * rng.standard_normal(200))
    start = slow_machine()
    found = kb.KernelUCB(seq, _unit_box(2)).certificate(seconds=seconds, tolerance=1e-6)
    assert slow_machine() - start < seconds + BEGUN
    values = function(_grid(2))
    assert values.max() <= found.max_upper
    assert values.max() - function(found.x[None])[0] <= found.regret
    start = slow_machine()
    kb.Ascent().maximise(seq.surface(1), _unit_box(2), X, deadline=start + seconds)
    assert slow_machine() - start < seconds + 1.2


def test_powers_of_kernels_are_certified_in_time():
    """A power of a million is twenty squares, and not a million products."""
    centres, halves = np.random.default_rng(0).random((2, 5, 2))
    base = kernels.features_in_boxes(RBF(0.5), centres, 0.01 * halves)
    product = base
    for exponent in range(2, 12):
        product = _product(product, base)
        found = kernels.features_in_boxes(RBF(0.5) ** exponent, centres, 0.01 * halves)
        for one, other in zip(found, product, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
    seq = kb.ConfidenceSequence(RBF(300.0) ** 10**6, 5.0, 0.1)
    seq.update(centres, centres[:, 0])
    start = time.process_time()
    found = kb.KernelUCB(seq, _unit_box(2)).certificate(seconds=0.2)
    assert time.process_time() - start < 3
    assert found.regret <= 10.0
