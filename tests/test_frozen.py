"""Frozen bounds: never inside AMM in exact arithmetic, and the same in all array libraries.

JAX is no part of the extra ``dev``, and what needs it is skipped without: ``pip install jax``.
"""

from __future__ import annotations

import dataclasses
import math

import array_api_strict
import numpy as np
import pytest
from exact import Exact, random_data
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
)

import kernelbounds as kb
from kernelbounds.kernels import cross, portable
from kernelbounds.surface import freezing, frozen as frozen_module

KERNELS = {
    "rbf": RBF([0.5, 0.8]),
    "matern12": Matern(0.5, nu=0.5),
    "matern32": Matern([0.5, 0.7], nu=1.5),
    "matern52": Matern(0.5, nu=2.5),
    "matern-inf": Matern(0.5, nu=np.inf),
    "rational": RationalQuadratic(0.5, alpha=0.7),
    "linear": DotProduct(1.0),
    "square": DotProduct(0.5) ** 2,
    "sum": kb.OnInputs(RBF(0.5), [1]) + 2.0 * Matern(0.5, nu=1.5),
    "product": kb.OnInputs(Matern(0.5, nu=2.5), [1]) * kb.OnInputs(RBF(0.7), [0])
    + ConstantKernel(0.5),
    "levels": kb.OnInputs(RBF(0.5), [0]) * kb.OnInputs(kb.Levels(0.5), [1]),
}
# With three features, the best ridge is so small that allowances show; others are tried elsewhere.
RIDGES = {"linear": 0.1}


def sequence(kernel, count=30, seed=0, noise=0.1, **options):
    rng = np.random.default_rng(seed)
    X = rng.random((count, 2))
    X[:, 1] = np.round(2 * X[:, 1]) / 2  # so that levels repeat
    seq = kb.ConfidenceSequence(kernel, 3.0, noise, **options)
    seq.update(X, random_data(kernel, rng, X, 3.0, noise))
    return seq


def queries(count=12, seed=1):
    X = np.random.default_rng(seed).random((count, 2))
    X[::3, 1] = 0.5
    return X


@pytest.mark.parametrize("name", KERNELS)
def test_equal_to_amm_and_not_inside(name):
    seq, X = sequence(KERNELS[name]), queries()
    frozen = seq.frozen(RIDGES.get(name))
    lower, upper = frozen.bounds(X)
    low, high = seq.bounds(X, bound=kb.AMM(ridge=float(frozen.ridges[0])))
    trivial = seq.known.trivial(X)
    assert np.all(upper >= high - 1e-10 * trivial) and np.all(lower <= low + 1e-10 * trivial)
    assert np.all(upper - high <= 1e-7 * trivial) and np.all(low - lower <= 1e-7 * trivial)


# Points 1e-9 apart and equal ones, much and little noise, and kernels as smooth as can be.
HARD = [
    (RBF(0.8), 1e-3, 10.0, None),
    (RBF(3.0), 0.1, 1.0, None),
    (Matern(0.5, nu=0.5), 0.01, 100.0, None),
    (Matern([0.3, 2.0], nu=2.5), 1e-2, 10.0, [0.01, 0.02]),
    (DotProduct(0.3) ** 2 + 0.1 * RBF(1.0), 0.1, 5.0, None),
]


