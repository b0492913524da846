"""Cases that once went wrong, or nearly."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from exact_kernels import exact as exact_value
from problems import BOUNDS, truth
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
)

import kernelbounds as kb


@pytest.mark.parametrize("t", [100, 500, 900])
@pytest.mark.parametrize("noise_scale", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("kernel", [DotProduct(1.0), ConstantKernel(2.0), RBF(0.5)], ids=str)
def test_one_point_many_times(kernel, noise_scale, t):
    """Sums of equal terms have rounding errors of one sign; the truth must stay inside."""
    x = np.array([[0.6, 0.3]])
    seq = kb.ConfidenceSequence(kernel, 1.0, noise_scale)
    seq.update(np.repeat(x, t, axis=0), np.full(t, 0.5))
    for queries in (x, np.repeat(x, 2, axis=0), np.repeat(x, 50, axis=0)):
        for bound in (kb.CMM(), kb.DMM(), kb.AMM()):
            lower, upper = seq.bounds(queries, bound)
            assert np.all(lower <= 0.5), bound
            assert np.all(upper >= 0.5), bound


@pytest.mark.parametrize("seed", range(6))
def test_three_places_many_times(seed):
    rng = np.random.default_rng(seed)
    places = rng.random((3, 2))
    which = rng.integers(3, size=600)
    function = kb.RKHSFunction(ConstantKernel(1.7), places, [0.2, 0.1, 0.1])
    seq = kb.ConfidenceSequence(ConstantKernel(1.7), 1.0, 1e-3)
    seq.update(places[which], function(places[which]))
    lower, upper = seq.bounds(places)
    assert np.all(lower <= function(places))
    assert np.all(function(places) <= upper)


def _grid_minimum(seq, X):
    grid = np.geomspace(1e-9, 1e16, 1500) * np.trace(seq.kernel(seq.points)) / len(seq)
    return np.array(seq.bounds(X, kb.DMM(ridges=grid)))


@pytest.mark.parametrize("seed", range(12))
def test_cmm_is_never_looser_than_dmm_on_a_dense_grid(seed):
    """Noise larger than believed, odd mixture scales, small norm bounds: minimisers anywhere."""
    rng = np.random.default_rng(seed)
    kernel = [DotProduct(0.4), Matern(0.3, nu=1.5), RBF(0.7), 1e-6 * Matern(0.5, nu=2.5)][seed % 4]
    t = int(rng.choice([3, 9, 38, 140, 335]))
    noise_scale, c = 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-2, 2)
    scale = np.sqrt(kernel.diag(np.ones((1, 2)))[0])
    norm = 10 ** rng.uniform(-2, 2) / scale
    function = truth(kernel, rng, 0.5 * norm, centres=6)
    seq = kb.ConfidenceSequence(kernel, norm, noise_scale, mixture_scale=c)
    X = rng.random((t, 2))
    y = function(X) + 3 * noise_scale * rng.standard_normal(t)
    for part in np.array_split(np.arange(t), 5 if t > 20 else 1):
        seq.update(X[part], y[part])
    if seq.norm_lower_bound > norm:
        pytest.skip("refuted")
    Q = np.vstack([rng.random((6, 2)), X[:2], [[8.0, -9.0]]])
    ours, grid = np.array(seq.bounds(Q)), _grid_minimum(seq, Q)
    trivial = norm * np.sqrt(kernel.diag(Q))
    assert np.all(ours[1] <= grid[1] + 1e-5 * trivial)
    assert np.all(ours[0] >= grid[0] - 1e-5 * trivial)


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_a_kernel_matrix_of_zeros(bound):
    for y in (0.0, 0.1):
        seq = kb.ConfidenceSequence(DotProduct(0.0), 2.0, 0.1, bound=bound)
        seq.update(np.zeros((5, 2)), np.full(5, y))
        lower, upper = seq.bounds(np.ones((1, 2)))
        np.testing.assert_allclose([lower[0], upper[0]], [-(8**0.5), 8**0.5])
        assert seq.norm_lower_bound == 0


def test_zeros_that_are_not_observed_as_such():
    seq = kb.ConfidenceSequence(DotProduct(0.0), 2.0, 0.0)
    seq.update(np.zeros((5, 2)), np.ones(5))
    with pytest.raises(kb.EmptyConfidenceSetError):
        seq.bounds(np.ones((1, 2)))


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("size", [1e-90, 1e-50, 1e50, 1e90])
def test_very_large_and_small_outcomes(bound, size):
    rng = np.random.default_rng(0)
    X, y, Q = rng.random((20, 2)), rng.standard_normal(20), rng.random((4, 2))
    seq = kb.ConfidenceSequence(RBF(0.5), 5 * size, 1.5 * size, bound=bound)
    seq.update(X, y * size)
    lower, upper = seq.bounds(Q)
    assert np.all(np.isfinite(lower) & np.isfinite(upper))
    assert np.all(lower < upper)


@pytest.mark.parametrize(
    "kernel",
    [
        *(Matern(1e-40, nu=nu) for nu in (0.3, 0.5, 1.5, 2.5, 8.5, 20.2)),
        RBF(1e-40),
        RBF((1e-40, 1e90)),
        RationalQuadratic(1e-40, 1e-50),
        DotProduct(),
    ],
    ids=str,
)
def test_points_beyond_the_number_range_are_refused(kernel):
    seq = kb.ConfidenceSequence(kernel, 1.0, 0.1)
    try:
        seq.update([[1e100, 0.0], [0.0, -1e100]], [0.0, 0.1])
    except kb.InputError:
        assert len(seq) == 0
    else:
        assert np.all(np.isfinite(seq.bounds([[0.5, 0.5]])))


def test_noise_whose_square_vanishes_is_refused():
    with pytest.raises(kb.InputError, match="noise_scale must be 0 or at least"):
        kb.ConfidenceSequence(RBF(), 1.0, 1e-170)


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_a_point_does_not_depend_on_its_company(seed):
    """Neighbours at tiny distances: the smallest ridge is the best, and must be found."""
    rng = np.random.default_rng(seed)
    kernel, X = RBF(0.5), rng.random((4, 2))
    X = np.vstack([X, X + 2e-8 * rng.standard_normal(X.shape)])
    function = truth(kernel, rng, 1.0)
    seq = kb.ConfidenceSequence(kernel, 100.0, 0.0)
    seq.update(X, function(X))
    Q = np.vstack([rng.random((100, 2)), X[:4] + 1e-4])
    together = np.array(seq.bounds(Q))
    alone = np.array([seq.bounds(x[None]) for x in Q])[:, :, 0].T
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)


def test_far_from_few_data_cmm_is_the_bound_without_data():
    """Minimisers at infinity, among others that are not."""
    rng = np.random.default_rng(0)
    kernel, X = RBF(0.1), rng.random((3, 2))
    seq = kb.ConfidenceSequence(kernel, 10.0, 1.0)
    seq.update(X, [0.5, -0.5, 1.0])
    for crowd in (1, 100):
        Q = np.vstack([np.full((crowd, 2), 9.0), X, rng.random((crowd, 2))])
        unclipped = kb.CMM().extremes(seq.known, Q, (1, -1))
        np.testing.assert_allclose(unclipped[:, :crowd], 10.0, rtol=1e-8)
        assert np.all(unclipped <= 10.0 * (1 + 1e-8))
        assert np.all(unclipped[:, crowd : crowd + 3] < 8.0)


@pytest.mark.parametrize("t", [70, 150])
@pytest.mark.parametrize("norm_bound", [0.0, 1e-30])
def test_a_norm_bound_so_small_that_no_eigenvector_is_kept(norm_bound, t):
    rng = np.random.default_rng(0)
    seq = kb.ConfidenceSequence(RBF(0.5), norm_bound, 0.1)
    for x in np.split(rng.random((t, 2)), 10):
        seq.update(x, np.zeros(len(x)))
        for Q in (rng.random((2, 2)), rng.random((100, 2))):
            lower, upper = seq.bounds(Q)
            np.testing.assert_allclose(upper, norm_bound, rtol=1e-6)
            np.testing.assert_allclose(lower, -norm_bound, rtol=1e-6)


@pytest.mark.parametrize("within", [1e5, 1e7, 1e9])
def test_a_level_far_beyond_the_data_refutes_nothing(within):
    """Beside a level of 1e5, most of the kernel matrix is below its rounding errors."""
    kernel, rng = Matern(1.0, nu=2.5), np.random.default_rng(1)
    X = rng.uniform(0, 3, (30, 1))
    y = truth(kernel, rng, 1.5, dim=1)(X) + 0.01 * rng.standard_normal(30)
    seq = kb.ConfidenceSequence(kernel, 2.0, 0.01, offset=kb.Offset(0, within=within))
    seq.update(X, y)
    assert 0 < seq.norm_lower_bound < 1  # relative to the bounds, which are right


def test_values_along_eigenvectors_below_rounding_errors_refute_nothing():
    points = np.linspace(0, 1, 12)[:, None]
    gram = mp.matrix([[exact_value(RBF(0.6), x, z) for x in points] for z in points])
    values, vectors = mp.eigsy(gram)
    for i in range(12):
        if values[i] < mp.mpf("2e-12") * values[11]:
            seq = kb.ConfidenceSequence(RBF(0.6), 1.0, 0.0)  # the function has norm 0.9
            seq.update(
                points, np.array([0.9 * mp.sqrt(values[i]) * v for v in vectors[:, i]], float)
            )
            assert seq.norm_lower_bound <= 0.9


def test_contradictions_beyond_a_kernel_of_low_rank_need_an_enormous_norm():
    """No straight line bends, and rounding errors leave no more than that to be said."""
    seq = kb.ConfidenceSequence(DotProduct(1.0), 5.0, 0.0)
    seq.update(np.linspace(0, 1, 9)[:, None], np.linspace(0, 1, 9) ** 2)
    assert 1e5 < seq.norm_lower_bound < np.inf
    with pytest.raises(kb.EmptyConfidenceSetError, match="norm_bound must be at least"):
        seq.bounds([[0.5]])


@pytest.mark.parametrize("engine", [None, kb.Sparse()])
def test_trivial_bounds_are_rounded_up(engine):
    """B sqrt(c) in 40 digits is at most what bounds are limited to, and nothing is added to 2.0."""
    rng = np.random.default_rng(0)
    for B, c in [*rng.uniform(0.1, 10.0, (200, 2)).tolist(), (3.0, 2.0), (0.1, 1.0)]:
        seq = kb.ConfidenceSequence(c * RBF(0.5), B, 0.1, engine=engine)
        seq.update([[50.0]], [0.0])  # far away
        lower, upper = seq.bounds([[0.0]])
        with mp.workdps(40):
            exact = mp.mpf(B) * mp.sqrt(mp.mpf(c))
            assert mp.mpf(float(upper[0])) >= exact
            assert mp.mpf(float(lower[0])) <= -exact
        assert upper[0] <= float(exact) * (1 + 1e-14)
    seq = kb.ConfidenceSequence(4.0 * RBF(0.5), 1.0, 0.1, engine=engine)
    assert seq.bounds([[0.0]])[1][0] == 2.0
