"""SafeUCB: optimise f*, and try only points at which constraints are known to hold.

A point is safe if it is sure to satisfy all constraints (``constraints.py``), or if it is a seed,
which the user declares to be safe. Only points that were themselves found to be safe are asked for,
by the bounds at those very points. The rule by which one of them is chosen, and how a box is
searched for them, decide how much is found, and not whether it is safe.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_floats, as_outcome, as_points, as_vector, brief
from kernelbounds.bandits.answers import Certificate, Suggestion
from kernelbounds.bandits.batches import Turn, choose_in_turn, with_imagined_outcomes
from kernelbounds.bandits.branch_and_bound import BranchAndBound, check_certifiable
from kernelbounds.bandits.certify import Rounding, certify_best, certify_finite
from kernelbounds.bandits.constraints import Band, Possible, SafetyConstraints, signed
from kernelbounds.bandits.domains import Box, Domain, Finite, among
from kernelbounds.bandits.maximisers import Ascent, Function, LowerBound, Maximum, spread
from kernelbounds.bandits.policy import Points, Policy
from kernelbounds.errors import InputError
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.surface import Clipped

# The candidates of a box: points that fill it, and towards each of a few safe points fewer of them,
# which are moved there by halves again and again, so that small safe sets have candidates, too.
FILLING, ANCHORS, AROUND, HALVINGS = 512, 4, 64, 6
# Safe points of which one asks whether they are expanders, at most; each takes about as long as
# the bounds at all candidates.
EXPANDERS = 16
# The share of a certificate's time in which constraints are bounded over a finite set.
CONSTRAINTS_SHARE = 0.3


class SafeUCB(Policy):
    """Optimise f*, and try only points that are known to satisfy constraints.

    A point is asked for only if the lower bounds at that very point say that it satisfies every
    constraint, or if it is one of the seed points, which you declare to be safe. With probability
    at least 1 minus the sum of the deltas of the constraints' sequences, **no point that is ever
    asked for violates a constraint**, if the seed points do not.

    Among safe points there are two to choose from, and the one is asked for whose interval is wider
    in relation to what was known without data:

    - the safe point with the largest upper bound on f*;
    - if a point that is not known to be safe may be so, and has a larger upper bound on f*: an
      expander, that is the safe point z with the widest interval of g at which a good outcome
      would help. If g(z) were as large as it can be, then bounds on the difference g(x) - g(z)
      would show such a point x to be safe.

    So the safe set is enlarged where that may pay, and neither of the two is forgotten. On a box,
    points are chosen from :meth:`candidates`: some fill the box, some are near points that are
    known to be safe, and some are on the way uphill from the best of these. That is a search, and
    it promises nothing but that each point was checked.

    :meth:`certificate` compares the best safe point with all points that may satisfy the
    constraints: its regret is that among all such points, known to be safe or not.

    Parameters
    ----------
    sequence : ConfidenceSequence
        That of f*. The sequence is not copied, and :meth:`tell` updates it.
    domain : Box or Finite, optional
        The actions to choose from; None if each :meth:`ask` brings its own.
    constraints : dict
        For each name a pair (sequence of g, least), which means g(x) >= least at all x that are
        tried; or (sequence of g, least, most), of which one may be None: (sequence, None, 12.0)
        means g(x) <= 12. The sequence may be that of f* itself, and then :meth:`tell` takes no
        value of this name.
    seed : points, optional
        Points of the domain that you know to be safe, given as for :meth:`tell`. Without any, the
        sequences must know some safe point already.
    minimise : bool
        Whether small values of f* are wanted.
    feasible : function, optional
        Moves points (m, d) of a box to points near them that can be carried out; None if all can
        be. Points are moved before they are checked. A policy with a function cannot be saved.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> objective = ConfidenceSequence(Matern(1.0, nu=2.5), norm_bound=2.0, noise_scale=0.05)
    >>> heat = ConfidenceSequence(Matern(1.0, nu=2.5), norm_bound=2.0, noise_scale=0.05)
    >>> safe = SafeUCB(
    ...     objective, constraints={"heat": (heat, None, 0.7)},
    ...     domain=Finite(np.linspace(0, 1, 21)[:, None]), seed=[[0.0]],
    ... )
    >>> for _ in range(30):
    ...     x = safe.ask().x
    ...     safe.tell(x, float(np.sin(2 * x[0])), {"heat": float(x[0])})
    >>> bool(heat.points.max() <= 0.7), safe.is_safe([[0.4], [0.9]]).tolist()
    (True, [True, False])
    """

    def __init__(
        self,
        sequence: ConfidenceSequence,
        domain: Domain | None = None,
        *,
        constraints: Mapping[str, tuple[Any, ...]],
        seed: Points | None = None,
        minimise: bool = False,
        feasible: Rounding | None = None,
    ) -> None:
        super().__init__(sequence, domain, minimise=minimise)
        if feasible is not None and not callable(feasible):
            raise InputError(f"feasible must be a function of points, got {brief(feasible)}.")
        self._feasible = feasible
        self._constraints = SafetyConstraints.checked(sequence, constraints, domain)
        self.seed = np.empty((0, 0))
        if seed is not None and not (isinstance(seed, Sized) and not len(seed)):
            self.seed = self._actions(seed)
            inside = np.array(True) if domain is None else domain.contains(self.seed)
            if not inside.all():
                wrong = self.seed[int(inside.argmin())]
                raise InputError(f"seed must be points of the domain, got {wrong}.")
        self.seed.flags.writeable = False

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {', '.join(map(str, self._constraints.limits))})"

    @property
    def dim(self) -> int | None:
        """The dimension of actions; None while it is not known."""
        known = (super().dim, self.seed.shape[1], *(one.dim for one in self.others))
        return next((one for one in known if one), None)

    @property
    def delta(self) -> float:
        """The sum of the deltas of all sequences, which all hold with probability 1 - delta."""
        return float(sum(one.assumptions.delta for one in self._constraints.sequences))

    def is_safe(self, X: Points) -> NDArray[np.bool_]:
        """Tell which points are known to satisfy all constraints, by bounds or as seeds; (n,)."""
        with self.lock:
            points = self._actions(X)
            return self._safe(points, self._constraints.bands(points))

    def _safe(self, points: Array, bands: Sequence[Band]) -> NDArray[np.bool_]:
        """Tell which points are safe, given the bounds at them.

        A seed that the outcomes of a constraint show to violate it was declared wrongly, unless the
        assumptions are wrong; it is not asked for any more.
        """
        seeds = among(points, self.seed)
        wrong = seeds & ~self._constraints.possible(points, bands)
        if wrong.any():
            warnings.warn(
                f"the seed {points[int(wrong.argmax())]} violates a constraint, as outcomes show; "
                "it is not asked for any more.",
                stacklevel=2,
            )
        return self._constraints.sure(bands) | (seeds & ~wrong)

    def _some_safe(self, points: Array, bands: Sequence[Band]) -> NDArray[np.bool_]:
        """Tell which points are safe; raise where none is."""
        safe = self._safe(points, bands)
        if not safe.any():
            raise InputError(
                f"none of the {len(points)} points looked at is known to be safe; pass points that "
                "you know to be safe as seed=, or tell outcomes at such points."
            )
        return safe

    # --- choosing

    def choose(self, space: Domain, count: int) -> list[Suggestion]:
        """See :class:`Policy`."""
        points = space.points if isinstance(space, Finite) else self.candidates(space)
        bands = self._constraints.bands(points)
        safe = self._some_safe(points, bands)
        limit = math.inf
        if isinstance(space, Finite):
            possible = self._constraints.possible(points, bands)
            limit = float(signed(bands[0], self.sign)[1][possible].max())

        def choose_one(turn: Turn) -> int | Array:
            allowed, known, believed = safe, self._constraints, bands
            if isinstance(space, Finite):
                allowed = safe & self.available(space, turn.taken)
                if not allowed.any():
                    raise InputError(
                        f"all {safe.sum()} actions that are known to be safe have been tried or "
                        "are pending, and once=True allows each of them one trial."
                    )
            if turn.waiting:
                # What is safe is known from real outcomes alone.
                others = (with_imagined_outcomes(one, turn.waiting) for one in self.others)
                known = replace(known, sequences=[turn.sequence, *others])
                believed = known.bands(points)
            at = self._best_or_expander(points, known, believed, safe, allowed)
            return at if isinstance(space, Finite) else points[at]

        return choose_in_turn(self, space, count, choose_one, limit)

    def _best_or_expander(
        self,
        points: Array,
        known: SafetyConstraints,
        bands: Sequence[Band],
        safe: NDArray[np.bool_],
        allowed: NDArray[np.bool_],
    ) -> int:
        """Choose one of the points that are allowed, by its position."""
        low, high = signed(bands[0], self.sign)
        order = np.flatnonzero(allowed)
        # Of equal upper bounds, that with the wider interval.
        best = int(order[np.lexsort(((high - low)[order], high[order]))[-1]])
        targets = ~safe & known.possible(points, bands) & (high > high[best])
        if not targets.any():
            return best
        widths = known.relative_widths(points, bands)
        widest = np.max([widths[at] for at in {one.at for one in known.limits}], axis=0)
        wider = np.flatnonzero(allowed & (widest > widths[0][best]))
        reach, ends = np.flatnonzero(targets), (points.min(axis=0), points.max(axis=0))
        for at in wider[spread(points[wider], widest[wider], EXPANDERS, *ends)]:
            both = np.concatenate([[at], reach])
            there = [(lower[both], upper[both]) for lower, upper in bands]
            if known.would_show(0, points[both], there)[1:].any():
                return int(at)
        return best

    def candidates(self, space: Box | None = None) -> Array:
        """Return the points among which a box is searched, (m, d), safe ones and others."""
        with self.lock:
            box = self._space(None, None) if space is None else space
            if isinstance(box, Finite):
                return box.points
            tried = np.unique(box.clipped(self.sequence.landmarks), axis=0)
            seeds = self.seed.reshape(-1, box.dim)
            seeds = seeds[box.contains(seeds)]
            points = np.concatenate([seeds, tried, self._moved(box.filling(FILLING))])
            bands = self._constraints.bands(points)
            safe = self._safe(points, bands)
            if not safe.any():
                return points
            known, values = points[safe], signed(bands[0], self.sign)[1][safe]
            anchors = known[spread(known, values, ANCHORS, box.lower, box.upper)]
            near = box.filling(AROUND)
            around = [box.clipped(one) for anchor in anchors for one in _halved(near, anchor)]
            uphill = _way_up(Clipped(self.surface(self.sign)), box, anchors[0])
            return np.concatenate([points, self._moved(np.concatenate([*around, uphill]))])

    def _moved(self, points: Array) -> Array:
        """Move points of a box to points near them that can be carried out."""
        return points if self._feasible is None else as_points(self._feasible(points), "feasible")

    # --- learning

    def tell(  # type: ignore[override]
        self,
        X: Points,
        y: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        noise_scale: ArrayLike | None = None,
    ) -> None:
        """Add outcomes of f*, with those of all constraints by their names in ``values``.

        The noise of a constraint's outcome may depend on that of f* at the same point. Otherwise
        what :meth:`Policy.tell` says of the order holds for all outcomes together; ``noise_scale``
        is that of f*. When an error is raised nothing has changed.
        """
        with self.lock:
            points, names = self._actions(X), self._constraints.names
            given = {} if values is None else values
            if not isinstance(given, Mapping) or set(given) != set(names):
                raise InputError(
                    "tell needs an outcome of each constraint by its name "
                    f"({', '.join(names) or 'none'}), got {brief(values)}."
                )
            outcomes = {
                at: as_vector(np.atleast_1d(as_floats(given[name], name)), name, len(points))
                for name, at in names.items()
            }
            for one in self.others:  # A kernel that does not take the points says so.
                kernels.cross(one.kernel, points[:1], points[:1])
            super().tell(points, y, noise_scale)
            for at, own in outcomes.items():
                self._constraints.sequences[at].update_checked(points, own)

    def _measured(self, value: Any) -> Any:
        names = self._constraints.names
        if not names:
            return super()._measured(value), {}
        pair = isinstance(value, tuple | list) and len(value) == 2
        if not (pair and isinstance(value[1], Mapping) and set(value[1]) == set(names)):
            raise InputError(
                "an experiment must return its outcome and a dict of those of the constraints "
                f"({', '.join(names)}), got {brief(value)}."
            )
        more = {name: as_outcome(value[1][name], f"the outcome of {name!r}") for name in names}
        return super()._measured(value[0]), more

    def _tell_measured(self, points: Array, got: list[Any]) -> None:
        outcomes, others = zip(*got, strict=True)
        self.tell(points, outcomes, {name: [one[name] for one in others] for name in others[0]})

    # --- certifying

    def _certify(
        self, space: Domain, maximiser: BranchAndBound, enough: float, seconds: float
    ) -> Certificate:
        if isinstance(space, Finite):
            return self._certify_finite(space.points, seconds)
        deadline = time.monotonic() + maximiser.seconds
        points = self.candidates(space)
        bands = self._constraints.bands(points)
        safe = self._some_safe(points, bands)
        start = points[np.where(safe, signed(bands[0], self.sign)[0], -np.inf).argmax()]
        lower = LowerBound(self.surface(-self.sign))
        way = self._moved(_way_up(lower, space, start))
        way = np.concatenate([start[None], way[self.is_safe(way)]])
        sure = lower.values(way)
        limits = self._constraints.surfaces(points)
        for surface, _ in limits:
            check_certifiable(surface)
        return certify_best(
            self.surface(self.sign), Maximum(way[sure.argmax()], float(sure.max())), space,
            points[safe], maximiser, deadline, enough=enough,
            limited=partial(Possible, constraints=limits),
        )  # fmt: skip

    def _certify_finite(self, points: Array, seconds: float) -> Certificate:
        """Certify the best safe point of a set; points not looked at in time are possible."""
        start = time.monotonic()
        by = start + CONSTRAINTS_SHARE * seconds
        bands = self._constraints.bands_in_time(points, by)
        safe, possible = self._some_safe(points, bands), self._constraints.possible(points, bands)
        within, left = Finite(points[possible]), seconds - (time.monotonic() - start)
        found = certify_finite(
            self.surface(self.sign), self.surface(-self.sign), within.points,
            partial(self.limit, within), left, safe[possible],
        )  # fmt: skip
        return replace(found, index=int(np.flatnonzero(possible)[found.index]))

    # --- saving

    @property
    def others(self) -> list[ConfidenceSequence]:
        """The sequences of the constraints, without that of f*."""
        return list(self._constraints.sequences[1:])

    def settings(self) -> dict[str, Any]:
        """See :class:`Policy`."""
        if self._feasible is not None:
            raise InputError("a function that moves points to feasible ones cannot be saved.")
        limits = [list(one) for one in self._constraints.limits]
        return {"limits": limits, "seed": self.seed.tolist()}

    @classmethod
    def from_saved(
        cls,
        sequence: ConfidenceSequence,
        domain: Domain | None,
        minimise: bool,
        settings: dict[str, Any],
        others: list[ConfidenceSequence],
    ) -> Self:
        """See :class:`Policy`."""
        constraints: dict[str, Any] = {}
        for name, at, sign, least in settings["limits"]:
            _, *ends = constraints.get(name, (None, None, None))
            ends[0 if sign == 1 else 1] = sign * least
            constraints[name] = ([sequence, *others][at], *ends)
        seed = settings["seed"]
        return cls(sequence, domain, constraints=constraints, seed=seed, minimise=minimise)


def _way_up(function: Function, box: Box, start: Array) -> Array:
    """Return points on the way from a point to a maximum of a function near it, (m, d)."""
    face = box.fixed({at: float(start[at]) for at in box.categories})
    top = Ascent(scan=1, starts=1).maximise(function, face, start[None]).x[None]
    return face.clipped(np.concatenate([top, *_halved(top, start)]))


def _halved(points: Array, anchor: Array) -> list[Array]:
    """Move points half of the way towards an anchor, again and again."""
    return [anchor + 2.0**-number * (points - anchor) for number in range(1, HALVINGS + 1)]
