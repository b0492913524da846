"""Constraints on unknown functions g, and the points that are known to satisfy them.

Each constraint has a confidence sequence of its own, and one limit or two. With the sign s = -1 for
a limit from above, a limit says s g(x) >= least. Two sets follow from the bounds on s g:

sure(x)
    The lower bound is at least ``least``, for all limits: x satisfies all constraints.
possible(x)
    The upper bound is at least ``least``, for all limits. Any other x violates a constraint.

All bounds hold at all x and all times, each sequence's with probability 1 - delta. So with
probability 1 minus the sum of the deltas no x that is ever sure violates a constraint, and none
that is not possible satisfies all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelbounds.arrays import Array, as_scalar, brief
from kernelbounds.bandits.domains import Domain
from kernelbounds.bandits.policy import check_sequence
from kernelbounds.bandits.tracker import limited_values
from kernelbounds.bounds import DualBound
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.surface import Clipped
from kernelbounds.surface.at_points import CROSSING

Band = tuple[Array, Array]  # lower and upper bounds at points, (m,) each


def signed(band: Band, sign: int) -> Band:
    """Turn bounds on g into bounds on s g."""
    lower, upper = band
    return (lower, upper) if sign == 1 else (-upper, -lower)


class SafetyLimit(NamedTuple):
    """A limit of a constraint, s g(x) >= least, on the function g of one of the sequences."""

    name: str
    at: int
    sign: int
    least: float

    def __str__(self) -> str:
        return f"{self.name} {'>=' if self.sign == 1 else '<='} {self.sign * self.least:g}"


@dataclass(frozen=True)
class SafetyConstraints:
    """The limits of all constraints, and the confidence sequences of the limited functions.

    ``sequences`` begins with that of the objective, which may have limits, too.
    """

    sequences: Sequence[ConfidenceSequence]
    limits: Sequence[SafetyLimit]

    @classmethod
    def checked(
        cls, objective: ConfidenceSequence, given: Any, domain: Domain | None
    ) -> SafetyConstraints:
        """Make the constraints of a policy from what a user passed."""
        if not isinstance(given, Mapping) or not given:
            raise InputError(
                "constraints must be a dict of names and pairs (sequence, least), got "
                f"{brief(given)}."
            )
        sequences, limits = [objective], list[SafetyLimit]()
        for name, one in given.items():
            own, ends = _sequence_and_ends(name, one)
            check_sequence(own, f"the sequence of the constraint {name!r}", domain)
            if any(own is sequences[other.at] for other in limits):
                raise InputError(
                    f"the constraint {name!r} has the sequence of another one; each needs its own, "
                    "and limits from both sides are one constraint, (sequence, least, most)."
                )
            at = 0 if own is objective else len(sequences)
            if at:
                sequences.append(own)
            limits += [SafetyLimit(name, at, sign, sign * end) for sign, end in ends.items()]
        if len({one.dim for one in sequences} - {None}) > 1:
            dims = ", ".join(str(one.dim) for one in sequences)
            raise InputError(f"the points of all sequences need one dimension, got {dims}.")
        return cls(sequences, limits)

    @property
    def names(self) -> dict[str, int]:
        """The constraints with a sequence other than the objective's, and its position."""
        return {one.name: one.at for one in self.limits if one.at}

    def bands(self, points: Array) -> list[Band]:
        """Compute the bounds of all sequences at points (m, d)."""
        return [one.bounds(points) for one in self.sequences]

    def bands_in_time(self, points: Array, deadline: float) -> list[Band]:
        """Compute :meth:`bands`, with trivial bounds where the deadline comes too soon."""
        found = []
        for one in self.sequences:
            minus_lower, upper = (
                limited_values(side, points, side.a_priori.most(points), deadline)
                for side in (one.surface(-1), one.surface(1))
            )
            found.append((-minus_lower, upper))
        return found

    def sure(self, bands: Sequence[Band]) -> NDArray[np.bool_]:
        """Tell which points satisfy all constraints for sure, (m,)."""
        lower = [signed(bands[one.at], one.sign)[0] >= one.least for one in self.limits]
        return np.asarray(np.all(lower, axis=0))

    def possible(self, points: Array, bands: Sequence[Band]) -> NDArray[np.bool_]:
        """Tell which points may satisfy all constraints, as far as is known, (m,)."""
        pairs = zip(self.limits, self.surfaces(points), strict=True)
        upper = [signed(bands[one.at], one.sign)[1] >= least for one, (_, least) in pairs]
        return np.asarray(np.all(upper, axis=0))

    def surfaces(self, points: Array) -> list[tuple[Clipped, float]]:
        """Return the upper bounds on s g of all limits, and the least that s g must be.

        The latter is a little less, by rounding errors, because to exclude too few is valid.
        """
        found = []
        for one in self.limits:
            surface = self.sequences[one.at].surface(one.sign)
            rounding = CROSSING * float(surface.a_priori.trivial(points).max())
            found.append((Clipped(surface), one.least - rounding))
        return found

    def relative_widths(self, points: Array, bands: Sequence[Band]) -> list[Array]:
        """Return the widths of all bounds, as shares of the largest width without data."""
        found = []
        for one, (lower, upper) in zip(self.sequences, bands, strict=True):
            most = 2 * one.surface(1).a_priori.trivial(points)
            found.append((upper - lower) / np.maximum(most, np.finfo(float).tiny))
        return found

    def would_show(self, at: int, points: Array, bands: Sequence[Band]) -> NDArray[np.bool_]:
        """Tell which points would be sure if all s g were as large as possible at one of them.

        If s g(z) is large, then s g(x) is at least that plus the lower bound on the difference
        s (g(x) - g(z)). Where a bound says nothing of differences, any point would be sure.
        """
        shown = np.ones(len(points), dtype=bool)
        for one in self.limits:
            sequence = self.sequences[one.at]
            if isinstance(sequence.bound, DualBound):
                low, high = signed(bands[one.at], one.sign)
                falls = Clipped(replace(sequence.surface(-one.sign), reference=points[at]))
                shown &= np.maximum(low, high[at] - falls.values(points)) >= one.least
        return shown


