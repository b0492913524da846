"""The interface of every confidence bound, and what its guarantee covers.

A :class:`DualBound` is a minimum of one dual function, as CMM, DMM, AMM, AY and IGP are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from kernelbounds.arrays import EPS, Array
from kernelbounds.confidence.confidence_set import ConfidenceSet
from kernelbounds.confidence.diagnosis import norm_lower_bound, refute_if_empty
from kernelbounds.display import cards
from kernelbounds.engine import Largest, RidgePath
from kernelbounds.errors import InputError, KernelBoundsError
from kernelbounds.functionals.targets import Targets


@dataclass(frozen=True)
class Guarantee:
    """What holds with probability at least 1 - delta, and for which points and noise.

    Attributes
    ----------
    anytime : bool
        Whether the bounds hold after all numbers of observations together, so that one may look
        after each of them; else at one number, fixed beforehand.
    uniform : bool
        Whether they hold at all x together; else at each x on its own.
    adaptive : bool
        Whether the points of the data may have been chosen by looking at earlier outcomes. The
        noise is then what it is given all that was added before; else given all points.
    noise : str
        "sub-Gaussian"; "Gaussian" where it must be that, and independent; or "bounded" where no
        noise may exceed sigma.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> kb.CMM().guarantee
    Guarantee(anytime=True, uniform=True, adaptive=True, noise='sub-Gaussian')
    >>> print(kb.FixedDesign(noise="Gaussian").guarantee)
    one time, all x, fixed points, Gaussian noise
    """

    anytime: bool = True
    uniform: bool = True
    adaptive: bool = True
    noise: str = "sub-Gaussian"

    def __str__(self) -> str:
        return ", ".join(
            (
                "all times" if self.anytime else "one time",
                "all x" if self.uniform else "one x",
                "adaptive points" if self.adaptive else "fixed points",
                f"{self.noise} noise",
            )
        )

    @property
    def sequential(self) -> bool:
        """Whether one may choose where to observe next by the bounds, as policies do."""
        return self.anytime and self.uniform and self.adaptive


def require_sequential(bound: Bound) -> None:
    """Refuse a bound that is not valid where one chooses by it where to observe next."""
    if not bound.guarantee.sequential:
        raise InputError(
            "a policy looks at its bounds after every outcome, at all actions, and chooses by them "
            f"where to observe next, for which {bound!r} is not valid; use CMM()."
        )


# Bounds that agree within this, relative to the trivial bound, tie. CMM's search leaves differences
# below it, which depend on the points that are computed together.
TIE = 1e-7


class Bound(ABC):
    """A way to bound the values of the unknown function, given data and assumptions.

    A bound of one's own implements :meth:`extremes`, and that is all that a confidence sequence
    and the policies need; :func:`kernelbounds.check_bound` checks it. Gradients, certified maxima
    that follow the bound between points, and fast updates on fixed sets are there for a
    :class:`DualBound`.

    Its bounds hold at all times and points at once, with adaptively chosen points and sub-Gaussian
    noise; one that promises less says so in :attr:`guarantee`.

    Examples
    --------
    A bound that knows nothing but |f*(x)| <= B sqrt(k(x,x)), by Cauchy-Schwarz:

    >>> import kernelbounds as kb
    >>> class Trivial(kb.Bound):
    ...     def extremes(self, known, points, signs):
    ...         return np.tile(known.trivial(points), (len(signs), 1))
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1, bound=Trivial())
    >>> seq.update([0.5], 0.3)
    >>> [part.tolist() for part in seq.bounds([0.5])]
    [[-2.0], [2.0]]
    """

    @abstractmethod
    def extremes(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> Array:
        """For each sign s, an upper bound on s f*(x) at each of m points; (signs, m).

        Sign +1 gives the upper confidence bound, and -1 the negative of the lower one. ``known``
        holds at least one observation. A bound need not be below the trivial one,
        B sqrt(k(x,x)), and may be infinite, but not nan.
        """

    def __repr__(self) -> str:
        # Only a dataclass says what its settings are.
        bound: Any = self
        if not is_dataclass(bound):
            return object.__repr__(self)
        settings = [f"{one.name}={getattr(self, one.name)!r}" for one in fields(bound) if one.repr]
        return f"{type(self).__qualname__}({', '.join(settings)}) [{self.guarantee}]"

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        return cards.shown(self, self._card)

    def _card(self) -> cards.Html:
        bound: Any = self
        settings = [
            (one.name, "as in the paper" if value is None else value)
            for one in (fields(bound) if is_dataclass(bound) else ())
            for value in [getattr(self, one.name)]
            if one.repr
        ]
        about = (type(self).__doc__ or "").strip().partition("\n\n")[0]
        about = " ".join(about.split()).rstrip(",.") + "."
        made = about.startswith(f"{type(self).__name__}(")  # the docstring that dataclass makes
        return cards.card(
            f"Bound {type(self).__name__}",
            [*settings, ("holds for", self.guarantee)],
            note="" if made else about,
        )

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the bound: all times, points and noises, unless it says otherwise."""
        return Guarantee()

    @property
    def points_at_once(self) -> int | None:
        """The most different points at which the bound holds together; None: any number."""
        return None

    @property
    def bounds_functionals(self) -> bool:
        """Whether :meth:`extremes` takes linear functionals of f* in place of points."""
        return False

    def norm_lower_bound(self, known: ConfidenceSet) -> float:
        """The smallest B under which the confidence sets of this bound are not empty."""
        return norm_lower_bound(known)

    def refute(self, known: ConfidenceSet) -> None:
        """Raise :class:`EmptyConfidenceSetError` where the data refute the assumptions."""
        refute_if_empty(known)

    @property
    def uses_only_radius(self) -> bool:
        """Whether the bound uses R_t and B alone, and no other property of the noise or of f*.

        Such a bound holds for every kernel in which ||f*|| <= B, so the shares of parts may be
        chosen from the points, adaptive or not; other bounds get equal shares, see
        :meth:`ConfidenceSet.with_fixed_shares`. Where f* = g + h is misspecified, such a bound
        holds for g, because R_t is enlarged for h; other bounds are refused.
        """
        return False

    @property
    def takes_facts(self) -> bool:
        """Whether the bound is used with facts, which need bounds on sums of values."""
        return False

    def view_of(self, known: ConfidenceSet) -> ConfidenceSet:
        """The confidence set as this bound may see it: with shares fixed in advance, if need be.

        Shares of the parts of f* may be chosen from points where the bound uses R_t alone, or where
        the points were fixed beforehand. A bound that takes no facts does not see those that limits
        of the noise imply, either.
        """
        any_shares = self.uses_only_radius or not self.guarantee.adaptive
        seen = known if any_shares else known.with_fixed_shares()
        return seen if self.takes_facts else seen.without_facts()

    def below_amm_at(self, reference_ridge: float) -> tuple[float, ...] | None:
        """The ridges at which the bound is nowhere above AMM, given sigma^2/c; None: all ridges."""
        return ()

    def largest(self, known: ConfidenceSet, points: Targets, sign: int, tie: float) -> Largest:
        """The largest bound on s f* at the points, where it is, and the bound on -s f* there.

        Bounds within ``tie`` of the largest count as equal to it; of those places it is the one
        with the widest interval.
        """
        upper, opposite = checked_extremes(self, known, points, (sign, -sign))
        return Largest.of(upper, opposite, tie)


