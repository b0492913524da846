"""Policies decide by the bound itself, as the plainest implementation, and report it clipped."""

from __future__ import annotations

import numpy as np
import pytest
from problems import BOUNDS, noisy_only, truth
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import kernelbounds as kb
from kernelbounds import plain
from kernelbounds.bounds import Bound

KERNEL = Matern(length_scale=0.5, nu=2.5)
METHODS = {
    "CMM": lambda rounds: kb.CMM(),
    "DMM": lambda rounds: kb.DMM(),
    "AMM": lambda rounds: kb.AMM(),
    "AY": lambda rounds: kb.AY(),
    "IGP": lambda rounds: kb.IGP(eta=2 / rounds),
}


def _plain(name, fit, sigma, delta, B, c, rounds):
    """The upper bounds of a method with the paper's settings, plainly."""
    radius, ridge = plain.squared_radius(fit, sigma, delta, c), sigma**2 / c
    return {
        "CMM": lambda: plain.cmm(fit, radius, B),
        "DMM": lambda: plain.dmm(fit, radius, B, ridge * np.array([0.1, 0.3, 1.0, 3.0, 10.0])),
        "AMM": lambda: plain.amm(fit, radius, B, ridge),
        "AY": lambda: plain.ay(fit, sigma, delta, B, ridge),
        "IGP": lambda: plain.igp(fit, sigma, delta, B, eta=2 / rounds),
    }[name]()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("count", [1, 7, 60])
def test_plain_bounds_are_the_fast_ones(name, count):
    rng = np.random.default_rng(count)
    function = truth(KERNEL, rng, 2.7)
    seq = kb.ConfidenceSequence(KERNEL, 3.0, 0.3, mixture_scale=0.5, bound=METHODS[name](200))
    X, x = rng.random((count, 2)), rng.random((9, 2))
    y = function(X) + 0.3 * rng.standard_normal(count)
    seq.update(X, y)
    upper, negative_lower = (
        _plain(name, plain.Ridge(KERNEL, X, s * y, x), 0.3, 0.01, 3.0, 0.5, 200) for s in (1, -1)
    )
    np.testing.assert_allclose(seq.surface(1).values(x), upper, rtol=1e-7)
    np.testing.assert_allclose(seq.surface(-1).values(x), negative_lower, rtol=1e-7)


def _play(name, problem, rounds, rng, delta=0.01):
    """The indices that KernelUCB plays on the random numbers that `simulate` would use."""
    of_actions, of_noise = rng.spawn(2)
    kernel, B, sigma = problem.function.kernel, problem.function.norm, problem.noise_scale
    c = kb.mixture_scale(kernel, problem.function.centres.shape[1], rounds)

    def preferred(X, y, x):
        """CMM has ties, at the trivial bound: the widest interval wins, or else the first."""
        upper, opposite = (
            _plain(name, plain.Ridge(kernel, X, s * y, x), sigma, delta, B, c, rounds)
            for s in (1, -1)
        )
        tied = upper >= upper.max() - 1e-7 * B
        return tied & (opposite >= opposite[tied].max() - 1e-7 * B)

    def outcome(x):
        return float(problem.function(x[None])[0]) + problem.noise(of_noise)

    return plain.kernel_ucb(preferred, lambda: problem.actions(of_actions), outcome, rounds)


def _compare(name, rounds, seed):
    problem = kb.SyntheticProblem.draw(KERNEL, 3, np.random.default_rng(seed))
    expected = _play(name, problem, rounds, np.random.default_rng(seed + 1))
    policy = kb.KernelUCB(problem.sequence(METHODS[name](rounds), rounds=rounds))
    trace = kb.simulate(policy, problem, rounds, np.random.default_rng(seed + 1))
    assert trace.index.astype(int).tolist() == expected


