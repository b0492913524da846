"""The lemmas of the regret analysis as properties, and the numbers behind them.

A kernel on the circle whose eigenvalues and eigenfunctions are known exactly makes the lemmas on
eigenvalue decay testable with their true constants.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KERNELS, sequence
from scipy.stats import binom
from sklearn.gaussian_process.kernels import RBF, DotProduct, Kernel, Matern

import kernelbounds as kb
from kernelbounds import theory
from kernelbounds.theory.information_gain import remaining_gains
from kernelbounds.theory.spectrum import sobol

PSI = math.sqrt(2)
MODES = 400

instances = st.fixed_dictionaries(
    {
        "name": st.sampled_from(sorted(KERNELS)),
        "seed": st.integers(0, 10**6),
        "t": st.integers(1, 60),
        "ridge": st.floats(1e-3, 10.0),
        "repeats": st.booleans(),
    }
)
ridges = st.floats(1e-4, 1e3)
thresholds = st.sampled_from([0.3, 1.0, 2.0])
polynomial = st.builds(
    theory.PolynomialDecay,
    st.floats(1e-3, 1e3), st.floats(1.05, 8.0), st.floats(1.0, 3.0), st.floats(0.01, 100.0),
)  # fmt: skip
exponential = st.builds(
    theory.ExponentialDecay,
    st.floats(1e-3, 1e3), st.floats(0.02, 20.0), st.sampled_from([1.0, 0.9, 0.5, 1 / 3, 0.2]),
    st.floats(1.0, 3.0), st.floats(0.01, 100.0),
)  # fmt: skip


def _instance(i, dim=2):
    rng = np.random.default_rng(i["seed"])
    X = rng.random((i["t"], dim))
    if i["repeats"]:
        X = X[rng.integers(max(i["t"] // 3, 1), size=i["t"])]
    return KERNELS[i["name"]], X, i["ridge"]


def _gain(kernel, X, ridge):
    return np.linalg.slogdet(np.eye(len(X)) + kernel(X) / ridge)[1] / 2


class Circle(Kernel):
    """sum_m xi_m phi_m(x) phi_m(y) on [0, 1) with 1, sqrt(2) cos and sqrt(2) sin as phi."""

    def __init__(self, decay):
        self.decay = decay

    def spectrum(self):
        """xi_1 and the eigenvalue of each pair, which is the envelope at its second member."""
        return self.decay.envelope(np.append(1, 2 * np.arange(1, MODES) + 1))

    def __call__(self, X, Y=None, eval_gradient=False):
        xi = self.spectrum()
        cosine = np.cos(2 * np.pi * (X - (X if Y is None else Y).T))
        return np.polynomial.chebyshev.chebval(cosine, np.append(xi[0], 2 * xi[1:]))

    def diag(self, X):
        return np.full(len(X), self.kappa)

    @property
    def kappa(self):
        xi = self.spectrum()
        return float(xi[0] + 2 * xi[1:].sum())

    def is_stationary(self):
        return True


def _circle(kind, constant, exponent, rate=0.3):
    """The kernel, and its decay with all constants right."""
    if kind == "polynomial":
        raw = theory.PolynomialDecay(constant, exponent)
        kernel = Circle(raw)
        return kernel, theory.PolynomialDecay(constant, exponent, PSI, kernel.kappa)
    raw = theory.ExponentialDecay(constant, rate, exponent)
    kernel = Circle(raw)
    return kernel, theory.ExponentialDecay(constant, rate, exponent, PSI, kernel.kappa)


CIRCLES = [
    ("polynomial", 1.0, 1.3), ("polynomial", 0.2, 2.0), ("polynomial", 3.0, 4.0),
    ("exponential", 1.0, 1.0), ("exponential", 2.0, 0.5), ("exponential", 0.5, 1 / 3),
]  # fmt: skip


class TestInformationGain:
    @settings(max_examples=30, deadline=None)
    @given(instances)
    def test_is_the_log_determinant_along_the_run(self, i):
        kernel, X, ridge = _instance(i)
        found = theory.information_gains(kernel, X, ridge)
        slow = [_gain(kernel, X[: t + 1], ridge) for t in range(len(X))]
        assert found == pytest.approx(slow, abs=1e-8)
        assert theory.information_gain(kernel, X, ridge) == found[-1]

    @pytest.mark.parametrize("name", ["rbf", "matern 3/2", "linear", "scaled sum"])
    @pytest.mark.parametrize("ridge", [0.01, 0.5, 20.0])
    def test_the_bracket_contains_the_maximum_over_multisets(self, name, ridge):
        rng = np.random.default_rng(3)
        kernel, X = KERNELS[name], rng.random((6, 2))
        found = theory.maximum_information_gain(kernel, X, ridge, 4)
        for t in range(1, 5):
            chosen = itertools.combinations_with_replacement(range(6), t)
            best = max(_gain(kernel, X[list(c)], ridge) for c in chosen)
            assert found.lower[t - 1] <= best * (1 + 1e-9)
            assert best <= found.upper[t - 1] * (1 + 1e-9)
        assert found.lower[-1] == pytest.approx(_gain(kernel, X[found.chosen], ridge))
        assert found.lower[0] == pytest.approx(found.upper[0])

    def test_points_repeat_where_that_is_best(self):
        """Two far points, large ridge: the second visit is worth as much as the first."""
        found = theory.maximum_information_gain(RBF(0.1), [[0.0], [9.0]], 100.0, 6)
        assert sorted(found.chosen) == [0, 0, 0, 1, 1, 1]

    @pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.3, nu=1.5), DotProduct(0.5)])
    def test_lazy_is_naive(self, kernel):
        rng = np.random.default_rng(0)
        X = rng.random((300, 2))
        found = theory.maximum_information_gain(kernel, X, 0.05, 80)
        chosen = []
        for t in range(80):
            k = kernel(X[chosen], X) if chosen else np.empty((0, 300))
            solved = np.linalg.solve(kernel(X[chosen]) + 0.05 * np.eye(t), k) if t else k
            variance = kernel.diag(X) - np.sum(k * solved, axis=0)
            # Where several are best up to rounding, any of them will do.
            assert variance[found.chosen[t]] == pytest.approx(variance.max(), abs=1e-9)
            chosen.append(found.chosen[t])
        assert found.lower == pytest.approx(theory.information_gains(kernel, X[chosen], 0.05))
        assert np.all(np.diff(found.lower) > 0) and np.all(found.upper >= found.lower)
        assert np.all(found.upper <= found.lower / (1 - 1 / math.e))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.floats(0.0, 50.0), min_size=1, max_size=5), st.integers(1, 5))
    def test_remaining_gains_are_the_best_allocation(self, potentials, t):
        v = np.array(potentials)
        found = remaining_gains(v, t)[-1]
        best = 0.0
        for c in itertools.combinations_with_replacement(range(len(v)), t):
            best = max(best, np.log1p(np.bincount(c, minlength=len(v)) * v).sum() / 2)
        assert found == pytest.approx(best, abs=1e-9)

    def test_remaining_gains_at_the_extremes(self):
        assert remaining_gains(np.zeros(3), 4) == pytest.approx(np.zeros(4))
        for v in (1e-310, 1e-200, 1e-17):
            found = remaining_gains(np.full(3, v), 10)
            assert found == pytest.approx(np.arange(1, 11) * v / 2, rel=1e-12, abs=1e-299)
        found = remaining_gains(np.array([1e200, 1e-200]), 3)
        assert found == pytest.approx(np.log1p(1e200 * np.arange(1, 4)) / 2)

    def test_greedy_is_sharp_for_long_runs(self):
        found = theory.maximum_information_gain(RBF(0.5), sobol(256, 2), 0.1, 400)
        assert found.upper[-1] < 1.3 * found.lower[-1]

    def test_refuses(self):
        for change in (
            {"ridge": 0.0}, {"ridge": -1.0}, {"rounds": 0}, {"candidates": [1.0]},
            {"kernel": "rbf"},
        ):  # fmt: skip
            given = {"kernel": RBF(), "candidates": [[0.0]], "ridge": 1.0, "rounds": 2}
            with pytest.raises(kb.InputError):
                theory.maximum_information_gain(**(given | change))
        with pytest.raises(kb.InputError, match="ridge"):
            theory.information_gain(RBF(), np.zeros((30, 1)), 1e-300)


class TestPotentials:
    @settings(max_examples=40, deadline=None)
    @given(instances)
    def test_determinant_sum_and_count(self, i):
        """Lemmas D.8, D.4 and D.9."""
        kernel, X, ridge = _instance(i)
        v = theory.elliptical_potentials(kernel, X, ridge)
        gains = theory.information_gains(kernel, X, ridge)
        assert np.log1p(v).sum() / 2 == pytest.approx(gains[-1])
        sums = np.cumsum(np.minimum(1, v))
        assert np.all(sums <= theory.potential_sum_bound(gains) * (1 + 1e-9))
        assert np.all(sums <= 2 * gains / math.log(2) * (1 + 1e-9))  # the sharper constant
        for b in (0.5, 1.0, 2.0):
            counts = theory.potential_counts(kernel, X, ridge, b)
            assert np.all(counts <= theory.potential_count_bound(gains, b) * (1 + 1e-9))

    @settings(max_examples=15, deadline=None)
    @given(instances, thresholds)
    def test_the_count_by_its_own_gain(self, i, b):
        """Lemma D.9, the first inequality: gamma at the count, over the points of the run."""
        kernel, X, ridge = _instance(i)
        bracket = theory.maximum_information_gain(kernel, X, ridge, len(X))
        most = theory.self_consistent_counts(bracket.upper, b)
        assert np.all(theory.potential_counts(kernel, X, ridge, b) <= most)

    def test_the_count_at_the_edge(self):
        """alpha = kappa/b^2: the first potential is b^2 and counts; above, none does."""
        X = [[0.0], [50.0], [100.0]]
        for b in (0.5, 1.0, 2.0, 8.0):
            assert theory.potential_counts(RBF(0.1), X, 1 / b**2, b)[-1] == 3
            assert theory.potential_counts(RBF(0.1), X, 1.0001 / b**2, b)[-1] == 0
            decay = theory.ExponentialDecay(1.0, 1.0, 1.0)
            at, above = theory.potential_count_bound_under(decay, [1 / b**2, 1.0001 / b**2], b)
            assert at >= 3 and above == 0


class TestDecay:
    def test_envelopes_and_exponents(self):
        assert theory.decay_exponent(RBF(0.3), 3) == pytest.approx(1 / 3)
        assert theory.decay_exponent(2.0 * Matern(0.3, nu=2.5), 2) == pytest.approx(3.5)
        assert theory.PolynomialDecay(2.0, 3.0).envelope([1, 2]) == pytest.approx([2, 0.25])
        found = theory.ExponentialDecay(2.0, 0.5, 0.5).envelope(4)
        assert found == pytest.approx(2 * math.exp(-1))

    @pytest.mark.parametrize("beta", [1.0, 0.999, 0.5, 0.25])
    def test_shape_term_bounds_the_tail(self, beta):
        """sum_{m > D} exp(-C m^beta) <= (G/C_e1 psi^2) exp(C~ - C D^beta/2), behind Eq. (33)."""
        for rate in (0.1, 1.0, 5.0):
            decay = theory.ExponentialDecay(1.0, rate, beta)
            m = np.arange(1, 200_000)
            tails = np.cumsum(np.exp(-rate * m**beta)[::-1])[::-1]  # from m on
            D = m[:1000] - 1
            falling = rate * D**beta * (1 if beta == 1 else 0.5)
            assert np.all(tails[:1000] <= decay.growth * np.exp(decay.shape_term - falling) + 1e-12)

    @settings(max_examples=60, deadline=None)
    @given(polynomial)
    def test_tail_constant_bounds_the_tail(self, decay):
        m = np.arange(1, 20_000)
        tails = np.cumsum(decay.envelope(m)[::-1])[::-1]
        D = m[:1000]
        assert np.all(tails[1:1001] <= decay.tail_constant * D ** (1 - decay.exponent) * (1 + 1e-9))

    def test_nystrom_on_the_circle(self):
        kernel, decay = _circle("polynomial", 1.0, 3.0)
        found = theory.nystrom_spectrum(kernel, 1, 21, 1024)
        truth = np.append(kernel.spectrum()[0], np.repeat(kernel.spectrum()[1:11], 2))
        assert found.eigenvalues == pytest.approx(truth, rel=1e-2)
        assert found.kernel_bound == pytest.approx(kernel.kappa)
        assert found.eigenfunction_bound >= PSI * 0.99
        assert theory.is_above(decay, truth)

    @pytest.mark.parametrize(
        "kernel", [RBF(0.5), RBF(0.2), Matern(0.5, nu=2.5), Matern(0.2, nu=1.5)]
    )
    @pytest.mark.parametrize("dim", [1, 2])
    def test_fitted_envelopes_are_above(self, kernel, dim):
        found = theory.nystrom_spectrum(kernel, dim, 48, 512)
        decay = theory.fitted_decay(kernel, dim, 48, 512)
        assert theory.is_above(decay, found.eigenvalues)
        assert not theory.is_above(
            type(decay)(**(vars(decay) | {"constant": 0.99 * decay.constant})), found.eigenvalues
        )
        # Matern: the known exponent is that of the numbers.
        if isinstance(decay, theory.PolynomialDecay) and dim == 1:
            tail = np.arange(16, 49)
            slope = np.polyfit(np.log(tail), np.log(found.eigenvalues[15:]), 1)[0]
            assert -slope == pytest.approx(decay.exponent, rel=0.1)

    def test_refuses(self):
        for make in (
            lambda: theory.PolynomialDecay(1.0, 1.0),
            lambda: theory.PolynomialDecay(0.0, 2.0),
            lambda: theory.PolynomialDecay(1.0, 2.0, kernel_bound=-1.0),
            lambda: theory.ExponentialDecay(1.0, 1.0, 1.01),
            lambda: theory.ExponentialDecay(1.0, 0.0, 1.0),
            lambda: theory.ExponentialDecay(1.0, 1.0, 0.0),
            lambda: theory.nystrom_spectrum(RBF(), 1, 2000, 100),
            lambda: theory.decay_exponent(DotProduct(), 2),
            lambda: theory.polynomial_envelope(theory.nystrom_spectrum(RBF(), 1), 0.9),
            lambda: theory.exponential_envelope(theory.nystrom_spectrum(RBF(), 1), 2.0),
        ):
            with pytest.raises(kb.InputError):
                make()


class TestBoundsUnderDecay:
    @pytest.mark.parametrize("circle", CIRCLES, ids=str)
    @pytest.mark.parametrize("ridge", [1e-3, 0.1, 1.0, 30.0])
    def test_gains_and_counts_on_the_circle(self, circle, ridge):
        """Lemmas D.3, D.10 and D.11 with the true constants, on runs made to be hard."""
        kernel, decay = _circle(*circle)
        rng = np.random.default_rng(1)
        grid = np.arange(120)[:, None] / 120
        greedy = theory.maximum_information_gain(kernel, grid, ridge, 120).chosen
        for X in (grid, rng.permutation(grid), rng.random((120, 1)), grid[greedy], 0 * grid):
            gains = theory.information_gains(kernel, X, ridge)
            assert np.all(gains <= theory.information_gain_bound(decay, np.arange(1, 121), ridge))
            for b in (0.3, 1.0, 2.0):
                counts = theory.potential_counts(kernel, X, ridge, b)
                assert counts[-1] <= theory.potential_count_bound_under(decay, ridge, b)

    def test_the_printed_gain_bound_fails_below_two(self):
        """Without 1/(beta_p - 1), Eq. (32) is below the gain of equispaced points."""
        beta, T, modes = 1.05, 500, 100_000
        xi = theory.PolynomialDecay(1.0, beta).envelope(2 * np.arange(1, modes) + 1)
        kappa = 1 + 2 * xi.sum()
        # The kernel matrix is circulant: mode j goes to the frequencies j and -j modulo T.
        j = np.arange(1, modes)
        values = np.bincount(j % T, xi, T) + np.bincount(-j % T, xi, T)
        values[0] += 1.0
        ridge = 5.0
        gain = np.log1p(T * values / ridge).sum() / 2
        log_term = math.log1p(kappa * T / ridge)
        printed = (PSI**2 * T / ridge) ** (1 / beta) * log_term ** (1 - 1 / beta) + log_term
        ours = theory.information_gain_bound(
            theory.PolynomialDecay(1.0, beta, PSI, kappa), T, ridge
        )
        assert printed < gain <= ours

    @settings(max_examples=150, deadline=None)
    @given(st.one_of(polynomial, exponential), ridges, thresholds)
    def test_counts_solve_the_inequality(self, decay, ridge, b):
        """Whatever satisfies n <= 2 gamma_n/ln(1 + b^2), by Lemma D.3, is below the components."""
        components = theory.count_components(decay, ridge, b)
        most = float(np.max(list(components.values())))
        n = np.unique(np.concatenate([
            np.geomspace(1, 1e3 * max(most, 1), 4000), np.linspace(1, 2 * max(most, 1), 2000),
        ]))  # fmt: skip
        allowed = n <= theory.potential_count_bound(
            theory.information_gain_bound(decay, n, ridge), b
        )
        assert not np.any(allowed & (n > most * (1 + 1e-9)))

    @settings(max_examples=60, deadline=None)
    @given(st.floats(0.0, 100.0), st.floats(1e-6, 1e4))
    def test_solving_logarithmic_inequalities(self, a, b):
        """Cor. D.6 and Lemma D.7."""
        X = np.concatenate([np.geomspace(1e-9, 1e6, 3000), np.linspace(1e-3, 2000, 3000)])
        assert np.all(X[a * np.log1p(b * X) >= X] <= theory.solve_log1p(a, b) * (1 + 1e-9))
        assert np.all(X[a * np.log(b * X) >= X] <= theory.solve_log(a, b) * (1 + 1e-9))

    def test_components(self):
        poly, one = theory.PolynomialDecay(1.0, 3.0), theory.ExponentialDecay(1.0, 0.5, 1.0)
        half = theory.ExponentialDecay(1.0, 0.5, 0.5)
        assert list(theory.count_components(poly, 0.1)) == ["logarithmic", "polynomial"]
        assert list(theory.count_components(one, 0.1)) == list("ABCDE")
        assert list(theory.count_components(half, [0.1, 1.0])) == list("ABCDEF")
        # By hand, from the print, at b^2 = e - 1 where ln(1 + b^2) = 1.
        b, r = math.sqrt(math.e - 1), math.e / (math.e - 1)
        found = theory.count_components(one, 0.1, b)
        hand = {
            "A": 0.1 * 0.5, "B": 4 * r * math.log(41), "C": 4 * 4 * math.log(2) ** 2,
            "D": 16 * (2 * r) ** 2 * math.log(80**0.5 * 2 * 2) ** 2,
            "E": 16 * (2 * r) ** 2 * math.log((4 / 0.05) ** 0.5 * 2 * 2) ** 2,
        }  # fmt: skip
        assert {k: float(v) for k, v in found.items()} == pytest.approx(hand)
        found, shape = theory.count_components(half, 0.1, b), math.log(4) - 1
        few = (8 * shape) ** 2 + 1
        hand = {
            "A": 0.1 * 0.25 * math.exp(-shape) / 2, "B": 4 * r * math.log(41),
            "C": 4 * 64 * math.log(2) ** 3,
            "D": 4 * 64 * (3 * r) ** 3 * math.log(80 ** (1 / 3) * 8 ** (2 / 3) * 3) ** 3,
            "E": 4 * 64 * (3 * r) ** 3 * math.log(320 ** (1 / 3) * 8 ** (2 / 3) * 3) ** 3,
            "F": 2 * r * few * math.log(1 + 20 * few),
        }  # fmt: skip
        assert {k: float(v) for k, v in found.items()} == pytest.approx(hand)
        # The tighter polynomial component is below the printed one.
        tight = theory.count_components(poly, 0.1, b)["polynomial"]
        A = 4**1.5 * 10**0.5
        assert tight == pytest.approx(r * A * math.log1p(10 * A))
        assert tight < r**1.5 * A * math.log1p(10 * A)

    def test_a_negative_bracket_counts_as_zero(self):
        """Large ridge: ln T + C_beta < 0, where the print has a root of a negative number."""
        for beta in (1.0, 0.5):
            decay = theory.ExponentialDecay(1e-3, 1.0, beta)
            assert theory.information_gain_bound(decay, 5, 50.0) == pytest.approx(math.log1p(0.1))

    def test_arrays(self):
        decay = theory.PolynomialDecay(1.0, 3.0)
        T = np.array([10, 100, 1000])
        assert theory.information_gain_bound(decay, T, 0.1).shape == (3,)
        assert theory.information_gain_bound(decay, T[:, None], [0.1, 1.0]).shape == (3, 2)
        assert theory.regret_bound_under(decay, 10, 0.1, 0.01, T, T**-0.25).shape == (3,)
        for bad in (0, -1.0, np.nan, "ten", [1, np.inf]):
            with pytest.raises(kb.InputError):
                theory.information_gain_bound(decay, bad, 0.1)
        with pytest.raises(kb.InputError):
            theory.information_gain_bound(decay, 10, 0.0)
        with pytest.raises(kb.InputError):
            theory.information_gain_bound(RBF(), 10, 1.0)


class TestRates:
    def test_matern_in_the_papers_form(self):
        for nu, d in itertools.product((0.75, 1.5, 2.5), (1, 2, 3)):
            noisy = theory.regret_rate(Matern(0.5, nu=nu), d)
            assert noisy.power == pytest.approx((nu + 2 * d) / (2 * nu + 2 * d))
            assert noisy.log_power == pytest.approx(2 * nu / (2 * nu + d))
            c = kb.mixture_scale(Matern(0.5, nu=nu), d, 1000)
            assert noisy.tuning(1000) == pytest.approx(c)
            quiet = theory.regret_rate(Matern(0.5, nu=nu), d, noiseless=True)
            below = 2 * nu**2 + 2 * nu * d + d**2
            assert quiet.power == pytest.approx((nu * d + d**2) / below)
            assert quiet.tuning_power == pytest.approx(-(2 * nu**2 + 2 * nu * d) / below)
            assert quiet.below_root == (nu > d / math.sqrt(2))

    def test_rbf(self):
        noisy, quiet = (theory.regret_rate(RBF(), 3, noiseless=n) for n in (False, True))
        assert (noisy.power, noisy.log_power, noisy.tuning_power) == pytest.approx((0.5, 4, 0))
        assert (quiet.power, quiet.log_power, quiet.tuning_power) == pytest.approx((0, 4, -1))
        assert str(quiet) == "ln(T)^4" and quiet.below_root and not noisy.below_root

    @pytest.mark.parametrize("beta", [1.2, 2.0, 3.5, 6.0])
    @pytest.mark.parametrize("noiseless", [False, True])
    def test_the_explicit_bound_grows_at_the_polynomial_rate(self, beta, noiseless):
        decay = theory.PolynomialDecay(1.0, beta)
        rate = (theory.noiseless_polynomial_rate if noiseless else theory.polynomial_rate)(beta)
        T = np.array([1e120, 1e140])
        _check_growth(decay, rate, T, noiseless)

    @pytest.mark.parametrize("beta", [1.0, 0.5])
    @pytest.mark.parametrize("noiseless", [False, True])
    def test_the_explicit_bound_grows_at_the_exponential_rate(self, beta, noiseless):
        decay = theory.ExponentialDecay(1.0, 0.5, beta)
        rate = (theory.noiseless_exponential_rate if noiseless else theory.exponential_rate)(beta)
        _check_growth(decay, rate, np.array([1e100, 1e120]), noiseless)

    def test_noiseless_at_a_constant_ridge_is_not_polylogarithmic(self):
        """Prop. D.16 prints alpha ~ 1: then the bound grows like sqrt(T)."""
        decay = theory.ExponentialDecay(1.0, 0.5, 1.0)
        T = np.array([1e100, 1e120])
        grown = np.log(theory.noiseless_regret_bound_under(decay, 1.0, T, np.ones(2)))
        assert np.diff(grown)[0] / np.diff(np.log(T))[0] > 0.49

    def test_refuses(self):
        for make in (
            lambda: theory.polynomial_rate(1.0),
            lambda: theory.exponential_rate(1.5),
            lambda: theory.noiseless_exponential_rate(0.0),
            lambda: theory.regret_rate(Matern(nu=0.5), 2),
            lambda: theory.regret_rate(DotProduct(), 2),
            lambda: theory.polynomial_rate(2.0).local_exponent(1),
            lambda: theory.polynomial_rate(2.0).tuning(10, scale=0),
        ):
            with pytest.raises(kb.InputError):
                make()


def _check_growth(decay, rate, T, noiseless):
    if noiseless:
        found = theory.noiseless_regret_bound_under(decay, 1.0, T, rate.tuning(T))
    else:
        found = theory.regret_bound_under(decay, 1.0, 1.0, 0.1, T, rate.tuning(T))
    slope = np.diff(np.log(found))[0] / np.diff(np.log(T))[0]
    assert slope == pytest.approx(rate.local_exponent(np.sqrt(T.prod())), abs=0.01)


class TestRegretBounds:
    def test_by_hand(self):
        a = kb.Assumptions(2.0, 0.5, 0.1, 0.25)
        inside = 3.0 + 4 / 0.5 + math.log(10)
        expected = 2 * 5 * 7 + 0.5 * math.sqrt(24 * 100 * 3 * inside)
        assert theory.regret_bound(a, 100, 3.0, 7, 5.0) == pytest.approx(expected)
        expected = 2 * 5 * 7 + math.sqrt(12 * 0.01 * 4 * 100 * 3)
        assert theory.noiseless_regret_bound(2.0, 100, 0.01, 3.0, 7, 5.0) == pytest.approx(expected)
        assert theory.largest_value(2.0, 9.0) == 6.0
        squared = 2 * 0.25 * 3 + 0.25 * 4 / 0.25 + 2 * 0.25 * math.log(10)
        assert theory.radius_bound(a, 3.0) == pytest.approx(math.sqrt(squared))
        with pytest.raises(kb.InputError, match="noiseless"):
            theory.regret_bound(kb.Assumptions(1.0, 0.0, 0.1), 10, 1.0, 0, 1.0)

    @settings(max_examples=25, deadline=None)
    @given(instances)
    def test_radius_of_a_run(self, i):
        """Eq. (17) holds with equality at the run's own gain."""
        rng = np.random.default_rng(i["seed"])
        seq, _ = sequence(KERNELS[i["name"]], rng, i["t"], mixture_scale=0.01 / i["ridge"])
        gain = theory.information_gain(seq.kernel, seq.points, i["ridge"])
        assert seq.ridge_radius() == pytest.approx(
            float(theory.radius_bound(seq.assumptions, gain)), rel=1e-6
        )

    @settings(max_examples=25, deadline=None)
    @given(instances, st.sampled_from([0.0, 0.1]))
    def test_the_theorem_is_above_the_sum_of_widths(self, i, noise):
        """What the proofs of Thm. 6.2 and Eq. (56) show, for any points whatever."""
        rng = np.random.default_rng(i["seed"])
        ridge, norm = i["ridge"], 5.0
        seq, _ = sequence(
            KERNELS[i["name"]], rng, i["t"], norm, noise, bound=kb.AMM(ridge),
            mixture_scale=max(noise, 0.1) ** 2 / ridge,
        )  # fmt: skip
        found = theory.run_bound(seq, value_bound=3.0)
        T = np.arange(1, i["t"] + 1)
        if noise:
            bound = theory.regret_bound(seq.assumptions, T, found.gains, found.counts, 3.0)
        else:
            bound = theory.noiseless_regret_bound(norm, T, ridge, found.gains, found.counts, 3.0)
        assert np.all(found.cumulative <= bound * (1 + 1e-9))


