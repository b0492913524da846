"""A hyperparameter search with a certificate: a support vector machine on scikit-learn's wines.

One evaluation is the mean accuracy over random splits of the data, in percent. Its expectation,
over all splits, is the function that is searched.

python examples/hyperparameters.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.gaussian_process.kernels import Matern
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelbounds as kb

SEARCHED = kb.Box.named(log_C=(0.0, 3.0), log_gamma=(-3.0, -1.0))
KERNEL = Matern(length_scale=(SEARCHED.upper - SEARCHED.lower) / 2, nu=2.5)


def accuracy(data: object, log_C: float, log_gamma: float, splits: int, seed: int) -> float:
    """Percent of the held-out half that are right, mean over so many random splits."""
    model = make_pipeline(StandardScaler(), SVC(C=10**log_C, gamma=10**log_gamma))
    cut = ShuffleSplit(splits, test_size=0.5, random_state=seed)
    return 100 * float(cross_val_score(model, data.data, data.target, cv=cut).mean())


def grid(side: int) -> np.ndarray:
    """Settings on a grid."""
    axes = np.linspace(0, 1, side)
    return SEARCHED.scaled(np.stack(np.meshgrid(axes, axes), axis=-1).reshape(-1, 2))


def main() -> None:
    """B and the noise from other data sets, then the search."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="fewer evaluations")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pyplot.switch_backend("Agg")
    splits, rounds, side = (3, 6, 3) if arguments.quick else (40, 80, 5)

    # The search is not allowed to look at its own data for B and sigma. Other tasks may be used.
    norms, scatter = [], []
    for data in (load_iris(), load_breast_cancer()):
        points = grid(side)
        values = np.array([accuracy(data, *x, 2 * splits, seed=0) for x in points]) - 95
        norms.append(kb.RKHSFunction(KERNEL, points, np.linalg.solve(KERNEL(points), values)).norm)
        again = [accuracy(data, 1.0, -2.0, splits, seed) for seed in range(8)]
        scatter.append(np.std(again, ddof=1))
    B, sigma = 1.5 * max(norms), 2 * max(scatter)
    print(f"on other data: norms {norms[0]:.0f} and {norms[1]:.0f}, so B = {B:.0f}; "
          f"noise {scatter[0]:.2f} and {scatter[1]:.2f}, so sigma = {sigma:.2f}")  # fmt: skip

    wine = load_wine()
    seq = kb.ConfidenceSequence(KERNEL, B, sigma, offset=kb.Offset(95.0, within=5.0))
    ucb = kb.KernelUCB(seq, kb.Finite(grid(21)))
    regrets = []
    for done in range(1, rounds + 1):
        asked = ucb.ask()
        ucb.tell(asked, accuracy(wine, *asked.x, splits, seed=100 + done))
        regrets.append(ucb.certificate().regret)
    found = ucb.certificate()
    print(f"after {rounds} evaluations: log C = {found.x[0]:.1f}, log gamma = {found.x[1]:.2f}, "
          f"accuracy at least {found.lower:.1f} %")  # fmt: skip
    print(f"no setting of the grid is better by more than {found.regret:.1f} points")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    shown = left.scatter(*seq.points.T, c=seq.outcomes, s=30)
    left.plot(*found.x, "*", color="#9b2335", markersize=15)
    left.set(xlabel="log₁₀ C", ylabel="log₁₀ gamma", title="Evaluated, and the certified best")
    figure.colorbar(shown, label="accuracy [%]")
    kb.plot.certificate(np.arange(1, rounds + 1), regrets, right)
    right.set_title("Percentage points that may be missing")
    figure.savefig(arguments.out / "gallery-hyperparameters.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