@pytest.mark.parametrize("case", range(len(HARD)))
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_never_inside_amm_in_50_digits(case, library, request):
    xp = request.getfixturevalue("jax").numpy if library == "jax" else pytest.importorskip(library)
    kernel, noise, norm, scales = HARD[case]
    rng = np.random.default_rng(case)
    X = rng.random((8, 2)) + 5.0
    X[1], X[2] = X[0] + 1e-9, X[0]
    y = random_data(kernel, rng, X, norm, noise) + 7.0
    seq = kb.ConfidenceSequence(kernel, norm, noise, offset=7.0)
    own = None if scales is None else np.resize(scales, len(X))
    seq.update(X, y, noise_scale=own)
    exact = Exact(
        kernel, X, y, norm, noise, 0.01, 1.0, noise_scales=own, level=7.0,
        radius_squared=seq.known.radius.squared,
    )  # fmt: skip
    asked = np.concatenate([X[:3], rng.random((4, 2)) + 5.0, X[:1] + 1e-8])
    for ridge in (None, 1e-4 * seq.known.engine.data.trace, 10.0):
        frozen = seq.frozen(ridge)
        alpha = float(frozen.ridges[0])
        lower, upper = (np.asarray(one) for one in frozen.bounds(xp.asarray(asked)))
        for i, x in enumerate(asked):
            at = exact.at(x)
            for found, sign in ((upper[i], 1), (-lower[i], -1)):
                gap, _ = at.gap(found, at.amm(alpha, sign), sign)
                assert 0 <= gap < 1e-6


def test_allowances_are_what_make_it_valid(monkeypatch):
    """Without them, some bound is inside that of exact arithmetic."""
    monkeypatch.setattr(freezing, "_at_ridge", unrounded)
    inside = 0
    for seed in range(3):
        kernel, rng = RBF(0.8), np.random.default_rng(seed)
        X = rng.random((8, 2)) + 5.0
        y = random_data(kernel, rng, X, 10.0, 1e-3)
        seq = kb.ConfidenceSequence(kernel, 10.0, 1e-3)
        seq.update(X, y)
        exact = Exact(kernel, X, y, 10.0, 1e-3, 0.01, 1.0, radius_squared=seq.known.radius.squared)
        frozen = seq.frozen(1e-6)
        upper = frozen.bounds(X)[1]
        inside += sum(at.gap(u, at.amm(1e-6, 1), 1)[0] < 0 for x, u in zip(X, upper)
                      for at in [exact.at(x)])  # fmt: skip
    assert inside


def unrounded(known, engine, ridge, error):
    """AMM as it is computed, with no allowance."""
    rows = engine.rows
    lower = np.linalg.cholesky(rows.gram + ridge * np.eye(rows.count))
    inverse = np.linalg.inv(lower)
    weights = inverse.T @ (inverse @ rows.outcomes)
    squared = known.radius.around(ridge, ridge * (weights @ rows.outcomes))
    return freezing.AtRidge(ridge, weights, inverse, math.sqrt(squared / ridge), 1.0, 1.0, 0.0)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_are_those_of_the_bounds(name):
    frozen, X = sequence(KERNELS[name]).frozen(RIDGES.get(name)), queries()
    found, step = frozen.gradients(X), 1e-6
    for side in (0, 1):
        for a in range(2):
            if name == "levels" and a == 1:
                assert np.all(found[side][:, 1] == 0)
                continue
            move = step * np.eye(2)[a]
            change = frozen.bounds(X + move)[side] - frozen.bounds(X - move)[side]
            np.testing.assert_allclose(found[side][:, a], change / (2 * step), atol=2e-5)


def test_gradients_at_observations_are_finite():
    for name in ("matern12", "matern32"):
        seq = sequence(KERNELS[name])
        assert all(np.isfinite(one).all() for one in seq.frozen().gradients(seq.points))


@pytest.mark.parametrize("name", KERNELS)
def test_the_same_in_torch_with_its_own_gradients(name):
    torch = pytest.importorskip("torch")
    frozen, X = sequence(KERNELS[name]).frozen(RIDGES.get(name)), queries()
    asked = torch.asarray(X).requires_grad_()
    bounds, gradients = frozen.bounds(asked), frozen.gradients(X)
    for found, expected, gradient in zip(bounds, frozen.bounds(X), gradients):
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=1e-9)
        (own,) = torch.autograd.grad(found.sum(), asked, retain_graph=True)
        np.testing.assert_allclose(own.numpy(), gradient, rtol=1e-7, atol=1e-7)
    for found, expected in zip(frozen.gradients(asked.detach()), gradients):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)


