"""What is claimed of features and of K', against 50-digit arithmetic in hard cases."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from exact import Exact
from exact_kernels import exact
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import kernelbounds as kb
from kernelbounds.arrays import EPS
from kernelbounds.engine import Growth, Outcomes, SparseEngine
from kernelbounds.engine.ridge_path import dot_error
from kernelbounds.engine.sparse import Block, Dictionary, SparseObservations, Statistics

mp.mp.dps = 50


def close_points(rng, count):
    """Some that are repeated but for the last digits, and some far away."""
    points = rng.random((count, 2))
    points[1::3] = points[::3][: len(points[1::3])] + 1e-9 * rng.standard_normal(2)
    points[-1] = 3.0
    return points


CASES = {
    "usual": (RBF(0.4), lambda rng, n: rng.random((n, 2))),
    "long": (RBF(30.0), lambda rng, n: rng.random((n, 2))),
    "close": (RBF(0.5), close_points),
    "long and close": (RBF(8.0), close_points),
    "Matern": (Matern(0.5, nu=2.5), close_points),
    "long Matern": (Matern(50.0, nu=1.5), close_points),
    "rough": (Matern(0.3, nu=0.5), close_points),
}


def matrix(kernel, left, right):
    return mp.matrix([[exact(kernel, x, z) for z in right] for x in left])


def least_eigenvalue(symmetric):
    return min(mp.eigsy(symmetric, eigvals_only=True))


@pytest.mark.parametrize("name", CASES)
def test_features_are_as_precise_as_claimed(name):
    kernel, points = CASES[name]
    rng = np.random.default_rng(0)
    inducing, asked = points(rng, 14), np.concatenate([points(rng, 4), rng.random((2, 2))])
    dictionary = Dictionary.of(kernel, inducing, EPS)
    phi, rest, prior = dictionary.features(asked)
    factor = mp.matrix(dictionary.factor.tolist())
    assert least_eigenvalue(factor * factor.T - matrix(kernel, inducing, inducing)) >= 0
    for at, x in enumerate(asked):
        right = mp.lu_solve(factor, matrix(kernel, inducing, [x]))
        error = mp.fsum((mp.mpf(float(a)) - b) ** 2 for a, b in zip(phi[:, at], right))
        size = exact(kernel, x, x)
        assert error <= dictionary.error * size
        assert prior[at] == pytest.approx(float(size), rel=1e-14)
        assert size - mp.fsum(b**2 for b in right) <= mp.mpf(float(rest[at]))


def matrix_of_engine(engine, x):
    """K' of the observations and of a query x, as the engine computes with it, in 50 digits."""
    query, path = engine.query(x[None]), engine.path()
    basis, count = engine._basis, engine.data.statistics.count
    assert len(engine.data.newest.rows) == count  # none of them is gone
    phi = np.column_stack(
        [engine.data.newest.rows.phi, engine.data.dictionary.features(x[None])[0]]
    )
    seen = basis.coordinates(phi)
    # Observations in the basis see the directions that are kept, and others see all.
    kept = mp.matrix((seen.along / np.sqrt(basis.values)[:, None]).tolist())
    stretched = mp.matrix(basis.products(seen, seen, lambda a, b: a.T @ b).tolist())
    larger = kept.T * kept
    larger[basis.count :, basis.count :] = stretched[basis.count :, basis.count :]
    for i in range(count):
        larger[i, i] += mp.mpf(path.eigen.floor)
    larger[count, count] = mp.mpf(float(query.prior[0]))
    return larger


