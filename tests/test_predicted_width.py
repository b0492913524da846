"""How wide bounds will be, before outcomes are known: never exceeded, and not far off."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from own_bounds import Wider
from problems import KERNEL, KERNELS, truth
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import kernelbounds as kb
from kernelbounds.mixtures import Hybrid, Prequential, Single
from kernelbounds.sequence.planning import outcome_free

PARTS = kb.Parts([(kb.OnInputs(RBF(0.5), [0]), 2.0), (Matern(0.3, nu=1.5), 0.4)])
KINDS = ("likely", "zero", "large", "alternating", "along the worst direction", "one of them")
SLACK = 1e-6  # what searches leave
CMM = kb.CMM()


def outcomes(kind, seq, X, f, noise_scale, rng):
    """What nature or an enemy may do."""
    n = len(X)
    if kind == "likely":
        return f(X) + noise_scale * rng.standard_normal(n)
    if kind == "zero":
        return np.zeros(n)
    if kind == "large":
        return 1e3 * rng.standard_normal(n)
    if kind == "alternating":
        return 3 * np.where(np.arange(n) % 2, 1.0, -1.0)
    if kind == "one of them":
        return np.where(np.arange(n) == rng.integers(n), 2.0, 0.0)
    spectrum = np.linalg.eigh(seq.kernel(X))[1]
    return 2 * spectrum[:, rng.integers(n)]


def rounding(later):
    """By how much errors of energies, which cancel in theory, enlarge squares of widths.

    One energy is rounded up and the other down, by 32 and twice 32 times the accuracy of the
    kernel's values, which for Bessel functions is not EPS (``engine/ridge_fit.py``).
    """
    penalty, ridge = outcome_free(later.known)
    if not penalty:
        return 0.0
    data = later.known.radius_engine.data
    error = data.accuracy * (1 + data.trace / ridge)
    return 100 * error * np.sum(later.known.outcomes**2) / penalty


def checked(seq, X, design, f, rng, kinds=KINDS, noise_scale=None, bounds=(CMM,)):
    """Real widths, as a share of those predicted, for all kinds of outcomes."""
    shares, predicted = [], {}
    for bound in bounds:
        try:
            predicted[bound] = seq.predicted_width(X, design, noise_scale=noise_scale, bound=bound)
        except kb.InputError:  # forecasts are at a larger ridge, so that nothing is known of AMM
            assert bound != CMM and isinstance(seq.assumptions.mixture, Hybrid)
    for kind in kinds:
        later = copy.deepcopy(seq)
        y = outcomes(kind, seq, design, f, seq.assumptions.noise_scale, rng)
        later.update(design, y, noise_scale=noise_scale)
        for bound, widths in predicted.items():
            try:
                lower, upper = later.bounds(X, bound)
            except (kb.EmptyConfidenceSetError, kb.KernelBoundsError):
                continue  # refuted, so that there are none
            trivial = 2 * later.known.trivial(X)
            most = widths * np.sqrt(1 + rounding(later)) + SLACK * trivial
            assert np.all(upper - lower <= most), (kind, bound)
            assert np.all(widths <= trivial * (1 + 1e-12))
            shares.append(np.median((upper - lower) / widths))
    return shares


@given(
    name=st.sampled_from(sorted(KERNELS)),
    seed=st.integers(0, 10**6),
    t=st.integers(0, 20),
    n=st.integers(1, 30),
    noise_scale=st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
    norm_bound=st.sampled_from([0.3, 2.0, 30.0]),
    mixture=st.sampled_from([Hybrid(), Single(1.0), Single(1e-3), Hybrid((0.5, 1.0), 1e4)]),
    repeats=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_never_exceeded(name, seed, t, n, noise_scale, norm_bound, mixture, repeats):
    rng = np.random.default_rng(seed)
    kernel = KERNELS[name]
    f = truth(kernel, rng, 0.9 * norm_bound)
    seq = kb.ConfidenceSequence(kernel, norm_bound, noise_scale, mixture=mixture)
    if t:
        X = rng.random((t, 2))
        seq.update(X, f(X) + noise_scale * rng.standard_normal(t))
    design = rng.random((n, 2))
    if repeats:
        design = design[rng.integers(0, max(n // 3, 1), n)]
    X = np.concatenate([rng.random((6, 2)), design[:2]])
    checked(seq, X, design, f, rng, bounds=(kb.CMM(), kb.DMM(), kb.AMM()))


@pytest.mark.parametrize("noise_scale", [0.0, 0.1])
@pytest.mark.parametrize("offset", [None, kb.Offset(20.0, within=3.0), 5.0])
@pytest.mark.parametrize("kernel", [KERNEL, PARTS], ids=["one", "parts"])
def test_with_parts_offsets_and_weights(kernel, offset, noise_scale):
    rng = np.random.default_rng(0)
    norm_bound = None if kernel is PARTS else 2.0
    level = 0.0 if offset is None else getattr(offset, "level", offset)
    g = truth(RBF(0.5), rng, 0.3)
    seq = kb.ConfidenceSequence(kernel, norm_bound, noise_scale, offset=offset)

    def f(X):
        return level + g(X)

    first, design, X = rng.random((12, 2)), rng.random((30, 2)), rng.random((15, 2))
    seq.update(first, f(first) + noise_scale * rng.standard_normal(12))
    shares = checked(seq, X, design, f, rng, kinds=("likely", "zero", "one of them"))
    assert min(shares) > 0.01
    if noise_scale:
        checked(seq, X, design, f, rng, noise_scale=rng.uniform(0.03, 0.4, 30))


def test_energies_of_parts_are_compared_at_a_larger_ridge():
    """R_t has that of the kernel with equal shares, and bounds that of another."""
    X, needed = np.random.default_rng(3).random((20, 2)), False
    gram = RBF(0.5)(X[:, :1])  # of the part with the large bound
    for y in np.linalg.eigh(gram)[1].T:
        seq = kb.ConfidenceSequence(PARTS, noise_scale=0.1)
        seq.update(X, y)
        known = seq.known
        ridge, (_, least) = known.reference_ridge, outcome_free(known)
        energy = known.radius_engine.energy_above(ridge)
        assert least > ridge and energy <= known.energy_above(least) * (1 + 1e-9)
        needed |= energy > known.energy_above(ridge) * (1 + 1e-6)
    assert needed


def test_where_forecasts_change_their_ridge():
    """A kernel that grows with x: forecasts are made at larger and larger ridges."""
    rng = np.random.default_rng(1)
    kernel = DotProduct(0.5)
    f = truth(kernel, rng, 1.0, dim=1)
    seq = kb.ConfidenceSequence(kernel, 2.0, 1e-4)
    design = np.geomspace(0.1, 1e4, 25)[:, None]
    assert outcome_free(seq.known) == (np.inf, seq.known.reference_ridge)
    checked(seq, np.geomspace(0.1, 1e4, 9)[:, None], design, f, rng)


def test_not_far_off():
    """Not more than three times what they turn out to be, for outcomes that are likely."""
    rng = np.random.default_rng(2)
    f, design, X = truth(KERNEL, rng, 9.0), rng.random((100, 2)), rng.random((50, 2))
    for mixture in (Hybrid(), Single(1.0)):
        seq = kb.ConfidenceSequence(KERNEL, 10.0, 0.1, mixture=mixture)
        (share,) = checked(seq, X, design, f, rng, kinds=("likely",))
        assert share > 1 / 3


def test_more_observations_promise_less_width():
    seq, box = kb.ConfidenceSequence(KERNEL, 2.0, 0.1), kb.Box([0, 0], [1, 1])
    X = box.filling(20)
    widths = [seq.predicted_width(X, n, box).mean() for n in (1, 8, 64, 256)]
    assert widths == sorted(widths, reverse=True) and widths[0] < 4
    precise = seq.predicted_width(X, 64, box, noise_scale=0.01)
    assert np.all(precise < seq.predicted_width(X, 64, box))
    assert np.array_equal(seq.predicted_width(X, box.filling(64)), seq.predicted_width(X, 64, box))
    assert np.all(
        seq.predicted_width(X, 64, box) <= seq.predicted_width(X, 64, box, bound=kb.AMM())
    )
    assert len(seq) == 0 and seq.dim is None  # nothing has happened


def test_the_box_is_filled():
    box = kb.Box([0, 5, -1], [1, 5, 1])
    points = box.filling(100)
    assert points.shape == (100, 3) and np.all(points[:, 1] == 5)
    assert np.all(points >= box.lower) and np.all(points <= box.upper)
    assert np.array_equal(points[:30], box.filling(30))
    counts = np.histogram(box.filling(128)[:, 0], bins=8, range=(0, 1))[0]
    assert np.all(counts == 16)
    with pytest.raises(kb.InputError, match="count"):
        box.filling(0)


@pytest.mark.parametrize(
    ("options", "arguments", "match"),
    [
        ({}, {"design": 5}, "together with a Box"),
        ({}, {"design": 5, "domain": "box"}, "must be a kernelbounds.Box"),
        ({}, {"design": 2.5, "domain": kb.Box([0], [1])}, "whole number"),
        ({}, {"design": 5, "domain": kb.Box([0, 0], [1, 1])}, "2 columns"),
        ({}, {"design": [[0.0, 1.0]]}, "2 columns"),
        ({}, {"design": [[0.0]], "noise_scale": -1.0}, "noise_scale must be positive"),
        ({}, {"design": [[0.0]], "bound": kb.AY()}, "only the widths of CMM"),
        ({}, {"design": [[0.0]], "bound": Wider()}, "only the widths of CMM"),
        ({}, {"design": [[0.0]], "bound": kb.AMM(1e-9)}, "its ridges are below"),
        ({"mixture": Hybrid((0.5,))}, {"design": [[0.0]]}, "depends on the outcomes"),
        ({"mixture": Prequential(max)}, {"design": [[0.0]]}, "depends on the outcomes"),
        ({"misspecification": 0.1}, {"design": [[0.0]]}, "misspecification is not 0"),
    ],
)
def test_refusals(options, arguments, match):
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, **options)
    with pytest.raises(kb.InputError, match=match):
        seq.predicted_width([[0.5]], **arguments)


@pytest.mark.parametrize("noise", ["sub-Gaussian", "Gaussian"])
@pytest.mark.parametrize("simultaneous", [True, False])
@pytest.mark.parametrize("t", [3, 60])
def test_of_a_fixed_design(t, simultaneous, noise):
    """Never exceeded; for one x it is the width itself, unless another bound is smaller."""
    rng = np.random.default_rng(t)
    seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.2, offset=kb.Offset(3.0))
    f = truth(KERNEL, rng, 5.0)
    design, X = rng.random((t, 2)), rng.random((20, 2))
    bound = kb.FixedDesign(simultaneous=simultaneous, noise=noise)
    predicted = seq.predicted_width(X, design, bound=bound)
    for kind in ("likely", "zero"):
        later = copy.deepcopy(seq)
        later.update(design, 3.0 + outcomes(kind, seq, design, f, 0.2, rng))
        lower, upper = later.bounds(X, bound)
        assert np.all(upper - lower <= predicted * (1 + 1e-9) + SLACK)
    assert np.mean(upper - lower) > 0.5 * np.mean(predicted)
    free = kb.ConfidenceSequence(KERNEL, 5.0, 0.0)
    assert np.allclose(
        free.predicted_width(X, design, bound=bound), free.predicted_width(X, design, bound=CMM)
    )
