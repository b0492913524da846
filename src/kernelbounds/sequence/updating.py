"""Adding the rows of a source to what is known: all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernelbounds.arrays import Array, as_points, as_whole, brief
from kernelbounds.bounds import Assumptions, ConfidenceSet
from kernelbounds.display.progress import late_progress
from kernelbounds.engine import Engine
from kernelbounds.errors import InputError
from kernelbounds.io.csv_table import check_names
from kernelbounds.io.sources import RowBatch, Source, as_source

Transform = Callable[[Array], Any]
# Rows between two reports of progress: with the largest dictionary they take about a second.
REPORTED = 1000


class Observed(NamedTuple):
    """Observations: points (n, d), outcomes (n,), and their noise scales (n,) or None."""

    points: Array
    outcomes: Array
    noise_scales: Array | None

    @classmethod
    def joined(cls, several: Sequence[Observed]) -> Observed:
        """One after the other; either all have noise scales or none."""
        points, outcomes, scales = zip(*several, strict=True)
        usual = scales[0] is None
        return cls(
            np.concatenate(points),
            np.concatenate(outcomes),
            None if usual else np.concatenate(scales),
        )

    def split(self, at: int) -> tuple[Observed, Observed]:
        """The first so many, and the others."""
        scales = self.noise_scales
        first, second = (None, None) if scales is None else (scales[:at], scales[at:])
        return (
            Observed(self.points[:at], self.outcomes[:at], first),
            Observed(self.points[at:], self.outcomes[at:], second),
        )


@dataclass(frozen=True, eq=False)
class Intake:
    """Checked observations from a source.

    Attributes
    ----------
    source : Source
    columns : list of str
        The inputs, the output, and the noise scales where they have a column.
    inputs : int
        How many of them are inputs.
    dim : int or None
        Of the points; None where it is not known yet.
    assumptions : Assumptions
        Of the sequence, which say what noise scales may be.
    transform : function or None
        Of inputs (n, k), to points (n, d).
    most : int
        Rows in a batch.
    """

    source: Source
    columns: list[str]
    inputs: int
    dim: int | None
    assumptions: Assumptions
    transform: Transform | None
    most: int

    def batches(self) -> Iterator[Observed]:
        """All observations, in order."""
        dim = self.dim
        for rows in self.source.rows(self.columns, self.most):
            some = self.observed(rows, dim)
            dim = some.points.shape[1]
            yield some

    def observed(self, rows: RowBatch, dim: int | None) -> Observed:
        """Those of a batch of rows, checked; ``dim`` is that of the points, where it is known."""

        def transformed(inputs: Array) -> Array:
            assert self.transform is not None
            points = as_points(self.transform(inputs.copy()), "what transform makes", dim)
            if len(points) != len(inputs):
                raise InputError(
                    f"transform made {len(points)} points of {len(inputs)} rows; it must make one "
                    "of each."
                )
            return points

        points, outcomes = rows.values[:, : self.inputs], rows.values[:, self.inputs]
        if self.transform is not None:
            points = _by_row(rows, transformed, points)
        scales = None
        if len(self.columns) > self.inputs + 1:
            scales = _by_row(rows, self._scales, rows.values[:, -1])
        return Observed(points, outcomes, scales)

    def _scales(self, given: Array) -> Array | None:
        return self.assumptions.checked_noise_scales(given, len(given))


def intake(
    source: Any,
    inputs: Any,
    output: Any,
    noise_scale: Any,
    transform: Any,
    batch: Any,
    dim: int | None,
    assumptions: Assumptions,
) -> Intake:
    """From what users pass, checked before anything is read."""
    if isinstance(inputs, str) or not isinstance(inputs, Sequence) or not inputs:
        raise InputError(
            f"inputs must be a list of the names of one or more columns, got {brief(inputs)}."
        )
    if not isinstance(output, str):
        raise InputError(f"output must be the name of a column, got {brief(output)}.")
    if noise_scale is not None and not isinstance(noise_scale, str):
        raise InputError(
            "noise_scale must be None, for that of the sequence, or the name of a column, got "
            f"{brief(noise_scale)}."
        )
    if transform is not None and not callable(transform):
        raise InputError(f"transform must be a function of points, got {brief(transform)}.")
    columns = [*inputs, output] + ([] if noise_scale is None else [noise_scale])
    check_names(columns)
    if transform is None and dim not in (None, len(inputs)):
        raise InputError(
            f"inputs has {len(inputs)} columns, but points of the sequence have {dim} dimensions."
        )
    most = as_whole(batch, "batch", least=1)
    return Intake(as_source(source), columns, len(inputs), dim, assumptions, transform, most)


def add(known: ConfidenceSet, given: Intake, progress: bool | None) -> int:
    """Add all observations, and return how many; on an error or an interrupt none are added."""
    if known.radius_engine.approximation() is None:
        return _add_at_once(known, given, progress)
    total = None
    if given.source.again:
        # What is wrong with the last row is said before hours are spent on the others.
        total = sum(len(some.outcomes) for some in _watched(given, "checking", None, progress))
    return _add_by_blocks(known, given, total, progress)


def _add_at_once(known: ConfidenceSet, given: Intake, progress: bool | None) -> int:
    """For an engine that keeps all observations anyway."""
    batches = list(_watched(given, "reading", None, progress))
    refuse_nothing(sum(len(some.outcomes) for some in batches))
    together = Observed.joined(batches)
    with known.lock:
        # Another thread may have added the first observations meanwhile.
        as_points(together.points[:1], "inputs", known.radius_engine.dim)
        known.add(*together)
    return len(together.outcomes)


def _add_by_blocks(
    known: ConfidenceSet, given: Intake, total: int | None, progress: bool | None
) -> int:
    """For an engine of fixed size: a copy grows, and takes its place at the end.

    The copy takes whole blocks, so that the batches of the source make no difference.
    """
    with known.lock:
        before = known.radius_engine
        start = before.data.count
        grown = before.snapshot()
    append_all(known, grown, _watched(given, "adding", total, progress))
    return take_over(known, before, start, grown)


def add_rows(known: ConfidenceSet, rows: Observed) -> None:
    """Add observations that are there already; on an error or an interrupt none are added.

    Where many take long, progress is shown on a terminal.
    """
    total = len(rows.outcomes)
    if known.radius_engine.approximation() is None or total <= REPORTED:
        known.add(*rows)
        return
    with known.lock, late_progress("adding", total) as report:
        grown = known.radius_engine.snapshot()
        append_all(known, grown, _reported(rows, report))
        known.evidence.radius_engine = grown


def _reported(rows: Observed, report: Callable[..., None]) -> Iterator[Observed]:
    """Rows a batch at a time, of which each is reported once it was taken."""
    done, total = 0, len(rows.outcomes)
    while len(rows.outcomes):
        some, rows = rows.split(REPORTED)
        yield some
        done += len(some.outcomes)
        report(f"{done:,} of {total:,} rows", done)


def append_all(known: ConfidenceSet, grown: Any, batches: Iterable[Observed]) -> None:
    """Append batches to a sparse engine, in the blocks in which it would take all in one go."""
    waiting: list[Observed] = []
    for some in batches:
        together = Observed.joined([*waiting, some])
        now, later = together.split(grown.whole_blocks(len(together.outcomes)))
        if len(now.outcomes):
            grown.append(now.points, known.told(*now))
        waiting = [later]
    if waiting and len(waiting[0].outcomes):
        grown.append(waiting[0].points, known.told(*waiting[0]))


def take_over(known: ConfidenceSet, before: Engine, start: int, grown: Engine) -> int:
    """Put an engine that has grown in the place of the one before it, which had so many."""
    added = int(grown.data.count - start)
    refuse_nothing(added)
    with known.lock:
        if known.radius_engine is not before or before.data.count != start:
            raise InputError(
                "other observations were added while the source was read, so that its own were "
                "not; add one after the other."
            )
        known.evidence.radius_engine = grown
    return added


def _watched(
    given: Intake, doing: str, total: int | None, progress: bool | None
) -> Iterator[Observed]:
    """The batches, with progress on the terminal."""
    done = 0
    with late_progress(doing, total, progress) as report:
        for some in given.batches():
            yield some
            done += len(some.outcomes)
            report(f"{done:,} rows", done)


def refuse_nothing(count: int) -> None:
    """Raise where a source has no rows."""
    if not count:
        raise InputError("the source has no rows; pass at least one.")


def _by_row(rows: RowBatch, check: Callable[[Array], Any], values: Array) -> Any:
    """``check(values)``, where an error names the row that it is about."""
    try:
        return check(values)
    except InputError:
        for row in range(len(values)):
            try:
                check(values[row : row + 1])
            except InputError as error:
                what = str(error).removeprefix("row 0: ")
                raise InputError(f"{rows.place(row)}: {what}") from error
        raise
