"""Kernels as text: ``Matern(length_scale=[0.5, 1], nu=2.5) + 0.5**2 * RBF(0.3)``.

The text is Python's, as scikit-learn's kernels write themselves, but nothing is run. It is parsed,
and only what makes a kernel is taken: calls of kernel classes, numbers and lists of them, sums,
products and whole powers.

Kernels as JSON: class names and hyperparameters.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from kernelbounds.arrays import LARGEST, brief, shortened
from kernelbounds.errors import InputError, did_you_mean, said
from kernelbounds.kernels.checks import checked_kernel, is_known
from kernelbounds.kernels.on_inputs import OnInputs


def to_data(kernel: Kernel) -> dict[str, Any]:
    """``kernel`` as JSON-ready data: class name and parameters, nested kernels included."""
    if not is_known(type(kernel)):
        return {"class": type(kernel).__qualname__, "own": True, "repr": str(kernel)}
    params = {
        name: to_data(value) if isinstance(value, Kernel) else _plain(value)
        for name, value in kernel.get_params(deep=False).items()
    }
    return {"class": type(kernel).__name__, "params": params}


def from_data(data: dict[str, Any]) -> Kernel:
    """The kernel that :func:`to_data` described; classes of the user's own cannot be rebuilt."""
    if data.get("own"):
        raise InputError(
            f"the file was saved with a kernel class of your own ({data['class']}); "
            "pass it as load(path, kernel=...)."
        )
    name = data["class"]
    cls = OnInputs if name == OnInputs.__name__ else getattr(sklearn_kernels, name, None)
    if not (isinstance(cls, type) and issubclass(cls, Kernel) and is_known(cls)):
        raise InputError(f"the file names an unknown kernel class {name!r}.")
    params = {
        key: from_data(value) if isinstance(value, dict) else _unplain(value)
        for key, value in data["params"].items()
    }
    return cls(**params)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _unplain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_unplain(item) for item in value)
    return value


_LEAVES = (RBF, Matern, RationalQuadratic, ExpSineSquared, DotProduct, ConstantKernel)
# WhiteKernel is here so that people are told what to do without it.
_CLASSES: dict[str, type[Kernel]] = {
    **{cls.__name__: cls for cls in (*_LEAVES, OnInputs, WhiteKernel)},
    "C": ConstantKernel,
}
_LISTED = ", ".join(cls.__name__ for cls in (*_LEAVES, OnInputs))
_PER_INPUT = {(RBF, "length_scale"), (Matern, "length_scale")}  # may be lists

LONGEST = 20_000  # characters: a hundred inputs with all digits of their length scales, ten times
# Nested operations. Copying a kernel takes four calls of Python's for each, of the thousand it has.
DEEPEST = 100
TOO_DEEP = f"there are more than {DEEPEST} operations inside each other; write fewer"
POWER = 20  # the largest exponent

_NOT_ALLOWED = (
    re.compile(r"[\\#\0\ud800-\udfff]"),
    # Python would warn of "1and 2", and take 0x10 and 1_000 for numbers.
    re.compile(r"(?<![\w.])\.?[0-9][0-9.]*+(?:[eE][+-]?[0-9]+)?+[^\W0-9]"),
    re.compile(r"[0-9]{400}"),  # no float has so many digits
)

Value = Any  # a kernel, a number, a list or tuple of numbers, or "fixed"


def kernel_from_text(text: str) -> Kernel:
    """The kernel that a text describes.

    Examples
    --------
    >>> kernel_from_text("Matern(length_scale=[0.5, 1], nu=2.5) + 0.5**2 * RBF(0.3)")
    Matern(length_scale=[0.5, 1], nu=2.5) + 0.5**2 * RBF(length_scale=0.3)
    >>> kernel_from_text("OnInputs(RBF(0.5), [0]) * OnInputs(Matern(0.5, nu=inf), [1, 2])")
    OnInputs(RBF(length_scale=0.5), [0]) * OnInputs(Matern(length_scale=0.5, nu=inf), [1, 2])
    >>> kernel_from_text("RBF(1) + Matern(0.5, nu=-1)")
    Traceback (most recent call last):
        ...
    kernelbounds.errors.InputError: kernel, column 10: nu of Matern must be positive, got -1.
    """
    if not isinstance(text, str):
        raise InputError(f"a kernel in words must be a text, got {brief(text)}.")
    if len(text) > LONGEST:
        raise InputError(f"kernel has {len(text)} characters; write it with at most {LONGEST}.")
    return checked_kernel(_Reader(text).kernel())


def kernel_to_text(kernel: Kernel) -> str:
    """A text with all digits, from which :func:`kernel_from_text` makes an equal kernel.

    Examples
    --------
    >>> kernel_to_text(3.0 * RBF(1 / 3) + DotProduct(1.0) ** 2)
    '3.0 * RBF(length_scale=0.3333333333333333) + DotProduct(sigma_0=1.0) ** 2'
    """
    return _written(checked_kernel(kernel))


