"""Add the rows of a source to a sequence, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kernelbounds.arrays import Array, as_points, as_whole, brief
from kernelbounds.bounds import Assumptions, ConfidenceSet
from kernelbounds.display import late_progress
from kernelbounds.engine import Engine
from kernelbounds.errors import InputError
from kernelbounds.io.csv_file import check_names
from kernelbounds.io.sources import RowBatch, Source, as_source
from kernelbounds.sequence.sparse import Observed, append_in_blocks

Transform = Callable[[Array], Any]


@dataclass(frozen=True, eq=False)
class Intake:
    """A source of rows, and how they become checked observations.

    Attributes
    ----------
    source : Source
    columns : list of str
        The inputs, the output, and the noise scales where they have a column.
    inputs : int
        How many of these columns are inputs.
    dim : int or None
        The dimension of the points; None where it is not known yet.
    assumptions : Assumptions
        What the sequence assumes, which says what noise scales may be.
    transform : function or None
        A function from inputs (n, k) to points (n, d).
    most : int
        The largest number of rows in a batch.
    """

    source: Source
    columns: list[str]
    inputs: int
    dim: int | None
    assumptions: Assumptions
    transform: Transform | None
    most: int

    def batches(self) -> Iterator[Observed]:
        """Read and check all observations, in order."""
        dim = self.dim
        for rows in self.source.rows(self.columns, self.most):
            some = self.observed(rows, dim)
            dim = some.points.shape[1]
            yield some

    def observed(self, rows: RowBatch, dim: int | None) -> Observed:
        """Check a batch of rows, whose points have dimension ``dim``, as observations."""

        def transformed(inputs: Array) -> Array:
            assert self.transform is not None
            points = as_points(self.transform(inputs.copy()), "the result of transform", dim)
            if len(points) != len(inputs):
                raise InputError(
                    f"transform made {len(points)} points from {len(inputs)} rows; it must make "
                    "one point from each row."
                )
            return points

        def checked_scales(given: Array) -> Array | None:
            return self.assumptions.checked_noise_scales(given, len(given))

        points, outcomes = rows.values[:, : self.inputs], rows.values[:, self.inputs]
        if self.transform is not None:
            points = _by_row(rows, transformed, points)
        scales = None
        if len(self.columns) > self.inputs + 1:
            scales = _by_row(rows, checked_scales, rows.values[:, -1])
        return Observed(points, outcomes, scales)


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
    """Check what a user passed, before anything is read."""
    if isinstance(inputs, str) or not isinstance(inputs, Sequence) or not inputs:
        raise InputError(
            f"inputs must be a list of the names of one or more columns, got {brief(inputs)}."
        )
    if not (isinstance(output, str) and isinstance(noise_scale, str | None)):
        raise InputError(
            "output must be the name of a column, and noise_scale too, or None for that of the "
            f"sequence, got {brief(output)} and {brief(noise_scale)}."
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
        batches = list(_watched(given, "reading", None, progress))
        refuse_nothing(sum(len(some.outcomes) for some in batches))
        together = Observed.joined(batches)
        with known.evidence.lock:
            # Another thread may have added the first observations meanwhile.
            as_points(together.points[:1], "inputs", known.radius_engine.dim)
            known.evidence.add(*together)
        return len(together.outcomes)
    total = None
    if given.source.again:
        # What is wrong with the last row is said before hours are spent on the others.
        total = sum(len(some.outcomes) for some in _watched(given, "checking", None, progress))
    # A copy grows, by whole blocks so that batches make no difference, and takes over at the end.
    with known.evidence.lock:
        before = known.radius_engine
        start = before.data.count
        grown = before.snapshot()
    append_in_blocks(known, grown, _watched(given, "adding", total, progress))
    return take_over(known, before, start, grown)


def take_over(known: ConfidenceSet, before: Engine, start: int, grown: Engine) -> int:
    """Put a grown engine in the place of ``before``, which had ``start`` observations."""
    added = int(grown.data.count - start)
    refuse_nothing(added)
    with known.evidence.lock:
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
    """Read the batches of observations, and show progress on the terminal."""
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
    """Return ``check(values)``; an error names the row that it is about."""
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
