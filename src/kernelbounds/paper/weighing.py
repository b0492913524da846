"""What a load takes: time, memory, and the width of the bounds.

It runs in a process of its own (``python -m kernelbounds.paper.weighing``), whose peak memory is
that of the load. Times are those of the processor, which others on the machine do not change much.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kernelbounds.arrays import Array
from kernelbounds.bandits import SyntheticProblem
from kernelbounds.engine.sparse.ranges import sums
from kernelbounds.paper import loads
from kernelbounds.paper.loads import Load
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.sparse import Sparse

BATCH = 50_000  # observations that are in memory at a time
STATUS = Path("/proc/self/status")  # on Linux
# For the times of single passes and of the product Phi' Phi: blocks of so many rows, so many times.
ROWS, BLOCKS = 1000, 10


def run_load(load: Load) -> dict[str, Array]:
    """The numbers that :func:`weigh` finds, in a process of its own."""
    command = [sys.executable, "-m", "kernelbounds.paper.weighing", json.dumps(load.as_data())]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return {name: np.array([value]) for name, value in json.loads(found).items()}


def weigh(load: Load) -> dict[str, float]:
    """Seconds and megabytes, mean half-width, share of points covered, and inducing points.

    Of a sparse engine also the seconds a row of either pass of a cluster, and of Phi' Phi.
    """
    rng = np.random.default_rng([load.seed, list(loads.KERNELS).index(load.kernel)])
    truth = SyntheticProblem.draw(
        load.make_kernel(), loads.DIM, rng, norm=loads.NORM, noise_scale=loads.NOISE,
        centres=loads.CENTRES,
    )  # fmt: skip
    queries, sites = rng.random((loads.QUERIES, loads.DIM)), rng.random((loads.SITES, loads.DIM))
    sequence = ConfidenceSequence(
        load.make_kernel(), loads.NORM, loads.NOISE, loads.DELTA, engine=_engine(load)
    )
    seconds = 0.0
    for start in range(0, load.count, BATCH):
        size = min(BATCH, load.count - start)
        X = rng.random((size, loads.DIM))
        if load.engine == "merged":
            X = sites[rng.integers(len(sites), size=size)]
        y = truth.values(X) + loads.NOISE * rng.standard_normal(size)
        seconds += _timed(sequence.update, X, y)[0]
    at_queries, (lower, upper) = _timed(sequence.bounds, queries)
    values = truth.values(queries)
    found = {
        "seconds": seconds,
        "bounds_seconds": at_queries,
        "megabytes": _peak(),
        "half_width": float((upper - lower).mean() / 2),
        "covered": float(((lower <= values) & (values <= upper)).mean()),
        "inducing": 0.0,
    }
    if (what := sequence.approximation) is not None:
        found["inducing"] = float(what.inducing)
        if load.engine == "sparse":
            found |= _passes(sequence, rng)
    return found


def _engine(load: Load) -> Sparse | None:
    if load.engine == "sparse":
        return Sparse.filling([0.0] * loads.DIM, [1.0] * loads.DIM, load.inducing)
    return Sparse() if load.engine == "grown" else None


def _passes(sequence: ConfidenceSequence, rng: np.random.Generator) -> dict[str, float]:
    """Seconds a row of Phi' Phi alone, and of both passes of a cluster."""
    engine: Any = sequence.known.base
    X = rng.random((ROWS * BLOCKS, loads.DIM))
    y = loads.NOISE * rng.standard_normal(len(X))
    phi = rng.random((len(engine.dictionary), ROWS))

    def product() -> None:
        for _ in range(BLOCKS):
            phi @ phi.T

    told = sequence.known.told(X, y, None)
    sequence.update(X[:ROWS], y[:ROWS])  # so that the next are whole blocks
    times = {
        "product": _timed(product)[0],
        "sums": _timed(sums, engine, len(sequence), [(X, told)])[0],
        "growth": _timed(sequence.update, X, y)[0],
    }
    return {f"{name}_seconds_a_row": value / len(X) for name, value in times.items()}


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()
    found = function(*arguments)
    return time.process_time() - start, found


def _peak() -> float:
    """Megabytes, at most so far."""
    if STATUS.exists():  # the other one begins with that of the parent
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts bytes


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(weigh(Load(**json.loads(sys.argv[1])))))
