"""Results of jobs: computed where they are missing, kept in files, and summarised.

A file is an npz archive of arrays with a JSON header: the job's exact settings, the versions of
what computed it, and a checksum of the numbers. It is written under a temporary name and renamed.

Jobs run on this machine's cores, or on a Dask cluster. Whoever computes a job on this machine
writes its file, so that whatever interrupts the run loses only the jobs under way. On a cluster
the workers return their numbers and this process writes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scipy.stats import binomtest, t as student
from threadpoolctl import threadpool_limits

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError, MissingExtraError, StoredFileError, said
from kernelbounds.io import archive, files
from kernelbounds.paper.specs import Choices, Job
from kernelbounds.version import __version__

FORMAT, VERSION = "kernelbounds.paper.Cell", 1
RETRIES = 5  # of a job whose worker on a cluster died


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
            with self._failure_reported():
                if not manifest.exists():
                    files.write_text(manifest, json.dumps(wanted) + "\n")
                found = json.loads(manifest.read_text())
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
        with self._failure_reported():
            self._files.mkdir(parents=True, exist_ok=True)

    def _failure_reported(self) -> Any:
        return files.failure_reported(f"write results to {str(self.folder)!r}")

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
        """Read the versions of the software that computed a job."""
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
    """Return the versions of everything that numbers depend on, including these packages."""
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


# --- running jobs


def run_missing(
    jobs: Sequence[Job],
    store: ResultStore,
    workers: int,
    dask: str | None = None,
    say: Callable[[str], None] = print,
) -> int:
    """Compute the jobs that are not done yet, and return how many those were."""
    if dask is not None and not dask.strip():
        raise InputError("the address of the Dask cluster is empty; it looks like tcp://host:8786.")
    states = {job: store.state(job) for job in jobs}
    for job, state in states.items():
        if state == "damaged":
            say(f"{store.path(job)} was edited or damaged; it will be computed again")
    missing = [job for job, state in states.items() if state != "done"]
    if not missing:
        return 0
    # Timed jobs have the machine to themselves; the longest of the others come first.
    timed = [job for job in missing if job.timed]
    others = sorted((job for job in missing if not job.timed), key=lambda job: -job.cost)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    first = _on_cluster(others, store, dask) if dask else _here(others, store, workers)
    done = itertools.chain(first, _here(timed, store, 1))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for _ in progress.track(done, total=len(missing), description="running"):
            pass
    return len(missing)


def run_job(job: Job) -> dict[str, Array]:
    """Compute the arrays of a job, with one thread."""
    with threadpool_limits(1):
        return job.run()


def _here(jobs: list[Job], store: ResultStore, workers: int) -> Iterator[Job]:
    if workers == 1:
        return (_run_and_write(job, store) for job in jobs)
    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    done: Iterator[Job] = parallel(delayed(_run_and_write)(job, store) for job in jobs)
    return done


def _run_and_write(job: Job, store: ResultStore) -> Job:
    store.write(job, run_job(job))
    return job


def _on_cluster(jobs: list[Job], store: ResultStore, address: str) -> Iterator[Job]:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("Running on a Dask cluster", "dask") from error
    cluster: Any = distributed  # its types are incomplete
    try:
        connected = cluster.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot reach a Dask scheduler at {address!r}: {said(error)}.") from error
    with connected as client:
        tasks = {client.submit(run_job, job, retries=RETRIES, pure=False): job for job in jobs}
        for future in cluster.as_completed(tasks):
            store.write(tasks[future], future.result())
            yield tasks[future]
            future.release()


def written_together(folder: Path, write: Callable[[Path], str]) -> tuple[str, list[Path]]:
    """Replace files of a folder by those that ``write`` makes elsewhere, each as a whole.

    Nothing is replaced before all files are made. Return what ``write`` returns, and the files.
    """
    with tempfile.TemporaryDirectory() as place:
        text = write(Path(place))
        made = sorted(Path(place).iterdir())
        for one in made:
            target = folder / one.name
            with files.failure_reported(f"write {str(target)!r}"), files.replacing(target) as file:
                file.write(one.read_bytes())
    return text, [folder / one.name for one in made]


# --- what repetitions say together

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
        found.append(Repetitions(members[0], stacked([store.read(job) for job in members])))
    return found


def stacked(found: Sequence[dict[str, Array]]) -> dict[str, Array]:
    """Stack the arrays of each name along a new first axis."""
    return {name: np.array([one[name] for one in found]) for name in found[0]}


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
        return f"{text} {self.interval(style)}".rstrip()

    def interval(self, style: str) -> str:
        """Return the interval as text; no text where it is infinite."""
        return f"[{self.low:{style}}, {self.high:{style}}]" if math.isfinite(self.low) else ""


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


def crossed(
    found: Iterable[T],
    row: Callable[[T], str],
    column: Callable[[T], str],
    shown: Callable[[T], str],
) -> list[list[str]]:
    """Return a table with a row and a column for each title, in order, and texts in the cells."""
    cells = {(row(one), column(one)): shown(one) for one in found}
    rows, columns = (dict.fromkeys(titles) for titles in zip(*cells, strict=True))
    return [
        ["", *columns],
        *([head, *(cells.get((head, c), "") for c in columns)] for head in rows),
    ]


def under_headings(tables: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Return several tables as text, each under its heading."""
    return "\n".join("\n".join([head, *aligned(rows), ""]) for head, rows in tables.items())


def csv_text(rows: Iterable[Mapping[str, object]], head: Iterable[str] = ()) -> str:
    """Return rows, each by the names of the columns, as CSV.

    The columns are those of the first row, and ``head`` where there may be no row. A float has six
    digits, and an empty cell where it is not finite.
    """

    def shown(value: object) -> object:
        if not isinstance(value, float):
            return value
        return f"{value:.6g}" if math.isfinite(value) else ""

    texts = [{name: shown(value) for name, value in row.items()} for row in rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(head) or list(texts[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(texts)
    return out.getvalue()
