"""Facts: never tighter than the cone program, never wider than without them, and refusals."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from exact import Exact
from problems import band_fails, refused, too_many, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds import kernels
from kernelbounds.bounds.with_facts import NormalFacts, constrained, inequalities
from kernelbounds.facts import (
    AtLeast,
    Between,
    Concave,
    Convex,
    Decreasing,
    Increasing,
    Slope,
    Value,
    fact_from_data,
    fact_to_data,
)
from kernelbounds.functionals import Average, Derivative, Difference, Sum
from kernelbounds.functionals.targets import Shifted

SQUARE = kb.Box([0.0, 0.0], [1.0, 1.0])
KERNEL = Matern(0.5, nu=2.5)
# A function that satisfies every one of the facts below.
FACTS = {
    "limits": [Between(0.0, 1.0, region=SQUARE)],
    "one side": [Between(low=0.0, region=SQUARE)],
    "rising": [Increasing(0, region=SQUARE), Increasing(1, region=SQUARE)],
    "slope": [Slope(0, 0.0, 2.5, region=SQUARE)],
    "concave": [Concave(0, region=SQUARE), Concave(1, region=SQUARE)],
    "face": [Value(where={0: 0.0}, y=0.0, region=SQUARE)],
    "point": [Value([0.5, 0.5], 0.49, within=0.01)],
    "average": [AtLeast(Average([[1.0, 1.0], [0.5, 1.0]]), 0.6)],
    "all": [
        Between(0.0, 1.0, region=SQUARE),
        Increasing(0, region=SQUARE),
        Concave(1, region=SQUARE),
        Value(where={0: 0.0}, y=0.0, region=SQUARE),
    ],
}


def saturation(x):
    return (1 - np.exp(-2 * x[:, 0])) * (1 - np.exp(-3 * x[:, 1]))


def sequence(facts, count=12, kernel=KERNEL, norm_bound=3.0, seed=0, level=0.0, **options):
    rng = np.random.default_rng(seed)
    X = rng.random((count, 2))
    seq = kb.ConfidenceSequence(kernel, norm_bound, 0.02, facts=facts, **options)
    seq.update(X, level + saturation(X) + 0.02 * rng.standard_normal(count))
    return seq


def by_cone_program(known, x, sign):
    """The largest s f(x), from a function that satisfies all constraints for certain.

    What the solver leaves violated is made up for by moving towards a function that has room.
    """
    facts = inequalities(known)
    points = np.vstack([known.points, facts.centres, x[None]])
    gram = kernels.cross(known.kernel, points, points)
    values, basis = np.linalg.eigh(gram)
    kept = values > 1e-13 * values[-1]
    root = basis[:, kept] * np.sqrt(values[kept])
    data, places, target = root[: known.count], root[known.count : -1], root[-1]
    size = np.abs(facts.rows).sum(axis=1, keepdims=True)
    rows, least = facts.rows / size @ places, facts.least / size[:, 0]
    v = cp.Variable(root.shape[1])
    radius, norm = np.sqrt(known.radius.squared), known.assumptions.norm_bound
    constraints = [
        cp.norm(data @ v - known.outcomes) <= radius,
        cp.norm(v) <= norm,
        rows @ v >= least,
    ]
    cp.Problem(cp.Maximize(sign * target @ v), constraints).solve(solver=cp.CLARABEL)
    return sign * float(target @ v.value)


@pytest.mark.parametrize("name", FACTS)
def test_as_tight_as_the_cone_program(name):
    seq, places = sequence(FACTS[name]), np.random.default_rng(1).random((3, 2))
    for sign in (1, -1):
        found = constrained(kb.CMM(), seq.known, places, (sign,))[0].values
        exact = np.array([by_cone_program(seq.known, x, sign) for x in places])
        assert np.all(found > exact - 3e-8), (sign, found - exact)  # which the solver may be off
        assert np.all(found < exact + 1.5e-3), (sign, found - exact)


@pytest.mark.parametrize("name", FACTS)
def test_never_wider_and_the_truth_is_inside(name):
    grid = np.random.default_rng(2).random((60, 2))
    with_facts, plain = sequence(FACTS[name]), sequence(None)
    (lower, upper), (low, high) = with_facts.bounds(grid), plain.bounds(grid)
    assert np.all(lower >= low - 1e-9) and np.all(upper <= high + 1e-9)
    assert np.mean(upper - lower) < np.mean(high - low) - 1e-4
    assert np.all(lower <= saturation(grid)) and np.all(saturation(grid) <= upper)


@pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AY()])
def test_multipliers_against_50_digits(bound):
    """The bound of the functional that the multipliers make is not below the exact one."""
    facts = [Slope(0, 0.0, 2.5, region=([0.0, 0.5], [1.0, 0.5])), Value([0.2, 0.2], 0.15)]
    seq = sequence(facts, count=7, kernel=RBF(0.4))
    known, a = seq.known, seq.assumptions
    places, ridge = np.array([[0.9, 0.4]]), seq.known.reference_ridge
    exact = Exact(
        seq.kernel, known.points, known.data.observed, a.norm_bound, a.noise_scale, a.delta,
        a.mixture_scale, radius_squared=mp.mpf(known.radius.squared),
    )  # fmt: skip
    methods = {
        "CMM": exact.cmm,
        "DMM": lambda sign: min(exact.amm(f * ridge, sign) for f in (0.1, 0.3, 1, 3, 10)),
        "AY": lambda sign: exact.ay(ridge, sign),
    }
    for sign in (1, -1):
        found = constrained(bound, known, places, (sign,))[0]
        assert found.multipliers.any(axis=1).all()
        for i, x in enumerate(places):
            shift = found.targets.shift
            used = shift.weights[i] != 0
            exact.at(Sum([x, *shift.centres[used]], [1.0, *shift.weights[i, used]]))
            value = methods[type(bound).__name__](sign)
            least = mp.fsum(
                mp.mpf(float(eta)) * mp.mpf(float(b))
                for eta, b in zip(found.multipliers[i], _least_of(known))
            )
            assert float(found.values[i] - (value - least)) > -1e-12


@pytest.mark.parametrize("fact", [Concave(0, ([0.1], [0.9])), Slope(0, -0.3, 2.7, ([0.1], [0.9]))])
def test_the_price_allows_for_rounded_weights(fact):
    """In rational numbers: it is at most eta'b, less what errors of the weights can make of f."""
    rng = np.random.default_rng(12)
    X = rng.random((9, 1))
    seq = kb.ConfidenceSequence(RBF(0.4), 3.0, 0.02, facts=[fact])
    seq.update(X, 1 - np.exp(-3 * X[:, 0]) + 0.02 * rng.standard_normal(9))
    facts = NormalFacts.of(seq.known)
    places = [Fraction(z) for z in facts.stated.centres[:, 0].tolist()]
    multipliers = rng.random((1, len(facts)))
    exact, least = [Fraction(0)] * len(places), Fraction(0)
    for eta, row, stated, b in zip(
        multipliers[0].tolist(), facts.sums.weights, facts.stated.rows, facts.stated.least.tolist()
    ):
        at = np.flatnonzero(stated)
        left, right = (1 / (places[j] - places[i]) for i, j in ((at[0], at[1]), (at[-2], at[-1])))
        weights = [-left, right] if len(at) == 2 else [left, -(left + right), right]
        scale = Fraction(eta) * Fraction(float(row[at[0]])) / weights[0]
        least += abs(scale) * Fraction(b)
        for i, weight in zip(at, weights):
            exact[i] += scale * weight
    computed = (multipliers @ facts.sums.weights)[0].tolist()
    error = sum(abs(Fraction(one) - other) for one, other in zip(computed, exact))  # k(z, z) is 1
    price = Fraction(float(facts.price(multipliers, 3.0)[0]))
    assert error > 0 and price <= least - 3 * error
    assert price > least - Fraction(1, 10**9)


