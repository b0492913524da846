"""Noise that is correlated within a block: ``update(X, y, covariance=W)``.

Coverage: a run fails when, after any block, the noise energy eps' W^-1 eps exceeds R_t^2, or the
band leaves the truth out. A test rejects when a binomial with success probability delta would have
as many failures with probability below 1e-4.
"""

from __future__ import annotations

import copy
import math
import pickle
import zipfile

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from exact import Exact, kernel_value, random_data
from own_bounds import Wider
from problems import refused, too_many, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.engine import NoiseBlock
from kernelbounds.functionals import Difference
from kernelbounds.noise import Bounded, Energy, Gaussian
from kernelbounds.surface.estimate import likeliest

KERNEL = Matern(0.4, nu=2.5)
NORM, SCALE, DELTA = 3.0, 0.3, 0.1
GRID = np.linspace(0, 1, 25)[:, None]


def equal(n, r):
    """One correlation r between all: an error that readings share."""
    return (1 - r) * np.eye(n) + r


def drift(n, r):
    """Neighbours have correlation r, others r^2, r^3 ..."""
    return r ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def smooth(n, r):
    """Noise that is itself a smooth function, and a little that is not."""
    x = np.linspace(0, 1, n)
    return r * np.exp(-(np.subtract.outer(x, x) ** 2) / 0.02) + (1 - r) * np.eye(n)


def mixed(n, r, seed=0):
    """A random one with both signs, and standard deviations between 0.1 and 10."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n, n))
    C = half @ half.T
    d = np.sqrt(np.diagonal(C))
    C = r * C / np.multiply.outer(d, d) + (1 - r) * np.eye(n)
    scales = 10 ** rng.uniform(-1, 1, n)
    return C * np.multiply.outer(scales, scales)


SHAPES = {"equal": equal, "drift": drift, "smooth": smooth, "mixed": mixed}


def draw(rng, W):
    return np.linalg.cholesky(W) @ rng.standard_normal(len(W))


def on_boundary(rng, W, limit):
    """Noise with eps' W^-1 eps = limit^2."""
    eps = draw(rng, W)
    return eps * limit / math.sqrt(eps @ np.linalg.solve(W, eps))


def told(law, blocks, kernel=KERNEL, norm=NORM, **options):
    """A sequence with blocks of (X, y, W), or (X, y) where noise is not correlated."""
    seq = kb.ConfidenceSequence(kernel, norm, law, **options)
    for X, y, *W in blocks:
        seq.update(X, y, covariance=W[0] if W else None)
    return seq


def three(seed=0, n=12, r=0.9, scale=SCALE, norm=NORM, kernel=KERNEL):
    """f*, two blocks of correlated noise and plain observations between them."""
    rng = np.random.default_rng(seed)
    function, blocks = truth(kernel, rng, norm, 1), []
    for W in (equal(n, r), None, drift(n, r)):
        X = rng.random((n, 1))
        eps = draw(rng, np.eye(n) if W is None else W)
        y = function(X) + scale * eps
        blocks.append((X, y) if W is None else (X, y, scale**2 * W))
    return function, blocks


