"""The paper's statements as properties of random instances."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings, strategies as st
from problems import KERNELS, data_sets, sequence

import kernelbounds as kb

instances = st.fixed_dictionaries(
    {
        **data_sets,
        "noise_scale": st.sampled_from([0.01, 0.1, 1.0]),
        "norm": st.sampled_from([0.5, 5.0, 100.0]),
        "c": st.floats(0.01, 100.0),
        "delta": st.sampled_from([1e-6, 0.01, 0.5]),
    }
)


def _instance(i):
    rng = np.random.default_rng(i["seed"])
    seq, function = sequence(
        KERNELS[i["name"]], rng, i["t"], i["norm"], i["noise_scale"],
        mixture_scale=i["c"], delta=i["delta"],
    )  # fmt: skip
    X = np.vstack([rng.random((6, 2)), seq.points[:2]])
    return seq, function, X


def _raw(seq, bound, X):
    """Without the clip to the trivial bound, which would hide strict inequalities."""
    return bound.extremes(seq.known, X, (1, -1))


def _refuted(seq):
    return seq.norm_lower_bound > seq.assumptions.norm_bound


TINY_RIDGES = {"name": "linear", "seed": 24, "t": 48}
TINY_RIDGES |= {"noise_scale": 0.01, "norm": 0.5, "c": 32.0, "delta": 1e-6}


@settings(max_examples=60, deadline=None)
@given(instances)
@example(TINY_RIDGES)
def test_cmm_below_dmm_below_amm_below_ay(i):
    seq, _, X = _instance(i)
    if _refuted(seq):
        return
    cmm, dmm, amm, ay = (_raw(seq, b, X) for b in (kb.CMM(), kb.DMM(), kb.AMM(), kb.AY()))
    slack = 1e-8 * i["norm"] * np.sqrt(KERNELS[i["name"]].diag(X))
    assert np.all(cmm <= dmm + slack)
    assert np.all(dmm <= amm + slack)
    assert np.all(amm < ay)


@settings(max_examples=40, deadline=None)
@given(instances, st.sampled_from([1e-3, 0.1, 2.0]))
def test_amm_below_igp(i, eta):
    i = {**i, "c": i["noise_scale"] ** 2 / (1 + eta)}
    seq, _, X = _instance(i)
    assert np.all(_raw(seq, kb.AMM(), X) < _raw(seq, kb.IGP(eta), X))


@settings(max_examples=40, deadline=None)
@given(instances)
def test_dual_is_quasiconvex_in_the_ridge(i):
    """No value between two others on the path of ridges exceeds both."""
    seq, _, X = _instance(i)
    if _refuted(seq):
        return
    ridges = np.geomspace(1e-4, 1e6, 121)
    found = seq.known.engine.query(X).predict(ridges)
    squared = seq.known.radius.around(ridges, found.energy)[:, None]
    squared = np.maximum(squared, 0)
    # What rounding up the variance can add.
    tolerance = 1e-6 * (np.sqrt((squared / ridges[:, None]).max()) + i["norm"])
    for sign in (1, -1):
        values = sign * found.mean + np.sqrt(squared / ridges[:, None] * found.variance)
        from_left = np.minimum.accumulate(values, axis=0)
        from_right = np.minimum.accumulate(values[::-1], axis=0)[::-1]
        assert np.all(values <= np.maximum(from_left, from_right) + tolerance)


@settings(max_examples=40, deadline=None)
@given(instances)
def test_members_of_the_set_are_within_its_bounds(i):
    """Functions that satisfy both constraints lie between lower and upper, for every bound."""
    seq, function, X = _instance(i)
    if not seq.contains(function) or _refuted(seq):
        return
    values = function(X)
    slack = 1e-8 * i["norm"] * np.sqrt(KERNELS[i["name"]].diag(X))
    for bound in (kb.CMM(), kb.DMM(), kb.AMM()):
        lower, upper = seq.bounds(X, bound)
        assert np.all(lower - slack <= values)
        assert np.all(values <= upper + slack)


@settings(max_examples=30, deadline=None)
@given(instances, st.floats(1.01, 10.0))
def test_weaker_assumptions_give_looser_bounds(i, factor):
    seq, _, X = _instance(i)
    weaker = kb.ConfidenceSequence(
        seq.kernel, i["norm"] * factor, i["noise_scale"], i["delta"], i["c"]
    )
    weaker.update(seq.points, seq.outcomes)
    if _refuted(seq):
        return
    slack = 1e-8 * factor * i["norm"] * np.sqrt(KERNELS[i["name"]].diag(X))
    for tight, loose in zip(_raw(seq, kb.CMM(), X), _raw(weaker, kb.CMM(), X), strict=True):
        assert np.all(tight <= loose + slack)


@settings(max_examples=30, deadline=None)
@given(instances)
def test_norm_lower_bound_is_where_the_set_becomes_empty(i):
    seq, _, X = _instance(i)
    least = seq.norm_lower_bound
    if not 0 < least < np.inf:
        return
    for factor, refuted in ((1.001, False), (0.99, True)):
        other = kb.ConfidenceSequence(
            seq.kernel, least * factor, i["noise_scale"], i["delta"], i["c"]
        )
        other.update(seq.points, seq.outcomes)
        assert _refuted(other) == refuted
        try:
            other.bounds(X)
            raised = False
        except kb.EmptyConfidenceSetError:
            raised = True
        assert raised == refuted
