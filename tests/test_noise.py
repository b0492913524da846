"""Laws of noise: what is random, which radius they give, and what an unknown scale costs.

Coverage: a run fails when, after any number of observations, sigma_max is below sigma, or the band
leaves the truth out. The probability of that is at most delta. A test rejects when a binomial with
success probability delta would have as many failures with probability below 1e-4.
"""

from __future__ import annotations

import copy
import math

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from problems import observe, refusal, refused, too_many, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.engine import ExactEngine
from kernelbounds.noise import Bounded, Energy, Gaussian, SubGaussian
from kernelbounds.noise.unknown import (
    FORECASTER_OF_INTERVAL,
    FORECASTERS,
    LARGEST_GAINS,
    RATES,
    SHARE_OF_ENERGY,
    ScaleForecasts,
    largest_energy,
)

KERNEL = Matern(0.4, nu=2.5)
NORM, SCALE, DELTA = 3.0, 0.3, 0.1

# With standard deviation 1 each.
DRAWS = {
    "gaussian": lambda rng: rng.standard_normal(),
    "uniform": lambda rng: rng.uniform(-1, 1) * math.sqrt(3),
    "two points": lambda rng: rng.choice([-1.0, 1.0]),
}


def unknown(t, seed=0, dim=1, noise=None, kernel=KERNEL, norm=NORM, scale=SCALE, **options):
    rng = np.random.default_rng(seed)
    function = truth(kernel, rng, norm, dim)
    X, y = observe(function, rng, t, scale, dim)
    seq = kb.ConfidenceSequence(kernel, norm, noise or Gaussian(), **options)
    seq.update(X, y)
    return seq, function, X, y


class TestScaleInHighPrecision:
    @staticmethod
    def chains(kernel, X, y):
        """Errors and gains of all forecasters, with 50 digits, from the definition."""
        gram = mp.matrix(kernel(X).tolist())
        errors, gains = [], []
        for j in range(len(FORECASTERS)):
            ridge = mp.mpf(float(FORECASTERS[j]) ** 2) / mp.mpf(kb.mixtures.Hybrid.relative_scale)
            factor = mp.cholesky(gram + ridge * mp.eye(len(y)))
            whitened = []
            for s in range(len(y)):
                known = sum(factor[s, i] * whitened[i] for i in range(s))
                whitened.append((mp.mpf(float(y[s])) - known) / factor[s, s])
            errors.append([abs(w * factor[s, s]) for s, w in enumerate(whitened)])
            gains.append([(factor[s, s] ** 2 - ridge) / ridge for s in range(len(y))])
        return errors, gains

    @staticmethod
    def root(errors, gains, delta):
        terms = []
        for error, gain in zip(errors, gains):
            for most in LARGEST_GAINS:
                counted = [e for e, g in zip(error, gain) if g <= most]
                terms += [
                    (len(counted), sum(e**2 for e in counted), mp.mpf(rate)) for rate in RATES
                ]

        def logarithm(scale):
            total = sum(
                mp.power(1 + rate, mp.mpf(n) / 2) * mp.exp(-rate * energy / (2 * scale**2))
                for n, energy, rate in terms
            )
            return mp.log(total / len(terms)) - mp.log(1 / mp.mpf(delta))

        low, high = mp.mpf("1e-6"), mp.mpf("1e6")
        assert logarithm(low) < 0 < logarithm(high)
        for _ in range(120):
            middle = mp.sqrt(low * high)
            low, high = (middle, high) if logarithm(middle) < 0 else (low, middle)
        return high

    @pytest.mark.parametrize("kernel", [RBF(0.4), Matern(0.5, nu=1.5)], ids=["rbf", "matern"])
    def test_scale(self, kernel):
        with mp.workdps(50):
            seq, _, X, y = unknown(30, seed=3, kernel=kernel, delta=DELTA)
            errors, gains = self.chains(kernel, X, y)
            exact = self.root(errors, gains, DELTA / 2)
            assert exact <= seq.noise_upper_bound <= exact * (1 + mp.mpf("3e-6"))

    def test_radius(self):
        with mp.workdps(50):
            seq, _, X, y = unknown(
                24, seed=5, kernel=RBF(0.5), delta=DELTA, noise=Gaussian(at_most=0.5)
            )
            errors, gains = self.chains(RBF(0.5), X, y)
            mixture = seq.assumptions.mixture
            c, most = mp.mpf(mixture.relative_scale) * NORM**2, mp.mpf(seq.noise_upper_bound)
            ends = [NORM * mp.mpf(float(share)) for share in FORECASTERS]
            share = mp.mpf((1 - SHARE_OF_ENERGY) * (DELTA / 2))
            level = (1 + share) / share
            radii = []
            for number, end in enumerate(ends):
                below = ends[number + 1] if number + 1 < len(ends) else 0
                if below >= most:
                    continue
                j, scale = (
                    int(FORECASTER_OF_INTERVAL[number]),
                    most if number == 0 else min(end, most),
                )
                own = NORM * mp.mpf(float(FORECASTERS[j]))
                sums = [
                    sum(
                        self.loss(mp.mpf(rate), e, own**2 * g, scale, end)
                        for e, g in zip(errors[j], gains[j])
                    )
                    for rate in mixture.rates
                ]
                radii.append(self.solved(mixture, sums, scale, level))
            assert c > 0
            exact = max(radii)
            assert exact <= mp.mpf(seq.radius) ** 2 * (1 + mp.mpf("1e-15"))
            assert mp.mpf(seq.radius) ** 2 <= exact * (1 + mp.mpf("1e-9"))

    @staticmethod
    def loss(rate, error, variance, scale, decided_at):
        constant = mp.inf if rate == 1 else -mp.log(1 - rate) / rate
        believed = variance / decided_at**2
        expected = mp.log(1 + rate * believed) / rate + (1 + believed) / (1 + rate * believed)
        if expected < constant:
            gain = variance / scale**2
            return mp.log(1 + rate * gain) / rate + (error / scale) ** 2 / (1 + rate * gain)
        return constant

    @staticmethod
    def solved(mixture, sums, scale, level):
        weights = [weight / sum(mixture.weights) for weight in mixture.weights]
        low, high = mp.mpf(0), mp.mpf(10) ** 6

        def reached(squared):
            return sum(
                mp.mpf(weight) * mp.exp(mp.mpf(rate) * (squared / scale**2 - one) / 2)
                for weight, rate, one in zip(weights, mixture.rates, sums)
                if one != mp.inf
            )

        for _ in range(150):
            middle = (low + high) / 2
            low, high = (middle, high) if reached(middle) < level else (low, middle)
        return high