class TestWhitening:
    @pytest.mark.parametrize("r", [0.5, 0.9, 0.999, 0.999999])
    @pytest.mark.parametrize("name", sorted(SHAPES))
    def test_no_energy_is_larger_than_it_should_be(self, name, r):
        """M W M' <= sigma^2 I in 50 digits, and not by much: the error that is allowed for."""
        for n in (2, 7, 20):
            W = SHAPES[name](n, r)
            seq = kb.ConfidenceSequence(KERNEL, NORM, Energy(1.0))
            seq.update(np.linspace(0, 1, n)[:, None], np.zeros(n), covariance=W)
            M = seq.known.data.whitening
            with mp.workdps(50):
                exact = mp.diag(M.weights.tolist())
                if M.blocks:
                    exact = mp.matrix(M.blocks[0].factor.tolist()) * exact
                product = exact * mp.matrix(W.tolist()) * exact.T
                values = mp.eigsy((product + product.T) / 2, eigvals_only=True)
                assert 1 - 3 * M.error <= min(values) and max(values) <= 1
                # What is subtracted is ten times what is lost.
                lost = max(abs(v / (1 - mp.mpf(M.error)) ** 2 - 1) for v in values)
                assert lost <= M.error / 5
            assert M.blocks[0].condition >= 0.999 * np.linalg.cond(
                W / np.sqrt(np.outer(*[np.diag(W)] * 2))
            )

    def test_products(self):
        """Times M, times its transpose, and of a kernel matrix; with parts of it."""
        rng = np.random.default_rng(0)
        blocks = (NoiseBlock.of(equal(3, 0.5)).at(2), NoiseBlock.of(drift(4, 0.9)).at(5))
        M = kb.engine.Whitening(rng.uniform(0.5, 2, 10), blocks)
        A = np.eye(10)
        for one in blocks:
            A[one.rows, one.rows] = one.factor
        matrix, v, K = A * M.weights, rng.standard_normal((3, 10)), KERNEL(rng.random((10, 1)))
        np.testing.assert_allclose(M.times(v), v @ matrix.T, rtol=1e-14)
        np.testing.assert_allclose(M.times(v[0]), matrix @ v[0], rtol=1e-14)
        np.testing.assert_allclose(M.transposed_times(v), v @ matrix, rtol=1e-14)
        np.testing.assert_allclose(M.of_matrix(K), matrix @ K @ matrix.T, rtol=1e-12)
        np.testing.assert_allclose(M.between(K, M), matrix @ K @ matrix.T, rtol=1e-12)
        np.testing.assert_allclose(M.sizes(v[0] ** 2), np.abs(matrix) @ v[0] ** 2, rtol=1e-14)
        np.testing.assert_allclose(M.part(2, 10).times(v[:, 2:]), (v @ matrix.T)[:, 2:])
        np.testing.assert_allclose(M.part(0, 7).times(v[:, :7]), (v @ matrix.T)[:, :7])
        joined = M.part(0, 5).then(M.part(5, 10))
        np.testing.assert_array_equal(joined.times(v), M.times(v))
        signs = rng.choice([-1.0, 1.0], (500, 10))
        assert (M.times(signs) ** 2).sum(axis=1).max() <= M.squared_weights


