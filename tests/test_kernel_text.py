"""Kernels as text: what is written is read back exactly, and nothing else than kernels is read."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import KERNELS, Own, one_line
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

import kernelbounds as kb
from kernelbounds.kernels import kernel_from_text, kernel_to_text, to_data

READ = {
    "RBF()": RBF(),
    "RBF(0.3)": RBF(0.3),
    "  RBF ( .3 , ) ": RBF(0.3),
    "RBF(3)\n + RBF(1e-3)": RBF(3) + RBF(1e-3),
    "Matern(0.5, nu=2.5)": Matern(0.5, nu=2.5),
    "Matern(nu=inf)": Matern(nu=math.inf),
    "Matern(length_scale=[0.5, 1], nu=2.5) + 0.5**2 * RBF(0.3)": (
        Matern([0.5, 1], nu=2.5) + 0.25 * RBF(0.3)
    ),
    "RBF((0.5, +1))": RBF((0.5, 1)),
    "RBF(0.3, (1e-2, 1e2))": RBF(0.3, (1e-2, 1e2)),
    "RBF(0.3, length_scale_bounds='fixed')": RBF(0.3, "fixed"),
    "RBF([1, 2], [(0.1, 10), (0.2, inf)])": RBF([1, 2], [(0.1, 10), (0.2, math.inf)]),
    "RationalQuadratic(0.4, alpha=1.5)": RationalQuadratic(0.4, alpha=1.5),
    "ExpSineSquared(periodicity=24)": ExpSineSquared(periodicity=24),
    "DotProduct(0)**2": DotProduct(0) ** 2,
    "C(2) * RBF() * 3": ConstantKernel(2) * RBF() * 3,
    "2 + 3 * RBF()": 2 + 3 * RBF(),
    "2 * 3 * RBF()": 6 * RBF(),
    "2 * (3 * RBF())": 2 * (3 * RBF()),
    "10**-2 * RBF()": 0.01 * RBF(),
    "RBF(1) * (RBF(2) + RBF(3))": RBF(1) * (RBF(2) + RBF(3)),
    "(RBF(1) + RBF(2)) ** 3": (RBF(1) + RBF(2)) ** 3,
    "OnInputs(RBF(0.5), [0]) + OnInputs(Matern([1, 2]), inputs=(1, 2))": (
        kb.OnInputs(RBF(0.5), [0]) + kb.OnInputs(Matern([1, 2]), (1, 2))
    ),
}


@pytest.mark.parametrize("text", READ)
def test_what_is_read(text):
    found = kernel_from_text(text)
    assert found == READ[text] and to_data(found) == to_data(READ[text])


def _refused(text):
    """The message with which a text is refused, or None where it is taken."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            kernel = kernel_from_text(text)
        except kb.InputError as error:
            message = one_line(error)
            assert message.startswith("kernel")
            return message
    kb.kernels.checked_kernel(kernel)
    return None


