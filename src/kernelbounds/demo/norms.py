"""Chapter 1: what a bound on the norm admits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from kernelbounds.demo.numbers import numbers
from kernelbounds.kernels.rkhs import RKHSFunction

# Length scales, and how they are called on the page.
FAMILIES = {"slowly": 0.4, "moderately": 0.15, "quickly": 0.06}
FUNCTIONS, CENTRES = 6, 12
LARGEST, FIRST = 10.0, 6.0  # of the slider over B


def chapter(places: int, seed: int) -> dict[str, Any]:
    """Random functions of norm 1, for each length scale; times B they are those of norm B.

    With k(x, x) = 1 a function of norm B has values in [-B, B].
    """
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, places)[:, None]
    families = []
    for name, scale in FAMILIES.items():
        kernel = Matern(scale, nu=2.5)
        drawn = [
            RKHSFunction(kernel, rng.random((CENTRES, 1)), rng.standard_normal(CENTRES)).rescaled(1)
            for _ in range(FUNCTIONS)
        ]
        families.append(
            {
                "name": name,
                "length_scale": scale,
                "functions": [numbers(one(grid)) for one in drawn],
            }
        )
    return {"x": numbers(grid), "families": families, "largest": LARGEST, "first": FIRST}
