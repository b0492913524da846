"""Observations with noise scales of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import BOUNDS, KERNELS, data_sets, refused, too_many, truth
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from kernelbounds.functionals import Difference
from kernelbounds.mixtures import Hybrid, Prequential, Single

MIXTURES = {
    "hybrid": Hybrid(),
    "single": Single(0.7),
    "prequential": Prequential(lambda X, y, x: (float(y.mean()) if len(y) else 0.0, 1.0)),
}
instances = st.fixed_dictionaries(
    {
        **data_sets,
        "bound": st.sampled_from(["AMM", "AY", "CMM", "DMM"]),
        "mixture": st.sampled_from(sorted(MIXTURES)),
        "spread": st.sampled_from([0.0, 0.5, 2.0]),
    }
)


def _data(i):
    rng = np.random.default_rng(i["seed"])
    function = truth(KERNELS[i["name"]], rng, 4.0)
    X, scales = rng.random((i["t"], 2)), 0.2 * 10 ** rng.uniform(-i["spread"], i["spread"], i["t"])
    y = function(X) + scales * rng.standard_normal(i["t"])
    return X, y, scales, np.vstack([rng.random((5, 2)), X[:2]])


def _sequence(i, noise_scale, norm_bound=5.0, **options):
    options = {"bound": BOUNDS[i["bound"]], "mixture": MIXTURES[i["mixture"]], **options}
    return kb.ConfidenceSequence(KERNELS[i["name"]], norm_bound, noise_scale, **options)


def _slack(i, Q):
    return 1e-6 * 5.0 * float(np.sqrt(KERNELS[i["name"]].diag(Q).max()))


@settings(max_examples=60, deadline=None)
@given(instances, st.sampled_from([1e-3, 0.05, 7.0]))
def test_where_all_have_their_own_that_of_the_sequence_does_not_matter(i, other):
    """All numbers of one problem are multiples of those of the other."""
    X, y, scales, Q = _data(i)
    one, two = _sequence(i, 0.2), _sequence(i, other)
    for seq in (one, two):
        seq.update(X, y, scales)
    np.testing.assert_allclose(two.radius / other, one.radius / 0.2, rtol=1e-6)
    np.testing.assert_allclose(two.bounds(Q), one.bounds(Q), rtol=1e-6, atol=_slack(i, Q))
    np.testing.assert_allclose(two.noise_scales, scales)


@settings(max_examples=30, deadline=None)
@given(instances, st.sampled_from([0.2, 0.7, 3.0]))
def test_the_same_for_all_is_that_of_the_sequence(i, scale):
    X, y, _, Q = _data({**i, "spread": 0.0})
    plain, scaled, listed = _sequence(i, scale), _sequence(i, 0.2), _sequence(i, scale)
    plain.update(X, y)
    scaled.update(X, y, scale)
    listed.update(X, y, np.full(len(X), scale))
    np.testing.assert_array_equal(listed.bounds(Q), plain.bounds(Q))
    np.testing.assert_allclose(scaled.bounds(Q), plain.bounds(Q), rtol=1e-6, atol=_slack(i, Q))


@settings(max_examples=30, deadline=None)
@given(instances)
def test_one_by_one_or_all_at_once(i):
    X, y, scales, Q = _data(i)
    whole, steps = _sequence(i, 0.2), _sequence(i, 0.2)
    whole.update(X, y, scales)
    for x, value, scale in zip(X, y, scales):
        steps.update(x, value, scale)
        steps.radius  # noqa: B018 - so that forecasts are made on the way
    np.testing.assert_allclose(steps.radius, whole.radius, rtol=1e-9)
    np.testing.assert_allclose(steps.bounds(Q), whole.bounds(Q), rtol=1e-6, atol=_slack(i, Q))
    np.testing.assert_array_equal(steps.outcomes, y)


@pytest.mark.parametrize("mixture", ["hybrid", "prequential"])
@pytest.mark.parametrize("bound", ["AMM", "AY", "CMM", "DMM"])
@pytest.mark.parametrize("unit", [1e-3, 8.0, 1e5])
def test_units(unit, bound, mixture):
    """Outcomes, norms, noise and level in another unit: so are the bounds."""
    i = {
        "name": "matern 5/2",
        "seed": 3,
        "t": 40,
        "spread": 1.0,
        "bound": bound,
        "mixture": mixture,
    }
    X, y, scales, Q = _data(i)
    found = []
    for u in (1.0, unit):
        forecaster = Prequential(lambda X, y, x, u=u: (0.0, u**2))
        own = forecaster if mixture == "prequential" else Hybrid()
        seq = _sequence(i, 0.2 * u, 5.0 * u, mixture=own, offset=kb.Offset(3.0 * u, 2.0 * u))
        seq.update(X, 4.0 * u + u * y, scales * u)
        difference = seq.bounds_of(Difference(Q[0], Q[1]))
        found.append(np.append(np.ravel(seq.bounds(Q)), [*difference, seq.radius]) / u)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
def test_one_mean_of_two_outcomes_is_both_of_them(ridge):
    """With noise smaller by the square root of two: the same predictions at every ridge."""
    rng = np.random.default_rng(0)
    X, Y, Q = rng.random((15, 2)), rng.standard_normal((15, 2)), rng.random((6, 2))
    twice = kb.ConfidenceSequence(RBF(0.4), 5.0, 0.3)
    twice.update(np.repeat(X, 2, axis=0), Y.ravel())
    once = kb.ConfidenceSequence(RBF(0.4), 5.0, 0.3)
    once.update(X, Y.mean(axis=1), 0.3 / np.sqrt(2))
    one, two = (seq.known.predict(Q, np.array([ridge])) for seq in (once, twice))
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.variance, two.variance, rtol=1e-8, atol=1e-10)


def test_a_weighted_observation_is_one_of_a_scaled_value():
    """The same confidence set, written out: |w f(x_s) - w y_s| in a sphere of radius R."""
    rng = np.random.default_rng(1)
    kernel, X = RBF(0.5), rng.random((8, 2))
    function = truth(kernel, rng, 4.0)
    scales = np.geomspace(0.01, 3.0, 8)
    seq = kb.ConfidenceSequence(kernel, 5.0, 0.1, offset=10.0)
    seq.update(X, 10.0 + function(X) + scales * rng.standard_normal(8), scales)
    assert seq.contains(function)
    misfit = np.linalg.norm(0.1 * (seq.outcomes - 10.0 - function(X)) / scales)
    assert misfit < seq.radius
    # The most precise one moved by as much as the radius allows, and a little more.
    room = np.sqrt(seq.radius**2 - misfit**2)
    for share, inside in ((0.0, True), (4.0, False)):
        other = kb.ConfidenceSequence(kernel, 5.0, 0.1, offset=10.0)
        y = seq.outcomes
        y[0] += share * room * scales[0] / 0.1
        other.update(X, y, scales)
        assert other.contains(function) == inside


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_noise_scale_is_known_before_its_outcome_and_no_earlier_forecast_uses_it(mixture):
    """What is forecast of an outcome does not depend on later noise scales."""
    rng = np.random.default_rng(0)
    X, y = rng.random((12, 2)), rng.standard_normal(12)
    made = []
    for last in (1e-6, 0.1, 1e3):
        seq = kb.ConfidenceSequence(RBF(0.5), 5.0, 0.1, mixture=MIXTURES[mixture])
        seq.update(X, y, [*[0.1] * 11, last])
        made.append(np.array(seq.known.forecasts()))
    for other in made[1:]:
        np.testing.assert_allclose(other[:, :11], made[0][:, :11], rtol=1e-13)


def _wrong(mixture, runs, believed):
    """Runs in which the noise energy of an adaptive loop exceeds R_t^2 at some time."""
    grid, kernel, wrong = np.linspace(0, 1, 20)[:, None], RBF(0.3), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        function = truth(kernel, rng, 2.0, dim=1)
        seq = kb.ConfidenceSequence(kernel, 2.0, 0.3, 0.1, mixture=mixture, bound=kb.AMM())
        failed = False
        for _ in range(20):
            try:
                x = grid[np.argmax(seq.upper(grid))]
            except kb.EmptyConfidenceSetError:
                failed = True
                break
            # Precise measurements where much is known: the scale depends on the past.
            scale = 0.05 if len(seq) % 3 == 2 and seq.outcomes[-1] > 0 else 1.0
            seq.update(x, function(x[None])[0] + scale * rng.standard_normal(), believed * scale)
            misfit = 0.3 / seq.noise_scales * (seq.outcomes - function(seq.points))
            failed |= bool(misfit @ misfit > seq.radius**2)
        wrong += failed
    return wrong


@pytest.mark.parametrize("mixture", MIXTURES)
def test_the_radius_holds_where_noise_scales_depend_on_the_past(mixture):
    assert not too_many(_wrong(MIXTURES[mixture], 30, 1.0), 30, 0.1)


def test_that_test_can_fail():
    assert too_many(_wrong(Hybrid(), 30, 0.4), 30, 0.1)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_the_smallest_noise_scale_with_weights(mixture):
    """It is in the unit of the sequence's own, all others in proportion."""
    rng = np.random.default_rng(0)
    X, scales = rng.random((40, 2)), 10 ** rng.uniform(-1, 1, 40)
    y = scales * rng.standard_normal(40)
    found = []
    for believed in (0.1, 0.01):
        seq = kb.ConfidenceSequence(RBF(0.5), 1.0, believed, mixture=MIXTURES[mixture])
        seq.update(X, y, believed * scales)
        found.append(seq.noise_lower_bound)
    assert 0.1 < found[1] <= 1.0 and found[0] == pytest.approx(found[1], rel=0.02)
    with pytest.raises(kb.EmptyConfidenceSetError):
        seq.bounds(X)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (0.0, "must be positive"),
        (-1.0, "must be positive"),
        ([0.1, 0.0], "must be positive"),
        ([0.1, 1e60], "not beyond 1e50"),
        ([0.1, np.nan], "noise_scale"),
        ([0.1, np.inf], "noise_scale"),
        ([0.1], "one for each observation"),
        ([0.1, 0.1, 0.1], "one for each observation"),
        ([[0.1, 0.1]], "one for each observation"),
        ("small", "noise_scale"),
    ],
)
def test_what_is_no_noise_scale_is_refused(given, match):
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    policy = kb.KernelUCB(seq, kb.Finite([[0.0], [1.0]]))
    for add in (seq.update, policy.tell):
        refused(lambda add=add: add([[0.0], [1.0]], [0.0, 0.0], noise_scale=given), match)
        assert len(seq) == 0 and len(policy.history.upper) == 0


def test_without_noise_there_are_no_weights():
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.0)
    with pytest.raises(kb.InputError, match="observations without noise only"):
        seq.update([[0.0]], [0.0], 0.1)
    seq.update([[0.0]], [0.0], 0.0)
    assert seq.noise_scales.tolist() == [0.0]
