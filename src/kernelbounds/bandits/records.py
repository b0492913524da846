"""What policies tell their users."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelbounds import notebook
from kernelbounds.arrays import Array
from kernelbounds.rounding import at_least, at_most, coordinate, coordinates, interval


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
