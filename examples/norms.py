"""The RKHS norms of ordinary functions: how large B has to be, at least.

The norm of a function on the cube [0, 1]^d is the limit of the norms of its interpolants on finer
and finer points, and none of them exceeds it. With a slack > 0,

    y' (K + slack I)^-1 y = min over g of ||g||^2 + sum_i (g(x_i) - f(x_i))^2 / slack <= ||f||^2

is a lower bound on the squared norm, too, and can be computed in double precision however
ill-conditioned K is. A number with > in front of it has not settled, or is of a function that does
not belong to the space at all (norm infinite). Put your own function into FUNCTIONS.

    python examples/norms.py                # the tables of docs/how-to/assumptions.md
    python examples/norms.py --points 6000  # on finer designs; several minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

import kernelbounds as kb

# All are within -1 and 1 on the cube and reach both; x has shape (n, d).
BUMP_WIDTH = 0.3


def bump(x: np.ndarray) -> np.ndarray:
    """A Gaussian at the centre of the cube, shifted and scaled to be -1 in the corners."""
    corner = np.exp(-x.shape[1] * 0.5**2 / (2 * BUMP_WIDTH**2))
    peak = np.exp(-np.sum((x - 0.5) ** 2, axis=1) / (2 * BUMP_WIDTH**2))
    return 2 * (peak - corner) / (1 - corner) - 1


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ramp": lambda x: 2 * x[:, 0] - 1,
    "bowl": lambda x: 2 * np.mean((2 * x - 1) ** 2, axis=1) - 1,
    "bump": bump,
    "step": lambda x: np.tanh(6 * (x[:, 0] - 0.5)) / np.tanh(3),
    "one wave": lambda x: np.sin(2 * np.pi * x[:, 0]),
    "two waves": lambda x: np.sin(4 * np.pi * x[:, 0]),
    "interaction": lambda x: np.prod(2 * x - 1, axis=1),
    "waves in all": lambda x: np.prod(np.sin(2 * np.pi * x), axis=1),
}
SAME_IN_ONE_DIMENSION = {"interaction": "ramp", "waves in all": "one wave"}

LENGTH_SCALES = (0.25, 0.5, 1.0)
SLACK = 1e-10  # far above the rounding errors of a few thousand points, about 1e-12
SETTLED = 0.04  # the largest relative rise from the coarser to the finer design


def kernels_at(length_scale: float) -> dict[str, Kernel]:
    """The three kernels of the tables."""
    return {
        "Matérn-3/2": Matern(length_scale, nu=1.5),
        "Matérn-5/2": Matern(length_scale, nu=2.5),
        "RBF": RBF(length_scale),
    }


def design(dim: int, points: int) -> np.ndarray:
    """A grid of at most so many points and 48 a side, closer near the boundary (Chebyshev).

    Most of the norm that a coarse design misses is in slopes at the boundary.
    """
    side = min(48, int(points ** (1 / dim) + 1e-9))
    axis = (1 - np.cos(np.pi * np.arange(side) / (side - 1))) / 2
    return np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


def norms(kernel: Kernel, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Lower bounds on the norms of functions with these values, (n, functions), at the points."""
    factor = cho_factor(kernel(points) + SLACK * np.eye(len(points)), overwrite_a=True)
    return np.sqrt(np.sum(values * cho_solve(factor, values), axis=0))


def norms_within(
    kernel: Kernel, points: np.ndarray, values: np.ndarray, error: float
) -> np.ndarray:
    """Norms of ridge fits that differ from the values by at most ``error`` at the points."""
    eigenvalues, vectors = np.linalg.eigh(kernel(points))
    eigenvalues = np.maximum(eigenvalues, 0)
    found = []
    for coordinates in (vectors.T @ values).T:

        def excess(log_ridge: float, coordinates: np.ndarray = coordinates) -> float:
            ridge = np.exp(log_ridge)
            misfit = vectors @ (coordinates * ridge / (eigenvalues + ridge))
            return float(np.max(np.abs(misfit)) - error)

        lowest, highest = np.log(1e-12), np.log(1e6)
        # A fit that is not close enough at the lowest ridge has a norm of more than 10,000.
        within = excess(lowest) < 0
        ridge = np.exp(brentq(excess, lowest, highest, xtol=1e-3) if within else lowest)
        found.append(np.sqrt(np.sum(eigenvalues * (coordinates / (eigenvalues + ridge)) ** 2)))
    return np.array(found)


def drawn(kernel: Kernel, points: np.ndarray, draws: int = 20) -> float:
    """The median norm of the paper's test functions, 20 random centres, scaled to reach 1."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(draws):
        centres, weights = rng.random((20, points.shape[1])), rng.standard_normal(20)
        f = kb.RKHSFunction(kernel, centres, weights)
        ratios.append(f.norm / np.max(np.abs(f(points))))
    return float(np.median(ratios))


def shown(norm: float, lower_bound: bool) -> str:
    """Two digits; lower bounds are rounded down, and 1000 is as far as it goes."""
    if norm >= 1000:
        return "> 1000"
    digits = 1 if norm < 9.95 else 0
    if not lower_bound:
        return f"{norm:.{digits}f}"
    return f"> {np.floor(norm * 10**digits) / 10**digits:.{digits}f}"


def table(dim: int, points: int) -> list[list[str]]:
    """Rows of cells: a function, then its norms by kernel and length scale."""
    coarse, fine = design(dim, points // 2), design(dim, points)
    names = [n for n in FUNCTIONS if dim > 1 or n not in SAME_IN_ONE_DIMENSION]
    rows = [[name] for name in [*names, "random draw"]]
    for label in kernels_at(1.0):
        for length_scale in LENGTH_SCALES:
            kernel = kernels_at(length_scale)[label]
            before, after = (
                norms(kernel, p, np.stack([FUNCTIONS[n](p) for n in names], axis=1))
                for p in (coarse, fine)
            )
            # Polynomials, waves and steps are not in the space of the RBF kernel, nor is a bump
            # plus a constant: the norm is infinite, whatever the interpolants seem to say.
            open_ended = (after > (1 + SETTLED) * before) | (label == "RBF")
            for row, norm, is_open in zip(rows[:-1], after, open_ended, strict=True):
                row.append(shown(float(norm), bool(is_open)))
            rows[-1].append(shown(drawn(kernel, fine), False))
    return rows


def table_within(dim: int, points: int, error: float) -> list[list[str]]:
    """Rows of cells: a function, then norms that suffice to come within an error of it."""
    names = [n for n in FUNCTIONS if dim > 1 or n not in SAME_IN_ONE_DIMENSION]
    rows = [[name] for name in names]
    for label in kernels_at(1.0):
        for length_scale in LENGTH_SCALES:
            x = design(dim, points)
            values = np.stack([FUNCTIONS[n](x) for n in names], axis=1)
            found = norms_within(kernels_at(length_scale)[label], x, values, error)
            for row, norm in zip(rows, found, strict=True):
                row.append(shown(float(norm), False))
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2744, help="in the finest design")
    arguments = parser.parse_args()
    heads = [f"{k}, ℓ = {s:g}" for k in kernels_at(1.0) for s in LENGTH_SCALES]
    for dim in (1, 2, 3):
        print(f"\nd = {dim}: norms", f"({len(design(dim, arguments.points))} points)\n")
        show(heads, table(dim, arguments.points))
    points = min(arguments.points, 600)
    print(f"\nd = 2: norms that suffice to within 0.02, 1 % of the range ({points} points)\n")
    show(heads, table_within(2, points, error=0.02))


def show(heads: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    print("| | " + " | ".join(heads) + " |")
    print("|---|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
