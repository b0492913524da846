"""The bounds that users get: at points or functionals, with facts, classes and the level of f*.

Inside, there are upper bounds on s f* or, where it says so, on s (f* - level), for each sign s;
:func:`extremes` clips them to B sqrt(k(x,x)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bounds import Bound, ConfidenceSet, DualBound
from kernelbounds.bounds.bound import as_upper_bounds, checked_extremes
from kernelbounds.bounds.with_facts import (
    ConstrainedMinimum,
    NormalFacts,
    constrained,
    limits_in_boxes,
    refute_by_facts,
)
from kernelbounds.confidence.diagnosis import is_refuted, refute_if_empty
from kernelbounds.errors import EmptyConfidenceSetError, KernelBoundsError
from kernelbounds.functionals.targets import Functionals, Shifted, Targets, differences
from kernelbounds.structure.classes import AllOf

# Lower bounds that exceed upper ones by more than this, relative to the trivial bound, are not
# explained by CMM's search, whose errors stay below TIE = 1e-7 of it.
CROSSING = 1e-7
POINTS_AT_ONCE = 1024  # a query's working memory is this many kernel vectors


T = TypeVar("T", Array, Functionals, Targets)
R = TypeVar("R")


def in_chunks(points: T) -> list[T]:
    """Split points or functionals into runs of at most ``POINTS_AT_ONCE``."""
    starts = range(0, len(points), POINTS_AT_ONCE)
    return [points[start : start + POINTS_AT_ONCE] for start in starts]


def targets_at(points: Array, reference: Array | None) -> Targets:
    """Return what is bounded at points (m, d): values, or differences from one at a reference."""
    return points if reference is None else differences(points, reference)


def raw_extremes(
    known: ConfidenceSet, bound: Bound, points: Targets, signs: Sequence[int]
) -> Array:
    """Compute upper bounds on s (f* - level) at m points for the signs s, unclipped; (signs, m).

    Where f* = g + h with g alone in the kernel's space, they are bounds on s (g - level).
    """
    if known.evidence.classes is not None:
        return over_classes(known, lambda one: raw_extremes(one, bound, points, signs))
    if not known.count:
        return np.tile(known.trivial(points), (len(signs), 1))
    if known.facts:
        parts = [over_facts(known, bound, chunk, signs) for chunk in in_chunks(points)]
        return np.concatenate([[one.values for one in part] for part in parts], axis=1)
    # Overflow in a formula, where it happens, leads to an infinite bound.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = [checked_extremes(bound, known, chunk, signs) for chunk in in_chunks(points)]
    return np.concatenate(found, axis=1)


def over_classes(known: ConfidenceSet, compute: Callable[[ConfidenceSet], Array]) -> Array:
    """Compute upper bounds in each class, and what follows for f* from all of them."""
    assert known.evidence.classes is not None
    return known.evidence.classes.joined(in_each_class(known, compute))


def in_each_class(known: ConfidenceSet, compute: Callable[[ConfidenceSet], R]) -> list[R]:
    """Compute something in each class that the data do not refute.

    Refuted classes drop out of AnyOf; one refuted class of AllOf refutes the assumptions.
    """
    found, members = [], known.in_classes()
    left = [one for one in members if not is_refuted(one)]
    if not left or (len(left) < len(members) and isinstance(known.evidence.classes, AllOf)):
        refute_if_empty(known)
    for one in left:
        try:
            found.append(compute(one))
        except EmptyConfidenceSetError:  # by facts, or within rounding errors of B_min
            if (one is left[-1] and not found) or isinstance(known.evidence.classes, AllOf):
                raise
    return found


def over_facts(
    known: ConfidenceSet, bound: Bound, points: Targets, signs: Sequence[int]
) -> list[ConstrainedMinimum]:
    """Compute bounds over functions with the facts, for each sign, and what attains them."""
    assert isinstance(bound, DualBound)  # others are refused before
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = constrained(bound, known, points, signs)
    values = np.array([one.values for one in found])
    as_upper_bounds(bound, values, (len(signs), len(points)))
    if known.facts and np.any(values < -(1 + CROSSING) * known.trivial(points)):
        refuse_crossing(known, bound)
    return found


def with_level(known: ConfidenceSet, points: Targets, values: Array, signs: Sequence[int]) -> Array:
    """Turn bounds on s (f* - level), (signs, m), into bounds on s f*, rounded up."""
    level = known.level(points)
    if level is None:
        return values
    return np.array([level.add(sign, row) for sign, row in zip(signs, values, strict=True)])


def extremes(known: ConfidenceSet, bound: Bound, points: Targets, signs: Sequence[int]) -> Array:
    """Compute upper bounds on s f* at m points for the signs s, clipped; (signs, m).

    |f(x) - level| is at most B sqrt(k(x,x)), by Cauchy-Schwarz.
    """
    if known.evidence.classes is not None:
        result = over_classes(known, lambda one: extremes(one, bound, points, signs))
        if len(signs) == 2 and np.any(result.sum(axis=0) < -CROSSING * known.trivial(points)):
            refuse_crossing(known, bound)
        return result
    trivial = known.trivial(points)
    result = np.clip(raw_extremes(known, bound, points, signs), -trivial, trivial)
    result = with_level(known, points, result, signs)
    if known.facts:
        for sign, row in zip(signs, result, strict=True):
            np.minimum(row, limits_of(known, points, sign), out=row)
    # Facts may limit f* to a single value, beside which rounding errors are of the trivial bound.
    if len(signs) == 2 and np.any(result.sum(axis=0) < -CROSSING * trivial):
        refuse_crossing(known, bound)
    return result


def limits_of(known: ConfidenceSet, points: Targets, sign: int) -> Array | float:
    """Return the largest values of s f* at points that facts alone allow; infinity for none."""
    if not known.facts or (isinstance(points, Functionals) and not isinstance(points, Shifted)):
        return np.inf
    if not isinstance(points, Shifted):
        low, high = limits_in_boxes(known, points, points)
        return high if sign == 1 else -low
    if isinstance(points.base, Functionals) or not points.is_difference:
        return np.inf
    own = limits_of(known, points.base, sign)
    return own + limits_of(known, points.shift.centres[:1], -sign)


def binding_facts(known: ConfidenceSet, bound: Bound, points: Array) -> list[float]:
    """Return the share of points at which each fact makes a bound narrower, (number of facts,)."""
    if known.evidence.classes is not None:
        each = in_each_class(known, lambda one: binding_facts(one, bound, points))
        return [max(shares) for shares in zip(*each, strict=True)]
    counts, facts = np.zeros(len(known.facts)), NormalFacts.of(known) if known.count else None
    for chunk in in_chunks(points):
        upper = lower = np.full(len(chunk), np.inf)
        owners: Array = np.zeros((0, len(chunk)))  # of multipliers that are positive
        if facts is not None:
            both = over_facts(known, bound, chunk, (1, -1))
            upper, lower = with_level(known, chunk, np.array([one.values for one in both]), (1, -1))
            owners = (both[0].multipliers + both[1].multipliers).T
        for number, fact in enumerate(known.facts):
            low, high = fact.limits(chunk, chunk)
            own = [] if facts is None else facts.stated.owners == number
            counts[number] += np.sum(owners[own].any(axis=0) | (high < upper) | (-low < lower))
    return list(counts / len(points))


def refuse_crossing(known: ConfidenceSet, bound: Bound) -> NoReturn:
    """Say why lower bounds exceed upper ones, as far as one can tell."""
    bound.refute(known)
    if isinstance(bound, DualBound):
        refute_by_facts(bound, known)
    raise KernelBoundsError(
        f"the bound {bound!r} gives lower bounds that exceed its upper ones, though the data do "
        "not refute the assumptions: norm_bound is within rounding of the smallest value that they "
        f"allow, or the kernel {known.kernel} is evaluated with too few digits, or a bound of your "
        "own is wrong."
    )
