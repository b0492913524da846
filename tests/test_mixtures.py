"""The radii: their lemmas round by round, their equation, their units, and that they last."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import DOMAINS, KERNELS, instances, observe, refused, sequence, truth
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

import kernelbounds as kb
from kernelbounds import theory
from kernelbounds.engine import Forecasts
from kernelbounds.io import archive
from kernelbounds.mixtures import Hybrid, Prequential, Single
from kernelbounds.mixtures.hybrid import _solve, energy_bound, half_losses
from kernelbounds.sequence import storage

RATES = (1e-3, 0.2, 0.4, 0.7, 0.99, 1.0)
HYBRID = Hybrid()


def _two_values(p):
    """1 - p with probability p, else -p, over the best scale (Kearns and Saul)."""
    scale = math.sqrt((0.5 - p) / math.log((1 - p) / p))
    return np.array([1 - p, -p]) / scale, np.log([p, 1 - p])


def _gaussian():
    """The trapezoidal rule, which is exact to all digits for densities like this one."""
    nodes, step = np.linspace(-1500, 1500, 150_001, retstep=True)
    return nodes, -(nodes**2) / 2 + math.log(step / math.sqrt(2 * math.pi))


def _uniform():
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return math.sqrt(3) * nodes, np.log(weights / 2)


# Noise that is 1-sub-Gaussian, and no less: values, and the logarithms of their probabilities.
NOISES = {
    "gaussian": _gaussian(),
    "uniform": _uniform(),
    "rademacher": (np.array([-1.0, 1.0]), np.log([0.5, 0.5])),
    "two values 0.1": _two_values(0.1),
    "two values 0.01": _two_values(0.01),
}


def _log_expectation(noise, exponent, stretch=1.0):
    """ln E exp(exponent(eps)) for noise eps that is ``stretch`` times as large as it may be."""
    values, logs = NOISES[noise]
    return float(np.logaddexp.reduce(logs + exponent(stretch * values)))


def _taken(rate, error, gain):
    """lambda (eps^2 - L) / 2 with the loss L in the code, of which one was chosen before eps."""

    def exponent(e):
        losses = half_losses((rate,), Forecasts(error + e, np.full(len(e), gain)), 1.0)
        return rate * (e**2 / 2 - losses[:, 0])

    return exponent


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rate", RATES)
class TestOneRound:
    """E exp(lambda (eps^2 - L) / 2) <= 1, whatever v and f - m are."""

    def test_a_forecast(self, noise, rate):
        for gain, error in itertools.product((0.0, 1e-3, 0.3, 1.0, 30.0, 1e4), (0.0, 0.1, -1, 3)):
            spread = 1 + rate * gain

            def exponent(e, error=error, spread=spread):
                return rate * (e**2 - (error + e) ** 2 / spread) / 2 - math.log(spread) / 2

            assert _log_expectation(noise, exponent) < 1e-9, (gain, error)

    def test_the_constant(self, noise, rate):
        if rate < 1:
            found = _log_expectation(noise, lambda e: rate * e**2 / 2)
            assert found <= -math.log1p(-rate) / 2 + 1e-9

    def test_what_is_taken(self, noise, rate):
        for gain, error in itertools.product((0.0, 0.2, 1.0, 5.0, 1e4), (0.0, 0.5, -2.0)):
            assert _log_expectation(noise, _taken(rate, error, gain)) < 1e-9, (gain, error)


def test_there_is_no_room_in_the_lemmas():
    """Gaussian noise attains the constant, and the forecast at lambda = 1: these tests can fail."""
    found = _log_expectation("gaussian", lambda e: 0.7 * e**2 / 2)
    assert found == pytest.approx(-math.log(0.3) / 2, abs=1e-9)
    assert _log_expectation("gaussian", _taken(1.0, 2.0, 3.0)) == pytest.approx(0.0, abs=1e-9)
    assert _log_expectation("gaussian", _taken(0.7, 1.0, 1e4), stretch=1.01) > 0.01


def _excess(rates, weights, halves, level, u):
    """The left side of the equation without the right one, which increases with u, in 40 digits."""
    each = [tuple(map(mp.mpf, one)) for one in zip(rates, weights, halves)]
    with mp.workdps(40):
        parts = (w * mp.exp(r * (u - q)) for r, w, q in each)
        return mp.fsum(parts) / mp.fsum(w for _, w, _ in each) - mp.exp(mp.mpf(level))


@pytest.mark.parametrize("delta", [1e-12, 1e-3, 0.1, 0.999, 1.0])
@pytest.mark.parametrize(
    "rates", [(1.0,), (1e-6,), HYBRID.rates, (0.2, 0.2, 1.0), np.linspace(0.1, 1, 10)], ids=str
)
def test_the_equation_is_solved_from_above(rates, delta):
    rng = np.random.default_rng(len(rates))
    for size in (0.0, 1e-9, 1e-3, 1.0, 1e3, 1e6):
        for spread in (0.0, 1e-6, 1.0, 10.0):
            halves = size * (1 + spread * rng.random(len(rates)))
            for weights in (np.ones(len(rates)), rng.random(len(rates)) ** 40 * 1e3):
                given = rates, weights, halves, -math.log(delta)
                found = mp.mpf(_solve(*given))
                rounding = 1e-13 * max(1, -math.log(min(weights) / sum(weights)))
                with mp.workdps(40):
                    less = (found - rounding / min(rates)) / (1 + 1e-13)
                # The solution is between these two.
                assert _excess(*given, less) <= 0 <= _excess(*given, found), (size, spread)


@settings(max_examples=25, deadline=None)
@given(instances, st.floats(1e-3, 10.0))
def test_one_rate_is_the_papers_radius(i, c):
    rng = np.random.default_rng(i["seed"])
    paper, _ = sequence(KERNELS[i["name"]], rng, i["t"], mixture_scale=c)
    ours = kb.ConfidenceSequence(
        paper.kernel, 5.0, 0.1, mixture=Hybrid(rates=(1.0,), relative_scale=c / 25)
    )
    ours.update(paper.points, paper.outcomes)
    assert ours.radius == pytest.approx(paper.radius, rel=1e-9)


def test_the_weights_are_all_that_it_may_lose():
    """R_t^2 is at most the paper's, with the same c, and 2 sigma^2 ln(1/w)."""
    rng = np.random.default_rng(0)
    for name, kernel in KERNELS.items():
        ours, _ = sequence(kernel, rng, 60)
        paper = kb.ConfidenceSequence(kernel, 5.0, 0.1, mixture_scale=0.03 * 25)
        paper.update(ours.points, ours.outcomes)
        price = 0.01 * HYBRID.excess_over_paper
        assert price == pytest.approx(2 * 0.01 * math.log(1 / 0.225))
        assert ours.radius**2 <= (paper.radius**2 + price) * (1 + 1e-9), name


