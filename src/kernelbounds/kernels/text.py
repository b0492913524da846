"""Kernels as text that people write and read, and kernels as JSON.

The text is Python's, as scikit-learn's kernels write themselves:
``Matern(length_scale=[0.5, 1], nu=2.5) + 0.5**2 * RBF(0.3)``. Nothing in it is run. It is parsed,
and only what makes a kernel is accepted: calls of kernel classes, numbers and lists of numbers,
sums, products and whole powers.

JSON holds the names of classes and their hyperparameters.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import ConstantKernel, Exponentiation, Kernel, Product, Sum

from kernelbounds.arrays import LARGEST, brief, shortened
from kernelbounds.errors import InputError, did_you_mean, said
from kernelbounds.kernels.levels import Levels
from kernelbounds.kernels.on_inputs import OnInputs
from kernelbounds.kernels.rkhs import checked_kernel, is_known

NAMES = ("RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct", "ConstantKernel")
WRITTEN_CLASSES = (*(getattr(sklearn_kernels, name) for name in NAMES), OnInputs, Levels)
# WhiteKernel can be read so that the check of the kernel tells people what to write in its place.
READ_CLASSES: dict[str, type[Kernel]] = {
    **{cls.__name__: cls for cls in (*WRITTEN_CLASSES, sklearn_kernels.WhiteKernel)},
    "C": ConstantKernel,
}
CLASS_NAMES = ", ".join(cls.__name__ for cls in WRITTEN_CLASSES)
LONGEST_TEXT = 20_000  # characters: ten times what a hundred length scales with all digits take
# Copying a kernel takes four nested calls for each of its levels, and Python allows a thousand.
DEEPEST_NESTING = 120
TOO_DEEP = f"it is nested more than {DEEPEST_NESTING} deep; write fewer operations."
LARGEST_EXPONENT = 20
# A comment would hide what follows it. Python would warn of an unknown escape in a string, and of
# numbers next to words as in "1and 2".
REFUSED_TEXT = re.compile(r"[\\#]|(?<![\w.])\.?[0-9][0-9.]*+(?:[eE][+-]?[0-9]+)?+[^\W0-9]")


def kernel_from_text(text: str) -> Kernel:
    """Read the kernel that a text describes.

    Examples
    --------
    >>> kernel_from_text("Matern(length_scale=[0.5, 1], nu=2.5) + 0.5**2 * RBF(0.3)")
    Matern(length_scale=[0.5, 1], nu=2.5) + 0.5**2 * RBF(length_scale=0.3)
    >>> kernel_from_text("OnInputs(RBF(0.5), [0]) * OnInputs(Matern(0.5, nu=inf), [1, 2])")
    OnInputs(RBF(length_scale=0.5), [0]) * OnInputs(Matern(length_scale=0.5, nu=inf), [1, 2])
    >>> kernel_from_text("Matern(nu=-1)")
    Traceback (most recent call last):
        ...
    kernelbounds.errors.InputError: kernel 'Matern(nu=-1)': nu of Matern must be positive, got -1.
    """
    if not isinstance(text, str):
        raise InputError(f"a kernel in words must be a text, got {brief(text)}.")
    try:
        kernel = _value(_parsed(text))
        if not isinstance(kernel, Kernel):
            raise _not_a_kernel(repr(kernel))
        return checked_kernel(kernel)
    except InputError as error:
        raise InputError(f"kernel {brief(text)}: {shortened(said(error), 300)}.") from None


def kernel_to_text(kernel: Kernel) -> str:
    """Write a text with all digits, from which :func:`kernel_from_text` makes an equal kernel.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> kernel_to_text(3.0 * RBF(1 / 3) + DotProduct(1.0) ** 2)
    '3.0 * RBF(length_scale=0.3333333333333333) + DotProduct(sigma_0=1.0) ** 2'
    """
    try:
        text = ast.unparse(_expression(checked_kernel(kernel)))
    except RecursionError:
        raise InputError(f"the kernel cannot be written as text: {TOO_DEEP}") from None
    kernel_from_text(text)  # Refuses an exponent of 0.5, for one, which no text may have.
    return text


def to_data(kernel: Kernel) -> dict[str, Any]:
    """Return a kernel as JSON-ready data: class name and parameters, nested kernels included."""
    if not is_known(type(kernel)):
        return {"class": type(kernel).__qualname__, "own": True, "repr": str(kernel)}
    params = {
        name: to_data(value) if isinstance(value, Kernel) else _plain(value, sequence=list)
        for name, value in kernel.get_params(deep=False).items()
    }
    return {"class": type(kernel).__name__, "params": params}


def from_data(data: dict[str, Any]) -> Kernel:
    """Rebuild the kernel that :func:`to_data` described, unless its class is the user's own."""
    if data.get("own"):
        raise InputError(
            f"the file was saved with a kernel class of your own ({data['class']}); "
            "pass it as load(path, kernel=...)."
        )
    name = data["class"]
    ours = {cls.__name__: cls for cls in (OnInputs, Levels)}
    cls = ours.get(name) or getattr(sklearn_kernels, name, None)
    if not (isinstance(cls, type) and issubclass(cls, Kernel) and is_known(cls)):
        raise InputError(f"the file names an unknown kernel class {name!r}.")
    params = {
        key: from_data(value) if isinstance(value, dict) else _plain(value, sequence=tuple)
        for key, value in data["params"].items()
    }
    return cls(**params)