REFUSED = [
    ("", "is empty"),
    (" \n", "is empty"),
    ("2", r"column 1: '2' is not a kernel; write ConstantKernel\(2\)"),
    ("[1, 2]", "is not a kernel"),
    (
        "rbf(1)",
        r"column 1: there is no kernel 'rbf' \(did you mean 'RBF'\?\); there are",
    ),
    ("2 * Matérn(1)", r"column 5: .*did you mean 'Matern'"),
    ("RBF(1) + é * foo(1)", "column 10: there is no kernel 'é'"),
    ("é(1) + 2", "column 1"),
    ("RBF", "RBF needs parentheses"),
    ("RBF(1", r"column 4: '\(' was never closed"),
    ("  RBF(1))", "column 9: unmatched"),
    ("RBF(1) RBF(2)", "column"),
    ("RBF(1) - RBF(2)", r"column 10: .*combined by \+, \* and \*\* only"),
    ("RBF(1) / 2", "combined by"),
    ("RBF(1) // 2", "column 1: .*cannot be part of a kernel"),
    ("-RBF(1)", "only a number may have a sign"),
    ("~1 * RBF()", "cannot be part"),
    ("RBF(1) * [1, 2]", r"column 10: '\[1, 2\]' is neither"),
    ("RBF(1) ** 0.5", "column 11: an exponent must be a whole number from 1 to 20, got '0.5'"),
    ("RBF(1) ** 0", "exponent"),
    ("RBF(1) ** -1", "exponent"),
    ("RBF(1) ** 21", "exponent"),
    ("RBF(1) ** (1 + 1)", "exponent"),
    ("RBF(1) ** RBF(2)", "exponent"),
    ("2 ** RBF(2)", "exponent"),
    ("RBF(10**10**10)", "exponent"),
    ("RBF(9**9**9**9)", "exponent"),
    ("RBF(10**1000000000)", "exponent"),
    ("RBF(2.5**20**1)", "exponent"),
    ("RBF((1e99)**20)", "not a number up to 1e"),
    ("RBF(0**-1)", "not a number up to 1e"),
    ("[1]**2 * RBF()", r"'\[1\]' has no power"),
    ("RBF(1e999)", "not a number up to 1e"),
    ("inf * RBF()", "column 1: 'inf' is not a number up to"),
    ("0 * inf * RBF()", "not a number up to"),
    ("RBF(" + "1" * 10000 + ")", "cannot be part"),
    ("RBF(" + "1" * 300 + ")", "not a number up to"),
    ("RBF(-1)", "column 1: length_scale of RBF must be positive, got -1"),
    ("RBF() + RBF(0)", "column 9: length_scale of RBF must be positive, got 0"),
    ("RBF(inf)", "finite"),
    ("RBF([])", "positive"),
    ("RBF([1, [2]])", "column 5: .*must be a number or a list of numbers"),
    ("RBF(RBF())", "must be a number or a list of numbers"),
    ("RBF(None)", "'None' cannot be part"),
    ("RBF(True)", "'True' cannot be part"),
    ("RBF('fixed')", "cannot be part"),
    ("RBF(length_scale_bounds='free')", "cannot be part"),
    ("RBF(length_scale_bounds=[[[1]]])", "must be a number or a list"),
    ("Matern(nu=[1.5, 2.5])", r"column 11: nu of Matern must be a number, got '\[1.5, 2.5\]'"),
    ("Matern(nu=-inf)", "nu of Matern"),
    ("Matern(nu=nan)", "column 11"),
    ("Matern(nu=100)", "nu of Matern must be between"),
    ("RationalQuadratic([1, 2])", "must be a number, got"),
    ("Matern(1, 2, 3, 4)", "column 17: Matern takes 3 arguments, length_scale"),
    ("Matern(lenght_scale=1)", r"column 8: .*did you mean 'length_scale'\?\); it has length_scale"),
    ("RBF(1, length_scale=2)", "column 8: length_scale of RBF is given twice"),
    ("RBF(length_scale=1, length_scale=2)", "given twice"),
    ("RBF(*[1])", "column 5"),
    ("RBF(**{})", "column 5"),
    ("RBF(x for x in y)", "cannot be part"),
    ("RBF(a := 1)", "cannot be part"),
    ("WhiteKernel(0.1) + RBF()", "column 1: .*WhiteKernel, which models noise.*noise_scale"),
    ("OnInputs(RBF())", "column 1: OnInputs needs inputs"),
    ("OnInputs(2, [0])", "column 10: '2' is not a kernel"),
    ("OnInputs(RBF(), 0)", "must be a list of whole numbers"),
    ("OnInputs(RBF(), [0, 0])", "distinct"),
    ("OnInputs(RBF(), [0, 1.5])", "whole number"),
    ("OnInputs(RBF(), [0, -1])", "at least 0"),
    ("OnInputs(RBF(), [0, [1]])", "must be a number"),
    ("OnInputs(RBF(), [RBF()])", "must be a number"),
    ("kernels.RBF(1)", "cannot be part"),
    ("RBF(1).__class__", "cannot be part"),
    ("RBF(1)(2)", "cannot be part"),
    ("__import__('os').system('false')", "cannot be part"),
    ("print(1)", "there is no kernel 'print'"),
    ("(lambda: 1)()", "cannot be part"),
    ("f'{RBF(1)}'", "cannot be part"),
    ("RBF() if 1 else RBF()", "cannot be part"),
    ("1and RBF()", "'1a' cannot be part"),
    ("0x10 * RBF()", "'0x' cannot be part"),
    ("1_000 * RBF()", "'1_' cannot be part"),
    ("RBF(1j)", "'1j' cannot be part"),
    ("RBF(1) # the best", "column 8: '#' cannot be part"),
    ("RBF('\\d')", "column 6"),
    ("RBF(1)\0", "column 7"),
    ("\ud800", "column 1"),
    ("RBF(1) − 2", "column 8: invalid character"),
    ("(" * 10000, "column"),
    ("(" * 150 + "RBF()" + ")" * 150, None),  # parentheses alone nest nothing
    ("-" * 15000 + "1", "more than 100 operations"),
    ("RBF(" + "-" * 150 + "1)", "more than 100 operations"),
    ("[" * 150 + "]" * 150, "more than 100 operations"),
    ("2**" * 5000 + "2", "more than 100 operations"),
    ("1+" * 9000 + "1", "more than 100 operations"),
    (" + ".join(["RBF()"] * 150), "more than 100 operations"),
    (" + ".join(["RBF()"] * 100), None),
    ("OnInputs(" * 150 + "RBF()" + ", [0])" * 150, "more than 100 operations"),
    ("OnInputs(" * 90 + "RBF()" + ", [0])" * 90, None),
    ("not " * 4000 + "1", "column 1"),
    ("lambda:" * 2800 + "1", "column 1"),
    ("x" * 20001, "20001 characters; write it with at most 20000"),
    ("RBF(" + "x" * 1000 + "=1)", "has no argument"),
    ("x" * 1000 + "(1)", "there is no kernel"),
]