class TestUnknownScale:
    def test_radius_is_the_largest_of_all_scales_below(self):
        """Brute force over scales: no sigma up to sigma_max has a larger R_t, at its own delta."""
        from kernelbounds.engine import Forecasts
        from kernelbounds.mixtures.hybrid import energy_bound, half_losses

        for seed in range(3):
            seq, *_ = unknown(60, seed=seed, dim=2)
            mixture, delta = seq.assumptions.mixture, seq.assumptions.delta / 2
            by_energy, delta = SHARE_OF_ENERGY * delta, (1 - SHARE_OF_ENERGY) * delta
            made = seq.known.evidence.scale_forecasts
            reference = NORM * FORECASTERS
            for sigma in np.geomspace(1e-5, 1, 60) * seq.noise_upper_bound:
                number = max(int(np.count_nonzero(reference >= sigma)) - 1, 0)
                j = int(FORECASTER_OF_INTERVAL[number])
                own = Forecasts(made.errors[j], reference[j] ** 2 * made.gains[j])
                losses = half_losses(mixture.rates, own, sigma, float(reference[number]))
                sums = losses.sum(axis=0)
                squared = energy_bound(mixture.rates, sums, 60, sigma, delta, mixture.weights)
                squared = min(squared, sigma**2 * largest_energy(60, by_energy))
                assert squared <= seq.radius**2 * (1 + 1e-12)

    def test_one_by_one_equals_all_at_once(self):
        whole, _, X, y = unknown(70)
        parts = kb.ConfidenceSequence(KERNEL, NORM, Gaussian())
        for x, value in zip(X, y):
            parts.update(x, value)
            _ = parts.noise_upper_bound
        assert parts.noise_upper_bound == pytest.approx(whole.noise_upper_bound, rel=1e-9)
        assert parts.radius == pytest.approx(whole.radius, rel=1e-9)
        np.testing.assert_allclose(parts.bounds(X[:5]), whole.bounds(X[:5]), rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("factor", [1e-3, 1e4])
    def test_units(self, factor):
        seq, _, X, y = unknown(60)
        other = kb.ConfidenceSequence(KERNEL, factor * NORM, Gaussian())
        other.update(X, factor * y)
        assert other.noise_upper_bound == pytest.approx(factor * seq.noise_upper_bound, rel=1e-9)
        assert other.radius == pytest.approx(factor * seq.radius, rel=1e-9)

    def test_needs_neither_the_norm_bound_nor_a_right_kernel(self):
        seq, _, X, y = unknown(80)
        other = kb.ConfidenceSequence(KERNEL, 50 * NORM, Gaussian())
        other.update(X, y)
        assert other.noise_upper_bound == seq.noise_upper_bound
        rough = kb.ConfidenceSequence(RBF(30.0), NORM, Gaussian())  # and so all but constant
        rough.update(X, y)
        assert rough.noise_upper_bound > SCALE

    def test_closes_in(self):
        """The median of some runs is at most 1.1 times what a prototype of this bound had."""
        assert unknown(10)[0].noise_upper_bound == math.inf
        for t, runs, most in ((50, 9, 2.4), (100, 9, 1.7), (300, 5, 1.3), (1000, 1, 1.1)):
            settings = {"dim": 2, "kernel": RBF(0.3), "norm": 5.0}
            found = [unknown(t, seed, **settings)[0].noise_upper_bound for seed in range(runs)]
            assert SCALE < np.median(found) <= 1.1 * most * SCALE

    def test_before_there_is_a_bound(self):
        """While sigma_max is infinite, bounds are those without data, and everything works."""
        seq, function, X, _ = unknown(5)
        lower, upper = seq.bounds(X)
        assert seq.noise_upper_bound == math.inf
        np.testing.assert_allclose(upper, NORM)
        np.testing.assert_allclose(lower, -NORM)
        assert math.isfinite(seq.radius)
        for bound in (kb.AMM(), kb.DMM(), kb.FixedDesign(), kb.FixedDesign(simultaneous=False)):
            lower, upper = seq.bounds(X, bound)
            assert np.all((lower <= function(X)) & (function(X) <= upper))
        assert np.isinf(seq.prediction_bounds(X)[1]).all()
        found = seq.sensitivity(below=(X[0], NORM * 1.01))
        assert found.noise_scale == math.inf
        # Bounds are +-B sqrt(k(x,x)), also for another B.
        assert 1.0 < found.norm_bound / NORM < 1.02
        assert [row.upper for row in found.table(3)] == pytest.approx(
            [row.norm_bound for row in found.table(3)]
        )

    def test_ratios(self):
        rng = np.random.default_rng(0)
        function = truth(KERNEL, rng, NORM, 1)
        X, ratios = rng.random((120, 1)), rng.choice([0.5, 1.0, 4.0], size=120)
        y = function(X) + SCALE * ratios * rng.standard_normal(120)
        told, not_told = (kb.ConfidenceSequence(KERNEL, NORM, Gaussian()) for _ in range(2))
        told.update(X, y, noise_scale=ratios)
        not_told.update(X, y)
        assert SCALE < told.noise_upper_bound < 1.8 * SCALE < not_told.noise_upper_bound
        np.testing.assert_array_equal(told.noise_scales, ratios)

    def test_what_it_costs(self):
        """Widths against a known sigma: 1.1 times the prototype's 2.3, 1.7 and 1.3, at most."""
        for t, most in ((50, 2.3), (100, 1.7), (300, 1.3)):
            widths = []
            for noise in (SCALE, Gaussian()):
                seq, function, X, _ = unknown(t, dim=2, kernel=RBF(0.3), norm=5.0, noise=noise)
                lower, upper = seq.bounds(X[:40])
                assert np.all((lower <= function(X[:40])) & (function(X[:40]) <= upper))
                widths.append((upper - lower).mean())
            assert 1 < widths[1] / widths[0] <= 1.1 * most

    def test_at_most(self):
        loose, tight = unknown(40)[0], unknown(40, noise=Gaussian(at_most=0.35))[0]
        assert tight.noise_upper_bound == 0.35 < loose.noise_upper_bound
        assert tight.radius < loose.radius

    def test_too_small_a_limit_is_refuted(self):
        seq, _, X, _ = unknown(80, noise=Gaussian(at_most=0.1))
        with pytest.raises(kb.EmptyConfidenceSetError):
            seq.bounds(X)
        assert seq.noise_lower_bound > 0.1

    def test_lower_and_upper_bound(self):
        seq, *_ = unknown(200)
        assert 0.5 * SCALE < seq.noise_lower_bound < SCALE < seq.noise_upper_bound < 1.5 * SCALE
        known, *_ = unknown(200, noise=3 * SCALE)
        assert known.noise_upper_bound < 1.5 * SCALE, "a diagnosis: the noise was overstated"

    def test_parts_classes_and_facts(self):
        both = kb.Parts([(RBF(0.3), 2.0), (RBF(2.0), 3.0)])
        either = kb.AnyOf([(RBF(0.3), 2.0), (Matern(0.5, nu=2.5), 3.0)])
        rng = np.random.default_rng(0)
        function = truth(RBF(0.3), rng, 2.0, 1)
        X, y = observe(function, rng, 80, SCALE, 1)
        limits = kb.facts.Between(-2.0, 2.0)
        for kernel, facts in ((both, []), (either, []), (both, [limits])):
            seq = kb.ConfidenceSequence(kernel, noise_scale=Gaussian(), facts=facts)
            seq.update(X, y)
            lower, upper = seq.bounds(X)
            assert np.all((lower <= function(X)) & (function(X) <= upper))
            assert np.all(upper - lower < 3.9)

    def test_single_mixture(self):
        seq, *_ = unknown(150, mixture=kb.mixtures.Single(0.3))
        known, *_ = unknown(
            150,
            mixture=kb.mixtures.Single(0.3),
            noise=seq.noise_upper_bound,
            delta=0.005 * (1 - SHARE_OF_ENERGY),
        )
        assert seq.radius == pytest.approx(known.radius, rel=1e-12)

    def test_repeated_points_and_a_constant(self):
        X = np.repeat([[0.2], [0.7]], 100, axis=0)
        seq = kb.ConfidenceSequence(KERNEL, NORM, Gaussian())
        seq.update(X, 1 + SCALE * np.random.default_rng(1).standard_normal(200))
        assert SCALE < seq.noise_upper_bound < 1.5 * SCALE
        seq = kb.ConfidenceSequence(KERNEL, NORM, Gaussian())
        seq.update(X, np.zeros(200))
        assert 0 < seq.noise_upper_bound < 1e-90
        assert seq.upper([0.2])[0] < 1e-6

    @pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AMM()], ids=["CMM", "DMM", "AMM"])
    def test_policies(self, bound):
        """Rounds on a finite set follow the bounds; a tracker gives what a fresh policy does."""
        rng = np.random.default_rng(2)
        function = truth(KERNEL, rng, NORM, 1)
        grid = np.linspace(0, 1, 30)[:, None]
        seq = kb.ConfidenceSequence(KERNEL, NORM, Gaussian(), bound=bound)
        policy = kb.KernelUCB(seq, kb.Finite(grid))
        for _ in range(60):
            found = policy.ask()
            upper = seq.upper(grid)
            assert upper[found.index] >= upper.max() - 1e-5 * NORM
            policy.tell(found.x, function(found.x[None])[0] + SCALE * rng.standard_normal())
        certificate = policy.certificate()
        assert function(grid).max() <= certificate.max_upper
        assert len(policy.ask(n=3)) == 3, "imagined outcomes keep the noise scale"

    def test_copies_and_files(self, tmp_path):
        seq, _, X, _ = unknown(60)
        expected = seq.bounds(X)
        for other in (copy.deepcopy(seq), copy.copy(seq)):
            np.testing.assert_array_equal(other.bounds(X), expected)
        few = unknown(5)[0]  # of which no noise scale is known yet
        few.save(tmp_path / "few.npz")
        few.update(X, seq.outcomes)
        few.save(tmp_path / "few.npz")
        again = kb.ConfidenceSequence.load(tmp_path / "few.npz")
        np.testing.assert_allclose(again.bounds(X), few.bounds(X), rtol=1e-9)
        seq.save(tmp_path / "seq.npz")
        loaded = kb.ConfidenceSequence.load(tmp_path / "seq.npz")
        assert loaded.assumptions == seq.assumptions
        np.testing.assert_allclose(loaded.bounds(X), expected, rtol=1e-9)
        grown, again = copy.deepcopy(seq), loaded
        for one in (grown, again):
            one.update([0.5], 1.0)
        np.testing.assert_allclose(grown.bounds(X), again.bounds(X), rtol=1e-9)


