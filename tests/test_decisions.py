"""Policies make the decisions of the plainest implementation, on the same random numbers."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

KERNEL = Matern(length_scale=0.5, nu=2.5)
METHODS = {
    "CMM": lambda rounds: kb.CMM(),
    "DMM": lambda rounds: kb.DMM(),
    "AMM": lambda rounds: kb.AMM(),
    "AY": lambda rounds: kb.AY(),
    "IGP": lambda rounds: kb.IGP(eta=2 / rounds),
}


def _compare(name, rounds, seed):
    bound = METHODS[name](rounds)
    problem = kb.SyntheticProblem.draw(KERNEL, 3, np.random.default_rng(seed))
    expected = reference.play(bound, problem, rounds, np.random.default_rng(seed + 1))
    policy = kb.KernelUCB(problem.sequence(bound, rounds=rounds))
    trace = kb.simulate(policy, problem, rounds, np.random.default_rng(seed + 1))
    assert trace.index.astype(int).tolist() == expected


@pytest.mark.parametrize("name", METHODS)
def test_decisions_equal_the_reference(name):
    _compare(name, 80, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_decisions_equal_the_reference_on_the_papers_setting(name):
    _compare(name, 1000, 5)
