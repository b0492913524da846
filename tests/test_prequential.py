"""Forecasts of one's own: valid whatever they are, asked for once, and refused in a sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import DOMAINS, observe, refused, truth
from sklearn.gaussian_process.kernels import Matern
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import kernelbounds as kb
from kernelbounds.mixtures import Prequential

KERNEL = Matern(0.5, nu=2.5)


class Recording:
    """A constant forecast, and what was known when it was made."""

    def __init__(self, mean=0.0, variance=1.0):
        self.answer, self.seen = (mean, variance), []

    def __call__(self, X, y, x):
        self.seen.append((X, y, x))
        return self.answer


class Refitted:
    """A scikit-learn regressor that is refitted after every tenth observation.

    What it calls the deviation is that of outcomes; the forecast must be without the noise.
    """

    def __init__(self):
        self.model = None

    def __call__(self, X, y, x):
        if len(y) >= 10 and len(y) % 10 == 0:
            self.model = make_pipeline(PolynomialFeatures(4), BayesianRidge()).fit(X, y)
        if self.model is None:
            return 0.0, 1.0
        mean, deviation = self.model.predict(x[None], return_std=True)
        return mean[0], max(deviation[0] ** 2 - 1 / self.model[-1].alpha_, 0.0)


def _sequence(forecaster, noise_scale=0.1, **options):
    return kb.ConfidenceSequence(
        KERNEL, 2.0, noise_scale, 0.1, mixture=Prequential(forecaster), **options
    )


def _data(t, noise_scale=0.1, seed=0):
    rng = np.random.default_rng(seed)
    function = truth(KERNEL, rng, 1.5)
    return function, *observe(function, rng, t, noise_scale)


class TestWhatItIsAsked:
    def test_once_for_each_observation_in_order_of_the_past_alone(self, tmp_path):
        forecaster = Recording()
        seq = _sequence(forecaster)
        _, X, y = _data(25)
        for part in ([0], [1, 2, 3], range(4, 20), range(20, 25)):
            seq.update(X[list(part)], y[list(part)])
            # Whatever else is asked of the sequence.
            assert seq.radius > 0 and seq.noise_lower_bound >= 0 and seq.norm_lower_bound >= 0
            seq.bounds(X[:2], kb.DMM())
            seq.save(tmp_path / "x.npz")
        assert len(forecaster.seen) == 25
        for s, (past, outcomes, point) in enumerate(forecaster.seen):
            assert np.array_equal(past, X[:s]) and past.shape == (s, 2)
            assert np.array_equal(outcomes, y[:s])
            assert np.array_equal(point, X[s])
        later = Recording()
        loaded = kb.ConfidenceSequence.load(
            tmp_path / "x.npz", mixture=_like(seq.assumptions.mixture, later)
        )
        assert loaded.radius == seq.radius and not later.seen
        loaded.update([0.5, 0.5], 0.3)
        assert loaded.radius > seq.radius
        assert [len(outcomes) for _, outcomes, _ in later.seen] == [25]

    def test_without_noise_too(self):
        forecaster = Recording()
        seq = _sequence(forecaster, noise_scale=0.0)
        function, X, _ = _data(6)
        seq.update(X, function(X) + 0.1 * (-1.0) ** np.arange(6))
        assert seq.radius == 0 and 0 < seq.noise_lower_bound < 1
        assert seq.noise_lower_bound and len(forecaster.seen) == 6

    def test_it_cannot_change_the_data(self):
        def vandal(X, y, x):
            X[:], y[:], x[:] = 7.0, 7.0, 7.0
            return 0.0, 1.0

        _, X, y = _data(10)
        seq = _sequence(vandal)
        seq.update(X, y)
        assert seq.radius > 0
        assert np.array_equal(seq.points, X) and np.array_equal(seq.outcomes, y)


def _like(mixture, forecaster):
    return Prequential(forecaster, mixture.rates, mixture.relative_scale)


def test_another_mixture_is_refused_on_loading(tmp_path):
    seq = _sequence(Recording())
    seq.save(tmp_path / "x.npz")
    for other in (kb.mixtures.Hybrid(), Prequential(len), Prequential(Recording(), rates=(0.5,))):
        with pytest.raises(kb.InputError, match="pass the same one"):
            kb.ConfidenceSequence.load(tmp_path / "x.npz", mixture=other)
    with pytest.raises(kb.InputError, match="mixture must be"):
        kb.ConfidenceSequence.load(tmp_path / "x.npz", mixture="prequential")


@pytest.mark.parametrize(
    "forecaster",
    [
        lambda X, y, x: (0.0, 1.0),
        lambda X, y, x: (np.array([[0.2]]), np.float32(0.3)),
        lambda X, y, x: [1e6, 0.0],  # sure, and wrong
        lambda X, y, x: (-3.0, 1e-9),
        lambda X, y, x: (0.0, 1e300),
        lambda X, y, x: (1e99, 1e-300),
        Refitted(),
    ],
    ids=["constant", "arrays", "sure", "wrong", "unsure", "overflow", "refitted"],
)
@pytest.mark.parametrize("noise_scale", [1e-90, 0.1, 10.0])
def test_valid_whatever_is_forecast(forecaster, noise_scale):
    function, X, y = _data(60, noise_scale)
    y = function(X) + noise_scale * np.random.default_rng(1).standard_normal(60)
    seq = _sequence(forecaster, noise_scale)
    seq.update(X, y)
    if noise_scale > 1e-9:
        assert np.linalg.norm(y - function(X)) <= seq.radius < math.inf
        lower, upper = seq.bounds(X[:5])
        assert np.all(lower <= function(X[:5])) and np.all(function(X[:5]) <= upper)
    else:
        assert 0 < seq.radius <= 1e105


def test_good_forecasts_make_smaller_radii():
    function, X, y = _data(120)
    found = {}
    for name, forecaster in {
        "truth": lambda X, y, x: (function(x[None])[0], 0.0),
        "refitted": Refitted(),
        "constant": lambda X, y, x: (0.0, 1.0),
        # It sounds as sure as the truth, and repeats the latest outcome.
        "garbage": lambda X, y, x: (y[-1] if len(y) else 5.0, 0.0),
    }.items():
        seq = _sequence(forecaster)
        seq.update(X, y)
        found[name] = seq.radius
    noise = np.linalg.norm(y - function(X))
    assert noise <= min(found.values())
    assert found["truth"] < found["refitted"] < found["constant"] < found["garbage"]
    assert found["truth"] < 1.1 * noise and found["garbage"] > 3 * noise


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ((math.nan, 1.0), "finite"),
        ((0.0, math.nan), "finite"),
        ((math.inf, 1.0), "finite"),
        ((0.0, math.inf), "finite"),
        ((1e200, 1.0), "finite"),
        ((0.0, -1e-9), "not negative"),
        (0.5, "two numbers"),
        (None, "two numbers"),
        ((0.5,), "two numbers"),
        ((0.5, 1.0, 2.0), "two numbers"),
        (("a", 1.0), "two numbers"),
        ((None, 1.0), "two numbers"),
        (([1.0, 2.0], 1.0), "two numbers"),
        ((1j, 1.0), "two numbers"),
        (ZeroDivisionError("division\nby zero"), "after 3 observations: division by zero"),
        (KeyError("mean"), "failed after 3"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_lost(tmp_path, answer, word):
    calls = []

    def forecaster(X, y, x):
        calls.append(len(y))
        if len(y) < 3 or calls.count(3) > 2:
            return 0.0, 1.0
        if isinstance(answer, Exception):
            raise answer
        return answer

    seq = _sequence(forecaster)
    _, X, y = _data(6)
    seq.update(X, y)
    refused(lambda: seq.bounds(X[:1]), word)
    assert len(seq) == 6
    seq.save(tmp_path / "x.npz")
    seq.update(X[:1], y[:1])
    assert seq.radius > 0  # it has recovered
    assert calls == [0, 1, 2, 3, 3, 3, 4, 5, 6]
    loaded = kb.ConfidenceSequence.load(tmp_path / "x.npz", mixture=seq.assumptions.mixture)
    loaded.update(X[:1], y[:1])
    assert loaded.radius == seq.radius
    assert calls == [0, 1, 2, 3, 3, 3, 4, 5, 6, 3, 4, 5, 6]


def test_a_policy_with_a_regressor():
    """Batches too: believed outcomes of pending points are forecast by a copy, and forgotten."""
    function, _, _ = _data(1)
    rng = np.random.default_rng(0)
    forecaster = Recording()
    for chosen in (forecaster, Refitted()):
        seq = _sequence(chosen)
        ucb = kb.KernelUCB(seq, DOMAINS["finite"])
        for _ in range(6):
            for suggested in ucb.ask(n=5):
                value = function(suggested.x[None])[0]
                ucb.tell(suggested.x, value + 0.1 * rng.standard_normal())
            assert np.linalg.norm(seq.outcomes - function(seq.points)) <= seq.radius
        best = function(DOMAINS["finite"].points).max()
        found = ucb.certificate()
        assert best - function(found.x[None])[0] <= found.regret
    assert [len(outcomes) for _, outcomes, _ in forecaster.seen] == list(range(30))


def test_interruptions_are_not_dressed_up():
    def slow(X, y, x):
        raise KeyboardInterrupt

    seq = _sequence(slow)
    seq.update([[0.1, 0.2]], [0.3])
    with pytest.raises(KeyboardInterrupt):
        seq.radius  # noqa: B018


def test_one_rate_and_the_forecasts_of_a_gaussian_process_are_hybrid():
    """Forecasts of N(0, c K), computed by hand."""
    _, X, y = _data(30)
    c, noise = 0.03 * 4.0, 0.01

    def process(past, outcomes, x):
        k = c * KERNEL(past, x[None])[:, 0] if len(outcomes) else np.empty(0)
        K = c * KERNEL(past) + noise * np.eye(len(past)) if len(outcomes) else np.empty((0, 0))
        return k @ np.linalg.solve(K, outcomes), c - k @ np.linalg.solve(K, k)

    own, ours = _sequence(process), kb.ConfidenceSequence(KERNEL, 2.0, 0.1, 0.1)
    for seq in (own, ours):
        seq.update(X, y)
    assert own.radius == pytest.approx(ours.radius, rel=1e-9)
    assert own.bounds(X[:3]) == pytest.approx(np.array(ours.bounds(X[:3])), rel=1e-9)
