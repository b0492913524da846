"""AnyOf and AllOf: bounds of several function classes with one radius."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from problems import band_fails, refused, too_many, truth
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.confidence.diagnosis import norm_lower_bound
from kernelbounds.surface import extremes

SCALES = (0.1, 0.2, 0.4, 1.0)
BALLS = [(RBF(scale), 5.0) for scale in SCALES]
GRID = np.linspace(0, 1, 25)[:, None]
LEVELS = {"none": None, "unknown level": kb.Offset(1.0, within=5.0)}


def sequence(classes, offset=None, count=15, f=lambda x: np.sin(9 * x), **options):
    rng = np.random.default_rng(0)
    X = rng.random((count, 1))
    seq = kb.ConfidenceSequence(classes, noise_scale=0.1, offset=offset, **options)
    level = 0.0 if offset is None else 3.0
    seq.update(X, level + f(X[:, 0]) + 0.1 * rng.standard_normal(count))
    return seq


@pytest.mark.parametrize("level", LEVELS)
def test_bounds_are_those_of_the_classes(level):
    """The largest, or smallest, of the classes' own bounds with the radius that all share."""
    offset = LEVELS[level]
    for kind, worst in ((kb.AnyOf, np.max), (kb.AllOf, np.min)):
        balls = BALLS[:3] if kind is kb.AnyOf else BALLS[:2]
        seq, alone = sequence(kind(balls), offset), []
        for kernel, bound in balls:
            one = kb.ConfidenceSequence(kernel, bound, 0.1, offset=offset)
            one.update(seq.points, seq.outcomes)
            known = one.known
            shared = replace(seq.known.radius, norm_bound=known.assumptions.norm_bound)
            known = replace(known, own_radius=shared)
            if norm_lower_bound(known) <= known.assumptions.norm_bound:
                alone.append(extremes(known, kb.CMM(), GRID, (1, -1)))
        assert len(alone) == len(balls) - len(seq.refuted_classes) > 1
        upper, negative_lower = worst(alone, axis=0)
        lower_found, upper_found = seq.bounds(GRID)
        assert np.allclose(upper_found, upper, rtol=0, atol=1e-6)
        assert np.allclose(-lower_found, negative_lower, rtol=0, atol=1e-6)


def test_a_class_that_the_data_refute_drops_out():
    seq, few = sequence(kb.AnyOf(BALLS), count=30), sequence(kb.AnyOf(BALLS), count=2)
    assert few.refuted_classes == [] and 3 in seq.refuted_classes
    assert seq.norm_lower_bound < 1  # some class is left with all bounds as they are
    without = sequence(kb.AnyOf(BALLS[:3]), count=30)
    assert np.all(seq.upper(GRID) < without.upper(GRID) + 0.05)  # R_t alone is another
    hopeless = sequence(kb.AnyOf(BALLS[2:]), count=30)
    assert hopeless.refuted_classes == [0, 1] and hopeless.norm_lower_bound > 1
    with pytest.raises(kb.EmptyConfidenceSetError):
        hopeless.bounds(GRID)
    both = sequence(kb.AllOf(BALLS), count=30)
    with pytest.raises(kb.EmptyConfidenceSetError):
        both.bounds(GRID)


def test_one_class_is_that_class():
    one, plain = sequence(kb.AnyOf(BALLS[:1])), sequence(kb.Parts(BALLS[:1]))
    for found, wanted in zip(one.bounds(GRID), plain.bounds(GRID)):
        assert np.allclose(found, wanted, rtol=0, atol=1e-9)


def test_with_parts_facts_and_functionals():
    parts = kb.Parts([(RBF(0.2), 4.0), (Matern(0.5, nu=1.5), 2.0)])
    limits = kb.facts.Between(-1.0, 1.0, region=kb.Box([0.0], [1.0]))
    plain = sequence(kb.AnyOf([*BALLS[:2], parts]))
    better = sequence(kb.AnyOf([*BALLS[:2], parts]), facts=[limits])
    width, narrower = (np.subtract(*seq.bounds(GRID)[::-1]).mean() for seq in (plain, better))
    assert narrower < 0.9 * width
    lower, upper = better.bounds_of(kb.functionals.Average(GRID))
    assert lower < np.mean(np.sin(9 * GRID)) < upper
    assert max(better.binding_facts(GRID)) > 0.3


