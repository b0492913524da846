"""Decide which bound may be asked for, at how many points, and how often."""

from __future__ import annotations

import warnings
from typing import Any

from kernelbounds.arrays import brief
from kernelbounds.bounds import Bound, ConfidenceSet, DualBound, FixedDesign
from kernelbounds.bounds.with_facts import inequalities, least_norm_with_facts
from kernelbounds.errors import InputError
from kernelbounds.facts import AtLeast
from kernelbounds.functionals import Derivative

# Facts that need a norm this many times B are taken to contradict each other, whatever B is.
CONTRADICTION = 1e3


def checked_bound(bound: Any) -> Bound:
    """Return the bound that was given, or refuse an object that is not a bound."""
    if not isinstance(bound, Bound):
        raise InputError(
            "bound must be one of CMM(), DMM(), AMM(), AY(), IGP(eta), FixedDesign(), or an object "
            f"of a subclass of kernelbounds.Bound, got {brief(bound)}."
        )
    return bound


def allowed_bound(bound: Bound, known: ConfidenceSet) -> Bound:
    """Return the bound that was given, or refuse it where it does not hold for this sequence."""
    checked, epsilon = checked_bound(bound), known.stated.misspecification
    name = type(checked).__name__
    law, speaks_of_noise = known.stated.noise, not checked.uses_only_radius
    if speaks_of_noise and (known.stated.delta == 0 or not law.is_sub_gaussian):
        raise InputError(
            f"{name} needs random sub-Gaussian noise and a positive delta, got {law} with delta "
            f"{known.stated.delta:g}; use CMM(), DMM() or AMM(), which do not."
        )
    if speaks_of_noise and not law.scale_is_stated and not isinstance(checked, FixedDesign):
        raise InputError(
            f"{name} needs a noise scale that was stated before the data, and here it is unknown; "
            "use CMM(), DMM() or AMM(), which allow for that."
        )
    if epsilon and not checked.uses_only_radius:
        raise InputError(
            f"{name} is not made from R_t, and so does not allow for a "
            f"misspecification of {epsilon:g}; CMM, DMM and AMM do."
        )
    if known.evidence.classes is not None and not (
        checked.uses_only_radius and isinstance(checked, DualBound)
    ):
        raise InputError(
            f"{name} is not made from R_t, which is what holds in all classes at once; use "
            "CMM(), DMM() or AMM()."
        )
    if known.stated_facts and not checked.takes_facts:
        raise InputError(
            f"{name} is not a DualBound, and facts need bounds on sums of values with "
            "multipliers; use CMM(), DMM() or AMM(), or a sequence without facts."
        )
    if known.radius_engine.approximation() is not None and not (
        checked.uses_only_radius or isinstance(checked, FixedDesign)
    ):
        raise InputError(
            f"{name} is not known with a sparse engine; use CMM(), DMM() or AMM(), or "
            "FixedDesign() where no point was chosen by looking at outcomes. A "
            "bound of your own can be used there if known.radius is all that it knows of the "
            "noise, and its property uses_only_radius returns True."
        )
    return checked


def refute_facts(known: ConfidenceSet) -> None:
    """Refuse facts that contradict each other, or the norm bound, before there are data."""
    for fact in known.stated_facts:
        steep = isinstance(fact, AtLeast) and isinstance(fact.functional, Derivative)
        if steep and (known.assumptions.misspecification or known.evidence.offset.constant is None):
            raise InputError(
                f"{fact} cannot be used with misspecification, nor with a mean function as offset: "
                "what these add to f* may be steep; say it with Slope(axis, low, high)."
            )
    if not known.stated_facts or inequalities(known) is None:
        return
    norm_bound, needed = known.assumptions.norm_bound, least_norm_with_facts(known)
    if needed <= norm_bound * (1 + 1e-9):
        return
    facts = " and ".join(map(str, known.stated_facts))
    if needed > CONTRADICTION * max(norm_bound, 1e-280):
        raise InputError(f"the facts contradict each other: no function satisfies {facts}.")
    larger = f"{needed / norm_bound:.4g} times as large" if norm_bound else "positive"
    raise InputError(
        f"no function of norm at most {norm_bound:.4g} satisfies {facts}: "
        + (
            f"the bounds on the parts must be {larger}."
            if known.evidence.parts is not None
            else f"norm_bound must be at least {needed:.4g}, or the offset another one."
        )
    )


class Looks:
    """A record of when bounds that hold at one time only were asked for."""

    def __init__(self) -> None:
        self._observations: int | None = None  # the count when such a bound was first asked for
        self._has_warned = False

    def add(self, bound: Bound, points: int, observations: int, stacklevel: int = 3) -> None:
        """Refuse more different points than a bound allows, and warn of a second time, once."""
        if bound.points_at_once is not None and points > bound.points_at_once:
            raise InputError(
                f"{bound!r} holds at {bound.points_at_once} points together, got {points} "
                "different ones; ask for fewer, or make it for more."
            )
        if bound.guarantee.anytime or not observations:
            return
        if self._observations is None:
            self._observations = observations
        elif self._observations != observations and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{bound!r} holds at one number of observations, fixed beforehand: it was asked "
                f"for at {self._observations} and now at {observations}; to use it at n of them, "
                "make the sequence with delta / n.",
                UserWarning,
                stacklevel=stacklevel,
            )
