"""KernelUCB on the sparse engine, round after round: what a late step costs, and its regret.

Steps are compared within one run: those before round 10,000 with those before round 1000. The
regret after 1000 rounds is compared with the exact engine's on the same problems, actions and
noise; a difference of less than two standard errors is none.

``python -m benchmarks.long 100000`` plays that many rounds of the first problem, and prints regret,
inducing points, milliseconds a step and megabytes on the way; that takes about ten minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

import kernelbounds as kb
from benchmarks.growth import megabytes
from benchmarks.problem import Array
from benchmarks.report import Row, progress, share

ROUNDS, EARLY, PROBLEMS = 10_000, 1000, 10
FILLED_ROUND = 2000  # rounds until a chunk of the newest observations has been full once
ACTIONS, DIM, NORM, NOISE = 100, 3, 10.0, 0.1
KERNEL = RBF(0.5)


def run() -> list[Row]:
    """Measure one long run, and several short ones with both engines."""
    progress(f"long: {ROUNDS} rounds")
    steps = list(played(0, ROUNDS, kb.Sparse()))
    seconds = np.array([one.seconds for one in steps])
    late, early = (_late(seconds[:at]) for at in (ROUNDS, EARLY))
    before, after = steps[FILLED_ROUND - 1].megabytes, steps[-1].megabytes
    grown = None if before is None or after is None else after - before
    pairs = []
    for seed in range(PROBLEMS):
        progress(f"long: regret of both engines, {seed + 1} of {PROBLEMS}")
        both = [list(played(seed, EARLY, engine)) for engine in (kb.Sparse(), None)]
        pairs.append([steps[-1].regret for steps in both])
    differences = np.subtract(*np.transpose(pairs))
    error = float(differences.std(ddof=1)) / PROBLEMS**0.5
    off = abs(float(differences.mean())) / error
    regrets = [f"{one:.1f}" for one in np.mean(pairs, axis=0)]
    return [
        share(f"long: step before round {ROUNDS:,} / before {EARLY:,}", late, early, 1.3),
        Row(f"long: memory that rounds after {FILLED_ROUND:,} add", "", "", grown, "MB"),
        Row(f"long: regret, {EARLY:,} rounds, {PROBLEMS} problems", *regrets, off,
            "standard errors apart", ("<=", 2)),
    ]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A round, and what has added up by then."""

    seconds: float
    regret: float
    inducing: int
    megabytes: float | None  # every thousand rounds, and where the system tells


def played(seed: int, rounds: int, engine: kb.Sparse | None) -> Iterator[Step]:
    """Play rounds of KernelUCB, with fresh actions each."""
    rng = np.random.default_rng(seed)
    centres = rng.random((20, DIM))
    truth = kb.RKHSFunction(KERNEL, centres, rng.standard_normal(20)).rescaled(0.9 * NORM)
    sequence, regret = kb.ConfidenceSequence(KERNEL, NORM, NOISE, engine=engine), 0.0
    policy = kb.KernelUCB(sequence)
    for at in range(1, rounds + 1):
        actions = rng.random((ACTIONS, DIM))
        values = truth(actions)
        start = time.process_time()
        chosen = policy.ask(actions)
        assert chosen.index is not None
        value = values[chosen.index]
        policy.tell(chosen.x, value + NOISE * rng.standard_normal())
        seconds = time.process_time() - start
        regret += float(values.max() - value)
        about = sequence.approximation
        inducing = 0 if about is None else about.inducing
        yield Step(seconds, regret, inducing, None if at % EARLY else megabytes("VmRSS"))


def _late(seconds: Array) -> float:
    """The mean of the last tenth."""
    return float(seconds[9 * len(seconds) // 10 :].mean())


def main() -> None:
    """Play one long run, and say what it took on the way."""
    given = sys.argv[1:] or [str(10 * ROUNDS)]
    if len(given) > 1 or not given[0].isdecimal() or int(given[0]) == 0:
        sys.exit(f"usage: python -m benchmarks.long [ROUNDS], got {' '.join(given)}")
    rounds = int(given[0])
    seconds = np.empty(rounds)
    marks = {n * 10**k for n in (1, 2, 5) for k in range(3, 9) if n * 10**k < rounds} | {rounds}
    print("    round   regret  inducing  ms a step    MB")
    with threadpool_limits(1):
        for at, step in enumerate(played(0, rounds, kb.Sparse()), 1):
            seconds[at - 1] = step.seconds
            if at in marks:
                late, memory = 1e3 * _late(seconds[:at]), step.megabytes or float("nan")
                print(f"{at:9,}  {step.regret:7.1f}  {step.inducing:8}  {late:9.2f}  {memory:4.0f}",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
