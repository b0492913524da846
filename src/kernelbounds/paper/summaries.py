"""Results of several repetitions: estimates of them, and their tables as text and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.stats import binomtest, t as student

from kernelbounds.arrays import Array
from kernelbounds.paper.results import ResultStore
from kernelbounds.paper.specs import Job

T = TypeVar("T")
Key = TypeVar("Key")
J = TypeVar("J", bound=Job)


def grouped(things: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    """Put things with equal keys together, in order."""
    groups: dict[Key, list[T]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups


@dataclass(frozen=True)
class Repetitions(Generic[J]):
    """The results of jobs that differ in their repetition alone."""

    job: J  # the first of them
    arrays: dict[str, Array]  # by name, (repetitions, ...) each

    def __getitem__(self, name: str) -> Array:
        """Return the array of this name."""
        return self.arrays[name]


def repetitions(jobs: Iterable[J], store: ResultStore) -> list[Repetitions[J]]:
    """Read the results of jobs, and stack those that differ in their repetition alone."""
    found = []
    for members in grouped(jobs, _without_repetition).values():
        runs = [store.read(job) for job in members]
        arrays = {name: np.array([run[name] for run in runs]) for name in runs[0]}
        found.append(Repetitions(members[0], arrays))
    return found


def _without_repetition(job: Any) -> Any:
    return replace(job, repetition=0)


@dataclass(frozen=True)
class Estimate:
    """An estimate with a 95 % confidence interval, which is infinite for a single value."""

    value: float
    low: float
    high: float

    @classmethod
    def of_mean(cls, values: Array) -> Estimate:
        """Estimate a mean, by Student's t."""
        mean = float(values.mean())
        if len(values) < 2:
            return cls(mean, -math.inf, math.inf)
        reach = float(student.ppf(0.975, len(values) - 1)) * standard_error(values)
        return cls(mean, mean - reach, mean + reach)

    def shown(self, style: str, unit: str = "") -> str:
        """Return the value and, unless it is infinite, the interval as text; no text for nan."""
        text = "" if math.isnan(self.value) else f"{self.value:{style}}{unit}"
        finite = math.isfinite(self.low)
        return f"{text} [{self.low:{style}}, {self.high:{style}}]" if finite else text


@dataclass(frozen=True)
class ErrorRate:
    """The rate at which data sets led to a wrong claim."""

    wrong: int
    runs: int

    @property
    def share(self) -> float:
        """The share of the data sets."""
        return self.wrong / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """The exact 95 % confidence interval, by Clopper and Pearson."""
        found = binomtest(self.wrong, self.runs).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = (100 * end for end in self.interval)
        return f"{100 * self.share:.1f} % [{low:.1f}, {high:.1f}]"


def average(values: Array) -> float:
    """Return the mean; nan for no value."""
    return float(values.mean()) if len(values) else math.nan


def standard_error(values: Array) -> float:
    """Return the standard error of the mean; nan for a single value and for none."""
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan


# --- as text and as CSV


def plus_minus(value: float, spread: float, digits: int = 1) -> str:
    """Return a number and its spread as text, without what is nan."""
    if math.isnan(value):
        return ""
    return f"{value:.{digits}f}" + ("" if math.isnan(spread) else f" ± {spread:.{digits}f}")


def mean_text(values: Array, digits: int = 1) -> str:
    """Return the mean of repetitions and its standard error as text."""
    return plus_minus(average(values), standard_error(values), digits)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with the columns of a table under each other."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def under_headings(tables: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Return several tables as text, each under its heading."""
    return "\n".join("\n".join([head, *aligned(rows), ""]) for head, rows in tables.items())


def numbers(**values: float) -> dict[str, str]:
    """Return columns of numbers for a CSV file, with empty cells for what is not finite."""
    return {name: f"{v:.6g}" if math.isfinite(v) else "" for name, v in values.items()}


def csv_text(rows: Sequence[Mapping[str, object]], head: Iterable[str] = ()) -> str:
    """Return rows, each by the names of the columns, as CSV.

    The columns are those of the first row, and ``head`` where there may be no row.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(head) or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