def _everything(seq, Q):
    bounds = [seq.bounds(Q, bound) for bound in (kb.CMM(), kb.DMM(), kb.AMM(), kb.AY())]
    limits = [seq.radius, seq.norm_lower_bound * seq.assumptions.noise_scale, seq.noise_lower_bound]
    return np.concatenate([np.ravel(bounds), limits])


def _in_units(unit, kernel, **options):
    """All that a sequence says when outcomes, B and sigma are multiplied by a number."""
    rng = np.random.default_rng(1)
    function = truth(kernel, rng, 2.0)
    X, y = observe(function, rng, 40, 0.1)
    seq = kb.ConfidenceSequence(kernel, 2.5 * unit, 0.1 * unit, 0.1, **options)
    seq.update(X, y * unit)
    found = _everything(seq, rng.random((5, 2))) / unit
    found[-2] /= unit  # B_min, in the unit of B
    return found


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 7.0, 1e3, 1e6])
@pytest.mark.parametrize(
    "kernel", [Matern(0.4, nu=2.5), ConstantKernel(4.0) * RBF(0.3)], ids=["matern", "scaled"]
)
class TestUnits:
    def test_bounds_have_the_unit_of_the_outcomes(self, unit, kernel):
        np.testing.assert_allclose(_in_units(unit, kernel), _in_units(1.0, kernel), rtol=1e-9)

    def test_with_the_papers_mixture_they_have_not(self, unit, kernel):
        one, other = (_in_units(u, kernel, mixture_scale=1.0) for u in (1.0, unit))
        assert np.abs(other / one - 1).max() > 1e-2

    def test_a_scale_in_the_kernel_is_one_in_the_norm(self, unit, kernel):
        one, other = (
            kb.ConfidenceSequence(k, 2.5 / s, 0.1)
            for k, s in ((kernel, 1.0), (ConstantKernel(unit**2) * kernel, unit))
        )
        X, y = observe(
            truth(kernel, np.random.default_rng(0), 2.0), np.random.default_rng(1), 30, 0.1
        )
        for seq in (one, other):
            seq.update(X, y)
        np.testing.assert_allclose(other.bounds(X[:5]), one.bounds(X[:5]), rtol=1e-7)


