"""Maxima over fixed sets, followed as data come, against looking at every point each time."""

from __future__ import annotations

import numpy as np
import pytest
from problems import BOUNDS, KERNEL, POINTS, noisy_only, truth
from sklearn.gaussian_process.kernels import DotProduct, Matern

import kernelbounds as kb
from kernelbounds.bandits.tracker import FIRST_POINTS, Tracker
from kernelbounds.bounds.bound import TIE

ALL = np.ones(len(POINTS), dtype=bool)
# More points than are computed at first, every third of them twice.
MANY = np.random.default_rng(11).random((3 * FIRST_POINTS, 2))
MANY = np.concatenate([MANY, MANY[::3]])


def _sequence(name, noise_scale=0.1, t=3):
    """A sequence with t observations, and a function that makes more."""
    rng = np.random.default_rng(0)
    function = truth(KERNEL, rng, 4.0)
    seq = kb.ConfidenceSequence(KERNEL, 5.0, noise_scale, bound=BOUNDS[name])

    def observe(count):
        X = rng.random((count, 2))
        seq.update(X, function(X) + noise_scale * rng.standard_normal(count))

    observe(t)
    return seq, observe, rng


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("t", [1, 20, 140])
def test_ceilings_stay_above_the_bounds_when_observations_are_added(name, sign, t):
    """At the count that they were computed at they are the bounds."""
    seq, observe, _ = _sequence(name, t=t)
    surface, tracker = seq.surface(sign), Tracker(POINTS)
    assert surface.stage is not None
    assert np.all(np.isinf(tracker.ceilings(surface)))
    tracker.largest(surface, ALL)
    np.testing.assert_allclose(tracker.ceilings(surface), surface.values(POINTS), atol=5e-7)
    for count in (1, 2, 10, 100):
        observe(count)
        gap = tracker.ceilings(surface) - surface.values(POINTS)
        assert np.all(np.isfinite(gap)) and gap.min() > -5e-7
        assert gap.max() > 1e-4  # they are not all recomputed


