"""Bad input: one clear sentence, and nothing has changed."""

from __future__ import annotations

import inspect
import warnings
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from problems import one_line
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    WhiteKernel,
)

import kernelbounds as kb
from kernelbounds import theory


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
    "one outcome for two points": ([[0.1, 0.2], [0.3, 0.4]], 1.0),
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
    one_line(caught.value)
    assert len(seq) == 2
    np.testing.assert_array_equal(seq.bounds([[0.3, 0.3]]), before)


@pytest.mark.parametrize(
    "X",
    [
        [],
        [0.1],
        [0.1, 0.2, 0.3],
        [[0.1]],
        [[np.nan, 0.0]],
        "text",
        [[0.1, 0.2, 0.3]],
        np.empty((0, 2)),
        0.1,
        np.zeros((1, 1, 2)),
    ],
)
def test_bounds_refuse(seq, X):
    with pytest.raises(kb.InputError) as caught:
        seq.bounds(X)
    one_line(caught.value)


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
    one_line(caught.value)


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
        lambda: kb.CMM(solver=np.ones(2)),
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
    one_line(caught.value)


@pytest.mark.parametrize("path", [3, None, b"bytes.npz", ["a"], "a\0b", np.eye(30)])
def test_what_is_not_a_path(seq, path):
    policy = kb.KernelUCB(seq)
    for call in (seq.save, kb.ConfidenceSequence.load, policy.save, kb.KernelUCB.load):
        with pytest.raises(kb.InputError, match="path") as caught:
            call(path)
        one_line(caught.value)


def test_places_that_cannot_be_written_or_read(seq, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "x", tmp_path / ("x" * 300), "/proc/x.npz"):
        with pytest.raises(kb.InputError, match="cannot save to"):
            seq.save(place)
        with pytest.raises(kb.StoredFileError, match=r"cannot read|there is no file"):
            kb.ConfidenceSequence.load(place)


class NAType:
    """As the missing value of pandas, by its name."""


NOW = np.datetime64("2024-05-01T12:00:00")
MASKED = np.ma.array([[0.1, -999.0], [0.3, 0.4]], mask=[[False, True], [False, False]])
NOT_NUMBERS = {
    "masked": (MASKED, "X has 1 masked"),
    "masked rows": (list(MASKED), "X has 1 masked"),
    "masked for ever": ([[0.1, np.ma.masked], [0.3, 0.4]], "X has 1 masked"),
    "None": ([[0.1, None], [0.3, 0.4]], "1 missing"),
    "NA": (np.array([[0.1, NAType()], [NAType(), 0.4]], dtype=object), "2 missing"),
    "dates": (np.array([[NOW, NOW]] * 2), "dates .*convert to seconds"),
    "time spans": (np.array([[NOW - NOW] * 2] * 2), "time spans .*convert to seconds"),
    "complex": ([[0.1, 0.2 + 0j], [0.3, 0.4]], "real numbers"),
    "digits": ([["0.1", "0.2"], ["0.3", "0.4"]], "text .*astype"),
    "bytes": ([[b"0.1", b"0.2"], [b"0.3", b"0.4"]], "text .*astype"),
    "Decimal": ([[Decimal("0.1"), Decimal("0.2")]] * 2, r"objects \(Decimal\)"),
    "Fraction": ([[Fraction(1, 3), 0.2]] * 2, r"objects \(Fraction, float\)"),
    "nanoseconds": (np.array([[1714564800000000001, 0]] * 2), "lose digits"),
    "the largest": (np.array([[2**64 - 1, 0]] * 2, dtype=np.uint64), "lose digits"),
}


