"""Numbers as short text, rounded so that what is said of them stays true.

A lower bound is rounded down and an upper bound up: ``[1.23, 1.46]`` contains the interval that it
stands for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

DIGITS = 3  # of a width or of a regret: what one looks at
# Enough for the difference of two float64 numbers and their common digits before it.
EXACT = Context(prec=800)
# Numbers outside of this are written with an exponent.
SMALLEST, LARGEST = 1e-4, 1e7


def at_most(value: float, digits: int = DIGITS) -> str:
    """An upper bound, with so many significant digits.

    >>> at_most(0.12341)
    '0.124'
    """
    return _rounded(value, _step(value, digits), ROUND_CEILING)


def at_least(value: float, digits: int = DIGITS) -> str:
    """A lower bound, with so many significant digits.

    >>> at_least(0.12349)
    '0.123'
    """
    return _rounded(value, _step(value, digits), ROUND_FLOOR)


def interval(lower: float, upper: float, digits: int = DIGITS) -> str:
    """Both ends, with so many significant digits of the width.

    >>> interval(1000.12341, 1000.23)
    '[1000.123, 1000.230]'
    """
    width = upper - lower
    known = 0 < width < math.inf
    step = _step(width, digits) if known else min(_step(end, 2 * digits) for end in (lower, upper))
    return f"[{_rounded(lower, step, ROUND_FLOOR)}, {_rounded(upper, step, ROUND_CEILING)}]"


def coordinates(values: Iterable[float]) -> str:
    """A point, see :func:`coordinate`.

    >>> coordinates([0.123456, 1_700_000_000.25])
    '[0.1235, 1700000000.25]'
    """
    return f"[{', '.join(map(coordinate, values))}]"


def coordinate(value: float) -> str:
    """Of a point: four digits are enough to recognise it, and all before the decimal point.

    Large ones, such as time stamps, have three digits after it, too: they are far from zero and
    close to each other.
    """
    large = math.isfinite(value) and 1e4 <= abs(value) < 1e12
    return f"{round(value, 3):.15g}" if large else f"{value:.4g}"


def _step(value: float, digits: int) -> int:
    """The power of ten of the last digit that is written."""
    if not math.isfinite(value) or value == 0:
        return 0
    return math.floor(math.log10(abs(value))) + 1 - digits


def _rounded(value: float, step: int, direction: str) -> str:
    value = float(value)  # of NumPy, whose repr is another
    if not math.isfinite(value):
        return f"{value:g}"
    unit = Decimal(1).scaleb(step, EXACT)
    # As it is written, 0.1 and not 0.1000000000000000055: what is read back is the same float.
    found = Decimal(repr(value)).quantize(unit, rounding=direction, context=EXACT)
    if found == 0:
        return "0"
    usual = SMALLEST <= abs(found) < LARGEST
    return f"{found:f}" if usual else f"{found.normalize(EXACT):e}"