@pytest.mark.parametrize(("grown", "border"), [(False, 0), (False, 4), (True, 4)])
@pytest.mark.parametrize("name", CASES)
def test_the_larger_matrix_is_larger(name, grown, border):
    """K' of data and a query less K is positive semi-definite, with weights from 1e-3 to 1e3."""
    kernel, points = CASES[name]
    rng = np.random.default_rng(1)
    X, w = points(rng, 13), 10 ** rng.uniform(-3, 3, 13)
    inducing = None if grown else np.concatenate([points(rng, 6), X[:3]])
    growth = Growth(0.01, 8) if grown else Growth(0.0, 0)
    engine = SparseEngine(SparseObservations(kernel, inducing, 0.3, 1e-4, growth=growth))
    y = rng.standard_normal(13)
    for rows in (slice(13 - border), slice(13 - border, 13)):
        engine.append(X[rows], Outcomes(y[rows], y[rows], w[rows]))
        engine.path()
    for x in (rng.random(2), X[0], X[0] + 1e-7, inducing[0] if inducing is not None else X[1]):
        larger, places = matrix_of_engine(engine, x), [*X, x]
        weights, size = [mp.mpf(one) for one in [*w, 1.0]], len(places)
        difference = mp.matrix(size, size)
        for i in range(size):
            for j in range(size):
                true = weights[i] * weights[j] * exact(kernel, places[i], places[j])
                difference[i, j] = larger[i, j] - true
        # In units of each row, so that small weights are seen beside large ones.
        unit = [1 / mp.sqrt(max(difference[i, i], mp.mpf("1e-60"))) for i in range(size)]
        for i in range(size):
            for j in range(size):
                difference[i, j] *= unit[i] * unit[j]
        assert least_eigenvalue(difference) >= -mp.mpf("1e-20")


@pytest.mark.parametrize("ratio", [30, 50, 400])
def test_directions_that_are_left_out_and_residuals_may_be_seen_together(ratio):
    """One observation sees a direction that is left out of the basis, and one of no inducing point.

    Its value is the sum of both, so that it does not do to bound the two on their own.
    """
    p, q = np.sqrt(3e-11), np.sqrt(3e-11 * ratio)
    X, angles = np.array([[1, 0, 0], [0, p, q]]), np.linspace(0, np.pi / 2, 60)
    asked = np.stack([0 * angles, np.cos(angles), np.sin(angles)], axis=1)
    for steep in np.geomspace(0.5, 60, 12):
        f = np.array([0, 1, steep * p / q])
        f /= np.linalg.norm(f)
        seq = kb.ConfidenceSequence(
            DotProduct(sigma_0=0.0), 1.0, 1e-8, engine=kb.Sparse(np.eye(3)[:2])
        )
        seq.update(X, X @ f)
        lower, upper = seq.bounds(asked)
        assert seq.known.radius_engine._basis.dropped > 0
        assert np.all((lower <= asked @ f) & (asked @ f <= upper))


@pytest.mark.parametrize("engine", [kb.Sparse(), kb.Sparse.filling([0, 0], [1, 1], 12)], ids=str)
@pytest.mark.parametrize("name", ["usual", "long", "close", "Matern"])
def test_never_tighter_than_fifty_digits(name, engine):
    kernel, points = CASES[name]
    rng = np.random.default_rng(2)
    X, asked = points(rng, 10), rng.random((3, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(10)
    sequence = kb.ConfidenceSequence(kernel, 1e4, 0.1, engine=engine)
    sequence.update(X, y)
    squared = mp.mpf(sequence.known.radius.squared)
    truth = Exact(kernel, X, y, 1e4, 0.1, 0.01, 1.0, radius_squared=squared)
    lower, upper = sequence.bounds(asked)
    for at, x in enumerate(asked):
        truth.at(x)
        for sign, found in ((1, upper[at]), (-1, -lower[at])):
            assert found >= float(min(truth.cmm(sign), 1e4)) - 1e-9 * 1e4


def test_sums_of_many_blocks_are_as_precise_as_those_of_one():
    """Numbers of one sign, whose rounding errors add up where they are not carried along."""
    rng = np.random.default_rng(0)
    total = plain = Statistics.none(2)
    exact, count = mp.matrix(2, 2), 0
    for _ in range(2000):
        phi = 0.1 * rng.random((2, 3))
        ones = np.ones(3)
        block = Block(np.zeros((3, 1)), phi, 0 * ones, (phi**2).sum(axis=0), 0.1 * ones, ones)
        added = Statistics.of(block)
        total, plain, count = total.carrying(added), plain + added, count + 3
        exact += mp.matrix(phi.tolist()) * mp.matrix(phi.tolist()).T
    assert total.count == plain.count == count and total.terms == 3
    error = [
        max(abs(mp.mpf(one.moments[i, j]) - exact[i, j]) for i in range(2) for j in range(2))
        for one in (total, plain)
    ]
    assert error[0] < dot_error(total.terms) * total.trace / 4
    assert error[1] > 10 * error[0]  # or else there is no need for it
