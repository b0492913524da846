"""The engine against direct linear algebra, and appending against starting from scratch."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from problems import KERNELS
from sklearn.gaussian_process.kernels import RBF, Matern

from kernelbounds import kernels
from kernelbounds.engine import ExactEngine, ridge_fit
from kernelbounds.engine.eigenbasis import Eigenbasis, Krylov

RIDGES = np.array([0.01, 0.1, 1.0, 30.0])


def _data(kernel, t, seed=0, dim=2):
    rng = np.random.default_rng(seed)
    X = rng.random((t, dim))
    return X, np.sin(5 * X.sum(axis=1)) + 0.1 * rng.standard_normal(t), rng.random((9, dim))


def _direct(kernel, X, y, C, ridge):
    gram = kernel(X, X) + 0.0
    np.fill_diagonal(gram, kernel.diag(X))
    inverse = np.linalg.inv(gram + ridge * np.eye(len(X)))
    k = kernel(X, C)
    mean = k.T @ inverse @ y
    variance = kernel.diag(C) - np.einsum("ij,ij->j", k, inverse @ k)
    log_det = np.linalg.slogdet(np.eye(len(X)) + gram / ridge)[1]
    return mean, variance, ridge * y @ inverse @ y, log_det


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("t", [1, 2, 40, 150])
def test_four_quantities_equal_direct_linear_algebra(name, t):
    kernel = KERNELS[name]
    X, y, C = _data(kernel, t)
    engine = ExactEngine(kernel)
    engine.append(X, y)
    path = engine.predict(C, RIDGES)
    for i, ridge in enumerate(RIDGES):
        mean, variance, energy, log_det = _direct(kernel, X, y, C, ridge)
        single = engine.predict(C, RIDGES[i : i + 1])
        for got in (
            (path.mean[i], path.variance[i], path.energy[i]),
            (single.mean[0], single.variance[0], single.energy[0]),
        ):
            # The path at t = 150 is truncated: means differ by 3e-7, within the valid bound.
            np.testing.assert_allclose(got[0], mean, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(got[1], variance, rtol=2e-6, atol=1e-9)
            np.testing.assert_allclose(got[2], energy, rtol=1e-8)
        np.testing.assert_allclose(single.mean[0], mean, rtol=1e-9, atol=1e-10)
        energy_up, log_det_up = (
            engine.energy_above(float(ridge)),
            engine.log_det_above(float(ridge)),
        )
        assert energy * (1 - 1e-8) <= engine.energy_below(float(ridge)) <= energy * (1 + 1e-10)
        assert energy * (1 - 1e-10) <= energy_up <= energy * (1 + 1e-8)
        assert log_det * (1 - 1e-10) <= log_det_up <= log_det + 1e-7


@pytest.mark.parametrize("options", [{}, {"finest": 0.01}, {"finest_per_point": 1e-3}])
@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.5, nu=2.5)], ids=str)
def test_appending_equals_starting_from_scratch(kernel, options):
    """One by one, in uneven blocks, all at once: the same bits."""
    X, y, C = _data(kernel, 300)
    splits = {"singly": range(1, 300), "blocks": [7, 90, 128, 131, 200, 290], "at once": []}
    answers = []
    for split in splits.values():
        engine = ExactEngine(kernel)
        for i, (part, outcomes) in enumerate(zip(np.split(X, split), np.split(y, split))):
            engine.append(part, outcomes)
            if i % 3 == 0:  # asking in between must not matter
                engine.query(C, **options)
                engine.predict(C, RIDGES[:1])
        found = engine.query(C, **options).predict(RIDGES)
        single = engine.predict(C, RIDGES[1:2])
        answers.append(
            [part for one in (found, single) for part in (one.mean, one.variance, one.energy)]
        )
    for other in answers[1:]:
        for left, right in zip(answers[0], other):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(2.0), Matern(0.5, nu=2.5)], ids=str)
def test_truncated_path_is_slightly_looser_never_tighter(kernel):
    X, y, C = _data(kernel, 400)
    engine = ExactEngine(kernel)
    finest = 0.05
    for part, outcomes in zip(np.split(X, 8), np.split(y, 8)):
        engine.append(part, outcomes)
        engine.query(C, finest=finest)
    exact, cut = (
        engine.query(C).predict(RIDGES[1:]),
        engine.query(C, finest=finest).predict(RIDGES[1:]),
    )
    path = engine.path(finest=finest)
    assert path.eigen.flat
    assert len(path.eigen.z) < len(X)
    assert np.all(cut.variance >= exact.variance * (1 - 1e-8))
    np.testing.assert_allclose(cut.variance, exact.variance, rtol=1e-5)
    assert np.all(cut.energy <= exact.energy * (1 + 1e-9))
    np.testing.assert_allclose(cut.energy, exact.energy, rtol=1e-6)


@pytest.mark.parametrize("finest", [0.05, 1e-4])
@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(2.0), Matern(0.2, nu=1.5)], ids=str)
def test_bounds_without_the_newest_observations_are_above_those_with_them(kernel, finest):
    """mu + sqrt((radius - E) / alpha) rho at every ridge, for a radius above all energies."""
    X, y, C = _data(kernel, 300)
    engine = ExactEngine(kernel)
    gaps = []
    for size in range(60, 300, 3):
        engine.append(X[engine.data.count : size], y[engine.data.count : size])
        query = engine.query(C, finest=finest)
        ridges = finest * np.array([1.0, 4.0, 50.0, 1e3])
        found, radius = query.predict(ridges), 1.01 * float(y @ y)
        for sign in (1, -1):
            with_all, before = (
                sign * each.mean
                + np.sqrt(((radius - each.energy) / ridges)[:, None] * each.variance)
                for each in (found, query.predict_without_border(ridges))
            )
            gaps.append((before - with_all) / before.max())
    assert np.min(gaps) > -1e-10
    assert np.max(gaps) > 1e-3  # the newest observations do matter somewhere


@pytest.mark.parametrize("finest", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(2.0), Matern(2.0, nu=1.5)], ids=str)
def test_a_borders_own_columns_are_orthogonal_to_the_basis(kernel, finest):
    """To the last digits of what they are, however little that is of a kernel vector."""
    X, y, _ = _data(kernel, 97)
    engine = ExactEngine(kernel)
    engine.append(0.2 * X, y)
    path = engine.path(finest=finest)
    assert path.eigen.open and len(path.newest)
    sizes = np.linalg.norm(path.outside, axis=1)
    overlap = np.abs(path.outside @ path.eigen.basis).max(axis=1)
    assert np.all(overlap <= 1e-13 * sizes + 1e-20)


@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(2.0), Matern(0.5, nu=1.5)], ids=str)
def test_eigenbasis_bounds_the_kernel_matrix_from_above(kernel):
    X, y, _ = _data(kernel, 200)
    gram = kernel(X)
    basis = Eigenbasis.of(*np.linalg.eigh(gram[:160, :160]), y[:160], 1e-3)
    columns, size = gram[:160, 160:], 40
    w = columns.T @ basis.basis
    outside = columns.T - w @ basis.basis.T
    outside -= (outside @ basis.basis) @ basis.basis.T
    extended = basis.extended(w, outside, gram[160:, 160:], y[160:], 1e-3)
    for eigen, n in ((basis, 160), (extended, 160 + size)):
        q = eigen.basis
        above = (q * eigen.spectrum) @ q.T + eigen.floor * (np.eye(n) - q @ q.T)
        np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=1e-12)
        np.testing.assert_allclose(q @ eigen.z, y[:n], atol=1e-12)
        assert np.linalg.eigvalsh(above - gram[:n, :n])[0] > 0


def test_krylov_bounds_a_diagonal_matrix_from_above():
    rng = np.random.default_rng(0)
    values = np.sort(rng.random(30))
    start = rng.standard_normal(30)
    krylov = Krylov(values, start)
    v = krylov.vectors
    above = (v * krylov.values) @ v.T + krylov.floor * (np.eye(30) - v @ v.T)
    assert np.linalg.eigvalsh(above - np.diag(values))[0] > -1e-12
    np.testing.assert_allclose(v @ krylov.start, start, atol=1e-12)


@pytest.mark.parametrize("length_scale", [0.3, (0.3, 2.0)])
@pytest.mark.parametrize("family", [RBF, partial(Matern, nu=1.5), partial(Matern, nu=2.5)])
def test_own_kernels_equal_scikit_learns(family, length_scale):
    rng = np.random.default_rng(0)
    kernel = family(length_scale)
    X, Z = rng.random((20, 2)), rng.random((9, 2))
    np.testing.assert_allclose(kernels.cross(kernel, X, Z), kernel(X, Z), rtol=1e-14)
    assert np.all(np.diagonal(kernels.cross(kernel, X, X)) == 1)


def test_extending_a_basis_again_and_again_piles_up_no_vectors():
    """As many as a fresh decomposition keeps, give or take a few."""
    X, y, _ = _data(RBF(0.5), 500)
    engine = ExactEngine(RBF(0.5))
    engine.append(X, y)
    grown = engine.path(finest=0.1).eigen
    fresh = Eigenbasis.of(*np.linalg.eigh(engine.rows.gram), y, 0.1 / 512)
    assert grown.count > 480  # extended some fifteen times since 256
    assert len(grown.z) <= len(fresh.z) + 4


@pytest.mark.parametrize("decay", [0, 3, 9])
def test_krylov_keeps_the_energies_of_its_start(decay):
    """y'(D + alpha I)^-1 y to high order in floor / alpha, and never more than it."""
    rng = np.random.default_rng(decay)
    values, start = rng.random(40) ** decay, rng.standard_normal(40)
    krylov = Krylov(values, start)
    assert np.all(krylov.values <= krylov.floor * (1 + 1e-9))
    for ridge in (10.0, 100.0):
        exact = np.sum(start**2 / (values + ridge))
        bound = np.sum(krylov.start**2 / (krylov.values + ridge))
        assert exact * (1 - 1e-6 * (10 / ridge) ** 7 - 1e-14) <= bound <= exact * (1 + 1e-14)