@pytest.mark.parametrize("name", NOT_NUMBERS)
def test_nothing_is_made_into_a_number_silently(seq, name):
    X, match = NOT_NUMBERS[name]
    policy = kb.KernelUCB(seq)
    for call in (
        lambda: seq.update(X, [1.0, 2.0]),
        lambda: seq.bounds(X),
        lambda: policy.tell(X, [1.0, 2.0]),
        lambda: policy.ask(actions=X),
        lambda: policy.begin(X),
        lambda: kb.Finite(X),
    ):
        with pytest.raises(kb.InputError, match=match.replace("X has", "has")) as caught:
            call()
        one_line(caught.value)
    column = [row[1] for row in X] if isinstance(X, list) else X[:, 1]
    if name not in ("nanoseconds", "the largest", "Fraction"):
        with pytest.raises(kb.InputError):
            seq.update([[0.1, 0.2], [0.3, 0.4]], column)
    assert len(seq) == 2 and len(policy.pending) == 0


def test_masked_outcomes(seq):
    X = [[0.1, 0.2], [0.3, 0.4]]
    with pytest.raises(kb.InputError, match="y has 1 masked"):
        seq.update(X, np.ma.masked_equal([1.0, -999.0], -999.0))
    with pytest.raises(kb.InputError, match="y has 1 masked"):
        seq.update([0.1, 0.2], np.ma.masked)
    for outcome in (np.ma.masked, np.ma.masked_equal([-999.0], -999.0)):
        with pytest.raises(kb.InputError, match="the outcome of an experiment has 1 masked"):
            kb.KernelUCB(seq, kb.Finite(X)).run(lambda x, y=outcome: y, 1)
    for masked in (np.ma.masked, np.ma.array(1.0, mask=True)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(kb.InputError, match="norm_bound must be a number"):
                kb.ConfidenceSequence(RBF(), masked, 0.1)
    assert len(seq) == 2


def test_a_masked_array_in_which_nothing_is_masked_is_data(seq):
    seq.update(np.ma.array([[0.1, 0.2]], mask=False), np.ma.masked_invalid([1.5]))
    assert type(seq.points) is np.ndarray and type(seq.outcomes) is np.ndarray
    assert seq.points[-1].tolist() == [0.1, 0.2] and seq.outcomes[-1] == 1.5


def test_what_is_a_number(seq):
    """Success and failure; whole numbers that a float can be."""
    seq.update([[0.1, 0.2], [0.3, 0.4]], [True, False])
    assert seq.outcomes[-2:].tolist() == [1.0, 0.0]
    big = kb.ConfidenceSequence(RBF(1e17), 2.0, 0.1)
    big.update(np.array([[10**18], [2**60]]), [0.1, 0.1])
    assert big.points[:, 0].tolist() == [1e18, 2.0**60]


@pytest.mark.parametrize("method", ["bounds", "upper", "lower", "gradients"])
def test_one_point_without_the_brackets(method):
    for dim in (1, 2):
        x = [0.5, 0.3][:dim]
        for t in (0, 3):
            s = kb.ConfidenceSequence(RBF(0.5), 2.0, 0.1)
            if t:
                s.update(np.random.default_rng(0).random((t, dim)), np.zeros(t))
            np.testing.assert_array_equal(getattr(s, method)(x), getattr(s, method)([x]))
        for wrong in ([0.1] * (dim + 1), []):  # s knows the dimension by now
            with pytest.raises(kb.InputError) as caught:
                getattr(s, method)(wrong)
            one_line(caught.value)
            assert not wrong or "reshape(-1, 1)" in str(caught.value)


def test_an_input_error_is_a_value_error():
    with pytest.raises(ValueError, match="delta"):
        kb.ConfidenceSequence(RBF(), 1.0, 0.1, delta=3)


def test_length_scales_that_do_not_fit_the_points():
    seq = kb.ConfidenceSequence(Matern((0.1, 0.2, 0.3), nu=2.5), 1.0, 0.1)
    with pytest.raises(kb.InputError, match="has 3 length scales") as caught:
        seq.update([[0.1, 0.2]], [1.0])
    one_line(caught.value)
    assert len(seq) == 0


def test_a_periodic_kernel_in_two_dimensions():
    for kernel in (ExpSineSquared(), RBF() * ExpSineSquared(), ExpSineSquared() ** 2):
        seq = kb.ConfidenceSequence(kernel, 1.0, 0.1)
        for call in (
            lambda seq=seq: seq.update([[0.1, 0.2]], [1.0]),
            lambda seq=seq: seq.bounds([[0.1, 0.2]]),
        ):
            with pytest.raises(kb.InputError, match="in one dimension only") as caught:
                call()
            one_line(caught.value)


def test_attributes_of_a_kernel_are_kept():
    class Table(RBF):
        pass

    kernel = Table(0.5)
    kernel.rows = [1, 2]
    copied = kb.ConfidenceSequence(kernel, 1.0, 0.1).kernel
    assert copied.rows == [1, 2] and copied.rows is not kernel.rows


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(1e-50), "length_scale"),
        (ExpSineSquared(1.0, 1e-200), "periodicity"),
        (RBF() + Matern(nu=0.01), "nu"),
        (Matern(nu=60), "nu"),
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
        one_line(caught.value)


