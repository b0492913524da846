"""How wrong B and sigma may be: a conclusion holds at what is reported, and not a little above."""

from __future__ import annotations

import builtins
import copy
import math
import time
import warnings

import numpy as np
import pytest
from own_bounds import Wider
from problems import KERNEL, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.functionals import Difference
from kernelbounds.mixtures import Hybrid, Prequential, Single
from kernelbounds.sequence.sensitivity import largest

B, SIGMA = 5.0, 0.1
MIXTURES = {"hybrid": Hybrid(), "single": Single(0.5)}
BOUNDS = {
    "CMM": kb.CMM(),
    "DMM": kb.DMM(),
    "AMM": kb.AMM(0.3),
    "AY": kb.AY(0.3),
    "IGP": kb.IGP(0.01),
}


def data(t=40, seed=0):
    rng = np.random.default_rng(seed)
    f, X = truth(KERNEL, rng, 4.0), rng.random((t, 2))
    best = X[np.argmax(f(X))]
    return X, f(X) + SIGMA * rng.standard_normal(t), best, X[np.argmin(f(X))]


def observed(X, y, norm_bound=B, noise_scale=SIGMA, mixture=None, scales=None, **options):
    """As if these had been assumed, with the mixture of the first assumption."""
    chosen = Hybrid() if mixture is None else mixture
    if isinstance(chosen, Hybrid) and norm_bound:
        chosen = Hybrid(relative_scale=0.03 * (B / norm_bound) ** 2)
    seq = kb.ConfidenceSequence(KERNEL, norm_bound, noise_scale, mixture=chosen, **options)
    own = None if scales is None else scales * (noise_scale / SIGMA)
    seq.update(X, y, noise_scale=own)
    return seq


def conclusions(seq, best, worst, points, bound=None):
    """Some that hold, by keyword, each with a function that says whether they do."""
    low, high = float(seq.lower(best, bound)[0]), float(seq.upper(worst, bound)[0])
    found = {
        "above": ((best, low - 0.4), lambda s: s.lower(best, bound)[0] > low - 0.4),
        "below": ((worst, high + 0.4), lambda s: s.upper(worst, bound)[0] < high + 0.4),
    }
    if isinstance(bound, Wider):
        return found

    def regret(s):
        return max(s.bounds_of([Difference(p, best) for p in points], bound)[1])

    value = regret(seq) + 0.3
    if seq.bounds_of(Difference(best, worst), bound)[0] > 0:
        better = Difference(best, worst)
        found["better"] = ((best, worst), lambda s: s.bounds_of(better, bound)[0] > 0)
    found["regret_below"] = ((best, points, value), lambda s: regret(s) < value)
    return found


def holds(check, seq):
    try:
        return bool(check(seq))
    except kb.EmptyConfidenceSetError:
        return False


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("name", BOUNDS)
def test_as_large_as_can_be(name, mixture):
    X, y, best, worst = data()
    seq, bound = observed(X, y, mixture=mixture), BOUNDS[name]
    for keyword, (asked, check) in conclusions(seq, best, worst, X[:6], bound).items():
        found = seq.sensitivity(**{keyword: asked}, bound=bound)
        assert found.norm_bound > B and found.noise_scale > SIGMA
        assert found.norm_lower_bound == pytest.approx(seq.norm_lower_bound, rel=1e-6)
        for factor, expected in ((1 - 1e-5, True), (1.01, False)):
            if math.isfinite(found.norm_bound):
                other = observed(X, y, norm_bound=factor * found.norm_bound, mixture=mixture)
                assert holds(check, other) == expected, (keyword, factor)
            if math.isfinite(found.noise_scale):
                other = observed(X, y, noise_scale=factor * found.noise_scale, mixture=mixture)
                assert holds(check, other) == expected, (keyword, factor)


def test_with_noise_scales_of_their_own_offsets_and_misspecification():
    X, y, best, _ = data()
    scales = np.random.default_rng(1).uniform(0.05, 0.3, len(X))
    options = {"scales": scales, "offset": 30.0, "misspecification": 0.05}
    seq = observed(X, 30 + y, **options)
    value = float(seq.lower(best)[0]) - 0.4
    found = seq.sensitivity(above=(best, value))
    for factor, expected in ((1 - 1e-5, True), (1.01, False)):
        for changed in ("norm_bound", "noise_scale"):
            at = {changed: factor * getattr(found, changed)}
            if math.isfinite(at[changed]):
                assert (observed(X, 30 + y, **at, **options).lower(best)[0] > value) == expected


