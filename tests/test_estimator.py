"""The scikit-learn regressor: scikit-learn's own checks, and the confidence sequence behind it."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from problems import Own
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelbounds as kb
from kernelbounds.surface.estimate import likeliest

KERNEL = Matern(length_scale=1.0, nu=2.5)
PARTS = kb.Parts([(Matern(nu=1.5), 3.0), (RBF(2.0), 2.0)])
# Each argument is given at least once, and each way of fitting is there.
REGRESSORS = [
    kb.KernelConfidenceRegressor(),
    kb.KernelConfidenceRegressor(noise_scale=0.0, offset=3.0),
    kb.KernelConfidenceRegressor(
        RBF(2.0), norm_bound=5.0, noise_scale=0.1, mixture=kb.mixtures.Single(2.0),
        offset=kb.Offset(3.0, within=2.0),
    ),
    kb.KernelConfidenceRegressor(PARTS, norm_bound=None, mixture_scale=1.0, bound=kb.AMM()),
]  # fmt: skip


@parametrize_with_checks(REGRESSORS)
def test_scikit_learn_approves(estimator, check):
    check(estimator)


def truth(X):
    return np.sin(2 * X[:, 0]) * np.exp(-(X[:, 1] ** 2))


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, truth(X) + 0.1 * rng.standard_normal(n)


def regressor(**changed):
    return kb.KernelConfidenceRegressor(**{"noise_scale": 0.1, **changed})


NEW = np.random.default_rng(1).normal(size=(30, 2))
SETTINGS = {
    "default": {},
    "single": {"mixture_scale": 0.5},
    "level": {"offset": kb.Offset(lambda X: X[:, 0])},
    "unknown level": {"offset": kb.Offset(1.0, within=2.0)},
    "parts": {"kernel": PARTS, "norm_bound": None},
    "no noise": {"noise_scale": 0.0, "norm_bound": 1e4},
    "AMM": {"bound": kb.AMM()},
}


@pytest.mark.parametrize("changed", SETTINGS.values(), ids=SETTINGS)
def test_intervals_are_those_of_the_sequence(changed):
    X, y = data()
    given = {"kernel": KERNEL, "norm_bound": 10.0, "noise_scale": 0.1} | changed
    seq = kb.ConfidenceSequence(**given)
    seq.update(X, y)
    model = regressor(**changed).fit(X, y)
    for bound in (None, kb.DMM()):
        found = model.predict_interval(NEW, bound)
        for ours, theirs in zip(found, seq.bounds(NEW, bound), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("changed", SETTINGS.values(), ids=SETTINGS)
def test_partial_fit_is_fit_in_pieces(changed):
    X, y = data()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    whole, pieces = (regressor(**changed) for _ in range(2))
    whole.fit(X, y, weights)
    for rows in np.split(np.arange(len(X)), [1, 7, 40]):
        assert pieces.partial_fit(X[rows], y[rows], weights[rows]) is pieces
    np.testing.assert_allclose(pieces.predict(NEW), whole.predict(NEW), rtol=1e-9, atol=1e-9)
    for one, other in zip(pieces.predict_interval(NEW), whole.predict_interval(NEW)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert len(pieces.fit(X[:5], y[:5]).sequence_) == 5  # fit forgets


@pytest.mark.parametrize("kernel", [KERNEL, RBF(0.7), Own(0.5)], ids=str)
@pytest.mark.parametrize("changed", [{}, {"mixture_scale": 2.0}], ids=str)
def test_predictions_are_means_of_a_gaussian_process(kernel, changed):
    X, y = data()
    weights = np.random.default_rng(2).uniform(0.2, 3.0, len(X))
    model = regressor(kernel=kernel, norm_bound=4.0, **changed).fit(X, y, weights)
    ridge = likeliest(model.sequence_.known, by_points=True).ridge
    process = GaussianProcessRegressor(
        ConstantKernel(1 / ridge) * kernel, alpha=1 / weights, optimizer=None
    )
    expected = process.fit(X, y).predict(NEW)
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-9, atol=1e-9)


def test_predictions_are_estimates_of_the_sequence():
    X, y = data()
    model = regressor(offset=0.3).fit(X, y)
    estimate, lower, upper = model.sequence_.estimate_with_bounds(NEW)
    np.testing.assert_allclose(np.clip(model.predict(NEW), lower, upper), estimate, atol=1e-12)
    assert np.mean((lower < estimate) & (estimate < upper)) > 0.9


@pytest.mark.parametrize("changed", SETTINGS.values(), ids=SETTINGS)
def test_weights_of_zero_leave_observations_out(changed):
    X, y = data()
    kept = np.random.default_rng(3).random(len(X)) < 0.5
    weighted = regressor(**changed).fit(X, np.where(kept, y, 1e9), kept)
    left = regressor(**changed).fit(X[kept], y[kept])
    np.testing.assert_array_equal(weighted.predict(NEW), left.predict(NEW))
    np.testing.assert_array_equal(weighted.predict_interval(NEW), left.predict_interval(NEW))


def test_a_weight_is_a_noise_scale():
    X, y = data()
    weights = np.random.default_rng(2).uniform(0.2, 3.0, len(X))
    seq = kb.ConfidenceSequence(KERNEL, 10.0, 0.1)
    seq.update(X, y, noise_scale=0.1 / np.sqrt(weights))
    model = regressor().fit(X, y, weights)
    np.testing.assert_array_equal(model.predict_interval(NEW), seq.bounds(NEW))
    # The same weight for all is another sigma.
    same, other = regressor().fit(X, y, 4.0), regressor(noise_scale=0.05).fit(X, y)
    np.testing.assert_allclose(same.sequence_.noise_scales, other.sequence_.noise_scales)


def test_a_weight_of_two_is_one_observation():
    """Predictions cannot tell it from two, but there is less noise to allow for."""
    X, y = data()
    twice = regressor().fit(X.repeat(2, axis=0), y.repeat(2))
    weighted = regressor().fit(X, y, 2 * np.ones(len(X)))
    np.testing.assert_allclose(weighted.predict(NEW), twice.predict(NEW), atol=1e-9)
    assert len(weighted.sequence_) == 60 and len(twice.sequence_) == 120
    assert weighted.sequence_.radius < twice.sequence_.radius


def test_intervals_contain_the_truth():
    X, y = data(200)
    lower, upper = regressor().fit(X, y).predict_interval(NEW)
    assert np.all((lower <= truth(NEW)) & (truth(NEW) <= upper))


def test_refuted_assumptions_leave_predictions():
    X, y = data(200)
    model = regressor(norm_bound=0.5).fit(X, y)
    assert model.score(X, y) > 0.5
    with pytest.raises(kb.EmptyConfidenceSetError):
        model.predict_interval(NEW)
    model.partial_fit(X[:1], y[:1])
    assert np.isfinite(model.predict(NEW)).all()


def test_in_a_pipeline():
    X, y = data()
    X = X * [30.0, 0.01] + [200.0, 1.0]  # degrees and moles
    model = make_pipeline(StandardScaler(), regressor()).fit(X, y)
    scaled = StandardScaler().fit(X)
    alone = regressor().fit(scaled.transform(X), y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(scaled.transform(X)))
    found = model[-1].predict_interval(model[:-1].transform(X))
    np.testing.assert_array_equal(found, alone.predict_interval(scaled.transform(X)))
    assert cross_val_score(model, X, y, cv=4).min() > 0.5
    model.fit(X, y, kernelconfidenceregressor__sample_weight=np.full(len(X), 4.0))
    assert model[-1].sequence_.noise_scales == pytest.approx(0.05)


def test_a_grid_search():
    X, y = data()
    model = make_pipeline(StandardScaler(), regressor(kernel=Matern(nu=2.5)))
    step = "kernelconfidenceregressor"
    grid = {f"{step}__norm_bound": [0.01, 10.0], f"{step}__kernel__length_scale": [0.01, 1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_[f"{step}__kernel__length_scale"] == 1  # the data choose the ridge
    assert model[-1].kernel.length_scale == 1.0  # the caller's is as it was


@pytest.mark.parametrize("changed", SETTINGS.values(), ids=SETTINGS)
def test_copies(changed):
    X, y = data()
    fitted = regressor(**changed).fit(X, y)
    fresh = clone(fitted)
    with pytest.raises(NotFittedError):
        fresh.predict_interval(NEW)
    np.testing.assert_array_equal(fresh.fit(X, y).predict(NEW), fitted.predict(NEW))
    if callable(getattr(changed.get("offset"), "level", None)):
        return  # Python does not pickle lambdas
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.predict_interval(NEW), fitted.predict_interval(NEW))
    loaded.partial_fit(NEW, truth(NEW))
    assert len(loaded.sequence_) == 90 and len(fitted.sequence_) == 60


@pytest.mark.parametrize("changed", [{"norm_bound": 20.0}, {"kernel__length_scale": 0.5}], ids=str)
def test_partial_fit_is_for_one_set_of_assumptions(changed):
    X, y = data()
    model = regressor(kernel=Matern(nu=2.5)).fit(X, y).set_params(**changed)
    before = model.predict_interval(NEW)
    with pytest.raises(kb.InputError, match="parameters have changed"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict_interval(NEW), before)
    model.fit(X, y).partial_fit(NEW, truth(NEW))
    assert len(model.sequence_) == 90


def test_the_kernel_given_is_not_shared():
    X, y = data()
    kernel = Matern(nu=2.5)
    model = regressor(kernel=kernel).fit(X, y)
    before = model.predict(NEW)
    kernel.length_scale = 9.0
    np.testing.assert_array_equal(model.predict(NEW), before)


def masked(values):
    return np.ma.masked_where(np.arange(values.size).reshape(values.shape) == 3, values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda X, y: (masked(X), y), "X has 1 masked"),
        (lambda X, y: (X, masked(y)), "y has 1 masked"),
        (lambda X, y: (X, y, masked(y)), "sample_weight has 1 masked"),
        (lambda X, y: (X.astype(int) + 2**53 + 1, y), "lose digits"),
        (lambda X, y: (X, y * 1e200), "y contains"),
        (lambda X, y: (X, y, y), "sample_weight must be 0, or between"),
        (lambda X, y: (X, y, 0), "sample_weight is zero for all"),
        (lambda X, y: (X, y, [1.0]), "one number for each of 60"),
        (lambda X, y: (X, np.column_stack([y, y])), "1d array"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_what_cannot_be_used_is_refused(arguments, message, method):
    X, y = data()
    model = regressor().fit(X, y)
    before = model.predict_interval(NEW)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(*arguments(X, y))
    np.testing.assert_array_equal(model.predict_interval(NEW), before)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kernel": PARTS}, "norm_bound=None"),
        ({"norm_bound": None}, "norm_bound is missing"),
        ({"noise_scale": -1.0}, "noise_scale must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"bound": "CMM"}, "bound must be"),
        ({"mixture": kb.mixtures.Hybrid(), "mixture_scale": 1.0}, "not both"),
    ],
)
def test_wrong_parameters_are_found_by_fit(changed, message):
    model = regressor(**changed)
    with pytest.raises(kb.InputError, match=message):
        model.fit(*data())
    with pytest.raises(NotFittedError):
        model.predict(NEW)


def test_masked_points_are_refused_in_predictions():
    model = regressor().fit(*data())
    for method in (model.predict, model.predict_interval):
        with pytest.raises(kb.InputError, match="masked"):
            method(masked(NEW))


def test_names_of_inputs_are_kept_and_checked():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    table = pandas.DataFrame(X, columns=["dose", "time"])
    model = regressor().fit(table, pandas.Series(y), pandas.Series(np.ones(len(y))))
    assert list(model.feature_names_in_) == ["dose", "time"] and model.n_features_in_ == 2
    np.testing.assert_array_equal(model.predict(table), regressor().fit(X, y).predict(X))
    swapped = table[["time", "dose"]]
    for call in (model.predict, model.predict_interval, lambda X: model.partial_fit(X, y)):
        with pytest.raises(ValueError, match="feature names"):
            call(swapped)
    with pytest.warns(UserWarning, match="feature names"):
        model.predict_interval(X)


def test_the_import_is_silent():
    command = [sys.executable, "-W", "error", "-c", "import kernelbounds.estimator"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