class TestCoverage:
    @staticmethod
    def fails(draw, rng, rounds=150, shrunk=1.0, kernel=KERNEL, function=None, scale=SCALE):
        """Whether sigma_max is below sigma after any number of rounds; points are adaptive."""
        function = function or truth(KERNEL, rng, NORM, 1)
        X, y = np.empty((rounds, 1)), np.empty(rounds)
        for s in range(rounds):
            # Half of the points are near the outcome with the largest error from the mean so far.
            worst = X[np.argmax(np.abs(y[:s] - y[:s].mean()))] if s else np.array([0.5])
            X[s] = np.clip(worst + 0.05 * rng.standard_normal(), 0, 1) if s % 2 else rng.random()
            y[s] = function(X[s : s + 1])[0] + scale * draw(rng)
        engine = ExactEngine(kernel)
        engine.append(X, y)
        whole = ScaleForecasts()
        whole.extend(engine)
        for t in range(15, rounds + 1):
            now = ScaleForecasts()
            now.errors, now.gains = whole.errors[:, :t], whole.gains[:, :t]
            if shrunk * now.upper_bound(DELTA) < scale:
                return True
        return False

    def failures(self, draw, runs, seed=0, **options):
        rngs = [np.random.default_rng([seed, run]) for run in range(runs)]
        return sum(self.fails(draw, rng, **options) for rng in rngs)

    @pytest.mark.parametrize("name", DRAWS)
    def test_fast(self, name):
        assert not too_many(self.failures(DRAWS[name], 30), 30, DELTA)

    def test_can_fail(self):
        def mostly_none(rng):
            return math.sqrt(10) * rng.standard_normal() * (rng.random() < 0.1)

        assert too_many(self.failures(mostly_none, 20), 20, DELTA)
        assert too_many(self.failures(DRAWS["gaussian"], 30, rounds=400, shrunk=0.8), 30, DELTA)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", DRAWS)
    @pytest.mark.parametrize(
        "kernel", [KERNEL, RBF(30.0), RBF(0.003)], ids=["right", "flat", "wild"]
    )
    def test_long(self, name, kernel):
        """1,000 runs each; with the other kernels the forecasts are badly wrong."""
        assert not too_many(self.failures(DRAWS[name], 1000, kernel=kernel), 1000, DELTA)

    @pytest.mark.slow
    def test_biased_by_sigma(self):
        """Forecasts that are always off by sigma, the worst there is for noise of two points."""
        options = {"kernel": RBF(1e-6), "function": lambda X: np.full(len(X), SCALE)}
        assert not too_many(self.failures(DRAWS["two points"], 1000, **options), 1000, DELTA)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", DRAWS)
    def test_bands(self, name):
        """Bands with unknown noise, KernelUCB's points, all times: 1,000 runs."""
        grid, failed = np.linspace(0, 1, 15)[:, None], 0
        for run in range(1000):
            rng = np.random.default_rng([7, run])
            function = truth(KERNEL, rng, NORM, 1)
            seq = kb.ConfidenceSequence(KERNEL, NORM, Gaussian(), DELTA)
            policy, values, wrong = kb.KernelUCB(seq, kb.Finite(grid)), function(grid), False
            for _ in range(60):
                asked = policy.ask()
                noise = SCALE * DRAWS[name](rng)
                policy.tell(asked.x, values[asked.index] + noise)
                try:
                    lower, upper = seq.bounds(grid)
                except kb.EmptyConfidenceSetError:
                    wrong = True
                    break
                wrong |= bool(np.any((values < lower) | (values > upper)))
            failed += wrong
        assert not too_many(failed, 1000, DELTA)

    @pytest.mark.parametrize("rate", RATES)
    def test_two_points_satisfy_the_assumption(self, rate):
        """E exp(-rate (eps + b)^2 / 2) <= (1 + rate)^(-1/2) for eps = +-1 and every b."""
        b = np.linspace(0, 8, 200_001)
        found = (np.exp(-rate * (b - 1) ** 2 / 2) + np.exp(-rate * (b + 1) ** 2 / 2)) / 2
        assert found.max() < (1 + rate) ** -0.5


