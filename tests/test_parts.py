"""Assumptions in parts, and levels: known, unknown within a range, or a mean function."""

from __future__ import annotations

import copy
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import BOUNDS, KERNELS, observe, refused, sequence, truth
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import kernelbounds as kb
from kernelbounds import theory
from kernelbounds.functionals import Average, Derivative, Difference, Sum
from kernelbounds.mixtures import Hybrid, Single
from kernelbounds.structure.parts import count_for_shares

SMOOTH = Matern(0.5, nu=2.5)
PAIRS = [(kb.OnInputs(SMOOTH, [0]), 3.0), (kb.OnInputs(RBF(0.4), [1]), 0.3), (SMOOTH, 1.0)]
PARTS = kb.Parts(PAIRS)


class Truth:
    """A function in parts that have the largest norms allowed."""

    def __init__(self, rng, pairs=PAIRS, share=1.0):
        self.parts = [truth(kernel, rng, share * bound) for kernel, bound in pairs]

    def __call__(self, X):
        return np.sum([part(X) for part in self.parts], axis=0)


def _observed(rng, t, noise_scale=0.1, level=0.0, scales=None, **options):
    function = Truth(rng)
    seq = kb.ConfidenceSequence(PARTS, noise_scale=noise_scale, **options)
    X = rng.random((t, 2))
    noise = (noise_scale if scales is None else scales) * rng.standard_normal(t)
    if t:
        seq.update(X, level + function(X) + noise, scales)
    return seq, function


# --- parts


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("t", [0, 1, 7, 8, 40, 150])
def test_functions_in_parts_are_inside(name, t):
    rng = np.random.default_rng(t)
    seq, function = _observed(rng, t, bound=BOUNDS[name])
    Q = np.vstack([rng.random((30, 2)), seq.points[:2].reshape(-1, 2)])
    lower, upper = seq.bounds(Q)
    assert np.all(lower <= function(Q)) and np.all(function(Q) <= upper)
    low, high = seq.bounds_of([Difference(Q[0], Q[1]), Average(Q)])
    values = function(Q)
    assert np.all(low <= [values[0] - values[1], values.mean()])
    assert np.all(high >= [values[0] - values[1], values.mean()])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(KERNELS)), min_size=1, max_size=4),
    st.lists(st.floats(1e-6, 1.0), min_size=4, max_size=4),
    st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=4),
    st.integers(0, 10**6),
)
def test_worst_cases_have_norm_1_whatever_the_shares(names, shares, bounds, seed):
    """The largest value at x of parts of these norms does not exceed the trivial bound."""
    rng = np.random.default_rng(seed)
    pairs = [(KERNELS[name], bound) for name, bound in zip(names, bounds)]
    parts, x = kb.Parts(pairs), rng.random((1, 2))
    n = len(pairs)
    weights = np.array(shares[:n]) / np.sum(shares[:n])
    largest = sum(bound * np.sqrt(kernel.diag(x)[0]) for kernel, bound in pairs)
    for chosen in (weights, parts.equal_shares):
        assert sum(chosen) <= 1 + 1e-15
        kernel = parts.kernel(chosen)
        assert np.sqrt(kernel.diag(x)[0]) >= largest * (1 - 1e-12)
        # sum_i <g_i, phi> with g_i along phi_i(x): equal where shares are those of the parts
        best = np.array([b * np.sqrt(k.diag(x)[0]) for k, b in pairs]) / largest
        assert np.sqrt(parts.kernel(best).diag(x)[0]) == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 30])
def test_shares_add_up_to_less_than_1_exactly(n):
    """In exact arithmetic sum B_i^2 / c_i <= 1, where the c_i are the constants as rounded."""
    rng = np.random.default_rng(n)
    for _ in range(50):
        bounds = 10 ** rng.uniform(-5, 5, n)
        parts = kb.Parts([(ConstantKernel(1.0), bound) for bound in bounds])
        kernel, constants = parts.kernel(parts.equal_shares), []
        while len(constants) < n - 1:
            constants.append(kernel.k2.k1.constant_value)
            kernel = kernel.k1
        constants.append(kernel.k1.constant_value)
        total = sum(
            Fraction(float(b)) ** 2 / Fraction(float(c)) for b, c in zip(bounds, constants[::-1])
        )
        assert 1 - 1e-12 < total <= 1


