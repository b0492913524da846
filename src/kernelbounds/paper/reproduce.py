"""One command: run what is missing, then write tables, figures and the report.

Running many cells: on this machine's cores, or on a Dask cluster.

Whoever computes a cell on this machine writes its file, so that whatever interrupts the run loses
only the cells under way. On a cluster the workers return their numbers and this process writes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError, MissingExtraError, said
from kernelbounds.io import files
from kernelbounds.paper import (
    certificates,
    designs,
    figures,
    figures as figure1,
    report,
    scale,
    specs,
    tables,
    theory,
    tightness,
)
from kernelbounds.paper.cells import run_cell
from kernelbounds.paper.specs import Choices, Job
from kernelbounds.paper.store import Store, software
from kernelbounds.paper.tables import Runs, collect, speed

COST = {
    "CMM": 3.0, "DMM": 2.5, "Random": 0.4, "AMM recursion": 3.0, "DMM recursion": 12.0,
    "CMM scales": 4.0, "CMM default": 3.0, "CMM limit": 3.0,
    "looks": 12.0, "striking": 6.0, "fixed": 3.0, "policy": 3.0, "hoped": 2.0,
}  # fmt: skip
RETRIES = 5  # of a cell whose worker on a cluster died


def run(
    cells: list[Job],
    store: Store,
    workers: int,
    dask: str | None = None,
    say: Callable[[str], None] = print,
) -> int:
    """Compute the cells that are not done yet, and say how many those were."""
    states = {cell: store.state(cell) for cell in cells}
    damaged = [cell for cell, state in states.items() if state == "damaged"]
    for cell in damaged:
        say(f"{store.path(cell)} was edited or damaged; it will be computed again")
    missing = [cell for cell, state in states.items() if state != "done"]
    # Timed cells have the machine to themselves; the longest cells of the others come first.
    timed = [cell for cell in missing if cell.timed]
    others = sorted((c for c in missing if not c.timed), key=lambda c: -COST.get(c.method, 1.0))
    if not missing:
        return 0
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        # Time left goes by cost, not by count.
        task = progress.add_task("running", total=len(missing))
        for _ in _on_cluster(others, store, dask) if dask else _here(others, store, workers):
            progress.advance(task)
        for _ in _here(timed, store, 1):
            progress.advance(task)
    return len(missing)


def _here(cells: list[Job], store: Store, workers: int) -> Iterator[Job]:
    if workers == 1:
        return (_run_and_write(cell, store) for cell in cells)
    tasks = (delayed(_run_and_write)(cell, store) for cell in cells)
    found: Iterator[Job] = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)(
        tasks
    )
    return found


def _run_and_write(cell: Job, store: Store) -> Job:
    store.write(cell, run_cell(cell))
    return cell


def _on_cluster(cells: list[Job], store: Store, address: str) -> Iterator[Job]:
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
        tasks = {client.submit(run_cell, cell, retries=RETRIES, pure=False): cell for cell in cells}
        for future in cluster.as_completed(tasks):
            found: dict[str, Array] = future.result()
            store.write(tasks[future], found)
            yield tasks[future]
            future.release()


DRAW: dict[str, Callable[[list[Runs], Path, str], None]] = {
    "figure2": figures.regret,
    "figure-time": figures.times,
    "figure-2d": figures.regret,
    "figure-4d": figures.regret,
    "figure-loose": figures.loose,
}


@dataclass(frozen=True)
class Outcome:
    """What was done."""

    computed: int  # cells
    files: list[Path]
    table: str  # those of the experiments that have one, as text


def reproduce(
    names: Iterable[str],
    choices: Choices,
    out: Path,
    workers: int = 1,
    dask: str | None = None,
    say: Callable[[str], None] = print,
) -> Outcome:
    """Reproduce experiments of the paper into the folder ``out``.

    Cells that are there already are not computed again. Tables, figures and the report are made
    from the cells; each file is replaced as a whole, and none before all are made.
    """
    experiments = specs.checked_experiments(list(names))
    if dask is not None and not dask.strip():
        raise InputError("the address of the Dask cluster is empty; it looks like tcp://host:8786.")
    store = Store(out)
    store.open(choices)
    start = time.monotonic()
    cells = specs.all_jobs(experiments, choices)
    computed = run(cells, store, workers, dask, say)
    elapsed = time.monotonic() - start
    # The report is about everything that is there, not only what was asked for this time.
    for name in specs.EXPERIMENTS:
        more = specs.jobs(name, choices)
        if name not in experiments and more and all(store.state(c) == "done" for c in more):
            experiments.append(name)
    runs = {name: collect(specs.cells(name, choices), store) for name in experiments}

    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder)
        texts = [_write_table(runs["table1"], new)] if "table1" in runs else []
        for name in experiments:
            if name in DRAW:
                DRAW[name](runs[name], new, name)
        if "theory" in experiments:
            texts.append(theory.write(specs.cells("theory", choices), store, new))
        if "tightness" in experiments:
            of_radii = specs.cells("tightness", choices)
            texts.append(tightness.write(runs["tightness"], of_radii, store, new))
        if "certificates" in experiments:
            texts.append(certificates.write(specs.certificates(choices), store, new))
        if "designs" in experiments:
            texts.append(designs.write(specs.designs(choices), store, new))
        if "scale" in experiments:
            texts.append(scale.write(specs.scale(choices), store, new))
        if "figure1" in experiments:
            result = figure1.run()
            for picture in figures.figure_names("figure1"):
                figure1.draw(result, new / picture)
        facts = _facts(store, cells, choices, computed, elapsed, workers, dask)
        if found := speed(runs.get("table1", []), runs.get("figure-time", [])):
            facts["speed"] = str(found)
            say(str(found))
        (new / "report.html").write_text(report.as_html(runs, facts, new), encoding="utf-8")
        made = sorted(new.iterdir())
        for one in made:
            target = out / one.name
            with files.failure_reported(f"write {str(target)!r}"), files.replacing(target) as file:
                file.write(one.read_bytes())
    return Outcome(computed, [out / one.name for one in made], "\n".join(texts))


def _write_table(runs: list[Runs], folder: Path) -> str:
    text = tables.as_text(runs)
    (folder / "table1.txt").write_text(text, encoding="utf-8")
    (folder / "table1.tex").write_text(tables.as_latex(runs), encoding="utf-8")
    (folder / "table1.csv").write_text(tables.as_csv(runs), encoding="utf-8")
    return text


def _facts(
    store: Store,
    cells: list[Job],
    choices: Choices,
    computed: int,
    elapsed: float,
    workers: int,
    dask: str | None,
) -> dict[str, str]:
    """What was run on what, for the report."""
    where = f"the Dask cluster at {dask}" if dask else f"{workers} worker(s) on this machine"
    used = {f"{key} {value}" for cell in cells for key, value in store.software(cell).items()}
    used = used or {f"{key} {value}" for key, value in software().items()}
    return {
        "rounds": str(choices.rounds),
        "repetitions": str(choices.repetitions),
        "seed": str(choices.seed),
        "methods": ", ".join(choices.methods),
        "cells": f"{len(cells)}, of which {computed} computed in this run",
        "this run": f"{elapsed:.0f} s on {where}",
        "computed with": "; ".join(sorted(used)),
    }
