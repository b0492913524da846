"""Where weighted likelihood ratios are narrower than CMM: the table of docs/mathematics/rivals.md.

    python -m benchmarks.weighted

Functions have norm B, as sums of 20 kernels at random centres of the unit square, and so are the
points of the data. Widths are means over 20 more points. The best c is that of 41 with the least
mean width, which nobody knows beforehand.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct, Kernel, Matern
from threadpoolctl import threadpool_limits

import kernelbounds as kb
from kernelbounds.kernels.rkhs import RKHSFunction

SCALES = np.geomspace(1e-6, 1e4, 41)
# Kernel, observations, B, sigma.
CASES: list[tuple[Kernel, int, float, float]] = [
    (DotProduct(0.5), 300, 5.0, 0.1),
    (DotProduct(0.5), 72, 2.8, 0.04),
    (RBF(2.0), 300, 5.0, 1.0),
    (RBF(2.0), 100, 5.0, 0.1),
    (RBF(0.5), 100, 5.0, 0.1),
    (Matern(0.5, nu=2.5), 100, 5.0, 0.1),
]


def ratios(kernel: Kernel, count: int, norm: float, noise: float, seed: int) -> tuple[float, float]:
    """The mean width of Emmenegger over those of CMM: at its best c, and with the default."""
    rng = np.random.default_rng(seed)
    truth = RKHSFunction(kernel, rng.random((20, 2)), rng.standard_normal(20)).rescaled(norm)
    points, queries = rng.random((count, 2)), rng.random((20, 2))
    outcomes = truth(points) + noise * rng.standard_normal(count)

    def width(scale: float | None, bound: kb.Bound) -> float:
        seq = kb.ConfidenceSequence(kernel, norm, noise, delta=0.1, mixture_scale=scale)
        seq.update(points, outcomes)
        lower, upper = seq.bounds(queries, bound)
        return float((upper - lower).mean())

    theirs = width(None, kb.bounds.Emmenegger())
    best = min(width(scale, kb.CMM()) for scale in SCALES)
    return theirs / best, theirs / width(None, kb.CMM())


def main() -> None:
    print("kernel, observations, B, sigma: over CMM at its best c; over CMM, default; two seeds")
    with threadpool_limits(1):
        for case in CASES:
            found = [ratios(*case, seed) for seed in (0, 1)]
            both = zip(*found, strict=True)
            shown = "; ".join(", ".join(f"{one:.2f}" for one in part) for part in both)
            print(*case, shown, sep=", ", flush=True)


if __name__ == "__main__":
    main()