@pytest.mark.parametrize("name", ["CMM", "DMM", "AMM", "AY"])
@pytest.mark.parametrize("mixture", ["hybrid", "single"])
@pytest.mark.parametrize("t", [0, 5, 40, 130])
def test_one_part_is_the_plain_sequence(t, mixture, name):
    """c and ridges are in the unit of the kernel, which now is B^2 times as large."""
    rng, bound = np.random.default_rng(t), BOUNDS[name]
    for_plain, for_part = (Single(50.0), Single(2.0)) if mixture == "single" else (Hybrid(),) * 2
    plain, _ = sequence(SMOOTH, rng, t, mixture=for_plain, bound=bound)
    one = kb.ConfidenceSequence(
        kb.Parts([(SMOOTH, 5.0)]), noise_scale=0.1, bound=bound, mixture=for_part
    )
    if t:
        one.update(plain.points, plain.outcomes)
    Q = rng.random((9, 2))
    np.testing.assert_allclose(one.bounds(Q), plain.bounds(Q), rtol=1e-7, atol=1e-6)
    difference = Difference(Q[0], Q[1])
    np.testing.assert_allclose(
        one.bounds_of(difference), plain.bounds_of(difference), rtol=1e-7, atol=1e-6
    )
    assert one.radius == pytest.approx(plain.radius, rel=1e-9)


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("t", [6, 8, 31, 70])
def test_one_by_one_or_all_at_once(t, weighted, bound):
    rng = np.random.default_rng(t)
    scales = 10 ** rng.uniform(-2, 0, t) if weighted else np.full(t, 0.1)
    offset = kb.Offset(20.0, within=4.0)
    whole, _ = _observed(rng, t, level=18.0, scales=scales, offset=offset, bound=bound)
    steps = kb.ConfidenceSequence(PARTS, noise_scale=0.1, offset=offset, bound=bound)
    Q = rng.random((5, 2))
    for x, y, scale in zip(whole.points, whole.outcomes, scales):
        steps.bounds(Q)  # so that shares are chosen on the way
        steps.update(x, y, scale)
    assert steps.known.shares == whole.known.shares
    np.testing.assert_allclose(steps.bounds(Q), whole.bounds(Q), rtol=1e-7, atol=1e-6)
    assert steps.radius == pytest.approx(whole.radius, rel=1e-9)


def test_shares_change_at_powers_of_two_and_do_not_look_at_outcomes():
    rng = np.random.default_rng(0)
    counts = [count_for_shares(t) for t in (0, 7, 8, 15, 16, 255, 256, 600)]
    assert counts == [0, 0, 8, 8, 16, 128, 256, 256]
    one, other = (kb.ConfidenceSequence(PARTS, noise_scale=0.5) for _ in range(2))
    X, changed = rng.random((40, 2)), []
    for t, x in enumerate(X, start=1):
        before = one.known.shares
        one.update(x, 0.1 * rng.standard_normal())
        other.update(x, 0.1 * rng.standard_normal())
        assert one.known.shares == other.known.shares
        if one.known.shares != before:
            changed.append(t)
    assert changed == [1, 8, 16, 32] or changed == [8, 16, 32]


def test_the_radius_does_not_know_which_shares_are_chosen():
    """That of the kernel with equal shares, in which the mixture was fixed beforehand."""
    rng = np.random.default_rng(0)
    for mixture in (Hybrid(), Single(0.5)):
        seq, _ = _observed(rng, 50, mixture=mixture)
        plain = kb.ConfidenceSequence(seq.kernel, 1.0, 0.1, mixture=mixture)
        plain.update(seq.points, seq.outcomes)
        assert seq.known.shares != PARTS.equal_shares
        assert seq.radius == plain.radius


@pytest.mark.parametrize("bound", [kb.AY(), kb.AY(0.3), kb.IGP(0.02)], ids=repr)
def test_bounds_by_a_log_determinant_have_a_kernel_fixed_in_advance(bound):
    """Shares that depend on points depend, in an adaptive loop, on the noise."""
    rng = np.random.default_rng(0)
    seq, _ = _observed(rng, 50, bound=bound)
    plain = kb.ConfidenceSequence(seq.kernel, 1.0, 0.1, bound=bound)
    plain.update(seq.points, seq.outcomes)
    Q, half = rng.random((8, 2)), np.full((8, 2), 0.05)
    np.testing.assert_array_equal(seq.bounds(Q), plain.bounds(Q))
    assert seq.bounds_of(Difference(*Q[:2])) == plain.bounds_of(Difference(*Q[:2]))
    np.testing.assert_array_equal(seq.gradients(Q), plain.gradients(Q))
    for sign in (1, -1):
        found, expected = (one.surface(sign).ceilings(Q, half) for one in (seq, plain))
        np.testing.assert_array_equal(found, expected)
    domain = kb.Finite(Q)
    one, other = (kb.KernelUCB(s, domain) for s in (seq, plain))
    assert one.ask().index == other.ask().index
    assert one.certificate().regret == other.certificate().regret