def _is_the_largest(values, opposite, tie, value, index):
    """The largest value within a tie, at the first of the widest intervals among those."""
    assert value == pytest.approx(values.max(), abs=tie)
    assert values[index] >= values.max() - 2 * tie
    clearly_tied = values >= values.max() - tie / 2
    assert opposite[index] >= opposite[clearly_tied].max() - 2 * tie


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("noise_scale", [0.1, 0.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_is_that_of_all_points_at_all_times(name, noise_scale, sign):
    """With ties, with actions that are not allowed, and asked again at the same count."""
    noisy_only(name, noise_scale)
    seq, observe, rng = _sequence(name, noise_scale)
    surface, other, tracker = seq.surface(sign), seq.surface(-sign), Tracker(MANY)
    trivial, tie = surface.a_priori.trivial(MANY), 5 * TIE * 5.0
    for count in (0, 0, 1, 1, 3, 0, 1, 8, 1, 30 if noise_scale else 2, 0, 1):
        if count:
            observe(count)
        values, opposite = surface.values(MANY), other.values(MANY)
        clipped = tracker.largest_clipped(surface)
        assert clipped == pytest.approx(np.minimum(values, trivial).max(), abs=tie)
        for share in (1.0, 0.5, 0.02):
            allowed = rng.random(len(MANY)) < share
            allowed[rng.integers(len(MANY))] = True
            value, index = tracker.largest(surface, allowed)
            assert allowed[index]
            of_allowed = np.where(allowed, values, -np.inf)
            _is_the_largest(of_allowed, opposite, tie, value, index)
            again = tracker.largest(surface, allowed)
            assert again == (value, index)
        everywhere = np.ones(len(MANY), dtype=bool)
        # Of two points that are one, it is the first.
        assert tracker.largest(surface, everywhere)[1] < 3 * FIRST_POINTS


@pytest.mark.parametrize("name", BOUNDS)
def test_most_points_are_left_alone(name, monkeypatch):
    """Why there are ceilings at all."""
    seq, observe, _ = _sequence(name, t=150)
    points = np.random.default_rng(5).random((2000, 2))
    surface, tracker, computed = seq.surface(1), Tracker(points), []
    tracker.largest(surface, np.ones(2000, dtype=bool))
    compute = Tracker._compute
    monkeypatch.setattr(
        Tracker,
        "_compute",
        lambda self, surface, which: computed.extend(which) or compute(self, surface, which),
    )
    observe(1)
    tracker.largest(surface, np.ones(2000, dtype=bool))
    assert 0 < len(computed) < 700
    computed.clear()
    tracker.largest(surface, np.ones(2000, dtype=bool))
    assert not computed  # at the same count all that matters is known


def test_a_ceiling_that_ties_with_a_bound_is_looked_into():
    """At the origin, where all linear functions vanish, an observation changes no bound."""
    seq = kb.ConfidenceSequence(DotProduct(0.0), 5.0, 0.1, bound=kb.AMM())
    seq.update([[0.5, 0.5]], [0.3])
    points = np.array([[0.5, 0.5], [0.6, 0.2], [1.0, 0.0], [0.2, 0.1], [1.0, 0.0], [0.3, 0.4]])
    surface, tracker = seq.surface(1), Tracker(points)
    assert tracker.largest(surface, np.ones(6, dtype=bool))[1] == 2
    seq.update([[0.0, 0.0]], [0.0])
    assert tracker.largest(surface, np.arange(6) == 4)[1] == 4
    assert tracker.largest(surface, np.ones(6, dtype=bool))[1] == 2


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("t", [7, 15, 31])
def test_ceilings_when_the_shares_of_parts_change(name, t):
    """Bounds of another kernel are no ceilings any more: far from the data they may be less."""
    rng = np.random.default_rng(t)
    parts = kb.Parts([(kb.OnInputs(KERNEL, [0]), 3.0), (kb.OnInputs(KERNEL, [1]), 3.0)])
    seq = kb.ConfidenceSequence(parts, noise_scale=0.1, bound=BOUNDS[name])
    X = rng.random((t + 1, 2)) * [1.0, 1e-3]
    y = np.sin(3 * X[:, 0])
    seq.update(X[:t], y[:t])
    tracker, everywhere = Tracker(MANY), np.ones(len(MANY), dtype=bool)
    tracker.largest(seq.surface(1), everywhere)
    before = seq.known.shares
    seq.update(X[t], y[t])
    assert seq.known.shares != before
    surface = seq.surface(1)
    values, opposite = surface.values(MANY), seq.surface(-1).values(MANY)
    tie = TIE * float(surface.a_priori.trivial(MANY).max())
    _is_the_largest(values, opposite, tie, *tracker.largest(surface, everywhere))
    assert np.all(tracker.ceilings(surface) >= values - 5e-7)


ENGINES = {
    "few": kb.Sparse(most=10),
    "given": kb.Sparse.filling([0], [1], 8),
    "enough": kb.Sparse.filling([0], [1], 64),
    "growing": kb.Sparse(tolerance=0.1),
}


@pytest.mark.parametrize("name", ["CMM", "AMM"])
@pytest.mark.parametrize("engine", ENGINES)
def test_features_of_a_sparse_engine_change(name, engine):
    """Bounds of an earlier time are no ceilings there as they are, or not at all."""
    kernel, rng = Matern(0.1, nu=1.5), np.random.default_rng(0)
    function, points = truth(kernel, rng, 3.6, dim=1), rng.random((300, 1))
    engine = ENGINES[engine]
    seq = kb.ConfidenceSequence(kernel, 4.0, 0.1, engine=engine, bound=BOUNDS[name])
    ucb, tracker = kb.KernelUCB(seq, kb.Finite(points)), Tracker(points)
    tie, kept = 5 * TIE * 4.0, 0
    for count in range(30):
        asked, surface = ucb.ask(), seq.surface(1)
        values, opposite = surface.values(points), seq.surface(-1).values(points)
        assert asked.limit == pytest.approx(min(values.max(), 4.0), abs=tie)
        if count:
            assert np.all(ucb._tracker.ceilings(surface) >= values - tie)
            ceilings = tracker.ceilings(surface)
            assert np.all(ceilings >= values - tie)
            kept += np.isfinite(ceilings).all()
        _is_the_largest(values, opposite, tie, values.max(), asked.index)
        allowed = rng.random(len(points)) < 0.5
        of_allowed = np.where(allowed, values, -np.inf)
        _is_the_largest(of_allowed, opposite, tie, *tracker.largest(surface, allowed))
        assert tracker.largest_clipped(surface) == pytest.approx(min(values.max(), 4.0), abs=tie)
        ucb.tell(asked.x, function(asked.x[None])[0] + 0.1 * rng.standard_normal())
    assert kept > 5 or engine is ENGINES["growing"]  # where new ones join in most rounds