def test_the_same_in_the_strict_array_api():
    for kernel in KERNELS.values():
        frozen, X = sequence(kernel, 10).frozen(), queries(4)
        asked = array_api_strict.asarray(X)
        for method in (frozen.bounds, frozen.gradients):
            for found, expected in zip(method(asked), method(X)):
                assert type(found) is type(asked)
                np.testing.assert_allclose(np.asarray(found), expected, atol=1e-9)


def test_torch_maps_and_differentiates_single_points():
    torch = pytest.importorskip("torch")
    frozen, X = sequence(KERNELS["matern32"]).frozen(), queries()
    asked = torch.asarray(X).requires_grad_()
    upper = torch.vmap(lambda x: frozen.bounds(x)[1][0])(asked)
    np.testing.assert_allclose(upper.detach().numpy(), frozen.bounds(X)[1], rtol=0, atol=1e-9)
    (own,) = torch.autograd.grad(upper.sum(), asked)
    np.testing.assert_allclose(own.numpy(), frozen.gradients(X)[1], rtol=1e-7, atol=1e-7)


@pytest.fixture
def jax():
    found = pytest.importorskip("jax")
    with found.enable_x64(True):
        yield found


# Others differ in their values only, which are compared below.
@pytest.mark.parametrize("name", ["rbf", "matern12", "square", "product", "levels"])
def test_jax_compiles_maps_and_differentiates(name, jax):
    frozen, X = sequence(KERNELS[name]).frozen(RIDGES.get(name)), queries()

    def at_one(x):
        return frozen.bounds(x)[1][0]

    @jax.jit
    def compiled(asked):
        mapped = jax.vmap(jax.value_and_grad(at_one))(asked)
        return *frozen.bounds_and_gradients(asked), mapped

    bounds, gradients, (upper, of_upper) = compiled(jax.numpy.asarray(X))
    for found, expected in zip((*bounds, upper), (*frozen.bounds(X), frozen.bounds(X)[1])):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    for found, expected in zip((*gradients, of_upper), (*frozen.gradients(X), gradients[1])):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_jax_in_single_precision_is_refused():
    jax = pytest.importorskip("jax")
    asked = jax.numpy.asarray(queries(), dtype="float32")
    with pytest.raises(kb.InputError, match="float32: in single precision"):
        sequence(KERNELS["rbf"]).frozen().bounds(asked)


def test_of_several_ridges_the_best_is_taken():
    seq, X = sequence(KERNELS["rbf"]), queries()
    ridges = [0.01, 0.3, 10.0]
    several, alone = seq.frozen(ridges), [seq.frozen(ridge) for ridge in ridges]
    lowers, uppers = zip(*(one.bounds(X) for one in alone))
    np.testing.assert_array_equal(several.bounds(X)[1], np.min(uppers, axis=0))
    np.testing.assert_array_equal(several.bounds(X)[0], np.max(lowers, axis=0))
    best, gradients = np.argmin(uppers, axis=0), [one.gradients(X)[1] for one in alone]
    expected = np.array([gradients[i][at] for at, i in enumerate(best)])
    np.testing.assert_array_equal(several.gradients(X)[1], expected)


def test_the_ridge_that_is_chosen_is_hardly_wider_than_cmm():
    for name in ("rbf", "matern52"):
        seq, X = sequence(KERNELS[name], 60), queries(40)
        lower, upper = seq.frozen(near=X).bounds(X)
        low, high = seq.bounds(X)
        assert (upper - lower).mean() < 1.1 * (high - low).mean()
        assert np.all(lower <= low + 1e-9) and np.all(upper >= high - 1e-9)