class TestExactness:
    @pytest.mark.parametrize("name", sorted(SHAPES))
    def test_cmm_is_the_optimum_with_that_covariance(self, name):
        """max f(x) with ||f|| <= B and (y - f_t)' W^-1 (y - f_t) <= limit^2, by a cone program."""
        rng, n, limit = np.random.default_rng(1), 9, 0.7
        W = SHAPES[name](n, 0.9)
        function, X, x = truth(KERNEL, rng, 2.0, 1), rng.random((n, 1)), np.array([[0.35]])
        y = function(X) + on_boundary(rng, W, limit)
        seq = told(Energy(limit), [(X, y, W)], norm=2.0)
        assert seq.radius == limit
        gram = KERNEL(np.vstack([X, x])) + 1e-13 * np.eye(n + 1)
        root, whiten = np.linalg.cholesky(gram), np.linalg.inv(np.linalg.cholesky(W))
        v = cp.Variable(n + 1)  # f = root v at the points and at x, with norm |v|
        inside = [cp.norm(v) <= 2.0, cp.norm(whiten @ (root[:n] @ v - y)) <= limit]
        lower, upper = seq.bounds(x)
        for sign, found in ((1, upper[0]), (-1, -lower[0])):
            best = cp.Problem(cp.Maximize(sign * root[n] @ v), inside)
            best.solve(solver=cp.CLARABEL)
            assert found == pytest.approx(best.value, abs=2e-6)
        np.testing.assert_allclose(seq.bounds(x, kb.CMM("cone")), [lower, upper], atol=2e-6)

    def test_a_diagonal_covariance_is_noise_scales(self):
        rng, d = np.random.default_rng(0), np.linspace(0.1, 0.9, 15)
        X, y = rng.random((15, 1)), 0.1 * rng.standard_normal(15)
        for law in (Energy(2.0), Gaussian(0.3), Gaussian()):
            a, b = (kb.ConfidenceSequence(KERNEL, NORM, law) for _ in range(2))
            a.update(X, y, covariance=np.diag(d**2))
            b.update(X, y, noise_scale=np.sqrt(d**2))
            np.testing.assert_array_equal(a.bounds(GRID), b.bounds(GRID))

    @pytest.mark.parametrize("name", sorted(SHAPES))
    def test_the_order_of_rows_does_not_matter(self, name):
        rng, n = np.random.default_rng(2), 15
        W = SHAPES[name](n, 0.9)
        function, X = truth(KERNEL, rng, NORM, 1), rng.random((n, 1))
        y = function(X) + on_boundary(rng, W, 1.0)
        order = rng.permutation(n)
        straight = told(Energy(1.0), [(X, y, W)])
        shuffled = told(Energy(1.0), [(X[order], y[order], W[np.ix_(order, order)])])
        np.testing.assert_allclose(shuffled.bounds(GRID), straight.bounds(GRID), atol=1e-7)

    def test_much_narrower_than_independent_noise_that_contains_it(self):
        """Against sum eps_s^2 / d_s^2, diag(d^2) >= W, for 100 outcomes with correlation 0.9."""
        rng, n, W = np.random.default_rng(0), 100, equal(100, 0.9)
        X = rng.random((n, 1))
        y = np.sin(6 * X[:, 0]) + on_boundary(rng, W, 0.1 * math.sqrt(n))
        law = Energy(0.1 * math.sqrt(n))
        exact = told(law, [(X, y, W)], norm=5.0)
        above = kb.ConfidenceSequence(KERNEL, 5.0, law)
        above.update(X, y, noise_scale=math.sqrt(np.linalg.eigvalsh(W)[-1]))
        widths = [np.subtract(*seq.bounds(GRID)[::-1]).mean() for seq in (exact, above)]
        assert 4 < widths[1] / widths[0] < 5

    # kernel, length scale, norm bound, noise scale, correlation
    @pytest.mark.parametrize(
        ("case", "loose"),
        [
            (("rbf", 0.5, 10.0, 0.1, 0.5), 1e-8),
            (("matern52", 0.5, 10.0, 0.1, 0.999), 1e-5),
            (("rbf", 50.0, 10.0, 0.1, 0.9), 1e-5),
            (("matern52", 0.5, 1e4, 1e-4, 0.999), 1e-2),
            (("rbf", 0.5, 10.0, 0.1, 0.999999), 1e-2),
        ],
        ids=str,
    )
    def test_never_too_tight_against_50_digits(self, case, loose):
        name, length_scale, norm, scale, r = case
        kernel = RBF(length_scale) if name == "rbf" else Matern(length_scale, nu=2.5)
        rng, n, t = np.random.default_rng(3), 8, 12
        X, x = rng.random((t, 2)), rng.random((2, 2))
        sizes = scale * rng.uniform(0.5, 2, n)
        full = scale**2 * np.eye(t)
        full[2 : 2 + n, 2 : 2 + n] = equal(n, r) * np.multiply.outer(sizes, sizes)
        y = random_data(kernel, rng, X, norm, 0.0) + draw(rng, full)
        for law in (Gaussian(scale), Energy(1.5 * math.sqrt(t))):
            seq = kb.ConfidenceSequence(kernel, norm, law)
            seq.update(X[:2], y[:2], noise_scale=scale)
            seq.update(X[2 : 2 + n], y[2 : 2 + n], covariance=full[2 : 2 + n, 2 : 2 + n])
            seq.update(X[2 + n :], y[2 + n :], noise_scale=scale)
            c = seq.assumptions.mixture_scale
            exact = Exact(
                lambda a, b: kernel_value(name, length_scale, 1.0, a, b),
                X, y, norm, law.unit, 0.01, c,
                radius_squared=mp.mpf(seq.radius) ** 2, covariance=full,
            )  # fmt: skip
            lower, upper = seq.bounds(x)
            for i in range(len(x)):
                exact.at(x[i])
                for sign, found in ((1, upper[i]), (-1, -lower[i])):
                    gap, _ = exact.gap(found, exact.cmm(sign), sign)
                    assert 0 <= gap <= loose
            if isinstance(law, Gaussian) and r < 0.99:
                # R_t of the whitened rows, at the ridge of all forecasts.
                made = Exact(
                    lambda a, b: kernel_value(name, length_scale, 1.0, a, b),
                    X, y, norm, scale, 0.01, c, seq.assumptions.mixture, scale**2 / c,
                    covariance=full,
                )  # fmt: skip
                radius = float(mp.sqrt(made.radius_squared()))
                assert radius * (1 - 1e-12) <= seq.radius <= radius * (1 + 1e-8)


