"""KernelLUCB: the more uncertain of the best action and its challenger."""

from __future__ import annotations

import numpy as np
import pytest
from own_bounds import Plain
from problems import truth
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb

KERNEL = RBF(0.3)
POLICIES = kb.KernelLUCB, kb.KernelUCB
GRID = np.stack(np.meshgrid(*[np.linspace(0, 1, 20)] * 2), -1).reshape(-1, 2)


def _played(policy, seed, rounds):
    """The policy's certified regret after some rounds, and what it lost on the way."""
    rng = np.random.default_rng(seed)
    function = truth(KERNEL, rng, 5.0)
    noise = 0.1 * rng.standard_normal(rounds)
    seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, 0.05)
    player = policy(seq, kb.Finite(GRID))
    for t in range(rounds):
        x = player.ask().x
        player.tell(x, float(function(x[None])[0]) + noise[t])
    return player


@pytest.mark.parametrize("minimise", [False, True])
def test_it_asks_for_the_wider_of_two(minimise):
    seq = _played(kb.KernelUCB, 0, 12).sequence
    policy = kb.KernelLUCB(seq, kb.Finite(GRID), minimise=minimise)
    lower, upper = seq.bounds(GRID)
    best = int(np.argmin(upper) if minimise else np.argmax(lower))
    gaps = [kb.functionals.Difference(x, GRID[best]) for x in GRID]
    least, most = seq.bounds_of(gaps)
    challenger = int(np.argmin(least) if minimise else np.argmax(most))
    wider = max(best, challenger, key=lambda at: upper[at] - lower[at])
    assert policy.ask().index == wider


@pytest.mark.slow
def test_certificates_close_in_sooner():
    """On average over problems, and with smooth kernels; docs/how-to/bandits.md has the figures."""
    ratios = [
        np.divide(*(_played(policy, seed, 100).certificate().regret for policy in POLICIES))
        for seed in range(20)
    ]
    assert np.mean(np.log(ratios)) < 0


def test_a_bound_on_values_alone_is_refused():
    seq = kb.ConfidenceSequence(KERNEL, 5.0, 0.1, bound=Plain())
    with pytest.raises(kb.InputError, match="bounds values only; use KernelUCB"):
        kb.KernelLUCB(seq, kb.Finite(GRID))