def _least_of(known):
    return NormalFacts.of(known).least


def test_facts_that_do_not_bind_change_nothing():
    grid, plain = np.random.default_rng(4).random((40, 2)), sequence(None)
    loose = sequence([Between(-1e3, 1e3, region=SQUARE), Slope(0, -1e4, 1e4, region=SQUARE)])
    for one, other in zip(loose.bounds(grid), plain.bounds(grid)):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "options",
    [
        {"offset": 50.0},
        {"offset": kb.Offset(50.0, within=5.0)},
        {"offset": kb.Offset(lambda x: 50.0 + 0 * x[:, 0])},
        {"offset": 50.0, "misspecification": 0.01},
        {"offset": 50.0, "engine": kb.Sparse.filling([0, 0], [1, 1], 40)},
        {"offset": 50.0, "mixture_scale": 1.0, "bound": kb.AY()},
    ],
    ids=["level", "unknown level", "mean function", "misspecification", "sparse", "AY"],
)
def test_facts_are_about_f_with_its_level(options):
    facts = [Between(50.0, 51.0, region=SQUARE), Increasing(0, region=SQUARE)]
    seq = sequence(facts, level=50.0, **options)
    plain = sequence(None, level=50.0, **options)
    grid = np.random.default_rng(5).random((50, 2))
    (lower, upper), (low, high) = seq.bounds(grid), plain.bounds(grid)
    assert np.all(lower >= low - 1e-9) and np.all(upper <= high + 1e-9)
    assert np.mean(upper - lower) < 0.8 * np.mean(high - low)
    assert lower.min() >= 50.0 and upper.max() <= 51.0
    assert np.all(lower <= 50 + saturation(grid)) and np.all(50 + saturation(grid) <= upper)


