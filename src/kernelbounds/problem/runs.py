"""Tables of runs, and heuristic doubts whether a table suits the assumptions and the bound.

None of the doubts is a proof: :func:`share_alone` and :func:`doubtful_unit` ask whether length
scales and units fit the data, and :func:`look_chosen` whether a design was fixed beforehand.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy.stats import combine_pvalues, qmc
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_vector, brief, shortened
from kernelbounds.errors import InputError
from kernelbounds.io.csv_file import unit_in_header
from kernelbounds.io.csv_table import CsvTable, read_csv
from kernelbounds.problem.problem import Problem

# A message names no more lines of a table, or columns, than this.
LINES_NAMED = 5
# An observation with correlations below this to all others says nothing about them: at 0.1 it
# explains a hundredth of their variance.
MIN_CORRELATION = 0.1
# A design that was fixed in advance looks chosen with at most this probability, for each of the two
# directions.
FALSE_ALARM_PROBABILITY = 0.001
# After fewer observations there is no best one to speak of.
FIRST_OBSERVATIONS = 5
# Shares of the box are counted on this many points that fill it.
BOX_POINTS = 256
# With fewer different points a fit of length scales says nothing.
MIN_POINTS = 5
# Outcomes that span less than the first part of the stated range, or more than the second, may be
# in another unit: per mille of a percentage, bar for kPa.
USUAL_SPAN = 0.02, 1.5


@dataclass(frozen=True, eq=False)
class Runs:
    """A table of runs: points (n, d) and outcomes (n,) in the user's units.

    Where outcomes are rates, ``measured`` has successes and tries (n, 2); otherwise it is the same
    as ``outcomes``. For messages, rows are named by their ``lines`` in a CSV file, or by their
    numbers from 1 on. Columns that are neither inputs nor outcomes are ``unused``.
    """

    points: Array
    outcomes: Array
    measured: Array
    lines: Sequence[int]
    noun: str
    unused: tuple[str, ...] = ()

    @classmethod
    def read(cls, problem: Problem, table: Any, name: str | None = None) -> Self:
        """Read runs from a CSV file, a dict of columns or a data frame, by the names of columns.

        Messages call a file by ``name``, or by its path.
        """
        columns, measured = table, problem.outcomes.names
        names = [*problem.inputs.names, *measured]
        lines: Sequence[int] = range(1, sys.maxsize)
        noun = place = "row"
        if isinstance(table, str | PathLike):
            found = read_table(problem, table, names, name)
            columns, lines, others = found.columns, found.lines.tolist(), found.others
            noun, place = "line", f"{name or os.fspath(table)}: line"
        elif not isinstance(table, Mapping) and not hasattr(table, "columns"):
            raise InputError(f"runs must be a CSV file or columns by name, got {brief(table)}.")
        else:
            others = tuple(str(one) for one in columns if one not in names)
        for column in measured:
            if column not in columns:
                raise InputError(f"a value of {column} is missing.")

        def at(row: int) -> str:
            return f"{place} {lines[row]}: "

        points = problem.inputs.checked_points(columns, at)
        each = [as_vector(columns[one], one, len(points)) for one in measured]
        told = np.stack(each, axis=-1) if problem.counts is not None else each[0]
        scaled, _ = problem.scaled_outcomes(told, at)
        outcomes = told if problem.counts is None else scaled
        return cls(points, outcomes, told, lines, noun, others)

    def refuse_more_levels_than_rows(self, problem: Problem) -> None:
        """Refuse a table that cannot have a row for each level: too little to bound anything."""
        for at, levels in problem.inputs.categories.items():
            if len(levels) > len(self.outcomes):
                raise InputError(
                    f"{problem.inputs.names[at]} has {len(levels)} levels, but the table has only "
                    f"{len(self.outcomes)} rows: merge some levels, or make more runs, so that "
                    "each level can have one."
                )

    def place(self, row: int) -> str:
        """Say where a row is: "line 3" of a file, or "row 2"."""
        return f"{self.noun} {self.lines[row]}"


def read_table(
    problem: Problem, path: str | PathLike[str], names: Sequence[str], name: str | None = None
) -> CsvTable:
    """Read columns of a CSV file, and refuse a unit in its header that is not the one stated.

    Messages call the file by ``name``, or by its path.
    """
    table = read_csv(path, names, problem.inputs.categories_by_name, name)
    for one in (*problem.inputs, problem.output):
        header = table.headers.get(one.name, one.name)
        unit = unit_in_header(one.name, header)
        if unit and one.unit and _written(unit) != _written(one.unit):
            raise InputError(
                f"{name or os.fspath(path)} has {one.name} in {shortened(unit)}, by its column "
                f"{brief(header)}, and it was stated in {one.unit}: convert the column, or, if its "
                f"numbers are in {one.unit}, name it {one.label!r} or {one.name!r}."
            )
    return table


def _written(unit: str) -> str:
    """Write a unit in one way: without blanks, and with one of the two signs for micro."""
    return "".join(unicodedata.normalize("NFKC", unit).split())


def first_few(names: Sequence[object]) -> str:
    """List the first of some names, and count the others."""
    more = f" and {len(names) - LINES_NAMED} more" if len(names) > LINES_NAMED else ""
    return ", ".join(map(str, names[:LINES_NAMED])) + more


def count_repeats(points: Array) -> int:
    """Count the rows (n, d) that repeat the settings of an earlier one."""
    return len(points) - len(np.unique(points, axis=0))


def share_alone(kernel: Kernel, points: Array) -> float:
    """Return the share of the distinct points (n, d) that the kernel relates to no other one.

    If most points are alone, the length scales are far too short for these data: between the
    points, no bound is narrower than without data.
    """
    distinct = np.unique(points, axis=0)
    if len(distinct) < 2:
        return 0.0
    matrix = kernels.cross(kernel, distinct, distinct)
    roots = np.sqrt(np.diag(matrix))
    correlations = np.abs(matrix / np.multiply.outer(roots, roots))
    np.fill_diagonal(correlations, 0.0)
    return float(np.mean(correlations.max(axis=1) < MIN_CORRELATION))


def doubtful_unit(problem: Problem, points: Array, outcomes: Array) -> str:
    """Ask whether outcomes (n,) are in the unit of the range; an empty text where it seems so.

    Points and outcomes are on the scale of the model. Noise explains some more than the range, and
    a few settings say little about how much an output moves.

    >>> problem = Problem(["x=0:1"], "yield[%]=0:100", noise=0.5)
    >>> print(doubtful_unit(problem, np.linspace(0, 1, 5)[:, None], np.linspace(0.5, 0.9, 5)))
    the outcomes of yield span 0.4 %, but its range was stated as 100 %: are both in the same unit?
    """
    out, low, high = problem.output, *USUAL_SPAN
    if problem.counts is not None or not len(outcomes):
        return ""
    span, few = float(np.ptp(outcomes)), len(np.unique(points, axis=0)) < MIN_POINTS
    most = high * out.span + 8 * (problem.stated_noise.scale or 0.0)
    if span <= most and (span >= low * out.span or few):
        return ""
    spanned = out.amount(float(out.difference(span)), "{:.3g}".format)
    return (
        f"the outcomes of {out.name} span {spanned}, but its range was stated as "
        f"{out.stated_range}: are both in the same unit?"
    )


def look_chosen(points: Array, outcomes: Array) -> bool:
    """Tell whether points (n, d), in their order, seem to follow the outcomes before them.

    For each new point after the first few, p is the share of the box around all points that is
    nearer to the best point so far. If the points were drawn from that box beforehand, the p are
    uniform and independent, wherever the best points are, and Fisher's test combines them. Designs
    that fill the box evenly come close to that; where a design seeks the maximum, or the minimum,
    many p are small.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    filling = qmc.Sobol(points.shape[1], rng=np.random.default_rng(0)).random(BOX_POINTS)
    box = low + (high - low) * filling
    shares = []
    for t in range(FIRST_OBSERVATIONS, len(points)):
        if np.any(np.all(points[:t] == points[t], axis=1)):
            continue  # Repeats are made to measure the noise.
        best = points[[np.argmax(outcomes[:t]), np.argmin(outcomes[:t])]]
        distances = np.linalg.norm(points[t] - best, axis=1)
        nearer = np.linalg.norm(box[:, None] - best, axis=2) < distances
        shares.append((np.count_nonzero(nearer, axis=0) + 1) / (BOX_POINTS + 1))
    tests = [combine_pvalues(side, method="fisher") for side in np.transpose(shares)]
    return any(one.pvalue < FALSE_ALARM_PROBABILITY for one in tests)