def test_the_whole_kernel_matrix_from_its_lower_triangle():
    kernel = Matern(0.5, nu=2.5)
    X, y, _ = _data(kernel, 70)
    engine = ExactEngine(kernel)
    for part, outcomes in zip(np.split(X, [1, 5, 40]), np.split(y, [1, 5, 40])):
        engine.append(part, outcomes)
    np.testing.assert_allclose(engine.rows.gram, kernel(X), rtol=1e-14)
    np.testing.assert_array_equal(engine.rows.gram, engine.rows.gram.T)
    assert engine.data.trace == 70


def test_paths_to_different_ridges_share_a_decomposition(monkeypatch):
    X, sizes = np.random.default_rng(0).random((200, 2)), []
    engine = ExactEngine(RBF(0.3))
    engine.append(X, X[:, 0])
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: sizes.append(len(matrix)) or eigh(matrix))
    for finest in (1.0, 0.1, 0.01):
        engine.path(finest)
    assert sizes.count(128) == 1


def test_large_groups_do_not_depend_on_appends(monkeypatch):
    """From many observations on more of them join a factor together; the numbers are the same."""
    X, rng = np.random.default_rng(1).random((150, 2)), np.random.default_rng(2)
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(150)

    def fitted(parts):
        engine, found = ExactEngine(RBF(0.3)), None
        for part in np.split(np.arange(150), parts):
            engine.append(X[part], y[part])
            found = engine.predict(X[:20] + 0.01, np.array([0.5]))
        return found.mean, found.variance, engine.energy_above(0.5), engine.log_det_above(0.5)

    usual = fitted([])
    monkeypatch.setattr(ridge_fit, "MANY_ROWS", 64)
    monkeypatch.setattr(ridge_fit, "LARGE_GROUP_SIZE", 32)
    at_once = fitted([])
    for one, other, before in zip(fitted([5, 63, 70, 97, 128, 149]), at_once, usual, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, before, rtol=1e-9)


@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.3, nu=2.5)], ids=["open", "dense"])
def test_solving_at_many_ridges_equals_solving_at_each(kernel):
    rng = np.random.default_rng(0)
    engine = ExactEngine(kernel)
    engine.append(rng.random((150, 2)), rng.standard_normal(150))
    path = engine.path(finest=1e-3)
    assert len(path.newest) and path.eigen.open == (type(kernel) is RBF)
    vectors, ridges = rng.standard_normal((150, 60)), np.geomspace(0.01, 1.0, 60)
    together = path.solve(vectors, ridges)
    for column in range(60):
        alone = path.solve(vectors[:, [column]], ridges[[column]])[:, 0]
        assert np.abs(together[:, column] - alone).max() <= 1e-10 * np.abs(alone).max()
    # The path's matrix is above the kernel matrix, by a few floors at most.
    rest = vectors - engine.rows.gram @ together - ridges * together
    lengths = np.linalg.norm(rest, axis=0), np.linalg.norm(together, axis=0)
    assert np.all(lengths[0] <= path.eigen.finest / 100 * lengths[1])
