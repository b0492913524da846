"""Regret bounds before, during and after a run, and how much tighter AMM is than its rivals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import KERNELS, instances, sequence, too_many, truth
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import kernelbounds as kb
from kernelbounds import theory


class TestRegretBounds:
    def test_by_hand(self):
        a = kb.Assumptions(2.0, 0.5, 0.1, 0.25)
        inside = 3.0 + 4 / 0.5 + math.log(10)
        expected = 2 * 5 * 7 + 0.5 * math.sqrt(24 * 100 * 3 * inside)
        assert theory.regret_bound(a, 100, 3.0, 7, 5.0) == pytest.approx(expected)
        expected = 2 * 5 * 7 + math.sqrt(12 * 0.01 * 4 * 100 * 3)
        assert theory.noiseless_regret_bound(2.0, 100, 0.01, 3.0, 7, 5.0) == pytest.approx(expected)
        assert theory.largest_value(2.0, 9.0) == 6.0
        squared = 2 * 0.25 * 3 + 0.25 * 4 / 0.25 + 2 * 0.25 * math.log(10)
        assert theory.radius_bound(a, 3.0) == pytest.approx(math.sqrt(squared))
        with pytest.raises(kb.InputError, match="noiseless"):
            theory.regret_bound(kb.Assumptions(1.0, 0.0, 0.1), 10, 1.0, 0, 1.0)

    @settings(max_examples=25, deadline=None)
    @given(instances)
    def test_radius_of_a_run(self, i):
        """Eq. (17) holds with equality at the run's own gain."""
        rng = np.random.default_rng(i["seed"])
        seq, _ = sequence(KERNELS[i["name"]], rng, i["t"], mixture_scale=0.01 / i["ridge"])
        gain = theory.information_gain(seq.kernel, seq.points, i["ridge"])
        assert seq.ridge_radius() == pytest.approx(
            float(theory.radius_bound(seq.assumptions, gain)), rel=1e-6
        )

    @settings(max_examples=25, deadline=None)
    @given(instances, st.sampled_from([0.0, 0.1]))
    def test_the_theorem_is_above_the_sum_of_widths(self, i, noise):
        """What the proofs of Thm. 6.2 and Eq. (56) show, for any points whatever."""
        rng = np.random.default_rng(i["seed"])
        ridge, norm = i["ridge"], 5.0
        seq, _ = sequence(
            KERNELS[i["name"]], rng, i["t"], norm, noise, bound=kb.AMM(ridge),
            mixture_scale=max(noise, 0.1) ** 2 / ridge,
        )  # fmt: skip
        found = theory.run_bound(seq, value_bound=3.0)
        T = np.arange(1, i["t"] + 1)
        if noise:
            bound = theory.regret_bound(seq.assumptions, T, found.gains, found.counts, 3.0)
        else:
            bound = theory.noiseless_regret_bound(norm, T, ridge, found.gains, found.counts, 3.0)
        assert np.all(found.cumulative <= bound * (1 + 1e-9))


