"""The estimate: within the bounds, continuous, with exact gradients, and what it is said to be."""

from __future__ import annotations

import numpy as np
import pytest
from problems import Own
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.engine import exact
from kernelbounds.surface.estimate import (
    LOG_RIDGES,
    NOISE_SPREAD,
    SPREAD,
    likeliest,
    unlimited_estimate,
)

KERNEL = Matern(length_scale=0.5, nu=2.5)
UNIT = kb.Box([0.0, 0.0], [1.0, 1.0])
ADDITIVE = kb.Parts([(kb.OnInputs(RBF(0.4), [axis]), 4.0) for axis in (0, 1)])
NEW = np.random.default_rng(9).random((50, 2))


def truth(X):
    return np.sin(4 * X[:, 0]) + X[:, 1] ** 2


def data(n=40, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, truth(X) + noise * rng.standard_normal(n)


CASES = {
    "plain": {"kernel": KERNEL, "norm_bound": 5.0},
    "unknown noise": {"kernel": KERNEL, "norm_bound": 5.0, "noise_scale": kb.noise.Gaussian()},
    "bounded noise": {"kernel": KERNEL, "norm_bound": 5.0, "noise_scale": kb.noise.Bounded(0.4)},
    "misspecified": {"kernel": KERNEL, "norm_bound": 5.0, "misspecification": 0.05},
    "level": {"kernel": KERNEL, "norm_bound": 5.0, "offset": 1.0},
    "unknown level": {"kernel": KERNEL, "norm_bound": 5.0, "offset": kb.Offset(1.0, within=2.0)},
    "parts": {"kernel": ADDITIVE},
    "any of": {"kernel": kb.AnyOf([(KERNEL, 5.0), (RBF(0.3), 5.0), (RBF(9.0), 1.0)])},
    "all of": {"kernel": kb.AllOf([(KERNEL, 5.0), (RBF(0.5), 6.0)])},
    "facts": {
        "kernel": KERNEL,
        "norm_bound": 5.0,
        "facts": [kb.facts.Between(-0.8, 1.6, region=UNIT), kb.facts.Increasing(1, region=UNIT)],
    },
    "sparse": {
        "kernel": KERNEL,
        "norm_bound": 5.0,
        "engine": kb.Sparse.filling([0, 0], [1, 1], 40),
    },
    "growing sparse": {"kernel": KERNEL, "norm_bound": 5.0, "engine": kb.Sparse()},
    "another bound": {"kernel": KERNEL, "norm_bound": 5.0, "bound": kb.AY()},
}


def sequence(case, n=40):
    seq = kb.ConfidenceSequence(**({"noise_scale": 0.1} | CASES[case]))
    if n:
        seq.update(*data(n))
    return seq


@pytest.mark.parametrize("n", [0, 1, 7, 40])
@pytest.mark.parametrize("case", CASES)
def test_the_estimate_is_within_the_bounds(case, n):
    seq = sequence(case, n)
    estimate, lower, upper = seq.estimate_with_bounds(NEW)
    assert np.all(lower <= estimate) and np.all(estimate <= upper)
    np.testing.assert_array_equal((lower, upper), seq.bounds(NEW))
    np.testing.assert_array_equal(estimate, seq.estimate(NEW))
    if n == 40:
        assert np.sqrt(np.mean((estimate - truth(NEW)) ** 2)) < 0.1  # the noise of one outcome


@pytest.mark.parametrize("case", [name for name in CASES if name != "another bound"])
def test_gradients_are_those_of_the_estimate(case):
    for n in (0, 7, 40):
        seq = sequence(case, n)
        found = seq.estimate_gradients(NEW[:10])
        steps = 1e-6 * np.eye(2)[:, None]
        sides = [seq.estimate((NEW[:10] + side * steps).reshape(-1, 2)) for side in (1, -1)]
        expected = ((sides[0] - sides[1]) / 2e-6).reshape(2, -1).T
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-4)


def moved_by_limits():
    """Limits so narrow that the estimate is at them in most places."""
    limits = [kb.facts.Between(0.2, 0.9, region=UNIT)]
    seq = kb.ConfidenceSequence(KERNEL, 9.0, 1.0, facts=limits)
    X = data(15)[0]
    seq.update(X, np.where(X[:, 0] < 0.5, 1.4, -0.4))
    return seq