def test_far_away_the_bounds_are_trivial():
    seq = sequence(KERNELS["matern12"], misspecification=0.2, offset=2.0)
    frozen, far = seq.frozen(0.01), np.array([[1e6, 0.0]])
    assert frozen.at_ridges[0].factor > 3.0
    lower, upper = frozen.bounds(far)
    np.testing.assert_allclose([lower[0], upper[0]], [2.0 - 3.2, 2.0 + 3.2], rtol=1e-12)
    assert lower[0] <= 2.0 - 3.2 and upper[0] >= 2.0 + 3.2
    assert np.abs(frozen.gradients(far)).max() == 0


def test_offsets_parts_and_misspecification_are_in_the_bounds():
    rng = np.random.default_rng(0)
    X = rng.random((20, 2))
    y = 50 + np.sin(X[:, 0]) + 0.1 * rng.standard_normal(20)
    parts = kb.Parts([(kb.OnInputs(RBF(0.5), [0]), 2.0), (RBF(1.0), 0.5)])
    seq = kb.ConfidenceSequence(
        parts, noise_scale=0.1, offset=kb.Offset(45.0, within=20.0), misspecification=0.05,
    )  # fmt: skip
    seq.update(X, y)
    frozen = seq.frozen()
    lower, upper = frozen.bounds(X)
    low, high = seq.bounds(X, bound=kb.AMM(ridge=float(frozen.ridges[0])))
    assert np.all((upper >= high - 1e-8) & (lower <= low + 1e-8))
    np.testing.assert_allclose([lower, upper], [low, high], atol=1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_bounds_in_boxes_hold_throughout(name):
    kernel, rng = KERNELS[name], np.random.default_rng(3)
    seq = sequence(kernel, 60)
    frozen = seq.frozen(RIDGES.get(name))
    admitted = kb.RKHSFunction(kernel, seq.points, frozen.at_ridges[0].weights)
    assert seq.contains(admitted)
    low = np.concatenate([rng.random((5, 2)), [[-9.0, -9.0]]])
    high = low + np.concatenate([0.2 * rng.random((5, 2)), [[18.0, 18.0]]])
    if name == "levels":
        low[:, 1] = high[:, 1] = 0.5
    lower, upper = frozen.bounds_in_boxes(low, high)
    for i in range(len(low)):
        inside = low[i] + (high[i] - low[i]) * rng.random((200, 2))
        values = admitted(inside)
        assert lower[i] <= values.min() and values.max() <= upper[i]
        trivial = 3.0 * np.sqrt(max(kernel.diag(np.array([low[i], high[i]]))))
        assert upper[i] <= trivial * (1 + 1e-12) and lower[i] >= -trivial * (1 + 1e-12)
    np.testing.assert_allclose(frozen.bounds_in_boxes(low, low), frozen.bounds(low), atol=1e-6)


def test_boxes_are_around_the_level_and_what_is_beyond():
    seq = sequence(RBF(0.5), offset=0.5, misspecification=0.25)
    frozen = seq.frozen()
    (lower,), (upper,) = frozen.bounds_in_boxes([[-9.0, -9.0]], [[9.0, 9.0]])
    np.testing.assert_allclose([lower, upper], [0.5 - 3.25, 0.5 + 3.25], rtol=1e-12)
    assert lower <= 0.5 - 3.25 and upper >= 0.5 + 3.25
    with pytest.raises(kb.InputError, match="corners of the same boxes"):
        frozen.bounds_in_boxes([[1.0, 1.0]], [[0.0, 2.0]])


def test_saved_and_loaded(tmp_path):
    frozen, X = sequence(KERNELS["product"], offset=3.0).frozen([0.1, 1.0]), queries()
    frozen.save(tmp_path / "frozen.npz")
    loaded = kb.Frozen.load(tmp_path / "frozen.npz")
    np.testing.assert_array_equal(loaded.bounds(X), frozen.bounds(X))
    assert repr(loaded) == repr(frozen) and loaded.delta == frozen.delta == 0.01
    seq = sequence(RBF(0.5))
    seq.save(tmp_path / "sequence.npz")
    with pytest.raises(kb.StoredFileError, match="not a saved frozen bound"):
        kb.Frozen.load(tmp_path / "sequence.npz")
    parts = dict(np.load(tmp_path / "frozen.npz"))
    parts["weights"] = parts["weights"][:, 1:]
    np.savez(tmp_path / "cut.npz", **parts)
    with pytest.raises(kb.StoredFileError, match="do not fit together"):
        kb.Frozen.load(tmp_path / "cut.npz")


def test_nothing_changes_what_is_frozen(tmp_path):
    kernel = RBF([0.5, 0.8])
    seq, X = sequence(kernel), queries()
    frozen = seq.frozen()
    before = frozen.bounds(X)
    seq.update(queries(5, seed=7), np.zeros(5))
    kernel.length_scale = 3.0
    np.testing.assert_array_equal(frozen.bounds(X), before)
    frozen.save(tmp_path / "frozen.npz")
    for one in (frozen, kb.Frozen.load(tmp_path / "frozen.npz")):
        for name in ("kernel", "points", "at_ridges", *frozen_module.NUMBERS):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(one, name, 0.0)
        (at,) = one.at_ridges
        with pytest.raises(AttributeError):
            at.factor = 0.0
        for array in (one.points, at.weights, at.inverse):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0.0


@pytest.mark.filterwarnings("error")
def test_a_point_that_is_not_finite_has_no_bounds():
    """NumPy's are refused, and others, which may be compiled, are nan and not small."""
    torch = pytest.importorskip("torch")
    strange = np.array([[np.inf, 0.0], [0.0, -np.inf], [np.nan, 0.0], [0.0, np.nan]])
    for kernel in KERNELS.values():
        frozen = sequence(kernel, 10).frozen()
        with pytest.raises(kb.InputError, match="X"):
            frozen.bounds(strange)
        for found in frozen.bounds(torch.asarray(strange)):
            assert torch.isnan(found).all()


def test_units_do_not_matter():
    X, rng = queries(30, seed=5), np.random.default_rng(0)
    y, asked = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(30), queries()
    found = []
    for of_y, of_x, shift in ((1.0, 1.0, 0.0), (1e9, 1.0, 0.0), (1e-9, 100.0, 1e4)):
        seq = kb.ConfidenceSequence(Matern(0.5 * of_x, nu=2.5), 3.0 * of_y, 0.1 * of_y)
        seq.update(shift + of_x * X, of_y * y)
        frozen = seq.frozen()
        bounds, gradients = frozen.bounds_and_gradients(shift + of_x * asked)
        found.append((np.array(bounds) / of_y, np.array(gradients) * of_x / of_y))
    for bounds, gradients in found[1:]:
        np.testing.assert_allclose(bounds, found[0][0], rtol=1e-6)
        np.testing.assert_allclose(gradients, found[0][1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("noise", "options"),
    [
        (kb.noise.Gaussian(), {}),
        (kb.noise.Bounded(0.3), {}),
        (kb.noise.Energy(0.3), {}),
        (0.1, {"facts": [kb.facts.Between(-2.0, 2.0)]}),
        (0.1, {"mixture": kb.mixtures.Single(1.0)}),
    ],
)
def test_all_noise_and_facts_that_are_left_out(noise, options):
    X, rng = queries(40, seed=5), np.random.default_rng(0)
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, noise, **options)
    seq.update(X, np.sin(X[:, 0]) + 0.1 * rng.uniform(-1, 1, 40))
    frozen = seq.frozen()
    plain = seq.known.without_facts()
    low, high = (
        sign * np.asarray(kb.AMM(ridge=float(frozen.ridges[0])).extremes(plain, X, (sign,))[0])
        for sign in (-1, 1)
    )
    lower, upper = frozen.bounds(X)
    assert np.all(lower <= np.maximum(low, -2.0) + 1e-9)
    assert np.all(upper >= np.minimum(high, 2.0) - 1e-9)
    np.testing.assert_allclose(
        [lower, upper], [np.maximum(low, -2.0), np.minimum(high, 2.0)], atol=1e-6
    )


@pytest.fixture(scope="module")
def outputs():
    names = ("rbf", "product", "matern32")
    sequences = [
        sequence(KERNELS[name], 10 + seed, seed, delta=0.004, offset=float(seed))
        for seed, name in enumerate(names)
    ]
    return kb.FrozenOutputs(
        seq.frozen(ridges) for seq, ridges in zip(sequences, (0.1, [0.1, 1], 1))
    )


def test_several_outputs_are_one_function(outputs):
    X = queries()
    assert outputs.delta == pytest.approx(0.012, rel=1e-15)
    assert repr(outputs) == "FrozenOutputs of 3 outputs in 2 dimensions"
    (lower, upper), (of_lower, of_upper) = outputs.bounds_and_gradients(X)
    assert lower.shape == (3, 12) and of_lower.shape == (3, 12, 2)
    np.testing.assert_array_equal(outputs.bounds(X), (lower, upper))
    np.testing.assert_array_equal(outputs.gradients(X), (of_lower, of_upper))
    boxes = outputs.bounds_in_boxes(X, X + 0.1)
    for i, one in enumerate(outputs.outputs):
        np.testing.assert_array_equal(one.bounds(X), (lower[i], upper[i]))
        np.testing.assert_array_equal(one.gradients(X), (of_lower[i], of_upper[i]))
        np.testing.assert_array_equal(one.bounds_in_boxes(X, X + 0.1), [side[i] for side in boxes])


@pytest.mark.parametrize("library", ["strict", "torch", "jax"])
def test_several_outputs_in_other_libraries(outputs, library, request):
    X, call = queries(), outputs.bounds_and_gradients
    if library == "jax":
        jax = request.getfixturevalue("jax")
        xp, call = jax.numpy, jax.jit(call)
    else:
        xp = array_api_strict if library == "strict" else pytest.importorskip(library)
    asked = xp.asarray(X)
    for found, expected in zip(call(asked), (outputs.bounds(X), outputs.gradients(X))):
        for one, other in zip(found, expected):
            assert type(one) is type(asked)
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-9)