class TestValidity:
    @pytest.mark.parametrize("name", sorted(SHAPES))
    def test_the_worst_case_is_just_inside(self, name):
        """A function that attains the bound, with noise on the boundary, and what exposes 0.8 R."""
        rng, n, limit = np.random.default_rng(5), 8, 1.0
        W, x = SHAPES[name](n, 0.9), np.array([[0.4]])
        X = rng.random((n, 1))
        y = truth(KERNEL, rng, 1.5, 1)(X) + on_boundary(rng, W, 0.5 * limit)
        gram = KERNEL(np.vstack([X, x])) + 1e-13 * np.eye(n + 1)
        root, whiten = np.linalg.cholesky(gram), np.linalg.inv(np.linalg.cholesky(W))
        v = cp.Variable(n + 1)
        inside = [cp.norm(v) <= 2.0, cp.norm(whiten @ (root[:n] @ v - y)) <= limit]
        cp.Problem(cp.Maximize(root[n] @ v), inside).solve(solver=cp.CLARABEL)
        values = root @ v.value
        assert np.linalg.norm(whiten @ (values[:n] - y)) == pytest.approx(limit, rel=1e-4)
        assert values[n] <= told(Energy(limit), [(X, y, W)], norm=2.0).upper(x)[0] + 1e-6
        assert values[n] > told(Energy(0.8 * limit), [(X, y, W)], norm=2.0).upper(x)[0] + 1e-4

    @pytest.mark.parametrize("name", sorted(SHAPES))
    def test_any_noise_in_the_ellipsoid(self, name):
        """Random noise on the boundary, and that which moves the estimate at a point the most."""
        for seed in range(10):
            rng, n = np.random.default_rng(seed), 20
            W = SHAPES[name](n, 0.95)
            function, X = truth(KERNEL, rng, 2.0, 1), rng.random((n, 1))
            kinds = [on_boundary(rng, W, 0.5)]
            pull = np.linalg.solve(KERNEL(X) + W, KERNEL(X, GRID[seed : seed + 1]))[:, 0]
            kinds += [sign * 0.5 * (W @ pull) / math.sqrt(pull @ W @ pull) for sign in (1, -1)]
            for eps in kinds:
                seq = told(Energy(0.5), [(X, function(X) + eps, W)], norm=2.0)
                lower, upper = seq.bounds(GRID)
                assert np.all((lower <= function(GRID)) & (function(GRID) <= upper))
                assert seq.contains(function)
                less = told(Energy(0.4), [(X, function(X) + eps, W)], norm=2.0)
                assert not less.contains(function)

    @staticmethod
    def failures(law, runs, shrunk=1.0, believed=None, times=1):
        """Runs of three blocks; each block's points are around the highest upper bound so far."""
        energies = bands = 0
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            function = truth(KERNEL, rng, NORM, 1)
            seq = kb.ConfidenceSequence(KERNEL, NORM, law, DELTA)
            energy, outside, too_much = 0.0, False, False
            for kind, n in ((equal, 6 * times), (drift, 10 * times), (equal, 14 * times)):
                W = kind(n, 0.95)
                best = GRID[int(np.argmax(seq.upper(GRID)))] if len(seq) else 0.5
                X = np.clip(best + 0.3 * rng.standard_normal((n, 1)), 0, 1)
                eps = draw(rng, W)
                energy += SCALE**2 * float(eps @ np.linalg.solve(W, eps))
                given = {"covariance": law.unit**2 * W}
                if believed is not None:
                    given = {"noise_scale": believed}
                try:
                    seq.update(X, function(X) + SCALE * eps, **given)
                    lower, upper = seq.bounds(GRID)
                    values = function(GRID)
                    outside |= bool(np.any((values < lower) | (values > upper)))
                except kb.EmptyConfidenceSetError:
                    outside = True
                    break
                too_much |= energy > (shrunk * seq.radius) ** 2
            energies, bands = energies + too_much, bands + outside
        return energies, bands

    @pytest.mark.parametrize("law", [Gaussian(SCALE), Gaussian()], ids=str)
    def test_coverage(self, law):
        energies, bands = self.failures(law, 40)
        assert not too_many(energies, 40, DELTA) and not too_many(bands, 40, DELTA)

    @pytest.mark.slow
    @pytest.mark.parametrize("law", [Gaussian(SCALE), Gaussian(), Gaussian(at_most=0.4)], ids=str)
    def test_coverage_of_many_runs(self, law):
        energies, bands = self.failures(law, 1000)
        assert not too_many(energies, 1000, DELTA) and not too_many(bands, 1000, DELTA)

    def test_that_test_can_fail(self):
        """A radius that is 20 percent too small, and correlation that is not told."""
        assert too_many(self.failures(Gaussian(SCALE), 80, shrunk=0.8)[0], 80, DELTA)
        assert too_many(self.failures(Gaussian(SCALE), 30, believed=SCALE, times=6)[1], 30, DELTA)

    @pytest.mark.parametrize(
        "bound",
        [kb.AY(), kb.IGP(0.1), kb.DMM(), kb.AMM(), kb.FixedDesign(), kb.FixedDesign(False)],
        ids=str,
    )
    def test_other_bounds(self, bound):
        """Of a fixed design all points are fixed; each bound contains the truth nearly always."""
        failed, widths = 0, []
        for seed in range(25):
            function, blocks = three(seed)
            seq = told(Gaussian(SCALE), blocks, delta=DELTA)
            lower, upper = seq.bounds(GRID[::6], bound)
            values = function(GRID[::6])
            failed += int(np.any((values < lower) | (values > upper)))
            widths.append((upper - lower).mean())
        many = 5 if bound == kb.FixedDesign(False) else 1  # of which each x counts by itself
        assert not too_many(failed, 25, min(many * DELTA, 1)) and np.mean(widths) < 2 * NORM

    def test_fixed_designs_make_use_of_it(self):
        _, blocks = three(0, n=40, r=0.95)
        widths = {}
        for bound in (kb.CMM(), kb.FixedDesign(), kb.FixedDesign(False)):
            lower, upper = told(Gaussian(SCALE), blocks).bounds(GRID[12:13], bound)
            widths[bound] = float((upper - lower)[0])
        assert widths[kb.FixedDesign(False)] < widths[kb.FixedDesign()] < widths[kb.CMM()]

    def test_misspecification(self):
        """h = +-epsilon in the worst pattern: M h is as long as it can be, or nearly."""
        rng, n, epsilon = np.random.default_rng(0), 6, 0.05
        for name in SHAPES:
            W, X = SHAPES[name](n, 0.9), rng.random((n, 1))
            function = truth(KERNEL, rng, 2.0, 1)
            signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * n)).reshape(n, -1).T
            energies = np.vecdot(signs, np.linalg.solve(W, signs.T).T)
            h = epsilon * signs[energies.argmax()]
            y = function(X) + h + on_boundary(rng, W, 0.3)
            seq = told(Energy(0.3), [(X, y, W)], norm=2.0, misspecification=epsilon)
            assert seq.radius >= 0.3 + epsilon * math.sqrt(energies.max()) * (1 - 1e-12)
            assert seq.radius <= 0.3 + 2 * epsilon * math.sqrt(energies.max())
            lower, upper = seq.bounds(GRID)
            values = function(GRID)
            assert np.all((lower <= values - epsilon) & (values + epsilon <= upper))