def moved_by_bounds():
    """Noise that is larger than stated, and a norm bound that is just large enough."""
    seq = kb.ConfidenceSequence(KERNEL, 2.5, 0.08)
    seq.update(*data(40, noise=0.12))
    values, (lower, upper) = unlimited_estimate(seq.known, NEW), seq.bounds(NEW)
    assert np.any((values < lower) | (upper < values))
    return seq


@pytest.mark.parametrize("made", [moved_by_limits, moved_by_bounds, lambda: sequence("plain")])
def test_the_estimate_is_continuous(made):
    seq = made()
    line = np.column_stack([np.linspace(0, 1, 801), np.full(801, 0.37)])
    estimate = seq.estimate(line)
    steepest = np.abs(seq.estimate_gradients(line[::8])).max() + 0.1
    assert np.abs(np.diff(estimate)).max() < 3 * steepest / 800


def test_where_it_is_moved_its_gradient_is_that_of_the_bound():
    seq = moved_by_limits()
    estimate, lower, upper = seq.estimate_with_bounds(NEW)
    assert np.any(estimate == upper) and np.any(estimate == lower)
    found = seq.estimate_gradients(NEW)
    below, above = seq.gradients(NEW)
    at = estimate == upper
    np.testing.assert_array_equal(found[at], above[at])
    at = estimate == lower
    np.testing.assert_array_equal(found[at], below[at])


def directly(kernel, X, y, new, sigma, c0):
    """The estimate from its definition, by inverses and determinants."""
    K, t = kernel(X), len(y)
    best = np.inf, None
    for ridge in np.exp(LOG_RIDGES) * np.mean(np.diag(K)):
        energy = ridge * y @ np.linalg.solve(K + ridge * np.eye(t), y)
        noise = min(energy / t, sigma**2)
        score = t * np.log(noise) + energy / noise
        score += np.linalg.slogdet(np.eye(t) + K / ridge)[1]
        score += (np.log(noise / ridge / c0) / SPREAD) ** 2
        if np.isfinite(sigma):
            score += (np.log(noise / sigma**2) / NOISE_SPREAD) ** 2
        if score < best[0]:
            best = score, kernel(new, X) @ np.linalg.solve(K + ridge * np.eye(t), y)
    return best[1]


@pytest.mark.parametrize("sigma", [0.1, 0.5, np.inf])
def test_it_is_ridge_regression_at_the_likeliest_ridge(sigma):
    X, y = data(30)
    noise = kb.noise.Gaussian() if np.isinf(sigma) else sigma
    seq = kb.ConfidenceSequence(KERNEL, 20.0, noise, offset=0.3)
    seq.update(X, y)
    sigma = min(sigma, seq.noise_upper_bound) if np.isinf(sigma) else sigma
    expected = 0.3 + directly(KERNEL, X, y - 0.3, NEW, sigma, 0.03 * 20.0**2)
    estimate, lower, upper = seq.estimate_with_bounds(NEW)
    np.testing.assert_allclose(estimate, np.clip(expected, lower, upper), rtol=1e-9, atol=1e-9)
    assert np.mean((lower < expected) & (expected < upper)) > 0.9  # so that it says something


def test_repeats_count_as_often_as_they_were_made():
    X, y = data(6)
    X, y = np.repeat(X, 8, axis=0), np.repeat(y, 8) + 0.1 * np.sin(np.arange(48.0))
    seq = kb.ConfidenceSequence(KERNEL, 20.0, 1.0)
    seq.update(X, y)
    expected = directly(KERNEL, X, y, NEW, 1.0, 0.03 * 20.0**2)
    np.testing.assert_allclose(seq.estimate(NEW), expected, rtol=1e-7, atol=1e-7)


def test_noise_scales_of_single_observations_count():
    X, y = data(20)
    y[7] += 5.0
    seq = kb.ConfidenceSequence(KERNEL, 20.0, 0.1)
    seq.update(X, y, noise_scale=np.where(np.arange(20) == 7, 5.0, 0.1))
    assert np.abs(seq.estimate(X[[7]])[0] - truth(X[[7]])[0]) < 1.0


def test_without_noise_it_goes_through_the_outcomes():
    X = data(20)[0]
    seq = kb.ConfidenceSequence(KERNEL, 40.0, 0.0)
    seq.update(X, truth(X))
    np.testing.assert_allclose(seq.estimate(X), truth(X), atol=1e-5)


