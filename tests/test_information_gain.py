"""Information gain, its maximum and elliptical potentials, against slow and obvious ways."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import KERNELS, instances
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import kernelbounds as kb
from kernelbounds import theory
from kernelbounds.theory.information_gain import remaining_gains
from kernelbounds.theory.spectrum import sobol

thresholds = st.sampled_from([0.3, 1.0, 2.0])


def _instance(i, dim=2):
    rng = np.random.default_rng(i["seed"])
    X = rng.random((i["t"], dim))
    if i["repeats"]:
        X = X[rng.integers(max(i["t"] // 3, 1), size=i["t"])]
    return KERNELS[i["name"]], X, i["ridge"]


def _gain(kernel, X, ridge):
    return np.linalg.slogdet(np.eye(len(X)) + kernel(X) / ridge)[1] / 2


class TestInformationGain:
    @settings(max_examples=30, deadline=None)
    @given(instances)
    def test_is_the_log_determinant_along_the_run(self, i):
        kernel, X, ridge = _instance(i)
        found = theory.information_gains(kernel, X, ridge)
        slow = [_gain(kernel, X[: t + 1], ridge) for t in range(len(X))]
        assert found == pytest.approx(slow, abs=1e-8)
        assert theory.information_gain(kernel, X, ridge) == found[-1]

    @pytest.mark.parametrize("name", ["rbf", "matern 3/2", "linear", "scaled sum"])
    @pytest.mark.parametrize("ridge", [0.01, 0.5, 20.0])
    def test_the_bracket_contains_the_maximum_over_multisets(self, name, ridge):
        rng = np.random.default_rng(3)
        kernel, X = KERNELS[name], rng.random((6, 2))
        found = theory.maximum_information_gain(kernel, X, ridge, 4)
        for t in range(1, 5):
            chosen = itertools.combinations_with_replacement(range(6), t)
            best = max(_gain(kernel, X[list(c)], ridge) for c in chosen)
            assert found.lower[t - 1] <= best * (1 + 1e-9)
            assert best <= found.upper[t - 1] * (1 + 1e-9)
        assert found.lower[-1] == pytest.approx(_gain(kernel, X[found.chosen], ridge))
        assert found.lower[0] == pytest.approx(found.upper[0])

    def test_points_repeat_where_that_is_best(self):
        """Two far points, large ridge: the second visit is worth as much as the first."""
        found = theory.maximum_information_gain(RBF(0.1), [[0.0], [9.0]], 100.0, 6)
        assert sorted(found.chosen) == [0, 0, 0, 1, 1, 1]

    @pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.3, nu=1.5), DotProduct(0.5)])
    def test_lazy_is_naive(self, kernel):
        rng = np.random.default_rng(0)
        X = rng.random((300, 2))
        found = theory.maximum_information_gain(kernel, X, 0.05, 80)
        chosen = []
        for t in range(80):
            k = kernel(X[chosen], X) if chosen else np.empty((0, 300))
            solved = np.linalg.solve(kernel(X[chosen]) + 0.05 * np.eye(t), k) if t else k
            variance = kernel.diag(X) - np.sum(k * solved, axis=0)
            # Where several are best up to rounding, any of them will do.
            assert variance[found.chosen[t]] == pytest.approx(variance.max(), abs=1e-9)
            chosen.append(found.chosen[t])
        assert found.lower == pytest.approx(theory.information_gains(kernel, X[chosen], 0.05))
        assert np.all(np.diff(found.lower) > 0) and np.all(found.upper >= found.lower)
        assert np.all(found.upper <= found.lower / (1 - 1 / math.e))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.floats(0.0, 50.0), min_size=1, max_size=5), st.integers(1, 5))
    def test_remaining_gains_are_the_best_allocation(self, potentials, t):
        v = np.array(potentials)
        found = remaining_gains(v, t)[-1]
        best = 0.0
        for c in itertools.combinations_with_replacement(range(len(v)), t):
            best = max(best, np.log1p(np.bincount(c, minlength=len(v)) * v).sum() / 2)
        assert found == pytest.approx(best, abs=1e-9)

    def test_remaining_gains_at_the_extremes(self):
        assert remaining_gains(np.zeros(3), 4) == pytest.approx(np.zeros(4))
        for v in (1e-310, 1e-200, 1e-17):
            found = remaining_gains(np.full(3, v), 10)
            assert found == pytest.approx(np.arange(1, 11) * v / 2, rel=1e-12, abs=1e-299)
        found = remaining_gains(np.array([1e200, 1e-200]), 3)
        assert found == pytest.approx(np.log1p(1e200 * np.arange(1, 4)) / 2)

    def test_greedy_is_sharp_for_long_runs(self):
        found = theory.maximum_information_gain(RBF(0.5), sobol(256, 2), 0.1, 400)
        assert found.upper[-1] < 1.3 * found.lower[-1]

    def test_refuses(self):
        for change in (
            {"ridge": 0.0}, {"ridge": -1.0}, {"rounds": 0}, {"candidates": [1.0]},
            {"kernel": "rbf"},
        ):  # fmt: skip
            given = {"kernel": RBF(), "candidates": [[0.0]], "ridge": 1.0, "rounds": 2}
            with pytest.raises(kb.InputError):
                theory.maximum_information_gain(**(given | change))
        with pytest.raises(kb.InputError, match="ridge"):
            theory.information_gain(RBF(), np.zeros((30, 1)), 1e-300)


class TestPotentials:
    @settings(max_examples=40, deadline=None)
    @given(instances)
    def test_determinant_sum_and_count(self, i):
        """Lemmas D.8, D.4 and D.9."""
        kernel, X, ridge = _instance(i)
        v = theory.elliptical_potentials(kernel, X, ridge)
        gains = theory.information_gains(kernel, X, ridge)
        assert np.log1p(v).sum() / 2 == pytest.approx(gains[-1])
        sums = np.cumsum(np.minimum(1, v))
        assert np.all(sums <= theory.potential_sum_bound(gains) * (1 + 1e-9))
        assert np.all(sums <= 2 * gains / math.log(2) * (1 + 1e-9))  # the sharper constant
        for b in (0.5, 1.0, 2.0):
            counts = theory.potential_counts(kernel, X, ridge, b)
            assert np.all(counts <= theory.potential_count_bound(gains, b) * (1 + 1e-9))

    @settings(max_examples=15, deadline=None)
    @given(instances, thresholds)
    def test_the_count_by_its_own_gain(self, i, b):
        """Lemma D.9, the first inequality: gamma at the count, over the points of the run."""
        kernel, X, ridge = _instance(i)
        bracket = theory.maximum_information_gain(kernel, X, ridge, len(X))
        most = theory.self_consistent_counts(bracket.upper, b)
        assert np.all(theory.potential_counts(kernel, X, ridge, b) <= most)

    def test_the_count_at_the_edge(self):
        """alpha = kappa/b^2: the first potential is b^2 and counts; above, none does."""
        X = [[0.0], [50.0], [100.0]]
        for b in (0.5, 1.0, 2.0, 8.0):
            assert theory.potential_counts(RBF(0.1), X, 1 / b**2, b)[-1] == 3
            assert theory.potential_counts(RBF(0.1), X, 1.0001 / b**2, b)[-1] == 0
            decay = theory.ExponentialDecay(1.0, 1.0, 1.0)
            at, above = theory.potential_count_bound_under(decay, [1 / b**2, 1.0001 / b**2], b)
            assert at >= 3 and above == 0
