"""What a study tells its users."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from kernelbounds import notebook
from kernelbounds.rounding import at_most, interval


@dataclass(frozen=True)
class Trial:
    """Settings to be tried at the bench, from :meth:`Study.ask`.

    Attributes
    ----------
    number : int
        By which its outcome is told.
    values : dict
        The settings by the names of the inputs, in their units.
    lower, upper : float
        Bounds on the true output there, from what was known when it was asked for.
    gain : float
        By how much the output there may at most be better than what was sure then: than the best
        lower bound at a setting observed (the best upper bound when minimising).

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> trial = study.ask()
    >>> trial.number, list(trial.values), trial.lower < trial.upper
    (1, ['speed'], True)
    >>> told = study.tell(trial, 63.1)
    """

    number: int
    values: dict[str, float]
    lower: float
    upper: float
    gain: float

    def __repr__(self) -> str:
        return (
            f"Trial({self.number}: {self._settings}, output in {interval(self.lower, self.upper)}, "
            f"gain <= {at_most(self.gain)})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        return notebook.card(
            f"Trial {self.number}",
            [
                ("try", self._settings),
                ("output there", f"in {interval(self.lower, self.upper)}"),
                ("better than what is sure", f"by at most {at_most(self.gain)}"),
            ],
        )

    @property
    def _settings(self) -> str:
        return ", ".join(f"{name}={value:.10g}" for name, value in self.values.items())

    def as_data(self) -> dict[str, Any]:
        """The attributes as plain data for JSON."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Promising:
    """The settings with the best estimate, which need not be proved to be good.

    They are the ``most_promising`` of a :class:`Status`: what one would use today.

    Attributes
    ----------
    values : dict
        The settings by the names of the inputs, in their units.
    estimate : float
        Of the true output there: the middle of the interval. It carries no guarantee of its own.
    lower, upper : float
        The interval, which does: bounds on the true output there.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["batches=1:9:integer"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> told = study.tell({"batches": 4}, 63.1)
    >>> found = study.status(seconds=0.1).most_promising
    >>> list(found.values), found.lower < found.estimate < found.upper
    (['batches'], True)
    """

    values: dict[str, float]
    estimate: float
    lower: float
    upper: float

    def as_data(self) -> dict[str, Any]:
        """The attributes as plain data for JSON, with the settings as ``named``."""
        return {
            "named": self.values, "estimate": self.estimate,
            "lower": self.lower, "upper": self.upper,
        }  # fmt: skip
