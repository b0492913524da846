"""One command: run what is missing, then write tables, figures and the report.

Jobs run on this machine's cores, or on a Dask cluster. Whoever computes a job on this machine
writes its file, so that whatever interrupts the run loses only the jobs under way. On a cluster
the workers return their numbers and this process writes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError, MissingExtraError, said
from kernelbounds.io import files
from kernelbounds.paper import (
    bounds_compared,
    cells,
    certified_rounds,
    contenders,
    designs,
    figures,
    optimisers,
    proved_regret,
    regret_by_radius,
    report,
    scale,
    specs,
    table1,
)
from kernelbounds.paper.results import MethodRuns, ResultStore, collect, software
from kernelbounds.paper.specs import (
    CertificateRun,
    Choices,
    DesignRuns,
    Job,
    Load,
    OptimiserRun,
    RivalRun,
)

Run = Callable[[Any], dict[str, Array]]  # from a job to its arrays

# Relative times of jobs, by their kind; others have 1.
COST = {
    "CMM": 3.0, "DMM": 2.5, "Random": 0.4, "AMM recursion": 3.0, "DMM recursion": 12.0,
    "CMM scales": 4.0, "CMM default": 3.0, "CMM limit": 3.0,
    "looks": 12.0, "striking": 6.0, "fixed": 3.0, "policy": 3.0, "hoped": 2.0,
    "OnlineToSet 2012": 8.0, "Emmenegger 2023": 8.0,
}  # fmt: skip
RETRIES = 5  # of a job whose worker on a cluster died

DRAWN: dict[str, Callable[[list[MethodRuns], Path, str], None]] = {
    "figure2": figures.draw_regret,
    "figure-time": figures.draw_times,
    "figure-2d": figures.draw_regret,
    "figure-4d": figures.draw_regret,
    "figure-loose": figures.draw_loose,
}
# From jobs, results and a folder to tables as text; each experiment has jobs of one kind.
WRITTEN: dict[str, Callable[[list[Any], ResultStore, Path], str]] = {
    "theory": proved_regret.write,
    "tightness": regret_by_radius.write,
    "certificates": certified_rounds.write,
    "designs": designs.write,
    "scale": scale.write,
    "rivals": bounds_compared.write,
    "optimisers": optimisers.write,
}


@dataclass(frozen=True)
class Reproduced:
    """What a reproduction has done."""

    computed: int  # jobs
    files: list[Path]
    table: str  # those of the experiments that have one, as text


def reproduce(
    names: Iterable[str],
    choices: Choices,
    out: Path,
    workers: int = 1,
    dask: str | None = None,
    say: Callable[[str], None] = print,
) -> Reproduced:
    """Reproduce experiments of the paper into the folder ``out``.

    Jobs that are done already are not computed again. Tables, figures and the report are made
    from their results; each file is replaced as a whole, and none before all are made.
    """
    experiments = specs.checked_experiments(list(names))
    if "optimisers" in experiments and (absent := contenders.missing()):
        say(absent)
    store = ResultStore(out)
    store.open(choices)
    start = time.monotonic()
    jobs = specs.all_jobs(experiments, choices)
    computed = run_missing(jobs, store, workers, dask, say)
    where = f"the Dask cluster at {dask}" if dask else f"{workers} worker(s) on this machine"
    used = {f"{key} {value}" for job in jobs for key, value in store.software(job).items()}
    facts = {
        "rounds": str(choices.rounds),
        "repetitions": str(choices.repetitions),
        "seed": str(choices.seed),
        "methods": ", ".join(choices.methods),
        "cells": f"{len(jobs)}, of which {computed} computed in this run",
        "this run": f"{time.monotonic() - start:.0f} s on {where}",
        "computed with": "; ".join(
            sorted(used or {f"{key} {value}" for key, value in software().items()})
        ),
    }
    # The report is about everything that is there, not only what was asked for this time.
    for name in specs.EXPERIMENTS:
        more = specs.jobs(name, choices)
        if name not in experiments and more and all(store.state(job) == "done" for job in more):
            experiments.append(name)
    runs = {name: collect(specs.cells(name, choices), store) for name in experiments}

    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder)
        texts = [table1.write(runs["table1"], new)] if "table1" in runs else []
        for name in specs.EXPERIMENTS:
            if name in experiments and name in DRAWN:
                DRAWN[name](runs[name], new, name)
            if name in experiments and name in WRITTEN:
                texts.append(WRITTEN[name](specs.jobs(name, choices), store, new))
        if "figure1" in experiments:
            figures.draw_figure1(figures.run_figure1(), new)
        compared = table1.recursion_comparison(runs.get("table1", []), runs.get("figure-time", []))
        if compared:
            facts["speed"] = compared
            say(compared)
        (new / "report.html").write_text(report.as_html(runs, facts, new), encoding="utf-8")
        made = sorted(new.iterdir())
        for one in made:
            target = out / one.name
            with files.failure_reported(f"write {str(target)!r}"), files.replacing(target) as file:
                file.write(one.read_bytes())
    return Reproduced(computed, [out / one.name for one in made], "\n".join(texts))


def run_missing(
    jobs: Sequence[Job],
    store: ResultStore,
    workers: int,
    dask: str | None = None,
    say: Callable[[str], None] = print,
    run: Run | None = None,
) -> int:
    """Compute the jobs that are not done yet, and return how many those were.

    ``run`` computes a job in a process of its own; None is :func:`run_job`.
    """
    if dask is not None and not dask.strip():
        raise InputError("the address of the Dask cluster is empty; it looks like tcp://host:8786.")
    compute = run or run_job
    states = {job: store.state(job) for job in jobs}
    for job, state in states.items():
        if state == "damaged":
            say(f"{store.path(job)} was edited or damaged; it will be computed again")
    missing = [job for job, state in states.items() if state != "done"]
    if not missing:
        return 0
    # Timed jobs have the machine to themselves; the longest of the others come first.
    timed = [job for job in missing if job.timed]
    others = sorted((j for j in missing if not j.timed), key=lambda j: -COST.get(j.kind, 1.0))
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("running", total=len(missing))
        for _ in (
            _on_cluster(others, store, dask, compute)
            if dask
            else _here(others, store, workers, compute)
        ):
            progress.advance(task)
        for _ in _here(timed, store, 1, compute):
            progress.advance(task)
    return len(missing)


def run_job(job: Job) -> dict[str, Array]:
    """Compute the arrays of a job, with one thread."""
    with threadpool_limits(1):
        match job:
            case specs.Cell():
                return cells.run_cell(job)
            case CertificateRun():
                return certified_rounds.run(job)
            case DesignRuns():
                return designs.run(job)
            case Load():
                return scale.run(job)
            case RivalRun():
                return bounds_compared.run(job)
            case OptimiserRun():
                return optimisers.run(job)
    raise TypeError(f"no experiment has jobs of type {type(job).__name__}")


def _here(jobs: list[Job], store: ResultStore, workers: int, run: Run) -> Iterator[Job]:
    if workers == 1:
        return (_run_and_write(job, store, run) for job in jobs)
    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    done: Iterator[Job] = parallel(delayed(_run_and_write)(job, store, run) for job in jobs)
    return done


def _run_and_write(job: Job, store: ResultStore, run: Run) -> Job:
    store.write(job, run(job))
    return job


def _on_cluster(jobs: list[Job], store: ResultStore, address: str, run: Run) -> Iterator[Job]:
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
        tasks = {client.submit(run, job, retries=RETRIES, pure=False): job for job in jobs}
        for future in cluster.as_completed(tasks):
            store.write(tasks[future], future.result())
            yield tasks[future]
            future.release()
