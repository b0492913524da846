"""Certificates: the best action known, and a bound on how much better any other can be.

With the sign s = -1 when minimising, ``optimistic`` is the upper bound on s f* and minus
``pessimistic``, the upper bound on -s f*, is the lower one. The best action z has the largest lower
bound, or nearly so. Its regret is at most the maximum over x of

* the upper bound on s f*(x), minus the lower one at z, and of
* the upper bound on the difference s (f*(x) - f*(z)).

The latter is the smaller, because no function is as bad as it can be at both ends; it needs a
:class:`~kernelbounds.bounds.DualBound`.

When time runs out, what was not looked at counts by its trivial bounds: |s f*(x)| is at most
B sqrt(k(x,x)), and |f*(x) - f*(z)| at most B |phi(x) - phi(z)|.

What policies tell their users.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.domains import Box
from kernelbounds.bandits.maximisers import (
    DEFAULT_TOLERANCE,
    Ascent,
    BranchAndBound,
    Maximum,
    check_certifiable,
    in_time,
    most_over,
)
from kernelbounds.bounds import DualBound
from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import at_least, at_most, coordinate, coordinates, interval
from kernelbounds.surface import Clipped, Surface
from kernelbounds.surface.surface import CROSSING, refuse_crossing


@dataclass(frozen=True)
class Suggestion:
    """An action to try next, with what is known of f* there from the outcomes told so far.

    Attributes
    ----------
    x : array of shape (d,)
        The action to try.
    lower, upper : float
        Bounds on f*(x).
    limit : float
        No action that could have been asked for is better than this: an upper bound on f* over
        the set (a lower one when minimising). Infinite where the maximiser certifies nothing.
    index : int or None
        Position in ``actions`` or in a ``Finite`` domain.
    named : dict
        The coordinates by name, for a box that has names.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> s = kb.KernelUCB(seq, kb.Box.named(speed=(0.0, 1.0))).ask()
    >>> list(s.named), s.lower < s.upper
    (['speed'], True)
    """

    x: Array
    lower: float
    upper: float
    limit: float
    index: int | None = None
    named: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Suggestion({_where(self)}, value in {interval(self.lower, self.upper)}{self._best})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        what = "Bounds on the value there, and what no action can beat."
        return notebook.card(
            "Suggestion",
            [
                ("try", _where(self)),
                ("value there", f"in {interval(self.lower, self.upper)}"),
                *([("anywhere", self._best.removeprefix(", "))] if self._best else []),
            ],
            notebook.interval_picture(self.lower, self.upper, self.limit, what),
        )

    @property
    def _best(self) -> str:
        """What is known of the best, where something is."""
        if not math.isfinite(self.limit):
            return ""
        # The best is limited from above, and then from above this value too, unless minimising.
        if self.limit >= (self.lower + self.upper) / 2:
            return f", maximum <= {at_most(self.limit)}"
        return f", minimum >= {at_least(self.limit)}"

    def as_data(self) -> dict[str, Any]:
        """The attributes as plain data for JSON; an infinite limit becomes None."""
        return _as_data(self)


@dataclass(frozen=True)
class Certificate:
    """How good the best action known is, at least.

    With probability 1 - delta all certificates ever issued are true.

    Attributes
    ----------
    x : array of shape (d,)
        The action with the largest lower bound (when minimising, the smallest upper bound), or
        one of the largest with less regret.
    lower, upper : float
        Bounds on f*(x).
    max_upper : float or None
        An upper bound on the maximum of f* over the domain; None when minimising.
    min_lower : float or None
        When minimising, a lower bound on the minimum.
    regret : float
        f*(x) is within this of the optimum: the smaller of max_upper - lower, or
        upper - min_lower, and of the largest upper bound on a difference from f*(x).
    index : int or None
        Position of x in a finite set.
    named : dict
        The coordinates by name, for a box that has names.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> ucb = kb.KernelUCB(seq, kb.Finite([[0.0], [0.5], [1.0]]))
    >>> ucb.tell([[0.0], [0.5], [1.0]], [0.1, 0.9, 0.3])
    >>> found = ucb.certificate()
    >>> found.x.tolist(), found.regret <= found.max_upper - found.lower
    ([0.5], True)
    """

    x: Array
    lower: float
    upper: float
    max_upper: float | None
    min_lower: float | None
    regret: float
    index: int | None = None
    named: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Certificate({_where(self)}, value in {interval(self.lower, self.upper)}, "
            f"{self._best}, regret <= {at_most(self.regret)})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook.shown(self, self._card)

    def picture(self) -> notebook.Html:
        """For notebooks: bounds on f*(x) as a bar, and the gap to what no action can beat."""
        limit = self.min_lower if self.max_upper is None else self.max_upper
        what = "Bounds on the value of the best action known, and what no action can beat."
        return notebook.interval_picture(
            self.lower, self.upper, math.nan if limit is None else limit, what
        )

    def _card(self) -> notebook.Html:
        return notebook.card(
            "Certificate",
            [
                ("best known", _where(self)),
                ("value there", f"in {interval(self.lower, self.upper)}"),
                ("anywhere", self._best),
                ("certified", f"within {at_most(self.regret)} of the best possible"),
            ],
            self.picture(),
        )

    @property
    def _best(self) -> str:
        if self.max_upper is not None:
            return f"maximum <= {at_most(self.max_upper)}"
        return f"minimum >= {at_least(math.nan if self.min_lower is None else self.min_lower)}"

    def as_data(self) -> dict[str, Any]:
        """The attributes as plain data for JSON; an infinite number becomes None."""
        return _as_data(self)


@dataclass(frozen=True)
class History:
    """What was known of each action when it was played: ``history`` of a policy.

    All are arrays of shape (n,), in the order told. Nan: the data had refuted the assumptions.

    Attributes
    ----------
    lower, upper : arrays
        Bounds on f* at the action, from the outcomes before.
    limit : array
        What no action of the same round could beat, see :class:`Suggestion`.
    minimise : bool
        Whether small values are wanted.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=2.0, noise_scale=0.1)
    >>> ucb = kb.KernelUCB(seq, kb.Finite([[0.0], [0.5], [1.0]]))
    >>> for outcome in (0.1, 0.9, 0.3):
    ...     ucb.tell(ucb.ask().x, outcome)
    >>> len(ucb.history), bool(ucb.history.regret_bound[2] <= ucb.history.regret_bound[0])
    (3, True)
    >>> list(ucb.history.table())[:3]
    ['round', 'lower', 'upper']
    """

    lower: Array
    upper: Array
    limit: Array
    minimise: bool

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def width(self) -> Array:
        """upper - lower. It bounds the regret of an action that had the largest upper bound."""
        return self.upper - self.lower

    @property
    def regret_bound(self) -> Array:
        """Upper bounds on the regret of each action, without knowing f*.

        limit - lower when maximising: for an action asked for from a finite set, its width.
        Infinite where no limit is known: for actions that were not asked for, and where the
        maximiser certifies nothing.
        """
        return self.upper - self.limit if self.minimise else self.limit - self.lower

    @property
    def cumulative_regret_bound(self) -> Array:
        """Running sums of ``regret_bound``: bounds on the cumulative regret, at all times."""
        return np.cumsum(self.regret_bound)

    def table(self) -> dict[str, Array]:
        """Columns by name, as ``pandas.DataFrame`` takes them."""
        columns: dict[str, Array] = {"round": np.arange(1.0, len(self) + 1)}
        names = ("lower", "upper", "limit", "width", "regret_bound", "cumulative_regret_bound")
        return columns | {name: getattr(self, name) for name in names}


def _where(record: Suggestion | Certificate) -> str:
    """The action, by names where it has them."""
    place = f", index={record.index}" if record.index is not None else ""
    if record.named:
        return (
            ", ".join(f"{name}={coordinate(value)}" for name, value in record.named.items()) + place
        )
    return f"x={coordinates(record.x)}{place}"


def _as_data(record: Suggestion | Certificate) -> dict[str, Any]:
    """JSON has numbers, and no infinite ones."""
    data = dataclasses.asdict(record) | {"x": record.x.tolist()}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in data.items()
    }


# Actions with the largest lower bounds, of which the one with the least regret is taken. The first
# is the best but for a percent or so; a third one hardly ever is.
CANDIDATES = 2


# The part of the time that goes to the lower bounds, of which only the largest matter.
FOR_LOWER = 0.25


def certify_finite(
    optimistic: Surface,
    pessimistic: Surface,
    points: Array,
    limit_by: Callable[[float], float],
    seconds: float,
) -> Certificate:
    """Over a finite set, within some time or little more; it may be infinite.

    ``limit_by`` gives, by a time as of ``time.monotonic``, what no optimistic bound exceeds.
    """
    start = time.monotonic()
    deadline = start + seconds
    sure = -pessimistic.most(points, pessimistic.trivial(points))
    for part in in_time(points, start + FOR_LOWER * seconds):
        sure[part] = -Clipped(pessimistic).values(points[part])
    best = np.argsort(-sure, kind="stable")[:CANDIDATES]
    differences = np.full(len(best), np.inf)
    differences[0] = _largest_difference(optimistic, points, int(best[0]), deadline)
    limit = limit_by(deadline)
    for more in range(1, len(best)):
        if time.monotonic() < deadline:
            differences[more] = _largest_difference(optimistic, points, int(best[more]), deadline)
    chosen = int(np.argmin(np.minimum(differences, limit - sure[best])))
    index, difference = int(best[chosen]), float(differences[chosen])
    return _certificate(optimistic, points[index], float(sure[index]), limit, difference, index, {})


def certify_box(
    optimistic: Surface,
    pessimistic: Surface,
    box: Box,
    played: Array,
    maximiser: BranchAndBound,
    enough: float,
) -> Certificate:
    """Over a box, only as tightly as it takes to see whether the regret is below ``enough``."""
    check_certifiable(optimistic)
    start = time.monotonic()
    by = start + FOR_LOWER * maximiser.seconds
    sure = Ascent().climb(Negated(Clipped(pessimistic)), box, played, by)
    return certify_action(
        optimistic, box, sure, played, until(maximiser, start + maximiser.seconds), enough
    )


def certify_action(
    optimistic: Surface,
    box: Box,
    sure: Maximum,
    played: Array,
    maximiser: BranchAndBound,
    enough: float,
) -> Certificate:
    """Of one action of a box, with its lower bound, however it was chosen."""
    starts, named = np.concatenate([played, sure.x[None]]), box.named_values(sure.x)
    if not isinstance(optimistic.bound, DualBound):
        limit = maximiser.compare(Clipped(optimistic), box, starts, sure.value + enough).ceiling
        return _certificate(optimistic, sure.x, sure.value, limit, np.inf, None, named)
    limit, varies = most_over(optimistic, box)
    tolerance = maximiser.tolerance or DEFAULT_TOLERANCE * varies
    deadline = time.monotonic() + maximiser.seconds
    maximiser = replace(maximiser, tolerance=tolerance, seconds=maximiser.seconds / 2)
    difference = Clipped(replace(optimistic, reference=sure.x))
    regret = maximiser.compare(difference, box, starts, enough).ceiling
    if enough == np.inf:  # somebody is going to read it
        maximiser = until(maximiser, deadline)
        limit = maximiser.maximise(Clipped(optimistic), box, starts).ceiling
    return _certificate(optimistic, sure.x, sure.value, limit, regret, None, named)


def until(maximiser: BranchAndBound, deadline: float) -> BranchAndBound:
    """A maximiser with the time that is left; none is a nanosecond."""
    return replace(maximiser, seconds=max(deadline - time.monotonic(), 1e-9))


def _largest_difference(optimistic: Surface, points: Array, at: int, deadline: float) -> float:
    """What s (f*(x) - f*(z)) does not exceed on a finite set, of which z is a point."""
    if not isinstance(optimistic.bound, DualBound):
        return np.inf
    surface = replace(optimistic, reference=points[at])
    others = points[(points != points[at]).any(axis=1)]
    if not len(others):
        return 0.0
    trivial = surface.trivial(others)
    most, largest = surface.most(others, trivial), 0.0
    for part in in_time(others, deadline):
        found = surface.largest(others[part], trivial[part]).value
        largest = max(largest, min(found, float(most[part].max())))
        most[part] = 0.0
    return max(largest, float(most.max()))  # of the others that were not looked at


def _certificate(
    optimistic: Surface,
    x: Array,
    least: float,
    limit: float,
    difference: float,
    index: int | None,
    named: dict[str, float],
) -> Certificate:
    """In the user's terms."""
    most = float(Clipped(optimistic).values(x[None])[0])
    if min(most, limit) < least - CROSSING * float(optimistic.trivial(x[None])[0]):
        refuse_crossing(optimistic.known, optimistic.bound)
    regret = min(limit - least, difference)
    if optimistic.sign == 1:
        return Certificate(x.copy(), least, most, limit, None, regret, index, named)
    return Certificate(x.copy(), -most, -least, None, -limit, regret, index, named)


class Negated:
    """Minus a surface: the pessimistic bound, to be maximised."""

    def __init__(self, surface: Clipped) -> None:
        self._surface = surface
        self.smooth = surface.smooth

    def values(self, points: Array) -> Array:
        """Values at points (m, d)."""
        return -self._surface.values(points)

    def values_and_gradients(self, points: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, d)."""
        values, gradients = self._surface.values_and_gradients(points)
        return -values, -gradients