def _sequence_and_ends(name: Any, given: Any) -> tuple[Any, dict[int, float]]:
    """Take a constraint apart: its sequence, and its limits by their signs."""
    if not isinstance(name, str):
        raise InputError(f"a constraint needs a name that is a text, got {brief(name)}.")
    if not (isinstance(given, tuple | list) and len(given) in (2, 3)):
        raise InputError(
            f"the constraint {name!r} must be a pair (sequence, least), or (sequence, least, "
            f"most), got {brief(given)}."
        )
    ends = {
        sign: as_scalar(end, f"a limit of the constraint {name!r}")
        for sign, end in zip((1, -1), given[1:], strict=False)
        if end is not None
    }
    if not ends:
        raise InputError(
            f"the constraint {name!r} has no limit; state what its value must be at least, or at "
            "most."
        )
    if len(ends) == 2 and ends[1] > ends[-1]:
        raise InputError(
            f"the constraint {name!r} wants at least {ends[1]:g} and at most {ends[-1]:g}, which "
            "no value can be."
        )
    return given[0], ends


@dataclass(frozen=True)
class Possible(Clipped):
    """A surface at points that may satisfy all constraints; minus infinity at all others.

    ``constraints`` are :meth:`SafetyConstraints.surfaces`.
    """

    constraints: Sequence[tuple[Clipped, float]]

    @property
    def smooth(self) -> bool:
        """False: the surface has a step at the edge of what is possible."""
        return False

    def values(self, points: Array) -> Array:
        """See :class:`Clipped`."""
        found = super().values(points)
        for surface, least in self.constraints:
            found = np.where(surface.values(points) < least, -np.inf, found)
        return found

    def ceilings(self, centres: Array, half_widths: Array) -> tuple[Array, Array]:
        """See :class:`Clipped`; minus infinity over boxes in which no point is possible."""
        values, over_box = super().ceilings(centres, half_widths)
        for surface, least in self.constraints:
            there, over = surface.ceilings(centres, half_widths)
            values = np.where(there < least, -np.inf, values)
            over_box = np.where(over < least, -np.inf, over_box)
        return values, over_box
