"""The answers of policies: suggestions and certificates."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kernelbounds.arrays import Array
from kernelbounds.display import cards
from kernelbounds.display.numbers import at_least, at_most, coordinate, coordinates, interval


class _Answer(ABC):
    """An action with bounds on f* there, as text, as a card in notebooks, and as plain data."""

    x: Array
    lower: float
    upper: float
    index: int | None
    named: dict[str, float | str]
    _role: ClassVar[str]  # the action's name on the card

    @property
    @abstractmethod
    def _best(self) -> tuple[bool, float]:
        """Whether f* is maximised, and the value that no action can beat."""

    def _facts(self) -> dict[str, str]:
        """Return what is known of f* here and anywhere, as texts by name."""
        maximise, limit = self._best
        # With as many digits as a status of a study has.
        best = f"maximum <= {at_most(limit, 4)}" if maximise else f"minimum >= {at_least(limit, 4)}"
        facts = {"value there": f"in {interval(self.lower, self.upper)}"}
        return facts | ({"anywhere": best} if math.isfinite(limit) else {})

    def _text(self, *more: str) -> str:
        """Return the repr, with more texts at its end."""
        facts = self._facts()
        texts = [self._where(), f"value {facts['value there']}", facts.get("anywhere"), *more]
        return f"{type(self).__name__}({', '.join(filter(None, texts))})"

    def _repr_html_(self) -> str:
        """Show a card in notebooks."""
        return cards.shown(self, self._card)

    def _card(self) -> cards.Html:
        facts = [(self._role, self._where()), *self._facts().items()]
        return cards.card(type(self).__name__, facts, self.picture())

    def picture(self) -> cards.Html:
        """Draw the bounds on f*(x) as a bar, and the gap to the value that no action can beat."""
        what = "Bounds on the value of this action, and what no action can beat."
        return cards.interval_picture(self.lower, self.upper, self._best[1], what)

    def as_data(self) -> dict[str, Any]:
        """Return the attributes as plain data for JSON; an infinite number becomes None."""
        data: dict[str, Any] = dataclasses.asdict(self)  # type: ignore[call-overload]
        for name, value in data.items():
            if isinstance(value, float) and not math.isfinite(value):
                data[name] = None
        return data | {"x": self.x.tolist()}

    def _where(self) -> str:
        """Return the action as text, by the names of its coordinates if they have names."""
        place = f", index={self.index}" if self.index is not None else ""
        named = [f"{name}={coordinate(value)}" for name, value in self.named.items()]
        return (", ".join(named) or f"x={coordinates(self.x)}") + place


@dataclass(frozen=True)
class Suggestion(_Answer):
    """An action to try next, with what is known of f* there from the outcomes told so far.

    Attributes
    ----------
    x : array of shape (d,)
        The action to try.
    lower, upper : float
        Bounds on f*(x).
    limit : float
        An upper bound on f* over all actions that could have been asked for (a lower one when
        minimising), so that none of them is better. Infinite where the maximiser certifies nothing.
    index : int or None
        Position in ``actions`` or in a ``Finite`` domain.
    named : dict
        The coordinates by name, for a box that has names; those of categories are names, too.

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
    named: dict[str, float | str] = field(default_factory=dict)
    _role: ClassVar[str] = "try"

    def __repr__(self) -> str:
        return self._text()

    @property
    def _best(self) -> tuple[bool, float]:
        # The limit is above f* everywhere, and so above the interval at x, unless minimising.
        return self.limit >= (self.lower + self.upper) / 2, self.limit


@dataclass(frozen=True)
class Certificate(_Answer):
    """The best action known, with a bound on its regret.

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
        The coordinates by name, for a box that has names; those of categories are names, too.

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
    named: dict[str, float | str] = field(default_factory=dict)
    _role: ClassVar[str] = "best known"

    def __repr__(self) -> str:
        return self._text(f"regret <= {at_most(self.regret)}")

    @property
    def _best(self) -> tuple[bool, float]:
        limit = self.min_lower if self.max_upper is None else self.max_upper
        return self.max_upper is not None, math.nan if limit is None else limit

    def _facts(self) -> dict[str, str]:
        return super()._facts() | {
            "certified": f"within {at_most(self.regret)} of the best possible"
        }