def test_several_outputs_are_saved_in_one_file(outputs, tmp_path):
    X, path = queries(), tmp_path / "outputs.npz"
    outputs.save(path)
    loaded = kb.FrozenOutputs.load(path)
    np.testing.assert_array_equal(loaded.bounds(X), outputs.bounds(X))
    np.testing.assert_array_equal(loaded.gradients(X), outputs.gradients(X))
    assert loaded.delta == outputs.delta
    with pytest.raises(kb.StoredFileError, match="not a saved frozen bound"):
        kb.Frozen.load(path)
    parts = dict(np.load(path))
    for damage in ({"weights_1": parts["weights_0"]}, {"points_2": parts["points_2"] > 0}):
        np.savez(tmp_path / "damaged.npz", **(parts | damage))
        with pytest.raises(kb.StoredFileError, match="do not fit together"):
            kb.FrozenOutputs.load(tmp_path / "damaged.npz")


def test_refused_outputs(outputs):
    with pytest.raises(kb.InputError, match="got none"):
        kb.FrozenOutputs([])
    with pytest.raises(kb.InputError, match="got ConfidenceSequence"):
        kb.FrozenOutputs([sequence(RBF(0.5), 3)])
    other = kb.ConfidenceSequence(RBF(0.5), 1.0, 0.1)
    other.update([[0.1]], [0.1])
    with pytest.raises(kb.InputError, match=r"dimensions \[2, 1\]"):
        kb.FrozenOutputs([outputs.outputs[0], other.frozen()])


