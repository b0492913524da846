"""Observations at equal points are merged, and nothing that is known of f* changes."""

from __future__ import annotations

import math
from contextlib import contextmanager
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from exact import Exact
from hypothesis import given, settings, strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.engine import observations
from kernelbounds.engine.observations import MergedRepeats
from kernelbounds.mixtures import Hybrid, Single

KERNEL = Matern(0.5, nu=2.5)
NEVER = 10**9
NEW = np.random.default_rng(9).random((12, 2))
BOUNDS = [
    kb.CMM(),
    kb.DMM(),
    kb.AMM(),
    kb.AMM(ridge=3.0),
    kb.AY(),
    kb.IGP(0.1),
    kb.FixedDesign(),
    kb.FixedDesign(simultaneous=False),
]


@contextmanager
def rule(**constants):
    """Rows are merged from fewer on, or never, and blocks of forecasts begin earlier."""
    before = {name: getattr(observations, name) for name in constants}
    for name, value in constants.items():
        setattr(observations, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(observations, name, value)


def data(count=60, arms=7, seed=0, noise=0.1, dim=2):
    rng = np.random.default_rng(seed)
    X = rng.random((arms, dim))[rng.integers(0, arms, count)]
    y = np.sin(3 * X[:, 0]) + noise * rng.standard_normal(count)
    return X, y


def sequence(noise=0.1, norm_bound=5.0, kernel=KERNEL, **given):
    return kb.ConfidenceSequence(kernel, norm_bound, noise, **given)


def filled(X, y, scales=None, *, fewest, by=None, **given):
    """A sequence, appended in pieces, with bounds asked for after each."""
    with rule(FEWEST_ROWS=fewest):
        seq = sequence(**given)
        for some in np.split(np.arange(len(y)), range(by or len(y), len(y), by or len(y))):
            seq.update(X[some], y[some], None if scales is None else scales[some])
            seq.bounds(NEW[:1])
    return seq


@settings(max_examples=25, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 5), min_size=4, max_size=40),
    weighted=st.booleans(),
    mixture=st.sampled_from([Hybrid(), Single(0.7)]),
    bound=st.sampled_from(BOUNDS),
    seed=st.integers(0, 2**31),
)
def test_merged_and_single_rows_bound_alike(numbers, weighted, mixture, bound, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((6, 2))[numbers]
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(len(X))
    scales = rng.uniform(0.03, 0.3, len(X)) if weighted else None
    merged, single = (filled(X, y, scales, fewest=fewest, mixture=mixture) for fewest in (2, NEVER))
    assert single.known.engine.rows.count == len(X)
    distinct = len(set(numbers))
    assert merged.known.engine.rows.count <= max(2, 2 * distinct)
    assert len(merged) == len(X)
    unit = 1e-10 * 5.0
    assert abs(merged.radius - single.radius) <= unit
    assert abs(merged.norm_lower_bound - single.norm_lower_bound) <= 1e-9
    for ours, theirs in zip(merged.bounds(NEW, bound), single.bounds(NEW, bound), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=unit)


@pytest.mark.parametrize("weighted", [False, True])
def test_how_data_are_split_makes_no_difference(weighted):
    X, y = data(120)
    scales = np.random.default_rng(1).uniform(0.05, 0.2, len(X)) if weighted else None
    with rule(FIRST_BLOCK=64, BLOCK_OF_COUNT=8):
        ways = [filled(X, y, scales, fewest=4, by=by) for by in (None, 1, 40)]
        whole = ways[0].known.radius_engine.data
        assert whole.merged_at and whole.blocks_from is not None
        for one in ways[1:]:
            there = one.known.radius_engine.data
            assert there.merged_at == whole.merged_at
            assert [w.start for w in there.windows] == [w.start for w in whole.windows]
            np.testing.assert_array_equal(there.rows.outcomes, whole.rows.outcomes)
            assert there.rows.scatter == whole.rows.scatter
            for ours, theirs in zip(one.known.forecasts(), ways[0].known.forecasts()):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(one.bounds(NEW), ways[0].bounds(NEW), atol=1e-10)


def test_points_are_equal_to_the_bit():
    seq = sequence()
    X = np.tile([[0.0, 0.5], [-0.0, 0.5], [0.0, np.nextafter(0.5, 1)]], (40, 1))
    seq.update(X, np.zeros(len(X)))
    assert len(seq.known.radius_engine.data.merged.points) == 3
    np.testing.assert_array_equal(seq.points, X)
    assert np.signbit(seq.points[1, 0])


def test_rows_are_as_many_as_points():
    """However many observations there are; and without repeats nothing is merged."""
    X, y = data(5000, arms=20)
    seq = sequence()
    seq.update(X, y)
    assert seq.known.engine.rows.count <= observations.FEWEST_ROWS
    assert len(seq) == len(seq.points) == len(seq.outcomes) == len(seq.noise_scales) == 5000
    fresh = sequence()
    fresh.update(np.random.default_rng(0).random((300, 2)), np.zeros(300))
    assert fresh.known.engine.rows.count == 300 and not fresh.known.radius_engine.data.merged_at


@pytest.mark.parametrize("level", [0.0, 1.0, 1e8])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_rational_numbers(level, spread, weighted):
    rng = np.random.default_rng(3)
    count = 600
    numbers = np.maximum.accumulate(np.arange(count) // 200) * rng.integers(0, 2, count)
    numbers = np.unique(numbers, return_inverse=True)[1]
    order = np.argsort(np.unique(numbers, return_index=True)[1])
    numbers = np.argsort(order)[numbers]  # in the order in which they first occur
    w = rng.uniform(0.1, 10.0, count) if weighted else np.ones(count)
    y = (level + spread * rng.standard_normal(count)) * w
    points = numbers[:, None].astype(float)
    merged = MergedRepeats.none()
    for some in np.split(np.arange(count), [1, 5, 70, 300, 301]):
        merged = merged.with_more(points[some], numbers[some], w[some], y[some])
    scatter, total = Fraction(0), Fraction(0)
    for i in range(len(merged)):
        mine = [(Fraction(a), Fraction(b)) for a, b in zip(w[numbers == i], y[numbers == i])]
        squared = sum(a * a for a, _ in mine)
        product = sum(a * b for a, b in mine)
        scatter += sum((b - a * product / squared) ** 2 for a, b in mine)
        total += sum(b * b for _, b in mine)
        length = mp.sqrt(mp.mpf(squared.numerator) / squared.denominator)
        outcome = mp.mpf(product.numerator) / product.denominator / length
        eps = np.finfo(float).eps
        assert abs(merged.weights[i] / length - 1) <= 1.5 * eps
        size = math.sqrt(sum(b * b for _, b in mine))
        assert abs(merged.outcomes[i] - outcome) <= 2.5 * eps * size
    assert merged.scatter.least <= scatter <= merged.scatter.most
    slack = 200 * np.finfo(float).eps * float(total)
    assert merged.scatter.most - merged.scatter.least <= slack
    assert merged.count == count


def test_without_noise_repeats_tell_nothing_or_refute():
    X, y = data(10, arms=10, noise=0.0)
    once, often, doubted = (sequence(noise=0.0, norm_bound=50.0) for _ in range(3))
    once.update(X, y)
    often.update(np.tile(X, (30, 1)), np.tile(y, 30))
    assert often.known.engine.rows.count < 64
    for ours, theirs in zip(often.bounds(NEW), once.bounds(NEW), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert often.norm_lower_bound == pytest.approx(once.norm_lower_bound, rel=1e-6)
    wrong = np.tile(y, 30)
    wrong[17] += 1e-3  # merged long ago
    doubted.update(np.tile(X, (30, 1)), wrong)
    assert doubted.norm_lower_bound == math.inf
    with pytest.raises(kb.EmptyConfidenceSetError):
        doubted.bounds(NEW)


# kernel, noise scale, norm bound, level of the outcomes, spread of the outcomes over the noise
HARD = {
    "usual": (RBF(0.5), 0.1, 10.0, 0.3, 1.0),
    "no scatter": (RBF(0.5), 0.1, 10.0, 0.3, 1e-9),
    "far above the scatter": (Matern(0.5, nu=1.5), 1e-4, 1e4, 5e3, 1.0),
    "little noise, long scale": (RBF(50.0), 1e-4, 1e4, 1.0, 1.0),
    "scatter is all there is": (Matern(0.5, nu=2.5), 10.0, 1e-3, 0.0, 1.0),
}


@pytest.mark.parametrize("count", [3000, pytest.param(10**6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mixture", [Single(0.7), Hybrid()], ids=["single", "hybrid"])
@pytest.mark.parametrize("case", HARD, ids=str)
def test_never_too_tight_in_50_digits(case, mixture, count):
    """The reference is of the merged observations, in 50 digits, with R_t^2 less the scatter."""
    kernel, noise, norm_bound, level, spread = HARD[case]
    rng = np.random.default_rng(5)
    arms, counts = rng.random((4, 2)), [1, 7, count // 3, count - 8 - count // 3]
    numbers = rng.permutation(np.repeat(np.arange(4), counts))
    y = level + noise * spread * rng.standard_normal(count)
    y = np.round(y * UNIT) / UNIT  # so that sums can be taken in whole numbers
    seq = kb.ConfidenceSequence(kernel, norm_bound, noise, mixture=mixture)
    seq.update(arms[numbers], y)
    mine = [list(map(int, (y[numbers == i] * UNIT).tolist())) for i in range(4)]
    means = [mp.mpf(sum(some)) / (n * UNIT) for some, n in zip(mine, counts)]
    squares = sum(Fraction(sum(v * v for v in some)) for some in mine)
    squares -= sum(Fraction(sum(some) ** 2, n) for some, n in zip(mine, counts))
    scatter = mp.mpf(squares.numerator) / squares.denominator / UNIT**2
    c = seq.assumptions.mixture_scale
    reference = _Merged(kernel, arms, means, counts, scatter, norm_bound, noise, c)
    if isinstance(mixture, Single):
        squared = reference.radius_squared()
        # Eigenvalues are raised by less than 60 rounding errors of the largest one.
        raised = 60 * np.finfo(float).eps * seq.known.radius_engine.data.trace * c / noise**2
        assert 0 <= float(seq.radius**2 / squared - 1) <= 1e-7 + 3 * raised
    reference.given = mp.mpf(seq.radius) ** 2
    queries = np.vstack([rng.random((2, 2)), arms[:1]])
    ridge = mp.mpf(noise) ** 2 / mp.mpf(c)
    try:
        found = {"cmm": seq.bounds(queries), "amm": seq.bounds(queries, kb.AMM())}
    except kb.EmptyConfidenceSetError:
        assert (
            min(reference.given + a * reference.B**2 - reference.energy(a) for a in _ridges()) < 0
        )
        return
    for i, x in enumerate(queries):
        reference.at(x)
        for sign in (1, -1):
            exact = {"cmm": reference.cmm(sign), "amm": reference.amm(ridge, sign)}
            for name, value in exact.items():
                ours = sign * found[name][1 if sign > 0 else 0][i]
                gap = reference.gap(ours, value, sign)[0]
                # Eigenvalues are raised by rounding errors of the largest, hence a variance by no
                # more than those, and a bound, in units of B, by their root, at both of its terms.
                # AMM's own ridge may be below them.
                loose = 2 * math.sqrt(60 * np.finfo(float).eps * seq.known.radius_engine.data.trace)
                assert -1e-12 <= gap <= (1e-6 + loose if name == "cmm" else 1.0), (name, sign, i)


UNIT = 2**60


def _ridges():
    return [mp.mpf(10) ** (k / 4) for k in range(-60, 60)]


class _Merged(Exact):
    """Four observations in place of millions, and what they leave out in every energy."""

    def __init__(self, kernel, arms, means, counts, scatter, norm_bound, noise, c):
        scales = [mp.mpf(noise) / mp.sqrt(n) for n in counts]
        super().__init__(kernel, arms, means, norm_bound, noise, 0.01, c, noise_scales=scales)
        # As they are, and not as floats.
        self.w = [mp.sqrt(n) for n in counts]
        gram = mp.matrix(4, 4)
        for i in range(4):
            for j in range(4):
                gram[i, j] = self.w[i] * self.w[j] * self.kernel(arms[i], arms[j])
        self.values, self.Q = mp.eigsy(gram)
        self.values = [max(v, mp.mpf(0)) for v in self.values]
        self.z = self._rotate([w * v for w, v in zip(self.w, means)])
        self.scatter, self.given = scatter, None

    def radius_squared(self):
        return super().radius_squared() if self.given is None else self.given


def test_blocks_of_forecasts_keep_the_papers_radius():
    """At the rate 1 they cost what the paper's radius costs, whatever the blocks."""
    X, y = data(700, arms=12)
    y[300:320] += 3.0  # which no forecast could know
    c = 0.03 * 5.0**2
    with rule(FIRST_BLOCK=64):
        seq = sequence(mixture=Hybrid(rates=(1.0,)))
        seq.update(X, y)
        assert seq.known.radius_engine.data.blocks_from < 300
        found = seq.radius**2
    matrix = np.eye(len(X)) + KERNEL(X) * c / 0.01
    squared = y @ np.linalg.solve(matrix, y) + 0.01 * np.linalg.slogdet(matrix)[1]
    squared -= 2 * 0.01 * math.log(0.01)
    assert -1e-12 <= found / squared - 1 <= 1e-8


def test_blocks_of_forecasts_cost_little():
    X, y = data(1500, arms=20)
    squared = {}
    for first in (64, 512, NEVER):
        with rule(FIRST_BLOCK=first):
            seq = sequence()
            seq.update(X, y)
            squared[first] = seq.radius**2
    assert len(set(squared.values())) == 3
    for first in (64, 512):
        assert abs(squared[first] / squared[NEVER] - 1) <= 0.01


def test_forecasts_do_not_know_what_they_forecast():
    """Another outcome changes the forecasts of those after it alone, and its own error."""
    (X, y), at = data(400, arms=9), 253
    other = y.copy()
    other[at] += 1.0
    for first in (64, NEVER):
        with rule(FIRST_BLOCK=first, FEWEST_ROWS=16):
            one, two = sequence(), sequence()
            one.update(X, y)
            two.update(X, other)
            before, after = one.known.forecasts(), two.known.forecasts()
            np.testing.assert_array_equal(before.errors[:at], after.errors[:at])
            np.testing.assert_array_equal(before.variances, after.variances)
            assert not np.allclose(before.errors[at + 1 :], after.errors[at + 1 :], atol=1e-6)
            if first == 64:  # the rest of the block does not know, either
                next_block = min(
                    w.start for w in one.known.radius_engine.data.windows if w.start > at
                )
                rest = slice(at + 1, next_block)
                assert next_block > at + 2
                np.testing.assert_array_equal(before.errors[rest], after.errors[rest])


@pytest.mark.parametrize("noise", [0.1, 0.0])
def test_all_else_is_as_with_single_rows(noise):
    X, y = data(90, noise=0.0)
    y = y + noise * np.random.default_rng(4).standard_normal(len(y))
    merged, single = (
        filled(X, y, fewest=fewest, noise=noise, norm_bound=30.0) for fewest in (8, NEVER)
    )
    precise = {"rtol": 1e-5, "atol": 1e-5} if noise == 0 else {"rtol": 1e-7, "atol": 1e-8}
    for ours, theirs in zip(merged.gradients(NEW), single.gradients(NEW), strict=True):
        np.testing.assert_allclose(ours, theirs, **precise)
    for sign in (1, -1):
        boxes = NEW, np.full_like(NEW, 0.05)
        ours, theirs = (seq.surface(sign).ceilings(*boxes) for seq in (merged, single))
        np.testing.assert_allclose(ours, theirs, **precise)
    target = kb.functionals.Difference(NEW[0], NEW[1])
    np.testing.assert_allclose(merged.bounds_of(target), single.bounds_of(target), **precise)
    # It is on a grid of steps of a percent, or found by bisection to a thousandth.
    assert merged.noise_lower_bound == pytest.approx(single.noise_lower_bound, rel=0.011)
    if noise:
        low = merged.lower(NEW[:1])[0] - 0.1
        found = [seq.sensitivity(above=(NEW[0], low)) for seq in (merged, single)]
        assert found[0].norm_bound == pytest.approx(found[1].norm_bound, rel=1e-6)
        assert found[0].noise_scale == pytest.approx(found[1].noise_scale, rel=1e-6)
        dual, cone = merged.bounds(NEW[:3]), merged.bounds(NEW[:3], kb.CMM(solver="cone"))
        np.testing.assert_allclose(dual, cone, atol=1e-5)


@pytest.mark.parametrize(
    "given",
    [
        {"offset": kb.Offset(0.5, within=1.0)},
        {"misspecification": 0.05},
        {"kernel": kb.Parts([(RBF(0.3), 3.0), (Matern(nu=1.5), 2.0)]), "norm_bound": None},
        {"mixture": kb.mixtures.Prequential(lambda X, y, x: (y[-3:].sum() / 3, 0.5))},
    ],
    ids=["level", "misspecification", "parts", "prequential"],
)
def test_other_assumptions(given):
    X, y = data(80)
    merged, single = (filled(X, y, fewest=fewest, **given) for fewest in (8, NEVER))
    assert merged.known.engine.rows.count < single.known.engine.rows.count
    for ours, theirs in zip(merged.bounds(NEW), single.bounds(NEW), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_saved_and_loaded(tmp_path):
    X, y = data(200)
    seq = sequence()
    seq.update(X[:150], y[:150])
    assert seq.known.radius_engine.data.merged_at
    seq.save(tmp_path / "x.npz")
    again = kb.ConfidenceSequence.load(tmp_path / "x.npz")
    np.testing.assert_array_equal(again.bounds(NEW), seq.bounds(NEW))
    np.testing.assert_array_equal(again.points, seq.points)
    for one in (seq, again):
        one.update(X[150:], y[150:])
    assert again.known.radius_engine.data.merged_at == seq.known.radius_engine.data.merged_at
    np.testing.assert_allclose(again.bounds(NEW), seq.bounds(NEW), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "damage",
    [
        lambda parts: parts["merged_at"].__setitem__(0, 0),
        lambda parts: parts["merged_at"].__setitem__(0, 149),
        lambda parts: parts.update(merged_at=parts["merged_at"][:0]),
        lambda parts: parts["points"].__setitem__((0, 0), 0.123),
    ],
)
def test_damaged_files(tmp_path, damage):
    X, y = data(150)
    seq = sequence()
    seq.update(X, y)
    seq.save(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as archive:
        parts = {key: archive[key] for key in archive.files}
    damage(parts)
    np.savez(tmp_path / "x.npz", **parts)
    with pytest.raises(kb.StoredFileError, match="damaged"):
        kb.ConfidenceSequence.load(tmp_path / "x.npz")


class Failing(RBF):
    """A kernel that fails at large inputs."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if np.max(X) > 100 or (Y is not None and np.max(Y) > 100):
            raise RuntimeError("too large")
        return super().__call__(X, Y, eval_gradient)


def test_an_append_that_fails_adds_nothing():
    X, y = data(100)
    seq = sequence(kernel=Failing(0.5))
    seq.update(X[:70], y[:70])
    before = seq.bounds(NEW)
    merges = seq.known.radius_engine.data.merged_at
    bad = X[70:].copy()
    bad[-1] = 1000.0  # after a merge
    with pytest.raises(Exception, match="too large"):
        seq.update(bad, y[70:])
    assert len(seq) == 70 and seq.known.radius_engine.data.merged_at == merges
    np.testing.assert_array_equal(seq.bounds(NEW), before)
    seq.update(X[70:], y[70:])
    fresh = sequence(kernel=Failing(0.5))
    fresh.update(X, y)
    np.testing.assert_allclose(seq.bounds(NEW), fresh.bounds(NEW), atol=1e-12)


def test_a_snapshot_stays_as_it_is():
    X, y = data(200)
    seq = sequence()
    seq.update(X[:100], y[:100])
    believed = seq.known.assuming()
    radius, found = believed.radius.squared, believed.predict(NEW, np.array([0.5])).mean
    seq.update(X[100:], y[100:])
    assert seq.radius**2 > radius
    again = believed.assuming(noise_scale=0.1000001)
    assert again.radius.squared == pytest.approx(radius, rel=1e-4)
    np.testing.assert_array_equal(believed.predict(NEW, np.array([0.5])).mean, found)


def test_weights_of_a_regressor_are_repeats():
    X, y = data(30, arms=30)
    weights = np.random.default_rng(0).integers(0, 12, len(X))
    model = kb.KernelConfidenceRegressor(KERNEL, noise_scale=0.1)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict(NEW)
    assert model.sequence_.known.engine.rows.count < weights.sum()
    weighted = model.fit(X, y, sample_weight=weights).predict(NEW)
    np.testing.assert_allclose(repeated, weighted, rtol=0, atol=1e-10)
