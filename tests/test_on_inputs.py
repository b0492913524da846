"""Kernels on some of the inputs: as if the points had no other coordinates."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from exact_kernels import ExactFunction, exact
from problems import Own
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import kernelbounds as kb
from kernelbounds import kernels
from kernelbounds.kernels.values import FEWEST_PAIRS_OF_PRODUCT

EPS = np.finfo(float).eps
SEASON = ExpSineSquared(1.1, 0.7)
# Kernels on three inputs.
KERNELS = {
    "sum": kb.OnInputs(Matern(0.5, nu=2.5), [0]) + kb.OnInputs(RBF(0.3), [1, 2]),
    "product": kb.OnInputs(Matern(0.5, nu=1.5), [2]) * kb.OnInputs(DotProduct(0.4), [0, 1]),
    "power": (0.5 * kb.OnInputs(RationalQuadratic(0.4, 1.5), [1]) + ConstantKernel(0.1)) ** 2,
    "anisotropic": kb.OnInputs(RBF((0.3, 2.0)), [2, 0]),
    "season": kb.OnInputs(SEASON, [1]) * kb.OnInputs(RBF(0.9), [0]),
    "of a sum": kb.OnInputs(2.0 * RBF(0.4) + Matern(0.2, nu=1.5) ** 2, (0, 2)),
    "levels": kb.OnInputs(Matern(0.5, nu=2.5), [0, 2]) * kb.OnInputs(kb.Levels(0.6), [1]),
    "nested": kb.OnInputs(kb.OnInputs(Matern(0.3, nu=0.8), [1]) + RBF(0.5), [0, 2]),
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def _plain(kernel):
    """The same kernel in points of which all coordinates are selected already."""
    return kernel.kernel, lambda points: points[:, list(kernel.inputs)]


SINGLE = {
    "one": kb.OnInputs(RBF(0.3), [2]),
    "reversed": kb.OnInputs(Matern((0.3, 2.0), nu=2.5), [2, 0]),
    "linear": kb.OnInputs(DotProduct(0.4) ** 2, [1, 3]),
    "season": kb.OnInputs(SEASON + RBF(0.2), [1]),
}


@pytest.mark.parametrize("name", SINGLE)
def test_it_is_the_kernel_in_fewer_dimensions(name):
    rng = np.random.default_rng(0)
    (inner, select), kernel = _plain(SINGLE[name]), SINGLE[name]
    x, z, half, w = (rng.random((5, 4)), rng.random((7, 4)), rng.random((5, 4)), rng.random((5, 7)))
    same = np.testing.assert_array_equal
    same(kernels.cross(kernel, x, z), kernels.cross(inner, select(x), select(z)))
    same(kernels.diagonal(kernel, x), kernels.diagonal(inner, select(x)))
    same(
        kernels.features_in_boxes(kernel, x, half),
        kernels.features_in_boxes(inner, select(x), select(half)),
    )
    gradients = {
        "points": (
            kernels.pull_back(kernel, x, z, w),
            kernels.pull_back(inner, *map(select, (x, z)), w),
        ),
        "diagonal": (
            kernels.diagonal_gradient(kernel, x),
            kernels.diagonal_gradient(inner, select(x)),
        ),
    }
    others = [axis for axis in range(4) if axis not in kernel.inputs]
    for found, expected in gradients.values():  # sums of products, in another order
        np.testing.assert_allclose(select(found), expected, rtol=1e-13, atol=1e-13)
        assert not found[:, others].any()
    assert kernels.evaluation_error(kernel, 4) == kernels.evaluation_error(
        inner, len(kernel.inputs)
    )
    # and by scikit-learn's protocol
    same(kernel(x, z), inner(select(x), select(z)))
    same(kernel.diag(x), inner.diag(select(x)))
    for found, expected in zip(
        kernel(x, eval_gradient=True), inner(select(x), eval_gradient=True), strict=True
    ):
        same(found, expected)
    assert kernel.is_stationary() == inner.is_stationary()
    same(kernel.bounds, inner.bounds)


def test_vectors_by_a_matrix_product():
    rng = np.random.default_rng(0)
    x, z = rng.random((100, 3)), rng.random((FEWEST_PAIRS_OF_PRODUCT // 100, 3))
    kernel = kb.OnInputs(RBF(1.0), [2, 0])
    found = kernels.vectors(kernel, x, z)
    assert np.array_equal(
        found, kernels.vectors(RBF(1.0), *(np.ascontiguousarray(p[:, [2, 0]]) for p in (x, z)))
    )
    assert not np.array_equal(found, kernels.cross(kernel, x, z))


@pytest.mark.parametrize("origin", [0.0, 1e9])
def test_errors_are_within_those_derived(kernel, origin):
    rng = np.random.default_rng(0)
    x = origin + rng.random((4, 3))
    steps = 10 ** rng.uniform(-8, 0.5, (12, 1)) * rng.standard_normal((12, 3))
    z = np.vstack([x, x[0] + steps])
    values = kernels.cross(kernel, x, z)
    size = np.sqrt(np.multiply.outer(*(kernels.diagonal(kernel, p) for p in (x, z))))
    wrong = [[float(v - exact(kernel, a, b)) for v, b in zip(row, z)] for row, a in zip(values, x)]
    largest = (np.abs(wrong) / size).max() / EPS
    assert largest <= kernels.evaluation_error(kernel, 3)
    assert origin or largest > kernels.evaluation_error(kernel, 3) / 30


def test_what_is_not_known_is_not_claimed():
    own = kb.OnInputs(Own(), [0])
    assert kernels.evaluation_error(own, 2) is None
    assert not kernels.differentiable(own)

    class Subclass(kb.OnInputs):
        pass

    assert kernels.to_data(Subclass(RBF(), [0]))["own"]


@pytest.mark.parametrize("noise_scale", [0.0, 0.1])
def test_the_truth_stays_inside(kernel, noise_scale):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        function = ExactFunction(kernel, rng.random((5, 3)), rng.standard_normal(5))
        seq = kb.ConfidenceSequence(kernel, function.norm * (1 + 1e-9), noise_scale)
        x, points = rng.random((12, 3)), rng.random((20, 3))
        seq.update(x, np.array(function(x)) + noise_scale * rng.uniform(-1, 1, 12))
        lower, upper = seq.bounds(points)
        truth = np.array(function(points))
        assert np.maximum(lower - truth, truth - upper).max() < 1e-9 * function.norm
        assert np.all(upper - lower < 2 * function.norm * np.sqrt(kernels.diagonal(kernel, points)))


@pytest.mark.parametrize("name", ["sum", "season"])
def test_policies_on_boxes_certify_what_is_true(name, tmp_path):
    kernel, rng = KERNELS[name], np.random.default_rng(1)
    function = kb.RKHSFunction(kernel, rng.random((6, 3)), rng.standard_normal(6)).rescaled(1.0)
    seq = kb.ConfidenceSequence(kernel, 1.1, 0.01)
    policy = kb.KernelUCB(seq, kb.Box([0, 0, 0], [1, 1, 1]))
    policy.run(lambda x: float(function(x[None])[0]), 12)
    certificate = policy.certificate(tolerance=0.2, seconds=60)
    best = function(rng.random((20000, 3))).max()
    assert best - function(certificate.x[None])[0] <= certificate.regret < 2.0
    x = rng.random((5, 3))
    steps = 1e-5 * np.eye(3)
    quotients = [(seq.upper(x + h) - seq.upper(x - h)) / 2e-5 for h in steps]
    assert seq.gradients(x)[1] == pytest.approx(np.array(quotients).T, rel=1e-3, abs=1e-3)
    policy.save(tmp_path / "x.npz")
    again = kb.KernelUCB.load(tmp_path / "x.npz")
    assert again.sequence.kernel == kernel
    assert np.array_equal(again.ask().x, policy.ask().x)


def test_a_saved_kernel_is_the_same_kernel(kernel):
    data = json.loads(json.dumps(kernels.to_data(kernel)))
    assert "own" not in json.dumps(data)
    again = kernels.from_data(data)
    assert again == kernel and repr(again) == repr(kernel)
    x = np.random.default_rng(0).random((5, 3))
    assert np.array_equal(kernels.cross(again, x, x), kernels.cross(kernel, x, x))


def test_a_file_is_loaded_with_the_same_inputs_or_not_at_all(tmp_path):
    seq = kb.ConfidenceSequence(kb.OnInputs(RBF(0.5), [0, 2]), 1.0, 0.1)
    seq.update([[0.1, 0.2, 0.3]], [0.4])
    seq.save(tmp_path / "x.npz")
    for inputs in ([0, 2], (0, 2), np.array([0, 2])):
        kb.ConfidenceSequence.load(tmp_path / "x.npz", kernel=kb.OnInputs(RBF(0.5), inputs))
    for other in (kb.OnInputs(RBF(0.5), [0, 1]), RBF(0.5)):
        with pytest.raises(kb.InputError, match="pass the same one"):
            kb.ConfidenceSequence.load(tmp_path / "x.npz", kernel=other)


def test_copies_are_equal_and_not_shared(kernel):
    for copied in (
        clone(kernel),
        pickle.loads(pickle.dumps(kernel)),
        kernels.checked_kernel(kernel),
    ):
        assert copied == kernel and copied is not kernel
        copied.theta = copied.theta + 0.1
        assert copied != kernel
    assert eval(repr(kb.OnInputs(RBF(0.3), [1, 2])), {**vars(kb), "RBF": RBF}) == kb.OnInputs(
        RBF(0.3), np.array([1, 2])
    )
    assert kb.OnInputs(RBF(0.3), [1, 2]) != kb.OnInputs(RBF(0.3), [2, 1])
    assert kb.OnInputs(RBF(0.3), [0]) != RBF(0.3)


def test_scikit_learn_fits_its_hyperparameters():
    rng = np.random.default_rng(0)
    X = rng.random((40, 3))
    y = np.sin(9 * X[:, 0]) + X[:, 2]
    kernel = kb.OnInputs(RBF(0.5, (0.05, 5.0)), [0]) + kb.OnInputs(RBF(1.0, "fixed"), [2])
    assert [one.name for one in kernel.hyperparameters if not one.fixed] == [
        "k1__kernel__length_scale"
    ]
    fitted = GaussianProcessRegressor(kernel, alpha=1e-6).fit(X, y).kernel_
    assert 0.1 < fitted.k1.kernel.length_scale < 0.9
    assert fitted.k2.kernel.length_scale == 1.0
    theta, step = fitted.theta, 1e-6
    gradient = fitted(X, eval_gradient=True)[1][:, :, 0]
    moved = [fitted.clone_with_theta(theta + h)(X) for h in (step, -step)]
    assert gradient == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-5, abs=1e-8)
    other = fitted.set_params(k1__inputs=np.array([1]), k1__kernel__length_scale=0.2)
    assert repr(other.k1) == "OnInputs(RBF(length_scale=0.2), [1])"


@pytest.mark.parametrize(
    "inputs",
    [
        [],
        [-1],
        [0, 0],
        [0.5],
        [True],
        ["0"],
        "02",
        1,
        None,
        [[0, 1]],
        {0, 1},
        [np.nan],
        np.array(2),
    ],
    ids=repr,
)
def test_inputs_are_distinct_whole_numbers(inputs):
    valid = kb.OnInputs(RBF(), [0])
    for refused in (lambda: kb.OnInputs(RBF(), inputs), lambda: valid.set_params(inputs=inputs)):
        with pytest.raises(kb.InputError, match="OnInputs") as caught:
            refused()
        assert str(caught.value).count(". ") == 0 and str(caught.value).endswith(".")


def test_what_cannot_be_used_is_refused_by_name():
    with pytest.raises(kb.InputError, match="OnInputs needs a scikit-learn kernel, got 'rbf'"):
        kb.OnInputs("rbf", [0])
    for kernel, said in (
        (kb.OnInputs(RBF(-1.0), [0]), "length_scale of RBF must be positive"),
        (1.0 * kb.OnInputs(RBF() + WhiteKernel(), [0]), "WhiteKernel"),
    ):
        with pytest.raises(kb.InputError, match=said):
            kb.ConfidenceSequence(kernel, 1.0, 0.1)
    seq = kb.ConfidenceSequence(RBF() + kb.OnInputs(RBF(0.5), [0, 2]), 1.0, 0.1)
    said = (
        r"OnInputs\(RBF\(length_scale=0.5\), \[0, 2\]\) needs points of 3 dimensions or more, got 2"
    )
    with pytest.raises(kb.InputError, match=said):
        seq.update([[0.1, 0.2]], [0.3])
    with pytest.raises(kb.InputError, match=said):
        kb.KernelUCB(seq, kb.Box([0, 0], [1, 1]))
    with pytest.raises(ValueError, match=said):
        seq.kernel([[0.1, 0.2]])
    with pytest.raises(kb.InputError, match="2 length scales"):
        kernels.diagonal(kb.OnInputs(RBF((1.0, 2.0)), [0]), np.ones((1, 3)))
