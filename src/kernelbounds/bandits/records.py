"""What policies tell their users."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelbounds.arrays import Array


@dataclass(frozen=True)
class Suggestion:
    """An action to try next, with what is known of f* there from the outcomes told so far.

    Attributes
    ----------
    x : array of shape (d,)
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

    def as_data(self) -> dict[str, Any]:
        """The attributes as plain data for JSON; an infinite number becomes None."""
        return _as_data(self)


@dataclass(frozen=True)
class History:
    """What was known of each action when it was played, in the order told; (n,) each.

    ``lower`` and ``upper`` are bounds on f*, from the outcomes before; ``limit`` is what no action
    of the same round could beat, see :class:`Suggestion`. Nan: the data had refuted the
    assumptions.
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


def _as_data(record: Suggestion | Certificate) -> dict[str, Any]:
    """JSON has numbers, and no infinite ones."""
    data = dataclasses.asdict(record) | {"x": record.x.tolist()}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in data.items()
    }
