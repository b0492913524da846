"""f* = g + h with ||g|| <= B and |h| <= epsilon: bounds hold where f* is only near the space."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from own_bounds import Wider
from problems import KERNEL, KERNELS, too_many, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds import theory
from kernelbounds.functionals import Average, Derivative, Difference, Sum
from kernelbounds.mixtures import Hybrid, Prequential, Single

EPSILON = 0.3
BOUNDS = {"CMM": kb.CMM(), "DMM": kb.DMM(), "AMM": kb.AMM(), "AMM at 0.5": kb.AMM(0.5)}
MIXTURES = {
    "hybrid": Hybrid(),
    "single": Single(0.5),
    "prequential": Prequential(lambda X, y, x: (0.0, 1.0)),
}


def jumps(X, seed=0, size=EPSILON):
    """h: plus or minus epsilon, as fast as can be; no function of any space here."""
    waves = np.random.default_rng(seed).integers(1000, 9999, X.shape[1])
    return size * np.where(np.sin(X @ waves) >= 0, 1.0, -1.0)


def observed(t=40, noise_scale=0.1, seed=0, kernel=KERNEL, epsilon=EPSILON, norm=2.0, **options):
    rng = np.random.default_rng(seed)
    g, X = truth(kernel, rng, norm), rng.random((t, 2))
    seq = kb.ConfidenceSequence(kernel, norm, noise_scale, misspecification=epsilon, **options)
    if t:
        seq.update(X, g(X) + jumps(X, seed, epsilon) + noise_scale * rng.standard_normal(t))
    return seq, g, rng


@given(
    name=st.sampled_from(sorted(KERNELS)),
    seed=st.integers(0, 10**6),
    t=st.integers(1, 40),
    epsilon=st.floats(1e-6, 3.0),
    weights=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_without_noise_bounds_hold_for_certain(name, seed, t, epsilon, weights):
    """No probability is left: every bound holds for every h, also the worst."""
    rng = np.random.default_rng(seed)
    kernel = KERNELS[name]
    g, X, new = truth(kernel, rng, 2.0), rng.random((t, 2)), rng.random((20, 2))
    seq = kb.ConfidenceSequence(kernel, 2.0 * (1 + 1e-12), 0.0, misspecification=epsilon)
    h = epsilon * rng.choice([-1.0, 1.0], t)
    seq.update(X, g(X) + h)
    assert seq.radius == pytest.approx(epsilon * np.sqrt(t), rel=1e-12)
    assert seq.contains(g)
    assert seq.norm_lower_bound <= 2.0 * (1 + 1e-9)
    assert seq.noise_lower_bound == 0
    slack = 1e-9 * (2 + epsilon)
    for bound in BOUNDS.values():
        lower, upper = seq.bounds(new, bound)
        assert np.all(lower <= g(new) - epsilon + slack)
        assert np.all(g(new) + epsilon <= upper + slack)
        low, high = seq.bounds(X, bound)
        assert np.all(low <= g(X) + h + slack) and np.all(g(X) + h <= high + slack)
        w = rng.standard_normal(20)
        low, high = seq.bounds_of(Sum(new, w), bound)
        worst = epsilon * np.abs(w).sum()
        assert low <= w @ g(new) - worst + slack * 20 and w @ g(new) + worst <= high + slack * 20


@pytest.mark.parametrize(
    "mixture",
    [
        pytest.param(one, id=name, marks=[] if name == "hybrid" else pytest.mark.slow)
        for name, one in MIXTURES.items()
    ],
)
def test_coverage_with_adaptive_points(mixture):
    """KernelUCB plays, and h is at its worst at every point: fails in delta of the runs at most."""
    delta, runs, failures, without = 0.1, 8, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        domain = rng.random((60, 2))
        g = truth(KERNEL, rng, 2.0)
        f = g(domain) + jumps(domain, seed)
        seq = kb.ConfidenceSequence(
            KERNEL, 2.0, 0.05, delta, mixture=mixture, misspecification=EPSILON
        )
        trusting = kb.ConfidenceSequence(KERNEL, 2.0, 0.05, delta, mixture=mixture)
        ucb, failed, wrong = kb.KernelUCB(seq, kb.Finite(domain)), False, False
        for t in range(30):
            index = ucb.ask().index
            y = f[index] + 0.05 * rng.standard_normal()
            ucb.tell(domain[index], y)
            trusting.update(domain[index], y)
            if t % 6 == 5:
                lower, upper = seq.bounds(domain)
                failed |= bool(np.any((lower > f) | (f > upper)))
                certificate = ucb.certificate()
                failed |= f.max() - f[certificate.index] > certificate.regret
                try:
                    lower, upper = trusting.bounds(domain)
                    wrong |= bool(np.any((lower > f) | (f > upper)))
                except kb.EmptyConfidenceSetError:
                    wrong = True
        failures += failed
        without += wrong
    assert not too_many(failures, runs, delta)
    assert without == runs or isinstance(mixture, Single)  # so it was needed


@pytest.mark.parametrize("name", ["CMM", "AMM at 0.5"])
@pytest.mark.parametrize("noise_scale", [0.0, 0.1])
def test_the_formula(name, noise_scale):
    """mu +- sqrt((R + eps ||w||)^2 + alpha B^2 - E) rho / sqrt(alpha) +- eps, and the cone."""
    seq, _, rng = observed(20, noise_scale)
    plain = kb.ConfidenceSequence(KERNEL, 2.0, noise_scale)
    plain.update(seq.points, seq.outcomes)
    R = plain.radius + EPSILON * np.sqrt(20)
    assert seq.radius == pytest.approx(R, rel=1e-12)
    new = rng.random((5, 2))
    K, k = KERNEL(seq.points), KERNEL(new, seq.points)

    def at(alpha, sign):
        inverse = np.linalg.inv(K + alpha * np.eye(20))
        mean, energy = k @ inverse @ seq.outcomes, alpha * seq.outcomes @ inverse @ seq.outcomes
        rho = np.sqrt(1 - np.einsum("ij,jk,ik->i", k, inverse, k))
        return sign * mean + np.sqrt((R**2 + 4 * alpha - energy) / alpha) * rho

    ridges = [0.5] if name == "AMM at 0.5" else np.geomspace(1e-3, 1e4, 4000)
    expected = [
        np.minimum(np.min([at(a, sign) for a in ridges], axis=0), 2.0) + EPSILON for sign in (1, -1)
    ]
    lower, upper = seq.bounds(new, BOUNDS[name])
    assert upper == pytest.approx(expected[0], rel=1e-5)
    assert -lower == pytest.approx(expected[1], rel=1e-5)
    if name == "CMM":
        pytest.importorskip("cvxpy")
        lower_cone, upper_cone = seq.bounds(new[:2], kb.CMM(solver="cone"))
        assert upper_cone == pytest.approx(upper[:2], abs=1e-5)
        assert lower_cone == pytest.approx(lower[:2], abs=1e-5)


def test_observations_with_noise_scales_of_their_own_weigh_their_h():
    rng = np.random.default_rng(0)
    X, y, scales = rng.random((9, 2)), rng.random(9), rng.uniform(0.05, 0.5, 9)
    radii = []
    for epsilon in (0.0, EPSILON):
        seq = kb.ConfidenceSequence(KERNEL, 2.0, 0.1, misspecification=epsilon)
        seq.update(X, y, noise_scale=scales)
        radii.append(seq.radius)
    assert radii[1] - radii[0] == pytest.approx(EPSILON * np.linalg.norm(0.1 / scales), rel=1e-12)


def test_zero_changes_nothing_and_more_is_wider():
    X = np.random.default_rng(1).random((10, 2))
    one, *others = (observed(epsilon=e)[0] for e in (0.0, 0.1, 0.5))
    plain = kb.ConfidenceSequence(KERNEL, 2.0, 0.1)
    plain.update(one.points, one.outcomes)
    assert np.array_equal(one.bounds(X), plain.bounds(X))
    assert "misspecification" not in repr(one)
    for seq in others:
        wide = kb.ConfidenceSequence(
            KERNEL, 2.0, 0.1, misspecification=seq.assumptions.misspecification
        )
        wide.update(one.points, one.outcomes)
        lower, upper = wide.bounds(X)
        epsilon = seq.assumptions.misspecification
        assert np.all(upper >= plain.upper(X) + epsilon * (1 - 1e-6))
        assert np.all(lower <= plain.lower(X) - epsilon * (1 - 1e-6))
        assert f"misspecification={epsilon:g}" in repr(wide)


def test_before_the_first_observation():
    seq, *_ = observed(0)
    for points in ([[0.1, 0.2]], np.random.default_rng(0).random((3, 2))):
        lower, upper = seq.bounds(points)
        assert upper == pytest.approx(2.0 + EPSILON) and lower == pytest.approx(-2.0 - EPSILON)
    low, high = seq.bounds_of(Difference([0.0, 0.0], [0.1, 0.0]))
    distance = np.sqrt(2 - 2 * KERNEL([[0.0, 0.0]], [[0.1, 0.0]])[0, 0])
    assert high == pytest.approx(2 * distance + 2 * EPSILON) and low == pytest.approx(-high)
    low, high = seq.bounds_of(Average([[0.0, 0.0], [0.1, 0.0]]))
    assert high <= 2 + EPSILON + 1e-9


def test_units_are_the_users():
    seq, _, rng = observed()
    unit, X = 1e5, rng.random((10, 2))
    scaled = kb.ConfidenceSequence(KERNEL, 2.0 * unit, 0.1 * unit, misspecification=EPSILON * unit)
    scaled.update(seq.points, seq.outcomes * unit)
    for bound in BOUNDS.values():
        if bound == kb.AMM(0.5):
            continue  # a ridge has the unit of sigma^2 over that of c
        assert scaled.upper(X, bound) == pytest.approx(unit * seq.upper(X, bound), rel=1e-7)


def test_offsets_and_parts():
    rng = np.random.default_rng(2)
    X, new = rng.random((30, 2)), rng.random((10, 2))
    g = truth(RBF(0.5), rng, 1.0)
    rough = truth(Matern(0.2, nu=1.5), rng, 0.3)
    parts = kb.Parts([(RBF(0.5), 1.0), (Matern(0.2, nu=1.5), 0.3)])
    seq = kb.ConfidenceSequence(
        parts, noise_scale=0.0, offset=kb.Offset(50.0, within=5.0), misspecification=EPSILON
    )

    def f(Z):
        return 47.0 + g(Z) + rough(Z) + jumps(Z)

    seq.update(X, f(X))
    for bound in (kb.CMM(), kb.DMM(), kb.AMM()):
        lower, upper = seq.bounds(new, bound)
        assert np.all(lower <= f(new)) and np.all(f(new) <= upper)
    assert np.all(seq.upper(new) - seq.lower(new) < 10)
    assert seq.norm_lower_bound <= 1


def test_what_is_not_in_the_space_is_refuted_without_it():
    rng = np.random.default_rng(3)
    X = rng.random((60, 1))
    y = np.sin(X[:, 0]) + jumps(X)
    kernel = RBF(0.5)
    trusting = kb.ConfidenceSequence(kernel, 3.0, 0.0)
    trusting.update(X, y)
    with pytest.raises(kb.EmptyConfidenceSetError):
        trusting.bounds(X[:1])
    seq = kb.ConfidenceSequence(kernel, 3.0, 0.0, misspecification=EPSILON)
    seq.update(X, y)
    assert seq.norm_lower_bound < 3.0
    assert np.all(seq.lower(X) <= y) and np.all(y <= seq.upper(X))
    seq.update([[0.5]], [9.0])
    with pytest.raises(kb.EmptyConfidenceSetError):
        seq.bounds([[0.5]])


@pytest.mark.parametrize("minimise", [False, True])
@pytest.mark.parametrize("noise_scale", [0.0, 0.05])
def test_certificates_over_a_box(minimise, noise_scale):
    seq, g, rng = observed(25, noise_scale)
    ucb = kb.KernelUCB(seq, kb.Box([0, 0], [1, 1]), minimise=minimise)
    found = ucb.certificate()
    assert found.regret >= 2 * EPSILON  # nobody knows h nearby
    grid = rng.random((400, 2))
    best = np.max(g(grid)) + EPSILON if not minimise else np.min(g(grid)) - EPSILON
    here = g(found.x[None])[0]
    worst = here - EPSILON if not minimise else here + EPSILON
    assert abs(best - worst) <= found.regret
    assert found.lower <= here - EPSILON and here + EPSILON <= found.upper


def test_ceilings_are_above_values_in_boxes():
    seq, _, rng = observed(25, 0.05)
    z = rng.random(2)
    surfaces = [seq.surface(1), seq.surface(-1)]
    surfaces += [type(surface)(seq.known, seq.bound, 1, z) for surface in surfaces[:1]]
    centres = np.concatenate([rng.random((20, 2)), z[None]])
    for surface in surfaces:
        half = np.full_like(centres, 0.03)
        values, ceilings = surface.ceilings(centres, half)
        assert values == pytest.approx(surface.values(centres))
        for _ in range(20):
            inside = centres + half * rng.uniform(-1, 1, centres.shape)
            assert np.all(surface.values(inside) <= ceilings + 1e-9)


def test_a_finite_certificate_can_have_no_regret():
    kernel, X = RBF(0.1), np.array([[0.0], [0.5], [1.0]])
    seq = kb.ConfidenceSequence(kernel, 3.0, 0.0, misspecification=0.05)
    seq.update(X, [1.5, 0.0, 0.2])
    found = kb.KernelUCB(seq, kb.Finite(X)).certificate()
    assert found.index == 0 and found.regret == 0


def test_policies_follow_the_bounds():
    seq, _, rng = observed(30)
    domain = rng.random((200, 2))
    ucb = kb.KernelUCB(seq, kb.Finite(domain))
    for _ in range(6):
        values = seq.surface(1).values(domain)
        s = ucb.ask()
        assert values[s.index] >= values.max() - 1e-6
        assert s.limit == pytest.approx(min(values.max(), 2 + EPSILON), rel=1e-6)
        assert (s.lower, s.upper) == tuple(float(end[0]) for end in seq.bounds(s.x))
        ucb.tell(s.x, rng.standard_normal() * 0.1)
    fresh = ucb.ask(actions=domain[:50])
    assert fresh.upper == pytest.approx(float(seq.upper(fresh.x)[0]), rel=1e-9)
    assert len(ucb.ask(n=3)) == 3


@pytest.mark.parametrize("noise_scale", [0.0, 0.1])
def test_gradients(noise_scale):
    seq, _, rng = observed(20, noise_scale)
    X, step = rng.random((5, 2)), 1e-5
    for bound in (kb.CMM(), kb.AMM(0.5)):
        lower, upper = seq.gradients(X, bound)
        for axis in range(2):
            move = step * np.eye(2)[axis]
            ends = zip(seq.bounds(X + move, bound), seq.bounds(X - move, bound))
            numeric = [(a - b) / (2 * step) for a, b in ends]
            assert lower[:, axis] == pytest.approx(numeric[0], abs=2e-3)
            assert upper[:, axis] == pytest.approx(numeric[1], abs=2e-3)


class TestFiles:
    def test_it_is_saved(self, tmp_path):
        seq, _, rng = observed()
        X = rng.random((4, 2))
        seq.save(tmp_path / "seq")
        again = kb.ConfidenceSequence.load(tmp_path / "seq")
        assert again.assumptions == seq.assumptions
        assert np.array_equal(again.bounds(X), seq.bounds(X))
        assert repr(again) == repr(seq)
        ucb = kb.KernelUCB(seq, kb.Finite(X))
        ucb.save(tmp_path / "policy")
        assert np.array_equal(kb.KernelUCB.load(tmp_path / "policy").ask().x, ucb.ask().x)
        with pytest.raises(kb.InputError, match="not made from R_t"):
            kb.ConfidenceSequence.load(tmp_path / "seq", bound=kb.AY())

    def test_older_files_have_none(self, tmp_path):
        seq, *_ = observed(epsilon=0.0)
        seq.save(tmp_path / "seq")
        with np.load(tmp_path / "seq") as archive:
            parts = dict(archive)
        header = json.loads(bytes(parts["header"]))
        del header["assumptions"]["misspecification"]
        parts["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, **parts)
        (tmp_path / "seq").write_bytes(buffer.getvalue())
        again = kb.ConfidenceSequence.load(tmp_path / "seq")
        assert again.assumptions.misspecification == 0
        assert np.array_equal(again.bounds(seq.points), seq.bounds(seq.points))


class TestRefusals:
    @pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, "much", 1e-200])
    def test_numbers(self, value):
        with pytest.raises(kb.InputError, match="misspecification") as caught:
            kb.ConfidenceSequence(RBF(), 1.0, 0.1, misspecification=value)
        assert str(caught.value).count(". ") == 0

    @pytest.mark.parametrize("bound", [kb.AY(), kb.IGP(0.1), Wider()])
    def test_bounds_with_radii_of_their_own(self, bound):
        with pytest.raises(kb.InputError, match="is not made from R_t"):
            kb.ConfidenceSequence(RBF(), 1.0, 0.1, bound=bound, misspecification=0.1)
        seq = kb.ConfidenceSequence(RBF(), 1.0, 0.1, misspecification=0.1)
        for ask in (seq.bounds, seq.upper, seq.lower, seq.gradients):
            with pytest.raises(kb.InputError, match="is not made from R_t"):
                ask([[0.0]], bound)
        with pytest.raises(kb.InputError, match="is not made from R_t"):
            seq.surface(1, bound)

    def test_derivatives(self):
        seq, *_ = observed(5)
        with pytest.raises(kb.InputError, match="derivatives of f"):
            seq.bounds_of(Derivative([0.5, 0.5], 0))

    def test_the_theory(self):
        seq, *_ = observed(5)
        for ask in (
            lambda: theory.run_bound(seq),
            lambda: theory.radius_bound(seq.assumptions, 3.0),
            lambda: theory.gap_to_ay(seq.assumptions, 1.0, 1.0),
        ):
            with pytest.raises(kb.InputError, match="misspecification must be 0"):
                ask()


@pytest.mark.slow
@pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AMM()], ids=repr)
def test_coverage_over_many_runs(bound):
    """As above, with Gaussian noise of the scale believed, and 200 runs."""
    delta, runs, failures = 0.1, 200, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        domain = rng.random((60, 2))
        f = truth(KERNEL, rng, 2.0)(domain) + jumps(domain, seed, 0.1)
        seq = kb.ConfidenceSequence(KERNEL, 2.0, 0.2, delta, bound=bound, misspecification=0.1)
        ucb, failed = kb.KernelUCB(seq, kb.Finite(domain)), False
        for _ in range(60):
            index = ucb.ask().index
            ucb.tell(domain[index], f[index] + 0.2 * rng.standard_normal())
            lower, upper = seq.bounds(domain)
            failed |= bool(np.any((lower > f) | (f > upper)))
        failures += failed
    assert not too_many(failures, runs, delta)