@pytest.mark.parametrize("shift", [0.0, -3.0, 1e3])
@pytest.mark.parametrize("stretch", [1e-3, 1.0, 1e4])
def test_the_origin_and_unit_of_inputs_do_not_matter(shift, stretch):
    rng = np.random.default_rng(0)
    X, Q = rng.random((40, 2)), rng.random((5, 2))
    y = np.sin(4 * X[:, 0]) + 0.1 * rng.standard_normal(40)
    found = []
    for a, b in ((1.0, 0.0), (stretch, shift)):
        seq = kb.ConfidenceSequence(Matern([0.5 * a, 0.7 * a], nu=2.5), 3.0, 0.1)
        seq.update(a * (X + b), y)
        found.append(_everything(seq, a * (Q + b)))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9 if abs(shift) < 10 else 1e-6)


MIXTURES = {
    "hybrid": HYBRID,
    "low rates": Hybrid(rates=(0.2, 0.7), relative_scale=1.0),
    "prequential": Prequential(lambda X, y, x: (float(np.mean(y)) if len(y) else 0.0, 1.0)),
    "single": Single(0.3),
}


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("noise_scale", [1e-7, 1e-3, 0.1, 3.0])
@pytest.mark.parametrize("kernel", [Matern(0.5, nu=2.5), DotProduct(0.0), RBF(0.5)], ids=str)
def test_however_they_are_appended(kernel, noise_scale, mixture):
    """One by one with a look in between, in blocks, and all at once; R_t never decreases."""
    if isinstance(mixture, Single) and noise_scale < 1e-4:
        pytest.skip("energies at ridges so small come from a path, which rounds by more")
    rng = np.random.default_rng(0)
    function = truth(kernel, rng, 0.9)
    X, y = observe(function, rng, 67, noise_scale)
    found = []
    for blocks in (67, 9, 1):
        seq = kb.ConfidenceSequence(kernel, 1.0, noise_scale, mixture=mixture)
        radii = [seq.radius]
        for part in np.array_split(np.arange(67), blocks):
            seq.update(X[part], y[part])
            radii.append(seq.radius)
        assert np.all(np.diff(radii) >= 0)
        found.append(seq.radius)
    # Where the noise is nothing beside the outcomes, forecast errors are differences of those.
    assert found[1:] == pytest.approx(found[:1] * 2, rel=max(1e-9, 1e-14 / noise_scale))


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("t", [0, 1, 30])
def test_saved_in_the_middle(tmp_path, mixture, t):
    """The same bits after loading, and after going on, for sequences and policies."""
    own = {"mixture": mixture} if isinstance(mixture, Prequential) else {}
    kernel, rng = Matern(0.5, nu=2.5), np.random.default_rng(0)
    function = truth(kernel, rng, 2.0)
    seq = kb.ConfidenceSequence(kernel, 2.5, 0.1, mixture=mixture)
    policies = [kb.KernelUCB(seq, DOMAINS["finite"])]
    for _ in range(t):
        x = policies[0].ask().x
        policies[0].tell(x, function(x[None])[0] + 0.1 * rng.standard_normal())
    policies[0].save(tmp_path / "policy.npz")
    seq.save(tmp_path / "sequence.npz")
    policies.append(kb.KernelUCB.load(tmp_path / "policy.npz", **own))
    sequences = [seq, policies[1].sequence]
    loaded = kb.ConfidenceSequence.load(tmp_path / "sequence.npz", **own)
    for _ in range(20):
        asked = [policy.ask().x for policy in policies]
        assert np.array_equal(*asked)
        outcome = function(asked[0][None])[0] + 0.1 * rng.standard_normal()
        for policy in policies:
            policy.tell(asked[0], outcome)
        loaded.update(asked[0], outcome)
        for one in (*sequences, loaded):
            assert one.radius == seq.radius
    Q = rng.random((5, 2))
    for one in (sequences[1], loaded):
        assert one.assumptions == seq.assumptions
        assert np.array_equal(_everything(one, Q), _everything(seq, Q))
    if own:
        for load, file in (
            (kb.ConfidenceSequence.load, "sequence.npz"),
            (kb.KernelUCB.load, "policy.npz"),
        ):
            refused(lambda load=load, file=file: load(tmp_path / file), "mixture=")


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Hybrid(rates=()), "empty"),
        (lambda: Hybrid(rates=[0.0]), "rates"),
        (lambda: Hybrid(rates=[0.5, 1.01]), "at most 1"),
        (lambda: Hybrid(rates=[-0.1]), "rates"),
        (lambda: Hybrid(rates=[math.nan]), "rates"),
        (lambda: Hybrid(rates=["a"]), "number"),
        (lambda: Hybrid(rates=[[0.5]]), "rates"),
        (lambda: Hybrid(rates=0.5), "sequence"),
        (lambda: Hybrid(rates="1"), "sequence"),
        (lambda: Hybrid(weights=(1.0, 1.0)), "one for each of the 6 rates, got 2"),
        (lambda: Hybrid((0.5, 1.0), weights=(1.0, 0.0)), "weights"),
        (lambda: Hybrid((0.5, 1.0), weights=(1.0, math.inf)), "weights"),
        (lambda: Hybrid((0.5, 1.0), weights="12"), "sequence"),
        (lambda: Hybrid(relative_scale=0.0), "relative_scale"),
        (lambda: Hybrid(relative_scale=-1.0), "relative_scale"),
        (lambda: Hybrid(relative_scale=math.inf), "relative_scale"),
        (lambda: Single(0.0), "mixture_scale"),
        (lambda: Prequential(3.0), "forecaster"),
        (lambda: Prequential(lambda *_: (0, 1), rates=()), "empty"),
        (lambda: Prequential(lambda *_: (0, 1), relative_scale=0), "relative_scale"),
        (lambda: kb.ConfidenceSequence(RBF(), 1.0, 0.1, 0.1, 1.0, mixture=HYBRID), "not both"),
        *(
            (lambda made=made, wrong=wrong: made(wrong), "mixture")
            for wrong in ("hybrid", "", Hybrid, [], 0, 0.0, -1.0, math.nan, True, False, ())
            for made in (
                lambda wrong: kb.ConfidenceSequence(RBF(), 1.0, 0.1, mixture=wrong),
                lambda wrong: kb.Assumptions(1.0, 0.1, 0.1, wrong),
            )
        ),
    ],
)
def test_refused(make, word):
    refused(make, word)


