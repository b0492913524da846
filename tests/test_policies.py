"""One contract for all policies, on all domains and aims."""

from __future__ import annotations

import copy
import itertools
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from problems import AIMS, DOMAINS, KERNEL, POINTS, policy_on
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from kernelbounds.bandits import BatchedElimination, PartitionedUCB, VarianceReduction, policy
from kernelbounds.surface import Clipped

# The contract is not about how well a box is searched, which takes most of the time.
pytestmark = pytest.mark.usefixtures("short_searches")


class Safe(kb.SafeUCB):
    """SafeUCB with a constraint that holds everywhere, which can be made like other policies."""

    def __init__(self, sequence, domain=None, *, constraints=None, seed=None, minimise=False):
        limits = constraints or {"f": (sequence, -100.0)}
        super().__init__(sequence, domain, constraints=limits, seed=seed, minimise=minimise)


_SOME = np.random.default_rng(7).random((200, 2))
ANYWHERE = [kb.KernelUCB, kb.KernelLUCB, kb.RandomPolicy, VarianceReduction, PartitionedUCB, Safe]
POLICIES = [*ANYWHERE, BatchedElimination]  # the last one is for finite sets alone
# These search a box several times for each point, which takes its time: one of the boxes is enough.
SLOW = kb.KernelLUCB, VarianceReduction, PartitionedUCB, Safe
CASES = [
    (policy, aim)
    for policy, aim in itertools.product(POLICIES, AIMS)
    if not (policy in SLOW and aim == ("box", False))
    and not (policy is BatchedElimination and "box" in aim[0])
]


def _same(one, two):
    return (
        np.array_equal(one.x, two.x)
        and (one.lower, one.upper, one.limit, one.index)
        == (two.lower, two.upper, two.limit, two.index)
        and one.named == two.named
    )


@pytest.fixture(scope="class", params=CASES, ids=str)
def played(request):
    cls, (domain, minimise) = request.param
    return policy_on(cls, DOMAINS[domain], minimise=minimise, t=5)


@pytest.fixture
def case(played):
    return copy.deepcopy(played)


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
            apart = found.upper - found.min_lower
        else:
            assert found.min_lower is None and found.max_upper >= found.upper - 1e-9
            apart = found.max_upper - found.lower
        domain = policy.domain
        some = domain.points if isinstance(domain, kb.Finite) else domain.scaled(_SOME)
        surface = Clipped(replace(policy.surface(policy.sign), reference=found.x))
        assert surface.values(some).max() - 1e-6 <= found.regret < apart
        better = policy.sign * (function(some) - function(found.x[None]))
        assert better.max() <= found.regret

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
        policy, function, rng = policy_on(cls, None)
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
        policy, _, _ = policy_on(cls, None)
        for call in (policy.ask, policy.certificate):
            with pytest.raises(kb.InputError, match="nothing to choose from"):
                call()
        with pytest.raises(kb.InputError, match="nothing to choose from"):
            policy.run(lambda x: 0.0, 3)

    def test_fixed_coordinates(self, cls):
        if cls is BatchedElimination:
            pytest.skip("it is for finite sets")
        policy, function, _ = policy_on(cls, DOMAINS["named box"], t=3)
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
    policy, _, _ = policy_on(cls, kb.Finite(POINTS[:4], once=True))
    assert {s.index for s in policy.ask(n=4)} == {0, 1, 2, 3}
    with pytest.raises(kb.InputError, match="once=True"):
        policy.ask(n=5)
    policy.begin(POINTS[0])
    policy.tell(POINTS[1:3], [0.1, 0.2])
    assert policy.ask().index == 3
    policy.tell(POINTS[3], 0.1)
    with pytest.raises(kb.InputError, match="all 4 actions"):
        policy.ask()


def test_outcomes_that_refute_the_assumptions_are_kept_and_asking_says_so():
    policy, _, rng = policy_on(kb.KernelUCB, DOMAINS["finite"])
    policy.tell(POINTS[:40], 50 * rng.standard_normal(40))
    policy.tell(POINTS[0], 3.0)
    assert len(policy.sequence) == 41 and np.isnan(policy.history.lower[-1])
    with pytest.raises(kb.EmptyConfidenceSetError):
        policy.ask()


def test_limits_of_actions_that_were_not_asked_for_are_not_known():
    for name in ("finite", "box"):
        policy, _, _ = policy_on(kb.KernelUCB, DOMAINS[name], t=2)
        policy.tell(POINTS[0], 0.0)
        assert np.isinf(policy.history.regret_bound[-1])


def test_an_action_of_two_rounds_gets_the_looser_limit():
    policy, _, _ = policy_on(kb.KernelUCB, None)
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
    policy, _, _ = policy_on(kb.KernelUCB, DOMAINS["finite"], t=3)
    batch = policy.ask(n=3)
    policy.begin(batch)
    policy.ask()
    for s in batch:
        policy.tell(s, 0.0)
        assert policy.history.limit[-1] == s.limit


def test_suggestions_themselves_can_be_begun_and_told():
    policy, _, _ = policy_on(kb.KernelUCB, DOMAINS["finite"], t=3)
    batch = policy.ask(n=3)
    policy.begin(batch)
    assert len(policy.pending) == 3
    policy.tell(batch[0], 0.1)
    policy.tell(batch[1:], [0.2, 0.3])
    assert len(policy.pending) == 0 and len(policy.sequence) == 6