class TestParts:
    parts = kb.Parts([(RBF(0.5), 3.0), (Matern(0.3, nu=1.5), 1.0)])

    def test_the_factor_of_all_bounds(self):
        """With equal shares, of few points, it is the norm in the space of the sum."""
        X, y, best, _ = data(7)
        best = best + 0.15  # not where it was observed
        seq = kb.ConfidenceSequence(self.parts, noise_scale=SIGMA)
        seq.update(X, y)
        value = float(seq.lower(best)[0]) - 0.4
        found = seq.sensitivity(above=(best, value))
        assert found.has_parts and "common factor on the bounds of all parts up to" in str(found)
        assert "(assumed: 1; the data need at least" in str(found)
        for factor, expected in ((1 - 1e-5, True), (1.01, False)):
            times = factor * found.norm_bound
            one = kb.ConfidenceSequence(
                self.parts.kernel(self.parts.equal_shares), times, SIGMA,
                mixture=Hybrid(relative_scale=0.03 / times**2),
            )  # fmt: skip
            one.update(X, y)
            assert (one.lower(best)[0] > value) == expected

    def test_shares_stay(self):
        X, y, best, worst = data(40)
        seq = kb.ConfidenceSequence(self.parts, noise_scale=SIGMA, offset=kb.Offset(0.0, 2.0))
        seq.update(X, y)
        found = seq.sensitivity(better=(best, worst))
        assert found.known.shares == seq.known.shares != seq.parts.equal_shares
        assert found.norm_bound > 1
        rows = found.table()
        assert [row.holds for row in rows] == [row.norm_bound <= found.norm_bound for row in rows]


def test_a_bound_of_ones_own():
    X, y, best, worst = data()
    seq, bound = observed(X, y, mixture=Single(0.5)), Wider(0.2)
    for keyword, (asked, check) in conclusions(seq, best, worst, X, bound).items():
        found = seq.sensitivity(**{keyword: asked}, bound=bound)
        other = observed(X, y, norm_bound=1.01 * found.norm_bound, mixture=Single(0.5))
        assert not check(other)
    for keyword, asked in {"better": (best, worst), "regret_below": (best, X, 1.0)}.items():
        with pytest.raises(kb.InputError, match="bounds values only"):
            seq.sensitivity(**{keyword: asked}, bound=bound)


class TestHoweverLarge:
    def test_it_is_infinite(self):
        """Where x was observed often, R_t alone bounds f*(x)."""
        X, y = np.full((200, 1), 0.5), np.tile([0.9, 1.1], 100)
        seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
        seq.update(X, y)
        found = seq.sensitivity(above=([0.5], 0.5))
        assert math.isinf(found.norm_bound) and math.isfinite(found.noise_scale)
        assert "every norm_bound, however large (assumed: 2;" in repr(found)
        assert found.table()[-1].holds
        same = kb.ConfidenceSequence(RBF(0.5), 2000.0, 0.1, mixture=Hybrid(relative_scale=3e-8))
        same.update(X, y)
        assert same.lower([0.5])[0] > 0.5

    def test_what_the_norm_alone_says(self):
        seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
        found = seq.sensitivity(above=([0.5], -3.0))
        assert found.norm_bound == pytest.approx(3.0, rel=0.01) and found.norm_bound < 3
        assert math.isinf(found.noise_scale)
        assert found.norm_lower_bound == 0

    def test_without_noise(self):
        X = np.linspace(0, 1, 12)[:, None]
        seq = kb.ConfidenceSequence(RBF(0.3), 3.0, 0.0)
        seq.update(X, np.sin(6 * X[:, 0]))
        found = seq.sensitivity(above=([0.25], 0.5))
        assert 1e-4 < found.noise_scale < 1
        for factor, expected in ((1 - 1e-5, True), (1.01, False)):
            noisy = kb.ConfidenceSequence(RBF(0.3), 3.0, factor * found.noise_scale)
            noisy.update(X, np.sin(6 * X[:, 0]))
            assert (noisy.lower([0.25])[0] > 0.5) == expected
        lower = float(seq.lower([0.25])[0])
        found = seq.sensitivity(above=([0.25], lower - 1e-7))
        assert found.noise_scale == 0 and "noise_scale up to 0 (assumed: 0)" in str(found)

    def test_a_norm_bound_of_zero(self):
        seq = kb.ConfidenceSequence(RBF(0.3), 0.0, 0.1)
        seq.update([[0.5]], [0.05])
        found = seq.sensitivity(below=([0.2], 0.5))
        assert found.norm_bound > 0.49
        assert any(row.holds for row in found.table())


