"""Gradients and ceilings of the bounds, against finite differences and dense samples."""

from __future__ import annotations

import numpy as np
import pytest
from problems import BOUNDS, KERNELS, Own, sequence
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern

import kernelbounds as kb
from kernelbounds import kernels
from kernelbounds.bounds import Bound
from kernelbounds.surface import Clipped, witness
from kernelbounds.surface.at_points import raw_extremes

SMOOTH_KERNELS = {
    **KERNELS,
    "matern 0.8": Matern(0.5, nu=0.8),
    "power": (RBF(0.7) + ConstantKernel(0.3)) ** 3,
    "anisotropic": RBF((0.3, 0.9)),
    "on inputs": kb.OnInputs(Matern(0.5, nu=2.5), [0]) + kb.OnInputs(ExpSineSquared(1.1, 0.9), [1]),
}


@pytest.fixture(params=SMOOTH_KERNELS)
def kernel(request):
    return SMOOTH_KERNELS[request.param]


def _difference_quotients(function, points, step):
    """Central differences of a function of points (m, d) with values (m,); (m, d)."""
    columns = []
    for axis in np.eye(points.shape[1]):
        columns.append((function(points + step * axis) - function(points - step * axis)) / 2)
    return np.column_stack(columns) / step


def test_pull_back_is_the_gradient_of_a_kernel_sum(kernel):
    rng = np.random.default_rng(0)
    x, z, w = rng.random((5, 2)), rng.random((7, 2)), rng.standard_normal((5, 7))
    quotients = _difference_quotients(
        lambda points: (w * kernels.cross(kernel, points, z)).sum(axis=1), x, 1e-6
    )
    assert kernels.pull_back(kernel, x, z, w) == pytest.approx(quotients, rel=1e-6, abs=1e-7)


def test_gradient_of_the_diagonal(kernel):
    x = np.random.default_rng(0).random((5, 2))
    quotients = _difference_quotients(lambda points: kernels.diagonal(kernel, points), x, 1e-6)
    assert kernels.diagonal_gradient(kernel, x) == pytest.approx(quotients, rel=1e-6, abs=1e-8)


def test_features_move_no_further_than_said(kernel):
    rng = np.random.default_rng(0)
    centre, half = rng.random((1, 2)), 0.4 * rng.random((1, 2))
    found = kernels.features_in_boxes(kernel, centre, half)
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    shifts = half * np.concatenate([corners, rng.uniform(-1, 1, (200, 2))])
    x = centre + shifts
    diagonal = kernels.diagonal(kernel, x)
    across = kernels.cross(kernel, x, centre)[:, 0]
    moved = diagonal - 2 * across + kernels.diagonal(kernel, centre)
    assert np.all(np.sqrt(diagonal) <= found.size * (1 + 1e-12))
    assert np.all(np.sqrt(np.maximum(moved, 0)) <= found.moved * (1 + 1e-7))
    if np.isfinite(found.bent[0]):
        # D phi(c) h by a difference quotient of features, in the Gram matrix of three points
        step = 1e-4
        for shift in shifts[:20]:
            trio = np.concatenate([centre + shift, centre, centre + step * shift])
            weights = np.array([1.0, -1 + 1 / step, -1 / step])
            bent = weights @ kernels.cross(kernel, trio, trio) @ weights
            assert np.sqrt(max(bent, 0.0)) <= found.bent[0] * (1 + 1e-3) + 1e-2 * found.moved[0]


@pytest.mark.parametrize(
    "kernel",
    [
        ExpSineSquared(length_scale=1.3, periodicity=0.9),
        ExpSineSquared(length_scale=0.4, periodicity=0.3) * RBF(0.5) + ConstantKernel(0.2),
    ],
)
def test_periodic_kernels_are_for_one_dimension(kernel):
    rng = np.random.default_rng(0)
    x, z, w = rng.random((5, 1)), rng.random((7, 1)), rng.standard_normal((5, 7))
    quotients = _difference_quotients(
        lambda points: (w * kernels.cross(kernel, points, z)).sum(axis=1), x, 1e-6
    )
    assert kernels.pull_back(kernel, x, z, w) == pytest.approx(quotients, rel=1e-6, abs=1e-6)
    for width in (0.01, 0.1, 0.4, 2.0):
        half = np.full((5, 1), width)
        found = kernels.features_in_boxes(kernel, x, half)
        shifted = x + half * rng.uniform(-1, 1, (5, 200))
        across = np.array(
            [kernels.cross(kernel, a[None], b[:, None])[0] for a, b in zip(x, shifted)]
        )
        moved = np.sqrt(np.maximum(2 * (kernels.diagonal(kernel, x)[:, None] - across), 0))
        assert np.all(moved <= found.moved[:, None] * (1 + 1e-7))
    seq = kb.ConfidenceSequence(kernel, 5.0, 0.1)
    seq.update(z, rng.uniform(-0.5, 0.5, 7))
    _, above = seq.gradients(x)
    assert above == pytest.approx(_difference_quotients(seq.upper, x, 1e-5), rel=1e-3, abs=1e-3)
    for width in (0.02, 0.3):
        half = np.full((5, 1), width)
        _, over_box = seq.surface(1).ceilings(x, half)
        for i in range(5):
            assert (
                seq.upper(x[i] + half[i] * rng.uniform(-1, 1, (100, 1))).max() <= over_box[i] + 1e-9
            )