def test_what_needs_the_points_that_were_tried_is_refused_when_the_policy_is_made():
    actions = kb.Finite([[0.0], [1.0]], once=True)
    sparse = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, engine=kb.Sparse())
    with pytest.raises(kb.InputError, match="use a sequence without engine="):
        kb.KernelUCB(sparse, actions)
    # Only the objective's sequence is asked what was tried.
    objective = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    safe = kb.SafeUCB(objective, actions, constraints={"g": (sparse, -1.0)}, seed=[[0.0]])
    assert safe.ask().index == 0


@pytest.mark.parametrize("regret", [0.0, -1.0, "little", np.nan, np.inf])
def test_a_regret_that_is_no_positive_number_is_refused_by_its_name(regret):
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    with pytest.raises(kb.InputError, match="regret must be"):
        kb.KernelUCB(seq, kb.Finite([[0.0]])).is_good_enough(regret)


def test_a_kernel_that_does_not_take_the_domains_points_is_refused_at_once():
    sequence = kb.ConfidenceSequence(RBF((0.1, 0.2)), 1.0, 0.1)
    with pytest.raises(kb.InputError, match="has 2 length scales"):
        kb.KernelUCB(sequence, kb.Box([0, 0, 0], [1, 1, 1]))


def test_a_box_of_plain_numbers_is_told_how_it_is_written():
    with pytest.raises(kb.InputError, match=r"as in Box\(\[0\], \[1\]\), got 0 and 1\."):
        kb.Box(0, 1)


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


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("minimise", [False, True])
def test_suggestions_and_certificates_as_json(name, minimise):
    policy, _, _ = policy_on(kb.KernelUCB, DOMAINS[name], minimise=minimise, t=3)
    for record in (policy.ask(), policy.certificate(tolerance=1.0)):
        data = json.loads(json.dumps(record.as_data(), allow_nan=False))
        assert data == record.as_data()
        assert set(data) == set(vars(record))
        assert data["x"] == record.x.tolist() and data["named"] == record.named
        for field in set(data) - {"x", "named"}:
            value = getattr(record, field)
            assert data[field] == (None if value is not None and np.isinf(value) else value)
    assert (policy.ask().as_data()["limit"] is None) == ("box" in name)  # Ascent certifies nothing
    json.dumps([one.as_data() for one in policy.ask(n=2)], allow_nan=False)


@pytest.mark.parametrize("minimise", [False, True])
def test_history_as_a_table(minimise):
    policy, _, _ = policy_on(kb.KernelUCB, DOMAINS["finite"], minimise=minimise, t=4)
    history = policy.history
    table = history.table()
    assert list(table) == [
        "round", "lower", "upper", "limit", "width", "regret_bound", "cumulative_regret_bound",
    ]  # fmt: skip
    assert table["round"].tolist() == [1, 2, 3, 4]
    assert all(column.shape == (4,) for column in table.values())
    for name in list(table)[1:]:
        np.testing.assert_array_equal(table[name], getattr(history, name))
    empty, _, _ = policy_on(kb.KernelUCB, DOMAINS["finite"])
    assert all(len(column) == 0 for column in empty.history.table().values())


@pytest.mark.parametrize("cls", ANYWHERE)
class TestNames:
    """Boxes with names take dicts wherever they take points."""

    def test_bounds(self, cls):
        policy, _, _ = policy_on(cls, DOMAINS["named box"], t=4)
        point = {"b": -0.5, "a": 0.25}
        expected = policy.sequence.bounds([[0.25, -0.5]])
        for given in (point, [point], [0.25, -0.5], np.array([[0.25, -0.5]])):
            np.testing.assert_array_equal(policy.bounds(given), expected)
        both = policy.bounds([point, {"a": 0.1, "b": 0.2}], bound=kb.AMM())
        assert both[0].shape == (2,)

    def test_run(self, cls):
        policy, _, _ = policy_on(cls, DOMAINS["named box"])
        given = []
        policy.run(lambda action: given.append(action) or action["a"] - action["b"], 3, named=True)
        assert [list(action) for action in given] == [["a", "b"]] * 3
        np.testing.assert_array_equal(policy.sequence.points, [list(a.values()) for a in given])
        with pytest.raises(kb.InputError, match="named=True needs a Box with names"):
            policy_on(cls, DOMAINS["box"])[0].run(lambda action: 0.0, 3, named=True)

    def test_points_outside_the_box_are_flagged(self, cls):
        policy, _, _ = policy_on(cls, DOMAINS["named box"])
        with pytest.warns(UserWarning, match="1 of 2 points.* 3 in coordinate 'b'"):
            policy.tell([[0.5, 0.5], [0.5, 3.0]], [0.1, 0.2])
        assert len(policy.sequence) == 2
        asked = policy.ask(fixed={"b": 7.0})  # given to us, and not chosen
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            policy.tell(asked, 0.1)
            policy.tell([0.5, 0.5], 0.1)


def test_asks_with_many_points_point_to_sparse_sequences(monkeypatch):
    monkeypatch.setattr(policy, "MANY_POINTS", 20)
    X = np.random.default_rng(0).random((20, 1))
    for engine, points, warned in ((None, X, True), (None, X[:19], False),
                                   (kb.Sparse(), X, False)):  # fmt: skip
        seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, engine=engine)
        seq.update(points, points[:, 0])
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            kb.KernelUCB(seq, kb.Box([0.0], [1.0])).ask()
        assert any("engine=kb.Sparse()" in str(one.message) for one in found) == warned