def test_observations_with_noise_scales_of_their_own():
    rng = np.random.default_rng(6)
    X, scales = rng.random((12, 2)), rng.choice([0.01, 0.05], 12)
    seqs = [kb.ConfidenceSequence(KERNEL, 3.0, 0.02, facts=f) for f in (None, FACTS["all"])]
    y = saturation(X) + scales * rng.standard_normal(12)
    for seq in seqs:
        seq.update(X, y, scales)
    grid = rng.random((40, 2))
    plain, better = (np.subtract(*seq.bounds(grid)[::-1]) for seq in seqs)
    assert better.mean() < 0.8 * plain.mean()
    lower, upper = seqs[1].bounds(grid)
    assert np.all(lower <= saturation(grid)) and np.all(saturation(grid) <= upper)


def test_functionals():
    seq, plain = sequence(FACTS["rising"]), sequence(None)
    rise = Difference([0.25, 0.5], [0.0, 0.5])  # inequalities between neighbours add up
    truth_of = float(np.diff(saturation(np.array([[0.0, 0.5], [0.25, 0.5]])))[0])
    assert plain.bounds_of(rise)[0] < -0.1 < truth_of
    assert -1e-3 <= seq.bounds_of(rise)[0] <= truth_of <= seq.bounds_of(rise)[1]
    slope = Derivative([0.5, 0.5], 0)
    assert seq.bounds_of(slope)[0] > plain.bounds_of(slope)[0] + 0.1


@pytest.mark.parametrize("kernel", [RBF(0.5), KERNEL, Matern(0.5, nu=1.5), RBF(0.5) + RBF(2.0)])
def test_a_slope_at_a_point(kernel, tmp_path):
    """It is a difference quotient, less what a function of norm B may bend by."""
    slope = Derivative([0.3, 0.4], 0)
    true = 2 * np.exp(-2 * 0.3) * (1 - np.exp(-3 * 0.4))
    options = {"kernel": kernel, "norm_bound": 4.0, "count": 5}
    seq, plain = sequence([AtLeast(slope, true)], **options), sequence(None, **options)
    steepest = 4.0 * float(np.sqrt(slope.squared_norms(kernel)[0]))
    share = 0.04 if kernel == Matern(0.5, nu=1.5) else 3e-3
    lower, upper = seq.bounds_of(slope)
    assert true - share * steepest < lower <= true <= upper
    assert lower > plain.bounds_of(slope)[0] + 0.1
    grid = np.random.default_rng(0).random((40, 2))
    low, high = seq.bounds(grid)
    assert np.all(low <= saturation(grid)) and np.all(saturation(grid) <= high)
    assert np.mean(high - low) < np.mean(np.subtract(*plain.bounds(grid)[::-1]))
    seq.save(tmp_path / "slope.npz")
    again = kb.ConfidenceSequence.load(tmp_path / "slope.npz")
    assert np.array_equal(again.upper(grid), seq.upper(grid))


def test_a_rough_kernel_has_shape_too():
    """A difference needs no derivative: Matern-1/2 takes facts about shape."""
    rough = Matern(1.0, nu=0.5)
    seq, plain = (sequence(f, kernel=rough, norm_bound=4.0) for f in (FACTS["rising"], None))
    grid = np.random.default_rng(7).random((30, 2))
    better, width = (np.subtract(*one.bounds(grid)[::-1]).mean() for one in (seq, plain))
    assert better < 0.8 * width


