"""The smallest noise scale that data allow, beside the smallest norm."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from problems import observe, truth
from scipy.stats import binom, chi2
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import kernelbounds as kb
from kernelbounds.confidence.diagnosis import (
    CERTAIN_FAILURE,
    NOISE_STEPS_PER_OCTAVE,
    least_noise,
    least_noise_of_energy,
)
from kernelbounds.mixtures import Hybrid, Prequential, Single

KERNEL = RBF(0.3)
STEP = 2 ** (1 / NOISE_STEPS_PER_OCTAVE) * (1 + 1e-9)  # of the grid
MIXTURES = {
    "hybrid": Hybrid(),
    "single": Single(0.5),
    "prequential": Prequential(lambda X, y, x: (0.0, 1.0)),
}


def _sequence(X, y, noise_scale, mixture, norm_bound=2.0, kernel=KERNEL, delta=0.1):
    seq = kb.ConfidenceSequence(kernel, norm_bound, noise_scale, delta, mixture=mixture)
    seq.update(X, y)
    return seq


def _data(t, noise_scale, seed=0, kernel=KERNEL):
    rng = np.random.default_rng(seed)
    return observe(truth(kernel, rng, 1.9), rng, t, noise_scale)


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("noise_scale", [1e-3, 0.1, 2.0])
@pytest.mark.parametrize("believed", [0.0, 0.1, 1.0, 10.0])
def test_just_enough(mixture, noise_scale, believed):
    """With a little more the set has a function, with a little less it is empty."""
    X, y = _data(80, noise_scale)
    found = _sequence(X, y, believed * noise_scale, mixture).noise_lower_bound
    assert found > 0
    enough = _sequence(X, y, STEP * found, mixture)
    assert enough.norm_lower_bound <= 2.0
    enough.bounds(X[:2])
    less = _sequence(X, y, 0.99 * found, mixture)
    assert less.norm_lower_bound > 2.0
    with pytest.raises(kb.EmptyConfidenceSetError) as caught:
        less.bounds(X[:2])
    assert 1 / STEP < caught.value.noise_lower_bound / found < STEP
    assert f"{caught.value.noise_lower_bound:.3g}" in str(caught.value)


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
def test_a_lower_confidence_bound(mixture):
    """At most the true noise scale after any number of observations, but for delta of the runs.

    Rejected when a binomial of probability delta would do as badly with probability below 1e-4.
    """
    runs, delta, failures, last = 40, 0.1, 0, []
    for seed in range(runs):
        X, y = _data(60, 0.3, seed)
        seq = kb.ConfidenceSequence(RBF(0.3), 2.0, 0.1, delta, mixture=mixture)
        found = []
        for part in np.array_split(np.arange(60), 4):
            seq.update(X[part], y[part])
            found.append(seq.noise_lower_bound)
        failures += max(found) > 0.3
        last.append(found[-1])
    assert binom.sf(failures - 1, runs, delta) > 1e-4
    assert np.median(last) > 0.05  # and it says something


class TestTheScan:
    """Nothing is assumed of R_t as a function of sigma."""

    @pytest.mark.parametrize("anchor", [1.0, 0.1, 3e7])
    def test_the_first_admissible_one_counts(self, anchor):
        """A search that jumps may find the end of the second interval of these."""
        tried = []

        def admissible(scale):
            tried.append(scale)
            return 0.30 < scale < 0.32 or scale > 0.5

        found = least_noise(admissible, 0.2, anchor)
        assert 0.30 / STEP <= found <= 0.30
        assert tried == sorted(tried) and tried[0] <= 0.2
        steps = NOISE_STEPS_PER_OCTAVE * np.log2(np.array(tried) / anchor)
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
        np.testing.assert_allclose(np.diff(steps), 1.0, atol=1e-6)

    def test_the_grid_is_that_of_what_was_assumed(self):
        for noise_scale in (0.02, 0.05, 0.07):
            X, y = _data(60, 0.1)
            steps = NOISE_STEPS_PER_OCTAVE * math.log2(
                _sequence(X, y, noise_scale, Hybrid()).noise_lower_bound / noise_scale
            )
            assert steps == pytest.approx(round(steps), abs=1e-6)

    @pytest.mark.parametrize("delta", [0.5, 0.01, 1e-300])
    @pytest.mark.parametrize("count", [1, 7, 100, 10_000])
    def test_what_is_certain(self, count, delta):
        """Gaussian noise has so much energy less often, and a definite part is made use of."""
        energy = 1 / least_noise_of_energy(1.0, count, CERTAIN_FAILURE * delta) ** 2
        assert chi2.sf(energy, count) < 1e-12 * delta
        # With enough data no factor is lost but that of the slowest rate.
        assert energy / count > 1.115
        if count * 1e-3 > -math.log(delta):
            assert energy / count < 1.3

    @pytest.mark.parametrize("seed", range(4))
    def test_none_below_it_is_admissible(self, seed):
        """By brute force, from a hundredth of it on."""
        X, y = _data(25, 0.3, seed)
        found = _sequence(X, y, 0.1, Hybrid()).noise_lower_bound
        assert found > 0.05
        for scale in found * 1.1 ** -np.arange(48.0):
            assert _sequence(X, y, scale, Hybrid()).norm_lower_bound > 2.0


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
class TestExtremes:
    def test_nothing_is_refuted(self, mixture):
        kernel = RBF(0.3)
        empty = kb.ConfidenceSequence(kernel, 2.0, 0.1, mixture=mixture)
        assert empty.noise_lower_bound == 0
        rng = np.random.default_rng(0)
        X = rng.random((20, 2))
        for noise_scale in (0.0, 1e-9, 0.1):
            exact = _sequence(X, truth(kernel, rng, 1.5)(X), noise_scale, mixture)
            assert exact.noise_lower_bound < 1e-9

    def test_contradictions(self, mixture):
        """No function has two values at one point."""
        for noise_scale in (0.0, 1e-3, 1.0):
            seq = _sequence(
                np.full((40, 1), 0.5), np.tile([-3.0, 3.0], 20), noise_scale, mixture, 10.0
            )
            least = seq.noise_lower_bound
            if isinstance(mixture, Single):  # it takes residuals for noise, whatever sigma is
                assert least == 0
            else:
                assert 0.5 < least <= 3.0  # of a sign, 3 is the noise scale
            if noise_scale <= least:
                with pytest.raises(kb.EmptyConfidenceSetError) as caught:
                    seq.bounds([[0.5]])
                said = "above 0" if least == 0 else f"at least {least:.3g}"
                assert f"noise_scale must be {said}, or" in str(caught.value)

    @pytest.mark.parametrize("norm_bound", [0.0, 1e-60, 1e-3])
    def test_no_norm_to_speak_of(self, mixture, norm_bound):
        X, y = _data(30, 0.1)
        seq = _sequence(X, y, 0.1, mixture, norm_bound)
        assert 0 <= seq.noise_lower_bound < 2.0

    @pytest.mark.parametrize("unit", [1e-95, 1e-30, 1e30, 1e95])
    def test_any_unit(self, mixture, unit):
        X, y = _data(30, 0.5)
        found = [
            _sequence(X, y * u, 0.01 * u, _in_unit(mixture, u), 2.0 * u).noise_lower_bound / u
            for u in (1.0, unit)
        ]
        assert found[1] == pytest.approx(found[0], rel=2e-3)

    @pytest.mark.parametrize("seed", range(8))
    def test_is_found_wherever_it_is(self, mixture, seed):
        """Kernels of all sorts, few data and many, repeated points, noise of every size."""
        rng = np.random.default_rng(seed)
        kernel = [RBF(0.5), Matern(0.3, nu=1.5), RBF(0.1), DotProduct(0.5)][seed % 4]
        t, noise_scale = [5, 20, 60][seed % 3], 10.0 ** -(seed % 7)
        X = np.repeat(rng.random((t, 1)), 1 + seed % 2, axis=0)
        y = truth(kernel, rng, 1.9, dim=1)(X) + noise_scale * rng.standard_normal(len(X))
        seq = _sequence(X, y, noise_scale, mixture, kernel=kernel, delta=0.01)
        assert 0 <= seq.noise_lower_bound <= noise_scale


def _in_unit(mixture, unit):
    if isinstance(mixture, Single):
        return Single(mixture.c * unit**2)
    return mixture if isinstance(mixture, Hybrid) else Prequential(lambda *_: (0.0, unit**2))


@pytest.mark.parametrize("unit", [1.0, 1e95])
def test_where_no_noise_scale_is_enough(unit):
    """Sure of a function outside the norm bound, at level delta = 1: R_t is its misfit."""
    sure = Prequential(lambda X, y, x: (3.0 * unit, 0.0))
    y = np.tile([2.99 * unit, 3.01 * unit], 20)
    seq = _sequence([[0.5]] * 40, y, 1e-3 * unit, sure, 0.01 * unit, delta=1.0)
    # In double precision it is not quite delta = 1, and a huge one is enough.
    assert seq.noise_lower_bound > 1e6 * unit
    with pytest.raises(kb.EmptyConfidenceSetError, match="norm_bound must be at least") as caught:
        seq.bounds([[0.5]])
    assert "inf" not in str(caught.value)
    assert ("or else noise_scale" in str(caught.value)) == math.isfinite(seq.noise_lower_bound)


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
def test_it_does_not_take_long(mixture):
    X, y = _data(300, 0.1)
    seq = _sequence(X, y, 0.1, mixture)
    seq.bounds(X[:1])
    start = time.process_time()
    assert seq.noise_lower_bound > 0
    assert time.process_time() - start < 1.0
