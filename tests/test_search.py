"""The pieces of the search over ridges, each against what it promises."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from problems import KERNELS, sequence, truth
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from kernelbounds.bounds import Bound, cmm, dmm, dual_function
from kernelbounds.bounds.dual_function import DualFunction
from kernelbounds.confidence.diagnosis import refute_if_empty
from kernelbounds.engine import largest_by_ceilings, largest_minimum, minimise_over_ridge
from kernelbounds.engine.ridge_search import (
    FIRST_EVALUATED,
    GRID_OF_NODES,
    INFINITE_RIDGE,
    Chebyshev,
    Largest,
    RidgeWindow,
    WindowSearch,
    finer,
    vertex,
)

# --- interpolation


@pytest.mark.parametrize("accuracy", [1e-3, 3e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("width", [1.0, 6.4, 20.0])
def test_interpolation_is_as_accurate_as_asked_and_not_wasteful(width, accuracy):
    """alpha / (lambda + alpha) is 1 / (1 + e^s), with poles at +-i pi, in s = ln(lambda/alpha)."""
    errors = []
    for centre in np.linspace(-width / 2 - 2, width / 2 + 2, 21):
        nodes = Chebyshev.for_accuracy(centre - width / 2, centre + width / 2, accuracy)
        s = np.linspace(nodes.low, nodes.high, 501)
        at_nodes, exact = (1 / (1 + np.exp(at)) for at in (nodes.points, s))
        errors.append(np.abs(at_nodes @ nodes.basis(s) - exact).max())
    assert 0.05 * accuracy < max(errors) < 1.2 * accuracy


@pytest.mark.parametrize("size", [3, 4, 17, 60])
def test_interpolation_is_exact_at_nodes_and_for_polynomials(size):
    rng, nodes = np.random.default_rng(size), Chebyshev(-7.0, 2.0, size)
    assert np.all((nodes.points > -7) & (nodes.points < 2)) and len(nodes.points) == size
    values = rng.standard_normal((3, size))
    np.testing.assert_allclose(values @ nodes.basis(nodes.points), values, atol=1e-13)
    polynomial = np.polynomial.Chebyshev(rng.standard_normal(size), domain=(-7, 2))
    at = np.append(rng.uniform(-7, 2, 50), [-7.0, 2.0])
    expected = polynomial(at)
    np.testing.assert_allclose(polynomial(nodes.points) @ nodes.basis(at), expected, atol=1e-11)


def test_the_matrix_of_a_grid_is_the_basis_there():
    nodes = Chebyshev(-1.0, 4.0, 15)
    grid, blend = nodes.grid(45)
    np.testing.assert_allclose(grid, np.linspace(-1, 4, 45), rtol=0, atol=1e-14)
    np.testing.assert_allclose(blend, nodes.basis(grid).T, atol=1e-12)
    np.testing.assert_allclose(blend.sum(axis=1), 1.0, atol=1e-13)


# --- minima on even grids

GRID = np.linspace(-3.0, 5.0, 41)


def test_vertices_of_parabolas_are_exact_and_of_quartics_nearly():
    """Many columns at once. One step of Newton's method errs by the square of its size."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-2.4, 4.4, 200)
    s = (GRID[:, None] - centres) / 0.2
    np.testing.assert_allclose(vertex(GRID, 3 * s**2 - 1), centres, atol=1e-12)
    skew, sharp = rng.uniform(-0.05, 0.05, 200), rng.uniform(0, 0.02, 200)
    found = vertex(GRID, s**2 + skew * s**3 + sharp * s**4)
    assert np.abs(found - centres).max() < 0.2 * 3e-3
    parabola = GRID[np.argmin(s**2 + skew * s**3 + sharp * s**4, axis=0)]
    assert np.abs(parabola - centres).max() > 0.2 * 0.4  # the grid alone is that much worse


def test_vertices_of_smooth_functions_are_of_high_order():
    """Half the step, an eighth of the error; a parabola alone would leave a quarter."""
    centres, errors = np.linspace(-1.9, 3.9, 300), []
    for size in (41, 81, 161):
        grid = np.linspace(-3.0, 5.0, size)
        s = grid[:, None] - centres
        errors.append(np.abs(vertex(grid, np.exp(s) - s) - centres).max())
    assert errors[0] < 5e-4
    assert errors[1] < errors[0] / 7 and errors[2] < errors[1] / 7


def test_vertices_at_and_near_the_ends_are_points_of_the_grid():
    columns = np.column_stack([GRID, -GRID, (GRID - GRID[1]) ** 2, (GRID - GRID[-2]) ** 2])
    np.testing.assert_allclose(vertex(GRID, columns), GRID[[0, -1, 1, -2]], rtol=0, atol=1e-14)