def test_before_the_first_outcome_it_is_the_level():
    seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, offset=kb.Offset(lambda X: 2 * X[:, 0]))
    np.testing.assert_allclose(seq.estimate(NEW), 2 * NEW[:, 0])
    seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, facts=[kb.facts.Between(1.0, 3.0)])
    np.testing.assert_allclose(seq.estimate(NEW), 1.0)  # the nearest value that is possible


def test_units_do_not_matter():
    X, y = data(30)
    one = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
    two = kb.ConfidenceSequence(7.0 * KERNEL, 1e6 * 5.0 / np.sqrt(7.0), 1e6 * 0.1)
    one.update(X, y)
    two.update(X, 1e6 * y)
    np.testing.assert_allclose(two.estimate(NEW), 1e6 * one.estimate(NEW), rtol=1e-7)


def test_refuted_classes_have_no_say():
    seq = kb.ConfidenceSequence(kb.AnyOf([(RBF(9.0), 1.0), (KERNEL, 5.0)]), noise_scale=0.1)
    seq.update(*data(60))
    assert seq.refuted_classes == [0]
    other = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
    other.update(*data(60))
    np.testing.assert_allclose(seq.estimate(NEW), other.estimate(NEW), atol=0.02)


def test_of_many_rows_some_choose_the_ridge(monkeypatch):
    found = []
    for rows in (512, 10_000):
        monkeypatch.setattr(exact, "FITTED_ROWS", rows)
        seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1)
        seq.update(*data(700))
        error = np.sqrt(np.mean((seq.estimate(NEW) - truth(NEW)) ** 2))
        found.append((likeliest(seq.known).ridge, error))
    (some, error), (every, least) = found
    assert abs(np.log(some / every)) < 0.6 and error < 1.1 * least


def test_a_kernel_without_derivatives_has_an_estimate_and_no_gradient():
    seq = kb.ConfidenceSequence(Own(0.5), 5.0, 0.1)
    seq.update(*data(20))
    assert np.isfinite(seq.estimate(NEW)).all()
    with pytest.raises(kb.InputError, match="gradient in x of the estimate"):
        seq.estimate_gradients(NEW)


def test_refuted_assumptions_have_no_estimate():
    seq = kb.ConfidenceSequence(KERNEL, 0.1, 0.1)
    seq.update(*data(40))
    with pytest.raises(kb.EmptyConfidenceSetError):
        seq.estimate(NEW)


def test_problems_estimate_in_the_users_units():
    problem = kb.Problem(
        ["x=0:10"], "gain=1:9:log", "5%", kernel="RBF(0.5)", norm_bound=3.0, limits="1:3.9"
    )
    seq = problem.sequence()
    none = problem.estimate_with_bounds(seq, [[5.0]])
    assert none[0][0] == pytest.approx(3.0)  # the middle of the logarithms of 1 and 9
    seq.update(problem.scaled([[2.0], [7.0]]), *problem.scaled_outcomes([2.1, 4.0]))
    at = np.linspace(0, 10, 30)[:, None]
    estimate, lower, upper = problem.estimate_with_bounds(seq, at)
    np.testing.assert_array_equal((lower, upper), problem.bounds(seq, at))
    assert np.all(lower <= estimate) and np.all(estimate <= upper) and upper.max() == 3.9
    inner = np.log(estimate[(estimate > lower) & (estimate < upper)])
    np.testing.assert_allclose(
        inner, seq.estimate(problem.scaled(at))[(estimate > lower) & (estimate < upper)]
    )


def test_rates_of_successes_have_estimates():
    problem = kb.Problem(
        ["force=1:9"], "rate=0:1", successes="k", tries="n", kernel="RBF(0.5)", norm_bound=1.0,
        limits="0:1",
    )  # fmt: skip
    seq = problem.sequence()
    seq.update(
        problem.scaled([[2], [5], [8]]), *problem.scaled_outcomes([[2, 20], [9, 20], [19, 20]])
    )
    estimate, lower, upper = problem.estimate_with_bounds(seq, [[2], [5], [8]])
    np.testing.assert_allclose(estimate, [0.1, 0.45, 0.95], atol=0.1)
    assert np.all((lower <= estimate) & (estimate <= upper))
