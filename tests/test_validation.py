"""Bad input: one clear sentence, and the sequence is unchanged."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Kernel,
    Matern,
    WhiteKernel,
)

import kernelbounds as kb


@pytest.fixture
def seq():
    s = kb.ConfidenceSequence(Matern(0.5, nu=2.5), 5.0, 0.1)
    s.update([[0.1, 0.2], [0.5, 0.9]], [1.0, 2.0])
    return s


UPDATES = {
    "nan outcome": ([[0.1, 0.2]], [np.nan]),
    "infinite outcome": ([[0.1, 0.2]], [np.inf]),
    "huge outcome": ([[0.1, 0.2]], [1e200]),
    "nan point": ([[np.nan, 0.2]], [1.0]),
    "infinite point": ([[np.inf, 0.2]], [1.0]),
    "one column too many": ([[0.1, 0.2, 0.3]], [1.0]),
    "one-dimensional": ([0.1, 0.2], [1.0, 2.0]),
    "three-dimensional": (np.zeros((1, 1, 2)), [1.0]),
    "no points": (np.empty((0, 2)), []),
    "no columns": (np.empty((2, 0)), [1.0, 2.0]),
    "unequal lengths": ([[0.1, 0.2]], [1.0, 2.0]),
    "matrix of outcomes": ([[0.1, 0.2]], [[1.0]]),
    "strings": ([["a", "b"]], [1.0]),
    "string outcome": ([[0.1, 0.2]], "1.0"),
    "ragged": ([[0.1, 0.2], [0.3]], [1.0, 2.0]),
    "complex": ([[0.1, 0.2]], [1j]),
    "none": (None, [1.0]),
}


@pytest.mark.parametrize("name", UPDATES)
def test_update_refuses_and_leaves_no_trace(seq, name):
    X, y = UPDATES[name]
    before = seq.bounds([[0.3, 0.3]])
    with pytest.raises(kb.InputError) as caught:
        seq.update(X, y)
    _one_sentence(caught)
    assert len(seq) == 2
    np.testing.assert_array_equal(seq.bounds([[0.3, 0.3]]), before)


@pytest.mark.parametrize(
    "X", [[], [0.1, 0.2], [[0.1]], [[np.nan, 0.0]], "text", [[0.1, 0.2, 0.3]], np.empty((0, 2))]
)
def test_bounds_refuse(seq, X):
    with pytest.raises(kb.InputError) as caught:
        seq.bounds(X)
    _one_sentence(caught)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("norm_bound", -1.0),
        ("norm_bound", np.nan),
        ("norm_bound", np.inf),
        ("norm_bound", "ten"),
        ("norm_bound", None),
        ("noise_scale", -0.1),
        ("noise_scale", [0.1, 0.2]),
        ("delta", 0.0),
        ("delta", 1.1),
        ("delta", -0.5),
        ("delta", True),
        ("mixture_scale", 0.0),
        ("mixture_scale", -2.0),
        ("kernel", "rbf"),
        ("kernel", RBF),
        ("kernel", RBF() + WhiteKernel()),
        ("bound", "CMM"),
        ("bound", kb.CMM),
    ],
)
def test_constructor_refuses(name, value):
    good = {"kernel": RBF(), "norm_bound": 1.0, "noise_scale": 0.1}
    with pytest.raises(kb.InputError, match=name) as caught:
        kb.ConfidenceSequence(**{**good, name: value})
    _one_sentence(caught)


@pytest.mark.parametrize(
    "make",
    [
        lambda: kb.AMM(0.0),
        lambda: kb.AMM(-1.0),
        lambda: kb.AMM("a"),
        lambda: kb.AY(0.0),
        lambda: kb.DMM([]),
        lambda: kb.DMM([1.0, 0.0]),
        lambda: kb.DMM(3.0),
        lambda: kb.DMM("12"),
        lambda: kb.IGP(0.0),
        lambda: kb.IGP(np.nan),
        lambda: kb.CMM(solver="simplex"),
        lambda: kb.RKHSFunction(RBF(), [[0.0]], [1.0, 2.0]),
        lambda: kb.RKHSFunction(RBF(), [[0.0]], [0.0]).rescaled(1.0),
        lambda: kb.RKHSFunction(RBF(), [[0.0]], [1.0]).rescaled(-1.0),
        lambda: kb.RKHSFunction(RBF(), [[0.0]], [1.0])([[0.0, 1.0]]),
        lambda: kb.ConfidenceSequence(RBF(), 1.0, 0.1).save("."),
        lambda: kb.ConfidenceSequence(RBF(), 1.0, 0.1).save("no/such/folder/file.npz"),
        lambda: kb.mixture_scale(RBF(), 0, 10),
        lambda: kb.mixture_scale(Matern(), 1, 0),
        lambda: kb.mixture_scale(Matern(), 1.5, 10),
        lambda: kb.mixture_scale(Matern(), 1, 10**400),
        lambda: kb.AMM(np.eye(30)),
        lambda: kb.IGP(np.complex128(1.0)),
        lambda: kb.RKHSFunction(np.eye(30), [[0.0]], [1.0]),
        lambda: kb.ConfidenceSequence(RBF(), 10**400, 0.1),
        lambda: kb.ConfidenceSequence(RBF(), 1.0, 0.1, bound=10**5000),
    ],
)
def test_others_refuse(make):
    with pytest.raises(kb.InputError) as caught:
        make()
    _one_sentence(caught)


@pytest.mark.parametrize("path", [3, None, b"bytes.npz", ["a"], "a\0b", np.eye(30)])
def test_what_is_not_a_path(seq, path):
    policy = kb.KernelUCB(seq)
    for call in (seq.save, kb.ConfidenceSequence.load, policy.save, kb.KernelUCB.load):
        with pytest.raises(kb.InputError, match="path") as caught:
            call(path)
        _one_sentence(caught)


def test_places_that_cannot_be_written_or_read(seq, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "x", tmp_path / ("x" * 300), "/proc/x.npz"):
        with pytest.raises(kb.InputError, match="cannot save to"):
            seq.save(place)
        with pytest.raises(kb.StoredFileError, match=r"cannot read|there is no file"):
            kb.ConfidenceSequence.load(place)


def test_an_input_error_is_a_value_error():
    with pytest.raises(ValueError, match="delta"):
        kb.ConfidenceSequence(RBF(), 1.0, 0.1, delta=3)


def test_length_scales_that_do_not_fit_the_points():
    seq = kb.ConfidenceSequence(Matern((0.1, 0.2, 0.3), nu=2.5), 1.0, 0.1)
    with pytest.raises(kb.InputError, match="could not be evaluated") as caught:
        seq.update([[0.1, 0.2]], [1.0])
    _one_sentence(caught)
    assert len(seq) == 0


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Matern("a"), "length_scale"),
        (Matern(-1.0), "length_scale"),
        (RBF([]), "length_scale"),
        (RBF(np.nan), "length_scale"),
        (ConstantKernel(2.0) * RBF("a"), "length_scale"),
        (Matern(nu=None), "nu"),
        (Matern(nu=-1), "nu"),
        (DotProduct("x"), "sigma_0"),
        (RBF() ** "a", "exponent"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hyperparameters_that_are_not_numbers(kernel, name):
    for call in (
        lambda: kb.ConfidenceSequence(kernel, 1.0, 0.1),
        lambda: kb.RKHSFunction(kernel, [[0.0]], [1.0]),
        lambda: kb.mixture_scale(kernel, 1, 10),
    ):
        with pytest.raises(kb.InputError, match=name) as caught:
            call()
        _one_sentence(caught)


class NotAKernel(Kernel):
    def __init__(self, value=None):
        self.value = value

    def __call__(self, X, Y=None, eval_gradient=False):
        return self.value if self.value is not None else -np.asarray(X) @ np.asarray(Y).T

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return False


@pytest.mark.parametrize("value", [None, np.zeros((2, 2)), "text", np.nan])
def test_functions_that_are_not_kernels(value):
    seq = kb.ConfidenceSequence(NotAKernel(value), 1.0, 0.1)
    with pytest.raises(kb.InputError, match=r"not a kernel|could not be evaluated|not finite"):
        for x in ([2.0], [3.0], [4.0]):
            seq.update([x], [0.1])
            seq.bounds([[0.5]])


def test_the_callers_arrays_are_not_touched(seq):
    X, y = np.array([[0.3, 0.4]]), np.array([1.0])
    seq.update(X, y)
    X[:], y[:] = 9, 9
    assert seq.points[-1].tolist() == [0.3, 0.4]
    assert seq.outcomes[-1] == 1
    seq.points[:] = 0
    assert seq.points[-1].tolist() == [0.3, 0.4]


def _one_sentence(caught):
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 300