class TestRunBound:
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    @pytest.mark.parametrize("ridge", [0.03, 0.5])
    def test_is_what_the_sequence_knew(self, noise, ridge):
        rng = np.random.default_rng(0)
        kernel, c = Matern(0.3, nu=1.5), 1.0
        seq, _ = sequence(kernel, rng, 30, 2.0, noise, bound=kb.CMM(), mixture_scale=c)
        found = theory.run_bound(seq, ridge)
        then = kb.ConfidenceSequence(kernel, 2.0, noise, mixture_scale=c)
        for t in range(30):
            radius = then.ridge_radius(ridge)
            variance = 1.0
            if t:
                k = seq.kernel(seq.points[:t], seq.points[t : t + 1])
                K = seq.kernel(seq.points[:t]) + ridge * np.eye(t)
                variance = 1 - float((k.T @ np.linalg.solve(K, k))[0, 0])
            width = 2 * radius * math.sqrt(variance / ridge)
            assert found.terms[t] == pytest.approx(min(4.0, width), rel=1e-6)
            assert found.radii[t] == pytest.approx(radius, rel=1e-6)
            then.update(seq.points[t], seq.outcomes[t])
        gains = theory.information_gains(seq.kernel, seq.points, ridge)
        assert found.gains == pytest.approx(gains)
        assert np.array_equal(found.counts, theory.potential_counts(seq.kernel, seq.points, ridge))
        later = theory.run_bound(seq, ridge, skip=10)
        assert np.array_equal(later.terms, found.terms[10:])

    def test_a_policy_while_it_runs(self):
        rng = np.random.default_rng(1)
        grid = rng.random((50, 2))
        function = kb.RKHSFunction(RBF(0.4), rng.random((5, 2)), rng.standard_normal(5))
        function = function.rescaled(2.0)
        for bound in (kb.CMM(), kb.DMM(), kb.AMM(), kb.AMM(0.2)):
            seq = kb.ConfidenceSequence(RBF(0.4), 2.0, 0.1, bound=bound)
            ucb = kb.KernelUCB(seq, kb.Finite(grid))
            for t in range(25):
                s = ucb.ask()
                ucb.tell(s.x, function(s.x[None])[0] + 0.1 * rng.standard_normal())
                if t in (0, 24):
                    found = theory.run_bound(ucb)
                    # The policy's own record is at least as sharp: it was limited on each side.
                    assert np.all(ucb.history.width <= found.terms * (1 + 1e-6))
                    assert len(found.cumulative) == t + 1
            regret = function(grid).max() - function(seq.points)
            assert np.all(np.cumsum(regret) <= found.cumulative)

    def test_refuses(self):
        rng = np.random.default_rng(0)
        for bound, options in (
            (kb.AY(), {}),
            (kb.IGP(0.1), {}),
            (kb.AMM(0.2), {"ridge": 0.3}),
            (kb.DMM(), {"ridge": 0.2345}),
            (kb.CMM(), {"ridge": -1.0}),
            (kb.CMM(), {"value_bound": -1.0}),
            (kb.CMM(), {"skip": 5}),
        ):
            seq, _ = sequence(RBF(0.4), rng, 5, bound=bound)
            with pytest.raises(kb.InputError):
                theory.run_bound(seq, **options)
        seq, _ = sequence(RBF(0.4), rng, 5, noise_scale=0.0)
        with pytest.raises(kb.InputError, match="pass ridge"):
            theory.run_bound(seq)
        seq, _ = sequence(DotProduct(0.5), rng, 5)
        with pytest.raises(kb.InputError, match="value_bound"):
            theory.run_bound(seq)
        with pytest.raises(kb.InputError):
            theory.run_bound(kb.RandomPolicy(seq, rng=rng))
        false = kb.ConfidenceSequence(RBF(0.5), 0.1, 0.0)
        false.update([[0.0], [1.0], [2.0]], [1.0, -1.0, 1.0])
        with pytest.raises(kb.EmptyConfidenceSetError):
            theory.run_bound(false, 0.01)


def _rising():
    """A function of norm 2 on a grid, by far the best at one end, and how to observe it."""
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 60)[:, None]
    function = kb.RKHSFunction(RBF(0.3), np.array([[0.0], [1.0]]), np.array([-1.0, 1.0]))
    function = function.rescaled(2.0)
    seq = kb.ConfidenceSequence(RBF(0.3), 2.0, 0.01, bound=kb.AMM())
    return grid, function, seq, lambda x: function(x[None])[0] + 0.01 * rng.standard_normal()


