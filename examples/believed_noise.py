"""What happens when sigma is believed smaller than it is.

KernelUCB with CMM plays random functions (Matérn-5/2, length scale 0.5, two inputs, norm 10, B
right) for 80 rounds with delta 0.1, believing sigma = 0.1, while the noise is Gaussian and 1 to 2
times as large. Counted are the runs in which a bound was violated, and those in which the data
refuted the assumptions, for the default radius and for the paper's.
``docs/mathematics/radius.md`` quotes it.

    python examples/believed_noise.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import binomtest
from sklearn.gaussian_process.kernels import Matern

import kernelbounds as kb

KERNEL, DIM, ROUNDS = Matern(length_scale=0.5, nu=2.5), 2, 80
BELIEVED, DELTA = 0.1, 0.1
RATIOS = (1.0, 1.1, 1.2, 1.3, 1.5, 2.0)  # the true sigma over the believed one
ACTIONS = 30  # fresh ones each round
LOOKS = 8  # every so many rounds the bounds are compared with f* at all of these points:
POINTS = np.random.default_rng(0).random((100, DIM))

MIXTURES = {
    "Hybrid()": kb.mixtures.Hybrid(),
    "Single(c)": kb.mixtures.Single(kb.mixture_scale(KERNEL, DIM, ROUNDS)),
}


def play(mixture: kb.mixtures.Mixture, ratio: float, seed: int) -> tuple[bool, bool]:
    """Whether a bound was violated in a run, and whether the assumptions were refuted.

    Runs with the same seed have the same function, actions and noise, but for its size. A run ends
    when it is refuted: nobody relies on its bounds any more.
    """
    rng = np.random.default_rng(seed)
    problem = kb.SyntheticProblem.draw(KERNEL, DIM, rng, actions_per_round=ACTIONS)
    norm = problem.function.norm * (1 + 1e-12)
    sequence = kb.ConfidenceSequence(KERNEL, norm, BELIEVED, DELTA, mixture=mixture)
    policy, truth, violated = kb.KernelUCB(sequence), problem.values(POINTS), False
    of_actions, of_noise = rng.spawn(2)
    try:
        for done in range(1, ROUNDS + 1):
            s = policy.ask(actions=problem.actions(of_actions))
            value = problem.values(s.x[None])[0]
            violated |= not s.lower <= value <= s.upper
            policy.tell(s.x, value + ratio * problem.noise(of_noise))
            if done % LOOKS == 0:
                lower, upper = sequence.bounds(POINTS)
                violated |= not np.all((lower <= truth) & (truth <= upper))
    except kb.EmptyConfidenceSetError:
        return violated, True
    return violated, False


def draw(path: Path, outcomes: dict[str, np.ndarray]) -> None:
    """Shares of runs against true over believed sigma, with 95 % intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8.4, 3.4), sharey=True, layout="constrained")
    titles = ("a bound was violated", "the data refuted the assumptions")
    styles = (("#0014a8", "o-", -0.006), ("#c46210", "s-", 0.006))
    for column, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        for (name, found), (colour, style, shift) in zip(outcomes.items(), styles, strict=True):
            counts, runs = found[:, :, column].sum(axis=1), found.shape[1]
            limits = [binomtest(int(n), runs).proportion_ci() for n in counts]
            ends = np.array([[limit.low, limit.high] for limit in limits]).T
            share = counts / runs
            x = np.array(RATIOS) + shift
            axis.plot(x, 100 * share, style, color=colour, markersize=4, label=name)
            axis.vlines(x, *(100 * ends), color=colour, linewidth=1, alpha=0.6)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("true σ / believed σ")
        axis.set_xticks(RATIOS, labels=[f"{ratio:g}" for ratio in RATIOS])
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].axhline(100 * DELTA, color="black", linewidth=0.8, linestyle="--")
    axes[0].text(2.01, 100 * DELTA + 2, f"δ = {DELTA:g}", ha="right", fontsize=9)
    axes[0].set(ylabel="% of runs", ylim=(-3, 103))
    axes[0].legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def main() -> None:
    """Play, print the table and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--out", type=Path, help="folder for radius-noise.png; none by default")
    arguments = parser.parse_args()
    outcomes = {
        name: np.array(
            [[play(mixture, ratio, seed) for seed in range(arguments.runs)] for ratio in RATIOS]
        )
        for name, mixture in MIXTURES.items()
    }
    print(f"Of {arguments.runs} runs, by true over believed sigma\n")
    print("| true σ / believed σ | " + " | ".join(f"{ratio:g}" for ratio in RATIOS) + " |")
    print("|---|" + "---|" * len(RATIOS))
    for name, found in outcomes.items():
        violated, refuted = found[:, :, 0], found[:, :, 1]
        for what, runs in (
            ("violated", violated),
            ("refuted", refuted),
            ("violated and not refuted", violated & ~refuted),
        ):
            print(f"| `{name}`: {what} | " + " | ".join(map(str, runs.sum(axis=1))) + " |")
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        draw(arguments.out / "radius-noise.png", outcomes)


if __name__ == "__main__":
    main()