def test_vertices_of_plateaus_and_kinks_stay_next_to_the_smallest_value():
    step = GRID[1] - GRID[0]
    flat = np.zeros(len(GRID))
    plateau = np.maximum(np.abs(GRID - 1) - 0.7, 0.0)
    kink, cliff = np.abs(GRID - 0.33), np.where(GRID < 1, 1e9, GRID)
    wall = np.where(GRID < 0.5, 1e9, (GRID - 0.75) ** 2)  # two points from the smallest value
    columns = np.column_stack([flat, plateau, kink, cliff, wall])
    lowest = GRID[columns.argmin(axis=0)]
    assert np.all(np.abs(vertex(GRID, columns) - lowest) <= 1.5 * step)


def test_finer_grids_surround_the_minimisers_and_stay_inside():
    step = GRID[1] - GRID[0]
    grid = finer(GRID, np.array([0.5, 1.5]), 400)
    assert grid[0] == pytest.approx(0.5 - step) and grid[-1] == pytest.approx(1.5 + step)
    np.testing.assert_allclose(np.diff(grid), np.diff(grid)[0])
    assert np.diff(grid)[0] <= step / 4 * (1 + 1e-9)
    assert len(finer(GRID, np.array([-3.0, 5.0]), 100)) == 100  # no more than that
    for end in GRID[[0, -1]]:
        grid = finer(GRID, np.array([end]), 400)
        assert GRID[0] <= grid[0] <= end <= grid[-1] <= GRID[-1]


# --- the largest of many


@pytest.mark.parametrize("size", [1, FIRST_EVALUATED, FIRST_EVALUATED + 1, 50])
@pytest.mark.parametrize("slack", [0.0, 0.3, 10.0])
def test_highest_equals_looking_everywhere(size, slack):
    """Ties, ceilings that values attain, and values above their ceilings by up to a tie."""
    tie = 1e-3
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 4, size) / 3 + rng.choice([0.0, 0.4 * tie, 3 * tie], size)
        ceilings = values + slack * rng.random(size) - rng.choice([0.0, 0.99 * tie], size)
        asked: list[set[int]] = []

        def evaluate(points, values=values, asked=asked):
            asked.append(set(points.tolist()))
            return values[points]

        best, tied = largest_by_ceilings(ceilings, tie, evaluate)
        assert best == values.max()
        np.testing.assert_array_equal(tied, np.flatnonzero(values >= values.max() - tie))
        assert len(asked[0]) == min(size, FIRST_EVALUATED)
        assert len(asked) <= 1 or asked[0] < asked[-1]  # what was known is not asked in vain


def test_highest_evaluates_few_where_ceilings_tell_much():
    values, asked = np.linspace(0.0, 1.0, 1000), []

    def evaluate(points):
        asked.extend(points)
        return values[points]

    assert largest_by_ceilings(values + 1e-4, 1e-7, evaluate)[0] == 1.0
    assert len(asked) == FIRST_EVALUATED


def test_highest_gives_up_where_an_evaluation_does():
    assert largest_by_ceilings(np.ones(10), 1e-7, lambda points: None) is None
    # At first all is well; then a point that is in question cannot be evaluated.
    found = largest_by_ceilings(
        np.append(np.full(FIRST_EVALUATED, 2.0), 1.5),
        1e-7,
        lambda points: None if len(points) > FIRST_EVALUATED else np.ones(len(points)),
    )
    assert found is None


def test_highest_counts_ceilings_that_are_not_numbers_as_high():
    values = np.arange(20.0)
    ceilings = np.where(values == 19, np.nan, values)
    assert largest_by_ceilings(ceilings, 1e-7, lambda points: values[points])[0] == 19


def test_the_widest_of_those_that_tie_is_the_first_within_a_tie():
    tied, opposite = np.array([3, 5, 8, 9]), np.array([0.1, 2.0 - 1e-9, 2.0, 1.0])
    assert Largest.widest(7.0, tied, opposite, 1e-7) == (7.0, 5, 2.0 - 1e-9)
    assert Largest.widest(7.0, tied, opposite, 1e-12).at == 8
    assert Largest.widest(7.0, tied[:1], opposite[:1], 0.0).at == 3


# --- windows of ridges


@dataclass(frozen=True)
class Elsewhere(DualFunction):
    """The dual function of CMM with another guess of where minimisers are."""

    shift: float = 0.0
    width: float = 6.4

    @classmethod
    def of(cls, known, shift, width=6.4):
        return cls(known.radius, lambda: refute_if_empty(known), shift, width)

    @property
    def likely(self):
        low, high = super().likely
        centre = (low + high) / 2 + self.shift
        return centre - self.width / 2, centre + self.width / 2


