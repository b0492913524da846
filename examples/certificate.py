"""What a certificate is: the largest lower bound, the highest upper bound, and the gap between.

python examples/certificate.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

KERNEL, SIGMA = Matern(length_scale=0.3, nu=2.5), 0.1
GRID = np.linspace(0, 1, 201)[:, None]
TRUTH = kb.RKHSFunction(KERNEL, [[0.15], [0.6], [0.95]], [1.2, 2.0, 0.5])  # of norm 2.5


def main() -> None:
    """Play KernelUCB, and draw the certificate at three times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    rng = np.random.default_rng(2)
    seq = kb.ConfidenceSequence(KERNEL, norm_bound=3.0, noise_scale=SIGMA)
    ucb = kb.KernelUCB(seq, kb.Finite(GRID))
    times = (3, 6, 12) if arguments.quick else (4, 12, 60)
    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
    best = TRUTH(GRID).max()
    for axis, time in zip(axes, times, strict=True):
        while len(seq) < time:
            x = ucb.ask().x
            ucb.tell(x, float(TRUTH(x[None])[0] + SIGMA * rng.standard_normal()))
        found = ucb.certificate()
        true = best - TRUTH(found.x[None])[0]
        print(f"{time} trials: x = {found.x[0]:.3f}, regret at most {found.regret:.3f}; "
              f"in truth {true:.3f}")  # fmt: skip
        lower, upper = seq.bounds(GRID)
        axis.fill_between(GRID[:, 0], lower, upper, color="#d5daf2", linewidth=0)
        axis.plot(GRID, TRUTH(GRID), "k--", linewidth=1, label="the truth")
        axis.plot(seq.points, seq.outcomes, ".", color="#444444", markersize=4)
        axis.axhline(found.max_upper, color="#9b2335", linewidth=1, label="f* is nowhere above")
        axis.axhline(found.lower, color="#4b8b3b", linewidth=1, label="f* at the star is above")
        axis.plot(found.x, found.lower, "*", color="#4b8b3b", markersize=12)
        axis.set(title=f"{time} trials: within {found.regret:.2f} of the best", xlabel="x")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=9, loc="lower left")
    figure.savefig(arguments.out / "ideas-certificate.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
