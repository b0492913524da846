"""Bounds on differences, sums, averages and derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import BOUNDS, KERNELS, Own, data_sets, refused, sequence, truth
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

import kernelbounds as kb
from kernelbounds.functionals import Average, Derivative, Difference, Sum
from kernelbounds.functionals.targets import Several
from kernelbounds.kernels import derivative_cross, has_derivatives

instances = st.fixed_dictionaries(
    {
        **data_sets,
        "bound": st.sampled_from(sorted(BOUNDS)),
        "noise_scale": st.sampled_from([0.01, 0.1, 1.0]),
        "weighted": st.booleans(),
        "level": st.sampled_from([0.0, 3.0]),
    }
)


def _instance(i):
    """A sequence, with noise scales of its observations where asked for, and a generator."""
    rng = np.random.default_rng(i["seed"])
    kernel, t = KERNELS[i["name"]], i["t"]
    function = truth(kernel, rng, 4.0)
    scales = i["noise_scale"] * (10 ** rng.uniform(-1, 1, t) if i["weighted"] else np.ones(t))
    seq = kb.ConfidenceSequence(
        kernel, 5.0, i["noise_scale"], bound=BOUNDS[i["bound"]], offset=i["level"]
    )
    X = rng.random((t, 2))
    seq.update(X, i["level"] + function(X) + scales * rng.standard_normal(t), scales)
    return seq, function, rng


def _slack(seq, *points):
    """What cancellation may cost: the square root of the rounding error, in trivial bounds."""
    return 1e-6 * sum(float(seq.known.trivial(np.atleast_2d(p)).max()) for p in points)


def _ends(seq, i, points):
    """Bounds on values with which those on functionals agree.

    CMM's are exact. Those of one ellipsoid are so before they are clipped, and DMM's are not, being
    the best of different ridges at each point.
    """
    if i["bound"] == "CMM":
        return seq.bounds(points)
    if i["bound"] == "DMM":
        return np.full((2, len(points)), np.array([[-np.inf], [np.inf]]))
    return -seq.surface(-1).values(points), seq.surface(1).values(points)


@settings(max_examples=60, deadline=None)
@given(instances)
def test_a_difference_is_between_those_of_the_bounds(i):
    seq, function, rng = _instance(i)
    x, z = rng.random((2, 2))
    lower, upper = seq.bounds_of(Difference(x, z))
    below, above = _ends(seq, i, np.stack([x, z]))
    slack = _slack(seq, x, z)
    assert below[0] - above[1] - slack <= lower <= upper <= above[0] - below[1] + slack
    true = float(np.subtract(*function(np.stack([x, z]))))
    assert lower <= true <= upper
    opposite = seq.bounds_of(Difference(z, x))
    np.testing.assert_allclose(opposite, (-upper, -lower), rtol=0, atol=slack)


@settings(max_examples=40, deadline=None)
@given(instances)
def test_an_average_is_between_the_averages_of_the_bounds(i):
    seq, function, rng = _instance(i)
    points, weights = rng.random((7, 2)), rng.random(7)
    lower, upper = seq.bounds_of(Average(points, weights))
    below, above = _ends(seq, i, points)
    slack = _slack(seq, points)
    assert np.average(below, weights=weights) - slack <= lower
    assert lower <= i["level"] + np.average(function(points), weights=weights) <= upper
    assert upper <= np.average(above, weights=weights) + slack


@settings(max_examples=40, deadline=None)
@given(instances, st.sampled_from([-7.0, -1.0, 1e-6, 0.25, 1e6]))
def test_a_sum_is_linear_in_its_weights(i, factor):
    seq, _, rng = _instance(i)
    points, weights = rng.random((4, 2)), rng.standard_normal(4)
    lower, upper = seq.bounds_of(Sum(points, weights))
    scaled = sorted((factor * lower, factor * upper))
    slack = abs(factor) * _slack(seq, points)
    np.testing.assert_allclose(
        seq.bounds_of(Sum(points, factor * weights)), scaled, rtol=1e-6, atol=slack
    )


@settings(max_examples=40, deadline=None)
@given(instances)
def test_a_sum_of_one_term_is_a_value(i):
    """Also of the same term in several parts."""
    seq, _, rng = _instance(i)
    x = rng.random((1, 2))
    value = [side[0] for side in seq.bounds(x)]
    slack = _slack(seq, x)
    for one in (Sum(x, [1.0]), Average(np.repeat(x, 5, axis=0)), Sum([x[0]] * 3, [3.0, -1, -1])):
        found = seq.bounds_of(one)
        np.testing.assert_allclose(found, value, rtol=1e-6, atol=slack)


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("t", [0, 1, 30, 150])
def test_of_many_points_one_average(t, bound):
    """500 points, and on long data a truncated eigenbasis."""
    rng = np.random.default_rng(t)
    seq, function = sequence(KERNELS["matern 5/2"], rng, t, bound=bound)
    points = rng.random((500, 2))
    lower, upper = seq.bounds_of(Average(points))
    assert lower <= function(points).mean() <= upper
    x = points[:1]
    np.testing.assert_allclose(
        seq.bounds_of(Average(np.repeat(x, 500, axis=0))), np.ravel(seq.bounds(x)), atol=1e-6
    )


@pytest.mark.parametrize("name", [name for name in KERNELS if has_derivatives(KERNELS[name])])
@pytest.mark.parametrize("t", [0, 3, 40, 150])
def test_a_derivative_is_bounded_as_its_difference_quotients(name, t):
    kernel, rng = KERNELS[name], np.random.default_rng(t)
    seq, function = sequence(kernel, rng, t)
    x, step = rng.random(2), 1e-3
    for axis in (0, 1):
        h = step * np.eye(2)[axis]
        found = np.array(seq.bounds_of(Derivative(x, axis)))
        true = derivative_cross(kernel, x[None], np.array([axis]), function.centres)[0]
        assert found[0] <= true @ function.weights <= found[1]
        quotient = np.array(seq.bounds_of(Sum([x + h, x - h], [0.5 / step, -0.5 / step])))
        # Matern-3/2 is the roughest: the quotient's representer is within O(step) of the limit.
        np.testing.assert_allclose(found, quotient, atol=0.02 * np.abs(found).max())


FUNCTIONALS = {
    "difference": lambda x: Difference(x[0], x[1]),
    "near difference": lambda x: Difference(x[0], x[0] + 1e-3),
    "bend": lambda x: Sum(x[:3], [1.0, -2.0, 1.0]),
    "average": lambda x: Average(x),
    "slope": lambda x: Derivative(x[0], 1),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("what", FUNCTIONALS)
@pytest.mark.parametrize("name", ["rbf", "matern 3/2", "linear", "scaled sum"])
def test_dual_equals_cone_program(name, what, weighted):
    rng = np.random.default_rng(len(what))
    kernel = KERNELS[name]
    function = truth(kernel, rng, 4.0)
    scales = 0.1 * (10 ** rng.uniform(-1, 1, 12) if weighted else np.ones(12))
    seq = kb.ConfidenceSequence(kernel, 5.0, 0.1, offset=2.0)
    X = rng.random((12, 2))
    seq.update(X, 2.0 + function(X) + scales * rng.standard_normal(12), scales)
    asked = [FUNCTIONALS[what](rng.random((4, 2)))]
    ours = np.array(seq.bounds_of(asked))[:, 0] * [-1, 1]
    theirs = np.array(seq.bounds_of(asked, kb.CMM(solver="cone")))[:, 0] * [-1, 1]
    scale = 5.0 * float(np.sqrt(asked[0].magnitudes(kernel)[0]))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * scale)
    assert np.all(ours >= theirs - 1e-6 * scale), "tighter than the solver's tolerance"


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_many_at_once_are_as_one_by_one(bound):
    rng = np.random.default_rng(0)
    seq, _ = sequence(KERNELS["matern 5/2"], rng, 90, bound=bound)
    asked = [make(rng.random((4, 2))) for make in FUNCTIONALS.values() for _ in range(3)]
    lower, upper = seq.bounds_of(asked)
    assert lower.shape == upper.shape == (15,)
    alone = np.array([seq.bounds_of(one) for one in asked])
    assert all(isinstance(end, float) for end in seq.bounds_of(asked[0]))
    np.testing.assert_allclose(np.column_stack([lower, upper]), alone, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.3, nu=0.5), DotProduct(1.0), Own(0.5)])
@pytest.mark.parametrize("noise_scale", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("at", [0.0, 1e9])
def test_points_that_are_equal_or_nearly(kernel, noise_scale, at):
    """0 is inside, and the interval is what rounding errors of the kernel's terms allow."""
    rng = np.random.default_rng(0)
    X = at + rng.random((6, 2))
    seq = kb.ConfidenceSequence(kernel, 3.0, noise_scale)
    size = 3.0 * float(np.sqrt(kernel.diag(X).max()))
    for _ in range(2):
        for x in (X[0], at + rng.random(2)):
            lower, upper = seq.bounds_of(Difference(x, x))
            assert lower <= 0 <= upper
            # An unknown kernel may be one of single precision.
            assert upper - lower <= (1e-2 if isinstance(kernel, Own) else 2e-6) * size
            near = x + np.spacing(x)
            lower, upper = seq.bounds_of(Difference(x, near))
            assert lower < 0 < upper
        seq.update(X, np.zeros(6))