class _Reader:
    """One text, and where in it things are."""

    def __init__(self, text: str) -> None:
        line = re.sub(r"\s", " ", text)
        self._text = line.lstrip()
        self._before = len(line) - len(self._text)  # which Python would take for an indent

    def kernel(self) -> Kernel:
        """What the whole text describes."""
        if not self._text:
            raise InputError("kernel is empty; write one such as Matern(length_scale=0.5, nu=2.5).")
        for pattern in _NOT_ALLOWED:
            if found := pattern.search(self._text):
                self._refuse_at(
                    found.start(),
                    f"{brief(found.group())} cannot be part of a kernel; write numbers such as "
                    "0.5, 1e-3 or inf",
                )
        try:
            parsed = ast.parse(self._text, mode="eval").body
        except SyntaxError as error:
            what = shortened(error.msg.rstrip("."), 120)
            self._refuse_at(
                max((error.offset or 1) - 1, 0),
                f"{what}; write a kernel such as Matern(length_scale=0.5, nu=2.5)",
            )
        except (RecursionError, MemoryError):
            self._refuse_at(0, TOO_DEEP)
        return self._kernel(parsed, 0)

    def _kernel(self, node: ast.expr, depth: int) -> Kernel:
        value = self._value(node, depth)
        if isinstance(value, Kernel):
            return value
        what = (
            f"write ConstantKernel({value!r}) for a constant" if _is_number(value) else "name one"
        )
        self._refuse(node, f"{self._source(node)} is not a kernel; {what}")

    def _value(self, node: ast.expr, depth: int) -> Value:
        if depth > DEEPEST:
            self._refuse(node, TOO_DEEP)
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return self._number(node, lambda: number)
            case ast.Name(id="inf"):
                return math.inf
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                number = self._value(operand, depth + 1)
                if not _is_number(number):
                    self._refuse(node, "only a number may have a sign")
                return -number if isinstance(sign, ast.USub) else number
            case ast.List(elts=items) | ast.Tuple(elts=items):
                values = [self._value(item, depth + 1) for item in items]
                return values if isinstance(node, ast.List) else tuple(values)
            case ast.BinOp(op=ast.Pow()):
                return self._power(node, depth)
            case ast.BinOp(op=ast.Add() | ast.Mult()):
                return self._combined(node, depth)
            case ast.BinOp(op=ast.Sub() | ast.Div()):
                self._refuse(node.right, "kernels and numbers are combined by +, * and ** only")
            case ast.Call(func=ast.Name(id=name)):
                return self._called(node, self._class(node.func, name), depth)
            case ast.Name(id=name):
                cls = self._class(node, name)
                self._refuse(node, f"{name} needs parentheses, such as {cls.__name__}(...)")
            case _:
                self._refuse(node, f"{self._source(node)} cannot be part of a kernel")

    def _class(self, node: ast.expr, name: str) -> type[Kernel]:
        if name not in _CLASSES:
            close = did_you_mean(name, _CLASSES)
            self._refuse(node, f"there is no kernel {brief(name)}{close}; there are {_LISTED}")
        return _CLASSES[name]

    def _called(self, node: ast.Call, cls: type[Kernel], depth: int) -> Kernel:
        parameters = inspect.signature(cls).parameters
        names = list(parameters)
        given: dict[str, Value] = {}
        if len(node.args) > len(names):
            self._refuse(
                node.args[len(names)],
                f"{cls.__name__} takes {len(names)} arguments, {', '.join(names)}",
            )
        for name, argument in zip(names, node.args, strict=False):
            given[name] = self._argument(cls, name, argument, depth + 1)
        for keyword in node.keywords:
            name = keyword.arg or "**"
            if name not in names:
                self._refuse(
                    keyword,
                    f"{cls.__name__} has no argument {brief(name)}{did_you_mean(name, names)}; it "
                    f"has {', '.join(names)}",
                )
            if name in given:
                self._refuse(keyword, f"{name} of {cls.__name__} is given twice")
            given[name] = self._argument(cls, name, keyword.value, depth + 1)
        for name, parameter in parameters.items():
            if name not in given and parameter.default is parameter.empty:
                self._refuse(node, f"{cls.__name__} needs {name}, and has {len(given)} arguments")
        try:
            return checked_kernel(cls(**given))
        except InputError as error:
            self._refuse(node, shortened(said(error), 250))

    def _argument(self, cls: type[Kernel], name: str, node: ast.expr, depth: int) -> Value:
        """An argument of the kind that the class takes; of its value the class will judge."""
        if cls is OnInputs:
            return self._kernel(node, depth) if name == "kernel" else self._value(node, depth)
        limits = name.endswith("_bounds")
        if limits and isinstance(node, ast.Constant) and node.value == "fixed":
            return "fixed"
        value = self._value(node, depth)
        several = limits or (cls, name) in _PER_INPUT
        if not (_is_number(value) or (several and _are_numbers(value, nested=limits))):
            kind = "a number or a list of numbers" if several else "a number"
            self._refuse(node, f"{name} of {cls.__name__} must be {kind}, got {self._source(node)}")
        return value

    def _combined(self, node: ast.BinOp, depth: int) -> Value:
        """A sum or a product; next to a kernel, a number is a constant kernel."""
        left, right = (self._value(side, depth + 1) for side in (node.left, node.right))
        add = isinstance(node.op, ast.Add)
        if _is_number(left) and _is_number(right):
            return self._number(node, lambda: left + right if add else left * right)
        one, other = self._term(node.left, left), self._term(node.right, right)
        return (Sum if add else Product)(one, other)

    def _term(self, node: ast.expr, value: Value) -> Kernel:
        if isinstance(value, Kernel):
            return value
        if not _is_number(value):
            self._refuse(node, f"{self._source(node)} is neither a kernel nor a number")
        return ConstantKernel(self._number(node, lambda: value))

    def _power(self, node: ast.BinOp, depth: int) -> Value:
        """A whole power; other powers of a kernel need not be kernels."""
        base, exponent = (self._value(side, depth + 1) for side in (node.left, node.right))
        least = 1 if isinstance(base, Kernel) else -POWER
        if not _is_literal(node.right) or exponent not in range(least, POWER + 1):
            self._refuse(
                node.right,
                f"an exponent must be a whole number from {least} to {POWER}, got "
                f"{self._source(node.right)}",
            )
        if isinstance(base, Kernel):
            return Exponentiation(base, exponent)
        if not _is_number(base):
            self._refuse(node.left, f"{self._source(node.left)} has no power")
        return self._number(node, lambda: base**exponent)

    def _number(self, node: ast.expr, compute: Callable[[], int | float]) -> int | float:
        try:
            number = compute()
            if abs(number) <= LARGEST:
                return number
        except (OverflowError, ZeroDivisionError):
            pass
        self._refuse(node, f"{self._source(node)} is not a number up to {LARGEST:g}")

    def _source(self, node: ast.expr) -> str:
        return brief(ast.get_source_segment(self._text, node) or "")

    def _refuse(self, node: ast.expr | ast.keyword, what: str) -> NoReturn:
        # Python counts bytes.
        self._refuse_at(len(self._text.encode()[: node.col_offset].decode()), what)

    def _refuse_at(self, place: int, what: str) -> NoReturn:
        raise InputError(f"kernel, column {self._before + place + 1}: {what}.")


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float)


