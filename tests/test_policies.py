"""One contract for all policies, on all bounds, domains and aims."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from problems import BOUNDS, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb

KERNEL = Matern(length_scale=0.4, nu=2.5)
POLICIES = [kb.KernelUCB, kb.RandomPolicy]
POINTS = np.random.default_rng(7).random((60, 2))
DOMAINS = {
    "box": kb.Box([0, 0], [1, 1]),
    "named box": kb.Box.named(a=(0, 1), b=(-1, 1)),
    "finite": kb.Finite(POINTS),
    "once": kb.Finite(POINTS, once=True),
}


def _policy(cls, domain, *, bound=None, minimise=False, t=0, noise_scale=0.1, kernel=KERNEL):
    rng = np.random.default_rng(3)
    function = truth(kernel, rng, 4.0)
    policy = cls(
        kb.ConfidenceSequence(kernel, 5.0, noise_scale, bound=bound), domain, minimise=minimise
    )
    for _ in range(t):
        s = policy.ask()
        policy.tell(s.x, function(s.x[None])[0] + noise_scale * rng.standard_normal())
    return policy, function, rng


def _same(one, two):
    return (
        np.array_equal(one.x, two.x)
        and (one.lower, one.upper, one.limit, one.index)
        == (two.lower, two.upper, two.limit, two.index)
        and one.named == two.named
    )


@pytest.fixture(params=itertools.product(POLICIES, DOMAINS, [False, True]), ids=str)
def case(request):
    cls, domain, minimise = request.param
    return _policy(cls, DOMAINS[domain], minimise=minimise, t=5)


class TestContract:
    def test_asking_changes_nothing(self, case):
        policy, _, _ = case
        first = policy.ask()
        batch = policy.ask(n=3)
        assert _same(policy.ask(), first)
        assert all(map(_same, policy.ask(n=3), batch))
        assert _same(batch[0], first)

    def test_suggestions_are_in_the_domain(self, case):
        policy, _, _ = case
        for s in policy.ask(n=4):
            if isinstance(policy.domain, kb.Box):
                assert np.all((policy.domain.lower <= s.x) & (s.x <= policy.domain.upper))
            else:
                assert np.array_equal(policy.domain.points[s.index], s.x)

    def test_reported_bounds_are_the_sequences(self, case):
        policy, _, _ = case
        policy.begin(policy.ask().x)
        for s in policy.ask(n=3):
            lower, upper = policy.sequence.bounds(s.x[None])
            assert (s.lower, s.upper) == pytest.approx((lower[0], upper[0]), rel=1e-9)

    def test_tell_takes_anything_in_any_order(self, case):
        policy, function, rng = case
        batch = policy.ask(n=3)
        X = np.array([s.x for s in batch])[::-1]
        policy.tell(X, function(X))
        policy.tell(rng.random((4, 2)), np.zeros(4))
        policy.tell(rng.random(2), 0.1)
        assert len(policy.sequence) == 5 + 3 + 4 + 1 == len(policy.history)

    def test_pending_points_come_and_go(self, case):
        policy, function, _ = case
        first = policy.ask()
        policy.begin(first.x)
        policy.begin(np.array([s.x for s in policy.ask(n=2)]))
        assert policy.pending.shape == (3, 2)
        assert np.array_equal(policy.pending[0], first.x)
        policy.tell(first.x, function(first.x[None])[0])
        assert policy.pending.shape == (2, 2)

    def test_certificates_hold_together(self, case):
        policy, function, _ = case
        found = policy.certificate(tolerance=0.1)
        assert found.lower <= function(found.x[None])[0] <= found.upper
        lower, upper = policy.sequence.bounds(found.x[None])
        assert (found.lower, found.upper) == pytest.approx((lower[0], upper[0]), rel=1e-6)
        if policy.minimise:
            assert found.max_upper is None and found.min_lower <= found.lower + 1e-9
            assert found.regret == pytest.approx(found.upper - found.min_lower)
        else:
            assert found.min_lower is None and found.max_upper >= found.upper - 1e-9
            assert found.regret == pytest.approx(found.max_upper - found.lower)

    def test_saved_and_loaded_it_goes_on_the_same(self, case, tmp_path):
        policy, function, _ = case
        policy.begin(policy.ask().x)
        policy.save(tmp_path / "run.npz")
        again = type(policy).load(tmp_path / "run.npz")
        assert repr(again) == repr(policy)
        assert np.array_equal(again.pending, policy.pending)
        for _ in range(3):
            one, two = policy.ask(), again.ask()
            assert _same(one, two)
            outcome = float(function(one.x[None])[0])
            policy.tell(one.x, outcome)
            again.tell(two.x, outcome)
        policy.tell(policy.pending, [0.2])
        again.tell(again.pending, [0.2])
        for name in ("lower", "upper", "limit", "regret_bound"):
            assert np.array_equal(getattr(policy.history, name), getattr(again.history, name))

    def test_bad_input_leaves_no_trace(self, case):
        policy, _, _ = case
        policy.begin(policy.ask().x)
        before = policy.ask()
        bad_calls = [
            lambda: policy.tell([0.1, 0.2, 0.3], 1.0),
            lambda: policy.tell([0.1, 0.2], np.nan),
            lambda: policy.tell([[0.1, 0.2]], [1.0, 2.0]),
            lambda: policy.tell({"x": 1.0}, 1.0),
            lambda: policy.tell("here", 1.0),
            lambda: policy.begin([0.1, np.inf]),
            lambda: policy.begin([[0.1, 0.2], [0.3]]),
            lambda: policy.run("experiment", 3),
            lambda: policy.run(lambda x: "high", 3),
            lambda: policy.run(lambda x: None, 3),
            lambda: policy.run(lambda x: [[1.0], [1.0, 2.0]], 3),
            lambda: policy.tell([before, "here"], [1.0, 2.0]),
            lambda: policy.tell([before, [0.1, 0.2, 0.3]], [1.0, 2.0]),
            lambda: policy.begin([before, 3]),
            lambda: policy.run(lambda x: 0.0, 2.5),
            lambda: policy.run(lambda x: 0.0, 3, save_to=3),
            lambda: policy.run(lambda x: 0.0, 3, save_to="no/such/folder/policy.npz"),
            lambda: policy.begin([[0.1, 0.2, 0.3]]),
            lambda: policy.ask(actions=np.empty((0, 2))),
            lambda: policy.ask(actions=[[0.1, 0.2, 0.3]]),
            lambda: policy.ask(actions=[[0.1, np.nan]]),
            lambda: policy.ask(actions=POINTS, fixed={0: 0.5}),
            lambda: policy.ask(fixed={"nowhere": 0.5}),
            lambda: policy.ask(fixed=3),
            lambda: policy.ask(n=0),
            lambda: policy.ask(n=1.5),
            lambda: policy.certificate(tolerance=-1.0),
            lambda: policy.certificate(actions=[[1.0]]),
            lambda: policy.run(lambda x: np.nan, 3),
            lambda: policy.run(lambda x: 0.0, 0),
            lambda: policy.run(lambda x: 0.0, 3, stop_when_regret_below=0),
        ]
        for call in bad_calls:
            with pytest.raises(kb.InputError) as error:
                call()
            assert "\n" not in str(error.value) and str(error.value).endswith(".")
            assert len(policy.sequence) == 5 and len(policy.pending) == 1
        assert _same(policy.ask(), before)


@pytest.mark.parametrize("cls", POLICIES)
class TestContextual:
    def test_each_round_brings_its_own_actions(self, cls):
        policy, function, rng = _policy(cls, None)
        for _ in range(10):
            actions = rng.random((30, 2))
            s = policy.ask(actions)
            assert np.array_equal(actions[s.index], s.x)
            policy.tell(s.x, function(s.x[None])[0])
        batch = policy.ask(actions, n=4)
        assert len({s.index for s in batch}) > 1
        found = policy.certificate(actions)
        assert np.array_equal(actions[found.index], found.x)

    def test_an_undefined_domain_is_named(self, cls):
        policy, _, _ = _policy(cls, None)
        for call in (policy.ask, policy.certificate):
            with pytest.raises(kb.InputError, match="nothing to choose from"):
                call()
        with pytest.raises(kb.InputError, match="nothing to choose from"):
            policy.run(lambda x: 0.0, 3)

    def test_fixed_coordinates(self, cls):
        policy, function, _ = _policy(cls, DOMAINS["named box"], t=3)
        s = policy.ask(fixed={"b": 0.25})
        assert s.x[1] == 0.25 and s.named == {"a": s.x[0], "b": 0.25}
        assert policy.ask(fixed={1: 0.25}).x[1] == 0.25
        assert policy.ask(fixed={"b": 7.0}).x[1] == 7.0  # a context is given, not chosen
        policy.tell(s.named, function(s.x[None])[0])
        policy.tell(
            [{"a": 0.1, "b": 0.2}, {"b": 0.3, "a": 0.4}], function([[0.1, 0.2], [0.4, 0.3]])
        )
        assert np.array_equal(policy.sequence.points[-1], [0.4, 0.3])
        assert policy.certificate(fixed={"b": 0.25}, tolerance=0.05).x[1] == 0.25
        with pytest.raises(kb.InputError, match="exactly the coordinates"):
            policy.tell({"a": 1.0}, 0.0)


@pytest.mark.parametrize("cls", POLICIES)
def test_an_exhausted_domain_says_so(cls):
    policy, _, _ = _policy(cls, kb.Finite(POINTS[:4], once=True))
    assert {s.index for s in policy.ask(n=4)} == {0, 1, 2, 3}
    with pytest.raises(kb.InputError, match="once=True"):
        policy.ask(n=5)
    policy.begin(POINTS[0])
    policy.tell(POINTS[1:3], [0.1, 0.2])
    assert policy.ask().index == 3
    policy.tell(POINTS[3], 0.1)
    with pytest.raises(kb.InputError, match="all 4 actions"):
        policy.ask()


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("minimise", [False, True])
def test_kernel_ucb_plays_the_largest_bound(name, minimise):
    policy, _, rng = _policy(kb.KernelUCB, DOMAINS["finite"], bound=BOUNDS[name], minimise=minimise)
    for _ in range(25):
        s = policy.ask()
        lower, upper = policy.sequence.bounds(POINTS)
        value = -lower if minimise else upper
        assert value[s.index] == pytest.approx(value.max(), abs=1e-6)
        assert policy.ask(POINTS).index == s.index or value.max() == 5.0
        assert s.limit == pytest.approx(lower.min() if minimise else upper.max(), abs=1e-6)
        policy.tell(s.x, rng.standard_normal() * 0.5)
    assert policy.history.regret_bound == pytest.approx(policy.history.width, abs=1e-6)


def test_minimising_f_is_maximising_minus_f():
    rng = np.random.default_rng(1)
    up, _, _ = _policy(kb.KernelUCB, DOMAINS["box"])
    down, _, _ = _policy(kb.KernelUCB, DOMAINS["box"], minimise=True)
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
    policy, _, _ = _policy(kb.KernelUCB, DOMAINS[domain], t=10)
    X = np.array([s.x for s in policy.ask(n=6)])
    distances = np.linalg.norm(X[:, None] - X, axis=2)[np.triu_indices(6, 1)]
    assert distances.max() > 0.2
    assert len(np.unique(X.round(6), axis=0)) >= 4
    policy.begin(X)
    assert len(policy.sequence) == 10  # what is believed of pending points stays out of the data


def test_batch_members_asked_one_by_one_are_the_same():
    policy, _, _ = _policy(kb.KernelUCB, DOMAINS["finite"], t=6)
    batch = policy.ask(n=4)
    for s in batch:
        assert policy.ask().index == s.index
        policy.begin(s.x)


@pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AMM()], ids=str)
@pytest.mark.parametrize("domain", ["box", "finite"])
@pytest.mark.parametrize("kernel", [KERNEL, RBF(0.5)], ids=str)
def test_noiseless_bandits_find_the_maximum(bound, domain, kernel):
    policy, function, _ = _policy(
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


def test_run_stops_when_the_regret_is_certified():
    policy, function, rng = _policy(kb.KernelUCB, kb.Finite(POINTS[:10]))
    history = policy.run(
        lambda x: function(x[None])[0] + 0.1 * rng.standard_normal(),
        500,
        stop_when_regret_below=0.5,
    )
    found = policy.certificate()
    assert len(history) < 500 and found.regret < 0.5
    assert function(POINTS[:10]).max() - function(found.x[None])[0] <= found.regret


def test_run_on_a_box_stops_and_saves(tmp_path):
    kernel = RBF(0.5)
    function = kb.RKHSFunction(kernel, [[0.3], [0.9]], [1.0, -0.5]).rescaled(2.0)
    policy = kb.KernelUCB(kb.ConfidenceSequence(kernel, 2.0, 0.0), kb.Box([0], [1]))
    history = policy.run(
        lambda x: function(x[None])[0], 50, batch=2, stop_when_regret_below=0.01,
        save_to=tmp_path / "run.npz",
    )  # fmt: skip
    assert len(history) < 50 and len(history) % 2 == 0
    again = kb.KernelUCB.load(tmp_path / "run.npz")
    assert np.array_equal(again.sequence.points, policy.sequence.points)
    found = again.certificate(tolerance=0.001)
    best = function(np.linspace(0, 1, 1000)[:, None]).max()
    assert function(found.x[None])[0] >= best - 0.01


CHILD = """
import sys, numpy as np, kernelbounds as kb
from sklearn.gaussian_process.kernels import Matern
from pathlib import Path
path, sleep = Path(sys.argv[1]), float(sys.argv[2])
import time
def experiment(x):
    time.sleep(sleep)
    return float(np.sin(5 * x[0]) + x[1])