@pytest.mark.parametrize("level", LEVELS)
def test_policies_gradients_and_ceilings(level):
    seq = sequence(kb.AnyOf(BALLS[:3]), LEVELS[level])
    surface, step = seq.surface(1), 1e-5
    x = np.random.default_rng(1).random((6, 1))
    slopes = (surface.values(x + step) - surface.values(x - step)) / (2 * step)
    assert np.allclose(surface.values_and_gradients(x)[1][:, 0], slopes, atol=1e-3)
    values, ceilings = surface.ceilings(x, np.full_like(x, 0.03))
    for centre, ceiling in zip(x, ceilings):
        near = centre + np.linspace(-0.03, 0.03, 21)[:, None]
        assert np.all(surface.values(near) <= ceiling + 1e-9)
    assert np.all(values <= ceilings)
    for domain in (kb.Box([0.0], [1.0]), kb.Finite(GRID)):
        ucb = kb.KernelUCB(copy.deepcopy(seq), domain)
        asked = ucb.ask()
        ucb.tell(asked.x, 1.0)
        found = ucb.certificate()
        assert found.lower <= found.upper <= found.max_upper and np.isfinite(found.regret)


def test_saved_copied_and_shown(tmp_path):
    parts = kb.Parts([(RBF(0.2), 4.0), (Matern(0.5, nu=1.5), 2.0)])
    for kind in (kb.AnyOf, kb.AllOf):
        seq = sequence(kind([*BALLS[:2], parts]), kb.Offset(1.0, within=5.0))
        seq.save(tmp_path / "x.npz")
        again = kb.ConfidenceSequence.load(tmp_path / "x.npz")
        assert again.classes == seq.classes
        for other in (again, copy.deepcopy(seq)):
            assert np.allclose(other.upper(GRID), seq.upper(GRID), rtol=0, atol=1e-12)
        assert kind.__name__ in repr(seq) and kind.__name__ in seq._repr_html_()
    regressor = kb.KernelConfidenceRegressor(kb.AnyOf(BALLS), None, 0.1).fit(
        GRID, np.sin(GRID[:, 0])
    )
    assert regressor.sequence_.classes == kb.AnyOf(BALLS)


def test_what_is_refused():
    refused(lambda: kb.AnyOf([]), "at least one")
    refused(lambda: kb.AnyOf(RBF(1.0)), "takes a list")
    refused(lambda: kb.AnyOf([RBF(1.0)]), "kernel, bound")
    refused(lambda: kb.ConfidenceSequence(kb.AnyOf(BALLS), 1.0, 0.1), "norm_bound is in")
    seq = sequence(kb.AnyOf(BALLS[:2]))
    refused(lambda: seq.bounds(GRID, bound=kb.AY()), "not made from R_t")
    refused(lambda: seq.bounds(GRID, bound=kb.FixedDesign()), "not made from R_t")
    sparse = kb.Sparse.filling([0.0], [1.0], 10)
    refused(
        lambda: kb.ConfidenceSequence(kb.AnyOf(BALLS), noise_scale=0.1, engine=sparse), "sparse"
    )


def _failures(runs, rounds):
    """Runs in which the truth, of a class drawn at random, leaves the band at any time."""
    failures, balls = 0, [(RBF(scale), 2.0) for scale in SCALES]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        kernel = balls[seed % len(balls)][0]
        values = truth(kernel, rng, 2.0, dim=1, centres=6)(GRID)
        seq = kb.ConfidenceSequence(kb.AnyOf(balls), noise_scale=0.3, delta=0.1)
        failures += band_fails(seq, GRID, values, 0.3 * rng.standard_normal(rounds))
    return failures


def test_coverage():
    assert not too_many(_failures(16, 10), 16, 0.1)


@pytest.mark.slow
def test_coverage_long():
    assert not too_many(_failures(1000, 25), 1000, 0.1)
