"""Check what users pass and turn it into float64 arrays, once, at the public boundary.

The functions ``as_...`` return the value in its checked form, or raise an
:class:`~kernelbounds.errors.InputError` that says what was received and what was expected. At the
end of the file is arithmetic of arrays that several rooms share.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelbounds.errors import InputError

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)  # the rounding error: the distance from 1 to the next number

LARGEST = 1e100  # the largest input or outcome: squares and sums must not overflow
LARGEST_COUNT = 10**9  # the largest number of observations, rounds or other counted things
MISSING_TYPES = ("NoneType", "NAType", "NaTType")  # types of missing values; two are pandas'


def as_points(values: ArrayLike, name: str, dim: int | None = None, *, one: bool = False) -> Array:
    """Check points: a finite ``(n, d)`` array with n, d >= 1, which is a copy of the caller's.

    With ``one``, a single point may have the shape (d,). Several numbers in one dimension stay
    an error: they may be meant as several points.
    """
    points = as_floats(values, name)
    if one and points.ndim == 1 and points.size and dim in (None, points.size):
        points = points[None]
    _check_points(points, name, dim)
    return points


def _check_points(points: Array, name: str, dim: int | None) -> None:
    if points.size == 0:
        raise InputError(f"{name} is empty (shape {points.shape}); pass at least one point.")
    if points.ndim != 2:
        raise InputError(
            f"{name} must be a 2-D array of shape (points, dimensions), got shape {points.shape}; "
            "use reshape(-1, 1) for many points in one dimension, reshape(1, -1) for one point."
        )
    if dim is not None and points.shape[1] != dim:
        raise InputError(
            f"{name} has {points.shape[1]} columns, but the points so far have {dim} dimensions."
        )


def as_observations(points: ArrayLike, outcomes: ArrayLike, dim: int | None) -> tuple[Array, Array]:
    """Check ``(n, d)`` points and their ``(n,)`` outcomes, or one point and a scalar outcome."""
    y, x = as_floats(outcomes, "y"), as_floats(points, "X")
    if y.ndim == 0:
        x = np.atleast_2d(x)
        y = y.reshape(1) if len(x) == 1 else y
    _check_points(x, "X", dim)
    return x, _sized(y, "y", len(x))


def set_checked(one: Any, **fields: Any) -> None:
    """Give fields of a frozen dataclass their checked values, while it is being made."""
    for name, value in fields.items():
        object.__setattr__(one, name, value)


def as_flag(value: Any, name: str) -> bool:
    """Check that a value is True or False, and return it."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {brief(value)}.")
    return bool(value)


def as_vector(values: ArrayLike, name: str, size: int) -> Array:
    """Check a finite array of shape ``(size,)``, which has one number for each point."""
    return _sized(as_floats(values, name), name, size)


def _sized(vector: Array, name: str, size: int) -> Array:
    if vector.shape != (size,):
        raise InputError(
            f"{name} must be a 1-D array with one number for each of {size} points, "
            f"got shape {vector.shape}."
        )
    return vector