class TestEverywhere:
    """Whoever reads observations again reads the whitening, too."""

    def test_one_block_or_all_orders_of_updates(self):
        """Independent blocks in one covariance, or one by one; with plain rows before and after."""
        _, blocks = three()
        W = np.zeros((36, 36))
        X, y = np.vstack([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])
        for i, b in enumerate(blocks):
            own = slice(12 * i, 12 * i + 12)
            W[own, own] = b[2] if len(b) == 3 else SCALE**2 * np.eye(12)
        for law in (Gaussian(SCALE), Gaussian(), Energy(30.0)):
            if law.unit == 1:  # of which scales are ratios
                given = [
                    (b[0], b[1], b[2] if len(b) == 3 else SCALE**2 * np.eye(12)) for b in blocks
                ]
            else:
                given = blocks
            several, whole = told(law, given), told(law, [(X, y, W)])
            assert several.radius == pytest.approx(whole.radius, rel=1e-8)
            np.testing.assert_allclose(several.bounds(GRID), whole.bounds(GRID), atol=1e-6)
            np.testing.assert_allclose(several.noise_scales, np.sqrt(np.diagonal(W)))
            np.testing.assert_array_equal(several.outcomes, y)

    @pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AMM()], ids=str)
    def test_gradients(self, bound):
        _, blocks = three(1)
        seq = told(Gaussian(SCALE), blocks)
        x, step = np.array([[0.31], [0.72]]), 1e-5
        for found, side in zip(seq.gradients(x, bound), (0, 1)):
            ends = [seq.bounds(x + s, bound)[side] for s in (step, -step)]
            np.testing.assert_allclose(found[:, 0], (ends[0] - ends[1]) / (2 * step), atol=1e-3)

    def test_estimates(self):
        """The estimate is that of the rows, and closer to the truth than one without covariance."""
        function, blocks = three(1, n=30, r=0.99)
        seq, deaf = told(Gaussian(SCALE), blocks), told(Gaussian(SCALE), [b[:2] for b in blocks])
        found = likeliest(seq.known)
        there = seq.known.predict(GRID, np.array([found.ridge])).mean[0]
        np.testing.assert_allclose(found.values(GRID), there, atol=1e-9)
        errors = [np.abs(one.estimate(GRID) - function(GRID)).mean() for one in (seq, deaf)]
        assert errors[0] < errors[1]
        ends = [seq.estimate(GRID[3:5] + step) for step in (1e-5, -1e-5)]
        slopes = seq.estimate_gradients(GRID[3:5])[:, 0]
        np.testing.assert_allclose(slopes, (ends[0] - ends[1]) / 2e-5, atol=1e-4)

    def test_ceilings_over_cells(self):
        _, blocks = three(1)
        seq = told(Gaussian(SCALE), blocks)
        ucb = kb.KernelUCB(seq, kb.Box([0.0], [1.0]))
        assert ucb.certificate().max_upper >= seq.upper(GRID).max() - 1e-7
        assert (
            ucb.certificate().max_upper <= seq.upper(np.linspace(0, 1, 500)[:, None]).max() + 1e-2
        )

    @pytest.mark.parametrize("law", [Gaussian(SCALE), Energy(6.0), Gaussian()], ids=str)
    def test_policies(self, law):
        """A tracker follows rounds after a block; another block may come in between."""
        function, blocks = three(2)
        W = SCALE**2 * np.eye(12) if law.unit == 1 else None
        blocks = [b if len(b) == 3 or W is None else (*b, W) for b in blocks]
        seq, rng = told(law, blocks[:2]), np.random.default_rng(0)
        ucb = kb.KernelUCB(seq, kb.Finite(GRID))
        for round in range(12):
            found, upper = ucb.ask(), seq.upper(GRID)
            assert upper[found.index] >= upper.max() - 1e-5 * NORM
            eps = SCALE * rng.standard_normal()
            ucb.tell(found.x, function(found.x[None])[0] + eps, noise_scale=SCALE)
            if round == 5:
                X, y, W = blocks[2]
                seq.update(X, y, covariance=W)
        assert ucb.certificate().max_upper >= function(GRID).max()
        assert len(ucb.ask(n=3)) == 3

    def test_parts_classes_and_facts(self):
        both = kb.Parts([(RBF(0.3), 2.0), (RBF(2.0), 3.0)])
        either = kb.AnyOf([(RBF(0.3), 2.0), (KERNEL, 3.0)])
        function, blocks = three(3, n=20, kernel=RBF(0.3), norm=2.0)
        limits = [kb.facts.Between(-2.0, 2.0)]
        alone = told(Gaussian(SCALE), blocks, kernel=RBF(0.3), norm=2.0)
        for kernel, facts in ((both, []), (either, []), (both, limits), (either, limits)):
            seq = told(Gaussian(SCALE), blocks, kernel=kernel, norm=None, facts=facts)
            for _ in range(2):
                lower, upper = seq.bounds(GRID)
                assert np.all((lower <= function(GRID)) & (function(GRID) <= upper))
                assert np.all(upper - lower < 3.9)
                seq.update(blocks[0][0] / 2, function(blocks[0][0] / 2))  # and on it goes
        assert np.all(
            alone.upper(GRID) <= told(Gaussian(SCALE), blocks, either, None).upper(GRID) + 1
        )
        level = told(
            Gaussian(SCALE),
            [(X, y + 50.0, *W) for X, y, *W in blocks],
            kernel=RBF(0.3),
            norm=2.0,
            offset=kb.Offset(49.0, within=2.0),
        )
        lower, upper = level.bounds(GRID)
        assert np.all((lower <= function(GRID) + 50) & (function(GRID) + 50 <= upper))

    def test_classes_see_the_same_rows(self):
        """A class alone, as a sequence of its own with the same R_t, has the same bounds."""
        _, blocks = three(3)
        each = [(RBF(0.3), 3.0), (KERNEL, 3.0)]
        seq = told(
            Energy(8.0), [(X, y, *(W or [np.eye(12)])) for X, y, *W in blocks], kb.AnyOf(each), None
        )
        found = [
            told(Energy(8.0), [(X, y, *(W or [np.eye(12)])) for X, y, *W in blocks], *one)
            for one in each
        ]
        upper = np.max([one.upper(GRID) for one in found], axis=0)
        np.testing.assert_allclose(seq.upper(GRID), upper, atol=1e-9)

    def test_repeats_are_merged_around_blocks(self, monkeypatch):
        """Plain repeats are merged, rows of blocks are not, and no bound changes."""
        rng = np.random.default_rng(0)
        function, arms = truth(KERNEL, rng, NORM, 1), rng.random((6, 1))
        given = []
        for _ in range(6):
            X = arms[rng.integers(6, size=40)]
            given.append((X, function(X) + SCALE * rng.standard_normal(40)))
            X, W = arms[rng.integers(6, size=10)], drift(10, 0.8)
            given.append((X, function(X) + SCALE * draw(rng, W), SCALE**2 * W))
        for law in (Gaussian(SCALE), Gaussian()):
            if law.unit == 1:
                given = [b if len(b) == 3 else (*b, SCALE**2 * np.eye(40)) for b in given]
            merged = told(law, given)
            monkeypatch.setattr("kernelbounds.engine.observations.FEWEST_ROWS", 10**6)
            single = told(law, given)
            monkeypatch.undo()
            assert merged.known.engine.rows.count < 6 + 60 + 64 + 6 < single.known.engine.rows.count
            assert merged.radius == pytest.approx(single.radius, rel=0.05)
            own = merged.known.radius.squared, single.known.radius.squared
            assert own[0] == pytest.approx(own[1], rel=0.1)
            energy = [one.known.energy_above(0.3) for one in (merged, single)]
            assert energy[0] == pytest.approx(energy[1], rel=1e-7)  # rounded up
            found = [one.known.predict(GRID, np.array([0.3])) for one in (merged, single)]
            np.testing.assert_allclose(found[0].mean, found[1].mean, atol=1e-9)
            np.testing.assert_allclose(found[0].variance, found[1].variance, atol=1e-9)

    def test_long_runs_that_are_forecast_in_blocks(self):
        """After thousands of repeats on few points: R_t still bounds the energy, and closely."""
        rng = np.random.default_rng(0)
        function, arms = truth(KERNEL, rng, NORM, 1), rng.random((4, 1))
        seq = kb.ConfidenceSequence(KERNEL, NORM, Gaussian(SCALE))
        energy = 0.0
        for n in (5000, 20, 500, 20):
            X, W = arms[rng.integers(4, size=n)], None if n > 20 else drift(n, 0.9)
            eps = rng.standard_normal(n) if W is None else draw(rng, W)
            energy += SCALE**2 * float(eps @ (eps if W is None else np.linalg.solve(W, eps)))
            given = None if W is None else SCALE**2 * W
            seq.update(X, function(X) + SCALE * eps, covariance=given)
            assert math.sqrt(energy) < seq.radius < 1.1 * math.sqrt(energy)
        assert seq.known.radius_engine.data.blocks_from is not None
        lower, upper = seq.bounds(GRID)
        assert np.all((lower <= function(GRID)) & (function(GRID) <= upper))

    def test_copies_and_files(self, tmp_path):
        function, blocks = three(4)
        rng, repeats = np.random.default_rng(0), np.repeat([[0.2], [0.6]], 60, axis=0)
        measured = function(repeats) + SCALE * rng.standard_normal(120)
        new = rng.random((12, 1))
        outcomes, W = function(new) + SCALE * draw(rng, drift(12, 0.5)), SCALE**2 * drift(12, 0.5)
        for law in (Gaussian(SCALE), Energy(20.0), Gaussian()):
            seq = told(law, [blocks[0], blocks[2]])
            seq.update(repeats, measured, noise_scale=SCALE)
            expected = seq.bounds(GRID)
            path = tmp_path / "run.npz"
            seq.save(path)
            loaded = kb.ConfidenceSequence.load(path)
            copies = copy.deepcopy(seq), copy.copy(seq), pickle.loads(pickle.dumps(seq)), loaded
            for other in copies:
                np.testing.assert_array_equal(other.bounds(GRID), expected)
                np.testing.assert_array_equal(other.noise_scales, seq.noise_scales)
            for other in (seq, copies[0], copies[2], loaded):
                other.update(new, outcomes, covariance=W)
                np.testing.assert_allclose(other.bounds(GRID), seq.bounds(GRID), rtol=1e-12)

    def test_a_damaged_file(self, tmp_path):
        _, blocks = three(4)
        path = tmp_path / "run.npz"
        told(Gaussian(SCALE), blocks).save(path)
        with np.load(path) as file:
            arrays = dict(file)
        for name, value in (
            ("factors", arrays["factors"][:-1]),
            ("factors", 1.01 * arrays["factors"]),
            ("factors", -arrays["factors"]),
            ("blocks", arrays["blocks"] + 1),
            ("blocks", arrays["blocks"][::-1]),
            ("blocks", np.array([[0.0, 100.0]])),
        ):
            np.savez(path, **(arrays | {name: value}))
            refused(lambda: kb.ConfidenceSequence.load(path), "damaged", kb.StoredFileError)
        np.savez(path, **arrays)
        assert len(kb.ConfidenceSequence.load(path)) == 36
        with zipfile.ZipFile(path) as file:
            assert "blocks.npy" in file.namelist()

    def test_a_forecaster_of_ones_own(self):
        """Forecasts of f*(x_s) are combined as the outcomes are: better ones make R_t smaller."""
        function, blocks = three(5, n=25)
        radii = []
        for guess in (lambda x: (function(x[None])[0], 1e-6), lambda x: (0.0, 1.0)):
            mixture = kb.mixtures.Prequential(lambda X, y, x, guess=guess: guess(x))
            seq = told(Gaussian(SCALE), blocks, mixture=mixture)
            M = seq.known.data.whitening
            noise = M.times(function(seq.points)) - seq.known.outcomes
            assert np.linalg.norm(noise) < seq.radius
            assert len(seq.known.forecasts().errors) == 75
            radii.append(seq.radius)
        np.testing.assert_allclose(np.sort(radii), radii)
        assert radii[0] < 0.95 * radii[1]

    def test_sensitivity_and_plans(self):
        function, blocks = three(6, n=20)
        seq = told(Gaussian(SCALE), blocks)
        lower = seq.lower([0.4])[0]
        found = seq.sensitivity(above=([0.4], lower - 0.2))
        larger = told(
            Gaussian(1.001 * found.noise_scale),
            [
                (X, y, (found.noise_scale / SCALE) ** 2 * (W[0] if W else SCALE**2 * np.eye(20)))
                for X, y, *W in blocks
            ],
        )
        assert found.noise_scale > SCALE and larger.lower([0.4])[0] < lower - 0.2 + 0.1
        plan = np.linspace(0, 1, 10)[:, None]
        width = seq.predicted_width(GRID, plan)
        seq.update(plan, function(plan))
        assert np.all(np.subtract(*seq.bounds(GRID)[::-1]) <= width + 1e-6)
        assert seq.noise_lower_bound < SCALE
        difference = seq.bounds_of(Difference([0.2], [0.7]))
        assert difference[0] <= function([[0.2]])[0] - function([[0.7]])[0] <= difference[1]

    def test_bounds_of_ones_own(self):
        """What is made of known.predict is right; known.weights are refused, as they say less."""
        function, blocks = three(7)
        seq = told(Gaussian(SCALE), blocks)
        lower, upper = seq.bounds(GRID, Wider())
        assert np.all((lower <= function(GRID)) & (function(GRID) <= upper))
        refused(lambda: seq.known.weights, "whitening")
        assert len(told(Gaussian(SCALE), blocks[1:2]).known.weights) == 12


