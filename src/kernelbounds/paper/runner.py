"""Running many cells: on this machine's cores, or on a Dask cluster.

Whoever computes a cell on this machine writes its file, so that whatever interrupts the run loses
only the cells under way. On a cluster the workers return their numbers and this process writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError, MissingExtraError, said
from kernelbounds.paper.cells import run_cell
from kernelbounds.paper.specs import Job
from kernelbounds.paper.store import Store

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
