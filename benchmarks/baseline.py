"""The rival: the paper's appendix recursion in plain NumPy, on the data of our own run."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

import kernelbounds as kb
from benchmarks.problem import DELTA, NOISE_SCALE, NORM_BOUND, Problem, Run
from kernelbounds.paper.cells import Recursion


def replay(problem: Problem, run: Run, ridges: Sequence[float]) -> Run:
    """The recursion with equal candidates, points and outcomes; the first ridge is sigma^2/c."""
    assumptions = kb.Assumptions(NORM_BOUND, NOISE_SCALE, DELTA, problem.mixture_scale)
    rival = Recursion(problem.kernel, assumptions, ridges, run.points.shape)
    result = Run(run.points, run.outcomes, np.empty_like(run.upper), np.empty_like(run.times))
    for t in range(len(run.points)):
        start = time.process_time()
        upper = rival.upper(problem.candidates[t])
        rival.update(run.points[[t]], run.outcomes[t])
        result.times[t] = time.process_time() - start
        result.upper[t] = upper
    return result
