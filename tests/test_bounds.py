"""One contract for all bounds, and each formula against its direct computation."""

from __future__ import annotations

import numpy as np
import pytest
from problems import BOUNDS, KERNELS, sequence, truth
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb
from kernelbounds.bounds import dmm

NOISELESS = {"CMM": kb.CMM(), "DMM": kb.DMM(), "AMM": kb.AMM(), "AMM at 0.01": kb.AMM(0.01)}


@pytest.fixture(params=BOUNDS)
def bound(request):
    return BOUNDS[request.param]


@pytest.mark.parametrize("name", KERNELS)
def test_contract(bound, name):
    kernel = KERNELS[name]
    rng = np.random.default_rng(3)
    seq, function = sequence(kernel, rng, 30, bound=bound)
    X = rng.random((11, 2))
    before = X.copy()
    lower, upper = seq.bounds(X)
    trivial = 5.0 * np.sqrt(kernel.diag(X)) * (1 + 1e-14)  # bounds are rounded up
    assert lower.shape == upper.shape == (11,)
    assert np.all(np.isfinite(lower) & np.isfinite(upper))
    assert np.all(lower < upper)
    assert np.all(-trivial <= lower) and np.all(upper <= trivial)
    assert np.all(lower <= function(X)) and np.all(function(X) <= upper)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(seq.upper(X), upper, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(seq.lower(X), lower, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(seq.bounds(X)[1], upper)


def test_negated_outcomes_swap_the_sides(bound):
    rng = np.random.default_rng(0)
    seq, _ = sequence(Matern(0.5, nu=2.5), rng, 20, bound=bound)
    mirrored = kb.ConfidenceSequence(seq.kernel, 5.0, 0.1, bound=bound)
    mirrored.update(seq.points, -seq.outcomes)
    X = rng.random((6, 2))
    lower, upper = seq.bounds(X)
    np.testing.assert_allclose(mirrored.bounds(X)[0], -upper, atol=1e-7)
    np.testing.assert_allclose(mirrored.bounds(X)[1], -lower, atol=1e-7)


def test_a_point_does_not_depend_on_its_company(bound):
    rng = np.random.default_rng(0)
    seq, _ = sequence(Matern(0.5, nu=2.5), rng, 200, bound=bound)
    X = np.vstack([rng.random((5, 2)), seq.points[:3], [[30.0, -40.0]]])
    together = np.array(seq.bounds(X))
    apart = np.concatenate([seq.bounds(x[None]) for x in X], axis=1)
    np.testing.assert_allclose(together, apart, rtol=1e-7, atol=1e-7)


def test_more_points_than_fit_at_once(bound):
    rng = np.random.default_rng(0)
    seq, _ = sequence(Matern(0.5, nu=2.5), rng, 5, bound=bound)
    X = rng.random((2500, 2))
    np.testing.assert_allclose(seq.upper(X)[2048:], seq.upper(X[2048:]), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("t", [1, 10, 60, 300])
def test_formulas(t):
    rng = np.random.default_rng(t)
    kernel = Matern(0.3, nu=1.5)
    B, sigma, delta, c = 5.0, 0.1, 0.05, 0.6
    seq, _ = sequence(kernel, rng, t, B, sigma, delta=delta, mixture_scale=c)
    X, K, y = rng.random((7, 2)), kernel(seq.points), seq.outcomes
    k = kernel(seq.points, X)
    log = np.log(1 / delta)

    def at(a):
        inverse = np.linalg.inv(K + a * np.eye(t))
        mean = k.T @ inverse @ y
        deviation = np.sqrt(1 - np.einsum("ij,ij->j", k, inverse @ k))
        log_det = np.linalg.slogdet(np.eye(t) + K / a)[1]
        return mean, deviation, a * y @ inverse @ y, log_det

    def amm(a):
        mean, deviation, energy, _ = at(a)
        return mean, np.sqrt((R2 + a * B**2 - energy) / a) * deviation

    reference = sigma**2 / c
    _, _, energy, log_det = at(reference)
    R2 = energy + sigma**2 * log_det + 2 * sigma**2 * log
    np.testing.assert_allclose(seq.radius, np.sqrt(R2), rtol=1e-9)
    np.testing.assert_allclose(
        seq.ridge_radius(0.3), np.sqrt(R2 + 0.3 * B**2 - at(0.3)[2]), rtol=1e-9
    )
    # Lemma (special_rad_bound): at sigma^2/c the energies cancel.
    special = sigma**2 * log_det + reference * B**2 + 2 * sigma**2 * log
    np.testing.assert_allclose(seq.ridge_radius(), np.sqrt(special), rtol=1e-9)

    grid = [amm(f * reference) for f in (0.1, 0.3, 1.0, 3.0, 10.0)]
    mean, deviation, _, ld = at(0.2)
    ay = mean, (sigma * np.sqrt((ld + 2 * log) / 0.2) + B) * deviation
    mean, deviation, _, ld = at(1.05)
    igp = mean, (sigma * np.sqrt(ld + t * 0.05 + 2 * log) + B) * deviation
    expected = {
        kb.AMM(): [amm(reference)],
        kb.AMM(0.3): [amm(0.3)],
        kb.DMM(): grid,
        kb.DMM(ridges=[0.1, 1.0]): [amm(0.1), amm(1.0)],
        kb.AY(0.2): [ay],
        kb.IGP(0.05): [igp],
    }
    for bound, parts in expected.items():
        upper = np.minimum(np.min([m + w for m, w in parts], axis=0), B)
        lower = np.maximum(np.max([m - w for m, w in parts], axis=0), -B)
        got_lower, got_upper = seq.bounds(X, bound)
        np.testing.assert_allclose(got_upper, upper, rtol=1e-6, err_msg=str(bound))
        np.testing.assert_allclose(got_lower, lower, rtol=1e-6, err_msg=str(bound))


@pytest.mark.parametrize(("norm", "spread"), [(4.0, 1.0), (1.0, 0.02)])
@pytest.mark.parametrize("name", ["rbf", "matern 3/2", "scaled sum"])
def test_dmm_leaves_out_small_ridges_only_where_they_do_not_matter(name, norm, spread, monkeypatch):
    rng = np.random.default_rng(1)
    function = truth(KERNELS[name], rng, norm)
    grid = tuple(10.0 ** np.arange(-5, 3, 0.5))
    seq = kb.ConfidenceSequence(KERNELS[name], 5.0, 0.1, bound=kb.DMM(grid))
    rises, decide = [], dmm._rises_towards_last
    monkeypatch.setattr(
        dmm, "_rises_towards_last", lambda found: rises.append(decide(found)) or rises[-1]
    )
    for _ in range(12):
        X = 0.5 + spread * (rng.random((25, 2)) - 0.5)
        seq.update(X, function(X) + 0.1 * rng.standard_normal(25))
        points = np.concatenate([rng.random((30, 2)), X[:10]])
        single = np.array([seq.bounds(points, kb.AMM(ridge)) for ridge in grid])
        lower, upper = seq.bounds(points)
        np.testing.assert_allclose(upper, single[:, 1].min(axis=0), rtol=0, atol=2e-6)
        np.testing.assert_allclose(lower, single[:, 0].max(axis=0), rtol=0, atol=2e-6)
    assert len(rises) == 12  # some were left out each time, at first
    assert not any(rises) if spread < 1 else any(rises)


@pytest.mark.parametrize("name", NOISELESS)
@pytest.mark.parametrize("t", [1, 12, 40])
def test_noiseless(name, t):
    """mu_0 +- sqrt(B^2 - y'K^-1 y) rho_0 in the limit of CMM; all contain the truth."""
    rng = np.random.default_rng(t)
    kernel = Matern(0.5, nu=1.5)
    seq, function = sequence(kernel, rng, t, noise_scale=0.0)
    X = rng.random((9, 2))
    assert seq.radius == 0
    lower, upper = seq.bounds(X, NOISELESS[name])
    assert np.all(lower - 1e-9 <= function(X)) and np.all(function(X) <= upper + 1e-9)
    inverse = np.linalg.inv(kernel(seq.points))
    k = kernel(seq.points, X)
    mean = k.T @ inverse @ seq.outcomes
    deviation = np.sqrt(1 - np.einsum("ij,ij->j", k, inverse @ k))
    width = np.sqrt(25.0 - seq.outcomes @ inverse @ seq.outcomes) * deviation
    assert np.all(upper >= np.minimum(mean + width, 5.0) - 1e-7)
    if name in ("CMM", "AMM"):
        np.testing.assert_allclose(upper, np.minimum(mean + width, 5.0), atol=1e-4)
        np.testing.assert_allclose(lower, np.maximum(mean - width, -5.0), atol=1e-4)
    at_data = np.array(seq.bounds(seq.points, NOISELESS[name]))
    assert np.all(at_data[0] - 1e-9 <= seq.outcomes)
    assert np.all(seq.outcomes <= at_data[1] + 1e-9)
    if name == "CMM":
        assert np.ptp(at_data, axis=0).max() < 1e-4


@pytest.mark.parametrize("t", [129, 260, 420])
def test_cmm_on_a_truncated_path_equals_cmm_on_all_of_it(t):
    """Clustered data, where the truncation is strong; far queries and the data themselves too."""
    from kernelbounds.bounds.cmm import minimise_dual

    rng = np.random.default_rng(t)
    kernel = Matern(0.5, nu=2.5)
    seq = kb.ConfidenceSequence(kernel, 10.0, 0.1, mixture_scale=0.15)
    X = 0.5 + 0.2 * rng.standard_normal((t, 2))
    for part in np.split(X, [50, 128]):
        seq.update(part, np.cos(4 * part[:, 0]) + 0.1 * rng.standard_normal(len(part)))
        seq.upper(X[:2])
    Q = np.vstack([rng.random((20, 2)), X[:5], [[3.0, 3.0]]])
    exact = minimise_dual(seq.known, Q, np.array([1.0, -1.0]), 0.0).values
    lower, upper = seq.bounds(Q)
    width = exact.sum(axis=0)
    assert np.all(np.abs(upper - exact[0]) < 1e-6 * width)
    assert np.all(np.abs(lower + exact[1]) < 1e-6 * width)
