"""What it buys to say what one knows: the yield of a reactor, with and without structure.

The truth is a formula with effects of single inputs, of pairs and a small remainder, so that every
norm can be computed: that of the minimum-norm interpolant on a grid. All points are of that grid,
where the assumptions are therefore true, with a factor of 1.5 to spare. (RBF is the exception: it
has no constants, polynomials or functions of single inputs in its space, and the norm given for it
is only what double precision can see.)

python examples/structure.py --out docs/images
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

import kernelbounds as kb

LEVEL, NOISE, SLACK_OF_B, DELTA = 63.0, 0.5, 1.5, 0.01
UNKNOWN = kb.Offset(50, within=30)
# Squared norms are those of fits that may miss the values by this, squared: lower bounds, and far
# above the rounding errors of a thousand points.
RIDGE = 1e-10
SMOOTH = Matern(length_scale=1.0, nu=2.5)

# Percent of yield, beside the level; inputs are temperature, time and concentration in [0, 1].
TERMS: dict[tuple[int, ...], Callable[[np.ndarray], np.ndarray]] = {
    (0,): lambda x: 5 - 21 * (x[:, 0] - 0.6) ** 2,
    (1,): lambda x: 6 - 12 * np.exp(-2.5 * x[:, 1]),
    (2,): lambda x: 4.5 * np.sin(2 * x[:, 2]) - 2,
    (0, 1): lambda x: -9 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5),
    (0, 2): lambda x: 6 * (x[:, 0] - 0.5) * (x[:, 2] - 0.5),
    (0, 1, 2): lambda x: 3 * np.prod(x - 0.5, axis=1),
}
KERNELS: dict[str, Kernel] = {
    "Matérn-5/2, ℓ = 0.5": Matern(length_scale=0.5, nu=2.5),
    "Matérn-5/2, ℓ = 1": SMOOTH,
    "RBF, ℓ = 0.5": RBF(length_scale=0.5),
}
STRUCTURE, EQUAL = "single inputs + pairs + remainder", "the same, equal shares"
LEVELS = {"level known": LEVEL, "level 50 ± 30": UNKNOWN, "level ignored": 0.0}
COLOURS = ("#0014a8", "#4b8b3b", "#c46210")


def truth(x: np.ndarray) -> np.ndarray:
    """The yield in percent."""
    return LEVEL + sum(term(x) for term in TERMS.values())


def grid(side: int) -> np.ndarray:
    """Equally spaced points of the cube."""
    axes = np.meshgrid(*[np.linspace(0, 1, side)] * 3, indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, 3)


def norm(kernel: Kernel, points: np.ndarray, values: np.ndarray) -> float:
    """The least norm of a function with these values, from below."""
    factor = cho_factor(kernel(points) + RIDGE * np.eye(len(points)))
    return float(np.sqrt(values @ cho_solve(factor, values)))


def parts_of(points: np.ndarray) -> kb.Parts:
    """A kernel for each term, and 1.5 times the norm of the term."""
    found = []
    for inputs, term in TERMS.items():
        # A function of some inputs has its norm on distinct values of those.
        _, first = np.unique(points[:, inputs], axis=0, return_index=True)
        kernel = kb.OnInputs(SMOOTH, inputs)
        size = norm(kernel, points[first], term(points[first]))
        found.append((kernel, SLACK_OF_B * size))
    # A pair that has no effect in truth: nobody knew.
    found.insert(-1, (kb.OnInputs(SMOOTH, [1, 2]), min(bound for _, bound in found)))
    return kb.Parts(found)


def half_widths(
    sequence: kb.ConfidenceSequence, data: tuple[np.ndarray, np.ndarray], points: np.ndarray
) -> tuple[float, bool]:
    """The mean half-width of CMM at the points, and whether the truth is in all intervals."""
    sequence.update(*data)
    lower, upper = sequence.bounds(points)
    inside = np.all((lower <= truth(points)) & (truth(points) <= upper))
    return float(np.mean(upper - lower) / 2), bool(inside)


def compare(points: np.ndarray, count: int, seed: int) -> dict[str, list[float]]:
    """Mean half-widths by assumption, one for each of LEVELS; nan where there is none."""
    rng = np.random.default_rng(seed)
    chosen = points[rng.choice(len(points), count, replace=False)]
    data = chosen, truth(chosen) + NOISE * rng.standard_normal(count)
    parts, table, misses = parts_of(points), {}, 0
    for name, kernel in KERNELS.items():
        table[name] = []
        for level in LEVELS.values():
            # An unknown level is a part of its own: the norm is that of the rest.
            known = LEVEL if isinstance(level, kb.Offset) else level
            bound = SLACK_OF_B * norm(kernel, points, truth(points) - known)
            sequence = kb.ConfidenceSequence(kernel, bound, NOISE, DELTA, offset=level)
            width, inside = half_widths(sequence, data, points)
            table[name].append(width)
            misses += not inside
            print(f"{name:36} {level!s:34} B = {bound:7.1f}   half-width {width:6.2f}")
    table[STRUCTURE], table[EQUAL] = [], []
    for level in (LEVEL, UNKNOWN):
        sequence = kb.ConfidenceSequence(parts, noise_scale=NOISE, delta=DELTA, offset=level)
        width, inside = half_widths(sequence, data, points)
        table[STRUCTURE].append(width)
        bounds = ", ".join(f"{b:.1f}" for _, b in parts.pairs)
        shares = ", ".join(f"{share:.2f}" for share in sequence.known.shares)
        print(f"{STRUCTURE:36} {level!s:34} B = {bounds}; shares {shares}")
        whole = sequence.kernel  # with equal shares, in which the norm is at most 1
        centre = level if level == LEVEL else UNKNOWN.level
        equal = kb.ConfidenceSequence(whole, 1.0, NOISE, DELTA, offset=centre)
        other, fine = half_widths(equal, data, points)
        table[EQUAL].append(other)
        misses += (not inside) + (not fine)
    for name in (STRUCTURE, EQUAL):
        table[name].append(np.nan)
    print(f"\nthe truth is in all intervals: {not misses}")
    return table


def show(table: dict[str, list[float]]) -> None:
    """In Markdown."""
    print("\n| what is assumed | " + " | ".join(LEVELS) + " |\n|---|" + "---|" * len(LEVELS))
    for name, widths in table.items():
        cells = ["" if np.isnan(width) else f"{width:.1f}" for width in widths]
        print(f"| {name} | " + " | ".join(cells) + " |")


def draw(table: dict[str, list[float]], file: Path) -> None:
    """Bars: one group for each assumption, one colour for each level."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(9, 4.2), layout="constrained")
    places = np.arange(len(table))[::-1]
    for i, (label, colour) in enumerate(zip(LEVELS, COLOURS, strict=True)):
        widths = [row[i] for row in table.values()]
        at = places + 0.27 * (1 - i)
        axis.barh(at, widths, height=0.25, color=colour, label=label)
        for y, width in zip(at, widths, strict=True):
            if np.isfinite(width):
                axis.text(width + 0.3, y, f"{width:.1f}", va="center", fontsize=9)
    axis.set_yticks(places, list(table))
    axis.set_xlabel("mean half-width of CMM's band, percent of yield")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, loc="lower right")
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def main() -> None:
    """Print the table and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for structure.png")
    parser.add_argument("--side", type=int, default=11, help="points of the grid on each side")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    points = grid(arguments.side)
    values = truth(points)
    print(f"the yield is between {values.min():.1f} and {values.max():.1f} percent\n")
    table = compare(points, arguments.points, arguments.seed)
    show(table)
    draw(table, arguments.out / "structure.png")


if __name__ == "__main__":
    main()
