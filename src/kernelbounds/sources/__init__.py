"""Where rows of numbers come from: files, folders of files, and tables of other libraries.

A source gives the columns asked for in batches, and holds no more than one of them in memory. What
is not a number is refused with its place, and no row is left out in silence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kernelbounds import files
from kernelbounds.arrays import brief
from kernelbounds.csv_table import csv_batches, named
from kernelbounds.errors import InputError
from kernelbounds.sources.arrow import parquet_count, parquet_rows, stream_rows
from kernelbounds.sources.dask_frames import (
    frame_rows,
    is_dask_frame,
    partition_rows,
    partitions,
)
from kernelbounds.sources.rows import Rows

__all__ = [
    "Rows",
    "Source",
    "as_source",
    "is_parquet",
    "parquet_count",
    "parquet_rows",
    "partition_rows",
    "partitions",
]

ENDINGS = (".csv", ".tsv", ".parquet", ".pq")  # of the files in a folder


@dataclass(frozen=True, eq=False)
class Source:
    """Files, in their order, or a stream, or a Dask dataframe."""

    paths: tuple[Path, ...] = ()
    stream: Any = None
    frame: Any = None

    @property
    def again(self) -> bool:
        """Whether its rows can be read more than once, without what made them being done again."""
        return bool(self.paths)

    def rows(self, columns: Sequence[str], most: int) -> Iterator[Rows]:
        """All of them, in batches of so many at most."""
        if self.stream is not None:
            yield from stream_rows(self.stream, columns, most)
        if self.frame is not None:
            yield from frame_rows(self.frame, columns, most)
        for path in self.paths:
            if is_parquet(path):
                yield from parquet_rows(path, columns, most)
                continue
            first = 0
            for table in csv_batches(path, columns, rows=most):
                values = np.stack([table.columns[name] for name in columns], axis=-1)
                yield Rows(values, columns, named(path), first, table.lines)
                first += len(values)


def as_source(given: Any) -> Source:
    """A source, from what users pass."""
    if is_dask_frame(given):
        return Source(frame=given)
    if hasattr(given, "__arrow_c_stream__"):
        return Source(stream=given)
    if isinstance(given, list | tuple):
        paths = [path for one in given for path in _files(one)]
    else:
        paths = _files(given)
    if not paths:
        raise InputError("the list of files is empty; pass at least one.")
    seen: set[str] = set()
    for path in paths:
        if (whole := os.path.realpath(path)) in seen:
            raise InputError(f"{named(path)} is among the files twice; name it once.")
        seen.add(whole)
    return Source(tuple(paths))


def _files(given: Any) -> list[Path]:
    """A file, or all files of a folder by name."""
    if not isinstance(given, str | os.PathLike):
        raise InputError(
            "a source must be a CSV or Parquet file, a folder of them, a list of paths, a table "
            f"with __arrow_c_stream__, or a Dask dataframe, got {brief(given)}."
        )
    path = files.as_path(given)
    if not path.is_dir():
        return [path]
    with files.failure_reported(f"read {named(path)}"):
        found = sorted(one for one in path.iterdir() if one.name[0] not in "._")
    for one in found:
        if one.is_dir() or one.suffix.lower() not in ENDINGS:
            raise InputError(
                f"{named(path)} has {brief(one.name)} in it, which is not one of "
                f"{', '.join(ENDINGS)}; pass a list of the files that are meant."
            )
    for before, after in pairwise(found):
        if _by_numbers(before.name) > _by_numbers(after.name):
            raise InputError(
                f"{named(path)} has {brief(before.name)} and {brief(after.name)}, whose order is "
                "not clear; pass a list of the files in their order."
            )
    if not found:
        raise InputError(f"{named(path)} has no files ending in {', '.join(ENDINGS)}.")
    return found


def _by_numbers(name: str) -> list[tuple[int, str]]:
    """By which 2 is before 10."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if at % 2 else (0, part) for at, part in enumerate(parts)]


def is_parquet(path: Path) -> bool:
    """By its first bytes, whatever its name is."""
    with files.failure_reported(f"read {named(path)}"):
        files.check_regular(path.stat().st_mode)
        with open(path, "rb") as file:
            return file.read(4) == b"PAR1"
