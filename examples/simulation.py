"""A simulation without noise: the best temperature and time of a batch, certified.

A becomes B, and B becomes waste, each faster when it is hotter. How much B is there at best? Each
answer takes one solution of the differential equations. They have no noise: `noise_scale=0`.

python examples/simulation.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from scipy.integrate import solve_ivp
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

SETTINGS = kb.Box.named(temperature=(335.0, 365.0), hours=(1.0, 5.0))
KERNEL = Matern(length_scale=SETTINGS.upper - SETTINGS.lower, nu=2.5)


def fraction_of_b(temperature: float, hours: float, slower: float = 1.0) -> float:
    """What part of A is B at the end."""
    hotter = 1 / 350 - 1 / temperature
    k1, k2 = 0.6 * np.exp(6000 * hotter), 0.15 * slower * np.exp(9000 * hotter)
    solved = solve_ivp(
        lambda t, c: [-k1 * c[0], k1 * c[0] - k2 * c[1]], (0, hours), [1.0, 0.0], rtol=1e-8
    )
    return float(solved.y[1, -1])


def norm_of_an_older_model(side: int) -> float:
    """Of a similar batch on a grid: where B comes from."""
    axes = [np.linspace(0, 1, side)] * 2
    points = SETTINGS.scaled(np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2))
    values = np.array([fraction_of_b(*x, slower=0.8) for x in points]) - 0.5
    return kb.RKHSFunction(KERNEL, points, np.linalg.solve(KERNEL(points), values)).norm


def main() -> None:
    """Choose B, then ask, simulate and tell until the certificate is good enough."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="12 simulations in place of 60")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")

    norms = [norm_of_an_older_model(side) for side in ((4, 7) if arguments.quick else (7, 13))]
    B = 2 * norms[-1]
    print(f"norms of an older model on two grids: {norms[0]:.2f}, {norms[1]:.2f}; B = {B:.2f}")
    seq = kb.ConfidenceSequence(KERNEL, norm_bound=B, noise_scale=0.0, offset=0.5)
    ucb = kb.KernelUCB(seq, SETTINGS)
    rounds, regrets, limits, best = [], [], [], []
    for done in range(1, 13 if arguments.quick else 61):
        asked = ucb.ask()
        ucb.tell(asked, fraction_of_b(**asked.named))
        if done % 4 == 0:
            found = ucb.certificate(tolerance=0.002, seconds=1.0)
            rounds.append(done)
            regrets.append(found.regret)
            limits.append(found.max_upper)
            best.append(found.lower)
            if found.regret < 0.01:
                break
    print(
        f"after {done} simulations: {found.named['temperature']:.1f} K, "
        f"{found.named['hours']:.2f} h, B is {found.lower:.4f} to {found.upper:.4f} of A"
    )
    print(
        f"no settings give more than {found.max_upper:.4f}; within {found.regret:.4f} of the best"
    )
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    kb.plot.certificate(rounds, limits=limits, best=best, ax=left)
    left.set_title("The best possible is between these")
    points = seq.points
    shown = right.scatter(points[:, 0], points[:, 1], c=seq.outcomes, s=30)
    right.plot(*found.x, "*", color="#9b2335", markersize=15)
    right.set(xlabel="temperature [K]", ylabel="hours", title="Simulations, and the certified best")
    figure.colorbar(shown, label="part of A that is B")
    figure.savefig(arguments.out / "gallery-simulation.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