class TestRunBound:
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    @pytest.mark.parametrize("ridge", [0.03, 0.5])
    def test_is_what_the_sequence_knew(self, noise, ridge):
        rng = np.random.default_rng(0)
        seq, _ = sequence(Matern(0.3, nu=1.5), rng, 30, 2.0, noise, bound=kb.CMM())
        found = theory.run_bound(seq, ridge)
        then = kb.ConfidenceSequence(seq.kernel, 2.0, noise)
        for t in range(30):
            radius = then.ridge_radius(ridge)
            variance = 1.0
            if t:
                k = seq.kernel(seq.points[:t], seq.points[t : t + 1])
                K = seq.kernel(seq.points[:t]) + ridge * np.eye(t)
                variance = 1 - float((k.T @ np.linalg.solve(K, k))[0, 0])
            width = 2 * radius * math.sqrt(variance / ridge)
            assert found.terms[t] == pytest.approx(min(4.0, width), rel=1e-6)
            assert found.radii[t] == pytest.approx(radius, rel=1e-6)
            then.update(seq.points[t], seq.outcomes[t])
        gains = theory.information_gains(seq.kernel, seq.points, ridge)
        assert found.gains == pytest.approx(gains)
        assert np.array_equal(found.counts, theory.potential_counts(seq.kernel, seq.points, ridge))
        later = theory.run_bound(seq, ridge, skip=10)
        assert np.array_equal(later.terms, found.terms[10:])

    def test_a_policy_while_it_runs(self):
        rng = np.random.default_rng(1)
        grid = rng.random((50, 2))
        function = kb.RKHSFunction(RBF(0.4), rng.random((5, 2)), rng.standard_normal(5))
        function = function.rescaled(2.0)
        for bound in (kb.CMM(), kb.DMM(), kb.AMM(), kb.AMM(0.2)):
            seq = kb.ConfidenceSequence(RBF(0.4), 2.0, 0.1, bound=bound)
            ucb = kb.KernelUCB(seq, kb.Finite(grid))
            for t in range(25):
                s = ucb.ask()
                ucb.tell(s.x, function(s.x[None])[0] + 0.1 * rng.standard_normal())
                if t in (0, 24):
                    found = theory.run_bound(ucb)
                    # The policy's own record is at least as sharp: it was limited on each side.
                    assert np.all(ucb.history.width <= found.terms * (1 + 1e-6))
                    assert len(found.cumulative) == t + 1
            regret = function(grid).max() - function(seq.points)
            assert np.all(np.cumsum(regret) <= found.cumulative)

    def test_refuses(self):
        rng = np.random.default_rng(0)
        for bound, options in (
            (kb.AY(), {}),
            (kb.IGP(0.1), {}),
            (kb.AMM(0.2), {"ridge": 0.3}),
            (kb.DMM(), {"ridge": 0.2345}),
            (kb.CMM(), {"ridge": -1.0}),
            (kb.CMM(), {"value_bound": -1.0}),
            (kb.CMM(), {"skip": 5}),
        ):
            seq, _ = sequence(RBF(0.4), rng, 5, bound=bound)
            with pytest.raises(kb.InputError):
                theory.run_bound(seq, **options)
        seq, _ = sequence(RBF(0.4), rng, 5, noise_scale=0.0)
        with pytest.raises(kb.InputError, match="pass ridge"):
            theory.run_bound(seq)
        seq, _ = sequence(DotProduct(0.5), rng, 5)
        with pytest.raises(kb.InputError, match="value_bound"):
            theory.run_bound(seq)
        with pytest.raises(kb.InputError):
            theory.run_bound(kb.RandomPolicy(seq, rng=rng))
        false = kb.ConfidenceSequence(RBF(0.5), 0.1, 0.0)
        false.update([[0.0], [1.0], [2.0]], [1.0, -1.0, 1.0])
        with pytest.raises(kb.EmptyConfidenceSetError):
            theory.run_bound(false, 0.01)