class TestBelieving:
    @pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
    def test_c_stays(self, mixture):
        X, y, *_ = data()
        known = observed(X, y, mixture=mixture).known
        other = known.assuming(norm_bound=70.0)
        assert other.radius.squared == known.radius.squared and other.radius.norm_bound == 70.0
        assert other.reference_ridge == known.reference_ridge
        assert other.chosen_for.mixture_scale == known.chosen_for.mixture_scale
        noisier = known.assuming(noise_scale=0.3)
        assert noisier.reference_ridge == pytest.approx(9 * known.reference_ridge)
        fresh = kb.ConfidenceSequence(KERNEL, B, 0.3, mixture=mixture)
        fresh.update(X, y)
        assert noisier.radius.squared == pytest.approx(fresh.known.radius.squared, rel=1e-9)
        assert known.assuming(noise_scale=SIGMA).radius == known.radius

    @pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
    def test_a_snapshot_stays_as_it_was_when_the_sequence_goes_on(self, mixture):
        X, y, *_ = data()
        seq = observed(X[:20], y[:20], mixture=mixture)
        now = seq.known.assuming(norm_bound=70.0)
        noisier = now.assuming(noise_scale=0.3).radius.squared
        seq.update(X[20:], y[20:])
        assert seq.radius > 0  # and all forecasts are made
        assert now.assuming(noise_scale=0.3).radius.squared == noisier

    def test_forecasters_are_asked_once(self):
        calls = []

        def forecaster(X, y, x):
            calls.append(len(y))
            return 0.0, 1.0

        X, y, best, _ = data(12)
        seq = observed(X, y, mixture=Prequential(forecaster))
        value = float(seq.lower(best)[0]) - 0.2
        found = seq.sensitivity(above=(best, value))
        assert calls == list(range(12)) and found.noise_scale > SIGMA

    def test_what_comes_later_is_not_seen(self):
        X, y, best, worst = data()
        seq = observed(X, y)
        found = seq.sensitivity(better=(best, worst))
        twin = copy.deepcopy(found)
        before = twin.table()
        for _ in range(3):
            seq.update(X, -y)
        assert found.table() == before and len(found.known.points) == len(X)


def test_the_table_tells_where_it_ends():
    X, y, best, _ = data(100)
    seq = observed(X, y)
    value = float(seq.lower(best)[0]) - 0.1
    found = seq.sensitivity(above=(best, value))
    rows = found.table(21)
    assert len(rows) == 21 and rows[0]._fields == ("norm_bound", "lower", "upper", "holds")
    assert rows[0].norm_bound <= B < found.norm_bound < rows[-1].norm_bound
    assert [row.holds for row in rows] == [row.norm_bound <= found.norm_bound for row in rows]
    lower, upper = np.array([row.lower for row in rows]), np.array([row.upper for row in rows])
    slack = 1e-6 * rows[-1].norm_bound
    assert np.all(np.diff(lower) <= slack) and np.all(np.diff(upper) >= -slack)  # nested
    with pytest.raises(kb.InputError, match="count"):
        found.table(1)


def test_the_sentence():
    X, y, best, _ = data(100)
    seq = observed(X, y)
    found = seq.sensitivity(above=(best, float(seq.lower(best)[0]) - 0.1))
    assert repr(found) == str(found)
    assert str(found).startswith("holds for every norm_bound up to ")
    assert f"(assumed: 5; the data need at least {found.norm_lower_bound:.3g})" in str(found)
    assert str(found).endswith("(assumed: 0.1)")
    said = float(str(found).split("up to ")[1].split()[0])
    assert 0.99 * found.norm_bound < said <= found.norm_bound  # rounded down


