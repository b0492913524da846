"""Dictionaries that grow: valid whatever joins and when, predictable, certified, and on disk."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binom
from sklearn.gaussian_process.kernels import RBF, Matern
from tests.test_sparse import BOUNDS, BOX, KERNELS, data, looseness, pair

import kernelbounds as kb
from kernelbounds.engine import Growth, SparseEngine
from kernelbounds.engine.sparse import (
    SparseObservations,
    sparse_observations as blocks,
    statistics as residuals,
)

PARTS = kb.Parts([(RBF(0.4), 2.0), (Matern(0.3, nu=1.5), 1.0)])
TOLERANCES = [0.004, 0.1, 1.0]


@pytest.fixture
def small_chunks(monkeypatch):
    """So that points join after chunks are closed, which otherwise takes a thousand rows."""
    monkeypatch.setattr(residuals, "CHUNK_ROWS", 16)


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("name", KERNELS)
def test_never_tighter_than_exact(name, tolerance, small_chunks):
    _, X, y, points = data(1, 120, KERNELS[name])
    sparse, exact = pair(KERNELS[name], X, y, kb.Sparse(tolerance=tolerance))
    for bound in BOUNDS:
        assert looseness(sparse, exact, np.concatenate([points, X[:5]]), bound).min() > -1e-9


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(KERNELS)),
    st.integers(0, 10**6),
    st.integers(1, 90),
    st.sampled_from(TOLERANCES),
    st.integers(1, 60),
    st.booleans(),
    st.sampled_from([None, kb.mixtures.Single(1.0)]),
    st.integers(8, 40),
)
def test_never_tighter_on_random_problems(
    name, seed, count, tolerance, most, weighted, mixture, chunk
):
    """With weights over six orders of magnitude, repeats, and points that come in regions."""
    kernel, rng = KERNELS[name], np.random.default_rng(seed)
    function, X, _, points = data(seed, count, kernel)
    X = np.where(rng.random((count, 1)) < 0.3, X[0], X)
    X[: count // 2] *= 0.3
    noise = 0.1 * 10 ** rng.uniform(-3, 3, count) if weighted else np.full(count, 0.1)
    y = function(X) + noise * rng.standard_normal(count)
    engine = kb.Sparse(tolerance=tolerance, most=most)
    before = residuals.CHUNK_ROWS
    try:
        residuals.CHUNK_ROWS = chunk
        sparse, exact = pair(kernel, X, y, engine, noise if weighted else None, mixture=mixture)
        size = exact.known.trivial(points)
        (low, high), (least, most_) = sparse.bounds(points), exact.bounds(points)
    except kb.EmptyConfidenceSetError:
        return
    finally:
        residuals.CHUNK_ROWS = before
    assert np.min((high - most_) / size) > -1e-9 and np.min((least - low) / size) > -1e-9


@pytest.mark.slow
@pytest.mark.parametrize("engine", [kb.Sparse(), BOX.filling(300)], ids=["grown", "given"])
@pytest.mark.parametrize("name", ["RBF", "Matern", "rough"])
def test_never_tighter_than_exact_with_four_thousand_observations(name, engine):
    kernel = KERNELS[name]
    _, X, y, points = data(4, 4000, kernel)
    sparse, exact = pair(kernel, X, y, engine)
    asked = np.concatenate([points, X[:50], X[-50:]])
    for bound in BOUNDS:
        assert looseness(sparse, exact, asked, bound).min() > -1e-9


@pytest.mark.parametrize("name", ["RBF", "Matern"])
def test_in_pieces_or_at_once_the_same_points_join(name):
    _, X, y, points = data(5, 300, KERNELS[name])
    found = []
    for size in (1, 37, 300):
        sequence = kb.ConfidenceSequence(KERNELS[name], 3.1, 0.1, engine=kb.Sparse())
        for start in range(0, 300, size):
            sequence.update(X[start : start + size], y[start : start + size])
        found.append(sequence)
    for other in found[1:]:
        chosen = other.known.radius_engine.data.dictionary.inducing
        np.testing.assert_array_equal(chosen, found[0].known.radius_engine.data.dictionary.inducing)
        # Forecasts know later what earlier rows say of a point that joined.
        assert other.radius == pytest.approx(found[0].radius, rel=5e-3)
        np.testing.assert_allclose(other.bounds(points), found[0].bounds(points), atol=0.02)


@pytest.mark.parametrize("name", ["RBF", "Matern", "rough"])
def test_what_is_forecast_of_a_row_depends_on_no_later_row(name, monkeypatch):
    """A block of rows, and the same with others in place of its second half.

    Of the last of these none joins: a forecast does not know how many points will have joined.
    """
    monkeypatch.setattr(blocks, "SMALLEST_BLOCK", 64)
    _, X, y, _ = data(5, 64, KERNELS[name])
    _, others, outcomes, _ = data(6, 64, KERNELS[name])
    found = []
    for tail in ((X, y), (others, 50 * outcomes), (np.tile(X[0], (64, 1)), 50 * outcomes)):
        made = []
        growth = Growth(tolerance=0.01, most=60)
        sums = SparseObservations(KERNELS[name], None, 0.3, 1e-3, recorder(made), growth)
        engine = SparseEngine(sums)
        engine.append(np.concatenate([X[:32], tail[0][32:]]), np.append(y[:32], tail[1][32:]))
        assert len(made) == 1  # all in one block
        found.append((made[0], engine.data.dictionary.inducing))
    (first, points), *rest = found
    joined = len({tuple(one) for one in points} & {tuple(one) for one in X[:32]})
    assert len(rest[-1][1]) == joined < len(points)
    for second, other_points in rest:
        # Sums of other lengths have other rounding errors.
        np.testing.assert_allclose(first.errors[:32], second.errors[:32], rtol=0, atol=1e-14)
        np.testing.assert_allclose(first.variances[:32], second.variances[:32], rtol=0, atol=2e-15)
        assert not np.allclose(first.errors[32:], second.errors[32:])
        np.testing.assert_array_equal(points[:joined], other_points[:joined])


def test_forecasts_are_those_of_ridge_regression_on_all_rows_before():
    """With every row in the dictionary, what the chain rule gives is exact."""
    kernel = KERNELS["Matern"]
    _, X, y, _ = data(7, 60, kernel)
    made = []
    growth = Growth(1e-9, 10_000)
    engine = SparseEngine(SparseObservations(kernel, None, 0.3, 1e-3, recorder(made), growth))
    engine.append(X, y)
    # Row s of a Cholesky factor of K + ridge I is the forecast of y_s.
    factor = np.linalg.cholesky(kernel(X) + 0.3 * np.eye(60))
    pivots = factor.diagonal()
    errors, variances = (np.concatenate(part) for part in zip(*made))
    np.testing.assert_allclose(errors, np.abs(np.linalg.solve(factor, y) * pivots), atol=1e-6)
    np.testing.assert_allclose(variances, pivots**2 - 0.3, atol=1e-6)


def recorder(made):
    """Losses that keep the forecasts."""

    def losses(forecasts):
        made.append(forecasts)
        return np.zeros((len(forecasts.errors), 1))

    return losses


@pytest.mark.parametrize("mixture", [None, kb.mixtures.Single(1.0)])
def test_coverage_of_grown_dictionaries_when_points_follow_the_outcomes(mixture, small_chunks):
    """Over all times and with points chosen by the upper bound; delta = 0.2."""
    runs, missed, delta, kernel = 40, 0, 0.2, KERNELS["Matern"]
    for seed in range(runs):
        function, _, _, points = data(seed, 1, kernel)
        rng = np.random.default_rng(seed)
        engine = kb.Sparse(tolerance=0.3, most=25)
        sequence = kb.ConfidenceSequence(kernel, 3.0, 0.1, delta, mixture=mixture, engine=engine)
        truth, wrong = function(points), False
        for size in (1, 2, 4, 8, 16, 32):
            _, upper = sequence.bounds(points)
            X = points[rng.choice(np.argsort(-upper)[:2], size)]
            sequence.update(X, function(X) + 0.1 * rng.standard_normal(size))
            lower, upper = sequence.bounds(points)
            wrong |= bool(np.any((truth < lower) | (truth > upper)))
        missed += wrong
    # A method that fails with probability 0.2 has more misses than this once in a thousand times.
    assert missed <= binom.ppf(0.999, runs, delta)


@pytest.mark.parametrize("name", ["RBF", "Matern", "sum"])
@pytest.mark.parametrize(
    "engine", [kb.Sparse(), kb.Sparse(tolerance=0.2), kb.Sparse(BOX.filling(40))]
)
def test_inflation_is_at_least_what_it_is(name, engine, small_chunks):
    _, X, y, points = data(2, 200, KERNELS[name])
    sparse, exact = pair(KERNELS[name], X, y, engine)
    real = [np.subtract(*one.bounds(points)[::-1]) for one in (sparse, exact)]
    certified = sparse.inflation(points)
    assert np.all(certified >= real[0] / real[1] - 1e-6)
    assert np.array_equal(exact.inflation(points), np.ones(len(points)))
    if (
        name == "RBF" and not sparse.known.radius_engine.approximation().can_grow
    ):  # and not much more
        assert np.median(certified) < 1.05 * np.median(real[0] / real[1])


def test_it_grows_where_data_are_and_keeps_room():
    rng = np.random.default_rng(0)
    sequence = kb.ConfidenceSequence(RBF(0.3), 3.0, 0.1, engine=kb.Sparse(most=30))
    near = 0.3 * rng.random((400, 2))
    sequence.update(near, np.sin(near[:, 0]) + 0.1 * rng.standard_normal(400))
    before = sequence.approximation.inducing
    far = 0.7 + 0.3 * rng.random((50, 2))
    sequence.update(far, np.sin(far[:, 0]) + 0.1 * rng.standard_normal(50))
    assert before < sequence.approximation.inducing <= 30
    assert np.all(sequence.known.radius_engine.data.dictionary.inducing[before:] > 0.6)


def test_more_noise_scales_can_be_believed_without_the_forecasts():
    _, X, y, _ = data(4, 300, KERNELS["RBF"])
    sparse, exact = pair(KERNELS["RBF"], X, y, kb.Sparse())
    exact._known = dataclasses.replace(exact.known, own_radius=None)
    low, high = sparse.noise_lower_bound, exact.noise_lower_bound
    assert 0.6 * high < low < 1.05 * high
    margin = sparse.sensitivity(below=([0.5, 0.5], 3.0))
    assert margin.noise_scale > 0.1


@pytest.mark.parametrize("count", [0, 3, 40, 150])
@pytest.mark.parametrize(
    "kernel", [RBF(0.3), kb.Parts([(RBF(0.4), 2.0), (Matern(0.3, nu=1.5), 1.0)])]
)
def test_what_is_loaded_is_what_was_saved_and_goes_on(kernel, count, tmp_path, small_chunks):
    _, X, y, points = data(6, 200, RBF(0.3))
    norm = None if isinstance(kernel, kb.Parts) else 3.1
    saved = kb.ConfidenceSequence(
        kernel, norm, 0.1, offset=kb.Offset(0.1, within=0.2), engine=kb.Sparse(most=60)
    )
    if count:
        saved.update(X[:count], y[:count])
        saved.bounds(points)
    saved.save(tmp_path / "it.npz")
    loaded = kb.ConfidenceSequence.load(tmp_path / "it.npz")
    for sequence in (saved, loaded):
        sequence.update(X[count:], y[count:])
    assert np.array_equal(saved.bounds(points), loaded.bounds(points))
    assert saved.radius == loaded.radius and saved.approximation == loaded.approximation


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "it.npz"
    sequence = kb.ConfidenceSequence(RBF(0.3), 3.0, 0.1, engine=kb.Sparse())
    sequence.update([[0.1], [0.5]], [0.3, 0.2])
    sequence.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    for name in ("factor", "inducing", "rows.phi", "statistics.moments"):
        whole = arrays[f"sparse.{name}"]
        for wrong in (np.nan * whole, whole[:1], 1.25 * whole):
            if wrong.shape == whole.shape and name not in ("factor", "inducing"):
                wrong = np.nan * whole  # sums over data that are not there cannot be checked
            name_of_it = f"sparse.{name}"
            np.savez(path, **(arrays | {name_of_it: wrong}))
            with pytest.raises(kb.StoredFileError):
                kb.ConfidenceSequence.load(path)


def test_a_policy_saves_itself_and_goes_on(tmp_path):
    actions = BOX.filling(30)
    truth = np.sin(3 * actions[:, 0]) * actions[:, 1]
    made = []
    for rounds in ((12,), (5, 7)):
        sequence = kb.ConfidenceSequence(RBF(0.3), 5.0, 0.05, engine=kb.Sparse())
        policy, path = kb.KernelUCB(sequence, kb.Finite(actions)), tmp_path / "policy.npz"
        for count in rounds:
            policy.run(lambda x: float(np.sin(3 * x[0]) * x[1]), count, save_to=path)
            policy = kb.KernelUCB.load(path)
        made.append(policy.history)
    np.testing.assert_array_equal(made[0].upper, made[1].upper)
    assert len(made[0]) == 12 and truth.max() <= made[0].limit.min()


def test_costs_are_said_once_where_inducing_points_are_too_few():
    _, X, y, _ = data(0, 1200, KERNELS["rough"])
    few = kb.ConfidenceSequence(KERNELS["rough"], 3.1, 0.1, engine=kb.Sparse(BOX.filling(5)))
    with pytest.warns(UserWarning, match="inducing points") as caught:
        for start in range(0, 1200, 300):
            few.update(X[start : start + 300], y[start : start + 300])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smooth = kb.ConfidenceSequence(RBF(0.5), 3.1, 0.1, engine=kb.Sparse())
        smooth.update(X, y)


def test_the_dimension_is_that_of_the_first_points():
    sequence = kb.ConfidenceSequence(RBF(0.5), 3.0, 0.1, engine=kb.Sparse())
    assert sequence.dim is None
    lower, upper = sequence.bounds([[0.5, 0.5]])
    assert (lower[0], upper[0]) == (-3.0, 3.0)
    sequence.update([[0.1, 0.2]], [0.3])
    assert sequence.dim == 2
    with pytest.raises(kb.InputError, match="dimensions"):
        sequence.update([[0.1]], [0.3])


def test_memory_does_not_grow_with_observations():
    rng = np.random.default_rng(0)
    sequence = kb.ConfidenceSequence(RBF(0.4), 3.0, 0.1, engine=kb.Sparse())

    def size(thing):
        parts = [one for one in vars(thing).values() if not isinstance(one, type)]
        arrays = [one.nbytes for one in parts if isinstance(one, np.ndarray)]
        inner = [
            size(one)
            for one in parts
            if type(one).__module__.startswith("kernelbounds.engine.sparse")
        ]
        return sum(arrays) + sum(inner)

    sizes = []
    for _ in range(3):
        X = rng.random((6_000, 1))
        sequence.update(X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(len(X)))
        sizes.append(size(sequence.known.radius_engine))
    assert sizes[2] <= 1.2 * sizes[0]
    assert not len(sequence.known.forecasts().errors)


def test_the_constants_of_blocks_fit_together():
    assert blocks.LARGEST_BLOCK <= residuals.CHUNK_ROWS  # a chunk ends with a block
