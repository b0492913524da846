"""The simulator and the paper's synthetic problems."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb

KERNEL = Matern(length_scale=0.5, nu=2.5)


def _problem(seed=0, **options):
    return kb.SyntheticProblem.draw(KERNEL, 2, np.random.default_rng(seed), **options)


def test_the_papers_problems():
    problem = _problem()
    assert problem.function.norm == pytest.approx(10)
    assert problem.function.centres.shape == (20, 2)
    rng = np.random.default_rng(1)
    actions = problem.actions(rng)
    assert actions.shape == (100, 2) and actions.min() >= 0 and actions.max() <= 1
    assert not np.array_equal(actions, problem.actions(rng))
    noise = [problem.noise(rng) for _ in range(4000)]
    assert np.std(noise) == pytest.approx(0.1, rel=0.05)
    a = problem.sequence(rounds=1000).assumptions
    assert a.norm_bound == pytest.approx(10) and a.norm_bound >= problem.function.norm
    assert (a.noise_scale, a.delta) == (0.1, 0.01)
    assert a.mixture_scale == pytest.approx(1000 ** (-2 / 9))
    smooth = kb.SyntheticProblem.draw(RBF(0.2), 3, rng).sequence()
    assert smooth.assumptions.mixture_scale == 1.0


def test_a_trace_adds_up():
    problem = _problem(actions_per_round=30)
    policy = kb.KernelUCB(problem.sequence(kb.AMM(), rounds=40))
    trace = kb.simulate(policy, problem, 40, np.random.default_rng(2))
    assert np.array_equal(policy.sequence.points, trace.x)
    assert np.array_equal(policy.sequence.outcomes, trace.outcome)
    assert trace.value == pytest.approx(problem.values(trace.x))
    assert np.all(trace.regret >= 0) and np.all(trace.seconds > 0)
    assert np.all((trace.lower <= trace.value) & (trace.value <= trace.upper))
    assert np.all(trace.regret <= policy.history.regret_bound)
    table = trace.table()
    assert {len(column) for column in table.values()} == {40}
    assert table["cumulative_regret"][-1] == pytest.approx(trace.regret.sum())


def test_policies_meet_the_same_actions_and_noise():
    problem = _problem()
    traces = [
        kb.simulate(policy, problem, 15, np.random.default_rng(3))
        for policy in (
            kb.KernelUCB(problem.sequence(kb.CMM(), rounds=15)),
            kb.KernelUCB(problem.sequence(kb.AMM(), rounds=15)),
            kb.RandomPolicy(problem.sequence(), rng=np.random.default_rng(4)),
        )
    ]
    noise = [trace.outcome - trace.value for trace in traces]
    assert noise[0] == pytest.approx(noise[1]) and noise[0] == pytest.approx(noise[2])
    best = [trace.value + trace.regret for trace in traces]
    assert best[0] == pytest.approx(best[1]) and best[0] == pytest.approx(best[2])


def test_learning_beats_chance_and_tighter_is_better():
    problem = _problem(5)
    total = {}
    for name, policy in {
        "CMM": kb.KernelUCB(problem.sequence(kb.CMM(), rounds=150)),
        "IGP": kb.KernelUCB(problem.sequence(kb.IGP(2 / 150), rounds=150)),
        "random": kb.RandomPolicy(problem.sequence(kb.AMM())),
    }.items():
        total[name] = kb.simulate(policy, problem, 150, np.random.default_rng(6)).regret.sum()
    assert total["CMM"] < total["IGP"] < total["random"]


def test_minimising_counts_regret_downwards():
    problem = _problem(actions_per_round=20)
    policy = kb.KernelUCB(problem.sequence(rounds=30), minimise=True)
    trace = kb.simulate(policy, problem, 30, np.random.default_rng(1))
    assert np.all(trace.regret >= 0)
    assert np.all(trace.regret <= policy.history.regret_bound)
    assert trace.regret[-5:].mean() < trace.regret[:5].mean()


class Wrong(kb.SyntheticProblem):
    def values(self, points):
        return super().values(points)[:1]


def test_bad_input():
    problem = _problem()
    policy = kb.KernelUCB(problem.sequence())
    for call in (
        lambda: kb.simulate(policy, problem, 0, np.random.default_rng(0)),
        lambda: kb.simulate(policy, problem, 5, 3),
        lambda: kb.simulate(policy, problem, "5", np.random.default_rng(0)),
        lambda: kb.simulate(policy, problem, 2.5, np.random.default_rng(0)),
        lambda: kb.simulate(3, problem, 5, np.random.default_rng(0)),
        lambda: kb.simulate(policy, 3, 5, np.random.default_rng(0)),
        lambda: kb.simulate(policy, kb.SyntheticProblem, 5, np.random.default_rng(0)),
        lambda: kb.simulate(policy, Wrong(problem.function), 5, np.random.default_rng(0)),
        lambda: kb.SyntheticProblem("function"),
        lambda: kb.SyntheticProblem(problem.function, noise_scale=-1.0),
        lambda: kb.SyntheticProblem(problem.function, actions_per_round=2.5),
        lambda: problem.actions(0),
        lambda: problem.noise(0),
        lambda: kb.SyntheticProblem.draw(KERNEL, 0, np.random.default_rng(0)),
        lambda: kb.SyntheticProblem.draw(KERNEL, 2, 7),
        lambda: kb.SyntheticProblem.draw("kernel", 2, np.random.default_rng(0)),
    ):
        with pytest.raises(kb.InputError):
            call()
        assert len(policy.sequence) == 0
