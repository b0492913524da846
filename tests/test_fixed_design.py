"""Bounds for points that were fixed before the outcomes, and the flags of guarantees."""

from __future__ import annotations

import dataclasses
import itertools
import time
import warnings

import mpmath as mp
import numpy as np
import pytest
from exact import (
    Exact,
    Projected,
    estimated,
    folded_margin,
    kernel_value,
    random_data,
    sub_gaussian_failures,
    sub_gaussian_margin,
)
from own_bounds import Plain, Wider
from problems import KERNELS, observe, sequence, too_many, truth
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern
from test_precision import CASES, KERNELS as PRECISE, LAYOUTS

import kernelbounds as kb
from kernelbounds import theory
from kernelbounds.bounds import Guarantee
from kernelbounds.bounds.fixed_designs import linear_estimate, projection as projections
from kernelbounds.bounds.fixed_designs.linear_estimate import (
    folded_margins,
    half_widths,
    margins,
    shortest,
    sub_gaussian_margins,
)
from kernelbounds.bounds.fixed_designs.projection import Projection, relative_radii
from kernelbounds.functionals import Average, Derivative, Difference, Sum

NOISES = ("sub-Gaussian", "Gaussian")
DESIGNS = {
    "all x": kb.FixedDesign(),
    "all x, Gaussian": kb.FixedDesign(noise="Gaussian"),
    "one x": kb.FixedDesign(simultaneous=False),
    "one x, Gaussian": kb.FixedDesign(simultaneous=False, noise="Gaussian"),
    "five x": kb.FixedDesign(simultaneous=False, points=5),
}
design = pytest.mark.parametrize("bound", DESIGNS.values(), ids=DESIGNS)


# --- flags


class TestFlags:
    @pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AMM(), kb.AY(), kb.IGP(0.1)])
    def test_all_but_fixed_designs_promise_everything(self, bound):
        assert bound.guarantee == Guarantee(True, True, True, "sub-Gaussian")
        assert bound.guarantee.sequential
        flags = " [all times, all x, adaptive points, sub-Gaussian noise]"
        assert repr(bound).endswith(flags)

    def test_settings_come_before_the_flags(self):
        everything = "[all times, all x, adaptive points, sub-Gaussian noise]"
        assert repr(kb.CMM()) == f"CMM(solver='dual') {everything}"
        assert repr(kb.DMM([0.1, 1])) == f"DMM(ridges=(0.1, 1.0)) {everything}"
        assert repr(kb.FixedDesign(False, 5, "Gaussian")) == (
            "FixedDesign(simultaneous=False, points=5, noise='Gaussian') "
            "[one time, one x, fixed points, Gaussian noise]"
        )
        assert "[one time, all x, fixed points, sub-Gaussian noise]" in repr(kb.FixedDesign())

    def test_bounds_of_ones_own_promise_what_the_contract_demands(self):
        assert Plain().guarantee == Guarantee()
        assert repr(Wider(0.1)) == "Wider(by=0.1)"  # as dataclasses do
        assert repr(Plain()).startswith("<own_bounds.Plain object at ")

    @design
    def test_saved_and_loaded(self, bound, tmp_path):
        seq, _ = sequence(RBF(0.5), np.random.default_rng(0), 12, bound=bound)
        seq.save(tmp_path / "x.npz")
        again = kb.ConfidenceSequence.load(tmp_path / "x.npz")
        assert again.bound == bound
        X = np.random.default_rng(1).random((3, 2))
        np.testing.assert_array_equal(again.bounds(X), seq.bounds(X))


# --- the radius


