"""Gradients, ceilings over boxes and certificates with the sparse engine."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct
from test_sparse import BOUNDS, BOX, KERNELS, data, pair
from test_sparse_growth import small_chunks
from test_sparse_precision import CASES

import kernelbounds as kb
from kernelbounds.surface import Surface

__all__ = ["small_chunks"]  # a fixture

mp.mp.dps = 50
ENGINES = {"grown": kb.Sparse(), "coarse": kb.Sparse(tolerance=0.5), "given": BOX.filling(25)}


def sequences(name, engine, count=90, **settings):
    kernel = KERNELS[name]
    function, X, y, points = data(count, count, kernel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelbounds.sequence.sparse.COSTLY_INFLATION", np.inf)
        sparse, exact = pair(kernel, X, y, ENGINES[engine], **settings)
    return function, sparse, exact, points


def surfaces(sequence, reference):
    for bound in BOUNDS:
        for sign in (1, -1):
            for at in (None, reference):
                yield Surface(sequence.known, bound, sign, at)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["RBF", "Matern", "sum", "on inputs"])
def test_gradients_are_difference_quotients(name, engine, small_chunks):
    _, sparse, _, points = sequences(name, engine)
    step = 1e-5 * np.eye(2)
    for surface in surfaces(sparse, np.array([0.3, 0.6])):
        values, gradients = surface.values_and_gradients(points)
        np.testing.assert_allclose(values, surface.values(points), atol=1e-9)
        right = np.array([surface.values(points + h) - values for h in step]).T / 1e-5
        left = np.array([values - surface.values(points - h) for h in step]).T / 1e-5
        size = np.abs(right).max()
        # Where DMM goes on with another of its ridges there is a kink.
        smooth = np.abs(right - left).max(axis=1) < 1e-2 * size
        assert smooth.sum() >= len(points) - 1
        np.testing.assert_allclose(gradients[smooth], (right + left)[smooth] / 2, atol=2e-4 * size)


@pytest.mark.parametrize("width", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KERNELS)
def test_ceilings_are_above_the_bounds_in_the_box_also_exact_ones(
    name, engine, width, small_chunks
):
    _, sparse, exact, points = sequences(name, engine)
    rng = np.random.default_rng(0)
    inside = points[:, None] + width * rng.uniform(-1, 1, (len(points), 12, 2))
    inside[:, :4] = points[:, None] + width * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    half = np.full(points.shape, width)
    reference = np.array([0.3, 0.6])
    size = float(exact.known.trivial(points).max())
    of_exact = surfaces(exact, reference)
    for surface, other in zip(surfaces(sparse, reference), of_exact, strict=True):
        values, ceilings = surface.ceilings(points, half)
        for one in (surface, other):
            most = one.values(inside.reshape(-1, 2)).reshape(len(points), 12).max(axis=1)
            assert np.all(ceilings >= most - 1e-9 * size)
        if not width:
            np.testing.assert_allclose(ceilings, values, atol=3e-6 * size)


def test_ceilings_converge_at_second_order():
    _, sparse, _, points = sequences("RBF", "grown", 150)
    surface = Surface(sparse.known, kb.CMM(), 1)
    gaps = []
    for width in (0.02, 0.01):
        half = np.full(points.shape, width)
        gradients = np.abs(surface.values_and_gradients(points)[1])
        values, ceilings = surface.ceilings(points, half)
        gaps.append((ceilings - values - width * gradients.sum(axis=1)).mean())
    assert gaps[0] / gaps[1] == pytest.approx(4.0, rel=0.35)


@pytest.mark.parametrize("name", ["usual", "long", "close", "Matern", "rough"])
def test_the_dual_is_above_its_value_in_fifty_digits(name):
    kernel, make = CASES[name]
    rng = np.random.default_rng(1)
    X, points = make(rng, 20), make(rng, 4)
    y = 100 * rng.standard_normal(20)
    sequence = kb.ConfidenceSequence(kernel, 1e4, 1.0, engine=kb.Sparse(make(rng, 9)))
    sequence.update(X, y)
    engine = sequence.known.radius_engine
    dual = engine.dual(points)
    ridges, scales = np.array([1e-3, 1.0, 50.0, 3.0]), np.array([1e-6, 1e-4, -1e-3, 1e-2])
    found = dual.at(ridges, scales, np.zeros(4))
    features = [engine.data.dictionary.features(one)[0] for one in (X, points)]
    phi, asked = (mp.matrix((dual.factors[:, None] * one).tolist()) for one in features)
    for at in range(4):
        column = asked[:, at]
        ridge = mp.mpf(float(ridges[at])) + mp.mpf(float(dual.floor))
        p = phi.T * column - mp.mpf(float(scales[at])) * mp.matrix(y.tolist())
        gram = phi.T * phi + ridge * mp.eye(20)
        prior = (column.T * column)[0] + mp.mpf(float(dual.enlarging * dual.residuals[at]))
        right = prior - (p.T * mp.lu_solve(gram, p))[0]
        assert found.unexplained[at] >= right
        size = prior + (p.T * p)[0] / ridge
        assert found.unexplained[at] <= right + 1e-9 * size


@pytest.mark.parametrize("minimise", [False, True])
def test_certificates_over_boxes_are_true_and_nearly_as_tight_as_exact_ones(minimise):
    function, sparse, exact, _ = sequences("Matern", "grown", 200)
    sign = -1 if minimise else 1
    best = (sign * function(BOX.filling(4096))).max()
    regrets = []
    for sequence in (sparse, exact):
        policy = kb.KernelUCB(sequence, BOX, minimise=minimise)
        found = policy.certificate(seconds=60)
        assert best - sign * function(found.x[None])[0] <= found.regret
        limit = found.max_upper if sign == 1 else -found.min_lower
        assert best <= limit
        regrets.append(found.regret)
    assert regrets[0] <= 1.1 * regrets[1]


@pytest.mark.parametrize("kind", [kb.KernelUCB, kb.KernelLUCB])
def test_policies_play_on_boxes_and_go_on_from_a_file(kind, tmp_path):
    kernel = RBF(0.4)
    function = data(0, 1, kernel)[0]
    sequence = kb.ConfidenceSequence(kernel, 3.1, 0.1, engine=kb.Sparse())
    policy = kind(sequence, BOX)
    noise = np.random.default_rng(0)

    def experiment(x):
        return float(function(x[None])[0] + 0.1 * noise.standard_normal())

    policy.run(experiment, 8)
    assert all(BOX.lower[0] <= one.x.min() <= one.x.max() <= 1 for one in policy.ask(n=3))
    policy.save(tmp_path / "policy.kb")
    loaded = kind.load(tmp_path / "policy.kb")
    np.testing.assert_allclose(loaded.ask().x, policy.ask().x, atol=1e-4)
    policy.run(experiment, 10)
    best = function(BOX.filling(1024)).max()
    found = policy.certificate()
    assert best - function(found.x[None])[0] <= found.regret < 3.0


def test_a_box_without_observations_and_points_before_it_is_known():
    for engine in (kb.Sparse(), kb.Sparse([[0.5, 0.5]])):
        sequence = kb.ConfidenceSequence(DotProduct(1.0), 1.0, 0.1, engine=engine)
        policy = kb.KernelUCB(sequence, BOX)
        assert policy.ask().x.shape == (2,)
        assert policy.certificate().regret > 0