def test_of_an_input_that_a_kernel_does_not_see():
    seq = kb.ConfidenceSequence(kb.OnInputs(RBF(0.5), [0]), 3.0, 0.1)
    for _ in range(2):
        for bound in (kb.CMM(), kb.AMM()):
            assert seq.bounds_of(Derivative([0.3, 0.4], 1), bound) == (0.0, 0.0)
            lower, upper = seq.bounds_of(Derivative([0.3, 0.4], 0), bound)
            assert lower < 0 < upper
        seq.update(np.random.default_rng(0).random((9, 2)), np.zeros(9))


@pytest.mark.parametrize("kernel", [ConstantKernel(2.0), DotProduct(0.0)], ids=str)
def test_where_nothing_is_left_to_be_bounded(kernel):
    """Differences of a constant are 0; with a linear kernel so are values at the origin."""
    seq = kb.ConfidenceSequence(kernel, 3.0, 0.1)
    seq.update([[0.0, 0.0], [0.0, 0.0]], [0.1, -0.1])
    lower, upper = seq.bounds_of(Difference([0.0, 0.0], [0.0, 0.0]))
    assert lower <= 0 <= upper and upper - lower < 1e-5


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Difference([0.0, 1.0], [0.0]), "x has 2 coordinates, and x2 has 1"),
        (lambda: Difference([[0.0], [1.0]], [0.0, 1.0]), "x must be one point"),
        (lambda: Difference([], []), "x must be one point"),
        (lambda: Difference([np.nan], [0.0]), "x"),
        (lambda: Average([[0.0], [1.0]], [1.0, -1.0]), "weights of an average must be at least 0"),
        (lambda: Average([[0.0], [1.0]], [0.0, 0.0]), "not all 0"),
        (lambda: Average([[0.0], [1.0]], [1.0]), "weights"),
        (lambda: Average([[0.0], [1.0]], [1.0, np.nan]), "weights"),
        (lambda: Sum([[0.0], [1.0]], [1.0, np.inf]), "weights"),
        (lambda: Sum([[0.0], [1.0]], [[1.0, 2.0]]), "weights"),
        (lambda: Derivative([0.0, 1.0], 2), "axis must be below 2"),
        (lambda: Derivative([0.0, 1.0], -1), "axis"),
        (lambda: Derivative([0.0, 1.0], 0.5), "axis"),
    ],
)
def test_what_is_no_functional_is_refused(make, match):
    refused(make, match)


