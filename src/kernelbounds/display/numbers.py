"""Numbers as short text, rounded so that what is said of them stays true.

A lower bound is rounded down and an upper bound up: ``[1.23, 1.46]`` contains the interval that it
stands for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

DIGITS = 3  # significant digits of a width or a regret, which is what one looks at
# Enough digits for the difference of two float64 numbers and their common digits before it.
EXACT_CONTEXT = Context(prec=800)
# Numbers smaller or larger than these are written with an exponent.
PLAIN_SMALLEST, PLAIN_LARGEST = 1e-4, 1e7


def at_most(value: float, digits: int = DIGITS) -> str:
    """Write an upper bound with this number of significant digits, rounded up.

    >>> at_most(0.12341)
    '0.124'
    """
    return _rounded(value, _step(value, digits), ROUND_CEILING)


def at_least(value: float, digits: int = DIGITS) -> str:
    """Write a lower bound with this number of significant digits, rounded down.

    >>> at_least(0.12349)
    '0.123'
    """
    return _rounded(value, _step(value, digits), ROUND_FLOOR)


def about(value: float, digits: int = 4) -> str:
    """Write a number to the nearest, with this number of significant digits and no exponent.

    >>> about(69614.2), about(0.51239)
    ('69610', '0.5124')
    """
    return f"{float(f'{value:.{digits}g}'):.10g}"


def interval(lower: float, upper: float) -> str:
    """Write both ends of an interval, with as many digits as its width has significant ones.

    >>> interval(1000.12341, 1000.23)
    '[1000.123, 1000.230]'
    """
    width = upper - lower
    known = 0 < width < math.inf
    step = _step(width, DIGITS) if known else min(_step(end, 2 * DIGITS) for end in (lower, upper))
    return f"[{_rounded(lower, step, ROUND_FLOOR)}, {_rounded(upper, step, ROUND_CEILING)}]"


def factor(excess: float, digits: int = DIGITS) -> str:
    """Write the factor 1 + excess, rounded up, with this number of significant digits of excess.

    >>> factor(0.12341), factor(2.3456), factor(3.1e12)
    ('1.124', '3.35', '3.11e+12')
    """
    if not math.isfinite(excess):
        return f"{excess:g}"
    if excess >= PLAIN_LARGEST:
        return at_most(math.nextafter(1 + excess, math.inf), digits)
    unit = Decimal(1).scaleb(_step(excess, digits), EXACT_CONTEXT)
    exact = EXACT_CONTEXT.add(Decimal(repr(float(excess))), 1)
    return f"{exact.quantize(unit, rounding=ROUND_CEILING, context=EXACT_CONTEXT):f}"


def coordinates(values: Iterable[float]) -> str:
    """Write a point; see :func:`coordinate`.

    >>> coordinates([0.123456, 1_700_000_000.25])
    '[0.1235, 1700000000.25]'
    """
    return f"[{', '.join(map(coordinate, values))}]"


def coordinate(value: float | str) -> str:
    """Write a coordinate of a point: four digits are enough to recognise it, or a level's name.

    Large ones, such as time stamps, have all digits before the decimal point and three after it:
    they are far from zero and close to each other.
    """
    if isinstance(value, str):
        return value
    large = math.isfinite(value) and 1e4 <= abs(value) < 1e12
    return f"{round(value, 3):.15g}" if large else f"{value:.4g}"


def _step(value: float, digits: int) -> int:
    """Return the power of ten of the last digit that is written."""
    if not math.isfinite(value) or value == 0:
        return 0
    return math.floor(math.log10(abs(value))) + 1 - digits


def _rounded(value: float, step: int, direction: str) -> str:
    value = float(value)  # The repr of a NumPy scalar looks different.
    if not math.isfinite(value):
        return f"{value:g}"
    unit = Decimal(1).scaleb(step, EXACT_CONTEXT)
    # The number is taken as it is written, 0.1 and not 0.1000000000000000055: what is read back is
    # the same float.
    found = Decimal(repr(value)).quantize(unit, rounding=direction, context=EXACT_CONTEXT)
    if found == 0:
        return "0"
    usual = PLAIN_SMALLEST <= abs(found) < PLAIN_LARGEST
    return f"{found:f}" if usual else f"{found.normalize(EXACT_CONTEXT):e}"


def confidence(delta: float) -> str:
    """Write the probability 1 - delta; it is written as 1 only where delta is 0.

    >>> confidence(0.01), confidence(1e-8)
    ('0.99', '1 - 1e-08')
    """
    return f"1 - {delta:g}" if 0 < delta < 1e-6 else f"{1 - delta:.12g}"
