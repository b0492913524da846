"""Bounds as users get them: checked, and never beyond the trivial ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds import Bound, Knowledge
from kernelbounds.bounds.bound import checked_extremes
from kernelbounds.errors import KernelBoundsError
from kernelbounds.functionals.targets import Functionals, Targets

# Lower bounds that exceed upper ones by more than this, relative to the trivial bound, are not
# explained by CMM's search, whose errors stay below TIE = 1e-7 of it.
CROSSING = 1e-7
POINTS_AT_ONCE = 1024  # a query's working memory is this many kernel vectors


T = TypeVar("T", Array, Functionals, Targets)


def in_parts(points: T) -> list[T]:
    """The points, a bounded number at a time."""
    starts = range(0, len(points), POINTS_AT_ONCE)
    return [points[start : start + POINTS_AT_ONCE] for start in starts]


def raw_extremes(known: Knowledge, bound: Bound, points: Targets, signs: Sequence[int]) -> Array:
    """Upper bounds on s (f* - level) at m points for the signs s, as the bound has them.

    Where f* = g + h is not of the kernel's space, g stands for f*; (signs, m).
    """
    if not known.count:
        return np.tile(known.trivial(points), (len(signs), 1))
    # Overflow in a formula, where it happens, leads to an infinite bound.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        parts = [checked_extremes(bound, known, part, signs) for part in in_parts(points)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def clip(values: Array, trivial: Array) -> Array:
    """Limited to +-B sqrt(k(x,x)): |f(x) - level| is never larger, by Cauchy-Schwarz."""
    return np.asarray(np.maximum(np.minimum(values, trivial), -trivial))


def with_level(known: Knowledge, points: Targets, values: Array, signs: Sequence[int]) -> Array:
    """Bounds on s f* from those on s (f* - level), (signs, m), rounded up."""
    level = known.level(points)
    if level is None:
        return values
    return np.array([level.add(sign, part) for sign, part in zip(signs, values, strict=True)])


def limited(
    known: Knowledge, points: Targets, values: Array, trivial: Array, signs: Sequence[int]
) -> Array:
    """Bounds on s f* (signs, m), no larger and no smaller than s f* can be."""
    ends = (np.array([end] * len(signs)) for end in (trivial, -trivial))
    most, least = (with_level(known, points, end, signs) for end in ends)
    return np.asarray(np.maximum(np.minimum(values, most), least))


def extremes(known: Knowledge, bound: Bound, points: Targets, signs: Sequence[int]) -> Array:
    """Upper bounds on s f* at m points for the signs s, clipped; (signs, m)."""
    trivial = known.trivial(points)
    result = clip(raw_extremes(known, bound, points, signs), trivial)
    if len(signs) == 2 and np.any(result.sum(axis=0) < -CROSSING * trivial):
        refuse_crossing(known, bound)
    return with_level(known, points, result, signs)


def refuse_crossing(known: Knowledge, bound: Bound) -> None:
    """Lower bounds exceed upper ones: say why, as far as one can tell."""
    bound.refute(known)
    if type(bound).__module__.split(".")[0] != __name__.split(".")[0]:
        raise KernelBoundsError(
            f"the bound {bound!r} gives lower bounds that exceed its upper ones, though the data "
            "do not refute the assumptions."
        )
    raise KernelBoundsError(
        "lower bounds exceed upper ones, though the data do not refute the assumptions: either "
        "norm_bound is within rounding of the smallest value that they allow, or the kernel "
        f"{known.kernel} is evaluated with too few digits."
    )
