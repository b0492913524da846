"""Actions as users give them: arrays, suggestions, or dicts of named coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelbounds.arrays import Array, as_points, as_rows
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.records import Suggestion
from kernelbounds.errors import InputError

Points = ArrayLike | Mapping[str, float] | Suggestion | Sequence[Suggestion]


def by_position(X: Any, domain: Domain | None) -> Any:
    """Points, where they are suggestions or dicts, as numbers."""
    if isinstance(X, Suggestion):
        return X.x
    if isinstance(X, Mapping):
        if not isinstance(domain, Box):
            raise InputError("a point can be a dict only for a Box with names.")
        return domain.point(X)
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping | Suggestion):
        return [by_position(one, domain) for one in X]
    return X


def as_actions(X: Points, domain: Domain | None, dim: int | None) -> Array:
    """One action or several, (n, d)."""
    return as_points(as_rows(by_position(X, domain), "X"), "X", dim)


def space_of(
    domain: Domain | None,
    dim: int | None,
    actions: ArrayLike | None,
    fixed: Mapping[Any, float] | None,
) -> Domain:
    """The set to choose from in a round."""
    if actions is not None:
        if fixed is not None:
            raise InputError("pass either actions or fixed, not both.")
        return Finite.of_checked(as_points(actions, "actions", dim))
    if domain is None:
        raise InputError(
            "there is nothing to choose from: pass actions=, or a domain (kernelbounds.Box or "
            "Finite) when the policy is made."
        )
    if fixed is None:
        return domain
    if not isinstance(domain, Box):
        raise InputError("fixed needs a Box as domain.")
    return domain.fixed(fixed)


def warn_if_outside(box: Box, points: Array, stacklevel: int) -> None:
    """Outcomes elsewhere are data as good as others, but perhaps the units are wrong."""
    outside = (points < box.lower) | (points > box.upper)
    if outside.any():
        row, at = np.argwhere(outside)[0]
        warnings.warn(
            f"{int(outside.any(axis=1).sum())} of {len(points)} points told are outside of the "
            f"box, the first with {points[row, at]:g} in coordinate {box.label(at)}, which is "
            f"between {box.lower[at]:g} and {box.upper[at]:g}; the outcomes are used as data.",
            stacklevel=stacklevel + 1,
        )