DELTA, NORM, NOISE, LEVEL = 0.2, 2.0, 0.3, 1e-4
GRID = np.linspace(0, 1, 30)[:, None]


def _violations(runs, rounds, believed_noise=NOISE):
    """Runs in which the regret of any round, or its sum at any time, exceeds its bound."""
    kernel, failures = Matern(0.2, nu=1.5), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        function = kb.RKHSFunction(kernel, rng.random((10, 1)), rng.standard_normal(10))
        truth = function.rescaled(NORM)(GRID)
        seq = kb.ConfidenceSequence(kernel, NORM, believed_noise, DELTA, bound=kb.AMM())
        played = []
        for _ in range(rounds):
            x = int(np.argmax(seq.upper(GRID)))
            seq.update(GRID[x], truth[x] + NOISE * rng.standard_normal())
            played.append(x)
        regret, bound = truth.max() - truth[played], theory.run_bound(seq)
        wrong = np.any(regret > bound.terms) or np.any(np.cumsum(regret) > bound.cumulative)
        failures += bool(wrong)
    return failures


def test_measured_regret_is_below_the_bound():
    """More failures than a binomial with success probability delta would have (level 1e-4)."""
    runs = 60
    assert binom.sf(_violations(runs, 60) - 1, runs, DELTA) > LEVEL


