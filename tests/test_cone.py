"""CMM by its dual against the paper's cone program."""

from __future__ import annotations

import numpy as np
import pytest
from problems import KERNELS, sequence

import kernelbounds as kb

cases = [(name, t) for name in KERNELS for t in (1, 7, 30)]
cases += [("matern 5/2", 100), ("rbf", 200), ("matern 3/2", 200)]


@pytest.mark.parametrize(("name", "t"), cases)
def test_dual_equals_cone_program(name, t):
    rng = np.random.default_rng(t)
    seq, _ = sequence(KERNELS[name], rng, t)
    X = rng.random((2, 2)) * 1.2
    lower, upper = seq.bounds(X)
    cone_lower, cone_upper = seq.bounds(X, kb.CMM(solver="cone"))
    scale = 5.0 * np.sqrt(KERNELS[name].diag(X))
    for ours, theirs in ((upper, cone_upper), (-lower, -cone_lower)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * scale.max())
        assert np.all(ours >= theirs - 1e-6 * scale), "tighter than the solver's tolerance"