def _in_turn(counts):
    """Each kernel with each bound, and each of both with every number of observations, in turn.

    How the kernel, the bound and the number go together is seen in pairs; triples repeat it.
    """
    return pytest.mark.parametrize(
        ("kernel", "name", "t"),
        [
            pytest.param(kernel, name, counts[(i + j) % len(counts)], id=f"{label}-{name}")
            for i, (label, kernel) in enumerate(SMOOTH_KERNELS.items())
            for j, name in enumerate(BOUNDS)
        ],
    )


@_in_turn([0, 1, 25, 140])
def test_gradients_are_difference_quotients(kernel, name, t):
    rng = np.random.default_rng(t)
    seq, _ = sequence(kernel, rng, t, bound=BOUNDS[name])
    x = rng.random((6, 2))
    below, above = seq.gradients(x)
    for gradient, value in ((below, seq.lower), (above, seq.upper)):
        quotients = _difference_quotients(value, x, 1e-4)
        size = np.abs(quotients).max()
        gap = 5.0 * np.sqrt(kernels.diagonal(kernel, x)) - np.abs(value(x))
        # Where the trivial bound takes over within a step there is a kink.
        kink = (gap > 0) & (gap < 2e-4 * np.abs(quotients).sum(axis=1))
        assert kink.sum() <= 1
        assert gradient[~kink] == pytest.approx(quotients[~kink], rel=1e-4, abs=2e-4 * size + 1e-6)


# How many refinements there are, on average over points: a floor needs one where ridges are small,
# and so do rounding errors; near the digits of the kernel matrix it is two.
@pytest.mark.parametrize(
    ("noise_scale", "least", "most"), [(0.1, 0.0, 0.5), (1e-3, 1.0, 1.0), (1e-6, 1.5, 2.0)]
)
def test_gradients_are_refined_as_far_as_that_changes_them(monkeypatch, noise_scale, least, most):
    rng = np.random.default_rng(0)
    seq, _ = sequence(RBF(0.5), rng, 140, noise_scale=noise_scale)
    x = rng.random((30, 2))
    columns = []

    def counted(lower, vectors, product=witness._symmetric_product):
        columns.append(vectors.shape[1])
        return product(lower, vectors)

    monkeypatch.setattr(witness, "_symmetric_product", counted)
    found = seq.gradients(x)
    assert least <= sum(columns) / (2 * len(x)) <= most
    monkeypatch.setattr(witness, "PRECISE", -1.0)
    for one, other in zip(found, seq.gradients(x), strict=True):
        assert one == pytest.approx(other, rel=1e-7, abs=1e-7 * np.abs(other).max())


@_in_turn([0, 1, 40])
def test_ceilings_are_above_the_surface_everywhere(kernel, name, t):
    rng = np.random.default_rng(t)
    seq, _ = sequence(kernel, rng, t, bound=BOUNDS[name])
    # Large boxes and small ones.
    centres, half = rng.random((6, 2)), np.repeat([[0.3], [0.02]], 3, axis=0) * rng.random((6, 2))
    for sign, value in ((1, seq.upper), (-1, lambda x: -seq.lower(x))):
        surface = seq.surface(sign)
        for one, values in ((surface, surface.values), (Clipped(surface), value)):
            at_centre, over_box = one.ceilings(centres, half)
            assert at_centre == pytest.approx(values(centres), rel=1e-7)
            x = centres + half * rng.uniform(-1, 1, (100, 6, 2))
            highest = values(x.reshape(-1, 2)).reshape(100, 6).max(axis=0)
            assert np.all(highest <= over_box + 1e-9 * np.maximum(1, np.abs(over_box)))


