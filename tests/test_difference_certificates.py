"""Certificates by differences, and the surfaces that they are maxima of."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import pytest
from problems import BOUNDS, KERNELS, POINTS, too_many, truth
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import kernelbounds as kb
from kernelbounds.functionals import Difference
from kernelbounds.functionals.targets import differences
from kernelbounds.mixtures import Hybrid
from kernelbounds.surface import Clipped, Surface

SMOOTH = Matern(0.5, nu=2.5)
PARTS = kb.Parts([(kb.OnInputs(SMOOTH, [0]), 2.0), (SMOOTH, 1.0)])
FEW = POINTS[:20]


@dataclass(frozen=True)
class Problem:
    """Assumptions, and how noisy each of three observations in turn is."""

    kernel: object
    offset: object = None
    noise: tuple[float, ...] = (0.1, 0.1, 0.1)
    level: float = 0.0

    def start(self, rng, t, bound=None, norm_bound=3.0, mixture=None, delta=0.01):
        """A sequence of t observations of a function that just satisfies the assumptions."""
        parts = isinstance(self.kernel, kb.Parts)
        pairs = self.kernel.pairs if parts else [(self.kernel, norm_bound)]
        functions = [truth(kernel, rng, 0.99 * norm) for kernel, norm in pairs]
        seq = kb.ConfidenceSequence(
            self.kernel, None if parts else norm_bound, 0.1, delta, bound=bound,
            offset=self.offset, mixture=mixture,
        )  # fmt: skip

        def function(X):
            return self.level + np.sum([one(X) for one in functions], axis=0)

        for x in rng.random((t, 2)):
            self.observe(seq.update, function, x, rng, len(seq))
        return seq, function

    def observe(self, add, function, x, rng, count):
        scale = self.noise[count % 3]
        y = function(np.atleast_2d(x))[0] + scale * rng.standard_normal()
        add(x, y, None if len(set(self.noise)) == 1 else scale)


PROBLEMS = {
    "plain": Problem(SMOOTH),
    "known level": Problem(SMOOTH, 1e3, level=1e3),
    "unknown level": Problem(SMOOTH, kb.Offset(10.0, 5.0), level=14.9),
    "noise scales": Problem(SMOOTH, noise=(0.01, 0.1, 1.0)),
    "parts": Problem(PARTS),
    "all": Problem(PARTS, kb.Offset(10.0, 5.0), (0.01, 0.1, 1.0), 5.1),
}


def _regret(found, function, points, minimise):
    values = function(points)
    own = function(found.x[None])[0]
    return own - values.min() if minimise else values.max() - own


def _by_bounds(found, minimise):
    return found.upper - found.min_lower if minimise else found.max_upper - found.lower


@pytest.mark.parametrize("minimise", [False, True], ids=["max", "min"])
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_on_finite_sets(problem, name, minimise):
    for t in (0, 7, 20):
        seq, function = PROBLEMS[problem].start(np.random.default_rng(t), t, BOUNDS[name])
        policy = kb.KernelUCB(seq, kb.Finite(FEW), minimise=minimise)
        found = policy.certificate()
        assert found.regret >= _regret(found, function, FEW, minimise)
        by_bounds = _by_bounds(found, minimise)
        # One by one, and the other way around when minimising.
        ends = seq.bounds_of([Difference(x, found.x) for x in FEW])
        largest = -ends[0].min() if minimise else ends[1].max()
        assert min(by_bounds, largest) - 1e-5 <= found.regret <= by_bounds
        if name == "CMM":  # which is never beyond the trivial bounds
            assert found.regret <= largest + 1e-5


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize(("name", "minimise"), [("CMM", False), ("AMM", True), ("AY", False)])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_on_a_box(problem, name, minimise):
    rng = np.random.default_rng(2)
    seq, function = PROBLEMS[problem].start(rng, 20, BOUNDS[name])
    policy = kb.KernelUCB(seq, kb.Box([0.4, 0.4], [0.8, 0.4]), minimise=minimise)
    found = policy.certificate(tolerance=0.05)
    dense = policy.domain.scaled(rng.random((300, 2)))
    assert found.regret >= _regret(found, function, dense, minimise)
    sign = -1 if minimise else 1
    surface = Clipped(Surface(seq.surface(sign).known, seq.bound, sign, found.x))
    largest, by_bounds = surface.values(dense).max(), _by_bounds(found, minimise)
    assert min(largest, by_bounds) - 1e-7 <= found.regret <= by_bounds + 1e-9
    assert found.regret <= largest + 0.05 + 0.01  # the tolerance, and what the sample misses
    assert policy.is_good_enough(2 * found.regret)
    assert not policy.is_good_enough(0.5 * min(largest, by_bounds))


@pytest.mark.parametrize("kernel", [DotProduct(1.0), RBF(0.5), Matern(0.4, nu=1.5)], ids=str)
@pytest.mark.parametrize("noise_scale", [0.0, 1e-4])
def test_on_sets_with_points_that_are_nearly_equal(kernel, noise_scale):
    rng = np.random.default_rng(0)
    points = np.repeat(rng.random((8, 2)), 3, axis=0)
    points[1::3] += 1e-9
    function = truth(kernel, rng, 3.0)
    seq = kb.ConfidenceSequence(kernel, 3.0, noise_scale)
    seq.update(points[::4], function(points[::4]))
    for minimise in (False, True):
        found = kb.KernelUCB(seq, kb.Finite(points), minimise=minimise).certificate()
        assert found.regret >= _regret(found, function, points, minimise)


# --- the surface of differences from one point

SURFACES = {
    **{name: Problem(KERNELS[name]) for name in ("rbf", "matern 3/2", "linear", "product")},
    "all": PROBLEMS["all"],
}


def _difference_surface(problem, name, t, sign):
    rng = np.random.default_rng(t)
    seq, _ = SURFACES[problem].start(rng, t, BOUNDS[name])
    return Surface(seq.surface(sign).known, seq.bound, sign, rng.random(2)), rng


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["CMM", "AMM", "AY"])
@pytest.mark.parametrize("t", [0, 3, 80])
@pytest.mark.parametrize("problem", SURFACES)
def test_its_gradients_are_difference_quotients(problem, t, name, sign):
    surface, rng = _difference_surface(problem, name, t, sign)
    x, step = rng.random((5, 2)), 1e-5
    values, gradients = surface.values_and_gradients(x)
    np.testing.assert_allclose(values, surface.values(x), rtol=1e-6, atol=1e-6)
    for axis, h in enumerate(step * np.eye(2)):
        quotients = (surface.values(x + h) - surface.values(x - h)) / (2 * step)
        # Values have errors of 1e-11 or so, relative to the trivial bound.
        np.testing.assert_allclose(gradients[:, axis], quotients, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["CMM", "DMM", "AY", "IGP"])
@pytest.mark.parametrize("t", [0, 3, 80])
@pytest.mark.parametrize("problem", SURFACES)
def test_its_ceilings_are_above_it_everywhere(problem, t, name, sign):
    surface, rng = _difference_surface(problem, name, t, sign)
    centres = np.vstack([rng.random((3, 2)), surface.reference, surface.reference + 1e-6])
    for width in (0.3, 0.02, 1e-5):
        half = width * rng.random((5, 2))
        for one in (surface, Clipped(surface)):
            at_centre, over_box = one.ceilings(centres, half)
            assert at_centre == pytest.approx(one.values(centres), rel=1e-6, abs=1e-6)
            x = centres + half * rng.uniform(-1, 1, (40, 5, 2))
            highest = one.values(x.reshape(-1, 2)).reshape(40, 5).max(axis=0)
            assert np.all(highest <= over_box + 1e-9 * np.maximum(1, np.abs(over_box)))
            if width == 1e-5 and t and problem != "matern 3/2":
                assert np.all(over_box <= at_centre + 1e-3)  # or else nothing could be certified


def test_it_is_that_of_the_functionals():
    surface, rng = _difference_surface("all", "CMM", 30, 1)
    x = rng.random((6, 2))
    expected = kb.CMM().extremes(surface.known, differences(x, surface.reference), (1,))[0]
    np.testing.assert_allclose(surface.values(x), expected, rtol=1e-9)
    largest = surface.largest(x)
    assert largest.value == pytest.approx(expected.max(), abs=1e-6)


# --- batches and pending actions


@pytest.mark.parametrize("space", ["finite", "box"])
def test_batches_with_parts_and_a_level(space):
    """What is pending is believed, and nothing of the sequence changes by it."""
    rng = np.random.default_rng(0)
    seq, function = PROBLEMS["all"].start(rng, 6)
    domain = kb.Finite(POINTS) if space == "finite" else kb.Box([0, 0], [1, 1])
    policy = kb.KernelUCB(seq, domain)
    before, shares = np.array(seq.bounds(POINTS)), seq.known.shares
    batch = policy.ask(n=4)
    assert len({tuple(np.round(one.x, 6)) for one in batch}) == 4
    policy.begin([one.x for one in batch[:3]])
    again = policy.ask()
    np.testing.assert_allclose(again.x, batch[3].x, atol=1e-4)
    np.testing.assert_array_equal(seq.bounds(POINTS), before)
    assert seq.known.shares == shares and len(seq) == 6
    for one in batch:
        value = function(one.x[None])[0]
        assert one.lower <= value <= one.upper <= one.limit + 1e-6
        policy.tell(one.x, value)
    assert seq.known.shares != shares


@pytest.mark.parametrize("name", BOUNDS)
def test_decisions_when_shares_change(name):
    """Those of a policy that has followed all rounds, and of one that has just begun."""
    rng = np.random.default_rng(0)
    seq, function = PROBLEMS["all"].start(rng, 0, BOUNDS[name])
    policy = kb.KernelUCB(seq, kb.Finite(POINTS))
    for count in range(35):
        asked = policy.ask()
        if count % 8 in (7, 0, 1):
            fresh = kb.KernelUCB(copy.deepcopy(seq), kb.Finite(POINTS)).ask()
            assert fresh.index == asked.index
            assert fresh.limit == pytest.approx(asked.limit, abs=1e-5)
        PROBLEMS["all"].observe(policy.tell, function, asked.x, rng, count)


# --- coverage


class Shrunk(Hybrid):
    """A radius that is too small."""

    def squared_radius(self, *known):
        return 0.0, 0.02 * super().squared_radius(*known)[1]


def _wrong(runs, rounds, name="CMM", mixture=None):
    """Runs in which, after any round, the certified regret is below the regret."""
    wrong = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        problem = PROBLEMS["all" if seed % 2 else "plain"]
        seq, function = problem.start(rng, 0, BOUNDS[name], mixture=mixture, delta=0.1)
        policy, failed = kb.KernelUCB(seq, kb.Finite(FEW)), False
        try:
            while len(seq) < rounds and not failed:
                problem.observe(policy.tell, function, policy.ask().x, rng, len(seq))
                found = policy.certificate()
                failed = found.regret < _regret(found, function, FEW, False)
        except kb.EmptyConfidenceSetError:
            failed = True
        wrong += failed
    return wrong


def test_the_test_can_fail():
    assert too_many(_wrong(12, 10, mixture=Shrunk()), 12, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_they_are_true_at_all_times(name):
    """The error rate of the test is that of test_coverage.py."""
    assert not too_many(_wrong(200, 60, name), 200, 0.1)


def test_a_bound_that_is_no_dual_is_certified_by_its_bounds():
    class Trivial(kb.Bound):
        def extremes(self, known, points, signs):
            return np.tile(known.trivial(points), (len(signs), 1))

    seq, _ = PROBLEMS["all"].start(np.random.default_rng(0), 9, Trivial())
    found = kb.KernelUCB(seq, kb.Finite(POINTS)).certificate()
    assert found.regret == found.max_upper - found.lower < math.inf