def test_that_test_can_fail():
    """With the noise believed thirty times smaller than it is, the same test rejects."""
    runs = 30
    assert binom.sf(_violations(runs, 60, NOISE / 30) - 1, runs, DELTA) < LEVEL


class TestTightness:
    @settings(max_examples=40, deadline=None)
    @given(instances, st.sampled_from([1e-3, 0.1, 2.0]))
    def test_gaps_are_those_of_the_bounds(self, i, eta):
        """Thm. 6.1: factors before rho(x), from the closed forms and from the bounds."""
        rng = np.random.default_rng(i["seed"])
        noise = 0.1
        for rival, ridge in ((kb.AY(), i["ridge"]), (kb.IGP(eta), 1 + eta)):
            kernel = KERNELS[i["name"]]
            seq, _ = sequence(kernel, rng, i["t"], mixture_scale=noise**2 / ridge)
            X = rng.random((3, 2))
            log_det = 2 * theory.information_gain(kernel, seq.points, ridge)
            if isinstance(rival, kb.AY):
                gap = theory.gap_to_ay(seq.assumptions, log_det, ridge)
                assert 1 <= gap.ratio <= math.sqrt(2) + 1e-12
            else:
                gap = theory.gap_to_igp(seq.assumptions, log_det, eta, i["t"])
            assert gap.difference > 0 and gap.ratio > 1
            ours, theirs = (
                b.extremes(seq._engine, seq.assumptions, X, (1, -1)).sum(axis=0)
                for b in (kb.AMM(), rival)
            )
            assert theirs == pytest.approx(gap.ratio * ours, rel=1e-6)

    def test_largest_gap(self):
        """p = B: AY is sqrt(2) times wider."""
        a = kb.Assumptions(3.0, 1.0, math.exp(-0.5), 1.0)
        gap = theory.gap_to_ay(a, 8.0, 1.0)
        assert gap.ours == pytest.approx(3 * math.sqrt(2)) and gap.rival == pytest.approx(6.0)
        silent = theory.gap_to_ay(kb.Assumptions(3.0, 0.0, 0.1), 8.0, 1.0)
        assert silent.ratio == 1.0 and theory.Gap(0.0, 0.0).ratio == 1.0

    def test_comparison(self):
        rng = np.random.default_rng(0)
        seq, _ = sequence(Matern(0.3, nu=2.5), rng, 30)
        X = rng.random((40, 2))
        found = theory.compare(seq, X)
        assert [row.name for row in found.rows] == ["CMM", "DMM", "AMM", "AY", "IGP"]
        assert found["CMM"].mean_ratio == found["CMM"].largest_ratio == 1.0
        ratios = [found[name].mean_ratio for name in ("CMM", "DMM", "AMM", "AY")]
        assert ratios == sorted(ratios) and ratios[-1] > 1.05
        lower, upper = seq.bounds(X, kb.AY())
        assert found["AY"].mean_width == pytest.approx((upper - lower).mean())
        assert "IGP" in str(found) and "times CMM" in str(found["AY"])
        with pytest.raises(kb.InputError):
            theory.compare("data", X)
        with pytest.raises(kb.InputError, match="there are CMM"):
            found["GP"]

    def test_comparison_before_any_data(self):
        seq = kb.ConfidenceSequence(RBF(), 1.0, 0.1)
        assert {row.mean_ratio for row in theory.compare(seq, [[0.5]]).rows} == {1.0}