def test_the_default_and_the_short_form():
    assert kb.ConfidenceSequence(RBF(), 1.0, 0.1).assumptions.mixture == HYBRID
    assert kb.Assumptions(1.0, 0.1).mixture == HYBRID
    assert kb.ConfidenceSequence(RBF(), 1.0, 0.1, mixture_scale=2).assumptions.mixture == Single(2)
    assert kb.Assumptions(1.0, 0.1, 0.1, 2).mixture == Single(2.0)
    assert Hybrid(rates=np.array([0.5, 1])) == Hybrid((0.5, 1.0))
    assert (
        Hybrid((0.5, 1.0)) == Hybrid((0.5, 1.0), weights=[1, 1]) != Hybrid((0.5, 1), 0.03, (1, 2))
    )
    assert sum(HYBRID.weights[:2]) / sum(HYBRID.weights) == pytest.approx(0.1)
    assert Hybrid((1.0, 0.3, 1.0)).excess_over_paper == pytest.approx(2 * math.log(1.5))


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(1, 0, 0.02), (30, 0, 0.011), (400, 0, 0.002), (1600, -0.02, -0.005), (20_000, -0.08, -0.06)],
)
def test_small_rates_are_for_long_runs(count, low, high):
    """What they add to R_t^2 with the energy loss alone, and what they save later."""
    squared = []
    for one in (HYBRID, Hybrid(HYBRID.rates[2:])):
        nothing_known = Forecasts(np.array([0.0]), np.array([1e9]))
        halves = count * half_losses(one.rates, nothing_known, 1.0)[0]
        squared.append(energy_bound(one.rates, halves, count, 1.0, 0.01, one.weights))
    assert low <= squared[0] / squared[1] - 1 <= high