if path.exists():
    policy = kb.KernelUCB.load(path)
else:
    seq = kb.ConfidenceSequence(Matern(0.5, nu=2.5), 5.0, 0.05)
    policy = kb.KernelUCB(seq, kb.Box([0, 0], [1, 1], names=["a", "b"]))
policy.run(experiment, 12 - len(policy.sequence), save_to=path)
"""


def test_a_killed_run_resumes_with_the_same_decisions(tmp_path):
    whole, killed = tmp_path / "whole.npz", tmp_path / "killed.npz"
    subprocess.run([sys.executable, "-c", CHILD, whole, "0"], check=True)
    child = subprocess.Popen([sys.executable, "-c", CHILD, killed, "0.05"])
    while not killed.exists():
        assert child.poll() is None
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    done = len(kb.KernelUCB.load(killed).sequence)
    assert 1 <= done < 12
    subprocess.run([sys.executable, "-c", CHILD, killed, "0"], check=True)
    one, two = kb.KernelUCB.load(whole), kb.KernelUCB.load(killed)
    assert np.array_equal(one.sequence.points, two.sequence.points)
    assert np.array_equal(one.history.upper, two.history.upper)


def test_outcomes_that_refute_the_assumptions_are_kept_and_asking_says_so():
    policy, _, rng = _policy(kb.KernelUCB, DOMAINS["finite"])
    policy.tell(POINTS[:40], 50 * rng.standard_normal(40))
    policy.tell(POINTS[0], 3.0)
    assert len(policy.sequence) == 41 and np.isnan(policy.history.lower[-1])
    with pytest.raises(kb.EmptyConfidenceSetError):
        policy.ask()


def test_limits_of_actions_that_were_not_asked_for_are_not_known():
    for name in ("finite", "box"):
        policy, _, _ = _policy(kb.KernelUCB, DOMAINS[name], t=2)
        policy.tell(POINTS[0], 0.0)
        assert np.isinf(policy.history.regret_bound[-1])


def test_an_action_of_two_rounds_gets_the_looser_limit():
    policy, _, _ = _policy(kb.KernelUCB, None)
    good, bad = np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([[0.5, 0.5]])
    policy.tell([[0.5, 0.5]], [0.0])
    high = policy.ask(good).limit
    again = policy.ask(bad)
    assert again.limit < high
    policy.tell(again.x, 0.0)
    assert policy.history.limit[-1] == again.limit  # it was not suggested in the other round
    policy.ask(good[:1])
    policy.ask(good[:1])
    assert len(policy.history) == 2


def test_members_of_a_batch_keep_their_limits_while_others_are_asked_for():
    policy, _, _ = _policy(kb.KernelUCB, DOMAINS["finite"], t=3)
    batch = policy.ask(n=3)
    policy.begin(batch)
    policy.ask()
    for s in batch:
        policy.tell(s, 0.0)
        assert policy.history.limit[-1] == s.limit


def test_a_policy_without_domain_or_data_can_be_saved(tmp_path):
    policy, _, _ = _policy(kb.KernelUCB, None)
    assert policy.pending.size == 0
    policy.save(tmp_path / "p.npz")
    policy.begin(policy.ask(POINTS))
    policy.save(tmp_path / "p.npz")
    again = kb.KernelUCB.load(tmp_path / "p.npz")
    assert np.array_equal(again.pending, policy.pending)
    assert again.ask(POINTS).index == policy.ask(POINTS).index
    with pytest.raises(kb.InputError, match="2 dimensions"):
        again.tell([0.5], 0.0)


def test_files_of_other_kinds_are_refused(tmp_path):
    policy, _, _ = _policy(kb.KernelUCB, DOMAINS["box"], t=2)
    policy.save(tmp_path / "p.npz")
    policy.sequence.save(tmp_path / "s.npz")
    with pytest.raises(kb.StoredFileError, match="not a RandomPolicy"):
        kb.RandomPolicy.load(tmp_path / "p.npz")
    with pytest.raises(kb.StoredFileError, match="not a saved policy"):
        kb.KernelUCB.load(tmp_path / "s.npz")
    with pytest.raises(kb.StoredFileError, match="not a saved confidence sequence"):
        kb.ConfidenceSequence.load(tmp_path / "p.npz")
    with pytest.raises(kb.StoredFileError, match="no file"):
        kb.KernelUCB.load(tmp_path / "q.npz")
    whole = (tmp_path / "p.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(kb.StoredFileError, match="damaged"):
        kb.KernelUCB.load(tmp_path / "half.npz")


def test_suggestions_themselves_can_be_begun_and_told():
    policy, _, _ = _policy(kb.KernelUCB, DOMAINS["finite"], t=3)
    batch = policy.ask(n=3)
    policy.begin(batch)
    assert len(policy.pending) == 3
    policy.tell(batch[0], 0.1)
    policy.tell(batch[1:], [0.2, 0.3])
    assert len(policy.pending) == 0 and len(policy.sequence) == 6


def test_a_run_that_is_good_enough_already_plays_nothing():
    policy, function, _ = _policy(kb.KernelUCB, kb.Finite(POINTS[:5]), noise_scale=0.0)
    policy.tell(POINTS[:5], function(POINTS[:5]))
    assert len(policy.run(lambda x: 1 / 0, 10, stop_when_regret_below=0.1)) == 5


def test_outcomes_may_come_as_arrays_of_one():
    policy, function, _ = _policy(kb.KernelUCB, DOMAINS["finite"])
    policy.run(lambda x: function(x[None]), 3)
    assert len(policy.sequence) == 3
    with pytest.raises(kb.InputError, match="outcome of an experiment"):
        policy.run(lambda x: [1.0, 2.0], 3)


def test_a_kernel_that_does_not_take_the_domains_points_is_refused_at_once():
    sequence = kb.ConfidenceSequence(RBF((0.1, 0.2)), 1.0, 0.1)
    with pytest.raises(kb.InputError, match="could not be evaluated"):
        kb.KernelUCB(sequence, kb.Box([0, 0, 0], [1, 1, 1]))


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=str)
@pytest.mark.parametrize("noise_scale", [0.1, 0.0])
def test_believed_outcomes_refute_nothing(bound, noise_scale):
    if noise_scale == 0 and isinstance(bound, kb.AY | kb.IGP):
        pytest.skip("these bounds are for noisy data")
    policy, _, _ = _policy(
        kb.KernelUCB, DOMAINS["finite"], bound=bound, t=6, noise_scale=noise_scale
    )
    assert len(policy.ask(n=15)) == 15


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("noise_scale", [0.1, 0.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_bound_and_its_opposite_are_those_of_both_sides(name, noise_scale, sign):
    bound = BOUNDS[name]
    if noise_scale == 0 and isinstance(bound, kb.AY | kb.IGP):
        pytest.skip("these bounds are for noisy data")
    rng = np.random.default_rng(0)
    function = truth(KERNEL, rng, 4.0)
    seq = kb.ConfidenceSequence(KERNEL, 5.0, noise_scale, bound=bound)
    for t in range(120 if noise_scale else 30):
        actions = rng.random((40, 2))
        values, at, opposite = seq.surface(sign).largest(actions)
        lower, upper = seq.bounds(actions)
        one, other = (upper, -lower) if sign == 1 else (-lower, upper)
        assert values == pytest.approx(one, abs=1e-6)
        assert opposite == pytest.approx(other[at], abs=1e-6)
        assert values[at] == values.max()
        x = actions[t % 40] if t % 3 else actions[at]
        seq.update(x, function(x[None])[0] + noise_scale * rng.standard_normal())


def test_any_generator_can_be_saved(tmp_path):
    for generator in (np.random.PCG64(1), np.random.MT19937(1), np.random.Philox(1)):
        sequence = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
        policy = kb.RandomPolicy(sequence, DOMAINS["box"], rng=np.random.Generator(generator))
        policy.tell(policy.ask().x, 0.0)
        policy.save(tmp_path / "p.npz")
        again = kb.RandomPolicy.load(tmp_path / "p.npz")
        for one in (policy, again):
            one.tell(one.ask().x, 0.0)
        assert np.array_equal(policy.ask().x, again.ask().x)


def test_a_kernel_of_ones_own_is_searched_without_derivatives_and_says_so_once(tmp_path):
    class Own(RBF):
        pass

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


def test_inverted_and_other_impossible_domains():
    for make in (
        lambda: kb.Box([0, 1], [1, 0]),
        lambda: kb.Box([], []),
        lambda: kb.Box([0, 0], [1]),
        lambda: kb.Box([0], [np.inf]),
        lambda: kb.Box([0, 0], [1, 1], names=["a", "a"]),
        lambda: kb.Box.named(a=3),
        lambda: kb.Box([0, 0], [1, 1], names=3),
        lambda: kb.Box([0, 0], [1, 1], names=[["a"], ["b"]]),
        lambda: kb.Finite(POINTS, once="no"),
        lambda: kb.KernelUCB(kb.ConfidenceSequence(KERNEL, 1, 0.1), minimise="no"),
        lambda: kb.Finite(np.empty((0, 2))),
        lambda: kb.Finite([[np.nan]]),
        lambda: kb.KernelUCB(kb.ConfidenceSequence(KERNEL, 1, 0.1), domain=POINTS),
        lambda: kb.KernelUCB("sequence"),
        lambda: kb.KernelUCB(kb.ConfidenceSequence(KERNEL, 1, 0.1), maximiser=kb.Ascent),
        lambda: kb.RandomPolicy(kb.ConfidenceSequence(KERNEL, 1, 0.1), rng="x"),
        lambda: kb.Box([0], [1], names=["a"]).point(3),
        lambda: kb.Box([0], [1], names=["a"]).named_values("text"),
        lambda: kb.Box([0], [1], names=["a"]).named_values([1.0, 2.0]),
        lambda: kb.KernelUCB(
            kb.ConfidenceSequence(KERNEL, 1, 0.1), kb.Box(np.zeros(30_000), np.ones(30_000))
        ).ask(),
        lambda: kb.ConfidenceSequence(KERNEL, 1, 0.1).surface(0),
        lambda: kb.Grid(cells=1e300),
        lambda: kb.Ascent(scan=0),
        lambda: kb.Grid(cells=1.5),
        lambda: kb.BranchAndBound(seconds=0),
    ):
        with pytest.raises(kb.InputError) as error:
            make()
        assert str(error.value).endswith(".")
    sequence = kb.ConfidenceSequence(KERNEL, 1, 0.1)
    sequence.update([[0.5]], [0.1])
    with pytest.raises(kb.InputError, match="2 dimensions"):
        kb.KernelUCB(sequence, kb.Box([0, 0], [1, 1]))