@pytest.mark.parametrize("noise_scale", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("t", [10, 40])
@pytest.mark.parametrize("within", [1.0, 1e3, 1e4, 1e6])
def test_shares_suit_a_level_of_which_little_is_known(t, noise_scale, within, monkeypatch):
    """Small ones would drown the rest in rounding errors, and large ones cost width themselves."""
    kernel, rng = Matern(0.5, nu=2.5), np.random.default_rng(0)
    f = kb.RKHSFunction(kernel, rng.random((10, 1)), rng.standard_normal(10)).rescaled(1.5)
    X, grid = rng.random((t, 1)), np.linspace(0, 1, 50)[:, None]
    y = f(X) + 0.3 * within + noise_scale * rng.standard_normal(t)

    def width():
        seq = kb.ConfidenceSequence(kernel, 2.0, noise_scale, offset=kb.Offset(0.0, within))
        seq.update(X, y)
        lower, upper = seq.bounds(grid)
        assert np.all(lower <= f(grid) + 0.3 * within) and np.all(f(grid) + 0.3 * within <= upper)
        return np.mean(upper - lower)

    chosen, others = width(), []
    for share in (0.01, 0.03, 0.1, 0.3, 0.5):
        fixed = np.array([1 - share, share])
        monkeypatch.setattr(kb.Parts, "shares", lambda *_, fixed=fixed: tuple(fixed * (1 - 1e-14)))
        others.append(width())
    assert chosen < 1.1 * min(others)


def test_chosen_shares_are_better():
    rng = np.random.default_rng(0)
    seq, _ = _observed(rng, 100)
    plain = kb.ConfidenceSequence(seq.kernel, 1.0, 0.1)
    plain.update(seq.points, seq.outcomes)
    chosen, equal = (np.subtract(*one.bounds(seq.points)[::-1]).mean() for one in (seq, plain))
    assert chosen < 0.95 * equal


@pytest.mark.parametrize("t", [5, 60])
def test_refuted_parts(t):
    rng = np.random.default_rng(0)
    X = rng.random((t, 2))
    seq = kb.ConfidenceSequence(PARTS, noise_scale=0.1)
    seq.update(X, np.where(X[:, 0] > 0.5, 40.0, -40.0))
    assert seq.norm_lower_bound > 1 and seq.noise_lower_bound > 0.1
    for bound in (kb.CMM(), kb.DMM(), kb.AMM()):
        with pytest.raises(kb.EmptyConfidenceSetError, match="bounds on the parts must be") as e:
            seq.bounds(X, bound)
        assert str(e.value).endswith(".")
    larger = kb.Parts([(k, 1.01 * e.value.norm_lower_bound * b) for k, b in PAIRS])
    enough = kb.ConfidenceSequence(larger, noise_scale=0.1)
    enough.update(X, seq.outcomes)
    if t < 8:  # while shares are equal, the number says exactly what it takes
        assert np.all(np.isfinite(enough.bounds(X)))


@pytest.mark.parametrize("t", [12, 70])
def test_copies_and_threads(t):
    """The second engine, made when it is first asked for, is the copy's own."""
    rng = np.random.default_rng(0)
    seq, function = _observed(rng, t)
    Q, X = rng.random((6, 2)), rng.random((9, 2))
    expected = np.array(seq.bounds(Q))
    for original in (seq, _observed(np.random.default_rng(0), t)[0]):  # used, and never asked
        other = copy.deepcopy(original)
        other.update(X, function(X))
        np.testing.assert_array_equal(original.bounds(Q), expected)
        assert len(other) == t + 9 and not np.array_equal(other.bounds(Q), expected)
    fresh, found = _observed(np.random.default_rng(0), t)[0], []
    threads = [threading.Thread(target=lambda: found.append(fresh.bounds(Q))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(found) == 6
    for one in found:
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("noise_scale", [0.0, 1e-6])
def test_nearly_without_noise(noise_scale):
    rng = np.random.default_rng(0)
    seq, function = _observed(rng, 40, noise_scale)
    Q = np.vstack([rng.random((20, 2)), seq.points[:3]])
    for bound in (kb.CMM(), kb.DMM(), kb.AMM()):
        lower, upper = seq.bounds(Q, bound)
        assert np.all(lower <= function(Q)) and np.all(function(Q) <= upper)


@pytest.mark.parametrize("bounds", [(1e-40, 1e40), (1e44, 1e44), (0.0, 2.0), (1e-90, 0.0)])
def test_parts_of_very_different_sizes(bounds):
    rng = np.random.default_rng(0)
    parts = kb.Parts([(RBF(0.5), bounds[0]), (SMOOTH, bounds[1])])
    size = max(bounds)
    seq = kb.ConfidenceSequence(parts, noise_scale=0.1 * size)
    X = rng.random((20, 2))
    seq.update(X, 0.1 * size * rng.standard_normal(20))
    lower, upper = seq.bounds(rng.random((5, 2)))
    assert np.all(np.isfinite(lower)) and np.all(lower < upper)
    assert np.all(upper <= sum(bounds) * 1.5) and np.all(upper - lower > 1e-3 * size)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (3.0, "must be a sequence"),
        ("RBF", "must be a sequence"),
        ([RBF(0.5)], r"must be \(kernel, bound\)"),
        ([(RBF(0.5), 1.0, 2.0)], r"must be \(kernel, bound\)"),
        ([(1.0, RBF(0.5))], "kernel"),
        ([(RBF(0.5), -1.0)], "each bound"),
        ([(RBF(0.5), np.nan)], "each bound"),
        ([(RBF(0.5), np.inf)], "each bound"),
        ([(RBF(0.5), None)], "each bound"),
        ([(RBF(0.5), 1e60)], "each bound must be .* at most 1e[+]45"),
        ([(RBF(0.5), 1e-170)], "each bound must be 0 or at least 1e-100"),
        ([], "at least one with a bound above 0"),
        ([(RBF(0.5), 0.0)], "at least one with a bound above 0"),
    ],
)
def test_what_is_no_parts_is_refused(given, match):
    refused(lambda: kb.Parts(given), match)


def test_norm_bound_is_in_the_parts():
    refused(lambda: kb.ConfidenceSequence(PARTS, 2.0, 0.1), "norm_bound is in the parts")
    refused(lambda: kb.ConfidenceSequence(SMOOTH, noise_scale=0.1), "norm_bound is missing")


# --- levels


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from(sorted(BOUNDS)),
    st.sampled_from([-3.0, 0.5, 1e3]),
    st.integers(0, 10**6),
)
def test_a_known_level_shifts_outcomes_and_bounds(name, bound, level, seed):
    rng = np.random.default_rng(seed)
    plain, _ = sequence(KERNELS[name], rng, 20, bound=BOUNDS[bound])
    Q = rng.random((5, 2))
    means = (level, kb.Offset(level), kb.Offset(lambda X: np.full(len(X), level)))
    difference, average = Difference(Q[0], Q[1]), Average(Q)
    for offset in means:
        shifted = kb.ConfidenceSequence(KERNELS[name], 5.0, 0.1, bound=BOUNDS[bound], offset=offset)
        shifted.update(plain.points, plain.outcomes + level)
        size = 1e-9 * (abs(level) + 5.0 * np.sqrt(KERNELS[name].diag(Q).max()))
        expected = np.array(plain.bounds(Q)) + level
        np.testing.assert_allclose(shifted.bounds(Q), expected, rtol=1e-6, atol=1e3 * size)
        np.testing.assert_allclose(
            shifted.bounds_of(difference), plain.bounds_of(difference), atol=1e3 * size
        )
        np.testing.assert_allclose(
            shifted.bounds_of(average), np.array(plain.bounds_of(average)) + level, atol=1e3 * size
        )
        assert shifted.radius == pytest.approx(plain.radius, rel=1e-6)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("edge", [-1.0, 1.0])