class TestRadius:
    @pytest.mark.parametrize("delta", [0.9, 0.1, 1e-2, 1e-6, 1e-30])
    def test_at_most_that_of_hsu_kakade_and_zhang(self, delta):
        counts, level = np.arange(1.0, 2001), np.log(1 / delta)
        theirs = counts + 2 * np.sqrt(counts * level) + 2 * level
        ours = relative_radii(counts, delta, "sub-Gaussian")
        assert np.all(ours <= theirs) and np.all(ours > 0.75 * theirs)
        assert np.all(np.diff(ours) > 0)
        assert np.all(relative_radii(counts, delta, "Gaussian") < ours)

    @pytest.mark.parametrize("delta", [1.0 / 3, 0.003, 1e-12])
    def test_against_50_digits(self, delta):
        counts = [1, 2, 7, 50, 1000, 100_000]
        for count, sub, gaussian in zip(
            counts, *(relative_radii(np.array(counts, float), delta, noise) for noise in NOISES)
        ):
            excess = -2 * mp.log(delta) / count
            exact = -count * mp.lambertw(-mp.exp(-1 - excess), -1).real
            assert 0 <= sub / exact - 1 < 1e-12
            beyond = mp.gammainc(mp.mpf(count) / 2, mp.mpf(float(gaussian)) / 2, regularized=True)
            assert beyond <= delta
            less = mp.mpf(float(gaussian)) * (1 - mp.mpf("1e-10"))
            assert mp.gammainc(mp.mpf(count) / 2, less / 2, regularized=True) > delta

    @pytest.mark.parametrize("delta", [0.5, 0.005, 1e-9])
    def test_folded_quantiles_against_50_digits(self, delta):
        biases = np.array([0.0, 1e-9, 0.1, 1.0, 3.0, 50.0, 1e300])
        for b, found in zip(biases, folded_margins(biases, delta)):
            exact = folded_margin(mp.mpf(float(min(b, 100))), delta)
            assert 0 <= found - exact < 1e-10

    @pytest.mark.parametrize("delta", [0.5, 0.005, 1e-9, 1e-300])
    def test_sub_gaussian_margins_against_50_digits(self, delta):
        biases = np.array([0.0, 1e-9, 0.1, 1.0, 3.0, 50.0, 1e300])
        found = sub_gaussian_margins(biases, delta)
        for b, q in zip(biases, found):
            b, q = mp.mpf(float(min(b, 100))), mp.mpf(float(q))
            assert sub_gaussian_failures(b, q, b) <= delta
            assert sub_gaussian_failures(b, q - mp.mpf("1e-11"), b) > delta
        assert np.all(np.diff(found) <= 0)
        assert found[0] == pytest.approx(np.sqrt(2 * np.log(2 / delta)), rel=1e-11)
        assert found[-1] == pytest.approx(np.sqrt(2 * np.log(1 / delta)), rel=1e-11)

    def test_no_smaller_bias_fails_more_often(self):
        """As proved for all delta of at most exp(-1/2); the largest bias fails with just delta."""
        for b, delta in itertools.product((0.01, 0.3, 1.0, 4.0), (0.6, 0.5, 0.1, 1e-4)):
            q = mp.mpf(float(sub_gaussian_margins(np.array([b]), delta)[0]))
            failures = [
                sub_gaussian_failures(mp.mpf(b), q, mp.mpf(b * share))
                for share in np.linspace(0, 1, 21)
            ]
            assert max(failures) == failures[-1] <= delta < failures[-1] * (1 + 1e-10)

    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("t", [5, 60, 400])
    def test_computed_eigenvectors_are_orthonormal(self, name, t):
        X = np.random.default_rng(t).random((t, 2))
        X[::3] = X[0]
        seq = kb.ConfidenceSequence(KERNELS[name], 1.0, 0.1)
        seq.update(X, np.zeros(t))
        path = seq.known.engine.path()
        basis = path.leading(path.eigen.eigenvectors).columns
        allowed = seq.known.engine.directions().squared_norms(np.array([1]))[0] - 1
        assert np.linalg.norm(basis.T @ basis, 2) < 1 + allowed / 2


# --- all x at once


def _with(known, count, squared):
    """The functions near the data along so many directions, by any radius; squares are relative."""
    return Projection(known, known.engine.path().leading(count), squared)


