"""A sequence or a policy shared among threads: no error, nothing lost, the same numbers."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from problems import KERNEL, POINTS

import kernelbounds as kb

GRID = POINTS[:7]


@pytest.fixture(autouse=True)
def often():
    """Threads take turns a thousand times as often as they otherwise would."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def at_once(*tasks):
    """Run functions in threads that start together; the first error is raised here."""
    errors, gate = [], threading.Barrier(len(tasks))

    def run(task):
        gate.wait()
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def outcome(x):
    return float(np.sin(5 * x[0]) * np.cos(3 * x[1]))


def as_set(points, outcomes):
    return {(*x, y) for x, y in zip(points.tolist(), np.asarray(outcomes).tolist())}


@pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AMM(), kb.AY()], ids=repr)
def test_a_shared_sequence(bound, tmp_path):
    seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, bound=bound)
    X = np.random.default_rng(0).random((90, 2))
    done = threading.Event()

    turns = dict.fromkeys(("ask", "save", "look"), 0)

    def update(part):
        for x in part:
            seq.update(x, outcome(x))
            time.sleep(2e-3)  # the others want the lock too

    def ask():
        while not done.is_set():
            turns["ask"] += 1
            lower, upper = seq.bounds(GRID)
            assert np.all(lower <= upper)
            seq.upper(GRID, kb.CMM())
            seq.norm_lower_bound, seq.radius, seq.ridge_radius(0.3)
            if len(seq):
                seq.gradients(GRID)

    def save():
        while not done.is_set():
            turns["save"] += 1
            seq.save(tmp_path / "x.npz")
            again = kb.ConfidenceSequence.load(tmp_path / "x.npz")
            assert again.outcomes.tolist() == [outcome(x) for x in again.points]

    def look():
        while not done.is_set():
            turns["look"] += 1
            with seq.lock:  # several calls as one
                assert len(seq.points) == len(seq.outcomes) == len(seq)
                before = seq.bounds(GRID)
                twin = copy.deepcopy(seq)
                np.testing.assert_array_equal(seq.bounds(GRID), before)
            assert twin.outcomes.tolist() == [outcome(x) for x in twin.points]

    def update_all():
        try:
            at_once(lambda: update(X[:30]), lambda: update(X[30:60]), lambda: update(X[60:]))
        finally:
            done.set()

    at_once(update_all, ask, ask, save, look)
    assert min(turns.values()) >= 3, turns
    assert as_set(seq.points, seq.outcomes) == as_set(X, [outcome(x) for x in X])
    serial = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, bound=bound)
    for x, y in zip(seq.points, seq.outcomes):
        serial.update(x, y)
    np.testing.assert_array_equal(seq.known.engine.rows.gram, serial.known.engine.rows.gram)
    np.testing.assert_allclose(seq.bounds(GRID), serial.bounds(GRID), rtol=1e-7, atol=1e-7)
    assert seq.norm_lower_bound == pytest.approx(serial.norm_lower_bound, rel=1e-7)


@pytest.mark.parametrize("cls", [kb.KernelUCB, kb.KernelLUCB, kb.RandomPolicy])
@pytest.mark.parametrize("domain", [kb.Finite(POINTS), None], ids=["finite", "fresh"])
def test_a_shared_policy(cls, domain, tmp_path):
    policy = cls(kb.ConfidenceSequence(KERNEL, 5.0, 0.1), domain)
    told, done = [], threading.Event()

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(12):
            with policy.sequence.lock:
                s = policy.ask(rng.random((20, 2)) if domain is None else None)
                policy.begin(s)  # so that the others look elsewhere
            policy.tell(s, outcome(s.x))
            told.append((*s.x.tolist(), outcome(s.x)))

    def look():
        while not done.is_set():
            history = policy.history
            assert len(history) <= len(policy.history)
            assert policy.pending.shape[0] <= 3
            policy.certificate(POINTS)
            policy.save(tmp_path / "x.npz")
            again = cls.load(tmp_path / "x.npz")
            assert len(again.sequence) == len(again.history)
            assert len(again.pending) <= 3

    def work_all():
        try:
            at_once(*(lambda seed=seed: work(seed) for seed in range(3)))
        finally:
            done.set()

    at_once(work_all, look, look)
    assert len(policy.pending) == 0 and len(policy.history) == len(policy.sequence) == 36
    assert sorted(told) == sorted(
        (*x, y) for x, y in zip(policy.sequence.points.tolist(), policy.sequence.outcomes.tolist())
    )
    serial = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
    for x, y in zip(policy.sequence.points, policy.sequence.outcomes):
        serial.update(x, y)
    np.testing.assert_allclose(policy.bounds(GRID), serial.bounds(GRID), rtol=1e-7, atol=1e-7)


