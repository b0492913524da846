"""A simulated alloy: a table of its hardness, by three numbers and the name of a quench.

python examples/alloy.py --runs 80 --out alloy.csv
python examples/alloy.py temperature=870 carbon=0.6 time=30 quench=water
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import kernelbounds as kb
from kernelbounds.io.csv_table import write_csv

QUENCHES = kb.Categories("oil", "water", "air")
BOX = kb.Box.named(temperature=(800, 950), carbon=(0.2, 0.8), time=(5, 60), quench=QUENCHES)
NOISE = 0.5
DIGITS = (1, 3, 1, 0)  # with which settings can be set


def true_hardness(points: np.ndarray) -> np.ndarray:
    """In HRC, at points of ``BOX``: more carbon is harder, and so is a faster quench.

    There is an optimal temperature, and an optimal time. The effects add up, so that it is honest
    to say ``--interactions none``, and that of the quench is 8 of the 30 HRC from 35 to 65.
    """
    hot, carbon, held = ((points - BOX.lower) / (BOX.upper - BOX.lower))[:, :3].T
    quench = np.array([0.0, 4.0, -4.0])[points[:, 3].astype(int)]
    of_numbers = 11 * carbon * (1 - 0.3 * carbon) + 3 * np.sin(2.5 * hot) - 5 * (held - 0.4) ** 2
    return 46 + quench + of_numbers


def main() -> None:
    """Write a table, or print one outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--runs", type=int, default=80)
    parser.add_argument("--out", type=Path, default=Path("alloy.csv"))
    parser.add_argument("--seed", type=int, default=None, help="of the noise")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    if arguments.settings:
        given = dict(pair.split("=") for pair in arguments.settings)
        point = BOX.point({n: x if n == "quench" else float(x) for n, x in given.items()})
        print(f"{true_hardness(point[None])[0] + NOISE * rng.standard_normal():.2f}")
        return
    columns = BOX.filling(arguments.runs).T
    points = np.column_stack([x.round(digits) for x, digits in zip(columns, DIGITS, strict=True)])
    outcomes = true_hardness(points) + NOISE * rng.standard_normal(len(points))
    table = dict(zip(BOX.names, points.T, strict=True))
    table["quench"] = QUENCHES.names_of(points[:, 3])
    write_csv(arguments.out, table | {"hardness": outcomes.round(2)})
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
