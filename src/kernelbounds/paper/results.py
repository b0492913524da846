"""Results: on disk one file a job, in memory the repetitions of a method, and both as text.

A file is an npz archive of arrays with a JSON header: the job's exact settings, the versions of
what computed it, and a checksum of the numbers. It is written under a temporary name and renamed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.stats import t as student

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError, StoredFileError
from kernelbounds.io import archive, files
from kernelbounds.paper.specs import Cell, Choices, Job, Setting
from kernelbounds.version import __version__

FORMAT, VERSION = "kernelbounds.paper.Cell", 1

T = TypeVar("T")
Key = TypeVar("Key")


class ResultStore:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = folder / "cells"

    def open(self, choices: Choices) -> None:
        """Make the folder, or check that it has results of the same seed and number of rounds."""
        wanted = {"seed": choices.seed, "rounds": choices.rounds}
        manifest = self.folder / "settings.json"
        self.make()
        try:
            if not manifest.exists():
                files.write_text(manifest, json.dumps(wanted) + "\n")
            found = json.loads(manifest.read_text())
        except OSError as error:
            raise self._unwritable(error) from error
        except json.JSONDecodeError:
            raise StoredFileError(f"{str(manifest)!r} is damaged; use another folder.") from None
        if found != wanted:
            described = ", ".join(f"{key} = {value}" for key, value in found.items())
            raise InputError(
                f"{str(self.folder)!r} holds results with {described}; use another folder, or the "
                "same settings to go on with it."
            )

    def make(self) -> None:
        """Make the folder, where there is none."""
        try:
            self._files.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"cannot write results to {str(self.folder)!r}: {error.strerror}.")

    def path(self, job: Job) -> Path:
        """Return the path of a job's file."""
        return self._files / f"{job.name}.npz"

    def write(self, job: Job, arrays: dict[str, Array]) -> None:
        """Write the result of a job."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "cell": job.as_data(),
            "software": software(*job.packages),
            "checksum": _checksum(job, arrays),
        }
        archive.write(self.path(job), header, arrays)

    def read(self, job: Job) -> dict[str, Array]:
        """Read the result of a job; :class:`StoredFileError` when missing, damaged or edited."""
        header, arrays = self._read(job)
        if header.get("checksum") != _checksum(job, arrays) or header["cell"] != job.as_data():
            raise StoredFileError(f"{str(self.path(job))!r} was edited or damaged.")
        return arrays

    def software(self, job: Job) -> dict[str, Any]:
        """Read what a job was computed with."""
        return dict(self._read(job)[0]["software"])

    def state(self, job: Job) -> str:
        """Say whether a result is ``done``, ``missing`` or ``damaged``."""
        if not self.path(job).exists():
            return "missing"
        try:
            self.read(job)
        except StoredFileError:
            return "damaged"
        return "done"

    def _read(self, job: Job) -> tuple[dict[str, Any], dict[str, Array]]:
        return archive.read(self.path(job), FORMAT, VERSION, "the result of a cell")


def software(*packages: str) -> dict[str, str]:
    """Return the versions of everything that numbers depend on, these packages among it."""
    return {
        "kernelbounds": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", *packages)},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
    }


def _checksum(job: Job, arrays: dict[str, Array]) -> str:
    digest = hashlib.sha256(json.dumps(job.as_data(), sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def grouped(things: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    """Put things with equal keys together, in order."""
    groups: dict[Key, list[T]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups


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


def standard_error(values: Array) -> float:
    """Return the standard error of the mean; nan for a single value."""
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan


@dataclass(frozen=True)
class MethodRuns:
    """All repetitions of one method in one setting."""

    setting: Setting
    method: str
    regret: Array  # cumulative, (repetitions, rounds)
    seconds: Array  # of each step, (repetitions, rounds)

    @property
    def final(self) -> Array:
        """Cumulative regret at the end, (repetitions,)."""
        return np.asarray(self.regret[:, -1])

    @property
    def mean(self) -> float:
        """Mean over the repetitions, at the end."""
        return float(self.final.mean())

    @property
    def std(self) -> float:
        """Standard deviation over the repetitions, at the end; nan for a single one."""
        return float(self.final.std(ddof=1)) if len(self.final) > 1 else math.nan


def collect(cells: Sequence[Cell], store: ResultStore) -> list[MethodRuns]:
    """Read the runs of each setting and method, in the order of the cells."""
    result = []
    for (setting, method), members in grouped(cells, lambda c: (c.setting, c.method)).items():
        found = [store.read(cell) for cell in sorted(members, key=lambda cell: cell.repetition)]
        regret = np.cumsum([one["regret"] for one in found], axis=1)
        seconds = np.array([one["seconds"] for one in found])
        result.append(MethodRuns(setting, method, regret, seconds))
    return result


def find(runs: list[MethodRuns], setting: Setting, method: str) -> MethodRuns | None:
    """Return the runs of a method in a setting, if there are any."""
    return next((one for one in runs if (one.setting, one.method) == (setting, method)), None)


def settings_of(runs: list[MethodRuns]) -> list[Setting]:
    """Return the settings of the runs, in order."""
    return list(dict.fromkeys(one.setting for one in runs))


# --- as text and as files


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


def numbers(*values: float) -> list[str]:
    """Return numbers for a CSV file, with empty cells for what is not finite."""
    return [f"{value:.6g}" if math.isfinite(value) else "" for value in values]


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


def write_texts(folder: Path, name: str, text: str, as_csv: str) -> str:
    """Write the text and the CSV of an experiment, and return the text."""
    (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / f"{name}.csv").write_text(as_csv, encoding="utf-8")
    return text