def test_refusals():
    seq = sequence(KERNELS["rbf"])
    frozen = seq.frozen()
    with pytest.raises(kb.InputError, match=r"shape \(m, 2\)"):
        frozen.bounds(array_api_strict.asarray([[0.1, 0.2, 0.3]], dtype=array_api_strict.float64))
    with pytest.raises(kb.InputError, match="double precision, got"):
        frozen.bounds(array_api_strict.asarray([[0.1, 0.2]], dtype=array_api_strict.float32))
    with pytest.raises(kb.InputError, match="too small for frozen bounds"):
        seq.frozen(1e-15)
    with pytest.raises(kb.InputError, match="either ridges or near"):
        seq.frozen(0.1, near=[[0.1, 0.1]])
    with pytest.raises(kb.InputError, match="one or more positive"):
        seq.frozen([])
    with pytest.raises(kb.InputError, match="before the first observation"):
        kb.ConfidenceSequence(RBF(0.5), 1.0, 0.1).frozen()
    for kernel in (Matern(0.5, nu=1.0), ExpSineSquared(), RBF(0.5) ** 0.5):
        own = kb.ConfidenceSequence(kernel, 1.0, 0.1)
        own.update([[0.1]], [0.1])
        with pytest.raises(kb.InputError, match="no formula that all array libraries share"):
            own.frozen()
    for options, message in (
        ({"engine": kb.Sparse()}, "sparse engine"),
        ({"offset": kb.Offset(lambda X: X[:, 0])}, "this one is a function"),
    ):
        other = kb.ConfidenceSequence(RBF(0.5), 1.0, 0.1, **options)
        other.update([[0.1]], [0.1])
        with pytest.raises(kb.InputError, match=message):
            other.frozen()
    classes = kb.ConfidenceSequence(kb.AnyOf([(RBF(0.5), 1.0), (RBF(0.2), 1.0)]), noise_scale=0.1)
    classes.update([[0.1]], [0.1])
    with pytest.raises(kb.InputError, match="several classes"):
        classes.frozen()
    correlated = kb.ConfidenceSequence(RBF(0.5), 1.0, kb.noise.Gaussian(0.1))
    correlated.update([[0.1], [0.2]], [0.1, 0.1], covariance=[[0.01, 0.005], [0.005, 0.01]])
    with pytest.raises(kb.InputError, match="uncorrelated"):
        correlated.frozen()