class TestRunsThatTheLemmaIsNotAbout:
    """Points that do not maximise the bound from all outcomes before them."""

    def test_batches(self):
        """The regret of this run is more than twice the sum of the lemma's terms."""
        grid, function, seq, observe = _rising()
        ucb = kb.KernelUCB(seq, kb.Finite(grid))
        history = ucb.run(observe, 40, batch=40)
        regret = np.cumsum(function(grid).max() - function(seq.points))
        assert regret[-1] > 2 * theory.run_bound(seq).cumulative[-1]  # of which nothing is checked
        assert np.all(regret <= history.cumulative_regret_bound)
        with pytest.raises(kb.InputError, match=r"history\.cumulative_regret_bound") as caught:
            theory.run_bound(ucb)
        assert str(caught.value).count(". ") == 0

    @pytest.mark.parametrize("how", ["own points", "ascent", "mixed", "told late"])
    def test_others(self, how):
        grid, _, seq, observe = _rising()
        box = how == "ascent"
        ucb = kb.KernelUCB(seq, kb.Box([0.0], [1.0]) if box else kb.Finite(grid))
        if how == "own points":
            ucb.tell(grid[::20], [observe(x) for x in grid[::20]])
        elif how == "told late":
            asked = [ucb.ask(grid[at:]) for at in (0, 1, 2, 3, 4)]
            for one in asked:
                ucb.tell(one.x, observe(one.x))
        else:
            ucb.run(observe, 4)
            if how == "mixed":
                ucb.tell(grid[3], observe(grid[3]))
        with pytest.raises(kb.InputError, match=r"history\.cumulative_regret_bound"):
            theory.run_bound(ucb)

    def test_observations_from_before_the_policy(self):
        grid, _, seq, observe = _rising()
        seq.update(grid[::20], [observe(x) for x in grid[::20]])
        ucb = kb.KernelUCB(seq, kb.Finite(grid))
        ucb.run(observe, 4)
        with pytest.raises(kb.InputError, match="skip=3"):
            theory.run_bound(ucb)
        assert len(theory.run_bound(ucb, skip=3).terms) == 4
        with pytest.raises(kb.InputError, match="skip=3"):
            theory.run_bound(ucb, skip=2)

    @pytest.mark.parametrize("maximiser", [kb.BranchAndBound(tolerance=0.05), kb.Grid(cells=200)])
    def test_what_a_certified_maximiser_leaves_open_is_added(self, maximiser):
        _, _, seq, observe = _rising()
        ucb = kb.KernelUCB(seq, kb.Box([0.0], [1.0]), maximiser=maximiser)
        history = ucb.run(observe, 8)
        found, alone = theory.run_bound(ucb), theory.run_bound(seq)
        assert np.all(found.terms >= np.minimum(history.regret_bound, 4.0))
        assert np.all(found.terms >= alone.terms)
        left_open = np.maximum(history.limit - history.upper, 0.0)
        assert np.all(found.terms <= alone.terms + left_open + 1e-6)

    def test_actions_that_may_be_tried_once(self):
        """Of those left, the maximiser of the bound need not be that of all."""
        grid, function, seq, observe = _rising()
        ucb = kb.KernelUCB(seq, kb.Finite(grid[::4], once=True))
        ucb.run(observe, 15)
        regret = np.cumsum(function(grid[::4]).max() - function(seq.points))
        assert regret[-1] > theory.run_bound(seq).cumulative[-1]
        assert np.all(regret <= theory.run_bound(ucb).cumulative)


DELTA, NORM, NOISE = 0.2, 2.0, 0.3
GRID = np.linspace(0, 1, 30)[:, None]


def _violations(runs, rounds, believed_noise=NOISE):
    """Runs in which the regret of any round, or its sum at any time, exceeds its bound."""
    kernel, failures = Matern(0.2, nu=1.5), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        values = truth(kernel, rng, NORM, dim=1, centres=10)(GRID)
        seq = kb.ConfidenceSequence(kernel, NORM, believed_noise, DELTA, 1.0, bound=kb.AMM())
        played = []
        for _ in range(rounds):
            x = int(np.argmax(seq.upper(GRID)))
            seq.update(GRID[x], values[x] + NOISE * rng.standard_normal())
            played.append(x)
        regret, bound = values.max() - values[played], theory.run_bound(seq)
        wrong = np.any(regret > bound.terms) or np.any(np.cumsum(regret) > bound.cumulative)
        failures += bool(wrong)
    return failures