class TestBoundedAndEnergy:
    def data(self, t=12, seed=0, limit=0.2, norm=2.0):
        rng = np.random.default_rng(seed)
        function = truth(KERNEL, rng, norm, 1)
        X = rng.random((t, 1))
        return function, X, function(X) + limit * rng.uniform(-1, 1, size=t)

    @staticmethod
    def program(X, y, x, norm, constraints):
        """The largest f(x) of a function with values v at X and x, ||f|| <= B, and constraints."""
        places = np.concatenate([X, [x]])
        gram = KERNEL(places) + 1e-12 * np.eye(len(places))
        values = cp.Variable(len(places))
        factor = np.linalg.cholesky(gram)
        norm_of = cp.norm(cp.Constant(np.linalg.inv(factor)) @ values)
        sides = []
        for sign in (1, -1):
            problem = cp.Problem(
                cp.Maximize(sign * values[-1]), [norm_of <= norm, *constraints(values[:-1], y)]
            )
            problem.solve(solver=cp.CLARABEL)
            sides.append(sign * problem.value)
        return sides[1], sides[0]

    def test_bounded_for_certain_equals_the_published_program(self):
        """Scharnhorst et al. 2022: max f(x) with |f(x_s) - y_s| <= b and ||f|| <= B."""
        for seed in range(3):
            _, X, y = self.data(seed=seed)
            seq = kb.ConfidenceSequence(KERNEL, 2.0, Bounded(0.2), delta=0)
            seq.update(X, y)
            for x in ([0.1], [0.45], [0.9]):
                low, high = self.program(X, y, x, 2.0, lambda v, y: [cp.abs(v - y) <= 0.2])
                (lower,), (upper,) = seq.bounds([x])
                assert lower <= low + 1e-5
                assert high <= upper + 1e-5
                assert upper - lower <= high - low + 2e-3

    def test_energy_equals_the_published_program(self):
        """Lahr et al. 2025: max f(x) with sum (f(x_s) - y_s)^2 <= limit^2 and ||f|| <= B."""
        _, X, y = self.data()
        limit = 0.2 * math.sqrt(12)
        seq = kb.ConfidenceSequence(KERNEL, 2.0, Energy(limit))
        seq.update(X, y)
        assert seq.radius == pytest.approx(limit, rel=2e-16)
        for x in ([0.1], [0.45], [0.9]):
            low, high = self.program(X, y, x, 2.0, lambda v, y: [cp.norm(v - y) <= limit])
            (lower,), (upper,) = seq.bounds([x])
            np.testing.assert_allclose((lower, upper), (low, high), atol=2e-5)

    def test_radii(self):
        _, X, y = self.data(60)
        bounded, plain = (kb.ConfidenceSequence(KERNEL, 2.0, law) for law in (Bounded(0.2), 0.2))
        for seq in (bounded, plain):
            seq.update(X, y)
        assert bounded.radius**2 == pytest.approx(60 * 0.2**2, rel=1e-12)
        with mp.workdps(50):
            assert mp.mpf(bounded.radius) ** 2 >= 60 * mp.mpf(0.2) ** 2
        assert bounded.radius < plain.radius
        few = kb.ConfidenceSequence(KERNEL, 2.0, Bounded(5.0), delta=0.5)
        few.update(np.full((400, 1), 0.5), np.zeros(400))  # forecasts are far better than the limit
        assert few.radius**2 < 400 * 25

    @pytest.mark.parametrize(("delta", "pointwise"), [(0.01, False), (0.01, True), (0, None)])
    def test_truth_inside_for_noise_at_its_limits(self, delta, pointwise):
        """Noise of +-b; where nothing is random, an adversary who knows the function chooses."""
        for seed in range(5):
            rng = np.random.default_rng(seed)
            function = truth(KERNEL, rng, 2.0, 1)
            X, grid = rng.random((25, 1)), np.linspace(0, 1, 30)[:, None]
            values = function(X)
            signs = np.sign(values) if delta == 0 else rng.choice([-1, 1], size=25)
            seq = kb.ConfidenceSequence(KERNEL, 2.0, Bounded(0.3, pointwise), delta)
            seq.update(X, values + 0.3 * signs)
            lower, upper = seq.bounds(grid)
            assert np.all((lower <= function(grid)) & (function(grid) <= upper))
            lower, upper = seq.bounds(X)
            if pointwise is not False:
                assert np.all(upper - lower <= 0.6 + 1e-9)

    def test_where_outcomes_count_by_themselves(self):
        _, X, y = self.data(8)
        for law, delta, facts in (
            (Bounded(0.2), 0, 1),
            (Bounded(0.2, pointwise=False), 0, 0),
            (Bounded(0.2), 0.01, 0),
            (Bounded(0.2, pointwise=True), 0.01, 1),
            (0.2, 0.01, 0),
        ):
            seq = kb.ConfidenceSequence(KERNEL, 2.0, law, delta)
            seq.update(X, y)
            assert len(seq.known.facts) == facts
            assert seq.facts == ()

    def test_certain_policies(self):
        function, *_ = self.data()
        rng = np.random.default_rng(3)
        seq = kb.ConfidenceSequence(KERNEL, 2.0, Bounded(0.1), delta=0)
        grid = np.linspace(0, 1, 25)[:, None]
        policy = kb.KernelUCB(seq, kb.Finite(grid))
        for _ in range(8):
            x = policy.ask().x
            policy.tell(x, function(x[None])[0] + 0.1 * rng.uniform(-1, 1))
        certificate = policy.certificate()
        assert function(grid).max() <= certificate.max_upper + 1e-9
        assert certificate.lower <= function(certificate.x[None])[0] + 1e-9

    def test_more_outcomes_than_are_used_one_by_one(self):
        function, X, y = self.data(400)
        seq = kb.ConfidenceSequence(KERNEL, 2.0, Bounded(0.2), delta=0)
        seq.update(X, y)
        grid = np.linspace(0, 1, 10)[:, None]
        lower, upper = seq.bounds(grid)
        assert np.all((lower <= function(grid)) & (function(grid) <= upper))

    def test_a_fixed_design_does_without_single_outcomes(self):
        """It takes no facts, and so sees bounded noise by its scale and energy alone."""
        function, X, y = self.data(30)
        found = []
        for pointwise in (False, True):
            seq = kb.ConfidenceSequence(KERNEL, 2.0, Bounded(0.2, pointwise))
            seq.update(X, y)
            for bound in (kb.FixedDesign(), kb.FixedDesign(simultaneous=False)):
                found.append(seq.bounds(X, bound))
            assert np.all((found[-2][0] <= function(X)) & (function(X) <= found[-2][1]))
        np.testing.assert_array_equal(found[:2], found[2:])

    def test_limits_of_their_own(self):
        function, X, y = self.data(12)
        seq = kb.ConfidenceSequence(KERNEL, 2.0, Bounded(0.2), delta=0)
        seq.update(X, y, noise_scale=np.where(np.arange(12) % 2, 0.2, 0.4))
        lower, upper = seq.bounds(X)
        assert np.all((lower <= function(X)) & (function(X) <= upper))
        assert np.all((upper - lower)[1::2] <= 0.4 + 1e-9)
        assert np.any((upper - lower)[::2] > 0.4)

    def test_noise_lower_bounds(self):
        _, X, y = self.data(40)
        for law, size in ((Bounded(0.2), 0.2), (Energy(0.2 * math.sqrt(40)), 0.2 * math.sqrt(40))):
            seq = kb.ConfidenceSequence(KERNEL, 2.0, law)
            seq.update(X, y)
            least = seq.noise_lower_bound
            assert 0 < least < size
            smaller = kb.ConfidenceSequence(KERNEL, 2.0, type(law)(0.99 * least))
            smaller.update(X, y)
            with pytest.raises(kb.EmptyConfidenceSetError):
                smaller.bounds(X)