def test_asking_without_a_lock_by_several_threads():
    """Each ask and each tell is one step, whatever comes between them."""
    policy = kb.KernelUCB(kb.ConfidenceSequence(KERNEL, 5.0, 0.1), kb.Finite(POINTS))

    def work():
        for _ in range(10):
            s = policy.ask()
            policy.tell(s, outcome(s.x))

    at_once(*[work] * 4)
    assert len(policy.history) == 40
    assert np.all(np.isfinite(policy.history.lower))


def test_a_lock_that_is_held_keeps_others_out():
    seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
    with seq.lock:
        other = threading.Thread(target=seq.update, args=(POINTS[:1], [0.1]))
        other.start()
        other.join(timeout=0.2)
        assert other.is_alive() and len(seq) == 0
    other.join(timeout=10)
    assert len(seq) == 1


def pickled(one):
    return pickle.loads(pickle.dumps(one))


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy])
@pytest.mark.parametrize("kind", ["sequence", "policy", "regressor"])
def test_a_copy_waits_for_the_lock(kind, copied):
    regressor = kb.KernelConfidenceRegressor(KERNEL, 5.0, 0.1).fit(POINTS[:5], np.zeros(5))
    policy = kb.KernelUCB(regressor.sequence_, kb.Finite(POINTS))
    one = {"sequence": policy.sequence, "policy": policy, "regressor": regressor}[kind]
    copies = []
    with policy.lock:
        other = threading.Thread(target=lambda: copies.append(copied(one)))
        other.start()
        other.join(timeout=0.1)
        assert other.is_alive()
        policy.sequence.update(POINTS[5:7], [0.1, 0.2])
    other.join(timeout=20)
    name = {"policy": "sequence", "regressor": "sequence_"}.get(kind)
    found = getattr(copies[0], name) if name else copies[0]
    assert found.outcomes.tolist() == [0.0] * 5 + [0.1, 0.2]
    assert found.known.evidence.lock is not policy.lock


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy])
@pytest.mark.parametrize("engine", [None, kb.Sparse(most=40)], ids=["exact", "sparse"])
def test_a_copy_is_of_one_moment(engine, copied):
    """Taken without a hold on the lock, while another thread updates."""
    X = np.random.default_rng(0).random((90, 2))
    y, steps, copies = np.array([outcome(x) for x in X]), range(0, 90, 3), []
    done = threading.Event()

    def bounds_after_each(sequence):
        for at in steps:
            sequence.update(X[at : at + 3], y[at : at + 3])
            yield sequence.bounds(GRID)

    def new():
        return kb.ConfidenceSequence(KERNEL, 5.0, 0.1, engine=engine)

    def update(sequence):
        try:
            for _ in bounds_after_each(sequence):
                time.sleep(2e-3)  # the others want the lock too
        finally:
            done.set()

    def take(sequence):
        while not done.is_set():
            copies.append(copied(sequence))

    seq = new()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few inducing points
        at_once(lambda: update(seq), lambda: take(seq), lambda: take(seq))
        right = list(bounds_after_each(new()))
    assert len(copies) >= 5
    for one in copies[:: 1 + len(copies) // 10]:
        assert len(one) % 3 == 0
        if len(one):
            np.testing.assert_allclose(
                one.bounds(GRID), right[len(one) // 3 - 1], rtol=1e-7, atol=1e-7
            )


def test_a_copy_of_a_policy_is_of_one_moment():
    policy = kb.KernelUCB(kb.ConfidenceSequence(KERNEL, 5.0, 0.1), kb.Finite(POINTS))
    done, copies = threading.Event(), []

    def work():
        for _ in range(30):
            s = policy.ask()
            policy.tell(s, outcome(s.x))
        done.set()

    def take():
        while not done.is_set():
            copies.extend([pickled(policy), copy.deepcopy(policy)])

    at_once(work, take, take)
    assert all(len(one.sequence) == len(one.history) for one in copies)
    for one in copies[:: 1 + len(copies) // 20]:  # of which a fast machine makes hundreds
        one.tell(one.ask(), 0.0)
    shallow = copy.copy(policy)
    assert shallow.sequence is policy.sequence and shallow.lock is policy.lock