def _on_a_dense_grid(seq, points, signs):
    """The dual function on 4001 ridges of a path with all eigenvalues, with numpy alone."""
    K, k = seq.kernel(seq.points), seq.kernel(seq.points, points)
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    ridges = np.geomspace(1e-9, 1e14, 4001)[:, None] * values.max()
    u, z = vectors.T @ k, vectors.T @ seq.outcomes
    inverse = 1 / (values + ridges)
    variance = seq.kernel.diag(points) - inverse @ u**2
    energy = ridges * (inverse @ z**2)[:, None]
    B = seq.assumptions.norm_bound
    around = seq.radius**2 + ridges * B**2 - energy
    width = np.sqrt(np.maximum(around, 0) / ridges * np.maximum(variance, 0))
    mean = inverse @ (z[:, None] * u)
    return np.array([(sign * mean + width).min(axis=0) for sign in signs])


def _spread_minimisers(seed, t, noise_scale=0.1, norm=5.0, kernel=None):
    """A sequence, and points with minimisers at all ridges: at data, near, far, at infinity."""
    rng = np.random.default_rng(seed)
    seq, _ = sequence(kernel or KERNELS["matern 3/2"], rng, t, norm, noise_scale)
    points = np.vstack([rng.random((12, 2)), seq.points[:4], seq.points[:2] + 0.05, [[9.0, 9.0]]])
    return seq, points


@pytest.mark.parametrize("shift", [-30.0, -12.0, -4.0, 0.0, 4.0, 12.0, 30.0, 60.0])
@pytest.mark.parametrize("width", [3.0, 6.4, 25.0])
@pytest.mark.parametrize("t", [1, 40, 150])
def test_wherever_the_search_begins_it_finds_the_minimum(t, width, shift):
    seq, points = _spread_minimisers(t, t)
    signs = np.array([1.0, -1.0])
    query = seq.known.engine.query(points)
    values, _, _ = minimise_over_ridge(query, Elsewhere.of(seq.known, shift, width), signs)
    usual, _, _ = minimise_over_ridge(query, DualFunction.of(seq.known), signs)
    exact = _on_a_dense_grid(seq, points, signs)
    # A window of 25 is far wider than any that is used, and its steps are coarser.
    np.testing.assert_allclose(values, usual, rtol=0, atol=1e-6 if width == 25.0 else 5e-7)
    assert np.all(values <= exact + 1e-6 * 5.0)
    assert np.all(values >= exact - 1e-4)  # how far the grid's minimum may be from the true one


@pytest.mark.parametrize("points_at_once", [1, 3])
def test_the_side_of_one_point_does_not_depend_on_the_others(points_at_once):
    seq, points = _spread_minimisers(5, 80)
    dual = Elsewhere.of(seq.known, 15.0, 3.0)
    together = minimise_over_ridge(seq.known.engine.query(points), dual, np.array([1.0, -1.0]))[0]
    for side, sign in enumerate((1.0, -1.0)):
        for at in range(0, len(points), points_at_once):
            query = seq.known.engine.query(points[at : at + points_at_once])
            alone = minimise_over_ridge(query, dual, np.array([sign]))[0][0]
            expected = together[side, at : at + points_at_once]
            np.testing.assert_allclose(alone, expected, rtol=0, atol=5e-7)


def test_a_minimum_at_infinity_is_found_at_the_last_window():
    """The confidence set without data, where data say nothing: no ridge is large enough."""
    seq = kb.ConfidenceSequence(RBF(0.1), 5.0, 0.1)
    seq.update([[0.2, 0.3], [0.9, 0.4]], [0.01, -0.02])
    query = seq.known.engine.query(np.array([[9.0, 9.0]]))
    values, ridges, _ = minimise_over_ridge(query, DualFunction.of(seq.known), np.array([1.0]))
    assert values[0, 0] == pytest.approx(5.0, rel=1e-8)
    assert ridges[0, 0] >= 0.1 * INFINITE_RIDGE


