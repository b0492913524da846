"""The lemmas on the decay of eigenvalues as properties: information gain, counts, rates.

A kernel on the circle whose eigenvalues and eigenfunctions are known exactly makes them testable
with their true constants.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Kernel, Matern

import kernelbounds as kb
from kernelbounds import theory

PSI = math.sqrt(2)
MODES = 400

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
