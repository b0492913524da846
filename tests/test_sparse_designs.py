"""Bounds for points that were fixed beforehand, with a sparse engine."""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np
import pytest
from exact import (
    Exact,
    Projected,
    estimated,
    folded_margin,
    random_data,
    sub_gaussian_margin,
)
from problems import too_many, truth
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern
from test_sparse_precision import CASES

import kernelbounds as kb
from kernelbounds.bounds.fixed_designs.linear_estimate import (
    estimated as estimated_bounds,
    half_widths,
    margins,
    shortest,
)
from kernelbounds.bounds.fixed_designs.projection import Projection

NOISES = {
    "sub-Gaussian": lambda bias: sub_gaussian_margin(bias, mp.mpf(0.01)),
    "Gaussian": lambda bias: folded_margin(bias, mp.mpf(0.01)),
}
KINDS = {
    "all x": kb.FixedDesign(),
    "one x": kb.FixedDesign(simultaneous=False),
    "one x, Gaussian": kb.FixedDesign(simultaneous=False, noise="Gaussian"),
}


def directions(seq):
    """V = Phi S U D^-1/2 of a short sequence, in 50 digits, from all that was computed."""
    engine = seq.known.radius_engine
    rows, basis = engine.data.newest.rows, engine.directions().basis
    assert len(rows) == len(seq)  # none of them is gone
    # of_features is D^1/2 U' S
    along = mp.matrix(basis.of_features.tolist()) * mp.matrix(rows.phi.tolist())
    return mp.diag([1 / mp.mpf(one) for one in basis.values.tolist()]) * along


class AsArray:
    """What the references take for the transpose of an array."""

    def __init__(self, rows):
        self.T, self._rows = self, rows

    def tolist(self):
        return self._rows.tolist()


