"""Files of sequences and policies with parts, levels and noise scales."""

from __future__ import annotations

import json

import numpy as np
import pytest
from problems import Own, refused
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.functionals import Average, Difference
from kernelbounds.io import archive
from kernelbounds.mixtures import Single

X = np.random.default_rng(0).random((30, 2))
Y = np.sin(X.sum(axis=1))
SCALES = np.geomspace(0.05, 1.0, 30)
SMOOTH = Matern(0.5, nu=2.5)
PARTS = kb.Parts([(kb.OnInputs(SMOOTH, [0]), 2.0), (SMOOTH, 1.0), (RBF((0.5, 1.0)), 0.0)])


def _mean(points):
    return points[:, 0]


SEQUENCES = {
    "noise scales": lambda: kb.ConfidenceSequence(SMOOTH, 3.0, 0.1),
    "level": lambda: kb.ConfidenceSequence(SMOOTH, 3.0, 0.1, offset=1e3),
    "unknown level": lambda: kb.ConfidenceSequence(
        SMOOTH, 3.0, 0.1, offset=kb.Offset(0.5, within=2.0), bound=kb.DMM()
    ),
    "parts": lambda: kb.ConfidenceSequence(PARTS, noise_scale=0.1, mixture=Single(0.5)),
    "parts, unknown level": lambda: kb.ConfidenceSequence(
        PARTS, noise_scale=0.1, offset=kb.Offset(0.5, within=2.0), bound=kb.AMM()
    ),
    "parts without noise": lambda: kb.ConfidenceSequence(PARTS, noise_scale=0.0),
}


def _filled(name, t):
    seq = SEQUENCES[name]()
    if t:
        noisy = seq.assumptions.noise_scale > 0
        seq.update(X[:t], seq.offset.level + Y[:t], SCALES[:t] if noisy else None)
    return seq


def _said(seq):
    functionals = [Difference([0.1, 0.2], [0.3, 0.9]), Average(X)]
    numbers = [*seq.bounds(X[:5] + 0.01), *seq.bounds_of(functionals), [seq.radius]]
    return np.concatenate(numbers)


@pytest.mark.parametrize("t", [0, 5, 20])
@pytest.mark.parametrize("name", SEQUENCES)
def test_a_loaded_sequence_gives_the_same_numbers_and_goes_on(tmp_path, name, t):
    seq = _filled(name, t)
    seq.save(tmp_path / "x.npz")
    other = kb.ConfidenceSequence.load(tmp_path / "x.npz")
    for _ in range(2):
        assert repr(other) == repr(seq) and other.parts == seq.parts
        assert other.offset == seq.offset and other.kernel == seq.kernel
        assert other.known.shares == seq.known.shares
        np.testing.assert_array_equal(_said(other), _said(seq))
        np.testing.assert_array_equal(other.outcomes, seq.outcomes)
        np.testing.assert_array_equal(other.noise_scales, seq.noise_scales)
        for one in (seq, other):
            noise = None if seq.assumptions.noise_scale == 0 else 0.3
            one.update(X[t:], one.offset.level + Y[t:], noise)


@pytest.mark.usefixtures("short_searches")  # it matters that both find the same, and not what
@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("space", ["finite", "box"])
def test_a_loaded_policy_goes_on(tmp_path, name, space):
    seq = _filled(name, 12)
    domain = kb.Finite(X) if space == "finite" else kb.Box([0.1, 0.2], [0.12, 0.2])
    policy = kb.KernelUCB(seq, domain, minimise=True)
    asked = policy.ask()
    policy.begin(asked.x)
    policy.save(tmp_path / "x.npz")
    other = kb.KernelUCB.load(tmp_path / "x.npz")
    for _ in range(2):
        np.testing.assert_array_equal(other.ask().x, policy.ask().x)
        found = [one.certificate(tolerance=0.05).regret for one in (other, policy)]
        assert found[0] == found[1]
        for one in (policy, other):
            noise = None if seq.assumptions.noise_scale == 0 else 0.2
            one.tell(asked.x, seq.offset.level + np.sin(asked.x.sum()), noise)