class TestProjection:
    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("t", [1, 6, 80])
    def test_valid_for_any_number_of_directions(self, name, t):
        """With the noise as long as it is allowed to be, what follows is no matter of chance."""
        rng = np.random.default_rng(t)
        function = truth(KERNELS[name], rng, 5.0)
        X, y = observe(function, rng, t, 0.3)
        noise = y - function(X)
        seq = kb.ConfidenceSequence(KERNELS[name], 5.0 * (1 + 1e-9), 0.3)
        seq.update(X, y)
        Q = np.vstack([rng.random((40, 2)), X[:3]])
        most = seq.known.engine.path().eigen.eigenvectors
        for count in sorted({1, 2, most // 3, most // 2, most} - {0}):
            if count > most:
                continue
            V = seq.known.engine.path().leading(count).columns
            squared = float(np.sum((V.T @ noise) ** 2)) / 0.3**2 * (1 + 1e-9) + 1e-12
            upper, opposite = _with(seq.known, count, squared).extremes(Q, (1, -1))
            assert np.all(upper >= function(Q) - 1e-8) and np.all(-opposite <= function(Q) + 1e-8)

    @pytest.mark.parametrize(("name", "t"), [("rbf", 8), ("matern 3/2", 20), ("linear", 9)])
    def test_equals_the_cone_program(self, name, t):
        cp = pytest.importorskip("cvxpy")
        rng = np.random.default_rng(t)
        seq, _ = sequence(KERNELS[name], rng, t)
        kernel, x, most = KERNELS[name], rng.random((1, 2)), seq.known.engine.path().eigen
        gram = kernel(np.vstack([seq.points, x]))
        values, vectors = np.linalg.eigh(gram)
        root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        for count in (1, 3, min(t, most.eigenvectors)):
            found = Projection.of(seq.known, 0.01, "sub-Gaussian", count)
            V = np.linalg.eigh(gram[:t, :t])[1][:, t - count :]
            w = cp.Variable(t + 1)
            near = cp.norm(V.T @ (gram[:t] @ w - seq.outcomes)) <= np.sqrt(found.radius.squared)
            program = cp.Problem(cp.Maximize(gram[t] @ w), [near, cp.norm(root @ w) <= 5.0])
            program.solve(solver=cp.CLARABEL)
            ours, scale = found.extremes(x, (1,))[0, 0], 5 * np.sqrt(gram[t, t])
            assert -1e-6 * scale < ours - program.value < 1e-5 * scale

    @pytest.mark.parametrize("case", CASES[:13], ids=lambda case: "-".join(map(str, case)))
    def test_against_50_digits(self, case):
        """Never too tight, for the directions as they were computed, and hardly too loose."""
        name, length_scale, variance, layout, noise_scale, norm_bound = case
        rng, t = np.random.default_rng(CASES.index(case)), 12
        X, kernel = LAYOUTS[layout](rng, t), PRECISE[name](length_scale, variance)
        y = random_data(kernel, rng, X, norm_bound, noise_scale)
        seq = kb.ConfidenceSequence(kernel, norm_bound, noise_scale)
        seq.update(X, y)
        queries = np.vstack([rng.random((2, 2)), X[:1], X[:1] + 1e-7])
        exact = Exact(
            lambda a, b: kernel_value(name, length_scale, variance, a, b),
            X, y, norm_bound, noise_scale, 0.01, 1.0,
        )  # fmt: skip
        most = seq.known.engine.path().eigen.eigenvectors
        for count in {max(most // 2, 1), most}:
            found = Projection.of(seq.known, 0.01, "sub-Gaussian", count)
            reference = Projected(exact, found.path.columns, found.radius.squared)
            upper, opposite = found.extremes(queries, (1, -1))
            for i, x in enumerate(queries):
                reference.at(x)
                trivial = norm_bound * np.sqrt(variance)
                for sign, ours in ((1, upper[i]), (-1, opposite[i])):
                    ours = min(max(ours / trivial, -1), 1)
                    assert -1e-9 < ours - reference.clipped(reference.cmm(sign)) < 1e-6
        # The estimates, with the weights as they were computed.
        V = seq.known.engine.path().leading(most).columns
        for noise, q in zip(NOISES, (_sub_gaussian, _folded)):
            weights = shortest(seq.known, queries, 0.01, noise)
            half = half_widths(seq.known, weights, margins(0.01, noise))
            bound = linear_estimate.estimated(seq.known, queries, (1, -1), 0.01, noise)
            for i, x in enumerate(queries):
                exact.at(x)
                value, width = estimated(exact, V, weights.weights[i], q)
                # Where B is large, the square root of the bias costs half of the digits.
                assert -1e-14 < half[i] / trivial - width / trivial < 1e-6
                for sign, ours in zip((1, -1), bound[:, i]):
                    assert ours >= sign * value + width
                    assert ours - (sign * value + width) < 1e-6 * trivial

    @pytest.mark.parametrize("case", CASES[:13], ids=lambda case: "-".join(map(str, case)))
    def test_the_energy_of_one_time_against_50_digits(self, case):
        """CMM with r_t in the place of R_t."""
        name, length_scale, variance, layout, noise_scale, norm_bound = case
        rng, t = np.random.default_rng(CASES.index(case)), 12
        X, kernel = LAYOUTS[layout](rng, t), PRECISE[name](length_scale, variance)
        seq = kb.ConfidenceSequence(kernel, norm_bound, noise_scale)
        y = random_data(kernel, rng, X, norm_bound, noise_scale)
        seq.update(X, y)
        for noise in NOISES:
            found = Projection.of_energy(seq.known, 0.01, noise)
            assert found.count == t
            exact = Exact(
                lambda a, b: kernel_value(name, length_scale, variance, a, b),
                X, y, norm_bound, noise_scale, 0.01, 1.0,
                radius_squared=found.radius.squared,
            )  # fmt: skip
            queries = np.vstack([rng.random((2, 2)), X[:1], X[:1] + 1e-7])
            for x, upper, opposite in zip(queries, *found.extremes(queries, (1, -1))):
                exact.at(x)
                for sign, ours in ((1, upper), (-1, opposite)):
                    ours = min(max(ours / (norm_bound * np.sqrt(variance)), -1), 1)
                    assert -1e-9 < ours - exact.clipped(exact.cmm(sign)) < 1e-6

    @pytest.mark.parametrize("engine", [None, kb.Sparse()], ids=["exact", "sparse"])
    def test_repeats_refute_a_noise_scale(self, engine):
        """Outcomes at equal points that differ by too much; directions alone may not see it."""
        rng = np.random.default_rng(0)
        X = np.repeat(rng.random((5, 1)), 20, axis=0)
        y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(100)
        seq = kb.ConfidenceSequence(RBF(0.5), 5.0, 0.1, bound=kb.FixedDesign(), engine=engine)
        seq.update(X, y)
        with pytest.raises(kb.EmptyConfidenceSetError) as caught:
            seq.bounds([[0.5]])
        assert 0.2 < caught.value.noise_lower_bound < 0.3
        least = caught.value.noise_lower_bound
        enough = kb.ConfidenceSequence(RBF(0.5), 5.0, 1.01 * least, engine=engine)
        enough.update(X, y)
        enough.bounds([[0.5]], kb.FixedDesign())

    def test_refuted_by_the_data(self):
        rng = np.random.default_rng(0)
        X = rng.random((60, 1))
        y = 4 * np.sin(20 * X[:, 0]) + 0.1 * rng.standard_normal(60)
        seq = kb.ConfidenceSequence(RBF(0.4), 1.0, 0.1, bound=kb.FixedDesign())
        seq.update(X, y)
        with pytest.raises(kb.EmptyConfidenceSetError):
            seq.bounds(X)
        found = Projection.of(seq.known, 0.01, "sub-Gaussian", 10)
        with pytest.raises(kb.EmptyConfidenceSetError) as caught:
            found.extremes(X[:2], (1,))
        enough = caught.value.norm_lower_bound, caught.value.noise_lower_bound
        for norm, sigma in ((1.01 * enough[0], 0.1), (1.0, 1.01 * enough[1])):
            other = kb.ConfidenceSequence(RBF(0.4), norm, sigma)
            other.update(X, y)
            Projection.of(other.known, 0.01, "sub-Gaussian", 10).extremes(X[:2], (1,))


def _folded(bias):
    return folded_margin(bias, mp.mpf(0.01))


def _sub_gaussian(bias):
    return sub_gaussian_margin(bias, mp.mpf(0.01))


# --- the bound


CASES_OF_WIDTHS = [
    (Matern(0.5, nu=2.5), 3),
    (RBF(0.5), 3),
    (Matern(0.5, nu=1.5), 1),
]


def _half_widths(kernel, dim, t, bounds, norm=10.0, noise=0.1, share=1.0, seed=0):
    rng = np.random.default_rng(seed)
    function = truth(kernel, rng, share * norm, dim, 20)
    seq = kb.ConfidenceSequence(kernel, norm * (1 + 1e-9), noise)
    seq.update(*observe(function, rng, t, noise, dim))
    Q = rng.random((200, dim))
    ends = [seq.bounds(Q, bound) for bound in bounds]
    return [np.mean(upper - lower) / 2 for lower, upper in ends]


class TestWidths:
    def test_narrower_than_cmm(self):
        ratios = []
        for (kernel, dim), t in itertools.product(CASES_OF_WIDTHS, (100, 300)):
            cmm, fixed, one = _half_widths(
                kernel, dim, t, (kb.CMM(), kb.FixedDesign(), kb.FixedDesign(False))
            )
            ratios.append((fixed / cmm, one / cmm))
        assert np.max(ratios) <= 1.0
        assert np.all(np.mean(ratios, axis=0) <= 0.9)

    @pytest.mark.slow
    @pytest.mark.parametrize("share", [0.5, 1.0])
    def test_narrower_than_cmm_with_much_data(self, share):
        ratios = []
        for (kernel, dim), t in itertools.product(CASES_OF_WIDTHS, (100, 1000)):
            cmm, fixed = _half_widths(kernel, dim, t, (kb.CMM(), kb.FixedDesign()), share=share)
            ratios.append(fixed / cmm)
        assert np.max(ratios) <= 1.02 and np.mean(ratios) <= (0.85 if share == 1 else 0.9)

    @pytest.mark.parametrize("t", [1, 3, 30])
    @pytest.mark.parametrize("kernel", [*CASES_OF_WIDTHS, (RBF(5.0), 2), (Matern(0.05, nu=1.5), 2)])
    def test_never_much_wider_than_cmm(self, kernel, t):
        for norm, noise, share in itertools.product((1.0, 10.0), (0.1, 1.0), (0.3, 0.95)):
            cmm, fixed = _half_widths(
                *kernel, t, (kb.CMM(), kb.FixedDesign()), norm, noise, share, seed=1
            )
            assert fixed <= 1.08 * cmm

    @pytest.mark.slow
    def test_never_much_wider_than_cmm_in_540_cases(self):
        kernels = [*CASES_OF_WIDTHS, (RBF(5.0), 2), (Matern(0.05, nu=1.5), 2)]
        counts, norms, noises = (1, 3, 10, 30, 100, 300), (1.0, 10.0, 100.0), (0.01, 0.1, 1.0)
        for kernel, t, norm, noise, share in itertools.product(
            kernels, counts, norms, noises, (0.3, 0.95)
        ):
            cmm, fixed = _half_widths(
                *kernel, t, (kb.CMM(), kb.FixedDesign()), norm, noise, share, seed=2
            )
            assert fixed <= 1.08 * cmm

    def test_each_promise_has_its_price(self):
        order = [
            kb.FixedDesign(False, noise="Gaussian"),
            kb.FixedDesign(False),
            kb.FixedDesign(False, 10),
            kb.FixedDesign(False, 1000),
        ]
        for kernel, dim in CASES_OF_WIDTHS[1:]:
            rng = np.random.default_rng(3)
            seq, _ = sequence(kernel, rng, 200, dim=dim)
            x = rng.random((1, dim))
            widths = [float(np.subtract(*seq.bounds(x, bound)[::-1])[0]) for bound in order]
            assert sorted(widths) == widths
            every = [np.subtract(*seq.bounds(x, kb.FixedDesign(noise=n))[::-1])[0] for n in NOISES]
            assert every[1] < every[0]

    def test_no_more_than_thrice_the_time_of_cmm(self):
        rng = np.random.default_rng(0)
        kernel, dim, t = RBF(0.5), 3, 500
        X, y = observe(truth(kernel, rng, 10.0, dim, 20), rng, t, 0.1, dim)
        Q, best = rng.random((500, dim)), []
        for bound in (kb.CMM(), kb.FixedDesign(), kb.FixedDesign(False)):
            times = []
            for _ in range(3):
                seq = kb.ConfidenceSequence(kernel, 10.1, 0.1)
                seq.update(X, y)
                start = time.process_time()
                seq.bounds(Q, bound)
                times.append(time.process_time() - start)
            best.append(min(times))
        assert max(best[1:]) < 3 * best[0] + 0.05


class TestBound:
    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=() if name in ("all x", "one x") else pytest.mark.slow)
            for name in DESIGNS
        ],
    )
    def test_keeps_the_contract(self, name):
        bound = DESIGNS[name]
        report = kb.check_bound(bound)
        assert report.follows_units and report.width < 0.9 and report.misses < 6

    def test_the_check_finds_one_that_is_too_narrow(self, monkeypatch):
        honest = projections.relative_radii
        monkeypatch.setattr(projections, "relative_radii", lambda *asked: honest(*asked) / 10)
        with pytest.raises(kb.KernelBoundsError, match="breaks the contract"):
            kb.check_bound(kb.FixedDesign(noise="Gaussian"))

    @design
    def test_without_noise_it_is_exact(self, bound):
        seq, _ = sequence(Matern(0.5, nu=1.5), np.random.default_rng(0), 9, noise_scale=0.0)
        X = np.random.default_rng(1).random((5, 2))
        np.testing.assert_array_equal(seq.bounds(X, bound), seq.bounds(X))

    @design
    def test_of_nothing_but_zero(self, bound):
        seq = kb.ConfidenceSequence(RBF(0.5), 0.0, 0.1)
        seq.update([[0.1], [0.2]], [0.01, -0.02])
        assert np.all(np.array(seq.bounds([[0.1], [0.7]], bound)) == 0)

    @design
    def test_where_all_functions_vanish(self, bound):
        seq = kb.ConfidenceSequence(DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"), 2.0, 0.1)
        seq.update([[0.0, 0.0]] * 3, [0.01, -0.02, 0.05])
        lower, upper = seq.bounds([[0.0, 0.0], [1.0, 0.0]], bound)
        np.testing.assert_allclose([lower, upper], [[0, -2], [0, 2]], atol=1e-12)

    @design
    @pytest.mark.parametrize("size", [1e-90, 1e90])
    def test_very_large_and_small_outcomes(self, bound, size):
        rng = np.random.default_rng(0)
        X, y, Q = rng.random((20, 2)), rng.standard_normal(20), rng.random((4, 2))
        found = []
        for unit in (1.0, size):
            seq = kb.ConfidenceSequence(RBF(0.5), 5 * unit, 1.5 * unit, bound=bound)
            seq.update(X, y * unit)
            found.append(np.array(seq.bounds(Q)) / unit)
        np.testing.assert_allclose(*found, rtol=1e-6)

    @design
    def test_one_observation_and_none(self, bound):
        seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, bound=bound)
        assert [one.tolist() for one in seq.bounds([0.5])] == [[-2.0], [2.0]]
        seq.update([0.5], 0.3)
        lower, upper = seq.bounds([[0.5], [9.0]])
        assert -0.3 < lower[0] < 0.3 < upper[0] < 0.9 and upper[1] > 1.99

    @design
    def test_noise_of_each_observation(self, bound):
        """Two observations of one kind are one with the noise divided by sqrt(2)."""
        rng = np.random.default_rng(0)
        X, Q = rng.random((20, 2)), rng.random((4, 2))
        y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(20)
        twice = kb.ConfidenceSequence(RBF(0.5), 9.0, 0.5)
        twice.update(np.tile(X, (2, 1)), np.tile(y, 2))
        once = kb.ConfidenceSequence(RBF(0.5), 9.0, 0.5)
        once.update(X, y, noise_scale=0.5 / np.sqrt(2))
        own = (
            Projection.of(seq.known, 0.01, "Gaussian", 7).extremes(Q, (1, -1))
            for seq in (twice, once)
        )
        np.testing.assert_allclose(*own, rtol=1e-6)
        single = (
            linear_estimate.estimated(s.known, Q, (1, -1), 0.01, "Gaussian") for s in (twice, once)
        )
        # Ridges are found on other grids, to about a thousandth.
        np.testing.assert_allclose(*single, rtol=1e-3)
        lower, upper = once.bounds(Q, bound)
        assert np.all(lower < upper)

    @design
    def test_offsets_and_parts(self, bound):
        rng = np.random.default_rng(0)
        X, Q = rng.random((40, 2)), rng.random((5, 2))
        y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(40)
        plain, shifted = (
            kb.ConfidenceSequence(RBF(0.5), 5.0, 0.1, offset=offset) for offset in (0.0, 50.0)
        )
        plain.update(X, y)
        shifted.update(X, y + 50)
        np.testing.assert_allclose(
            np.array(shifted.bounds(Q, bound)) - 50, plain.bounds(Q, bound), atol=1e-9
        )
        for options in ({"offset": kb.Offset(45, within=10)}, {}):
            kernel = kb.Parts([(kb.OnInputs(RBF(0.5), [0]), 4.0), (Matern(0.5, nu=2.5), 1.0)])
            seq = kb.ConfidenceSequence(kernel, noise_scale=0.1, **options)
            seq.update(X, y + (50 if options else 0))
            lower, upper = seq.bounds(Q, bound)
            level = np.sin(3 * Q[:, 0]) + (50 if options else 0)
            assert np.all(lower < level) and np.all(level < upper) and np.all(upper - lower < 3)

    @design
    def test_functionals(self, bound):
        rng = np.random.default_rng(0)
        X = rng.random((60, 1))
        seq = kb.ConfidenceSequence(RBF(0.5), 4.0, 0.05)
        seq.update(X, np.sin(3 * X[:, 0]) + 0.05 * rng.standard_normal(60))
        x, grid = [0.4], np.linspace(0, 1, 101)[:, None]
        value = seq.bounds_of(Sum([x], [1.0]), bound)
        np.testing.assert_allclose(value, np.ravel(seq.bounds([x], bound)), atol=1e-6)
        for functional, true in (
            (Difference([0.2], [0.7]), np.sin(0.6) - np.sin(2.1)),
            (Average(grid), (1 - np.cos(3)) / 3),
            (Derivative(x, axis=0), 3 * np.cos(1.2)),
        ):
            lower, upper = seq.bounds_of(functional, bound)
            assert lower < true < upper
            cmm = seq.bounds_of(functional)
            assert upper - lower < 1.02 * (cmm[1] - cmm[0])

    def test_where_an_estimate_fails_the_others_stand(self, monkeypatch):
        """Bounds for one x that are off never make an empty interval of one for all x."""
        seq, _ = sequence(RBF(0.5), np.random.default_rng(0), 30)
        X = np.random.default_rng(1).random((4, 2))
        stated = dataclasses.replace(seq.assumptions, delta=0.005)
        known = dataclasses.replace(seq.known, stated=stated)
        half = kb.FixedDesign().extremes(known, X, (1, -1))
        off = np.array([[100.0], [-99.9]]) * np.ones(4)
        monkeypatch.setattr(
            "kernelbounds.bounds.fixed_designs.fixed_design.estimated", lambda *_: off
        )
        np.testing.assert_array_equal(seq.bounds(X, kb.FixedDesign(False))[1], half[0])

    def test_bounds_that_exclude_each_other_are_refused(self, monkeypatch):
        seq, _ = sequence(RBF(0.5), np.random.default_rng(0), 30)
        monkeypatch.setattr(
            Projection, "extremes", lambda one, *_: np.array([[4.0], [-3.9 - 0.2 * one.whole]])
        )
        with pytest.raises(kb.KernelBoundsError, match="exclude each other"):
            seq.bounds([[0.5, 0.5]], kb.FixedDesign())

    @design
    def test_rows_in_any_order(self, bound):
        """Nor does it matter how R_t would be made."""
        seq, _ = sequence(Matern(0.5, nu=1.5), np.random.default_rng(0), 40)
        Q, order = np.random.default_rng(1).random((5, 2)), np.random.default_rng(2).permutation(40)
        other = kb.ConfidenceSequence(seq.kernel, 5.0, 0.1, mixture_scale=2.0)
        other.update(seq.points[order], seq.outcomes[order])
        np.testing.assert_allclose(other.bounds(Q, bound), seq.bounds(Q, bound), rtol=1e-6)

    def test_the_choice_of_directions_does_not_look_at_outcomes(self):
        rng = np.random.default_rng(0)
        X, found = rng.random((50, 2)), []
        for y in (rng.standard_normal(50), np.zeros(50)):
            seq = kb.ConfidenceSequence(RBF(0.3), 100.0, 0.5)
            seq.update(X, y)
            chosen = Projection.of(seq.known, 0.01, "sub-Gaussian")
            weights = shortest(seq.known, X[:5], 0.01, "Gaussian")
            found.append((chosen.path.columns, weights.weights, weights.bias))
        for one, other in zip(*found):
            np.testing.assert_array_equal(one, other)


class TestRefusals:
    @pytest.mark.parametrize(
        "wrong",
        [{"noise": "Laplace"}, {"noise": 1}, {"points": 0}, {"points": 1.5}, {"points": 3},
         {"simultaneous": "yes"}],
    )  # fmt: skip
    def test_settings(self, wrong):
        with pytest.raises(kb.InputError):
            kb.FixedDesign(**wrong)

    @design
    def test_policies(self, bound):
        seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, bound=bound)
        with pytest.raises(kb.InputError, match="chooses by them where to observe next"):
            kb.KernelUCB(seq, kb.Box([0], [1]))
        policy = kb.RandomPolicy(kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1), kb.Box([0], [1]))
        with pytest.raises(kb.InputError, match="is not valid"):
            policy.bounds([[0.5]], bound)

    def test_reproductions(self):
        from kernelbounds.paper.specs import bound_of

        with pytest.raises(kb.InputError, match="is not valid"):
            bound_of("kernelbounds:FixedDesign")

    def test_regret_bounds_of_runs(self):
        seq, _ = sequence(RBF(0.5), np.random.default_rng(0), 5, bound=kb.FixedDesign())
        with pytest.raises(kb.InputError, match="the lemma is about"):
            theory.run_bound(seq)

    def test_a_comparison_is_none(self):
        seq, _ = sequence(RBF(0.5), np.random.default_rng(0), 40)
        found = theory.compare(seq, seq.points[:9], bounds={"fixed": kb.FixedDesign()})
        assert "fixed" in str(found)

    def test_gradients(self):
        seq, _ = sequence(RBF(0.5), np.random.default_rng(0), 5)
        with pytest.raises(kb.InputError, match="not known"):
            seq.gradients([[0.5, 0.5]], kb.FixedDesign())

    def test_more_points_than_promised(self):
        seq, _ = sequence(RBF(0.5), np.random.default_rng(0), 5)
        X = np.random.default_rng(1).random((6, 2))
        bound = kb.FixedDesign(False, 5)
        with pytest.raises(kb.InputError, match="5 points together, got 6 different"):
            seq.bounds(X, bound)
        seq.bounds(X[:5], bound)
        seq.bounds(np.tile(X[:5], (3, 1)), bound)
        with pytest.raises(kb.InputError, match="5 points together"):
            seq.bounds_of([Sum([x], [1.0]) for x in X], bound)
        many = np.random.default_rng(2).random((2000, 2))
        with pytest.raises(kb.InputError, match="got 2000 different"):
            seq.bounds(many, kb.FixedDesign(False, 1500))
        assert len(seq.upper(many, kb.FixedDesign(False))) == 2000

    def test_a_second_time_is_warned_of_once(self):
        seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seq.bounds([0.5], kb.FixedDesign())  # before there are data
            seq.update([0.5], 0.3)
            seq.bounds([0.5], kb.FixedDesign())
            seq.bounds([0.7], kb.FixedDesign(False))
            seq.update([0.6], 0.3)
            seq.bounds([0.5])
        with pytest.warns(UserWarning, match="one number of observations") as caught:
            seq.bounds([0.5], kb.FixedDesign())
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seq.update([0.7], 0.3)
            seq.bounds([0.5], kb.FixedDesign())