@pytest.mark.parametrize("grown", [False, True], ids=["given", "grown"])
@pytest.mark.parametrize("name", CASES)
class TestFiftyDigits:
    """Along the directions as they were computed, with weights from 1e-2 to 1e2."""

    def made(self, name, grown):
        kernel, points = CASES[name]
        rng = np.random.default_rng(3)
        X, w = points(rng, 12), 10 ** rng.uniform(-2, 2, 12)
        values = random_data(kernel, rng, X, 20.0, 0.0)
        y = values + 0.1 / w * rng.standard_normal(12)
        inducing = None if grown else np.concatenate([points(rng, 6), X[:3]])
        engine = kb.Sparse(inducing, most=9, tolerance=0.01)
        seq = kb.ConfidenceSequence(kernel, 20.0, 0.1, engine=engine)
        seq.update(X, y, 0.1 / w)
        asked = np.vstack([rng.random((2, 2)), X[:1], X[:1] + 1e-7])
        return seq, Exact(kernel, X, y, 20.0, 0.1, 0.01, 1.0, noise_scales=0.1 / w), asked

    def test_orthonormal_as_far_as_is_said(self, name, grown):
        seq, _, _ = self.made(name, grown)
        V = directions(seq)
        for count in {1, max(V.rows // 2, 1), V.rows}:
            some = V[V.rows - count :, :]
            largest = max(mp.eigsy(some * some.T, eigvals_only=True))
            assert (
                largest <= seq.known.radius_engine.directions().squared_norms(np.array([count]))[0]
            )

    def test_never_too_tight(self, name, grown):
        seq, exact, asked = self.made(name, grown)
        V = directions(seq)
        for count in {max(V.rows // 2, 1), V.rows}:
            found = Projection.of(seq.known, 0.01, "sub-Gaussian", count)
            some = V[V.rows - count :, :]
            reference = Projected(exact, AsArray(some), found.radius.squared)
            upper, opposite = found.extremes(asked, (1, -1))
            for i, x in enumerate(asked):
                reference.at(x)
                for sign, ours in ((1, upper[i]), (-1, opposite[i])):
                    ours = min(max(ours / 20, -1), 1)
                    assert ours >= reference.clipped(reference.cmm(sign)) - mp.mpf("1e-9")

    def test_estimates_are_what_they_are_said_to_be(self, name, grown):
        seq, exact, asked = self.made(name, grown)
        V = directions(seq)
        for noise, margin in NOISES.items():
            weights = shortest(seq.known, asked, 0.01, noise)
            half = half_widths(seq.known, weights, margins(0.01, noise))
            bound = estimated_bounds(seq.known, asked, (1, -1), 0.01, noise)
            for i, x in enumerate(asked):
                exact.at(x)
                value, width = estimated(exact, AsArray(V.T), weights.weights[i], margin)
                assert half[i] >= width * (1 - mp.mpf("1e-14"))
                for sign, ours in zip((1, -1), bound[:, i]):
                    assert ours >= sign * value + width


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", [RBF(0.4), Matern(0.5, nu=2.5)], ids=str)
def test_nearly_as_narrow_as_exact_ones(kernel, kind):
    """Mean widths for 300 observations: measured up to 1.007 times those of the exact engine."""
    rng = np.random.default_rng(0)
    function = truth(kernel, rng, 4.0)
    X = rng.random((300, 2))
    y, asked = function(X) + 0.1 * rng.standard_normal(300), rng.random((50, 2))
    # A rough kernel would need more of them than there are observations.
    given = [kb.Sparse.filling([0, 0], [1, 1], 200)] if type(kernel) is RBF else []
    widths = []
    for engine in (None, kb.Sparse(), *given):
        seq = kb.ConfidenceSequence(kernel, 5.0, 0.1, engine=engine)
        seq.update(X, y)
        lower, upper = seq.bounds(asked, KINDS[kind])
        assert np.all((lower <= function(asked)) & (function(asked) <= upper))
        widths.append(float((upper - lower).mean()))
    assert np.all(np.array(widths[1:]) < 1.03 * widths[0]), np.array(widths) / widths[0]


@pytest.mark.parametrize("kind", KINDS)
def test_directions_and_widths_know_nothing_of_outcomes(kind):
    rng = np.random.default_rng(1)
    X, asked, bound = rng.random((150, 2)), rng.random((5, 2)), KINDS[kind]
    predicted, widths = [], []
    for _ in range(2):
        seq = kb.ConfidenceSequence(RBF(0.4), 5.0, 0.1, engine=kb.Sparse())
        seq.update(X[:100], np.sin(4 * X[:100, 0]) + 0.1 * rng.standard_normal(100))
        predicted.append(seq.predicted_width(asked, X[100:], bound=bound))
        seq.update(X[100:], np.sin(4 * X[100:, 0]) + 0.1 * rng.standard_normal(50))
        lower, upper = seq.bounds(asked, bound)
        widths.append(upper - lower)
    # But for the room for rounding errors, which grows with the outcomes.
    np.testing.assert_allclose(*predicted, rtol=1e-8)
    assert np.all(np.max(widths, axis=0) <= predicted[0] * (1 + 1e-7))
    assert np.all(predicted[0] < 10.0)  # less than without observations


@pytest.mark.parametrize("kind", KINDS)
def test_coverage(kind):
    """At one time, for signs and for Gaussian noise, and functions as large as they may be."""
    runs, missed, bound = 80, 0, KINDS[kind]
    rng = np.random.default_rng(5)
    X, x = rng.random((60, 1)), np.array([[0.37]])
    asked = np.linspace(0, 1, 30)[:, None] if bound.simultaneous else x
    for run in range(runs):
        function = truth(RBF(0.2), rng, 2.0, dim=1)
        normal = run % 2 or bound.noise == "Gaussian"
        noise = rng.standard_normal(60) if normal else rng.choice([-1, 1], 60)
        seq = kb.ConfidenceSequence(RBF(0.2), 2.0, 0.3, 0.2, engine=kb.Sparse(most=12))
        seq.update(X, function(X) + 0.3 * noise)
        try:
            lower, upper = seq.bounds(asked, bound)
        except kb.EmptyConfidenceSetError:
            missed += 1
            continue
        missed += bool(np.any((function(asked) < lower) | (upper < function(asked))))
    assert not too_many(missed, runs, 0.2)


def test_functionals_files_and_a_second_look(tmp_path):
    rng = np.random.default_rng(2)
    function = truth(RBF(0.4), rng, 4.0)
    X = rng.random((200, 2))
    engine = kb.Sparse()
    seq = kb.ConfidenceSequence(RBF(0.4), 5.0, 0.1, bound=kb.FixedDesign(), engine=engine)
    seq.update(X, function(X) + 0.1 * rng.standard_normal(200))
    rise = kb.functionals.Difference([0.2, 0.3], [0.8, 0.7])
    low, high = seq.bounds_of(rise)
    values = function(np.array([[0.2, 0.3], [0.8, 0.7]]))
    assert low < values[0] - values[1] < high
    seq.save(tmp_path / "x.npz")
    again = kb.ConfidenceSequence.load(tmp_path / "x.npz")
    np.testing.assert_array_equal(again.bounds(X[:4]), seq.bounds(X[:4]))
    with pytest.raises(kb.InputError, match="bounds from R_t"):
        seq.inflation(X[:4])
    seq.update(X[:1], function(X[:1]))
    with pytest.warns(UserWarning, match="one number of observations"):
        seq.bounds(X[:4])
    with pytest.raises(kb.InputError, match="after every outcome"):
        kb.KernelUCB(seq, kb.Box([0, 0], [1, 1]))


def test_where_nothing_is_seen():
    """Before the first observation, and where all functions vanish."""
    for bound, engine in itertools.product(
        [kb.CMM(), kb.AMM(), *KINDS.values()], [kb.Sparse(), kb.Sparse([[1.0]])]
    ):
        seq = kb.ConfidenceSequence(DotProduct(sigma_0=0.0), 2.0, 0.1, engine=engine)
        np.testing.assert_array_equal(seq.bounds([[3.0]], bound), [[-6.0], [6.0]])
        seq.update([[0.0], [0.0]], [0.01, -0.02])
        np.testing.assert_array_equal(seq.bounds([[3.0]], bound), [[-6.0], [6.0]])
    assert seq.inflation([[0.0]]) == 1 and seq.norm_lower_bound == 0