def as_scalar(
    value: Any,
    name: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> float:
    """Check a finite number with ``above < value`` and ``least <= value <= most``."""
    try:
        unusual = isinstance(value, str | bytes | bool | np.bool_ | np.complexfloating)
        if unusual or _count_masked(value):
            raise TypeError
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {brief(value)}.") from None
    if not (math.isfinite(number) and above < number and least <= number <= most):
        limits = [f"above {above:g}"] if above > -math.inf else []
        limits += [f"at least {least:g}"] if least > -math.inf else []
        limits += [f"at most {most:g}"] if most < math.inf else []
        raise InputError(
            f"{name} must be a finite number {' and '.join(limits)}".rstrip() + f", got {number:g}."
        )
    return number


def as_outcome(value: Any, name: str) -> float:
    """Check a finite number, which may come as an array of one."""
    array = as_floats(value, name)
    if array.size != 1:
        raise InputError(f"{name} must be a number, got {brief(value)}.")
    return float(array.item())


def as_whole(value: Any, name: str, *, least: int, most: int = LARGEST_COUNT) -> int:
    """Check a whole number with ``least <= value <= most``."""
    number = as_scalar(value, name, least=least, most=most)
    if not number.is_integer():
        raise InputError(f"{name} must be a whole number, got {number:g}.")
    return int(number)


def as_generator(value: Any, name: str) -> np.random.Generator:
    """Check a source of randomness, which the caller has seeded."""
    if not isinstance(value, np.random.Generator):
        raise InputError(f"{name} must be a numpy.random.Generator, got {brief(value)}.")
    return value


def as_floats(values: ArrayLike, name: str, *, largest: float = LARGEST) -> Array:
    """Check a finite array of any shape, and copy it; True and False become 1 and 0."""
    refuse_masked(values, name)
    try:
        raw = np.asarray(values)
    except InputError:  # raised by an object of this package, which says what it is for
        raise
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of real numbers, got {brief(values)}.") from None
    if raw.dtype.kind not in "fiub":
        raise InputError(_not_numbers(raw, values, name))
    array = np.array(raw, dtype=np.float64)
    if raw.dtype.kind in "iu" and not _exact(raw, array):
        raise InputError(
            f"{name} has whole numbers above 2^53, which lose digits as floats; subtract a common "
            "origin first."
        )
    if not np.abs(array).max(initial=0.0) <= largest:  # False for NaN, too
        raise InputError(
            f"{name} contains NaN, an infinity or a magnitude above {largest:g}; "
            "all values must be finite."
        )
    return array


def as_numbers(values: ArrayLike, name: str, *, least: float = 0.0, positive: bool = True) -> Array:
    """Check numbers for a formula: finite, at least ``least`` and, if asked for, positive."""
    # Formulas are also used far beyond any number of rounds, so that LARGEST is no limit here.
    array = as_floats(values, name, largest=float(np.finfo(np.float64).max))
    if not np.all(array >= least):
        raise InputError(f"{name} must be at least {least:g}, got {brief(values)}.")
    if positive and not np.all(array > 0):
        raise InputError(f"{name} must be above 0, got {brief(values)}.")
    return array


def check_shapes(**numbers: Array) -> None:
    """Refuse arrays that cannot be broadcast against each other."""
    try:
        np.broadcast_shapes(*(array.shape for array in numbers.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in numbers.items())
        raise InputError(f"these shapes do not fit together: {shapes}.") from None


def refuse_masked(values: Any, name: str) -> None:
    """Refuse masked values, which NumPy would use as data."""
    if masked := _count_masked(values):
        raise InputError(
            f"{name} has {masked} masked value(s), which cannot be used as data; drop their rows "
            "first, from the points and from the outcomes."
        )


def _count_masked(values: Any) -> int:
    """The number of masked entries of an array, or of arrays in nested lists."""
    if isinstance(values, np.ma.MaskedArray):
        return int(np.count_nonzero(values.mask))
    if isinstance(values, list | tuple):
        nested = (one for one in values if isinstance(one, np.ma.MaskedArray | list | tuple))
        return sum(_count_masked(one) for one in nested)
    return 0


def _not_numbers(raw: NDArray[Any], values: Any, name: str) -> str:
    """Describe what an array has in place of numbers, and what to do about it."""
    if raw.dtype.kind in "mM":
        what = "dates" if raw.dtype.kind == "M" else "time spans"
        return (
            f"{name} has {what} ({raw.dtype}) and not numbers; convert to seconds, such as "
            "(times - times[0]) / numpy.timedelta64(1, 's')."
        )
    if raw.dtype.kind in "US" and raw.ndim:
        return f"{name} has text and not numbers, got {brief(values)}; convert with astype(float)."
    if raw.dtype.kind == "O" and raw.ndim:
        kinds = [type(one).__name__ for one in raw.flat]
        missing = sum(kind in MISSING_TYPES for kind in kinds)
        if missing:
            return f"{name} has {missing} missing value(s), None or NA; drop their rows first."
        found = ", ".join(sorted(set(kinds)))
        return (
            f"{name} has Python objects ({shortened(found)}) and not numbers; convert with "
            "numpy.asarray(..., dtype=float)."
        )
    return f"{name} must be an array of real numbers, got {brief(values)}."


def _exact(whole: NDArray[Any], floats: Array) -> bool:
    """Whether whole numbers were turned into floats without loss."""
    if np.abs(floats).max(initial=0.0) <= 2.0**53:
        return True
    with np.errstate(invalid="ignore"):  # a float may be just above the largest whole number
        return np.array_equal(whole, floats.astype(whole.dtype))


def brief(value: object) -> str:
    """Describe a value that was received, for a message: on one short line."""
    try:
        text = repr(value)
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return shortened(text)


def shortened(text: str, most: int = 60) -> str:
    """Shorten a text for a message: one line of at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum of two numbers or arrays and its error, which is a float (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def carried_sum(a: Any, a_rest: Any, b: Any, b_rest: Any = 0.0) -> tuple[Any, Any]:
    """The sum of two numbers or arrays with their rests, and the rest that rounding leaves of it.

    A running sum with its rest has twice the digits, so that millions of terms lose nothing.
    """
    total, error = two_sum(a, b)
    rest = error + a_rest + b_rest
    rounded = total + rest
    return rounded, rest - (rounded - total)


def column_dots(left: Array, right: Array) -> Array:
    """The inner product of each column of one array (n, m) with that of another, (m,)."""
    return np.asarray(np.vecdot(left.T, right.T))


def with_room(buffer: NDArray[Any], count: int, used: int, *, axes: int = 1) -> NDArray[Any]:
    """Return the buffer if it has room for ``count`` rows, or a larger one with its ``used`` rows.

    A square buffer grows along two ``axes``. Capacities grow by half at least, so that appending a
    row takes O(1) copies of a row, amortised.
    """
    if count <= len(buffer):
        return buffer
    capacity = max(64, count, len(buffer) * 3 // 2)
    larger = np.empty_like(buffer, shape=(capacity,) * axes + buffer.shape[axes:])
    part = (slice(used),) * axes
    larger[part] = buffer[part]
    return larger