def test_one_point_may_be_a_row():
    assert np.array_equal(Difference([[0.2]], [[0.7]]).points, Difference([0.2], [0.7]).points)
    assert Derivative([[0.2, 0.4]], 1).dim == 2


SINGLE = Difference([0.2], [0.7])


@pytest.mark.parametrize(
    "given",
    [SINGLE, [SINGLE] * 2, Derivative([0.2], 0), Average([[0.2]]), Several([SINGLE] * 2)],
    ids=["difference", "list", "derivative", "average", "several"],
)
def test_a_functional_in_the_place_of_points_is_refused(given):
    """Not taken as a sequence, of which one functional would have no end."""
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    seq.update([[0.0]], [0.0])
    asked = [seq.bounds, seq.upper, seq.lower, seq.gradients, seq.inflation, kb.Finite, np.asarray]
    asked += [lambda one: seq.update(one, [0.1]), lambda one: seq.update([[0.1]], one)]
    for ask in asked:
        refused(lambda ask=ask: ask(given), r"bounds are those of bounds_of\(")
    if not isinstance(given, list):
        with pytest.raises(TypeError, match="not iterable"):
            list(given)


@pytest.mark.parametrize("t", [0, 5])
@pytest.mark.parametrize(
    ("kernel", "asked", "match"),
    [
        (RBF(0.5), [Difference([0.0], [1.0]), Average([[0.0, 1.0]])], "in 2 dimensions"),
        (RBF(0.5), [], "takes one of kernelbounds.functionals"),
        (RBF(0.5), [np.zeros(1)], "takes one of kernelbounds.functionals"),
        (RBF(0.5), None, "takes one of kernelbounds.functionals, or a sequence of them, got None"),
        (Matern(0.5, nu=0.5), Derivative([0.0], 0), "are not known to have derivatives"),
        (Matern(0.5, nu=1.0), Derivative([0.0], 0), "are not known to have derivatives"),
        (Own(0.5), Derivative([0.0], 0), "are not known to have derivatives"),
    ],
)
def test_what_cannot_be_bounded_is_refused(kernel, asked, match, t):
    seq = kb.ConfidenceSequence(kernel, 2.0, 0.1)
    if t:
        seq.update(np.random.default_rng(0).random((t, 1)), np.zeros(t))
    refused(lambda: seq.bounds_of(asked), match)


def test_one_of_another_dimension_is_refused():
    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
    seq.update([[0.0, 0.0]], [0.0])
    for one in (Difference([0.0], [1.0]), Derivative([0.0], 0), Average([[0.0]])):
        refused(lambda one=one: seq.bounds_of(one), "in 1 dimensions, but the data so far have 2")


def test_a_bound_that_is_no_dual_bounds_values_only():
    class Trivial(kb.Bound):
        def extremes(self, known, points, signs):
            return np.tile(known.trivial(points), (len(signs), 1))

    seq = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1, bound=Trivial())
    refused(lambda: seq.bounds_of(Difference([0.0], [1.0])), "bounds values only")
