"""Policies that run, stop, are saved, and go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from problems import DOMAINS, KERNEL, POINTS, policy_on
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb


def test_run_stops_when_the_regret_is_certified():
    policy, function, rng = policy_on(kb.KernelUCB, kb.Finite(POINTS[:10]))
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


@pytest.mark.slow
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


def test_a_policy_without_domain_or_data_can_be_saved(tmp_path):
    policy, _, _ = policy_on(kb.KernelUCB, None)
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
    policy, _, _ = policy_on(kb.KernelUCB, DOMAINS["box"], t=2)
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


def test_a_run_that_is_good_enough_already_plays_nothing(tmp_path):
    policy, function, _ = policy_on(kb.KernelUCB, kb.Finite(POINTS[:5]), noise_scale=0.0)
    policy.tell(POINTS[:5], function(POINTS[:5]))
    file = tmp_path / "nothing-to-do.npz"
    assert len(policy.run(lambda x: 1 / 0, 10, stop_when_regret_below=0.1, save_to=file)) == 5
    assert len(type(policy).load(file).history) == 5


def test_outcomes_may_come_as_arrays_of_one():
    policy, function, _ = policy_on(kb.KernelUCB, DOMAINS["finite"])
    policy.run(lambda x: function(x[None]), 3)
    assert len(policy.sequence) == 3
    with pytest.raises(kb.InputError, match="outcome of an experiment"):
        policy.run(lambda x: [1.0, 2.0], 3)


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
