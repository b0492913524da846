"""How the exact bound's time per step and its memory grow with t.

Each loop runs in a process of its own (``python -m benchmarks.growth``), which reports its times
and its peak memory. The peak is VmHWM, because ru_maxrss starts at the peak of the parent.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import kernelbounds as kb
from benchmarks.problem import MATERN, ROUNDS, Array, Problem, play
from benchmarks.report import Row, Target
from benchmarks.timing import fastest

FIRST_FITTED_ROUND, BIN_ROUNDS = 300, 50
PROCESS_STATUS = Path("/proc/self/status")  # Linux only


def run() -> list[Row]:
    """Targets hold for KernelUCB; on random points fewer directions can be dropped."""
    return [
        *_grow("KernelUCB", ("<=", 2.0), ("<=", 100.0)),
        *_grow("random", None, None),
    ]


def _grow(rule: str, time_target: Target | None, memory_target: Target | None) -> list[Row]:
    used: list[float | None] = []

    def run() -> Array:
        command = [sys.executable, "-m", "benchmarks.growth", rule]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        used.append(found["megabytes"])
        return np.array(found["times"])

    exponent, means = fit_exponent(fastest(f"growth, {rule}: CMM loop", run)[0])
    spread = f"{1e3 * means[0]:.2f} to {1e3 * means[-1]:.2f} ms"
    known = [one for one in used if one is not None]
    span = f"t = {FIRST_FITTED_ROUND} to {ROUNDS}"
    return [
        Row(f"growth, {rule}: CMM step, {span}", spread, "", exponent, "exponent", time_target),
        Row(f"growth, {rule}: peak memory", "", "", max(known, default=None), "MB", memory_target),
    ]


def fit_exponent(times: Array) -> tuple[float, Array]:
    """The slope of log time against log t, by least squares on means over bins, and the means."""
    rounds = np.arange(FIRST_FITTED_ROUND, len(times)).reshape(-1, BIN_ROUNDS).mean(axis=1)
    means = times[FIRST_FITTED_ROUND:].reshape(-1, BIN_ROUNDS).mean(axis=1)
    return float(np.polyfit(np.log(rounds), np.log(means), 1)[0]), means


def megabytes(field: str) -> float | None:
    """VmRSS, the memory in use, or VmHWM, its peak."""
    if not PROCESS_STATUS.exists():
        return None
    line = next(line for line in PROCESS_STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def child(rule: str) -> None:
    problem = Problem.of(MATERN)
    before = megabytes("VmRSS")
    times = play(problem, kb.CMM(), greedy=rule == "KernelUCB").times
    peak = megabytes("VmHWM")
    used = None if before is None or peak is None else peak - before
    print(json.dumps({"times": times.tolist(), "megabytes": used}))


if __name__ == "__main__":
    child(sys.argv[1])