def test_a_file_without_weights_has_equal_ones(tmp_path):
    """Files know the weights since there are any other than equal ones."""
    before = Hybrid((0.2, 0.4, 0.7, 1.0))
    seq, _ = sequence(RBF(0.5), np.random.default_rng(0), 20, mixture=before)
    seq.save(tmp_path / "new.npz")
    header, arrays = archive.read(
        tmp_path / "new.npz", storage.FORMAT, storage.VERSION, "a sequence", storage.NAMES
    )
    assert header["mixture"].pop("weights") == [1.0] * 4
    archive.write(tmp_path / "old.npz", header, arrays)
    for passed in (None, before):
        loaded = kb.ConfidenceSequence.load(tmp_path / "old.npz", mixture=passed)
        assert loaded.assumptions.mixture == before and loaded.radius == seq.radius
    refused(lambda: kb.ConfidenceSequence.load(tmp_path / "old.npz", mixture=HYBRID), "same one")


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
def test_without_data(mixture):
    empty = kb.ConfidenceSequence(RBF(), 2.0, 0.5, delta=0.1, mixture=mixture)
    rates = getattr(mixture, "rates", (1.0,))
    weights = Hybrid(rates).weights
    share = weights[-1] / sum(weights)
    assert empty.radius**2 <= 0.5 * math.log(10 / share) / max(rates)
    certain = kb.ConfidenceSequence(RBF(), 2.0, 0.5, delta=1.0, mixture=mixture)
    assert certain.radius == pytest.approx(0.0, abs=1e-7)


class TestTheory:
    @settings(max_examples=25, deadline=None)
    @given(instances, st.sampled_from([HYBRID, Hybrid((0.5, 1.0), 1.0)]))
    def test_above_the_radius_of_a_run(self, i, mixture):
        rng = np.random.default_rng(i["seed"])
        seq, _ = sequence(KERNELS[i["name"]], rng, i["t"], mixture=mixture)
        ridge = 0.01 / seq.assumptions.mixture_scale
        gain = theory.information_gain(seq.kernel, seq.points, ridge)
        bound = float(theory.radius_bound(seq.assumptions, gain))
        assert seq.ridge_radius() <= bound * (1 + 1e-9)
        assert bound < 3 * seq.ridge_radius()

    @pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AMM()], ids=repr)
    def test_above_the_regret_of_a_run(self, bound):
        rng = np.random.default_rng(2)
        function = truth(RBF(0.4), rng, 2.0)
        seq = kb.ConfidenceSequence(RBF(0.4), 2.0, 0.1, 0.1, bound=bound)
        ucb = kb.KernelUCB(seq, DOMAINS["finite"])
        radii = []
        for _ in range(40):
            radii.append(seq.ridge_radius())
            x = ucb.ask().x
            ucb.tell(x, function(x[None])[0] + 0.1 * rng.standard_normal())
        found = theory.run_bound(ucb)
        regret = np.cumsum(function(DOMAINS["finite"].points).max() - function(seq.points))
        assert np.all(radii <= found.radii * (1 + 1e-9))
        assert np.all(ucb.history.width <= found.terms * (1 + 1e-6))
        assert np.all(regret <= found.cumulative)
        whole = theory.regret_bound(
            seq.assumptions, np.arange(1, 41), found.gains, found.counts, found.value_bound
        )
        assert np.all(found.cumulative <= whole * (1 + 1e-9))

    def test_no_norm_no_regret(self):
        seq = kb.ConfidenceSequence(RBF(), 0.0, 0.1)
        seq.update([[0.1], [0.2]], [0.1, -0.1])
        assert np.all(theory.run_bound(seq).terms == 0)
        assert np.isfinite(theory.radius_bound(seq.assumptions, 1.0))

    @pytest.mark.parametrize(
        "mixture", [MIXTURES["prequential"], MIXTURES["low rates"]], ids=["own", "without 1"]
    )
    def test_refused_where_nothing_is_known(self, mixture):
        seq = kb.ConfidenceSequence(RBF(), 1.0, 0.1, mixture=mixture)
        seq.update([[0.1]], [0.1])
        for call in (
            lambda: theory.run_bound(seq),
            lambda: theory.radius_bound(seq.assumptions, 1.0),
            lambda: theory.regret_bound(seq.assumptions, 10, 1.0, 1, 1.0),
        ):
            refused(call, "no regret bound is known")