class TestRefusals:
    X, y = np.linspace(0, 1, 3)[:, None], np.zeros(3)

    @pytest.mark.parametrize(
        ("law", "given", "words"),
        [
            (0.3, equal(3, 0.5), r"SubGaussian\(0\.3\)"),
            (Bounded(0.3), equal(3, 0.5), r"Bounded\(0\.3\)"),
            (Gaussian(0.0), equal(3, 0.5), "noise_scale 0"),
            (Gaussian(0.3), equal(2, 0.5), "3 observations"),
            (Gaussian(0.3), [1.0, 1.0, 1.0], "3 observations"),
            (Gaussian(0.3), np.triu(equal(3, 0.5)), "symmetric"),
            (Gaussian(0.3), np.diag([1.0, 0.0, 1.0]), "positive variances"),
            (Gaussian(0.3), np.ones((3, 3)), "positive definite"),
            (Energy(1.0), 2 * np.ones((3, 3)) - np.eye(3), "positive definite"),
            (Energy(1.0), equal(3, 1 - 1e-9), "positive definite"),
            (Energy(1.0), np.full((3, 3), np.nan), "covariance"),
        ],
    )
    def test_one_sentence(self, law, given, words):
        seq = kb.ConfidenceSequence(KERNEL, NORM, law)
        refused(lambda: seq.update(self.X, self.y, covariance=given), words)
        assert len(seq) == 0

    def test_together_with_noise_scales_and_with_a_sparse_engine(self):
        seq = kb.ConfidenceSequence(KERNEL, NORM, Gaussian(0.3))
        both = {"noise_scale": 0.1, "covariance": equal(3, 0.5)}
        refused(lambda: seq.update(self.X, self.y, **both), "not both")
        sparse = kb.ConfidenceSequence(KERNEL, NORM, Gaussian(0.3), engine=kb.Sparse())
        refused(lambda: sparse.update(self.X, self.y, covariance=equal(3, 0.5)), "sparse")
        sparse.update(self.X, self.y, covariance=np.eye(3))  # which are noise scales
        assert len(seq) == 0 and len(sparse) == 3

    def test_what_the_lemma_of_runs_does_not_cover(self):
        seq = told(Gaussian(SCALE), three()[1])
        refused(lambda: kb.theory.run_bound(seq), "one noise scale")