def checked_extremes(
    bound: Bound, known: ConfidenceSet, points: Targets, signs: Sequence[int]
) -> Array:
    """The extremes of a bound, refused where they are not upper bounds."""
    return as_upper_bounds(bound, bound.extremes(known, points, signs), (len(signs), len(points)))


def as_upper_bounds(bound: Bound, found: Any, wanted: tuple[int, int]) -> Array:
    """The array that a bound returned, (signs, m), refused where it is not upper bounds."""
    if fault := fault_of(found, wanted):
        raise KernelBoundsError(f"the bound {bound!r} {fault}.")
    return np.asarray(found, dtype=np.float64)


def fault_of(found: Any, wanted: tuple[int, int]) -> str | None:
    """Why a value is not upper bounds of a shape, to end a sentence with; None if it is."""
    try:
        values = np.asarray(found).astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError):
        return f"returned {type(found).__name__} in place of an array of real numbers"
    if values.shape != wanted:
        return (
            f"returned an array of shape {values.shape} for {wanted[0]} signs and {wanted[1]} "
            f"points; it must be {wanted}"
        )
    if not values.min(initial=np.inf) > -np.inf:  # the minimum is nan if any value is
        return "returned nan or minus infinity, which bounds nothing"
    return None


@dataclass(frozen=True)
class DualMinimum:
    """The values of a :class:`DualBound`, and the ridges and scales that attain them.

    Attributes
    ----------
    values : array of shape (signs, m)
        Upper bounds on s f*(x) at m points.
    ridges, scales : arrays of shape (signs, m)
        The alpha and the scale at which the formula of :class:`DualBound` gives these values.
    path : RidgePath or None
        The path on which the ridges were found, where they form a continuum.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> seq.update([[0.2], [0.8]], [0.1, 0.9])
    >>> found = kb.AMM(ridge=0.5).attained(seq.known, np.array([[0.4]]), signs=(1, -1))
    >>> found.ridges.tolist()
    [[0.5], [0.5]]
    >>> bool(found.values[0, 0] == seq.upper([0.4], bound=kb.AMM(ridge=0.5))[0])
    True
    """

    values: Array
    ridges: Array
    scales: Array
    path: RidgePath | None = None


