"""Chapter 4: a certificate closes in, round by round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.bandits import Finite, KernelLUCB
from kernelbounds.demo.numbers import number, numbers
from kernelbounds.kernels.rkhs import RKHSFunction
from kernelbounds.sequence import ConfidenceSequence

KERNEL = Matern(length_scale=0.3, nu=2.5)
NORM, NORM_BOUND, NOISE, DELTA = 4.0, 5.0, 0.2, 0.01


def chapter(rounds: int, places: int, seed: int, step: Callable[[], object]) -> dict[str, Any]:
    """The band, the certificate and the truth about it after every round, the first of them empty.

    ``step`` is called once a round.
    """
    rng = np.random.default_rng(seed)
    centres, weights = rng.random((12, 1)), rng.standard_normal(12)
    function = RKHSFunction(KERNEL, centres, weights).rescaled(NORM)
    grid = np.linspace(0, 1, places)[:, None]
    truth, frames = function(grid), []
    policy = KernelLUCB(ConfidenceSequence(KERNEL, NORM_BOUND, NOISE, DELTA), Finite(grid))
    for round in range(rounds + 1):
        lower, upper = policy.sequence.bounds(grid)
        frame: dict[str, Any] = {"lower": numbers(lower), "upper": numbers(upper)}
        if round:
            found = policy.certificate()
            frame |= {
                "best": number(found.x[0]),
                "sure": number(found.lower),
                "limit": number(float(found.max_upper or 0.0)),
                "regret": number(found.regret),
                "true_regret": number(float(truth.max() - function(found.x[None])[0])),
            }
        frames.append(frame)
        if round < rounds:
            asked = policy.ask()
            policy.tell(asked, function(asked.x[None])[0] + NOISE * rng.standard_normal())
            step()
    return {
        "x": numbers(grid),
        "truth": numbers(truth),
        "points": numbers(policy.sequence.points),
        "outcomes": numbers(policy.sequence.outcomes),
        "norm_bound": NORM_BOUND,
        "noise": NOISE,
        "frames": frames,
    }