def test_it_is_drawn(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    X, y, best, worst = data()
    found = observed(X, y).sensitivity(better=(best, worst))
    axes = pyplot.subplots()[1]
    assert found.plot(axes) is axes
    assert axes.get_xscale() == "log" and axes.get_xlabel() == "norm_bound"
    assert found.plot() is not axes
    pyplot.close("all")
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(kb.MissingExtraError, match=r"kernelbounds\[plot\]"):
        found.plot()


DESIGNS = {
    "all x": kb.FixedDesign(),
    "one x": kb.FixedDesign(False),
    "one x, Gaussian": kb.FixedDesign(False, noise="Gaussian"),
}


@pytest.mark.parametrize("bound", DESIGNS.values(), ids=DESIGNS)
class TestFixedDesigns:
    """Directions, their radius and weights are those of the B and sigma that were assumed."""

    # With directions and ridges chosen anew for every B, these are not nested.
    @pytest.mark.parametrize("seed", [2, 17, 20, 27])
    def test_sets_are_nested(self, seed, bound):
        seq, x = fixed_design(seed)
        low, high = (float(end[0]) for end in seq.bounds(x, bound))
        for asked in ({"above": (x, low - 0.3)}, {"below": (x, high + 0.3)}):
            found = seq.sensitivity(**asked, bound=bound)
            assert found.norm_bound > B and found.noise_scale > SIGMA
            rows = found.table(60)
            norms, lower, upper, holds = map(np.array, zip(*rows))
            assert norms[0] < B < found.norm_bound and norms[-1] > 20
            slack = 1e-7 * norms[-1]
            assert np.all(np.diff(lower) <= slack) and np.all(np.diff(upper) >= -slack)
            told = (norms <= found.norm_bound) | (norms > 1.0051 * found.norm_bound)
            assert np.array_equal(holds[told], (norms <= found.norm_bound)[told])

    def test_bounds_widen_with_sigma(self, bound):
        seq, x = fixed_design(2)
        now = seq.known.assuming()
        with pytest.raises(kb.EmptyConfidenceSetError):  # the smallest set of all
            bound.extremes(now.assuming(noise_scale=0.02), x[None], (1, -1))
        ends = [
            bound.extremes(now.assuming(noise_scale=scale), x[None], (1, -1))[:, 0]
            for scale in np.geomspace(0.1, 2.0, 40)
        ]
        assert np.all(np.diff(ends, axis=0) > 0)

    def test_as_they_are_nothing_changes(self, bound):
        seq, x = fixed_design(0)
        (lower,), (upper,) = seq.bounds(x, bound)
        found = seq.sensitivity(above=(x, lower - 0.2), bound=bound)
        same = found.conclusion.ends(found.known.assuming(norm_bound=B))
        assert same == pytest.approx((lower, upper), abs=1e-6)

    def test_it_is_a_look(self, bound):
        seq, x = fixed_design(0)
        low = float(seq.lower(x, bound)[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seq.sensitivity(above=(x, low - 1.0), bound=bound).table(3)
        seq.update(x, low + 1.0)
        with pytest.warns(UserWarning, match="one number of observations") as caught:
            seq.sensitivity(above=(x, low - 1.0), bound=bound)
        assert caught[0].filename == __file__

    def test_after_a_look_at_it_bounds_warn(self, bound):
        seq, x = fixed_design(0)
        seq.sensitivity(above=(x, -20.0), bound=bound)
        seq.update(x, 0.0)
        with pytest.warns(UserWarning, match="one number of observations"):
            seq.bounds(x, bound)

    def test_where_nothing_was_noisy(self, bound):
        X, _, best, _ = data()
        seq = observed(X, truth(KERNEL, np.random.default_rng(0), 4.0)(X), noise_scale=0.0)
        value = float(seq.lower(best, bound)[0]) - 0.5
        assert 0 < seq.sensitivity(above=(best, value), bound=bound).noise_scale < 10


def test_an_estimate_that_the_other_bounds_rule_out_is_no_conclusion(monkeypatch):
    seq, x = fixed_design(0)
    seq.bounds(x, kb.FixedDesign(False))
    off = np.array([[1e3], [-999.0]])
    monkeypatch.setattr("kernelbounds.bounds.fixed_designs.fixed_design.estimated", lambda *_: off)
    with pytest.raises(kb.KernelBoundsError, match="exclude each other"):
        seq.sensitivity(above=(x, -20.0), bound=kb.FixedDesign(False))


def fixed_design(seed):
    """Points that were fixed, outcomes, and a place."""
    rng = np.random.default_rng(seed)
    kernel = [Matern(0.5, nu=2.5), RBF(0.3), Matern(0.3, nu=1.5)][seed % 3]
    X = rng.random(([40, 10, 20][seed % 3], 1))
    f = kb.RKHSFunction(kernel, rng.random((10, 1)), rng.standard_normal(10)).rescaled(4.0)
    seq = kb.ConfidenceSequence(kernel, B, 2 * SIGMA)
    seq.update(X, f(X) + 2 * SIGMA * rng.standard_normal(len(X)))
    return seq, rng.random(1)


class TestRefusals:
    @pytest.fixture
    def seq(self):
        X, y, *_ = data(10)
        return observed(X, y)

    @pytest.mark.parametrize(
        ("asked", "match"),
        [
            ({}, "exactly one of above, below, better, regret_below, got none"),
            ({"above": ([0, 0], 1), "below": ([0, 0], 1)}, "got above and below"),
            ({"above": [0.5]}, r"above must be \(x, value\)"),
            ({"above": 3.0}, r"above must be \(x, value\)"),
            ({"better": ([0, 0], [1, 1], 2)}, r"better must be \(x, x2\)"),
            ({"regret_below": ([0, 0], 2.0)}, r"regret_below must be \(x, points, value\)"),
            ({"above": ([0.0], 1.0)}, "x must be a 2-D array|x has 1 columns"),
            ({"above": ([[0, 0], [1, 1]], 1.0)}, "one point"),
            ({"better": ([0, 0], [[0, 0], [1, 1]])}, "one point"),
            ({"above": ([0, 0], "much")}, "value must be a number"),
            ({"above": ([0, 0], math.nan)}, "value must be a finite number"),
            ({"regret_below": ([0, 0], [[0, 0]], 1.0)}, "one other than x"),
            ({"above": ([0, 0], 99.0)}, r"the lower bound on f\(x\) is .*, and not above 99"),
            ({"below": ([0, 0], -9.0)}, r"the upper bound on f\(x\) is .*, and not below -9"),
            ({"better": ([0, 0], [0, 0])}, r"lower bound on f\(x\) - f\(x2\) is .* not above 0"),
            ({"regret_below": ([0, 0], [[1, 1]], -9.0)}, r"bound on f\(p\) - f\(x\) is"),
        ],
    )
    def test_in_one_sentence(self, seq, asked, match):
        with pytest.raises(kb.InputError, match=match) as caught:
            seq.sensitivity(**asked)
        assert str(caught.value).endswith(".") and ". " not in str(caught.value)

    def test_refuted_data(self):
        seq = kb.ConfidenceSequence(RBF(0.5), 1.0, 0.0)
        seq.update([[0.0], [0.1]], [0.0, 5.0])
        with pytest.raises(kb.EmptyConfidenceSetError):
            seq.sensitivity(above=([0.0], -1.0))


class TestLargest:
    """The search, on functions whose zero is known."""

    @pytest.mark.parametrize("zero", [1.0001, 1.3, 1.99, 2.0, 7.0, 63.0, 900.0])
    @pytest.mark.parametrize(
        "shape",
        [
            lambda u: 1 - u,
            lambda u: -math.log(u),
            lambda u: 1e-9 if u < 1 else -1e9,
            lambda u: 1.0 - u if u < 1 else -math.inf,
        ],
    )
    def test_the_zero_is_found_in_few_steps(self, zero, shape):
        calls = []

        def margin(value):
            calls.append(value)
            return shape(value / zero)

        found = largest(margin, 1.0, 1.0)
        assert found < zero <= 1.0051 * found
        assert found == 1.0 or found in calls
        assert len(calls) <= 14

    @pytest.mark.parametrize("zero", [3e-6, 0.02, 1.0, 700.0])
    def test_from_nothing(self, zero):
        found = largest(lambda value: zero - value, 0.0, 1.0)
        assert found < zero <= 1.0051 * found
        assert largest(lambda value: 1e-9 - value, 0.0, 1.0) == 0

    def test_no_zero(self):
        assert math.isinf(largest(lambda value: 1.0, 1.0, 1.0))
        assert math.isinf(largest(lambda value: 1.0, 1e99, 1.0))


def test_it_takes_a_few_queries():
    """At most 20 times what one query, of both sides on fresh data, takes; mostly 2 to 10."""
    X, y, best, _ = data(300)
    value = float(observed(X, y).lower(best)[0]) - 0.4
    times: dict[str, list[float]] = {"query": [], "sensitivity": []}
    for _ in range(3):
        for name, ask in (
            ("query", lambda seq: seq.bounds(best)),
            ("sensitivity", lambda seq: seq.sensitivity(above=(best, value))),
        ):
            seq = observed(X, y)
            start = time.process_time()
            ask(seq)
            times[name].append(time.process_time() - start)
    assert min(times["sensitivity"]) < 20 * min(times["query"])