def _are_numbers(value: Value, *, nested: bool) -> bool:
    return isinstance(value, list | tuple) and all(
        _is_number(one) or (nested and _are_numbers(one, nested=False)) for one in value
    )


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_literal(node.operand)
    return isinstance(node, ast.Constant)


def _written(kernel: Kernel) -> str:
    if type(kernel) in (Sum, Product):
        return _written_combination(kernel)
    if type(kernel) is Exponentiation:
        if kernel.exponent not in range(1, POWER + 1):
            raise InputError(
                f"kernel has the exponent {brief(kernel.exponent)}; as text it must be a whole "
                f"number from 1 to {POWER}."
            )
        base = _bracketed(kernel.kernel, (Sum, Product, Exponentiation))
        return f"{base} ** {_written_value(kernel.exponent)}"
    if type(kernel) is OnInputs:
        return f"OnInputs({_written(kernel.kernel)}, {_written_value(list(kernel.inputs))})"
    if type(kernel) not in _LEAVES:
        raise InputError(
            f"a kernel of the class {shortened(type(kernel).__name__)} cannot be written as text; "
            f"those that can are {_LISTED}."
        )
    return f"{type(kernel).__name__}({', '.join(_arguments(kernel))})"


def _arguments(kernel: Kernel) -> list[str]:
    """All that define the function; limits of a search for them where they are not as usual."""
    written = {
        name: (_written_value(getattr(kernel, name)), _written_value(parameter.default))
        for name, parameter in inspect.signature(type(kernel)).parameters.items()
    }
    return [
        f"{name}={value}"
        for name, (value, usual) in written.items()
        if not name.endswith("_bounds") or value != usual
    ]


def _written_combination(kernel: Kernel) -> str:
    """A sum or a product, in which Python reads a + b + c as (a + b) + c."""
    one, other = kernel.k1, kernel.k2
    if type(kernel) is Sum:
        sign, left, right = "+", _written(one), _bracketed(other, (Sum,))
    else:
        sign, left, right = "*", _bracketed(one, (Sum,)), _bracketed(other, (Sum, Product))
    if _is_plain_constant(other):
        right = _written_value(other.constant_value)
    elif _is_plain_constant(one):  # not both: a product of numbers would be a number
        left = _written_value(one.constant_value)
    return f"{left} {sign} {right}"


def _bracketed(kernel: Kernel, weaker: tuple[type[Kernel], ...]) -> str:
    text = _written(kernel)
    return f"({text})" if type(kernel) in weaker else text


def _is_plain_constant(kernel: Kernel) -> bool:
    """Whether a number can stand for the kernel: a constant without limits of its own."""
    return type(kernel) is ConstantKernel and len(_arguments(kernel)) == 1


def _written_value(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        items = ", ".join(map(_written_value, value))
        if isinstance(value, list):
            return f"[{items}]"
        return f"({items},)" if len(value) == 1 else f"({items})"
    if not isinstance(value, int | float | str):
        raise InputError(f"kernel has the argument {brief(value)}, which cannot be text.")
    return repr(value)