def test_gradients_and_ceilings():
    """Both are of the bound with the multipliers of the point, which is valid at all others."""
    seq, step = sequence(FACTS["all"]), 1e-5
    rng = np.random.default_rng(8)
    centres, half = rng.random((4, 2)), np.full((4, 2), 0.06)
    for sign in (1, -1):
        surface = seq.surface(sign)
        values, gradients = surface.values_and_gradients(centres)
        ceilings = surface.ceilings(centres, half)[1]
        assert np.allclose(values, surface.values(centres))
        for centre, width, gradient, ceiling in zip(centres, half, gradients, ceilings):
            held = constrained(kb.CMM(), seq.known, centre[None], (sign,))[0]

            def bound(points, held=held, sign=sign):
                shift = held.targets.shift
                weights = np.tile(shift.weights, (len(points), 1))
                moved = Shifted(points, shift.centres, weights)
                return kb.CMM().attained(seq.known, moved, (sign,)).values[0] - held.price

            slopes = bound(centre + step * np.eye(2)) - bound(centre - step * np.eye(2))
            assert np.allclose(gradient, slopes / (2 * step), atol=1e-4)
            inside = centre + width * rng.uniform(-1, 1, (20, 2))
            assert np.all(sign * saturation(inside) <= ceiling)
            assert np.all(bound(inside) <= ceiling + 1e-9)


@pytest.mark.parametrize("domain", [SQUARE, kb.Finite(np.random.default_rng(0).random((80, 2)))])
def test_policies_and_certificates(domain):
    regrets = {}
    for name, facts in {"plain": None, "facts": [Between(0.0, 1.0), Increasing(0)]}.items():
        rng = np.random.default_rng(9)
        seq = kb.ConfidenceSequence(KERNEL, 3.0, 0.02, facts=facts)
        ucb = kb.KernelUCB(seq, domain, **({} if domain is not SQUARE else SHORT))
        for _ in range(5):
            asked = ucb.ask()
            ucb.tell(asked.x, saturation(asked.x[None])[0] + 0.02 * rng.standard_normal())
        found = ucb.certificate(tolerance=0.05)
        points = SQUARE.filling(500) if domain is SQUARE else domain.points
        assert found.regret >= saturation(points).max() - saturation(found.x[None])[0] - 1e-9
        assert found.max_upper >= saturation(points).max()
        regrets[name] = found.regret
    assert regrets["facts"] < 0.7 * regrets["plain"]


SHORT = {"maximiser": kb.Ascent(scan=64, starts=1)}


def test_places_follow_the_data_until_a_region_is_said():
    """Without a region, facts are used where the observations are; one point has no shape."""
    seq = kb.ConfidenceSequence(KERNEL, 3.0, 0.02, facts=[Between(0, 1), Increasing(0)])
    assert [side.tolist() for side in seq.bounds([0.5, 0.5])] == [[0.0], [1.0]]
    seq.update([0.5, 0.5], 0.4)
    assert inequalities(seq.known).centres.shape == (1, 2)
    seq.update([[0.0, 0.2], [1.0, 0.8]], [0.1, 0.7])
    before = seq.surface(1).values(np.array([[0.3, 0.9]]))
    assert inequalities(seq.known).centres[:, 1].max() == 0.8
    seq.use_facts_in(SQUARE)
    assert inequalities(seq.known).centres[:, 1].max() == 1.0
    assert seq.surface(1).values(np.array([[0.3, 0.9]])) < before


def test_limits_of_whole_numbers_hold_at_whole_numbers_only():
    """Between the steps of a region nothing is said, at points and throughout boxes."""
    region = kb.facts.Region((0.0, 0.0), (1.0, 1.0), (4, 0))
    seq = kb.ConfidenceSequence(KERNEL, 3.0, 0.02, facts=[Between(0.0, 1.0, region=region)])
    seq.update([0.5, 0.5], 0.9)
    on, between = seq.upper([[0.25, 0.1]])[0], seq.upper([[0.3, 0.1]])[0]
    assert on == 1.0 < between
    assert set(inequalities(seq.known).centres[:, 0]) == {0.0, 0.25, 0.5, 0.75, 1.0}
    a_priori, centre = seq.surface(1).a_priori, np.array([[0.5, 0.5]])
    assert np.isinf(a_priori.by_facts_over(centre, np.array([[0.1, 0.1]])))
    assert a_priori.by_facts_over(centre, np.array([[0.0, 0.1]])) == 1.0