# --- coverage: long runs

DELTA, RUNS, GRID = 0.1, 1000, np.linspace(0, 1, 30)[:, None]
KERNEL, NORM, NOISE, POINTS = RBF(0.3), 1.0, 0.1, 20
DRAWS = {
    "Gaussian": lambda rng: rng.standard_normal(POINTS),
    "Rademacher": lambda rng: rng.choice([-1.0, 1.0], POINTS),
    "uniform": lambda rng: rng.uniform(-1, 1, POINTS) * np.sqrt(3),
}


def _misses(bound, draw, runs):
    """Runs in which the truth, of norm B, leaves the bounds at all x, or at one of them."""
    misses = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = rng.random((POINTS, 1))
        where = GRID if bound.guarantee.uniform else GRID[[seed % len(GRID)]]
        seq = kb.ConfidenceSequence(KERNEL, NORM * (1 + 1e-9), NOISE, DELTA, bound=bound)
        if bound.guarantee.uniform:
            function = truth(KERNEL, rng, NORM, dim=1, centres=10)
        else:
            function = _most_biased(X, where)
        seq.update(X, function(X) + NOISE * draw(rng))
        try:
            lower, upper = seq.bounds(where)
        except kb.KernelBoundsError:
            misses += 1
            continue
        values = function(where)
        misses += bool(np.any(values < lower) or np.any(values > upper))
    return misses