def test_measured_regret_is_below_the_bound():
    """More failures than a binomial with success probability delta would have (level 1e-4)."""
    runs = 60
    assert not too_many(_violations(runs, 60), runs, DELTA)


def test_that_test_can_fail():
    """With the noise believed thirty times smaller than it is, the same test rejects."""
    runs = 30
    assert too_many(_violations(runs, 60, NOISE / 30), runs, DELTA)


class TestTightness:
    @settings(max_examples=40, deadline=None)
    @given(instances, st.sampled_from([1e-3, 0.1, 2.0]))
    def test_gaps_are_those_of_the_bounds(self, i, eta):
        """Thm. 6.1: factors before rho(x), from the closed forms and from the bounds."""
        rng = np.random.default_rng(i["seed"])
        noise = 0.1
        for rival, ridge in ((kb.AY(), i["ridge"]), (kb.IGP(eta), 1 + eta)):
            kernel = KERNELS[i["name"]]
            seq, _ = sequence(kernel, rng, i["t"], mixture_scale=noise**2 / ridge)
            X = rng.random((3, 2))
            log_det = 2 * theory.information_gain(kernel, seq.points, ridge)
            if isinstance(rival, kb.AY):
                gap = theory.gap_to_ay(seq.assumptions, log_det, ridge)
                assert 1 <= gap.ratio <= math.sqrt(2) + 1e-12
            else:
                gap = theory.gap_to_igp(seq.assumptions, log_det, eta, i["t"])
            assert gap.difference > 0 and gap.ratio > 1
            ours, theirs = (
                b.extremes(seq.known, X, (1, -1)).sum(axis=0) for b in (kb.AMM(), rival)
            )
            assert theirs == pytest.approx(gap.ratio * ours, rel=1e-6)

    def test_largest_gap(self):
        """p = B: AY is sqrt(2) times wider."""
        a = kb.Assumptions(3.0, 1.0, math.exp(-0.5), 1.0)
        gap = theory.gap_to_ay(a, 8.0, 1.0)
        assert gap.ours == pytest.approx(3 * math.sqrt(2)) and gap.rival == pytest.approx(6.0)
        silent = theory.gap_to_ay(kb.Assumptions(3.0, 0.0, 0.1), 8.0, 1.0)
        assert silent.ratio == 1.0 and theory.Gap(0.0, 0.0).ratio == 1.0

    def test_comparison(self):
        rng = np.random.default_rng(0)
        seq, _ = sequence(Matern(0.3, nu=2.5), rng, 30)
        X = rng.random((40, 2))
        found = theory.compare(seq, X)
        assert [row.name for row in found.rows] == ["CMM", "DMM", "AMM", "AY", "IGP"]
        assert found["CMM"].mean_ratio == found["CMM"].largest_ratio == 1.0
        ratios = [found[name].mean_ratio for name in ("CMM", "DMM", "AMM", "AY")]
        assert ratios == sorted(ratios) and ratios[-1] > 1.05
        lower, upper = seq.bounds(X, kb.AY())
        assert found["AY"].mean_width == pytest.approx((upper - lower).mean())
        assert "IGP" in str(found) and "times CMM" in str(found["AY"])
        with pytest.raises(kb.InputError):
            theory.compare("data", X)
        with pytest.raises(kb.InputError, match="there are CMM"):
            found["GP"]

    def test_comparison_before_any_data(self):
        seq = kb.ConfidenceSequence(RBF(), 1.0, 0.1)
        assert {row.mean_ratio for row in theory.compare(seq, [[0.5]]).rows} == {1.0}
