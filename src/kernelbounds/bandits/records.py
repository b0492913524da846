"""The records of policies: actions asked for, under way and told, and what was known of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.answers import Suggestion
from kernelbounds.bandits.domains import key_of

Entry = tuple[float, float, float]  # lower and upper bound, and limit, before the outcome
SAVED = ("pending", "asked", "asked_bounds", "records")  # the arrays of a policy's file


@dataclass(frozen=True)
class History:
    """The bounds on each action from before its outcome: ``history`` of a policy.

    All arrays have the shape (n,), in the order told. They are nan where the data had refuted the
    assumptions.

    Attributes
    ----------
    lower, upper : arrays
        Bounds on f* at the action, from the outcomes before.
    limit : array
        The value that no action of the same round could beat, see :class:`Suggestion`.
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
        """upper - lower, which bounds the regret of an action that had the largest upper bound."""
        return self.upper - self.lower

    @property
    def regret_bound(self) -> Array:
        """Upper bounds on the regret of each action, without knowing f*.

        It is limit - lower when maximising: for an action asked for from a finite set, its width.
        It is infinite where no limit is known: for actions that were not asked for, and where the
        maximiser certifies nothing.
        """
        return self.upper - self.limit if self.minimise else self.limit - self.lower

    @property
    def cumulative_regret_bound(self) -> Array:
        """Running sums of ``regret_bound``: bounds on the cumulative regret, at all times."""
        return np.cumsum(self.regret_bound)

    def table(self) -> dict[str, Array]:
        """Return the columns by name, as ``pandas.DataFrame`` takes them."""
        columns: dict[str, Array] = {"round": np.arange(1.0, len(self) + 1)}
        names = ("lower", "upper", "limit", "width", "regret_bound", "cumulative_regret_bound")
        return columns | {name: getattr(self, name) for name in names}


class Ledger:
    """The actions asked for, under way, and told, with the bounds from before their outcomes."""

    def __init__(self, minimise: bool) -> None:
        self._minimise = minimise
        self._asked: dict[bytes, Entry] = {}
        self._told: list[Entry] = []
        self.pending: list[Array] = []

    @property
    def rounds(self) -> int:
        """The number of outcomes told."""
        return len(self._told)

    def ask(self, one: Suggestion) -> None:
        """Keep the bounds on an action until its outcome is told.

        An action that is asked for in several rounds before that may be told for any of them, so
        the loosest bounds are kept.
        """
        key, worst = key_of(one.x), min if self._minimise else max
        lower, upper, limit = self._asked.get(key, (one.lower, one.upper, one.limit))
        self._asked[key] = min(lower, one.lower), max(upper, one.upper), worst(limit, one.limit)

    def entries(self, points: Array) -> list[Entry | None]:
        """Return the bounds on actions that were asked for, and None for others."""
        return [self._asked.get(key_of(point)) for point in points]

    def tell(self, points: Array, entries: list[Entry]) -> None:
        """Record that outcomes of these actions are known."""
        self._told += entries
        for point in points:
            waiting = [at for at, one in enumerate(self.pending) if np.array_equal(one, point)]
            if waiting:
                del self.pending[waiting[0]]
            if len(waiting) < 2:
                self._asked.pop(key_of(point), None)

    def history(self) -> History:
        """Return the bounds on each action told."""
        lower, upper, limit = np.array(self._told).reshape(-1, 3).T
        return History(lower, upper, limit, self._minimise)

    def pack(self, dim: int) -> dict[str, Array]:
        """Return everything as arrays by the names in ``SAVED``, for actions of a dimension."""
        asked = [np.frombuffer(key) for key in self._asked]
        return {
            "pending": np.array(self.pending).reshape(len(self.pending), dim),
            "asked": np.array(asked).reshape(len(asked), -1) if asked else np.empty((0, 0)),
            "asked_bounds": np.array(list(self._asked.values())).reshape(-1, 3),
            "records": np.array(self._told).reshape(-1, 3),
        }

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take back what :meth:`pack` returned."""
        self.pending = [point.copy() for point in arrays["pending"]]
        keys = [np.ascontiguousarray(point).tobytes() for point in arrays["asked"]]
        bounds = [(a, b, c) for a, b, c in arrays["asked_bounds"].tolist()]
        self._asked = dict(zip(keys, bounds, strict=True))
        self._told = [(a, b, c) for a, b, c in arrays["records"].tolist()]
