"""Trials, their outcomes and notes: as rows of the file, and as users get them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kernelbounds.display import cards as notebook
from kernelbounds.display.numbers import about, at_most, interval
from kernelbounds.problem import Problem

Point = tuple[float, ...]


class StoredTrial(NamedTuple):
    """A row of the table of trials, or one that is to be added; the fields are its columns.

    The point is in the user's units. ``estimate`` and what follows it up to ``why`` is None in a
    trial that was told without being asked for.
    """

    point: Point
    estimate: float | None
    lower: float | None
    upper: float | None
    gain: float | None
    purpose: str | None
    why: str | None
    number: int = 0
    state: str = "pending"
    asked: str | None = None


class Outcome(NamedTuple):
    """A row of the table of outcomes, or one that is to be added; the fields are its columns.

    An outcome that is to be told may have no trial yet, 0: then it belongs to the pending trial at
    its point, or to a new one. Where the output is a rate, ``value`` is that of ``tries``.
    """

    point: Point
    value: float
    trial: int = 0
    key: str | None = None
    source: str | None = None
    row: int | None = None
    id: int = 0
    time: str = ""
    tries: int | None = None

    @property
    def told(self) -> float | tuple[int, int]:
        """The outcome as users tell it: the value, or successes and tries."""
        return self.value if self.tries is None else (round(self.value * self.tries), self.tries)


class Note(NamedTuple):
    """A note on a trial, from :meth:`Study.note`.

    Attributes
    ----------
    trial : int
        The number of the trial.
    text : str
        What was written; empty where there is a path alone.
    path : str or None
        A file that belongs to the trial, from the folder of the study. Its content is not kept.
    time : str
        When it was written, in UTC.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> told = study.tell({"speed": 300}, 63.1)
    >>> study.note(1, "new batch of resin").text
    'new batch of resin'
    """

    trial: int
    text: str
    path: str | None
    time: str

    def __str__(self) -> str:
        return " ".join(filter(None, [self.text, self.path and f"[{self.path}]"]))


class Told(NamedTuple):
    """The receipt that :meth:`Study.tell` returns once an outcome is on the disk.

    Attributes
    ----------
    trial : int
        The number of the trial that the outcome is of.
    again : bool
        Whether the same outcome was there already, by its key or by its row in a table that was
        imported before, and nothing was added.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> study.tell({"speed": 300}, 63.1, key="run 7")
    Told(trial=1, again=False)
    >>> study.tell({"speed": 300}, 63.1, key="run 7").again  # a script that is run twice
    True
    """

    trial: int
    again: bool


@dataclass(frozen=True)
class Trial:
    """Settings to be tried at the bench, from :meth:`Study.ask`.

    Attributes
    ----------
    number : int
        The number by which its outcome is told.
    values : dict
        The settings by the names of the inputs, in their units; the names of levels of categories.
    estimate : float
        An estimate of the true output there, from what was known when it was asked for.
    lower, upper : float
        Bounds on it, from the same.
    gain : float
        The most by which the output there may be better than what was sure then: than the best
        lower bound at a setting observed (the best upper bound when minimising). For a logarithmic
        output it is a share, 0.1 for 1.1 times as good.
    purpose, why : str
        The purpose that it was asked for, see :meth:`Study.ask`, and a sentence that says why
        these settings were chosen; empty for settings that the user chose.
    state : str
        "pending", "told" or "dropped".
    outcome : float, (successes, tries) or None
        The outcome that was told.
    ran : dict or None
        The settings at which that was measured, which need not be those asked for.
    asked, told : str or None
        When it was asked for, and when its outcome was told, in UTC.
    notes : tuple of :class:`Note`
        The notes on it.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> problem = kb.Problem(
    ...     ["speed[rpm]=100:500"], "yield[%]=0:100", noise=0.5, kernel="Matern(0.8, nu=2.5)",
    ...     norm_bound=80.0,
    ... )
    >>> study = kb.Study.create(":memory:", problem)
    >>> trial = study.ask()
    >>> trial.number, list(trial.values), trial.lower < trial.estimate < trial.upper
    (1, ['speed'], True)
    >>> told = study.tell(trial, 63.1)
    """

    number: int
    values: dict[str, Any]
    estimate: float
    lower: float
    upper: float
    gain: float
    purpose: str = ""
    why: str = ""
    # What happens to a trial later does not make it another trial, so it is not compared.
    state: str = field(default="pending", compare=False)
    outcome: float | tuple[int, int] | None = field(default=None, compare=False)
    ran: dict[str, Any] | None = field(default=None, compare=False)
    asked: str | None = field(default=None, compare=False)
    told: str | None = field(default=None, compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return (
            f"Trial({self.number}: {self._settings}, output about {about(self.estimate)}, in "
            f"{interval(self.lower, self.upper)}, gain <= {at_most(self.gain)})"
        )

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return notebook.shown(self, self._card)

    def _card(self) -> notebook.Html:
        known = f"about {about(self.estimate)}, in {interval(self.lower, self.upper)}"
        facts = {
            "try": self._settings,
            "why": self.why,
            "output there": known,
            "better than what is sure": f"by at most {at_most(self.gain)}",
        }
        return notebook.card(f"Trial {self.number}", [one for one in facts.items() if one[1]])

    @property
    def _settings(self) -> str:
        return ", ".join(
            f"{name}={value if isinstance(value, str) else f'{value:.10g}'}"
            for name, value in self.values.items()
        )

    def as_data(self) -> dict[str, Any]:
        """Return the attributes as plain data for JSON; what is not known becomes None."""
        data = dataclasses.asdict(self) | {"notes": [one._asdict() for one in self.notes]}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in data.items()
        }


def trials_of(
    problem: Problem,
    stored: Sequence[StoredTrial],
    outcomes: Sequence[Outcome],
    notes: Sequence[Note],
) -> list[Trial]:
    """Make trials for users of their rows in the file, their outcomes and their notes."""
    told, written = {one.trial: one for one in outcomes}, _by_trial(notes)
    found = []
    for one in stored:
        got = told.get(one.number)
        estimate, lower, upper, gain = (math.nan if x is None else x for x in one[1:5])
        found.append(
            Trial(
                one.number, problem.inputs.named(one.point), estimate, lower, upper, gain,
                one.purpose or "", one.why or "", one.state, outcome=got and got.told,
                ran=got and problem.inputs.named(got.point), asked=one.asked, told=got and got.time,
                notes=tuple(written.get(one.number, ())),
            )
        )  # fmt: skip
    return found


def columns_of(
    problem: Problem, outcomes: Sequence[Outcome], notes: Sequence[Note]
) -> dict[str, Any]:
    """Return outcomes as columns by name, see :attr:`Study.observations`."""
    points = np.array([one.point for one in outcomes]).reshape(-1, len(problem.inputs))
    found: dict[str, Any] = {"trial": np.array([one.trial for one in outcomes], dtype=np.int64)}
    found |= problem.inputs.columns(points)
    if problem.counts is not None:
        told = np.array([one.told for one in outcomes], dtype=np.int64).reshape(-1, 2)
        found |= dict(zip(problem.outcomes.names, told.T, strict=True))
    found[problem.output.name] = np.array([one.value for one in outcomes], dtype=float)
    if notes and "note" not in found:
        written = _by_trial(notes)
        found["note"] = ["; ".join(map(str, written.get(one.trial, ()))) for one in outcomes]
    return found


def _by_trial(notes: Sequence[Note]) -> dict[int, list[Note]]:
    found: dict[int, list[Note]] = {}
    for note in notes:
        found.setdefault(note.trial, []).append(note)
    return found
