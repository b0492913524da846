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


NOT_ONE = "is not a kernel; kernels are written such as"
REFUSED = [
    ("", "invalid syntax; write a kernel such as"),
    (" \n", "invalid syntax"),
    ("2", "'2' is not a kernel"),
    ("[1, 2]", NOT_ONE),
    ("rbf(1)", r"there is no kernel 'rbf' \(did you mean 'RBF'\?\); there are"),
    ("2 * Matérn(1)", "did you mean 'Matern'"),
    ("RBF(1) + foo(1)", "there is no kernel 'foo'; there are RBF, Matern"),
    ("RBF", f"'RBF' {NOT_ONE}"),
    ("RBF(1", r"'\(' was never closed"),
    ("  RBF(1))", "unmatched"),
    ("RBF(1) RBF(2)", "invalid syntax"),
    ("RBF(1) - RBF(2)", r"combined by \+, \* and whole powers"),
    ("RBF(1) / 2", NOT_ONE),
    ("RBF(1) // 2", NOT_ONE),
    ("-RBF(1)", NOT_ONE),
    ("~1 * RBF()", NOT_ONE),
    ("RBF(1) * [1, 2]", NOT_ONE),
    ("RBF(1) * 'fixed'", NOT_ONE),
    ("[1] * 1000000000", NOT_ONE),
    ("RBF(1) ** 0.5", "an exponent must be a whole number from 1 to 20, got 0.5"),
    ("RBF(1) ** 0", "exponent"),
    ("RBF(1) ** -1", "exponent"),
    ("RBF(1) ** 21", "exponent"),
    ("RBF(1) ** RBF(2)", "exponent"),
    ("2 ** RBF(2)", "exponent"),
    ("RBF(10**10**10)", "exponent"),
    ("RBF(9**9**9**9)", "exponent"),
    ("RBF(10**1000000000)", "exponent"),
    ("RBF((1e99)**20)", "not a number up to 1e"),
    ("RBF(0**-1)", "not a number up to 1e"),
    ("[1]**2 * RBF()", NOT_ONE),
    ("RBF(1e999)", "all values must be finite"),
    ("inf * RBF()", "all values must be finite"),
    ("0 * inf * RBF()", "not a number up to"),
    ("RBF(" + "1" * 10000 + ")", "digits"),
    ("RBF(" + "1" * 400 + ")", "length_scale of RBF"),
    ("RBF(" + "1" * 300 + ")", "length_scale of RBF"),
    ("RBF(-1)", "^kernel 'RBF\\(-1\\)': length_scale of RBF must be positive, got -1"),
    ("RBF() + RBF(0)", "length_scale of RBF must be positive, got 0"),
    ("RBF(inf)", "finite"),
    ("RBF([])", "a number or one for each input"),
    ("RBF([1, [2]])", "length_scale of RBF must be"),
    ("RBF([[1, 2]])", "length_scale of RBF must be a number or one for each input"),
    ("RBF(RBF())", "length_scale of RBF must be"),
    ("RBF([RBF()])", "length_scale of RBF"),
    ("RBF(None)", NOT_ONE),
    ("RBF(True)", NOT_ONE),
    ("RBF('fixed')", "length_scale of RBF must be"),
    ("RBF(length_scale_bounds='free')", NOT_ONE),
    ("Matern(nu=[1.5, 2.5])", r"nu of Matern must be a number, got \[1.5, 2.5\]"),
    ("Matern(nu=-inf)", "nu of Matern"),
    ("Matern(nu=nan)", NOT_ONE),
    ("Matern(nu=100)", "nu of Matern must be between"),
    ("RationalQuadratic([1, 2])", "length_scale of RationalQuadratic must be a number"),
    ("Matern(1, 2, 3, 4)", "too many .*; Matern has arguments length_scale, "),
    ("Matern(lenght_scale=1)", "'lenght_scale'.*; Matern has arguments length_scale, "),
    ("RBF(1, length_scale=2)", "multiple values for argument 'length_scale'"),
    ("RBF(length_scale=1, length_scale=2)", "an argument is given twice"),
    ("RBF(*[1])", NOT_ONE),
    ("RBF(**{})", NOT_ONE),
    ("RBF(x for x in y)", NOT_ONE),
    ("RBF(a := 1)", NOT_ONE),
    ("WhiteKernel(0.1) + RBF()", "WhiteKernel, which models noise.*noise_scale"),
    ("OnInputs(RBF())", "missing a required argument: 'inputs'"),
    ("OnInputs(2, [0])", "OnInputs needs a scikit-learn kernel, got 2"),
    ("OnInputs(RBF(), 0)", "must be a list of distinct whole numbers"),
    ("OnInputs(RBF(), [0, 0])", "distinct"),
    ("OnInputs(RBF(), [0, 1.5])", "whole number"),
    ("OnInputs(RBF(), [0, -1])", "at least 0"),
    ("OnInputs(RBF(), [0, [1]])", "must be a number"),
    ("OnInputs(RBF(), [RBF()])", "must be a number"),
    ("kernels.RBF(1)", NOT_ONE),
    ("RBF(1).__class__", NOT_ONE),
    ("RBF(1)(2)", NOT_ONE),
    ("__import__('os').system('false')", NOT_ONE),
    ("print(1)", "there is no kernel 'print'"),
    ("(lambda: 1)()", NOT_ONE),
    ("f'{RBF(1)}'", NOT_ONE),
    ("RBF() if 1 else RBF()", NOT_ONE),
    ("1and RBF()", f"'1a' {NOT_ONE}"),
    ("0x10 * RBF()", f"'0x' {NOT_ONE}"),
    ("1_000 * RBF()", f"'1_' {NOT_ONE}"),
    ("RBF(1j)", f"'1j' {NOT_ONE}"),
    ("RBF(1) # the best", f"'#' {NOT_ONE}"),
    ("RBF('\\d')", NOT_ONE),
    ("RBF(1)\0", "null"),
    ("\ud800", "surrogates"),
    ("RBF(1) − 2", "invalid character"),
    ("(" * 10000, "too many nested parentheses"),
    ("(" * 150 + "RBF()" + ")" * 150, None),  # parentheses alone nest nothing
    ("-" * 15000 + "1", "more than 120 deep"),
    ("RBF(" + "-" * 150 + "1)", "more than 120 deep"),
    ("[" * 150 + "]" * 150, "more than 120 deep"),
    ("2**" * 5000 + "2", "more than 120 deep"),
    ("1+" * 9000 + "1", "more than 120 deep"),
    (" + ".join(["RBF()"] * 150), "more than 120 deep"),
    (" + ".join(["RBF()"] * 100), None),
    ("OnInputs(" * 150 + "RBF()" + ", [0])" * 150, "more than 120 deep"),
    ("OnInputs(" * 90 + "RBF()" + ", [0])" * 90, None),
    ("not " * 4000 + "1", "more than 120 deep"),
    ("lambda:" * 2800 + "1", "more than 120 deep"),
    ("x" * 20001, "20001 characters; write it with at most 20000"),
    ("RBF(" + "x" * 1000 + "=1)", "RBF has arguments length_scale"),
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
        (RBF() ** 0.5, "exponent must be a whole number from 1 to 20, got 0.5"),
        (RBF(1, None), "'None' is not a kernel"),
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
