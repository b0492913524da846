"""``update_from`` with one and with two Dask workers, processes of one thread on this machine.

With one worker nothing is passed over twice. For the time of the clock it takes two free processor
cores, and a third for the rest. The processor time of the busiest worker needs none: it is what the
work would take if each worker had a core of its own and never waited.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from benchmarks.problem import Array
from benchmarks.report import Row, agreement, faster, progress

COUNT, FILES, INDUCING, DIM = 100_000, 8, 512, 3
REPEATS = 3
COLUMNS = {"inputs": ["a", "b", "c"], "output": "y"}


def run() -> list[Row]:
    try:
        import distributed
    except ImportError:
        progress("cluster: Dask is not installed; pip install 'kernelbounds[dask]'.")
        return []
    rng = np.random.default_rng(0)
    queries, found = rng.random((200, DIM)), {}
    best, busiest = {1: np.inf, 2: np.inf}, {1: np.inf, 2: np.inf}
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), rng)
        for workers in best:
            options: dict[str, Any] = {"processes": True, "dashboard_address": "127.0.0.1:0"}
            with (
                distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, host="127.0.0.1", **options
                ) as cluster,
                distributed.Client(cluster, set_as_default=False) as client,
            ):
                _added(folder, client, 8)  # imports take seconds
                for repeat in range(REPEATS):
                    progress(f"cluster: {workers} workers, {repeat + 1} of {REPEATS}")
                    before, start = client.run(time.process_time), time.perf_counter()
                    sequence = _added(folder, client)
                    seconds = time.perf_counter() - start
                    after = client.run(time.process_time)
                    busy = max(after[worker] - before[worker] for worker in after)
                    best[workers] = min(best[workers], seconds)
                    busiest[workers] = min(busiest[workers], busy)
                    found[workers] = np.array(sequence.bounds(queries))
    off = float(np.abs(found[1] - found[2]).max())
    return [
        faster(f"cluster, t = {COUNT}: two workers and one", best[2], best[1], 1.7),
        faster("cluster: processor time of the busiest worker", busiest[2], busiest[1], None),
        agreement("cluster: bounds with one worker and with two", off, 1e-9),
    ]


def _write(folder: Path, rng: np.random.Generator) -> None:
    import pyarrow
    from pyarrow import parquet

    for part in range(FILES):
        X: Array = rng.random((COUNT // FILES, DIM))
        y = np.sin(3 * X).sum(axis=1) + 0.1 * rng.standard_normal(len(X))
        table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
        parquet.write_table(table, folder / f"part-{part}.parquet")


def _added(folder: str, client: Any, inducing: int = INDUCING) -> kb.ConfidenceSequence:
    engine = kb.Sparse.filling([0.0] * DIM, [1.0] * DIM, inducing)
    sequence = kb.ConfidenceSequence(RBF(0.5), 10.0, 0.1, engine=engine)
    sequence.update_from(folder, **COLUMNS, client=client)
    return sequence