@pytest.mark.parametrize(("text", "match"), REFUSED, ids=[repr(t)[:40] for t, _ in REFUSED])
def test_what_is_refused(text, match):
    message = _refused(text)
    assert message is None if match is None else re.search(match, message)


@pytest.mark.parametrize("value", [None, 3, b"RBF()", RBF()])
def test_what_is_no_text_is_refused(value):
    with pytest.raises(kb.InputError, match="must be a text"):
        kernel_from_text(value)


positive = st.floats(1e-6, 1e6)
scales = st.one_of(
    positive,
    st.integers(1, 9),
    st.lists(positive, min_size=1, max_size=3),
    st.lists(positive, min_size=1, max_size=3).map(tuple),
    st.lists(positive, min_size=1, max_size=3).map(np.array),
    positive.map(np.float64),
    st.floats(0.5, 10, width=32).map(np.float32),
)
limits = st.one_of(
    st.just((1e-5, 1e5)),
    st.just("fixed"),
    st.tuples(positive, positive),
    st.lists(st.tuples(positive, positive), min_size=1, max_size=2),
)
leaves = st.one_of(
    st.builds(RBF, scales, limits),
    st.builds(Matern, scales, nu=st.sampled_from([0.5, 1.5, 2.2, 3, math.inf])),
    st.builds(RationalQuadratic, positive, positive),
    st.builds(ExpSineSquared, positive, positive, periodicity_bounds=limits),
    st.builds(DotProduct, st.floats(0, 1e6)),
    st.builds(ConstantKernel, st.one_of(positive, st.integers(-3, 3), st.just(-0.0))),
    st.builds(ConstantKernel, positive, limits),
)
kernels = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Sum, inner, inner),
        st.builds(Product, inner, inner),
        st.builds(Exponentiation, inner, st.sampled_from([1, 2, 3.0, 20])),
        st.builds(kb.OnInputs, inner, st.lists(st.integers(0, 9), min_size=1, unique=True)),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(kernels)