@pytest.mark.parametrize("noise_scale", [0.1, 0.0])
def test_ceilings_converge_at_second_order(noise_scale):
    rng = np.random.default_rng(3)
    seq, _ = sequence(Matern(0.5, nu=2.5), rng, 20, noise_scale=noise_scale)
    centre = np.array([[0.37, 0.61]])
    surface = seq.surface(1)
    gaps = []
    for width in (0.02, 0.01):
        half = np.full((1, 2), width)
        value, ceiling = surface.ceilings(centre, half)
        slope = np.abs(surface.values_and_gradients(centre)[1]) @ half[0]
        gaps.append(float((ceiling - value - slope)[0]))
    assert 0 < gaps[1] < 0.35 * gaps[0]


def test_unknown_gradients_are_named():
    seq = kb.ConfidenceSequence(Own(0.5), 1.0, 0.1)
    with pytest.raises(kb.InputError, match="gradient in x"):
        seq.gradients([[0.5]])


@_in_turn([0, 2, 25])
def test_a_clipped_surface_is_the_surface_or_the_trivial_one(kernel, name, t):
    rng = np.random.default_rng(t)
    seq, _ = sequence(kernel, rng, t, noise_scale=1.0, bound=BOUNDS[name])
    x = rng.random((40, 2))
    for sign in (1, -1):
        surface = seq.surface(sign)
        clipped, trivial = Clipped(surface), surface.a_priori.trivial(x)
        raw, steep = surface.values_and_gradients(x)
        values, slopes = clipped.values_and_gradients(x)
        np.testing.assert_allclose(surface.values(x), raw, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(clipped.values(x), values, rtol=1e-7, atol=1e-7)
        np.testing.assert_array_equal(values, np.clip(raw, -trivial, trivial))
        inside = np.abs(raw) < trivial
        np.testing.assert_array_equal(slopes[inside], steep[inside])
        expected = surface.a_priori.trivial_gradients(x) * np.sign(raw)[:, None]
        np.testing.assert_array_equal(slopes[~inside], expected[~inside])
        assert t != 2 or name != "AY" or not inside.all()  # else nothing would be tested


class Returning(Bound):
    """A bound that returns what it is told to, whatever it is asked."""

    def __init__(self, result):
        self.result = result

    def __repr__(self):
        return "Returning()"

    def extremes(self, known, points, signs):
        return self.result


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (np.full((2, 3), np.nan), "returned nan or minus infinity"),
        ([[1.0, 2.0, np.nan], [1.0, 1.0, 1.0]], "returned nan or minus infinity"),
        (np.array([[1.0, 2.0, -np.inf], [1.0, 1.0, 1.0]]), "returned nan or minus infinity"),
        (np.ones(3), r"shape \(3,\) for 2 signs and 3 points; it must be \(2, 3\)"),
        (np.ones((3, 2)), r"shape \(3, 2\)"),
        (1.0, r"shape \(\)"),
        (None, "returned NoneType in place of an array"),
        ("high", "returned str in place of an array"),
        ([[1.0], [1.0, 2.0]], "returned list in place of an array"),
        (np.ones((2, 3)) * 1j, "returned ndarray in place of an array of real numbers"),
    ],
)
def test_what_is_not_upper_bounds_is_refused_by_name(result, said):
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    seq.update([[0.1, 0.2]], [0.3])
    x = np.random.default_rng(0).random((3, 2))
    for ask in (
        lambda: raw_extremes(seq.known, Returning(result), x, (1, -1)),
        lambda: seq.bounds(x, Returning(result)),
    ):
        with pytest.raises(kb.KernelBoundsError, match=said) as caught:
            ask()
        assert "Returning()" in str(caught.value)


def test_bounds_may_be_infinite_and_must_not_cross():
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    seq.update([[0.1, 0.2]], [0.3])
    x = np.random.default_rng(0).random((3, 2))
    assert np.array(seq.bounds(x, Returning(np.full((2, 3), np.inf)))).tolist() == [
        [-2.0] * 3,
        [2.0] * 3,
    ]
    crossing = Returning(np.array([[1.0, 1.0, 0.5], [1.0, 1.0, -0.6]]))
    with pytest.raises(kb.KernelBoundsError, match=r"Returning\(\).*exceed its upper ones"):
        seq.bounds(x, crossing)
    assert raw_extremes(seq.known, crossing, x, (1, -1)).shape == (2, 3)