def test_saved_and_loaded(tmp_path):
    every = [fact for facts in FACTS.values() for fact in facts] + [Decreasing(1, region=SQUARE)]
    for fact in every:
        if not isinstance(fact, AtLeast):
            assert fact_from_data(fact_to_data(fact)) == fact
    seq, grid = sequence(FACTS["all"]), np.random.default_rng(10).random((9, 2))
    seq.save(tmp_path / "facts.npz")
    again = kb.ConfidenceSequence.load(tmp_path / "facts.npz")
    assert again.facts == seq.facts
    assert np.array_equal(again.upper(grid), seq.upper(grid))
    ucb = kb.KernelUCB(kb.ConfidenceSequence(KERNEL, 3.0, 0.1, facts=[Between(0, 1)]), SQUARE)
    ucb.tell([0.5, 0.5], 0.4)
    ucb.save(tmp_path / "policy.npz")
    assert kb.KernelUCB.load(tmp_path / "policy.npz").sequence.facts == (Between(0, 1),)


def test_data_contradict_a_fact():
    seq = sequence([Decreasing(0, region=SQUARE)], count=30)
    with pytest.raises(kb.FactRefutedError, match=r"contradict Decreasing\(0\)") as caught:
        seq.bounds([[0.5, 0.5]])
    assert caught.value.most < caught.value.least == 0.0
    assert seq.norm_lower_bound > 3.0
    seq = sequence([Between(high=0.2, region=SQUARE)], count=30)
    with pytest.raises(kb.FactRefutedError, match=r"contradict Between\(-inf, 0.2\)"):
        seq.upper([[0.5, 0.5]])
    seq = sequence([Between(high=0.6, region=SQUARE), Increasing(0, region=SQUARE)], count=30)
    with pytest.raises(kb.EmptyConfidenceSetError, match="contradict"):
        seq.bounds([[0.5, 0.5]])


def test_norm_lower_bound_with_facts():
    """It is at most the norm of a function that satisfies everything, and grows with facts."""
    rng = np.random.default_rng(11)
    f = truth(KERNEL, rng, 3.0)
    X = rng.random((15, 2))
    facts = [Between(float(f(SQUARE.filling(2000)).min()) - 0.1, region=SQUARE)]
    seq = kb.ConfidenceSequence(KERNEL, 3.0, 0.02, facts=facts)
    plain = kb.ConfidenceSequence(KERNEL, 3.0, 0.02)
    for one in (seq, plain):
        one.update(X, f(X) + 0.02 * np.random.default_rng(0).standard_normal(15))
    assert plain.norm_lower_bound <= seq.norm_lower_bound <= 3.0
    value = Value([0.5, 0.5], 2.9)  # needs a norm of 2.9 alone
    alone = kb.ConfidenceSequence(KERNEL, 3.0, 0.02, facts=[value])
    assert 2.89 < alone.norm_lower_bound <= 2.9 + 1e-9


@pytest.mark.parametrize(
    "fact",
    [
        Increasing(0, region=([0.5], [0.5 + 1e-12])),
        Increasing(0, region=([1.7e9], [1.7e9 + 3e-6])),
        AtLeast(Difference([0.3], [0.3]), 0.0),
    ],
)
def test_facts_that_say_nothing(fact):
    """Places that rounding cannot tell apart leave no inequality, and nothing else changes."""
    limits = Between(0.0, 1.0, region=([0.0], [1.0]))
    for facts in ([fact], [fact, limits]):
        seq = kb.ConfidenceSequence(RBF(0.5), 3.0, 0.1, facts=facts)
        seq.update([[0.2], [0.7]], [0.3, 0.9])
        plain = kb.ConfidenceSequence(RBF(0.5), 3.0, 0.1, facts=facts[1:])
        plain.update([[0.2], [0.7]], [0.3, 0.9])
        assert np.allclose(seq.bounds([[0.5]]), plain.bounds([[0.5]]), rtol=0, atol=1e-3)
        assert seq.norm_lower_bound <= 3.0


def test_true_facts_at_close_places_are_not_refused():
    """A function of norm 1 satisfies them; differences of close places have few digits."""
    f = lambda x: float(np.exp(-((x - 1) ** 2) / 2))  # noqa: E731
    facts = [Convex(0, region=([3.0], [3.001])), Value([3.0], f(3.0)), Value([3.01], f(3.01))]
    assert kb.ConfidenceSequence(RBF(1.0), 1.5, 0.1, facts=facts).norm_lower_bound <= 1.0
    both = kb.AnyOf([(RBF(1.0), 1.0), (Matern(1.0, nu=0.5), 5.0)])
    assert kb.ConfidenceSequence(both, noise_scale=0.1, facts=facts).refuted_classes == []