# NumPy is right to one unit in powers, and JAX multiplies.
POWERS = {"power": ConstantKernel(1.3) ** 20, "levels-power": kb.Levels(0.9) ** 9}


@pytest.mark.parametrize("name", [*KERNELS, *POWERS])
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_values_are_as_precise_as_is_allowed_for(name, library, request):
    """Against our own, whose errors are compared with 40 digits in test_kernel_errors.py."""
    kernel, rng = (KERNELS | POWERS)[name], np.random.default_rng(0)
    X, Z = 3 * rng.random((60, 2)) + 100, 3 * rng.random((60, 2)) + 100
    exact = cross(kernel, X, Z)
    size = np.sqrt(np.multiply.outer(np.diag(cross(kernel, X, X)), np.diag(cross(kernel, Z, Z))))
    allowed = portable.portable_error(kernel, 2) * np.finfo(float).eps * size
    if library == "jax":
        jax = request.getfixturevalue("jax")
        compiled = jax.jit(lambda X, Z: portable.values(jax.numpy, kernel, X, Z))
        found = np.asarray(compiled(X, Z))
    else:
        xp = pytest.importorskip(library)
        found = np.asarray(portable.values(xp, kernel, xp.asarray(X), xp.asarray(Z)))
    assert np.all(np.abs(found - exact) <= allowed)


def test_delta_is_that_of_all_bounds_where_unknown_noise_spends_a_part():
    seq = kb.ConfidenceSequence(RBF(0.5), 3.0, kb.noise.Gaussian(at_most=0.5), delta=0.01)
    seq.update(queries(), np.linspace(0.0, 1.0, 12))
    assert seq.frozen().delta == 0.01 > seq.known.assumptions.delta