def _most_biased(X, x):
    """A function of norm B that the estimate at x misses by the most: what it does not see of x."""
    seq = kb.ConfidenceSequence(KERNEL, NORM, NOISE, DELTA)
    seq.update(X, np.zeros(len(X)))
    found = shortest(seq.known, x, DELTA / 2, "Gaussian")
    path = seq.known.engine.path()
    w = path.leading(path.eigen.eigenvectors).columns @ found.weights[0]
    return kb.RKHSFunction(KERNEL, np.vstack([x, X]), np.append(1.0, -w)).rescaled(NORM)


COVERED = {
    (name, noise): (bound, noise)
    for name, bound in DESIGNS.items()
    for noise in DRAWS
    if name != "five x" and (bound.guarantee.noise != "Gaussian" or noise == "Gaussian")
}


@pytest.mark.slow
@pytest.mark.parametrize("case", COVERED, ids="-".join)
def test_coverage(case):
    bound, noise = COVERED[case]
    assert not too_many(_misses(bound, DRAWS[noise], RUNS), RUNS, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all x, Gaussian", "one x, Gaussian"])
def test_a_radius_that_is_too_small_is_noticed(name, monkeypatch):
    """By 30 percent, in the same test."""
    honest, width = projections.relative_radii, linear_estimate.half_widths
    monkeypatch.setattr(projections, "relative_radii", lambda *asked: 0.49 * honest(*asked))
    monkeypatch.setattr(linear_estimate, "half_widths", lambda *asked: 0.7 * width(*asked))
    assert too_many(_misses(DESIGNS[name], DRAWS["Gaussian"], RUNS), RUNS, DELTA)