def test_what_is_refused():
    with_facts = lambda *facts: kb.ConfidenceSequence(KERNEL, 3.0, 0.1, facts=facts)  # noqa: E731
    refused(lambda: Between(1, 0), "upside down")
    refused(lambda: Between(), "low or a high")
    refused(lambda: Slope(0, 2, 1), "upside down")
    refused(lambda: Between(0, 1, region=([0.0], [-1.0])), "empty")
    refused(lambda: Increasing(-1), "axis")
    refused(lambda: Value(y=1.0), "either a point")
    steep = [AtLeast(Derivative([0.5, 0.5], 0), 0.0)]
    refused(lambda: sequence(steep, misspecification=0.01), "may be steep")
    refused(lambda: sequence(steep, kernel=Matern(0.5, nu=0.5)), "derivatives")
    refused(lambda: AtLeast(0.5, 0.0), "takes a Sum")
    refused(lambda: with_facts(Increasing(2, region=SQUARE)), "speaks of input 2")
    refused(lambda: with_facts("rising"), "such as Between")
    refused(lambda: with_facts(Increasing(2)).update([[0.0, 1.0]], [0.0]), "speaks of input 2")
    refused(lambda: with_facts(Between(0, 1, region=SQUARE)).update([[0.0]], [0.0]), "2 dimensions")
    refused(lambda: with_facts(Value([0.5], 1.0), Value([0.5], 2.0)), "contradict each other")
    refused(lambda: with_facts(Between(5.0, 6.0, region=SQUARE)), "norm_bound must be at least")
    refused(lambda: with_facts(Value([0.5, 0.5], 0.3), Value([0.5], 0.3)), "1 inputs, but")
    refused(lambda: with_facts(Between(0, 1, region=SQUARE)).bounds([[0.5]]), "1 columns")
    refused(lambda: with_facts(Value(where={3: 0.0}, y=0.0)).bounds([[0.5]]), "speaks of input 3")
    refused(lambda: Between(0, 1, region=([0.0], [1.0], [2, 2])), "steps")
    refused(lambda: sequence(FACTS["limits"]).use_facts_in(([0.0], [1.0])), "about 2 inputs")
    seq = sequence(FACTS["limits"])
    refused(lambda: seq.bounds([[0.5, 0.5]], bound=kb.FixedDesign()), "not a DualBound")


def _failures(facts, f, runs, rounds, delta=0.1):
    """Runs in which the truth leaves the band at any time, with the bandit's points."""
    grid, failures = np.linspace(0, 1, 9)[:, None], 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        seq = kb.ConfidenceSequence(RBF(0.4), 1.5, 0.3, delta, facts=facts)
        seq.use_facts_in(kb.Box([0.0], [1.0]))
        failures += band_fails(seq, grid, f(grid), 0.3 * rng.choice([-1.0, 1.0], rounds))
    return failures


def hill(x):
    return np.exp(-((x[:, 0] - 0.3) ** 2) / (2 * 0.4**2))


# True of the hill, an RBF kernel's own function, with a norm of 1.
OF_HILL = {
    "limits": [Between(0.2, 1.0)],
    "falling": [Decreasing(0, region=([0.3], [1.0])), Increasing(0, region=([0.0], [0.3]))],
    "slope": [Slope(0, -1.6, 1.6)],
    "concave": [Concave(0, region=([0.0], [0.69]))],
    "convex": [Convex(0, region=([0.71], [1.0]))],
    "value": [Value([0.3], 1.0)],
    "at least": [AtLeast(Difference([0.3], [1.0]), 0.7)],
}


def test_coverage():  # of each fact, and longer, below
    assert not too_many(_failures(OF_HILL["limits"], hill, 10, 8), 10, 0.1)


def test_a_false_fact_voids_the_guarantee():
    """The coverage test can fail: with a false fact, it does, or the data refute the fact."""
    assert too_many(_failures([Increasing(0)], hill, 15, 12), 15, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_HILL)
def test_coverage_long(name):
    assert not too_many(_failures(OF_HILL[name], hill, 1000, 10), 1000, 0.1)