@pytest.mark.parametrize("t", [0, 5, 40])
def test_a_level_at_the_edge_of_its_range(t, edge, name):
    """Also when all else has the largest norm allowed."""
    rng = np.random.default_rng(t)
    function = truth(SMOOTH, rng, 2.0)
    seq = kb.ConfidenceSequence(
        SMOOTH, 2.0, 0.1, offset=kb.Offset(50.0, within=30.0), bound=BOUNDS[name]
    )
    level = 50.0 + edge * 30.0
    if t:
        X, y = observe(function, rng, t, 0.1)
        seq.update(X, level + y)
    Q = rng.random((30, 2))
    lower, upper = seq.bounds(Q)
    assert np.all(lower <= level + function(Q)) and np.all(level + function(Q) <= upper)
    low, high = seq.bounds_of(Difference(Q[0], Q[1]))
    assert low <= function(Q[:1])[0] - function(Q[1:2])[0] <= high
    if t:  # of a difference the level is no part, but for rounding
        assert high - low < 4.1 * 2.0


def test_a_mean_function():
    rng = np.random.default_rng(0)
    function = truth(SMOOTH, rng, 1.0)

    def mean(X):
        return 1e3 * X[:, 0] + np.sin(9 * X[:, 1])

    seq = kb.ConfidenceSequence(SMOOTH, 1.0, 0.05, offset=kb.Offset(mean))
    X, y = observe(function, rng, 40, 0.05)
    for _ in range(2):
        Q = rng.random((20, 2))
        values = mean(Q) + function(Q)
        for bound in BOUNDS.values():
            lower, upper = seq.bounds(Q, bound)
            assert np.all(lower <= values) and np.all(values <= upper)
            assert np.all(upper - lower <= 2.001)
            asked = [Difference(Q[0], Q[1]), Average(Q), Sum(Q[:3], [1.0, -2.0, 1.0])]
            true = [values[0] - values[1], values.mean(), values[0] - 2 * values[1] + values[2]]
            low, high = seq.bounds_of(asked, bound)
            assert np.all(low <= true) and np.all(true <= high)
        if not len(seq):
            seq.update(X, mean(X) + y)
    refused(lambda: seq.bounds_of(Derivative(Q[0], 0)), "derivative of the offset's mean")
    refused(lambda: seq.gradients(Q), "gradient")


