"""How often f* is outside of intervals: ours, and those of Gaussian processes.

    python -m benchmarks.coverage --out docs/images/scale-coverage.png

Functions have norm 10 in the kernel's space, as sums of 20 kernels at random centres, and all sides
are told the noise and the family of the kernel; ours also the length scale and the norm. Points are
``random``, or ``adaptive``: a policy that looks for the maximum (KernelUCB) chose them. All sides
get the same data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.progress import track
from threadpoolctl import threadpool_limits

import kernelbounds as kb
from benchmarks import rivals
from benchmarks.problem import Array
from kernelbounds.bandits import SyntheticProblem

COUNT, QUERIES, INDUCING, ACTIONS = 300, 1000, 128, 100
KERNELS = {"rbf": "RBF", "matern-5/2": "Matérn-5/2"}
DESIGNS = {"random": "random points", "adaptive": "points of a policy"}
SIDES = {
    "ours": "kernelbounds, sparse: 99 % at all x and t",
    "exact": "scikit-learn's GP, ± 2 sd",
    "sparse": "GPyTorch's SVGP, ± 2 sd",
}
COLOURS = {"ours": "#0014a8", "exact": "#c46210", "sparse": "#9b2335"}


def data(kernel: str, design: str, seed: int) -> tuple[Array, Array, Array, Array]:
    """Points and outcomes, and points with the values of f* there."""
    rng = np.random.default_rng([seed, list(KERNELS).index(kernel)])
    problem = SyntheticProblem.draw(
        rivals.kernel_of(kernel), rivals.DIM, rng, norm=rivals.NORM, noise_scale=rivals.NOISE
    )
    queries, X = rng.random((QUERIES, rivals.DIM)), rng.random((COUNT, rivals.DIM))
    if design == "adaptive":
        sequence = kb.ConfidenceSequence(rivals.kernel_of(kernel), rivals.NORM, rivals.NOISE)
        policy = kb.KernelUCB(sequence)
        for _ in range(COUNT):
            x = policy.ask(actions=rng.random((ACTIONS, rivals.DIM))).x
            policy.tell(x, float(problem.values(x[None])[0]) + problem.noise(rng))
        return sequence.points, sequence.outcomes, queries, problem.values(queries)
    y = problem.values(X) + rivals.NOISE * rng.standard_normal(COUNT)
    return X, y, queries, problem.values(queries)


def missed(kernel: str, design: str, seed: int, sides: list[str]) -> dict[str, float]:
    """The share of points at which f* is outside, by side."""
    X, y, queries, values = data(kernel, design, seed)
    found = {}
    for side in sides:
        intervals = {
            "ours": lambda name: rivals.ours(name, INDUCING),
            "exact": rivals.exact_gp,
            "sparse": lambda name: rivals.sparse_gp(name, INDUCING, double=True),
        }[side](kernel)
        lower, upper = intervals(X, y, queries)
        found[side] = float(((values < lower) | (values > upper)).mean())
    return found


def draw(shares: dict[tuple[str, str], dict[str, Array]], functions: int, out: Path) -> None:
    """A panel for each kernel: points missed above, functions missed somewhere below."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    style = {"axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(1, 2, figsize=(8.4, 3.2), sharey=True, layout="constrained")
        panels = {
            "share of points outside of the interval": lambda x: x,
            "share of functions outside somewhere": np.sign,
        }
        rows = [(design, kernel) for design in DESIGNS for kernel in KERNELS]
        for axis, (title, of) in zip(axes, panels.items(), strict=True):
            for place, (design, kernel) in enumerate(rows):
                for at, (side, values) in enumerate(shares[kernel, design].items()):
                    share = float(of(values).mean())
                    axis.barh(
                        -place - 0.26 * at, max(share, 0.002), 0.24, color=COLOURS[side],
                        label=SIDES[side] if place == 0 else None,
                    )  # fmt: skip
                    axis.annotate(
                        f"{100 * share:.1f} %" if share < 0.995 else "100 %",
                        (share, -place - 0.26 * at), (3, 0), textcoords="offset points",
                        va="center", fontsize=7,
                    )  # fmt: skip
            axis.set_xlabel(title)
            axis.set_yticks(
                [-place - 0.26 for place in range(len(rows))],
                [f"{KERNELS[kernel]},\n{DESIGNS[design]}" for design, kernel in rows],
                fontsize=8,
            )
        axes[0].axvline(0.05, color="black", linewidth=0.6, linestyle=":")
        axes[1].set_xlim(0, 1.12)
        axes[0].figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8,
            frameon=False,
        )  # fmt: skip
        figure.savefig(out, dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("scale-coverage.png"))
    parser.add_argument("--functions", type=int, default=20)
    arguments = parser.parse_args()
    sides = list(SIDES)
    if said := rivals.missing():
        print(said)
        sides.remove("sparse")
    shares = {}
    with threadpool_limits(1):
        for kernel, design in track([(k, d) for k in KERNELS for d in DESIGNS]):
            found = [missed(kernel, design, seed, sides) for seed in range(arguments.functions)]
            shares[kernel, design] = {
                side: np.array([one[side] for one in found]) for side in sides
            }
            for side, values in shares[kernel, design].items():
                print(
                    f"{kernel}, {design}, {side}: {100 * values.mean():.2f} % of points, "
                    f"{100 * np.sign(values).mean():.0f} % of {len(values)} functions",
                    flush=True,
                )
    draw(shares, arguments.functions, arguments.out)


if __name__ == "__main__":
    main()
