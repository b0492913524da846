"""The task that all benchmarks share: maximise an unknown function of norm 10 on [0, 1]^3."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

import kernelbounds as kb

Array = NDArray[np.float64]

DIM, ROUNDS, CANDIDATES, CENTRES = 3, 1000, 100, 20
NORM_BOUND, NOISE_SCALE, DELTA = 10.0, 0.1, 0.01

MATERN = Matern(length_scale=0.5, nu=2.5)
SMOOTH = RBF(length_scale=0.5)


@dataclass(frozen=True)
class Problem:
    """Everything random, drawn before the clock starts."""

    kernel: Kernel
    mixture_scale: float
    truth: kb.RKHSFunction
    candidates: Array  # (rounds, candidates, dim)
    noise: Array  # (rounds,)
    random_choice: NDArray[np.int64]  # (rounds,), for the loop that ignores its bounds

    @classmethod
    def of(cls, kernel: Kernel, seed: int = 0) -> Problem:
        rng = np.random.default_rng(seed)
        truth = kb.RKHSFunction(kernel, rng.random((CENTRES, DIM)), rng.standard_normal(CENTRES))
        return cls(
            kernel,
            kb.mixture_scale(kernel, DIM, ROUNDS),
            truth.rescaled(NORM_BOUND),
            rng.random((ROUNDS, CANDIDATES, DIM)),
            NOISE_SCALE * rng.standard_normal(ROUNDS),
            rng.integers(CANDIDATES, size=ROUNDS),
        )

    @property
    def ridge(self) -> float:
        """sigma^2/c."""
        return NOISE_SCALE**2 / self.mixture_scale

    def sequence(self, bound: kb.CMM | kb.DMM | kb.AMM) -> kb.ConfidenceSequence:
        return kb.ConfidenceSequence(
            self.kernel, NORM_BOUND, NOISE_SCALE, DELTA, self.mixture_scale, bound
        )


@dataclass(frozen=True)
class Run:
    """What happened in a loop, round by round."""

    points: Array  # (rounds, dim)
    outcomes: Array  # (rounds,)
    upper: Array  # (rounds, candidates)
    times: Array  # (rounds,), seconds in upper() and update()


def play(
    problem: Problem, bound: kb.CMM | kb.DMM | kb.AMM, *, greedy: bool, rounds: int = ROUNDS
) -> Run:
    """KernelUCB when ``greedy``; otherwise observe a random candidate, whatever its bound."""
    sequence = problem.sequence(bound)
    run = Run(
        np.empty((rounds, DIM)),
        np.empty(rounds),
        np.empty((rounds, CANDIDATES)),
        np.empty(rounds),
    )
    for t, candidates in enumerate(problem.candidates[:rounds]):
        start = time.process_time()
        upper = sequence.upper(candidates)
        asked = time.process_time() - start

        # Off the clock, as KernelUCB decides: by the bound before clipping, which ``upper`` is not.
        chosen = problem.random_choice[t]
        if greedy:
            surface = sequence.surface(1)
            chosen = surface.largest(candidates).at
        point = candidates[[chosen]]
        outcome = problem.truth(point) + problem.noise[t]

        start = time.process_time()
        sequence.update(point, outcome)
        run.times[t] = asked + time.process_time() - start
        run.points[t], run.outcomes[t], run.upper[t] = point[0], outcome[0], upper
    return run