class TestPredictions:
    @pytest.mark.parametrize("law", [SubGaussian(0.3), Gaussian(0.3), Gaussian()], ids=str)
    def test_next_outcomes_are_inside(self, law):
        """All of 20 further outcomes, in 1 - 2 delta of the runs at least."""
        failed = 0
        for run in range(40):
            rng = np.random.default_rng(run)
            function = truth(KERNEL, rng, NORM, 1)
            X, y = observe(function, rng, 60, 0.3, 1)
            seq = kb.ConfidenceSequence(KERNEL, NORM, law, DELTA)
            seq.update(X, y)
            new = rng.random((20, 1))
            low, high = seq.prediction_bounds(new)
            outcomes = function(new) + 0.3 * rng.standard_normal(20)
            failed += bool(np.any((outcomes < low) | (outcomes > high)))
        assert not too_many(failed, 40, 2 * DELTA)

    def test_margins(self):
        seq, *_ = unknown(30, noise=SubGaussian(0.3))
        normal, *_ = unknown(30, noise=Gaussian(0.3))
        (lower, upper), x = seq.bounds([0.5]), [0.5]
        low, high = seq.prediction_bounds(x, count=10, delta=0.05)
        with mp.workdps(30):
            exact = mp.mpf(0.3) * mp.sqrt(2 * mp.log(2 * 10 / mp.mpf(0.05)))
            assert (
                exact <= mp.mpf(high[0]) - mp.mpf(upper[0]) <= exact * (1 + mp.mpf("1e-13")) + 1e-14
            )
            assert exact <= mp.mpf(lower[0]) - mp.mpf(low[0])
        narrow = normal.prediction_bounds(x, count=10, delta=0.05)
        assert low[0] < narrow[0][0] < lower[0]
        twice = seq.prediction_bounds(x, count=10, delta=0.05, noise_scale=0.6)
        assert twice[1][0] - upper[0] == pytest.approx(2 * (high[0] - upper[0]))
        assert seq.prediction_bounds(x)[1] < seq.prediction_bounds(x, count=100)[1]

    @pytest.mark.parametrize(
        "law", [SubGaussian(0.3), Gaussian(0.3), Gaussian(), Bounded(0.3), Energy(0.1)], ids=str
    )
    def test_weights_of_an_estimator(self, law):
        """Weights of 1 change nothing; others are for noise that averages out."""
        rng = np.random.default_rng(0)
        X, y = rng.random((40, 1)), 0.01 * rng.standard_normal(40)
        new = kb.KernelConfidenceRegressor(KERNEL, norm_bound=NORM, noise_scale=law)
        plain = copy.deepcopy(new).fit(X, y).predict_interval(X)
        ones = copy.deepcopy(new).fit(X, y, sample_weight=np.ones(40)).predict_interval(X)
        np.testing.assert_allclose(ones, plain, rtol=1e-9)
        if law.averages_out:
            new.fit(X, y, sample_weight=np.full(40, 4.0))
        else:
            refused(lambda: new.fit(X, y, sample_weight=np.full(40, 4.0)), "mean")

    def test_certain_laws(self):
        X, y = np.array([[0.2], [0.7]]), np.array([0.1, 0.2])
        for law, margin in ((Bounded(0.3), 0.3), (Energy(0.5), 0.5), (0.0, 0.0)):
            seq = kb.ConfidenceSequence(KERNEL, NORM, law, 0.01 if law == 0 else 0)
            seq.update(X, y)
            assert seq.prediction_bounds([0.5])[1] - seq.upper([0.5]) == pytest.approx(margin)


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: Bounded(-1), "limit of the noise"),
            (lambda: Bounded(0), "at least"),
            (lambda: Energy(math.inf), "limit of the noise energy"),
            (lambda: Gaussian(0.1, at_most=1), "not both"),
            (lambda: Gaussian(at_most=0), "at_most"),
            (lambda: SubGaussian("much"), "noise_scale"),
            (lambda: kb.ConfidenceSequence(KERNEL, 1.0, Gaussian), "class Gaussian"),
            (lambda: kb.ConfidenceSequence(KERNEL, 1.0, 0.1, delta=0), "delta"),
            (lambda: kb.ConfidenceSequence(KERNEL, 1.0, Gaussian(), delta=0), "delta"),
            (lambda: kb.ConfidenceSequence(KERNEL, 1.0, Gaussian(), engine=kb.Sparse()), "sparse"),
            (
                lambda: kb.ConfidenceSequence(
                    KERNEL, 1.0, Gaussian(), mixture=kb.mixtures.Prequential(lambda X, y, x: (0, 1))
                ),
                "Prequential",
            ),
            (lambda: kb.ConfidenceSequence(KERNEL, 1.0, Gaussian(), bound=kb.AY()), "CMM"),
            (lambda: kb.ConfidenceSequence(KERNEL, 1.0, Energy(1.0), bound=kb.IGP(0.1)), "CMM"),
            (
                lambda: kb.ConfidenceSequence(KERNEL, 1.0, Bounded(1.0), 0, bound=kb.FixedDesign()),
                "delta",
            ),
            (lambda: kb.theory.radius_bound(kb.Assumptions(1.0, Energy(1.0)), 3), "theory"),
            (lambda: kb.plot.gaussian_process(unknown(3)[0]), "noise scale"),
            (lambda: unknown(3)[0].predicted_width([0.5], 10, kb.Box([0], [1])), "unknown"),
            (lambda: unknown(3)[0].prediction_bounds([0.5], count=0), "count"),
            (lambda: unknown(3)[0].prediction_bounds([0.5], delta=0), "delta"),
        ],
    )
    def test_one_sentence(self, make, words):
        refused(make, words)

    def test_a_number_is_sub_gaussian(self):
        seq = kb.ConfidenceSequence(KERNEL, 1.0, 0.5)
        assert seq.assumptions.noise == SubGaussian(0.5)
        assert seq.assumptions == kb.ConfidenceSequence(KERNEL, 1.0, SubGaussian(0.5)).assumptions
        assert refusal(lambda: Gaussian(0.5)) is None
