"""Time to fit and to predict, against Gaussian processes that a user would pick.

Each side runs in a process of its own (``python -m benchmarks.scale``) with limits on its memory
and on its processor time, so that a size that is not possible is a result. Times are those of the
processor, with one thread.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

import kernelbounds as kb
from benchmarks import rivals
from benchmarks.growth import megabytes
from benchmarks.report import Row, progress

MEMORY, SECONDS = 8e9, 200  # bytes and seconds of processor time, at most
INDUCING, QUERIES = 512, 1000
EXACT = (1000, 2000, 4000, 8000, 16_000, 32_000)  # until one is not possible
SPARSE = (10_000, 100_000)


def run() -> list[Row]:
    rows = []
    for count in EXACT:
        ours, rival = measured("ours", count), measured("exact", count)
        rows.append(
            _row(f"scale, t = {count}: scikit-learn's GaussianProcessRegressor", ours, rival)
        )
        if "seconds" not in rival:
            break
    if said := rivals.missing():
        progress(f"scale: {said}")
        return [*rows, Row("scale: GPyTorch's SVGP", "", "not installed", None, "times faster")]
    for count in SPARSE:
        ours, rival = measured("ours", count), measured("sparse", count)
        rows.append(_row(f"scale, t = {count}: GPyTorch's SVGP", ours, rival))
    return rows


def measured(side: str, count: int) -> dict[str, float]:
    """Seconds and megabytes; empty where a limit was met."""
    progress(f"scale: {side}, {count} observations")
    command = [sys.executable, "-m", "benchmarks.scale", side, str(count)]
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        text = done.stderr.decode()
        memory = "MemoryError" in text or "allocate" in text
        if not memory and done.returncode not in (-9, -24):  # killed, or out of time
            raise RuntimeError(text)
        return {"stopped": 1.0 if memory else 2.0}
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _row(name: str, ours: dict[str, float], rival: dict[str, float]) -> Row:
    if "seconds" not in rival:
        why = "memory" if rival["stopped"] == 1 else "time"
        limit = f"over {MEMORY / 1e9:.0f} GB" if why == "memory" else f"over {SECONDS} s"
        return Row(name, _said(ours), limit, None, "times faster")
    return Row(name, _said(ours), _said(rival), rival["seconds"] / ours["seconds"], "times faster")


def _said(found: dict[str, float]) -> str:
    return f"{found['seconds']:.1f} s, {found['megabytes']:.0f} MB"


def child(side: str, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY), int(MEMORY)))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    rng = np.random.default_rng(0)
    truth = kb.bandits.SyntheticProblem.draw(
        rivals.kernel_of("rbf"), rivals.DIM, rng, norm=rivals.NORM, noise_scale=rivals.NOISE
    )
    X, queries = rng.random((count, rivals.DIM)), rng.random((QUERIES, rivals.DIM))
    y = truth.values(X) + rivals.NOISE * rng.standard_normal(count)
    intervals = {
        "ours": rivals.ours,
        "sparse": rivals.sparse_gp,
        "exact": lambda name, _: rivals.exact_gp(name),
    }[side]("rbf", INDUCING)
    start = time.process_time()
    intervals(X, y, queries)
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "megabytes": megabytes("VmHWM") or float("nan")}))


if __name__ == "__main__":
    with threadpool_limits(1):
        child(sys.argv[1], int(sys.argv[2]))