def test_a_mean_function_is_given_again(tmp_path):
    seq = kb.ConfidenceSequence(SMOOTH, 3.0, 0.1, offset=kb.Offset(_mean))
    seq.update(X, Y, SCALES)
    seq.save(tmp_path / "x.npz")
    other = kb.ConfidenceSequence.load(tmp_path / "x.npz", offset=kb.Offset(_mean))
    np.testing.assert_array_equal(_said(other), _said(seq))
    refused(lambda: kb.ConfidenceSequence.load(tmp_path / "x.npz"), "of your own, the offset")
    for offset in (kb.Offset(np.sum), kb.Offset(1.0), kb.Offset(_mean, within=1.0)):
        refused(
            lambda offset=offset: kb.ConfidenceSequence.load(tmp_path / "x.npz", offset=offset),
            "saved with the offset",
        )


def test_a_kernel_of_ones_own_in_parts(tmp_path):
    parts = kb.Parts([(Own(0.5), 2.0), (SMOOTH, 1.0)])
    seq = kb.ConfidenceSequence(parts, noise_scale=0.1)
    seq.update(X, Y)
    seq.save(tmp_path / "x.npz")
    with pytest.raises(kb.InputError):
        kb.ConfidenceSequence.load(tmp_path / "x.npz")
    other = kb.ConfidenceSequence.load(tmp_path / "x.npz", kernel=parts)
    np.testing.assert_array_equal(other.bounds(X), seq.bounds(X))
    for wrong in (kb.Parts([(Own(0.5), 2.0)]), kb.Parts([(Own(0.5), 2.0), (SMOOTH, 1.1)]), SMOOTH):
        refused(
            lambda wrong=wrong: kb.ConfidenceSequence.load(tmp_path / "x.npz", kernel=wrong),
            "pass the same one",
        )


def _rewritten(path, change):
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(bytes(arrays.pop("header")))
    change(header, arrays)
    archive.write(path, header, arrays)


@pytest.mark.parametrize("version", [1, 2, 3, 5, "4", None])
def test_other_versions_are_refused(tmp_path, version):
    seq = _filled("parts", 5)
    seq.save(tmp_path / "x.npz")
    _rewritten(tmp_path / "x.npz", lambda header, _: header.update(version=version))
    with pytest.raises(kb.StoredFileError, match="reads version 4 only"):
        kb.ConfidenceSequence.load(tmp_path / "x.npz")


DAMAGES = {
    "weight 0": lambda h, a: a["weights"].__setitem__(3, 0.0),
    "weight nan": lambda h, a: a["weights"].__setitem__(3, np.nan),
    "another weight": lambda h, a: a["weights"].__setitem__(3, 2 * a["weights"][3]),
    "a weight less": lambda h, a: a.update(weights=a["weights"][:-1]),
    "no weights": lambda h, a: a.pop("weights"),
    "negative range": lambda h, a: h["offset"].update(within=-1.0),
    "level in words": lambda h, a: h["offset"].update(level="high"),
    "more of an offset": lambda h, a: h["offset"].update(more=1),
    "negative bound": lambda h, a: h["kernel"]["parts"][0].update(bound=-1.0),
    "another bound": lambda h, a: h["kernel"]["parts"][0].update(bound=2.5),
    "a part less": lambda h, a: h["kernel"]["parts"].pop(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused(tmp_path, damage):
    seq = kb.ConfidenceSequence(kb.Parts(PARTS.pairs[:2]), noise_scale=0.1)
    seq.update(X, Y, SCALES)
    seq.save(tmp_path / "x.npz")
    _rewritten(tmp_path / "x.npz", DAMAGES[damage])
    with pytest.raises(kb.StoredFileError, match="damaged") as caught:
        kb.ConfidenceSequence.load(tmp_path / "x.npz")
    assert str(caught.value).endswith(".")
