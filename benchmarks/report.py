"""A benchmark's result: one row of the table, with the target that it must meet."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Literal

from rich.table import Table

Target = tuple[Literal["<=", ">="], float]

START = time.perf_counter()


@dataclass(frozen=True)
class Row:
    """A measured value and its target, which is None for a row that only informs."""

    name: str
    ours: str
    rival: str
    value: float | None  # None when the rival is missing
    unit: str
    target: Target | None = None

    @property
    def ok(self) -> bool | None:
        if self.target is None or self.value is None:
            return None
        relation, limit = self.target
        return bool(self.value <= limit if relation == "<=" else self.value >= limit)

    def as_data(self) -> dict[str, object]:
        return {**vars(self), "ok": self.ok}


def faster(name: str, ours: float, rival: float, target: float | None) -> Row:
    """Times in seconds of the two sides; we are to be at least ``target`` times faster."""
    wanted: Target | None = None if target is None else (">=", target)
    return Row(name, seconds(ours), seconds(rival), rival / ours, "times faster", wanted)


def share(name: str, ours: float, rival: float, target: float | None) -> Row:
    """Times in seconds of the two sides; ours is to be at most ``target`` times the rival's."""
    wanted: Target | None = None if target is None else ("<=", target)
    return Row(name, seconds(ours), seconds(rival), ours / rival, "of its time", wanted)


def agreement(name: str, difference: float, limit: float) -> Row:
    """How far the two sides' answers are apart, or a one-sided violation."""
    return Row(name, "", "", difference, "difference", ("<=", limit))


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def table(rows: list[Row]) -> Table:
    result = Table("benchmark", "ours", "rival", "ratio", "target", "ok")
    marks = {True: "[green]yes[/]", False: "[bold red]NO[/]", None: "-"}
    for row in rows:
        value = "-" if row.value is None else f"{row.value:.3g} {row.unit}"
        target = "-" if row.target is None else f"{row.target[0]} {row.target[1]:g}"
        result.add_row(row.name, row.ours, row.rival, value, target, marks[row.ok])
    return result


def progress(message: str) -> None:
    print(f"{time.perf_counter() - START:6.0f} s  {message}", file=sys.stderr, flush=True)