class NotAKernel(Kernel):
    def __init__(self, value=None):
        self.value = value

    def __call__(self, X, Y=None, eval_gradient=False):
        return self.value if self.value is not None else -np.asarray(X) @ np.asarray(Y).T

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return False


@pytest.mark.parametrize("bound", [kb.CMM(), kb.DMM(), kb.AMM(), kb.AY(), kb.IGP(0.1)], ids=str)
@pytest.mark.parametrize("value", [None, np.zeros((2, 2)), "text", np.nan])
def test_functions_that_are_not_kernels(value, bound):
    seq = kb.ConfidenceSequence(NotAKernel(value), 1.0, 0.1, bound=bound)
    with pytest.raises(kb.InputError, match=r"not a kernel|could not be evaluated|not finite"):
        for x in ([2.0], [3.0], [4.0]):
            seq.update([x], [0.1])
            seq.bounds([[0.5]])


DECAY = theory.PolynomialDecay(1.0, 2.0)
ASSUMPTIONS = kb.Assumptions(1.0, 0.1)
POINTS = [[0.1], [0.7]]
SEQUENCE = kb.ConfidenceSequence(RBF(), 1.0, 0.1)
SEQUENCE.update(POINTS, [0.1, 0.2])
# Each public function of the theory, with arguments that it takes.
THEORY = {
    "compare": {"sequence": SEQUENCE, "X": POINTS, "eta": 0.1},
    "count_components": {"decay": DECAY, "ridge": 1.0, "threshold": 1.0},
    "decay_exponent": {"kernel": RBF(), "dim": 1},
    "elliptical_potentials": {"kernel": RBF(), "X": POINTS, "ridge": 1.0},
    "exponential_envelope": {"spectrum": theory.nystrom_spectrum(RBF(), 1, 4), "exponent": 0.5},
    "exponential_rate": {"exponent": 0.5},
    "fitted_decay": {"kernel": RBF(), "dim": 1, "count": 4, "points": 8},
    "gap_to_ay": {"assumptions": ASSUMPTIONS, "log_det": 1.0, "ridge": 1.0},
    "gap_to_igp": {"assumptions": ASSUMPTIONS, "log_det": 1.0, "eta": 1.0, "count": 3},
    "information_gain": {"kernel": RBF(), "X": POINTS, "ridge": 1.0},
    "information_gain_bound": {"decay": DECAY, "rounds": 10, "ridge": 1.0},
    "information_gains": {"kernel": RBF(), "X": POINTS, "ridge": 1.0},
    "is_above": {"decay": DECAY, "eigenvalues": [0.5, 0.1]},
    "largest_value": {"norm_bound": 1.0, "kernel_bound": 1.0},
    "maximum_information_gain": {
        "kernel": RBF(), "candidates": POINTS, "ridge": 1.0, "rounds": 3,
    },
    "noiseless_exponential_rate": {"exponent": 0.5},
    "noiseless_polynomial_rate": {"exponent": 2.0},
    "noiseless_regret_bound": {
        "norm_bound": 1.0, "rounds": 10, "ridge": 1.0, "gain": 1.0, "count": 1, "value_bound": 1.0,
    },
    "noiseless_regret_bound_under": {
        "decay": DECAY, "norm_bound": 1.0, "rounds": 10, "ridge": 1.0,
    },
    "nystrom_spectrum": {"kernel": RBF(), "dim": 1, "count": 4, "points": 8},
    "polynomial_envelope": {"spectrum": theory.nystrom_spectrum(RBF(), 1, 4), "exponent": 2.0},
    "polynomial_rate": {"exponent": 2.0},
    "potential_count_bound": {"gain": 1.0, "threshold": 1.0},
    "potential_count_bound_under": {"decay": DECAY, "ridge": 1.0, "threshold": 1.0},
    "potential_counts": {"kernel": RBF(), "X": POINTS, "ridge": 1.0, "threshold": 1.0},
    "potential_sum_bound": {"gain": 1.0},
    "radius_bound": {"assumptions": ASSUMPTIONS, "gain": 1.0},
    "regret_bound": {
        "assumptions": ASSUMPTIONS, "rounds": 10, "gain": 1.0, "count": 1, "value_bound": 1.0,
    },
    "regret_bound_under": {
        "decay": DECAY, "norm_bound": 1.0, "noise_scale": 0.1, "delta": 0.1, "rounds": 10,
        "mixture_scale": 1.0,
    },
    "regret_rate": {"kernel": RBF(), "dim": 1, "noiseless": True},
    "run_bound": {
        "run": SEQUENCE, "ridge": 0.1, "value_bound": 1.0, "skip": 0,
    },
    "self_consistent_counts": {"gains": [1.0, 2.0], "threshold": 1.0},
    "solve_log": {"a": 1.0, "b": 1.0},
    "solve_log1p": {"a": 1.0, "b": 1.0},
}  # fmt: skip
WRONG = (-1, np.nan, "text", "3", object(), 1j, {"a": 1}, [[1.0], [1.0, 2.0]])
ODD = (None, 0, 2.5, 1e300, 1e-320, 10**400, True, [], [1.0, 2.0, 3.0], np.ones((2, 2)))


