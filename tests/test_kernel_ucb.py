"""What KernelUCB chooses, with all bounds, alone and in batches."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from problems import BOUNDS, DOMAINS, KERNEL, POINTS, Own, noisy_only, policy_on, truth
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from kernelbounds.bandits.batches import with_imagined_outcomes


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("minimise", [False, True])
def test_kernel_ucb_plays_the_largest_bound(name, minimise):
    policy, function, rng = policy_on(
        kb.KernelUCB, DOMAINS["finite"], bound=BOUNDS[name], minimise=minimise
    )
    for _ in range(25):
        s = policy.ask()
        lower, upper = policy.sequence.bounds(POINTS)
        value = -lower if minimise else upper
        assert value[s.index] == pytest.approx(value.max(), abs=1e-6)
        assert policy.ask(POINTS).index == s.index or value.max() == 5.0
        assert s.limit == pytest.approx(lower.min() if minimise else upper.max(), abs=1e-6)
        policy.tell(s.x, function(s.x[None])[0] + 0.1 * rng.standard_normal())
    assert policy.history.regret_bound == pytest.approx(policy.history.width, abs=1e-6)


def test_minimising_f_is_maximising_minus_f():
    rng = np.random.default_rng(1)
    up, _, _ = policy_on(kb.KernelUCB, DOMAINS["box"])
    down, _, _ = policy_on(kb.KernelUCB, DOMAINS["box"], minimise=True)
    for _ in range(8):
        one, two = up.ask(), down.ask()
        assert np.array_equal(one.x, two.x)
        assert (one.lower, one.upper) == pytest.approx((-two.upper, -two.lower), rel=1e-9)
        outcome = rng.standard_normal()
        up.tell(one.x, outcome)
        down.tell(two.x, -outcome)
    one, two = up.certificate(), down.certificate()
    assert np.array_equal(one.x, two.x)
    assert (one.max_upper, one.regret) == (-two.min_lower, two.regret)


@pytest.mark.parametrize("domain", ["box", "finite"])
def test_batches_spread_out(domain):
    policy, _, _ = policy_on(kb.KernelUCB, DOMAINS[domain], t=10)
    X = np.array([s.x for s in policy.ask(n=6)])
    distances = np.linalg.norm(X[:, None] - X, axis=2)[np.triu_indices(6, 1)]
    assert distances.max() > 0.2
    assert len(np.unique(X.round(6), axis=0)) >= 4
    policy.begin(X)
    assert len(policy.sequence) == 10  # what is believed of pending points stays out of the data


def test_batch_members_asked_one_by_one_are_the_same():
    policy, _, _ = policy_on(kb.KernelUCB, DOMAINS["finite"], t=6)
    batch = policy.ask(n=4)
    for s in batch:
        assert policy.ask().index == s.index
        policy.begin(s.x)


@pytest.mark.parametrize(
    ("bound", "domain"),
    [
        (kb.CMM(), "box"), (kb.CMM(), "finite"), (kb.DMM(), "finite"), (kb.AMM(), "finite"),
        pytest.param(kb.DMM(), "box", marks=pytest.mark.slow),
        pytest.param(kb.AMM(), "box", marks=pytest.mark.slow),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize(
    "kernel", [pytest.param(KERNEL, marks=pytest.mark.slow), RBF(0.5)], ids=str
)
def test_noiseless_bandits_find_the_maximum(bound, domain, kernel):
    policy, function, _ = policy_on(
        kb.KernelUCB, DOMAINS[domain], bound=bound, t=30, noise_scale=0.0, kernel=kernel
    )
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 60)] * 2), -1).reshape(-1, 2)
    points = grid if domain == "box" else POINTS
    assert function(policy.sequence.points).max() > function(points).max() - 0.02
    for _ in range(10):  # close to, and at, points that are known
        near = policy.sequence.points[-1] + 1e-9
        for s in (*policy.ask(near[None], n=2), policy.ask()):
            assert np.isfinite([s.lower, s.upper]).all() and s.lower <= s.upper
        policy.tell(near, function(near[None])[0])
    s = policy.ask()
    assert np.isfinite([s.lower, s.upper]).all()


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("noise_scale", [0.1, 0.0])
def test_believed_outcomes_refute_nothing(name, noise_scale):
    noisy_only(name, noise_scale)
    policy, _, _ = policy_on(
        kb.KernelUCB, DOMAINS["finite"], bound=BOUNDS[name], t=6, noise_scale=noise_scale
    )
    assert len(policy.ask(n=15)) == 15


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("t", [0, 7, 15, 20])
def test_believed_outcomes_do_not_decide_on_shares(name, t):
    """Functions that they leave in the set are then in the same ball, and none is refuted."""
    rng = np.random.default_rng(t)
    parts = kb.Parts([(kb.OnInputs(KERNEL, [0]), 3.0), (kb.OnInputs(KERNEL, [1]), 3.0)])
    seq = kb.ConfidenceSequence(parts, noise_scale=0.1, bound=BOUNDS[name])
    X = rng.random((t, 2)) * [1.0, 1e-3]
    if t:
        seq.update(X, np.sin(3 * X[:, 0]))
    points = rng.random((33 - t, 2))
    believed = with_imagined_outcomes(seq, points)
    assert len(believed) == 33
    assert believed.known.shares == seq.known.shares
    assert believed.norm_lower_bound <= 1.0
    told = copy.deepcopy(seq)
    told.update(points, believed.outcomes[t:])
    assert told.known.shares != seq.known.shares  # as they would be with real outcomes
    assert with_imagined_outcomes(told, points[:1]).known.shares == told.known.shares


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("noise_scale", [0.1, 0.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_bound_and_its_opposite_are_those_of_both_sides(name, noise_scale, sign):
    noisy_only(name, noise_scale)
    bound = BOUNDS[name]
    rng = np.random.default_rng(0)
    function = truth(KERNEL, rng, 4.0)
    seq = kb.ConfidenceSequence(KERNEL, 5.0, noise_scale, bound=bound)
    for t in range(120 if noise_scale else 30):
        actions = rng.random((40, 2))
        surface = seq.surface(sign)
        value, at, opposite = surface.largest(actions)
        one, other = (seq.surface(s).values(actions) for s in (sign, -sign))
        assert value == pytest.approx(one.max(), abs=5e-7)
        assert value == pytest.approx(one[at], abs=5e-7)
        assert opposite == pytest.approx(other[at], abs=5e-7)
        x = actions[t % 40] if t % 3 else actions[at]
        seq.update(x, function(x[None])[0] + noise_scale * rng.standard_normal())


def test_a_kernel_of_ones_own_is_searched_without_derivatives_and_says_so_once(tmp_path):
    sequence = kb.ConfidenceSequence(Own(0.5), 2.0, 0.1)
    with pytest.warns(UserWarning, match="without derivatives") as said:
        policy = kb.KernelUCB(sequence, kb.Box([0], [1]))
        for _ in range(3):
            s = policy.ask()
            policy.tell(s.x, float(np.cos(6 * s.x[0])))
    assert len(said) == 1
    dense = np.linspace(0, 1, 2001)[:, None]
    assert policy.ask().upper >= sequence.upper(dense).max() - 1e-6
    with pytest.raises(kb.InputError, match="certified maximum is not available"):
        policy.certificate()
    policy.save(tmp_path / "p.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = kb.KernelUCB.load(tmp_path / "p.npz", kernel=Own(0.5))
    assert np.array_equal(again.ask().x, policy.ask().x)