@pytest.mark.parametrize("mean", [lambda X: X, lambda X: 1.0, lambda X: X[:, 0] * np.nan])
def test_what_is_no_mean_function_is_refused(mean):
    seq = kb.ConfidenceSequence(SMOOTH, 1.0, 0.05, offset=kb.Offset(mean))
    refused(lambda: seq.update([[0.0, 0.0]] * 3, [0.0] * 3), "mean function of the offset")
    assert len(seq) == 0


def test_a_mean_function_that_fails():
    def mean(X):
        raise RuntimeError("no such file")

    seq = kb.ConfidenceSequence(SMOOTH, 1.0, 0.05, offset=kb.Offset(mean))
    refused(lambda: seq.bounds([[0.0, 0.0]]), "failed: no such file")


@pytest.mark.parametrize("within", [-1.0, np.nan, np.inf, "wide"])
def test_what_is_no_range_is_refused(within):
    refused(lambda: kb.Offset(0.0, within=within), "within of an offset")


@pytest.mark.parametrize("level", [np.nan, np.inf, "high", [1.0, 2.0]])
def test_what_is_no_level_is_refused(level):
    refused(lambda: kb.Offset(level), "level of an offset")


@pytest.mark.parametrize("offset", ["high", np.nan, lambda X: X[:, 0]])
def test_what_is_no_offset_is_refused(offset):
    refused(lambda: kb.ConfidenceSequence(SMOOTH, 1.0, 0.1, offset=offset), "offset")


# --- regret bounds from a run, which are about one kernel


def test_the_regret_bound_of_a_run_with_a_level():
    rng = np.random.default_rng(0)
    function, points = truth(SMOOTH, rng, 2.0), rng.random((30, 2))
    found = []
    for level in (0.0, 100.0):
        noise = np.random.default_rng(1)
        ucb = kb.KernelUCB(kb.ConfidenceSequence(SMOOTH, 2.0, 0.1, offset=level), kb.Finite(points))
        for _ in range(25):
            x = ucb.ask().x
            ucb.tell(x, level + function(x[None])[0] + 0.1 * noise.standard_normal())
        found.append(theory.run_bound(ucb, ridge=0.3))  # another than that of the radius
    np.testing.assert_allclose(found[1].terms, found[0].terms, rtol=1e-6)
    true = function(points).max() - function(ucb.sequence.points)
    assert np.all(true <= found[1].terms)


@pytest.mark.parametrize("what", ["parts", "unknown level", "noise scales", "mean function"])
def test_regret_bounds_of_a_run_that_is_not_of_one_kernel(what):
    offset = {"unknown level": kb.Offset(0, 1.0), "mean function": kb.Offset(lambda X: X[:, 0])}
    kernel = (PARTS,) if what == "parts" else (SMOOTH, 2.0)
    seq = kb.ConfidenceSequence(*kernel, noise_scale=0.1, offset=offset.get(what))
    seq.update([[0.0, 0.0], [1.0, 0.0]], [0.0, 0.0], 0.2 if what == "noise scales" else None)
    match = "pass value_bound=" if what == "mean function" else "one kernel and one noise scale"
    refused(lambda: theory.run_bound(seq), match)
