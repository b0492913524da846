"""The policies of the literature: each chooses as its paper says, and promises no more than it can.

That they ask, tell, save and certify as all policies do is tested in test_policies.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import KERNEL, POINTS, policy_on, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.bandits import BatchedElimination, PartitionedUCB, VarianceReduction

NOISES = [0.1, 0.0, kb.noise.Gaussian(), kb.noise.Gaussian(at_most=0.3)]
NOISE_NAMES = ["known", "none", "unknown", "limited"]


def _outcomes(rng, function, points, scale=0.1):
    return function(points) + scale * rng.standard_normal(len(points))


class TestVarianceReduction:
    @pytest.mark.parametrize("noise", NOISES, ids=NOISE_NAMES)
    @pytest.mark.parametrize("parts", [False, True])
    def test_outcomes_do_not_matter(self, noise, parts):
        two = kb.Parts([(KERNEL, 3.0), (RBF(2.0), 2.0)])
        played = []
        for slope in (0.0, 1.0):
            assumed = (two, None) if parts else (KERNEL, 5.0)
            seq = kb.ConfidenceSequence(*assumed, noise)
            policy = VarianceReduction(seq, kb.Finite(POINTS))
            for _ in range(12):
                s = policy.ask()
                policy.tell(s.x, slope * s.x[0])
            policy.begin(policy.ask(n=3))
            played.append([*map(tuple, seq.points), *map(tuple, policy.pending)])
        assert played[0] == played[1]

    def test_it_is_the_greedy_choice_of_variances(self):
        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, mixture_scale=0.5)
        batch = VarianceReduction(seq, kb.Finite(POINTS)).ask(n=10)
        K, taken = KERNEL(POINTS), []
        for s in batch:
            cross = K[:, taken]
            ridge = 0.1**2 / 0.5 * np.eye(len(taken))
            solved = np.linalg.solve(K[np.ix_(taken, taken)] + ridge, cross.T)
            variance = np.diag(K) - (cross * solved.T).sum(axis=1)
            assert variance[s.index] == pytest.approx(variance.max(), rel=1e-9)
            taken.append(s.index)

    def test_fixed_designs_are_allowed(self):
        """On the design of a known number of rounds, the bound for one point of it holds."""
        function = truth(KERNEL, np.random.default_rng(0), 4.0)
        wrong = 0
        for seed in range(20):
            rng = np.random.default_rng(seed)
            seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, delta=0.05)
            design = np.array([s.x for s in VarianceReduction(seq, kb.Finite(POINTS)).ask(n=15)])
            seq.update(design, _outcomes(rng, function, design))
            lower, upper = seq.bounds(POINTS, bound=kb.FixedDesign())
            wrong += not np.all((lower <= function(POINTS)) & (function(POINTS) <= upper))
        # With 20 runs that fail with probability 0.05 each, five failures have probability 0.003.
        assert wrong < 5


class TestBatchedElimination:
    def test_batches_have_the_published_lengths(self):
        policy, function, _ = policy_on(BatchedElimination, kb.Finite(POINTS))
        policy = BatchedElimination(policy.sequence, kb.Finite(POINTS), rounds=100)
        ends, length = [], 1.0
        for _ in range(4):
            length = math.ceil(math.sqrt(100 * length))
            assert policy.left_in_batch == length
            batch = policy.ask(n=int(length))
            policy.tell([s.x for s in batch], [float(function(s.x[None])[0]) for s in batch])
            ends.append(length)
        assert ends == [10, 32, 57, 76]

    @pytest.mark.parametrize("minimise", [False, True])
    def test_actions_are_ruled_out_at_the_end_of_a_batch_and_the_best_one_never(self, minimise):
        rng = np.random.default_rng(1)
        function = truth(KERNEL, rng, 4.0)
        values = function(POINTS) * (-1 if minimise else 1)
        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
        policy = BatchedElimination(seq, kb.Finite(POINTS), minimise=minimise, rounds=80)
        kept = [policy.remaining]
        for _ in range(80):
            s, last = policy.ask(), policy.left_in_batch == 1
            assert kept[-1][s.index]
            policy.tell(s.x, float(_outcomes(rng, function, s.x[None])[0]))
            now = policy.remaining
            assert last or np.array_equal(now, kept[-1])
            assert not np.any(now & ~kept[-1]) and now[values.argmax()]
            kept.append(now)
        assert 0 < kept[-1].sum() < len(POINTS) / 2

    def test_within_a_batch_outcomes_do_not_matter(self):
        found = []
        for slope in (0.0, 1.0):
            seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
            policy = BatchedElimination(seq, kb.Finite(POINTS), rounds=100)
            policy.run(lambda x, slope=slope: slope * x[0], rounds=10)
            found.append(seq.points)
        assert np.array_equal(*found)

    def test_refuted_assumptions_are_told_of_by_the_next_ask(self):
        policy, _, rng = policy_on(BatchedElimination, kb.Finite(POINTS))
        policy.tell(POINTS[:40], 50 * rng.standard_normal(40))
        assert policy.left_in_batch > 0 and policy.remaining.all()
        with pytest.raises(kb.EmptyConfidenceSetError):
            policy.ask()

    def test_a_box_is_refused(self):
        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
        with pytest.raises(kb.InputError, match="needs a Finite domain"):
            BatchedElimination(seq, kb.Box([0], [1]))
        with pytest.raises(kb.InputError, match="rounds"):
            BatchedElimination(seq, kb.Finite(POINTS), rounds=0)


def _partitioned(rounds=40, seed=0, delta=0.01, nu=None):
    rng = np.random.default_rng(seed)
    function = truth(KERNEL, rng, 4.0)
    seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, delta)
    policy = PartitionedUCB(seq, kb.Finite(POINTS), nu=nu)
    for _ in range(rounds):
        s = policy.ask()
        policy.tell(s.x, float(_outcomes(rng, function, s.x[None])[0]))
    return policy, function


class TestPartitionedUCB:
    def test_cells_are_cut_by_the_published_rule(self):
        policy, _ = _partitioned()
        box = kb.Finite(POINTS)
        exponent = (2 + 2 * 2.5) / (2 + 1)
        points, owners = policy.sequence.points, np.zeros(len(POINTS), dtype=int)
        sides = set()
        for lower, upper in policy.cells:
            (side,) = set(np.round((upper - lower) / (box.upper - box.lower), 12))
            sides.add(side)
            middle, half = (lower + upper) / 2, (upper - lower) / 2
            count = (np.abs(points - middle) <= half).all(axis=1).sum()
            assert count + 1 <= side**-exponent
            owners += (np.abs(POINTS - middle) < half + 1e-12).all(axis=1)
        assert np.all(owners == 1) and len(sides) > 1

    def test_all_cells_together_spend_delta(self):
        """Also those that are never made: over all levels, the shares add up to at most delta."""
        policy, _ = _partitioned(delta=0.05)
        policy.cell_bounds(POINTS)
        for cell, own in policy._sequences.items():
            j = cell.level
            share = 1 / ((j + 1) * (j + 2)) / 4**j
            assert own.assumptions.delta == pytest.approx(0.05 * share, rel=1e-12)
        whole = sum(4.0**j * (1 / ((j + 1) * (j + 2)) / 4.0**j) for j in range(500))
        assert 0.99 < whole < 1  # it is 1 - 1/501

    def test_bounds_of_a_cell_are_those_of_its_observations(self):
        policy, _ = _partitioned()
        seq, box = policy.sequence, kb.Finite(POINTS)
        found = np.array(policy.cell_bounds(POINTS))
        checked = 0
        for lower, upper in policy.cells:
            j = round(np.log2((box.upper - box.lower)[0] / (upper - lower)[0]))
            own = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, 0.01 / 4**j / ((j + 1) * (j + 2)))
            told, here = (np.all((lower <= X) & (upper >= X), axis=1) for X in (seq.points, POINTS))
            own.update(seq.points[told], seq.outcomes[told])
            if here.any():
                np.testing.assert_allclose(found[:, here], own.bounds(POINTS[here]), rtol=1e-9)
                checked += 1
        assert checked > 3

    def test_it_plays_the_largest_bound_of_a_cell(self):
        policy, _ = _partitioned()
        upper = policy.cell_bounds(POINTS)[1]
        assert upper[policy.ask().index] == pytest.approx(upper.max(), rel=1e-9)

    def test_cells_bound_the_truth(self):
        wrong = 0
        for seed in range(6):
            policy, function = _partitioned(rounds=20, seed=seed, delta=0.05)
            lower, upper = policy.cell_bounds(POINTS)
            wrong += not np.all((lower <= function(POINTS)) & (function(POINTS) <= upper))
        # Six runs that fail with probability 0.05 each fail three times with probability 0.002.
        assert wrong < 3

    def test_certificates_are_those_of_one_sequence(self):
        policy, _ = _partitioned()
        other = kb.KernelUCB(policy.sequence, kb.Finite(POINTS))
        assert policy.certificate().regret == other.certificate().regret

    def test_without_cuts_it_is_kernel_ucb(self):
        seq = kb.ConfidenceSequence(RBF(0.3), 5.0, 0.1)
        policy, ucb = PartitionedUCB(seq, kb.Finite(POINTS)), kb.KernelUCB(seq, kb.Finite(POINTS))
        policy.tell(POINTS[:8], np.sin(POINTS[:8, 0]))
        assert len(policy.cells) == 1 and policy.ask().index == ucb.ask().index
        np.testing.assert_allclose(policy.cell_bounds(POINTS), seq.bounds(POINTS), rtol=1e-12)

    def test_a_box_is_searched_again_only_where_something_is_new(self, monkeypatch):
        policy, _, _ = policy_on(PartitionedUCB, kb.Box([0, 0], [1, 1]), t=6)
        policy.ask()
        searched = []
        monkeypatch.setattr(
            kb.Ascent, "maximise", lambda self, surface, box, *rest: searched.append(box)
        )
        policy.ask()
        assert not searched

    def test_noise_scales_of_observations_go_with_them(self):
        seq = kb.ConfidenceSequence(RBF(0.3), 5.0, 0.1)  # of which no cell is cut
        policy = PartitionedUCB(seq, kb.Finite(POINTS))
        policy.tell(POINTS[:6], np.zeros(6), noise_scale=[0.1, 0.5] * 3)
        np.testing.assert_allclose(policy.cell_bounds(POINTS), seq.bounds(POINTS), rtol=1e-9)

    def test_what_it_cannot_do_is_said(self):
        sparse = kb.ConfidenceSequence(Matern(0.5, nu=1.5), 2.0, 0.1, engine=kb.Sparse())
        levels = kb.Box.named(a=(0, 1), b=kb.Categories("oil", "water"))
        plain = kb.ConfidenceSequence(Matern(0.5, nu=1.5), 2.0, 0.1)
        for make, said in (
            (lambda: PartitionedUCB(sparse, kb.Box([0], [1])), "sparse"),
            (lambda: PartitionedUCB(plain, levels), "categories"),
            (lambda: PartitionedUCB(plain, nu=0), "nu"),
        ):
            with pytest.raises(kb.InputError, match=said):
                make()


def test_simulate_plays_them_all():
    problem = kb.SyntheticProblem.draw(KERNEL, 2, np.random.default_rng(0), norm=4.0)
    for cls in (VarianceReduction, BatchedElimination, PartitionedUCB):
        trace = kb.simulate(cls(problem.sequence()), problem, 10, np.random.default_rng(1))
        assert np.all((trace.lower <= trace.value) & (trace.value <= trace.upper))


@pytest.mark.parametrize("offset", [0.0, 3.0, kb.Offset(3.0, within=1.0)], ids=str)
def test_a_sequence_without_its_data_is_one_that_never_had_any(offset):
    def make(delta):
        facts = [kb.facts.Between(-9, 9)]
        return kb.ConfidenceSequence(
            KERNEL, 5.0, 0.1, delta, 0.5, kb.AMM(), offset=offset, facts=facts
        )

    seq, expected = make(0.01), make(0.002)
    seq.update(POINTS[:9], 3 + np.sin(POINTS[:9, 0]))
    fresh = seq.without_data(0.002)
    assert len(fresh) == 0 and len(seq) == 9
    for one in (fresh, expected):
        one.update(POINTS[20:25], 3 + np.cos(POINTS[20:25, 0]))
    np.testing.assert_allclose(fresh.bounds(POINTS), expected.bounds(POINTS), rtol=1e-12)