def test_windows_walk_to_the_limits_and_overlap():
    seq, points = _spread_minimisers(1, 60)
    path = seq.known.engine.query(points).path
    for end in (-1, 1):
        window, ends = RidgeWindow.likely(path, DualFunction.of(seq.known)), []
        for _ in range(40):
            ends.append((window.nodes.low, window.nodes.high))
            if not window.open[(end + 1) // 2]:
                break
            window = window.next(end)
        assert not window.open[(end + 1) // 2] and len(ends) > 2
        limit = path.eigen.slack if end < 0 else INFINITE_RIDGE * path.eigen.spectrum.max()
        assert ends[-1][(end + 1) // 2] == pytest.approx(np.log(limit))
        for one, other in itertools.pairwise(ends):
            shared = min(one[1], other[1]) - max(one[0], other[0])
            assert shared == pytest.approx((one[1] - one[0]) / 8)


@pytest.mark.parametrize("shift", [-1e3, 1e3])
def test_a_likely_window_beyond_the_limits_is_moved_inside(shift):
    seq, points = _spread_minimisers(1, 60)
    window = RidgeWindow.likely(seq.known.engine.query(points).path, Elsewhere.of(seq.known, shift))
    assert window.open == ((False, True) if shift < 0 else (True, False))
    assert window.nodes.high - window.nodes.low == pytest.approx(6.4)


def test_a_search_says_at_which_end_a_minimum_is():
    seq, points = _spread_minimisers(3, 60)
    query = seq.known.engine.query(points)
    _, ridges, _ = minimise_over_ridge(query, DualFunction.of(seq.known), np.array([1.0]))
    at = np.log(ridges[0])
    low, high = np.quantile(at, [0.2, 0.8])
    window = RidgeWindow(query.path, low, high)
    found, ends = WindowSearch(query, window).minimise(DualFunction.of(seq.known), np.ones(len(at)))
    margin = 2 * (high - low) / (GRID_OF_NODES * window.nodes.size - 1)
    assert np.all(ends[at < low] == -1) and np.all(ends[at > high] == 1)
    assert np.all(ends[(low + margin < at) & (at < high - margin)] == 0)
    assert {-1, 0, 1} == set(ends.tolist())
    assert np.all(np.abs(found.log_ridges - (low + high) / 2) <= (high - low) / 2 + 1e-12)


# --- the branch in which the fast maximum gives up


def test_the_fast_maximum_gives_up_outside_the_likely_window():
    seq, points = _spread_minimisers(2, 80)
    query = seq.known.engine.query(points[:-1])
    found = largest_minimum(query, DualFunction.of(seq.known), 1, 1e-7)
    upper = kb.CMM().extremes(seq.known, points[:-1], (1,))[0]
    assert found is not None and found.value == pytest.approx(upper.max(), abs=5e-7)
    for shift in (-15.0, 15.0):
        assert largest_minimum(query, Elsewhere.of(seq.known, shift), 1, 1e-7) is None


def test_the_fast_maximum_gives_up_below_the_finest_ridge():
    seq, points = _spread_minimisers(2, 120)
    dual = DualFunction.of(seq.known)
    assert largest_minimum(seq.known.engine.query(points[:-1]), dual, 1, 1e-7) is not None
    coarse = seq.known.engine.query(points[:-1], finest=1e3)
    assert coarse.path.eigen.finest > 100
    assert largest_minimum(coarse, dual, 1, 1e-7) is None


def _largest_two_ways(bound, known, points, sign):
    return (
        bound.largest(known, points, sign, 1e-7),
        Bound.largest(bound, known, points, sign, 1e-7),
    )


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("t", [5, 60, 140])
@pytest.mark.parametrize("likely", [dual_function.LIKELY_LOG_RIDGES, (-20.0, -14.0), (14.0, 20.0)])
def test_cmm_answers_alike_whether_the_fast_maximum_gives_up_or_not(t, sign, likely, monkeypatch):
    seq, points = _spread_minimisers(t, t)
    answers = []
    monkeypatch.setattr(dual_function, "LIKELY_LOG_RIDGES", likely)
    monkeypatch.setattr(
        cmm, "largest_minimum", lambda *a: answers.append(largest_minimum(*a)) or answers[-1]
    )
    fast, slow = _largest_two_ways(kb.CMM(), seq.known, points[:-1], sign)
    assert fast.at == slow.at
    assert fast == pytest.approx(slow, abs=5e-7)
    if likely != dual_function.LIKELY_LOG_RIDGES:
        assert answers == [None]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("spread", "rises"), [(1.0, True), (0.02, False)])
def test_dmm_answers_alike_whether_the_witness_is_worse_or_not(spread, rises, sign, monkeypatch):
    rng, grid = np.random.default_rng(1), tuple(10.0 ** np.arange(-5, 3, 0.5))
    kernel = KERNELS["matern 3/2"]
    function, X = truth(kernel, rng, 1.0), 0.5 + spread * (rng.random((100, 2)) - 0.5)
    seq = kb.ConfidenceSequence(kernel, 5.0, 0.1, bound=kb.DMM(grid))
    seq.update(X, function(X) + 0.1 * rng.standard_normal(100))
    decisions, decide = [], dmm._rises_towards_last
    monkeypatch.setattr(
        dmm, "_rises_towards_last", lambda found: decisions.append(decide(found)) or decisions[-1]
    )
    points = rng.random((40, 2)) if rises else X[:40]
    fast, slow = _largest_two_ways(seq.bound, seq.known, points, sign)
    assert decisions and decisions[0] == rises
    assert fast.at == slow.at
    assert fast == pytest.approx(slow, abs=1e-6)