def test_every_function_of_the_theory_is_listed_here():
    functions = {name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}
    assert set(THEORY) == functions


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", THEORY)
def test_the_theory_refuses_in_words(name):
    good, function = THEORY[name], getattr(theory, name)
    for argument in good:
        for value in WRONG:
            with pytest.raises(kb.InputError) as caught:
                function(**(good | {argument: value}))
            one_line(caught.value)
        for value in ODD:
            with suppress(kb.InputError):  # and nothing else
                function(**(good | {argument: value}))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("solve_log", {"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}),
        ("information_gain_bound", {"rounds": [1, 2, 3], "ridge": [1.0, 2.0]}),
        ("regret_bound", {"rounds": [1, 2, 3], "gain": [1.0, 2.0]}),
        ("regret_bound_under", {"rounds": [1, 2, 3], "mixture_scale": [1.0, 2.0]}),
        ("noiseless_regret_bound", {"rounds": [1, 2, 3], "count": [1, 2]}),
        ("noiseless_regret_bound_under", {"rounds": [1, 2, 3], "ridge": [1.0, 2.0]}),
    ],
)
def test_shapes_that_do_not_fit_together(name, changes):
    with pytest.raises(kb.InputError, match="fit together"):
        getattr(theory, name)(**(THEORY[name] | changes))


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("decay_exponent", "dim"),
        ("gap_to_igp", "count"),
        ("maximum_information_gain", "rounds"),
        ("nystrom_spectrum", "count"),
        ("run_bound", "skip"),
    ],
)
def test_counts_are_whole(name, argument):
    with pytest.raises(kb.InputError, match="whole number"):
        getattr(theory, name)(**(THEORY[name] | {argument: 1.5}))


def test_the_callers_arrays_are_not_touched(seq):
    X, y = np.array([[0.3, 0.4]]), np.array([1.0])
    seq.update(X, y)
    X[:], y[:] = 9, 9
    assert seq.points[-1].tolist() == [0.3, 0.4]
    assert seq.outcomes[-1] == 1
    seq.points[:] = 0
    assert seq.points[-1].tolist() == [0.3, 0.4]
