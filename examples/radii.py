"""How close radii come to the noise energy, and what that is worth in a bandit.

KernelUCB with CMM plays the paper's problems (three inputs, norm 10, Gaussian noise of 0.1, delta
0.01, 100 fresh actions a round) with the default radius and with the paper's. B is right, and sigma
is, or is believed twice too large. Printed are R_t^2 over the sum of the squared noise so far, and
the cumulative regret. ``docs/mathematics/radius.md`` quotes it.

    python examples/radii.py
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

import kernelbounds as kb

MATERN, SHORT_RBF = Matern(length_scale=0.5, nu=2.5), RBF(length_scale=0.2)
CASES = {  # a kernel, and the believed sigma over the true one
    "Matérn-5/2, ℓ = 0.5": (MATERN, 1.0),
    "RBF, ℓ = 0.2": (SHORT_RBF, 1.0),
    "Matérn-5/2, ℓ = 0.5; 2σ": (MATERN, 2.0),
}
DIM, DELTA = 3, 0.01
CHECKED = (10, 50, 200, 1000)


def mixtures(kernel: Kernel, rounds: int) -> dict[str, kb.mixtures.Mixture]:
    """The default, and the paper's with its choice of c for so many rounds."""
    c = kb.mixture_scale(kernel, DIM, rounds)
    return {"Hybrid()": kb.mixtures.Hybrid(), f"Single({c:.2g})": kb.mixtures.Single(c)}


def ratios(
    problem: kb.SyntheticProblem, sequence: kb.ConfidenceSequence, times: list[int]
) -> list[float]:
    """R_t^2 over the sum of squared noise, at these times of a run."""
    noise = sequence.outcomes - problem.values(sequence.points)
    found = []
    for t in times:
        a = sequence.assumptions
        part = kb.ConfidenceSequence(
            sequence.kernel, a.norm_bound, a.noise, a.delta, mixture=a.mixture
        )
        part.update(sequence.points[:t], sequence.outcomes[:t])
        found.append(part.radius**2 / float(noise[:t] @ noise[:t]))
    return found


def main() -> None:
    """Play, and print a line for each kernel and mixture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1000)
    arguments = parser.parse_args()
    times = [t for t in CHECKED if t <= arguments.rounds]
    early = min(300, arguments.rounds)
    heads = [*(f"R²/Σε² at t = {t}" for t in times), f"regret after {early}"]
    heads.append(f"after {arguments.rounds}")
    print("| kernel | mixture | " + " | ".join(heads) + " |")
    print("|---|---|" + "---|" * len(heads))
    for label, (kernel, factor) in CASES.items():
        for name, mixture in mixtures(kernel, arguments.rounds).items():
            rows, regrets = [], []
            for seed in range(arguments.problems):
                rng = np.random.default_rng(seed)
                problem = kb.SyntheticProblem.draw(kernel, DIM, rng)
                norm = problem.function.norm * (1 + 1e-12)
                believed = factor * problem.noise_scale
                sequence = kb.ConfidenceSequence(kernel, norm, believed, DELTA, mixture=mixture)
                trace = kb.simulate(kb.KernelUCB(sequence), problem, arguments.rounds, rng=rng)
                regret = trace.table()["cumulative_regret"]
                regrets.append([regret[early - 1], regret[-1]])
                rows.append(ratios(problem, sequence, times))
            cells = [f"{value:.2f}" for value in np.mean(rows, axis=0)]
            error = np.std(regrets, axis=0, ddof=min(1, len(regrets) - 1)) / np.sqrt(len(regrets))
            for mean, half in zip(np.mean(regrets, axis=0), error, strict=True):
                cells.append(f"{mean:.0f} ± {half:.0f}")
            print(f"| {label} | `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