@pytest.mark.parametrize("name", METHODS)
def test_decisions_are_the_plain_ones(name):
    _compare(name, 80, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_decisions_are_the_plain_ones_on_the_papers_setting(name):
    _compare(name, 1000, 5)


# --- before clipping

SQUARE = np.stack(np.meshgrid(*[np.linspace(0, 1, 31)] * 2), -1).reshape(-1, 2)


def _early(bound, kernel, t=4):
    """A sequence after a few rounds, when most bounds exceed the trivial one; and the truth."""
    rng = np.random.default_rng(2)
    function = truth(kernel, rng, 2.7)
    seq = kb.ConfidenceSequence(kernel, 3.0, 0.3, bound=bound)
    X = rng.random((t, 2))
    seq.update(X, function(X) + 0.3 * rng.standard_normal(t))
    return seq, function


@pytest.mark.parametrize("minimise", [False, True])
@pytest.mark.parametrize("name", ["AMM", "AY", "IGP"])
def test_where_clipped_bounds_tie_the_bound_itself_decides(name, minimise):
    seq, _ = _early(BOUNDS[name], RBF(0.2))
    sign = -1 if minimise else 1
    raw = seq.surface(sign).values(SQUARE)
    clipped = -seq.lower(SQUARE) if minimise else seq.upper(SQUARE)
    assert np.sum(clipped == 3.0) > 100 and raw[clipped.argmax()] < raw.max() - 0.1
    fixed = kb.KernelUCB(seq, kb.Finite(SQUARE), minimise=minimise)
    fresh = kb.KernelUCB(seq, minimise=minimise)
    for s in (fixed.ask(), fixed.ask(n=2)[0], fresh.ask(SQUARE), fresh.ask(SQUARE, n=2)[0]):
        assert raw[s.index] == pytest.approx(raw.max(), abs=1e-6)
        reported = s.lower if minimise else s.upper
        assert sign * reported == sign * s.limit == 3.0
    for maximiser in (kb.Ascent(), kb.BranchAndBound(seconds=1), kb.Grid()):
        box = kb.Box([0, 0], [1, 1])
        s = kb.KernelUCB(seq, box, minimise=minimise, maximiser=maximiser).ask()
        found = seq.surface(sign).values(s.x[None])[0]
        # Branch and bound stops at values above the trivial bound, but climbs first.
        assert found >= raw.max() - (0.02 if isinstance(maximiser, kb.Grid) else 1e-6)
        assert sign * (s.lower if minimise else s.upper) == 3.0


class Steps(Bound):
    """Upper bounds of three heights that tie, and intervals of which some are wider."""

    def extremes(self, known, points, signs):
        upper = np.floor(3 * points[:, 0]) / 10
        width = 0.5 + np.floor(4 * points[:, 1]) / 10
        return np.array([upper if sign == 1 else width - upper for sign in signs])


@pytest.mark.parametrize("count", [1, 40, 3000])
def test_ties_go_to_the_first_of_the_widest_intervals(count):
    """On fixed and on fresh actions, also where there are more than are looked at at once."""
    rng = np.random.default_rng(count)
    seq = kb.ConfidenceSequence(RBF(0.5), 5.0, 0.1, bound=Steps())
    seq.update([[0.1, 0.2]], [0.05])
    points = rng.random((count, 2))
    points = points[np.argsort(points[:, 1])]  # the widest come last
    upper, opposite = Steps().extremes(None, points, (1, -1))
    widest = np.where(upper == upper.max(), opposite, -np.inf)
    expected = int(np.argmax(widest >= widest.max() - 1e-9))
    assert kb.KernelUCB(seq, kb.Finite(points)).ask().index == expected
    assert kb.KernelUCB(seq).ask(points).index == expected


KINDS = {"stationary": RBF(0.2), "linear": DotProduct(0.2), "product": RBF(0.5) * DotProduct(0.3)}


@pytest.mark.parametrize("minimise", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_reported_is_clipped_and_valid(name, kind, minimise):
    """Limits are above all functions of the confidence set, and certificates as tight as bounds."""
    kernel, sign = KINDS[kind], -1 if minimise else 1
    for t in (0, 1, 4, 30):
        seq, function = _early(BOUNDS[name], kernel, max(t, 1))
        if t == 0:
            seq = kb.ConfidenceSequence(kernel, 3.0, 0.3, bound=BOUNDS[name])
        points = 1.5 * SQUARE[::7] - 0.3
        lower, upper = seq.bounds(points)
        trivial = 3.0 * np.sqrt(kernel.diag(points))
        largest = (-lower if minimise else upper).max()
        best = (sign * function(points)).max()
        assert seq.contains(function)
        fixed = kb.KernelUCB(seq, kb.Finite(points), minimise=minimise)
        fresh = kb.KernelUCB(seq, minimise=minimise)
        for s in (fixed.ask(), fresh.ask(points), fresh.ask(points, n=2)[0]):
            assert s.lower == pytest.approx(lower[s.index], abs=1e-6)
            assert s.upper == pytest.approx(upper[s.index], abs=1e-6)
            assert largest - 1e-6 <= sign * s.limit <= trivial.max() * (1 + 1e-12)
            assert best <= sign * s.limit
        assert sign * fixed.ask().limit == pytest.approx(largest, abs=1e-6)
        for certificate in (fixed.certificate(), fresh.certificate(points)):
            limit = -certificate.min_lower if minimise else certificate.max_upper
            sure = (-upper if minimise else lower).max()
            assert limit == pytest.approx(largest, abs=1e-6)
            assert certificate.regret <= largest - sure + 2e-6
            assert certificate.regret >= best - sign * float(function(certificate.x[None])[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["CMM", "AMM"])
def test_certificates_over_boxes_are_those_of_the_clipped_bounds(name, kind):
    seq, function = _early(BOUNDS[name], KINDS[kind], 12)
    policy = kb.KernelUCB(seq, kb.Box([0, 0], [1, 1]))
    certificate = policy.certificate(tolerance=0.05)
    lower, upper = seq.bounds(SQUARE)
    assert function(SQUARE).max() <= certificate.max_upper
    assert upper.max() <= certificate.max_upper + 1e-9
    # The maximum is at most this above the best point of the grid, and 0.05 is the tolerance.
    steep = np.linalg.norm(seq.gradients(SQUARE)[1], axis=1).max() / 30 / np.sqrt(2)
    assert certificate.max_upper <= upper.max() + steep + 0.05
    assert certificate.lower >= lower.max() - 1e-6
    assert certificate.upper <= 3.0 * np.sqrt(seq.kernel.diag(certificate.x[None]))[0] + 1e-9


@pytest.mark.parametrize("noise_scale", [0.1, 0.0])
@pytest.mark.parametrize("name", BOUNDS)
def test_where_the_function_is_known_to_be_zero_nothing_is_expected(name, noise_scale):
    """k(0, 0) = 0 for a linear kernel: bounds there are 0, and not the largest."""
    noisy_only(name, noise_scale)
    rng = np.random.default_rng(0)
    seq = kb.ConfidenceSequence(DotProduct(0.0), 3.0, noise_scale, bound=BOUNDS[name])
    X = rng.standard_normal((30, 2))
    seq.update(X, X @ [1.0, 2.0] + noise_scale * rng.standard_normal(30))
    actions = np.vstack([np.zeros(2), [[1.0, 1.0]], rng.standard_normal((4, 2))])
    assert abs(seq.surface(1).values(actions)[0]) < 1e-12
    assert kb.KernelUCB(seq).ask(actions).index != 0
