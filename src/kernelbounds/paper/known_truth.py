"""Parts of simulations with a known truth: problems, noise, and when one looks at the bounds."""

from __future__ import annotations

import math

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array
from kernelbounds.bandits import SyntheticProblem
from kernelbounds.paper import specs

SKEW = 0.1  # the probability of the larger of two values of skewed noise


def random_problem(
    kernel: Kernel, dim: int, rng: np.random.Generator, noise_scale: float = specs.NOISE
) -> SyntheticProblem:
    """Draw a problem like those of Table 1."""
    return SyntheticProblem.draw(
        kernel, dim, rng, norm=specs.NORM, noise_scale=noise_scale, centres=specs.CENTRES,
        actions_per_round=specs.ACTIONS,
    )  # fmt: skip


def unit_noise(law: str, rng: np.random.Generator, count: int) -> Array:
    """Draw independent noise that is sub-Gaussian with scale 1, but for ``heavy`` and ``loud``.

    A variable that is 1 - p with probability p, and -p otherwise, is sub-Gaussian with the variance
    proxy (1 - 2p) / (2 ln((1 - p) / p)) and no smaller one (Kearns and Saul, 1998).
    """
    match law:
        case "Rademacher":
            return rng.choice([-1.0, 1.0], count)
        case "uniform":
            return rng.uniform(-math.sqrt(3), math.sqrt(3), count)
        case "skewed":
            proxy = (1 - 2 * SKEW) / (2 * math.log((1 - SKEW) / SKEW))
            return np.asarray(((rng.random(count) < SKEW) - SKEW) / math.sqrt(proxy))
        case "heavy":
            return rng.standard_t(3, count) / math.sqrt(3)
        case "loud":
            return 1.5 * rng.standard_normal(count)
    return rng.standard_normal(count)


def looks(rounds: int, first: int, factor: float) -> list[int]:
    """Return the numbers of observations after which bounds are compared with the truth.

    They are the ``first`` ones, then each is ``factor`` times the last, and the end.

    Examples
    --------
    >>> found = looks(200, first=20, factor=1.1)
    >>> found[:5], found[-5:], len(found)
    ([1, 2, 3, 4, 5], [149, 163, 179, 196, 200], 47)
    """
    found = list(range(1, min(first, rounds) + 1))
    while found[-1] < rounds:
        found.append(max(found[-1] + 1, math.floor(factor * found[-1])))
    return [*(time for time in found if time < rounds), rounds]