def dual_value(unexplained: Array, scale: Array, joint_bound: Array) -> Array:
    """unexplained / (2 scale) + scale joint_bound / 2, as in :class:`DualBound`, rounded up.

    ``joint_bound`` has at most three roundings of EPS / 2 each, and this function adds three: 3 EPS
    in all, for which 4 EPS are added.
    """
    first, second = unexplained / (2 * scale), scale * joint_bound / 2
    return np.asarray(first + second + 4 * EPS * (np.abs(first) + second))


class DualBound(Bound):
    """A bound that is a minimum of one dual function over ridges and scales.

    Over some ridges alpha, it is the smallest of

        s mu_alpha(x) + beta_alpha rho_alpha(x)
            =  min over scale > 0 of  (k(x,x) - p'(K + alpha I)^-1 p) / (2 scale)
                                      + scale joint_bound_alpha / 2,

    with p = k_t(x) - s scale y and joint_bound_alpha = beta_alpha^2 + E_alpha / alpha, which bounds
    ||f_t - y_t||^2 / alpha + ||f||^2 for all functions f in question. CMM, DMM, AMM,
    AY and IGP are of this kind. Every ridge in question and every scale gives a valid bound.

    An interval around ridge estimates is written most easily as an
    :class:`~kernelbounds.bounds.EllipsoidBound`, which has all methods but
    ``ellipsoids``; where its factors are not R~_alpha / sqrt(alpha), it needs a
    :meth:`joint_bound` of its own.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from kernelbounds.bounds import DualBound
    >>> isinstance(kb.AMM(), DualBound)
    True
    """

    bounds_functionals = True  # The dual sees a point by its representer alone.

    takes_facts = True  # Sums of values with multipliers are bounded as values are.

    @property
    def exact(self) -> bool:
        """Whether the bound is the maximum of s f(x) over functions f of norm at most B.

        Such a bound changes between x and c by at most B |phi(x) - phi(c)|.
        """
        return False

    @abstractmethod
    def attained(self, known: ConfidenceSet, points: Targets, signs: Sequence[int]) -> DualMinimum:
        """The extremes, and the ridges and scales at which they are attained."""

    @abstractmethod
    def joint_bound(self, known: ConfidenceSet, ridges: Array) -> Array:
        """joint_bound_alpha for an array of ridges, made from quantities that are rounded up."""

    def lasting(self, known: ConfidenceSet) -> bool:
        """Whether the same ridges are used when observations are added.

        False where the ridge follows the data, as the reference ridge does without noise, or with
        noise of an unknown scale.
        """
        return known.stated.noise.scale_is_stated and known.stated.misfit > 0