def _plain(value: Any, sequence: type | None = None) -> Any:
    """Turn NumPy's numbers into Python's, and lists and tuples into ``sequence`` if given."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return (sequence or type(value))(_plain(item, sequence) for item in value)
    return value


def _parsed(text: str) -> ast.expr:
    """Parse a text into Python's syntax tree, whose depth is limited."""
    if len(text) > LONGEST_TEXT:
        raise InputError(f"it has {len(text)} characters; write it with at most {LONGEST_TEXT}.")
    if found := REFUSED_TEXT.search(text):
        raise _not_a_kernel(found.group())
    try:
        # Without line breaks, which Python would take for the end of an expression.
        tree = ast.parse(re.sub(r"\s", " ", text).strip(), mode="eval").body
    except (RecursionError, MemoryError):
        raise InputError(TOO_DEEP) from None
    except (SyntaxError, ValueError) as error:
        what = error.msg if isinstance(error, SyntaxError) else said(error)
        raise InputError(f"{what}; write a kernel such as Matern(0.5, nu=2.5).") from None
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST_NESTING):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise InputError(TOO_DEEP)
    return tree


def _value(node: ast.expr) -> Any:
    """Evaluate a node to a kernel, a number, a list or tuple of values, or "fixed"."""
    match node:
        case ast.Constant(value=int() | float() | "fixed" as value) if not isinstance(value, bool):
            return value
        case ast.Name(id="inf"):
            return math.inf
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            if _is_number(number := _value(operand)):
                return -number if isinstance(sign, ast.USub) else number
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.BinOp(op=ast.Add() | ast.Mult() | ast.Pow() as sign, left=left, right=right):
            return _combined(node, type(sign), _value(left), _value(right))
        case ast.Call(func=ast.Name(id=name)):
            return _called(node, name)
    raise _not_a_kernel(ast.unparse(node))


def _called(node: ast.Call, name: str) -> Kernel:
    """Make a kernel of a named class from the arguments of a call."""
    if name not in READ_CLASSES:
        close = did_you_mean(name, READ_CLASSES)
        raise InputError(f"there is no kernel {brief(name)}{close}; there are {CLASS_NAMES}.")
    cls, positional = READ_CLASSES[name], [_value(argument) for argument in node.args]
    named = {keyword.arg or "**": _value(keyword.value) for keyword in node.keywords}
    signature = inspect.signature(cls)
    try:
        if len(named) < len(node.keywords):
            raise TypeError("an argument is given twice")
        given = signature.bind(*positional, **named)
    except TypeError as error:
        names = ", ".join(signature.parameters)
        raise InputError(f"{shortened(said(error))}; {name} has arguments {names}.") from None
    return cls(**given.arguments)


def _combined(node: ast.BinOp, sign: type[ast.operator], left: Any, right: Any) -> Any:
    """Combine kernels and numbers as scikit-learn does: a number is a constant kernel.

    Powers are whole, because other powers of a kernel need not be kernels.
    """
    power = sign is ast.Pow
    if power:
        least = 1 if isinstance(left, Kernel) else -LARGEST_EXPONENT
        if not (_is_number(right) and right in range(least, LARGEST_EXPONENT + 1)):
            raise InputError(
                f"an exponent must be a whole number from {least} to {LARGEST_EXPONENT}, got "
                f"{brief(right)}."
            )
    if not all(_is_number(side) or isinstance(side, Kernel) for side in (left, right)):
        raise _not_a_kernel(ast.unparse(node))
    try:
        value = left**right if power else left + right if sign is ast.Add else left * right
    except (OverflowError, ZeroDivisionError):
        value = math.nan
    if _is_number(value) and not abs(value) <= LARGEST:
        raise InputError(f"{brief(ast.unparse(node))} is not a number up to {LARGEST:g}.")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _not_a_kernel(text: str) -> InputError:
    return InputError(
        f"{shortened(text)!r} is not a kernel; kernels are written such as RBF(0.3) or "
        "ConstantKernel(2), and combined by +, * and whole powers."
    )


def _expression(kernel: Kernel) -> ast.expr:
    """The expression that makes a kernel, with its numbers in full."""
    cls = type(kernel)
    if cls is Exponentiation:
        return ast.BinOp(_expression(kernel.kernel), ast.Pow(), _literal(kernel.exponent))
    if cls in (Sum, Product):
        left, right = _expression(kernel.k1), _expression(kernel.k2)
        if _is_plain_constant(kernel.k2):
            right = _literal(kernel.k2.constant_value)
        elif _is_plain_constant(kernel.k1):  # Not both, as a product of numbers is a number.
            left = _literal(kernel.k1.constant_value)
        return ast.BinOp(left, ast.Add() if cls is Sum else ast.Mult(), right)
    if cls is OnInputs:
        given = [_expression(kernel.kernel), _literal(list(kernel.inputs))]
        return ast.Call(ast.Name("OnInputs"), given, [])
    if cls not in WRITTEN_CLASSES:
        raise InputError(
            f"a kernel of the class {shortened(cls.__name__)} cannot be written as text; "
            f"those that can are {CLASS_NAMES}."
        )
    named = [ast.keyword(name, _literal(value)) for name, value in _settings(kernel).items()]
    return ast.Call(ast.Name(cls.__name__), [], named)


def _literal(value: Any) -> ast.expr:
    """A number, a list of numbers or "fixed" as an expression."""
    return ast.parse(repr(_plain(value)), mode="eval").body


def _settings(kernel: Kernel) -> dict[str, Any]:
    """The hyperparameters, and the limits of a search for them where they are not the defaults."""
    return {
        name: value
        for name, parameter in inspect.signature(type(kernel)).parameters.items()
        if (value := _plain(getattr(kernel, name))) != parameter.default
        or not name.endswith("_bounds")
    }


def _is_plain_constant(kernel: Kernel) -> bool:
    """Whether a number can stand for the kernel: a constant without limits of its own."""
    return type(kernel) is ConstantKernel and len(_settings(kernel)) == 1
