"""KernelUCB on the sparse engine, round after round: what a late step costs, and its regret.

Steps are compared within one run: those before round 10,000 with those before round 1000. The
regret after 1000 rounds is compared with the exact engine's on the same problems, actions and
noise; a difference of less than two standard errors is none.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from benchmarks.growth import megabytes
from benchmarks.problem import Array
from benchmarks.report import Row, progress, share

ROUNDS, EARLY, PROBLEMS = 10_000, 1000, 10
FULL = 2000  # rounds until a chunk of the newest observations has been full once
ACTIONS, DIM, NORM, NOISE = 100, 3, 10.0, 0.1
KERNEL = RBF(0.5)


def run() -> list[Row]:
    """Of one long run, and of several short ones with both engines."""
    progress(f"long: {ROUNDS} rounds")
    _, seconds, grown = play(0, ROUNDS, kb.Sparse())
    late, early = (float(seconds[9 * at // 10 : at].mean()) for at in (ROUNDS, EARLY))
    pairs = []
    for seed in range(PROBLEMS):
        progress(f"long: regret of both engines, {seed + 1} of {PROBLEMS}")
        pairs.append([play(seed, EARLY, engine)[0] for engine in (kb.Sparse(), None)])
    differences = np.subtract(*np.transpose(pairs))
    error = float(differences.std(ddof=1)) / PROBLEMS**0.5
    off = abs(float(differences.mean())) / error
    regrets = [f"{one:.1f}" for one in np.mean(pairs, axis=0)]
    return [
        share(f"long: step before round {ROUNDS:,} / before {EARLY:,}", late, early, 1.3),
        Row(f"long: memory that rounds after {FULL:,} add", "", "", grown, "MB"),
        Row(f"long: regret, {EARLY:,} rounds, {PROBLEMS} problems", *regrets, off,
            "standard errors apart", ("<=", 2)),
    ]  # fmt: skip


def play(seed: int, rounds: int, engine: kb.Sparse | None) -> tuple[float, Array, float | None]:
    """The regret, the seconds of each round, and the megabytes that rounds after FULL add."""
    rng = np.random.default_rng(seed)
    centres = rng.random((20, DIM))
    truth = kb.RKHSFunction(KERNEL, centres, rng.standard_normal(20)).rescaled(0.9 * NORM)
    policy = kb.KernelUCB(kb.ConfidenceSequence(KERNEL, NORM, NOISE, engine=engine))
    seconds, regret, before = np.empty(rounds), 0.0, None
    for at in range(rounds):
        actions = rng.random((ACTIONS, DIM))
        values = truth(actions)
        start = time.process_time()
        chosen = policy.ask(actions)
        assert chosen.index is not None
        value = values[chosen.index]
        policy.tell(chosen.x, value + NOISE * rng.standard_normal())
        seconds[at] = time.process_time() - start
        regret += values.max() - value
        if at + 1 == FULL:
            before = megabytes("VmRSS")
    after = megabytes("VmRSS")
    grown = None if before is None or after is None else after - before
    return float(regret), seconds, grown