def test_what_is_written_is_read_back(kernel):
    text = kernel_to_text(kernel)
    found = kernel_from_text(text)
    assert found == kernel
    # Equality of scikit-learn's does not tell the terms of a sum from each other.
    assert to_data(found) == to_data(kernel)
    assert kernel_to_text(found) == text and "\n" not in text


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_the_other_tests(name):
    assert kernel_from_text(kernel_to_text(KERNELS[name])) == KERNELS[name]


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (2.0 * RBF(0.1), "2.0 * RBF(length_scale=0.1)"),
        (RBF(1 / 3) + 2, "RBF(length_scale=0.3333333333333333) + 2"),
        (
            Product(ConstantKernel(2.0), ConstantKernel(3.0)),
            "ConstantKernel(constant_value=2.0) * 3.0",
        ),
        (
            ConstantKernel(2.0, "fixed") * DotProduct(0.5),
            "ConstantKernel(constant_value=2.0, constant_value_bounds='fixed') * "
            "DotProduct(sigma_0=0.5)",
        ),
        (
            RBF(1) * (DotProduct(2) + 1) ** 2,
            "RBF(length_scale=1) * (DotProduct(sigma_0=2) + 1) ** 2",
        ),
        (RBF(1) + (RBF(2) + 3), "RBF(length_scale=1) + (RBF(length_scale=2) + 3)"),
        ((DotProduct(2) ** 2) ** 3, "(DotProduct(sigma_0=2) ** 2) ** 3"),
        (kb.OnInputs(Matern((0.5, 1), nu=np.inf), range(2)), None),
    ],
)
def test_what_is_written(kernel, text):
    text = text or "OnInputs(Matern(length_scale=(0.5, 1), nu=inf), [0, 1])"
    assert kernel_to_text(kernel) == text
    assert kernel_from_text(text) == kernel


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (None, "must be a scikit-learn kernel"),
        (Own(), "of the class Own cannot be written"),
        (RBF() + PairwiseKernel(), "of the class PairwiseKernel cannot be written"),
        (WhiteKernel(), "WhiteKernel, which models noise"),
        (RBF(-1), "positive"),
        (RBF() ** 0.5, "exponent 0.5"),
        (RBF(1, None), "argument None, which cannot be text"),
    ],
)
def test_what_cannot_be_written_is_refused(kernel, match):
    with pytest.raises(kb.InputError, match=match) as caught:
        kernel_to_text(kernel)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


NAMES = ["RBF", "Matern", "C", "OnInputs", "rbf", "é", "x", "nu", "length_scale", "inf", "nan"]
WORDS = ["lambda", " if ", " else ", " and ", " is ", "not ", "None", "f'", "b'", "'fixed'"]
PARTS = ["0", "1", "2.5", "1e9", "1e-9", "0x1", "1_0", "1j", "RBF(0.5)", "nu=2.5", "[0]", "**9"]
pieces = st.sampled_from(
    [*NAMES, *WORDS, *PARTS, "**", "==", ":=", *"()[]{},.=+-*/@~:;'\"\\#\0\ud800"]
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(pieces, max_size=25).map("".join)))
def test_any_text_is_a_kernel_or_refused(text):
    _refused(text)


@settings(max_examples=300, deadline=None)
@given(kernels, st.data())
def test_a_text_with_slips_is_a_kernel_or_refused(kernel, data):
    text = kernel_to_text(kernel)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 3)))
        text = text[:start] + data.draw(st.one_of(pieces, st.text(max_size=2))) + text[stop:]
    _refused(text)
